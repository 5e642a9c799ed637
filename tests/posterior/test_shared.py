"""`update_all` is `update` on each posterior; nodes with the same conditions are evaluated once."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everytree as et
import naive
from cases import CASES, KINDS, assert_same, examples, families, rng_for, seeds, snapshot
from random_shapes import random_shape

BERNOULLI = CASES[0]
Leaf = None


# ---- trees -------------------------------------------------------------------------------------------------


def grown(root: Any, n_features: int | None = None) -> et.MetaTree:
    """A meta-tree from nested (feature, threshold, children); None is a terminal."""
    nodes, feature, first_child, n_children, threshold = [root], [], [], [], []
    for node in nodes:  # grows while it is read: level order
        asked, at, children = node or (-1, -1, [])
        feature.append(asked)
        threshold.append(at)
        n_children.append(len(children))
        first_child.append(len(nodes) if children else -1)
        nodes.extend(children)
    return et.MetaTree.from_arrays(feature, first_child, n_children, threshold, n_features=n_features)


def asks_in_order(order: tuple[int, ...], size: int = 2) -> et.MetaTree:
    """The complete tree whose nodes of depth d all ask feature order[d]."""
    root: Any = Leaf
    for feature in reversed(order):
        root = (feature, -1, [root] * size)
    return grown(root, n_features=len(order))


def pruned_at_random(rng: np.random.Generator, node: Any, keep: float) -> Any:
    """The same questions from the root down, with some nodes made terminal."""
    if node is Leaf or rng.random() > keep:
        return Leaf
    return (*node[:2], [pruned_at_random(rng, child, keep) for child in node[2]])


def random_trees(rng: np.random.Generator, n_trees: int, sizes: list[int], missing: bool) -> list[et.MetaTree]:
    kinds = rng.choice(KINDS, n_trees)
    depths = rng.integers(0, 5, n_trees)
    return [
        random_shape(sizes, int(depth), rng=rng, stop=0.15, kind=kind, missing=missing)
        for kind, depth in zip(kinds, depths, strict=True)
    ]


def table(rng: np.random.Generator, sizes: list[int], n: int, missing: bool = False) -> np.ndarray:
    X = rng.integers(0, sizes, (n, len(sizes))).astype(np.uint8)
    if missing:
        X[rng.random(X.shape) < 0.15] = 255
    return X


def posteriors_for(rng: np.random.Generator, trees: list[et.MetaTree], family: et.Family) -> list[et.Posterior]:
    """Empty ones with split priors of their own."""
    return [
        et.Posterior(tree, family, np.where(tree.is_terminal, 0.0, rng.uniform(0.05, 0.95, tree.n_nodes)))
        for tree in trees
    ]


def assert_update_all_is_separate_updates(posteriors: list[et.Posterior], *rows: Any, **row_data: Any) -> Any:
    separate = [post.copy().update(*rows, **row_data) for post in posteriors]
    report = et.update_all(posteriors, *rows, **row_data)
    for one, other in zip(posteriors, separate, strict=True):
        assert_same(one, other)
    return report


# ---- the law -----------------------------------------------------------------------------------------------


@families
@given(seed=seeds, missing=st.booleans())
@examples(12)
def test_random_trees(case, seed, missing):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 6, 3).tolist()
    posteriors = posteriors_for(rng, random_trees(rng, int(rng.integers(1, 7)), sizes, missing), case.family)
    for _ in range(2):  # the second call finds statistics already there
        n = int(rng.choice([0, 1, 5, 80]))
        y, row_data = case.draw(rng, n)
        X, weight = table(rng, sizes, n, missing), rng.choice([0.0, 0.5, 1.0, 2.0], n)
        assert_update_all_is_separate_updates(posteriors, X, y, weight, **row_data)


@families
@given(seed=seeds)
@examples(5)
def test_different_histories(case, seed):
    rng = np.random.default_rng(seed)
    trees = random_trees(rng, 3, [3, 3, 2], missing=False)
    posteriors = posteriors_for(rng, [tree for tree in trees for _ in range(2)], case.family)
    for post in posteriors:
        n = int(rng.integers(0, 10))
        y, row_data = case.draw(rng, n)
        post.update(table(rng, [3, 3, 2], n), y, **row_data)
    y, row_data = case.draw(rng, 30)
    assert_update_all_is_separate_updates(posteriors, table(rng, [3, 3, 2], 30), y, **row_data)


@given(seed=seeds)
@examples(20)
def test_trees_that_share_their_top_levels(seed):
    rng = np.random.default_rng(seed)
    full: Any = Leaf
    for feature in rng.permutation(4):
        full = (int(feature), -1, [full] * 2)
    trees = [grown(pruned_at_random(rng, full, keep), 4) for keep in rng.uniform(0.5, 1.0, 5)]
    posteriors = posteriors_for(rng, trees, BERNOULLI.family)
    assert_update_all_is_separate_updates(posteriors, table(rng, [2] * 4, 50), rng.integers(0, 2, 50))


@families
def test_the_order_of_the_questions_does_not_matter(case):
    rng = rng_for("permutations", case)
    posteriors = [et.Posterior(asks_in_order(order), case.family, 0.4) for order in permutations(range(3))]
    y, row_data = case.draw(rng, 100)
    assert_update_all_is_separate_updates(posteriors, table(rng, [2] * 3, 100), y, **row_data)
    ends = [np.sort(post.leaf_log_evidence[post.tree.is_terminal]) for post in posteriors]
    for other in ends[1:]:
        np.testing.assert_allclose(ends[0], other, rtol=1e-12)


@families
def test_identical_trees_with_other_priors(case):
    rng = rng_for("identical", case)
    tree = random_shape([3, 2, 4], 3, rng=rng, stop=0.1)
    posteriors = [et.Posterior(tree, case.family, prior) for prior in (0.0, 0.3, 1.0, et.depth_prior(0.9, 1.0))]
    y, row_data = case.draw(rng, 60)
    assert_update_all_is_separate_updates(posteriors, table(rng, [3, 2, 4], 60), y, **row_data)


LEAF_PRIORS = [  # one family, different priors, some of them for each of the 7 nodes
    [et.Bernoulli(0.5, 0.5), et.Bernoulli(2.0, 1.0), et.Bernoulli(np.linspace(0.1, 2.0, 7), 1.0)],
    [et.Normal(), et.Normal(1.0, 2.0, 3.0, 4.0), et.Normal(np.linspace(-1.0, 1.0, 7))],
    [et.LinearRegression(2), et.LinearRegression(2, 3.0), et.LinearRegression(2, mean=np.ones((7, 2)))],
]


@pytest.mark.parametrize("leaf_priors", LEAF_PRIORS, ids=lambda group: type(group[0]).__name__)
def test_leaf_priors_may_differ(leaf_priors):
    rng = rng_for("leaf priors", type(leaf_priors[0]).__name__)
    posteriors = [
        et.Posterior(asks_in_order(order), family) for family in leaf_priors for order in ((0, 1), (1, 0), (0, 1))
    ]
    row_data = {"inputs": rng.normal(size=(40, 2))} if isinstance(leaf_priors[0], et.LinearRegression) else {}
    assert_update_all_is_separate_updates(posteriors, table(rng, [2, 2], 40), rng.integers(0, 2, 40), **row_data)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int64, np.float64, list], ids=lambda t: t.__name__)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)], ids=str)
def test_trees_of_different_width(kind, order):
    """Trees that were not told their width read any table that has their columns."""
    trees = [grown((0, -1, [Leaf] * 2)), grown((3, -1, [(0, -1, [Leaf] * 2), Leaf])), grown((5, 1, [Leaf] * 2), 6)]
    rng = rng_for("width", kind)
    posteriors = [et.Posterior(trees[i], BERNOULLI.family) for i in order]
    X, y = table(rng, [2, 2, 2, 2, 2, 4], 50), rng.integers(0, 2, 50)
    assert_update_all_is_separate_updates(posteriors, X.tolist() if kind is list else X.astype(kind), y)


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.int64], ids=lambda t: t.__name__)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)], ids=str)
@pytest.mark.parametrize("branches", [(0, 1, 2), (-1, 0, 1), (-1, 1, 2)], ids=str)
def test_each_tree_has_its_own_say_about_missing_values(kind, order, branches):
    """Where one tree has no branch for it, the missing code is a code like any other, or no code at all (-1)."""
    arrays = ([0, -1, -1], [1, -1, -1], [2, 0, 0], [1, -1, -1])
    own_child = ([0, -1, -1, -1], [1, -1, -1, -1], [3, 0, 0, 0], [1, -1, -1, -1])
    trees = [
        et.MetaTree.from_arrays(
            *(own_child if branch == 2 else arrays), missing_child=[branch] + [-1] * (3 if branch == 2 else 2)
        )
        for branch in branches
    ]
    X, y = np.array([[0], [1], [2], [3], [-1], [-1]]).astype(kind), np.array([0, 1, 0, 1, 1, 1])
    posteriors = [et.Posterior(trees[i], BERNOULLI.family) for i in order]
    try:
        separate = [post.copy().update(X, y) for post in posteriors]
    except ValueError:
        before = [snapshot(post) for post in posteriors]
        with pytest.raises(ValueError, match="code -1"):
            et.update_all(posteriors, X, y)
        assert [snapshot(post) for post in posteriors] == before
        return
    et.update_all(posteriors, X, y)
    for one, other in zip(posteriors, separate, strict=True):
        assert_same(one, other)


@families
def test_same_bits_for_every_n_jobs(case):
    rng = rng_for("shared n_jobs", case)
    trees = random_trees(rng, 5, [4, 3, 5], missing=True)
    y, row_data = case.draw(rng, 30_000)
    X, weight = table(rng, [4, 3, 5], 30_000, missing=True), rng.uniform(0.0, 2.0, 30_000)
    results = []
    for n_jobs in (1, 2):
        posteriors = [et.Posterior(tree, case.family) for tree in trees]
        report = et.update_all(posteriors, X, y, weight, n_jobs=n_jobs, **row_data)
        results.append([report, *map(snapshot, posteriors)])
    assert results[0] == results[1]


# ---- how much is shared ------------------------------------------------------------------------------------


def condition_sets(tree: et.MetaTree) -> list[frozenset[Any]]:
    """For each node what its path says, feature by feature: (feature, lowest code, highest code, missing?).

    Nothing is said about the features that the path does not ask; no codes at all are written as None.
    """
    said: list[dict[int, tuple[float, float, bool]]] = [{}]
    for s in range(tree.n_nodes):
        for offset in range(tree.n_children[s]):
            low, high, missing = said[s].get(int(tree.feature[s]), (0.0, np.inf, True))
            threshold, is_missing = int(tree.threshold[s]), offset == tree.missing_child[s]
            if threshold >= 0 and offset < 2:
                bounds = (0.0, threshold) if offset == 0 else (threshold + 1, np.inf)
            else:
                bounds = (offset, offset) if threshold < 0 and not is_missing else (np.inf, -np.inf)
            low, high = max(low, bounds[0]), min(high, bounds[1])
            said.append(said[s] | {int(tree.feature[s]): (low, high, missing and is_missing)})
    return [
        frozenset((k, None if low > high else (low, high), missing) for k, (low, high, missing) in of_node.items())
        for of_node in said
    ]


def expected_report(posteriors: list[et.Posterior], X: np.ndarray) -> tuple[int, int]:
    """Touched nodes of all trees, and how many different sets of conditions they have."""
    n_touched, different = 0, set()
    for post in posteriors:
        sets = condition_sets(post.tree)
        touched = {s for row in X for s in naive.path(post.tree, row)}
        n_touched += len(touched)
        different |= {sets[s] for s in touched}
    return n_touched, len(different)


@pytest.mark.parametrize("missing", [False, True], ids=["no missing", "missing"])
@given(seed=seeds)
@examples(40)
def test_every_set_of_conditions_is_evaluated_once(missing, seed):
    """Equal leaf priors and no history; split priors play no part in a leaf's evidence."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 7, 3).tolist()
    posteriors = posteriors_for(rng, random_trees(rng, int(rng.integers(1, 6)), sizes, missing), BERNOULLI.family)
    X = table(rng, sizes, int(rng.choice([1, 10, 200])), missing)
    report = assert_update_all_is_separate_updates(posteriors, X, rng.integers(0, 2, len(X)))
    assert (report.nodes_touched, report.nodes_evaluated) == expected_report(posteriors, X)


