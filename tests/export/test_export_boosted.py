"""Exported boosted models and ensembles say what the models themselves say, row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.base import is_classifier

import everytree as et
from cases import rng_for
from estimator_cases import Case, answers, as_pandas, mixed_columns
from everytree.export.averaged import AveragedTrees
from everytree.export.summed import SummedTrees
from everytree.tables.column import missing_code, unseen_code
from everytree.tables.schema import Schema
from export_cases import at_cuts, check_equal, later_rooms, leaf_of, with_holes

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
SMALL = {"boost": {"max_iter": 20}, "ensemble": {"max_iter": 20, "n_estimators": 5}}
NUMBERS = {name: {**options, "n_residual_trees": 8} for name, options in SMALL.items()}
FAMILIES = ("normal", "lognormal", "poisson", "exponential")
CLASSES = ("two classes", "three classes", "six classes")
CASES = [
    *(Case(et.MetaBoostClassifier, target, SMALL["boost"]) for target in CLASSES),
    *(Case(et.MetaBoostRegressor, family, {"family": family, **NUMBERS["boost"]}) for family in FAMILIES),
    *(Case(et.MetaEnsembleClassifier, target, SMALL["ensemble"]) for target in CLASSES),
    *(Case(et.MetaEnsembleRegressor, family, {"family": family, **NUMBERS["ensemble"]}) for family in FAMILIES),
]
WITHOUT_LINES = [
    case if "family" not in case.options else replace(case, options={**case.options, "lines": False}) for case in CASES
]
KINDS = ["Boost", "Ensemble"]
no_exposure = pytest.mark.filterwarnings("ignore:exposure was given to fit")


def small(kind: str, target: str) -> Any:
    """A small model of that kind."""
    if target == "numbers":
        return getattr(et, f"Meta{kind}Regressor")(**NUMBERS[kind.lower()], random_state=0)
    return getattr(et, f"Meta{kind}Classifier")(**SMALL[kind.lower()], random_state=0)


# ---- graphs ---------------------------------------------------------------------------------------------------------


@no_exposure
@pytest.mark.parametrize("case", CASES, ids=str)
def test_graph_equals_model_with_missing_values_and_at_cut_points(case):
    model, _ = case.fitted(300)
    X = case.draw(3000, "later")[0]
    check_equal(model, np.concatenate([with_holes(X, 0.1, str(case)), at_cuts(model.schema_, X[:1000]), X[:1]]))


@pytest.mark.parametrize("target", ["numbers", "two classes", "three classes"])
@pytest.mark.parametrize("kind", KINDS)
def test_text_booleans_dates_and_what_was_not_there_at_fit(kind, target):
    columns, signal = mixed_columns(400)
    y = {"numbers": signal, "two classes": signal > 1.5, "three classes": np.searchsorted([1.0, 2.5], signal)}[target]
    weight = rng_for("weights", kind, target).uniform(0.0, 3.0, 400)
    if target == "three classes":
        y = np.array(["low", "middle", "high"])[y]
    model = small(kind, target).fit(as_pandas(columns), y, sample_weight=weight)
    later = later_rooms(as_pandas(mixed_columns(3000)[0]))
    codes = model.schema_.encode(later)
    assert (codes[:, 0] == unseen_code(codes.dtype)).any()
    assert (codes == missing_code(codes.dtype)).any(axis=0).sum() >= 5
    check_equal(model, later)


@pytest.mark.parametrize("kind", KINDS)
def test_more_trees_than_are_looked_up_at_once(kind):
    X, y, _ = Case(et.MetaBoostClassifier, "three classes").draw(300)
    model = small(kind, "classes").set_params(max_iter=60).fit(X, y)
    assert len(et.export.to_tables(model).trees) > 512
    check_equal(model, X)
    model = small(kind, "numbers").set_params(max_iter=60).fit(X, X[:, 0])
    check_equal(model, X)


@pytest.mark.parametrize("kind", KINDS)
def test_trees_of_many_classes_have_a_value_for_each(kind):
    X, y, _ = Case(et.MetaBoostClassifier, "six classes").draw(300)
    more = {"max_iter": 120, "n_chains": 8} if kind == "Boost" else {}
    model = small(kind, "classes").set_params(**more).fit(X, y)
    tables = et.export.to_tables(model)
    assert tables.n_values == 6
    assert tables.trees[0].value.shape == (tables.trees[0].node_count, 6)
    assert len(tables.trees) > (256 if more else 0)  # more than are looked up at once
    check_equal(model, X)


@pytest.mark.parametrize("kind", KINDS)
def test_pooled_categories_are_read_by_several_columns(kind):
    rng = rng_for("pooled", kind)
    place = rng.integers(0, 150, 600)
    y = (rng.normal(size=(150, 3))[place] + rng.gumbel(size=(600, 3))).argmax(axis=1)
    table = pd.DataFrame({"id": [f"id {k}" for k in place], "x": rng.normal(size=600)})
    model = small(kind, "classes").fit(table, y)
    assert model.schema_.n_features == 4
    table.loc[50:80, "id"], table.loc[:30, "id"] = "never seen", None
    check_equal(model, table)
    model = small(kind, "numbers").fit(table, y + table.x)
    assert [column.pooled for column in model.schema_.columns] == [False, False, True]
    check_equal(model, table)


@pytest.mark.parametrize("kind", KINDS)
def test_one_class_and_a_constant_target(kind):
    X = rng_for("one class").normal(size=(20, 2))
    check_equal(small(kind, "classes").fit(X, np.full(20, "only")), X)
    check_equal(small(kind, "numbers").fit(X, np.full(20, 3.0)), X)


@pytest.mark.parametrize("kind", KINDS)
def test_columns_may_have_the_names_of_outputs_and_of_the_centre(kind):
    X = pd.DataFrame(rng_for("names").normal(size=(100, 3)), columns=["mean", "centre", "constant0"])
    model = small(kind, "numbers").fit(X, X["mean"] + X.centre)
    check_equal(model, X)
    assert [one.name for one in et.to_onnx(model).graph.output] == ["mean_", "variance"]


def test_centres_at_cut_points_of_the_residuals():
    """One bit more in a centre, and its row would be on the other side of the cut."""
    model, (X, _, _) = Case(et.MetaBoostRegressor, "normal", {"max_iter": 60, "n_residual_trees": 8}).fitted(300)
    numbers = model.model_
    (column,) = numbers.centre_codes.columns
    centres = np.unique(numbers.centres.scores(model.schema_.encode(X))[:, 0])
    cuts = centres[np.linspace(0, len(centres) - 1, len(column.cuts)).astype(int)]
    moved = replace(numbers, centre_codes=Schema.from_columns([replace(column, cuts=cuts)]))
    model.fitted_ = replace(model.fitted_, model=moved)
    check_equal(model, X)


# ---- tables ---------------------------------------------------------------------------------------------------------


def summed_scores(tables: SummedTrees, rows: NDArray[Any]) -> NDArray[Any]:
    """(n_rows, n_scores) tree after tree."""
    scores = np.tile(tables.base, (len(rows), 1))
    for t, tree in enumerate(tables.trees):
        of_rows = np.array([tree.value[leaf_of(tree, row)] for row in rows])
        if tables.n_values == 1:
            scores[:, t % len(tables.base)] += of_rows[:, 0]
        else:
            scores += of_rows
    return scores


def mean_of_trees(tables: AveragedTrees, rows: NDArray[Any]) -> NDArray[Any]:
    """(n_rows, n_outputs) the weighted mean of the trees, before sharpening."""
    pairs = list(zip(tables.weights, tables.trees, strict=True))
    return np.array([sum(weight * tree.value[leaf_of(tree, row)] for weight, tree in pairs) for row in rows])


def probs_of(tables: SummedTrees, rows: NDArray[Any]) -> NDArray[Any]:
    """(n_rows, n_classes) as the docstring of `SummedTrees` says."""
    scores = summed_scores(tables, rows)
    if len(tables.classes) == 2:
        scores = np.column_stack([np.zeros(len(rows)), scores])
    probs = softmax(scores, axis=1)
    if tables.forest is None:
        return probs
    by_forest = mean_of_trees(tables.forest, rows) ** tables.forest.sharpness
    by_forest /= by_forest.sum(axis=1, keepdims=True)
    mixed = (by_forest ** (1.0 - tables.weight) * probs**tables.weight) ** tables.sharpness
    return mixed / mixed.sum(axis=1, keepdims=True)


def centres_of(tables: SummedTrees, rows: NDArray[Any]) -> NDArray[Any]:
    """(n_rows,) centres."""
    by_boosting = summed_scores(tables, rows)[:, 0]
    if tables.forest is None:
        return by_boosting
    mean = mean_of_trees(tables.forest, rows)[:, 0] + tables.forest.centre
    by_forest = {"poisson": np.log, "exponential": lambda mean: -np.log(mean)}.get(tables.family, np.array)(mean)
    return (1.0 - tables.weight) * by_forest + tables.weight * by_boosting


def moments_of(tables: SummedTrees, rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean and variance."""
    centre = centres_of(tables, rows)
    first, second = mean_of_trees(tables.residuals, np.column_stack([rows, centre])).T
    mean, variance = first + tables.residuals.centre, (second - first**2) / tables.residuals.sharpness**2
    if tables.family == "normal":
        return centre + mean, variance
    scale = np.exp(-centre if tables.family == "exponential" else centre)
    if tables.family == "poisson":
        return scale * mean, scale * mean + scale**2 * (variance - mean)
    return scale * mean, scale**2 * variance


