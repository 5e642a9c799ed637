"""Tables of any library, column by column: the type of each column, and its values as plain arrays.

Missing is whatever a library calls so: NaN, None, null, NaT, pandas.NA. Dates are numbers of microseconds since 1970:
those with a time zone in UTC, those without as they are; a column must not mix the two. A column of a categorical type
holds categories, even if they are numbers. A duration is a number, its seconds. Objects are inspected one by one. A
cell that a sparse matrix does not store is 0. Queries of polars and DuckDB are computed.
"""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.errors import ArgumentError, ArgumentTypeError

Kind = Literal["numeric", "boolean", "datetime", "categorical"]
Label = str | int | float | bool

_SECOND = np.timedelta64(1, "s")
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


SAYS_MISSING = frozenset({"", "NA", "N/A", "n/a", "<NA>", "#N/A", "NaN", "nan", "-nan", "NULL", "null", "None"})
"""Text that stands for a missing value. Some file readers turn it into missing values and some do not; here it is
missing in either case, unless a categorical type declares it as a category."""

ENCODED_TEXT = b"everytree: text"
"""Mark of a column of text that comes as an Arrow dictionary, which is otherwise a categorical type."""


@dataclass(frozen=True)
class Values:
    """One column of a table."""

    kind: Kind | None  # from the column's type; None if there are only missing values
    # (n_rows,) real numbers of a type the kernels read, NaN where missing; None in a categorical column
    numbers: NDArray[Any] | None = None
    labels: tuple[Label, ...] = ()
    index: NDArray[Any] | None = None  # (n_rows,) int, index of each row's value in `labels`, -1 where missing
    declared: bool = False  # whether `labels` are those of the type, in its order, whether or not they occur
    ordered: bool = False  # whether the order of `labels` has a meaning
    zoned: bool = False  # whether dates are instants, with a time zone, rather than local times
    # whether `labels` are plain text, which may hold numbers or dates, rather than values of a categorical type
    is_text: bool = False

    def at(self, rows: NDArray[Any]) -> Values:
        """Return some of the rows."""
        numbers = None if self.numbers is None else self.numbers[rows]
        return replace(self, numbers=numbers, index=None if self.index is None else self.index[rows])


@dataclass(frozen=True)
class Table:
    """A table whose columns are read on first use."""

    n_rows: int
    n_columns: int
    names: tuple[str, ...] | None
    read: Callable[[str, int], Values]

    def label(self, index: int) -> str:
        """Name of a column in errors."""
        return column_label(None if self.names is None else self.names[index], index)

    def column(self, index: int) -> Values:
        return self.read(self.label(index), index)

    def at(self, rows: NDArray[np.int64]) -> Table:
        """Return some of the rows."""
        return replace(self, n_rows=len(rows), read=lambda label, index: self.read(label, index).at(rows))


def column_label(name: str | None, index: int) -> str:
    """Name of a column in errors: its name, or its position if it has none."""
    return f"column {index}" if name is None else f"column {name!r}"


def read_table(X: Any, owner: str) -> Table:
    """Read any table in memory, or raise if X is none; `owner` is named in errors."""
    if isinstance(X, Table):
        return X
    is_sparse = hasattr(X, "tocsc")
    frame = X if is_sparse or isinstance(X, np.ndarray | list | tuple) else as_frame(X)
    if isinstance(frame, nw.LazyFrame):
        frame = nw.from_native(in_memory(X))
    if is_sparse:
        table = _sparse_table(X)
    elif is_records(X):
        table = _records_table(X)
    else:
        table = _frame_table(frame) if isinstance(frame, nw.DataFrame) else _array_table(X)
    for size, thing in ((table.n_rows, "sample(s)"), (table.n_columns, "feature(s)")):
        if size == 0:
            shape = (table.n_rows, table.n_columns)
            raise ValueError(f"Found array with 0 {thing} (shape={shape}) while a minimum of 1 is required by {owner}.")
    return table


