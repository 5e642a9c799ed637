"""Positive amounts whose spread is proportional to their mean: a gamma distribution with unknown rate and shape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincinv, gammaln

from everytree.base.arrays import FloatArray
from everytree.families.link import AddedToLogarithm, Link, RowData
from everytree.families.shapes import OfShapes
from everytree.families.special import log_rising
from everytree.families.traits import POSITIVE, Seen, Support


@dataclass(frozen=True, eq=False)
class Gamma(OfShapes):
    """y ~ Gamma(shape, rate); the shape is one of `shapes`; rate ~ Gamma(2 + shape strength, ...), so that E[y] = mean.

    The variance of a new target is always finite. Statistics: weight, sum of y, sum of log y.

    Parameters
    ----------
    mean : float or (n_nodes,) array_like
        Prior mean of y.
    strength : float or (n_nodes,) array_like
        How many rows the prior mean is worth, besides the two events that keep the variance finite.
    shapes : float or (n_shapes,) array_like
        In ascending order; one where it is known. By default 17 from 0.25 to 64.
    shape_probs : (n_shapes,) array_like
        Prior probability of each shape; equal by default.

    Examples
    --------
    >>> import everytree as et
    >>> leaf = et.Gamma(mean=10.0, strength=1.0, shapes=[1.0, 4.0, 16.0])
    >>> seen = leaf.statistics([8.0, 9.0, 11.0, 12.0]).sum(axis=0, keepdims=True)
    >>> leaf.posterior_parameters(seen)["shape_probs"].round(2)  # hardly any spread: a large shape
    array([[0.01, 0.1 , 0.89]])
    """

    kernel: ClassVar[str] = "gamma"
    support: ClassVar[Support] = POSITIVE
    grows_standardised: ClassVar[bool] = True
    is_tried: ClassVar[bool] = True
    link: ClassVar[Link | None] = AddedToLogarithm()
    grid: ClassVar[tuple[float, ...]] = tuple(2.0 ** (power / 2.0) for power in range(-4, 13))
    n_shared: ClassVar[int] = 2
    n_rest: ClassVar[int] = 1

    @classmethod
    def overall_mean(cls, y: FloatArray, weight: FloatArray | None, row_data: RowData) -> float:
        return float(np.average(y, weights=weight))

    @classmethod
    def to_grow_on(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData
    ) -> tuple[FloatArray, FloatArray | None]:
        """Logarithms of the targets."""
        return np.log(y), weight

    def seen(self, statistics: FloatArray) -> Seen:
        return Seen(statistics[:, 0], "rows")

    def of_shape(self, shape: FloatArray, a: FloatArray, b: FloatArray, **row_data: Any) -> GammaComponents:
        return GammaComponents(shape, a, b)

    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> NDArray[Any]:
        return np.asarray(rng.gamma(theta[:, 0], 1.0 / theta[:, 1]))


class GammaComponents:
    """Gamma with a gamma-distributed rate: y / (y + b) ~ Beta(shape, a)."""

    is_discrete = False
    lowest = 0.0

    def __init__(self, shape: FloatArray, a: FloatArray, b: FloatArray) -> None:
        self._shape, self._a, self._b = shape, a, b

    def mean(self) -> FloatArray:
        return np.asarray(self._shape * self._b / (self._a - 1.0))

    def variance(self) -> FloatArray:
        return np.asarray(self.mean() * self._b * (self._shape + self._a - 1.0) / ((self._a - 1.0) * (self._a - 2.0)))

    def parameter_share(self) -> FloatArray:
        """Share of the variance that is due to the unknown rate."""
        return np.asarray(self._shape / (self._shape + self._a - 1.0))

    def log_prob(self, y: FloatArray) -> FloatArray:
        possible = (y > 0.0) & np.isfinite(y)
        safe = np.where(possible, y, 1.0)
        log_beta = gammaln(self._shape) - log_rising(self._a, self._shape)
        log_odds = np.log(safe / self._b)
        found = self._shape * log_odds - (self._shape + self._a) * np.log1p(safe / self._b) - np.log(safe) - log_beta
        return np.where(possible, found, -np.inf)

    def cdf(self, y: FloatArray) -> FloatArray:
        share, _ = self._shares(y)
        return np.asarray(betainc(self._shape, self._a, share))

    def sf(self, y: FloatArray) -> FloatArray:
        _, rest = self._shares(y)
        return np.asarray(betainc(self._a, self._shape, rest))

    def _shares(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """y / (y + b) and b / (y + b)."""
        odds = np.clip(y, 0.0, 1e300) / self._b
        return odds / (1.0 + odds), 1.0 / (1.0 + odds)

    def quantile(self, p: FloatArray) -> FloatArray:
        """By the smaller tail."""
        low = betaincinv(self._shape, self._a, np.minimum(p, 0.5))
        high = betaincinv(self._a, self._shape, np.minimum(1.0 - p, 0.5))
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(self._b * np.where(p > 0.5, (1.0 - high) / high, low / (1.0 - low)))

    def power_tail(self) -> tuple[FloatArray, FloatArray]:
        """The index of the tail and a size: P(Y > y) falls off as y^-index where y is far larger than that size."""
        return self._a, self._b * np.maximum(1.0, self._shape)

    def sample(self, rng: np.random.Generator) -> FloatArray:
        return np.asarray(rng.gamma(self._shape) * self._b / rng.gamma(self._a))
