"""Tables of any library as rows, and predictions as tables of the same library."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import narwhals as nw

from everytree.base.arrays import FloatArray
from everytree.online.rows import Row, as_dicts
from everytree.tables.reading import as_frame, column_label, column_values


def rows_of(X: Any) -> list[Row]:
    """Return the rows of a table, or several dicts."""
    frame = as_frame(X)
    if isinstance(frame, nw.LazyFrame):
        raise TypeError(f"X is lazy ({type(X).__name__}), but its rows are needed; pass X.collect()")
    if not isinstance(frame, nw.DataFrame):
        return as_dicts(X)
    rows = as_dicts(frame.rows(named=True))
    for name, texts in _texts_of_categories(frame).items():
        for row, text in zip(rows, texts, strict=True):
            row[name] = text
    return rows


def _texts_of_categories(frame: nw.DataFrame[Any]) -> dict[str, list[str | None]]:
    """Columns of a categorical type without text, as text: a dict has no other way to mark categories."""
    texts = {}
    for series in frame.iter_columns():
        if series.dtype != nw.Categorical:
            continue
        values = column_values(column_label(series.name, 0), series)
        if values.index is not None and not all(isinstance(label, str) for label in values.labels):
            words = [*map(str, values.labels), None]  # -1, a missing value, selects the last
            texts[series.name] = [words[place] for place in values.index.tolist()]
    return texts


def targets_of(y: Iterable[Any]) -> list[Any]:
    """Return a column of any library, or several targets, as a list."""
    if hasattr(y, "to_pylist"):  # an Arrow array, in chunks or not: its items are not Python values
        values: list[Any] = y.to_pylist()
        return values
    series = nw.from_native(y, pass_through=True, allow_series=True)
    return series.to_list() if isinstance(series, nw.Series) else list(y)


def table_like(X: Any, names: Sequence[Any], values: FloatArray) -> Any:
    """Return a table of X's library; pandas with the index of X if that is pandas or none."""
    library = _library_of(X)
    if library is not None:
        columns = zip(map(str, names), values.T, strict=True)
        return nw.from_dict({name: column.tolist() for name, column in columns}, backend=library).to_native()
    import pandas as pd

    return pd.DataFrame(values, index=_index_of(X), columns=names)


def column_like(X: Any, name: str, values: Sequence[Any]) -> Any:
    """Like `table_like`, for one column."""
    library = _library_of(X)
    if library is not None:
        return nw.new_series(name, values, backend=library).to_native()
    import pandas as pd

    return pd.Series(values, index=_index_of(X))


def _index_of(X: Any) -> Any:
    """The index of a pandas table; others have none."""
    return X.index if isinstance(as_frame(X), nw.DataFrame) else None


def _library_of(X: Any) -> Any:
    frame = as_frame(X)
    if isinstance(frame, nw.DataFrame) and not frame.implementation.is_pandas():
        return frame.implementation
    return None
