"""Predictive distributions: mixtures of every family, against sums, integrals and samples."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from scipy import integrate, stats
from scipy.special import gamma

import everytree as et
from cases import CELLS, SHAPES, examples, families, in_full, rng_for, seeds
from distribution_cases import DISCRETE, LEVELS, continuous, discrete, predictive

# ---- quantiles, cdf and samples --------------------------------------------------------------------------------------


@continuous
@given(seed=seeds)
@examples(10)
def test_quantile_and_cdf_invert_each_other(case, seed):
    dist, _, _ = predictive(case, seed)
    quantiles = dist.quantile(LEVELS)
    assert (np.diff(quantiles, axis=1) >= 0.0).all()
    for p, q in zip(LEVELS, quantiles.T, strict=True):
        got = dist.cdf(q)
        got = np.where((q == 0.0) & (got > p), p, got)  # a hurdle's 0 has a probability
        np.testing.assert_allclose(got, p, rtol=1e-10 if p < 0.5 else 0.0, atol=1e-10)
        np.testing.assert_allclose(dist.quantile(p), q, rtol=1e-12)


@discrete
@given(seed=seeds)
@examples(10)
def test_discrete_quantiles_are_the_first_to_reach_p(case, seed):
    dist, _, _ = predictive(case, seed)
    quantiles = dist.quantile(LEVELS)
    assert (np.diff(quantiles, axis=1) >= 0.0).all()
    for p, q in zip(LEVELS, quantiles.T, strict=True):
        assert (q == np.floor(q)).all()
        assert (dist.cdf(q) >= p - 1e-12).all()
        assert (dist.cdf(q - 1.0) < p + 1e-12).all()


@families
@given(seed=seeds)
@examples(5)
def test_cdf_is_the_sum_or_integral_of_the_density(case, seed):
    dist, _, _ = predictive(case, seed, n_rows=2)
    at = dist.quantile(0.6)
    if case in DISCRETE:
        total = sum(np.exp(dist.log_prob(np.full(2, float(k)))) * (k <= at) for k in range(int(at.max()) + 1))
    else:
        total = []
        for i, low in enumerate(dist.quantile(1e-9)):
            ends = [low, *(bend for bend in getattr(case.family, "edges", ()) if low < bend < at[i]), at[i]]
            parts = (
                integrate.quad(lambda u, i=i: np.exp(dist.log_prob(np.full(2, u)))[i], *part, limit=400)[0]
                for part in pairwise(ends)
            )
            total.append(sum(parts) + dist.cdf(0.0)[i] * hasattr(case.family, "amounts"))  # 0 has a probability there
    np.testing.assert_allclose(dist.cdf(at), total, atol=2e-8)
    assert (dist.cdf(np.full(2, -np.inf)) == 0.0).all()
    np.testing.assert_allclose(dist.cdf(np.full(2, np.inf)), 1.0, rtol=1e-12)


@pytest.mark.long
@families
def test_samples_have_the_moments_and_the_cdf(case):
    dist, _, rng = predictive(case, 3, n_rows=2, n_seen=80)
    draws = dist.sample(20_000, rng=rng)
    assert draws.shape == (2, 20_000)
    for p in (0.1, 0.5, 0.9):
        q = dist.quantile(p)
        share = (draws <= q[:, None]).mean(axis=1)
        np.testing.assert_allclose(share, dist.cdf(q), atol=0.02)
    np.testing.assert_allclose(draws.mean(axis=1), dist.mean(), atol=6.0 * dist.std().max() / np.sqrt(20_000))
    np.testing.assert_allclose(draws.var(axis=1), dist.variance(), rtol=0.35)
    np.testing.assert_array_equal(dist.sample(3, rng=5), dist.sample(3, rng=5))


def test_far_tails_of_a_mixture_of_very_different_scales():
    rng = rng_for("scales")
    X = np.repeat([[0], [1]], 500, axis=0).astype(np.uint8)
    y = np.concatenate([rng.normal(0.0, 1e-3, 500), rng.normal(1e4, 1e2, 500)])
    dist = et.Posterior(et.MetaTree.complete([0]), et.Normal(), 0.5).update(X, y).predictive(X[[0, -1]])
    for p in LEVELS:
        np.testing.assert_allclose(dist.cdf(dist.quantile(p)), p, atol=1e-10)


@in_full
def test_no_rows_give_empty_answers(case):
    post = et.Posterior(et.MetaTree.complete([0]), case.family)
    row_data = {"inputs": np.zeros((0, 2))} if case.name == "linear" else {}
    dist = post.predictive(np.zeros((0, 1), dtype=np.uint8), **row_data)
    for answer in (dist.mean(), dist.std(), dist.quantile(0.5), dist.cdf([]), dist.crps([]), dist.sample(rng=0)):
        assert answer.shape == (0,)
    assert dist.interval(0.9).shape == dist.interval(0.9, kind="hdi").shape == dist.quantile([0.1, 0.9]).shape == (0, 2)
    assert dist.sample(4, rng=0).shape == (0, 4)


# ---- entropy and parts of the variance -------------------------------------------------------------------------------


@pytest.mark.long
@discrete
def test_entropy_is_the_expected_surprise(case):
    dist, _, rng = predictive(case, 11, n_rows=2, n_seen=60)
    surprise = -np.stack([dist.log_prob(draw) for draw in dist.sample(4000, rng=rng).T], axis=1)
    margin = 5.0 * surprise.std(axis=1) / np.sqrt(4000)
    assert (np.abs(surprise.mean(axis=1) - dist.entropy()) < margin + 1e-9).all()


@in_full
@given(seed=seeds)
@examples(5)
def test_parts_of_the_variance_add_up(case, seed):
    dist, _, _ = predictive(case, seed)
    parts = dist.variance_parts()
    finite = np.isfinite(dist.variance())
    np.testing.assert_allclose(sum(parts)[finite], dist.variance()[finite], rtol=1e-10)
    for part in parts:
        assert (part[finite] >= 0.0).all()


def test_certain_trees_add_no_tree_uncertainty():
    tree = et.MetaTree.complete([0])
    post = et.Posterior(tree, et.Normal(), [1.0, 0.0, 0.0]).update([[0], [0], [1], [1]] * 5, [0.0, 1.0, 8.0, 9.0] * 5)
    np.testing.assert_array_equal(post.predictive([[0], [1]]).variance_parts().trees, 0.0)


def categorical_spread(alpha):
    """Variance of the mean class number under a Dirichlet distribution, from its covariance matrix."""
    total, numbers = alpha.sum(), np.arange(len(alpha))
    p = alpha / total
    return numbers @ ((np.diag(p) - np.outer(p, p)) / (total + 1.0)) @ numbers


def spread_of_shares(shares: np.ndarray, n: float, strength: float, first: int, last: int) -> tuple[float, float]:
    """Mean of the targets in some cells, and its variance, from the expected shares and the number of rows there."""
    if last - first == 1:
        return [-1.5, -0.5, 0.5, 1.25, 2.0, 3.5][first], 0.0
    middle, prior = first + (last - first) // 2, np.array(CELLS[1])
    p = shares[first:middle].sum() / shares[first:last].sum()
    total = strength + n
    n_left = p * total - strength * prior[first:middle].sum() / prior[first:last].sum()
    (left, one), (right, other) = (
        spread_of_shares(shares, n_left, 2.0 * strength, first, middle),
        spread_of_shares(shares, n - n_left, 2.0 * strength, middle, last),
    )
    own = p * (1.0 - p) / (total + 1.0)
    variance = own * (left - right) ** 2 + (p**2 + own) * one + ((1.0 - p) ** 2 + own) * other
    return right + p * (left - right), variance


def mean_over(q, moments):
    """The mean of what has these two moments given each of three shapes."""
    return q["shape_probs"] @ moments(np.array(SHAPES[2]), q["first"], q["second"])[0]


def variance_over(q, moments):
    """Its variance."""
    return q["shape_probs"] @ moments(np.array(SHAPES[2]), q["first"], q["second"])[1] - mean_over(q, moments) ** 2


def of_gamma(k, a, b):
    return k * b / (a - 1.0), (k * b) ** 2 / ((a - 1.0) * (a - 2.0))


def of_weibull(k, a, b):
    unit = gamma(1.0 + 1.0 / k) * b ** (1.0 / k)
    return unit * gamma(a - 1.0 / k) / gamma(a), unit**2 * gamma(a - 2.0 / k) / gamma(a)


def of_negative_binomial(r, a, b):
    return r * b / (a - 1.0), r**2 * b * (b + 1.0) / ((a - 1.0) * (a - 2.0))


def behind_a_hurdle(q, mean, variance):
    """Variance of theta times the mean of what is not zero, theta being beta distributed."""
    share = stats.beta(q["alpha"], q["beta"])
    return share.moment(2) * (variance + mean**2) - (share.mean() * mean) ** 2


PARAMETER_VARIANCE = {  # of the mean of y given the parameters, by textbook formulas for the posterior's own
    "bernoulli": lambda q, _: q["alpha"] * q["beta"] / ((q["alpha"] + q["beta"]) ** 2 * (q["alpha"] + q["beta"] + 1.0)),
    "categorical": lambda q, _: categorical_spread(q["alpha"]),
    "poisson": lambda q, data: q["shape"] * (data["exposure"][0] / q["rate"]) ** 2,
    "exponential": lambda q, _: q["rate"] ** 2 / ((q["shape"] - 1.0) ** 2 * (q["shape"] - 2.0)),
    "geometric": lambda q, _: (
        q["beta"] * (q["alpha"] + q["beta"] - 1.0) / ((q["alpha"] - 2.0) * (q["alpha"] - 1.0) ** 2)
    ),
    "normal": lambda q, _: q["scale"] / (q["strength"] * (q["shape"] - 1.0)),
    "linear": lambda q, data: (
        data["inputs"][0] @ np.linalg.solve(q["precision"], data["inputs"][0]) * q["scale"] / (q["shape"] - 1.0)
    ),
    "histogram": lambda q, _: spread_of_shares(q["shares"], 25.0, 1.5, 0, 6)[1],
    "lognormal": lambda q, _: stats.lognorm(
        q["sigma"] / np.sqrt(q["strength"]), scale=np.exp(q["mean"] + 0.5 * q["sigma"] ** 2)
    ).var(),
    "gamma": lambda q, _: variance_over(q, of_gamma),
    "weibull": lambda q, _: variance_over(q, of_weibull),
    "negative_binomial": lambda q, data: variance_over(
        q, lambda k, a, b: of_negative_binomial(k * data["exposure"][0], a, b)
    ),
    "hurdle_poisson": lambda q, _: behind_a_hurdle(q, 1.0 + q["shape"] / q["rate"], q["shape"] / q["rate"] ** 2),
    "hurdle_gamma": lambda q, _: behind_a_hurdle(
        q, q["shape_probs"] @ of_gamma(np.array(SHAPES[2]), q["first"], q["second"])[0], variance_over(q, of_gamma)
    ),
}


@in_full
def test_what_the_parameters_add_is_the_variance_of_the_mean(case):
    rng = rng_for("parameter variance", case)
    y, row_data = case.draw(rng, 25)
    post = et.Posterior(et.MetaTree.complete([]), case.family).update(np.zeros((25, 0), np.uint8), y, **row_data)
    own = {name: values[0] for name, values in case.family.posterior_parameters(post.statistics).items()}
    _, new_data = case.draw(rng, 1)
    new_data.pop("censored", None)
    parts = post.predictive(np.zeros((1, 0), np.uint8), **new_data).variance_parts()
    assert parts.parameters[0] == pytest.approx(PARAMETER_VARIANCE[case.name](own, new_data), rel=1e-8)
    assert parts.trees[0] == 0.0
