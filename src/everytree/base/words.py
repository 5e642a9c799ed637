"""Words for numbers of things."""

from __future__ import annotations


def number_of(n: int, one: str, several: str | None = None) -> str:
    """Return a number with its noun: "1 row", "12,000 rows"; `several` where the plural is no "s"."""
    return f"{n:,} {one if n == 1 else several or f'{one}s'}"
