"""Predictive distributions: mixtures of every family, against sums, integrals and samples."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

import everytree as et
from cases import CASES, Case, examples, families, random_codes, random_tree, rng_for, seeds
from everytree.families.rates import CountComponents
from everytree.posterior.forest import Forest
from everytree.predictive.paths import PathPredictive, Paths
from naive_forest import student_tail

CONTINUOUS = [c for c in CASES if not c.family.has_classes and not c.family.support.is_whole]
DISCRETE = [c for c in CASES if c not in CONTINUOUS]
continuous = pytest.mark.parametrize("case", CONTINUOUS, ids=str)
discrete = pytest.mark.parametrize("case", DISCRETE, ids=str)


def predictive(case, seed, n_rows=6, n_seen=30):
    rng = np.random.default_rng(seed)
    tree = random_tree(rng)
    X = random_codes(rng, tree, n_seen)
    y, row_data = case.draw(rng, n_seen)
    post = et.Posterior(tree, case.family, 0.6).update(X, y, **row_data)
    new_y, new_data = case.draw(rng, n_rows)
    new_data.pop("censored", None)
    return post.predictive(random_codes(rng, tree, n_rows), **new_data), new_y.astype(float), rng


LEVELS = [1e-9, 1e-4, 0.05, 0.3, 0.5, 0.77, 0.95, 1 - 1e-4, 1 - 1e-9]


@continuous
@given(seed=seeds)
@examples(10)
def test_quantile_and_cdf_invert_each_other(case, seed):
    dist, _, _ = predictive(case, seed)
    quantiles = dist.quantile(LEVELS)
    assert (np.diff(quantiles, axis=1) >= 0.0).all()
    for p, q in zip(LEVELS, quantiles.T, strict=True):
        got = dist.cdf(q)
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
        low = dist.quantile(1e-9)
        total = [
            integrate.quad(lambda u, i=i: np.exp(dist.log_prob(np.full(2, u)))[i], low[i], at[i], limit=400)[0]
            for i in range(2)
        ]
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


# ---- scores ----------------------------------------------------------------------------------------------------------


def squared_tails(dist: et.Predictive, i: int, y: float, case: Case) -> float:
    """The integral of (cdf(x) - 1[x >= y])^2 of row i by brute force: term by term, or panel by panel."""
    n = len(dist)
    if case in DISCRETE:
        top = int(max(dist.quantile(1.0 - 1e-13)[i], y)) + 2
        F = np.array([dist.cdf(np.full(n, float(k)))[i] for k in range(top)])
        return float(((F - (np.arange(top) >= y)) ** 2).sum())
    levels = [1e-12, 1e-9, 1e-6, 1e-3, 0.01, 0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 0.99, 1 - 1e-3, 1 - 1e-6, 1 - 1e-9]
    ends = sorted([*dist.quantile(levels)[i], dist.quantile(1.0 - 1e-12)[i], y])
    nodes, weights = np.polynomial.legendre.leggauss(20)
    total = 0.0
    for left, right in pairwise(ends):
        x = 0.5 * (left + right) + 0.5 * (right - left) * nodes
        F = np.array([dist.cdf(np.full(n, at))[i] for at in x])
        total += 0.5 * (right - left) * float(weights @ (F - (x >= y)) ** 2)
    return total


@families
@given(seed=seeds)
@examples(3)
def test_crps_is_its_integral(case, seed):
    dist, y, _ = predictive(case, seed, n_rows=2)
    if case in DISCRETE and dist.quantile(1.0 - 1e-13).max() > 2000:
        return
    for i in range(2):
        assert dist.crps(y)[i] == pytest.approx(squared_tails(dist, i, y[i], case), rel=1e-8)


def prior_crps(family: et.Family, *y: float) -> np.ndarray:
    """Of the prior predictive; a hundred times each, so that rows share paths."""
    dist = et.Posterior(et.MetaTree.complete([0]), family).predictive(np.zeros((100 * len(y), 1), np.uint8))
    shared = dist.crps(np.tile(y, 100))
    alone = et.Posterior(et.MetaTree.complete([0]), family).predictive([[0]])
    np.testing.assert_allclose(shared[: len(y)], [alone.crps([at])[0] for at in y], rtol=1e-9)
    return shared[: len(y)]


WITHOUT_MEAN = [0.5 + 1e-6, 0.505, 0.55, 0.6, 0.75, 0.9, 1.0]
"""Powers with which tails fall off, and their squares fast enough for a score."""


def waiting_score(shape: float, rate: float, y: float) -> mpmath.mpf:
    """In closed form: the integrals of cdf^2 up to y and of sf^2 from there, sf(x) = (1 + x / rate)^-shape."""
    a, b, at = mpmath.mpf(shape), mpmath.mpf(rate), mpmath.mpf(y)

    def power(p: int) -> mpmath.mpf:  # the integral of sf^p up to y
        return b * mpmath.log1p(at / b) if a * p == 1 else b / (1 - a * p) * ((1 + at / b) ** (1 - a * p) - 1)

    return at - 2 * power(1) + power(2) + b * (1 + at / b) ** (1 - 2 * a) / (2 * a - 1)


@pytest.mark.parametrize("shape", [*WITHOUT_MEAN, 1.0 + 1e-7, 1.05, 1.2, 2.0, 3.3, 1e4])
def test_crps_of_waiting_times_with_heavy_tails(shape):
    y = [0.0, 1e-3, 1.0, 20.0, 1e5]
    with mpmath.workdps(40):
        exact = [float(waiting_score(shape, 1.3, at)) for at in y]
    np.testing.assert_allclose(prior_crps(et.Exponential(shape, 1.3), *y), exact, rtol=1e-10)


def student_score(freedom: float, z: float) -> mpmath.mpf:
    """In closed form: E|T - z| - E|T - T'| / 2, continued to where these are infinite; at 1 its limit."""
    nu, at, half = freedom + mpmath.mpf("1e-20"), mpmath.mpf(z), mpmath.mpf(1) / 2
    peak = mpmath.gamma((nu + 1) / 2) / mpmath.gamma(nu / 2) / mpmath.sqrt(mpmath.pi * nu)
    centred = peak * at * mpmath.hyp2f1(half, (nu + 1) / 2, 3 * half, -at * at / nu)  # cdf - 1/2
    density = peak * (1 + at * at / nu) ** (-(nu + 1) / 2)
    half_spread = 2 * mpmath.sqrt(nu) / (nu - 1) * mpmath.beta(half, nu - half) / mpmath.beta(half, nu / 2) ** 2
    return 2 * at * centred + 2 * density * (nu + at * at) / (nu - 1) - half_spread


