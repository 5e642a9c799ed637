"""Intervals hold what they say, and none is shorter than the shortest."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import everytree as et
from cases import LONG, examples, families, rng_for, seeds
from distribution_cases import DISCRETE, discrete, predictive
from everytree.families.rates import CountComponents
from everytree.predictive.paths import PathPredictive, Paths


@families
def test_intervals_hold_what_they_say_and_the_shortest_is_shorter(case):
    dist, _, _ = predictive(case, 21)
    equal, shortest = dist.interval(0.9), dist.interval(0.9, kind="hdi")
    assert equal.shape == shortest.shape == (6, 2)
    for interval in (equal, shortest):
        low = dist.cdf(interval[:, 0] - 1.0) if case in DISCRETE else dist.cdf(np.nextafter(interval[:, 0], -np.inf))
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
@examples(40)
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
    for seed in range(5 if LONG else 1):
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
