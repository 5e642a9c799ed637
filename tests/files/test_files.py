"""Law 9 for files: a model that was stored and read again is the same model, to the last bit, and goes on as one."""

from __future__ import annotations

import copy
import json
import mmap as mmap_module
import pickle
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from own_family import GammaWaiting
from safetensors.numpy import load_file, save_file
from sklearn.ensemble import BaggingClassifier, ExtraTreesRegressor, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.tree import DecisionTreeClassifier

import everytree as et
from cases import assert_same, examples, families, random_codes, random_tree, rng_for, snapshot, take
from corruptions import join, split
from estimator_cases import FOUR
from estimator_cases import Case as EstimatorCase
from everytree import files
from everytree.files import container
from everytree.posterior.forest import Forest
from everytree.tables.column import Column
from forests import random_forest, random_split_prior
from online_cases import class_weights, state
from random_shapes import random_shape

WAYS = [("packed", False), ("packed", True), ("compressed", False), ("mappable", False), ("mappable", True)]
ways = pytest.mark.parametrize(("layout", "mmap"), WAYS, ids=lambda part: {True: "mapped", False: "read"}.get(part))
layouts = pytest.mark.parametrize("layout", ["packed", "compressed", "mappable"])


def again(model: Any, path: Path, layout: str = "packed", mmap: bool = False) -> Any:
    et.save(model, path, layout=layout)
    return et.load(path, mmap=mmap)


# ---- posteriors and forests ------------------------------------------------------------------------------------------


@ways
@families
def test_a_posterior_is_the_same_and_goes_on(case, layout, mmap, path):
    rng = rng_for("file", case)
    for _ in range(5):
        tree = random_tree(rng)
        X = random_codes(rng, tree, 80)
        y, row_data = case.draw(rng, len(X))
        weight = rng.uniform(0.0, 2.0, len(X))
        post = et.Posterior(tree, case.family, random_split_prior(rng, tree))
        post.update(X[:60], y[:60], weight[:60], **take(row_data, slice(0, 60)))
        other = again(post, path, layout, mmap)
        assert other.tree == tree
        assert other.family == case.family
        assert repr(other) == repr(post)
        assert snapshot(other) == snapshot(post) == snapshot(copy.deepcopy(other)) == snapshot(other.copy())
        assert snapshot(pickle.loads(pickle.dumps(other))) == snapshot(post)
        for one in (post, other):
            one.update(X[60:], y[60:], **take(row_data, slice(60, 80)))
        assert snapshot(other) == snapshot(post)
        assert snapshot(other.merge(again(post, path))) == snapshot(post.merge(post.copy()))


@given(seed=st.integers(0, 2**32 - 1))
@examples(20)
def test_any_tree_is_the_same(tmp_path_factory, seed):
    rng = np.random.default_rng(seed)
    path = tmp_path_factory.mktemp("trees") / "tree"
    chain = et.MetaTree.complete([0, 1, 2, 0, 1], [1, 1, 1])
    trees = [random_tree(rng), et.MetaTree.complete([]), et.MetaTree.complete([5], 300), chain]
    for tree in trees:
        for layout in ("packed", "compressed", "mappable"):
            assert again(tree, path, layout) == tree


@layouts
@families
def test_a_forest_is_the_same_and_goes_on(case, layout, path):
    rng = rng_for("forest file", case)
    forest = random_forest(case, rng)
    for weights in (None, "evidence"):
        one = Forest([post.copy() for post in forest.posteriors], weights=weights, n_codes=forest.n_codes)
        other = again(one, path, layout)
        assert [snapshot(post) for post in other.posteriors] == [snapshot(post) for post in one.posteriors]
        np.testing.assert_array_equal(other.weights, one.weights)
        np.testing.assert_array_equal(other.n_codes, one.n_codes)
        merged = other.merge(again(one, path))
        assert merged.n_rows == 2 * one.n_rows


ONLINE = {
    "classes": (et.OnlineForestClassifier, {"max_nodes": 90, "half_life": 40.0, "ranges": {"size": (0.0, 9.0)}}),
    "numbers": (et.OnlineForestRegressor, {"n_models": 4}),
    "a prior": (et.OnlineForestRegressor, {"prior": (0.5, 0.1, 2.0, 1.0), "max_nodes": None}),
}


