"""The shape: constructors, what follows from the arrays, identity, and trees that are deep or large."""

from __future__ import annotations

import copy
import pickle
from itertools import chain as concatenate
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everytree as et
import naive
import naive_families
from cases import KINDS, LONG, assert_same, examples, random_codes, random_tree, rng_for, seeds
from random_shapes import random_shape
from tree_cases import chain_tree, small_tree, split_of

NAMES = ("feature", "first_child", "n_children", "threshold", "missing_child")
DERIVED = ("parent", "depth", "is_terminal", "n_codes", "has_missing")


# ---- complete --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("features", "n_children", "counts"),
    [
        ([], 2, [1]),
        ([0], 2, [1, 2]),
        ([0, 1, 2], 2, [1, 2, 4]),
        ([2, 0, 0, 0], 3, [1, 3, 9]),
        ([1, 0, 0, 0], [2, 3], [1, 3, 6]),
        ([0, 1, 1, 0, 0, 0, 2, 2, 2], [2, 3, 4], [1, 2, 6, 18]),
        ([0, 1, 2, 0], 1, [1, 1, 1, 1, 1]),
        (np.array([0, 1, 1], dtype=np.uint8), np.array([2, 2]), [1, 2, 4]),
    ],
)
def test_a_complete_tree_has_full_levels(features, n_children, counts):
    tree = et.MetaTree.complete(features, n_children)
    assert np.bincount(tree.depth).tolist() == counts
    assert tree.depth[tree.is_terminal].tolist() == [len(counts) - 1] * counts[-1]
    assert tree.feature[~tree.is_terminal].tolist() == list(features)
    assert tree.n_terminals == counts[-1]
    if np.ndim(n_children):
        assert tree.n_children[~tree.is_terminal].tolist() == [n_children[k] for k in features]
        assert tree.n_features == len(n_children)


def test_a_tree_of_one_node_reads_any_table():
    tree = et.MetaTree.complete([])
    assert (tree.n_nodes, tree.n_features, tree.n_terminals, tree.depth.tolist()) == (1, 0, 1, [0])
    for width in (0, 1, 5):
        assert tree.route(np.full((3, width), 200, dtype=np.uint8)).tolist() == [0, 0, 0]


# ---- random ----------------------------------------------------------------------------------------------------------


def assert_asks_nothing_twice(tree: et.MetaTree, sizes: list[int]) -> None:
    """Every answer of every question is possible, given the answers above."""
    allowed = {0: [set(range(size)) for size in sizes]}
    for s in np.flatnonzero(~tree.is_terminal):
        k, t = tree.feature[s], tree.threshold[s]
        for offset, child in enumerate(naive.children(tree, s)):
            if t >= 0 and offset < 2:
                answer = {c for c in allowed[s][k] if (c > t) == offset}
            elif t < 0 and offset != tree.missing_child[s]:
                answer = {offset} & allowed[s][k]
            else:
                answer = {-1}
            assert answer, f"node {s}: nothing goes to child {offset}"
            allowed[child] = [answer if j == k else left for j, left in enumerate(allowed[s])]


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds, max_depth=st.integers(0, 4), stop=st.sampled_from([0.0, 0.3, 1.0]))
@examples(15)
def test_a_random_tree_keeps_its_promises(kind, missing, seed, max_depth, stop):
    sizes = np.random.default_rng(seed).integers(1, 5, size=3).tolist()
    options = {"stop": stop, "kind": kind, "missing": missing}
    tree = random_shape(sizes, max_depth, rng=seed, **options)
    assert tree == random_shape(sizes, max_depth, rng=np.random.default_rng(seed), **options)
    assert tree.depth.max() <= max_depth
    assert tree.n_features == len(sizes)
    inner = ~tree.is_terminal
    if kind == "multiway":
        assert (tree.threshold == -1).all()
    if kind == "threshold":
        assert (tree.threshold[inner] >= 0).all()
    assert ((tree.missing_child[inner] >= 0) == missing).all()
    assert_asks_nothing_twice(tree, sizes)
    if stop == 1.0:
        assert tree.n_nodes == 1