@pytest.mark.parametrize("freedom", [*WITHOUT_MEAN, 1.0001, 1.05, 1.2, 2.0, 2.3, 3.0, 10.0, 1e3])
def test_crps_of_numbers_with_heavy_tails(freedom):
    z = [-3e3, -2.0, 0.0, 1e-3, 1.0, 7.0, 1e6]
    scale = np.sqrt(2.0 * 1.7 / (0.5 * freedom))
    with mpmath.workdps(40):
        exact = [float(student_score(freedom, at) * scale) for at in z]
    found = prior_crps(et.Normal(0.0, 1.0, 0.5 * freedom, 1.7), *(scale * np.array(z)))
    np.testing.assert_allclose(found, exact, rtol=1e-10)


def sum_from(term: Callable[[mpmath.mpf], mpmath.mpf], first: int, last: int = 48) -> mpmath.mpf:
    """The sum over all whole numbers from `first` on of what falls off as a power, by Euler and Maclaurin.

    As if there was nothing beyond exp(last).
    """
    n = first + 200
    head = sum(term(mpmath.mpf(k)) for k in range(first, n))
    tail = mpmath.quad(lambda u: term(n * mpmath.exp(u)) * n * mpmath.exp(u), [0, 1, 2, 4, 8, 16, 32, 48, last])
    return head + tail + term(mpmath.mpf(n)) / 2 - mpmath.diff(term, n) / 12 + mpmath.diff(term, n, 3) / 720


def log_failure_survival(a: float, b: float, k: mpmath.mpf) -> mpmath.mpf:
    gamma = mpmath.loggamma
    return gamma(b + k + 1) - gamma(a + b + k + 1) + gamma(mpmath.mpf(a) + b) - gamma(b)


def failure_score(alpha: float, beta: float, y: int) -> mpmath.mpf:
    """The sum of all terms, those from 1000 on as zeta functions by the series of a ratio of gamma functions."""
    a, n = mpmath.mpf(alpha), 1000

    def survival(k: int) -> mpmath.mpf:
        return mpmath.exp(log_failure_survival(alpha, beta, mpmath.mpf(k)))

    at = n + 1 + beta + (a - 1) / 2
    series = [1, a * (a * a - 1) / 12]  # of survival^2 in 1 / at^2, beside at^(-2 a)
    factor = survival(n) ** 2 / sum(term * at ** (-2 * a - 2 * j) for j, term in enumerate(series))
    tail = factor * sum(term * mpmath.zeta(2 * a + 2 * j, at) for j, term in enumerate(series))
    return sum((survival(k) - (k < y)) ** 2 for k in range(n)) + tail


@pytest.mark.parametrize("alpha", [*WITHOUT_MEAN, 1.001, 1.05, 1.5, 4.0])
def test_crps_of_failures_with_heavy_tails(alpha):
    y, beta = [0, 1, 40], 1.7
    with mpmath.workdps(40):
        exact = [float(failure_score(alpha, beta, at)) for at in y]
    np.testing.assert_allclose(prior_crps(et.Geometric(alpha, beta), *y), exact, rtol=1e-9)


