"""Tables in files and streams: one file, a folder or a pattern of them, read as a whole or part by part."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from everytree.base.progress import Progress
from everytree.batches.arrow_files import ArrowFiles
from everytree.batches.file_sources import open_files
from everytree.batches.files import (
    COMPRESSED,
    DELIMITERS,
    FORMATS,
    Files,
    FilesError,
    Part,
    find_files,
    is_compressed,
    is_pattern,
    open_bytes,
)
from everytree.batches.text import TextError, TextReader
from everytree.batches.text_files import TextFiles
from everytree.cli.problems import UserError, warn
from everytree.cli.rows import NO_HEADER_HINT, Stretch, TableRows

STREAM = "-"
"""The path that stands for standard input and output."""
NAMES = tuple(dict.fromkeys(FORMATS.values()))

EXCEL = (".xls", ".xlsx", ".xlsm", ".xlsb")

START = 1 << 16
"""Bytes at the start of a text by which its delimiter is found."""
THOUSANDS = re.compile(rb"-?[1-9]\d{0,2},\d{3}")
"""A number whose comma may separate thousands, or decimals."""


@dataclass(frozen=True)
class Reading:
    """How a table is to be read, where its file does not say."""

    format: str | None = None  # one of `NAMES`, for streams and for names without a suffix that tells
    # whether the first line of a text file names the columns; else they are `column1`, `column2`, ...
    has_header: bool = True
    delimiter: str | None = None  # between the values of a line; None for the comma or tab of the format
    # {"text", "number", "boolean", "date"}: what columns of a text file are known to be, whatever their values look
    # like
    types: Mapping[str, str] = field(default_factory=dict)
    progress: bool = False  # whether to show how far reading has come


@dataclass(frozen=True)
class OpenTable:
    """A table that has not been read yet: its name for errors, its files, and their marks when the command began.

    `reader` is that of text files; `progress` is that of `Reading`.
    """

    name: str
    files: Files
    reader: TextReader | None
    marks: tuple[tuple[str, int, int], ...]
    progress: bool

    @property
    def is_text(self) -> bool:
        return self.reader is not None

    @cached_property
    def columns(self) -> list[str]:
        """Their names."""
        with self._readable():
            names = self._plain.columns
        twins = [column for column, times in Counter(names).items() if times > 1]
        if twins:
            raise UserError(f"{self.name}: several columns are named {twins[0]!r}{NO_HEADER_HINT}")
        return names

    def read(self) -> TableRows:
        """All of it, at least one row."""
        import pyarrow as pa

        names = self.columns
        with self._readable(), Progress("reading", self.count_rows(), self.progress, unit="rows") as progress:
            parts = [part for part in self._plain.whole(progress) if part.table.num_rows]
        self._check_rows(sum(part.table.num_rows for part in parts))
        stretches = tuple(stretch for _, stretch in self._with_stretches(iter(parts)))
        table = pa.concat_tables([part.table.select(names) for part in parts])
        return TableRows(self.name, table, stretches, self.is_text)

    def parts(self, columns: Sequence[str], keep: Sequence[str] = ()) -> Iterator[TableRows]:
        """All rows in their order, part by part: columns that are there, and those to `keep` as they were written."""
        chosen = [name for name in self.columns if name in columns]
        n_rows = 0
        with self._readable():
            for part, stretch in self._with_stretches(self._plain.parts(chosen, keep)):
                if stretch.n_rows:
                    yield TableRows(self.name, part.table, (stretch,), self.is_text, kept=part.as_written)
                n_rows += stretch.n_rows
        self._check_rows(n_rows)

    def count_rows(self) -> int | None:
        """How many rows there are, where the files say so."""
        with self._readable():
            return self._plain.count_rows() if isinstance(self._plain, ArrowFiles) else None

    @cached_property
    def digests(self) -> dict[str, str]:
        """SHA-256 of each file, decompressed, by which the same rows are known again."""
        found = {}
        with self._readable():
            for path in self.files.paths:
                sha = hashlib.sha256()
                with self.files.open(path) as file:
                    while block := file.read(2**20):
                        sha.update(block)
                found[path] = sha.hexdigest()
        return found

    def check_unchanged(self) -> None:
        """Refuse files that have changed since the command began, of which it may have seen some rows or others."""
        changed = sorted({path for path, *_ in set(self.marks) ^ set(self.files.marks())})
        if changed:
            raise UserError(f"{changed[0]}: has changed while it was read; nothing was written, run the command again")

    # ---- how --------------------------------------------------------------------------------------------------------

    @cached_property
    def _plain(self) -> ArrowFiles | TextFiles:
        # Without threads: with them, pyarrow 26 may abort where the process ends soon after a read.
        return open_files(self.files, self.reader, threads=False, dictionaries=False)

    def _with_stretches(self, parts: Iterator[Part]) -> Iterator[tuple[Part, Stretch]]:
        before: Counter[str] = Counter()
        for part in parts:
            called = os.path.relpath(part.path, self.files.base) if len(self.files.paths) > 1 else ""
            n_rows = int(part.table.num_rows)
            yield part, Stretch(part.path, called, n_rows, before[part.path], part.first_line)
            before[part.path] += n_rows

    def _check_rows(self, n_rows: int) -> None:
        if not n_rows:
            raise UserError(f"{self.name}: there are no rows")

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """The error of a file in a sentence."""
        import pyarrow as pa

        try:
            yield
        except TextError as error:
            raise UserError(str(error)) from None
        except FilesError as error:
            raise UserError(error.problem) from None
        except FileNotFoundError:
            gone = next((path for path in self.files.paths if not os.path.exists(path)), self.name)
            raise UserError(f"{gone}: there is no such file") from None
        except (pa.ArrowException, EOFError, OSError, ValueError, zlib.error) as error:
            if self.reader is None and getattr(error, "errno", None) is None:
                message = str(error).split("\n")[0]
                kind = self.files.format.capitalize()
                raise UserError(f"{self.name}: is not a {kind} file that pyarrow can read: {message}") from None
            where = getattr(error, "filename", None) or self.name
            raise UserError(f"{where}: cannot be read: {getattr(error, 'strerror', None) or error}") from None


def open_table(path: str, how: Reading) -> OpenTable:
    """A table by its path, which tells its format unless the user does."""
    if not path:
        raise UserError(f"TABLE must be the name of a file, or {STREAM} for standard input")
    files = _find(path, how.format)
    name = files.paths[0] if path == STREAM else path
    reader = None
    if files.format in DELIMITERS:
        start = _start(files)
        delimiter = _delimiter(files.format, how.delimiter, start)
        decimal, doubtful = decimal_sign(start, delimiter)
        if doubtful:
            _warn_of_doubt(name, doubtful)
        reader = TextReader(name, delimiter, how.has_header, how.types, decimal=decimal)
    return OpenTable(name, files, reader, files.marks(), how.progress)


def _find(path: str, format: str | None) -> Files:
    if not (os.path.isdir(path) or is_pattern(path)):
        told = format_of(path, format)
        if path != STREAM and not os.path.exists(path):
            raise UserError(f"{path}: there is no such file")
        called = "standard input" if path == STREAM else path
        return Files([called], os.path.dirname(path) or ".", told, _content_once(path, told))
    try:
        return find_files(path, format)
    except FileNotFoundError:
        raise UserError(f"{path}: no file has a name like this") from None
    except FilesError as error:
        raise UserError(error.problem) from None


def format_of(path: str, given: str | None) -> str:
    """The format by the suffix of a name, else the one given."""
    plain = path[: -len(COMPRESSED)] if is_compressed(path) else path
    told = FORMATS.get(Path(plain).suffix.lower()) or given or ("csv" if path == STREAM else None)
    if told is None and Path(plain).suffix.lower() in EXCEL:
        raise UserError(f"{path}: Excel files are not read; save the sheet as CSV")
    if told is None:
        raise UserError(
            f"{path or repr(path)}: the name has no known suffix; give the format by --format {'|'.join(NAMES)}"
        )
    if told not in NAMES:
        raise UserError(f"--format is {told!r}, but must be one of {', '.join(NAMES)}")
    return told


def table_in(path: str) -> str:
    """The format of a table in a file, as its name tells; nothing for a file that is none."""
    plain = path[: -len(COMPRESSED)] if is_compressed(path) else path
    told = FORMATS.get(Path(plain).suffix.lower(), "")
    return told.upper() if told in DELIMITERS else told.capitalize()


def _start(files: Files) -> bytes:
    """The first whole lines of a text; nothing where it cannot be read, which fails when all of it is read."""
    if files.content is None and not os.path.isfile(files.paths[0]):  # a pipe would wait, and lose them
        return b""
    try:
        with files.open(files.paths[0]) as file:
            start = file.read(START)
    except (EOFError, OSError, zlib.error):
        return b""
    whole_lines = start[: start.rfind(b"\n") + 1]  # the last one may end within a number
    return whole_lines if len(start) == START and whole_lines else start


def decimal_sign(start: bytes, delimiter: str) -> tuple[str, str]:
    """The sign before decimals, and an example where it is in doubt.

    It is a comma where values between other delimiters are numbers with one, and none is with a point. Where each of
    these numbers may as well have thousands before its comma, as 1,234 has, the sign stays a point.
    """
    if delimiter == ",":
        return ".", ""
    if _numbers_with(rb"\.", start, delimiter):
        return ".", ""
    with_comma = _numbers_with(b",", start, delimiter)
    if with_comma and all(map(THOUSANDS.fullmatch, with_comma)):
        return ".", with_comma[0].decode()
    return "," if with_comma else ".", ""


def _numbers_with(sign: bytes, start: bytes, delimiter: str) -> list[bytes]:
    """All values that are two runs of digits with a sign between them."""
    number = rb"(?:^|%(d)b)\s*(-?\d+%(sign)b\d+)\s*(?=%(d)b|\r?$)"
    return re.findall(number % {b"d": re.escape(delimiter.encode()), b"sign": sign}, start, flags=re.MULTILINE)


def _warn_of_doubt(name: str, example: str) -> None:
    warn(
        f"{name}: the comma of numbers such as {example} may come before thousands or before decimals, so they are "
        f"read as text; write {example.replace(',', '')} or {example.replace(',', '.')} instead"
    )


def _delimiter(format: str, given: str | None, start: bytes) -> str:
    r"""The delimiter; `\t` is accepted for tab.

    Spreadsheets write semicolons where the comma is the sign of decimals: so does a CSV file whose first line has
    semicolons and no comma.
    """
    first = start.partition(b"\n")[0]
    usual = ";" if format == "csv" and b";" in first and b"," not in first else DELIMITERS[format]
    delimiter = "\t" if given == r"\t" else given or usual
    if len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0':
        raise UserError(f"--delimiter must be one ASCII character, no quote and no line break, but is {delimiter!r}")
    return delimiter


def _content_once(path: str, format: str) -> bytes | None:
    """Contents of inputs that can be read only once (standard input, pipes) or not in parts; None for other files."""
    if path == STREAM:
        if sys.stdin is None:
            raise UserError("standard input is closed")
        return sys.stdin.buffer.read()
    is_packed = is_compressed(path) and format not in DELIMITERS
    if not os.path.exists(path) or (os.path.isfile(path) and not is_packed):
        return None
    try:
        with open_bytes(path) as file:
            return file.read()
    except (EOFError, OSError, zlib.error) as error:
        raise UserError(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from None
