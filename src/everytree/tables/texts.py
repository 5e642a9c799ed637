"""Text that holds numbers or dates: recognised when a schema is fitted, and read by the same rule from then on.

A column of text is read as numbers or dates only where there is no doubt: every value that is not missing must be one.
Whole numbers with few different values, with leading zeros or with an exponent are codes, and so are decimals that end
in zeros and differ in length, as versions do. Whether days or months come first is decided by all values together.
Where there is doubt, text stays categories, and a warning has the line that converts it.
"""

from __future__ import annotations

import datetime
import math
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from everytree.base.errors import ArgumentError
from everytree.tables.reading import SAYS_MISSING, Values

TextRule = Literal["number", "year-month-day", "day-month-year", "month-day-year"]
"""How text is parsed: as numbers, or as dates whose parts come in this order unless it is evident from the date."""

MARKS = frozenset({"?", "-"})
"""Text that also stands for a missing value in a column of numbers or dates."""

FEW_NUMBERS = 60
"""Whole numbers written as text with no more different values than this are categories."""

CODE_DIGITS = 5
"""Whole numbers that all have the same number of digits, this many or more, may be codes."""

EXACT_DIGITS = 15
"""Whole numbers with more digits than this are not told apart as floats."""

SUCH_AS = {
    "number": "a number",
    "year-month-day": "a date such as 2020-12-31 or 31 Dec 2020",
    "day-month-year": "a date such as 31/12/2020, with the day before the month",
    "month-day-year": "a date such as 12/31/2020, with the month before the day",
}
"""Text that a rule accepts, in words."""

PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)?(?:\.[0-9]+)?")
"""A number without an exponent, with no leading zero."""

SMALL = re.compile(r"-?[0-9](?:\.[0-9]+)?[eE]-[0-9]+|-?[0-9]\.[0-9]+[eE][+]?[0-9]+")
"""A number with an exponent that no code looks like."""

COMMA = re.compile(r"-?(?:0|[1-9][0-9]*),[0-9]+")
"""A number with a decimal comma, or with one that separates thousands, or two numbers."""

DATE = re.compile(
    r"(?P<first>[0-9]{1,4}|[A-Za-z]{3,9})(?P<between>[-/. ]|\. )(?P<second>[0-9]{1,2}|[A-Za-z]{3,9})"
    r"(?P<after>[-/. ]|, ?|\. )"
    r"(?P<third>[0-9]{4}|[0-9]{1,2})"
    r"(?:(?:T|,? )(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{2})(?::(?P<second_of>[0-9]{2})(?:\.(?P<fraction>[0-9]{1,9}))?)?"
    r"(?: ?(?P<half>[AaPp])\.?[Mm]\.?)? ?(?P<zone>Z|UTC|[+-][0-9]{2}:?[0-9]{2})?)?"
)
"""A date, and perhaps a time of day with a time zone."""

MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip

_MICROSECOND = datetime.timedelta(microseconds=1)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


# ---- fit ------------------------------------------------------------------------------------------------------------


def may_be_read(values: Values) -> bool:
    """Whether each text by itself looks like a number or a date."""
    texts = (text for text in map(str.strip, map(str, values.labels)) if not _is_missing(text))
    return all(_is_number(text) or DATE.fullmatch(text) is not None for text in texts)


def recognised(label: str, values: Values) -> TextRule | None:
    """Find the rule that parses the text of a column, and warn about it; None if its values are categories."""
    texts = [text for text in map(str.strip, map(str, values.labels)) if not _is_missing(text)]
    if not texts:
        return None
    if all(map(_is_number, texts)):
        return _number_rule(label, texts)
    if all(map(COMMA.fullmatch, texts)) and len(texts) > FEW_NUMBERS:
        line = f'{_cells(label)}.str.replace(",", ".").astype(float)'
        _warn_of_doubt(label, texts[0], "numbers with a decimal comma", line)
        return None
    return _date_rule(label, texts)


