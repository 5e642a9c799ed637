"""CSV and TSV to tables, each column as it is known, and the line that breaks the rules."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from everytree.base.words import number_of
from everytree.batches.text_pieces import Piece
from everytree.tables.reading import SAYS_MISSING

PLURALS = {"text": "text", "number": "numbers", "boolean": "booleans", "date": "dates"}
BLOCK, MAX_BLOCK = 2**20, 2**31 - 1
"""Bytes that pyarrow reads at a time, and the most it can."""
ZONES = ", all of them with a time zone or none"


class TextError(ValueError):
    """A text file that cannot be read as it should be.

    Parameters
    ----------
    name : str
        Of the file.
    line : int or None
    problem : str
    """

    def __init__(self, name: str, line: int | None, problem: str) -> None:
        super().__init__(name, line, problem)
        self.name, self.line, self.problem = name, line, problem

    def __str__(self) -> str:
        return f"{self.name}{'' if self.line is None else f', line {self.line}'}: {self.problem}"


@dataclass(frozen=True)
class TextReader:
    """How one text file is read.

    Attributes
    ----------
    name : str
        Of the file, in errors.
    delimiter : str
        One character.
    has_header : bool
        Whether the first line names the columns; else they are `column1`, `column2`, ...
    kinds : mapping of str to {"text", "number", "boolean", "date"}
        What columns are known to be, whatever their values look like.
    types : mapping of str to pyarrow.DataType
        Types of columns, where rows before these have told.
    knows : str
        Who knows the kinds, in errors.
    threads : bool
    decimal : str
        Sign before the decimals of a number.
    """

    name: str
    delimiter: str = ","
    has_header: bool = True
    kinds: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, Any] = field(default_factory=dict)
    knows: str = "the model knows it as"
    threads: bool = False
    decimal: str = "."

    def columns(self, piece: Piece) -> list[str]:
        """The names of the columns."""
        self._check_text(piece)
        try:
            first = next((values for _, values in self._lines(piece.content)), [])
        except csv.Error as error:
            raise TextError(self.name, None, f"{error}: a quote that is never closed?") from None
        return first if self.has_header else [f"column{k + 1}" for k in range(len(first))]

    def read(self, piece: Piece, columns: Sequence[str] | None = None) -> Any:
        """The table of a piece; where a type is not known, it is the one that all values of a column allow."""
        import pyarrow as pa

        self._check_text(piece)
        try:
            table = self._parse(piece.content, self._told(), columns)
            table = self._with_loose_kinds(table, piece.content)
        except (pa.ArrowException, ValueError, KeyError) as error:
            raise self._malformed(piece, str(error).split("\n")[0]) from None
        if self.has_header:
            return table
        return table.rename_columns([f"column{int(name.removeprefix('f')) + 1}" for name in table.column_names])

    def read_as_written(self, piece: Piece, names: Sequence[str]) -> dict[str, Any]:
        """Columns as text, character by character."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        inside = [self._inside(name) for name in names]
        as_text = arrow_csv.ConvertOptions(
            include_columns=inside, column_types=dict.fromkeys(inside, pa.string()), strings_can_be_null=False
        )
        table = self._read(piece.content, as_text)
        return {name: table.column(column) for name, column in zip(names, inside, strict=True)}

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
        for name, kind in self.kinds.items():
            inside = self._inside(name)
            place = table.schema.get_field_index(inside)
            if kind not in accepted or place < 0:
                continue
            if not any(test(table.schema.types[place]) for test in (pa.types.is_null, *accepted[kind])):
                table = table.set_column(place, inside, self._first_fitting(content, name, kind))
        return table

    def _first_fitting(self, content: bytes, name: str, kind: str) -> Any:
        """A column by the first type that all its values have."""
        import pyarrow as pa

        for arrow_type in _possible_types(kind):
            try:
                return self._parse(content, {name: arrow_type}, [name]).column(0)
            except pa.ArrowInvalid:
                continue
        raise ValueError(f"column {name!r} holds something other than {PLURALS[kind]}")

    def _parse(self, content: bytes, types: Mapping[str, Any], columns: Sequence[str] | None) -> Any:
        from pyarrow import csv as arrow_csv

        chosen = None if columns is None else [self._inside(name) for name in columns]
        told = {self._inside(name): arrow_type for name, arrow_type in types.items()}
        as_types = arrow_csv.ConvertOptions(
            include_columns=chosen, column_types=told, null_values=sorted(SAYS_MISSING), strings_can_be_null=True,
            decimal_point=self.decimal,
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
                use_threads=self.threads, block_size=size, autogenerate_column_names=not self.has_header
            ),
            parse_options=arrow_csv.ParseOptions(delimiter=self.delimiter, newlines_in_values=b'"' in content),
            convert_options=convert,
        )

    def _inside(self, name: str) -> str:
        """pyarrow counts columns without names from 0."""
        number = name.removeprefix("column")
        return name if self.has_header or not number.isdecimal() else f"f{int(number) - 1}"

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
        """The line that breaks the rules, found by reading once more, or what pyarrow said."""
        rows: list[tuple[int, list[str]]] = []
        try:
            for line, values in self._lines(piece.content):
                rows.append((piece.line(line), values))
                if len(values) != len(rows[0][1]):
                    message = f"has {number_of(len(values), 'value')}, but line {rows[0][0]} has {len(rows[0][1])}"
                    return TextError(self.name, rows[-1][0], message)
        except csv.Error as error:
            where = f"{self.name}, after line {rows[-1][0] if rows else 1}"
            return TextError(where, None, f"{error}: a quote that is never closed?")
        return self._not_of_its_kind(rows) or TextError(self.name, None, complaint)

    def _not_of_its_kind(self, rows: list[tuple[int, list[str]]]) -> TextError | None:
        """The first value that is not what its column is known to be."""
        names = rows[0][1] if self.has_header else [f"column{k + 1}" for k in range(len(rows[0][1]))]
        rows = rows[1:] if self.has_header else rows
        found: tuple[int, TextError] | None = None
        for name in {**self.types, **self.kinds}:
            if name not in names:
                continue
            values = [row[names.index(name)] for _, row in rows]
            possible = _possible_types(self.kinds[name]) if name in self.kinds else (self.types[name],)
            at = max(_first_unreadable(values, arrow_type, self.decimal) for arrow_type in possible)
            if at < len(values) and (found is None or at < found[0]):
                found = at, TextError(self.name, rows[at][0], self._said(name, values[at], possible))
        return None if found is None else found[1]

    def _said(self, name: str, value: str, possible: Sequence[Any]) -> str:
        known = PLURALS[self.kinds[name]] if name in self.kinds else str(self.types[name])
        is_readable = any(_first_unreadable([value], arrow_type, self.decimal) for arrow_type in possible)
        return f"column {name!r} is {value!r}, but {self.knows} {known}{ZONES if is_readable else ''}"

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


