"""Fitted models of other libraries: every row goes the same way here as there."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys

import lightgbm as lgb
import numpy as np
import pandas as pd
import polars as pl
import pytest
import xgboost as xgb
from sklearn import ensemble, tree
from sklearn.base import is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import everytree as et
from cases import rng_for
from everytree import _kernels
from everytree.structure.importers import Imported, read_lightgbm, read_sklearn, read_xgboost
from everytree.structure.importers.assemble import assemble
from everytree.structure.importers.model import Input, Nodes, Subset
from everytree.tables.reading import read_table

TINY = [0.0, -0.0, 1e-40, -1e-40, 1e-35, -1e-35, 5e-36, -5e-36, 2e-45, -2e-45, 5e-324, -5e-324]


# ---- tables and laws ------------------------------------------------------------------------------------------------


def numbers(name: str, n: int = 400, *, missing: bool = True, dtype=np.float64) -> np.ndarray:
    """Columns without ties, with ties, of whole numbers, near zero, and one of noise; 5 columns."""
    rng = rng_for("importers", name)
    X = rng.normal(size=(n, 5))
    X[:, 1] = np.round(X[:, 1], 1)
    X[:, 2] = rng.integers(-3, 4, n)
    X[:, 3] = np.where(rng.random(n) < 0.5, rng.choice(TINY[:4], n), X[:, 3])
    if missing:
        X[rng.random(n) < 0.1, 0] = np.nan
        X[rng.random(n) < 0.2, 2] = np.nan
    return X.astype(dtype)


def targets(X: np.ndarray, kind: str) -> np.ndarray:
    """Something to be learned, with missing values that matter."""
    filled = np.where(np.isnan(X), 1.0, X.astype(float))
    score = filled[:, 0] + np.abs(filled[:, 1]) - (filled[:, 2] % 2) + (filled[:, 3] > 0) * filled[:, 0]
    score = score + 0.3 * rng_for("targets").normal(size=len(X))
    if kind == "regression":
        return score
    n_classes = 2 if kind == "binary" else 3
    return np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)


def on_and_beside_the_cuts(imported: Imported, X: np.ndarray, largest: float, *, missing: bool) -> np.ndarray:
    """Rows of X with one value replaced: by a cut, its neighbours in both precisions, something odd, or nothing."""
    rows = []
    rng = rng_for("beside")
    for k, place in enumerate(places(imported)):
        cuts = imported.schema.columns[k].cuts
        cuts = rng.choice(cuts, min(len(cuts), 60), replace=False)
        single = cuts.astype(np.float32)
        values = [cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf), single.astype(float)]
        values += [np.nextafter(single, np.float32(side * np.inf)).astype(float) for side in (1, -1)]
        values += [TINY, [largest, -largest, 1e20, -1e20], [np.nan] if missing else []]
        for value in np.concatenate(values):
            row = X[rng.integers(len(X))].astype(float)
            row[place] = value
            rows.append(row)
    return np.clip(np.array(rows), -largest, largest)


def places(imported: Imported) -> list[int]:
    """The input column that each column of the schema reads."""
    schema = imported.schema
    names = schema.input_names
    width = schema.n_inputs
    table = np.arange(width)[None] if names is None else pd.DataFrame([range(width)], columns=names)
    return list(schema.places(read_table(table, "test"), "test", range(schema.n_features)).values())


def assert_same_ways(imported: Imported, X: object, leaves: np.ndarray) -> None:
    """Each row ends in the terminal that stands for the model's leaf, in every tree."""
    schema, trees = imported.schema, imported.trees
    codes = schema.encode(X)
    assert leaves.shape == (len(codes), len(trees))
    known = schema.n_codes.astype(np.uint16)
    ends = _kernels.Forest([each.kernel for each in trees], known).ends(codes, 1)
    for k, each in enumerate(trees):
        np.testing.assert_array_equal(each.route(codes), ends[:, k])
        assert each.is_terminal[ends[:, k]].all()
        pairs = {(int(end), float(leaf)) for end, leaf in zip(ends[:, k], leaves[:, k], strict=True)}
        assert len(pairs) == len({end for end, _ in pairs}) == len({leaf for _, leaf in pairs}), f"tree {k}"


