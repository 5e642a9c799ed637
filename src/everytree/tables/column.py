"""One column: how it is fitted to the values of a table, and which later values it can read."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from everytree import _kernels
from everytree.base.arrays import LARGEST_CODE, check_lengths
from everytree.base.checks import refuse_no_weight, row_weights
from everytree.base.errors import ArgumentError, ArgumentTypeError, ChangedColumnError
from everytree.tables.cutting import cut_points
from everytree.tables.formulas import Formula
from everytree.tables.reading import Kind, Label, Values, label_numbers, number_labels, refuse_infinity
from everytree.tables.texts import TextRule, as_numbers

SAMPLE_ROWS = 200_000
"""Maximum number of rows from which cut points are taken; from longer tables they are drawn with a fixed seed."""


def missing_code(dtype: DTypeLike) -> int:
    """The code of a missing value: 255 in `uint8`, 65535 in `uint16`."""
    return int(np.iinfo(dtype).max)


def unseen_code(dtype: DTypeLike) -> int:
    """The code of a category that was not there at fit: 254 in `uint8`, 65534 in `uint16`."""
    return missing_code(dtype) - 1


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a schema, checked and frozen."""

    name: str | None
    kind: Kind  # {"numeric", "boolean", "datetime", "categorical"}
    # (n_codes - 1,) float64: ascending; empty in a categorical column
    cuts: NDArray[np.float64] = ()  # type: ignore[assignment]
    # tuple of str, int, float or bool: in the order of their codes; empty in all other columns
    categories: tuple[Label, ...] = ()
    has_missing: bool = False  # whether rows of fit had missing values here
    single: bool = False  # whether numbers are rounded to float32 before they are compared with the cuts
    # name or position of the input column that is read; None if it is the name or position of this one
    source: str | int | None = None
    # The code of each category, or of the numbers up to each cut and beyond the last; -1 is missing. Empty if each has
    # its own code.
    groups: tuple[int, ...] = ()
    # Whether the groups are pools of categories with similar mean targets (see `tables/pooling.py`). A category that is
    # not listed is then one that was not there at fit; in other columns with groups it is missing.
    pooled: bool = False
    # The pool of a category that was not there at fit: that of the overall mean. -1 if such categories have the
    # reserved code, as in all columns that are not pooled.
    new_code: int = -1
    # how the text that the column held at fit is read as numbers or dates (see `tables/texts.py`); None if it held none
    text: TextRule | None = None
    # (int, int): Seed and number of a tree of an online forest: text stands for a number from 0 to 1, the position that
    # its hash has in this tree, so that no categories are listed. None in all other columns.
    hashed: tuple[int, int] | None = None
    # how the numbers follow from those of two other columns of the schema; None where the column reads an input
    formula: Formula | None = None

    def __post_init__(self) -> None:
        if not (self.name is None or isinstance(self.name, str)):
            raise TypeError(f"name must be a str or None, but is {self.name!r}")
        label = "a column" if self.name is None else f"column {self.name!r}"
        if self.kind not in get_args(Kind):
            raise ValueError(f"kind of {label} must be one of {get_args(Kind)}, but is {self.kind!r}")
        cuts = np.array(self.cuts, dtype=np.float64)
        if cuts.ndim != 1 or not np.isfinite(cuts).all() or not (cuts[:-1] < cuts[1:]).all():
            raise ValueError(f"cuts of {label} must be finite and ascending, but are {self.cuts!r}")
        cuts.flags.writeable = False
        categories = tuple(self.categories)
        for value in categories:
            if type(value) not in (str, int, float, bool) or (isinstance(value, float) and not math.isfinite(value)):
                raise TypeError(f"categories of {label} must be str, int, float or bool, but one is {value!r}")
        if len(set(categories)) < len(categories):
            raise ValueError(f"categories of {label} hold {Counter(categories).most_common(1)[0][0]!r} twice")
        if (len(cuts) or self.single) if self.kind == "categorical" else len(categories):
            raise ValueError(f"{label} is {self.kind}: it has cuts or categories of another kind")
        if isinstance(self.source, bool) or not isinstance(self.source, str | int | None):
            raise TypeError(f"source of {label} must be a name, a place or None, but is {self.source!r}")
        if isinstance(self.source, int) and self.source < 0:
            raise ValueError(f"source of {label} must be a name or a place from 0 on, but is {self.source}")
        groups = tuple(map(int, self.groups))
        n_values = len(categories) if self.kind == "categorical" else len(cuts) + 1
        if groups and (len(groups) != n_values or min(groups) < -1):
            raise ValueError(f"groups of {label} must be {n_values} codes from -1 on, but are {self.groups!r}")
        if self.pooled and (self.kind != "categorical" or len(groups) != n_values or min(groups, default=0) < 0):
            raise ValueError(f"{label} is pooled: it must be categorical, with a code from 0 on for each category")
        new_code = int(self.new_code)
        if new_code != -1 and not (self.pooled and 0 <= new_code <= max(groups, default=-1)):
            raise ValueError(f"new_code of {label} must be the code of one of its pools or -1, but is {new_code}")
        if self.text is not None and self.kind != ("numeric" if self.text == "number" else "datetime"):
            raise ValueError(f"{label} is {self.kind}, but its text is read as {self.text!r}")
        if self.text is not None and self.text not in get_args(TextRule):
            raise ValueError(f"text of {label} must be None or one of {get_args(TextRule)}, but is {self.text!r}")
        hashed = None if self.hashed is None else tuple(self.hashed)
        if hashed is not None and not (
            self.kind == "numeric" and self.text is None and len(hashed) == 2
            and all(type(number) is int and 0 <= number < 2**63 for number in hashed)
        ):  # fmt: skip
            raise ValueError(f"hashed of {label} must be seed and tree, of a numeric column, but is {self.hashed!r}")
        formula = None if self.formula is None else Formula(*self.formula)
        if formula is not None:
            formula.check(label)
            if self.kind != "numeric" or groups or self.single or (self.source, self.text, hashed) != (None,) * 3:
                raise ValueError(f"{label} has a formula: it must be numeric, and read no input")
        most = LARGEST_CODE if self.kind == "categorical" else LARGEST_CODE + 1
        if (max(groups) + 1 if groups else n_values) > most:
            what = f"{max(groups) + 1} groups" if groups else f"{len(categories)} categories"
            what = what if groups or categories else f"{len(cuts)} cuts"
            raise ValueError(f"{label} has {what}, but at most {most} codes are possible")
        object.__setattr__(self, "cuts", cuts)
        object.__setattr__(self, "categories", categories)
        object.__setattr__(self, "has_missing", bool(self.has_missing))
        object.__setattr__(self, "single", bool(self.single))
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "pooled", bool(self.pooled))
        object.__setattr__(self, "new_code", new_code)
        object.__setattr__(self, "hashed", hashed)
        object.__setattr__(self, "formula", formula)

    @property
    def n_codes(self) -> int:
        """Number of codes, without those for missing and unseen values; at least one."""
        if self.groups:
            return max(1, max(self.groups) + 1)
        return max(1, len(self.categories)) if self.kind == "categorical" else len(self.cuts) + 1

    @property
    def has_unseen(self) -> bool:
        """Whether categories that were not there at fit have the reserved code; else it is `new_code` or missing."""
        return self.kind == "categorical" and self.new_code < 0 and (self.pooled or not self.groups)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; floats keep every bit."""
        return {
            "name": self.name, "kind": self.kind, "cuts": self.cuts.tolist(), "categories": list(self.categories),
            "has_missing": self.has_missing, "single": self.single, "source": self.source, "groups": list(self.groups),
            "pooled": self.pooled, "new_code": self.new_code, "text": self.text, "hashed": self.hashed,
            "formula": self.formula,
        }  # fmt: skip

    def _key(self) -> tuple[Any, ...]:
        types = tuple(map(type, self.categories))
        numbers = (self.cuts.tobytes(), self.single, self.text, self.hashed, self.formula)
        groups = (self.groups, self.pooled, self.new_code)
        return self.name, self.kind, numbers, self.categories, types, self.has_missing, self.source, groups

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Column) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key())

    def __reduce__(self) -> tuple[Any, ...]:
        return Column, tuple(self.to_dict().values())


def free_name(name: str, taken: set[str | None]) -> str:
    """Return the name, with a number if a column or an input has it already."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name} #{number}"
    taken.add(found)
    return found


