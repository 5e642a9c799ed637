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
from everytree.fitting.held_out.predictions import Predictions
from everytree.fitting.held_out.search import Choice
from everytree.fitting.held_out.sharpness import best_sharpness, sharpness_of_numbers

POWERS = (0.0, 1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Small ones are for long tables. Evidences of trees differ by more the more rows there are: with 100,000 rows, even a
power of 0.003 leaves one tree of a hundred."""

MIN_TREES = 10.0
"""Trees that weights leave at least, counted as 1 / sum of squared weights, where there are twice as many. A row is
scored by the trees that were not grown on it, which differ from row to row: what the few heaviest trees get wrong
together does not show."""

LEAST_RATIO = 1.0
"""Log ratio of the largest to the smallest weight below which weights are as good as equal."""

MIN_GAIN = 2.0
"""Nats over all scored rows that a power must gain over equal weights."""


class Tempered(NamedTuple):
    """Weights of the trees, the power of the evidence, and the score and the sharpness that go with them."""

    weights: FloatArray
    power: float
    score: float
    sharpness: float


class _Pairs(NamedTuple):
    """Pairs of a scored row and a tree that was not grown on it, row after row."""

    values: FloatArray  # (n_pairs, n_values): prediction of the row by the tree
    without_row: FloatArray  # (n_pairs,): log evidence of the tree without the row
    rows: NDArray[np.int64]  # (n_asked,): the rows that some tree predicts
    start: NDArray[np.int64]  # (n_asked,): first pair of each of these rows

    def sums(self, terms: FloatArray) -> FloatArray:
        """Sum over the pairs of each row."""
        return np.asarray(np.add.reduceat(terms, self.start, axis=0))

    def log_sums(self, logs: FloatArray) -> FloatArray:
        """Log of the sum of exponentials over the pairs of each row, of which some are above zero."""
        top = np.maximum.reduceat(logs, self.start)
        return np.asarray(top + np.log(self.sums(np.exp(logs - self.of_pairs(top)))))

    def of_pairs(self, of_rows: FloatArray) -> FloatArray:
        """Repeat the number of a row for each of its pairs."""
        return np.repeat(of_rows, np.diff(self.start, append=len(self.without_row)))


def tempered_weights(predictions: Predictions, choice: Choice, log_evidence: FloatArray, *, sharpen: bool) -> Tempered:
    """Return weights proportional to the best power of the evidence of the trees.

    Parameters
    ----------
    predictions : Predictions
    choice : Choice
        Score and sharpness, chosen with equal weights.
    log_evidence : (n_trees,) float64
    sharpen : bool
        Whether the sharpness is chosen anew for the weights.
    """
    equal = Tempered(weights_of(log_evidence, 0.0), 0.0, choice.score, choice.sharpness)
    if not predictions.of_trees or not predictions.held.is_honest:
        return equal
    pairs = _pairs(predictions, log_evidence)
    if len(pairs.rows) == 0:
        return equal
    tried = [(*_score(predictions, choice, pairs, power, sharpen), power) for power in _powers(log_evidence)]
    score, sharpness, power = max(tried)
    if (score - tried[0][0]) * float(predictions.held.scored_weight.sum()) < MIN_GAIN:
        return equal
    weights = weights_of(log_evidence, power)
    if sharpen and choice.family.support.is_real_line:
        score, sharpness = sharpness_of_numbers(predictions, weights)
    return Tempered(weights, power, score, sharpness)


def _powers(log_evidence: FloatArray) -> list[float]:
    """Powers whose weights differ from equal ones and leave enough trees."""
    differ, least = float(np.ptp(log_evidence)), min(MIN_TREES, len(log_evidence) / 2)
    spread = [power for power in POWERS if power * differ >= LEAST_RATIO]
    return [0.0, *(power for power in spread if 1.0 / (weights_of(log_evidence, power) ** 2).sum() >= least)]


def weights_of(log_evidence: FloatArray, power: float) -> FloatArray:
    """Return weights that sum to 1, proportional to a power of the evidence."""
    log_weights = power * log_evidence
    return np.asarray(np.exp(log_weights - logsumexp(log_weights)))


def _pairs(predictions: Predictions, log_evidence: FloatArray) -> _Pairs:
    """Sort the predictions of all trees by rows.

    By the chain rule the evidence without a row is that of all rows over the probability that the others give to the
    row. That is exact for rows that stand alone and count once.
    """
    held, each = predictions.held, predictions.of_trees
    tree = np.repeat([number for number, _, _ in each], [len(rows) for _, rows, _ in each])
    row, values = np.concatenate([rows for _, rows, _ in each]), np.concatenate([values for _, _, values in each])
    own = _log_score(predictions, row, values) * held.scored_weight[row] if held.is_counted else 0.0
    without_row = log_evidence[tree] - own
    known = np.flatnonzero(np.isfinite(without_row))
    order = known[np.argsort(row[known], kind="stable")]
    rows, start = np.unique(row[order], return_index=True)
    return _Pairs(values[order], without_row[order], rows, start)


def _log_score(predictions: Predictions, rows: NDArray[np.int64], values: FloatArray) -> FloatArray:
    """Log probability of the targets of rows."""
    if not predictions.family.has_classes:
        return np.maximum(values[:, 0], -1e300)
    of_target = values[np.arange(len(rows)), predictions.held.y[rows].astype(np.int64)]
    return np.asarray(np.log(np.maximum(of_target, 1e-300)))


def _score(predictions: Predictions, choice: Choice, pairs: _Pairs, power: float, sharpen: bool) -> tuple[float, float]:
    """Mean log score of the scored rows by trees weighted by a power of their evidence, and the sharpness."""
    log_weights = power * pairs.without_row
    log_weights = log_weights - pairs.of_pairs(pairs.log_sums(log_weights))
    held = predictions.held
    weight = held.scored_weight[pairs.rows]
    if not predictions.family.has_classes:
        log_scores = pairs.log_sums(log_weights + pairs.values[:, 0])
        return float(np.average(log_scores, weights=weight)), choice.sharpness
    mixture = pairs.sums(np.exp(log_weights)[:, None] * pairs.values)
    return best_sharpness(mixture, held.y[pairs.rows].astype(np.int64), weight, sharpen)
