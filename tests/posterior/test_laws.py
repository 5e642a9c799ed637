"""The laws, over every family, random trees and random data."""

from __future__ import annotations

import pickle
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given

import everytree as et
import naive
import naive_families
from cases import (
    ARRAYS,
    CASES,
    FAR_CASES,
    Case,
    assert_same,
    examples,
    families,
    random_codes,
    random_tree,
    rng_for,
    seeds,
    snapshot,
    take,
)
from random_shapes import random_shape

far_families = pytest.mark.parametrize("case", FAR_CASES, ids=str)


def setup(case: Case, seed: int, n: int = 40, **options):
    """A random tree, rows for it, and an empty posterior with random split priors."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, **options)
    X = random_codes(rng, tree, n)
    y, row_data = case.draw(rng, n)
    split_prior = np.where(tree.is_terminal, 0.0, rng.uniform(0.05, 0.95, tree.n_nodes))
    return rng, tree, X, y, row_data, et.Posterior(tree, case.family, split_prior)


# ---- law 1 -------------------------------------------------------------------------------------------------------


@families
@given(seed=seeds)
@examples(15)
def test_one_batch_is_row_by_row_is_any_order_is_shards_merged(case, seed):
    rng, _, X, y, row_data, empty = setup(case, seed)
    assert_any_order(empty, rng, X, y, rng.choice([0.0, 0.5, 1.0, 2.0], len(y)), row_data)


def assert_any_order(empty: et.Posterior, rng: np.random.Generator, X, y, weight, row_data) -> None:
    """Law 1 for these rows."""
    batch = empty.copy().update(X, y, weight, **row_data)

    one_by_one = empty.copy()
    for i in range(len(y)):
        one_by_one.update(X[i : i + 1], y[i : i + 1], weight[i : i + 1], **take(row_data, slice(i, i + 1)))
    assert_same(batch, one_by_one)

    order = rng.permutation(len(y))
    assert_same(batch, empty.copy().update(X[order], y[order], weight[order], **take(row_data, order)))

    chunked, merged = empty.copy(), empty.copy()
    shard = rng.integers(0, 7, len(y))
    for s in range(7):
        mine = shard == s
        chunked.update(X[mine], y[mine], weight[mine], **take(row_data, mine))
        merged.merge(empty.copy().update(X[mine], y[mine], weight[mine], **take(row_data, mine)))
    assert_same(batch, chunked)
    assert_same(batch, merged)


@families
@given(seed=seeds)
@examples(5)
def test_counts_that_are_kept_are_those_that_are_copied(case, seed):
    _, tree, X, y, row_data, empty = setup(case, seed)
    post = empty.update(X, y, **row_data)
    counts, priors = post.statistics.copy(), post.split_prior
    kept = et.Posterior.from_counts(tree, case.family, priors, counts, len(y))
    assert_same(kept, et.Posterior.from_statistics(tree, case.family, priors, post.statistics, len(y)))
    kept.update(X, y, **row_data)
    assert np.array_equal(kept.statistics, counts)
    assert_same(kept, post.update(X, y, **row_data))


@families
@given(seed=seeds)
@examples(5)
def test_a_weight_is_a_number_of_copies(case, seed):
    rng, _, X, y, row_data, empty = setup(case, seed)
    copies = rng.integers(0, 4, len(y))
    weighted = empty.copy().update(X, y, copies, **row_data)
    repeated = empty.copy().update(
        np.repeat(X, copies, axis=0),
        np.repeat(y, copies),
        **take(row_data, np.repeat(np.arange(len(y)), copies)),
    )
    for name in ARRAYS:
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-10, atol=1e-10)


# ---- law 2 -------------------------------------------------------------------------------------------------------


@families
@given(seed=seeds)
@examples(8)
def test_one_step_ahead_log_probs_add_up_to_the_log_evidence(case, seed):
    _, _, X, y, row_data, post = setup(case, seed)
    total = 0.0
    for i in range(len(y)):
        row = slice(i, i + 1)
        total += post.predictive(X[row], **take(row_data, row)).log_prob(y[row])[0]
        post.update(X[row], y[row], **take(row_data, row))
    assert total == pytest.approx(post.log_evidence, rel=1e-10, abs=1e-10)


# ---- laws 3 and 6 ------------------------------------------------------------------------------------------------


@families
@given(seed=seeds)
@examples(6)
def test_enumeration_of_all_pruned_trees_agrees(case, seed):
    rng, tree, X, y, row_data, post = setup(case, seed, n=12, max_depth=2)
    post.update(X, y, **row_data)
    model = (tree, post.split_prior, lambda _: case.twin, X, y)
    assert post.log_evidence == pytest.approx(naive.brute_log_evidence(*model, **row_data), rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(post.split_prob, naive.brute_split_prob(*model, **row_data), rtol=1e-10, atol=1e-10)

    x_new = random_codes(rng, tree, 2)
    y_new, new_data = case.draw(rng, 2)
    dist = post.predictive(x_new, **new_data)
    for i in range(2):
        at = dict(row_data_new=take(new_data, i), **row_data)
        expected = naive.brute_log_predictive(*model, x_new[i], y_new[i], **at)
        assert dist.log_prob(y_new)[i] == pytest.approx(expected, rel=1e-10, abs=1e-10)
        mean, variance = naive.brute_moments(*model, x_new[i], **at)
        np.testing.assert_allclose(dist.mean()[i], mean, rtol=1e-10)
        np.testing.assert_allclose(dist.variance()[i], variance, rtol=1e-10)


@families
@given(seed=seeds)
@examples(6)
def test_the_papers_results_agree(case, seed):
    _, tree, X, y, row_data, post = setup(case, seed, n=20)
    post.update(X, y, **row_data)
    model = (tree, post.split_prior, lambda _: case.twin, X, y)
    for result in (naive.theorem_1, naive.corollary_1):
        split_prob, subtree, log_evidence = result(*model, **row_data)
        np.testing.assert_allclose(post.split_prob, split_prob, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(post.subtree_log_evidence, subtree, rtol=1e-10, atol=1e-10)
        assert post.log_evidence == pytest.approx(log_evidence, rel=1e-10, abs=1e-10)
    split_prob, log_evidence = naive.proposition_1(*model, **row_data)
    np.testing.assert_allclose(post.split_prob, split_prob, rtol=1e-10, atol=1e-10)
    assert post.log_evidence == pytest.approx(log_evidence, rel=1e-10, abs=1e-10)
    visited, _, log_evidence = naive.corollary_2(tree, post.split_prior, case.twin, X, y, **row_data)
    assert post.log_evidence == pytest.approx(log_evidence, rel=1e-10, abs=1e-10)
    for node, split in visited.items():
        assert post.split_prob[node] == pytest.approx(split, rel=1e-10, abs=1e-10)


EXACT = [
    (et.Bernoulli(0.5, 0.75), naive_families.Bernoulli(Fraction(1, 2), Fraction(3, 4)), 2),
    (et.Categorical(3, 0.25), naive_families.Categorical(3, [Fraction(1, 4)] * 3), 3),
    (et.Geometric(1.5, 0.5), naive_families.Geometric(Fraction(3, 2), Fraction(1, 2)), 5),
]


@pytest.mark.parametrize(("family", "twin", "n_values"), EXACT, ids=lambda v: type(v).__name__)
@given(seed=seeds)
@examples(10)
def test_exact_rational_arithmetic_agrees(family, twin, n_values, seed):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, max_depth=2)
    X, y = random_codes(rng, tree, 10), rng.integers(0, n_values, 10)
    eighths = np.where(tree.is_terminal, 0, rng.integers(1, 8, tree.n_nodes))
    post = et.Posterior(tree, family, eighths / 8).update(X, y)
    model = (tree, [Fraction(int(g), 8) for g in eighths], lambda _: twin, X, [int(v) for v in y])
    assert np.exp(post.log_evidence) == pytest.approx(float(naive.brute_evidence_fraction(*model)), rel=1e-10)
    exact = [float(g) for g in naive.brute_split_prob_fraction(*model)]
    np.testing.assert_allclose(post.split_prob, exact, rtol=1e-10)
    x_new = random_codes(rng, tree, 1)
    for value in range(n_values):
        expected = float(naive.brute_predictive_fraction(*model, x_new[0], value))
        assert np.exp(post.predictive(x_new).log_prob([value])[0]) == pytest.approx(expected, rel=1e-10)


# ---- law 4 -------------------------------------------------------------------------------------------------------


@families
@given(seed=seeds)
@examples(5)
def test_no_data_is_the_prior_and_untouched_nodes_keep_it(case, seed):
    _, tree, X, y, row_data, post = setup(case, seed)
    assert post.log_evidence == 0.0
    np.testing.assert_array_equal(post.split_prob, post.split_prior)
    before = snapshot(post)
    post.update(X[:0], y[:0], **take(row_data, slice(0, 0)))
    post.update(X, y, np.zeros(len(y)), **row_data)
    assert snapshot(post) == before

    post.update(X[:3], y[:3], **take(row_data, slice(0, 3)))
    touched = np.zeros(tree.n_nodes, dtype=bool)
    for row in X[:3]:
        touched[naive.path(tree, row)] = True
    np.testing.assert_array_equal(post.split_prob[~touched], post.split_prior[~touched])
    assert not post.statistics[~touched].any()
    assert not post.leaf_log_evidence[~touched].any()


# ---- law 5 (as far as predictives go here) -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "case", [c for c in CASES if c.name in ("bernoulli", "categorical", "geometric", "poisson")], ids=str
)
def test_predictive_mass_is_one(case):
    rng, tree, X, y, row_data, post = setup(case, 7)
    post.update(X, y, **row_data)
    x_new = np.repeat(random_codes(rng, tree, 1), 20000, axis=0)
    log_prob = post.predictive(x_new).log_prob(np.arange(20000))
    assert np.exp(log_prob).sum() == pytest.approx(1.0, abs=1e-5 if case.name == "geometric" else 1e-10)
    if hasattr(case.family, "size") and case.family.size:
        np.testing.assert_allclose(post.predictive(x_new[:1]).probs().sum(axis=1), 1.0, rtol=1e-12)


# ---- law 9 -------------------------------------------------------------------------------------------------------


@families
def test_same_bits_for_every_n_jobs_and_after_pickle_and_copy(case):
    rng = rng_for("n_jobs", case)
    tree = random_shape([3, 4, 2, 5, 2], 5, rng=rng)
    X = random_codes(rng, tree, 50_000)
    y, row_data = case.draw(rng, len(X))
    one = et.Posterior(tree, case.family).update(X, y, **row_data)
    for n_jobs in (2, 3, -1):
        assert snapshot(et.Posterior(tree, case.family).update(X, y, n_jobs=n_jobs, **row_data)) == snapshot(one)
    pieces = et.Posterior(tree, case.family)
    for begin in range(0, len(X), 5000):  # smaller than the chunks that are summed up on threads
        here = slice(begin, begin + 5000)
        pieces.update(X[here], y[here], **take(row_data, here))
    assert pieces.log_evidence == pytest.approx(one.log_evidence, rel=1e-12)
    for other in (one.copy(), pickle.loads(pickle.dumps(one))):
        assert snapshot(other) == snapshot(one)
        other.update(X[:5], y[:5], **take(row_data, slice(0, 5)))
        assert snapshot(other) != snapshot(one)


@pytest.mark.parametrize("growing", [False, True], ids=["meta-tree", "growing"])
def test_what_is_next_to_impossible_keeps_its_digits(growing):
    """Law 2 for an outlier: the trees that explain it have a posterior probability far below 1e-16."""
    X = np.repeat([[0], [1]], 8, axis=0).astype(np.uint8)
    y = np.repeat([1, 40], 8)
    family = et.Poisson(1.0, 1.0)
    post = et.GrowingPosterior([2], family) if growing else et.Posterior(et.MetaTree.complete([0]), family)
    post.update(X, y)
    before = post.log_evidence
    alone = post.predictive(X[:1]).log_prob([400])[0]
    post.update(X[:1], [400])
    assert alone == pytest.approx(post.log_evidence - before, rel=1e-10)


# ---- law 10 ------------------------------------------------------------------------------------------------------


@far_families
@given(seed=seeds)
@examples(4)
def test_any_order_with_any_weights_far_from_zero(case, seed):
    rng, _, X, y, row_data, empty = setup(case, seed)
    assert_any_order(empty, rng, X, y, rng.random(len(y)), row_data)


@far_families
@given(seed=seeds)
@examples(3)
def test_the_chain_rule_after_rows_of_any_weights_far_from_zero(case, seed):
    rng, _, X, y, row_data, post = setup(case, seed)
    seen = slice(0, 20)
    post.update(X[seen], y[seen], rng.random(20), **take(row_data, seen))
    total = post.log_evidence
    for i in range(20, len(y)):
        row = slice(i, i + 1)
        total += post.predictive(X[row], **take(row_data, row)).log_prob(y[row])[0]
        post.update(X[row], y[row], **take(row_data, row))
    assert total == pytest.approx(post.log_evidence, rel=1e-10, abs=1e-10)


@far_families
@given(seed=seeds)
@examples(3)
def test_enumeration_agrees_with_any_weights_far_from_zero(case, seed):
    rng, tree, X, y, row_data, post = setup(case, seed, n=12, max_depth=2)
    weight = rng.random(len(y))
    post.update(X, y, weight, **row_data)
    model = (tree, post.split_prior, lambda _: case.twin, X, y)
    exact = naive.brute_log_evidence(*model, weights=weight, **row_data)
    assert post.log_evidence == pytest.approx(exact, rel=1e-10, abs=1e-10)
    exact = naive.brute_split_prob(*model, weights=weight, **row_data)
    np.testing.assert_allclose(post.split_prob, exact, rtol=1e-10, atol=1e-10)

    x_new = random_codes(rng, tree, 2)
    y_new, new_data = case.draw(rng, 2)
    dist = post.predictive(x_new, **new_data)
    for i in range(2):
        at = dict(weights=weight, row_data_new=take(new_data, i), **row_data)
        expected = naive.brute_log_predictive(*model, x_new[i], y_new[i], **at)
        assert dist.log_prob(y_new)[i] == pytest.approx(expected, rel=1e-10, abs=1e-10)
        mean, variance = naive.brute_moments(*model, x_new[i], **at)
        np.testing.assert_allclose(dist.mean()[i], mean, rtol=1e-10)
        np.testing.assert_allclose(dist.variance()[i], variance, rtol=1e-10)
