"""Models of scikit-learn lead rows where scikit-learn does, and what all importers share."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn import ensemble, tree
from sklearn.base import is_classifier

from cases import rng_for
from everytree.structure.importers import read_sklearn
from everytree.structure.importers.assemble import assemble
from everytree.structure.importers.model import Input, Nodes, Subset
from importer_cases import (
    assert_same_schema_after_all,
    assert_same_ways,
    category_targets,
    later,
    numbers,
    on_and_beside_the_cuts,
    targets,
    with_categories,
)

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


# ---- all importers ---------------------------------------------------------------------------------------------------


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


def test_nothing_is_imported_before_it_is_needed():
    program = (
        "import sys, everytree, everytree.structure.importers;"
        "print([name for name in ('sklearn', 'lightgbm', 'xgboost') if name in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout == "[]\n"
