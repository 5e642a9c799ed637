"""Predictive distributions whose mixtures are given: for each row, the nodes on its path and their weights.

A row that ends in terminal t is, a posteriori, in the leaf s on its path with probability prod(split_prob of the nodes
above s) * (1 - split_prob[s]). Rows with the same path share all of that, so everything that does not depend on the row
itself is computed once per path and looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.families.base import Family
from everytree.families.categorical import Bernoulli, Categorical
from everytree.predictive.mixture import Mixture
from everytree.predictive.moved import ShiftedPredictive
from everytree.predictive.predictive import Predictive

ENTRIES_AT_ONCE = 1 << 18
"""Maximum number of (row, node) pairs processed at a time: bounds memory for any number of rows and targets."""


@dataclass(frozen=True)
class Paths:
    """Nodes and weights, path by path, and the path of each row."""

    start: NDArray[np.int64]  # (n_paths + 1,): Path p owns entries start[p] .. start[p + 1] of the two arrays below.
    nodes: NDArray[np.int64]  # (n_entries,): rows of the summary of nodes that belongs to the paths
    log_weights: FloatArray  # (n_entries,): the weights sum to 1 over each path
    of_row: NDArray[np.int32]  # (n_rows,) int32

    def __len__(self) -> int:
        return len(self.start) - 1

    def entries(self, paths: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the entries of some paths, one path after the other, and the number of entries of each."""
        first = self.start[paths]
        lengths = self.start[paths + 1] - first
        starts = np.cumsum(lengths) - lengths
        return np.repeat(first - starts, lengths) + np.arange(lengths.sum()), lengths

    def at_rows(self, rows: NDArray[np.int64]) -> Paths:
        """Return the paths of some rows, without those that none of them has."""
        used, of_row = np.unique(self.of_row[rows], return_inverse=True)
        entries, lengths = self.entries(used)
        start = np.concatenate([[0], np.cumsum(lengths)])
        return Paths(start, self.nodes[entries], self.log_weights[entries], of_row.astype(np.int32))


