"""Columns of a table that are no features, by their names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np

from everytree.base.errors import ArgumentError
from everytree.tables.reading import as_frame, in_memory, is_records


def split_off(X: Any, given: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a table without the columns that arguments name, and the arguments with these columns in place of names.

    `X`: a query of polars or DuckDB is computed. `given`: arguments with one entry a row, or the names of columns of X
    that hold them.
    """
    X, named = in_memory(X), {argument: name for argument, name in given.items() if isinstance(name, str)}
    if not named:
        return X, dict(given)
    columns = _columns(X)
    for argument, name in named.items():
        if columns is None:
            raise ArgumentError(argument, f"is {name!r}, but X has no names of columns; pass the values themselves")
        if name not in columns:
            raise ArgumentError(argument, f"is {name!r}, but X has no such column; its columns are {columns}")
    names = set(named.values())
    if is_records(X):
        rest: Any = [{key: value for key, value in row.items() if key not in names} for row in X]
        taken = {argument: [row.get(name) for row in X] for argument, name in named.items()}
        return rest, {**given, **taken}
    frame = as_frame(X)
    taken = {argument: frame[name].to_native() for argument, name in named.items()}
    return frame.drop(*names).to_native(), {**given, **taken}


def series_name(values: Any) -> str | None:
    """Name of a series of any library; None where it has none, and for what is no series."""
    if isinstance(values, np.ndarray | list | tuple):  # the usual ones: no library needs to be asked
        return None
    series = nw.from_native(values, series_only=True, pass_through=True)
    return str(series.name) if isinstance(series, nw.Series) and series.name else None


def _columns(X: Any) -> list[str] | None:
    """Names of the columns; None where they have none."""
    if is_records(X):
        return list(dict.fromkeys(key for row in X for key in row))
    frame = X if isinstance(X, list | tuple) else as_frame(X)
    return list(frame.columns) if isinstance(frame, nw.DataFrame) else None
