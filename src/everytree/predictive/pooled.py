"""Predictive distributions whose mixtures are over all trees and all nodes on a row's path through each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.families.base import Family
from everytree.predictive.mixture import Mixture
from everytree.predictive.paths import PathPredictive, Paths
from everytree.predictive.predictive import Predictive, VarianceParts

ROWS_SHARPENED = 16384
"""Number of rows sharpened at a time."""

NEGLIGIBLE = 1e-13
"""Nodes whose share of a row's mixture is below this are left out; the others are scaled to sum to 1."""


@dataclass(frozen=True)
class Pool:
    """All nodes of all trees in one list, copied at one moment.

    Attributes
    ----------
    family : Family
    summary : (n_nodes, ...) float64
        Quantities that the predictive of each node needs.
    first : (n_trees,) int64
        Start of each tree's nodes.
    parent : (n_nodes,) int32
        Index in the list, -1 at roots.
    log_reached, log_stop : (n_nodes,) float64
        Log probability that a node is in the tree, and that it is then a leaf.
    log_weights : (n_trees,) float64
    """

    family: Family
    summary: FloatArray
    first: NDArray[np.int64]
    parent: NDArray[np.int32]
    log_reached: FloatArray
    log_stop: FloatArray
    log_weights: FloatArray
    rows_at_once: int = 1024

    def predictive(self, ends: NDArray[np.int32], row_data: Mapping[str, NDArray[Any]]) -> PathPredictive:
        """Return the mixtures of some rows, which end in the nodes `ends` of the trees."""
        start, nodes, log_weights = _kernels.pooled_paths(
            ends=(ends + self.first).astype(np.int64), parent=self.parent, log_reached=self.log_reached,
            log_stop=self.log_stop, log_tree_weights=self.log_weights, log_negligible=float(np.log(NEGLIGIBLE)),
        )  # fmt: skip
        on_paths, entries = np.unique(nodes, return_inverse=True)
        paths = Paths(start, entries, log_weights, np.arange(len(ends), dtype=np.int32))
        return PathPredictive(self.family, self.summary[on_paths], paths, row_data)


def sharpened(probs: FloatArray, sharpness: float) -> FloatArray:
    """Raise each row to the power of `sharpness`, and scale it to sum to 1."""
    if sharpness != 1.0:
        top = probs.max(axis=1, keepdims=True)
        probs = (probs / np.where(top > 0.0, top, 1.0)) ** sharpness
    return np.asarray(probs / probs.sum(axis=1, keepdims=True))


class Mixtures(Protocol):
    """An object that returns the mixture of each row."""

    @property
    def family(self) -> Family: ...

    @property
    def rows_at_once(self) -> int:
        """Number of rows to process at a time: bounds memory for any number of rows."""

    def predictive(self, ends: NDArray[Any], row_data: Mapping[str, NDArray[Any]]) -> PathPredictive:
        """Return the mixtures of some rows."""


def sharpen(probs: FloatArray, sharpness: float, n_jobs: int) -> FloatArray:
    """Sharpen many rows in place: in blocks that fit in the cache, on several threads."""

    def some(start: int) -> None:
        rows = slice(start, start + ROWS_SHARPENED)
        probs[rows] = sharpened(probs[rows], sharpness)

    starts = range(0, len(probs), ROWS_SHARPENED)
    if n_jobs == 1 or len(starts) == 1:
        for start in starts:
            some(start)
    else:
        with ThreadPoolExecutor(n_jobs) as threads:
            list(threads.map(some, starts))
    return probs


class PooledPredictive(Predictive):
    """Distributions averaged over every tree of a forest and every pruning of each, or over every tree there is.

    The mixtures are long, so they are computed when needed, some rows at a time. With a sharpness other than 1, classes
    have their probabilities raised to that power and scaled to sum to 1, and distributions of numbers are narrowed
    around the mean of the average.

    Parameters
    ----------
    pool : Mixtures
    ends : (n_rows, ...) array
        From which the pool finds the mixture of each row.
    row_data : mapping of str to (n_rows, ...) array
    sharpness : float
    """

    def __init__(
        self, pool: Mixtures, ends: NDArray[Any], row_data: Mapping[str, NDArray[Any]], sharpness: float
    ) -> None:
        super().__init__(pool.family, row_data)
        self._pool = pool
        self._ends = ends
        is_classes = pool.family.has_classes
        self._power = sharpness if is_classes else 1.0  # exponent of class probabilities
        self._sharpness = 1.0 if is_classes else sharpness
        self._mean: FloatArray | None = None

    def __len__(self) -> int:
        return len(self._ends)

    def _at_rows(self, rows: NDArray[np.int64]) -> Self:
        row_data = {name: values[rows] for name, values in self._row_data.items()}
        return type(self)(self._pool, self._ends[rows], row_data, self._sharpness * self._power)

    def mean(self) -> FloatArray:
        """(n_rows,) mean of y; of the class number for classes."""
        if self._mean is None:  # kept, since every sharpened result needs it
            self._mean = super().mean()
        return self._mean.copy()

    def variance_parts(self) -> VarianceParts:
        """Parts of the variance: noise, parameters, trees (which tree of the forest, and which pruning).

        The parts are those of the unsharpened average, scaled to add up to `variance()`.
        """
        parts = np.concatenate([np.stack(rows.variance_parts(), axis=1) for rows, _ in self._blocks(sharp=False)])
        total = parts.sum(axis=1)
        scale = np.divide(self.variance(), total, out=np.ones(len(total)), where=total > 0.0)
        return VarianceParts(*(parts * scale[:, None]).T)

    # ---- some rows at a time --------------------------------------------------------------------------------------

    def _per_row(self, of: Callable[[Mixture], FloatArray]) -> FloatArray:
        return np.concatenate([rows._per_row(of) for rows, _ in self._blocks()])

    def _per_target(self, of: Callable[[Mixture, FloatArray], FloatArray], grid: FloatArray) -> FloatArray:
        parts = [rows._per_target(of, _columns(grid, block)) for rows, block in self._blocks()]
        return np.concatenate(parts, axis=1)

    def _scores(self, grid: FloatArray) -> FloatArray:
        parts = [rows._scores(_columns(grid, block)) for rows, block in self._blocks()]
        return np.concatenate(parts, axis=1)

    def _draws(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        return np.concatenate([rows._draws(n_draws, rng) for rows, _ in self._blocks()])

    def _blocks(self, sharp: bool = True) -> Iterator[tuple[PathPredictive, slice]]:
        """Yield the mixtures of some rows at a time, and which rows these are."""
        for start in range(0, max(len(self), 1), self._pool.rows_at_once):
            block = slice(start, start + self._pool.rows_at_once)
            row_data = {name: values[block] for name, values in self._row_data.items()}
            rows = self._pool.predictive(self._ends[block], row_data)
            if sharp and self._power != 1.0:
                probs = sharpened(rows.probs(), self._power)
                place = np.arange(len(probs) + 1)
                paths = Paths(place, place[:-1], np.zeros(len(probs)), place[:-1].astype(np.int32))
                rows = PathPredictive(self._pool.family, probs, paths, {})
            yield rows, block


def _columns(grid: FloatArray, rows: slice) -> FloatArray:
    """Return the targets of some rows."""
    return grid if grid.shape[1] == 1 else grid[:, rows]
