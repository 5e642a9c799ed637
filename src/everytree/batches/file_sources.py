"""Files as batches."""

from __future__ import annotations

from dataclasses import replace

from everytree.batches import text_pieces
from everytree.batches.arrow_files import ArrowFiles, open_dataset, pyarrow_dataset
from everytree.batches.files import DELIMITERS, Files
from everytree.batches.source import Source
from everytree.batches.text import TextReader
from everytree.batches.text_files import TextFiles

LEAST_BYTES = 2**20
"""Of text, that are never too many."""


def open_files(
    files: Files,
    reader: TextReader | None = None,
    *,
    threads: bool = True,
    dictionaries: bool = True,
    part_bytes: int | None = None,
) -> ArrowFiles | TextFiles:
    """Files as one table, whose rows are read part by part or as a whole.

    `reader` reads text; other arguments are attributes of `ArrowFiles` and `TextFiles`, or, `dictionaries`, whether
    text of Parquet files comes in dictionaries, so that each label is read once.
    """
    pyarrow_dataset()
    if files.format not in DELIMITERS:
        kept = dictionaries and files.format == "parquet"
        return ArrowFiles(files, open_dataset(files, dictionaries=kept), threads, part_bytes)
    plain = TextReader("", DELIMITERS[files.format], knows="the rows before it are")
    size = None if part_bytes is None else min(max(part_bytes, LEAST_BYTES), text_pieces.PIECE_BYTES)
    return TextFiles(files, replace(reader or plain, threads=threads), size)


def file_source(files: Files, reader: TextReader | None = None, *, threads: bool = True) -> Source:
    """The rows of files, one file after the other; `reader` reads those of text."""
    opened, n_rows = open_files(files, reader, threads=threads), None
    if isinstance(opened, ArrowFiles):
        n_rows = opened.count_rows()
    elif not opened.reader.types:
        opened = opened.with_first_types()
    return Source(lambda names: (part.table for part in opened.parts(names)), n_rows, files.marks)
