"""Tables from files and streams: CSV, TSV, Parquet and Feather, read by pyarrow."""

from __future__ import annotations

import gzip
import hashlib
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.cli.formats import DELIMITERS, STREAM, Reading, format_of, is_compressed
from everytree.cli.problems import UserError, nearest, one_of
from everytree.cli.text import read_as_written, read_text
from everytree.cli.wording import in_words_of_files

DELIMITER_HINT = "; if something else than a comma or a tab is between the values, say --delimiter"
NO_HEADER_HINT = "; if the first line is a row rather than names, say --no-header"


@dataclass(frozen=True)
class TableFile:
    """A table, and what errors and models say of where it came from.

    Attributes
    ----------
    name : str
        As the user gave it.
    table : pyarrow.Table
    digest : str
        SHA-256 of the file: the same rows are known again.
    first_line : int or None
        Line of the first row, where each row is one line.
    kept : mapping of str to pyarrow.ChunkedArray
        Columns to be repeated, as they stand in the file: those of text files are text.
    """

    name: str
    table: Any
    digest: str
    first_line: int | None
    kept: Mapping[str, Any] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        return list(self.table.column_names)

    @property
    def n_rows(self) -> int:
        return int(self.table.num_rows)

    def place(self, row: int) -> str:
        """What errors call a row."""
        return f"row {row}" if self.first_line is None else f"line {row + self.first_line}"

    def values(self, column: str, role: str) -> NDArray[Any]:
        """One column, all of whose values must be there."""
        if column not in self.columns:
            raise UserError(
                f"{self.name}: there is no column {column!r} for the {role}; {one_of(column, self.columns)}"
            )
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


def _to_numpy(column: Any) -> NDArray[Any]:
    """A column of Arrow's as NumPy; text as objects, None where it is missing, numbers NaN there."""
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


# ---- reading --------------------------------------------------------------------------------------------------------


def read_file(path: str, how: Reading) -> TableFile:
    """A table with at least one row, its columns named differently."""
    if not path:
        raise UserError(f"TABLE must be the name of a file, or {STREAM} for standard input")
    name = "standard input" if path == STREAM else path
    if Path(path).is_dir():
        raise UserError(
            f"{path}: is a folder, but a table is one file; fit_batches in Python reads all files of a folder"
        )
    kind = format_of(path, how.format)
    content = _content(path)
    text = kind in DELIMITERS
    table = read_text(name, content, kind, how) if text else _read_binary(name, content, kind)
    twins = [column for column, times in Counter(table.column_names).items() if times > 1]
    if twins:
        raise UserError(f"{name}: several columns are named {twins[0]!r}{NO_HEADER_HINT if text else ''}")
    if not table.num_rows:
        raise UserError(f"{name}: there are no rows")
    n_lines = content.count(b"\n") + (not content.endswith(b"\n"))
    is_plain = text and n_lines == table.num_rows + how.has_header
    digest = hashlib.sha256(content).hexdigest()
    keep = [column for column in how.keep if column in table.column_names]
    kept = read_as_written(content, kind, how, keep) if text else {column: table.column(column) for column in keep}
    return TableFile(name, table, digest, 1 + how.has_header if is_plain else None, kept)


def _content(path: str) -> bytes:
    try:
        content = _standard_input() if path == STREAM else Path(path).read_bytes()
        return gzip.decompress(content) if is_compressed(path) else content
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file{_nearest_file(path)}") from None
    except (OSError, EOFError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _standard_input() -> bytes:
    if sys.stdin is None:
        raise UserError("standard input is closed")
    return sys.stdin.buffer.read()


def _nearest_file(path: str) -> str:
    folder = Path(path).parent
    names = [other.name for other in folder.iterdir() if other.is_file()] if folder.is_dir() else []
    like = nearest(Path(path).name, names)
    return f"; {like}" if like else ""


def _read_binary(name: str, content: bytes, kind: str) -> Any:
    import pyarrow as pa
    from pyarrow import feather, parquet

    # Without threads: with them, pyarrow 26 may abort where the process ends soon after a read.
    try:
        if kind == "parquet":
            return parquet.read_table(pa.BufferReader(content), use_threads=False, pre_buffer=False)
        return feather.read_table(pa.BufferReader(content), use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        said = str(error).split("\n")[0]
        raise UserError(f"{name}: is no {kind.capitalize()} file that pyarrow can read: {said}") from None
