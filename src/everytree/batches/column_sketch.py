"""One column of a table that is too long to keep."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.tables.cutting import cut_points
from everytree.tables.reading import Kind, Label, Values, infinity, number_labels
from everytree.tables.texts import may_be_read

MAX_LABELS = 1_000_000
"""Maximum number of categories: they are kept in memory, and in the model."""


class ColumnSketch:
    """Of what kind a column is, what is missing, its categories, and its distinct numbers while they are few.

    `label`: what errors call it. `listed`: whether it is to be read as categories; None leaves it to its type.
    `max_bins`: more distinct numbers than this are not told apart.
    """

    def __init__(self, label: str, listed: bool | None, max_bins: int) -> None:
        self.label, self.listed, self.max_bins = label, listed, max_bins
        self.kind: Kind | None = None  # of the values; None while all are missing
        self._empty_kind: Kind | None = None  # what a column of NaN and nothing else would be
        self.has_missing = False
        self._numbers: FloatArray | None = np.empty(0)  # distinct ones; None where there are too many
        self._labels: dict[Label, int] = {}
        self._declared = self._ordered = False
        self._zoned: bool | None = None  # of dates
        self._is_text: bool | None = None  # whether labels are plain text

    def like(self) -> ColumnSketch:
        """A sketch of the same column without rows."""
        return ColumnSketch(self.label, self.listed, self.max_bins)

    @property
    def is_categorical(self) -> bool:
        return self.kind == "categorical" or bool(self.listed)

    def update(self, values: Values, n_rows: int) -> NDArray[Any]:
        """Look at more values; what a sample is to keep of each: a number, or the place of its label."""
        if values.kind is None or _is_all_nan(values):
            self._empty_kind = self._empty_kind or values.kind
            self.has_missing = True
            return np.full(n_rows, np.nan)
        self._agree(values.kind, values.zoned)
        if not (values.is_text and may_be_read(values)):
            self.refuse_categories(values)
        if self.is_categorical:
            return self._more_labels(values)
        assert values.numbers is not None
        if values.kind == "boolean":
            self._numbers = None  # they are cut between 0 and 1 in any case
        return self._more_numbers(values.numbers)

    def merge(self, other: ColumnSketch) -> NDArray[np.int64] | None:
        """Merge another sketch; return the mapping that renumbers its labels, missing values last."""
        self.has_missing |= other.has_missing
        self._empty_kind = self._empty_kind or other._empty_kind
        if other.kind is None:
            return np.array([-1]) if self.is_categorical else None
        self._agree(other.kind, bool(other._zoned))
        if not self.is_categorical:
            self._numbers = self._with(other._numbers)
            return None
        self._note_text(bool(other._is_text))
        return self._places(tuple(other._labels), other._declared, other._ordered)

    @property
    def cuts(self) -> FloatArray | None:
        """Cuts between all distinct numbers, where there are no more of them than bins and the kind leaves a choice."""
        if self._numbers is None or self.kind not in ("numeric", "datetime"):
            return None
        return cut_points(self._numbers, None, self.max_bins)

    def values(self, kept: NDArray[Any]) -> Values:
        """Values of the sample, as a column."""
        kind = self.kind or self._empty_kind
        if kind is None:
            return Values(None)
        if not self.is_categorical:
            return Values(kind, kept)
        index = np.nan_to_num(kept, nan=-1.0).astype(np.int64)
        labels = tuple(self._labels)
        is_text = bool(self._is_text) and not self.listed
        return Values("categorical", None, _one_type(labels), index, True, self._ordered, is_text=is_text)

    def refuse_categories(self, values: Values) -> None:
        """Raise if values are categories in a column that is to hold none."""
        if self.listed is False and values.kind == "categorical":
            raise ValueError(
                f"{self.label} holds categories, {str(values.labels[:3])[1:-1]}, but categorical_features does not "
                "name it; name it there, or pass 'from_dtype'"
            )

    # ---- how --------------------------------------------------------------------------------------------------------

    def _agree(self, kind: Kind, zoned: bool) -> None:
        if self.kind is not None and kind != self.kind:
            raise ValueError(f"{self.label} is {kind}, but was {self.kind} before; a column must be of one kind")
        if self.listed and kind == "datetime":
            raise ValueError(f"categorical_features names {self.label}, which holds dates; make them strings first")
        if kind == "datetime" and self._zoned not in (None, zoned):
            now, before = ("a time zone", "none") if zoned else ("no time zone", "one")
            raise ValueError(
                f"{self.label} holds dates with {now}, but had {before} before; the dates of a column must all have a "
                "time zone or none"
            )
        self.kind, self._zoned = kind, zoned

    def _more_numbers(self, numbers: NDArray[Any]) -> NDArray[Any]:
        self._numbers, has_missing, infinite = _kernels.scan_numbers(numbers, self._numbers, self.max_bins)
        if infinite >= 0:
            raise infinity(self.label, infinite, float(numbers[infinite]))
        self.has_missing |= has_missing
        return numbers

    def _with(self, numbers: FloatArray | None) -> FloatArray | None:
        if self._numbers is None or numbers is None:
            return None
        together = np.union1d(self._numbers, numbers)
        return together if len(together) <= self.max_bins else None

    def _note_text(self, is_text: bool) -> None:
        self._is_text = is_text and self._is_text is not False

    def _more_labels(self, values: Values) -> NDArray[np.int64]:
        self._note_text(values.is_text)
        if values.index is None:
            assert values.numbers is not None
            labels, index = number_labels(self.label, values.numbers)
            labels = tuple(map(bool, labels)) if values.kind == "boolean" else labels
        else:
            labels, index = values.labels, values.index
        n_rows_of = np.bincount(index + 1, minlength=len(labels) + 1)
        self.has_missing |= bool(n_rows_of[0])
        lookup = np.full(len(labels) + 1, -1)  # -1 of a missing value picks the last entry, -1
        used = np.arange(len(labels)) if values.declared else np.flatnonzero(n_rows_of[1:])
        lookup[used] = self._places(tuple(labels[k] for k in used), values.declared, values.ordered)[:-1]
        places: NDArray[np.int64] = lookup[index]
        return places

    def _places(self, labels: tuple[Label, ...], declared: bool, ordered: bool) -> NDArray[np.int64]:
        """Where labels are here, new ones at the end, and -1 for missing values at the end of all."""
        if (ordered or self._ordered) and self._labels and labels != tuple(self._labels):
            raise ValueError(
                f"{self.label} has ordered categories {_some(labels)}, but had {_some(tuple(self._labels))} before"
            )
        self._declared, self._ordered = self._declared or declared, self._ordered or ordered
        places = [self._labels.setdefault(label, len(self._labels)) for label in labels]
        if len(self._labels) > MAX_LABELS:
            raise ValueError(
                f"{self.label} has more than {MAX_LABELS} categories, and all of them are kept; leave it out, or make "
                "fewer of them"
            )
        return np.array([*places, -1])


def _is_all_nan(values: Values) -> bool:
    """A batch in which a column of text has no value may well come as one of numbers, none of which is there."""
    numbers = values.numbers
    if values.kind != "numeric" or numbers is None or numbers.dtype.kind != "f" or len(numbers) == 0:
        return False
    return bool(np.isnan(numbers[0]) and np.isnan(numbers).all())


def _one_type(labels: tuple[Label, ...]) -> tuple[Label, ...]:
    """Numbers that are not all whole are floats, the whole ones among them too, whichever batch they came from."""
    if any(isinstance(label, float) and not label.is_integer() for label in labels):
        return tuple(map(float, labels))
    return labels


def _some(labels: tuple[Label, ...]) -> str:
    return str([*labels[:5], "..."] if len(labels) > 5 else [*labels])
