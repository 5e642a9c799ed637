"""Tables of codes and columns of numbers, as the kernels read them.

The kernels read any integer or boolean table and any numeric column where it lies, `uint8` and `uint16` codes fastest.
What they cannot read (lists, data frames, floats) comes through here, named in the error when it is wrong.
"""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

LARGEST_CODE = 65534
"""Codes are 0..65534. A missing value is 255 in `uint8`, 65535 in `uint16` and -1 in signed integers."""

MOST_FEATURES = 2**24
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
        raise ValueError(f"X: column {column}, row {row}: {read[row, column]}, but codes are whole numbers")
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
        raise ValueError(f"{name} must have one entry a row, but has shape {column.shape}")
    if column.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be numbers, but has dtype {column.dtype}")
    if column.dtype.itemsize > 8 or column.dtype == np.float16 or not column.dtype.isnative:
        return column.astype(np.float64)
    return column


def as_labels(values: Any) -> NDArray[Any]:
    """A column of any library, of numbers or anything else, as NumPy."""
    if type(values).__module__.startswith("pyarrow"):
        return np.array(values.to_pylist())
    return np.asarray(values.to_numpy() if hasattr(values, "to_numpy") else values)


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
            raise ValueError(f"{name} must have one entry a row, but has shape ()")
        if shape[0] != n_rows:
            raise ValueError(f"{name} has {shape[0]} entries, but X has {n_rows} rows")


def resolve_n_jobs(n_jobs: int | None) -> int:
    """scikit-learn's convention: None is 1, -1 all cores, -2 all but one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a positive number of threads, or -1 for all cores, but is {n_jobs!r}")
    if n_jobs > 0:
        return min(int(n_jobs), 256)
    return max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))


def positive_number(name: str, value: Any, more: str = "", high: float = math.inf) -> float:
    """A positive finite float, at most `high`, whatever type it came in; `more` ends the sentence in the error."""
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, numbers.Real) else float(value)
    except OverflowError:
        number = math.inf
    if not 0.0 < number < math.inf or number > high:
        bound = f" of at most {high:g}" if high < math.inf else ""
        raise ValueError(f"{name} must be a positive number{bound}{more}, but is {value!r}")
    return number


def whole_number(name: str, value: Any, low: int, high: int | None = None) -> int:
    """An int in a range, whatever type it came in."""
    try:
        number = value.__index__() if not isinstance(value, bool) else None
    except (AttributeError, TypeError):
        number = int(value) if isinstance(value, float) and value.is_integer() else None
    if number is None or number < low or (high is not None and number > high):
        span = f"from {low} on" if high is None else f"from {low} to {high}"
        raise ValueError(f"{name} must be a whole number {span}, but is {value!r}")
    return int(number)
