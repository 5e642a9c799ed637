"""Forests that learn, merge, travel and are used by several threads."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy.special import logsumexp, softmax

import everytree as et
import naive
import naive_forest
from cases import ARRAYS, CASES, Case, assert_same, examples, families, rng_for, seeds, snapshot, take
from everytree.posterior.forest import Forest, pack_posteriors, unpack_posteriors
from forests import (
    CLASSES,
    SIZES,
    Counts,
    dtypes,
    new_rows,
    random_codes,
    random_forest,
    random_split_prior,
    random_trees,
)
from random_shapes import random_shape
from threads import PATIENCE


def bits(forest: Forest) -> list[bytes]:
    return [snapshot(post) for post in forest.posteriors]


# ---- bytes -----------------------------------------------------------------------------------------------------------


def odd_trees(rng: np.random.Generator) -> list[et.MetaTree]:
    """One node; one child a node; a fan of 300; thresholds and features that need many bytes; no width told."""
    return [
        et.MetaTree.complete([], n_features=4),
        et.MetaTree.complete([]),
        et.MetaTree.complete([0, 1, 2], [1, 1, 1, 1]),
        et.MetaTree.complete([3], 300, n_features=4),
        et.MetaTree.from_arrays([3, -1, -1], [1, -1, -1], [2, 0, 0], [65534, -1, -1]),
        et.MetaTree.from_arrays([70000, -1, -1], [1, -1, -1], [2, 0, 0], [0, -1, -1]),
        random_shape([3, 4], 2, rng=rng, kind="threshold", missing=True),
        et.MetaTree.from_arrays([0, -1, -1], [1, -1, -1], [2, 0, 0], missing_child=[1, -1, -1]),
        *random_trees(rng, 4),
    ]  # fmt: skip


def random_statistics(case: Case, rng: np.random.Generator, tree: et.MetaTree, split_prior: Any) -> et.Posterior:
    """A posterior that rows came to in several goes: in batches, one at a time, by a merge, with weights."""
    post, other = et.Posterior(tree, case.family, split_prior), et.Posterior(tree, case.family, split_prior)
    for n, to in ((30, post), (1, post), (1, post), (10, other), (0, post)):
        y, row_data = case.draw(rng, n)
        weight = rng.choice([0.0, 1.0, 0.3, 2.5], n) if rng.random() < 0.5 else None
        X = rng.integers(0, np.where(tree.n_codes > 0, tree.n_codes, 3), (n, tree.n_features))
        to.update(X.astype(np.uint16), y, weight, **row_data)
    return post.merge(other)


@pytest.mark.long
@families
@given(seed=seeds)
@examples(3)
def test_packed_posteriors_are_the_same_to_the_bit(case, seed):
    rng = np.random.default_rng(seed)
    for same_prior in (True, False):
        posteriors = [
            random_statistics(case, rng, tree, 0.5 if same_prior else random_split_prior(rng, tree))
            for tree in odd_trees(rng)
        ]
        packed = pickle.loads(pickle.dumps(pack_posteriors(posteriors)))
        for one, other in zip(posteriors, unpack_posteriors(packed), strict=True):
            assert one.tree == other.tree
            assert one.family == other.family
            assert one.n_rows == other.n_rows
            np.testing.assert_array_equal(one.split_prior, other.split_prior)
            for name in ARRAYS:
                assert getattr(one, name).tobytes() == getattr(other, name).tobytes(), name


def test_packed_posteriors_of_other_priors():
    """Families that differ from tree to tree and from node to node come back to the tree they belong to."""
    rng = rng_for("packed priors")
    trees = random_trees(rng, 3)
    posteriors = [et.Posterior(tree, et.Bernoulli(rng.uniform(1, 2, tree.n_nodes), 0.5)) for tree in trees]
    posteriors += [et.Posterior(trees[0], et.Bernoulli(alpha, 0.5), alpha) for alpha in (0.25, 0.75)]
    for one, other in zip(posteriors, unpack_posteriors(pack_posteriors(posteriors)), strict=True):
        assert one.family == other.family
        np.testing.assert_array_equal(one.split_prior, other.split_prior)


@families
@pytest.mark.parametrize(
    "again", [Forest.copy, copy.copy, copy.deepcopy, lambda forest: pickle.loads(pickle.dumps(forest))]
)
def test_copies_are_the_same_and_independent(case, again):
    rng = rng_for("copies", case)
    forest = random_forest(case, rng, sharpness=1.5 if case.name in CLASSES else 1.0)
    other, before = again(forest), bits(forest)
    assert bits(other) == before
    assert other.sharpness == forest.sharpness
    np.testing.assert_array_equal(other.weights, forest.weights)
    np.testing.assert_array_equal(other.n_codes, forest.n_codes)
    X, y, row_data = new_rows(case, rng)
    if case.name in CLASSES:
        np.testing.assert_array_equal(other.probs(X), forest.probs(X))
    np.testing.assert_array_equal(
        other.predictive(X, **row_data).log_prob(y), forest.predictive(X, **row_data).log_prob(y)
    )
    other.update(X, y, **row_data)
    assert bits(forest) == before
    assert bits(other) != before


def test_weights_by_evidence_follow_the_rows():
    rng = rng_for("evidence")
    posteriors = [et.Posterior(tree, et.Bernoulli()) for tree in random_trees(rng, 3)]
    forest = Forest(posteriors, weights="evidence", n_codes=SIZES)
    np.testing.assert_allclose(forest.weights, 1.0 / 3.0)
    X = random_codes(rng, 300)
    forest.update(X, X[:, 0])
    for one in (forest, forest.copy(), pickle.loads(pickle.dumps(forest))):
        evidence = [post.log_evidence for post in one.posteriors]
        np.testing.assert_allclose(one.weights, softmax(evidence))
        np.testing.assert_allclose(one.log_evidence, logsumexp(evidence) - np.log(3.0))
        np.testing.assert_allclose(one.probs(X), naive_forest.mixture(one, X).probs(), atol=1e-10)
        one.update(X[:50], 1 - X[:50, 0])
        np.testing.assert_allclose(one.weights, softmax([post.log_evidence for post in one.posteriors]))


def test_importances_are_the_weighted_mean():
    forest = random_forest(CASES[0], rng_for("importances"), n=200)
    expected = forest.weights @ [post.feature_importances() for post in forest.posteriors]
    np.testing.assert_allclose(forest.feature_importances(), expected / expected.sum())
    nothing = Forest([et.Posterior(et.MetaTree.complete([], n_features=2), et.Bernoulli())])
    np.testing.assert_array_equal(nothing.feature_importances(), [0.0, 0.0])


# ---- learning --------------------------------------------------------------------------------------------------------


@families
def test_shards_merged_are_all_rows(case):
    rng = rng_for("shards", case)
    empty = random_forest(case, rng, n=0)
    X, y, row_data = new_rows(case, rng, 90)
    whole = empty.copy().update(X, y, **row_data)
    merged = empty.copy()
    for part in np.array_split(rng.permutation(90), 3):
        assert merged.merge(empty.copy().update(X[part], y[part], **take(row_data, part))) is merged
    for one, other in zip(whole.posteriors, merged.posteriors, strict=True):
        assert_same(one, other)


def placeable(tree: et.MetaTree, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which rows a tree can place, and these with 0 wherever they are not asked."""
    placed = tree.is_terminal[naive_forest.ends([tree], X, SIZES)[:, 0]]
    plain = np.zeros_like(X)
    for i in np.flatnonzero(placed):
        asked = tree.feature[naive.path(tree, X[i])[:-1]]
        plain[i, asked] = X[i, asked]
    return placed, plain[placed]


