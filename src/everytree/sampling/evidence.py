"""The evidence, summed over all structures, from chains at several powers of it.

The ratio of the evidences at neighbouring powers a < b is a mean of q_b / q_a over structures drawn at a, and one over
a mean of q_a / q_b over those drawn at b. Stepping stones multiply such ratios from power 0, where the evidence is 1.
Each is computed from the draws of both sides by Bennett's acceptance ratio, the estimate of least variance.

Neighbours exchange structures. Their rejections add up to a length of the way from the prior to the posterior; the
powers are placed so that each step has the same part of it, which is best for the exchange.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.special import expit, logsumexp

from everytree.base.arrays import FloatArray

N_BATCHES = 10
"""Batches of a chain for the error of its estimate."""


@dataclass(frozen=True)
class EvidenceEstimate:
    """Log evidence with its standard error."""

    value: float
    error: float


def estimate_evidence(own: FloatArray, hotter: FloatArray, colder: FloatArray) -> EvidenceEstimate:
    """Log evidence at the last power, where the first power is 0.

    `own`, `hotter` and `colder`, (n_chains, n_draws, n_powers): log q of each structure at its own power, at the one
    before and at the one after.
    """
    upward = colder[:, :, :-1] - own[:, :, :-1]
    downward = hotter[:, :, 1:] - own[:, :, 1:]
    n_chains, n_draws, n_steps = upward.shape
    value, influence = 0.0, np.zeros((n_chains, n_draws))
    for step in range(n_steps):
        up, down = upward[:, :, step], downward[:, :, step]
        ratio = bennett_ratio(up.ravel(), down.ravel())
        value += ratio
        # The ratio makes two sums of weights equal. To first order, a draw moves it by its weights over the slope of
        # their difference. Draws of one time are summed over all steps: those of neighbouring powers move together.
        above, below = expit(up - ratio), expit(down + ratio)
        slope = (above * (1.0 - above)).sum() + (below * (1.0 - below)).sum()
        influence += (above - below) / max(slope, 1e-300)
    return EvidenceEstimate(float(value), _error_of_sum(influence))


def _error_of_sum(influence: FloatArray) -> float:
    """Standard error of the sum of all entries, by batches of neighbouring draws of each chain."""
    n_draws = influence.shape[1]
    edges = np.linspace(0, n_draws, min(N_BATCHES, n_draws) + 1).astype(int)
    batches = np.array([influence[:, a:b].sum(axis=1) for a, b in pairwise(edges)])
    return float(np.sqrt(batches.size * batches.var(ddof=1))) if batches.size > 1 else float("nan")


def bennett_ratio(up: FloatArray, down: FloatArray) -> float:
    """Log of Z_b / Z_a from log q_b / q_a of draws at a and log q_a / q_b of as many draws at b."""
    low = min(logsumexp(up) - np.log(len(up)), np.log(len(down)) - logsumexp(down)) - 1.0
    high = max(logsumexp(up) - np.log(len(up)), np.log(len(down)) - logsumexp(down)) + 1.0
    for _ in range(200):  # the difference of the two sums falls from positive to negative
        middle = 0.5 * (low + high)
        if expit(up - middle).sum() > expit(down + middle).sum():
            low = middle
        else:
            high = middle
    return float(0.5 * (low + high))


def first_powers(n: int, temperature: float) -> FloatArray:
    """n powers to begin with, from 0 to `temperature`; the target alone if n is 1."""
    if n < 3:
        return np.array([0.0, temperature])[2 - n :]
    return np.concatenate([[0.0], temperature * np.geomspace(0.01, 1.0, n - 1)])


def adapted_powers(powers: FloatArray, exchange_rate: FloatArray) -> FloatArray:
    """Powers with the same ends whose neighbours should be rejected equally often.

    `powers`: (n,). `exchange_rate`, (n - 1,): mean acceptance probability of an exchange of each power with the next.
    """
    n = len(powers)
    if n < 3:
        return powers
    rejected = np.clip(1.0 - exchange_rate, 1e-3, 1.0)
    length = np.concatenate([[0.0], np.cumsum(rejected)])
    adapted = np.interp(np.linspace(0.0, length[-1], n), length, powers)
    adapted[0], adapted[-1] = powers[0], powers[-1]
    return adapted