@no_exposure
@pytest.mark.parametrize("case", WITHOUT_LINES, ids=str)
def test_tables_predict_what_the_model_does(case):
    model, _ = case.fitted(200)
    X = with_holes(case.draw(60, "later")[0], 0.1, "tables")
    tables, want = et.export.to_tables(model), answers(model, X)
    rows = tables.inputs(X)
    if is_classifier(model):
        np.testing.assert_allclose(probs_of(tables, rows), want, rtol=0.0, atol=1e-10)
        return
    mean, variance = moments_of(tables, rows)
    np.testing.assert_allclose(mean, want[:, 0], rtol=1e-10)
    np.testing.assert_allclose(variance, want[:, 1] ** 2, rtol=1e-9)


@pytest.mark.parametrize("target", ["numbers", "two classes"])
@pytest.mark.parametrize("kind", KINDS)
def test_tables_of_categories_and_dates(kind, target):
    columns, signal = mixed_columns(300)
    model = small(kind, target)
    if target == "numbers":
        model.set_params(lines=False)
    model.fit(as_pandas(columns), signal if target == "numbers" else signal > 1.5)
    X = later_rooms(as_pandas(columns))[:60]
    tables = et.export.to_tables(model)
    if target == "numbers":
        np.testing.assert_allclose(moments_of(tables, tables.inputs(X))[0], model.predict(X), rtol=1e-10)
        with_centre = X.assign(centre=centres_of(tables, tables.inputs(X)))
        rows = np.column_stack([tables.inputs(X), with_centre.centre])
        np.testing.assert_array_equal(tables.residuals.inputs(with_centre), rows)
        assert tables.residuals.feature_names == [*tables.feature_names, "centre"]
    else:
        probs = probs_of(tables, tables.inputs(X))
        np.testing.assert_allclose(probs, model.predict_proba(X), rtol=0.0, atol=1e-10)


