"""Files of tables: which of them a path names, and what they hold."""

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


class FilesError(ValueError):
    """Files that are no table together."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem

    def __str__(self) -> str:
        return f"batches: {self.problem}"


@dataclass(frozen=True)
class Files:
    """Files of one format, which are one table."""

    paths: list[str]
    base: str  # folders below it that are named "column=value" say what a column is for all their files
    format: str
    # of the only file, where it can be read once alone; its path is then what errors call it
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
    """Some rows of a file."""

    path: str
    table: Any  # pyarrow.Table
    first_line: int | None = None  # line of the first row, where each row is one line of text
    # pyarrow.ChunkedArray: columns as they stand in the file, where they were asked for: those of text files are text
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
