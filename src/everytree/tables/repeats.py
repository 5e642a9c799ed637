"""Rows that belong together: those of a named group, and those that repeat each other.

A row cannot judge a tree that was grown on a copy of it. Rows that belong together are therefore on one side of every
sample, and where rows are left out, they are left out together.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray, as_labels
from everytree.base.errors import ArgumentError

EXPECTED_SHARE = 1e-3
"""Equal rows are repeats if independent columns alone would give less than this share of their pairs. A few equal rows
among many that differ are judged by this; columns that depend on each other give hundreds of times the pairs."""

FEW_EXPECTED = 0.1
"""A row of which independent columns give fewer copies than this would mostly stand alone."""

MORE = 10.0
"""Equal rows of columns with few values are said if even so many times the copies which independent columns give would
leave most of them alone: columns mostly depend on each other."""

MUCH_MORE = 100.0
"""A row has copies that are no coincidence if it has this many times those which independent columns give. Columns that
depend on each other in pairs, as town and country do, give fewer."""

MOST = 0.75
"""Share of the rows that would mostly stand alone which must have such copies for rows to be repeats. Where columns of
few values depend on each other, some combinations are rare, and rows with them mostly do stand alone."""

ENOUGH = 0.25
"""Share of all rows that must have such copies."""


def read_groups(groups: Any, n_rows: int) -> NDArray[np.int64] | None:
    """(n_rows,) numbers from 0 on, equal for rows of one group; None if no groups are given."""
    if groups is None:
        return None
    labels = as_labels(groups)
    if labels.ndim != 1 or len(labels) != n_rows:
        raise ArgumentError(
            "groups", f"must have one entry for each of the {n_rows} rows, but has shape {labels.shape}"
        )
    missing = np.array([label is None or label != label for label in labels.tolist()])
    if missing.any():
        row = int(np.argmax(missing))
        raise ArgumentError("groups", "must name the group of the row", row=row, value=repr(labels.tolist()[row]))
    try:
        return np.unique(labels, return_inverse=True)[1].astype(np.int64).reshape(n_rows)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels.tolist()})
        raise ArgumentError("groups", f"mixes {kinds}: names of groups must be of one kind") from None


def repeated_rows(codes: NDArray[Any]) -> NDArray[np.int64] | None:
    """(n_rows,) numbers from 0 on, equal for rows with equal codes; None if such rows do not count as repeats.

    That is so if the columns have so few values that equal rows are expected by chance. The numbers depend on the
    codes alone and not on the order of rows, so that a row of weight 2 is the same as two rows.
    """
    group, n_copies = _equal_rows(codes)
    return group if _are_repeats(codes, n_copies) else None


def row_groups(codes: NDArray[Any], named: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    """(n_rows,) numbers from 0 on, equal for rows that belong together: by name, else by repetition.

    None if each row is its own group.
    """
    if named is not None:
        return consecutive(named)
    group, n_copies = _equal_rows(codes)
    are_repeats = _are_repeats(codes, n_copies)
    _warn_of_equal_rows(codes, n_copies, are_repeats=are_repeats)
    return group if are_repeats else None


def rows_repeat(codes: NDArray[Any], named: NDArray[np.int64] | None) -> bool:
    """Whether rows say something of each other: by name, since more are equal than by chance, or most are equal."""
    if named is not None:
        return len(np.unique(named)) < len(named)
    _, n_copies = _equal_rows(codes)
    return bool(n_copies.any()) and (bool(np.mean(n_copies > 0) > 0.5) or _are_repeats(codes, n_copies))


def consecutive(group: NDArray[Any]) -> NDArray[np.int64]:
    """Renumber groups from 0 on without gaps."""
    return np.unique(group, return_inverse=True)[1].astype(np.int64).reshape(len(group))


def _equal_rows(codes: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers from 0 on that are equal for equal rows, and the number of other rows that each row equals."""
    _, group, counts = np.unique(row_hashes(codes), return_inverse=True, return_counts=True)
    group = group.astype(np.int64).reshape(len(codes))
    return group, counts[group] - 1


