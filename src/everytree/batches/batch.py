"""One batch of any library: its features, its targets, and what else is known of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.checks import row_weights
from everytree.base.errors import MissingValueError, RefusedError
from everytree.batches.prefetch import read_ahead
from everytree.batches.source import Source
from everytree.batches.target_column import Target, read_target
from everytree.tables.reading import Table, as_frame, read_table


@dataclass(frozen=True)
class Roles:
    """Which columns of a batch are no features."""

    target: str | None = None
    sample_weight: str | None = None
    # name of the column that holds each thing that the family wants to know of a row, such as `exposure`
    row_data: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, target: Any, sample_weight: Any, row_data: Mapping[str, Any]) -> Roles:
        """Those that are given, which must be names."""
        given = {role: name for role, name in row_data.items() if name is not None}
        for role, name in {"target": target, "sample_weight": sample_weight, **given}.items():
            if not (name is None or isinstance(name, str)):
                raise TypeError(f"{role} must be the name of a column, but is {type(name).__name__}")
        return cls(target, sample_weight, given)

    def columns(self) -> list[str]:
        """All of them."""
        return [name for name in (self.target, self.sample_weight, *self.row_data.values()) if name is not None]

    def check_in(self, columns: Sequence[Any], what: str = "it") -> None:
        """Refuse a table whose columns lack one of them."""
        absent = [name for name in self.columns() if name not in columns]
        if absent:
            raise ValueError(f"{what} has no column {absent[0]!r}; its columns are {list(columns)}")


@dataclass(frozen=True)
class Batch:
    """Some rows: their features, and what else is known of them. Rows of weight 0 are not there."""

    number: int
    table: Table
    target: Target | None
    weight: FloatArray | None
    row_data: dict[str, NDArray[Any]]


def batches_of(source: Source, roles: Roles, owner: str, features: list[str] | None = None) -> Iterator[Batch]:
    """The batches that have rows, read ahead, of all features or of these; what is wrong is said with its batch."""
    number = 0
    names = None if features is None else [*features, *dict.fromkeys(roles.columns())]
    raws = read_ahead(lambda: source.start(names))
    while True:
        with error_context(number):
            try:
                raw = next(raws)
            except StopIteration:
                return
            batch = read_batch(number, raw, roles, owner)
        if batch is not None:
            yield batch
        number += 1


@contextmanager
def error_context(number: int, part: str = "batch") -> Iterator[None]:
    """Re-raise errors with the number of the batch, or of another part of the table."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if isinstance(error, RefusedError):
            raise error.within((part, number)) from error
        known = TypeError if isinstance(error, TypeError) else ValueError
        raise known(f"{part} {number}: {error}") from error


def read_batch(number: int, raw: Any, roles: Roles, owner: str) -> Batch | None:
    """A batch of any library; None where it has no rows."""
    if isinstance(raw, tuple):
        return _read_pair(number, raw, roles, owner)
    frame = as_frame(raw)
    if not isinstance(frame, nw.DataFrame):
        if roles.columns():
            raise TypeError(f"it is a {type(raw).__name__}, but must be a table with names, or a pair (X, y)")
        return None if _n_rows(raw) == 0 else Batch(number, read_table(raw, owner), None, None, {})
    if len(frame) == 0:
        return None
    roles.check_in(frame.columns)
    target = None if roles.target is None else read_target(frame[roles.target], f"target {roles.target!r}")
    weight = None if roles.sample_weight is None else _numbers("sample_weight", frame[roles.sample_weight])
    row_data = {role: _numbers(role, frame[name]) for role, name in roles.row_data.items()}
    return _weighed(
        number, read_table(frame.drop(dict.fromkeys(roles.columns())).to_native(), owner), target, weight, row_data
    )


def _numbers(role: str, series: nw.Series[Any]) -> NDArray[Any]:
    """A column of numbers, all of them there."""
    if series.null_count():
        row = int(np.argmax(series.is_null().to_numpy()))
        raise MissingValueError(role, "every row needs one", f"{role} {series.name!r}", row)
    return np.asarray((series.cast(nw.Float64) if series.dtype.is_decimal() else series).to_numpy())


def _read_pair(number: int, raw: tuple[Any, ...], roles: Roles, owner: str) -> Batch | None:
    """A table and its targets, and weights where there are three; None where it has no rows."""
    if roles.columns():
        raise TypeError(f"it is a pair (X, y), in which {roles.columns()} cannot be named; pass (X, y, sample_weight)")
    if len(raw) not in (2, 3):
        raise TypeError(f"it is a tuple of {len(raw)}, but must be (X, y) or (X, y, sample_weight)")
    X, y, weight = (*raw, None)[:3]
    for name, values in {"X": X, "y": y, "sample_weight": weight}.items():
        if not hasattr(values, "__len__") and (name != "sample_weight" or values is not None):
            raise TypeError(f"{name} must have one entry a row, but is a {type(values).__name__}")
    if _n_rows(X) == 0 and _n_rows(y) == 0:
        return None
    target = read_target(
        y if isinstance(y, np.ndarray) else nw.from_native(y, allow_series=True, pass_through=True), "the target y"
    )
    return _weighed(number, read_table(X, owner), target, weight, {})


def _n_rows(values: Any) -> int:
    """Number of rows of a table, or of entries; sparse matrices have no length."""
    return int(values.shape[0]) if hasattr(values, "tocsc") else len(values)


def _weighed(
    number: int, table: Table, target: Target | None, weight: Any, row_data: dict[str, NDArray[Any]]
) -> Batch | None:
    """Without the rows of weight 0, which count as absent."""
    given = {"y": target, "sample_weight": weight, **row_data}
    for name, values in given.items():
        if values is not None and len(values) != table.n_rows:
            raise ValueError(f"X has {table.n_rows} rows, but {name} {len(values)}")
    if weight is None:
        return Batch(number, table, target, None, row_data)
    weight = row_weights(weight)
    used = np.flatnonzero(weight)
    if len(used) == len(weight):
        return Batch(number, table, target, weight, row_data)
    if not len(used):
        return None
    some = None if target is None else target.some(used)
    return Batch(number, table.at(used), some, weight[used], {name: column[used] for name, column in row_data.items()})
