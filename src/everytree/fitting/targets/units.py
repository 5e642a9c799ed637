"""Numbers that trees are grown on, in a unit of their own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.families.prior_search import variance_about

STEP = 2.0**-26
"""To which standardised numbers are rounded, as a share of what most of them are apart."""

MAX_STEPS = 2**30
"""Numbers that are farther apart than so many steps are not taken for rounded ones."""

DIVISORS = range(1, 11)
"""Of the smallest difference between rounded numbers, which need not be the step that they are rounded to."""


class Standardised(NamedTuple):
    """Numbers near zero and of about size one."""

    values: FloatArray
    centre: float  # the numbers are `centre + scale * values`, up to rounding
    scale: float


def standardised(numbers: FloatArray, weight: FloatArray | None) -> Standardised:
    """Return numbers that are the same bits in whatever unit they are given, so that trees grown on them are the same.

    Numbers that were rounded to some step are counted in steps, exactly: splits that are equally good still are. Others
    are in standard deviations about their mean, with so few digits that their sums are exact.
    """
    steps = _in_steps(numbers)
    if steps is not None:
        counts, step = steps
        near = int(np.argmin(np.abs(counts - np.average(counts, weights=weight))))
        values = centred_and_scaled(counts, weight)
        size = _power_of_two(counts, weight)
        return Standardised(values, float(numbers[near]), step / size)
    centre = float(np.average(numbers, weights=weight))
    scale = float(np.sqrt(variance_about(centre, numbers, weight)))
    values = (numbers - centre) / scale
    apart = np.abs(values - np.median(values))
    apart = apart[apart > 0.0]
    # One number far from all others must not make these equal.
    fine = min(2.0 ** np.floor(np.log2(np.median(apart))), 1.0) if len(apart) else 1.0
    return Standardised(np.round(values / (STEP * fine)) * (STEP * fine), centre, scale)


def centred_and_scaled(follow: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Return the same numbers near zero and of size one.

    Sums of numbers far from zero lose digits. The centre is one of the values and the scale a power of two, so that
    nothing is rounded and splits that were equally good still are.
    """
    mean = float(np.average(follow, weights=weight))
    centre = follow[np.argmin(np.abs(follow - mean))]
    return np.asarray((follow - centre) * _power_of_two(follow, weight))


def _power_of_two(follow: FloatArray, weight: FloatArray | None) -> float:
    """Return a factor that makes numbers of about size one."""
    mean = float(np.average(follow, weights=weight))
    return float(2.0 ** -np.round(0.5 * np.log2(variance_about(mean, follow, weight))))


def _in_steps(numbers: FloatArray) -> tuple[FloatArray, float] | None:
    """Return how many steps above the smallest each number is, and the step; None if they were not rounded to one."""
    distinct = np.unique(numbers)
    if len(distinct) < 2:
        return np.zeros(len(numbers)), 1.0
    least: NDArray[np.float64] = np.diff(distinct).min()
    for divisor in DIVISORS:
        counts = (distinct - distinct[0]) / (least / divisor)
        whole = np.round(counts)
        if whole[-1] > MAX_STEPS:
            return None
        if (np.abs(counts - whole) <= 1e-6).all():
            step = (distinct[-1] - distinct[0]) / whole[-1]
            return np.round((numbers - distinct[0]) / step), float(step)
    return None
