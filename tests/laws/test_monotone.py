"""Predictions of every estimator rise or fall with constrained columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier

import everytree as et
from cases import rng_for
from every_estimator import as_targets, estimators, small, with_families
from everytree.export import to_tables

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

EVERY = [case for case in with_families(estimators(), shapes_of=None) if case.values[1] != "linear"]
every = pytest.mark.parametrize(("kind", "family"), EVERY)
SLACK = 1e-12


def rows(kind, family, n=120):
    rng = rng_for("monotone", kind.__name__, family)
    X = pd.DataFrame({"a": rng.uniform(size=n), "b": rng.uniform(size=n), "c": rng.choice(["u", "v"], n)})
    X.loc[rng.random(n) < 0.05, "b"] = np.nan
    signal = 2 * X["a"].to_numpy() - X["b"].fillna(0.5).to_numpy() + 0.7 * rng.normal(size=n)
    if is_classifier(kind()):
        return X, np.where(signal > 0.5, "more", "less")
    return X, as_targets(family, signal + 2)


def model_of(kind, family, constraint, X, y):
    return small(kind, monotonic_cst=constraint, **({} if family is None else {"family": family})).fit(X, y)


def said(model, X):
    if is_classifier(model):
        dist = model.predictive(X)
        np.testing.assert_allclose(dist.probs()[:, :2], model.predict_proba(X), atol=1e-14)
        return [model.predict_proba(X)[:, 1], -model.predict_proba(X)[:, 0]]
    dist, quantiles = model.predictive(X), model.predict_quantiles(X, [0.1, 0.5, 0.9])
    np.testing.assert_allclose(dist.mean(), model.predict(X), rtol=1e-9, atol=1e-12)
    assert (np.diff(quantiles, axis=1) >= 0.0).all()
    return [model.predict(X), *quantiles.T, *model.predict_interval(X, 0.8).T, dist.sf(1.5)]


@every
def test_predictions_are_monotone(kind, family):
    X, y = rows(kind, family)
    model = model_of(kind, family, {"a": 1, "b": -1}, X, y)
    at = np.linspace(-0.1, 1.1, 30)
    for column, sign in (("a", 1), ("b", -1)):
        table = X.iloc[np.repeat(np.arange(3), len(at))].assign(**{column: np.tile(at, 3)})
        for values in said(model, table):
            values = np.where(np.isfinite(values), values, 1e9).reshape(3, -1)  # of curves that do not end
            assert (sign * np.diff(values, axis=1) >= -SLACK).all()


@every
def test_rows_are_predicted_one_by_one_and_without_a_constraint_nothing_changes(kind, family):
    X, y = rows(kind, family)
    model = model_of(kind, family, [1, 0, 0], X, y)
    answers = model.predict_proba if is_classifier(model) else model.predict
    one_by_one = np.concatenate([answers(X.iloc[[i]]) for i in range(4)])
    np.testing.assert_allclose(one_by_one, answers(X.iloc[:4]), rtol=1e-13)
    free, zeros = (model_of(kind, family, constraint, X, y) for constraint in (None, [0, 0, 0]))
    np.testing.assert_array_equal(free.predict(X), zeros.predict(X))


@pytest.mark.parametrize("kind", [et.MetaForestRegressor, et.MetaForestClassifier, et.ExactTreeRegressor])
def test_a_million_probes(kind):
    X, y = rows(kind, None, n=200)
    model = model_of(kind, None, {"a": 1, "b": -1}, X, y)
    a, b = np.meshgrid(np.linspace(-0.1, 1.1, 600), np.linspace(-0.1, 1.1, 600), indexing="ij")
    for label in ("u", "v", "new"):
        probes = pd.DataFrame({"a": a.ravel(), "b": b.ravel(), "c": label})
        values = model.predict_proba(probes)[:, 1] if is_classifier(model) else model.predict(probes)
        values = values.reshape(a.shape)
        assert np.diff(values, axis=0).min() >= -SLACK
        assert np.diff(values, axis=1).max() <= SLACK


def test_files_keep_constraints_and_the_rest_refuses_by_name(tmp_path):
    X, y = rows(et.MetaForestRegressor, "normal")
    model = model_of(et.MetaForestRegressor, "normal", {"a": 1}, X, y)
    et.save(model, tmp_path / "model.et")
    again = et.load(tmp_path / "model.et")
    assert again.monotonic_cst == {"a": 1}
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    for action in (
        lambda: model.explain(X[:1]), lambda: to_tables(model), lambda: model.report(tmp_path / "page.html"),
        lambda: model.influence(X[:1], y[:1], X[:1]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="monotonic_cst"):
            action()
    parts = model.explain(X[:1], scale="trees")
    assert np.isfinite(parts.values).all()
    assert (np.diff(model.effect("a", X).mean.ravel()) >= -SLACK).all()


@pytest.mark.parametrize(
    ("constraint", "words"),
    [
        ({"z": 1}, "names a column that is 'z'"),
        ({7: 1}, "from 0 to 2"),
        ({"c": 1}, "column 'c', whose values have no order"),
        ({"a": 2}, "must be 1 .rises., -1 .falls. or 0 for column 'a', but is 2"),
        ({"a": True}, "but is True"),
        ({"a": 1, 0: -1}, "says both 1 and -1"),
        ([1, 0], "one entry for each of the 3 columns"),
        (1, "one entry for each of the 3 columns"),
        ("a", "one entry for each of the 3 columns"),
    ],
)
def test_constraints_that_cannot_hold_are_refused(constraint, words):
    X, y = rows(et.MetaTreeRegressor, "normal")
    model = et.MetaTreeRegressor(random_state=0, monotonic_cst=constraint)
    with pytest.raises(ValueError, match=rf"monotonic_cst.*{words}"):
        model.fit(X, y)
    assert not hasattr(model, "fitted_")


def test_constraints_are_for_two_classes_one_output_and_constant_leaves():
    X, y = rows(et.MetaTreeRegressor, "normal")
    with pytest.raises(ValueError, match=r"monotonic_cst .* 3 classes"):
        et.MetaTreeClassifier(monotonic_cst={"a": 1}).fit(X, np.arange(len(y)) % 3)
    with pytest.raises(ValueError, match="monotonic_cst is for one output"):
        et.MetaTreeRegressor(monotonic_cst={"a": 1}).fit(X, np.column_stack([y, y]))
    with pytest.raises(ValueError, match="monotonic_cst is not for leaves that are lines"):
        et.MetaTreeRegressor(family="linear", monotonic_cst={"a": 1}).fit(X, y)
    wide = pd.DataFrame(rng_for("wide").normal(size=(50, 11)))
    with pytest.raises(ValueError, match="at most 10"):
        et.MetaTreeRegressor(monotonic_cst=[1] * 11).fit(wide.to_numpy(), np.arange(50.0))
