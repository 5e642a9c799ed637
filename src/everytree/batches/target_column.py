"""The targets of a batch: numbers as they are, text by its distinct labels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.errors import MissingValueError
from everytree.tables.reading import arrow_labels, is_missing


@dataclass(frozen=True)
class Target:
    """One target a row."""

    values: NDArray[Any]  # (n_rows,) array, or the distinct labels where there is an index
    index: NDArray[np.int64] | None = None  # (n_rows,): which of the values each row has

    def __len__(self) -> int:
        return len(self.values if self.index is None else self.index)

    def at(self, rows: NDArray[Any]) -> NDArray[Any]:
        """The targets of some rows."""
        picked: NDArray[Any] = self.values[rows if self.index is None else self.index[rows]]
        return picked

    def some(self, rows: NDArray[Any]) -> Target:
        """Some of the rows; categories stay encoded."""
        return Target(self.values[rows]) if self.index is None else Target(self.values, self.index[rows])

    def read(self, how: Callable[[NDArray[Any]], NDArray[Any]]) -> NDArray[Any]:
        """One number a row, by a function that reads targets one by one."""
        return how(self.values) if self.index is None else how(self.values)[self.index]

    def distinct(self) -> NDArray[Any]:
        """Every label that some row has."""
        if self.index is not None:
            return self.values[np.bincount(self.index, minlength=len(self.values)) > 0]
        if self.values.dtype.kind in "biuf" and _are_doubles(self.values):
            few, _, _ = _kernels.scan_numbers(self.values, np.empty(0), 256)
            if few is not None:
                return np.asarray(few).astype(self.values.dtype)
        return np.unique(self.values)


def _are_doubles(values: NDArray[Any]) -> bool:
    """Whether the scan, which sees doubles, can tell all of them apart."""
    if values.dtype.kind in "bf" or values.dtype.itemsize < 8 or len(values) == 0:
        return True
    return int(values.max()) <= 2**53 and int(values.min()) >= -(2**53)


def read_target(column: Any, what: str) -> Target:
    """A column of any library, or an array; every row must have its target."""
    if isinstance(column, nw.Series):
        arrow = arrow_labels(column.to_native()) if column.dtype in (nw.String, nw.Categorical) else None
        if arrow is not None and all(label is None or isinstance(label, str) for label in arrow[0]):
            return _from_arrow(*arrow, what)
        if column.null_count():
            _refuse(np.asarray(column.is_null().to_numpy()), what)
        column = column.to_numpy()
    values = np.asarray(column)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{what} must have one entry a row, but has shape {values.shape}")
    if values.dtype.kind == "f":
        _refuse(np.isnan(values), what)
    elif values.dtype.kind == "O":
        _refuse(np.fromiter(map(is_missing, values), bool, len(values)), what)
    return Target(values)


def _from_arrow(labels: list[str | None], index: NDArray[np.int64], what: str) -> Target:
    present = np.array([label is not None for label in labels] + [False])
    _refuse(~present[index], what)
    return Target(np.array(["" if label is None else label for label in labels]), index)


def _refuse(missing: NDArray[np.bool_], what: str) -> None:
    if missing.any():
        raise MissingValueError("y", "every row needs one", what, int(np.argmax(missing)))
