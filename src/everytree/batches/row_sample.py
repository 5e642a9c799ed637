"""A uniform sample of the rows of a table that is too long to keep."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.checks import whole_number

LARGEST_KEY = 2**64 - 1

BLOCK_ROWS = 2**20
"""How many keys are looked at together, where nothing else says it."""

Columns = dict[str, NDArray[Any]]


class RowSample:
    """The `size` rows of a table with the smallest keys, or all rows where there are no more.

    The key of a row is a hash of the seed and the row's number: which rows are in the sample depends on nothing else,
    not on how the table was cut into batches or in which order those came. Samples of different rows merge into the
    sample of them all.
    """

    def __init__(self, size: int, seed: int = 0) -> None:
        self.size = whole_number("size", size, 1)
        self.seed = whole_number("seed", seed, 0, LARGEST_KEY)
        self._bound = LARGEST_KEY  # rows with larger keys are out
        self._parts: list[Columns] = []
        self._n_kept = 0

    def __len__(self) -> int:
        return min(self._n_kept, self.size)

    def for_part_of(self, n_rows: int) -> RowSample:
        """A sample without rows for a part of a table of `n_rows` rows, which keeps only what that of all rows keeps.

        Keys need the rows' numbers alone: the largest one in the sample is known before any row is read.
        """
        whole, part = RowSample(self.size, self.seed), RowSample(self.size, self.seed)
        for first in range(0, n_rows, BLOCK_ROWS):
            whole.update(min(BLOCK_ROWS, n_rows - first), lambda places: {}, first)
        whole._shrink()
        part._bound = whole._bound
        return part

    def rule(self) -> RowSample:
        """The choice of rows without the rows, small to send; `drawn` tells which rows were chosen."""
        self._shrink()
        like = RowSample(self.size, self.seed)
        like._bound = self._bound
        return like

    def drawn(self, n_rows: int, first: int) -> NDArray[np.int64]:
        """Places of the rows in the sample among `n_rows` rows that are numbered from `first` on."""
        places, _ = _kernels.draw_rows(self.seed, first, n_rows, self._bound)
        return np.asarray(places)

    def update(self, n_rows: int, take: Callable[[NDArray[np.int64]], Mapping[str, NDArray[Any]]], first: int) -> Self:
        """More rows, numbered from `first` on; `take(places)` is asked for the columns of those that are kept."""
        places, keys = _kernels.draw_rows(self.seed, first, n_rows, self._bound)
        if len(places) > self.size:  # no more can be kept: the others need not be asked for
            smallest = np.argpartition(keys, self.size - 1)[: self.size]
            places, keys = places[smallest], keys[smallest]
            self._bound = min(self._bound, int(keys.max()))
        if len(places):
            self._keep({"key": keys, "number": places + first, **take(places)})
        return self

    def merge(self, other: RowSample, translate: Callable[[Columns], Columns] = dict) -> Self:
        """The rows of another sample of the same kind; `translate` brings its columns into the words of this one."""
        if (other.size, other.seed) != (self.size, self.seed):
            raise ValueError(
                f"other keeps {other.size} rows by seed {other.seed}, this sample {self.size} by {self.seed}"
            )
        for part in other._parts:
            self._keep(translate(part))
        self._bound = min(self._bound, other._bound)
        return self

    def columns(self) -> Columns:
        """The sample's columns, rows in the order of their numbers."""
        self._shrink()
        (part,) = self._parts
        order = np.argsort(part["number"])
        return {name: column[order] for name, column in part.items() if name not in ("key", "number")}

    def _keep(self, part: Columns) -> None:
        if self._parts and part.keys() != self._parts[0].keys():
            raise ValueError(f"these rows have {sorted(part)}, those before {sorted(self._parts[0])}")
        self._parts.append(part)
        self._n_kept += len(part["key"])
        if self._n_kept > 2 * self.size:  # each time at least `size` rows go: what that costs is shared by those
            self._shrink()

    def _shrink(self) -> None:
        """One part, of no more than `size` rows."""
        together = {name: np.concatenate([part[name] for part in self._parts]) for name in self._parts[0]}
        if self._n_kept > self.size:
            best = np.argpartition(together["key"], self.size - 1)[: self.size]
            together = {name: column[best] for name, column in together.items()}
            self._bound = int(together["key"].max())
            self._n_kept = self.size
        self._parts = [together]
