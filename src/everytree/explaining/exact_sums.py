"""Contributions of columns to exact sums over trees.

There, a prediction is a sum of tables, one for each set of columns that some tree asks together. The value of a set of
columns is the mean of each table over the columns that are not in it, as if columns were independent, with the shares
of the codes among the rows: an exact sum has no walk that could go on by the shares of a node. Shapley values of a
table of few columns are found by listing all their sets.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.exact.posterior import ExactPosterior, LeafValues
from everytree.exact.prediction import Columns, Tables
from everytree.explaining.contributions import Contributions, complete, inverse_of, product_of
from everytree.explaining.tree_sums import Asked


def exact_sum(
    asked: Asked,
    posterior: ExactPosterior,
    codes: NDArray[np.uint16],
    rows: NDArray[np.uint16],
    weight: FloatArray | None,
    values_of: LeafValues | None = None,
) -> Contributions:
    """Contributions to probabilities of classes, or to the mean.

    `codes` are those of the rows to explain, as the posterior reads them; shares are those of `rows` by their `weight`.
    With `values_of`, which gives 1 and a number for the statistics of each leaf, to the mean of that number.
    """
    sums = _of_tables(asked, posterior, codes, rows, weight, values_of)
    # They are divided by the mass of the leaves that hold a row, which is 1 but for what was left out.
    if posterior.family.has_classes:
        total = Contributions(sums.base.sum(keepdims=True), sums.values.sum(axis=2, keepdims=True))
        return product_of(sums, inverse_of(total))
    total, first = (Contributions(sums.base[k : k + 1], sums.values[:, :, k : k + 1]) for k in (0, 1))
    return product_of(first, inverse_of(total)).shifted(posterior.centre if values_of is None else 0.0)


def _of_tables(
    asked: Asked,
    posterior: ExactPosterior,
    codes: NDArray[np.uint16],
    rows: NDArray[np.uint16],
    weight: FloatArray | None,
    values_of: LeafValues | None,
) -> Contributions:
    """Contributions to the sums of the leaves that hold a row."""
    shares = [_shares(rows[:, k], n, weight) for k, n in enumerate(posterior.n_codes)]
    unknown = Columns(posterior.n_codes, posterior.kinds).has_unknown(codes)
    found = _of_every_set(asked, posterior.tabulated(False, values_of), codes, shares)
    if unknown.any():
        # Rows with unknown codes have tables of their own, in which other leaves may be too small to be kept.
        own = _of_every_set(asked, posterior.tabulated(True, values_of), codes[unknown], shares)
        found.values[unknown] = complete(Contributions(found.base, own.values), own.total()).values
    return found


def _shares(codes: NDArray[np.uint16], n_codes: int, weight: FloatArray | None) -> FloatArray:
    """(n_codes + 1,) share of each code among the rows, and 0 for unknown codes; equal ones without rows."""
    known = codes < n_codes
    counts = np.bincount(codes[known], None if weight is None else weight[known], n_codes).astype(np.float64)
    counts = counts if counts.sum() > 0.0 else np.ones(n_codes)
    return np.append(counts / counts.sum(), 0.0)


def _of_every_set(asked: Asked, tables: Tables, codes: NDArray[np.uint16], shares: list[FloatArray]) -> Contributions:
    base, values = np.zeros(tables.width), np.zeros((len(codes), asked.n_inputs, tables.width))
    for columns, cells, groups in _sets(tables):
        at = [groups[i][np.minimum(codes[:, k], len(groups[i]) - 1)] for i, k in enumerate(columns)]
        mean: list[FloatArray] = [
            np.bincount(groups[i], shares[k], cells.shape[i]).astype(np.float64) for i, k in enumerate(columns)
        ]
        players = np.unique(asked.inputs[columns]) if len(columns) else np.empty(0, dtype=np.int32)
        of_set = {
            some: _value(cells, at, mean, np.isin(asked.inputs[columns], some))
            for size in range(len(players) + 1)
            for some in combinations(players.tolist(), size)
        }
        base += of_set[()][0]
        n = len(players)
        for player in players.tolist():
            for some, value in of_set.items():
                if player not in some:
                    gain = of_set[tuple(sorted((*some, player)))] - value
                    values[:, player] += gain / (n * comb(n - 1, len(some)))
    return Contributions(base, values)


def _sets(tables: Tables) -> Iterator[tuple[NDArray[np.int64], FloatArray, list[NDArray[np.int64]]]]:
    """The columns of each set, its cells (n groups of each column ..., width), and the group of each code."""
    set_start, column, map_start, place, first_cell, flat = tables.arrays
    cells = flat.reshape(-1, tables.width)
    for s in range(len(set_start) - 1):
        entries = range(int(set_start[s]), int(set_start[s + 1]))
        offsets = [place[map_start[e] : map_start[e + 1]].astype(np.int64) for e in entries]
        distinct = [np.unique(each, return_inverse=True) for each in offsets]
        where = np.array(int(first_cell[s]))
        for values, _ in distinct:
            where = np.add.outer(where, values)
        yield column[list(entries)].astype(np.int64), cells[where], [groups for _, groups in distinct]


def _value(
    cells: FloatArray, at: list[NDArray[np.int64]], mean: list[FloatArray], is_known: NDArray[np.bool_]
) -> FloatArray:
    """(n_rows or 1, width) cells of the known codes of each row, averaged over the other columns."""
    for axis in reversed(range(len(at))):
        if not is_known[axis]:
            cells = np.tensordot(mean[axis], cells, axes=(0, axis))
    known = [at[axis] for axis in range(len(at)) if is_known[axis]]
    return np.asarray(cells[tuple(known)] if known else cells[None])