def _possible_types(kind: str) -> tuple[Any, ...]:
    """Types of pyarrow's that values of a kind may have."""
    import pyarrow as pa

    return {
        "text": (pa.string(),),
        "number": (pa.float64(),),
        "boolean": (pa.bool_(),),
        "date": (pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")),
    }[kind]


def _first_unreadable(values: Sequence[str], arrow_type: Any, decimal: str) -> int:
    """Place of the first value that is not of this type, found by halving; the number of values where all are."""
    low, high = 0, len(values)
    if _are_readable(values, arrow_type, decimal):
        return high
    while high - low > 1:  # values[:low] are readable, values[:high] are not
        middle = (low + high) // 2
        low, high = (middle, high) if _are_readable(values[low:middle], arrow_type, decimal) else (low, middle)
    return low


def _are_readable(values: Sequence[str], arrow_type: Any, decimal: str) -> bool:
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerows([value] for value in values)
    content = text.getvalue().encode()
    if not content:
        return True
    try:
        arrow_csv.read_csv(
            pa.BufferReader(content),
            read_options=arrow_csv.ReadOptions(use_threads=False, column_names=["value"], block_size=len(content)),
            parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types={"value": arrow_type},
                null_values=sorted(SAYS_MISSING),
                strings_can_be_null=True,
                decimal_point=decimal,
            ),
        )
    except pa.ArrowInvalid:
        return False
    return True
