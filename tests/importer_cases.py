"""Tables, targets and models of other libraries, and that an imported model leads rows the same ways."""

from __future__ import annotations

import pickle

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
import xgboost as xgb

import everytree as et
from cases import rng_for
from everytree import _kernels
from everytree.structure.importers import Imported
from everytree.tables.reading import read_table

TINY = [0.0, -0.0, 1e-40, -1e-40, 1e-35, -1e-35, 5e-36, -5e-36, 2e-45, -2e-45, 5e-324, -5e-324]


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


# ---- small models of the libraries -----------------------------------------------------------------------------------

QUICK = {"n_estimators": 5, "min_child_samples": 3, "n_jobs": 1, "verbose": -1, "min_data_per_group": 1,
         "cat_smooth": 0, "cat_l2": 0, "max_cat_to_onehot": 1}  # fmt: skip


def lightgbm_estimator(kind: str, **options: object) -> object:
    return (lgb.LGBMRegressor if kind == "regression" else lgb.LGBMClassifier)(**{**QUICK, **options})


def lightgbm_leaves(model: object, X: object) -> np.ndarray:
    return model.predict(X, pred_leaf=True).reshape(len(X), -1)


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
