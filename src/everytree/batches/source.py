"""Batches that can be read from the beginning any number of times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

BATCH_VALUES = 2**23
"""How many values, of rows times columns, a batch has where a file or an engine leaves the choice."""

Mark = tuple[tuple[str, int, int], ...]
Names = list[str] | None


@dataclass(frozen=True)
class Source:
    """Batches that can be read again."""

    # Reads from the beginning. Takes the names of the columns that are wanted, or None for all; a source that cannot
    # choose yields all.
    start: Callable[[Names], Iterator[Any]]
    n_rows: int | None = None  # where it is known without reading
    mark: Callable[[], Mark] = tuple  # path, size and time of change of the files that are read


def batch_rows(n_columns: int) -> int:
    """Rows of a batch: enough that nothing is lost between batches, few enough for memory."""
    return min(max(BATCH_VALUES // max(n_columns, 1), 2**13), 2**19)
