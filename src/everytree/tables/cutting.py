"""Cut points of a column of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray


def midpoints(lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Numbers m with lower <= m < upper, halfway where floating point allows."""
    middle = lower / 2 + upper / 2  # a sum of the two could overflow
    return np.where((lower <= middle) & (middle < upper), middle, lower)


def cut_points(values: FloatArray, weight: FloatArray | None, max_bins: int) -> FloatArray:
    """Cuts halfway between neighbouring values: all of them if that makes at most `max_bins` bins, else quantiles.

    values : (n_rows,), no NaN;  weight : (n_rows,) positive, or None for one each
    """
    distinct, mass = _distinct_mass(values, weight)
    if len(distinct) <= max_bins:
        return midpoints(distinct[:-1], distinct[1:])
    last = _kernels.last_of_bins(mass, max_bins)
    return midpoints(distinct[last], distinct[last + 1])


def _distinct_mass(values: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    if weight is None:
        distinct, counts = np.unique(values, return_counts=True)
        return distinct, counts.astype(np.float64)
    distinct, index = np.unique(values, return_inverse=True)
    return distinct, sums_of(index, weight, len(distinct))


def sums_of(index: NDArray[Any], terms: FloatArray, n: int) -> FloatArray:
    """(n,) sum of the terms of each index."""
    return np.bincount(index, weights=terms, minlength=n).astype(np.float64, copy=False)


def leading_direction(direction: FloatArray) -> FloatArray:
    """Normalise the sign of a direction: its last nonzero part is positive."""
    parts = np.flatnonzero(np.abs(direction) > 1e-6 * np.abs(direction).max())
    return -direction if direction[parts[-1]] < 0 else direction
