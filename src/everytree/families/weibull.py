"""Times until an event at a rate that grows or falls as a power of time: Weibull with unknown rate and shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from everytree.base.arrays import FloatArray
from everytree.families.link import Link, LogRateOfTimes, RowData
from everytree.families.prior_search import overall_rate
from everytree.families.shapes import OfShapes
from everytree.families.special import log_rising
from everytree.families.traits import CENSORED, POSITIVE, RowColumn, Seen, Support


@dataclass(frozen=True, eq=False)
class Weibull(OfShapes):
    """y^shape ~ Exponential(rate); the shape is one of `shapes`; rate ~ Gamma(strength + 2 / shape, ...): E[y] = mean.

    The variance of a new time is always finite. A shape of 1 is `Exponential`. Times are from 1e-15 to 1e15.
    Statistics: weight of the rows that are not censored, sum of y^shape for each shape, sum of log y of those rows.

    Parameters
    ----------
    mean : float or (n_nodes,) array_like
        Prior mean of y.
    strength : float or (n_nodes,) array_like
        How many events the prior mean is worth, besides those that keep the variance finite.
    shapes : float or (n_shapes,) array_like
        In ascending order, at most 16; one where it is known. By default 13 from 0.25 to 16.
    shape_probs : (n_shapes,) array_like
        Prior probability of each shape; equal by default.

    Notes
    -----
    Row data: `censored`, 1 where the event is only known to come after y, 0 by default.
    """

    kernel: ClassVar[str] = "weibull"
    row_data: ClassVar[tuple[str, ...]] = ("censored",)
    given_columns: ClassVar[tuple[RowColumn, ...]] = (CENSORED,)
    support: ClassVar[Support] = POSITIVE
    is_scored_by_log: ClassVar[bool] = True
    grows_standardised: ClassVar[bool] = True
    is_tried: ClassVar[bool] = True
    link: ClassVar[Link | None] = LogRateOfTimes()
    grid: ClassVar[tuple[float, ...]] = tuple(2.0 ** (power / 2.0) for power in range(-4, 9))
    n_shared: ClassVar[int] = 1
    n_rest: ClassVar[int] = 1
    has_powers: ClassVar[bool] = True

    @classmethod
    def overall_mean(cls, y: FloatArray, weight: FloatArray | None, row_data: RowData) -> float:
        return 1.0 / overall_rate(1.0 - _censored(row_data, len(y)), y, weight)

    @classmethod
    def to_grow_on(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData
    ) -> tuple[FloatArray, FloatArray | None]:
        """Logarithms; where some are censored, events minus their expected number at the overall rate."""
        if "censored" not in row_data:
            return np.log(y), weight
        events = 1.0 - _censored(row_data, len(y))
        return events - overall_rate(events, y, weight) * y, weight

    def seen(self, statistics: FloatArray) -> Seen:
        return Seen(statistics[:, 0], "events")

    def of_shape(self, shape: FloatArray, a: FloatArray, b: FloatArray, **row_data: Any) -> WeibullComponents:
        return WeibullComponents(shape, a, b, row_data.get("censored", 0.0))

    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> NDArray[Any]:
        """Draw the times of the events; `censored` is accepted and changes nothing."""
        self.check_row_data(row_data)
        return np.asarray(rng.exponential(1.0 / theta[:, 1]) ** (1.0 / theta[:, 0]))


class WeibullComponents:
    """Weibull with a gamma-distributed rate: P(Y > y) = (1 + y^shape / b)^-a."""

    is_discrete = False
    lowest = 0.0

    def __init__(self, shape: FloatArray, a: FloatArray, b: FloatArray, censored: FloatArray | float) -> None:
        self._shape, self._a, self._b, self._censored = shape, a, b, censored

    def _moment(self, power: float) -> FloatArray:
        """E[y^power]."""
        up = power / self._shape
        with np.errstate(over="ignore"):
            return np.exp(gammaln(1.0 + up) + up * np.log(self._b) - log_rising(self._a - up, up))

    def mean(self) -> FloatArray:
        return self._moment(1.0)

    def variance(self) -> FloatArray:
        return np.asarray(self._moment(2.0) - self._moment(1.0) ** 2)

    def parameter_share(self) -> FloatArray:
        """Share of the variance that is due to the unknown rate: the rest is E[Var(y given rate)]."""
        up = 1.0 / self._shape
        of_unit = 1.0 - np.exp(2.0 * gammaln(1.0 + up) - gammaln(1.0 + 2.0 * up))
        return np.asarray(np.clip(1.0 - of_unit * self._moment(2.0) / self.variance(), 0.0, 1.0))

    def log_prob(self, y: FloatArray) -> FloatArray:
        """Log density, and the log probability to wait longer than y where the row is censored."""
        possible = (y > 0.0) & np.isfinite(y)
        time = np.where(possible, y, 1.0)
        past = self._past(time)
        log_hazard = np.log(self._a * self._shape / time) + np.log(past) - np.log1p(past)
        censored = np.asarray(self._censored) != 0
        impossible = np.where(censored & (y <= 0.0), 0.0, -np.inf)
        return np.where(possible, -self._a * np.log1p(past) + np.where(censored, 0.0, log_hazard), impossible)

    def cdf(self, y: FloatArray) -> FloatArray:
        return -np.expm1(self._log_sf(y))

    def sf(self, y: FloatArray) -> FloatArray:
        return np.exp(self._log_sf(y))

    def _log_sf(self, y: FloatArray) -> FloatArray:
        return np.asarray(-self._a * np.log1p(self._past(np.maximum(y, 0.0))))

    def _past(self, y: FloatArray) -> FloatArray:
        """y^shape / b."""
        with np.errstate(over="ignore"):
            return np.asarray(np.minimum((y * self._b ** (-1.0 / self._shape)) ** self._shape, 1e300))

    def quantile(self, p: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            past = np.expm1(-np.log1p(-p) / self._a)
            return np.asarray((self._b * past) ** (1.0 / self._shape))

    def power_tail(self) -> tuple[FloatArray, FloatArray]:
        """The index of the tail and a size: P(Y > y) falls off as y^-index where y is far larger than that size."""
        return self._a * self._shape, self._b ** (1.0 / self._shape)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        return np.asarray((rng.exponential(1.0, self._a.shape) * self._b / rng.gamma(self._a)) ** (1.0 / self._shape))


def _censored(row_data: RowData, n_rows: int) -> FloatArray:
    return np.asarray(row_data.get("censored", np.zeros(n_rows)), dtype=np.float64)
