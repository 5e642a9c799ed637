"""A column of categories: which columns of codes are made of it.

Trees split codes at thresholds, so it matters in which order categories stand. An order by the targets of the rows puts
each row's own target into its code: where categories have few rows or columns are many, noise then looks like skill.
Three kinds of codes are free of that:

- The **natural order**: numbers and texts that contain numbers by these, other texts alphabetically.
- **Two orders** of three categories: between them, each of the three ways to split them in two is possible.
- The **mean targets** of the categories, cross-fitted (see `pooling.py`): rows of fit are coded by the targets of other
  rows, and rows of a category that was not there at fit by the mean of all.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import LARGEST_CODE, FloatArray
from everytree.base.errors import ArgumentError
from everytree.tables.column import Column, FitRows, labels_and_index
from everytree.tables.cutting import sums_of
from everytree.tables.pooling import CategoryMeans, directions, pools
from everytree.tables.reading import Label, Values

TWO_ORDERS = (0, 1, 2), (1, 0, 2)
"""Of three categories: in one or the other order, each category stands at an end."""

MAX_OWN_CODES = 254
"""A column of more categories has no codes for each of them: these fit into a byte, beside the two reserved ones."""

MAX_NEW = 0.1
"""Nor has one whose categories are new in more than this share of further rows."""

MANY = 30
"""From so many categories on, one order by mean targets is too few where there are several targets."""

MAX_AT_ONCE = 63
"""Largest number of categories that a split into all of them can have; missing ones are one more."""

MAX_POOLS_AT_ONCE = 9
"""Number of codes by mean targets, plus one, where all splits are summed: the time grows fast with the codes of a
column."""

RARE = 15
"""Mean number of rows of a category below which many categories are too rare for a child each."""

MIN_NAMES, NAME_SHARE = 20, 0.9
"""A column of so many texts, of which this share of the rows has one of its own, holds names."""


def fit_categories(
    name: str | None, label: str, values: Values, rows: FitRows, max_bins: int, *, at_once: bool = False
) -> list[Column]:
    """Fit a column of categories: one column of codes or several, all with the same name.

    With `at_once`, splits go to all categories and not by thresholds, so that their order does not matter.
    """
    if values.kind == "datetime":
        raise ValueError(f"categorical_features names {label}, which holds dates; make them strings first")
    labels, index = labels_and_index(label, values, rows.n_rows)
    counted = index[rows.counted]
    has_missing = bool((counted < 0).any())
    if values.ordered:
        _refuse_too_many(label, labels)
        return [Column(name, "categorical", categories=labels, has_missing=has_missing)]
    present = range(len(labels)) if values.declared else np.unique(counted[counted >= 0]).tolist()
    order = sorted(present, key=lambda place: natural_key(labels[place]))
    kept = tuple(labels[place] for place in order)
    own = Column(name, "categorical", has_missing=has_missing)
    if rows.targets is None:
        _refuse_too_many(label, kept)
        return [replace(own, categories=kept)]
    new_place = np.full(len(labels) + 1, -1)  # -1, a missing value, selects the last entry, -1
    new_place[order] = np.arange(len(order))
    places = new_place[index]
    known = places >= 0 if rows.weight is None else (places >= 0) & (rows.weight > 0.0)
    weight = None if rows.weight is None else rows.weight[known]
    n_rows_of = _rows_of(places[known], weight, len(kept))
    _warn_about_names(label, kept, n_rows_of)
    has_new = share_of_new(n_rows_of) > MAX_NEW
    if at_once:
        is_rare = len(kept) >= MANY and n_rows_of.sum() < RARE * len(kept)
        if len(kept) <= MAX_AT_ONCE and not is_rare:
            return [replace(own, categories=kept)]
        fewer = min(max_bins, MAX_POOLS_AT_ONCE)
        return _by_means(own, kept, places[known], rows.targets[known], weight, fewer, has_new)
    if len(kept) <= 2:
        return [replace(own, categories=kept)]
    if len(kept) == len(TWO_ORDERS[0]):
        return [replace(own, categories=tuple(kept[place] for place in each)) for each in TWO_ORDERS]
    by_means = _by_means(own, kept, places[known], rows.targets[known], weight, max_bins, has_new)
    has_own_codes = len(kept) <= MAX_OWN_CODES and not has_new
    return [replace(own, categories=kept), *by_means] if has_own_codes else by_means


def natural_key(label: Label) -> tuple[bool, tuple[tuple[int, float, str], ...], Label]:
    """Numbers stand before texts, texts that are numbers before others, and numbers within texts count as numbers."""
    if not isinstance(label, str):
        return False, (), label
    number = _as_number(label)
    if number is not None:
        return True, ((0, number, ""),), label
    parts = (part for part in re.split(r"(\d+)", label) if part)
    return True, tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts), label


def share_of_new(n_rows_of: FloatArray) -> float:
    """Good and Turing's estimate of the share of further rows with a category that has no row yet: those of one row."""
    return float((n_rows_of == 1.0).sum() / max(n_rows_of.sum(), 1.0))


def _rows_of(index: NDArray[np.int64], weight: FloatArray | None, n_labels: int) -> FloatArray:
    """(n_labels,) rows of each category; a row of weight 2 is two, one of a smaller weight is one."""
    counts = np.bincount(index, minlength=n_labels).astype(np.float64)
    return counts if weight is None else np.maximum(sums_of(index, weight, n_labels), counts)


def _as_number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _by_means(
    own: Column,
    labels: Sequence[Label],
    index: NDArray[np.int64],
    targets: FloatArray,
    weight: FloatArray | None,
    max_bins: int,
    has_new: bool,
) -> list[Column]:
    """Codes by mean targets; where there are several targets and many categories, in up to four directions."""
    ways = directions(index, len(labels), targets, weight)
    if len(labels) < MANY:
        ways = ways[:1]
    return [
        _pooled(own, labels, CategoryMeans.fit(index, len(labels), targets @ way, weight), max_bins, has_new)
        for way in ways
    ]


def _pooled(own: Column, labels: Sequence[Label], means: CategoryMeans, max_bins: int, has_new: bool) -> Column:
    """A column whose categories share codes, listed in the order of their estimates.

    Where many further rows have new categories, many rows of fit have one that no other row has. Cross-fitted, these
    have the code of the mean of all, so that trees have learnt what it says, and new categories get it too. Elsewhere a
    row of a new category ends at the first node that splits on the column.
    """
    # One code less than numbers have, so that categories never need more bytes than these.
    pool, of_mean = pools(means, max(max_bins - 1, 2))
    order = np.argsort(means.of_all, kind="stable")
    return replace(
        own, categories=tuple(labels[index] for index in order), groups=tuple(pool[order].tolist()), pooled=True,
        new_code=of_mean if has_new else -1,
    )  # fmt: skip


def _refuse_too_many(label: str, labels: Sequence[Any]) -> None:
    if len(labels) > LARGEST_CODE:
        raise ArgumentError("X", f"has {len(labels)} categories, but at most {LARGEST_CODE} are possible", label)


def _warn_about_names(label: str, labels: Sequence[Label], n_rows_of: FloatArray) -> None:
    """Warn of texts that differ in nearly every row."""
    if len(labels) < MIN_NAMES or share_of_new(n_rows_of) < NAME_SHARE or not isinstance(labels[0], str):
        return
    warnings.warn(
        f"X: {label} has {len(labels)} different texts in {int(n_rows_of.sum())} rows, such as {labels[0]!r}: nearly "
        "every row has its own, so that it says little about new rows. Leave it out, or take from it what rows share",
        UserWarning,
        stacklevel=2,
    )