def in_memory(X: Any) -> Any:
    """Return a table with its rows: queries of polars and DuckDB are computed, once for all columns."""
    frame = X if isinstance(X, np.ndarray | list | tuple) or hasattr(X, "tocsc") else as_frame(X)
    if not isinstance(frame, nw.LazyFrame):
        return X
    if frame.implementation.is_polars():
        return X.collect()
    if frame.implementation.is_duckdb():
        return frame.collect("pyarrow").to_native()
    how = next((name for name in ("compute", "to_pyarrow") if hasattr(X, name)), "collect")
    raise TypeError(f"X is lazy ({type(X).__name__}), but a table in memory is needed; pass X.{how}()")


def is_records(X: Any) -> bool:
    """Whether a table is a list of dicts, one a row."""
    return isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], Mapping)


def number_labels(label: str, values: NDArray[Any]) -> tuple[tuple[Label, ...], NDArray[Any]]:
    """A column of numbers as categories: its distinct values in ascending order, and the index of each row's value."""
    refuse_infinity(label, values)
    known = values == values
    distinct, inverse = np.unique(values[known], return_inverse=True)
    index = np.full(len(values), -1, dtype=np.int64)
    index[known] = inverse
    return plain_labels(distinct.tolist()), index


def label_numbers(values: Values) -> tuple[NDArray[np.float64] | None, int]:
    """Categories that are numbers, or text that contains them, as numbers; else None and the first row without one."""
    assert values.index is not None
    numbers_of = np.full(len(values.labels) + 1, np.nan)
    for place, value in enumerate(values.labels):
        try:
            numbers_of[place] = _as_float(value)
        except ValueError:
            rows = np.flatnonzero(values.index == place)
            if len(rows):
                return None, int(rows[0])
    return numbers_of[values.index], -1


def refuse_infinity(label: str, values: NDArray[Any]) -> NDArray[np.bool_] | None:
    """Whether each number is not missing, None for all of them; raise for infinity, with its row."""
    if values.dtype.kind != "f":
        return None
    finite: NDArray[np.bool_] = np.isfinite(values)
    if finite.all():
        return None
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise infinity(label, int(infinite[0]), float(values[infinite[0]]))
    return finite


def infinity(label: str, row: int, value: float) -> ValueError:
    """The error for an infinite number; only NaN is missing."""
    return ArgumentError("X", "X must not hold infinity; a missing value is NaN", label, row, str(value))


# ---- data frames ----------------------------------------------------------------------------------------------------


def as_frame(X: Any) -> Any:
    """Return a frame or a lazy frame of narwhals, or X itself if it is neither."""
    if isinstance(X, str | os.PathLike):
        must = "must be a table: read the file first, as pandas.read_csv does, or use fit_batches"
        raise ArgumentTypeError("X", must, value=repr(os.fspath(X)))
    if isinstance(X, Mapping):
        must = "must be a table: pass [X] for one row, or pandas.DataFrame(X) for columns"
        raise ArgumentTypeError("X", must, value="a dict")
    if type(X).__module__.startswith("pyarrow") and type(X).__name__ == "RecordBatch":
        import pyarrow as pa

        X = pa.Table.from_batches([X])
    try:
        return nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError as error:
        raise ValueError(f"X has columns of the same name, but names must differ: {error}") from None


def _frame_table(frame: nw.DataFrame[Any]) -> Table:
    names = tuple(str(name) for name in frame.columns)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"X has two columns named {twice!r}, but names must differ")
    columns = list(frame.iter_columns())
    native = frame.to_native()
    encoded = encoded_text(native.schema) if type(native).__module__.startswith("pyarrow") else set()

    def column(label: str, index: int) -> Values:
        values = column_values(label, columns[index])
        return replace(values, is_text=True) if names[index] in encoded and values.index is not None else values

    return Table(len(frame), len(columns), names, column)


def mark_encoded_text(field: Any, encoded: Any) -> Any:
    """Return the field of an Arrow schema with the type of a dictionary, marked as text that was encoded to be read."""
    return field.with_type(encoded).with_metadata({**(field.metadata or {}), ENCODED_TEXT: b"1"})


def encoded_text(schema: Any) -> set[str]:
    """Names of columns of an Arrow schema whose dictionaries are plain text that was encoded to be read."""
    return {field.name for field in schema if ENCODED_TEXT in (field.metadata or {})}


