"""Kinds of arrays: tables of codes and columns of numbers, as the kernels read them.

The kernels read any integer or boolean table and any numeric column where it lies, `uint8` and `uint16` codes fastest.
What they cannot read (lists, data frames, floats) comes through here, named in the error when it is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.errors import ArgumentError, ArgumentTypeError

FloatArray = NDArray[np.float64]
"""Statistics, evidences, probabilities, weights: everything that is not counted or numbered."""

NodeArray = NDArray[np.int32]
"""Numbers of nodes and features; -1 is none."""

RowArray = NDArray[np.int64]
"""Numbers of rows, and of other things there may be more than 2**31 of."""

LARGEST_CODE = 65534
"""Codes are 0..65534. A missing value is 255 in `uint8`, 65535 in `uint16` and -1 in signed integers."""

MAX_FEATURES = 2**24
"""Tables wider than this are refused: some arrays have an entry for each column."""


def as_codes(X: ArrayLike) -> NDArray[Any]:
    """Any table of whole numbers as one that the kernels read; they check the codes themselves."""
    table = as_table(X)
    if table.dtype.kind in "iub":
        return table.astype(table.dtype.newbyteorder("="))
    read = table.astype(np.float64)
    wrong = ~np.isfinite(read) | (read != np.floor(read)) | (np.abs(read) > 2.0**53)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ArgumentError("X", "codes are whole numbers", f"column {column}", int(row), str(read[row, column]))
    return read.astype(np.int64)


def as_table(X: ArrayLike) -> NDArray[Any]:
    """A two-dimensional array of numbers, not looked at any closer."""
    if hasattr(X, "tocsr"):
        raise TypeError("X is a sparse matrix; pass a dense table of codes, for example X.toarray()")
    table = _as_array("X", X)
    if table.ndim != 2:
        raise ValueError(f"X must be a table (n_rows, n_features), but has shape {table.shape}")
    if table.dtype.kind not in "biuf":
        raise TypeError(f"X must hold whole-number codes, but has dtype {table.dtype}")
    return table


def as_column(name: str, values: ArrayLike) -> NDArray[Any]:
    """One number a row, or an error that names the argument."""
    column = _as_array(name, values)
    if column.ndim != 1:
        raise ArgumentError(name, f"must have one entry a row, but has shape {column.shape}")
    return as_numbers(name, column)


def as_numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    """Numbers in any shape, or an error that names the argument."""
    array = _as_array(name, values)
    if array.dtype.kind not in "biuf":
        raise ArgumentTypeError(name, f"must be numbers, but has dtype {array.dtype}")
    if array.dtype.itemsize > 8 or array.dtype == np.float16 or not array.dtype.isnative:
        return array.astype(np.float64)
    return array


def as_labels(values: Any) -> NDArray[Any]:
    """A column of any library, of numbers or anything else, as NumPy."""
    if type(values).__module__.startswith("pyarrow"):
        return np.array(values.to_pylist())
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)


def such_as(values: NDArray[Any]) -> str:
    """What kind of values a column has, and the first of them, for errors."""
    first = values.tolist()[0]
    return f"{'text' if isinstance(first, str) else values.dtype} such as {first!r}"


def _as_array(name: str, values: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{name}: its rows have different lengths") from None


def readable(
    X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """The arguments of an update in a form the kernels read."""
    weight = None if sample_weight is None else as_column("sample_weight", sample_weight)
    return as_codes(X), as_column("y", y), weight


def check_lengths(n_rows: int, columns: Mapping[str, Any]) -> None:
    """Every column, where it is given, has one entry a row."""
    for name, values in columns.items():
        if values is None:
            continue
        shape = _as_array(name, values).shape
        if len(shape) == 0:
            raise ArgumentError(name, "must have one entry a row, but has shape ()")
        if shape[0] != n_rows:
            raise ArgumentError(name, f"has {shape[0]} entries, but X has {n_rows} rows")
