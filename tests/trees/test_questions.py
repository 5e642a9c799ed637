"""Questions about the tree against the enumeration of all pruned trees, or refits."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from scipy import stats

import everytree as et
import naive
from cases import CASES, FAR_CASES, examples, families, random_codes, random_tree, rng_for, seeds, take


def fitted(case, seed, n=14, max_depth=2):
    """A posterior and every pruned tree with its posterior probability."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, max_depth=max_depth)
    X = random_codes(rng, tree, n)
    y, row_data = case.draw(rng, n)
    split_prior = np.where(tree.is_terminal, 0.0, rng.uniform(0.1, 0.9, tree.n_nodes))
    post = et.Posterior(tree, case.family, split_prior).update(X, y, **row_data)
    everything = naive.brute_tree_posterior(tree, split_prior, lambda _: case.twin, X, y, **row_data)
    return post, {tuple(sorted(leaves)): prob for leaves, prob in everything.items()}, (X, y, row_data)


def trees_of(post, everything):
    return [(et.PrunedTree(post.tree, leaves), prob) for leaves, prob in everything.items()]


@families
@given(seed=seeds)
@examples(6)
def test_every_answer_equals_its_sum_over_all_trees(case, seed):
    post, everything, _ = fitted(case, seed)
    trees = trees_of(post, everything)
    for T, prob in trees:
        assert post.tree_log_prob(T) == pytest.approx(math.log(prob), rel=1e-10, abs=1e-10)
    nodes = range(post.tree.n_nodes)
    in_tree = [sum(p for T, p in trees if s in T.leaves or s in T.inner) for s in nodes]
    np.testing.assert_allclose(post.node_prob, in_tree, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(post.leaf_prob, [sum(p for T, p in trees if s in T.leaves) for s in nodes], atol=1e-12)
    assert post.entropy() == pytest.approx(-sum(p * math.log(p) for _, p in trees), rel=1e-10, abs=1e-12)
    over = post.prior_tree_distribution()
    log_prior = [over.log_split[T.inner].sum() + over.log_stop[T.leaves].sum() for T, _ in trees]
    divergence = sum(p * (math.log(p) - q) for (_, p), q in zip(trees, log_prior, strict=True))
    assert post.kl_from_prior() == pytest.approx(divergence, rel=1e-10, abs=1e-12)
    assert post.expected_leaves() == pytest.approx(sum(p * T.n_leaves for T, p in trees), rel=1e-10)
    counts = post.leaf_count_distribution()
    for i in range(len(counts)):
        assert counts[i] == pytest.approx(sum(p for T, p in trees if T.n_leaves == i), rel=1e-10, abs=1e-12)
    used = [sum(p for T, p in trees if (post.tree.feature[T.inner] == k).any()) for k in range(post.tree.n_features)]
    np.testing.assert_allclose(post.feature_inclusion_prob(), used, rtol=1e-10, atol=1e-12)


@families
@given(seed=seeds)
@examples(6)
def test_best_trees_are_the_best_of_all(case, seed):
    post, everything, _ = fitted(case, seed)
    ranked = sorted(everything.items(), key=lambda item: -item[1])
    top = post.top_trees(len(ranked) + 5)
    assert len(top) == len(ranked)
    np.testing.assert_allclose([t.log_prob for t in top], np.log([p for _, p in ranked]), rtol=1e-10, atol=1e-10)
    assert {tuple(t.tree.leaves.tolist()) for t in top} == set(everything)
    for t in top:
        assert post.tree_log_prob(t.tree) == pytest.approx(t.log_prob, rel=1e-10, abs=1e-10)
    best = post.map_tree()
    assert post.tree_log_prob(best) == pytest.approx(math.log(ranked[0][1]), rel=1e-10, abs=1e-10)
    few = post.top_trees(min(3, len(ranked)))
    assert [t.log_prob for t in few] == [t.log_prob for t in top[: len(few)]]


@given(seed=seeds)
@examples(5)
def test_importances_add_up_to_the_gain_in_expected_log_evidence(seed):
    case = CASES[0]
    post, everything, _ = fitted(case, seed)
    leaf = post.leaf_log_evidence
    mean = sum(prob * leaf[list(leaves)].sum() for leaves, prob in everything.items())
    gains = post.feature_importances(normalize=False)
    assert gains.sum() == pytest.approx(mean - leaf[0], rel=1e-9, abs=1e-10)
    scaled = post.feature_importances()
    assert (scaled >= 0.0).all()
    assert scaled.sum() == pytest.approx(1.0) or not (gains > 0.0).any()


def test_samples_have_the_posterior_frequencies():
    rng = rng_for("sample_trees")
    post, everything, _ = fitted(CASES[0], 5, n=8)
    draws = post.sample_trees(4000, rng=rng)
    likely = {leaves: p for leaves, p in everything.items() if p * len(draws) > 5.0}
    seen = [sum(tuple(T.leaves.tolist()) == leaves for T in draws) for leaves in likely]
    seen.append(len(draws) - sum(seen))
    expected = np.array([*likely.values(), 1.0 - sum(likely.values())]) * len(draws)
    kept = expected > 1e-9
    assert stats.chisquare(np.array(seen)[kept], expected[kept] * sum(seen) / expected[kept].sum()).pvalue > 1e-3


@pytest.mark.parametrize("case", [*CASES, *FAR_CASES], ids=str)
@given(seed=seeds)
@examples(5)
def test_leaving_a_row_out_is_refitting_without_it(case, seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    X = random_codes(rng, tree, 15)
    y, row_data = case.draw(rng, 15)
    weight = np.where(rng.random(15) < 0.5, rng.choice([0.5, 1.0, 2.0], 15), rng.random(15))
    empty = et.Posterior(tree, case.family, et.depth_prior(0.9, 0.5))
    loo = empty.copy().update(X, y, weight, **row_data).loo_log_prob(X, y, weight, **row_data)
    for i in range(15):
        others = np.arange(15) != i
        rest = empty.copy().update(X[others], y[others], weight[others], **take(row_data, others))
        alone = rest.predictive(X[i : i + 1], **take(row_data, slice(i, i + 1))).log_prob(y[i : i + 1])[0]
        assert loo[i] == pytest.approx(alone, rel=1e-9, abs=1e-9)


def test_leaving_out_a_row_that_was_never_there_is_refused():
    tree = et.MetaTree.complete([0])
    post = et.Posterior(tree, et.Bernoulli()).update([[0], [1]], [0, 1])
    with pytest.raises(ValueError, match="row 1 is not in this posterior"):
        post.loo_log_prob([[0], [0]], [0, 1])


def test_a_tree_of_another_meta_tree_is_refused():
    post = et.Posterior(et.MetaTree.complete([0]), et.Bernoulli())
    other = et.PrunedTree(et.MetaTree.complete([1]), [0])
    with pytest.raises(ValueError, match="another meta-tree"):
        post.tree_log_prob(other)
    with pytest.raises(TypeError, match="PrunedTree"):
        post.tree_log_prob([0])
    for k in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="k must be a whole number from 1"):
            post.top_trees(k)


def test_before_any_data_the_answers_are_those_of_the_prior():
    tree = et.MetaTree.complete([0, 1, 1])
    post = et.Posterior(tree, et.Bernoulli(), 0.5)
    assert post.kl_from_prior() == 0.0
    assert post.expected_leaves() == pytest.approx(0.5 + 0.5 * 2 * 1.5)
    assert post.map_tree().n_leaves == 1


def test_trees_of_probability_zero_are_left_out():
    tree = et.MetaTree.complete([0, 1, 1])
    post = et.Posterior(tree, et.Bernoulli(), [1.0, 0.5, 0.0, 0, 0, 0, 0])
    assert [t.tree.leaves.tolist() for t in post.top_trees(10)] == [[1, 2], [2, 3, 4]]
    assert post.entropy() == pytest.approx(math.log(2.0))


def test_long_chains_are_no_problem():
    n = 20_000
    feature = np.full(2 * n + 1, -1)
    first, children = np.full(2 * n + 1, -1), np.zeros(2 * n + 1, dtype=int)
    inner = np.concatenate([[0], np.arange(2, 2 * n - 1, 2)])
    feature[inner], children[inner], first[inner] = 0, 2, 1 + 2 * np.arange(len(inner))
    tree = et.MetaTree.from_arrays(feature, first, children, np.where(children > 0, 0, -1))
    post = et.Posterior(tree, et.Bernoulli(), 0.9)
    assert len(post.top_trees(5)) == 5
    assert post.map_tree().n_leaves >= 1
    assert np.isfinite(post.entropy())