@ways
@pytest.mark.parametrize("name", [*ONLINE])
def test_an_online_forest_is_the_same_and_goes_on(name, layout, mmap, path):
    rng = rng_for("online file", name)
    kind, options = ONLINE[name]
    rows = [{"size": float(rng.integers(10)), 7: "xyz"[rng.integers(3)], ("a", 1): None} for _ in range(200)]
    rows = [{key: value for key, value in row.items() if rng.random() < 0.9} for row in rows]
    y = ["no", "yes", "maybe"] if name == "classes" else [0.5, 2.0, -1.0]
    targets = [y[rng.integers(3)] for _ in rows]
    model = kind(**options, seed=5)
    assert again(model, path, layout, mmap).predict_one(rows[0]) == model.predict_one(rows[0])
    model.learn_many(rows[:150], targets[:150])
    other = again(model, path, layout, mmap)
    assert other.features == model.features
    assert {key: getattr(other, key) for key in options} == {key: getattr(model, key) for key in options}
    for one in (model, other):
        one.learn_many([*rows[150:], {"late": 2.0}], [*targets[150:], targets[0]])
    assert other.n_nodes == model.n_nodes
    np.testing.assert_array_equal(other.log_evidence, model.log_evidence)
    assert [other.predict_one(row) for row in rows] == [model.predict_one(row) for row in rows]


@ways
@pytest.mark.parametrize("half_life", [None, 90.0])
@pytest.mark.parametrize("has_lists", [True, False], ids=["lists", "all classes in all nodes"])
def test_an_online_forest_of_many_classes_is_the_same_and_goes_on(has_lists, half_life, layout, mmap, path):
    """Files had the weight of every class in every node once."""
    rng = rng_for("many classes in a file", half_life)
    rows = [{"a": float(a), "b": float(b)} for a, b in rng.normal(size=(200, 2))]
    targets = [i % 70 if i < 100 else int(rng.integers(90)) for i in range(200)]
    model = et.OnlineForestClassifier(3, max_nodes=300, half_life=half_life)
    model.learn_many(rows[:150], targets[:150])
    et.save(model, path, layout=layout)
    if not has_lists:
        without_lists(path, class_weights(model))
    other = et.load(path, mmap=mmap)
    assert state(other) == state(model)
    for one in (model, other):
        one.learn_many(rows[150:], targets[150:])
    assert state(other) == state(model)
    assert [other.predict_one(row) for row in rows] == [model.predict_one(row) for row in rows]


def without_lists(path: Path, statistics: np.ndarray) -> None:
    contents = container.read(path)
    values = json.loads(contents.metadata["model"])
    del values["class_weights"]
    arrays = {name: array for name, array in contents.arrays.items() if not name.startswith("class_weights.")}
    metadata = {name: contents.metadata[name] for name in ("library", "kind")} | {"model": json.dumps(values)}
    container.write(path, metadata, {**arrays, "statistics": statistics})


def test_leaf_priors_may_differ_from_tree_to_tree_and_node_to_node(path):
    rng = rng_for("priors in files")
    trees = [random_shape([2, 3], 2, rng=rng) for _ in range(3)]
    posteriors = [et.Posterior(tree, et.Bernoulli(rng.uniform(1, 2, tree.n_nodes), 0.5), 0.25) for tree in trees]
    posteriors.append(et.Posterior(trees[0], et.Bernoulli(0.25, 0.5), et.depth_prior(0.9, 1.0)))
    for layout in ("packed", "mappable"):
        other = again(Forest(posteriors), path, layout)
        for one, two in zip(posteriors, other.posteriors, strict=True):
            assert one.family == two.family
            np.testing.assert_array_equal(one.split_prior, two.split_prior)


@families
def test_trees_with_more_inner_nodes_than_terminals_are_the_same(case, path):
    """They are stored in full, also where others would be packed."""
    rng = rng_for("chains", case)
    chain = et.MetaTree.complete([0, 1, 2, 3], [1, 1, 1, 1, 1])
    X = np.zeros((20, 5), dtype=np.uint8)
    y, row_data = case.draw(rng, 20)
    posteriors = [et.Posterior(chain, case.family, 0.25).update(X, y, **row_data) for _ in range(3)]
    for layout in ("packed", "compressed"):
        other = again(Forest(posteriors), path, layout)
        assert [snapshot(post) for post in other.posteriors] == [snapshot(post) for post in posteriors]
        assert "posteriors.leaf" in container.read(path).arrays


