"""Checks of arguments that many functions take: a valid value is returned, or an error names the argument."""

from __future__ import annotations

import math
import numbers
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from everytree.base.arrays import FloatArray, as_column
from everytree.base.errors import ArgumentError

MAX_WEIGHT = 1e60
"""Largest weight of a row: sums of squares of larger numbers would overflow."""


def resolve_n_jobs(n_jobs: int | None) -> int:
    """Number of threads by scikit-learn's convention: None is 1, -1 all cores, -2 all but one."""
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int | np.integer) or n_jobs == 0:
        raise ArgumentError("n_jobs", f"must be a positive number of threads, or -1 for all cores, but is {n_jobs!r}")
    if n_jobs > 0:
        return min(int(n_jobs), 256)
    return max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))


def positive_number(name: str, value: Any, more: str = "", high: float = math.inf) -> float:
    """Return the value as a positive finite float, at most `high`; `more` ends the sentence in the error."""
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, numbers.Real) else float(value)
    except OverflowError:
        number = math.inf
    if not 0.0 < number < math.inf or number > high:
        bound = f" of at most {high:g}" if high < math.inf else ""
        raise ArgumentError(name, f"must be a positive number{bound}{more}, but is {value!r}")
    return number


def whole_number(name: str, value: Any, low: int, high: int | None = None) -> int:
    """Return the value as an int within the range."""
    try:
        number = value.__index__() if not isinstance(value, bool) else None
    except (AttributeError, TypeError):
        number = int(value) if isinstance(value, float) and value.is_integer() else None
    if number is None or number < low or (high is not None and number > high):
        span = f"from {low} on" if high is None else f"from {low} to {high}"
        raise ArgumentError(name, f"must be a whole number {span}, but is {value!r}")
    return int(number)


def probabilities(name: str, values: ArrayLike) -> FloatArray:
    """Return one or several numbers, each strictly between 0 and 1, as an array."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number in (0, 1) or several, but is {values!r}") from None
    if array.ndim > 1 or not ((array > 0.0) & (array < 1.0)).all():
        raise ValueError(f"{name} must be in (0, 1), but is {values!r}")
    return array


def row_weights(sample_weight: ArrayLike) -> FloatArray:
    """Return weights of rows as floats; each must be finite and not negative."""
    weight: FloatArray = as_column("sample_weight", sample_weight).astype(np.float64)
    wrong = ~((weight >= 0.0) & (weight <= MAX_WEIGHT))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ArgumentError("sample_weight", "must be finite, from 0 to 1e60", row=row, value=str(weight[row]))
    return weight


def refuse_no_weight(weight: FloatArray) -> None:
    """Check that some row has a positive weight."""
    if not weight.any():
        raise ArgumentError("sample_weight", "is zero for every row: there is nothing to fit")


def is_auto(value: Any) -> bool:
    """Whether a parameter is left to the table."""
    return isinstance(value, str) and value == "auto"