def assert_same_schema_after_all(imported: Imported, X: object) -> None:
    """Pickles and plain values keep everything; the naive twin has the same codes."""
    schema = imported.schema
    for again in (pickle.loads(pickle.dumps(schema)), et.Schema.from_dict(schema.to_dict())):
        assert again == schema
        assert hash(again) == hash(schema)
        np.testing.assert_array_equal(again.encode(X), schema.encode(X))
    assert all(pickle.loads(pickle.dumps(each)) == each for each in imported.trees)


# ---- scikit-learn ---------------------------------------------------------------------------------------------------

SKLEARN = [
    tree.DecisionTreeClassifier(max_depth=7),
    tree.DecisionTreeRegressor(),
    tree.ExtraTreeClassifier(),
    tree.ExtraTreeRegressor(max_depth=6),
    ensemble.RandomForestClassifier(n_estimators=5),
    ensemble.RandomForestRegressor(n_estimators=5, min_samples_leaf=3),
    ensemble.ExtraTreesClassifier(n_estimators=5),
    ensemble.ExtraTreesRegressor(n_estimators=5),
    ensemble.BaggingClassifier(n_estimators=4, max_features=0.6),
    ensemble.BaggingRegressor(n_estimators=4, max_features=3, bootstrap_features=True),
]
SKLEARN_WITHOUT_MISSING = [
    ensemble.GradientBoostingClassifier(n_estimators=4),
    ensemble.GradientBoostingRegressor(n_estimators=4, max_depth=5),
    ensemble.AdaBoostClassifier(tree.DecisionTreeClassifier(max_depth=3), n_estimators=4),
    ensemble.AdaBoostRegressor(n_estimators=4),
]


def sklearn_leaves(model: object, X: np.ndarray) -> np.ndarray:
    if hasattr(model, "estimators_features_"):
        return np.column_stack(
            [each.apply(X[:, own]) for each, own in zip(model.estimators_, model.estimators_features_, strict=True)]
        )
    if hasattr(model, "apply"):
        return model.apply(X).reshape(len(X), -1)
    return np.column_stack([each.apply(X) for each in model.estimators_])


CASES = [
    pytest.param(model, kind, missing, id=f"{type(model).__name__} {kind}")
    for models, missing in ((SKLEARN, True), (SKLEARN_WITHOUT_MISSING, False))
    for model in models
    for kind in (["binary", "multiclass"] if is_classifier(model) else ["regression"])
]


