"""Summaries of censored times that do not extrapolate beyond the longest time seen (restricted mean)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.base.words import short_number

N_POINTS = 48
"""Points at which the probability of a longer time is taken; closer to each other near 0, where it falls fastest."""


def restricted_mean(sf: Callable[[float], FloatArray], until: float) -> FloatArray:
    """(n_rows,) mean of the smaller of a time and `until`: the integral of the probability of a longer time.

    Parameters
    ----------
    sf : callable
        The probability of each row's time to be longer than a time.
    until : float
    """
    points, weights = np.polynomial.legendre.leggauss(N_POINTS)
    share = 0.5 + 0.5 * points
    total = sum(
        weight * sf(float(until * t**3)) for t, weight in zip(share, 0.5 * weights * 3.0 * share**2, strict=True)
    )
    return np.asarray(until * total)


def time_text(time: float, last_time: float, digits: int = 4) -> str:
    """A time in a few characters, or that it is beyond the last one that was seen."""
    return short_number(time, digits) if time <= last_time else f"beyond {short_number(last_time, digits)}"