def test_permutations_of_the_same_questions_share_what_they_can():
    trees = [asks_in_order(order) for order in permutations(range(3))]
    posteriors = [et.Posterior(tree, BERNOULLI.family) for tree in trees]
    X = np.array(list(np.ndindex(2, 2, 2)), dtype=np.uint8)
    report = et.update_all(posteriors, X, np.arange(8) % 2)
    # Of each feature a set says 0, 1 or nothing: 3^3 sets, in 6 trees of 15 nodes.
    assert (report.nodes_touched, report.nodes_evaluated) == (90, 27)
    assert (report.nodes_touched, report.nodes_evaluated) == expected_report(posteriors, X)


def test_a_condition_that_another_one_implies_says_nothing():
    wide_first = grown((0, 5, [(0, 3, [Leaf, Leaf]), Leaf]))
    narrow_first = grown((0, 3, [Leaf, (0, 5, [Leaf, Leaf])]))
    posteriors = [et.Posterior(tree, BERNOULLI.family) for tree in (wide_first, narrow_first)]
    X = np.arange(10, dtype=np.uint8)[:, None]
    report = assert_update_all_is_separate_updates(posteriors, X, np.arange(10) % 2)
    assert (report.nodes_touched, report.nodes_evaluated) == (10, 6)  # all, <= 3, 4..5, > 5, <= 5 and > 3


