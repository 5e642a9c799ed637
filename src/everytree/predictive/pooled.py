"""The predictive distributions of a forest: one mixture over all trees and all nodes on a row's way through each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.families.base import Family
from everytree.predictive.predictive import Paths, Predictive, VarianceParts, as_targets

ROWS_SHARPENED = 16384
"""How many rows are sharpened at a time."""

NEGLIGIBLE = 1e-13
"""A node whose share of a row's mixture is below this is left out; the others are scaled up to sum to 1."""


@dataclass(frozen=True)
class Pool:
    """All nodes of all trees in one list, as they were when asked.

    Attributes
    ----------
    family : Family
    summary : (n_nodes, ...) float64
        What the predictive of each node needs.
    first : (n_trees,) int64
        Where each tree's nodes start.
    parent : (n_nodes,) int32
        In the list, -1 at roots.
    log_reached, log_stop : (n_nodes,) float64
        That a node is in the tree, and that it is then a leaf.
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

    def predictive(self, ends: NDArray[np.int32], row_data: Mapping[str, NDArray[Any]]) -> Predictive:
        """The mixtures of some rows, which end in `ends` of the trees."""
        start, nodes, log_weights = _kernels.pooled_paths(
            ends=(ends + self.first).astype(np.int64), parent=self.parent, log_reached=self.log_reached,
            log_stop=self.log_stop, log_tree_weights=self.log_weights, log_negligible=float(np.log(NEGLIGIBLE)),
        )  # fmt: skip
        on_paths, entries = np.unique(nodes, return_inverse=True)
        paths = Paths(start, entries, log_weights, np.arange(len(ends), dtype=np.int32))
        return Predictive(self.family, self.summary[on_paths], paths, row_data)


def sharpened(probs: FloatArray, sharpness: float) -> FloatArray:
    """Each row to the power of `sharpness`, and scaled to sum to 1."""
    if sharpness != 1.0:
        top = probs.max(axis=1, keepdims=True)
        probs = (probs / np.where(top > 0.0, top, 1.0)) ** sharpness
    return np.asarray(probs / probs.sum(axis=1, keepdims=True))


class Mixtures(Protocol):
    """Whatever knows the mixture of each row."""

    @property
    def family(self) -> Family: ...

    @property
    def rows_at_once(self) -> int:
        """How many rows to ask for at a time: bounds memory, whatever their number."""

    def predictive(self, ends: NDArray[Any], row_data: Mapping[str, NDArray[Any]]) -> Predictive:
        """The mixtures of some rows."""


def sharpen(probs: FloatArray, sharpness: float, n_jobs: int) -> FloatArray:
    """The same for many rows, where they are: some at a time, which the cache holds, and on several threads."""

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


class PooledPredictive:
    """One predictive distribution for each row, averaged over every tree of a forest and every pruning of each.

    Made by `Forest.predictive` and `ExactPosterior.predictive`. With a sharpness other than 1, classes have their
    probabilities raised to that power and scaled to sum to 1, and numbers are drawn towards the mean of the average.
    """

    def __init__(
        self, pool: Mixtures, ends: NDArray[Any], row_data: Mapping[str, NDArray[Any]], sharpness: float
    ) -> None:
        self._pool = pool
        self._ends = ends
        self._row_data = row_data
        is_classes = pool.family.has_classes
        self._power = sharpness if is_classes else 1.0  # of the probabilities of classes
        self._sharpness = 1.0 if is_classes else sharpness  # of numbers about their mean
        self._mean: FloatArray | None = None

    def __len__(self) -> int:
        return len(self._ends)

    # ---- moments --------------------------------------------------------------------------------------------------

    def mean(self) -> FloatArray:
        """(n_rows,) mean of y; of the class number for classes."""
        if self._mean is None:
            self._mean = self._each(lambda rows: rows.mean())
        return self._mean.copy()

    def variance(self) -> FloatArray:
        """(n_rows,) variance of y."""
        return self._each(lambda rows: rows.variance()) / self._sharpness**2

    def std(self) -> FloatArray:
        """(n_rows,) standard deviation of y."""
        return np.sqrt(self.variance())

    def variance_parts(self) -> VarianceParts:
        """Where the variance comes from: noise, parameters, trees (which of the forest's, and which pruning).

        The parts are those of the average as it is, scaled to add up to `variance()` where that was sharpened.
        """
        parts = np.concatenate([np.stack(rows.variance_parts(), axis=1) for rows, _ in self._blocks(sharp=False)])
        total = parts.sum(axis=1)
        scale = np.divide(self.variance(), total, out=np.ones(len(total)), where=total > 0.0)
        return VarianceParts(*(parts * scale[:, None]).T)

    def probs(self) -> FloatArray:
        """(n_rows, n_classes) probability of each class."""
        return self._each(lambda rows: rows.probs())

    # ---- probabilities --------------------------------------------------------------------------------------------

    def log_prob(self, y: ArrayLike) -> FloatArray:
        """(n_rows,) log probability or density of one target a row."""
        targets = self._stretched(as_targets(y, len(self)))
        return self._each(lambda rows, y: rows.log_prob(y), targets) + float(np.log(self._sharpness))

    def cdf(self, y: ArrayLike) -> FloatArray:
        """(n_rows,) probability that the target is at most y, one y a row."""
        return self._each(lambda rows, y: rows.cdf(y), self._stretched(as_targets(y, len(self))))

    def sf(self, y: ArrayLike) -> FloatArray:
        """(n_rows,) probability that the target exceeds y, one y a row; keeps its digits where it is small."""
        return self._each(lambda rows, y: rows.sf(y), self._stretched(as_targets(y, len(self))))

    def quantile(self, p: ArrayLike) -> FloatArray:
        """The smallest y that the target stays at or below with probability p; quantiles of one row never cross.

        Parameters
        ----------
        p : float or sequence of float
            In (0, 1).

        Returns
        -------
        (n_rows,) array, or (n_rows, len(p)) for a sequence
        """
        return self._drawn(self._each(lambda rows: rows.quantile(p)))

    def interval(self, coverage: float = 0.9, kind: Literal["equal", "hdi"] = "equal") -> FloatArray:
        """(n_rows, 2) ends of an interval that holds the target with probability `coverage`, as in `Predictive`."""
        return self._drawn(self._each(lambda rows: rows.interval(coverage, kind)))

    def crps(self, y: ArrayLike) -> FloatArray:
        """(n_rows,) continuous ranked probability score of one target a row: 0 is best, in units of y."""
        targets = self._stretched(as_targets(y, len(self)))
        return self._each(lambda rows, y: rows.crps(y), targets) / self._sharpness

    def entropy(self) -> FloatArray:
        """(n_rows,) entropy in nats, of discrete families."""
        return self._each(lambda rows: rows.entropy())

    def sample(self, size: int | None = None, *, rng: np.random.Generator | int) -> FloatArray:
        """Exact draws: a tree, a node of it, a target from it. (n_rows,), or (n_rows, size)."""
        rng = np.random.default_rng(rng)
        return self._drawn(self._each(lambda rows: rows.sample(size, rng=rng)))

    # ---- how it is computed ---------------------------------------------------------------------------------------

    def _stretched(self, y: FloatArray) -> FloatArray:
        """Where y was before the distribution was drawn to its mean."""
        return y if self._sharpness == 1.0 else self.mean() + (y - self.mean()) * self._sharpness

    def _drawn(self, y: FloatArray) -> FloatArray:
        """Where y is after that."""
        if self._sharpness == 1.0:
            return y
        mean = self.mean().reshape(-1, *[1] * (y.ndim - 1))
        return mean + (y - mean) / self._sharpness

    def _each(self, of: Callable[..., Any], *columns: FloatArray) -> FloatArray:
        return np.concatenate([of(rows, *(c[block] for c in columns)) for rows, block in self._blocks()])

    def _blocks(self, sharp: bool = True) -> Iterator[tuple[Predictive, slice]]:
        """The mixtures of some rows at a time, and which these are."""
        for start in range(0, max(len(self), 1), self._pool.rows_at_once):
            block = slice(start, start + self._pool.rows_at_once)
            row_data = {name: values[block] for name, values in self._row_data.items()}
            rows = self._pool.predictive(self._ends[block], row_data)
            if sharp and self._power != 1.0:
                probs = sharpened(rows.probs(), self._power)
                place = np.arange(len(probs) + 1)
                paths = Paths(place, place[:-1], np.zeros(len(probs)), place[:-1].astype(np.int32))
                rows = Predictive(self._pool.family, probs, paths, {})
            yield rows, block
