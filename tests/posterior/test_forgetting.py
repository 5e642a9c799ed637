"""Rows taken back: what is left is as if they had never been counted."""

from __future__ import annotations

import numpy as np
import pytest

import everytree as et
from cases import CASES, FAR_CASES, assert_same, random_codes, random_tree, rng_for, snapshot, take
from everytree.posterior.influence import predictions_without
from everytree.posterior.rows import Rows

N = 40


def counted(case, rng, *, weighted=True):
    """A tree, its rows in order, and a posterior of all of them."""
    tree = random_tree(rng)
    X, (y, data) = random_codes(rng, tree, N), case.draw(rng, N)
    weight = rng.uniform(0.0, 1.0, N) * (rng.random(N) < 0.9) if weighted else None
    return tree, X, y, weight, data


def of_rows(case, tree, X, y, weight, data, index):
    post = et.Posterior(tree, case.family, 0.6)
    return post.update(X[index], y[index], None if weight is None else weight[index], **take(data, index))


@pytest.mark.parametrize("case", [*CASES, *FAR_CASES], ids=str)
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_what_is_left_is_as_if_rows_had_never_been_counted(case, weighted):
    rng = rng_for(case, weighted)
    for _ in range(3):
        tree, X, y, weight, data = counted(case, rng, weighted=weighted)
        every, order = np.arange(N), rng.permutation(N)
        gone, left = order[:25], np.sort(order[25:])
        post = of_rows(case, tree, X, y, weight, data, every)
        for part in (gone[:10], gone[10:11], gone[11:]):  # in any order and any batches
            some = None if weight is None else weight[part]
            assert post.forget(X[part], y[part], some, **take(data, part)) is post
        assert_same(post, of_rows(case, tree, X, y, weight, data, left))
        post.forget(X[left], y[left], None if weight is None else weight[left], **take(data, left))
        assert not post.statistics.any()
        assert post.n_rows == 0
        np.testing.assert_allclose(post.split_prob, post.split_prior, atol=1e-15)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_that_were_never_counted_are_refused(case):
    rng = rng_for(case, "refused")
    tree, X, y, weight, data = counted(case, rng, weighted=False)
    half = np.arange(N // 2)
    post = of_rows(case, tree, X, y, weight, data, half)
    before = snapshot(post)
    with pytest.raises(ValueError, match="never counted"):
        post.forget(X, y, **data)
    assert snapshot(post) == before
    post.forget(X[half], y[half], **take(data, half))
    with pytest.raises(ValueError, match="never counted"):  # a second time
        post.forget(X[half], y[half], **take(data, half))


def test_another_target_in_a_leaf_of_its_own_is_refused():
    post = et.Posterior(et.MetaTree.complete([0]), et.Normal()).update([[0], [1], [1]], [1.5, 2.5, 3.5])
    with pytest.raises(ValueError, match="never counted"):
        post.forget([[0]], [1.25])
    post.forget([[0]], [1.5])


def test_a_forest_takes_rows_from_all_trees_or_none():
    rng = rng_for("forest")
    X, y = rng.integers(0, 2, (50, 2)).astype(np.uint8), rng.integers(0, 2, 50)
    X[:, 1] = np.arange(50) == 0  # one row has a leaf of its own in the second tree alone
    trees = [et.MetaTree.complete([0], n_features=2), et.MetaTree.complete([1], n_features=2)]

    def forest(index):
        return et.Forest([et.Posterior(tree, et.Bernoulli()).update(X[index], y[index]) for tree in trees])

    model = forest(np.arange(1, 50))
    before = [snapshot(post) for post in model.posteriors]
    with pytest.raises(ValueError, match="never counted"):
        model.forget(X[:1], y[:1])
    assert [snapshot(post) for post in model.posteriors] == before
    model.forget(X[1:20], y[1:20])
    for one, other in zip(model.posteriors, forest(np.arange(20, 50)).posteriors, strict=True):
        assert_same(one, other)


# ---- influence ------------------------------------------------------------------------------------------------------


def values(forest, X):
    if forest.family.has_classes:
        return forest.probs(X)
    return forest.moments(X)[0][:, None]


@pytest.mark.parametrize("case", [case for case in CASES if "inputs" not in case.family.row_data], ids=str)
@pytest.mark.parametrize("weights", [None, "evidence"])
def test_predictions_without_rows_are_those_of_a_forest_that_forgot_them(case, weights, monkeypatch):
    rng = rng_for(case, "influence", weights)
    tree, X, y, weight, data = counted(case, rng)
    other = random_tree(rng, max_depth=2)
    other = other if other.n_features == tree.n_features else tree
    X[:, :] = np.minimum(X, 1)  # codes that both trees know
    can_be_sharpened = case.family.has_classes or case.family.support.is_real_line
    is_plain = case.family.has_classes or not case.family.is_sharpened_by_power
    sharpness = 1.3 if can_be_sharpened and is_plain else 1.0

    def forest(index):
        posts = [of_rows(case, shape, X, y, weight, data, index) for shape in (tree, other)]
        return et.Forest(posts, weights=weights, sharpness=sharpness, n_codes=[2] * tree.n_features)

    group, X_new = rng.integers(0, 6, N), np.unique(X[:12], axis=0)
    X_new = np.vstack([X_new, np.full((1, X.shape[1]), 7, dtype=X.dtype)])  # a code that no tree has a branch for
    rows = Rows(X, y, weight, data)
    model = forest(np.arange(N))
    found = predictions_without(model, rows, group, X_new, None)
    expected = [values(forest(np.flatnonzero(group != g)), X_new) for g in range(6)]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)
    monkeypatch.setattr("everytree.posterior.influence.MAX_ENTRIES", 60)
    np.testing.assert_allclose(predictions_without(model, rows, group, X_new, None), found, rtol=1e-13, atol=1e-13)
    each = predictions_without(model, rows, np.arange(N), X_new, None)
    assert each.shape == (N, *found.shape[1:])
    np.testing.assert_allclose(each[3], values(forest(np.delete(np.arange(N), 3)), X_new), rtol=1e-10, atol=1e-10)


def test_influence_of_rows_that_were_never_counted_is_refused():
    forest = et.Forest([et.Posterior(et.MetaTree.complete([0]), et.Bernoulli()).update([[0], [1]], [0, 1])])
    rows = Rows(np.array([[0]], dtype=np.uint8), np.array([1]))
    with pytest.raises(ValueError, match="never counted"):
        predictions_without(forest, rows, np.array([0]), rows.codes, None)
