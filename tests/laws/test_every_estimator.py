"""Every public estimator through everything that takes a model: found, and asked by what it does."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone, is_classifier
from sklearn.ensemble import RandomForestClassifier

import everytree as et
from cases import rng_for
from estimator_cases import FRAMES, answers, mixed_columns
from every_estimator import estimators, small
from everytree.estimators.registry import estimator_named, estimator_names

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

KINDS = estimators()
every = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


@cache
def table() -> tuple[pd.DataFrame, np.ndarray]:
    """Numbers with gaps, texts and dates; and how much each row's target is about."""
    columns, signal = mixed_columns(80)
    return FRAMES["pandas"]({name: columns[name] for name in ("city", "area", "sold", "grade")}), signal


def target(kind: type[Any]) -> np.ndarray:
    _, signal = table()
    return np.where(signal > np.median(signal), "more", "less") if is_classifier(kind()) else signal


@cache
def fitted(kind: type[Any]) -> Any:
    """One for tests that only read."""
    return small(kind).fit(table()[0], target(kind))


def outcome(action: Callable[[], Any]) -> tuple[Any, str]:
    """What an action gives, or the words by which it is refused."""
    try:
        return action(), ""
    except (TypeError, ValueError) as error:
        return None, str(error)


def test_estimators_come_in_pairs():
    names = {kind.__name__ for kind in KINDS}
    assert len(names) >= 12
    for name in names:
        assert name.replace("Classifier", "Regressor") in names
        assert name.replace("Regressor", "Classifier") in names


@every
def test_copies_answer_the_same(kind, tmp_path):
    """A file, a pickle, a deep copy, and the same parameters fitted again."""
    model, (X, _) = fitted(kind), table()
    et.save(model, tmp_path / "model.et")
    again = clone(model).fit(X, target(kind))
    for other in (et.load(tmp_path / "model.et"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model), again):
        assert type(other) is kind
        np.testing.assert_array_equal(answers(other, X), answers(model, X))
        np.testing.assert_array_equal(other.feature_importances_, model.feature_importances_)
        assert repr(other.get_params()) == repr(model.get_params())


@every
def test_threads_change_nothing(kind):
    X, y = table()[0], target(kind)
    np.testing.assert_array_equal(answers(small(kind, n_jobs=3).fit(X, y), X), answers(fitted(kind), X))


@every
def test_rows_of_a_table_are_answered_one_by_one(kind):
    model, (X, _) = fitted(kind), table()
    one_by_one = np.concatenate([answers(model, X.iloc[[i]]) for i in range(8)])
    np.testing.assert_allclose(one_by_one, answers(model, X.iloc[:8]), rtol=1e-12, atol=1e-14)


@every
@pytest.mark.parametrize("library", FRAMES)
def test_tables_of_any_library_are_the_same_table(kind, library):
    columns = mixed_columns(80)[0]
    other = FRAMES[library]({name: columns[name] for name in ("city", "area", "sold", "grade")})
    np.testing.assert_array_equal(answers(fitted(kind), other), answers(fitted(kind), table()[0]))


@every
def test_contributions_sum_to_the_prediction(kind):
    model, X = fitted(kind), table()[0].iloc[:4]
    why = model.explain(X)
    total = why.base + why.values.sum(axis=1)
    literal = model.predict_proba(X) if is_classifier(model) else model.predict(X)
    np.testing.assert_allclose(total, literal, rtol=1e-7, atol=1e-9)


@every
def test_an_effect_is_the_average_over_rows_with_one_value(kind):
    model, X = fitted(kind), table()[0].iloc[:20]
    effect = model.effect("city", X)
    bern = effect.points.index("Bern")
    moved = X.assign(city="Bern")
    literal = (model.predict_proba(moved) if is_classifier(model) else model.predict(moved)).mean(axis=0)
    np.testing.assert_allclose(effect.mean[bern], literal, rtol=1e-6, atol=1e-9)


@every
def test_there_is_a_page_about_it(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("everytree.report.contenders.RandomForestClassifier", partial(RandomForestClassifier, 5))
    X, y = table()[0], target(kind)
    path = fitted(kind).report(tmp_path / "page.html", X.assign(wanted=y)[:40], target="wanted")
    page = path.read_text()
    assert page.startswith("<!DOCTYPE html>") or page.lower().startswith("<!doctype html>")
    assert kind.__name__ in page
    assert all(name in page for name in X.columns)


@every
def test_a_graph_answers_the_same_or_is_refused(kind):
    pytest.importorskip("onnxruntime")
    from export_cases import check_equal

    model, (X, _) = fitted(kind), table()
    graph, refusal = outcome(partial(et.to_onnx, model))
    if graph is None:
        assert kind.__name__ in refusal
        assert "must be one of" in refusal
    else:
        check_equal(model, X)


@every
def test_a_model_says_what_it_knows_of_itself(kind):
    model = fitted(kind)
    assert model.feature_importances_.shape == (4,)
    assert (model.feature_importances_ >= 0.0).all()
    assert list(model.feature_names_in_) == list(table()[0].columns)
    if hasattr(model, "unseen_"):
        assert "rows that the trees had not seen" in str(model.unseen_)
    else:
        with pytest.raises(AttributeError, match=f"this {kind.__name__} has no unseen_"):
            _ = model.unseen_
    assert kind.__name__ in model._repr_html_() or kind.__name__ in repr(model)


@every
def test_what_is_not_fitted_says_so(kind, tmp_path):
    bare, X = small(kind), table()[0]
    for ask in (bare.predict, bare.explain, lambda X: bare.effect("city", X), lambda X: bare.report(tmp_path / "p", X)):
        with pytest.raises(ValueError, match=f"{kind.__name__}.* not fitted"):
            ask(X)


@every
def test_an_interrupted_fit_changes_nothing(kind, monkeypatch):
    """A fit of other rows that is interrupted when it has coded them."""

    def interrupt(*_: Any) -> Any:
        raise KeyboardInterrupt

    model, (X, _) = copy.deepcopy(fitted(kind)), table()
    before = answers(model, X)
    with monkeypatch.context() as patch:
        patch.setattr("everytree.fitting.fit.code_first_rows", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X[:40], target(kind)[:40])
    np.testing.assert_array_equal(answers(model, X), before)


@pytest.mark.parametrize("kind", [estimator_named(name) for name in estimator_names()])
def test_what_the_command_fits_is_public(kind):
    assert kind in KINDS


@every
def test_weights_of_one_are_no_weights(kind):
    X, y = table()[0], target(kind)
    weighted = small(kind).fit(X, y, sample_weight=np.ones(len(y)))
    np.testing.assert_allclose(answers(weighted, X), answers(fitted(kind), X), rtol=1e-9, atol=1e-12)


@every
def test_new_texts_and_missing_values_are_answered(kind):
    X, rng = table()[0].copy(), rng_for("later", kind.__name__)
    X["city"] = X["city"].astype(object).where(rng.random(len(X)) > 0.5, "Espoo")
    X["area"] = np.nan
    assert np.isfinite(answers(fitted(kind), X)).all()
