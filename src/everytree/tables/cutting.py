"""Cut points of a column of numbers, and the order of the categories of a column."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray

MIN_ROWS = 10
"""A category of fewer rows is placed at the overall mean."""


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


def category_scores(index: NDArray[np.int64], n_labels: int, targets: FloatArray, weight: FloatArray) -> FloatArray:
    """One number per category, by which categories are ordered according to their targets.

    The mean target of the category's rows, less that of all rows. For several target columns, the first principal
    component of those means over the categories, weighted by their mass, with the sign that makes the last target
    column with a nonzero part count upward. Rounded to twelve digits, so that equal means are equal.

    index : (n_rows,), -1 where missing;  targets : (n_rows, n_targets);  weight : (n_rows,), not negative
    """
    known = (index >= 0) & (weight > 0)
    kept, kept_weight = index[known], weight[known]
    mass = sums_of(kept, kept_weight, n_labels)
    has_enough = np.bincount(kept, minlength=n_labels) >= MIN_ROWS
    overall = weight @ targets / weight.sum()
    apart = np.zeros((n_labels, targets.shape[1]))
    for k in range(targets.shape[1]):
        sums = sums_of(kept, kept_weight * (targets[known, k] - overall[k]), n_labels)
        apart[has_enough, k] = sums[has_enough] / mass[has_enough]
    scores: FloatArray = apart @ _direction(apart, mass)
    size = np.abs(scores).max(initial=0.0)
    return np.round(scores / size, 12) if size > 0 else scores


def _direction(apart: FloatArray, mass: FloatArray) -> FloatArray:
    """First principal component of the rows, weighted by their mass."""
    if apart.shape[1] == 1:
        return np.ones(1)
    return leading_direction(np.linalg.svd(np.sqrt(mass)[:, None] * apart, full_matrices=False)[2][0])


def leading_direction(direction: FloatArray) -> FloatArray:
    """The same direction with the sign that makes its last nonzero part positive."""
    parts = np.flatnonzero(np.abs(direction) > 1e-6 * np.abs(direction).max())
    return -direction if direction[parts[-1]] < 0 else direction
