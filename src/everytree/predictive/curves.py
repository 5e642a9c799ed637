"""Distributions of times that are given by their survival curves on a grid of times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.arrays import FloatArray
from everytree.base.checks import probabilities
from everytree.base.errors import ArgumentError
from everytree.families.base import Family
from everytree.predictive.mixture import Mixture
from everytree.predictive.predictive import Predictive, VarianceParts
from everytree.predictive.restricted import time_text

SMALLEST = 1e-300


class CurvePredictive(Predictive):
    """One survival curve for each row, on one grid of times: between two times of it the hazard is constant.

    The curves end at the last time of the grid, that of the last event that was seen. What happens later is not known:
    `sf` stays as it is there, `quantile` is infinite where the curve ends above it, and `mean`, `variance` and `crps`
    are those of times that are cut off at the end.

    Parameters
    ----------
    family : Family
    times : (n_times,) float64
        Ascending and positive.
    curves : (n_rows, n_times) float64
        Probability to be without event at each time; falling along each row.
    """

    def __init__(self, family: Family, times: FloatArray, curves: FloatArray) -> None:
        super().__init__(family, {})
        self._times = np.append(0.0, times)
        logs = np.log(np.maximum(np.minimum.accumulate(curves, axis=1), SMALLEST))
        self._logs = np.column_stack([np.zeros(len(curves)), np.minimum(logs, 0.0)])

    @property
    def times(self) -> FloatArray:
        """The grid; the last time is where the curves end."""
        return self._times[1:]

    def __len__(self) -> int:
        return len(self._logs)

    def _at_rows(self, rows: NDArray[np.int64]) -> Self:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._logs = self._logs[rows]
        return other

    def _sorted_by(self, sort: Callable[[FloatArray], FloatArray]) -> Predictive:
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._logs = sort(self._logs)
        return other

    # ---- curves -----------------------------------------------------------------------------------------------------

    def _log_sf(self, grid: FloatArray) -> FloatArray:
        """(n_points, n_rows) for times (n_points, n_rows) or (n_points, 1)."""
        place, share = self._steps(grid)
        rows = np.arange(len(self))
        low, high = self._logs[rows, place], self._logs[rows, np.minimum(place + 1, len(self._times) - 1)]
        return np.asarray(low + share * (high - low))

    def _steps(self, grid: FloatArray) -> tuple[NDArray[np.int64], FloatArray]:
        """Of each time, the last one of the grid before it, and how far it is on the way to the next."""
        times = np.clip(grid, 0.0, self._times[-1])
        place = np.clip(np.searchsorted(self._times, times, "left") - 1, 0, len(self._times) - 2)
        return place, (times - self._times[place]) / np.diff(self._times)[place]

    def _hazards(self) -> FloatArray:
        """(n_rows, n_times) constant hazard up to each time of the grid."""
        return -np.diff(self._logs, axis=1) / np.diff(self._times)

    def sf(self, y: ArrayLike) -> FloatArray:
        """Probability to be without event at times y; as in `Predictive`. Beyond the end of curves as at the end."""
        return self._at(y, lambda grid: np.exp(self._log_sf(grid)))

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Probability of an event up to times y."""
        return self._at(y, lambda grid: -np.expm1(self._log_sf(grid)))

    def hazard(self, y: ArrayLike) -> FloatArray:
        """Rate of events at times y among those without one so far; 0 beyond the end of the curves."""
        return self._at(y, self._hazard_at)

    def _hazard_at(self, grid: FloatArray) -> FloatArray:
        inside = (grid >= 0.0) & (grid <= self._times[-1])
        return np.where(inside, self._hazards()[np.arange(len(self)), self._steps(grid)[0]], 0.0)

    def log_prob(self, y: ArrayLike) -> FloatArray:
        """Log density of events at times y; beyond the end of the curves, log of the probability of such an event.

        A model cannot say when events happen that come after all it has seen: they are treated as not seen before the
        end, as all rows are that outlast it.
        """

        def of_grid(grid: FloatArray) -> FloatArray:
            logs = self._log_sf(grid)
            with np.errstate(divide="ignore"):
                density = np.log(self._hazard_at(grid)) + logs
            return np.where(grid > self._times[-1], logs, np.where(grid < 0.0, -np.inf, density))

        return self._at(y, of_grid)

    # ---- times ------------------------------------------------------------------------------------------------------

    def quantile(self, p: ArrayLike) -> FloatArray:
        """The time by which the event has happened with probability p; infinite where the curve ends above 1 - p."""
        levels = probabilities("p", p)
        wanted = np.log1p(-levels.ravel())
        out = np.full((len(self), len(wanted)), np.inf)
        for k, level in enumerate(wanted):
            reached = self._logs <= level
            place = np.maximum(reached.argmax(axis=1), 1)
            rows = np.flatnonzero(reached[:, -1])
            high, low = self._logs[rows, place[rows]], self._logs[rows, place[rows] - 1]
            start, gap = self._times[place[rows] - 1], np.diff(self._times)[place[rows] - 1]
            fall = np.where(low > high, low - high, 1.0)
            out[rows, k] = start + gap * np.clip((low - level) / fall, 0.0, 1.0)
        return out[:, 0] if levels.ndim == 0 else out.reshape(len(self), *levels.shape)

    def interval(self, coverage: float = 0.9, kind: Literal["equal", "hdi"] = "equal") -> FloatArray:
        """(n_rows, 2) times between which the event is with probability `coverage`, with tails of equal size.

        The upper one is infinite where the curve ends above the upper tail.
        """
        if kind != "equal":
            raise ArgumentError("kind", f"must be 'equal' for survival curves, which may end early, but is {kind!r}")
        share = float(probabilities("coverage", coverage))
        return self.quantile([0.5 - 0.5 * share, 0.5 + 0.5 * share])

    def rmst(self, tau: float) -> FloatArray:
        """(n_rows,) restricted mean survival time: the mean of the smaller of the time and tau.

        Parameters
        ----------
        tau : float
            Positive, and at most the end of the curves, `times[-1]`.
        """
        last = float(self._times[-1])
        if not (np.ndim(tau) == 0 and 0.0 < tau <= last * (1.0 + 1e-12)):
            raise ArgumentError("tau", f"must be above 0 and at most {last:g}, where the curves end, but is {tau!r}")
        return self._integral(float(tau), 1)

    def _integral(self, tau: float, power: int) -> FloatArray:
        """The integral of power * t^(power - 1) S(t) up to tau: the mean of min(T, tau)^power, for powers 1 and 2."""
        ends = np.append(self._times[self._times < tau], tau)
        logs = self._log_sf(ends[:, None]).T
        gaps, fall = np.diff(ends), -np.diff(logs, axis=1)
        start = np.exp(logs[:, :-1])
        small = fall < 1e-5
        x = np.where(small, 1.0, fall)
        first = np.where(small, 1.0 - fall / 2.0 + fall**2 / 6.0, -np.expm1(-x) / x)
        area = start * gaps * first
        if power == 1:
            return np.asarray(area.sum(axis=1))
        second = np.where(small, 0.5 - fall / 3.0 + fall**2 / 8.0, (-np.expm1(-x) - x * np.exp(-x)) / x**2)
        return np.asarray(2.0 * (ends[:-1] * area + start * gaps**2 * second).sum(axis=1))

    def mean(self) -> FloatArray:
        """(n_rows,) restricted mean: of times that are cut off at the end of the curves."""
        return self._integral(float(self._times[-1]), 1)

    def variance(self) -> FloatArray:
        """(n_rows,) variance of times that are cut off at the end of the curves."""
        last = float(self._times[-1])
        return np.maximum(self._integral(last, 2) - self._integral(last, 1) ** 2, 0.0)

    def variance_parts(self) -> VarianceParts:
        """Raise: averages of sharpened curves have no parts."""
        raise TypeError("variance_parts() is for mixtures of leaves; survival curves have none")

    def sample(self, size: int | None = None, *, rng: Any = None) -> FloatArray:
        """Times of events; infinite for those that come after the end of the curves."""
        return super().sample(size, rng=rng)

    def _draws(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        wanted = np.log(rng.random((len(self), n_draws)))
        out = np.full(wanted.shape, np.inf)
        for row, (logs, levels) in enumerate(zip(self._logs, wanted, strict=True)):
            known = levels >= logs[-1]
            out[row, known] = np.interp(-levels[known], -logs, self._times)
        return out

    def crps(self, y: ArrayLike) -> FloatArray:
        """Continuous ranked probability score of times that are cut off at the end of the curves; 0 is best."""
        return self._at(y, self._scores)

    def _scores(self, grid: FloatArray) -> FloatArray:
        """The continuous ranked probability score of times that are cut off at the end of the curves.

        The integral of (F - 1)^2 beyond y and of F^2 before it: E min(T, y) and squares of S are integrals of
        exponentials between the times of the grid.
        """
        last = float(self._times[-1])
        full = np.broadcast_to(np.clip(grid, 0.0, last), (len(grid), len(self)))
        total = self._squared(np.full((1, len(self)), last))
        before = full - 2.0 * self._area(full)
        return np.asarray(before + total)

    def _area(self, until: FloatArray) -> FloatArray:
        """(n_points, n_rows) integral of S up to times."""
        return self._area_of(self._logs, until)

    def _squared(self, until: FloatArray) -> FloatArray:
        return self._area_of(2.0 * self._logs, until)

    def _area_of(self, logs: FloatArray, until: FloatArray) -> FloatArray:
        gaps, fall = np.diff(self._times), -np.diff(logs, axis=1)
        areas = np.exp(logs[:, :-1]) * gaps * _mean_power(fall)
        sums = np.column_stack([np.zeros(len(logs)), np.cumsum(areas, axis=1)])
        place, share = self._steps(until)
        rows = np.arange(len(logs))
        part = share * fall[rows, place]
        more = np.exp(logs[rows, place]) * share * gaps[place] * _mean_power(part)
        return np.asarray(sums[rows, place] + more)

    # ---- mixtures, which these are not any more ---------------------------------------------------------------------

    def _per_row(self, function: Callable[[Mixture], FloatArray]) -> NoReturn:
        raise TypeError("survival curves are averages that were sharpened; they answer no questions about leaves")

    def _per_target(self, function: Callable[[Mixture, FloatArray], FloatArray], grid: FloatArray) -> NoReturn:
        raise TypeError("survival curves are averages that were sharpened; they answer no questions about leaves")

    def _need(self, method: str, whose: str = "") -> None:
        if method in ("probs", "parameter_share"):
            super()._need(method, whose or "families that define it")

    def _summary_line(self) -> str:
        medians = [time_text(float(median), float(self._times[-1])) for median in self.quantile(0.5)]
        return f"median: {', '.join(medians)}"


def _mean_power(fall: FloatArray) -> FloatArray:
    """(1 - exp(-x)) / x."""
    small = fall < 1e-8
    x = np.where(small, 1.0, fall)
    return np.asarray(np.where(small, 1.0 - fall / 2.0, -np.expm1(-x) / x))