@families
@dtypes
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_a_tree_cannot_place_are_left_out(case, dtype, weighted):
    rng = rng_for("unplaced", case, dtype, weighted)
    empty = random_forest(case, rng, n=0, n_trees=6)
    X, n = random_codes(rng, 60, dtype, 0.1, 0.0 if dtype is np.int64 else 0.1), 60
    y, row_data = case.draw(rng, n)
    weight = rng.choice([0.0, 0.5, 1.0, 3.0], n) if weighted else None
    forest = empty.copy().update(X, y, weight, **row_data)
    for post, start in zip(forest.posteriors, empty.posteriors, strict=True):
        placed, plain = placeable(post.tree, X)
        alone = start.copy().update(
            plain, y[placed], None if weight is None else weight[placed], **take(row_data, placed)
        )
        assert_same(post, alone)
    assert forest.n_rows == max(post.n_rows for post in forest.posteriors)


@pytest.mark.parametrize("code", [1, 7])
def test_missing_values_of_signed_tables_are_left_out_too(code):
    """No tree has branches for missing values. The last asks column 0 only of rows that have code 1 in column 1."""
    last = et.MetaTree.from_arrays([1, -1, 0, -1, -1], [1, -1, 3, -1, -1], [2, 0, 2, 0, 0], n_features=2)
    trees = [et.MetaTree.complete([0], 2, n_features=2), et.MetaTree.complete([1], 2, n_features=2), last]
    forest = Forest([et.Posterior(tree, et.Bernoulli()) for tree in trees], n_codes=[2, 2])
    forest.update(np.array([[-1, 0], [-1, 1], [0, 1], [code, 1]]), [0, 1, 1, 1])
    n_known = 2 if code == 1 else 1
    assert [post.n_rows for post in forest.posteriors] == [n_known, 4, n_known + 1]


