"""Predictive distributions whose mixtures are over all trees and all nodes on a row's path through each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.lazy import cached_property
from everytree.families.base import Family
from everytree.families.traits import mean_less
from everytree.predictive.mixture import Mixture
from everytree.predictive.paths import PathPredictive, Paths, path_of_each
from everytree.predictive.predictive import Predictive, VarianceParts
from everytree.predictive.students import StudentRows

ROWS_SHARPENED = 16384
"""Number of rows sharpened at a time."""

NEGLIGIBLE = 1e-13
"""Nodes whose share of a row's mixture is below this are left out; the others are scaled to sum to 1."""


@dataclass(frozen=True)
class Pool:
    """All nodes of all trees in one list, copied at one moment."""

    family: Family
    summary: FloatArray  # (n_nodes, ...): quantities that the predictive of each node needs
    first: NDArray[np.int64]  # (n_trees,): start of each tree's nodes
    parent: NDArray[np.int32]  # (n_nodes,) int32: index in the list, -1 at roots
    log_reached: FloatArray  # (n_nodes,): log probability that a node is in the tree, and that it is then a leaf
    log_stop: FloatArray
    log_weights: FloatArray  # (n_trees,)
    rows_at_once: int = 1024

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields without what was derived from them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def students(self, n_jobs: int) -> StudentRows | None:
        """Return the mixtures as the kernel solves them, if they are of Student's t; made at the first call."""
        if "_students" not in self.__dict__:
            nodes = self._components.as_students() if hasattr(self._components, "as_students") else None
            made = None if nodes is None else StudentRows(self._shares, nodes, n_jobs)
            self.__dict__.setdefault("_students", made)
        found: StudentRows | None = self.__dict__["_students"]
        return found

    def means(self, ends: NDArray[np.int32], n_jobs: int) -> FloatArray | None:
        """(n_rows,) mean of each row's mixture; None where some node has none, or an infinite one."""
        if self._mean_sums is None:
            return None
        sums, centre = self._mean_sums
        return centre + self._shares.averages(ends=ends, sums=sums, n_jobs=n_jobs)

    @cached_property
    def _components(self) -> Any:
        """The distributions of all nodes; of families without row data."""
        return self.family.components(self.summary)

    @cached_property
    def _shares(self) -> _kernels.NodePool:
        return _kernels.NodePool(
            first=self.first, parent=self.parent, log_reached=self.log_reached, log_stop=self.log_stop,
            log_tree_weights=self.log_weights, log_negligible=float(np.log(NEGLIGIBLE)), n_jobs=1,
        )  # fmt: skip

    @cached_property
    def _mean_sums(self) -> tuple[FloatArray, float] | None:
        """Sums of means along the path to each node, and the number that was subtracted so that digits are kept."""
        centre = float(self._components.mean()[0])
        if not np.isfinite(centre):
            return None
        means = np.ascontiguousarray(mean_less(self._components, centre), dtype=np.float64)
        return (self._shares.sums_along(values=means, n_jobs=1), centre) if np.isfinite(means).all() else None

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

    def students(self, n_jobs: int) -> StudentRows | None:
        """Return the mixtures as the kernel solves them, if it does."""

    def means(self, ends: NDArray[Any], n_jobs: int) -> FloatArray | None:
        """(n_rows,) mean of each row's mixture, if there is a faster way than by its nodes."""


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
    and cells have their probabilities raised to that power and scaled to sum to 1, and other distributions of numbers
    are narrowed around the mean of the average.

    Parameters
    ----------
    pool : Mixtures
    ends : (n_rows, ...) array
        From which the pool finds the mixture of each row.
    row_data : mapping of str to (n_rows, ...) array
    sharpness : float
    n_jobs : int
        Threads for every answer; none depends on their number.
    """

    def __init__(
        self,
        pool: Mixtures,
        ends: NDArray[Any],
        row_data: Mapping[str, NDArray[Any]],
        sharpness: float,
        n_jobs: int = 1,
    ) -> None:
        super().__init__(pool.family, row_data)
        self._pool = pool
        self._ends = ends
        self._n_jobs = n_jobs
        has_power = pool.family.is_sharpened_by_power
        self._power = sharpness if has_power else 1.0  # exponent of the shares of classes or cells
        self._sharpness = 1.0 if has_power else sharpness
        self._mean: FloatArray | None = None

    def __len__(self) -> int:
        return len(self._ends)

    def _at_rows(self, rows: NDArray[np.int64]) -> Self:
        row_data = {name: values[rows] for name, values in self._row_data.items()}
        return type(self)(self._pool, self._ends[rows], row_data, self._sharpness * self._power, self._n_jobs)

    def mean(self) -> FloatArray:
        """(n_rows,) mean of y; of the class number for classes."""
        if self._mean is None:  # kept, since every sharpened result needs it
            quickly = None if self._row_data or self._power != 1.0 else self._pool.means(self._ends, self._n_jobs)
            self._mean = super().mean() if quickly is None else quickly
        return self._mean.copy()

    def variance_parts(self) -> VarianceParts:
        """Parts of the variance: noise, parameters, trees (which tree of the forest, and which pruning).

        The parts are those of the unsharpened average, scaled to add up to `variance()`.
        """
        parts = np.concatenate([np.stack(rows.variance_parts(), axis=1) for rows, _ in self._blocks(sharp=False)])
        total = parts.sum(axis=1)
        scale = np.divide(self.variance(), total, out=np.ones(len(total)), where=total > 0.0)
        return VarianceParts(*(parts * scale[:, None]).T)

    # ---- by the kernel --------------------------------------------------------------------------------------------

    @property
    def _students(self) -> StudentRows | None:
        """The kernel of these mixtures, if they have one: it is for nodes that predict every row alike."""
        return None if self._row_data or self._power != 1.0 else self._pool.students(self._n_jobs)

    def _log_probs(self, grid: FloatArray) -> FloatArray:
        kernel = self._students
        return kernel.log_prob(self._ends, grid, self._n_jobs) if kernel else super()._log_probs(grid)

    def _tails(self, grid: FloatArray, is_above: bool) -> FloatArray:
        kernel = self._students
        return kernel.tails(self._ends, grid, is_above, self._n_jobs) if kernel else super()._tails(grid, is_above)

    def _quantiles(self, levels: FloatArray) -> FloatArray:
        kernel = self._students
        return kernel.quantiles(self._ends, levels, self._n_jobs) if kernel else super()._quantiles(levels)

    def _shortest(self, coverage: float) -> FloatArray:
        kernel = self._students
        return kernel.shortest(self._ends, coverage, self._n_jobs) if kernel else super()._shortest(coverage)

    def _scores(self, grid: FloatArray) -> FloatArray:
        kernel = self._students
        if kernel is None:
            return self._scores_in_blocks(grid)
        scores = kernel.scores(self._ends, grid, self._n_jobs)
        others = np.flatnonzero(np.isnan(scores).any(axis=0))
        if len(others):
            scores[:, others] = self._at_rows(others)._scores_in_blocks(_columns(grid, others))
        return scores

    # ---- some rows at a time --------------------------------------------------------------------------------------

    def _per_row(self, function: Callable[[Mixture], FloatArray]) -> FloatArray:
        return np.concatenate(self._of_blocks(lambda rows, _: rows._per_row(function)))

    def _per_target(self, function: Callable[[Mixture, FloatArray], FloatArray], grid: FloatArray) -> FloatArray:
        parts = self._of_blocks(lambda rows, block: rows._per_target(function, _columns(grid, block)))
        return np.concatenate(parts, axis=1)

    def _scores_in_blocks(self, grid: FloatArray) -> FloatArray:
        return np.concatenate(self._of_blocks(lambda rows, block: rows._scores(_columns(grid, block))), axis=1)

    def _draws(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        return np.concatenate([rows._draws(n_draws, rng) for rows, _ in self._blocks()])

    def _of_blocks(self, function: Callable[[PathPredictive, slice], FloatArray]) -> list[FloatArray]:
        """Apply a function to the mixtures of some rows at a time, on several threads."""
        blocks = list(self._block_slices())
        if self._n_jobs == 1 or len(blocks) == 1:
            return [function(self._block(block), block) for block in blocks]
        with ThreadPoolExecutor(self._n_jobs) as threads:
            return list(threads.map(lambda block: function(self._block(block), block), blocks))

    def _blocks(self, sharp: bool = True) -> Iterator[tuple[PathPredictive, slice]]:
        """Yield the mixtures of some rows at a time, and which rows these are."""
        for block in self._block_slices():
            yield self._block(block, sharp), block

    def _block_slices(self) -> Iterator[slice]:
        for start in range(0, max(len(self), 1), self._pool.rows_at_once):
            yield slice(start, start + self._pool.rows_at_once)

    def _block(self, block: slice, sharp: bool = True) -> PathPredictive:
        row_data = {name: values[block] for name, values in self._row_data.items()}
        rows = self._pool.predictive(self._ends[block], row_data)
        if not sharp:
            return rows
        family = self._pool.family
        if family.is_sharpened_by_power and not family.has_classes:
            return rows.powered(self._power)
        return rows if self._power == 1.0 else path_of_each(family, sharpened(rows.probs(), self._power))


def _columns(grid: FloatArray, rows: slice | NDArray[np.int64]) -> FloatArray:
    """Return the targets of some rows."""
    return grid if grid.shape[1] == 1 else grid[:, rows]
