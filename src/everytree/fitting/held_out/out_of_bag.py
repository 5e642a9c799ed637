"""Predictions of every row by the trees that were not grown on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.fitting.held_out.held_out import HeldOut, every_held_out
from everytree.posterior.rows import Rows
from everytree.predictive.paths import PathPredictive, Paths
from everytree.predictive.pooled import sharpened
from everytree.structure.grown import Grown

if TYPE_CHECKING:
    from everytree.fitting.held_out.search import Choice


@dataclass(frozen=True)
class OutOfBag:
    """Out-of-bag predictions: trees predict rows that they were not grown on, without these in their statistics."""

    # (n_rows, n_classes) or (n_rows,): probabilities of classes, or means; NaN where no tree may predict a row
    prediction: FloatArray
    log_scores: FloatArray | None = None  # (n_rows,): log density of each target, for families that are scored by it
    score: float = np.nan  # NaN until it is computed
    # (n_rows,): which rows were left out together; None where each row was alone, and in models of files
    group: NDArray[np.int64] | None = None

    @property
    def is_known(self) -> NDArray[np.bool_]:
        """(n_rows,) which rows some tree may predict."""
        return np.asarray(~np.isnan(self.prediction.reshape(len(self.prediction), -1)).any(axis=1))

    def on(self, used: NDArray[np.bool_]) -> OutOfBag:
        """Predictions for all rows of a table of which only these were `used`; NaN for the others."""
        log_scores = None if self.log_scores is None else _spread(self.log_scores, used)
        group = None
        if self.group is not None:
            group = np.full(len(used), -1, dtype=np.int64)
            group[used] = self.group
        return replace(self, prediction=_spread(self.prediction, used), log_scores=log_scores, group=group)


def out_of_bag(
    rows: Rows,
    grown: Sequence[Grown],
    statistics: Sequence[FloatArray],
    weights: FloatArray,
    choice: Choice,
    n_jobs: int = 1,
) -> OutOfBag:
    """Average, for each row, the trees that were not grown on it nor on another row of its group.

    Parameters
    ----------
    rows : Rows
    grown : sequence of Grown
    statistics : sequence of (n_nodes, n_statistics) arrays
        Of all rows in each tree.
    weights : (n_trees,) array
        Of the trees; those that may predict a row share the weight of all.
    choice : Choice
        Priors and sharpness.
    n_jobs : int
    """
    held, places = every_held_out(rows, grown, statistics, n_jobs)
    family, split_prior = choice.family, choice.split_prior

    def values(tree: int) -> FloatArray:
        """Class probabilities, or log densities."""
        return np.asarray(held.predict(tree, [family], [split_prior])[0, 0])

    def means(tree: int) -> FloatArray:
        found = held.components(tree, family, split_prior)
        n_rows, n_entries = len(found.values), len(found.log_weights)
        paths = Paths(found.start, np.arange(n_entries), found.log_weights, np.arange(n_rows, dtype=np.int32))
        row_data = {name: column[held.rows[tree]] for name, column in held.row_data.items()}
        return PathPredictive(family, found.parameters, paths, row_data).mean()[:, None]

    if family.has_classes:
        probs = average_of_trees(held, weights, values)
        asked = ~np.isnan(probs[:, 0])
        probs[asked] = sharpened(probs[asked], choice.sharpness)
        return OutOfBag(_spread(probs, places), group=rows.group)
    log_scores = None
    if family.is_scored_by_log:
        log_scores = _spread(np.log(average_of_trees(held, weights, lambda tree: np.exp(values(tree))))[:, 0], places)
    predicted = _spread(average_of_trees(held, weights, means)[:, 0], places)
    return OutOfBag(predicted, log_scores, group=rows.group)


def average_of_trees(held: HeldOut, weights: FloatArray, of_tree: Callable[[int], FloatArray]) -> FloatArray:
    """(n_scored, n_values) weighted mean of the trees that may predict each row; NaN where none may."""
    rows = held.rows
    asked = [tree for tree in range(len(rows)) if len(rows[tree]) and weights[tree] > 0.0]
    total, weight = np.zeros((held.n_scored, 1)), np.zeros((held.n_scored, 1))
    with ThreadPoolExecutor(held.n_jobs) as pool:
        for tree, values in zip(asked, pool.map(of_tree, asked), strict=True):
            if values.shape[1] != total.shape[1]:
                total = np.zeros((held.n_scored, values.shape[1]))
            total[rows[tree]] += weights[tree] * values
            weight[rows[tree]] += weights[tree]
    with np.errstate(invalid="ignore"):
        return np.asarray(total / np.where(weight > 0.0, weight, np.nan))


def _spread(values: FloatArray, used: NDArray[np.bool_]) -> FloatArray:
    """Values of some rows among all of them, NaN for the others."""
    every = np.full((len(used), *values.shape[1:]), np.nan)
    every[used] = values
    return every