def column_values(label: str, series: nw.Series[Any]) -> Values:
    """Read a column of a data frame."""
    dtype = series.dtype
    if dtype.is_numeric():
        beyond_numpy = dtype.is_decimal() or dtype in (nw.Int128, nw.UInt128)
        return Values("numeric", _numbers(series.cast(nw.Float64) if beyond_numpy else series))
    if dtype == nw.Boolean:
        return Values("boolean", _numbers(series))
    if dtype == nw.Duration:
        return Values("numeric", _seconds(np.asarray(series.to_numpy())))
    if dtype in (nw.Datetime, nw.Date):
        is_zoned = isinstance(dtype, nw.Datetime) and dtype.time_zone is not None
        return Values("datetime", _numbers(series.dt.timestamp("us")), zoned=is_zoned)
    native = series.to_native()
    if hasattr(native, "cat") and hasattr(getattr(native, "dtype", None), "ordered"):  # pandas and similar libraries
        index = np.asarray(native.cat.codes)
        labels = plain_labels(native.cat.categories.tolist())
        return Values("categorical", None, labels, index, declared=True, ordered=bool(native.cat.ordered))
    if dtype == nw.Enum:
        return _from_enum(native.dtype.categories.to_list(), series.to_list())
    if dtype in (nw.String, nw.Categorical):
        found = arrow_labels(native)
        if found is None and dtype == nw.Categorical:
            found = _distinct(label, series.to_list())
        if found is None:
            return _from_objects(label, series.to_list())
        return replace(_from_labels(*found), is_text=dtype == nw.String)
    if dtype in (nw.Object, nw.Unknown):
        return _from_array(label, np.asarray(series.to_numpy()))
    raise ArgumentTypeError("X", "must hold numbers, booleans, dates or categories", label, value=f"of type {dtype}")


def _numbers(series: nw.Series[Any]) -> NDArray[Any]:
    """The numbers of a column without a copy, if none is missing; else floats with NaN."""
    values = np.asarray(series.to_numpy())
    if values.dtype.kind not in "biuf":
        values = np.asarray(series.cast(nw.Float64).to_numpy())
    return _readable(values)


def _seconds(values: NDArray[Any]) -> NDArray[np.float64]:
    """Durations as numbers; NaN where there is none."""
    return values.astype("m8[ns]") / _SECOND


def _from_enum(declared: list[str], values: list[str | None]) -> Values:
    place: dict[str | None, int] = {name: k for k, name in enumerate(declared)}
    place[None] = -1
    index = np.fromiter(map(place.__getitem__, values), dtype=np.int64, count=len(values))
    return Values("categorical", None, tuple(declared), index, declared=True, ordered=True)


def arrow_labels(native: Any) -> tuple[list[Any], NDArray[Any]] | None:
    """Distinct values of an Arrow column of text or of a dictionary, and their index or -1 per row; None for others."""
    if not type(native).__module__.startswith("pyarrow"):
        return None
    import pyarrow as pa

    encoded = native if pa.types.is_dictionary(native.type) else native.dictionary_encode()
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    index = encoded.indices
    if index.type not in (pa.int32(), pa.int64()):
        index = index.cast(pa.int64())
    return encoded.dictionary.to_pylist(), np.asarray(index.fill_null(-1) if index.null_count else index)


def _from_labels(distinct: list[Any], index: NDArray[Any]) -> Values:
    """Categories from distinct values, some of which may mean a missing value."""
    kept = [k for k, value in enumerate(distinct) if not is_missing(value) and value not in SAYS_MISSING]
    if not kept or index.max(initial=-1) < 0:
        return Values(None)
    if len(kept) < len(distinct):
        renumbered = np.full(len(distinct) + 1, -1)  # -1, a missing value, selects the last entry, -1
        renumbered[kept] = np.arange(len(kept))
        index = renumbered[index]
    return Values("categorical", None, plain_labels([distinct[k] for k in kept]), index)


# ---- arrays and lists -----------------------------------------------------------------------------------------------


def _array_table(X: ArrayLike) -> Table:
    table = _as_array(X)
    _refuse_complex("X", table)
    if table.ndim in (0, 1):
        raise ValueError(
            f"Expected 2D array, got {'1D' if table.ndim else 'scalar'} array instead. Reshape your data either using "
            "array.reshape(-1, 1) if your data has a single feature or array.reshape(1, -1) if it contains a single "
            "sample."
        )
    if table.ndim != 2:
        raise ValueError(f"X must be a table (n_rows, n_features), but has shape {table.shape}")
    n_rows, n_columns = table.shape
    return Table(n_rows, n_columns, None, lambda label, index: _from_array(label, table[:, index]))


