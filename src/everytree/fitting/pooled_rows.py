"""Distributions of numbers for rows that trees were not grown on, averaged over these trees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.fitting.held_out import HeldOut
from everytree.posterior.split_prior import SplitPriorLike
from everytree.predictive.paths import PathPredictive, Paths
from everytree.predictive.predictive import Predictive

POOLED_ROWS = 1000
"""Number of scored rows whose distributions are made."""


POOL = "pool"
"""Under which the last one is kept."""

SMALL_WEIGHT = 1e-6
"""Nodes with a smaller share of the weight of their tree are left out."""


class Pool(NamedTuple):
    """Distributions of some of the scored rows, and which rows these are."""

    predicted: Predictive
    rows: NDArray[np.int64]


def pool_without_own_row(
    held: HeldOut, family: NativeFamily, split_prior: SplitPriorLike, weights: FloatArray
) -> Pool:  # fmt: skip
    """Return the average of the trees that may predict a row, for the first of the scored rows.

    The last one is kept: the sharpness and the scores of unseen rows mostly need the same.

    Parameters
    ----------
    held : HeldOut
    family : NativeFamily
    split_prior : float or callable
    weights : (n_trees,) float64
        Of the trees; only their ratios matter.
    """
    ratios = (weights / weights.max()).tobytes()
    pool: Pool = held.kept(
        POOL, (family, split_prior), lambda: _pooled(held, family, split_prior, weights), numbers=ratios
    )  # fmt: skip
    return pool


def _pooled(held: HeldOut, family: NativeFamily, split_prior: SplitPriorLike, weights: FloatArray) -> Pool:
    chosen = np.zeros(held.n_scored, dtype=bool)
    chosen[:POOLED_ROWS] = True
    row_of, log_weights, parameters = [], [], []
    for tree, rows in enumerate(held.rows):
        if len(rows) == 0 or weights[tree] == 0.0:
            continue
        start, log_weight, parameter = held.components(tree, family, split_prior)
        of_entry = np.repeat(rows, np.diff(start))
        kept = chosen[of_entry] & (log_weight > np.log(SMALL_WEIGHT))
        log_weight = log_weight + np.log(weights[tree])
        row_of.append(of_entry[kept])
        log_weights.append(log_weight[kept])
        parameters.append(parameter.reshape(len(log_weight), -1)[kept])
    order = np.argsort(np.concatenate(row_of), kind="stable")
    rows, start = np.unique(np.concatenate(row_of)[order], return_index=True)
    log_weight = np.concatenate(log_weights)[order]
    ends = np.append(start, len(order))
    top = np.maximum.reduceat(log_weight, start)  # weights of trees may be far below the range of doubles
    total = top + np.log(np.add.reduceat(np.exp(log_weight - np.repeat(top, np.diff(ends))), start))
    paths = Paths(
        ends.astype(np.int64),
        np.arange(len(order)),
        log_weight - np.repeat(total, np.diff(ends)),
        np.arange(len(rows), dtype=np.int32),
    )
    row_data = {name: values[rows] for name, values in held.row_data.items()}
    return Pool(PathPredictive(family, np.concatenate(parameters)[order], paths, row_data), rows)