@pytest.mark.parametrize(("model", "kind", "missing"), CASES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sklearn(model, kind, missing, dtype):
    X = numbers(f"{type(model).__name__} {kind}", missing=missing, dtype=dtype)
    model.set_params(random_state=3).fit(X, targets(X, kind))
    imported = read_sklearn(model)
    assert_same_ways(imported, X, sklearn_leaves(model, X))
    odd = on_and_beside_the_cuts(imported, X, 3e38, missing=missing)
    assert_same_ways(imported, odd, sklearn_leaves(model, odd))
    assert_same_schema_after_all(imported, odd)
    if kind == "regression":
        assert imported.classes is None
    else:
        np.testing.assert_array_equal(imported.classes, model.classes_)


def test_sklearn_never_met_missing_values():
    X = numbers("never missing", missing=False)
    model = ensemble.RandomForestClassifier(5, random_state=0).fit(X, targets(X, "binary"))
    imported = read_sklearn(model)
    odd = on_and_beside_the_cuts(imported, X, 1e38, missing=True)
    assert np.isnan(odd).any()
    assert_same_ways(imported, odd, model.apply(odd))


def test_sklearn_large_whole_numbers():
    X = rng_for("whole").integers(2**53, 2**62, (500, 3))
    model = tree.DecisionTreeRegressor(random_state=0).fit(X, X[:, 0] % 1000 - X[:, 1] / 2**60)
    imported = read_sklearn(model)
    cuts = np.concatenate([column.cuts for column in imported.schema.columns])
    near = (cuts.astype(np.int64)[:, None] + np.arange(-2, 3)).reshape(-1, 1) * np.ones((1, 3), dtype=np.int64)
    for table in (X, near):
        assert_same_ways(imported, table, model.apply(table)[:, None])


def histogram_leaves(model: object, X: object) -> np.ndarray:
    """Its trees do not say in which leaf a row ends; so let each leaf's value be its number."""
    known, index = model._bin_mapper.make_known_categories_bitsets()
    table = model._preprocess_X(X, reset=False)
    leaves = []
    for predictor in (predictor for stage in model._predictors for predictor in stage):
        predictor.nodes["value"] = np.arange(len(predictor.nodes))
        leaves.append(predictor.predict(table, known, index, 1))
    return np.column_stack(leaves)


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("missing", [False, True])
def test_sklearn_histogram(kind, missing):
    X = numbers(f"histogram {kind}", missing=missing)
    family = ensemble.HistGradientBoostingRegressor if kind == "regression" else ensemble.HistGradientBoostingClassifier
    model = family(max_iter=5, min_samples_leaf=4, random_state=0).fit(X, targets(X, kind))
    imported = read_sklearn(model)
    assert_same_ways(imported, X, histogram_leaves(model, X))
    odd = on_and_beside_the_cuts(imported, X, 1.7e308, missing=True)
    assert_same_ways(imported, odd, histogram_leaves(model, odd))
    assert (imported.classes is None) == (kind == "regression")


def with_categories(name: str, n: int = 500, *, missing: bool = True) -> pd.DataFrame:
    """Numbers, two columns of text, one of whole-number categories, and one that says nothing."""
    rng = rng_for("categories", name)
    frame = pd.DataFrame({
        "size": np.round(rng.normal(size=n), 1),
        "colour": pd.Categorical(rng.choice(["red", "green", "blue", "teal", "black"], n)),
        "constant": 1.0,
        "shop": pd.Categorical(rng.choice([17, 3, 250, 4, 99, 1000, 55], n)),
        "long name": pd.Categorical(rng.choice(["a", "b"], n), categories=["b", "c", "a"]),
    })  # fmt: skip
    if missing:
        frame.loc[rng.random(n) < 0.1, "colour"] = None
        frame.loc[rng.random(n) < 0.1, "size"] = None
        frame.loc[rng.random(n) < 0.05, "shop"] = None
    return frame


def category_targets(frame: pd.DataFrame, kind: str) -> np.ndarray:
    codes = frame["shop"].cat.codes.to_numpy().astype(int)
    score = (codes % 3) * 2.0 + frame["size"].fillna(0.5).to_numpy() * 2
    score = score + np.where(frame["colour"].isin(["red", "black"]), 3.0, 0.0) * (frame["long name"] == "a")
    score = score + 0.2 * rng_for("category targets").normal(size=len(frame))
    if kind == "regression":
        return np.asarray(score)
    n_classes = 2 if kind == "binary" else 3
    return np.searchsorted(np.quantile(score, np.arange(1, n_classes) / n_classes), score)


def later(frame: pd.DataFrame, *, unseen: bool) -> pd.DataFrame:
    """The same rows with categories declared in another order, and others that were never seen."""
    frame = frame.copy()
    for name, new in (("colour", "mauve"), ("shop", 5)):
        categories = [*frame[name].cat.categories[::-1], *([new] if unseen else [])]
        values = frame[name].astype(object)
        if unseen:
            values[::7] = new
        frame[name] = pd.Categorical(values, categories=categories)
    return frame


@pytest.mark.parametrize("kind", ["binary", "multiclass", "regression"])
@pytest.mark.parametrize("missing", [False, True])
def test_sklearn_histogram_categories(kind, missing):
    frame = with_categories(f"histogram {kind}", missing=missing)
    family = ensemble.HistGradientBoostingRegressor if kind == "regression" else ensemble.HistGradientBoostingClassifier
    model = family(max_iter=6, min_samples_leaf=4, categorical_features="from_dtype", random_state=0)
    model.fit(frame, category_targets(frame, kind))
    imported = read_sklearn(model)
    assert imported.schema.input_names == list(frame)
    assert imported.schema.is_categorical.sum() > 3
    assert imported.schema.n_inputs == 5
    for table in (frame, later(frame, unseen=False), later(frame, unseen=True)):
        assert_same_ways(imported, table, histogram_leaves(model, table))
    assert_same_schema_after_all(imported, frame)


def test_sklearn_histogram_categories_of_an_array():
    X = numbers("histogram array")
    X[:, 2] *= 2.5
    model = ensemble.HistGradientBoostingRegressor(max_iter=4, categorical_features=[2], random_state=0)
    model.fit(X, targets(X, "regression"))
    odd = X.copy()
    odd[::5, 2] = 1.0
    for table in (X, odd):
        assert_same_ways(read_sklearn(model), table, histogram_leaves(model, table))


def test_sklearn_columns_by_name():
    frame = pd.DataFrame(numbers("by name"), columns=list("abcde"))
    model = ensemble.RandomForestRegressor(4, random_state=0).fit(frame, targets(frame.to_numpy(), "regression"))
    imported = read_sklearn(model)
    assert_same_ways(imported, frame, model.apply(frame))
    assert_same_ways(imported, frame[list("edcba")].assign(f=1.0), model.apply(frame))
    assert_same_ways(imported, pl.from_pandas(frame), model.apply(frame))


def test_more_cuts_than_a_column_may_have():
    rng = rng_for("many cuts")
    X = rng.permutation(np.arange(90_000.0))[:, None]
    model = tree.ExtraTreeRegressor(random_state=0).fit(X, rng.normal(size=len(X)))
    imported = read_sklearn(model)
    assert len(imported.schema.columns) == 2
    assert imported.schema.n_inputs == 1
    assert_same_ways(imported, X, model.apply(X)[:, None])


# ---- LightGBM -------------------------------------------------------------------------------------------------------

QUICK = {"n_estimators": 5, "min_child_samples": 3, "n_jobs": 1, "verbose": -1, "min_data_per_group": 1,
         "cat_smooth": 0, "cat_l2": 0, "max_cat_to_onehot": 1}  # fmt: skip


def lightgbm_leaves(model: object, X: object) -> np.ndarray:
    return model.predict(X, pred_leaf=True).reshape(len(X), -1)


def lightgbm_estimator(kind: str, **options: object) -> object:
    return (lgb.LGBMRegressor if kind == "regression" else lgb.LGBMClassifier)(**{**QUICK, **options})


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


# ---- XGBoost --------------------------------------------------------------------------------------------------------


DEPRECATED = pytest.mark.filterwarnings(
    "ignore:.*XGBRF.* is deprecated:FutureWarning", "ignore:.*booster=(dart|gblinear).* is deprecated:UserWarning"
)
"""XGBoost advises against these, but models of theirs are about."""


def xgboost_estimator(kind: str, *, forest: bool = False, **options: object) -> object:
    families = {(False, True): xgb.XGBRegressor, (False, False): xgb.XGBClassifier,
                (True, True): xgb.XGBRFRegressor, (True, False): xgb.XGBRFClassifier}  # fmt: skip
    return families[forest, kind == "regression"](**{"n_estimators": 5, "n_jobs": 1, **options})


def xgboost_leaves(model: object, X: object) -> np.ndarray:
    return model.apply(X).reshape(len(X), -1)


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


# ---- names ----------------------------------------------------------------------------------------------------------


def test_columns_say_what_they_ask():
    x, colour = Input("x", gap=(0.0, 0.0)), Input("colour", labels=("red", "green", "blue", "teal", "black"))
    asks = [(0, 1.5, False, None), (0, 2.5, True, None), (1, 0.0, False, Subset(frozenset({0, 2}), 0)),
            (1, 0.0, False, Subset(frozenset({0, 1, 3, 4}), 1)), (1, 1.0, False, None)]  # fmt: skip
    n = len(asks)
    nodes = Nodes(
        children_left=np.array([*range(1, n + 1), *[-1] * (n + 1)]),
        children_right=np.array([*range(n + 1, 2 * n + 1), *[-1] * (n + 1)]),
        feature=np.array([place for place, *_ in asks] + [0] * (n + 1)),
        threshold=np.array([threshold for _, threshold, *_ in asks] + [0.0] * (n + 1)),
        missing_left=np.zeros(2 * n + 1, dtype=bool),
        in_gap=np.array([in_gap for *_, in_gap, _ in asks] + [False] * (n + 1)),
        subsets={node: subset for node, (*_, subset) in enumerate(asks) if subset is not None},
    )
    schema = assemble([x, colour, Input("x #2")], [nodes], None).schema
    assert schema.names == ["x", "x #3", "colour in {red, blue}", "colour not in {red, green, teal, ...}", "colour",
                            "x #2"]  # fmt: skip
    assert schema.input_names == ["x", "colour", "x #2"]
    table = pd.DataFrame({"x": [0.0, 2.0, 3.0], "colour": ["red", "blue", "new"], "x #2": 1.0})
    assert schema.encode(table).tolist() == [[0, 255, 0, 1, 0, 0], [1, 0, 0, 0, 1, 0], [1, 1, 255, 255, 255, 0]]


# ---- what is refused ------------------------------------------------------------------------------------------------


@DEPRECATED
def test_what_is_refused():
    X = numbers("refused", missing=False)
    y = targets(X, "binary")
    pipeline = make_pipeline(StandardScaler(), ensemble.RandomForestClassifier(2)).fit(X, y)
    search = GridSearchCV(tree.DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=2).fit(X, y)
    bagged = ensemble.BaggingClassifier(LogisticRegression(), n_estimators=2).fit(X, y)
    several = tree.DecisionTreeClassifier().fit(X, np.column_stack([y, 1 - y]))
    linear = xgboost_estimator("regression", booster="gblinear").fit(X, y)
    fitted_lightgbm = lightgbm_estimator("regression").fit(X, y)
    for read, model, kind, message in [
        (read_sklearn, pipeline, TypeError, r"Pipeline; pass its last step, model\[-1\], and transformed rows"),
        (read_sklearn, search, TypeError, r"GridSearchCV; pass model\.best_estimator_"),
        (read_sklearn, LogisticRegression(), TypeError, "tree or ensemble of trees, but is LogisticRegression"),
        (read_sklearn, linear, TypeError, "use read_xgboost"),
        (read_sklearn, fitted_lightgbm, TypeError, "use read_lightgbm"),
        (read_sklearn, bagged, TypeError, "ensemble of decision trees, .* is one of LogisticRegression"),
        (read_sklearn, several, ValueError, "one target, but DecisionTreeClassifier classifies 2"),
        (read_sklearn, tree.DecisionTreeClassifier(), NotFittedError, "not fitted"),
        (read_sklearn, ensemble.HistGradientBoostingRegressor(), NotFittedError, "not fitted"),
        (read_lightgbm, lgb.LGBMClassifier(), NotFittedError, "fit"),
        (read_lightgbm, pipeline, TypeError, "LightGBM estimator or Booster, but is Pipeline"),
        (read_xgboost, xgb.XGBClassifier(), NotFittedError, "fit"),
        (read_xgboost, pipeline, TypeError, "XGBoost estimator or Booster, but is Pipeline"),
        (read_xgboost, linear, ValueError, "'gbtree' or 'dart', but is 'gblinear'"),
        (lambda model: read_lightgbm(model, X[:, :3]), fitted_lightgbm, ValueError, "X has 3 features, but .* 5"),
    ]:
        with pytest.raises(kind, match=message):
            read(model)


def test_columns_must_be_there():
    X = numbers("there")
    imported = read_sklearn(tree.DecisionTreeRegressor(max_depth=2).fit(X, targets(X, "regression")))
    with pytest.raises(ValueError, match="X has 4 features, but Schema is expecting 5 features"):
        imported.schema.encode(X[:, :4])


def test_nothing_is_imported_before_it_is_needed():
    program = (
        "import sys, everytree, everytree.structure.importers;"
        "print([name for name in ('sklearn', 'lightgbm', 'xgboost') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