def beyond(tail: Callable[[mpmath.mpf], mpmath.mpf], index: float = 1.0, upto: Any = None) -> mpmath.mpf:
    """The integral of a squared tail over distances from 0 on, when the tail falls off with that power."""
    end = 36 / (2 * index - 1) if upto is None else mpmath.asinh(upto)
    ends = [*(at for at in (0, 1, 2, 4, 8, 16, 32, 64, 128, 256) if at < end), end]
    return mpmath.quad(lambda t: tail(mpmath.sinh(t)) ** 2 * mpmath.cosh(t), ends)


HALVES = [(0.55, 0.9), (0.6, 30.0), (0.75, 1.0), (1.0, 3.0)]


def shared_crps(family: et.Family, *y: float) -> list[np.ndarray]:
    """Of mixtures of two nodes, a half each: of rows that share a path, of rows alone, and of forests."""
    post, twin = (et.Posterior(et.MetaTree.complete([0]), family) for _ in range(2))
    one, many = np.zeros((1, 1), np.uint8), np.zeros((20 * len(y), 1), np.uint8)
    return [
        post.predictive(many).crps(np.tile(y, 20))[: len(y)],
        np.array([post.predictive(one).crps([at])[0] for at in y]),
        np.array([Forest([post, twin]).predictive(one).crps([at])[0] for at in y]),
    ]


@pytest.mark.parametrize("indices", HALVES, ids=str)
def test_crps_of_mixtures_of_waiting_times_without_a_mean(indices):
    y, rates = [0.0, 2.0, 1e4], [1.3, 40.0]

    def survival(x: mpmath.mpf) -> mpmath.mpf:
        return sum((1 + x / rate) ** -mpmath.mpf(index) for index, rate in zip(indices, rates, strict=True)) / 2

    def exact(at: float) -> float:
        below = beyond(lambda x: 1 - survival(x), upto=at)
        return float(below + beyond(lambda x: survival(at + x), min(indices)))

    expected = [exact(at) for at in y]
    for found in shared_crps(et.Exponential([*indices, 5.0], [*rates, 1.0]), *y):
        np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("indices", HALVES, ids=str)
def test_crps_of_mixtures_of_numbers_without_a_mean(indices):
    y, places = [-20.0, 3.0, 1e4], [0.0, 30.0]
    shapes = 0.5 * np.array([*indices, 9.0])
    scales = np.sqrt(2.0 / shapes[:2])

    def tail(x: mpmath.mpf, sign: int) -> mpmath.mpf:
        """P(Y > x) for sign 1, P(Y < x) for sign -1."""
        standard = [sign * (x - place) / scale for place, scale in zip(places, scales, strict=True)]
        tails = [student_tail(nu, abs(z)) for nu, z in zip(indices, standard, strict=True)]
        return sum(1 - tail if z < 0 else tail for z, tail in zip(standard, tails, strict=True)) / 2

    def exact(at: float) -> float:
        """Outwards from the lowest and the highest of y and the places, and from both ends to the middle between."""
        points = sorted([at, *places])
        total = beyond(lambda x: tail(points[-1] + x, 1), min(indices))
        total += beyond(lambda x: tail(points[0] - x, -1), min(indices))
        for low, high in pairwise(points):
            sign, half = (1 if low >= at else -1), mpmath.mpf(high - low) / 2
            total += beyond(lambda x, low=low, sign=sign: tail(low + x, sign), upto=half)
            total += beyond(lambda x, high=high, sign=sign: tail(high - x, sign), upto=half)
        return float(total)

    expected = [exact(at) for at in y]
    for found in shared_crps(et.Normal([*places, 0.0], 1.0, shapes, 1.0), *y):
        np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("shape", [0.6, 3.0])
def test_crps_beside_times_that_are_far_shorter(shape):
    """Those are next to impossible at the median of the others: as points at 0, which a target near 0 agrees with."""
    post = et.Posterior(et.MetaTree.complete([0]), et.Exponential([shape, 1e4, 3.0], [1e6, 1e-2, 1.0]), 0.3)
    exact = 0.49 * 1e6 / (2.0 * shape - 1.0)
    found = post.predictive(np.zeros((30, 1), np.uint8)).crps(np.tile([0.0, 1e-9, 1e-3], 10))
    np.testing.assert_allclose(found, exact, rtol=1e-8)


