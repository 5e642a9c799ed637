"""Tables from files and streams: CSV, TSV, Parquet and Feather, read by pyarrow."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.cli.problems import UserError, one_of
from everytree.tables import SAYS_MISSING

FORMATS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet",
    ".feather": "feather", ".arrow": "feather", ".ipc": "feather",
}  # fmt: skip
NAMES = tuple(dict.fromkeys(FORMATS.values()))
STREAM = "-"
"""The path that stands for standard input and output."""
DELIMITER_HINT = "; if something else than a comma or a tab is between the values, say --delimiter"
NO_HEADER_HINT = "; if the first line is a row rather than names, say --no-header"


@dataclass(frozen=True)
class Reading:
    """How a table is to be read, where its file does not say.

    Attributes
    ----------
    format : str or None
        One of `NAMES`, for streams and for names without a suffix that tells.
    has_header : bool
        Whether the first line of a text file names the columns; else they are `column1`, `column2`, ...
    delimiter : str or None
        Between the values of a line; None for the comma or tab of the format.
    types : mapping of str to {"text", "number"}
        What columns of a text file are known to be, whatever their values look like.
    """

    format: str | None = None
    has_header: bool = True
    delimiter: str | None = None
    types: Mapping[str, str] | None = None


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
    """

    name: str
    table: Any
    digest: str
    first_line: int | None

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

    @contextmanager
    def blamed(self, **roles: str | None) -> Iterator[None]:
        """What the library refuses in here is wrong in this file; `roles` are the columns of `y` and the like."""
        try:
            yield
        except (ValueError, TypeError) as error:
            raise UserError(f"{self.name}: {self._located(str(error), roles)}") from error

    def _located(self, message: str, roles: Mapping[str, str | None]) -> str:
        """The same in words of the file: lines for rows, names for arguments."""

        def cell(match: re.Match[str]) -> str:
            return f"{roles.get(match[1]) or match[1]!r}, {self.place(int(match[2]))},"

        said = re.sub(r"\b(y|sample_weight|exposure|censored)\[(\d+)\]", cell, message)
        said = re.sub(r"\brow (\d+)", lambda match: self.place(int(match[1])), said)
        return said.removeprefix("X: ").replace("\n", " ")


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
    name = "standard input" if path == STREAM else path
    kind = format_of(path, how.format)
    content = _content(path)
    text = kind in ("csv", "tsv")
    table = _read_text(name, content, kind, how) if text else _read_binary(name, content, kind)
    twins = [column for column, times in Counter(table.column_names).items() if times > 1]
    if twins:
        raise UserError(f"{name}: several columns are named {twins[0]!r}{NO_HEADER_HINT if text else ''}")
    if not table.num_rows:
        raise UserError(f"{name}: there are no rows")
    n_lines = content.count(b"\n") + (not content.endswith(b"\n"))
    is_plain = text and n_lines == table.num_rows + how.has_header
    digest = hashlib.sha256(content).hexdigest()
    return TableFile(name, table, digest, 1 + how.has_header if is_plain else None)


def format_of(path: str, given: str | None) -> str:
    """The format that the suffix of a name tells, or the one given where it tells none."""
    told = FORMATS.get(Path(path.removesuffix(".gz")).suffix.lower()) or given or ("csv" if path == STREAM else None)
    if told is None:
        raise UserError(f"{path}: the name does not tell the format; name it by --format {'|'.join(NAMES)}")
    if told not in NAMES:
        raise UserError(f"--format is {told!r}, but must be one of {', '.join(NAMES)}")
    return told


def _content(path: str) -> bytes:
    try:
        content = sys.stdin.buffer.read() if path == STREAM else Path(path).read_bytes()
        return gzip.decompress(content) if path.endswith(".gz") else content
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file{_nearest_file(path)}") from None
    except (OSError, EOFError) as error:
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _nearest_file(path: str) -> str:
    folder = Path(path).parent
    names = [other.name for other in folder.iterdir() if other.is_file()] if folder.is_dir() else []
    said = one_of(Path(path).name, names) if names else ""
    return f"; {said}" if said.startswith("the nearest") else ""


