"""Columns of targets and row data of any library, read and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray, as_column, as_labels
from everytree.base.errors import ArgumentError


def as_array(y: Any) -> Any:
    """Return a column of any library as a NumPy array."""
    if y is None:
        raise ValueError("a fit requires y to be passed, but the target y is None")
    return y if isinstance(y, np.ndarray) else as_labels(y)


def numbers_of(name: str, values: Any) -> FloatArray:
    """Return a column of row data as numbers; missing ones become NaN, which no such column may hold."""
    column = np.asarray(as_labels(values)) if isinstance(values, Sequence) else values
    if isinstance(column, np.ndarray) and column.dtype.kind == "O":
        column = np.array([np.nan if one is None else one for one in column.tolist()])
    return np.asarray(as_column(name, column), dtype=np.float64)


def refuse_missing(labels: NDArray[Any], what: str = "a class") -> None:
    """Raise for missing class labels or numbers of one column."""
    if labels.ndim != 1:
        return
    if labels.dtype.kind == "f":
        wrong = ~np.isfinite(labels)
    elif labels.dtype.kind == "O":
        wrong = np.array([label is None or label is not label or _is_nan(label) for label in labels], dtype=bool)
    else:
        return
    if wrong.any():
        row = int(np.argmax(wrong))
        must = f"which is not {what}: Input y contains NaN, infinity or nothing"  # scikit-learn's words
        n_wrong = f"{np.count_nonzero(wrong):,} of {len(wrong):,} targets are so; leave their rows out of X and y"
        raise ArgumentError("y", f"is {labels[row : row + 1].tolist()[0]!r}, {must}. {n_wrong}", row=row)


def _is_nan(label: Any) -> bool:
    """NaN of any library, pandas' NA among them, is not equal to itself."""
    try:
        return not bool(label == label)
    except TypeError:
        return True


def refuse(values: FloatArray, wrong: NDArray[np.bool_], must: str, name: str = "y") -> None:
    """Raise an error about the first wrong value."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ArgumentError(name, f"must be {must}", row=row, value=f"{values[row]:g}")
