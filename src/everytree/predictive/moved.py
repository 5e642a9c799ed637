"""Predictive distributions of numbers, each shifted by a number and scaled by another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.arrays import FloatArray
from everytree.base.randomness import RandomSource
from everytree.predictive.mixture import Mixture
from everytree.predictive.predictive import Predictive, VarianceParts
from everytree.predictive.targets import read_targets


class ShiftedPredictive(Predictive):
    """The distributions of shift + scale * z, where z has the given ones.

    Parameters
    ----------
    base : Predictive
        Distributions of numbers on a continuous scale.
    shift : (n_rows,) float64
    scale : (n_rows,) float64
        Positive.
    """

    def __init__(self, base: Predictive, shift: FloatArray, scale: FloatArray) -> None:
        super().__init__(base._family, base._row_data)
        self._base, self._shift, self._scale = base, shift, scale

    def __len__(self) -> int:
        return len(self._base)

    def _at_rows(self, rows: NDArray[np.int64]) -> Self:
        return type(self)(self._base[rows], self._shift[rows], self._scale[rows])

    # ---- mixtures are those of the unmoved numbers ------------------------------------------------------------------

    def _per_row(self, function: Callable[[Mixture], FloatArray]) -> FloatArray:
        return self._base._per_row(function)

    def _per_target(self, function: Callable[[Mixture, FloatArray], FloatArray], grid: FloatArray) -> FloatArray:
        return self._base._per_target(function, grid)

    def _scores(self, grid: FloatArray) -> FloatArray:
        return self._base._scores(grid)

    def _draws(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        return self._base._draws(n_draws, rng)

    # ---- answers ----------------------------------------------------------------------------------------------------

    def mean(self) -> FloatArray:
        """(n_rows,) mean of y."""
        return self._shift + self._scale * self._base.mean()

    def variance(self) -> FloatArray:
        """(n_rows,) variance of y."""
        return self._scale**2 * self._base.variance()

    def variance_parts(self) -> VarianceParts:
        """Parts of the variance: noise, parameters, trees. They add up to `variance()`."""
        return VarianceParts(*(self._scale**2 * part for part in self._base.variance_parts()))

    def log_prob(self, y: ArrayLike) -> FloatArray:
        """Log density of targets; as in `Predictive`."""
        return np.asarray(self._base.log_prob(self._unmoved(y)) - np.log(self._scale))

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Probability that the target is at most y."""
        return self._base.cdf(self._unmoved(y))

    def sf(self, y: ArrayLike) -> FloatArray:
        """Probability that the target exceeds y."""
        return self._base.sf(self._unmoved(y))

    def crps(self, y: ArrayLike) -> FloatArray:
        """Continuous ranked probability score: 0 is best, in units of y."""
        return np.asarray(self._base.crps(self._unmoved(y)) * self._scale)

    def quantile(self, p: ArrayLike) -> FloatArray:
        """The smallest y such that the target is at most y with probability p."""
        return self._moved(self._base.quantile(p))

    def interval(self, coverage: float = 0.9, kind: Literal["equal", "hdi"] = "equal") -> FloatArray:
        """(n_rows, 2) lower and upper end of an interval that holds the target with probability `coverage`."""
        return self._moved(self._base.interval(coverage, kind))

    def sample(self, size: int | None = None, *, rng: RandomSource = None) -> FloatArray:
        """Exact draws."""
        return self._moved(self._base.sample(size, rng=rng))

    def _unmoved(self, y: ArrayLike) -> Any:
        """Targets on the scale of the given distributions; a grid keeps its shape."""
        shape = read_targets(y, len(self)).shape
        return ((np.asarray(y, dtype=np.float64) - self._shift) / self._scale).reshape(shape)

    def _moved(self, y: FloatArray) -> FloatArray:
        of_row = (-1, *[1] * (y.ndim - 1))
        return np.asarray(self._shift.reshape(of_row) + self._scale.reshape(of_row) * y)
