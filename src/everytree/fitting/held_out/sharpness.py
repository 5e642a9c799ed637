"""Calibration by temperature scaling: a power of averaged probabilities, or a scale about the mean of a number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from everytree.base.arrays import FloatArray
from everytree.fitting.held_out.predictions import Predictions
from everytree.predictive.paths import PathPredictive

SHARPNESS = (0.3, 5.0)
"""Range of the sharpness that is searched."""

SHARPNESS_SPREAD = 0.5
"""Prior standard deviation of the log of the sharpness; on small tables it keeps chance from deciding."""


def best_sharpness(
    probs: FloatArray, y: NDArray[np.int64], weight: FloatArray, sharpen: bool = True
) -> tuple[float, float]:
    """Return the mean log probability of y under probs ** sharpness, scaled to sum to 1, and the best sharpness."""
    log_probs = np.log(np.maximum(probs, 1e-300))
    below_top = log_probs - log_probs.max(axis=1, keepdims=True)
    total_weight = float(weight.sum())
    of_y = float((weight * below_top[np.arange(len(y)), y]).sum())  # a product of vectors would start threads of BLAS

    def score(log_sharpness: float) -> float:
        power = np.exp(log_sharpness)
        log_sums = np.log(np.exp(power * below_top).sum(axis=1))
        return float(power * of_y - (weight * log_sums).sum()) / total_weight

    if not sharpen:
        return score(0.0), 1.0
    return _sharpest(score, total_weight)


def _sharpest(score: Callable[[float], float], n_rows: float) -> tuple[float, float]:
    """Return the best mean score over the log of the sharpness, and that sharpness.

    The score is penalised by a weak prior around 1.
    """

    def penalised(log_sharpness: float) -> float:
        return score(log_sharpness) - 0.5 * (log_sharpness / SHARPNESS_SPREAD) ** 2 / n_rows

    low, high = np.log(SHARPNESS)
    found = minimize_scalar(lambda t: -penalised(t), bounds=(low, high), method="bounded", options={"xatol": 1e-3})
    return penalised(found.x), float(np.exp(found.x))


def sharpness_of_numbers(predictions: Predictions, weights: FloatArray | None = None) -> tuple[float, float]:
    """Return the score and how much to narrow the average of the trees around its mean, for numbers.

    Parameters
    ----------
    predictions : Predictions
    weights : (n_trees,) float64, optional
        Of the trees; equal by default.
    """
    held = predictions.held
    predicted, rows = predictions.mixtures(np.ones(len(held.trees)) if weights is None else weights)
    if predictions.family.is_sharpened_by_power:
        return _sharpness_of_cells(predicted, held.y[rows].astype(np.float64), held.scored_weight[rows])
    mixtures, y = predicted.mixtures(), held.y[rows].astype(np.float64)
    mean = mixtures.mean()
    weight = held.scored_weight[rows]

    def score(log_sharpness: float) -> float:
        stretched = mean + (y - mean) * np.exp(log_sharpness)
        return float(np.average(mixtures.log_prob(stretched) + log_sharpness, weights=weight))

    return _sharpest(score, float(weight.sum()))


def _sharpness_of_cells(mixtures: PathPredictive, y: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Return the mean log score and the power of the shares, chosen by the logarithm of the mean CRPS.

    Of cells that are far from each other the log score does not tell which are near the target. Averages of many trees
    that are good by it are too wide.
    """
    average = mixtures.powered(1.0)

    def score(log_power: float) -> float:
        return -float(np.log(max(np.average(average.powered(np.exp(log_power)).crps(y), weights=weight), 1e-300)))

    _, power = _sharpest(score, float(weight.sum()))
    return float(np.average(average.powered(power).log_prob(y), weights=weight)), power