def test_crps_of_mixtures_of_failures_without_a_mean():
    y, priors = [0, 7], [(0.75, 1.7), (1.2, 20.0)]

    def survival(k: mpmath.mpf) -> mpmath.mpf:
        return sum(mpmath.exp(log_failure_survival(a, b, k)) for a, b in priors) / 2

    with mpmath.workdps(80):
        far = sum_from(lambda k: survival(k) ** 2, 50, last=128)
        exact = [float(far + sum((survival(mpmath.mpf(k)) - (k < at)) ** 2 for k in range(50))) for at in y]
    for found in shared_crps(et.Geometric([0.75, 1.2, 3.0], [1.7, 20.0, 1.0]), *y):
        np.testing.assert_allclose(found, exact, rtol=1e-8)


def test_entropy_of_a_heavy_tail():
    def surprise(k: mpmath.mpf) -> mpmath.mpf:
        log_prob = log_failure_survival(0.8, 1.7, k - 1) + mpmath.log(0.8 / (mpmath.mpf(2.5) + k))
        return -mpmath.exp(log_prob) * log_prob

    dist = et.Posterior(et.MetaTree.complete([0]), et.Geometric(0.8, 1.7)).predictive([[0]])
    with mpmath.workdps(50):
        assert dist.entropy()[0] == pytest.approx(float(sum_from(surprise, 0)), rel=1e-8)


@pytest.mark.parametrize(("shape", "exposure"), [(0.3, 2.0), (3.0, 1e3), (50.0, 2e3), (1e5, 1.0), (0.7, 5e3)])
def test_crps_of_large_counts(shape, exposure):
    """Against the sum of all terms."""
    p = 1.0 / (1.0 + exposure)
    last = int(stats.nbinom.isf(1e-17, shape, p)) + 2
    k = np.arange(last)
    below, above = stats.nbinom.cdf(k, shape, p), stats.nbinom.sf(k, shape, p)
    dist = et.Posterior(et.MetaTree.complete([0]), et.Poisson(shape, 1.0)).predictive(
        np.zeros((4, 1), np.uint8), exposure=np.full(4, exposure)
    )
    y = np.array([0, np.floor(shape * exposure), np.floor(2.7 * shape * exposure) + 3.0, 5.0])
    exact = [np.where(k < at, below**2, above**2).sum() + max(at - last, 0.0) for at in y]
    np.testing.assert_allclose(dist.crps(y), exact, rtol=1e-8)


@pytest.mark.parametrize("y", [-3.0, -0.25, 0.4, 2.0, 3.75, 60.5])
def test_crps_of_a_number_between_counts(y):
    """The integral, whatever the target: of [k, k + 1) the part below y and the part above."""
    dist = et.Posterior(et.MetaTree.complete([0]), et.Geometric(5.0, 4.0)).predictive([[0]])
    k = np.arange(4000.0)
    cdf = et.Posterior(et.MetaTree.complete([0]), et.Geometric(5.0, 4.0)).predictive(np.zeros((4000, 1))).cdf(k)
    below = np.clip(y - k, 0.0, 1.0)
    exact = (below * cdf**2 + (1.0 - below) * (1.0 - cdf) ** 2).sum() + max(-y, 0.0)
    assert dist.crps([y])[0] == pytest.approx(exact, rel=1e-9)


def test_crps_of_counts_whose_modes_are_far_apart():
    """Against the sum of all terms."""
    X, y = np.repeat([[0], [1]], [50, 1], axis=0).astype(np.uint8), np.repeat([3, 40_000], [50, 1])
    post = et.Posterior(et.MetaTree.complete([0]), et.Poisson(1.0, 1.0), 1e-300).update(X, y)
    k, targets = np.arange(100_000.0), np.array([3.0, 40_000.0])
    for row, target in zip([[0], [1]], targets, strict=True):
        cdf = post.predictive(np.tile(row, (len(k), 1))).cdf(k)
        exact = np.where(k < target, cdf**2, (1.0 - cdf) ** 2).sum()
        assert post.predictive([row]).crps([target])[0] == pytest.approx(exact, rel=1e-8)


@pytest.mark.parametrize("index", [1e-4, 0.4, 0.5])
@pytest.mark.parametrize(
    "family",
    [
        lambda index: et.Exponential(index, 1.0),
        lambda index: et.Geometric(index, 2.0),
        lambda index: et.Normal(shape=0.5 * index),
        lambda index: et.Exponential([3.0, index, 3.0], 1.0),
        lambda index: et.Geometric([index, 3.0, 3.0], 1.0),
        lambda index: et.Normal(shape=[0.5 * index, 3.0, 3.0]),
    ],
    ids=["times", "failures", "numbers", "mixed times", "mixed failures", "mixed numbers"],
)
def test_crps_is_infinite_where_squared_tails_are_not_integrable(family, index):
    assert (prior_crps(family(index), 0.0, 3.0) == np.inf).all()


def test_crps_of_a_mixture_does_not_depend_on_what_is_impossible():
    """The root is no leaf: its tails do not count, however heavy."""
    dist = et.Posterior(et.MetaTree.complete([0]), et.Exponential([0.3, 0.6, 3.0], 1.3), 1.0).predictive([[0], [0]])
    exact = [float(waiting_score(0.6, 1.3, at)) for at in (0.5, 2.0)]
    np.testing.assert_allclose(dist.crps([0.5, 2.0]), exact, rtol=1e-9)