def _records_table(X: Sequence[Any]) -> Table:
    """Dicts, one a row: their keys are the columns, in the order in which they come, and may be absent."""
    for row, record in enumerate(X):
        if not isinstance(record, Mapping):
            raise ArgumentTypeError(
                "X", f"must be a dict, as the rows before it, but is a {type(record).__name__}", row=row
            )
    keys = list(dict.fromkeys(key for record in X for key in record))
    if len(set(map(str, keys))) < len(keys):
        twice = next(key for key in keys if sum(str(other) == str(key) for other in keys) > 1)
        raise ValueError(f"X has two columns named {str(twice)!r}, but names must differ")

    def column(label: str, index: int) -> Values:
        return _from_objects(label, [record.get(keys[index]) for record in X])

    return Table(len(X), len(keys), tuple(map(str, keys)), column)


def _sparse_table(X: Any) -> Table:
    """A sparse matrix or array of SciPy's: cells that are not stored are 0, those that are NaN are missing."""
    if X.ndim != 2:
        raise ValueError(f"X must be a table (n_rows, n_features), but is sparse with shape {X.shape}")
    _refuse_complex("X", X)
    cells = X.tocsc()
    if not cells.has_canonical_format:  # a cell may be stored in several parts
        cells = cells.copy()
        cells.sum_duplicates()

    def column(label: str, index: int) -> Values:
        values = np.zeros(cells.shape[0], dtype=cells.dtype)
        stored = slice(cells.indptr[index], cells.indptr[index + 1])
        values[cells.indices[stored]] = cells.data[stored]
        return _from_array(label, values)

    n_rows, n_columns = cells.shape
    return Table(n_rows, n_columns, None, column)


def _refuse_complex(label: str, values: Any) -> None:
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {label} has dtype {values.dtype}")


def _as_array(X: ArrayLike) -> NDArray[Any]:
    if isinstance(X, np.ma.MaskedArray):
        filled: NDArray[Any] = np.ma.getdata(X).astype(object)
        filled[np.ma.getmaskarray(X)] = None
        return filled
    try:
        table = np.asarray(X)
        # NumPy turns a list of numbers and text into text alone.
        return np.array(X, dtype=object) if table.dtype.kind in "US" and not isinstance(X, np.ndarray) else table
    except ValueError:
        raise ValueError("X: its rows have different lengths") from None


def _from_array(label: str, values: NDArray[Any]) -> Values:
    _refuse_complex(f"X: {label}", values)
    if values.dtype.kind == "b":
        return Values("boolean", values)
    if values.dtype.kind in "iuf":
        return Values("numeric", _readable(values))
    if values.dtype.kind == "m":
        return Values("numeric", _seconds(values))
    if values.dtype.kind == "M":
        return Values("datetime", np.where(np.isnat(values), np.nan, values.astype("M8[us]").astype(np.float64)))
    if values.dtype.kind in "OUT":
        return _from_objects(label, values.tolist())
    raise ArgumentTypeError(
        "X", "must hold numbers, booleans, dates or strings", label, value=f"of type {values.dtype}"
    )


def _readable(values: NDArray[Any]) -> NDArray[Any]:
    """Return numbers as the kernels read them; most are so already."""
    if values.dtype == np.float16 or values.dtype.itemsize > 8 or not values.dtype.isnative:
        return values.astype(np.float64)
    return values


