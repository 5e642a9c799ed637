"""What predictions return: for each row, a mixture over the nodes on its path.

A row that ends in terminal t is, a posteriori, in the leaf s on its path with probability prod(split_prob of the nodes
above s) * (1 - split_prob[s]). Rows with the same path share all of that, so whatever does not depend on the row itself
is computed once a path and looked up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.codes import as_column
from everytree.families.base import Components, Family, FloatArray

ENTRIES_AT_ONCE = 1 << 18
"""How many (row, node) pairs are worked on at a time: bounds memory, whatever the number of rows."""


@dataclass(frozen=True)
class Paths:
    """Nodes and weights, path by path, and the path of each row.

    Attributes
    ----------
    start : (n_paths + 1,) int64
        Path p owns entries start[p] .. start[p + 1] of the two arrays below.
    nodes : (n_entries,) int32
    weights : (n_entries,) float64
        Sum to 1 over each path.
    of_row : (n_rows,) int32
    """

    start: NDArray[np.int64]
    nodes: NDArray[np.int32]
    weights: FloatArray
    of_row: NDArray[np.int32]


class Predictive:
    """One predictive distribution for each row, averaged over every pruned tree.

    Made by `Posterior.predictive` and `GrowingPosterior.predictive`. It holds what it needs: later updates of the
    posterior do not change it.
    """

    def __init__(self, family: Family, summary: FloatArray, paths: Paths, row_data: Mapping[str, NDArray[Any]]) -> None:
        self._family = family  # for each entry of the paths
        self._summary = summary
        self._paths = paths
        self._row_data = row_data

    def __len__(self) -> int:
        return len(self._paths.of_row)

    def mean(self) -> FloatArray:
        """(n_rows,) mean of y; of the class number for classes."""
        return self._average(lambda components: components.mean())

    def variance(self) -> FloatArray:
        """(n_rows,) variance of y: the mean of the nodes' variances plus the variance of their means."""

        def moments(components: Components) -> FloatArray:
            return np.stack([components.mean(), components.variance()], axis=1)

        def spread(values: FloatArray, weights: FloatArray, starts: NDArray[np.int64]) -> FloatArray:
            mean = _weighted_sum(values[:, 0], weights, starts)
            lengths = np.diff(np.append(starts, len(weights)))
            with np.errstate(invalid="ignore"):  # infinitely far from an infinite mean
                away = values[:, 0] - np.repeat(mean, lengths)
            return np.where(np.isinf(mean), np.inf, _weighted_sum(values[:, 1] + away**2, weights, starts))

        return self._reduce(moments, spread)

    def std(self) -> FloatArray:
        """(n_rows,) standard deviation of y."""
        return np.sqrt(self.variance())

    def probs(self) -> FloatArray:
        """(n_rows, n_classes) probability of each class."""
        return self._average(_class_probs)

    def log_prob(self, y: ArrayLike) -> FloatArray:
        """(n_rows,) log probability or density of one target a row; minus infinity where it is impossible."""
        targets = as_column("y", y).astype(np.float64)
        if len(targets) != len(self):
            raise ValueError(f"y has {len(targets)} entries, but there are {len(self)} rows")
        out = np.empty(len(self))
        for rows, entries, starts in self._row_blocks():
            lengths = np.diff(np.append(starts, len(entries)))
            log_prob = self._components(entries, np.repeat(rows, lengths)).log_prob(np.repeat(targets[rows], lengths))
            with np.errstate(divide="ignore"):
                out[rows] = _log_sum_exp(log_prob + np.log(self._paths.weights[entries]), starts)
        return out

    # ---- how it is computed ---------------------------------------------------------------------------------------

    def _components(self, entries: NDArray[np.int64], rows: NDArray[np.int64]) -> Components:
        row_data = {name: values[rows] for name, values in self._row_data.items()}
        return self._family.at(entries).components(self._summary[entries], **row_data)

    def _average(self, of: Any) -> FloatArray:
        return self._reduce(of, _weighted_sum)

    def _reduce(self, of: Any, combine: Any) -> FloatArray:
        """`combine` over each row's path of the values `of` its components."""
        paths = self._paths
        if not self._row_data:  # nothing depends on the row but its path: one table row a path
            values = of(self._family.components(self._summary))
            table: FloatArray = combine(values, paths.weights, paths.start[:-1])
            return table[paths.of_row]
        out: list[FloatArray] = []
        for rows, entries, starts in self._row_blocks():
            lengths = np.diff(np.append(starts, len(entries)))
            values = of(self._components(entries, np.repeat(rows, lengths)))
            out.append(combine(values, paths.weights[entries], starts))
        return np.concatenate(out)

    def _row_blocks(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
        """Blocks of rows: their numbers, their entries one after another, and where each row's entries start."""
        paths = self._paths
        lengths = np.diff(paths.start)[paths.of_row] if len(self) else np.empty(0, dtype=np.int64)
        block = np.cumsum(lengths) // ENTRIES_AT_ONCE
        for first, last in _runs(block):
            rows = np.arange(first, last)
            mine = lengths[first:last]
            starts = np.cumsum(mine) - mine
            entries = np.repeat(paths.start[paths.of_row[rows]] - starts, mine) + np.arange(mine.sum())
            yield rows, entries, starts


def _runs(values: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """First and last of each run of equal values; one empty run where there are none."""
    edges = np.flatnonzero(np.diff(values)) + 1
    return pairwise([0, *edges.tolist(), len(values)])


def _class_probs(components: Components) -> FloatArray:
    if not hasattr(components, "probs"):
        raise TypeError("probs() is for families of classes; this one has mean(), variance() and log_prob(y)")
    probs: FloatArray = components.probs()
    return probs


def _weighted_sum(values: FloatArray, weights: FloatArray, starts: NDArray[np.int64]) -> FloatArray:
    """Over each path. A node of weight zero says nothing, whatever its value, infinite ones included."""
    shaped = weights.reshape(-1, *[1] * (values.ndim - 1))
    with np.errstate(invalid="ignore"):
        terms = np.where(shaped > 0.0, shaped * values, 0.0)
    return np.add.reduceat(terms, starts, axis=0) if len(starts) else terms[:0]


def _log_sum_exp(values: FloatArray, starts: NDArray[np.int64]) -> FloatArray:
    largest = np.maximum.reduceat(values, starts)
    safe = np.where(np.isfinite(largest), largest, 0.0)
    lengths = np.diff(np.append(starts, len(values)))
    total = np.add.reduceat(np.exp(values - np.repeat(safe, lengths)), starts)
    with np.errstate(divide="ignore"):
        return np.where(np.isposinf(largest), np.inf, safe + np.log(total))