def test_the_missing_value_is_one_condition_wherever_it_is_asked():
    at_once = ([0, -1, -1, -1], [1, -1, -1, -1], [3, 0, 0, 0], [2, -1, -1, -1], [2, -1, -1, -1])
    later = (
        [0, -1, 0, -1, -1, -1],
        [1, -1, 3, -1, -1, -1],
        [2, 0, 3, 0, 0, 0],
        [2, -1, 4, -1, -1, -1],
        [1, -1, 2, -1, -1, -1],
    )
    trees = [et.MetaTree.from_arrays(*arrays[:4], missing_child=arrays[4]) for arrays in (at_once, later)]
    posteriors = [et.Posterior(tree, BERNOULLI.family) for tree in trees]
    X = np.array([[0], [3], [5], [255], [255]], dtype=np.uint8)
    report = assert_update_all_is_separate_updates(posteriors, X, np.array([0, 1, 1, 0, 1]))
    assert (report.nodes_touched, report.nodes_evaluated) == expected_report(posteriors, X)


def test_other_leaf_priors_and_histories_are_evaluated_on_their_own():
    tree, X, y = asks_in_order((0, 1)), np.array(list(np.ndindex(2, 2)), dtype=np.uint8), np.array([0, 1, 1, 0])
    posteriors = [et.Posterior(tree, et.Bernoulli(alpha)) for alpha in (0.5, 1.0, 0.5)]
    report = et.update_all(posteriors, X, y)
    assert (report.nodes_touched, report.nodes_evaluated) == (21, 14)
    posteriors[2].update(X[:1], y[:1])  # the nodes on one path now hold another row
    report = et.update_all([posteriors[0], posteriors[2]], X, y)
    assert (report.nodes_touched, report.nodes_evaluated) == (14, 7 + 3)


