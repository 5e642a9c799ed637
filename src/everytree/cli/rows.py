"""Rows of a table: where they came from, and the columns that are no features."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.errors import OverlapError
from everytree.base.words import nearest
from everytree.cli.problems import UserError, in_words_of_files, one_of

DELIMITER_HINT = "; if the delimiter is not a comma or a tab, give it by --delimiter"
NO_HEADER_HINT = "; if the first line is a row rather than names, say --no-header"


@dataclass(frozen=True)
class Stretch:
    """Rows of one file that follow each other."""

    path: str
    called: str  # what errors call the file; empty where the table is one file
    n_rows: int
    first_row: int = 0  # rows of the file before them
    first_line: int | None = None  # line of the first of them, where each row is one line

    def place(self, row: int) -> str:
        """Location of a row in its file, for errors."""
        line = f"row {row + self.first_row}" if self.first_line is None else f"line {row + self.first_line}"
        return f"{self.called}, {line}" if self.called else line


@dataclass(frozen=True)
class TableRows:
    """Rows of a table, with their files and lines, for errors."""

    name: str  # of the table, as the user gave it
    table: Any  # pyarrow.Table
    stretches: tuple[Stretch, ...]  # where they came from, in their order
    is_text: bool = False  # whether they were read from text
    # pyarrow.ChunkedArray: columns to be repeated, as they stand in the file: those of text files are text
    kept: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        return list(self.table.column_names)

    @property
    def n_rows(self) -> int:
        return int(self.table.num_rows)

    def place(self, row: int) -> str:
        """Location of a row in its file, for errors."""
        which = bisect_right(self._starts, row) - 1
        return self.stretches[which].place(row - self._starts[which])

    @cached_property
    def _starts(self) -> list[int]:
        return list(accumulate((stretch.n_rows for stretch in self.stretches[:-1]), initial=0))

    def values(self, column: str, role: str) -> NDArray[Any]:
        """One column, all of whose values must be there."""
        if column not in self.columns:
            raise no_such_column(self.name, column, role, self.columns)
        values = _to_numpy(self.table.column(column))
        absent = np.array([v is None for v in values]) if values.dtype == object else values != values
        if np.any(absent):
            raise UserError(f"{self.name}, {self.place(int(np.argmax(absent)))}: the {role} {column!r} is missing")
        return values

    def numbers(self, column: str, role: str, advice: str = "") -> NDArray[Any]:
        """One column, all of whose values must be numbers or say numbers; `advice` ends the sentence in the error."""
        values = self.values(column, role)
        if values.dtype.kind in "biuf":
            return values
        numbers = np.empty(len(values))
        for row, value in enumerate(values):
            try:
                numbers[row] = float(value)
            except (TypeError, ValueError):
                where = f"{self.name}, {self.place(row)}"
                raise UserError(
                    f"{where}: the {role} {column!r} is {str(value)!r}, which is not a number{advice}"
                ) from None
        return numbers

    def targets(self, column: str) -> NDArray[Any]:
        """The column of targets, classes or numbers; text as NumPy's."""
        values = self.values(column, "target")
        holds = _neither_class_nor_number(self.table.column(column).type)
        if holds:
            raise UserError(f"{self.name}: the target {column!r} holds {holds}, but must hold classes or numbers")
        return values.astype(str) if values.dtype == object and isinstance(values[0], str) else values

    def check_whole(self, values: NDArray[Any], target: str) -> None:
        """Refuse numbers with fractions for classes."""
        if values.dtype.kind == "f" and (values != np.floor(values)).any():
            row = int(np.argmax(values != np.floor(values)))
            where = f"{self.name}, {self.place(row)}"
            raise UserError(f"{where}: the target {target!r} is {values[row]:g}, but classes are whole or text")

    @contextmanager
    def reporting_errors(self, **roles: str | None) -> Iterator[None]:
        """Re-raise errors of the library with file and line; `roles` are the columns of `y` and other arguments.

        An `OverlapError` goes to the caller as it is.
        """
        try:
            yield
        except OverlapError:
            raise
        except (ValueError, TypeError) as error:
            raise UserError(f"{self.name}: {in_words_of_files(error, roles, self.place)}") from error


def no_such_column(name: str, column: str, role: str, columns: Sequence[str]) -> UserError:
    """The error for a column that is not in a table."""
    return UserError(f"{name}: there is no column {column!r} for the {role}; {one_of(column, columns)}")


def check_target(name: str, columns: Sequence[str], target: str, *, is_text: bool, has_header: bool) -> None:
    """Refuse a table without its target; of a text file that may have been read wrongly, say how to read it."""
    if target in columns:
        return
    is_like_none = has_header and not nearest(target, columns)
    hint = DELIMITER_HINT if len(columns) == 1 else NO_HEADER_HINT if is_like_none else ""
    raise UserError(f"{no_such_column(name, target, 'target', columns)}{hint if is_text else ''}")


def _to_numpy(column: Any) -> NDArray[Any]:
    """A column of Arrow's as NumPy; text as objects, None where it is missing, numbers NaN there."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


def _neither_class_nor_number(arrow_type: Any) -> str:
    """Name of a type of values that no model predicts, such as dates; empty for classes and numbers."""
    from pyarrow import types

    if types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    for test, name in (
        (types.is_date, "dates"), (types.is_timestamp, "dates"), (types.is_duration, "durations"),
        (types.is_time, "times of day"), (types.is_nested, f"values of type {arrow_type}"),
        (types.is_binary, "bytes"), (types.is_large_binary, "bytes"), (types.is_fixed_size_binary, "bytes"),
    ):  # fmt: skip
        if test(arrow_type):
            return name
    return ""