def test_residuals_of_columns_without_names_read_the_centre_last():
    rng = rng_for("pooled residuals")
    place = rng.integers(0, 150, 400)
    X = np.column_stack([place.astype(object), rng.normal(size=400)])
    model = small("Boost", "numbers").set_params(max_iter=5, categorical_features=[0], lines=False)
    model.fit(X, place % 7 + rng.normal(size=400))
    tables = et.export.to_tables(model)
    centre = centres_of(tables, tables.inputs(X))
    rows = tables.residuals.inputs(np.column_stack([X, centre.astype(object)]))
    np.testing.assert_array_equal(rows, np.column_stack([tables.inputs(X), centre]))


def test_a_loaded_model_has_the_same_tables(tmp_path):
    model, (X, _, _) = WITHOUT_LINES[10].fitted(100)
    et.save(model, tmp_path / "model")
    first, second = et.export.to_tables(model), et.export.to_tables(et.load(tmp_path / "model"))
    rows = first.inputs(X[:20])
    np.testing.assert_array_equal(moments_of(first, rows), moments_of(second, rows))


def test_what_the_parts_are_put_together_by():
    model, _ = CASES[7].fitted(200)
    tables = et.export.to_tables(model)
    assert tables.weight == model.boost_weight_
    assert tables.sharpness == model.model_.sharpness
    assert tables.forest.sharpness == model.model_.forest.sharpness
    assert tables.residuals is None
    model, _ = CASES[0].fitted(200)
    tables = et.export.to_tables(model)
    assert (tables.forest, tables.residuals, tables.weight, tables.sharpness) == (None, None, 1.0, 1.0)
    assert all(np.isnan(tree.weighted_n_node_samples).all() for tree in tables.trees)


