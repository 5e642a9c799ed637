"""Intervals and sets by what left rows out, against refits and the definitions of jackknife+ and CV+."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import everytree as et
from cases import rng_for
from everytree.conformal.conformal import Asked
from everytree.conformal.folds import plus_interval
from everytree.conformal.scores import centre_and_scale, random_shares, ranked_scores
from everytree.fitting.held_out.unseen import UnseenRows
from everytree.predictive.pooled import sharpened

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def table(rng: np.random.Generator, n: int, family: str) -> tuple[NDArray[Any], NDArray[Any]]:
    X = np.column_stack([rng.normal(size=(n, 2)), rng.integers(0, 3, n)])
    if family == "classes":
        return X, (X[:, 0] + rng.normal(size=n) > 0.0).astype(int) + (X[:, 1] > 1.0)
    if family == "poisson":
        return X, rng.poisson(np.exp(0.5 * X[:, 0] + 1.0)).astype(float)
    return X, X[:, 0] + rng.normal(size=n)


def forest_of(family: str, X: NDArray[Any], y: NDArray[Any]) -> Any:
    kind = et.MetaForestClassifier if family == "classes" else et.MetaForestRegressor
    options = {} if family == "classes" else {"family": family}
    return kind(n_estimators=25, subsample=0.5, random_state=0, **options).fit(X, y, calibration_rows="left_out")


def refitted(model: Any, codes: NDArray[Any], y: NDArray[Any], row: int, new: NDArray[Any]) -> NDArray[Any]:
    """What the trees that were not grown on a row say of others, each counted again without it."""
    conformal, total, weights = model.fitted_.conformal, 0.0, 0.0
    others = np.arange(len(y)) != row
    for post, weight, unseen in zip(model.posteriors_, model.weights_, conformal.unseen, strict=True):
        if unseen[row] and weight > 0.0:
            again = et.Posterior(post.tree, post.family, post.split_prior_argument).update(codes[others], y[others])
            dist = again.predictive(new)
            moments = [dist.mean(), dist.variance() + dist.mean() ** 2]
            total += weight * (dist.probs() if post.family.has_classes else np.stack(moments, axis=1))
            weights += weight
    return total / weights


@pytest.mark.parametrize("family", ["classes", "normal", "poisson"])
def test_trees_without_a_row_are_those_of_refits(family):
    rng = rng_for("without", family)
    X, y = table(rng, 60, family)
    model = forest_of(family, X, y)
    conformal, codes = model.fitted_.conformal, model.schema_.encode(X)
    assert len(conformal.codes) == 60
    new = np.vstack([codes[:6], model.schema_.encode(table(rng, 10, family)[0]), [[255, 0, 1], [0, 255, 255]]])
    without = conformal.without(model.forest_, 0.0)
    literal = np.stack(
        [refitted(model, codes, y, row, np.vstack([new, codes[row]]).astype(np.uint8)) for row in range(60)]
    )
    np.testing.assert_allclose(without.at(new.astype(np.uint8)), literal[:, :-1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(without.of_rows, literal[:, -1], rtol=1e-10, atol=1e-12)


def test_forest_intervals_by_the_definition_of_jackknife_plus():
    rng = rng_for("jackknife")
    (X, y), (X_new, _) = table(rng, 60, "normal"), table(rng, 5, "normal")
    model = forest_of("normal", X, y)
    codes, new = model.schema_.encode(X), model.schema_.encode(X_new)
    low, high = [], []
    for row in range(60):
        first, second = refitted(model, codes, y, row, np.vstack([new, codes[row]])).T
        scale = np.sqrt(second - first**2)
        score = abs(y[row] - first[-1]) / scale[-1]
        low.append(first[:-1] - score * scale[:-1])
        high.append(first[:-1] + score * scale[:-1])
    # of 61 ranks, one tenth rounded down on either side
    literal = np.stack([np.sort(low, axis=0)[5], np.sort(high, axis=0)[-6]], axis=1)
    np.testing.assert_allclose(model.predict_interval(X_new, guarantee="conformal"), literal, rtol=1e-9)


@pytest.mark.parametrize("each_class", [False, True])
def test_forest_sets_by_the_definition_of_jackknife_plus(each_class):
    rng = rng_for("jackknife sets")
    (X, y), (X_new, _) = table(rng, 90, "classes"), table(rng, 20, "classes")
    model = forest_of("classes", X, y)
    codes, new, conformal = model.schema_.encode(X), model.schema_.encode(X_new), model.fitted_.conformal
    every = np.vstack([new, codes])
    shares, count = random_shares(every, conformal.salt), np.zeros((20, 3))
    for row in range(90):
        asked = [*range(20), 20 + row]
        probs = sharpened(refitted(model, codes, y, row, every[asked]), model.forest_.sharpness)
        scores = ranked_scores(probs, shares[asked])
        as_unusual = scores[-1, y[row]] >= scores[:-1]
        count += as_unusual * (np.arange(3) == y[row]) if each_class else as_unusual
    n_known = np.bincount(y) if each_class else np.full(3, 90)
    literal = count >= np.floor(0.3 * (n_known + 1) + 1e-9)
    np.testing.assert_array_equal(model.predict_set(X_new, 0.7, each_class=each_class), literal)


def test_rows_that_repeat_each_other_are_left_out_together():
    rng = rng_for("repeats")
    X, y = np.tile(rng.normal(size=(40, 6)), (2, 1)), rng.normal(size=80)
    conformal = forest_of("normal", X, y).fitted_.conformal
    assert len(conformal.codes) == 40
    assert (conformal.own[:, 0] == 2.0).all()


BY_FOLDS = [et.MetaBoostRegressor, et.MetaEnsembleRegressor, et.MetaTreeRegressor]


@pytest.mark.parametrize("kind", BY_FOLDS)
def test_fold_intervals_by_the_definition_of_cv_plus(kind):
    rng = rng_for("folds", kind.__name__)
    (X, y), (X_new, _) = table(rng, 80, "normal"), table(rng, 6, "normal")
    model = kind(random_state=0).fit(X, y, calibration_rows="left_out")
    conformal, codes = model.fitted_.conformal, model.schema_.encode(X_new)
    assert np.bincount(conformal.fold).tolist() == [16] * 5
    low, high = [], []
    for score, fold in zip(conformal.scores, conformal.fold, strict=True):
        centre, scale = centre_and_scale(Asked(model.model_, codes), conformal.models[fold])
        low.append(centre - score * scale)
        high.append(centre + score * scale)
    literal = np.stack([np.sort(low, axis=0)[7], np.sort(high, axis=0)[-8]], axis=1)
    np.testing.assert_allclose(model.predict_interval(X_new, guarantee="conformal"), literal, rtol=1e-12)


@pytest.mark.parametrize("kind", [et.MetaBoostClassifier, et.MetaEnsembleClassifier, et.MetaTreeClassifier])
@pytest.mark.parametrize("each_class", [False, True])
def test_fold_sets_by_the_definition_of_cv_plus(kind, each_class):
    rng = rng_for("folds", kind.__name__)
    (X, y), (X_new, _) = table(rng, 120, "classes"), table(rng, 15, "classes")
    model = kind(random_state=0).fit(X, y, calibration_rows="left_out")
    conformal, codes = model.fitted_.conformal, model.schema_.encode(X_new)
    count = np.zeros((15, 3))
    for score, fold, label in zip(conformal.scores, conformal.fold, conformal.target, strict=True):
        scores = ranked_scores(conformal.models[fold].probs(codes), random_shares(codes, conformal.salt))
        count += (score >= scores) * ((np.arange(3) == label) if each_class else 1)
    n_known = np.bincount(y) if each_class else np.full(3, 120)
    literal = count >= np.floor(0.3 * (n_known + 1) + 1e-9)
    np.testing.assert_array_equal(model.predict_set(X_new, 0.7, each_class=each_class), literal)


def test_chains_without_a_fold_say_what_was_said_of_it(monkeypatch):
    """While the model was fitted, by the chain that left the fold out."""
    seen: dict[str, Any] = {}
    X, y = table(rng_for("said"), 90, "classes")
    scored = UnseenRows.of_folds

    def kept(probs: Any, rows: Any, fold: Any) -> Any:
        seen.update(probs=probs, rows=rows, fold=fold)
        return scored(probs, rows, fold)

    monkeypatch.setattr(UnseenRows, "of_folds", kept)
    models = et.MetaBoostClassifier(random_state=0).fit(X, y, calibration_rows="left_out").fitted_.conformal.models
    for number, model in enumerate(models):
        own = seen["fold"] == number
        np.testing.assert_allclose(model.probs(seen["rows"].codes[own]), seen["probs"][own], rtol=1e-9, atol=1e-12)


def test_trees_without_a_fold_count_the_other_rows():
    X, y = table(rng_for("count"), 100, "normal")
    models = et.MetaTreeRegressor(random_state=0).fit(X, y, calibration_rows="left_out").fitted_.conformal.models
    assert [model.parts.averaged.posteriors[0].statistics[0, 0] for model in models] == [80.0] * 5


def test_ends_are_order_statistics():
    low = np.array([[3.0, 1.0, 2.0, 5.0]])
    np.testing.assert_array_equal(plus_interval(low, low + 10.0, 1), [[1.0, 15.0]])
    np.testing.assert_array_equal(plus_interval(low, low + 10.0, 2), [[2.0, 13.0]])


@pytest.mark.parametrize("kind", [et.MetaBoostRegressor, et.MetaTreeRegressor])
def test_one_row_of_each_group_counts(kind):
    rng = rng_for("groups", kind.__name__)
    patient = np.repeat(np.arange(40), 3)
    X, y = rng.normal(size=(40, 2))[patient] + 0.1 * rng.normal(size=(120, 2)), rng.normal(size=120)
    model = kind(random_state=0).fit(X, y, groups=patient, calibration_rows="left_out")
    assert model.guarantee_.n_rows == 40


def test_what_is_refused():
    rng = rng_for("refused")
    X, y = table(rng, 60, "normal")
    for model, options, words in (
        (et.ExactTreeRegressor(max_depth=1), {}, "leaves no rows out"),
        (et.MetaForestRegressor(subsample=1.0), {}, "leaves no rows out"),
        (et.MetaForestRegressor(family="linear"), {}, "not for forests with inputs"),
        (et.MetaForestRegressor(), {"groups": np.arange(60) // 3}, "rows in groups"),
        (et.MetaForestRegressor(family="survival"), {"event": y > 0.0}, "event leaves targets unknown"),
    ):
        with pytest.raises(ValueError, match=words):
            model.fit(X, np.exp(y), calibration_rows="left_out", **options)
    with pytest.raises(ValueError, match="one column of targets"):
        et.MetaForestRegressor().fit(X, np.column_stack([y, y]), calibration_rows="left_out")
    model = forest_of("normal", X, y)
    assert not model.guarantee_.is_proved
    assert "Approximate: columns, cut points" in str(model.guarantee_)
    with pytest.raises(ValueError, match="but with 60 calibration rows"):
        model.predict_interval(X, 0.99, guarantee="conformal")
