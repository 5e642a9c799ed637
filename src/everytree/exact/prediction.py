"""Predictions from the exact posterior over trees and splits.

A region is a leaf of some tree with a probability of its own, whatever the order of its conditions. A
row's predictive is the average over the leaf regions that hold it. What is linear in the leaves (class probabilities,
moments) is tabulated: all regions with conditions on the same columns add up to one table over the codes of these
columns, and a row costs one lookup for each such set of columns.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.exact.regions import KINDS, Kind
from everytree.families.base import NativeFamily
from everytree.predictive.paths import PathPredictive, Paths

MAX_LEAVES = 8_000_000
"""Maximum number of leaf regions that are kept: about a gigabyte."""

MAX_NUMBERS = 1 << 27
"""Maximum number of entries in all tables: a gigabyte."""

LEAVES_PER_SECOND = 400_000
"""Number of leaf regions that are found and made into tables in a second, at least."""

STEPS_PER_SECOND = 2e8
"""Number of cells that are added to in a second, at least."""

FEW_LEAVES = 250_000
"""Number of leaf regions that are kept however little time there is: those of half a second."""


@dataclass(frozen=True)
class Limits:
    """How much is kept for predictions.

    They follow from the seconds given to the fit, not from a clock, so that a fitted posterior always answers the same.
    """

    max_leaves: int  # leaf regions, and entries of tables
    max_numbers: int
    max_steps: float  # additions to cells of tables
    seconds: float | None  # what they follow from; None where only memory sets limits

    @classmethod
    def within(cls, seconds: float | None) -> Limits:
        """Return what memory holds and, unless `seconds` is None, what is made in about as many seconds."""
        if seconds is None:
            return cls(MAX_LEAVES, MAX_NUMBERS, math.inf, None)
        leaves = max(LEAVES_PER_SECOND * seconds, FEW_LEAVES)
        steps = leaves / LEAVES_PER_SECOND * STEPS_PER_SECOND
        return cls(int(min(leaves, MAX_LEAVES)), int(min(steps, MAX_NUMBERS)), steps, seconds)

    def warn_of(self, left_out: float, truncation: float) -> None:
        """Warn if predictions leave out more than `truncation`."""
        if left_out <= truncation:
            return
        if self.seconds is None:
            why = "more would not fit in memory; fewer columns or codes, or a smaller max_depth, would"
        else:
            why = f"more would take longer than max_seconds={self.seconds:g} of the fit; more seconds leave out less"
        warnings.warn(
            f"predictions leave out {left_out:.2g} of the posterior instead of truncation={truncation:.2g}: {why}",
            stacklevel=4,
        )


@dataclass(frozen=True)
class Columns:
    """Codes and kinds of the columns."""

    n_codes: Sequence[int]
    kinds: Sequence[Kind]

    @property
    def kind_numbers(self) -> list[int]:
        return [KINDS.index(kind) for kind in self.kinds]

    def has_unknown(self, codes: NDArray[np.uint16]) -> NDArray[np.bool_]:
        """(n_rows,) whether some code of a row is unknown."""
        return np.asarray((codes >= np.array(self.n_codes)).any(axis=1))


@dataclass(frozen=True)
class Leaves:
    """Leaf regions, each set of conditions once."""

    weight: FloatArray  # (n_leaves,): posterior probability that the region is a leaf of the tree
    statistics: FloatArray  # (n_leaves, n_statistics)
    # Conditions `start[i] .. start[i + 1]` are those of leaf i: each a column and the codes it may have.
    start: NDArray[np.int64]
    column: NDArray[np.int32]
    codes: NDArray[np.uint64]
    left_out: float  # posterior mass of the leaves left out; no row loses more than that

    @classmethod
    def of(cls, engine: _kernels.Exact, n_statistics: int, threshold: float, with_unknown: bool) -> Leaves:
        parts = engine.leaves(threshold, with_unknown)
        parts["statistics"] = parts["statistics"].reshape(-1, n_statistics)
        return cls(**parts, left_out=engine.left_out(threshold, with_unknown))

    @property
    def conditions(self) -> dict[str, Any]:
        """The leaves as the kernels take them."""
        return {"weight": self.weight, "start": self.start, "column": self.column, "codes": self.codes}


class Tables:
    """Sums over the leaves that hold a row, found by lookup.

    `left_out`: posterior mass that no cell holds.
    """

    def __init__(self, arrays: tuple[NDArray[Any], ...], width: int, n_codes: Sequence[int], left_out: float) -> None:
        self.arrays, self.width, self.n_codes, self.left_out = arrays, width, list(n_codes), left_out
        set_start, column, map_start, place, first_cell, cells = arrays
        self._kernel = _kernels.Tables(
            set_start=set_start, column=column, map_start=map_start, place=place, first_cell=first_cell, cells=cells,
            width=width, n_codes=np.array(n_codes, dtype=np.int32),
        )  # fmt: skip

    def look_up(self, codes: NDArray[np.uint16], n_jobs: int) -> FloatArray:
        """(n_rows, width) sums."""
        return np.asarray(self._kernel.look_up(codes, n_jobs))

    def __reduce__(self) -> tuple[Any, ...]:
        return Tables, (self.arrays, self.width, self.n_codes, self.left_out)


def find_leaves(
    engine: _kernels.Exact, n_statistics: int, truncation: float, with_unknown: bool, limits: Limits
) -> Leaves:
    """Return the fewest leaves that leave out no more than `truncation`, or as many as the limits allow."""
    return Leaves.of(engine, n_statistics, engine.threshold(truncation, limits.max_leaves, with_unknown), with_unknown)


def tabulate(
    engine: _kernels.Exact,
    n_statistics: int,
    values_of: Callable[[FloatArray], FloatArray],
    columns: Columns,
    truncation: float,
    with_unknown: bool,
    limits: Limits,
    n_jobs: int,
) -> Tables:
    """Return tables of the values of all leaves, times their weights."""
    threshold = engine.threshold(truncation, limits.max_leaves, with_unknown)
    while True:
        leaves = Leaves.of(engine, n_statistics, threshold, with_unknown)
        values = np.ascontiguousarray(values_of(leaves.statistics))
        arrays = _kernels.tabulate(
            **leaves.conditions, values=values, n_codes=columns.n_codes, kinds=columns.kind_numbers,
            with_unknown=with_unknown, most=limits.max_numbers, most_steps=limits.max_steps, n_jobs=n_jobs,
        )  # fmt: skip
        if arrays is not None:
            break
        threshold = max(4.0 * threshold, 1e-18)
    return Tables(arrays, values.shape[1], columns.n_codes, leaves.left_out)


@dataclass(frozen=True)
class LeafPool:
    """The leaves as mixtures, from which distributions are made for some rows at a time."""

    family: NativeFamily
    columns: Columns
    leaves: Callable[[bool], Leaves]
    rows_at_once: int = 16

    def predictive(self, codes: NDArray[np.uint16], row_data: Mapping[str, NDArray[Any]]) -> PathPredictive:
        """Return the mixtures of some rows."""
        statistics, paths = self.paths(codes)
        return PathPredictive(self.family, self.family.summarise(statistics), paths, row_data)

    def paths(self, codes: NDArray[np.uint16]) -> tuple[FloatArray, Paths]:
        """Return the statistics of the leaves that hold some rows, and for each row which they are."""
        leaves = self.leaves(bool(self.columns.has_unknown(codes).any()))
        start, found = _kernels.leaves_of_rows(
            **leaves.conditions, rows=codes, n_codes=self.columns.n_codes, kinds=self.columns.kind_numbers
        )
        on_paths, entries = np.unique(found, return_inverse=True)
        weights = leaves.weight[found]
        total = np.add.reduceat(weights, start[:-1]) if len(codes) else np.empty(0)
        log_weights = np.log(weights / np.repeat(total, np.diff(start)))
        paths = Paths(start, entries, log_weights, np.arange(len(codes), dtype=np.int32))
        return leaves.statistics[on_paths], paths

    def students(self, n_jobs: int) -> None:
        """Return nothing: no kernel solves these mixtures."""

    def means(self, ends: NDArray[Any], n_jobs: int) -> None:
        """Return nothing: means are read from the mixtures."""
