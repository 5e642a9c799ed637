"""Events at an unknown rate with a gamma prior: their number (Poisson), and the time until one (Exponential)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betainc, betaincc

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.families.link import Link, LogRateOfCounts, LogRateOfTimes, RowData
from everytree.families.prior_search import SPLIT_PRIORS, STRENGTHS, Search, overall_rate, search_for, strengths
from everytree.families.special import log_negative_binomial
from everytree.families.traits import CENSORED, COUNTS, EXPOSURE, TIMES, RowColumn, Seen, Support


@dataclass(frozen=True, eq=False)
class _Rate(NativeFamily):
    """Base class of Poisson and Exponential: lambda ~ Gamma(shape, rate)."""

    is_in_browser: ClassVar[bool] = True
    hyperparameters: ClassVar[tuple[str, ...]] = ("shape", "rate")
    shape: ArrayLike = 1.0
    rate: ArrayLike = 1.0

    def sample_parameters(self, nodes: NDArray[np.integer], rng: np.random.Generator) -> FloatArray:
        shape, rate = np.broadcast_to(self.at(nodes).hyper, (len(nodes), 2)).T
        return np.asarray(rng.gamma(shape, 1.0 / rate))


class Poisson(_Rate):
    """y ~ Poisson(lambda * exposure); lambda ~ Gamma(shape, rate).

    Statistics: sum of y, sum of exposure, sum of y log(exposure) - log(y!), each as a pair (value, rest) of about 32
    digits.

    Parameters
    ----------
    shape, rate : float or (n_nodes,) array_like

    Notes
    -----
    Row data: `exposure`, positive, 1 by default.
    """

    kernel: ClassVar[str] = "poisson"
    row_data: ClassVar[tuple[str, ...]] = ("exposure",)
    default_row_data: ClassVar[float] = 1.0
    given_columns: ClassVar[tuple[RowColumn, ...]] = (EXPOSURE,)
    support: ClassVar[Support] = COUNTS
    never_negative: ClassVar[tuple[int, ...] | None] = (0, 2)
    mass: ClassVar[slice | None] = slice(2, 3)
    is_tried: ClassVar[bool] = True
    link: ClassVar[Link | None] = LogRateOfCounts()

    @classmethod
    def prior_search(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData, given: Mapping[str, Any], split_prior: Any
    ) -> Search:
        """Search priors around the overall rate, worth `shape` events."""
        exposure = np.asarray(row_data.get("exposure", np.ones(len(y))), dtype=np.float64)
        rate = overall_rate(y, exposure, weight)

        def make(shape: float) -> Poisson:
            return cls(shape, shape / rate)

        return search_for(make, {"shape": 1.0}, given, split_prior, [strengths()], {"shape": STRENGTHS})

    @classmethod
    def to_grow_on(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData
    ) -> tuple[FloatArray, FloatArray | None]:
        """Rates, weighted by exposure."""
        if "exposure" not in row_data:
            return y, weight
        exposure = row_data["exposure"]
        return y / exposure, exposure if weight is None else weight * exposure

    def seen(self, statistics: FloatArray) -> Seen:
        return Seen(statistics[:, 2], "exposure")

    def additive(self, statistics: FloatArray) -> FloatArray:
        return np.ascontiguousarray(statistics[:, 0:4:2])  # pairs (value, rest)

    def components(self, summary: FloatArray, **row_data: Any) -> CountComponents:
        return CountComponents(summary[:, 0], summary[:, 1], row_data.get("exposure", 1.0))

    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> NDArray[np.int64]:
        self.check_row_data(row_data)
        return np.asarray(rng.poisson(theta * np.asarray(row_data.get("exposure", 1.0))), dtype=np.int64)


class Exponential(_Rate):
    """y ~ Exponential with rate lambda; lambda ~ Gamma(shape, rate).

    Statistics: weight of the rows that are not censored, sum of y.

    Parameters
    ----------
    shape, rate : float or (n_nodes,) array_like

    Notes
    -----
    Row data: `censored`, 1 where the event is only known to come after y, 0 by default.
    """

    kernel: ClassVar[str] = "exponential"
    row_data: ClassVar[tuple[str, ...]] = ("censored",)
    given_columns: ClassVar[tuple[RowColumn, ...]] = (CENSORED,)
    support: ClassVar[Support] = TIMES
    is_scored_by_log: ClassVar[bool] = True
    link: ClassVar[Link | None] = LogRateOfTimes()
    grows_standardised: ClassVar[bool] = True

    @classmethod
    def prior_search(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData, given: Mapping[str, Any], split_prior: Any
    ) -> Search:
        """Search priors around the overall rate, worth `shape` events; above 2 the variance of a new row is finite."""
        rate = overall_rate(1.0 - _censored(row_data, len(y)), y, weight)

        def make(shape: float) -> Exponential:
            return cls(shape, shape / rate)

        shapes = (2.1, 4.0, 8.0, 16.0)
        grids = {"shape": shapes, "split_prior": SPLIT_PRIORS}
        return search_for(
            make, {"shape": 2.1}, given, split_prior, [grids], {"shape": (*shapes, 32.0, 100.0, 1e3, 1e4)}
        )

    @classmethod
    def to_grow_on(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData
    ) -> tuple[FloatArray, FloatArray | None]:
        """Events minus their expected number at the overall rate."""
        events = 1.0 - _censored(row_data, len(y))
        return events - overall_rate(events, y, weight) * y, weight

    def seen(self, statistics: FloatArray) -> Seen:
        return Seen(statistics[:, 0], "events")

    def components(self, summary: FloatArray, **row_data: Any) -> WaitingComponents:
        return WaitingComponents(summary[:, 0], summary[:, 1], row_data.get("censored", 0.0))

    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> FloatArray:
        """Draw the times of the events; `censored` is accepted and changes nothing."""
        self.check_row_data(row_data)
        return rng.exponential(1.0 / theta)


class CountComponents:
    """Negative binomial: Poisson with a gamma-distributed rate."""

    is_discrete = True

    def __init__(self, shape: FloatArray, rate: FloatArray, exposure: FloatArray | float) -> None:
        self._shape, self._rate, self._exposure = shape, rate, exposure

    def mean(self) -> FloatArray:
        return self._shape * self._exposure / self._rate

    def variance(self) -> FloatArray:
        return self.mean() * (1.0 + self._exposure / self._rate)

    def mode(self) -> FloatArray:
        """The first y for which p(y + 1) / p(y) = (shape + y) / (y + 1) * exposure / (rate + exposure) is at most 1."""
        return np.floor(np.maximum(self._shape - 1.0, 0.0) * self._exposure / self._rate)

    def parameter_share(self) -> FloatArray:
        """Share of the variance that is due to the unknown rate."""
        return np.broadcast_to(self._exposure / (self._rate + self._exposure), self._shape.shape)

    def log_prob(self, y: FloatArray) -> FloatArray:
        possible = (y == np.floor(y)) & (y >= 0) & np.isfinite(y)
        k = np.where(possible, y, 0.0)
        log_prob = log_negative_binomial(k, self._shape, self._exposure / self._rate)
        return np.where(possible, log_prob, -np.inf)

    def cdf(self, y: FloatArray) -> FloatArray:
        """P(Y <= y) is the incomplete beta function of shape and y + 1 at rate / (rate + exposure)."""
        n, odds = self._next_count(y), self._exposure / self._rate
        return _between(y, 0.0, np.asarray(betainc(self._shape, n, 1.0 / (1.0 + odds)), dtype=np.float64), 1.0)

    def sf(self, y: FloatArray) -> FloatArray:
        """The complement of the cdf; for small exposure / (rate + exposure), the incomplete beta function of that.

        The distance of that ratio from 1 would lose its digits.
        """
        n, odds = self._next_count(y), np.broadcast_to(self._exposure / self._rate, np.shape(y))
        is_rare = odds < 1.0
        sf = betainc(n, self._shape, odds / (1.0 + odds), where=is_rare, out=np.empty(n.shape))
        betaincc(self._shape, n, 1.0 / (1.0 + odds), where=~is_rare, out=sf)
        return _between(y, 1.0, sf, 0.0)

    def _next_count(self, y: FloatArray) -> FloatArray:
        """The smallest whole number beyond y."""
        return np.asarray(np.floor(np.clip(y, 0.0, 1e300)) + 1.0)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        rate = rng.gamma(self._shape, 1.0 / self._rate) * self._exposure
        countable = rate < 1e15  # above, a count equals its rate to fifteen digits, and NumPy refuses to draw it
        return np.where(countable, rng.poisson(np.where(countable, rate, 0.0)), np.floor(rate))


class WaitingComponents:
    """Lomax: exponential with a gamma-distributed rate."""

    is_discrete = False
    lowest = 0.0

    def __init__(self, shape: FloatArray, rate: FloatArray, censored: FloatArray | float) -> None:
        self._shape, self._rate, self._censored = shape, rate, censored

    def mean(self) -> FloatArray:
        """Infinite up to shape 1."""
        return _divide(self._rate, self._shape - 1.0)

    def variance(self) -> FloatArray:
        """Infinite up to shape 2."""
        return _divide(self.mean() ** 2 * self._shape, self._shape - 2.0)

    def parameter_share(self) -> FloatArray:
        """Share of the variance that is due to the unknown rate."""
        return 1.0 / self._shape

    def log_prob(self, y: FloatArray) -> FloatArray:
        """Log density, and the log probability to wait longer than y where the row is censored."""
        possible = (y >= 0) & np.isfinite(y)
        time = np.where(possible, y, 0.0)
        log_survival = -self._shape * np.log1p(time / self._rate)
        log_hazard = np.log(self._shape) - np.log(self._rate + time)
        censored = np.asarray(self._censored) != 0
        impossible = np.where(censored & (y < 0), 0.0, -np.inf)
        return np.where(possible, log_survival + np.where(censored, 0.0, log_hazard), impossible)

    def cdf(self, y: FloatArray) -> FloatArray:
        return -np.expm1(self._log_sf(y))

    def sf(self, y: FloatArray) -> FloatArray:
        return np.exp(self._log_sf(y))

    def _log_sf(self, y: FloatArray) -> FloatArray:
        return np.asarray(-self._shape * np.log1p(np.maximum(y, 0.0) / self._rate))

    def quantile(self, p: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):  # a heavy tail may exceed the largest float
            return np.asarray(self._rate * np.expm1(-np.log1p(-p) / self._shape))

    def sample(self, rng: np.random.Generator) -> FloatArray:
        return np.asarray(rng.exponential(1.0, self._shape.shape) / rng.gamma(self._shape, 1.0 / self._rate))

    def power_tail(self) -> tuple[FloatArray, FloatArray]:
        """The index of the tail and a size: P(Y > y) falls off as y^-index where y is far larger than that size."""
        return self._shape, self._rate

    def extra_distance(self, y: FloatArray, origin: FloatArray) -> FloatArray:
        """E|Y - y| - E|Y - origin|, for an origin that is not negative: the integral of 1 - 2 P(Y > x) between them."""
        time = np.maximum(y, 0.0)
        away, low = time - origin, np.minimum(time, origin)
        # The integral of (1 + x / rate)^-shape, which has a limit where the shape is 1; from the lower end, where the
        # tail is the larger one.
        log_ratio = np.log1p(np.abs(away) / (self._rate + low))
        power = (self._shape - 1.0) * log_ratio
        mean_power = np.where(power == 0.0, 1.0, -np.expm1(-power) / np.where(power == 0.0, 1.0, power))
        integral = (self._rate + low) * self.sf(low) * log_ratio * mean_power
        return np.asarray(away - 2.0 * np.copysign(integral, away) + (time - y))


def _censored(row_data: RowData, n_rows: int) -> FloatArray:
    return np.asarray(row_data.get("censored", np.zeros(n_rows)), dtype=np.float64)


def _between(y: FloatArray, below: float, values: FloatArray, beyond: float) -> FloatArray:
    """Values at counts, and what holds below zero and at infinity."""
    return np.where(y < 0.0, below, np.where(np.isposinf(y), beyond, values))


def _divide(a: FloatArray, b: FloatArray) -> FloatArray:
    """a / b, infinite where b is not positive."""
    return np.asarray(np.divide(a, b, out=np.full(np.broadcast(a, b).shape, np.inf), where=b > 0))
