"""Files of tables: which of them a path names, what they hold, and how much memory their rows would take."""

from __future__ import annotations

import glob
import gzip
import io
import itertools
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, cast

FORMATS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet",
    ".feather": "feather", ".arrow": "feather", ".ipc": "feather",
}  # fmt: skip
DELIMITERS = {"csv": ",", "tsv": "\t"}
"""The formats that are text, and what is between their values."""
COMPRESSED = ".gz"
"""After the suffix of a text file."""
COMPRESSION = 5
"""How many times as long compressed text is when it is read, roughly."""


class FilesError(ValueError):
    """Files that are no table together.

    Parameters
    ----------
    problem : str
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"batches: {self.problem}"


@dataclass(frozen=True)
class Files:
    """Files of one format, which are one table.

    Attributes
    ----------
    paths : list of str
    base : str
        Folders below it that are named "column=value" say what a column is for all their files.
    format : str
    content : bytes or None
        Of the only file, where it can be read once alone; its path is then what errors call it.
    """

    paths: list[str]
    base: str
    format: str
    content: bytes | None = None

    def open(self, path: str) -> BinaryIO:
        """One of them, to be read from its beginning."""
        return open_bytes(path) if self.content is None else io.BytesIO(self.content)

    def marks(self) -> tuple[tuple[str, int, int], ...]:
        """Path, size and time of change of those that are there."""
        paths = self.paths if self.content is None else []
        statuses = [(path, os.stat(path)) for path in paths if os.path.exists(path)]
        return tuple((path, status.st_size, status.st_mtime_ns) for path, status in statuses)


@dataclass(frozen=True)
class Part:
    """Some rows of a file.

    Attributes
    ----------
    path : str
    table : pyarrow.Table
    first_line : int or None
        Line of the first row, where each row is one line of text.
    as_written : mapping of str to pyarrow.ChunkedArray
        Columns as they stand in the file, where they were asked for: those of text files are text.
    """

    path: str
    table: Any
    first_line: int | None = None
    as_written: Mapping[str, Any] = field(default_factory=dict)


def find_files(path: str, format: str | None = None) -> Files:
    """A file, the files of a folder, or those of a pattern; `format` is that of files whose names do not tell."""
    has_magic = is_pattern(path)
    found = files_named(path)
    if not found:
        if has_magic:
            raise FileNotFoundError(f"batches: no file is named like {path!r}")
        raise FilesError(f"the folder {path!r} holds no files")
    if not os.path.exists(found[0]):
        raise FileNotFoundError(f"batches: there is no file or folder {path!r}")
    formats = {format_by_name(file) or format for file in found}
    if len(formats) > 1 or None in formats:
        others = sorted({Path(file).suffix for file in found})
        if {".xls", ".xlsx"} & set(others):
            raise FilesError(f"{path!r} is an Excel file, which is not read; save the sheet as CSV or Parquet")
        raise FilesError(f"files must be all of one of {sorted(FORMATS)}, but {path!r} has {others}")
    return Files(found, _base_folder(path, has_magic), str(formats.pop()))


def files_named(path: str) -> list[str]:
    """The files that a path or a pattern names, those of folders with all below them; none where none is there."""
    found = sorted(glob.glob(path, recursive=True)) if is_pattern(path) else [path]
    return list(dict.fromkeys(file for one in found for file in _files_in(one)))


def is_pattern(path: str) -> bool:
    """Whether a path stands for all that are named like it."""
    return glob.has_magic(path) and not os.path.exists(path)


def format_by_name(path: str) -> str | None:
    """Format by the suffix of a name; None for unknown suffixes."""
    plain = path[: -len(COMPRESSED)] if is_compressed(path) else path
    told = FORMATS.get(Path(plain).suffix.lower())
    return told if told in DELIMITERS or not is_compressed(path) else None


def is_compressed(path: str) -> bool:
    """Whether the name has the suffix of gzip."""
    return path.lower().endswith(COMPRESSED)


def open_bytes(path: str) -> BinaryIO:
    """A file to be read from its beginning, decompressed where its name says that it is compressed."""
    return cast(BinaryIO, gzip.open(path, "rb")) if is_compressed(path) else open(path, "rb")


def _files_in(path: str) -> list[str]:
    """A file itself; those below a folder, without the ones that are hidden, or in a hidden folder, as usual there."""
    if not os.path.isdir(path):
        return [path]
    below = (file for file in sorted(Path(path).rglob("*")) if file.is_file())
    return [str(file) for file in below if not any(p.startswith(("_", ".")) for p in file.relative_to(path).parts)]


def _base_folder(path: str, has_magic: bool) -> str:
    if has_magic:
        plain = itertools.takewhile(lambda part: not glob.has_magic(part), Path(path).parts)
        return str(Path(*plain))
    return path if os.path.isdir(path) else os.path.dirname(path) or "."


# ---- memory ---------------------------------------------------------------------------------------------------------


def bytes_in_memory(files: Files) -> int:
    """Rough size of the rows of files in memory, without reading them; 0 for contents that are in memory already."""
    return 0 if files.content is not None else sum(_bytes_of_file(path, files.format) for path in files.paths)


def _bytes_of_file(path: str, format: str) -> int:
    size = os.path.getsize(path)
    if format in DELIMITERS:
        return size * COMPRESSION if is_compressed(path) else size
    return _bytes_of_parquet(path) if format == "parquet" else size


def _bytes_of_parquet(path: str) -> int:
    """By its metadata: values that have a width by that, text by its length in the file before it was compressed."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        file = parquet.ParquetFile(path, pre_buffer=False)
    except pa.ArrowException as error:
        message = str(error).split("\n")[0]
        raise FilesError(f"{path}: is not a Parquet file that pyarrow can read: {message}") from None
    with file:
        footer = file.metadata
        width = sum(_width(field.type) for field in file.schema_arrow)
        groups = [footer.row_group(k) for k in range(footer.num_row_groups)]
        return max(int(footer.num_rows) * width, sum(int(group.total_byte_size) for group in groups))


def _width(arrow_type: Any) -> int:
    """Bytes of a value; of text and the like, what says where it begins."""
    try:
        return max(int(arrow_type.bit_width) // 8, 1)
    except ValueError:
        return 8
