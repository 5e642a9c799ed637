"""Exported models say what the models themselves say, row by row."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingClassifier, RandomForestClassifier

import everytree as et
from cases import rng_for
from estimator_cases import ALL, FRAMES, Case, answers, as_pandas, mixed_columns
from everytree.export.inputs import inputs_of
from everytree.export.tables import plain_inputs, table_of
from everytree.tables.column import Column, missing_code, unseen_code
from everytree.tables.schema import Schema
from export_cases import at_cuts, average, check_equal, later_rooms, leaf_of, run, with_holes
from random_shapes import random_shape

onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

EXPORTED = [
    Case(case.kind, case.target, {**case.options, "calibration": None})
    if case.is_forest and case.target == "histogram"  # sharpened shares are not written
    else case
    for case in ALL
    if case.target != "linear"
]


# ---- graphs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", EXPORTED, ids=str)
def test_graph_equals_model_on_ten_thousand_rows_with_missing_values(case):
    model, _ = case.fitted(400)
    X = case.draw(10_000, "later")[0]
    check_equal(model, with_holes(X, 0.1, str(case)))
    check_equal(model, at_cuts(model.schema_, X[:2000]))


@pytest.mark.parametrize("target", ["numbers", "two classes", "three classes"])
@pytest.mark.parametrize("kind", ["Forest", "Tree"])
def test_text_booleans_dates_and_what_was_not_there_at_fit(kind, target):
    columns, signal = mixed_columns(800)
    y = {"numbers": signal, "two classes": signal > 1.5, "three classes": np.searchsorted([1.0, 2.5], signal)}[target]
    name = f"Meta{kind}{'Regressor' if target == 'numbers' else 'Classifier'}"
    small = {"n_estimators": 10} if kind == "Forest" else {}
    model = getattr(et, name)(random_state=0, **small).fit(as_pandas(columns), y)
    later = later_rooms(as_pandas(mixed_columns(10_000)[0]))
    codes = model.schema_.encode(later)
    assert (codes[:, 0] == unseen_code(codes.dtype)).any()
    assert (codes == missing_code(codes.dtype)).any(axis=0).sum() >= 5
    check_equal(model, later)


@pytest.mark.parametrize("frame", FRAMES)
def test_tables_of_every_library(frame):
    columns, signal = mixed_columns(200)
    X = FRAMES[frame](columns)
    check_equal(et.MetaForestRegressor(5, random_state=0).fit(X, signal), X)


def test_sharpened_and_multiway_models_are_among_those_tested():
    columns, signal = mixed_columns(800)
    model = et.MetaForestClassifier(10, random_state=0).fit(as_pandas(columns), signal > 1.5)
    assert model.forest_.sharpness != 1.0
    assert any(((tree.threshold < 0) & (tree.n_children > 2)).any() for tree in model.forest_.trees)
    case = Case(et.MetaForestRegressor, "normal")
    assert case.fitted(400)[0].forest_.sharpness != 1.0


def test_text_that_says_missing_and_categories_that_say_so():
    y = np.arange(60) % 2
    declared = pd.DataFrame({"a": pd.Categorical(np.where(y, "NA", "b")), "b": np.arange(60.0)})
    model = et.MetaTreeClassifier(random_state=0).fit(declared, y)
    check_equal(model, declared)
    plain = pd.DataFrame({"a": np.array(["NA", "b", "", "null", "c"], dtype=object)[np.arange(60) % 5]})
    model = et.MetaTreeClassifier(random_state=0).fit(plain, y)
    check_equal(model, plain)
    session = ort.InferenceSession(et.to_onnx(model).SerializeToString())
    said = session.run(None, {"a": np.array([[""], ["NA"], ["null"]], dtype=object)})[1]
    assert np.ptp(said, axis=0).max() == 0.0


@pytest.mark.parametrize("n_classes", [2, 3])
def test_pooled_categories_new_ones_and_missing_ones(n_classes):
    rng = rng_for("pooled", n_classes)
    place = rng.integers(0, 200, 800)
    y = (rng.normal(size=(200, n_classes))[place] + rng.gumbel(size=(800, n_classes))).argmax(axis=1)
    table = pd.DataFrame({"id": [f"id {k}" for k in place], "x": rng.normal(size=800)})
    table.loc[:30, "id"] = None
    model = et.MetaForestClassifier(10, random_state=0).fit(table, y)
    own, *by_means = (column for column in model.schema_.columns if column.kind == "categorical")
    assert not own.pooled
    assert [column.pooled for column in by_means] == [True] * (n_classes - 1)
    table.loc[50:80, "id"] = "never seen"
    codes = model.schema_.encode(table)
    assert (codes[:, 0] == unseen_code(codes.dtype)).sum() == 31
    assert len(np.unique(model.predict_proba(table.assign(x=0.0))[[0, 60]], axis=0)) == 2
    check_equal(model, table)


def test_categories_that_are_numbers_or_booleans():
    rng = rng_for("categories that are numbers")
    X = pd.DataFrame({
        "whole": rng.integers(0, 6, 300).astype(float), "flag": pd.Categorical(rng.random(300) < 0.5),
        "real": pd.Categorical(rng.choice([0.5, 1.25, -3.0], 300)),
    })  # fmt: skip
    y = X.whole.isin([1, 4]) + 1.0 * X.flag.astype(bool) + X.real.astype(float)
    X.loc[::7, "whole"] = np.nan
    model = et.MetaForestRegressor(5, categorical_features=["whole", "flag", "real"], random_state=0).fit(X, y)
    check_equal(model, X)
    check_equal(model, X.assign(whole=X.whole + 3))


@pytest.mark.parametrize("labels", [[True, False], [3, 7], [-1.0, 2.0], ["no", "yes"], [5, 6, 8]], ids=str)
def test_labels_keep_their_type(labels):
    X = rng_for("labels").normal(size=(200, 2))
    y = np.array(labels)[np.digitize(X[:, 0], np.linspace(-0.5, 0.5, len(labels) - 1))]
    check_equal(et.MetaTreeClassifier(max_depth=2, random_state=0).fit(X, y), X)
    if y.dtype.kind == "U":
        check_equal(et.MetaTreeClassifier(max_depth=2, random_state=0).fit(X, y.astype(object)), X)


def test_one_class_is_certain():
    X = rng_for("one class").normal(size=(20, 2))
    check_equal(et.MetaForestClassifier(3, random_state=0).fit(X, np.full(20, "only")), X)


def test_columns_may_have_the_names_of_outputs():
    X = pd.DataFrame(rng_for("names").normal(size=(100, 3)), columns=["label", "probabilities", "constant0"])
    model = et.MetaTreeClassifier(random_state=0).fit(X, X.label > 0)
    check_equal(model, X)
    graph = et.to_onnx(model).graph
    assert [one.name for one in graph.output] == ["label_", "probabilities_"]


def test_weights_by_evidence_and_later_rows():
    case = Case(et.MetaForestClassifier, "two classes", {"weights": "evidence"})
    model, (X, y, _) = case.fitted(200)
    before = run(model, X)[1]
    model.partial_fit(X[:50], y[:50])
    check_equal(model, X)
    assert (run(model, X)[1] != before).any()
    assert len(et.export.to_tables(model).trees) <= len(model.posteriors_)


@pytest.mark.parametrize("split_prior", [1e-15, 0.5])
def test_leaves_without_a_variance(split_prior):
    case = Case(et.MetaForestRegressor, "exponential", {"family": "exponential", "prior": {"shape": 1.5}})
    model, _ = case.fitted(300, split_prior=split_prior)
    X = case.draw(500, "later")[0]
    assert np.isfinite(model.predict(X, return_std=True)[1]).all() == (split_prior < 0.1)
    check_equal(model, X)


@pytest.mark.parametrize("named", [True, False])
def test_the_inputs_of_wide_tables_are_found_in_one_pass(named):
    """A bound that a search through all columns for each of them exceeds several times."""
    cuts = np.zeros(1)
    schema = Schema.from_columns(Column(f"c{k}" if named else None, "numeric", cuts=cuts) for k in range(20_000))
    began = time.process_time()
    found = inputs_of(schema)
    assert time.process_time() - began < 5.0
    assert [one.readers for one in found] == [(k,) for k in range(20_000)]
    assert [one.name for one in found] == [f"{'c' if named else 'x'}{k}" for k in range(20_000)]


# ---- every choice of splits -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize("target", ["normal", "poisson", "two classes", "three classes", "one class"])
def test_graph_of_an_exact_average(target, depth):
    columns, signal = mixed_columns(300)
    y = {
        "normal": signal, "poisson": np.floor(np.exp(signal)), "two classes": signal > 1.5,
        "three classes": np.searchsorted([1.0, 2.5], signal), "one class": np.full(300, "only"),
    }[target]  # fmt: skip
    kind = et.ExactTreeClassifier if "class" in target else et.ExactTreeRegressor
    more = {} if "class" in target else {"family": target}
    model = kind(max_depth=depth, max_bins=4, max_cuts=12, **more).fit(as_pandas(columns), y)
    later = later_rooms(as_pandas(mixed_columns(2000)[0]))
    check_equal(model, later)
    if depth == 3:
        near = at_cuts(model.schema_, np.zeros((200, 6)))
        check_equal(model, later[:200].assign(area=near[:, 2], rooms=near[:, 3]))


# ---- models of other libraries --------------------------------------------------------------------------------------


def test_models_of_scikit_learn():
    case = Case(et.MetaForestClassifier, "three classes")
    X, y, _ = case.draw(500)
    known = np.nan_to_num(X)
    later = at_cuts(et.Schema.fit(known), with_holes(X, 0.1, "sklearn"))
    for fitted in (RandomForestClassifier(5, random_state=0), ExtraTreesRegressor(5, random_state=0)):
        model = et.from_sklearn(fitted.fit(known, y), known, y, random_state=0)
        check_equal(model, later)
        check_equal(model, at_cuts(model.schema_, later))
    fitted = HistGradientBoostingClassifier(max_iter=5, categorical_features=[2]).fit(X, y)
    check_equal(et.from_sklearn(fitted, X, y, random_state=0), X)


def test_models_of_lightgbm():
    lightgbm = pytest.importorskip("lightgbm")
    columns, signal = mixed_columns(400)
    X = as_pandas(columns)[["city", "grade", "area", "rooms"]].assign(city=lambda t: t.city.astype("category"))
    X["rooms"] -= 3
    options = {"n_estimators": 10, "min_child_samples": 5, "verbose": -1, "min_data_per_group": 5, "cat_smooth": 1.0}
    for more in ({}, {"zero_as_missing": True}):
        fitted = lightgbm.LGBMRegressor(**options, **more).fit(X, signal)
        model = et.from_lightgbm(fitted, X, signal, random_state=0)
        check_equal(model, X)
        check_equal(model, X.assign(area=np.nan, rooms=np.linspace(-1.0, 1.0, len(X))))
        check_equal(model, X.assign(city=pd.Categorical(X.city.astype(object).where(X.index % 3 > 0, "Espoo"))))
    numbers = X.assign(city=X.city.cat.codes.astype(float))[["city", "area"]]
    fitted = lightgbm.LGBMRegressor(**options).fit(numbers, signal, categorical_feature=["city"])
    model = et.from_lightgbm(fitted, numbers, signal, random_state=0)
    assert any(column.groups and column.kind == "numeric" for column in model.schema_.columns)
    check_equal(model, numbers.assign(city=np.linspace(-2.0, 8.0, len(X))))


def test_models_of_xgboost_compare_in_single_precision():
    xgboost = pytest.importorskip("xgboost")
    X, y, _ = Case(et.MetaForestRegressor, "normal").draw(400)
    fitted = xgboost.XGBRegressor(n_estimators=5, max_depth=3).fit(X, y)
    model = et.from_xgboost(fitted, X, y, random_state=0)
    assert any(column.single for column in model.schema_.columns)
    check_equal(model, X)
    near = at_cuts(model.schema_, np.repeat(X, 5, axis=0))
    check_equal(model, near * (1.0 + rng_for("single").choice([-1e-8, 0.0, 1e-8], near.shape)))


# ---- tables ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", EXPORTED, ids=str)
def test_tables_predict_what_the_model_does(case):
    model, _ = case.fitted(200)
    X = with_holes(case.draw(200, "later")[0], 0.1, "tables")
    tables = et.export.to_tables(model)
    assert tables.feature_names == (model.schema_.names or [f"x{k}" for k in range(model.schema_.n_features)])
    found, want = average(tables, X), answers(model, X)
    if is_classifier(model):
        found = found**tables.sharpness
        np.testing.assert_allclose(found / found.sum(axis=1, keepdims=True), want, rtol=0.0, atol=1e-12)
    else:
        np.testing.assert_allclose(found[:, 0] + tables.centre, want[:, 0], rtol=1e-12)
        spread = np.sqrt(found[:, 1] - found[:, 0] ** 2) / tables.sharpness
        np.testing.assert_allclose(spread, want[:, 1], rtol=1e-9)


@pytest.mark.parametrize("kind", ["multiway", "threshold", "mixed"])
@pytest.mark.parametrize("seed", range(10))
def test_rows_end_where_they_end_in_the_meta_tree(kind, seed):
    rng = rng_for("ends", kind, seed)
    sizes = [1, 2, 3, 6, 4]
    columns = [Column(None, "categorical", categories=tuple(range(n)), has_missing=True) for n in sizes[:4]]
    columns.append(Column(None, "numeric", cuts=np.array([-1.0, 0.0, 2.5]), has_missing=True))
    tree = random_shape(sizes, 5, rng=rng, stop=0.2, kind=kind, missing=bool(seed % 2))
    forest = et.Forest([et.Posterior(tree, et.Bernoulli())], n_codes=sizes)
    codes = np.column_stack([rng.integers(0, n, 500) for n in sizes]).astype(np.uint8)
    codes[rng.random(codes.shape) < 0.1] = missing_code(np.uint8)
    codes[:, :4][rng.random((500, 4)) < 0.1] = unseen_code(np.uint8)
    table = table_of(tree, tuple(columns), np.arange(tree.n_nodes)[:, None], np.ones(tree.n_nodes))
    numbers = np.array([-1.0, 0.0, 2.5, 9.0, np.nan])[np.minimum(codes[:, 4], 4)]
    rows = plain_inputs(tuple(columns), codes, numbers[:, None])
    ends = [table.node[leaf_of(table, row)] for row in rows]
    np.testing.assert_array_equal(ends, forest.ends(codes)[:, 0])


def test_tables_have_the_invariants_of_scikit_learns():
    model, _ = Case(et.MetaForestClassifier, "two classes").fitted(300)
    for tree, post in zip(et.export.to_tables(model).trees, model.posteriors_, strict=True):
        inner = np.flatnonzero(~tree.is_leaf)
        children = np.concatenate([tree.children_left[inner], tree.children_right[inner]])
        assert sorted(children) == list(range(1, tree.node_count))
        assert (tree.feature[tree.is_leaf] == -2).all()
        assert (tree.children_right[tree.is_leaf] == -1).all()
        rows = tree.weighted_n_node_samples
        np.testing.assert_allclose(rows[inner], rows[tree.children_left[inner]] + rows[tree.children_right[inner]])
        np.testing.assert_allclose(rows[0], post.statistics[0].sum())


# ---- what cannot be exported ----------------------------------------------------------------------------------------


EXPORTS = [et.export.to_tables, et.to_onnx]


def test_inputs_of_a_model_that_is_not_fitted_are_refused():
    with pytest.raises(ValueError, match="MetaTreeClassifier is not fitted yet"):
        et.export.onnx_inputs(et.MetaTreeClassifier(), [[1.0]])


@pytest.mark.parametrize("export", EXPORTS)
def test_what_cannot_be_exported_is_named(export):
    X = rng_for("refused").normal(size=(60, 2))
    with pytest.raises(ValueError, match="MetaForestRegressor is not fitted yet"):
        export(et.MetaForestRegressor())
    with pytest.raises(ValueError, match="leaves that are lines"):
        export(et.MetaTreeRegressor(family="linear", random_state=0).fit(X, X[:, 0]))
    with pytest.raises(ValueError, match="leaves that are lines"):
        export(et.ExactTreeRegressor(family="linear", max_depth=1).fit(X, X[:, 0]))
    if export is not et.to_onnx:
        with pytest.raises(TypeError, match=r"ExactTreeRegressor.*fit a MetaForest"):
            export(et.ExactTreeRegressor(max_depth=1).fit(X, X[:, 0]))
    with pytest.raises(TypeError, match=r"model must be one of .*not a Forest"):
        export(et.Forest([et.Posterior(et.MetaTree.complete([0]), et.Bernoulli())]))
    model = et.MetaTreeRegressor(family="exponential", prior={"shape": 0.5}, random_state=0)
    with pytest.warns(UserWarning, match="all rows are censored"):
        model.fit(X[:4], np.abs(X[:4, 0]), censored=np.ones(4))
    with pytest.raises(ValueError, match=r"no finite mean.*a prior of family 'exponential'"):
        export(model)


def test_text_and_numbers_in_one_column_are_refused():
    X = pd.DataFrame({"a": pd.Categorical(["x", 1] * 20, categories=["x", 1])})
    model = et.MetaTreeClassifier(random_state=0).fit(X, np.arange(40) % 2)
    with pytest.raises(ValueError, match="column 'a' has categories of text and of numbers"):
        et.to_onnx(model)


def test_labels_and_names_that_a_graph_cannot_hold_are_refused():
    X = rng_for("labels").normal(size=(40, 2))
    model = et.MetaTreeClassifier(random_state=0).fit(X, np.where(X[:, 0] > 0, np.uint64(2**63), np.uint64(1)))
    with pytest.raises(ValueError, match="classes go up to 9223372036854775808, but an exported one is at most"):
        et.to_onnx(model)
    model = et.MetaTreeRegressor(random_state=0).fit(pd.DataFrame(X, columns=["a", ""]), X[:, 0])
    with pytest.raises(ValueError, match="column 1 has an empty name"):
        et.to_onnx(model)


def test_without_onnx_the_error_says_what_to_install():
    code = (
        "import sys; sys.modules['onnx'] = None\n"
        "import everytree as et\n"
        "try: et.to_onnx\n"
        "except ImportError as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert said.strip() == "graphs are made by onnx, which is not installed: pip install everytree[onnx]"
