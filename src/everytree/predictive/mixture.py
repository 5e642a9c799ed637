"""Mixtures of a family's predictive distributions, many at a time: the arithmetic behind `Predictive`.

A `Mixture` is a block of units (rows, or paths that several rows share), each with its components one after another in
flat arrays. What a component cannot compute by itself (quantiles, scores) is solved here for all units at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.lazy import cached_property
from everytree.families.traits import mean_less
from everytree.predictive.quadrature import FIRST_PANEL, MIN_RUN, Panels, integral_rule, integrate, sum_rule
from everytree.predictive.roots import bracketed_root

ENTRIES_AT_ONCE = 1 << 18
"""Maximum number of components evaluated at a time: bounds memory."""

LARGEST = 1e300
"""Upper limit of integrals and sums."""

FAR = 1e12
"""Distance in sizes from which a heavy tail is replaced by the power law that it approaches."""


@dataclass(frozen=True)
class Mixture:
    """Units with weighted components."""

    components: Any  # one distribution for each entry
    # (n_entries,): the weights sum to 1 over each unit; in logs, since a very improbable node may be the only one to
    # explain a target
    log_weights: FloatArray
    starts: NDArray[np.int64]  # (n_units,): start of each unit's entries
    is_discrete: bool
    pick: Callable[[NDArray[np.int64]], Mixture]  # function that returns the mixture of some units, with repetitions

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def weights(self) -> FloatArray:
        return np.exp(self.log_weights)

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(np.append(self.starts, len(self.weights)))

    def _bounds(self) -> NDArray[np.int64]:
        """(n_units + 1,) start of each unit's entries, and end of the last."""
        return np.append(self.starts, len(self.weights)).astype(np.int64)

    def average(self, values: FloatArray) -> FloatArray:
        """Weighted sum over each unit. A component of weight zero is ignored, even if its value is infinite."""
        weights = self.weights.reshape(-1, *[1] * (values.ndim - 1))
        with np.errstate(invalid="ignore"):
            terms = np.where(weights > 0.0, weights * values, 0.0)
        return np.add.reduceat(terms, self.starts, axis=0) if len(self) else terms[:0]

    @cached_property
    def as_one(self) -> Any:
        """The distribution of each unit, where mixtures of components are of the same kind; else None."""
        return self.components.mixed(self.average) if hasattr(self.components, "mixed") else None

    @cached_property
    def apart(self) -> Mixture:
        """The same mixture of the parts of its components, where these are mixtures themselves."""
        if not hasattr(self.components, "apart"):
            return self
        parts, log_weights, n = self.components.apart()
        return Mixture(
            parts, np.repeat(self.log_weights, n) + log_weights, self.starts * n, self.is_discrete,
            lambda some: self.pick(some).apart,
        )  # fmt: skip

    def spread(self, values: NDArray[Any]) -> NDArray[Any]:
        """Repeat the number of each unit for its components."""
        return np.repeat(values, self.lengths, axis=0)

    def mean(self) -> FloatArray:
        """Mean of each unit."""
        return self.average(self.components.mean())

    def variance(self) -> FloatArray:
        mean = self.mean()
        return np.where(np.isinf(mean), np.inf, self.average(self.components.variance() + self._away(mean) ** 2))

    def _away(self, mean: FloatArray) -> FloatArray:
        """Distance of each component's mean from that of its unit, to the last digit however large both are."""
        with np.errstate(invalid="ignore"):  # infinite minus infinite
            away = mean_less(self.components, self.spread(mean))
        if hasattr(self.components, "mean_less"):
            away -= self.spread(self.average(away))  # the digits that the mean lacks as a double
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
        if self.as_one is not None:
            return np.asarray(self.as_one.quantile(p))
        if self.apart is not self:
            return self.apart.quantile(p)
        return self._discrete_quantile(p) if self.is_discrete else self._continuous_quantile(p)

    def _continuous_quantile(self, p: FloatArray) -> FloatArray:
        """Search between the components' quantiles, by the log of the smaller tail, so that far tails are exact."""
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
        """Bisect over whole numbers, after doubling the upper end until it is beyond."""

        def not_reached(unit: NDArray[np.int64], y: FloatArray) -> NDArray[np.bool_]:
            is_above = p[unit] > 0.5
            tail = self.tail(unit, y, is_above)
            return np.where(is_above, tail > 1.0 - p[unit], tail < p[unit])

        low, high = np.full(len(self), -1.0), np.zeros(len(self))  # not reached at low, reached at high
        open_ = np.arange(len(self))
        while len(open_ := open_[not_reached(open_, high[open_])]) and high.max() <= LARGEST:
            low[open_], high[open_] = high[open_], 2.0 * high[open_] + 1.0
        while len(open_ := np.flatnonzero(high - low > np.maximum(1.0, 1e-15 * high))):
            middle = np.floor(0.5 * (low[open_] + high[open_]))
            further = not_reached(open_, middle)
            low[open_[further]], high[open_[~further]] = middle[further], middle[~further]
        return high

    # ---- scores ---------------------------------------------------------------------------------------------------

    def crps(self, y: FloatArray) -> FloatArray:
        """The integral of (cdf(x) - 1[x >= y])^2, from squared tails: nothing cancels, however heavy they are.

        Finite where the squared tails are integrable: where they fall off faster than x^-1/2. For components without
        `power_tail` it is assumed to be infinite where there is no mean.
        """
        if self.as_one is not None:
            return np.asarray(self.as_one.crps(y))
        if self.apart is not self:
            return self.apart.crps(y)
        has_score = (self._tail_index() > 0.5) & np.isfinite(y)
        asked = np.flatnonzero(has_score)
        out = np.where(np.isnan(y), np.nan, np.inf)
        if len(asked) < len(self):
            out[asked] = self.pick(asked).crps(y[asked]) if len(asked) else out[asked]
        elif len(self):
            out = self._sum_of_squared_tails(y) if self.is_discrete else self._integral_of_squared_tails(y)
        return out

    def centre_score(self) -> FloatArray:
        """(n_units, 2): a point with no less than a quarter of the probability on either side, and its `crps`."""
        if len(self) == 0:
            return np.empty((0, 2))
        centre = self.weighted_median(self._places()[0])
        return np.stack([centre, self.crps(centre)], axis=1)

    def crps_from(self, y: FloatArray, centre: FloatArray, score: FloatArray) -> FloatArray:
        """The score of y from that of the centre, by the difference of E|Y - y| and E|Y - centre|."""
        has_score = np.isfinite(score) & np.isfinite(y)
        with np.errstate(invalid="ignore"):
            further = self.components.extra_distance(self.spread(np.where(has_score, y, centre)), self.spread(centre))
            return np.where(has_score, score + self.average(further), np.where(np.isnan(y), np.nan, np.inf))

    def _integral_of_squared_tails(self, y: FloatArray) -> FloatArray:
        """Integrate both ways from y by x = y + scale sinh(t), which turns power laws into exponentials."""
        lowest = float(getattr(self.components, "lowest", -np.inf))
        origin = np.maximum(y, lowest)
        places, widths = self._places()
        away = np.abs(places - self.spread(origin)) + widths
        scale = np.exp(self.average(np.log(away)))

        def term(function: NDArray[np.int64], t: FloatArray) -> FloatArray:
            unit, is_above = function // 2, function % 2 == 1
            x = origin[unit] + np.where(is_above, 1.0, -1.0) * scale[unit] * np.sinh(t)
            return np.asarray(self.tail(unit, x, is_above) ** 2 * scale[unit] * np.cosh(t))

        n_functions = 2 * len(self)  # for each unit, one below the origin and one above
        function = np.arange(n_functions)
        reach = np.arcsinh(np.maximum.reduceat(np.where(self.weights > 0.0, away, 0.0), self.starts) / scale)
        far = self._power_laws_from(away)
        with np.errstate(over="ignore"):
            end = np.stack([np.minimum(origin - lowest, far) / scale, far / scale], axis=1)
        end = np.arcsinh(np.minimum(end, LARGEST)).ravel()
        reach = np.where(np.repeat(far < LARGEST, 2), end, np.repeat(reach, 2))
        panels = Panels(function, np.zeros(n_functions), np.minimum(end, FIRST_PANEL), np.ones(n_functions, dtype=bool))
        panels = panels.at(end > 0.0)
        total = integrate(term, integral_rule(), panels, function // 2, len(self), reach, end)
        return total + self._beyond(far, origin, is_both_ways=True) + (origin - y)

    def _sum_of_squared_tails(self, y: FloatArray) -> FloatArray:
        """Sum over whole numbers k: the part of [k, k + 1) below y counts cdf(k)^2, the rest sf(k)^2."""

        def term(unit: NDArray[np.int64], k: FloatArray) -> FloatArray:
            below = np.clip(y[unit] - k, 0.0, 1.0)
            is_above = below < 0.5
            squares = self.tail(unit, k, is_above) ** 2
            if (split := (below > 0.0) & (below < 1.0)).any():
                other = self.tail(unit[split], k[split], ~is_above[split]) ** 2
                share = np.maximum(below, 1.0 - below)[split]
                squares[split] = share * squares[split] + (1.0 - share) * other
            return squares

        kink = np.maximum(y, 0.0)
        far = self._power_laws_from(np.zeros(len(self.weights)))
        n_runs = 2.0 ** np.ceil(np.log2(far / MIN_RUN)) - 1.0  # as many as runs that double
        end = np.where(far < LARGEST, _first_run(kink) + n_runs * MIN_RUN, LARGEST)
        total = self._sum_from_zero(term, kink, end) + self._beyond(end, np.zeros(len(self)), is_both_ways=False)
        return total - np.minimum(y, 0.0)

    def _tail_index(self) -> FloatArray:
        """The smallest a of each unit for which some component's tails fall off as x^-a."""
        if hasattr(self.components, "power_tail"):
            index = np.where(self.weights > 0.0, self.components.power_tail()[0], np.inf)
            return np.minimum.reduceat(index, self.starts) if len(self) else index
        return np.where(np.isfinite(self.mean()), np.inf, 0.0)

    def _power_laws_from(self, away: FloatArray) -> FloatArray:
        """Distance from a point beyond which the tails of each unit are power laws, given that of its components.

        Only where tails fall off so slowly that an integral has to continue by the power law; elsewhere `LARGEST`.
        """
        is_heavy = self._tail_index() <= 1.0
        if not is_heavy.any():
            return np.full(len(self), LARGEST)
        size = np.where(self.weights > 0.0, away + self.components.power_tail()[1], 0.0)
        far = FAR * np.minimum(np.maximum.reduceat(size, self.starts), 0.1 * LARGEST / FAR)
        return np.where(is_heavy, far, LARGEST)

    def _beyond(self, far: FloatArray, origin: FloatArray, is_both_ways: bool) -> FloatArray:
        """The integral of the squared tails beyond the distance `far` from the origin, where they are power laws.

        Of c x^-a and d x^-b, it is that of their product: far times both values there, divided by a + b - 1.
        """
        out = np.zeros(len(self))
        heavy = np.flatnonzero(far < LARGEST)
        if len(heavy) == 0:
            return out
        some, far, origin = self.pick(heavy), far[heavy], origin[heavy]
        index = np.where(some.weights > 0.0, some.components.power_tail()[0], np.inf)
        tails = [some.components.sf(some.spread(origin + far))]
        if is_both_ways:
            tails.append(some.components.cdf(some.spread(origin - far)))
        for tail in tails:
            value = np.where(some.weights > 0.0, some.weights * tail, 0.0)
            for place in range(some.lengths.max()):  # pairs of each component of a unit with all of them
                has_one = place < some.lengths
                other = some.starts + np.where(has_one, place, 0)
                pairs = np.add.reduceat(value / (index + some.spread(index[other]) - 1.0), some.starts)
                out[heavy] += np.where(has_one, far * value[other] * pairs, 0.0)
        return out

    def _sum_from_zero(
        self, term: Callable[[NDArray[np.int64], FloatArray], FloatArray], kink: FloatArray, end: FloatArray
    ) -> FloatArray:
        """The sum over whole numbers from 0 on of a term that is smooth on either side of `kink`.

        Up to `end`, or if that is `LARGEST` until the remainder is negligible.
        """
        first = _first_run(kink)
        function, run = np.arange(len(self)), np.full(len(self), float(MIN_RUN))
        panels = [Panels(function, first, run, np.ones(len(self), dtype=bool))]
        done = np.zeros(len(self))
        while (open_ := done < first).any():  # one panel for each binary digit of `first`
            left = done[open_]
            width = 2.0 ** np.floor(np.log2(first[open_] - left))
            panels.append(Panels(function[open_], left, width, np.zeros(len(left), dtype=bool)))
            done[open_] += width
        mean = np.where((self.weights > 0.0) & np.isfinite(self.components.mean()), self.components.mean(), 0.0)
        reach = np.where(end < LARGEST, end, np.maximum.reduceat(mean, self.starts))
        return integrate(term, sum_rule(), Panels.join(panels), function, len(self), reach, end)

    def tail(self, unit: NDArray[np.int64], y: FloatArray, is_above: NDArray[np.bool_]) -> FloatArray:
        """P(Y > y) of a unit where `is_above`, else P(Y <= y), at any number of points of any units."""
        if self._kernel is not None:
            return np.asarray(self._kernel.tails(unit, y, is_above, 1))
        out = np.empty(len(y))
        for function, which in ((Mixture.sf, is_above), (Mixture.cdf, ~is_above)):
            out[which] = self.at_points(function, unit[which], y[which])
        return out

    def at_points(
        self, function: Callable[..., NDArray[Any]], unit: NDArray[np.int64], *columns: FloatArray
    ) -> NDArray[Any]:
        """Evaluate a function of a mixture and of numbers for each unit, at any number of points of any units."""
        block = np.cumsum(self.lengths[unit]) // ENTRIES_AT_ONCE
        parts = np.split(np.arange(len(unit)), np.flatnonzero(np.diff(block)) + 1)
        return np.concatenate(
            [function(self.pick(unit[part]), *(column[part] for column in columns)) for part in parts]
        )

    @cached_property
    def _kernel(self) -> Any:
        """Tails of these mixtures at many points, if the components have a kernel for that."""
        if not hasattr(self.components, "mixture_kernel"):
            return None
        return self.components.mixture_kernel(self._bounds(), self.weights)

    def _places(self) -> tuple[FloatArray, FloatArray]:
        """Location and scale of each component."""
        if hasattr(self.components, "place"):
            place: tuple[FloatArray, FloatArray] = self.components.place()
            return place
        low, middle, high = (self.components.quantile(np.full(len(self.weights), p)) for p in (0.25, 0.5, 0.75))
        with np.errstate(invalid="ignore"):  # both may be infinite, where there is no score either
            return middle, 0.5 * (high - low)

    def weighted_median(self, values: FloatArray) -> FloatArray:
        """The smallest value of each unit with half of the weight at or below it."""
        order = np.lexsort((values, self.spread(np.arange(len(self)))))
        upto = np.cumsum(self.weights[order])
        before = upto[self.starts] - self.weights[order][self.starts]
        half = before + 0.5 * self.average(np.ones(len(values)))
        n_below = np.add.reduceat((upto < self.spread(half)).astype(np.int64), self.starts)
        return np.asarray(values[order][self.starts + np.minimum(n_below, self.lengths - 1)])

    def entropy(self) -> FloatArray:
        """Entropy of a discrete distribution, in nats."""
        if len(self) == 0:
            return np.empty(0)

        def surprise(unit: NDArray[np.int64], k: FloatArray) -> FloatArray:
            log_prob = self.at_points(Mixture.log_prob, unit, k)
            possible = np.where(np.isneginf(log_prob), 0.0, log_prob)
            return np.asarray(-np.exp(possible) * possible)

        return self._sum_from_zero(surprise, np.zeros(len(self)), np.full(len(self), LARGEST))


def _first_run(kink: FloatArray) -> FloatArray:
    """Start of the run of whole numbers that holds the kink."""
    return np.asarray(np.floor(kink / MIN_RUN) * MIN_RUN)