def test_other_seeds_give_other_trees():
    assert len({random_shape([3, 3, 3], 3, rng=seed, stop=0.3) for seed in range(20)}) > 10


@pytest.mark.parametrize("kind", KINDS)
def test_without_stopping_a_random_tree_goes_on_while_there_is_something_to_ask(kind):
    tree = random_shape([2, 2, 2], 5, rng=rng_for("go on", kind), kind=kind)
    assert (tree.depth[tree.is_terminal] == 3).all()


# ---- what follows from the arrays ------------------------------------------------------------------------------------


@given(seed=seeds)
@examples(40)
def test_level_order_parent_and_depth_agree(seed):
    tree = random_tree(np.random.default_rng(seed), max_depth=4)
    assert tree.parent[0] == -1
    assert tree.depth[0] == 0
    assert (np.diff(tree.depth) >= 0).all()
    family = list(concatenate.from_iterable(naive.children(tree, s) for s in range(tree.n_nodes)))
    assert family == list(range(1, tree.n_nodes))  # level order: everybody's children, one after another
    for s in range(tree.n_nodes):
        assert tree.is_terminal[s] == naive.is_terminal(tree, s)
        for child in naive.children(tree, s):
            assert (tree.parent[child], tree.depth[child]) == (s, tree.depth[s] + 1)
    assert tree.n_nodes == len(tree.feature)
    assert tree.n_terminals == tree.is_terminal.sum()


@given(seed=seeds)
@examples(20)
def test_arrays_rebuild_the_tree_and_do_not_follow_what_they_were_made_from(seed):
    tree = random_tree(np.random.default_rng(seed))
    given_arrays = {name: getattr(tree, name).copy() for name in NAMES}
    twin = et.MetaTree.from_arrays(**given_arrays, n_features=tree.n_features)
    assert twin == tree
    assert hash(twin) == hash(tree)
    for array in given_arrays.values():
        array += 1
    assert twin == tree


@pytest.mark.parametrize("name", NAMES + DERIVED)
def test_arrays_are_read_only(name):
    for tree in (small_tree(), et.MetaTree.complete([0, 1, 1]), pickle.loads(pickle.dumps(small_tree()))):
        array = getattr(tree, name)
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1
        assert array.dtype == (bool if name in ("is_terminal", "has_missing") else np.int32)


# ---- identity --------------------------------------------------------------------------------------------------------


def test_equal_trees_are_equal_and_hash_alike():
    for build in (small_tree, lambda: et.MetaTree.complete([0, 1, 1]), lambda: split_of(3, missing_child=2)):
        tree = build()
        assert tree == build()
        assert hash(tree) == hash(build())
        assert len({tree, build()}) == 1
        for other in (pickle.loads(pickle.dumps(tree)), copy.copy(tree), copy.deepcopy(tree)):
            assert other == tree
            assert hash(other) == hash(tree)
            assert repr(other) == repr(tree)


def test_trees_that_differ_in_one_thing_differ():
    trees = [
        split_of(2),
        split_of(3),
        split_of(3, missing_child=2),
        split_of(2, threshold=0),
        split_of(2, threshold=1),
        split_of(2, threshold=1, missing_child=0),
        split_of(2, threshold=1, missing_child=1),
        et.MetaTree.complete([1]),
        et.MetaTree.complete([0], n_features=1),
        et.MetaTree.complete([0], n_features=2),
        et.MetaTree.complete([]),
    ]
    assert len(set(trees)) == len(trees)
    assert all(one != other for one, other in combinations(trees, 2))
    assert trees[0] != "a tree"
    assert trees[0] != None  # noqa: E711


def test_repr_tells_the_size():
    assert repr(et.MetaTree.complete([0, 1, 2])) == "MetaTree(n_nodes=7, n_terminals=4, depth=2, n_features>=3)"
    assert "n_features=9" in repr(et.MetaTree.complete([0, 1, 2], n_features=9))
    assert "n_features=0" in repr(et.MetaTree.complete([], n_features=0))


