"""Array types: tables of codes and columns of numbers, as the kernels read them.

The kernels read any integer or boolean table and any numeric column where it lies, `uint8` and `uint16` codes fastest.
Other input (lists, data frames, floats) is converted here, and errors name the argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.errors import ArgumentError, ArgumentTypeError
from everytree.base.words import number_of

FloatArray = NDArray[np.float64]
"""Statistics, evidences, probabilities, weights: everything that is not a count or an index."""

NodeArray = NDArray[np.int32]
"""Indices of nodes and features; -1 means none."""

RowArray = NDArray[np.int64]
"""Indices of rows, and other numbers that may exceed 2**31."""

LARGEST_CODE = 65534
"""Codes are 0..65534. A missing value is 255 in `uint8`, 65535 in `uint16` and -1 in signed integers."""

MAX_FEATURES = 2**24
"""Tables wider than this are refused: some arrays have an entry for each column."""


def as_codes(X: ArrayLike) -> NDArray[Any]:
    """Return a table of whole numbers in a form that the kernels read; they check the codes themselves."""
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
    """Return a two-dimensional array of numbers, without checking its values."""
    if hasattr(X, "tocsr"):
        raise TypeError("X is a sparse matrix; pass a dense table of codes, for example X.toarray()")
    table = _as_array("X", X)
    if table.ndim != 2:
        raise ValueError(f"X must be a table (n_rows, n_features), but has shape {table.shape}")
    if table.dtype.kind not in "biuf":
        raise TypeError(f"X must hold whole-number codes, but has dtype {table.dtype}")
    return table


def as_column(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return an array with one number per row; errors name the argument."""
    column = _as_array(name, values)
    if column.ndim != 1:
        raise ArgumentError(name, f"must have one entry a row, but has shape {column.shape}")
    return as_numbers(name, column)


def as_numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return numbers of any shape as an array; errors name the argument."""
    array = _as_array(name, values)
    if array.dtype.kind not in "biuf":
        raise ArgumentTypeError(name, f"must be numbers, but has dtype {array.dtype}")
    if array.dtype.itemsize > 8 or array.dtype == np.float16 or not array.dtype.isnative:
        return array.astype(np.float64)
    return array


def as_labels(values: Any) -> NDArray[Any]:
    """Return a column of any library, of numbers or other values, as a NumPy array."""
    if type(values).__module__.startswith("pyarrow"):
        return np.array(values.to_pylist())
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)


def such_as(values: NDArray[Any]) -> str:
    """Describe the values of a column for errors: their type and the first of them."""
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
    """Return the arguments of an update in a form that the kernels read."""
    weight = None if sample_weight is None else as_column("sample_weight", sample_weight)
    return as_codes(X), as_column("y", y), weight


def check_lengths(n_rows: int, columns: Mapping[str, Any]) -> None:
    """Check that every given column has one entry per row."""
    for name, values in columns.items():
        if values is None:
            continue
        shape = _as_array(name, values).shape
        if len(shape) == 0:
            raise ArgumentError(name, "must have one entry a row, but has shape ()")
        if shape[0] != n_rows:
            raise ArgumentError(
                name, f"has {number_of(shape[0], 'entry', 'entries')}, but X has {number_of(n_rows, 'row')}"
            )


def narrowest(values: NDArray[Any]) -> NDArray[Any]:
    """Return the numbers in the smallest type from which they come back to the last bit."""
    if values.dtype.kind not in "iuf":
        return values
    beginning = values.reshape(-1)[:1000]  # rules out most types at once
    for kind in _NARROW:
        is_narrower = np.dtype(kind).itemsize < values.itemsize and np.can_cast(kind, values.dtype)
        if is_narrower and _holds(kind, beginning) and _holds(kind, values):
            return values.astype(kind)
    return values


_NARROW = (np.uint8, np.int8, np.uint16, np.int16, np.uint32, np.int32, np.float32)


def _holds(kind: type[np.generic], values: NDArray[Any]) -> bool:
    with np.errstate(invalid="ignore", over="ignore"):
        back = values.astype(kind).astype(values.dtype)
    bits = f"u{values.itemsize}"  # equal numbers may differ in bits: 0.0 and -0.0
    return np.array_equal(back.view(bits), values.view(bits))