def test_a_model_without_trees_has_one_without_splits():
    model = small("Boost", "classes").fit(np.zeros((12, 1)), np.arange(12) % 3)
    tables = et.export.to_tables(model)
    assert len(tables.trees) % 3 == 0
    assert len(tables.trees) >= 3
    np.testing.assert_allclose(probs_of(tables, np.zeros((1, 1))), model.predict_proba([[0.0]]), rtol=1e-12)
    check_equal(model, np.zeros((3, 1)))


@pytest.mark.parametrize("kind", KINDS)
def test_trees_with_lines_are_in_graphs_but_are_no_plain_trees(kind):
    rng = rng_for("lines", kind)
    X = rng.normal(size=(400, 12))
    X[:, 3] = np.round(X[:, 3])
    model = small(kind, "numbers").set_params(max_iter=40).fit(X, X @ np.arange(12.0))
    lined = model.model_.parts.lined
    assert len(lined) > 20
    assert len(lined.columns) >= 10
    check_equal(model, np.concatenate([with_holes(X, 0.1, kind), at_cuts(model.schema_, X), 1e9 * X[:5]]))
    with pytest.raises(ValueError, match=f"this Meta{kind}Regressor has trees with lines in their nodes.*lines=False"):
        et.export.to_tables(model)


@pytest.mark.parametrize("target", ["classes", "numbers"])
@pytest.mark.parametrize("kind", KINDS)
def test_generated_columns_are_computed_in_graphs(kind, target):
    rng = rng_for("generated in graphs")
    X = rng.uniform(1.0, 3.0, (400, 3))
    ratio = np.log(X[:, 0] / X[:, 1])
    y = (ratio > 0).astype(int) if target == "classes" else np.sign(ratio) + 0.05 * rng.normal(size=400)
    model = small(kind, target).set_params(max_iter=40).fit(X, y)
    operators = {column.formula.operator for column in model.schema_.columns if column.formula is not None}
    assert operators == set("+-*/") if target == "numbers" else "/" in operators
    zeros = np.where(rng.random((50, 3)) < 0.5, 0.0, X[:50])
    check_equal(model, np.concatenate([with_holes(X, 0.1, kind), at_cuts(model.schema_, X), zeros, 1e300 * X[:20]]))


# ---- what cannot be exported ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("export", [et.export.to_tables, et.to_onnx])
@pytest.mark.parametrize("kind", [et.MetaBoostClassifier, et.MetaEnsembleRegressor])
def test_models_that_are_not_fitted_are_refused(export, kind):
    with pytest.raises(ValueError, match=f"{kind.__name__} is not fitted yet: call fit and export it then"):
        export(kind())