@given(seed=seeds)
@examples(15)
def test_a_pickled_tree_routes_alike(seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    X = random_codes(rng, tree, 20)
    before = pickle.loads(pickle.dumps(tree))
    np.testing.assert_array_equal(before.route(X), tree.route(X))
    after = pickle.loads(pickle.dumps(tree))  # once the tree has been used
    np.testing.assert_array_equal(after.route(X), tree.route(X))


# ---- deep and large --------------------------------------------------------------------------------------------------

DEPTH = 60
WAYS = {
    "thresholds on one feature": lambda: (
        chain_tree([0] * DEPTH, [0] * DEPTH, list(range(DEPTH - 1, -1, -1))),
        np.arange(DEPTH + 1)[:, None],
    ),
    "rising thresholds on one feature": lambda: (
        chain_tree([1] * DEPTH, [0] * DEPTH, list(range(DEPTH))),
        np.arange(DEPTH + 1)[:, None],
    ),
    "multiway": lambda: (
        chain_tree([0] * DEPTH, list(range(DEPTH))),
        np.concatenate([np.eye(DEPTH, dtype=int), np.zeros((1, DEPTH), dtype=int)]),
    ),
    "multiway, one code each": lambda: (
        et.MetaTree.complete(list(range(DEPTH)), 1),
        np.zeros((3, DEPTH), dtype=int),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_chains_sixty_deep(way):
    tree, X = WAYS[way]()
    rng = rng_for("chain")
    assert tree.depth.max() == DEPTH
    for dtype in (np.uint8, np.uint16, np.int64):
        assert tree.route(X.astype(dtype)).tolist() == [naive.path(tree, row)[-1] for row in X]
    y = rng.integers(0, 2, len(X))
    post = et.Posterior(tree, et.Bernoulli(0.5, 0.5), 0.9).update(X, y)
    split_prob, subtree, log_evidence = naive.theorem_1(
        tree, [0.9] * tree.n_nodes, lambda _: naive_families.Bernoulli(0.5, 0.5), X, y
    )
    assert post.log_evidence == pytest.approx(log_evidence, rel=1e-10)
    np.testing.assert_allclose(post.split_prob, split_prob, rtol=1e-10, atol=1e-300)
    np.testing.assert_allclose(post.subtree_log_evidence, subtree, rtol=1e-10, atol=1e-10)
    one_by_one = et.Posterior(tree, et.Bernoulli(0.5, 0.5), 0.9)
    for i in rng.permutation(len(X)):
        one_by_one.update(X[i : i + 1], y[i : i + 1])
    assert_same(post, one_by_one)
    assert et.PrunedTree(tree, np.flatnonzero(tree.is_terminal)).depth == DEPTH


@pytest.mark.long
def test_one_row_of_a_tree_of_a_million_nodes_touches_its_path_alone():
    depth, family = 23 if LONG else 19, et.Bernoulli(0.5, 0.5)
    large = et.MetaTree.complete(np.repeat(np.arange(depth), 2 ** np.arange(depth)))
    assert large.n_nodes == 2 ** (depth + 1) - 1
    x = rng_for("large").integers(0, 2, depth).astype(np.uint8)
    small = chain_tree(x.tolist(), list(range(depth)))
    post, twin = et.Posterior(large, family, 0.7), et.Posterior(small, family, 0.7)
    for y in (1, 0, 1, 1):
        post.update(x[None], np.array([y]))
        twin.update(x[None], np.array([y]))
    path, same = naive.path(large, x), naive.path(small, x)
    assert large.route(x[None]).tolist() == path[-1:]
    assert np.flatnonzero(post.statistics.any(axis=1)).tolist() == path
    assert np.flatnonzero(post.leaf_log_evidence).tolist() == path
    assert np.flatnonzero(post.subtree_log_evidence).tolist() == path
    changed = post.split_prob != np.where(large.is_terminal, 0.0, 0.7)
    assert set(np.flatnonzero(changed).tolist()) <= set(path[:-1])
    for name in ("split_prob", "leaf_log_evidence", "subtree_log_evidence", "statistics"):
        np.testing.assert_array_equal(getattr(post, name)[path], getattr(twin, name)[same])
    assert post.log_evidence == twin.log_evidence
    assert post.predictive(x[None]).mean() == twin.predictive(x[None]).mean()
