"""What a file of a table holds: as its name tells, or as the user does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from everytree.cli.problems import UserError

FORMATS = {
    ".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".parquet": "parquet", ".pq": "parquet",
    ".feather": "feather", ".arrow": "feather", ".ipc": "feather",
}  # fmt: skip
NAMES = tuple(dict.fromkeys(FORMATS.values()))
DELIMITERS = {"csv": ",", "tsv": "\t"}
"""The formats that are text, and what is between their values."""
STREAM = "-"
"""The path that stands for standard input and output."""
COMPRESSED = ".gz"


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
    keep : sequence of str
        Columns that are wanted as they stand in the file too.
    """

    format: str | None = None
    has_header: bool = True
    delimiter: str | None = None
    types: Mapping[str, str] | None = None
    keep: Sequence[str] = ()


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


def output_format(path: str, given: str | None) -> str:
    """The format to write; text may be compressed, and the others compress themselves."""
    told = format_of(path, given)
    if is_compressed(path) and told not in DELIMITERS:
        raise UserError(
            f"{path}: a {told.capitalize()} file has its own compression; leave {COMPRESSED} out of its name"
        )
    return told


def is_compressed(path: str) -> bool:
    """Whether the name says that gzip has been at work."""
    return path.lower().endswith(COMPRESSED)
