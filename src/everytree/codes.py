"""Tables of codes and columns of numbers, as the kernels read them.

The kernels take `uint8` and `uint16` codes and any numeric column without copying. What they cannot read as it is
comes through here: checked, named in the error when it is wrong, and converted once.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from everytree.metatree import MetaTree

LARGEST_CODE = 65534
"""Codes are 0..65534; 65535 is how a missing value is written in `uint16`, as 255 is in `uint8`."""

Codes = NDArray[np.uint8] | NDArray[np.uint16]


def as_codes(X: ArrayLike, has_missing: NDArray[np.bool_] | None = None, dtype: type | None = None) -> Codes:
    """Any table of whole numbers as a C-ordered code table of the smallest type that holds it.

    Parameters
    ----------
    X : (n_rows, n_features) array_like
        Whole numbers of any type. -1 stands for a missing value in columns that have a branch for it.
    has_missing : (n_features,) bool, optional
        Which columns have a branch for missing values.
    dtype : numpy.uint8 or numpy.uint16, optional
        The type wanted, where the smallest will not do.
    """
    table = _as_table(X)
    if table.dtype in (np.uint8, np.uint16) and dtype in (None, table.dtype.type):
        return np.ascontiguousarray(table)
    if table.dtype in (np.uint8, np.uint16):
        return _retype(table, dtype or np.uint16)
    whole = _as_whole_numbers(table)
    missing = whole == -1
    if has_missing is None:
        missing &= False
    else:
        known = np.zeros(whole.shape[1], dtype=bool)
        known[: len(has_missing)] = has_missing[: whole.shape[1]]
        missing &= known
    wrong = ((whole < 0) & ~missing) | (whole > LARGEST_CODE)
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(f"X: column {column}, row {row}: code {whole[row, column]}, but codes are 0..{LARGEST_CODE}")
    smallest = np.uint8 if whole.size == 0 or whole.max() < 255 else np.uint16
    codes: Codes = whole.astype(dtype or smallest)
    if missing.any():
        codes[missing] = np.iinfo(codes.dtype).max
    return codes


def _as_table(X: ArrayLike) -> NDArray[Any]:
    if hasattr(X, "tocsr"):
        raise TypeError("X is a sparse matrix; pass a dense table of codes, for example X.toarray()")
    table = np.asarray(X)
    if table.ndim != 2:
        raise ValueError(f"X must be a table (n_rows, n_features), but has shape {table.shape}")
    if table.dtype.kind not in "biuf":
        raise TypeError(f"X must hold whole-number codes, but has dtype {table.dtype}")
    return table


def _as_whole_numbers(table: NDArray[Any]) -> NDArray[np.int64]:
    if table.dtype.kind == "f":
        wrong = ~np.isfinite(table) | (table != np.floor(table)) | (np.abs(table) > 2.0**53)
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise ValueError(f"X: column {column}, row {row}: {table[row, column]}, but codes are whole numbers")
    elif table.dtype == np.uint64:
        table = np.minimum(table, np.uint64(2**62))
    return table.astype(np.int64)


def _retype(table: NDArray[Any], dtype: type) -> Codes:
    """uint8 to uint16 or back, the missing code staying the missing code where it would otherwise be lost."""
    ordinary = table.astype(np.int64)
    largest = np.iinfo(dtype).max
    if ordinary.size and ordinary.max() > largest:
        row, column = np.argwhere(ordinary > largest)[0]
        raise ValueError(
            f"X: column {column}, row {row}: code {ordinary[row, column]}, but this tree knows codes below {largest}"
        )
    codes: Codes = np.ascontiguousarray(ordinary.astype(dtype))
    return codes


def as_column(name: str, values: ArrayLike) -> NDArray[Any]:
    """One number a row, or an error that names the argument."""
    column = np.asarray(values)
    if column.ndim != 1:
        raise ValueError(f"{name} must have one entry a row, but has shape {column.shape}")
    if column.dtype.kind not in "biuf":
        raise TypeError(f"{name} must be numbers, but has dtype {column.dtype}")
    if column.dtype.itemsize > 8 or column.dtype == np.float16 or not column.dtype.isnative:
        return column.astype(np.float64)
    return column


def readable(
    tree: MetaTree, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None
) -> tuple[Codes, NDArray[Any], NDArray[Any] | None]:
    """The arguments of an update in a form the kernels read."""
    weight = None if sample_weight is None else as_column("sample_weight", sample_weight)
    return as_codes(X, tree.has_missing), as_column("y", y), weight


def resolve_n_jobs(n_jobs: int | None) -> int:
    """scikit-learn's convention: None is 1, -1 all cores, -2 all but one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a positive number of threads, or -1 for all cores, but is {n_jobs!r}")
    if n_jobs > 0:
        return min(int(n_jobs), 256)
    return max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))
