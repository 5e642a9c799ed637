"""Tables to files and streams, as a whole or not at all."""

from __future__ import annotations

import csv
import gzip
import io
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from everytree.cli.formats import DELIMITERS, STREAM, is_compressed, output_format
from everytree.cli.problems import UserError
from everytree.files.atomic import replace_file


def write_file(columns: Mapping[str, Any], path: str, given: str | None) -> None:
    """Columns to a file, as a whole or not at all, or to standard output."""
    import pyarrow as pa

    table = pa.table(list(columns.values()), names=list(columns))
    content = _as_bytes(path, table, output_format(path, given))
    if path == STREAM:
        to_standard_output(content)
        return
    try:
        replace_file(path, [gzip.compress(content, mtime=0) if is_compressed(path) else content])
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}; nothing is left of it") from None


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


def _as_bytes(path: str, table: Any, kind: str) -> memoryview:
    from pyarrow import feather, parquet

    sink = io.BytesIO()
    if kind == "parquet":
        parquet.write_table(table, sink)
    elif kind == "feather":
        feather.write_feather(table, sink)
    else:
        sink.write(_as_text([table.column_names], DELIMITERS[kind]))  # pyarrow would put every name in quotes
        sink.write(_rows_as_text(path, table, DELIMITERS[kind]))
    return sink.getbuffer()


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
        said: list[str | None] = column.cast(pa.string()).to_pylist()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        place = "standard output" if path == STREAM else path
        raise UserError(
            f"{place}: the column {name!r} of type {column.type} cannot be written as text, but Parquet holds it"
        ) from None
    return said


def _as_text(rows: Iterable[Sequence[str | None]], delimiter: str) -> bytes:
    sink = io.StringIO()
    csv.writer(sink, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return sink.getvalue().encode()


def check_output(path: str, *inputs: str) -> None:
    """Whether a file can be written here, and is none of the command's inputs; said before the work, not after it."""
    folder = Path(path).parent
    if path == STREAM:
        return
    if not path:
        raise UserError("--out must be the name of a file")
    if not folder.is_dir():
        raise UserError(f"{path}: cannot be written: there is no folder {str(folder)!r}")
    if Path(path).is_dir():
        raise UserError(f"{path}: cannot be written: it is a folder")
    for other in inputs:
        if Path(path).is_file() and Path(other).is_file() and os.path.samefile(path, other):
            raise UserError(f"{path}: cannot be written: it is the same file as {other}, which would be lost")
