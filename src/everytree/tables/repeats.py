"""Rows that belong together: those of a named group, and those that repeat each other.

A row cannot judge a tree that was grown on a copy of it. Rows that belong together are therefore on one side of every
sample, and where rows are left out, they are left out together.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import as_labels
from everytree.base.errors import ArgumentError

EXPECTED_SHARE = 1e-3
"""Equal rows are not repeats if independent columns alone would give at least this share of their pairs: columns that
depend on each other give far more, and tables of a few columns with few values consist of equal rows."""


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
    n_rows = len(codes)
    _, group, counts = np.unique(row_hashes(codes), return_inverse=True, return_counts=True)
    n_pairs = float((counts * (counts - 1.0)).sum()) / 2.0
    if n_pairs > 0.0 and _expected_pairs(codes) >= EXPECTED_SHARE * n_pairs:
        return None
    return group.astype(np.int64).reshape(n_rows)


def row_groups(codes: NDArray[Any], named: NDArray[np.int64] | None) -> NDArray[np.int64] | None:
    """(n_rows,) numbers from 0 on, equal for rows that belong together: by name, else by repetition.

    None if each row is its own group.
    """
    if named is not None:
        return np.unique(named, return_inverse=True)[1].reshape(len(named))
    group = repeated_rows(codes)
    if group is not None:
        _warn_of_repeats(group)
    return group


def _warn_of_repeats(group: NDArray[np.int64]) -> None:
    """Warn if most rows repeat others."""
    n_repeated = int((np.bincount(group)[group] > 1).sum())
    if 2 * n_repeated > len(group):
        warnings.warn(
            f"{n_repeated} of {len(group)} rows equal another row in every column. They are taken for repeats, and "
            "count as often as they occur. If they are independent observations, or if they belong to groups of "
            "similar rows, pass groups= with the group of each row",
            UserWarning,
            stacklevel=2,
        )


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
