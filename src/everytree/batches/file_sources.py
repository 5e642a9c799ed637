"""Files as batches."""

from __future__ import annotations

from dataclasses import replace

from everytree.batches.arrow_files import ArrowFiles, open_dataset, pyarrow_dataset
from everytree.batches.files import DELIMITERS, Files
from everytree.batches.source import Source
from everytree.batches.text import TextReader
from everytree.batches.text_files import TextFiles


def open_files(
    files: Files, reader: TextReader | None = None, *, threads: bool = True, dictionaries: bool = True
) -> ArrowFiles | TextFiles:
    """Files as one table, whose rows are read part by part or as a whole.

    `reader` reads text. `dictionaries`: whether text of Parquet files comes in them, so that each label is read once.
    """
    pyarrow_dataset()
    if files.format not in DELIMITERS:
        kept = dictionaries and files.format == "parquet"
        return ArrowFiles(files, open_dataset(files, dictionaries=kept), threads)
    plain = TextReader("", DELIMITERS[files.format], knows="the rows before it are")
    return TextFiles(files, replace(reader or plain, threads=threads))


def file_source(files: Files) -> Source:
    """The rows of files, one file after the other."""
    opened, n_rows = open_files(files), None
    if isinstance(opened, ArrowFiles):
        n_rows = opened.count_rows()
    else:
        opened = opened.with_first_types()
    return Source(lambda names: (part.table for part in opened.parts(names)), n_rows, files.marks)
