"""Exact sums whose last regions are explained by other models, and powers of the evidence, against plain recursion."""

from __future__ import annotations

import pickle
from math import lgamma

import numpy as np
import pytest

import everytree as et
from everytree.exact.regions import splits

KINDS = ("ordered", "multiway", "ordered")
N_CODES = (3, 3, 2)


def rows_of(seed, n=14):
    rng = np.random.default_rng(seed)
    X = np.stack([rng.integers(0, k, n) for k in N_CODES], axis=1).astype(np.uint8)
    return X, rng.integers(0, 2, n)


def log_beta_evidence(y):
    a = b = 0.5
    ones, zeros = int(y.sum()), int(len(y) - y.sum())
    return lgamma(a + ones) + lgamma(b + zeros) - lgamma(a + b + len(y)) - lgamma(a) - lgamma(b) + lgamma(a + b)


def explained(rows):
    """The log evidence of a region at the last depth: any number that depends on its rows."""
    return -0.4 * len(rows) - 0.01 * float(np.sum(rows))


class Naive:
    """The recursion over regions, written literally."""

    def __init__(self, X, y, depth, g, temperature):
        self.X, self.y, self.depth, self.g, self.temperature = X, y, depth, g, temperature
        self.mass = {}

    def rows(self, codes):
        inside = np.ones(len(self.X), dtype=bool)
        for k, own in enumerate(codes):
            inside &= np.isin(self.X[:, k], own)
        return np.flatnonzero(inside)

    def terms(self, codes):
        found = []
        for k, own in enumerate(codes):
            for _, sets in splits(KINDS[k], own):
                found.append([(*codes[:k], one, *codes[k + 1 :]) for one in sets])
        return found

    def log_q(self, codes, depth):
        rows = self.rows(codes)
        if len(rows) == 0:
            return 0.0
        if depth == self.depth:
            return self.temperature * explained(rows)
        leaf = self.temperature * log_beta_evidence(self.y[rows])
        candidates = self.terms(codes)
        if not candidates:
            return leaf
        each = [sum(self.log_q(child, depth + 1) for child in children) for children in candidates]
        return np.logaddexp(np.log1p(-self.g) + leaf, np.log(self.g) + np.logaddexp.reduce(each) - np.log(len(each)))

    def spread(self, codes, depth, share):
        """Add up the probability of every region at the last depth."""
        rows = self.rows(codes)
        if len(rows) == 0:
            return
        if depth == self.depth:
            self.mass[codes] = self.mass.get(codes, 0.0) + share
            return
        candidates = self.terms(codes)
        whole = self.log_q(codes, depth)
        for children in candidates:
            log_term = sum(self.log_q(child, depth + 1) for child in children)
            own = share * np.exp(np.log(self.g / len(candidates)) + log_term - whole)
            for child in children:
                self.spread(child, depth + 1, own)


EVERYTHING = tuple(tuple(range(n)) for n in N_CODES)


def fitted(X, y, depth, temperature, seen=None, **more):
    post = et.ExactPosterior(N_CODES, et.Bernoulli(0.5, 0.5), depth, 0.6, kinds=KINDS, temperature=temperature)

    def continuation(regions):
        if seen is not None:
            seen.extend(regions)
        return [explained(rows) for rows in regions]

    return post.fit(X, y, continuation=continuation, **more)


@pytest.mark.parametrize("temperature", [1.0, 0.3, 0.0])
@pytest.mark.parametrize("depth", [0, 1, 2])
@pytest.mark.parametrize("seed", [0, 1])
def test_the_sum_and_the_regions_are_those_of_plain_recursion(depth, temperature, seed):
    X, y = rows_of(seed)
    seen = []
    post, naive = fitted(X, y, depth, temperature, seen), Naive(X, y, depth, 0.6, temperature)
    assert post.log_evidence == pytest.approx(naive.log_q(EVERYTHING, 0), abs=1e-11)
    naive.spread(EVERYTHING, 0, 1.0)
    assert len(seen) == len(naive.mass)
    of_rows = {}
    for codes, share in naive.mass.items():
        key = tuple(naive.rows(codes))
        of_rows[key] = of_rows.get(key, 0.0) + share
    found = {}
    for rows, weight in zip(seen, post.continued.weight, strict=True):
        found[tuple(rows)] = found.get(tuple(rows), 0.0) + weight
    assert found == pytest.approx(of_rows, abs=1e-11)


