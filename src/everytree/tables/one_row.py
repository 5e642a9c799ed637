"""Single rows as tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.tables.reading import Table, Values, read_table


def rows_table(X: Any, owner: str) -> Table:
    """Read a table, or one row: a dict of its values, a pandas Series, or a list or array of one dimension."""
    if isinstance(X, Table):
        return X
    if type(X).__name__ == "Series" and hasattr(X, "to_dict"):  # a row of a pandas table, named by its columns
        X = X.to_dict()
    if isinstance(X, Mapping) and X and all(np.ndim(value) == 0 for value in X.values()):
        table = read_table(_one_row(list(X.values())), owner)
        return replace(table, names=tuple(str(name) for name in X))
    is_row = isinstance(X, np.ndarray | list | tuple) and len(X) > 0 and all(_is_cell(value) for value in X)
    return read_table(_one_row(list(X)) if is_row else X, owner)


def _is_cell(value: Any) -> bool:
    return np.ndim(value) == 0 and not isinstance(value, Mapping)


def _one_row(values: list[Any]) -> NDArray[Any]:
    row = np.empty((1, len(values)), dtype=object)
    row[0] = values
    return row


def cells_of(values: Values, n_rows: int) -> NDArray[Any]:
    """(n_rows,) the values of a column as plain Python objects; None where missing."""
    out = np.full(n_rows, None, dtype=object)
    if values.index is not None:
        for row, index in enumerate(np.asarray(values.index).tolist()):
            out[row] = values.labels[index] if index >= 0 else None
    elif values.numbers is not None:
        numbers = np.asarray(values.numbers, dtype=np.float64)
        for row in np.flatnonzero(~np.isnan(numbers)).tolist():
            out[row] = _plain(values.kind, float(numbers[row]))
    return out


def _plain(kind: str | None, number: float) -> Any:
    if kind == "boolean":
        return bool(number)
    if kind == "datetime":
        return np.datetime64(int(number), "us")
    return number
