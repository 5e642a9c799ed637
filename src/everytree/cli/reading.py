"""Tables from files and streams: as a whole, or part by part where they are long."""

from __future__ import annotations

import hashlib
import io
import os
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from everytree.batches.file_sources import file_source
from everytree.batches.files import (
    COMPRESSED,
    DELIMITERS,
    FORMATS,
    Files,
    bytes_in_memory,
    is_compressed,
    open_bytes,
)
from everytree.batches.source import Source, batch_rows
from everytree.batches.text import TextError, TextReader
from everytree.batches.text_pieces import Piece, pieces, whole
from everytree.cli.problems import UserError, nearest
from everytree.cli.tables import TableFile

STREAM = "-"
"""The path that stands for standard input and output."""
NAMES = tuple(dict.fromkeys(FORMATS.values()))
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
    types : mapping of str to {"text", "number", "boolean", "date"}
        What columns of a text file are known to be, whatever their values look like.
    """

    format: str | None = None
    has_header: bool = True
    delimiter: str | None = None
    types: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class OpenTable:
    """A table that has not been read yet.

    Attributes
    ----------
    path, name : str
        What the user gave, and what errors call it.
    format : str
    how : Reading
    reader : TextReader or None
        Of a text file.
    content : bytes or None
        Of what can be read only once.
    """

    path: str
    name: str
    format: str
    how: Reading
    reader: TextReader | None
    content: bytes | None = None

    def read(self) -> TableFile:
        """All of it, at least one row."""
        with self._readable():
            with self._open() as file:
                content = file.read()
            if self.reader is None:
                table, first_line = _read_binary(content, self.format), None
            else:
                piece = whole(io.BytesIO(content), self.how.has_header)
                table = self.reader.read(piece)
                first_line = first_line_of(piece, table.num_rows)
        self._check(list(table.column_names), table.num_rows)
        return TableFile(self.name, table, first_line, digest=hashlib.sha256(content).hexdigest())

    def parts(self, columns: Sequence[str] | None = None, keep: Sequence[str] = ()) -> Iterator[TableFile]:
        """All rows in their order, part by part, of all columns or of those that are there among these."""
        names = self.columns
        chosen = None if columns is None else [name for name in names if name in columns]
        n_rows = 0
        with self._readable():
            for part in self._text_parts(chosen, keep) if self.reader is not None else self._batches(chosen, keep):
                if part.n_rows:
                    yield TableFile(self.name, part.table, part.first_line, n_rows, kept=part.kept)
                n_rows += part.n_rows
        self._check(names, n_rows)

    @cached_property
    def columns(self) -> list[str]:
        """Their names."""
        with self._readable(), self._open() as file:
            if self.reader is not None:
                names = self.reader.columns(next(pieces(file, self.how.has_header)))
            elif self.format == "parquet":
                names = list(_parquet(file).schema_arrow.names)
            else:
                names = list(_feather_schema(file).names)
        self._check(names, 1)
        return names

    def bytes_in_memory(self) -> int:
        """What its rows take in memory, roughly; nothing more for standard input and pipes, which are there already."""
        if self.content is not None:
            return 0
        with self._readable():
            return bytes_in_memory(self.path, self.format)

    def digest(self) -> str:
        """SHA-256 of the file, decompressed."""
        sha = hashlib.sha256()
        with self._readable(), self._open() as file:
            while block := file.read(2**20):
                sha.update(block)
        return sha.hexdigest()

    def source(self, types: Mapping[str, Any], columns: Sequence[str]) -> Source:
        """The rows of these columns as batches that can be read again; text by these types."""
        reader = None if self.reader is None else replace(self.reader, types=types)
        files = Files([self.path], os.path.dirname(self.path) or ".", self.format)
        with self._readable():
            return file_source(files, reader, threads=False).only(list(columns))

    # ---- how --------------------------------------------------------------------------------------------------------

    def _text_parts(self, columns: Sequence[str] | None, keep: Sequence[str]) -> Iterator[TableFile]:
        assert self.reader is not None
        is_plain = True
        with self._open() as file:
            for piece in pieces(file, self.how.has_header):
                table = self.reader.read(piece, columns)
                first_line = first_line_of(piece, table.num_rows)
                is_plain &= first_line is not None
                kept = self.reader.read_as_written(piece, keep) if keep else {}
                yield TableFile(self.name, table, first_line if is_plain else None, kept=kept)

    def _batches(self, columns: Sequence[str] | None, keep: Sequence[str]) -> Iterator[TableFile]:
        import pyarrow as pa

        with self._open() as file:
            wanted = None if columns is None else list(dict.fromkeys([*columns, *keep]))
            if self.format == "parquet":
                size = batch_rows(len(self.columns))
                options = {"batch_size": size, "columns": wanted, "use_threads": False}
                batches = _parquet(file).iter_batches(**options)
            else:
                batches = _feather_batches(file)
            for batch in batches:
                table = pa.Table.from_batches([batch])
                kept = {name: table.column(name) for name in keep}
                yield TableFile(self.name, table if columns is None else table.select(columns), None, kept=kept)

    def _open(self) -> BinaryIO:
        return open_bytes(self.path) if self.content is None else io.BytesIO(self.content)

    def _check(self, names: Sequence[str], n_rows: int) -> None:
        twins = [column for column, times in Counter(names).items() if times > 1]
        if twins:
            hint = NO_HEADER_HINT if self.reader is not None else ""
            raise UserError(f"{self.name}: several columns are named {twins[0]!r}{hint}")
        if not n_rows:
            raise UserError(f"{self.name}: there are no rows")

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """What is wrong with a file, in a sentence."""
        import pyarrow as pa

        try:
            yield
        except TextError as error:
            raise UserError(str(error)) from None
        except FileNotFoundError:
            raise UserError(f"{self.path}: there is no such file{_nearest_file(self.path)}") from None
        except (pa.ArrowException, EOFError, OSError, ValueError, zlib.error) as error:
            if self.reader is None and getattr(error, "errno", None) is None:
                said = str(error).split("\n")[0]
                kind = self.format.capitalize()
                raise UserError(f"{self.name}: is no {kind} file that pyarrow can read: {said}") from None
            raise UserError(f"{self.path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def open_table(path: str, how: Reading) -> OpenTable:
    """A table by its path, which tells its format unless the user does."""
    if not path:
        raise UserError(f"TABLE must be the name of a file, or {STREAM} for standard input")
    if Path(path).is_dir():
        raise UserError(
            f"{path}: is a folder, but a table is one file; fit_batches in Python reads all files of a folder"
        )
    name = "standard input" if path == STREAM else path
    format = format_of(path, how.format)
    reader = None
    if format in DELIMITERS:
        reader = TextReader(name, _delimiter(format, how.delimiter), how.has_header, how.types)
    return OpenTable(path, name, format, how, reader, _content_once(path))


def format_of(path: str, given: str | None) -> str:
    """The format that the suffix of a name tells, or the one given where it tells none."""
    plain = path[: -len(COMPRESSED)] if is_compressed(path) else path
    told = FORMATS.get(Path(plain).suffix.lower()) or given or ("csv" if path == STREAM else None)
    if told is None:
        raise UserError(
            f"{path or repr(path)}: the name does not tell the format; name it by --format {'|'.join(NAMES)}"
        )
    if told not in NAMES:
        raise UserError(f"--format is {told!r}, but must be one of {', '.join(NAMES)}")
    return told


def first_line_of(piece: Piece, n_rows: int) -> int | None:
    """Line of the first row, where each row of a piece is one line."""
    n_lines = piece.content.count(b"\n") + (not piece.content.endswith(b"\n"))
    return piece.first_line if n_lines == n_rows + piece.header_lines else None


def _delimiter(format: str, given: str | None) -> str:
    """What is between values; a backslash and a t is how shells have a tab."""
    delimiter = "\t" if given == r"\t" else given or DELIMITERS[format]
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise UserError(f"--delimiter must be one ASCII character, no quote and no line break, but is {delimiter!r}")
    return delimiter


def _content_once(path: str) -> bytes | None:
    """What can be read only once, standard input and pipes; None for files."""
    if path == STREAM:
        if sys.stdin is None:
            raise UserError("standard input is closed")
        return sys.stdin.buffer.read()
    if not os.path.exists(path) or os.path.isfile(path):
        return None
    with open_bytes(path) as file:
        return file.read()


def _nearest_file(path: str) -> str:
    folder = Path(path).parent
    names = [other.name for other in folder.iterdir() if other.is_file()] if folder.is_dir() else []
    like = nearest(Path(path).name, names)
    return f"; {like}" if like else ""


# ---- Parquet and Feather --------------------------------------------------------------------------------------------

# Without threads: with them, pyarrow 26 may abort where the process ends soon after a read.


def _read_binary(content: bytes, format: str) -> Any:
    import pyarrow as pa
    from pyarrow import feather, parquet

    if format == "parquet":
        return parquet.read_table(pa.BufferReader(content), use_threads=False, pre_buffer=False)
    return feather.read_table(pa.BufferReader(content), use_threads=False)


def _parquet(file: BinaryIO) -> Any:
    from pyarrow import parquet

    return parquet.ParquetFile(file, pre_buffer=False)


def _feather_schema(file: BinaryIO) -> Any:
    import pyarrow as pa
    from pyarrow import feather

    try:
        return pa.ipc.open_file(file).schema
    except pa.ArrowInvalid:
        file.seek(0)
        return feather.read_table(file, use_threads=False).schema


def _feather_batches(file: BinaryIO) -> Iterator[Any]:
    """Batch by batch; those of the first version of the format have one."""
    import pyarrow as pa
    from pyarrow import feather

    try:
        opened = pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        yield from feather.read_table(file, use_threads=False).combine_chunks().to_batches()
        return
    for number in range(opened.num_record_batches):
        yield opened.get_batch(number)
