"""Columns as splits near the root see them: a few codes for the many of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree.exact.regions import Kind
from everytree.tables.column import missing_code


class PathSplit(NamedTuple):
    """A split on the way to a region: of a column of the table, and the child that leads on.

    `threshold` and `missing_child` are as in `MetaTree`.
    """

    feature: int
    threshold: int
    missing_child: int
    n_children: int
    child: int


@dataclass(frozen=True)
class TopColumns:
    """The codes of a table, and the fewer codes of the same columns.

    Attributes
    ----------
    few_of : sequence of (n_codes,) int arrays
        For each column, the code that stands for each code of the table: increasing in columns of kind "ordered", each
        code itself in columns of kind "multiway".
    kinds : sequence of str
    has_missing : (n_features,) bool
        Whether a column had missing values at fit; they have the code after all others.
    """

    few_of: Sequence[NDArray[np.int64]]
    kinds: Sequence[Kind]
    has_missing: NDArray[np.bool_]

    @cached_property
    def n_few(self) -> list[int]:
        """Number of codes of each column, missing included."""
        return [
            int(own.max(initial=0)) + 1 + int(missing)
            for own, missing in zip(self.few_of, self.has_missing, strict=True)
        ]

    def read(self, codes: NDArray[Any]) -> NDArray[np.uint16]:
        """Return the few codes of rows; 65535 where a code is not known."""
        out = np.full(codes.shape, 65535, dtype=np.uint16)
        is_missing = codes == missing_code(codes.dtype)
        for k, (own, n) in enumerate(zip(self.few_of, self.n_few, strict=True)):
            known = codes[:, k] < len(own)
            out[known, k] = own[codes[known, k]]
            if n == 1:
                out[:, k] = 0  # never split on
            elif self.has_missing[k]:
                out[is_missing[:, k], k] = n - 1
        return out

    def threshold(self, column: int, few: int) -> int:
        """The largest code of the table whose few code is at most this one."""
        return int(np.searchsorted(self.few_of[column], few, side="right")) - 1

    def path(self, columns: NDArray[np.int32], codes: NDArray[np.uint64]) -> list[PathSplit]:
        """Return splits of the table's codes that lead to a region, given its conditions on few codes."""
        conditions = zip(columns.tolist(), codes.tolist(), strict=True)
        return [split for column, own in conditions for split in self._splits(column, own)]

    def _splits(self, column: int, codes: int) -> list[PathSplit]:
        n_known, missing = len(self.few_of[column]), bool(self.has_missing[column])
        if self.kinds[column] == "multiway":
            return [PathSplit(column, -1, n_known if missing else -1, n_known + missing, codes.bit_length() - 1)]
        low, high = codes & 0xFFFFFFFF, codes >> 32
        found = []
        if high < self.n_few[column] - 1:
            found.append(PathSplit(column, self.threshold(column, high), 1 if missing else -1, 2, 0))
        if low > 0:
            found.append(PathSplit(column, self.threshold(column, low - 1), 1 if missing else -1, 2, 1))
        return found