def test_crps_of_a_family_of_ones_own_needs_a_mean():
    post = et.Posterior(et.MetaTree.complete([0]), Bells((1.0, 1.0), (np.nan, 1.0), (0.0, 1.0)))
    np.testing.assert_array_equal(np.isinf(post.predictive([[0], [1]]).crps([0.0, 0.0])), [True, False])


class Bells(et.Family):
    """Normal distributions with given means and widths, one for each node; whatever the rows."""

    n_statistics = 1

    def __init__(self, *means_and_widths: tuple[float, float]) -> None:
        self.nodes = np.array(means_and_widths)

    def at(self, nodes):
        return Bells(*self.nodes[nodes])

    def statistics(self, y, weight):
        return weight[:, None]

    def log_evidence(self, statistics):
        return np.zeros(len(statistics))

    def predictive(self, statistics):
        return BellComponents(*self.nodes.reshape(-1, 2).T)


class BellComponents:
    is_discrete = False

    def __init__(self, location, scale):
        self._location, self._scale = location, scale
        bell = stats.norm(location, scale)
        self.mean, self.variance, self.log_prob = bell.mean, bell.var, bell.logpdf
        self.cdf, self.sf, self.quantile = bell.cdf, bell.sf, bell.ppf


@pytest.mark.parametrize("apart", [0.0, 1.0, 1e4])
def test_crps_of_a_continuous_family_of_ones_own(apart):
    """In closed form: E|Y - y| of one bell, and of differences of two, which are bells too."""
    bells = np.array([(1.0, 2.0), (1.0 - apart, 0.1), (1.0 + apart, 1e-3)])
    post = et.Posterior(et.MetaTree.complete([0]), Bells(*bells))

    def distance(mean: Any, width: Any) -> Any:
        z = mean / width
        return width * (z * (2.0 * stats.norm.cdf(z) - 1.0) + 2.0 * stats.norm.pdf(z))

    for y in (-4.0, 1.0, 1.0 + apart):
        pair = bells[:2]  # the root and its first child, a half each
        between = [distance(a[0] - b[0], np.hypot(a[1], b[1])) for a in pair for b in pair]
        exact = distance(pair[:, 0] - y, pair[:, 1]).mean() - 0.5 * np.mean(between)
        assert post.predictive([[0]]).crps([y])[0] == pytest.approx(exact, rel=1e-8)


@families
def test_crps_of_targets_that_are_not_finite(case):
    dist, _, _ = predictive(case, 5, n_rows=3)
    np.testing.assert_array_equal(dist.crps([np.inf, -np.inf, np.nan]), [np.inf, np.inf, np.nan])


@continuous
@given(seed=seeds)
@examples(3)
def test_rows_that_share_a_path_have_the_scores_they_have_alone(case, seed):
    dist, y, _ = predictive(case, seed, n_rows=60)
    alone = np.concatenate([dist[i].crps(y[i]) for i in range(60)])
    np.testing.assert_allclose(dist.crps(y), alone, rtol=1e-9)


def test_crps_of_a_coin_is_its_brier_score():
    post = et.Posterior(et.MetaTree.complete([0]), et.Bernoulli()).update([[0], [1], [1]], [0, 1, 1])
    dist = post.predictive([[0], [1]])
    np.testing.assert_allclose(dist.crps([1, 1]), (1.0 - dist.probs()[:, 1]) ** 2, rtol=1e-12)


@pytest.mark.long
@discrete
def test_entropy_is_the_expected_surprise(case):
    dist, _, rng = predictive(case, 11, n_rows=2, n_seen=60)
    surprise = -np.stack([dist.log_prob(draw) for draw in dist.sample(4000, rng=rng).T], axis=1)
    margin = 5.0 * surprise.std(axis=1) / np.sqrt(4000)
    assert (np.abs(surprise.mean(axis=1) - dist.entropy()) < margin + 1e-9).all()


@families
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


@families
def test_intervals_hold_what_they_say_and_the_shortest_is_shorter(case):
    dist, _, _ = predictive(case, 21)
    equal, shortest = dist.interval(0.9), dist.interval(0.9, kind="hdi")
    assert equal.shape == shortest.shape == (6, 2)
    for interval in (equal, shortest):
        low = dist.cdf(interval[:, 0] - 1.0) if case in DISCRETE else dist.cdf(interval[:, 0])
        assert (dist.cdf(interval[:, 1]) - low >= 0.9 - 1e-9).all()
    assert (np.diff(shortest, axis=1) <= np.diff(equal, axis=1) + 1e-9).all()


