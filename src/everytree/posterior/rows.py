"""Rows of a table as all later steps take them: codes, targets, weights."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.errors import ArgumentError
from everytree.tables.repeats import row_hashes


@dataclass(frozen=True)
class Rows:
    """Coded rows."""

    codes: NDArray[Any]  # (n_rows, n_features) uint8 or uint16
    y: NDArray[Any]  # (n_rows,)
    weight: FloatArray | None = None  # (n_rows,)
    # row data of the family, one entry per row
    row_data: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    # (n_rows,): numbers from 0 on, equal for rows that belong together; None where each row is its own group
    group: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.y)

    def at(self, rows: NDArray[Any]) -> Rows:
        """Return some of the rows."""
        weight, group = (None if column is None else column[rows] for column in (self.weight, self.group))
        row_data = {name: column[rows] for name, column in self.row_data.items()}
        return Rows(self.codes[rows], self.y[rows], weight, row_data, group)

    def joined(self, other: Rows) -> Rows:
        """Return these rows and those of another table with the same columns; groups are not kept."""
        weight = None
        if self.weight is not None or other.weight is not None:
            weight = np.concatenate(
                [np.ones(len(rows)) if rows.weight is None else rows.weight for rows in (self, other)]
            )
        return Rows(
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.y, other.y]),
            weight,
            {name: np.concatenate([self.row_data[name], other.row_data[name]]) for name in self.row_data},
        )

    def without(self, other: Rows) -> Rows:
        """Return these rows without others, each of which must be among them as often; equal in all that they have."""
        mine, theirs = self._contents(), other._contents()
        _, number = np.unique(np.concatenate([mine, theirs]), axis=0, return_inverse=True)
        own, gone = np.split(number.reshape(-1), [len(mine)])
        n_gone = np.bincount(gone, minlength=number.max(initial=-1) + 1)
        order = np.argsort(own, kind="stable")
        first = np.searchsorted(own[order], own[order])  # of its equals
        is_gone = np.arange(len(own)) - first < n_gone[own[order]]
        if is_gone.sum() < len(gone):
            row = int(np.argmax(n_gone[gone] > np.bincount(own, minlength=len(n_gone))[gone]))
            raise ArgumentError("X", "and y have rows that were never counted; nothing was changed", row=row)
        return self.at(np.sort(order[~is_gone]))

    def _contents(self) -> FloatArray:
        """(n_rows, n) all that is known of each row."""
        weight = np.ones(len(self)) if self.weight is None else self.weight
        columns = (self.y, weight, *(self.row_data[name] for name in sorted(self.row_data)))
        table = [np.asarray(column, dtype=np.float64).reshape(len(self), -1) for column in (self.codes, *columns)]
        return np.concatenate(table, axis=1) + 0.0

    def batch_digest(self, min_rows: int) -> str | None:
        """Hash that identifies the rows with weight in any order; None for fewer than `min_rows` different ones.

        Equal weights of 1 are as good as none. Rows cannot be read from it.
        """
        if len(self) < min_rows:
            return None
        used = slice(None) if self.weight is None else np.flatnonzero(self.weight > 0.0)
        hashes = row_hashes(self.codes[used])
        weight = np.ones(len(self)) if self.weight is None else self.weight
        for column in (self.y, weight, *(self.row_data[name] for name in sorted(self.row_data))):
            bits = (np.asarray(column, dtype=np.float64)[used] + 0.0).reshape(len(hashes), -1).view(np.uint64)
            hashes = row_hashes(np.column_stack([hashes, bits]))
        hashes.sort()
        if np.count_nonzero(np.diff(hashes)) + 1 < min_rows:
            return None
        return hashlib.blake2b(hashes.tobytes(), digest_size=16).hexdigest()

    def digest(self) -> str:
        """Hash that identifies these rows in this order; rows cannot be read from it."""
        found = hashlib.blake2b(digest_size=16)
        columns = {"codes": self.codes, "y": self.y, "weight": self.weight, **self.row_data}
        for name in sorted(columns):
            if (column := columns[name]) is not None:
                found.update(f"{name} {column.shape} {column.dtype.str} ".encode())
                found.update(np.ascontiguousarray(column).tobytes())
        return found.hexdigest()
