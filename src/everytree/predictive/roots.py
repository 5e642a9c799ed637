"""Zeros of many increasing functions at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from everytree.base.arrays import FloatArray


def bracketed_root(
    excess: Callable[[FloatArray], FloatArray], low: FloatArray, high: FloatArray, tolerance: float = 1e-13
) -> FloatArray:
    """Find the zero of an increasing function of each unit, between `low` and `high`.

    Regula falsi with the weight of a stale end halved (Illinois), and a bisection wherever that has not halved the
    bracket in three steps: never slower than bisection by more than that, and usually done in ten. The lower end where
    the function is not negative there.
    """
    f_low = excess(low)
    high = np.where(f_low >= 0.0, low, high)
    f_high = excess(high)
    nearer_low = np.abs(f_low) <= np.abs(f_high)
    root, residual = np.where(nearer_low, low, high), np.where(nearer_low, np.abs(f_low), np.abs(f_high))
    width = high - low
    for step in range(400):
        resolution = 2.0 * np.spacing(np.maximum(np.abs(low), np.abs(high)))
        open_ = (residual > tolerance) & (high - low > resolution)
        if not open_.any():
            break
        with np.errstate(invalid="ignore", divide="ignore"):
            guess = low - f_low * (high - low) / (f_high - f_low)
        if step % 4 == 3:
            guess = np.where(high - low > 0.5 * width, 0.5 * low + 0.5 * high, guess)
            width = high - low
        guess = np.where((guess > low) & (guess < high), guess, 0.5 * low + 0.5 * high)
        f_guess = excess(guess)
        below = f_guess < 0.0
        f_high = np.where(open_, np.where(below, 0.5 * f_high, f_guess), f_high)
        f_low = np.where(open_, np.where(below, f_guess, 0.5 * f_low), f_low)
        low, high = np.where(open_ & below, guess, low), np.where(open_ & ~below, guess, high)
        better = open_ & (np.abs(f_guess) <= residual)
        root, residual = np.where(better, guess, root), np.where(better, np.abs(f_guess), residual)
    return root
