"""Weights of trees between uniform and evidence: proportional to a power of the evidence.

Power 0 weighs all trees alike. Power 1 is Bayes' rule over the structures, which puts nearly all weight on one of them:
structures that were grown on some of the rows explain these rows too well. The power is chosen by rows that the trees
were not grown on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from everytree.base.arrays import FloatArray
from everytree.fitting.held_out import HeldOut
from everytree.fitting.search import Choice
from everytree.fitting.sharpness import best_sharpness, sharpness_of_numbers

POWERS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)

MIN_GAIN = 2.0
"""Nats over all scored rows that a power must gain over equal weights."""


class Tempered(NamedTuple):
    """Weights of the trees, the power of the evidence, and the score and the sharpness that go with them."""

    weights: FloatArray
    power: float
    score: float
    sharpness: float


class _Prediction(NamedTuple):
    """One tree's predictions for the scored rows that it was not grown on."""

    tree: int
    rows: NDArray[np.int64]
    values: FloatArray


def tempered_weights(held: HeldOut, choice: Choice, log_evidence: FloatArray, *, sharpen: bool) -> Tempered:
    """Return weights proportional to the best power of the evidence of the trees.

    Parameters
    ----------
    held : HeldOut
    choice : Choice
        The priors, chosen with equal weights.
    log_evidence : (n_trees,) float64
    sharpen : bool
        Whether the sharpness is chosen anew for the weights.
    """
    predictions = [
        _Prediction(tree, rows, values) for tree, rows, values in held.predict_chosen(choice.family, choice.split_prior)
    ]
    equal = Tempered(weights_of(log_evidence, 0.0), 0.0, choice.score, choice.sharpness)
    if not predictions or not held.is_honest:
        return equal
    without_row = _evidence_without_row(held, choice, predictions, log_evidence)
    is_asked = np.isfinite(without_row)
    tried = []
    for power in POWERS:
        log_weights = np.where(is_asked, power * np.where(is_asked, without_row, 0.0), -np.inf)
        tried.append((*_score(held, choice, predictions, log_weights, sharpen), power))
    score, sharpness, power = max(tried)
    if (score - tried[0][0]) * float(held.scored_weight.sum()) < MIN_GAIN:
        return equal
    weights = weights_of(log_evidence, power)
    if sharpen and choice.family.support.is_real_line:
        score, sharpness = sharpness_of_numbers(held, choice.family, choice.split_prior, weights)
    return Tempered(weights, power, score, sharpness)


def weights_of(log_evidence: FloatArray, power: float) -> FloatArray:
    """Return weights that sum to 1, proportional to a power of the evidence."""
    log_weights = power * log_evidence
    return np.asarray(np.exp(log_weights - logsumexp(log_weights)))


def _evidence_without_row(
    held: HeldOut, choice: Choice, predictions: list[_Prediction], log_evidence: FloatArray
) -> FloatArray:
    """(n_trees, n_scored) log evidence of each tree without the row; minus infinity where a tree may not be asked.

    By the chain rule it is the evidence of all rows over the probability that the others give to the row. That is exact
    for rows that stand alone and count once.
    """
    found = np.full((len(held.trees), held.n_scored), -np.inf)
    for tree, rows, values in predictions:
        own = _log_score(held, choice, rows, values) * held.scored_weight[rows]
        found[tree, rows] = log_evidence[tree] - (own if held.is_counted else 0.0)
    return found


def _log_score(held: HeldOut, choice: Choice, rows: NDArray[np.int64], values: FloatArray) -> FloatArray:
    """Log probability of the targets of rows by one tree."""
    if not choice.family.has_classes:
        return np.maximum(values[:, 0], -1e300)
    of_target = values[np.arange(len(rows)), held.y[rows].astype(np.int64)]
    return np.asarray(np.log(np.maximum(of_target, 1e-300)))


def _score(
    held: HeldOut, choice: Choice, predictions: list[_Prediction], log_weights: FloatArray, sharpen: bool
) -> tuple[float, float]:
    """Mean log score of the scored rows by trees with these weights, (n_trees, n_scored), and the sharpness."""
    asked = np.isfinite(log_weights).any(axis=0)
    log_weights = log_weights - _log_sum(np.where(asked, log_weights, 0.0))
    weight = held.scored_weight[asked]
    if not choice.family.has_classes:
        logs = np.full(log_weights.shape, -np.inf)
        for tree, rows, values in predictions:
            logs[tree, rows] = log_weights[tree, rows] + values[:, 0]
        return float(np.average(_log_sum(logs[:, asked]), weights=weight)), choice.sharpness
    mixture = np.zeros((held.n_scored, predictions[0].values.shape[1]))
    for tree, rows, values in predictions:
        mixture[rows] += np.exp(log_weights[tree, rows])[:, None] * values
    of_class = held.y[: held.n_scored][asked].astype(np.int64)
    return best_sharpness(mixture[asked], of_class, weight, sharpen)


def _log_sum(logs: FloatArray) -> FloatArray:
    """Logarithm of the sum of exponentials over the first axis, some of which are finite in every column."""
    top = logs.max(axis=0)
    return np.asarray(top + np.log(np.exp(logs - top).sum(axis=0)))
