"""From dicts to rows of numbers: the features, and the type of each feature's values."""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.errors import ArgumentError

NOMINAL, FIXED_RANGE, DATE = 1, 2, 4
"""Flags of a feature's type: the kernel reads the first two, the last one says what the numbers were."""

Range = tuple[float, float]
Row = dict[Any, Any]


class Encoded(NamedTuple):
    """Rows as numbers, and the features after these rows."""

    values: FloatArray
    features: Features


@dataclass(frozen=True)
class Features:
    """The features seen so far. Immutable: rows with new features make a new object."""

    index: dict[Hashable, int] = field(default_factory=dict)  # column of each feature
    # (width,) uint8: kind of each column; those beyond the last feature are spare
    kinds: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(0, dtype=np.uint8))

    def column_of(self, feature: Hashable) -> int:
        """The column of a feature, or an error that names those there are."""
        if feature not in self.index:
            raise ArgumentError("feature", f"is {feature!r}, but the features are {list(self.index)}")
        return self.index[feature]

    def known(self, rows: list[Row]) -> FloatArray:
        """(n_rows, width) values, NaN where a row has none; unknown features are left out."""
        return np.asarray(_kernels.encode_dicts(rows, self.index, self.kinds, simplify)[0])

    def learn(self, rows: list[Row], ranges: Mapping[Hashable, Range]) -> Encoded:
        """Like `known`, after adding the new features."""
        values, new = _kernels.encode_dicts(rows, self.index, self.kinds, simplify)
        if not new:
            return Encoded(values, self)
        grown = self._with(new, {name for name, _ in new if _is_date(name, rows)}, ranges)
        return Encoded(grown.known(rows), grown)

    def _with(self, new: list[tuple[Any, bool]], dates: set[Any], ranges: Mapping[Hashable, Range]) -> Features:
        """Add features in an order that does not depend on that of the dict."""
        first, needed = len(self.index), len(self.index) + len(new)
        width = len(self.kinds)
        kinds = np.zeros(width if needed <= width else max(needed, width + width // 2), dtype=np.uint8)
        kinds[:width] = self.kinds
        index = dict(self.index)
        for column, (name, nominal) in enumerate(sorted(new, key=lambda pair: repr(pair[0])), start=first):
            if nominal and name in ranges:
                raise TypeError(f"ranges[{name!r}] is for numbers, but the feature is a text")
            index[name] = column
            kinds[column] = NOMINAL if nominal else FIXED_RANGE * (name in ranges) + DATE * (name in dates)
        return Features(index, kinds)


def simplify(value: Any) -> Any:
    """Turn values of NumPy and pandas, dates and decimals into Python numbers; return others unchanged."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        value = value.astype(f"{value.dtype.name.partition('[')[0]}[us]")
    if isinstance(value, np.generic):
        value = value.item()
    if is_missing(value):
        return None
    if isinstance(value, datetime.date):
        return _days(value)
    if isinstance(value, datetime.timedelta):
        return value / datetime.timedelta(days=1)
    return float(value) if isinstance(value, numbers.Real | decimal.Decimal) else value


def _is_date(name: Any, rows: Iterable[Row]) -> bool:
    """Whether the first value of a feature is a date."""
    value = next((row[name] for row in rows if not is_missing(row.get(name))), None)
    return isinstance(value, datetime.date | np.datetime64)


def _days(moment: datetime.date) -> float:
    """Days since 1970; a time without a zone is taken as written, whatever the zone of this machine."""
    if not isinstance(moment, datetime.datetime):
        moment = datetime.datetime.combine(moment, datetime.time())
    start = datetime.datetime(1970, 1, 1, tzinfo=None if moment.tzinfo is None else datetime.UTC)
    return (moment - start) / datetime.timedelta(days=1)


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN or their NumPy and pandas forms: not equal to itself, or without a truth value."""
    kind = type(value)
    if kind is str or kind is bool or kind is int:  # nearly all values, decided at once
        return False
    if value is None or kind.__name__ == "NAType":
        return True
    if isinstance(value, decimal.Decimal):
        return value.is_nan()
    return isinstance(value, numbers.Real | np.generic | datetime.date) and bool(value != value)


def as_dicts(rows: Iterable[Any]) -> list[Row]:
    """Return rows as plain dicts, for one call."""
    return [row if isinstance(row, dict) else _as_dict(row) for row in rows]


def _as_dict(row: Any) -> Row:
    if not isinstance(row, Mapping):
        raise TypeError(f"x must be a dict from features to values, but is of type {type(row).__name__}")
    return dict(row)


def check_ranges(ranges: Any) -> dict[Hashable, Range]:
    """Check the lowest and highest values of features that the user gives."""
    if ranges is None:
        return {}
    if not isinstance(ranges, Mapping):
        raise TypeError(f"ranges must be a dict from features to (low, high), but is {ranges!r}")
    for name, pair in ranges.items():
        try:
            low, high = map(float, pair)
        except (TypeError, ValueError):
            raise TypeError(f"ranges[{name!r}] must be (low, high), but is {pair!r}") from None
        if not (-_kernels.LARGEST_FEATURE <= low < high <= _kernels.LARGEST_FEATURE):
            raise ValueError(f"ranges[{name!r}] must be (low, high) with low < high, but is {pair!r}")
    return {name: (float(low), float(high)) for name, (low, high) in ranges.items()}