def _are_repeats(codes: NDArray[Any], n_copies: NDArray[np.int64]) -> bool:
    """Whether equal rows are more than coincidence; so too where there are none."""
    n_pairs = float(n_copies.sum()) / 2.0
    if n_pairs == 0.0 or _expected_pairs(codes) < EXPECTED_SHARE * n_pairs:
        return True
    return _most_rows_have_copies(codes, n_copies)


def _most_rows_have_copies(codes: NDArray[Any], n_copies: NDArray[np.int64]) -> bool:
    """Whether nearly all rows that would stand alone by chance have copies instead, as repeated measurements do.

    Rows are counted, not pairs: a hundred rows with the commonest value of every column have as many pairs as thousands
    of rows that occur twice, and hide them.
    """
    n_rows = len(codes)
    if np.count_nonzero(n_copies) < ENOUGH * n_rows:
        return False
    expected = _expected_copies(_without_coarser(codes))
    alone = expected < FEW_EXPECTED
    n_copied = int((alone & (n_copies > MUCH_MORE * expected)).sum())
    return n_copied >= max(MOST * int(alone.sum()), ENOUGH * n_rows)


def _warn_of_equal_rows(codes: NDArray[Any], n_copies: NDArray[np.int64], *, are_repeats: bool) -> None:
    """Warn if most rows repeat others, unless chance makes most of these equal."""
    is_equal, n_rows = n_copies > 0, len(codes)
    n_equal = int(is_equal.sum())
    if 2 * n_equal <= n_rows:
        return
    if not are_repeats and -np.expm1(-MORE * _expected_copies(codes)[is_equal]).mean() >= 0.5:
        return
    if are_repeats:
        taken = (
            "They are taken for repeats, and count as often as they occur. If they are independent observations, or if "
            "they belong to groups of similar rows, pass groups= with the group of each row"
        )
    else:
        taken = (
            "They are taken for independent observations, since the columns have few values. If some of them are of "
            "the same person or thing, pass groups= with the group of each row, or rows judge copies of themselves"
        )
    warnings.warn(f"{n_equal} of {n_rows} rows equal another row in every column. {taken}", UserWarning, stacklevel=2)


def row_hashes(codes: NDArray[Any]) -> NDArray[np.uint64]:
    """A 64-bit hash per row, equal for equal rows and in practice for no others."""
    hashes = np.full(len(codes), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in codes.T:
        hashes ^= column.astype(np.uint64)
        hashes *= np.uint64(0xD6E8FEB86659FD93)
        hashes ^= hashes >> np.uint64(32)
    return hashes


def _expected_pairs(codes: NDArray[Any]) -> float:
    """Expected number of pairs of equal rows if the columns were independent."""
    n_rows, log_match = len(codes), 0.0
    for column in codes.T:
        share = np.bincount(column) / n_rows
        log_match += float(np.log(share @ share))
    return n_rows * (n_rows - 1.0) / 2.0 * float(np.exp(log_match))


def _expected_copies(codes: NDArray[Any]) -> FloatArray:
    """(n_rows,) expected number of other rows that equal each row if the columns were independent."""
    n_rows, log_share = len(codes), np.zeros(len(codes))
    for column in codes.T:
        log_share += np.log(np.maximum(np.bincount(column), 1) / n_rows)[column]
    return np.asarray((n_rows - 1.0) * np.exp(log_share))


def _without_coarser(codes: NDArray[Any]) -> NDArray[Any]:
    """The columns without those that the column with the most values determines, as towns determine regions.

    They make no two rows differ. Those with more than half as many values are kept: measurements of a few persons
    determine each other.
    """
    n_values = np.array([np.count_nonzero(np.bincount(column)) for column in codes.T])
    finest = np.ascontiguousarray(codes[:, int(n_values.argmax())])
    is_kept = 2 * n_values > n_values.max()
    for number, column in enumerate(codes.T):
        of_value = np.zeros(int(finest.max()) + 1, dtype=codes.dtype)
        of_value[finest] = column
        is_kept[number] |= bool((of_value[finest] != column).any())
    return codes[:, is_kept]