# ---- fitting --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FitRows:
    """The rows of fit: their weights, their targets, and which of them count."""

    n_rows: int
    targets: NDArray[np.float64] | None
    weight: NDArray[np.float64] | None
    counted: NDArray[np.int64] | slice
    sample: NDArray[np.int64] | slice

    @property
    def is_sampled(self) -> bool:
        """Whether the sample leaves out some of the rows that count."""
        n_counted = self.n_rows if isinstance(self.counted, slice) else len(self.counted)
        return n_counted > SAMPLE_ROWS

    @classmethod
    def of(cls, n_rows: int, y: ArrayLike | None, sample_weight: ArrayLike | None) -> FitRows:
        check_lengths(n_rows, {"y": y, "sample_weight": sample_weight})
        targets = None if y is None else _targets(y)
        if sample_weight is None:
            rows = slice(None) if n_rows <= SAMPLE_ROWS else _sampled(np.arange(n_rows))
            return cls(n_rows, targets, None, slice(None), rows)
        weight = row_weights(sample_weight)
        refuse_no_weight(weight)
        counted = np.flatnonzero(weight)
        return cls(n_rows, targets, weight, counted, _sampled(counted))


def _sampled(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(rows) <= SAMPLE_ROWS:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, SAMPLE_ROWS, replace=False))


def _targets(y: ArrayLike) -> NDArray[np.float64]:
    targets = np.asarray(y)
    if targets.dtype.kind not in "biuf" or targets.ndim > 2:
        found = f"dtype {targets.dtype}, shape {targets.shape}"
        raise ArgumentTypeError("y", f"must be numbers, one or several per row, but has {found}")
    targets = targets.astype(np.float64).reshape(len(targets), -1)
    if not np.isfinite(targets).all():
        row, k = np.argwhere(~np.isfinite(targets))[0]
        raise ArgumentError("y", "targets must be finite", row=int(row), value=str(targets[row, k]))
    return targets


