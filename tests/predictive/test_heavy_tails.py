"""Scores where tails are so heavy that there is no mean, against closed forms and series of many digits."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import mpmath
import numpy as np
import pytest

import everytree as et
from cases import LONG
from everytree.posterior.forest import Forest
from naive_forest import student_tail

# ---- one component ---------------------------------------------------------------------------------------------------


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


def test_entropy_of_a_heavy_tail():
    def surprise(k: mpmath.mpf) -> mpmath.mpf:
        log_prob = log_failure_survival(0.8, 1.7, k - 1) + mpmath.log(0.8 / (mpmath.mpf(2.5) + k))
        return -mpmath.exp(log_prob) * log_prob

    dist = et.Posterior(et.MetaTree.complete([0]), et.Geometric(0.8, 1.7)).predictive([[0]])
    with mpmath.workdps(50):
        assert dist.entropy()[0] == pytest.approx(float(sum_from(surprise, 0)), rel=1e-8)


# ---- mixtures --------------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("indices", HALVES if LONG else HALVES[::2], ids=str)
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


def test_crps_of_a_mixture_does_not_depend_on_what_is_impossible():
    """The root is no leaf: its tails do not count, however heavy."""
    dist = et.Posterior(et.MetaTree.complete([0]), et.Exponential([0.3, 0.6, 3.0], 1.3), 1.0).predictive([[0], [0]])
    exact = [float(waiting_score(0.6, 1.3, at)) for at in (0.5, 2.0)]
    np.testing.assert_allclose(dist.crps([0.5, 2.0]), exact, rtol=1e-9)