@layouts
@families
def test_a_growing_posterior_is_the_same_and_goes_on(case, layout, path):
    rng = rng_for("growing file", case)
    for sizes in ([3, 2, 1, 4, 2], [300, 2, 5]):
        X = rng.integers(0, sizes, (60, len(sizes))).astype(np.uint16)
        y, row_data = case.draw(rng, len(X))
        grow = et.GrowingPosterior(sizes, case.family, et.depth_prior(0.9, 0.5), seed=5)
        assert again(grow, path, layout).log_evidence == 0.0
        grow.update(X[:40], y[:40], rng.uniform(0.0, 2.0, 40), **take(row_data, slice(0, 40)))
        other = again(grow, path, layout)
        for more in (slice(40, 60), slice(0, 10)):
            assert (other.n_rows, other.n_nodes) == (grow.n_rows, grow.n_nodes)
            assert other.log_evidence == grow.log_evidence
            np.testing.assert_array_equal(other.points, grow.points)
            log_probs = [one.predictive(X, **row_data).log_prob(y) for one in (grow, other)]
            np.testing.assert_array_equal(*log_probs)
            for one in (grow, other):
                one.update(X[more], y[more], **take(row_data, more))
        assert other.merge(again(grow, path)).n_rows == 2 * grow.n_rows


@layouts
@families
@pytest.mark.parametrize("budget", [None, 5])
def test_an_exact_posterior_is_the_same(case, budget, layout, path):
    rng = rng_for("exact file", case)
    X = rng.integers(0, 3, (40, 4)).astype(np.uint8)
    y, row_data = case.draw(rng, len(X))
    post = et.ExactPosterior(
        [3] * 4, case.family, 3, et.depth_prior(), kinds=["ordered", "multiway", "ordered", "one_against_rest"]
    )
    assert again(post, path, layout).kinds == post.kinds
    post.fit(X, y, budget=budget, **row_data)
    other = again(post, path, layout)
    assert repr(other) == repr(post)
    assert other.log_evidence_bounds == post.log_evidence_bounds
    assert other.n_regions == post.n_regions
    assert other.map_tree().log_prob == post.map_tree().log_prob
    log_probs = [one.predictive(X, **row_data).log_prob(y) for one in (post, other)]
    np.testing.assert_array_equal(*log_probs)
    assert other.fit(X[:9], y[:9], **take(row_data, slice(0, 9))).n_rows == 9


@pytest.mark.parametrize("max_seconds", [1e-9, 0.002, 0.01])
def test_an_exact_posterior_that_the_clock_stopped_lists_the_same_regions_again(max_seconds, path):
    rng = rng_for("clock", max_seconds)
    X = rng.integers(0, 2, (200, 25)).astype(np.uint8)
    post = et.ExactPosterior([2] * 25, et.Bernoulli(), 5).fit(X, X[:, 0] ^ X[:, 1], max_seconds=max_seconds)
    lower, upper = post.log_evidence_bounds
    assert lower < upper
    for other in (again(post, path), pickle.loads(pickle.dumps(post))):
        assert other.engine().n_regions() == post.n_regions
        assert other.engine().log_evidence() == lower
        assert other.map_tree() == post.map_tree()


# ---- estimators ------------------------------------------------------------------------------------------------------

TARGETS = ("normal", "poisson", "exponential", "geometric", "linear")
ESTIMATORS = [
    *FOUR,
    *(EstimatorCase(et.MetaTreeRegressor, target, {"family": target}) for target in TARGETS[1:]),
    EstimatorCase(et.MetaForestClassifier, "three classes", {"weights": "evidence", "split_prior": et.depth_prior()}),
    EstimatorCase(et.MetaForestRegressor, "normal", {"weights": "stacking", "prior": {"strength": 2.0}}),
]
EXACT = [
    (et.ExactTreeClassifier(max_depth=2, max_cuts=8), "two classes"),
    (et.ExactTreeRegressor(max_depth=1, max_cuts=8, family="linear"), "linear"),
    (et.ExactTreeRegressor(max_depth=2, max_cuts=8, family="poisson"), "poisson"),
]