def _number_rule(label: str, texts: Sequence[str]) -> TextRule | None:
    """Whether text whose values all look like numbers holds numbers."""
    n_fractional = sum(not float(text).is_integer() for text in texts)
    is_many = len(texts) > FEW_NUMBERS
    if not is_many and (len(texts) < 3 or 2 * n_fractional < len(texts)):
        return None
    doubt = _doubt_of_numbers(texts, n_fractional)
    if doubt is None:
        _warn_of_reading(label, texts[0], "numbers written as text", "read as numbers")
        return "number"
    if is_many:
        is_date = all(map(_is_digits_of_date, texts))
        line = f'pandas.to_datetime({_cells(label)}, format="%Y%m%d")' if is_date else f"{_cells(label)}.astype(float)"
        _warn_of_doubt(label, texts[0], "dates" if is_date else "numbers", line, doubt)
    return None


def _doubt_of_numbers(texts: Sequence[str], n_fractional: int) -> str | None:
    """Why values that look like numbers may be codes."""
    if n_fractional == 0:
        widths = {len(text) for text in texts}
        if len(widths) == 1 and max(widths) >= CODE_DIGITS and all(map(str.isdigit, texts)):
            return "all have the same number of digits, as codes do"
    if any(len(text.partition(".")[0].lstrip("-")) > EXACT_DIGITS for text in texts):
        return f"they have more than {EXACT_DIGITS} digits"
    decimals = [text.partition(".")[2] for text in texts if "." in text and not SMALL.fullmatch(text)]
    if len(set(map(len, decimals))) > 1 and any(part.endswith("0") and len(part) > 1 for part in decimals):
        return "their decimals differ in length and end in zeros, as those of versions do"
    return None


def _is_digits_of_date(text: str) -> bool:
    return len(text) == 8 and _date(int(text[:4]), int(text[4:6]), int(text[6:])) is not None


def _date_rule(label: str, texts: Sequence[str]) -> TextRule | None:
    """The order of the parts of dates, if all values are dates."""
    orders: set[TextRule] = {"day-month-year", "month-day-year"}
    is_known, zoned = True, set()
    for text in texts:
        found = DATE.fullmatch(text)
        if found is None or not _is_date_beyond_doubt(found):
            return None
        zoned.add(found["zone"] is not None)
        if (len(found["first"]) == 4 and found["first"].isdigit()) or _has_name(found):
            if read_date(text, "year-month-day") is None:
                return None
            continue
        is_known = False
        orders = {order for order in orders if read_date(text, order) is not None}
        if not orders:
            return None
    if len(zoned) > 1:
        line = f"pandas.to_datetime({_cells(label)}, utc=True)"
        _warn_of_doubt(label, texts[0], "dates", line, "only some have a time zone")
        return None
    if not is_known and len(orders) > 1:
        lines = f"pandas.to_datetime({_cells(label)}, dayfirst=True), or dayfirst=False where months come first"
        _warn_of_doubt(label, texts[0], "dates", lines, "days and months cannot be told apart")
        return None
    rule: TextRule = "year-month-day" if is_known else orders.pop()
    first = {"day-month-year": ", the day before the month", "month-day-year": ", the month before the day"}
    _warn_of_reading(label, texts[0], "dates written as text", f"read as dates{first.get(rule, '')}")
    return rule


def _is_date_beyond_doubt(found: re.Match[str]) -> bool:
    """Whether the parts are not those of a code or of a version, such as 1.2.10."""
    if _has_name(found):
        return True
    if found["between"] != found["after"]:
        return False
    if 4 in (len(found["first"]), len(found["third"])):
        return True
    is_padded = len(found["first"]) == len(found["second"]) == 2
    return len(found["third"]) == 2 and (found["between"] == "/" or (found["between"] == "." and is_padded))


def _has_name(found: re.Match[str]) -> bool:
    return found["first"].isalpha() or found["second"].isalpha()


def _warn_of_reading(label: str, example: str, holds: str, read: str) -> None:
    warnings.warn(
        f"X: {label} holds {holds}, such as {example!r}, which are {read}; to keep them as categories, name the column "
        "in categorical_features, or give it a categorical type",
        UserWarning,
        stacklevel=2,
    )


def _warn_of_doubt(label: str, example: str, may_be: str, line: str, doubt: str = "") -> None:
    since = f", since {doubt}" if doubt else ""
    warnings.warn(
        f"X: {label} holds texts such as {example!r}, which are taken for categories without an order{since}; if they "
        f"are {may_be}, convert them first: {_cells(label)} = {line}",
        UserWarning,
        stacklevel=2,
    )


