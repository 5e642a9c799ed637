"""Words for numbers of things, and for names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def number_of(n: int, one: str, several: str | None = None) -> str:
    """Return a number with its noun: "1 row", "12,000 rows"; `several` where the plural is no "s"."""
    return f"{n:,} {one if n == 1 else several or f'{one}s'}"


def with_article(noun: str) -> str:
    """A noun with its article: "a MetaTree", "an ExactTree"."""
    return f"{'an' if noun[0].lower() in 'aeiou' else 'a'} {noun}"


MIN_GROUPED, MAX_GROUPED = 1e4, 1e9
"""Between these, numbers are written with commas, never with an exponent."""


def short_number(value: float, digits: int) -> str:
    """A number with so many significant digits; large ones with commas rather than an exponent."""
    text = f"{value:.{digits}g}"
    return f"{float(text):,.12g}" if MIN_GROUPED <= abs(float(text)) < MAX_GROUPED else text


def listed(names: Iterable[str]) -> str:
    """Names in quotes."""
    return ", ".join(map(repr, names))


def nearest(name: str, names: Iterable[str]) -> str:
    """The names that are most like one that is not there; nothing where none is like it."""
    folded = {other.casefold(): other for other in reversed(list(names))}
    like = [folded[match] for match in difflib.get_close_matches(name.casefold(), folded, n=3, cutoff=0.5)]
    if not like:
        return ""
    return f"the nearest are {listed(like)}" if len(like) > 1 else f"the nearest is {like[0]!r}"
