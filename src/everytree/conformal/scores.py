"""Scores of how unusual a target is for its distribution, and the targets that are not more unusual than a score."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.predictive.paths import path_of_each
from everytree.tables.repeats import row_hashes

if TYPE_CHECKING:
    from everytree.conformal.conformal import Asked
    from everytree.families.base import NativeFamily
    from everytree.models.model import Model
    from everytree.predictive.predictive import Predictive


SMALLEST_SCALE = np.finfo(np.float64).tiny
"""Where a model knows a target exactly."""

MIDDLE = (0.05, 0.5, 0.95)
"""Levels of the quantiles that stand for means and variances where there are none: of heavy tails."""

DEVIATIONS = 3.29
"""Standard deviations between the first and the last of them, of a normal distribution."""

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


def centre_and_scale(asked: Asked, model: Model) -> tuple[FloatArray, FloatArray]:
    """(n_rows,) about which targets lie, and how far: means and standard deviations, or what stands for them."""
    if asked.row_data:
        dist = asked.predictive(model)
        mean, variance = dist.mean(), dist.variance()
    else:
        mean, variance = model.moments(asked.codes, n_jobs=asked.n_jobs)
    without = ~(np.isfinite(mean) & np.isfinite(variance))
    if without.any():
        mean, variance = _replaced(mean, variance, without, asked.predictive(model))
    return mean, np.maximum(np.sqrt(variance), SMALLEST_SCALE)


def moments_of(family: NativeFamily, statistics: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(n_nodes,) means and variances of nodes, or what stands for them."""
    components: Any = family.predictive(statistics)
    with np.errstate(over="ignore", invalid="ignore"):
        mean, variance = components.mean(), components.variance()
    without = ~(np.isfinite(mean) & np.isfinite(variance))
    if not without.any():
        return mean, variance
    return _replaced(mean, variance, without, path_of_each(family, family.summarise(statistics)))


def _replaced(
    mean: FloatArray, variance: FloatArray, which: NDArray[np.bool_], dist: Predictive
) -> tuple[FloatArray, FloatArray]:
    """Medians, and variances of normal distributions as wide as the middle nine tenths."""
    low, middle, high = dist[which].quantile(MIDDLE).T
    mean, variance = mean.copy(), variance.copy()
    mean[which], variance[which] = middle, ((high - low) / DEVIATIONS) ** 2
    return mean, variance


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
