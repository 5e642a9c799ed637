"""Models of XGBoost lead rows where XGBoost does."""

from __future__ import annotations

import json

import numpy as np
import pytest
import xgboost as xgb

from cases import rng_for
from everytree.structure.importers import read_xgboost
from importer_cases import (
    DEPRECATED,
    assert_same_schema_after_all,
    assert_same_ways,
    category_targets,
    later,
    numbers,
    on_and_beside_the_cuts,
    targets,
    with_categories,
    xgboost_estimator,
    xgboost_leaves,
)


@DEPRECATED
@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("options", [
    {}, {"tree_method": "exact", "gamma": 0.5}, {"tree_method": "approx"}, {"booster": "dart"}, {"forest": True},
    {"missing": 1.0}, {"missing": 0.1}, {"num_parallel_tree": 2, "subsample": 0.5},
    {"grow_policy": "lossguide", "max_leaves": 20, "max_depth": 0},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_xgboost(kind, options, dtype):
    for missing in (False, True):
        X = numbers(f"xgboost {kind}", missing=missing, dtype=dtype)
        model = xgboost_estimator(kind, **options).fit(X, targets(X, kind))
        imported = read_xgboost(model)
        assert_same_ways(imported, X, xgboost_leaves(model, X))
        odd = on_and_beside_the_cuts(imported, X, 3e38, missing=True)
        assert_same_ways(imported, odd, xgboost_leaves(model, odd))
        assert_same_schema_after_all(imported, odd)
        if kind == "regression":
            assert imported.classes is None
        else:
            np.testing.assert_array_equal(imported.classes, model.classes_)
            np.testing.assert_array_equal(read_xgboost(model.get_booster()).classes, model.classes_)


def test_xgboost_any_threshold():
    X = numbers("any threshold")
    model = xgboost_estimator("regression", n_estimators=20).fit(X, targets(X, "regression"))
    largest = float(np.finfo(np.float32).max)
    near = np.array([0.0, -0.0, 1e-45, -1e-45, 1e-40, 0.1, -0.1, 1.0, 16777216.0, largest, -largest], dtype=np.float32)
    rng = rng_for("any threshold")
    saved = json.loads(model.get_booster().save_raw("json"))
    for each in saved["learner"]["gradient_booster"]["model"]["trees"]:
        values = rng.choice(near, len(each["split_conditions"])).tolist()
        each["split_conditions"] = [float(str(np.float32(value))) for value in values]
    booster = xgb.Booster(model_file=bytearray(json.dumps(saved), "utf-8"))
    odd = rng.choice([*near, *np.nextafter(near[:-2], np.float32(9)), *np.nextafter(near[:-2], np.float32(-9)), 1e-46,
                      -1e-46, 0.1, 16777217, np.nan, *near.astype(float) * (1 - 1e-9)], (2000, 5))  # fmt: skip
    leaves = booster.predict(xgb.DMatrix(odd), pred_leaf=True)
    assert_same_ways(read_xgboost(booster), odd, leaves)


def test_xgboost_nodes_that_were_pruned():
    X = numbers("pruned")
    model = xgboost_estimator("regression", tree_method="exact", gamma=3.0).fit(X, targets(X, "regression"))
    saved = json.loads(model.get_booster().save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
    assert any(int(each["tree_param"]["num_deleted"]) for each in saved)
    imported = read_xgboost(model)
    asked = sum(int((~each.is_terminal).sum()) for each in imported.trees)
    assert asked >= sum(len(column.cuts) for column in imported.schema.columns)
    assert_same_ways(imported, X, xgboost_leaves(model, X))


def test_xgboost_vector_leaves():
    X = numbers("vector leaves")
    model = xgboost_estimator("multiclass", multi_strategy="multi_output_tree").fit(X, targets(X, "multiclass"))
    assert_same_ways(read_xgboost(model), X, xgboost_leaves(model, X))


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("to_onehot", [1, 100])
@pytest.mark.parametrize("missing", [False, True])
def test_xgboost_categories(kind, to_onehot, missing):
    frame = with_categories(f"xgboost {kind}", missing=missing)
    model = xgboost_estimator(kind, enable_categorical=True, max_cat_to_onehot=to_onehot)
    model.fit(frame, category_targets(frame, kind))
    imported = read_xgboost(model)
    assert imported.schema.input_names == list(frame)
    assert imported.schema.is_categorical.sum() > 3
    for table in (frame, later(frame, unseen=False)):
        assert_same_ways(imported, table, xgboost_leaves(model, table))
    # XGBoost means to refuse categories it has not seen; here they are missing.
    new = later(frame, unseen=True)
    as_missing = new.copy()
    for name in ("colour", "shop"):
        as_missing[name] = new[name].cat.set_categories(frame[name].cat.categories)
    assert_same_ways(imported, new, xgboost_leaves(model, as_missing))
    assert_same_schema_after_all(imported, frame)


def test_xgboost_categories_beyond_ascii():
    frame = with_categories("ascii")
    frame["colour"] = frame["colour"].cat.rename_categories({"red": "röt", "blue": "bläu"})
    model = xgboost_estimator("regression", enable_categorical=True).fit(frame, category_targets(frame, "regression"))
    with pytest.raises(ValueError, match=r"column 'colour': XGBoost keeps .* beyond ASCII .* pass X"):
        read_xgboost(model)
    assert_same_ways(read_xgboost(model, frame), frame, xgboost_leaves(model, frame))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("missing", [np.nan, 2.0])
def test_xgboost_categories_that_are_numbers(dtype, missing):
    X = numbers("codes", dtype=dtype)
    X[:, 2] += 3
    options = {"enable_categorical": True, "feature_types": ["q", "q", "c", "q", "q"], "max_cat_to_onehot": 1}
    model = xgboost_estimator("regression", **options, missing=missing).fit(X, targets(X, "regression"))
    odd = X.copy()
    odd[:, 2] = np.resize([-5, -1, -0.5, -0.0, 0.5, 0.999, 1, 1.5, 2.5, 3.7, 5.99, 6, 7, 40, 1e6, 1e12, 2**24, np.nan,
                           np.nextafter(2, 0), 2, np.nextafter(2, 3), 1e-45, -1e-45, 0.99999999], len(X))  # fmt: skip
    imported = read_xgboost(model)
    assert any(column.groups for column in imported.schema.columns)
    for table in (X, odd):
        assert_same_ways(imported, table, xgboost_leaves(model, table))


def test_xgboost_stops_early():
    X = numbers("xgboost early", 800)
    y = rng_for("noise").integers(0, 3, 800)
    model = xgboost_estimator("multiclass", n_estimators=60, early_stopping_rounds=3, num_parallel_tree=2)
    model.fit(X[:400], y[:400], eval_set=[(X[400:], y[400:])], verbose=False)
    imported = read_xgboost(model)
    assert len(imported.trees) == 6 * (model.best_iteration + 1) < 360
    assert_same_ways(imported, X, xgboost_leaves(model, X))
    booster = model.get_booster()
    leaves = booster.predict(xgb.DMatrix(X), pred_leaf=True).reshape(800, -1)
    assert_same_ways(read_xgboost(booster), X, leaves)
