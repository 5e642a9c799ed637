"""Labels of the codes of a column, as exact as the splits between them.

Numbers and dates have an order: a split goes up to a cut and beyond it. Categories are numbered in an
order that users do not see, so a split between them is written as sets of names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, NamedTuple

from numpy.typing import NDArray

from everytree.base.arrays import LARGEST_CODE
from everytree.tables.column import Column

MAX_NAMED = 4
"""Maximum number of categories that a set names; the rest is counted."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAY, HALF_DAY = 86_400e6, 43_200e6
"""Microseconds."""
DATE_FORMATS = ("%Y-%m-%d %H:%M", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M:%S.%f")

MIN_DIGITS, MAX_DIGITS = 6, 17
"""Digits of a cut point; seventeen identify every double."""

NEAR = 0.01
"""Maximum distance of the text of a cut from it, as a share of the distance to the next cut."""


NOTHING = "no value"
"""The condition of a branch that no row can take."""


class Codes(NamedTuple):
    """Codes of a column that can reach a node."""

    low: int = 0  # the first and the last; none where the first is larger
    high: int = LARGEST_CODE
    missing: bool = True  # whether a missing value, which has no code, can reach it too

    def child(self, threshold: int, child: int, missing_child: int) -> Codes:
        """Those of them that go on to a child of a split on the column, which takes missing values to another."""
        if child == missing_child and (threshold < 0 or child == 2):
            return Codes(1, 0, self.missing)
        first, last = (child, child) if threshold < 0 else (0, threshold) if child == 0 else (threshold + 1, self.high)
        return Codes(max(self.low, first), min(self.high, last), self.missing and child == missing_child)


@dataclass(frozen=True)
class CodeWords(Sequence[str]):
    """The labels of one column, one text for each code."""

    values: tuple[tuple[str, ...], ...]  # for each code its categories, or the largest number that has it
    is_ordered: bool  # whether the codes have a natural order
    has_missing_code: bool = False  # whether a missing value is one code more, after these
    input: int = -1  # The input column that is coded; several columns may code the same one. -1 if that is not known.

    @classmethod
    def of(cls, column: Column, input: int = -1) -> CodeWords:
        if column.kind in ("boolean", "categorical"):
            names = ["no", "yes"] if column.kind == "boolean" else [one_line(value) for value in column.categories]
            members: list[list[str]] = [[] for _ in range(column.n_codes)]
            for name, group in zip(names, column.groups or range(len(names)), strict=False):
                if group >= 0:
                    members[group].append(name)
            return cls(tuple(map(tuple, members)), is_ordered=False, input=input)
        names = [*cut_texts(column), "more"]
        if column.groups:
            last = {group: place for place, group in enumerate(column.groups)}
            names = [names[last.get(code, -1)] for code in range(column.n_codes)]
        return cls(tuple((name,) for name in names), is_ordered=True, input=input)

    def with_missing_code(self, has_missing_code: bool) -> CodeWords:
        """Return the same labels for a model in which a missing value may be one more code."""
        return replace(self, has_missing_code=has_missing_code)

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, code: Any) -> Any:
        return ", ".join(self.values[code])

    def codes_same_input(self, other: Any) -> bool:
        """Whether another column, too, is one of categories of the same input."""
        if not isinstance(other, CodeWords) or self.is_ordered or other.is_ordered:
            return False
        return self.input == other.input >= 0

    def answer(self, codes: Codes, above: Codes, beside: Sequence[tuple[CodeWords, Codes]] = ()) -> str:
        """Condition of the branch to a node that some codes reach, from one that is reached by those `above`.

        Other columns that code the same input limit its categories too: `beside` holds them and their codes above.
        """
        own, missing = self._reached(codes)
        before, missing_before = self._reached(above)
        known_above = not all(words._reached(reached)[1] for words, reached in beside)
        missing, missing_before = missing and not known_above, missing_before and not known_above
        names = self._names(own, beside)
        if not (own if not beside else names):
            return "missing" if missing else NOTHING
        or_missing = " or missing" if missing else ""
        if self.is_ordered:
            lower = [f"> {self[own[0] - 1]}"] if own[0] > 0 else []
            upper = [f"≤ {self[own[-1]]}"] if own[-1] < len(self) - 1 else []
            return (", ".join(lower + upper) or "known") + or_missing
        others = self._names([code for code in before if code not in own], beside)
        if not others and (missing_before > missing or len(names) > MAX_NAMED):  # only asked whether there is a value
            return "known" + or_missing
        return set_text(names, others) + or_missing

    def _reached(self, codes: Codes) -> tuple[range, bool]:
        """The codes among those with labels, and whether a missing value is among them."""
        n = len(self)
        is_missing = codes.missing or (self.has_missing_code and codes.low <= n <= codes.high)
        return range(max(codes.low, 0), min(codes.high + 1, n)), is_missing

    def _names(self, codes: Sequence[int], beside: Sequence[tuple[CodeWords, Codes]] = ()) -> list[str]:
        """The categories with these codes, as far as the codes of the columns beside leave them."""
        left = [set(words._names(words._reached(reached)[0])) for words, reached in beside]
        return [name for code in codes for name in self.values[code] if all(name in names for names in left)]