def exact_fitted(model: Any, target: str, **options: Any) -> tuple[Any, Any, Any, Any]:
    X, y, row_data = EstimatorCase(type(model), target).draw(60)
    return copy.deepcopy(model).fit(X, y, **options, **row_data), X, y, row_data


def answers(model: Any, X: Any, row_data: dict[str, Any]) -> list[Any]:
    """What a fitted estimator says, to be compared to the bit."""
    exposure = {name: values for name, values in row_data.items() if name == "exposure"}
    said = [model.predict(X, **exposure), model.log_evidence_, model.feature_importances_]
    return [*said, model.predict_proba(X)] if hasattr(model, "predict_proba") else said


def assert_same_answers(one: Any, other: Any, X: Any, row_data: dict[str, Any]) -> None:
    for mine, theirs in zip(answers(one, X, row_data), answers(other, X, row_data), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def assert_same_estimator(one: Any, other: Any, X: Any, row_data: dict[str, Any]) -> None:
    assert type(other) is type(one)
    assert repr(other.get_params()) == repr(one.get_params())
    assert vars(other).keys() == vars(one).keys() - {"_declared"}  # which only the first fit reads
    assert other.schema_ == one.schema_
    assert_same_answers(one, other, X, row_data)


@ways
@pytest.mark.parametrize("case", ESTIMATORS, ids=str)
def test_an_estimator_is_the_same_and_goes_on(case, layout, mmap, path):
    model, (X, y, row_data) = case.fitted(70)
    other = again(model, path, layout, mmap)
    assert_same_estimator(model, other, X, row_data)
    np.testing.assert_equal(vars(other.choice_), vars(model.choice_))
    assert_same_answers(model, pickle.loads(pickle.dumps(other)), X, row_data)
    for one in (model, other):
        one.partial_fit(X[:20], y[:20], **take(row_data, slice(0, 20)))
    assert_same_answers(model, other, X, row_data)
    assert_same_answers(model.fit(X, y, **row_data), other.fit(X, y, **row_data), X, row_data)


@layouts
@pytest.mark.parametrize(("model", "target"), EXACT, ids=lambda part: part if isinstance(part, str) else None)
def test_an_exact_estimator_is_the_same_and_goes_on(model, target, layout, path):
    one, X, y, row_data = exact_fitted(model, target)
    other = again(one, path, layout)
    assert_same_estimator(one, other, X, row_data)
    assert other.map_tree_.log_prob == one.map_tree_.log_prob
    for each in (one, other):
        each.partial_fit(X[:9], y[:9], sample_weight=np.full(9, 0.5), **take(row_data, slice(0, 9)))
    assert_same_answers(one, other, X, row_data)
    assert_same_answers(one, again(one, path, layout), X, row_data)  # now with weights


@pytest.mark.parametrize("labels", [np.array(["a", "ä€", "c" * 9]), np.array(["x", "y", "z"], dtype=object),
                                    np.array([1.0, -2.0, 7.0]), np.array([3, 1, 2]),
                                    np.array([True, False, True])], ids=lambda labels: str(labels.dtype))  # fmt: skip
def test_class_labels_are_the_same(labels, path):
    X = np.arange(30.0)[:, None]
    y = labels[np.arange(30) % 3]
    model = et.MetaTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    other = again(model, path)
    assert other.classes_.dtype == model.classes_.dtype  # labels keep their type, however small they are
    np.testing.assert_array_equal(other.classes_, model.classes_)
    np.testing.assert_array_equal(other.predict(X), model.predict(X))


def test_names_and_kinds_of_columns_are_the_same(path):
    import pandas as pd

    table = pd.DataFrame(
        {
            "price, in €": [1.5, 2.0, np.nan, 4.0] * 5,
            "colour": ["red", 'bl"ue', "", None] * 5,
            "when": pd.to_datetime(["2020-01-01", "2021-02-03", None, "2019-05-05"] * 5),
            "yes": [True, False, True, True] * 5,
            "level": pd.Categorical([1, 2, 3, 1] * 5, categories=[3, 2, 1], ordered=True),
        }
    )
    model = et.MetaForestClassifier(4, random_state=0).fit(table, [0, 1, 1, 0] * 5)
    other = again(model, path)
    assert_same_estimator(model, other, table, {})
    assert other.feature_names_in_.tolist() == list(table.columns)
    assert again(model.schema_, path) == model.schema_


@layouts
def test_long_lists_of_categories_are_the_same(layout, path):
    """Whole numbers, numbers, text and both together, numbers of many digits; some of a code of their own."""
    some = [*range(-20, 20)]
    columns = [
        Column("int", "categorical", categories=some),
        Column("zip", "categorical", categories=[*range(10_000, 10_200)], groups=[i % 7 for i in range(200)]),
        Column("float", "categorical", categories=[float(i) for i in some]),
        Column("huge", "categorical", categories=[10**30 + i for i in some]),
        Column("mixed", "categorical", categories=[*map(str, some), *some]),
        Column("yes", "categorical", categories=[True, False]),
        Column("odd", "categorical", categories=["\ud800", "ä€", '"', "клиент"]),
        Column("number", "numeric", cuts=np.linspace(-1.0, 1.0, 99)),
        Column("whole", "numeric", cuts=np.arange(5.0)),
        Column("none", "numeric"),
    ]
    schema = et.Schema.from_columns(columns)
    assert again(schema, path, layout) == schema


@pytest.mark.parametrize("groups", [None, np.arange(20) // 2, pd.Series(np.arange(20) // 2, name="site")], ids=type)
def test_that_a_model_was_fitted_with_groups_is_known(groups, path):
    model = et.MetaForestClassifier(2, random_state=0).fit(np.arange(40.0).reshape(20, 2), [0, 1] * 10, groups=groups)
    et.save(model, path)
    assert (
        model.fitted_.groups
        == et.load(path).fitted_.groups
        == (None if groups is None else getattr(groups, "name", ""))
    )


def test_estimators_without_rows(path):
    for model in (
        et.MetaForestClassifier(),
        et.MetaForestRegressor(3, family="poisson", prior={"shape": np.float32(0.5)}, categorical_features=("a", 2)),
        et.MetaForestClassifier(grower=RandomForestClassifier(7, max_depth=3), max_features=0.5, random_state=7),
        et.MetaForestClassifier(grower=BaggingClassifier(DecisionTreeClassifier(max_depth=2))),
        et.MetaForestRegressor(grower=ExtraTreesRegressor(7), split_prior=et.depth_prior(0.9, 2)),
        et.MetaTreeClassifier(max_depth=None, categorical_features=np.array([True, False])),
        et.ExactTreeRegressor(truncation=0.0),
        et.ExactTreeClassifier(n_jobs=-1),
    ):
        other = again(model, path)
        assert type(other) is type(model)
        assert repr(other.get_params()) == repr(model.get_params()).replace("np.float32(0.5)", "0.5")
        with pytest.raises(NotFittedError):
            other.log_evidence_  # noqa: B018


def test_structures_of_another_library_with_and_without_rows(path):
    case = FOUR[0]
    X, y, _ = case.draw(80)
    given = RandomForestClassifier(5, max_depth=3, random_state=0).fit(np.nan_to_num(X), y)
    model = et.from_sklearn(given, random_state=0)
    other = again(model, path)
    assert other.structures_.trees == model.structures_.trees
    assert other.structures_.schema == model.structures_.schema
    for one in (model, other):
        one.partial_fit(np.nan_to_num(X), y)
    assert_same_answers(model, other, np.nan_to_num(X), {})
    third = again(other, path)
    assert_same_estimator(other, third, np.nan_to_num(X), {})
    assert third.structures_.trees == model.structures_.trees


# ---- merging ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", FOUR, ids=str)
def test_merged_estimators_are_that_of_all_rows(case, path):
    """Both shards know the rows of the first fit, which therefore count twice."""
    model, (X, y, _) = case.fitted()
    shards = [again(model, path).partial_fit(X[rows], y[rows]) for rows in (slice(0, 50), slice(50, 90))]
    merged = again(shards[0], path).merge(again(shards[1], path), allow_overlap=True)
    expected = model.partial_fit(X, y, allow_overlap=True).partial_fit(X[:90], y[:90])
    for one, other in zip(merged.posteriors_, expected.posteriors_, strict=True):
        assert_same(one, other)


def test_merged_exact_estimators_are_that_of_all_rows(path):
    model, target = EXACT[0]
    one, X, y, _ = exact_fitted(model, target)
    other = again(one, path)
    twice = again(one, path).partial_fit(X, y, allow_overlap=True)
    assert_same_answers(other.merge(one, allow_overlap=True), twice, X, {})


def test_merge_refuses_what_does_not_fit():
    model, (X, y, _) = FOUR[0].fitted()
    other, _ = FOUR[0].fitted(what="other rows")
    before = [snapshot(post) for post in model.posteriors_]
    with pytest.raises(TypeError, match="must be a MetaForestClassifier, not MetaTreeClassifier"):
        model.merge(FOUR[2].fitted()[0])
    with pytest.raises(ValueError, match="other has other cut points of column 0"):
        model.merge(other)
    with pytest.raises(NotFittedError):
        model.merge(et.MetaForestClassifier())
    with pytest.raises(ValueError, match=r"other has classes \['no', 'yes', 'z'\]"):
        model.merge(et.MetaForestClassifier(6, random_state=0).partial_fit(X, y, classes=["yes", "no", "z"]))
    with pytest.raises(ValueError, match="meta-tree"):
        model.merge(FOUR[0].make(random_state=1).fit(X, y))
    with pytest.raises(ValueError, match=r"leaves|split_prior"):
        model.merge(FOUR[0].make(alpha=7.0).fit(X, y))
    sharper = {"sharpness": 2.0 * model.forest_.sharpness, "n_codes": model.forest_.n_codes}
    with pytest.raises(ValueError, match="sharpness"):
        model.forest_.merge(Forest(copy.deepcopy(model.posteriors_), **sharper))
    with pytest.raises(ValueError, match=r"n_codes\[0\]"):
        model.forest_.merge(Forest(copy.deepcopy(model.posteriors_), sharpness=model.forest_.sharpness))
    assert [snapshot(post) for post in model.posteriors_] == before
    exact, *_ = exact_fitted(*EXACT[0])
    other = copy.deepcopy(exact)
    other.posterior_.max_depth = 1
    with pytest.raises(ValueError, match="max_depth 1, this one 2"):
        exact.merge(other)


# ---- what cannot be stored -------------------------------------------------------------------------------------------


def refused() -> list[tuple[Callable[[], Any], str]]:
    tree = et.MetaTree.complete([0])

    class Own(et.MetaForestClassifier):
        pass

    return [
        (lambda: et.Posterior(tree, GammaWaiting(2, 3.0, 1.5)), "a family of your own"),
        (lambda: et.MetaForestClassifier(split_prior=lambda depth: 0.5), "split_prior is <function.*depth_prior"),
        (lambda: et.MetaForestClassifier(random_state=np.random.RandomState(0)), "random_state.*whole number"),
        (lambda: et.MetaForestClassifier(grower=object()), "grower is <object"),
        (lambda: et.ExactPosterior([2], et.Bernoulli(), split_prior=lambda depth: 0.5), "split_prior is <function"),
        (lambda: Own(), "model is a Own, but files hold MetaTree"),
        (lambda: {"a": 1}, "model is a dict, but files hold MetaTree"),
        (lambda: et.Bernoulli(), "model is a Bernoulli"),
    ]


@pytest.mark.parametrize(("make", "complaint"), refused(), ids=range(8))
def test_what_cannot_be_stored_is_refused_and_leaves_the_file(make, complaint, path):
    et.save(et.MetaTree.complete([0]), path)
    before = path.read_bytes()
    with pytest.raises(TypeError, match=complaint):
        et.save(make(), path)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


# ---- the format ------------------------------------------------------------------------------------------------------


def test_the_safetensors_library_reads_our_files(path):
    model, _ = FOUR[0].fitted()
    trees = model.forest_.trees
    et.save(model, path, layout="mappable")
    feature = np.concatenate([tree.feature for tree in trees])
    np.testing.assert_array_equal(load_file(path)["forest.posteriors.trees.feature"], feature)
    et.save(model, path)
    arrays = load_file(path)
    np.testing.assert_array_equal(arrays["forest.posteriors.trees.feature"], feature[feature >= 0])
    np.testing.assert_array_equal(arrays["forest.weights"], model.weights_)
    packed = path.read_bytes()
    et.save(model, path, layout="compressed")
    assert zlib.decompress(load_file(path)["deflated"].tobytes()) == packed


def test_a_file_says_what_it_is(path):
    for layout in ("packed", "compressed"):
        et.save(et.MetaTree.complete([0]), path, layout=layout)
        facts = split(path.read_bytes())[0]["__metadata__"]
        assert {name: facts[name] for name in ("format", "version", "kind", "library")} == {
            "format": "everytree", "version": "5", "kind": "MetaTree", "library": et.__version__
        }  # fmt: skip
    assert json.loads(container.read(path).metadata["model"]) == {}


def test_the_same_model_gives_the_same_bytes(path):
    model, _ = FOUR[1].fitted()
    for layout in ("packed", "compressed", "mappable"):
        et.save(model, path, layout=layout)
        before = path.read_bytes()
        et.save(et.load(path), path, layout=layout)
        assert path.read_bytes() == before
        et.save(et.load(path), path)
        et.save(et.load(path), path, layout=layout)
        assert path.read_bytes() == before, "also by way of another layout"


SIZES: dict[str, Callable[[Any, Any], Any]] = {
    "forest of classes": lambda X, y: et.MetaForestClassifier(10, random_state=0).fit(X, y > 0.0),
    "ten classes": lambda X, y: et.MetaForestClassifier(10, random_state=0).fit(X, np.digitize(y, np.arange(-4, 5))),
    "forest of numbers": lambda X, y: et.MetaForestRegressor(10, random_state=0).fit(X, y),
    "weights": lambda X, y: et.MetaForestRegressor(10, random_state=0).fit(X, y, sample_weight=np.exp(X[:, 1])),
    "counts": lambda X, y: et.MetaForestRegressor(10, family="poisson", random_state=0).fit(X, np.abs(y).round()),
    "a prior of depth": lambda X, y: et.MetaForestRegressor(5, split_prior=et.depth_prior(), random_state=0).fit(X, y),
    "tree of classes": lambda X, y: et.MetaTreeClassifier(random_state=0).fit(X, y > 0.0),
    "linear tree": lambda X, y: et.MetaTreeRegressor(family="linear", random_state=0).fit(X, y),
    "exact tree": lambda X, y: et.ExactTreeClassifier(max_depth=1).fit(X, y > 0.0),
    "exact numbers": lambda X, y: et.ExactTreeRegressor(max_depth=1).fit(X, y),
    "online classes": lambda X, y: learned(et.OnlineForestClassifier(3), X, y > 0.0),
    "many online classes": lambda X, y: learned(et.OnlineForestClassifier(3), X, (y * 10.0).round()),
    "online numbers": lambda X, y: learned(et.OnlineForestRegressor(3), X, y),
    "many categories": lambda X, y: et.MetaTreeRegressor(random_state=0).fit(with_categories(X), y),
}


def learned(model: Any, X: np.ndarray, y: np.ndarray) -> Any:
    model.learn_many([dict(enumerate(row)) for row in X.tolist()], y.tolist())
    return model


def with_categories(X: np.ndarray) -> Any:
    import pandas as pd

    codes = (100.0 * X).round()
    text = [f"клиент {code}" for code in codes[:, 0]]
    whole, number = (pd.Categorical(column) for column in (codes[:, 1].astype(int), X[:, 2]))
    return pd.DataFrame({"text": text, "whole": whole, "number": number})


@pytest.mark.parametrize("name", [*SIZES])
def test_a_file_is_not_much_larger_than_the_pickle(name, path):
    rng = rng_for("sizes", name)
    X = rng.normal(size=(800, 6))
    model = SIZES[name](X, X @ [3.0, -2.0, 1.0, 0.0, 0.0, 0.0] + rng.normal(size=800))
    size = {}
    for layout in ("packed", "compressed", "mappable"):
        et.save(model, path, layout=layout)
        size[layout] = path.stat().st_size
    assert size["packed"] <= 1.5 * len(pickle.dumps(model))
    assert size["compressed"] < size["packed"] < size["mappable"]


def test_a_newer_version_is_refused_with_advice(path):
    et.save(et.MetaTree.complete([0]), path)
    header, data = split(path.read_bytes())
    header["__metadata__"] |= {"version": "6", "library": "9.1"}
    path.write_bytes(join(header, data))
    with pytest.raises(et.ModelFileError, match=r"version 6 .* everytree 9\.1.* up to 5: install everytree 9\.1"):
        et.load(path)


def test_files_of_others_are_refused(path):
    save_file({"a": np.zeros(3)}, path)
    with pytest.raises(et.ModelFileError, match="was this written by everytree"):
        et.load(path)
    save_file({"a": np.zeros(3)}, path, metadata={"format": "pt"})
    with pytest.raises(et.ModelFileError, match="was this written by everytree"):
        et.load(path)
    path.write_bytes(pickle.dumps(et.MetaTree.complete([0])))
    with pytest.raises(et.ModelFileError, match=str(path)):
        et.load(path)
    with pytest.raises(FileNotFoundError):
        et.load(path.with_name("none"))


def test_a_mapped_model_does_not_write_to_its_file_and_survives_its_replacement(path):
    tree = et.MetaTree.complete([0, 1, 1])
    for layout in ("packed", "mappable"):
        et.save(et.Posterior(tree, et.Bernoulli()), path, layout=layout)
        before = path.read_bytes()
        post = et.load(path, mmap=True).update([[0, 1]], [1])
        assert path.read_bytes() == before
        et.save(post, path)
        assert snapshot(post) == snapshot(et.load(path))


def test_arrays_of_a_mappable_file_stay_in_the_file(path):
    """Those of packed ones are unpacked into memory."""
    model, _ = FOUR[1].fitted()
    for layout, is_mapped in (("mappable", True), ("packed", False)):
        et.save(model, path, layout=layout)
        post = et.load(path, mmap=True).posteriors_[0]
        arrays = [*(post._arrays[name] for name in ("statistics", "leaf", "subtree", "split_prob")), post.tree.feature]
        assert {isinstance(owner(array), mmap_module.mmap) for array in arrays} == {is_mapped}


def owner(array: Any) -> Any:
    """What holds the memory of an array."""
    while isinstance(array, np.ndarray | memoryview):
        below = array.base if isinstance(array, np.ndarray) else array.obj
        if below is None:
            return array
        array = below
    return array


def test_a_compressed_file_cannot_be_mapped(path):
    et.save(et.MetaTree.complete([0]), path, layout="compressed")
    with pytest.raises(et.ModelFileError, match=f"{path}: is compressed and cannot be mapped: load it without mmap"):
        et.load(path, mmap=True)


@pytest.mark.parametrize("layout", ["zip", "Packed", None, True, ["packed"]])
def test_a_layout_that_is_none_is_refused_and_nothing_is_written(layout, path):
    with pytest.raises(ValueError, match="layout must be one of 'packed', 'compressed', 'mappable', but is"):
        et.save(et.MetaTree.complete([0]), path, layout=layout)
    assert not path.exists()


def test_what_shrinks_more_than_a_reader_accepts_is_packed(path):
    """A loaded file is at most a hundred times as large inflated, so that no small one fills the memory."""
    tree = et.MetaTree.complete(np.zeros(2**19 - 1, dtype=int))
    assert again(tree, path, "compressed") == tree
    assert "inflated" not in split(path.read_bytes())[0]["__metadata__"]
    assert path.stat().st_size < 6 * 2**19


def test_notes_are_kept_beside_the_model_and_checked(tmp_path):
    path, tree, notes = tmp_path / "tree", et.MetaTree.complete([0, 1, 1]), {"about": ["ä", 1, None, {"x": 0.1}]}
    et.save(tree, path, notes=notes)
    assert files.load_with_notes(path) == (tree, notes)
    assert et.load(path) == tree
    et.save(tree, path)
    assert files.load_with_notes(path) == (tree, {})
    for wrong in ({"x": object()}, {"x": float("nan")}, {1: 2}, {"x": (1, 2)}):
        with pytest.raises(TypeError, match="notes must be what JSON can hold"):
            et.save(tree, tmp_path / "other", notes=wrong)
    assert not (tmp_path / "other").exists()
    contents = container.read(path)
    for forged in ("[1]", "{", '{"a": NaN}'):
        metadata = {name: value for name, value in contents.metadata.items() if name != "sha256"}
        container.write(path, {**metadata, "notes": forged}, contents.arrays)
        with pytest.raises(et.ModelFileError, match="notes: "):
            et.load(path)
