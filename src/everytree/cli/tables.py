"""Rows of a table, and what errors say of where they came from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.cli.problems import UserError, in_words_of_files, one_of


@dataclass(frozen=True)
class TableFile:
    """Rows of a table, and what errors say of where they came from.

    Attributes
    ----------
    name : str
        Of the file, as the user gave it.
    table : pyarrow.Table
    first_line : int or None
        Line of the first of these rows, where each row is one line.
    first_row : int
        Rows of the file before them.
    digest : str
        SHA-256 of the whole file, by which the same rows are known again; empty for a part of it.
    kept : mapping of str to pyarrow.ChunkedArray
        Columns to be repeated, as they stand in the file: those of text files are text.
    """

    name: str
    table: Any
    first_line: int | None
    first_row: int = 0
    digest: str = ""
    kept: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        return list(self.table.column_names)

    @property
    def n_rows(self) -> int:
        return int(self.table.num_rows)

    def place(self, row: int) -> str:
        """What errors call a row."""
        return f"row {row + self.first_row}" if self.first_line is None else f"line {row + self.first_line}"

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
        said = np.empty(len(values))
        for row, value in enumerate(values):
            try:
                said[row] = float(value)
            except (TypeError, ValueError):
                where = f"{self.name}, {self.place(row)}"
                raise UserError(
                    f"{where}: the {role} {column!r} is {str(value)!r}, which is no number{advice}"
                ) from None
        return said

    @contextmanager
    def blamed(self, **roles: str | None) -> Iterator[None]:
        """What the library refuses in here is wrong in this file; `roles` are the columns of `y` and the like."""
        try:
            yield
        except (ValueError, TypeError) as error:
            raise UserError(f"{self.name}: {in_words_of_files(error, roles, self.place)}") from error


def no_such_column(name: str, column: str, role: str, columns: Sequence[str]) -> UserError:
    """The error for a column that is not in a table."""
    return UserError(f"{name}: there is no column {column!r} for the {role}; {one_of(column, columns)}")


def _to_numpy(column: Any) -> NDArray[Any]:
    """A column of Arrow's as NumPy; text as objects, None where it is missing, numbers NaN there."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values
