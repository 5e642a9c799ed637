"""Text files in pieces of whole rows, so that no more than one piece is in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

PIECE_BYTES = 2**24
"""Of text that is read at a time: enough for the threads of a reader, and little beside a few batches."""


@dataclass(frozen=True)
class Piece:
    """Some rows of a text file, with the line that names the columns before them."""

    content: bytes
    first_line: int  # line of the file where the rows begin
    header_lines: int  # lines of `content` before them

    def line(self, number: int) -> int:
        """The line of the file that is this line of the content; both count from 1."""
        return number if number <= self.header_lines else number + self.first_line - 1 - self.header_lines


def pieces(file: BinaryIO, has_header: bool, size: int | None = None) -> Iterator[Piece]:
    """All rows in their order, at least one piece: it has no rows where the file has none."""
    header, lines, rest, is_first = b"", 0, b"", True
    while block := file.read(size or PIECE_BYTES):
        rest += block
        end = _end_of_rows(rest)
        if is_first and has_header and end:
            header = rest[: _end_of_first_row(rest)]
        if end <= (len(header) if is_first else 0):
            continue
        rows, rest = rest[:end], rest[end:]
        yield _piece(header, rows, lines, is_first)
        lines, is_first = lines + _count(rows, b"\n"), False
    if rest or is_first:
        if is_first and has_header:
            header = rest[: _end_of_first_row(rest)]
        yield _piece(header, rest, lines, is_first)


def _piece(header: bytes, rows: bytes, lines: int, is_first: bool) -> Piece:
    n_lines = header.count(b"\n")
    return Piece(rows, n_lines + 1, n_lines) if is_first else Piece(header + rows, lines + 1, n_lines)


def _end_of_first_row(content: bytes) -> int:
    """After the first line break that is not in quotes, empty lines aside."""
    start, is_quoted = len(content) - len(content.lstrip(b"\r\n")), False
    while (at := content.find(b"\n", start)) >= 0:
        is_quoted ^= content.count(b'"', start, at) % 2 == 1
        if not is_quoted:
            return at + 1
        start = at + 1
    return len(content)


def _end_of_rows(content: bytes) -> int:
    """After the last line break that is not in quotes; 0 where there is none."""
    stop = len(content)
    is_quoted = _count(content, b'"') % 2 == 1
    while (at := content.rfind(b"\n", 0, stop)) >= 0:
        is_quoted ^= content.count(b'"', at, stop) % 2 == 1
        if not is_quoted:
            return at + 1
        stop = at
    return 0


def _count(content: bytes, byte: bytes) -> int:
    """How often a byte is there; `bytes.count` would take several times as long where it is there often."""
    return int(np.count_nonzero(np.frombuffer(content, np.uint8) == byte[0]))