@pytest.mark.parametrize("temperature", [1.0, 0.25, 0.0])
@pytest.mark.parametrize("candidates", ["all", "nontrivial"])
def test_a_power_of_the_evidence_of_leaves(temperature, candidates):
    """One leaf is a continuation too: with it the sum is that of a posterior without one."""
    X, y = rows_of(3)
    leaves = {"family": et.Bernoulli(0.5, 0.5), "max_depth": 2, "split_prior": 0.6, "temperature": temperature}
    plain = et.ExactPosterior(N_CODES, kinds=KINDS, candidates=candidates, **leaves).fit(X, y)
    continued = et.ExactPosterior(N_CODES, kinds=KINDS, candidates=candidates, **leaves).fit(
        X, y, continuation=lambda regions: [log_beta_evidence(y[rows]) for rows in regions]
    )
    assert continued.log_evidence == pytest.approx(plain.log_evidence, abs=1e-11)
    np.testing.assert_allclose(continued.root_feature_prob, plain.root_feature_prob, atol=1e-11)
    np.testing.assert_allclose(continued.expected_splits, plain.expected_splits, atol=1e-11)
    best, other = continued.top_trees(5), plain.top_trees(5)
    assert [one.log_prob for one in best] == pytest.approx([one.log_prob for one in other], abs=1e-10)
    if temperature == 0.0:
        assert plain.log_evidence == pytest.approx(0.0, abs=1e-12)  # the prior itself


def test_counts_of_classes_by_bits_have_the_power_too():
    rng = np.random.default_rng(5)
    X, y = rng.integers(0, 4, (200, 3)).astype(np.uint8), rng.integers(0, 2, 200)
    by_bits = et.ExactPosterior([4] * 3, et.Bernoulli(0.5, 0.5), 2, temperature=0.4).fit(X, y)
    by_sums = et.ExactPosterior([4] * 3, et.Bernoulli(0.5, 0.5), 2, temperature=0.4).fit(
        X, y, np.full(200, 1.0 + 1e-13)
    )
    assert by_bits.log_evidence == pytest.approx(by_sums.log_evidence, abs=1e-9)


def test_rows_of_weight_0_are_in_no_region():
    X, y = rows_of(4)
    weight = np.ones(len(y))
    weight[[0, 5]] = 0.0
    seen = []
    fitted(X, y, 1, 1.0, seen, sample_weight=weight)
    assert {0, 5}.isdisjoint(np.concatenate(seen).tolist())
    assert set(np.concatenate(seen).tolist()) == set(range(len(y))) - {0, 5}


def test_copies_have_the_same_regions():
    X, y = rows_of(6)
    post = fitted(X, y, 2, 0.5)
    other = pickle.loads(pickle.dumps(post))
    assert other.log_evidence == post.log_evidence
    np.testing.assert_array_equal(other.continued.weight, post.continued.weight)
    np.testing.assert_array_equal(other.continued.codes, post.continued.codes)
    np.testing.assert_allclose(other.root_feature_prob, post.root_feature_prob, atol=1e-14)


def test_bad_input():
    X, y = rows_of(7)
    post = et.ExactPosterior(N_CODES, et.Bernoulli(0.5, 0.5), 1, kinds=KINDS)
    for wrong in ([1.0], [np.nan] * 100, "no"):
        with pytest.raises(ValueError, match=r"one finite number|could not convert"):
            post.fit(X, y, continuation=lambda regions, wrong=wrong: wrong)
    with pytest.raises(ValueError, match="budget"):
        post.fit(X, y, continuation=lambda regions: [0.0] * len(regions), budget=10)
    with pytest.raises(ValueError, match="temperature must be a power"):
        et.ExactPosterior(N_CODES, et.Bernoulli(0.5, 0.5), temperature=2.0)
    continued = fitted(X, y, 1, 1.0)
    with pytest.raises(ValueError, match="does not predict"):
        continued.probs(X)
    with pytest.raises(ValueError, match="without a continuation"):
        _ = post.fit(X, y).continued


def test_no_row_and_no_column_to_split():
    nothing = fitted(np.zeros((0, 3), dtype=np.uint8), np.zeros(0, dtype=int), 2, 1.0)
    assert nothing.log_evidence == pytest.approx(0.0, abs=1e-12)
    one = et.ExactPosterior([1], et.Bernoulli(0.5, 0.5), 2).fit(
        np.zeros((3, 1), dtype=np.uint8), [0, 1, 1], continuation=lambda regions: [0.0] * len(regions)
    )
    assert one.log_evidence == pytest.approx(log_beta_evidence(np.array([0, 1, 1])), abs=1e-12)
    assert len(one.continued.weight) == 0
