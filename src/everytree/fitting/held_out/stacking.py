"""Stacking: weights of trees that maximise the held-out log score of their mixture."""

from __future__ import annotations

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.fitting.held_out.predictions import Predictions

STEPS = 1000
"""Maximum number of steps; they end when the weights no longer change."""


def stacking_weights(predictions: Predictions) -> FloatArray:
    """(n_trees,) weights that sum to 1 and make the mean log score of the mixture largest, to about 1e-3 nats.

    A row is predicted by the trees that were not grown on it, their weights scaled to sum to 1. Each step multiplies a
    tree's weight by its gain (the probability it gave, over that of the mixture) relative to its expected gain; on
    complete data this is the EM algorithm for mixture weights.
    """
    held = predictions.held
    n_trees, n_rows = len(held.trees), held.n_scored
    log_probs, asked = np.full((n_trees, n_rows), -np.inf), np.zeros((n_trees, n_rows), dtype=bool)
    for tree, rows, values in predictions.of_trees:
        if predictions.family.has_classes:
            with np.errstate(divide="ignore"):
                log_probs[tree, rows] = np.log(values[np.arange(len(rows)), held.y[rows].astype(np.int64)])
        else:
            log_probs[tree, rows] = values[:, 0]
        asked[tree, rows] = True
    covered = asked.any(axis=0)
    if not covered.any():
        return np.full(n_trees, 1.0 / n_trees)
    log_probs, asked = log_probs[:, covered], asked[:, covered]
    of_row = held.scored_weight[covered]
    probs = np.exp(log_probs - log_probs.max(axis=0))  # a constant factor per row changes nothing
    weights = np.full(n_trees, 1.0 / n_trees)
    for _ in range(STEPS):
        share = weights[:, None] * asked
        mixture = (weights[:, None] * probs).sum(axis=0)
        earned = (of_row * probs / np.maximum(mixture, 1e-300)).sum(axis=1)
        expected = (of_row * asked / np.maximum(share.sum(axis=0), 1e-300)).sum(axis=1)
        before = weights
        weights = weights * np.where(expected > 0.0, earned / np.maximum(expected, 1e-300), 1.0)
        weights = weights / weights.sum()
        if np.abs(weights - before).max() < 1e-7 / n_trees:
            break
    return weights
