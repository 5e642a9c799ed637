"""Scores of how unusual a target is for its distribution, and the targets that are not more unusual than a score."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.predictive.predictive import Predictive
from everytree.tables.repeats import row_hashes

SMALLEST_TAIL = 1e-9
"""Quantiles of smaller tails are not exact: where these are asked for, intervals are unbounded."""

ROUNDING = 1e-9
"""Share of a tail by which an end may miss its quantile: ends are moved outward by as much, so that a target that is
as unusual as allowed is inside."""


def tail_scores(dist: Predictive, y: FloatArray) -> FloatArray:
    """(n_rows,) |F(y) - 1/2|; of a value with a probability of its own, the smallest over the step of F there."""
    up_to, from_on = dist.cdf(y), dist.sf(np.nextafter(y, -np.inf))
    return np.asarray(0.5 - np.minimum(np.minimum(up_to, from_on), 0.5))


def tail_interval(dist: Predictive, score: float) -> FloatArray:
    """(n_rows, 2) ends of the targets whose score is at most this."""
    tail = (0.5 - score) * (1.0 - ROUNDING)
    if tail < SMALLEST_TAIL:
        return np.tile([-np.inf, np.inf], (len(dist), 1))
    return dist.quantile([tail, 1.0 - tail])


def ranked_scores(probs: FloatArray, share: FloatArray) -> FloatArray:
    """(n_rows, n_classes) probability of all classes that are more probable than each, and a share of its own."""
    order = np.argsort(-probs, axis=1, kind="stable")
    ranked = np.take_along_axis(probs, order, axis=1)
    scores = np.empty_like(probs)
    np.put_along_axis(scores, order, np.cumsum(ranked, axis=1) - (1.0 - share[:, None]) * ranked, axis=1)
    return scores


def random_shares(codes: NDArray[np.unsignedinteger], salt: int) -> FloatArray:
    """(n_rows,) numbers in [0, 1), drawn for each row by a hash of its codes: the same whenever it is asked for."""
    hashes = row_hashes(codes) ^ np.uint64(salt)
    for factor in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(factor)
    return np.asarray((hashes >> np.uint64(11)) * 2.0**-53)