@families
def test_a_failed_update_changes_nothing(case):
    """The last row is one that only the last tree can place, and a target that no family allows."""
    rng = rng_for("failed", case)
    trees = [et.MetaTree.complete([k], SIZES[k], n_features=4) for k in (0, 1, 2, 3)]
    forest = Forest([et.Posterior(tree, case.family) for tree in trees], n_codes=SIZES)
    X, (y, row_data) = random_codes(rng, 40), case.draw(rng, 40)
    forest.update(X, y, **row_data)
    before = bits(forest)
    wrong = np.array(y, dtype=float)
    wrong[-1] = np.nan
    unknown = X.copy()
    unknown[-1] = [9, 9, 9, 0]
    for codes in (X, unknown):
        with pytest.raises(ValueError, match="y"):
            forest.update(codes, wrong, **row_data)
        assert bits(forest) == before
    with pytest.raises(ValueError, match="sample_weight"):
        forest.update(unknown, y, [*[1.0] * 39, -1.0], **row_data)
    assert bits(forest) == before
    again = forest.copy().update(unknown, y, **row_data)
    forest.update(unknown, y, **row_data)
    assert bits(forest) == bits(again) != before


@pytest.mark.parametrize("wrong", [{"y": [0, 1]}, {"y": [0] * 5}, {"sample_weight": [1.0]}, {"sample_weight": 2.0}])
def test_columns_of_the_wrong_length_are_named(wrong):
    forest = Forest([et.Posterior(et.MetaTree.complete([0], 2), et.Bernoulli())], n_codes=[2])
    with pytest.raises(ValueError, match=next(iter(wrong))):
        forest.update(np.array([[0], [1], [9]], dtype=np.uint8), **({"y": [0, 1, 1]} | wrong))


def test_codes_of_every_integer_type_are_counted_alike():
    rng = rng_for("integer types")
    trees = random_trees(rng, 3)
    X = random_codes(rng, 40, np.int64, 0.1, 0.1)
    y = rng.integers(0, 2, 40)

    def counted(codes):
        return bits(Forest([et.Posterior(tree, et.Bernoulli()) for tree in trees], n_codes=SIZES).update(codes, y))

    for dtype in (np.uint8, np.uint16, np.int8, np.int16, np.int32):  # -1 becomes 255, 65535, and -1
        assert counted(X.astype(dtype)) == counted(X)


def test_a_posterior_that_occurs_twice():
    """Its rows would be counted twice. An equal one, with rows of its own, is another one."""
    post = et.Posterior(et.MetaTree.complete([0], 2), et.Bernoulli())
    for posteriors in ([post, post], [post, post.copy(), post]):
        with pytest.raises(ValueError, match="twice"):
            Forest(posteriors, n_codes=[2])
    forest = Forest([post, post.copy()], n_codes=[2]).update(np.array([[0], [9]], dtype=np.uint8), [0, 1])
    assert [one.n_rows for one in forest.posteriors] == [1, 1]


def test_what_cannot_be_merged():
    tree, other_tree = et.MetaTree.complete([0], 2), et.MetaTree.complete([0], 3)
    forest = Forest([et.Posterior(tree, et.Bernoulli()) for _ in range(2)])
    forest.update(np.zeros((2, 1), dtype=np.uint8), [0, 1])
    before = bits(forest)
    for other, match in (
        (Forest([et.Posterior(tree, et.Bernoulli())]), "1 trees"),
        (Forest([et.Posterior(tree, et.Bernoulli()), et.Posterior(other_tree, et.Bernoulli())]), "meta-tree"),
        (Forest([et.Posterior(tree, et.Bernoulli()), et.Posterior(tree, et.Bernoulli(2.0))]), "leaves"),
        (Forest([et.Posterior(tree, et.Bernoulli()), et.Posterior(tree, et.Bernoulli(), 0.1)]), "split_prior"),
    ):
        with pytest.raises(ValueError, match=match):
            forest.merge(other.update(np.zeros((1, 1), dtype=np.uint8), [1]))
    with pytest.raises(TypeError, match="Forest"):
        forest.merge(forest.posteriors[0])
    assert bits(forest) == before
    with pytest.raises(ValueError, match="merge a copy"):
        forest.merge(forest)
    assert bits(forest) == before
    assert forest.merge(forest.copy()).n_rows == 4


