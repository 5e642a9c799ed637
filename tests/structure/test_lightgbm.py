"""Models of LightGBM lead rows where LightGBM does."""

from __future__ import annotations

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest

from cases import rng_for
from everytree.structure.importers import read_lightgbm
from importer_cases import (
    TINY,
    assert_same_schema_after_all,
    assert_same_ways,
    category_targets,
    later,
    lightgbm_estimator,
    lightgbm_leaves,
    numbers,
    on_and_beside_the_cuts,
    targets,
    with_categories,
)


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("options", [
    {}, {"zero_as_missing": True}, {"use_missing": False}, {"boosting_type": "dart"},
    {"boosting_type": "rf", "subsample": 0.5, "subsample_freq": 1}, {"linear_tree": True},
    {"extra_trees": True, "max_bin": 15},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lightgbm(kind, options, dtype):
    for missing in (False, True):
        X = numbers(f"lightgbm {kind}", missing=missing, dtype=dtype)
        model = lightgbm_estimator(kind, **options).fit(X, targets(X, kind))
        imported = read_lightgbm(model)
        assert_same_ways(imported, X, lightgbm_leaves(model, X))
        odd = on_and_beside_the_cuts(imported, X, 1.7e308, missing=True)
        assert_same_ways(imported, odd, lightgbm_leaves(model.booster_, odd))
        assert_same_schema_after_all(imported, odd)
        if kind == "regression":
            assert imported.classes is None
        else:
            np.testing.assert_array_equal(imported.classes, model.classes_)
            np.testing.assert_array_equal(read_lightgbm(model.booster_).classes, np.unique(targets(X, kind)))


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("missing", [False, True])
def test_lightgbm_categories(kind, missing):
    frame = with_categories(f"lightgbm {kind}", missing=missing)
    model = lightgbm_estimator(kind).fit(frame, category_targets(frame, kind))
    for imported in (read_lightgbm(model), read_lightgbm(model.booster_, frame)):
        assert imported.schema.is_categorical.sum() > 3
        assert imported.schema.n_inputs == 5
        for table in (frame, later(frame, unseen=False), later(frame, unseen=True)):
            assert_same_ways(imported, table, lightgbm_leaves(model, table))
        assert_same_schema_after_all(imported, frame)


@pytest.mark.parametrize("options", [{}, {"zero_as_missing": True}], ids=str)
def test_lightgbm_ordered_categories_are_numbers(options):
    frame = with_categories("ordered")
    frame["shop"] = frame["shop"].cat.as_ordered()
    model = lightgbm_estimator("regression", **options).fit(frame, category_targets(frame, "regression"))
    with pytest.raises(ValueError, match=r"categories of 3 pandas columns, but does not tell which.*pass X"):
        read_lightgbm(model)
    imported = read_lightgbm(model, frame)
    for table in (frame, later(frame, unseen=True)):
        assert_same_ways(imported, table, lightgbm_leaves(model, table))


@pytest.mark.filterwarnings("ignore:categorical_feature keyword has been found")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lightgbm_categories_that_are_numbers(dtype):
    X = numbers("numbers as categories", dtype=dtype)
    X[:, 2] += 3
    model = lightgbm_estimator("regression").fit(X, targets(X, "regression"), categorical_feature=[2])
    odd = X.copy()
    odd[:, 2] = np.resize([-5, -1.5, -1, -0.99, -0.5, -0.0, 0.5, 0.999, 1, 1.5, 2.5, 3.7, 5.99, 6, 7, 40, 1e6, 1e12,
                           1e30, np.nan, -1e30, np.nextafter(2, 0), 2, np.nextafter(2, 3)], len(X))  # fmt: skip
    imported = read_lightgbm(model)
    assert any(column.groups for column in imported.schema.columns)
    for table in (X, odd):
        assert_same_ways(imported, table, lightgbm_leaves(model, table))
    assert_same_schema_after_all(imported, odd)


def test_lightgbm_goes_by_place_unless_told_the_names():
    frame = pd.DataFrame(numbers("lightgbm names"), columns=["a b", "c", "d", "e", "f"])
    model = lightgbm_estimator("regression").fit(frame, targets(frame.to_numpy(), "regression"))
    imported = read_lightgbm(model)
    assert imported.schema.input_names is None
    assert imported.schema.names is not None
    renamed = frame.rename(columns={"c": "z"})
    assert_same_ways(imported, renamed, lightgbm_leaves(model, renamed))
    told = read_lightgbm(model, frame[:2])
    assert told.schema.input_names == list(frame)
    assert_same_ways(told, frame[frame.columns[::-1]], lightgbm_leaves(model, frame))


@pytest.mark.filterwarnings("ignore:The argument 'eval_set' is deprecated")
def test_lightgbm_stops_early_and_goes_on():
    X = numbers("early", 800)
    y = rng_for("noise").normal(size=800) + X[:, 1]
    model = lightgbm_estimator("regression", n_estimators=60, learning_rate=0.5)
    model.fit(X[:400], y[:400], eval_set=[(X[400:], y[400:])], callbacks=[lgb.early_stopping(3, verbose=False)])
    imported = read_lightgbm(model)
    assert len(imported.trees) == model.best_iteration_ < 60
    assert_same_ways(imported, X, lightgbm_leaves(model, X))
    more = lightgbm_estimator("regression", zero_as_missing=True).fit(X, y, init_model=model.booster_)
    assert_same_ways(read_lightgbm(more), X, lightgbm_leaves(more, X))


def test_lightgbm_without_splits():
    X = np.ones((50, 2))
    model = lightgbm_estimator("regression").fit(X, np.arange(50.0))
    imported = read_lightgbm(model)
    assert all(each.n_nodes == 1 for each in imported.trees)
    assert_same_ways(imported, X, lightgbm_leaves(model, X))


@pytest.mark.parametrize("decision_type", [0, 2, 4, 6, 8, 10])
def test_lightgbm_any_node(decision_type):
    """All kinds of missing values, either default side, and thresholds where the rule for zero matters."""
    X = numbers("any node")
    text = lightgbm_estimator("regression", n_estimators=20).fit(X, targets(X, "regression")).booster_.model_to_string()
    near = [0.0, -0.0, 1e-35, -1e-35, 1.1e-35, -1.1e-35, 5e-324, -5e-324, 1e-36, -1e-36, 1e300, -1e300, 1.5, -0.25]
    rng = rng_for("any node", decision_type)
    lines = []
    for line in text.splitlines():
        name, _, values = line.partition("=")
        n = len(values.split())
        if name == "decision_type":
            line = f"{name}={' '.join([str(decision_type)] * n)}"
        elif name == "threshold":
            line = f"{name}={' '.join(map(repr, rng.choice(near, n).tolist()))}"
        lines += [] if name == "tree_sizes" else [line]
    booster = lgb.Booster(model_str="\n".join(lines))
    imported = read_lightgbm(booster)
    odd = rng.choice([*near, *TINY, *np.nextafter(near, 1), *np.nextafter(near, -1), 1e301, -1e301, np.nan], (2000, 5))
    assert_same_ways(imported, odd, lightgbm_leaves(booster, odd))