def fit_numbers(name: str | None, label: str, values: Values, rows: FitRows, max_bins: int) -> Column:
    """Fit a column of numbers."""
    if values.numbers is None:
        return Column(name, "numeric", has_missing=True)
    kind: Kind = values.kind or "numeric"
    there = refuse_infinity(label, values.numbers)
    has_missing = there is not None and not there[rows.counted].all()
    if kind == "boolean":
        return Column(name, kind, np.array([0.5]), has_missing=has_missing)
    if rows.is_sampled:  # if there are few distinct numbers, all of them count, also those of rare rows
        distinct, _, _ = _kernels.scan_numbers(values.numbers[rows.counted], np.empty(0), max_bins)
        if distinct is not None:
            return Column(name, kind, cut_points(np.asarray(distinct), None, max_bins), has_missing=has_missing)
    numbers = values.numbers[rows.sample].astype(np.float64)
    weight = None if rows.weight is None else rows.weight[rows.sample]
    if there is not None:
        known = there[rows.sample]
        numbers, weight = numbers[known], None if weight is None else weight[known]
    return Column(name, kind, cut_points(numbers, weight, max_bins), has_missing=has_missing)


def fit_text(name: str | None, label: str, values: Values, rule: TextRule, rows: FitRows, max_bins: int) -> Column:
    """Fit a column of text that holds numbers or dates."""
    return replace(fit_numbers(name, label, as_numbers(values, rule, label), rows, max_bins), text=rule)


def labels_and_index(label: str, values: Values, n_rows: int) -> tuple[tuple[Label, ...], NDArray[Any]]:
    """The distinct categories of a column, and their index for each row; -1 where missing."""
    if values.index is not None:
        return values.labels, values.index
    if values.numbers is None:
        return (), np.full(n_rows, -1)
    labels, index = number_labels(label, values.numbers)
    return (tuple(map(bool, labels)) if values.kind == "boolean" else labels), index


# ---- later values ---------------------------------------------------------------------------------------------------


def read_numbers(column: Column, label: str, values: Values, n_rows: int) -> NDArray[Any]:
    """Read values for a column of numbers; text that contains numbers is accepted, dates for numbers are not."""
    if column.hashed is not None:
        return _positions(column, column.hashed, label, values, n_rows)
    if column.text is not None:
        values = as_numbers(values, column.text, label)
    if values.numbers is not None and (column.kind == "datetime") == (values.kind == "datetime"):
        if column.single and values.numbers.dtype.kind in "iu":  # by way of float64 they would be rounded twice
            return values.numbers.astype(np.float32)
        return values.numbers
    row = _first_known(values)
    if row is None:
        return np.full(n_rows, np.nan)
    if values.index is not None and column.kind != "datetime":
        numbers, row = label_numbers(values)
        if numbers is not None:
            return numbers
    raise _changed(column, label, values, row)


def _positions(column: Column, hashed: tuple[int, int], label: str, values: Values, n_rows: int) -> NDArray[np.float64]:
    """The position of each text in a tree; labels of a categorical type are text."""
    row = _first_known(values)
    if row is None:
        return np.full(n_rows, np.nan)
    if values.index is None or not (values.declared or all(isinstance(name, str) for name in values.labels)):
        raise _changed(column, label, values, row)
    positions = _kernels.category_positions(list(map(str, values.labels)), *hashed)
    return np.asarray(np.append(positions, np.nan)[values.index])  # -1, a missing value, selects the last


def read_labels(column: Column, label: str, values: Values, n_rows: int) -> tuple[tuple[Label, ...], NDArray[Any]]:
    """Read values for a column of categories: distinct ones, and their index for each row; text is never a number."""
    row = _first_known(values)
    if row is None:
        return (), np.full(n_rows, -1)
    if values.kind == "datetime":
        raise _changed(column, label, values, row)
    labels, index = labels_and_index(label, values, n_rows)
    text_known = {isinstance(value, str) for value in column.categories}
    if len(text_known) == 1 and text_known.isdisjoint(isinstance(value, str) for value in labels):
        raise _changed(column, label, values, row)
    return labels, index


def _first_known(values: Values) -> int | None:
    """Return the first row that has a value."""
    if values.index is not None:
        known = values.index >= 0
    elif values.numbers is not None:
        known = values.numbers == values.numbers
    else:
        return None
    row = int(np.argmax(known))
    return row if known[row] else None


def _changed(column: Column, label: str, values: Values, row: int) -> ValueError:
    example = f" (such as {column.categories[0]!r})" if column.categories else ""
    value = values.labels[values.index[row]] if values.index is not None else values.numbers[row].item()  # type: ignore[index]
    kind = column.kind if column.hashed is None else "text"
    must = f"was {kind}{example} when the schema was fitted, but is {values.kind} now"
    return ChangedColumnError("X", must, label, row, repr(value))