@discrete
@given(seed=seeds)
@examples(5)
def test_no_interval_of_whole_numbers_is_shorter_than_the_shortest(case, seed):
    dist, _, _ = predictive(case, seed, n_rows=2)
    got = dist.interval(0.8, kind="hdi")
    top = int(min(dist.quantile(0.999).max(), 150)) + 1
    F = np.stack([dist.cdf(np.full(2, float(k))) for k in range(-1, top)], axis=1)  # F[:, k] = cdf(k - 1)
    for i in range(2):
        widths = [b - a for a in range(top) for b in range(a, top) if F[i, b + 1] - F[i, a] >= 0.8 + 1e-12]
        if widths:
            assert got[i, 1] - got[i, 0] <= min(widths)


class Lumps(et.Family):
    """Whole numbers with given probabilities, whatever the rows."""

    n_statistics = 1

    def __init__(self, probs: np.ndarray) -> None:
        self.probs = probs

    def statistics(self, y, weight):
        return weight[:, None]

    def log_evidence(self, statistics):
        return np.zeros(len(statistics))

    def predictive(self, statistics):
        return LumpComponents(np.tile(self.probs, (len(statistics), 1)))


class LumpComponents:
    is_discrete = True

    def __init__(self, probs):
        self._probs = probs
        self._upto = np.cumsum(probs, axis=1)
        self._beyond = np.cumsum(probs[:, ::-1], axis=1)[:, ::-1] - probs

    def mean(self):
        return self._probs @ np.arange(self._probs.shape[1])

    def variance(self):
        return self._probs @ np.arange(self._probs.shape[1]) ** 2 - self.mean() ** 2

    def log_prob(self, y):
        with np.errstate(divide="ignore"):
            return np.where(y < self._probs.shape[1], np.log(self._at(self._probs, y)), -np.inf)

    def cdf(self, y):
        return np.where(y < 0, 0.0, self._at(self._upto, y))

    def sf(self, y):
        return np.where(y < 0, 1.0, self._at(self._beyond, y))

    def _at(self, sums, y):
        return sums[np.arange(len(sums)), np.clip(y, 0, sums.shape[1] - 1).astype(int)]