def _from_objects(label: str, values: list[Any]) -> Values:
    """Read a column of Python objects, whose type only the objects themselves tell."""
    types = set(map(type, values))
    if float in types and types <= {float, type(None)}:  # the most common case, in which one by one would be slow
        return Values("numeric", np.array(values, dtype=np.float64))
    distinct, index = _distinct(label, values)
    missing = [is_missing(value) or value in SAYS_MISSING for value in distinct]
    kinds = [None if absent else _kind_of(value) for absent, value in zip(missing, distinct, strict=True)]
    for place, value in enumerate(distinct):
        if kinds[place] is None and not missing[place]:
            raise _bad_cell(label, int(np.argmax(index == place)), value)
    found = {kind for kind in kinds if kind is not None}
    if found == {"numeric", "boolean"}:
        found = {"numeric"}
    if len(found) > 1:
        rows = [int(np.argmax(index == kinds.index(kind))) for kind in sorted(found)]
        cells = " and ".join(f"{values[row]!r} (row {row})" for row in sorted(rows))
        raise ArgumentTypeError("X", f"holds {cells}, but the values of a column must be of one kind", label)
    if not found:
        return Values(None)
    kind: Kind = found.pop()
    if kind != "categorical":
        number = _microseconds if kind == "datetime" else _as_float
        lookup = [math.nan if absent else number(value) for absent, value in zip(missing, distinct, strict=True)]
        zoned = kind == "datetime" and _have_zones(label, values, distinct, index)
        return Values(kind, np.array(lookup, dtype=np.float64)[index], zoned=zoned)
    renumbered = np.where(missing, -1, np.cumsum(~np.array(missing)) - 1)
    labels = tuple(str(value) for absent, value in zip(missing, distinct, strict=True) if not absent)
    return Values(kind, None, labels, renumbered[index], is_text=True)


def _distinct(label: str, values: list[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """Distinct values in the order of their first row, and their index for each row."""
    place: dict[Any, int] = {}
    try:
        index = np.fromiter((place.setdefault(value, len(place)) for value in values), np.int64, len(values))
    except TypeError:
        row = next(row for row, value in enumerate(values) if not _is_hashable(value))
        raise _bad_cell(label, row, values[row]) from None
    return list(place), index


def _bad_cell(label: str, row: int, value: Any) -> TypeError:
    must = "the argument must be a string, a number, a boolean or a date"
    return ArgumentTypeError("X", f"{must}, but is {value!r} of type {type(value).__name__}", label, row)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def is_missing(value: Any) -> bool:
    """Whether a library uses this object for a missing value."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    kinds = float | np.floating | np.datetime64 | np.timedelta64 | decimal.Decimal
    return isinstance(value, kinds) and bool(value != value)


def _kind_of(value: Any) -> Kind | None:
    if isinstance(value, str):
        return "categorical"
    if isinstance(value, bool | np.bool_):
        return "boolean"
    if isinstance(value, numbers.Real | decimal.Decimal | datetime.timedelta | np.timedelta64):
        return "numeric"
    return "datetime" if isinstance(value, datetime.date | np.datetime64) else None


def _as_float(value: Any) -> float:
    """Return a number as a float; one too large becomes infinite, which is refused later with its row."""
    if isinstance(value, datetime.timedelta | np.timedelta64):
        return float(value / (datetime.timedelta(seconds=1) if isinstance(value, datetime.timedelta) else _SECOND))
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def _have_zones(label: str, values: list[Any], distinct: list[Any], index: NDArray[Any]) -> bool:
    """Whether dates have time zones; either all of them or none must."""
    zoned = [None if is_missing(date) else getattr(date, "tzinfo", None) is not None for date in distinct]
    if True in zoned and False in zoned:
        rows = sorted(int(np.argmax(index == zoned.index(has))) for has in (True, False))
        cells = " and ".join(f"{values[row]!r} (row {row})" for row in rows)
        raise ArgumentError("X", f"holds {cells}, but the dates of a column must all have a time zone or none", label)
    return True in zoned


def _microseconds(value: Any) -> float:
    """Microseconds since 1970, in UTC if a time zone is known."""
    if isinstance(value, np.datetime64):
        return float(value.astype("M8[us]").astype(np.int64))
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day)
    aware = value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value
    return float((aware - _EPOCH) // datetime.timedelta(microseconds=1))


def plain_labels(labels: Sequence[Any]) -> tuple[Label, ...]:
    """Categories as str, int, float or bool; whole numbers as int, since one missing value makes all of them floats."""
    plain = [value.item() if isinstance(value, np.generic) else value for value in labels]
    plain = [value if isinstance(value, str | bool | int | float) else str(value) for value in plain]
    if plain and all(isinstance(value, float) and value.is_integer() for value in plain):
        return tuple(int(value) for value in plain)
    return tuple(plain)
