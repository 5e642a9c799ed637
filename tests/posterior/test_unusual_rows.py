"""Rows that are unusual, but right: none at all, of no weight, of enormous weight, of any kind of number."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import betaln

import everytree as et
from cases import CASE, assert_same, families, random_codes, rng_for, take
from doors import GOOD_X, complete, doors, state
from refusals import unchanged


@doors
@families
def test_no_rows_change_nothing(case, door):
    posts = door.seasoned(case)
    y, row_data = case.draw(rng_for("none"), 4)
    nothing = slice(0, 0)
    with unchanged(state, *posts):
        for X in (GOOD_X[:0], np.empty((0, 2)), np.empty((0, 2), dtype=np.int64)):
            door.update(posts, X, y[:0], **take(row_data, nothing))
            door.update(posts, X, [], [], **take(row_data, nothing))
    dist = posts[0].predictive(GOOD_X[:0], **take(row_data, nothing))
    assert len(dist) == len(dist.mean()) == len(dist.variance()) == len(dist.log_prob([])) == 0


@doors
@families
def test_rows_of_weight_zero_count_as_absent(case, door):
    y, row_data = case.draw(rng_for("absent"), 4)
    posts = door.seasoned(case)
    with unchanged(state, *posts):
        door.update(posts, GOOD_X, y, np.zeros(4), **row_data)
    some, without = door.seasoned(case), door.seasoned(case)
    present = np.array([True, False, True, False])
    door.update(some, GOOD_X, y, present.astype(float), **row_data)
    door.update(without, GOOD_X[present], y[present], **take(row_data, present))
    assert [state(post) for post in some] == [state(post) for post in without]


@families
def test_a_tree_of_one_node_is_its_leaf(case):
    y, row_data = case.draw(rng_for("one node", case), 30)
    X = np.zeros((30, 3), dtype=np.uint8)
    post = et.Posterior(et.MetaTree.complete([]), case.family).update(X, y, **row_data)
    statistics = case.family.statistics(y, None, **row_data)
    expected = case.family.log_evidence(statistics.sum(axis=0, keepdims=True))[0]
    assert post.log_evidence == pytest.approx(expected, rel=1e-10)
    assert post.split_prob.tolist() == [0.0]
    grow = et.GrowingPosterior([1, 1, 1], case.family).update(X, y, **row_data)
    assert grow.log_evidence == pytest.approx(expected, rel=1e-10)
    empty = et.GrowingPosterior([], case.family).update(X[:, :0], y, **row_data)
    assert empty.log_evidence == pytest.approx(expected, rel=1e-10)


READABLE = {
    "uint16": lambda v: v.astype(np.uint16),
    "int8": lambda v: v.astype(np.int8),
    "int32": lambda v: v.astype(np.int32),
    "int64": lambda v: v.astype(np.int64),
    "uint64": lambda v: v.astype(np.uint64),
    "bool": lambda v: v.astype(bool),
    "float16": lambda v: v.astype(np.float16),
    "float32": lambda v: v.astype(np.float32),
    "float64": lambda v: v.astype(np.float64),
    "longdouble": lambda v: v.astype(np.longdouble),
    "big-endian": lambda v: v.astype(">i4"),
    "lists": lambda v: v.tolist(),
    "lists of floats": lambda v: v.astype(float).tolist(),
    "tuples": lambda v: tuple(map(tuple, v)) if v.ndim == 2 else tuple(v),
    "Fortran": np.asfortranarray,
    "memoryview": memoryview,
}


@doors
@pytest.mark.parametrize("kind", READABLE)
def test_numbers_of_every_kind_are_read_alike(door, kind):
    rng = rng_for("kinds")
    X, y, weight = (rng.integers(0, 2, shape).astype(np.uint8) for shape in ((40, 2), 40, 40))
    expected, got = door.seasoned(CASE["bernoulli"]), door.seasoned(CASE["bernoulli"])
    door.update(expected, X, y, weight)
    door.update(got, READABLE[kind](X), READABLE[kind](y), READABLE[kind](weight))
    assert [state(post) for post in got] == [state(post) for post in expected]


@doors
def test_read_only_and_strided_rows_are_read_where_they_lie(door):
    rng = rng_for("lie")
    X, y, weight = (rng.integers(0, 2, shape) for shape in ((80, 4), 80, 80))
    expected, got = door.seasoned(CASE["bernoulli"]), door.seasoned(CASE["bernoulli"])
    door.update(expected, X[::2, ::3].copy(), y[::2].copy(), weight[::2].copy())
    for array in (X, y, weight):
        array.flags.writeable = False
    door.update(got, X[::2, ::3], y[::2], weight[::2])
    assert [state(post) for post in got] == [state(post) for post in expected]


def test_a_tree_of_undeclared_width_learns_from_wider_tables():
    rng = rng_for("wider")
    tree = et.MetaTree.complete([0, 1, 1])
    X, y = rng.integers(0, 2, (50, 2)), rng.integers(0, 2, 50)
    expected = et.Posterior(tree, et.Bernoulli()).update(X, y)
    for rest in (-5, 70_000, 3):
        wider = np.column_stack([X, np.full(50, rest)])
        for table, targets in ((wider, y), (wider, y.tolist()), (wider.tolist(), y), (np.asfortranarray(wider), y)):
            assert_same(et.Posterior(tree, et.Bernoulli()).update(table, targets), expected)
            et.update_all([post := et.Posterior(tree, et.Bernoulli())], table, targets)
            assert_same(post, expected)


TREES = {
    "a narrow and a wide one": [([0], {}), ([2], {}), ([1], {})],
    "a missing branch in one of them": [([2], {}), ([0], {"missing_child": [2]}), ([1], {})],
    "two kinds of threshold": [
        ([0], {"threshold": [0]}),
        ([0], {"threshold": [0], "missing_child": [2]}),
        ([0], {"threshold": [0], "missing_child": [0]}),
    ],
}
WRITTEN = {
    "uint8": lambda X: X.astype(np.uint8),
    "uint8, Fortran": lambda X: np.asfortranarray(X.astype(np.uint8)),
    "uint16": lambda X: np.where(X < 0, 65535, X).astype(np.uint16),
    "int8": lambda X: X.astype(np.int8),
    "int64": np.asarray,
    "list": np.ndarray.tolist,
}


@pytest.mark.parametrize("order", [1, -1], ids=["given order", "other order"])
@pytest.mark.parametrize("written", WRITTEN)
@pytest.mark.parametrize("trees", TREES)
def test_update_all_is_an_update_of_each(trees, written, order):
    """Whatever the trees know of the table: each of them is asked in its own words."""
    rng = rng_for("each", trees)
    X, y = rng.integers(0, 2, (300, 3)), rng.integers(0, 2, 300)
    X[::7, 0] = -1 if any("missing_child" in options for _, options in TREES[trees]) else 0
    table = WRITTEN[written](X)

    def build() -> list[et.Posterior]:
        posts = []
        for features, options in TREES[trees][::order]:
            n = 3 if options.get("missing_child") == [2] else 2
            arrays = {name: values + [-1] * n for name, values in options.items()}
            tree = et.MetaTree.from_arrays(features + [-1] * n, [1] + [-1] * n, [n] + [0] * n, **arrays)
            posts.append(et.Posterior(tree, et.Bernoulli()))
        return posts

    each, together = build(), build()
    outcomes = set()
    for post in each:
        try:
            post.update(table, y)
            outcomes.add("accepted")
        except ValueError:
            outcomes.add("refused")
    if "refused" in outcomes:  # then none of them may change
        with pytest.raises(ValueError, match="X"):
            et.update_all(together, table, y)
        each = build()
    else:
        et.update_all(together, table, y)
    for one, other in zip(each, together, strict=True):
        assert_same(one, other)


@pytest.mark.parametrize("n_codes", [255, 256, 257, 300])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64, np.float64, list])
def test_a_growing_posterior_knows_its_last_code(n_codes, dtype):
    last = min(n_codes, 256 if dtype is np.uint8 else n_codes) - 1
    X = [[last], [0]] if dtype is list else np.array([[last], [0]], dtype=dtype)
    grow = et.GrowingPosterior([n_codes], et.Bernoulli()).update(X, np.array([0, 1]))
    assert grow.points.tolist() == [[last], [0]]
    assert grow.predictive(X).mean().tolist() == grow.predictive(np.array(X, dtype=np.uint16)).mean().tolist()


def test_the_evidence_of_a_hundred_million_rows():
    rng = rng_for("many")
    weight = np.array([30_000_000.0, 20_000_000.0, 10_000_000.0, 40_000_000.0])
    X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=np.uint8), np.array([0, 1, 0, 1])
    alpha, beta = 0.5, 0.75

    def leaf(rows: list[int]) -> float:
        ones, zeros = (weight[rows] * y[rows]).sum(), (weight[rows] * (1 - y[rows])).sum()
        return betaln(alpha + ones, beta + zeros) - betaln(alpha, beta)

    def either(g: float, stop: float, split: float) -> float:
        return np.logaddexp(np.log1p(-g) + stop, np.log(g) + split)

    expected = either(
        0.5,
        leaf([0, 1, 2, 3]),
        either(0.5, leaf([0, 1]), leaf([0]) + leaf([1])) + either(0.5, leaf([2, 3]), leaf([2]) + leaf([3])),
    )
    post = et.Posterior(complete(2), et.Bernoulli(alpha, beta)).update(X, y, weight)
    assert post.log_evidence == pytest.approx(expected, rel=1e-8)  # log gammas of 1e8 are 1e9: half their digits cancel
    pieces = et.Posterior(complete(2), et.Bernoulli(alpha, beta))
    for _ in range(100):
        order = rng.permutation(4)
        pieces.update(X[order], y[order], weight[order] / 100)
    np.testing.assert_allclose(pieces.log_evidence, expected, rtol=1e-8)
    for split_prior in (0.0, 1.0):
        sure = et.Posterior(complete(2), et.Bernoulli(alpha, beta), split_prior).update(X, y, weight)
        parts = [[0, 1, 2, 3]] if split_prior == 0.0 else [[0], [1], [2], [3]]
        assert sure.log_evidence == pytest.approx(sum(map(leaf, parts)), rel=1e-8)


@families
def test_enormous_weights_stay_finite(case):
    y, row_data = case.draw(rng_for("enormous", case), 4)
    post = et.Posterior(complete(2), case.family).update(GOOD_X, y, np.full(4, 1e8 / 4), **row_data)
    for name in ("leaf_log_evidence", "subtree_log_evidence", "split_prob", "statistics"):
        assert np.isfinite(getattr(post, name)).all()
    assert np.isfinite(post.predictive(GOOD_X, **row_data).log_prob(y)).all()


@families
def test_rows_that_are_alike_a_hundred_thousand_times(case):
    """One code table for all rows: every row in one leaf, in one batch or with one weight."""
    rng = rng_for("alike", case)
    tree = complete(2)
    X = np.repeat(random_codes(rng, tree, 1, sizes=2), 100_000, axis=0)
    y, row_data = case.draw(rng, 1)
    many = et.Posterior(tree, case.family).update(
        X, np.repeat(y, len(X)), **{name: np.repeat(values, len(X), axis=0) for name, values in row_data.items()}
    )
    one = et.Posterior(tree, case.family).update(X[:1], y, [1e5], **row_data)
    np.testing.assert_allclose(many.log_evidence, one.log_evidence, rtol=1e-9)
    np.testing.assert_allclose(many.split_prob, one.split_prob, rtol=1e-6)
