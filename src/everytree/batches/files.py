"""Files of tables: which of them a path names, what they hold, and how much memory their rows would take."""

from __future__ import annotations

import glob
import gzip
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Files:
    """Files of one format.

    Attributes
    ----------
    paths : list of str
    base : str
        Folders below it that are named "column=value" say what a column is for all their files.
    format : str
    """

    paths: list[str]
    base: str
    format: str


def find_files(path: str) -> Files:
    """A file, the files of a folder, or those of a pattern."""
    has_magic = glob.has_magic(path) and not os.path.exists(path)
    found = sorted(glob.glob(path, recursive=True)) if has_magic else [path]
    if not found:
        raise FileNotFoundError(f"batches: no file is named like {path!r}")
    if not os.path.exists(found[0]):
        raise FileNotFoundError(f"batches: there is no file or folder {path!r}")
    files = list(dict.fromkeys(file for one in found for file in _files_in(one)))
    if not files:
        raise ValueError(f"batches: the folder {path!r} holds no files")
    formats = set(map(format_by_name, files))
    if len(formats) > 1 or None in formats:
        others = sorted({Path(file).suffix for file in files})
        raise ValueError(f"batches: files must be all of one of {sorted(FORMATS)}, but {path!r} has {others}")
    return Files(files, _base_folder(path, has_magic), str(formats.pop()))


def format_by_name(path: str) -> str | None:
    """What the suffix of a name tells; None where it tells nothing."""
    plain = path[: -len(COMPRESSED)] if is_compressed(path) else path
    told = FORMATS.get(Path(plain).suffix.lower())
    return told if told in DELIMITERS or not is_compressed(path) else None


def is_compressed(path: str) -> bool:
    """Whether the name says that gzip has been at work."""
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


def bytes_in_memory(path: str, format: str) -> int:
    """What the rows of a file take in memory, roughly, without reading them."""
    size = os.path.getsize(path)
    if format in DELIMITERS:
        return size * COMPRESSION if is_compressed(path) else size
    return _bytes_of_parquet(path) if format == "parquet" else size


def _bytes_of_parquet(path: str) -> int:
    """By its metadata: values that have a width by that, text by its length in the file before it was compressed."""
    from pyarrow import parquet

    with parquet.ParquetFile(path, pre_buffer=False) as file:
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


def marks(paths: Sequence[str]) -> tuple[tuple[str, int, int], ...]:
    """Path, size and time of change of those that are there."""
    statuses = [(path, os.stat(path)) for path in paths if os.path.exists(path)]
    return tuple((path, status.st_size, status.st_mtime_ns) for path, status in statuses)
