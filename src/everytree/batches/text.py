"""CSV and TSV to tables, each column as it is known, and the line that breaks the rules."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from everytree.base.words import number_of
from everytree.batches.text_pieces import Piece
from everytree.tables.reading import SAYS_MISSING

PLURALS = {
    "text": "text", "number": "numbers", "boolean": "booleans",
    "date": "dates, all of them with a time zone or none",
}  # fmt: skip
ROW = re.compile(r"(?:In CSV column #(?P<column>\d+): |CSV parse error: )Row #(?P<row>\d+): ")
"""How pyarrow says where an error is: rows count from 1, empty lines aside."""
BLOCK, MAX_BLOCK = 2**20, 2**31 - 1
"""Bytes that pyarrow reads at a time, and the most it can."""


class TextError(ValueError):
    """A text file that cannot be read as it should be.

    `name`: of the file.
    """

    def __init__(self, name: str, line: int | None, problem: str) -> None:
        super().__init__(name, line, problem)
        self.name, self.line, self.problem = name, line, problem

    def __str__(self) -> str:
        return f"{self.name}{'' if self.line is None else f', line {self.line}'}: {self.problem}"


@dataclass(frozen=True)
class TextReader:
    """How one text file is read."""

    name: str  # of the file, in errors
    delimiter: str = ","  # one character
    has_header: bool = True  # whether the first line names the columns; else they are `column1`, `column2`, ...
    # {"text", "number", "boolean", "date"}: what columns are known to be, whatever their values look like
    kinds: Mapping[str, str] = field(default_factory=dict)
    # pyarrow.DataType: types of columns, where rows before these have told
    types: Mapping[str, Any] = field(default_factory=dict)
    knows: str = "the model knows it as"  # who knows the kinds, in errors
    threads: bool = False
    decimal: str = "."  # sign before the decimals of a number

    def columns(self, piece: Piece) -> list[str]:
        """The names of the columns."""
        self._check_text(piece)
        try:
            return self._names(piece.content)
        except csv.Error as error:
            raise TextError(self.name, None, f"{error}: a quote that is never closed?") from None

    def read(self, piece: Piece, columns: Sequence[str] | None = None) -> Any:
        """The table of a piece; where a type is not known, it is the one that all values of a column allow."""
        import pyarrow as pa

        self._check_text(piece)
        try:
            table = self._parse(piece.content, self._told(), columns)
            table = self._with_loose_kinds(table, piece.content)
        except (pa.ArrowException, ValueError, KeyError) as error:
            if self.threads:  # errors of threads do not say which row it is
                return replace(self, threads=False).read(piece, columns)
            raise self._malformed(piece, str(error)) from None
        return table

    def read_as_written(self, piece: Piece, names: Sequence[str]) -> dict[str, Any]:
        """Columns as text, character by character."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        as_text = arrow_csv.ConvertOptions(
            include_columns=names, column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
        )
        table = self._read(piece.content, as_text)
        return {name: table.column(name) for name in names}

    # ---- values to types --------------------------------------------------------------------------------------------

    def _told(self) -> dict[str, Any]:
        """Types that are told to pyarrow; those of dates and booleans are several, and it finds them itself."""
        import pyarrow as pa

        arrow_types = {"text": pa.string(), "number": pa.float64()}
        of_kinds = {name: arrow_types[kind] for name, kind in self.kinds.items() if kind in arrow_types}
        return {**self.types, **of_kinds}

    def _with_loose_kinds(self, table: Any, content: bytes) -> Any:
        """The table, with columns of dates and booleans read once more where pyarrow took them for something else."""
        import pyarrow as pa

        accepted = {
            "boolean": (pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating),
            "date": (pa.types.is_date, pa.types.is_timestamp),
        }
        possible = {
            "boolean": [pa.bool_()],
            "date": [pa.timestamp(unit, zone) for zone in (None, "UTC") for unit in ("us", "ns")],
        }
        for name, kind in self.kinds.items():
            place = table.schema.get_field_index(name)
            if kind not in accepted or place < 0:
                continue
            if not any(test(table.schema.types[place]) for test in (pa.types.is_null, *accepted[kind])):
                table = table.set_column(place, name, self._first_fitting(content, name, possible[kind]))
        return table

    def _first_fitting(self, content: bytes, name: str, arrow_types: Sequence[Any]) -> Any:
        """A column by the first type that all its values have, or the error of the type that most of them have."""
        import pyarrow as pa

        errors = []
        for arrow_type in arrow_types:
            try:
                return self._parse(content, {name: arrow_type}, [name]).column(0)
            except pa.ArrowInvalid as error:
                errors.append(error)
        raise max(errors, key=lambda error: int(found["row"]) if (found := ROW.search(str(error))) else 0)

    def _parse(self, content: bytes, types: Mapping[str, Any], columns: Sequence[str] | None) -> Any:
        from pyarrow import csv as arrow_csv

        as_types = arrow_csv.ConvertOptions(
            include_columns=columns, column_types=dict(types), null_values=sorted(SAYS_MISSING),
            strings_can_be_null=True, decimal_point=self.decimal,
        )  # fmt: skip
        return self._read(content, as_types)

    def _read(self, content: bytes, convert: Any) -> Any:
        """All rows; in blocks, unless that fails, since a row may be longer than a block."""
        import pyarrow as pa

        try:
            return self._read_blocks(content, convert, BLOCK)
        except pa.ArrowInvalid:
            if len(content) <= BLOCK:
                raise
            return self._read_blocks(content, convert, min(len(content), MAX_BLOCK))

    def _read_blocks(self, content: bytes, convert: Any, size: int) -> Any:
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        return arrow_csv.read_csv(
            pa.BufferReader(content),
            read_options=arrow_csv.ReadOptions(
                use_threads=self.threads,
                block_size=size,
                column_names=None if self.has_header else self._names(content),
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=b'"' in content),
            convert_options=convert,
        )

    # ---- what is wrong ----------------------------------------------------------------------------------------------

    def _check_text(self, piece: Piece) -> None:
        content = piece.content
        if not content.strip():
            raise TextError(self.name, None, "is empty")
        try:
            if not content.isascii():
                content.decode()
        except UnicodeDecodeError as error:
            line = piece.line(content.count(b"\n", 0, error.start) + 1)
            raise TextError(self.name, line, f"is not UTF-8 text: byte {content[error.start]:#x}") from None
        if b"\0" in content:
            line = piece.line(content.count(b"\n", 0, content.index(b"\0")) + 1)
            raise TextError(self.name, line, "holds a zero byte, which is not text")

    def _malformed(self, piece: Piece, complaint: str) -> TextError:
        """The line that breaks the rules, by the number of its row, or what pyarrow said."""
        rows: list[tuple[int, list[str]]] = []
        try:
            for line, values in self._lines(piece.content):
                rows.append((piece.line(line), values))
        except csv.Error as error:
            where = f"{self.name}, after line {rows[-1][0] if rows else 1}"
            return TextError(where, None, f"{error}: a quote that is never closed?")
        found = ROW.search(complaint)
        if found is None:
            return TextError(self.name, None, complaint.split("\n")[0])
        line, values = rows[int(found["row"]) - 1]
        if found["column"] is None:
            message = f"has {number_of(len(values), 'value')}, but line {rows[0][0]} has {len(rows[0][1])}"
            return TextError(self.name, line, message)
        place = int(found["column"])
        name = self._names(piece.content)[place]
        known = PLURALS[self.kinds[name]] if name in self.kinds else str(self.types[name])
        return TextError(self.name, line, f"column {name!r} is {values[place]!r}, but {self.knows} {known}")

    def _names(self, content: bytes) -> list[str]:
        """What the first line says, or numbers from 1."""
        first = next((values for _, values in self._lines(content)), [])
        return first if self.has_header else [f"column{k + 1}" for k in range(len(first))]

    def _lines(self, content: bytes) -> Iterator[tuple[int, list[str]]]:
        """Values, and the line where they start: those in quotes may go on for several, and empty lines are none."""
        csv.field_size_limit(MAX_BLOCK)
        text = io.StringIO(content.decode("utf-8-sig"), newline="")
        reader = csv.reader(text, delimiter=self.delimiter, strict=True)
        start = 1
        for values in reader:
            if values:
                yield start, values
            start = reader.line_num + 1
