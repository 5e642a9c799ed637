"""Counts that vary more than Poisson ones: negative binomial with unknown probability and size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.families.link import Link, LogRateOfOverdispersedCounts, RowData
from everytree.families.prior_search import overall_rate
from everytree.families.rates import Poisson
from everytree.families.shapes import OfShapes
from everytree.families.special import beta_negative_binomial_tail, log_beta_negative_binomial
from everytree.families.traits import COUNTS, EXPOSURE, RowColumn, Seen, Support


@dataclass(frozen=True, eq=False)
class NegativeBinomial(OfShapes):
    """y ~ NegativeBinomial(shape exposure, p); the shape is one of `shapes`; p ~ Beta(2 + shape strength, ...).

    p(y) = Gamma(r + y) / (Gamma(r) y!) p^r (1 - p)^y with r = shape times exposure: mean r (1 - p) / p, variance the
    mean over p. A leaf's variance is proportional to its mean, whatever the exposure ("NB1"); the form whose variance
    grows with the square of an exposure ("NB2" with an offset) has no conjugate prior. Large shapes are `Poisson`, and
    shape 1 is `Geometric`. The variance of a new count is always finite. Statistics: sum of exposure, sum of y, and for
    each shape the sum of the logarithms of Gamma(r + y) / (Gamma(r) y!).

    Parameters
    ----------
    mean : float or (n_nodes,) array_like
        Prior mean of y where the exposure is 1.
    strength : float or (n_nodes,) array_like
        How many rows the prior mean is worth, besides the two events that keep the variance finite.
    shapes : float or (n_shapes,) array_like
        In ascending order; one where it is known. By default 13 from 1/16 to 256.
    shape_probs : (n_shapes,) array_like
        Prior probability of each shape; equal by default.

    Notes
    -----
    Row data: `exposure`, positive, 1 by default.
    """

    kernel: ClassVar[str] = "negative_binomial"
    row_data: ClassVar[tuple[str, ...]] = ("exposure",)
    default_row_data: ClassVar[float] = 1.0
    given_columns: ClassVar[tuple[RowColumn, ...]] = (EXPOSURE,)
    support: ClassVar[Support] = COUNTS
    is_tried: ClassVar[bool] = True
    link: ClassVar[Link | None] = LogRateOfOverdispersedCounts()
    grid: ClassVar[tuple[float, ...]] = tuple(2.0**power for power in range(-4, 9))
    n_shared: ClassVar[int] = 2

    @classmethod
    def overall_mean(cls, y: FloatArray, weight: FloatArray | None, row_data: RowData) -> float:
        return overall_rate(y, np.asarray(row_data.get("exposure", np.ones(len(y))), dtype=np.float64), weight)

    @classmethod
    def to_grow_on(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData
    ) -> tuple[FloatArray, FloatArray | None]:
        """Rates, weighted by exposure."""
        return Poisson.to_grow_on(y, weight, row_data)

    def seen(self, statistics: FloatArray) -> Seen:
        return Seen(statistics[:, 0], "exposure")

    def of_shape(
        self, shape: FloatArray, a: FloatArray, b: FloatArray, **row_data: Any
    ) -> BetaNegativeBinomialComponents:
        return BetaNegativeBinomialComponents(shape * np.asarray(row_data.get("exposure", 1.0)), a, b)

    def sample_rates(self, a: FloatArray, b: FloatArray, rng: np.random.Generator) -> FloatArray:
        return np.asarray(rng.beta(a, b))

    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> NDArray[Any]:
        self.check_row_data(row_data)
        r, p = theta[:, 0] * np.asarray(row_data.get("exposure", 1.0)), np.maximum(theta[:, 1], 1e-12)
        return np.asarray(rng.poisson(rng.gamma(r) * (1.0 - p) / p), dtype=np.int64)


class BetaNegativeBinomialComponents:
    """Negative binomial of size r with a beta-distributed probability."""

    is_discrete = True

    def __init__(self, r: FloatArray, a: FloatArray, b: FloatArray) -> None:
        self._r, self._a, self._b = r, a, b

    def mean(self) -> FloatArray:
        return np.asarray(self._r * self._b / (self._a - 1.0))

    def variance(self) -> FloatArray:
        r, a, b = self._r, self._a, self._b
        return np.asarray(self.mean() * (r + a - 1.0) * (a + b - 1.0) / ((a - 2.0) * (a - 1.0)))

    def parameter_share(self) -> FloatArray:
        """Share of the variance that is due to the unknown probability: r / (r + a - 1)."""
        return np.asarray(self._r / (self._r + self._a - 1.0))

    def mode(self) -> FloatArray:
        """The first y for which p(y + 1) / p(y) = (r + y) (b + y) / ((y + 1) (a + r + b + y)) is at most 1."""
        r, a, b = self._r, self._a, self._b
        return np.maximum(np.ceil((r * b - a - r - b) / (1.0 + a)), 0.0)

    def log_prob(self, y: FloatArray) -> FloatArray:
        possible = (y == np.floor(y)) & (y >= 0) & np.isfinite(y)
        log_prob = log_beta_negative_binomial(np.where(possible, y, 0.0), self._r, self._a, self._b)
        return np.where(possible, log_prob, -np.inf)

    def cdf(self, y: FloatArray) -> FloatArray:
        return beta_negative_binomial_tail(y, self._r, self._a, self._b, is_above=False)

    def sf(self, y: FloatArray) -> FloatArray:
        return beta_negative_binomial_tail(y, self._r, self._a, self._b, is_above=True)

    def power_tail(self) -> tuple[FloatArray, FloatArray]:
        """The index of the tail and a size: P(Y > y) falls off as y^-index where y is far larger than that size."""
        return self._a, self._a + self._r + self._b

    def sample(self, rng: np.random.Generator) -> FloatArray:
        p = np.maximum(rng.beta(self._a, self._b), 1e-300)
        rate = rng.gamma(self._r) * (1.0 - p) / p
        countable = rate < 1e15  # above, a count equals its rate to fifteen digits, and NumPy refuses to draw it
        return np.where(countable, rng.poisson(np.where(countable, rate, 0.0)), np.floor(rate))