@given(seed=seeds, coverage=st.sampled_from([0.0625, 0.5, 0.75, 0.96875]))
@examples(30)
def test_the_shortest_interval_of_any_probabilities(seed, coverage):
    """Of all intervals that hold enough, the shortest, and of those the lowest: with many modes, gaps and ties."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 80))
    counts = rng.multinomial(1024, rng.dirichlet(np.full(n, rng.choice([0.05, 1.0, 1e6]))))  # sums without rounding
    dist = et.Posterior(et.MetaTree.complete([], n_features=1), Lumps(counts / 1024.0)).predictive([[0]])
    sums = np.concatenate([[0], np.cumsum(counts)])
    shortest = min((b - a, a) for a in range(n) for b in range(a, n) if sums[b + 1] - sums[a] >= coverage * 1024)
    low, high = dist.interval(coverage, kind="hdi")[0]
    assert (high - low, low) == shortest


class Peaks(Lumps):
    """Summaries are the probabilities themselves, which rise to one peak and fall from there on."""

    def components(self, summary):
        return PeakComponents(summary)


class PeakComponents(LumpComponents):
    def mode(self):
        return self._probs.argmax(axis=1).astype(float)


def mixtures(family, summary, weights):
    """One row for each row of weights (n_rows, n_components); the summary has an entry for each of them in turn."""
    n_rows, n_components = weights.shape
    start = np.arange(n_rows + 1) * n_components
    paths = Paths(start, np.arange(start[-1]), np.log(weights).ravel(), np.arange(n_rows, dtype=np.int32))
    return PathPredictive(family, summary, paths, {})


def shortest_by_brute_force(sums: np.ndarray, coverage: float) -> tuple[int, int]:
    """The lowest start and the length, from sums of probabilities that begin with 0."""
    ends = np.searchsorted(sums, sums[:-1] + coverage)  # the first b + 1 with enough from each start on
    lengths = np.where(ends < len(sums), ends - 1 - np.arange(len(sums) - 1), len(sums))
    return int(lengths.argmin()), int(lengths.min())


@given(seed=seeds)
@examples(100)
def test_the_shortest_interval_of_equal_probabilities(seed):
    """Steps of one height, and all of them asked for: starts before gain from step to step, to the last digit."""
    rng = np.random.default_rng(seed)
    low, high = np.sort(rng.integers(1, 9, 2))
    n_high = int(rng.integers(1, 1023 // high))
    n_low, rest = divmod(1024 - n_high * high, low)
    counts = np.repeat([rest, low, high], [1, n_low, n_high])[:: rng.choice([1, -1])]
    dist = mixtures(Peaks(counts), counts[None] / 1024.0, np.ones((1, 1)))
    for coverage in (n_high * high, n_high * high - 1, *rng.integers(1, 1024, 4)):
        start, length = shortest_by_brute_force(np.append(0, np.cumsum(counts)), coverage)
        np.testing.assert_array_equal(dist.interval(coverage / 1024.0, kind="hdi"), [[start, start + length]])


COUNTS = {
    "poisson": (et.Poisson(), lambda shape, rate: stats.nbinom(shape, rate / (1.0 + rate))),
    "geometric": (et.Geometric(), lambda alpha, beta: stats.betanbinom(1, alpha, beta)),
}


@pytest.mark.parametrize("name", COUNTS)
@given(seed=seeds)
@examples(25)
def test_no_interval_of_a_mixture_of_counts_is_shorter(name, seed):
    """By brute force over all starts, of mixtures with several modes that may be far from each other."""
    rng = np.random.default_rng(seed)
    family, components = COUNTS[name]
    n, shape = 1500, (3, int(rng.integers(1, 9)))
    first, mean = 10.0 ** rng.uniform(0.5, 3.0, shape), 10.0 ** rng.uniform(-1.0, 2.0, shape)
    second = first / mean if name == "poisson" else (first - 1.0) * mean
    weights = rng.dirichlet(np.full(shape[1], rng.choice([0.3, 1.0, 10.0])), 3) + 1e-9
    weights /= weights.sum(axis=1, keepdims=True)
    dist = mixtures(family, np.stack([first.ravel(), second.ravel()], axis=1), weights)
    probs = (weights * components(first, second).pmf(np.arange(n)[:, None, None])).sum(axis=2)
    cdf = np.vstack([np.zeros(3), np.cumsum(probs, axis=0)]).T
    for coverage in (0.5, 0.9, 0.99, float(rng.uniform(0.5, 0.99))):
        for (low, high), upto in zip(dist.interval(coverage, kind="hdi"), cdf, strict=True):
            assert (low, high - low) == shortest_by_brute_force(upto, coverage)


def far_modes(mean: float, rng: np.random.Generator) -> PathPredictive:
    """One row of 300 components around three modes."""
    centres = mean * np.array([0.01, 0.1, 1.0])[rng.integers(3, size=300)] * np.exp(rng.normal(0.0, 0.1, 300))
    shape = rng.uniform(5.0, 500.0, 300)
    return mixtures(et.Poisson(), np.stack([shape, shape / centres], axis=1), rng.dirichlet(np.ones(300))[None])


def one_component(mean: float, shape: float) -> PathPredictive:
    return mixtures(et.Poisson(), np.array([[shape, shape / mean]]), np.ones((1, 1)))


@pytest.mark.parametrize("mean", [1e3, 1e4, 1e6, 1e9])
@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_the_shortest_interval_takes_as_many_tails_as_the_count_has_digits(mean, coverage, monkeypatch):
    """And probabilities: of wide and of narrow components, and of many with modes far from each other."""
    n_asked = 0

    def counted(of):
        def asked(self, y):
            nonlocal n_asked
            n_asked += len(y)
            return of(self, y)

        return asked

    for name in ("cdf", "sf", "log_prob"):
        monkeypatch.setattr(CountComponents, name, counted(getattr(CountComponents, name)))
    for seed in range(3):
        rng = rng_for("tails", seed)
        for dist in (one_component(mean, 3.0 + seed), one_component(mean, 100.0 * mean), far_modes(mean, rng)):
            n_asked = 0
            dist.interval(coverage, kind="hdi")
            assert n_asked <= 40.0 * np.log2(mean) * len(dist._paths.nodes)


@discrete
@given(seed=seeds)
@examples(20)
def test_probabilities_rise_to_the_mode_and_fall_from_there(case, seed):
    """Of each component of a family of counts; classes have no order that says where they would."""
    rng = np.random.default_rng(seed)
    y, row_data = case.draw(rng, 12)
    components = case.family.predictive(case.family.statistics(y, rng.uniform(0.1, 9.0, 12), **row_data))
    assert hasattr(components, "mode") == (case.name in ("poisson", "geometric"))
    if hasattr(components, "mode"):
        log_probs = np.array([components.log_prob(np.full(12, float(k))) for k in range(400)])
        is_rising = np.arange(1, 400)[:, None] <= components.mode()
        steps = np.diff(log_probs, axis=0) * np.where(is_rising, 1.0, -1.0)
        assert (steps >= -1e-12).all()


def test_the_shortest_interval_of_two_modes():
    """By brute force over all starts: the narrow mode is left of a wide one that holds as much."""
    X, y = np.repeat([[0], [1]], [30, 4], axis=0).astype(np.uint8), np.repeat([40, 400], [30, 4])
    post = et.Posterior(et.MetaTree.complete([0]), et.Poisson(1.0, 1.0), 1e-300).update(X, y)
    cdf = np.concatenate([[0.0], post.predictive(np.ones((4000, 1), np.uint8)).cdf(np.arange(4000.0))])
    for coverage in (0.3, 0.5, 0.7, 0.9, 0.99):
        low, high = post.predictive([[1]]).interval(coverage, kind="hdi")[0]
        assert (low, high - low) == shortest_by_brute_force(cdf, coverage)


@pytest.mark.parametrize("name", COUNTS)
def test_the_shortest_interval_of_next_to_nothing_is_one_number(name):
    dist = mixtures(COUNTS[name][0], np.array([[3.0, 1.0]]), np.ones((1, 1)))
    for coverage in (1e-300, 1e-17, 1e-3):
        low, high = dist.interval(coverage, kind="hdi")[0]
        assert low == high == 0.0


@pytest.mark.parametrize("mean", [1e4, 1e5, 1e8, 1e12])
def test_the_shortest_interval_of_large_counts(mean):
    """Holds enough, and neither of its neighbours of one less does."""
    family = et.Poisson(1.0, 1e-6)
    post = et.Posterior(et.MetaTree.complete([0]), family).update(
        [[0], [0], [1]], [mean, np.floor(1.2 * mean), 2 * mean]
    )
    dist = post.predictive(np.zeros((5, 1), np.uint8))
    low, high = dist.interval(0.9, kind="hdi")[0]

    def mass(a: float, b: float) -> float:
        below, upto = post.predictive([[0], [0]]).cdf([a - 1.0, b])
        return float(upto - below)

    assert mass(low, high) >= 0.9 - 1e-9
    if mean < 1e9:
        assert max(mass(low + shift, high + shift - 1.0) for shift in (-1.0, 0.0, 1.0, 2.0)) < 0.9 + 1e-12
    normal = np.array([low, high]) / (1.1 * mean)
    np.testing.assert_allclose(normal, 1.0, atol=6.0 / np.sqrt(mean))


BAD = [0.0, 1.0, -0.1, 1.1, np.nan, "a", [0.5, 2.0], [[0.5]]]


@pytest.mark.parametrize("p", BAD, ids=str)
def test_probabilities_outside_the_open_interval_are_refused(p):
    dist = et.Posterior(et.MetaTree.complete([0]), et.Normal()).predictive([[0]])
    with pytest.raises((ValueError, TypeError), match="p must be"):
        dist.quantile(p)
    if np.ndim(p) == 0:
        with pytest.raises((ValueError, TypeError), match="coverage must be"):
            dist.interval(p)


def test_what_a_family_does_not_have_is_said():
    dist = et.Posterior(et.MetaTree.complete([0]), et.Normal()).predictive([[0]])
    with pytest.raises(TypeError, match="discrete"):
        dist.entropy()
    with pytest.raises(ValueError, match="kind"):
        dist.interval(0.9, kind="best")
    with pytest.raises(ValueError, match="size"):
        dist.sample(-1, rng=0)


@families
def test_no_rows_give_empty_answers(case):
    post = et.Posterior(et.MetaTree.complete([0]), case.family)
    row_data = {"inputs": np.zeros((0, 2))} if case.name == "linear" else {}
    dist = post.predictive(np.zeros((0, 1), dtype=np.uint8), **row_data)
    for answer in (dist.mean(), dist.std(), dist.quantile(0.5), dist.cdf([]), dist.crps([]), dist.sample(rng=0)):
        assert answer.shape == (0,)
    assert dist.interval(0.9).shape == dist.interval(0.9, kind="hdi").shape == dist.quantile([0.1, 0.9]).shape == (0, 2)
    assert dist.sample(4, rng=0).shape == (0, 4)


def test_far_tails_of_a_mixture_of_very_different_scales():
    rng = rng_for("scales")
    X = np.repeat([[0], [1]], 500, axis=0).astype(np.uint8)
    y = np.concatenate([rng.normal(0.0, 1e-3, 500), rng.normal(1e4, 1e2, 500)])
    dist = et.Posterior(et.MetaTree.complete([0]), et.Normal(), 0.5).update(X, y).predictive(X[[0, -1]])
    for p in LEVELS:
        np.testing.assert_allclose(dist.cdf(dist.quantile(p)), p, atol=1e-10)


def categorical_spread(alpha):
    """Variance of the mean class number under a Dirichlet distribution, from its covariance matrix."""
    total, numbers = alpha.sum(), np.arange(len(alpha))
    p = alpha / total
    return numbers @ ((np.diag(p) - np.outer(p, p)) / (total + 1.0)) @ numbers


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
    "lognormal": lambda q, _: stats.lognorm(
        q["sigma"] / np.sqrt(q["strength"]), scale=np.exp(q["mean"] + 0.5 * q["sigma"] ** 2)
    ).var(),
}


@families
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
