"""Mixtures of a family's predictive distributions, many at a time: the arithmetic behind `Predictive`.

A `Mixture` is a block of units (rows, or paths that several rows share), each with its components one after another in
flat arrays. Whatever a component cannot do by itself (quantiles, scores) is solved here for all units at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.families.base import FloatArray, mean_less

EXACT_COUNTS = 4096
"""Sums over counts are taken term by term up to here, and by quadrature beyond."""

MANY_COMPONENTS = 32
"""Above this, an integral over the whole mixture is cheaper than panels around each component."""

_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(10)


@dataclass(frozen=True)
class Mixture:
    """Units with weighted components.

    Attributes
    ----------
    components : Components
        One distribution for each entry.
    log_weights : (n_entries,) float64
        The weights sum to 1 over each unit; in logs, since what is next to impossible may explain what no other can.
    starts : (n_units,) int64
        Where each unit's entries start.
    is_discrete : bool
    """

    components: Any
    log_weights: FloatArray
    starts: NDArray[np.int64]
    is_discrete: bool

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def weights(self) -> FloatArray:
        return np.exp(self.log_weights)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(np.append(self.starts, len(self.weights)))

    def _bounds(self) -> NDArray[np.int64]:
        """(n_units + 1,) where each unit's entries start, and where the last one's end."""
        return np.append(self.starts, len(self.weights)).astype(np.int64)

    def average(self, values: FloatArray) -> FloatArray:
        """Weighted sum over each unit. A component of weight zero says nothing, whatever its value, infinite or not."""
        weights = self.weights.reshape(-1, *[1] * (values.ndim - 1))
        with np.errstate(invalid="ignore"):
            terms = np.where(weights > 0.0, weights * values, 0.0)
        return np.add.reduceat(terms, self.starts, axis=0) if len(self) else terms[:0]

    def spread(self, values: FloatArray) -> FloatArray:
        """A number for each unit, repeated for its components."""
        return np.repeat(values, self.lengths, axis=0)

    def mean(self) -> FloatArray:
        """Of each unit."""
        return self.average(self.components.mean())

    def variance(self) -> FloatArray:
        mean = self.mean()
        return np.where(np.isinf(mean), np.inf, self.average(self.components.variance() + self._away(mean) ** 2))

    def _away(self, mean: FloatArray) -> FloatArray:
        """How far each component's mean is from that of its unit, to the last digit however large both are."""
        with np.errstate(invalid="ignore"):  # infinitely far from an infinite mean
            away = mean_less(self.components, self.spread(mean))
        if hasattr(self.components, "mean_less"):
            away -= self.spread(self.average(away))  # what the mean lacks as a double
        return away

    def variance_parts(self) -> FloatArray:
        """(n_units, 3): expected noise, parameter uncertainty, tree uncertainty."""
        variance, share = self.components.variance(), self.components.parameter_share()
        away = self._away(self.mean())
        with np.errstate(invalid="ignore"):
            return self.average(np.stack([variance * (1.0 - share), variance * share, away**2], axis=1))

    def log_prob(self, y: FloatArray) -> FloatArray:
        log_prob: FloatArray = self.components.log_prob(self.spread(y))
        if len(self) == 0:
            return log_prob[:0]
        with np.errstate(divide="ignore"):
            values = log_prob + self.log_weights
            largest = np.maximum.reduceat(values, self.starts)
            safe = np.where(np.isfinite(largest), largest, 0.0)
            total = np.add.reduceat(np.exp(values - self.spread(safe)), self.starts)
            return np.where(np.isposinf(largest), np.inf, safe + np.log(total))

    def cdf(self, y: FloatArray) -> FloatArray:
        return self.average(self.components.cdf(self.spread(y)))

    def sf(self, y: FloatArray) -> FloatArray:
        return self.average(self.components.sf(self.spread(y)))

    def quantile(self, p: FloatArray) -> FloatArray:
        """The smallest y with cdf(y) >= p."""
        return self._discrete_quantile(p) if self.is_discrete else self._continuous_quantile(p)

    def _continuous_quantile(self, p: FloatArray) -> FloatArray:
        """Between the components' own. Solved for the log of the smaller tail, so that far tails are as exact."""
        if hasattr(self.components, "mixture_quantile") and len(self):
            quantiles: FloatArray = self.components.mixture_quantile(self._bounds(), self.weights, p)
            return quantiles
        own = self.components.quantile(self.spread(p))
        inside = self.weights > 0.0
        low = np.minimum.reduceat(np.where(inside, own, np.inf), self.starts) if len(self) else own
        high = np.maximum.reduceat(np.where(inside, own, -np.inf), self.starts) if len(self) else own
        upper = p > 0.5

        def excess(y: FloatArray) -> FloatArray:
            with np.errstate(divide="ignore"):
                below = np.log(np.where(upper, 1.0, self.cdf(y))) - np.log(np.where(upper, 1.0, p))
                above = np.log(np.where(upper, 1.0 - p, 1.0)) - np.log(np.where(upper, self.sf(y), 1.0))
            return np.clip(np.where(upper, above, below), -1e3, 1e3)

        return bracketed_root(excess, low, high)

    def _discrete_quantile(self, p: FloatArray) -> FloatArray:
        """By bisection over whole numbers, after doubling until the upper end is beyond."""

        def reached(y: FloatArray) -> NDArray[np.bool_]:
            return np.where(p > 0.5, self.sf(y) <= 1.0 - p, self.cdf(y) >= p)

        low, high = np.full(len(self), -1.0), np.zeros(len(self))  # not reached at low, reached at high
        while not (done := reached(high)).all():
            low = np.where(done, low, high)
            high = np.where(done, high, 2.0 * high + 1.0)
            if high.max() > 1e300:
                break
        while (open_ := high - low > np.maximum(1.0, 1e-15 * high)).any():
            middle = np.where(open_, np.floor(0.5 * (low + high)), high)
            done = reached(middle)
            high, low = np.where(done, middle, high), np.where(done, low, middle)
        return high

    def crps(self, y: FloatArray, half_spread: FloatArray) -> FloatArray:
        """E|Y - y| - E|Y - Y'| / 2; the second term, which does not depend on y, is given."""
        if hasattr(self.components, "mean_distance"):
            distance = self.average(self.components.mean_distance(self.spread(y)))
        else:  # E|Y - y| = mean - y + 2 sum of cdf below y
            inside = np.clip(np.floor(y), -1.0, None)
            below = self._sum_of_cdf_below(inside) + self.cdf(inside) * (np.maximum(y, 0.0) - np.maximum(inside, 0.0))
            distance = self.mean() - y + 2.0 * np.where(y > 0.0, below, 0.0)
        with np.errstate(invalid="ignore"):
            return np.where(np.isinf(half_spread), np.inf, distance - half_spread)

    def _sum_of_cdf_below(self, y: FloatArray) -> FloatArray:
        """Sum of cdf(k) for k = 0 .. y - 1."""
        return self._sum_over_counts(lambda k: np.where(k < y, self.cdf(k), 0.0), np.maximum(y, 0.0))

    def half_spread(self) -> FloatArray:
        """E|Y - Y'| / 2 = integral of cdf (1 - cdf)."""
        if len(self) == 0:
            return np.empty(0)
        with np.errstate(invalid="ignore"):
            finite = np.isfinite(self.mean())
        if self.is_discrete:
            end = self._discrete_quantile(np.full(len(self), 1.0 - 1e-16))
            value = self._sum_over_counts(lambda k: self.cdf(k) * self.sf(k), end + 1.0)
        elif hasattr(self.components, "mixture_half_spread") and self.lengths.max() > MANY_COMPONENTS:
            value = self.components.mixture_half_spread(self._bounds(), self.weights)
        else:
            value = self._integral(lambda y: self.cdf(y) * self.sf(y))
        return np.where(finite, value, np.inf)

    def entropy(self) -> FloatArray:
        """Of a discrete distribution, in nats."""
        end = self._discrete_quantile(np.full(len(self), 1.0 - 1e-16))

        def surprise(k: FloatArray) -> FloatArray:
            log_prob = self.log_prob(k)
            return np.where(np.isneginf(log_prob), 0.0, -np.exp(log_prob) * log_prob)

        return self._sum_over_counts(surprise, end + 1.0)

    # ---- sums and integrals ---------------------------------------------------------------------------------------

    def _sum_over_counts(self, term: Callable[[FloatArray], FloatArray], end: FloatArray) -> FloatArray:
        """Sum of term(k) for k = 0 .. end - 1: one by one first, then as integrals over panels of smooth pieces."""
        total = np.zeros(len(self))
        for k in range(int(min(end.max(initial=0.0), EXACT_COUNTS))):
            here = np.full(len(self), float(k))
            total += np.where(here < end, term(here), 0.0)
        if end.max(initial=0.0) > EXACT_COUNTS:
            limit = np.maximum(end, EXACT_COUNTS) - 0.5
            edges = np.clip(self._edges(), EXACT_COUNTS - 0.5, limit[:, None])
            total += self._quadrature(term, np.sort(np.column_stack([edges, limit]), axis=1))
        return total

    def _integral(self, term: Callable[[FloatArray], FloatArray]) -> FloatArray:
        return self._quadrature(term, self._edges())

    def _edges(self) -> FloatArray:
        """(n_units, n_edges) ends of panels on which all components are smooth: quantiles, or steps from the mean."""
        if self.is_discrete:
            mean, sd = self.components.mean(), np.sqrt(self.components.variance())
            steps = np.array([-32, -16, -8, -4, -2, -1, 0, 1, 2, 4, 8, 16, 32, 64, 128], dtype=np.float64)
            with np.errstate(invalid="ignore"):
                own = np.nan_to_num(mean[:, None] + sd[:, None] * steps, nan=0.0, posinf=0.0, neginf=0.0)
            fixed = EXACT_COUNTS * 2.0 ** np.arange(1, 1000, 1)
            fixed = fixed[fixed < 1e300]
        else:
            tails = 10.0 ** -np.array([16.0, 11.0, 7.0, 4.0, 2.0, 1.0])
            grid = np.concatenate([tails, [0.5], 1.0 - tails[:0:-1], [1.0 - 2.0**-53]])
            own = np.stack([self.components.quantile(np.full(len(self.weights), p)) for p in grid], axis=1)
            fixed = np.empty(0)
        widest = int(self.lengths.max(initial=0))
        out = np.repeat(own[self.starts][:, None, :], widest, axis=1) if len(self) else own.reshape(0, 1, own.shape[1])
        for j in range(1, widest):
            has = self.lengths > j
            out[has, j] = own[self.starts[has] + j]
        edges = np.column_stack([out.reshape(len(self), -1), np.broadcast_to(fixed, (len(self), len(fixed)))])
        return np.sort(np.where(np.isfinite(edges), edges, np.finfo(float).max ** 0.5), axis=1)

    def _quadrature(self, term: Callable[[FloatArray], FloatArray], edges: FloatArray) -> FloatArray:
        total = np.zeros(len(self))
        for left, right in zip(edges.T[:-1], edges.T[1:], strict=True):
            if not (right > left).any():
                continue
            half, middle = 0.5 * (right - left), 0.5 * (right + left)
            for node, weight in zip(_NODES, _NODE_WEIGHTS, strict=True):
                total += np.where(half > 0.0, weight * half * term(middle + half * node), 0.0)
        return total


