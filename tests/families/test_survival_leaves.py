"""Survival leaves: evidence to fifty digits, left truncation, sampling, and prunings times divisions of time."""

from __future__ import annotations

import itertools

import mpmath
import numpy as np
import pytest

import everytree as et
import naive_families
from cases import rng_for

LENGTHS = [0.3, 0.7, 0.2, 1.1, 0.4, 0.5, 0.9, 0.6]


def rows_of(rng, n, size):
    y = rng.uniform(0.1, size, n)
    data = {"censored": rng.integers(0, 2, n), "entry": y * rng.choice([0.0, 0.3, 0.8], n)}
    return y, data | {"log_hazard": rng.normal(0.0, 1.0, n)}


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_evidence_is_the_sum_over_all_divisions_of_time(size):
    rng = rng_for("survival evidence", size)
    family, twin = et.Survival(LENGTHS[:size], 2.5, 0.3), naive_families.Survival(LENGTHS[:size], 2.5, 0.3)
    y, data = rows_of(rng, 40, size)
    weight = rng.uniform(0.2, 2.0, 40)
    found = family.log_evidence(family.statistics(y, weight, **data).sum(axis=0, keepdims=True))[0]
    exact = twin.exact_log_evidence(y, weight, **data)
    assert abs(float((mpmath.mpf(float(found)) - exact) / exact)) < 1e-12


def test_chain_rule_with_entries():
    rng = rng_for("survival chain")
    family = et.Survival(LENGTHS, 1.5, 0.5)
    y, data = rows_of(rng, 25, 8)
    each = family.statistics(y, None, **data)
    total, sums = 0.0, np.zeros((1, each.shape[1]))
    for i in range(len(y)):
        row = {name: values[i : i + 1] for name, values in data.items()}
        total += family.predictive(sums, **row).log_prob(y[i : i + 1])[0]
        sums += each[i]
    np.testing.assert_allclose(total, family.log_evidence(sums)[0], rtol=1e-10)


def test_prunings_times_divisions_of_time_by_brute_force():
    """The evidence of a tree with three nodes, over every pruning and, in each of its leaves, every division."""
    rng = rng_for("survival brute force")
    lengths, twin = LENGTHS[:4], naive_families.Survival(LENGTHS[:4], 2.0, 0.4)
    tree = et.MetaTree.complete([0, 1, 1])
    X, (y, data) = rng.integers(0, 2, (30, 2)), rows_of(rng, 30, 4)
    post = et.Posterior(tree, et.Survival(lengths, 2.0, 0.4), 0.6).update(X, y, **data)
    ways = [(division, probability) for probability, division in twin._all_divisions()]

    def leaf(which):
        some = {name: values[which] for name, values in data.items()}
        events, exposed = twin._counts(
            naive_families.exact_all(y[which]), naive_families.exact_all(np.ones(which.sum())), some
        )
        density = sum(
            np.log(lengths[twin._cell(v)]) + h
            for v, h, c in zip(y[which], some["log_hazard"], some["censored"], strict=True)
            if not c
        )
        terms = twin._log_terms(events, exposed)
        assert len(terms) == len(ways)
        return float(mpmath.log(mpmath.fsum(mpmath.exp(t) for t in terms))) + density

    sides = [X[:, 0] == 0, X[:, 0] == 1]
    total = 0.4 * np.exp(leaf(np.ones(30, dtype=bool)))
    for splits in itertools.product([False, True], repeat=2):
        value = 0.6
        for side, is_split in zip(sides, splits, strict=True):
            parts = [side & (X[:, 1] == b) for b in (0, 1)] if is_split else [side]
            value *= (0.6 if is_split else 0.4) * np.exp(sum(leaf(part) for part in parts))
        total += value
    np.testing.assert_allclose(post.log_evidence, np.log(total), rtol=1e-10)


def test_draws_have_the_distribution():
    family = et.Survival(LENGTHS[:4], 3.0, 0.5)
    y, data = rows_of(rng_for("survival draws"), 30, 4)
    sums = family.statistics(y, None, **data).sum(axis=0, keepdims=True)
    draws = family.predictive(np.repeat(sums, 20_000, axis=0), entry=0.5).sample(np.random.default_rng(0))
    assert draws.min() >= 0.5
    for level in (1.0, 2.5, 3.5, 6.0):
        expected = family.predictive(sums, entry=0.5).cdf(np.array([level]))[0]
        assert abs((draws <= level).mean() - expected) < 0.012


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lengths": [1.0, 1.0, 1.0]}, "1, 2, 4"),
        ({"lengths": [1.0, -1.0]}, "lengths"),
        ({"time_prior": 1.5}, "time_prior"),
        ({"shape": 0.0}, "shape"),
    ],
)
def test_impossible_priors_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        et.Survival(**given)


@pytest.mark.parametrize(
    ("y", "data", "message"),
    [
        (-1.0, {}, "y"),
        (1.0, {"censored": 0.5}, "censored"),
        (1.0, {"entry": 2.0}, "entry"),
        (1.0, {"log_hazard": 100.0}, "log_hazard"),
    ],
)
def test_impossible_rows_are_refused_by_name(y, data, message):
    with pytest.raises(ValueError, match=message):
        et.Survival().statistics([y], **{name: np.array([value]) for name, value in data.items()})