def set_text(names: Sequence[str], others: Sequence[str]) -> str:
    """Text for a set of categories: its members, the others if these are few and it is large, or some and a count."""
    if len(names) == 1:
        return f"= {names[0]}"
    is_small = 0 < len(names) <= MAX_NAMED
    word, listed = ("in", names) if is_small or len(others) > MAX_NAMED else ("not in", others)
    if len(listed) <= MAX_NAMED:
        return f"{word} {', '.join(listed)}"
    shown = listed[: MAX_NAMED - 1]
    return f"{word} {', '.join(shown)} and {len(listed) - len(shown)} more"


def cut_texts(column: Column) -> list[str]:
    """Text of each cut, as short as it can be while it differs from the cuts beside it."""
    text = _number
    if column.kind == "datetime":  # a cut between whole days is at midnight or at noon
        text = partial(_date, whole_days=bool((column.cuts % HALF_DAY == 0.0).all()))
    prefix = "" if column.hashed is None else "position "  # of a text: see `Column.hashed`
    return [prefix + text(float(cut), _gap(column.cuts, k)) for k, cut in enumerate(column.cuts)]


def _gap(cuts: NDArray[Any], k: int) -> float:
    """Distance of the nearest other cut."""
    return min((abs(float(cuts[j] - cuts[k])) for j in (k - 1, k + 1) if 0 <= j < len(cuts)), default=math.inf)


def _number(cut: float, gap: float) -> str:
    fits = abs(cut) < 1e15
    if fits and 2.0 * cut == math.floor(2.0 * cut):  # between whole numbers: a rounded text might be on the other side
        return f"{cut + 0.0:.1f}".removesuffix(".0")
    least = max(MIN_DIGITS, len(str(int(abs(cut))))) if fits else MIN_DIGITS
    texts = (f"{cut:.{digits}g}" for digits in range(least, MAX_DIGITS + 1))
    return next(text for text in texts if abs(float(text) - cut) <= NEAR * gap)


def _date(cut: float, gap: float, *, whole_days: bool) -> str:
    """Date to the minute, or finer if another cut is in the same one; to the day where that is near enough."""
    try:
        moment = EPOCH + timedelta(microseconds=cut)
    except OverflowError:
        return _number(cut, gap)
    if (whole_days and gap >= DAY) or cut % DAY <= NEAR * gap < math.inf:
        return moment.strftime("%Y-%m-%d")
    finest = 0 if gap >= 60e6 else 1 if gap >= 1e6 else 2
    return moment.strftime(DATE_FORMATS[finest]).removesuffix(" 00:00")


def one_line(name: Any) -> str:
    """Return a name as text without line breaks and other control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in str(name)).split())
