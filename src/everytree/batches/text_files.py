"""CSV and TSV files as one table, read in pieces."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from everytree.base.progress import Progress
from everytree.batches.arrow_files import common_schema, of_same_columns
from everytree.batches.files import Files, FilesError, Part
from everytree.batches.prefetch import read_ahead
from everytree.batches.source import Names
from everytree.batches.text import TextReader
from everytree.batches.text_pieces import Piece, pieces

FIRST_BYTES = 2**20
"""Of a text file, whose rows tell the types of its columns."""

HEADER_BYTES = 2**16
"""Of a text file, whose first row names its columns."""

NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
"""How folders name a missing value."""


@dataclass(frozen=True)
class TextFiles:
    """Text files, opened."""

    files: Files
    reader: TextReader  # how each of them is read

    @cached_property
    def columns(self) -> list[str]:
        """Names of the columns, the same in all files; then those that folders name."""
        first: tuple[str, list[str]] | None = None
        for path in self.files.paths:
            with self.files.open(path) as file:
                piece = next(pieces(file, self.reader.has_header, HEADER_BYTES))
            names = self._of(path).columns(piece)
            first = first or (path, names)
            if set(names) != set(first[1]):
                message = f"has the columns {sorted(names)}, but {first[0]!r} has {sorted(first[1])}"
                raise FilesError(f"{path!r} {message}")
        assert first is not None
        return [*first[1], *self._named]

    def parts(self, names: Names = None, as_written: Sequence[str] = ()) -> Iterator[Part]:
        """All rows in their order, of all columns or of these; types are those of the reader, or of each part."""
        in_files = None if names is None else [name for name in names if name not in self._named]
        for path in self.files.paths:
            reader = self._of(path)
            with self.files.open(path) as file:
                for piece in read_ahead(partial(pieces, file, reader.has_header)):  # cut while another is parsed
                    table = self._with_folders(path, reader.read(piece, in_files), names)
                    kept = self._as_written(path, reader, piece, as_written, table.num_rows)
                    yield Part(path, table, _first_line(piece, table.num_rows), kept)

    def whole(self, progress: Progress | None = None) -> list[Part]:
        """All of them at once, of types that hold all rows; `progress` counts the rows."""
        found, seen = [], SeenTypes()
        for part in self.parts():
            found.append(part)
            seen.add(part.table)
            if progress is not None:
                progress.step(part.table.num_rows)
        cast = [with_types(part.table, seen.types) for part in found]
        if all(table is not None for table in cast):
            return [replace(part, table=table) for part, table in zip(found, cast, strict=True)]
        del found, cast  # what looked like numbers is text after all: as it was written, which is read once more
        again = list(self.with_types(seen.types).parts())
        for part in again:
            self._refuse_other_types(part, again[0])
        return again

    def with_types(self, types: dict[str, Any]) -> TextFiles:
        """Read columns with these types."""
        return replace(self, reader=replace(self.reader, types=types))

    def with_first_types(self) -> TextFiles:
        """Infer types from the first rows of every file."""
        import pyarrow as pa

        schemas = of_same_columns((path, self._first_schema(path)) for path in self.files.paths)
        return self.with_types(known_types(common_schema(pa.schema([]), schemas)))

    # ---- how --------------------------------------------------------------------------------------------------------

    def _of(self, path: str) -> TextReader:
        return replace(self.reader, name=path)

    def _first_schema(self, path: str) -> Any:
        with self.files.open(path) as file:
            return self._of(path).read(next(pieces(file, self.reader.has_header, FIRST_BYTES))).schema

    @cached_property
    def _named(self) -> dict[str, dict[str, Any]]:
        return _columns_of_folders(self.files)

    def _with_folders(self, path: str, table: Any, names: Names) -> Any:
        """The table with the columns that folders name, in the order that is wanted."""
        import pyarrow as pa

        for name, values in self._named.items():
            if names is None or name in names:
                table = table.append_column(name, pa.repeat(values[path], table.num_rows))
        return table if names is None or not self._named else table.select(names)

    def _as_written(
        self, path: str, reader: TextReader, piece: Piece, names: Sequence[str], n_rows: int
    ) -> dict[str, Any]:
        import pyarrow as pa

        if not names:
            return {}
        in_file = [name for name in names if name not in self._named]
        kept = reader.read_as_written(piece, in_file) if in_file else {}
        for name in set(names) & self._named.keys():
            kept[name] = pa.chunked_array([pa.repeat(self._named[name][path].cast(pa.string()), n_rows)])
        return kept

    def _refuse_other_types(self, part: Part, first: Part) -> None:
        """Columns that a model knows as dates are read so, with a time zone or without."""
        for name, kind in known_types(part.table.schema).items():
            if kind != known_types(first.table.schema).get(name, kind):
                message = f"column {name!r} holds {kind}, but {first.table.schema.field(name).type} before"
                raise FilesError(f"{part.path!r}: {message}")


def _first_line(piece: Piece, n_rows: int) -> int | None:
    """Line of the first row, where each row of a piece is one line."""
    n_lines = piece.content.count(b"\n") + (not piece.content.endswith(b"\n"))
    return piece.first_line if n_lines == n_rows + piece.header_lines else None


def _columns_of_folders(files: Files) -> dict[str, dict[str, Any]]:
    """Columns that are named by folders, "column=value", and the value of each file; whole numbers where all are."""
    import pyarrow as pa

    found: dict[str, dict[str, Any]] = {}  # a file in no such folder has no value
    for path in files.paths if files.content is None else ():
        for folder in Path(path).relative_to(files.base).parts[:-1]:
            name, equals, value = folder.partition("=")
            if equals:
                none = dict.fromkeys(files.paths)
                found.setdefault(name, none)[path] = None if value == NO_VALUE else unquote(value)
    for name, values in found.items():
        known = [value for value in values.values() if value is not None]
        kind = pa.int64() if all(value.lstrip("-").isdecimal() for value in known) else pa.string()
        found[name] = {
            path: pa.scalar(int(value) if value is not None and kind == pa.int64() else value, kind)
            for path, value in values.items()
        }
    return found


UNITS = ("s", "ms", "us", "ns")


def known_types(schema: Any) -> dict[str, Any]:
    """Types by name, without those of columns in which nothing but missing values was seen."""
    import pyarrow as pa

    return {field.name: field.type for field in schema if not pa.types.is_null(field.type)}


class SeenTypes:
    """Types that hold all values so far.

    `types`: without columns in which nothing but missing values was seen.
    """

    def __init__(self) -> None:
        self.types: dict[str, Any] = {}
        self._bits: dict[str, bool] = {}  # columns of whole numbers: whether all were 0 or 1, which booleans may be

    def add(self, table: Any) -> None:
        """The rows of one piece more."""
        import pyarrow as pa

        for name, found in known_types(table.schema).items():
            if pa.types.is_integer(found):
                self._bits[name] = self._bits.get(name, True) and _are_bits(table.column(name))
            known = self.types.get(name, found)
            self.types[name] = known if known == found else _joined(known, found, self._bits.get(name, False))


def with_types(table: Any, types: dict[str, Any]) -> Any | None:
    """The table with columns of these types; None where that needs the text that they were read from."""
    import pyarrow as pa

    for place, field in enumerate(table.schema):
        wanted = types.get(field.name, pa.null())
        if field.type == wanted:
            continue
        is_sure = pa.types.is_floating(wanted) or pa.types.is_timestamp(wanted)
        if not (pa.types.is_null(field.type) or is_sure):
            return None
        table = table.set_column(place, field.name, table.column(place).cast(wanted, safe=False))
    return table


def _joined(one: Any, other: Any, are_bits: bool) -> Any:
    """A type that holds the values of both; text where nothing else does."""
    import pyarrow as pa

    both = one, other
    if all(map(_is_number, both)):
        return pa.float64()
    if any(map(pa.types.is_boolean, both)) and any(map(pa.types.is_integer, both)) and are_bits:
        return pa.bool_()
    if all(map(_is_date, both)):
        zones = {getattr(kind, "tz", None) for kind in both}
        if len(zones) == 1:
            units = [kind.unit if pa.types.is_timestamp(kind) else UNITS[0] for kind in both]
            return pa.timestamp(max(units, key=UNITS.index), zones.pop())
    return pa.string()


def _is_number(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_date(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _are_bits(column: Any) -> bool:
    import pyarrow.compute as pc

    ends = pc.min_max(column).as_py()
    return ends["min"] is None or bool(ends["min"] >= 0 and ends["max"] <= 1)