# ---- edges -------------------------------------------------------------------------------------------------


def test_no_posteriors_and_no_rows():
    X, y = np.zeros((3, 2), np.uint8), np.zeros(3)
    report = et.update_all([], X, y)
    assert (report.nodes_touched, report.nodes_evaluated) == (0, 0)
    posteriors = [et.Posterior(asks_in_order((0, 1)), BERNOULLI.family) for _ in range(2)]
    before = [snapshot(post) for post in posteriors]
    for rows in ((X[:0], y[:0]), (X, y, np.zeros(3))):
        report = et.update_all(posteriors, *rows)
        assert (report.nodes_touched, report.nodes_evaluated) == (0, 0)
    assert [snapshot(post) for post in posteriors] == before


TREE = asks_in_order((0, 1))
REFUSED = {  # what is wrong: (families, error, message)
    "other families": ((et.Bernoulli(), et.Normal()), ValueError, r"posteriors\[1\] has leaves Normal.*Bernoulli"),
    "two classes of two kinds": ((et.Bernoulli(), et.Categorical(2)), ValueError, r"posteriors\[1\] has leaves"),
    "other numbers of classes": ((et.Categorical(2), et.Categorical(3)), ValueError, r"posteriors\[1\] has leaves"),
    "other numbers of inputs": ((et.LinearRegression(1), et.LinearRegression(2)), ValueError, r"posteriors\[1\]"),
    "rates of two kinds": ((et.Poisson(), et.Poisson(), et.Exponential()), ValueError, r"posteriors\[2\]"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_mixed_families_are_refused(what):
    given_families, error, message = REFUSED[what]
    posteriors = [et.Posterior(TREE, family) for family in given_families]
    before = [snapshot(post) for post in posteriors]
    with pytest.raises(error, match=message):
        et.update_all(posteriors, np.zeros((2, 2), np.uint8), np.zeros(2))
    assert [snapshot(post) for post in posteriors] == before


def test_one_posterior_twice_is_refused():
    post = et.Posterior(TREE, BERNOULLI.family)
    before = snapshot(post)
    with pytest.raises(ValueError, match=r"posteriors\[2\] occurs twice"):
        et.update_all([post, post.copy(), post], np.zeros((2, 2), np.uint8), np.zeros(2))
    with pytest.raises(TypeError, match=r"posteriors\[1\] must be a Posterior, not MetaTree"):
        et.update_all([post, TREE], np.zeros((2, 2), np.uint8), np.zeros(2))
    assert snapshot(post) == before


BAD = {  # arguments that one tree at least must refuse: (arguments, message)
    "code of the last tree": ({"X": np.array([[0, 1, 0]] * 40 + [[0, 1, 2]], np.uint8)}, "column 2, row 40: code 2"),
    "narrow": ({"X": np.zeros((41, 2), np.uint8)}, "2 columns"),
    "target": ({"y": np.array([1.0] * 40 + [2.0])}, r"y\[40\] is 2"),
    "weight": ({"sample_weight": np.array([1.0] * 40 + [np.nan])}, r"sample_weight\[40\] is nan"),
    "too few targets": ({"y": np.ones(40)}, "y has 40 entries"),
}


@pytest.mark.parametrize("what", BAD)
@pytest.mark.parametrize("kind", [np.uint8, np.int64], ids=lambda t: t.__name__)
def test_a_call_that_fails_changes_none(what, kind):
    trees = [grown((0, -1, [Leaf] * 2)), asks_in_order((0, 1, 2)), grown((2, -1, [Leaf] * 2))]
    posteriors = [et.Posterior(tree, BERNOULLI.family) for tree in trees]
    et.update_all(posteriors, np.zeros((5, 3), np.uint8), np.ones(5))
    before = [snapshot(post) for post in posteriors]
    arguments, message = BAD[what]
    arguments = {"X": np.zeros((41, 3), np.uint8), "y": np.ones(41)} | arguments
    arguments["X"] = arguments["X"].astype(kind)
    with pytest.raises(ValueError, match=message):
        et.update_all(posteriors, **arguments)
    assert [snapshot(post) for post in posteriors] == before


def test_row_data_are_checked():
    posteriors = [et.Posterior(TREE, et.Poisson()) for _ in range(2)]
    X, y = np.zeros((4, 2), np.uint8), np.arange(4)
    with pytest.raises(TypeError, match="Poisson takes no 'censored'"):
        et.update_all(posteriors, X, y, censored=y)
    with pytest.raises(ValueError, match="exposure has 3 entries, but X has 4 rows"):
        et.update_all(posteriors, X, y, exposure=np.ones(3))
    with pytest.raises(ValueError, match=r"exposure\[0\] is 0"):
        et.update_all(posteriors, X, y, exposure=y)
    assert all(post.n_rows == 0 for post in posteriors)
    assert_update_all_is_separate_updates(posteriors, X, y, exposure=y + 1.0)