def bracketed_root(
    excess: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray, tolerance: float = 1e-13
) -> FloatArray:
    """Where an increasing function of each unit crosses zero, between `low` and `high`.

    Regula falsi with the weight of a stale end halved (Illinois), and a bisection wherever that has not halved the
    bracket in three steps: never slower than bisection by more than that, and usually done in ten.
    """
    f_low, f_high = excess(low), excess(high)
    nearer_low = np.abs(f_low) <= np.abs(f_high)
    root, residual = np.where(nearer_low, low, high), np.where(nearer_low, np.abs(f_low), np.abs(f_high))
    width = high - low
    for step in range(400):
        resolution = 2.0 * np.spacing(np.maximum(np.abs(low), np.abs(high)))
        open_ = (residual > tolerance) & (high - low > resolution)
        if not open_.any():
            break
        with np.errstate(invalid="ignore", divide="ignore"):
            guess = low - f_low * (high - low) / (f_high - f_low)
        if step % 4 == 3:
            guess = np.where(high - low > 0.5 * width, 0.5 * low + 0.5 * high, guess)
            width = high - low
        guess = np.where((guess > low) & (guess < high), guess, 0.5 * low + 0.5 * high)
        f_guess = excess(guess)
        below = f_guess < 0.0
        f_high = np.where(open_, np.where(below, 0.5 * f_high, f_guess), f_high)
        f_low = np.where(open_, np.where(below, f_guess, 0.5 * f_low), f_low)
        low, high = np.where(open_ & below, guess, low), np.where(open_ & ~below, guess, high)
        better = open_ & (np.abs(f_guess) <= residual)
        root, residual = np.where(better, guess, root), np.where(better, np.abs(f_guess), residual)
    return root
