"""What it takes to add a kind of estimator, and a family: toys of each are registered and sent to every consumer.

An estimator is a module with a list of parameters and a structure, and a line in the registry. A family is a class, and
a line in its registry; a link is all that boosting needs of it.
"""

from __future__ import annotations

import copy
import pickle
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import everytree as et
from cases import rng_for
from everytree.cli.fitting import Wanted, make_estimator
from everytree.cli.models import TableRoles
from everytree.estimators import rules
from everytree.estimators.classifier import Classifier
from everytree.estimators.parameters import estimator, parameter
from everytree.estimators.registry import STRUCTURES
from everytree.estimators.regressor import Regressor
from everytree.estimators.tree import _Tree
from everytree.families.registry import FAMILIES, NUMBER_FAMILIES


@estimator
class ShallowTreeClassifier(_Tree, Classifier):
    """A tree of two levels."""

    max_depth: int | None = parameter(rules.MAX_DEPTH, default=2, kw_only=False)
    criterion: str = parameter(rules.CLASS_CRITERION, default="gini")


@estimator
class ShallowTreeRegressor(_Tree, Regressor):
    """A tree of two levels, for numbers."""

    max_depth: int | None = parameter(rules.MAX_DEPTH, default=2, kw_only=False)
    criterion: str = parameter(rules.NUMBER_CRITERION, default="squared_error")
    family: str = parameter(rules.FAMILY, default="normal")


class Lifetime(et.Exponential):
    """Times that may be censored, like those of another family: both have the same row data."""


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(STRUCTURES, "shallow", ("ShallowTreeClassifier", "ShallowTreeRegressor"))
    monkeypatch.setitem(sys.modules, "everytree.estimators.shallow", sys.modules[__name__])
    monkeypatch.setitem(FAMILIES, "Lifetime", Lifetime)
    monkeypatch.setitem(NUMBER_FAMILIES, "lifetime", Lifetime)


def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = rng_for("toys")
    X = pd.DataFrame({"x": rng.normal(size=120), "kind": rng.choice(["a", "b", "c"], 120)})
    return X, X["x"].to_numpy() + (X["kind"] == "b") + rng.normal(0.0, 0.3, 120)


def check_every_consumer(model: Any, X: pd.DataFrame, y: Any, path: Path, **row_data: Any) -> None:
    predicted = model._predicted
    expected = predicted(X)
    et.save(model, path / "model.et")
    for other in (et.load(path / "model.et"), pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(other._predicted(X), expected)
    why = model.explain(X[:5])
    base = why.base if model.has_classes else np.atleast_1d(why.base)
    total = base + np.atleast_3d(why.values).sum(axis=1)
    np.testing.assert_allclose(total, expected[:5].reshape(5, -1), rtol=1e-9)
    assert len(model.effect("x", X).mean) > 1
    assert model.report(
        path / "model.html", X.assign(target=y, **row_data), target="target", **{n: n for n in row_data}
    ).exists()
    assert len(et.to_onnx(model).graph.output) == 2
    assert model._repr_html_().startswith("<div>")
    assert clone(model).get_params() == model.get_params()


@pytest.mark.parametrize("kind", ["class", "number"])
def test_a_new_estimator_reaches_every_consumer(kind, tmp_path):
    X, score = table()
    y = score > 0.5 if kind == "class" else score
    model = make_estimator(kind, Wanted("shallow", kind), TableRoles(target="y"))
    assert type(model).__name__.startswith("ShallowTree")
    model.fit(X, y)
    check_every_consumer(model, X, y, tmp_path)
    assert max(model.posterior_.tree.depth) <= 2
    assert model.to_text()
    assert et.export.to_tables(model).trees
    more = model.blank().partial_fit(X, y).merge(model.blank().partial_fit(X[:20], y[:20] + 0 * y[:20]))
    assert more.model_.n_rows == 140


@pytest.mark.parametrize("kind", ["MetaForestRegressor", "MetaTreeRegressor", "ExactTreeRegressor"])
def test_a_new_family_reaches_every_consumer(kind, tmp_path):
    X, score = table()
    y, censored = np.exp(score), np.arange(120) % 5 == 0
    small = {"MetaForestRegressor": {"n_estimators": 3}, "ExactTreeRegressor": {"max_depth": 1}}.get(kind, {})
    seed = {} if kind == "ExactTreeRegressor" else {"random_state": 0}
    model = getattr(et, kind)(family="lifetime", **small, **seed).fit(X, y, censored=censored)
    same = getattr(et, kind)(family="exponential", **small, **seed).fit(X, y, censored=censored)
    assert isinstance(model.model_.family, Lifetime)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    check_every_consumer(model, X, y, tmp_path, censored=censored)


@pytest.mark.parametrize("kind", ["MetaBoostRegressor", "MetaEnsembleRegressor"])
def test_a_link_is_all_that_boosting_needs_of_a_family(kind, tmp_path):
    X, score = table()
    y, censored = np.exp(score), np.arange(120) % 5 == 0
    model = getattr(et, kind)(max_iter=5, family="lifetime", random_state=0).fit(X, y, censored=censored)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_every_consumer(model, X, y, tmp_path, censored=censored)


def test_two_families_may_have_the_same_row_data():
    X, score = table()
    censored = np.zeros(120)
    for family in ("lifetime", "exponential"):
        et.MetaTreeRegressor(family=family).fit(X, np.exp(score), censored=censored)
    known = "'exponential' or 'survival' or 'weibull' or 'lifetime'"
    with pytest.raises(ValueError, match=f"censored is for family={known}, but family is 'normal'"):
        et.MetaTreeRegressor().fit(X, score, censored=censored)
