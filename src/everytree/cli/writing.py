"""Tables to files and streams, as a whole or not at all."""

from __future__ import annotations

import io
import itertools
import os
import re
import sys
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from everytree.batches.files import COMPRESSED, DELIMITERS, files_named, is_compressed
from everytree.cli.problems import UserError
from everytree.cli.tables import STREAM, format_of
from everytree.files.atomic import replace_file


@dataclass
class Written:
    """Number of rows written, and the names of columns."""

    n_rows: int = 0
    columns: Sequence[str] = ()


def write_file(parts: Iterable[Mapping[str, Any]], path: str, given: str | None) -> Written:
    """Columns to a file, as a whole or not at all, or to standard output; part by part, as they come."""
    written = Written()
    contents = _as_bytes(path, _tables(parts, written), output_format(path, given))
    if path == STREAM:
        for content in contents:
            to_standard_output(content)
    else:
        replace_whole(path, _compressed(contents) if is_compressed(path) else contents)
    return written


def replace_whole(path: str, contents: Iterable[bytes]) -> None:
    """Contents to a file, as a whole or not at all."""
    try:
        replace_file(path, contents)
    except OSError as error:
        raise UserError(f"could not write {path} ({error.strerror or error}); no partial file is left") from None


def output_format(path: str, given: str | None) -> str:
    """The format to write; text may be compressed, and the others compress themselves."""
    told = format_of(path, given)
    if is_compressed(path) and told not in DELIMITERS:
        raise UserError(
            f"{path}: a {told.capitalize()} file has its own compression; leave {COMPRESSED} out of its name"
        )
    return told


def _tables(parts: Iterable[Mapping[str, Any]], written: Written) -> Iterator[Any]:
    import pyarrow as pa

    for columns in parts:
        table = pa.table(list(columns.values()), names=list(columns))
        written.n_rows, written.columns = written.n_rows + table.num_rows, table.column_names
        yield table


def _compressed(contents: Iterable[bytes]) -> Iterator[bytes]:
    """Compress by gzip, without a time stamp, so that the same rows give the same file."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    for content in contents:
        yield packer.compress(content)
    yield packer.flush()


def to_standard_output(content: bytes | memoryview) -> None:
    """All of it, now, so that a full disk behind it is noticed here."""
    if sys.stdout is None:
        raise UserError("standard output is closed")
    try:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UserError(f"standard output: cannot be written: {error.strerror or error}") from None


class _Sink(io.BytesIO):
    """A buffer that is emptied by `take`; a writer that ends does not close it."""

    def close(self) -> None: ...

    def take(self) -> bytes:
        content = self.getvalue()
        self.seek(0)
        self.truncate()
        return content


def _as_bytes(path: str, tables: Iterator[Any], kind: str) -> Iterator[bytes]:
    if kind in DELIMITERS:
        first = next(tables)
        header = _as_text([first.column_names], DELIMITERS[kind])  # pyarrow would put every name in quotes
        yield header + _rows_as_text(path, first, DELIMITERS[kind])
        for table in tables:
            yield _rows_as_text(path, table, DELIMITERS[kind])
        return
    tables = map(_with_plain_columns, tables) if kind == "feather" else tables
    first, sink = next(tables), _Sink()
    with _binary_writer(sink, first, kind) as writer:
        for table in itertools.chain([first], tables):
            writer.write_table(table)
            yield sink.take()
    yield sink.take()


def _with_plain_columns(table: Any) -> Any:
    """Decode dictionaries: a Feather file holds one per column, which must be known before its first row."""
    import pyarrow as pa

    for index, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(index, field.name, table.column(index).cast(field.type.value_type))
    return table


@contextmanager
def _binary_writer(sink: _Sink, first: Any, kind: str) -> Iterator[Any]:
    import pyarrow as pa
    from pyarrow import parquet

    if kind == "parquet":
        with parquet.ParquetWriter(sink, first.schema) as writer:
            yield writer
    else:
        with pa.ipc.new_file(sink, first.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            yield writer


def _rows_as_text(path: str, table: Any, delimiter: str) -> bytes:
    """Lines of text; values that need quotes have them, which pyarrow would put around all or none."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    sink = io.BytesIO()
    try:
        plain = arrow_csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style="none")
        arrow_csv.write_csv(table, sink, plain)
        return sink.getvalue()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        columns = [_values_as_text(path, name, table.column(name)) for name in table.column_names]
        return _as_text(zip(*columns, strict=True), delimiter)


def _values_as_text(path: str, name: str, column: Any) -> list[str | None]:
    import pyarrow as pa

    try:
        texts: list[str | None] = column.cast(pa.string()).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        place = "standard output" if path == STREAM else path
        raise UserError(
            f"{place}: the column {name!r} of type {column.type} cannot be written as text, but Parquet holds it"
        ) from None
    return texts


def _as_text(rows: Iterable[Sequence[str | None]], delimiter: str) -> bytes:
    """Lines with quotes where they are needed: around either line break too, of which Python's csv knows its own."""
    special = re.compile(rf'["\r\n{re.escape(delimiter)}]')

    def cell(value: str | None) -> str:
        text = value or ""
        return f'"{text.replace(chr(34), chr(34) * 2)}"' if special.search(text) else text

    # A line of one empty value would be an empty line, which is none.
    return "".join((delimiter.join(map(cell, row)) or '""') + "\n" for row in rows).encode()


def check_output(path: str, *inputs: str) -> None:
    """Check, before the work, that a file can be written here and is not one of the command's inputs."""
    folder = Path(path).parent
    if path == STREAM:
        return
    if not path:
        raise UserError("--out must be the name of a file")
    if not folder.is_dir():
        raise UserError(f"{path}: cannot be written: there is no folder {str(folder)!r}")
    if Path(path).is_dir():
        raise UserError(f"{path}: cannot be written: it is a folder")
    for other in (file for given in inputs for file in files_named(given)) if Path(path).is_file() else ():
        if Path(other).is_file() and os.path.samefile(path, other):
            raise UserError(f"{path}: cannot be written: it is the same file as {other}, which would be lost")