class PathPredictive(Predictive):
    """Distributions of rows whose paths are known; rows may share them.

    Parameters
    ----------
    family : Family
        For each row of the summary.
    summary : (n_nodes, ...) float64
        Quantities that the predictive of each node needs.
    paths : Paths
    row_data : mapping of str to (n_rows, ...) array
        Row data of the family.
    """

    def __init__(self, family: Family, summary: FloatArray, paths: Paths, row_data: Mapping[str, NDArray[Any]]) -> None:
        super().__init__(family, row_data)
        self._summary = summary
        self._paths = paths

    def __len__(self) -> int:
        return len(self._paths.of_row)

    def _at_rows(self, rows: NDArray[np.int64]) -> Self:
        row_data = {name: values[rows] for name, values in self._row_data.items()}
        return type(self)(self._family, self._summary, self._paths.at_rows(rows), row_data)

    def sharpened(self, sharpness: float) -> Predictive:
        """The distributions of numbers narrowed: their shares raised to this power, or divided by it about the mean."""
        if self._family.is_sharpened_by_power:
            return self.powered(sharpness)
        if sharpness == 1.0:
            return self
        mean = self.mean()
        return ShiftedPredictive(self, mean * (1.0 - 1.0 / sharpness), np.full(len(mean), 1.0 / sharpness))

    def powered(self, power: float) -> PathPredictive:
        """One distribution for each row, the mixture with its shares of cells raised to a power."""
        shares = self._per_row(lambda mixture: np.asarray(mixture.as_one.powered(power).shares))
        return path_of_each(self._family, np.column_stack([shares, np.zeros(len(shares))]))

    # ---- once per path --------------------------------------------------------------------------------------------

    def _per_row(self, function: Callable[[Mixture], FloatArray]) -> FloatArray:
        if self._has_repeated_rows:
            return self._one_row_per_path()._per_row(function)[self._paths.of_row]
        return self._evaluated(function, self._paths.of_row, np.arange(len(self)))

    def _per_target(self, function: Callable[..., FloatArray], grid: FloatArray, *columns: FloatArray) -> FloatArray:
        """As in `Predictive`; `function` may take more columns of n_rows numbers."""
        if self._has_repeated_rows and grid.shape[1] == 1 and not columns:
            return self._one_row_per_path()._per_target(function, grid)[:, self._paths.of_row]
        out, n_points = np.empty((len(grid), len(self))), max(1, ENTRIES_AT_ONCE // max(1, len(self)))
        for points in (slice(first, first + n_points) for first in range(0, len(grid), n_points)):
            out[points] = self._at_points(function, grid[points], *columns)
        return out

    def _at_points(self, function: Callable[..., FloatArray], grid: FloatArray, *columns: FloatArray) -> FloatArray:
        """Like `_per_target`, for a few points: all rows for the first one, then all for the second, and so on."""
        shape = len(grid), len(self)
        paths, rows = np.tile(self._paths.of_row, len(grid)), np.tile(np.arange(len(self)), len(grid))
        repeated = [np.broadcast_to(column, shape).ravel() for column in (grid, *columns)]
        return self._evaluated(function, paths, rows, *repeated).reshape(shape)

    def _scores(self, grid: FloatArray) -> FloatArray:
        """Compute once what does not depend on the targets, where a mixture is evaluated at several of them."""
        if self._has_repeated_rows and grid.shape[1] == 1:
            return self._one_row_per_path()._scores(grid)[:, self._paths.of_row]
        n_targets, n_mixtures = len(grid) * len(self), len(self) if self._row_data else len(self._paths)
        if n_targets <= n_mixtures:
            return self._per_target(Mixture.crps, grid)
        if hasattr(self._no_components(), "extra_distance"):
            return self._per_target(Mixture.crps_from, grid, *self._per_row(Mixture.centre_score).T)
        return self._per_target(Mixture.crps, grid) if self._row_data else self._scores_of_distinct(grid)

    def _scores_of_distinct(self, grid: FloatArray) -> FloatArray:
        """Evaluate each distinct target of a path once."""
        shape = (len(grid), len(self))
        targets, path_of_target = np.broadcast_to(grid, shape).ravel(), np.tile(self._paths.of_row, len(grid))
        distinct, which = _distinct(path_of_target, targets)
        asked = self._with_paths_of(path_of_target[distinct])
        scores = asked._per_target(Mixture.crps, targets[None, distinct])[0]
        return np.asarray(scores[which].reshape(shape))

    @property
    def _has_repeated_rows(self) -> bool:
        """Whether some rows share a path, and with it their distribution."""
        return not self._row_data and len(self._paths) < len(self)

    def _one_row_per_path(self) -> Self:
        return self._with_paths_of(np.arange(len(self._paths), dtype=np.int32))

    def _with_paths_of(self, of_row: NDArray[np.int32]) -> Self:
        """Rows with other paths, for a family without row data."""
        return type(self)(self._family, self._summary, replace(self._paths, of_row=of_row), {})

    # ---- draws ----------------------------------------------------------------------------------------------------

    def _draws(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        if len(self) == 0 or n_draws == 0:
            return np.empty((len(self), n_draws))
        paths = self._paths
        weights = np.exp(paths.log_weights)
        upto = np.cumsum(weights)
        before = (upto - weights)[paths.start[:-1]][paths.of_row]
        total = np.add.reduceat(weights, paths.start[:-1])[paths.of_row]
        first, last = paths.start[paths.of_row], paths.start[paths.of_row + 1] - 1
        columns = []
        for _ in range(n_draws):
            entries = np.searchsorted(upto, before + rng.random(len(self)) * total, side="right")
            columns.append(self._targets_of(np.clip(entries, first, last), rng))
        return np.stack(columns, axis=1)

    def _targets_of(self, entries: NDArray[np.int64], rng: np.random.Generator) -> FloatArray:
        """Draw a target of each row from the node that was drawn for it."""
        out = np.empty(len(self))
        for first in range(0, len(self), ENTRIES_AT_ONCE):
            rows = np.arange(first, min(first + ENTRIES_AT_ONCE, len(self)))
            out[rows] = self._components(entries[rows], rows).sample(rng)
        return out

    # ---- mixtures -------------------------------------------------------------------------------------------------

    def _evaluated(
        self, function: Callable[..., FloatArray], paths: NDArray[Any], rows: NDArray[np.int64], *columns: FloatArray
    ) -> FloatArray:
        """Evaluate `function` on mixtures, each of a path and a row, and their entries of the columns, in blocks."""
        blocks = [
            function(self._mixture(paths[block], rows[block]), *(column[block] for column in columns))
            for block in self._blocks(paths)
        ]
        return np.concatenate(blocks)

    def _blocks(self, paths: NDArray[Any]) -> Iterator[slice]:
        """Yield runs of paths with a bounded number of entries; one empty run if there are no paths."""
        block = np.cumsum(np.diff(self._paths.start)[paths]) // ENTRIES_AT_ONCE
        edges = np.flatnonzero(np.diff(block)) + 1
        return (slice(first, last) for first, last in pairwise([0, *edges.tolist(), len(paths)]))

    def _mixture(self, paths: NDArray[Any], rows: NDArray[np.int64]) -> Mixture:
        entries, lengths = self._paths.entries(paths)
        components = self._components(entries, np.repeat(rows, lengths))
        return Mixture(
            components,
            self._paths.log_weights[entries],
            np.cumsum(lengths) - lengths,
            getattr(components, "is_discrete", False),
            lambda some: self._mixture(paths[some], rows[some]),
        )

    def mixtures(self) -> Mixture:
        """The mixtures of all rows, for those who have many questions about a few of them."""
        return self._mixture(self._paths.of_row, np.arange(len(self)))

    def _components(self, entries: NDArray[np.int64], rows: NDArray[np.int64]) -> Any:
        row_data = {name: values[rows] for name, values in self._row_data.items()}
        nodes = self._paths.nodes[entries]
        return self._family.at(nodes).components(self._summary[nodes], **row_data)


def _distinct(*columns: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One index of each combination of values, and the combination at each index."""
    order = np.lexsort(columns)
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = np.logical_or.reduce([np.diff(column[order]) != 0 for column in columns])
    which = np.empty(len(order), dtype=np.int64)
    which[order] = np.cumsum(is_new) - 1
    return order[is_new], which


def predictive_of_probs(probs: FloatArray) -> Predictive:
    """Distributions over classes with these probabilities."""
    return path_of_each(Bernoulli() if probs.shape[1] == 2 else Categorical(probs.shape[1]), probs)


def path_of_each(family: Family, summary: FloatArray) -> PathPredictive:
    """Distributions of rows with one node each, given by its summary."""
    place = np.arange(len(summary) + 1)
    paths = Paths(place, place[:-1], np.zeros(len(summary)), place[:-1].astype(np.int32))
    return PathPredictive(family.at(np.zeros(len(summary), dtype=np.int64)), summary, paths, {})