# ---- threads ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("busy_threads")
@pytest.mark.parametrize("unknown", [0.0, 0.02], ids=["together", "one tree after another"])
def test_readers_see_some_state_of_each_tree(unknown):
    rng = rng_for("readers", unknown)
    forest = Forest([et.Posterior(tree, et.Categorical(3)) for tree in random_trees(rng, 2, 4)], n_codes=SIZES)
    batches = [(random_codes(rng, 40, np.uint8, unknown, unknown), rng.integers(0, 3, 40)) for _ in range(12)]
    X = random_codes(rng, 9000, np.uint8, 0.01, 0.01)
    future, states = forest.copy(), []  # of each tree, after each batch
    for batch in [None, *batches]:
        if batch is not None:
            future.update(*batch)
        states.append([Forest([post], n_codes=SIZES).probs(X[:200]) for post in future.posteriors])
    seen: list[np.ndarray] = []
    done, failures = threading.Event(), []

    def work(job: Callable[[], None]) -> None:
        try:
            job()
        except BaseException as failure:
            failures.append(failure)
            done.set()

    def learn() -> None:
        for batch in batches:
            n_before = len(seen)
            forest.update(*batch)
            while len(seen) < n_before + 2 and not failures:
                pass  # so that readers meet every state
        done.set()

    def read() -> None:
        while not done.is_set():
            seen.append(forest.probs(X, n_jobs=2)[:200])

    threads = [threading.Thread(target=work, args=(job,), daemon=True) for job in (read, read, learn)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert not any(thread.is_alive() for thread in threads)
    assert not failures
    pairs = [0.5 * (one + other) for one, _ in states for _, other in states]
    for probs in seen:
        assert min(np.abs(probs - pair).max() for pair in pairs) < 1e-12
    np.testing.assert_allclose(forest.probs(X[:200]), 0.5 * sum(states[-1]), atol=1e-12)


OWN = Counts()
"""Trees with leaves of a family written in Python are updated one after another."""


@pytest.mark.usefixtures("busy_threads")
def test_a_failed_update_takes_nothing_of_others_with_it():
    """While one update is at tree 1 and about to fail, another thread teaches tree 0 a row."""
    trees = [et.MetaTree.complete([k], 2, n_features=2) for k in (0, 1)]
    forest = Forest([et.Posterior(tree, OWN) for tree in trees], n_codes=[2, 2])
    X = np.zeros((1, 2), dtype=np.uint8)
    other = threading.Thread(target=lambda: forest.posteriors[0].update(X, [1]), daemon=True)

    def fail(*_: Any, **__: Any) -> None:
        other.start()
        other.join(0.2)  # it may have to wait until this update is over
        raise RuntimeError("out of order")

    forest.posteriors[1].update = fail  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="out of order"):
        forest.update(np.array([[0, 0], [9, 0]], dtype=np.uint8), [0, 0])
    other.join(PATIENCE)
    np.testing.assert_array_equal(forest.posteriors[0].statistics[0], [0.0, 1.0])


def test_what_a_failed_update_showed_is_not_remembered():
    """A reader comes between two trees of an update that fails; then a row of the other class, of the same evidence."""
    trees = [et.MetaTree.complete([k], 2, n_features=2) for k in (0, 1)]
    forest = Forest([et.Posterior(tree, OWN) for tree in trees], n_codes=[2, 2])
    row = np.zeros((1, 2), dtype=np.uint8)

    def read_and_fail(*_: Any, **__: Any) -> None:
        forest.probs(row)
        raise RuntimeError("out of order")

    kept = forest.posteriors[1].update
    forest.posteriors[1].update = read_and_fail  # type: ignore[method-assign]
    with pytest.raises(RuntimeError, match="out of order"):
        forest.update(np.array([[0, 0], [9, 0]], dtype=np.uint8), [0, 0])
    forest.posteriors[1].update = kept  # type: ignore[method-assign]
    forest.posteriors[0].update(row, [1])
    np.testing.assert_allclose(forest.probs(row), naive_forest.mixture(forest, row).probs())
