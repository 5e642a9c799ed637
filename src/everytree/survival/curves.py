"""Survival curves between the points at which leaves give them, and their sharpening."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.survival.baseline import Baseline

PER_CELL = 2
"""Points of each cell at which curves are computed; between them, their logarithm is a line in the baseline."""

LEAST = 1e-12
"""Probabilities nearer to 0 or 1 count as this."""


@dataclass(frozen=True)
class Sharpening:
    """Curves that differ more from each other than averages over trees do.

    On the scale of log(-log S), where proportional hazards are a constant apart, distances from the mean curve are
    multiplied.
    """

    power: float  # by what; 1 leaves curves as they are
    centre: FloatArray  # (n_times,): the mean of log(-log S) over the rows of fit, at the times of the curves

    def of(self, curves: FloatArray) -> FloatArray:
        """(n_rows, n_times) sharpened curves."""
        if self.power == 1.0:
            return curves
        sharp = np.exp(-np.exp(self.centre + self.power * (log_log(curves) - self.centre)))
        return np.asarray(np.where(curves >= 1.0, 1.0, sharp))


def log_log(curves: FloatArray) -> FloatArray:
    """log(-log S)."""
    return np.asarray(np.log(-np.log(np.clip(curves, LEAST, 1.0 - LEAST))))


def curves_at(baseline: Baseline, at_points: FloatArray, times: FloatArray) -> FloatArray:
    """(n_rows, n_times) survival at times, from that at evenly spaced points of the cells.

    Parameters
    ----------
    baseline : Baseline
    at_points : (n_rows, n_cells * n) float64
        The last point is the end of the last cell.
    times : (n_times,) float64
    """
    n_points = at_points.shape[1]
    logs = np.log(np.maximum(np.column_stack([np.ones(len(at_points)), at_points]), 1e-300))
    place = baseline.position(times) * (n_points / len(baseline.lengths))
    low = np.minimum(place.astype(np.int64), n_points - 1)
    share = place - low
    return np.asarray(np.exp(logs[:, low] * (1.0 - share) + logs[:, low + 1] * share))
