"""Tables to files and streams, as a whole or not at all."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from everytree.cli.problems import UserError
from everytree.cli.tables import STREAM, format_of
from everytree.files.atomic import replace_file


def write_file(columns: Mapping[str, Any], path: str, given: str | None) -> None:
    """Columns to a file, as a whole or not at all, or to standard output."""
    import pyarrow as pa

    content = _as_bytes(pa.table(dict(columns)), format_of(path, given))
    if path == STREAM:
        sys.stdout.buffer.write(content)
        sys.stdout.flush()
        return
    try:
        replace_file(path, [content])
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror or error}; nothing is left of it") from None


def _as_bytes(table: Any, kind: str) -> memoryview:
    from pyarrow import feather, parquet

    sink = io.BytesIO()
    if kind == "parquet":
        parquet.write_table(table, sink)
    elif kind == "feather":
        feather.write_feather(table, sink)
    else:
        delimiter = {"csv": ",", "tsv": "\t"}[kind]
        header = io.StringIO()  # pyarrow would put every name in quotes
        csv.writer(header, delimiter=delimiter, lineterminator="\n").writerow(table.column_names)
        sink.write(header.getvalue().encode())
        sink.write(_rows_as_text(table, delimiter))
    return sink.getbuffer()


def _rows_as_text(table: Any, delimiter: str) -> bytes:
    """Lines of text; where some text needs quotes, all text has them."""
    import pyarrow as pa
    from pyarrow import csv as arrow_csv

    for quotes in ("none", "needed"):
        sink = io.BytesIO()
        how = arrow_csv.WriteOptions(include_header=False, delimiter=delimiter, quoting_style=quotes)
        try:
            arrow_csv.write_csv(table, sink, how)
            break
        except pa.ArrowInvalid:
            if quotes == "needed":
                raise
    return sink.getvalue()


def check_output(path: str) -> None:
    """Whether a file can be written here, said before the work rather than after it."""
    folder = Path(path).parent
    if path == STREAM:
        return
    if not folder.is_dir():
        raise UserError(f"{path}: cannot be written: there is no folder {str(folder)!r}")
    if Path(path).is_dir():
        raise UserError(f"{path}: cannot be written: it is a folder")