def _cells(label: str) -> str:
    """The column in a line of Python: it is called "column 'age'", or "column 3" if there are no names."""
    where = label.removeprefix("column ")
    return f"X[:, {where}]" if where.isdigit() else f"X[{where}]"


# ---- values ---------------------------------------------------------------------------------------------------------


def as_numbers(values: Values, rule: TextRule, label: str) -> Values:
    """Read the text of a column by a rule; other values are returned as they are."""
    if values.index is None or values.kind != "categorical":
        return values
    read: Callable[[str], float | None] = read_number if rule == "number" else lambda text: read_date(text, rule)
    numbers = np.full(len(values.labels) + 1, np.nan)  # -1, a missing value, selects the last entry
    for index, value in enumerate(values.labels):
        number = read(str(value).strip())
        if number is not None:
            numbers[index] = number
            continue
        rows = np.flatnonzero(values.index == index)
        if len(rows):
            must = f"must be {SUCH_AS[rule]}, as in the table of fit"
            raise ArgumentError("X", must, label, int(rows[0]), repr(value))
    return Values("numeric" if rule == "number" else "datetime", numbers[values.index])


def read_number(text: str) -> float | None:
    """A number, NaN where it is missing; None if the text is none."""
    if _is_missing(text):
        return math.nan
    try:
        return float(text)
    except ValueError:
        return None


def read_date(text: str, rule: TextRule) -> float | None:
    """Microseconds since 1970, in UTC if the text has a time zone, NaN where it is missing; None if it is no date.

    A year of four digits may come first whatever the rule is, and a month may be a name. Years of two digits are those
    from 1969 to 2068.
    """
    if _is_missing(text):
        return math.nan
    found = DATE.fullmatch(text)
    parts = None if found is None else _day_of(found, rule)
    if found is None or parts is None:
        return None
    day, time = _date(*parts), _time_of(found)
    if day is None or time is None:
        return None
    return float((datetime.datetime(day.year, day.month, day.day, tzinfo=datetime.UTC) + time - _EPOCH) // _MICROSECOND)


def _day_of(found: re.Match[str], rule: TextRule) -> tuple[int, int, int] | None:
    """Year, month and day; 0 for a month that is none."""
    first, second, third = found["first"], found["second"], found["third"]
    if first.isdigit() and len(first) == 4:
        return (int(first), _month(second), int(third)) if len(third) <= 2 else None
    if (len(first) == 3 and first.isdigit()) or len(third) == 1:
        return None
    year = int(third) if len(third) == 4 else int(third) + (1900 if int(third) >= 69 else 2000)
    if first.isalpha():
        return (year, _month(first), int(second)) if second.isdigit() else None
    if second.isalpha() or rule == "day-month-year":
        return year, _month(second), int(first)
    return (year, int(first), int(second)) if rule == "month-day-year" else None


def _month(text: str) -> int:
    """The number of a month; 0 if it is none."""
    if text.isdigit():
        return int(text)
    name = "sep" if text.lower() == "sept" else text.lower()
    return next((k for k, month in enumerate(MONTHS, 1) if name in (month, month[:3])), 0)


def _time_of(found: re.Match[str]) -> datetime.timedelta | None:
    """The time of day in UTC; None if there is no such time."""
    if found["hour"] is None:
        return datetime.timedelta()
    hour, minute, second = int(found["hour"]), int(found["minute"]), int(found["second_of"] or 0)
    if found["half"] is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"] in "pP" else 0)
    if hour > 23 or minute > 59 or second > 59:
        return None
    fraction = int((found["fraction"] or "0").ljust(6, "0")[:6])
    zone, east = found["zone"] or "Z", datetime.timedelta()
    if zone[0] in "+-":
        east = datetime.timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:])) * (-1 if zone[0] == "-" else 1)
    return datetime.timedelta(hours=hour, minutes=minute, seconds=second, microseconds=fraction) - east


def _date(year: int, month: int, day: int) -> datetime.date | None:
    try:
        return datetime.date(year, month, day)
    except ValueError:
        return None


def _is_missing(text: str) -> bool:
    return text in SAYS_MISSING or text in MARKS


def _is_number(text: str) -> bool:
    return text not in ("", "-", ".") and bool(PLAIN.fullmatch(text) or SMALL.fullmatch(text))