def _read_binary(name: str, content: bytes, kind: str) -> Any:
    import pyarrow as pa
    from pyarrow import feather, parquet

    # Without threads: with them, pyarrow 26 may abort where the process ends soon after a read.
    try:
        if kind == "parquet":
            return parquet.read_table(pa.BufferReader(content), use_threads=False, pre_buffer=False)
        return feather.read_table(pa.BufferReader(content), use_threads=False)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise UserError(f"{name}: is no {kind.capitalize()} file that pyarrow can read: {_first_line(error)}") from None


def _read_text(name: str, content: bytes, kind: str, how: Reading) -> Any:
    import pyarrow as pa

    delimiter = how.delimiter or {"csv": ",", "tsv": "\t"}[kind]
    if len(delimiter) != 1:
        raise UserError(f"--delimiter must be one character, but is {delimiter!r}")
    _check_text(name, content)
    try:
        table = _parse(content, delimiter, how)
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise UserError(f"{name}{_where_malformed(content, delimiter, how, _first_line(error))}") from None
    return table if how.has_header else table.rename_columns([f"column{k + 1}" for k in range(table.num_columns)])


def _parse(content: bytes, delimiter: str, how: Reading) -> Any:
    """Rows of text; types are those that all values of a column allow. One thread alone tells rows in its errors."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    arrow_types = {"text": pa.string(), "number": pa.float64()}
    types = {_name_in_file(name, how): arrow_types[kind] for name, kind in (how.types or {}).items()}
    return arrow_csv.read_csv(
        pa.BufferReader(content),
        read_options=arrow_csv.ReadOptions(use_threads=False, autogenerate_column_names=not how.has_header),
        parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in content),
        convert_options=arrow_csv.ConvertOptions(
            column_types=types, null_values=sorted(SAYS_MISSING), strings_can_be_null=True
        ),
    )


def _name_in_file(name: str, how: Reading) -> str:
    """pyarrow counts columns without names from 0."""
    number = name.removeprefix("column")
    return name if how.has_header or not number.isdecimal() else f"f{int(number) - 1}"


def _check_text(name: str, content: bytes) -> None:
    if not content.strip():
        raise UserError(f"{name}: is empty")
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{name}, line {line}: is no text in UTF-8: byte {content[error.start]:#x}") from None
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise UserError(f"{name}, line {line}: holds a zero byte, which is no text")


def _where_malformed(content: bytes, delimiter: str, how: Reading, complaint: str) -> str:
    """The line that breaks the rules, found by reading once more, or what the reader said."""
    found = re.match(r"In CSV column #(\d+): Row #(\d+): CSV conversion error to \w+: invalid value '(.*)'", complaint)
    column, wrong_row = (int(found[1]), int(found[2])) if found else (0, 0)
    first: list[str] = []
    line = 1
    try:
        for number, (line, values) in enumerate(_lines(content, delimiter), start=1):
            first = first or values
            if len(values) != len(first):
                return f", line {line}: has {len(values)} values, but line 1 has {len(first)}"
            if found and number == wrong_row:
                name = first[column] if how.has_header else f"column{column + 1}"
                return f", line {line}: column {name!r} is {found[3]!r}, but the model knows it as numbers"
    except csv.Error as error:
        return f", after line {line}: {error}: a quote that is never closed?"
    return f": {complaint}"


def _lines(content: bytes, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Values, and the line where they start: those in quotes may go on for several, and empty lines are none."""
    reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), delimiter=delimiter, strict=True)
    start = 1
    for values in reader:
        if values:
            yield start, values
        start = reader.line_num + 1


def _first_line(error: BaseException) -> str:
    return str(error).split("\n")[0]
