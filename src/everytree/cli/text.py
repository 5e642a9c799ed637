"""CSV and TSV to tables, each column as the model knows it, and the line that breaks the rules."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from everytree.cli.formats import DELIMITERS, Reading
from everytree.cli.problems import UserError
from everytree.tables.reading import SAYS_MISSING

PLURALS = {"text": "text", "number": "numbers", "boolean": "booleans", "date": "dates"}
BLOCK, LARGEST_BLOCK = 2**20, 2**31 - 1
"""Bytes that pyarrow reads at a time, and the most it can."""
LINE_IS_LONGER = ("straddl", "Empty CSV file")
"""What pyarrow says of a row, and of a header, that is longer than a block."""
ZONES = ", all of them with a time zone or none"
MALFORMED = re.compile(r"In CSV column #(\d+): Row #(\d+): CSV conversion error")
"""What pyarrow says of a value that is not of its column's type."""


def read_text(name: str, content: bytes, kind: str, how: Reading) -> Any:
    """The table of a text file."""
    import pyarrow as pa

    delimiter = delimiter_of(kind, how)
    _check_text(name, content)
    try:
        table = _parse(content, delimiter, how, _arrow_types(how))
        table = _with_loose_kinds(table, content, delimiter, how)
    except (pa.ArrowException, ValueError, KeyError) as error:
        raise UserError(f"{name}{_where_malformed(content, delimiter, how, _first_line(error))}") from None
    return table if how.has_header else table.rename_columns([f"column{k + 1}" for k in range(table.num_columns)])


def read_as_written(content: bytes, kind: str, how: Reading, names: Sequence[str]) -> dict[str, Any]:
    """Columns of a text file as text, character by character."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    inside = [_name_in_file(name, how) for name in names]
    as_text = arrow_csv.ConvertOptions(
        include_columns=inside, column_types=dict.fromkeys(inside, pa.string()), strings_can_be_null=False
    )
    table = _read(content, delimiter_of(kind, how), how, as_text)
    return {name: table.column(column) for name, column in zip(names, inside, strict=True)}


def delimiter_of(kind: str, how: Reading) -> str:
    """What is between values; a backslash and a t is how shells have a tab."""
    delimiter = "\t" if how.delimiter == r"\t" else how.delimiter or DELIMITERS[kind]
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise UserError(f"--delimiter must be one ASCII character, no quote and no line break, but is {delimiter!r}")
    return delimiter


# ---- values to types ------------------------------------------------------------------------------------------------


def _arrow_types(how: Reading) -> dict[str, Any]:
    """Types that are told to the reader; those of dates and booleans are several, and it finds them itself."""
    import pyarrow as pa

    arrow_types = {"text": pa.string(), "number": pa.float64()}
    return {name: arrow_types[kind] for name, kind in (how.types or {}).items() if kind in arrow_types}


def _with_loose_kinds(table: Any, content: bytes, delimiter: str, how: Reading) -> Any:
    """The table, with columns of dates and booleans read once more where the reader took them for something else."""
    import pyarrow as pa

    loose = {
        "boolean": ((pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating), (pa.bool_(),)),
        "date": (
            (pa.types.is_date, pa.types.is_timestamp),
            (pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.timestamp("ns", "UTC")),
        ),
    }
    for name, kind in (how.types or {}).items():
        inside = _name_in_file(name, how)
        place = table.schema.get_field_index(inside)
        if kind not in loose or place < 0:
            continue
        accepted, possible = loose[kind]
        if not any(test(table.schema.types[place]) for test in (pa.types.is_null, *accepted)):
            table = table.set_column(place, inside, _first_fitting(content, delimiter, how, name, possible))
    return table


def _first_fitting(content: bytes, delimiter: str, how: Reading, name: str, possible: Sequence[Any]) -> Any:
    """A column by the first type that all its values have; else the complaint of the one that came furthest."""
    import pyarrow as pa

    furthest: tuple[int, pa.ArrowInvalid] | None = None
    for arrow_type in possible:
        try:
            return _parse(content, delimiter, how, {name: arrow_type}).column(_name_in_file(name, how))
        except pa.ArrowInvalid as error:
            found = MALFORMED.match(str(error))
            row = int(found[2]) if found else 0
            if furthest is None or row > furthest[0]:
                furthest = row, error
    assert furthest is not None
    raise furthest[1]


def _parse(content: bytes, delimiter: str, how: Reading, types: Mapping[str, Any]) -> Any:
    """Rows of text; where a type is not given, it is the one that all values of a column allow."""
    from pyarrow import csv as arrow_csv

    told = {_name_in_file(name, how): arrow_type for name, arrow_type in types.items()}
    missing = sorted(SAYS_MISSING)
    as_types = arrow_csv.ConvertOptions(column_types=told, null_values=missing, strings_can_be_null=True)
    return _read(content, delimiter, how, as_types)


def _read(content: bytes, delimiter: str, how: Reading, convert: Any) -> Any:
    """All rows; in blocks, unless one of them is longer than a block."""
    import pyarrow as pa

    try:
        return _read_blocks(content, delimiter, how, convert, BLOCK)
    except pa.ArrowInvalid as error:
        if not any(words in str(error) for words in LINE_IS_LONGER):
            raise
        return _read_blocks(content, delimiter, how, convert, min(len(content), LARGEST_BLOCK))


def _read_blocks(content: bytes, delimiter: str, how: Reading, convert: Any, size: int) -> Any:
    """One thread alone tells rows in its errors."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    return arrow_csv.read_csv(
        pa.BufferReader(content),
        read_options=arrow_csv.ReadOptions(
            use_threads=False, block_size=size, autogenerate_column_names=not how.has_header
        ),
        parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=b'"' in content),
        convert_options=convert,
    )


def _name_in_file(name: str, how: Reading) -> str:
    """pyarrow counts columns without names from 0."""
    number = name.removeprefix("column")
    return name if how.has_header or not number.isdecimal() else f"f{int(number) - 1}"


# ---- what is wrong --------------------------------------------------------------------------------------------------


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
    found = MALFORMED.match(complaint)
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
                known = PLURALS[(how.types or {}).get(name, "text")]
                known += ZONES if "zone offset" in complaint else ""
                return f", line {line}: column {name!r} is {values[column]!r}, but the model knows it as {known}"
    except csv.Error as error:
        return f", after line {line}: {error}: a quote that is never closed?"
    return f": {complaint}"


def _lines(content: bytes, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Values, and the line where they start: those in quotes may go on for several, and empty lines are none."""
    csv.field_size_limit(LARGEST_BLOCK)
    reader = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), delimiter=delimiter, strict=True)
    start = 1
    for values in reader:
        if values:
            yield start, values
        start = reader.line_num + 1


def _first_line(error: BaseException) -> str:
    return str(error).split("\n")[0]
