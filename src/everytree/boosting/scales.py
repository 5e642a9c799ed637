"""Calibration of boosted scores: a factor of their difference from a constant prediction.

The factor is chosen by out-of-fold scores. It is 0 (no column matters) unless these rows gain clearly by another one.
It is chosen once more without each fold, so that the held-out score of a row does not depend on its own target.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray

KEPT = np.array([0.0, 1.0])
FLATTENED = np.linspace(0.0, 1.0, 11)
SHARPENED = np.linspace(0.0, 2.5, 26)
"""Factors to try; between them the log likelihood is a parabola."""

SPREAD = 0.5
"""Prior standard deviation of the factor about 1; on small tables it keeps chance from deciding."""

MIN_GAIN = 2.0
"""Nats that all rows together must gain over factor 0. On noise the best factor gains less in nine tables of ten."""


def scales_of_folds(
    log_likelihood: Callable[[float], FloatArray], fold: NDArray[np.int64], share: float, tried: FloatArray
) -> tuple[float, FloatArray]:
    """The factor by all rows, and (n_folds,) by the rows of all other folds.

    Parameters
    ----------
    log_likelihood : callable
        (n_rows,) nats of each row by a factor.
    fold : (n_rows,) int64
    share : float
        Of independent rows among all: rows of a group count as one.
    tried : (n,) float64
        `KEPT`, `FLATTENED` or `SHARPENED`.
    """
    n_folds = int(fold.max()) + 1
    nats = np.array([np.bincount(fold, log_likelihood(factor), n_folds) for factor in tried]) * share
    # Without other folds nothing is known, and the factor is 0.
    others = [np.delete(nats, k, axis=1).sum(axis=1) for k in range(n_folds)]
    return _best(tried, nats.sum(axis=1)), np.array([_best(tried, nats_of) for nats_of in others])


def _best(tried: FloatArray, nats: FloatArray) -> float:
    """The most probable factor, or 0 where it does not gain enough."""
    gain = nats - nats[0]
    posterior = gain - 0.5 * ((tried - 1.0) / SPREAD) ** 2
    best = int(np.argmax(np.where(gain > MIN_GAIN, posterior, -np.inf)))
    if not gain[best] > MIN_GAIN:
        return 0.0
    return float(tried[best] + _to_top(posterior, best) * (tried[1] - tried[0]))


def _to_top(values: FloatArray, at: int) -> float:
    """How many steps, of at most half a one, the top of the parabola through a value and its neighbours is away."""
    if not 0 < at < len(values) - 1:  # of two factors neither is inside
        return 0.0
    before, here, after = values[at - 1 : at + 2]
    bend = before - 2.0 * here + after
    return float(np.clip(0.5 * (before - after) / bend, -0.5, 0.5)) if bend < 0.0 else 0.0
