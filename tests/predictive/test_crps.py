"""The continuous ranked probability score against its integral, of every family and of one's own."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy import stats
from scipy.special import ndtr

import everytree as et
from cases import Case, examples, in_full, rng_for, seeds
from distribution_cases import CONTINUOUS, DISCRETE, predictive
from everytree.base.arrays import FloatArray


def squared_tails(dist: et.Predictive, i: int, y: float, case: Case) -> float:
    """The integral of (cdf(x) - 1[x >= y])^2 of row i by brute force: term by term, or panel by panel."""
    n = len(dist)
    if case in DISCRETE:
        top = int(max(dist.quantile(1.0 - 1e-13)[i], y)) + 2
        F = np.array([dist.cdf(np.full(n, float(k)))[i] for k in range(top)])
        return float(((F - (np.arange(top) >= y)) ** 2).sum())
    levels = [1e-12, 1e-9, 1e-6, 1e-3, 0.01, 0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95, 0.99, 1 - 1e-3, 1 - 1e-6, 1 - 1e-9]
    bends = getattr(case.family, "edges", ())
    ends = sorted([*dist.quantile(levels)[i], dist.quantile(1.0 - 1e-12)[i], y, *bends])
    nodes, weights = np.polynomial.legendre.leggauss(20)
    total = 0.0
    for left, right in pairwise(ends):
        x = 0.5 * (left + right) + 0.5 * (right - left) * nodes
        F = np.array([dist.cdf(np.full(n, at))[i] for at in x])
        total += 0.5 * (right - left) * float(weights @ (F - (x >= y)) ** 2)
    return total


@in_full
@given(seed=seeds)
@examples(3)
def test_crps_is_its_integral(case, seed):
    dist, y, _ = predictive(case, seed, n_rows=2)
    if case in DISCRETE and dist.quantile(1.0 - 1e-13).max() > 2000:
        return
    for i in range(2):
        assert dist.crps(y)[i] == pytest.approx(squared_tails(dist, i, y[i], case), rel=1e-8)


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


@in_full
def test_crps_of_targets_that_are_not_finite(case):
    dist, _, _ = predictive(case, 5, n_rows=3)
    np.testing.assert_array_equal(dist.crps([np.inf, -np.inf, np.nan]), [np.inf, np.inf, np.nan])


@pytest.mark.parametrize("case", [case for case in CONTINUOUS if case.name != "survival"], ids=str)
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


# ---- forests of lognormal leaves -------------------------------------------------------------------------------------


def lognormal_distance(mean: FloatArray, scale: FloatArray, y: float) -> FloatArray:
    """E|exp(N(mean, scale^2)) - y| of each, for y from 0 on."""
    with np.errstate(divide="ignore"):
        z = (np.log(y) - mean) / scale
    return np.exp(mean + 0.5 * scale**2) * (1.0 - 2.0 * ndtr(z - scale)) + y * (2.0 * ndtr(z) - 1.0)


def lognormal_score(weight: FloatArray, mean: FloatArray, scale: FloatArray, y: float) -> float:
    """E|Y - y| - E|Y - Y'| / 2 of a mixture, by all pairs of its components."""
    away = (mean[:, None] - mean + scale[:, None] ** 2) / np.hypot(scale[:, None], scale)
    pairs = np.exp(mean + 0.5 * scale**2)[:, None] * (2.0 * ndtr(away) - 1.0)  # half of each pair's distance
    beside = max(-y, 0.0)
    return float(beside + weight @ lognormal_distance(mean, scale, max(y, 0.0)) - weight @ pairs @ weight)


@pytest.mark.parametrize(
    ("spread", "noise"), [(1e-3, 0.3), (0.1, 0.01), (1.0, 0.3), (1.0, 1e-4), (1.0, 1e-8), (2.5, 1.0)]
)
def test_the_score_of_a_lognormal_forest_is_that_of_all_pairs_of_nodes(spread, noise):
    """Wide ones, narrow ones, and those whose components are far narrower than the distance between them."""
    rng = rng_for("lognormal score", spread, noise)
    X = rng.integers(0, 6, size=(200, 2)).astype(float)
    y = np.exp(3.0 + spread * (np.floor(X[:, 0] / 2) + 0.3 * rng.normal(size=200)))
    model = et.MetaForestRegressor(
        5, family="lognormal", prior={"noise": noise}, split_prior=0.5, calibration=None, random_state=0
    ).fit(X, y)
    dist = model.predictive(X[:3])
    points = [*y[:3], y.min(), 3.0 * y.max(), 0.0, -1.0]
    found = dist.crps(np.array(points)[:, None])
    for row in range(3):
        mixture = dist._pool.predictive(dist._ends[row : row + 1], {})._per_row
        parts: list[Any] = []
        mixture(lambda one, parts=parts: parts.append(one) or one.mean())
        weight, nodes = parts[0].weights, parts[0].components
        exact = [lognormal_score(weight, nodes._location, nodes._scale, at) for at in points]
        np.testing.assert_allclose(found[:, row], exact, rtol=1e-7)


@pytest.mark.parametrize("spread", [1e-6, 1e-3, 0.1, 1.0])
def test_the_kernel_itself_scores_lognormal_forests(spread):
    """Only mixtures that it cannot promise 1e-8 of are integrated one by one."""
    rng = rng_for("lognormal kernel", spread)
    X = rng.normal(size=(150, 2))
    y = np.exp(spread * (X[:, 0] + 0.3 * rng.normal(size=150)))
    dist = et.MetaForestRegressor(5, family="lognormal", random_state=0).fit(X, y).predictive(X[:20])
    found = dist._students.scores(dist._ends, dist._unsharpened(y[None, :20]), 1)
    assert np.isfinite(found).mean() > 0.8
