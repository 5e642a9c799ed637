"""Choice of a few cut points by their relation to the target, if there is any."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.structure.grow_on import Classes, Numbers
from everytree.structure.growers import Growth, grow
from everytree.tables.repeats import row_hashes
from everytree.tables.schema import Schema
from everytree.trees.metatree import MetaTree

N_TREES = 30

MIN_STANDARD_ERRORS = 3.0
"""Number of standard errors by which a forest must predict unseen rows better than their overall mean does."""


def with_few_cuts(
    schema: Schema, codes: NDArray[Any], grow_on: Classes | Numbers, *, max_bins: int, max_cuts: int, max_depth: int
) -> Schema:
    """Return the schema with at most `max_bins` codes per column of numbers, and `max_cuts` cut points in total.

    A forest of trees of the same depth measures how much each cut reduces impurity, given the other columns. A column
    gets more cuts the larger the total reduction by its cuts, and they divide that total into equal shares. Columns of
    categories do not change; two categories count as one cut, which makes two regions of one.

    Cuts that were chosen by the targets look better on the same rows than they are. That matters little where columns
    predict the target, but if a forest cannot predict unseen rows, all cuts are treated as equally good.
    """
    worth = _worth_of_cuts(schema, codes, grow_on, max_depth)
    if not _predict_unseen_rows(schema, codes, grow_on, max_depth):
        worth = [np.ones(len(own)) for own in worth]
    n_taken = sum(column.n_codes // 2 for column in schema.columns if column.kind == "categorical")
    n_cuts = _allot(worth, max_bins - 1, max(max_cuts - n_taken, 1))
    columns = [
        column if column.kind == "categorical" else replace(column, cuts=np.asarray(column.cuts)[_equal_shares(own, n)])
        for column, own, n in zip(schema.columns, worth, n_cuts, strict=True)
    ]
    return Schema.from_columns(columns)


def _worth_of_cuts(schema: Schema, codes: NDArray[Any], grow_on: Classes | Numbers, max_depth: int) -> list[FloatArray]:
    """Impurity that each cut of each column of numbers removes; nothing for categories.

    Trees differ by the thresholds they try and not by rows, so that repeated rows and rows of larger weight give the
    same result.
    """
    worth = [np.zeros(0 if c.kind == "categorical" else max(c.n_codes - 1, 0)) for c in schema.columns]
    if not any(len(own) for own in worth) or len(codes) == 0:
        return worth
    moments = _moments(grow_on)
    for tree in _random_trees(schema, codes, grow_on, max_depth, N_TREES):
        sums = _sums_of_nodes(tree, codes, moments)
        purity = (sums[:, 1:] ** 2).sum(axis=1) / np.where(sums[:, 0] > 0.0, sums[:, 0], 1.0)
        gain = -purity
        np.add.at(gain, tree.parent[1:], purity[1:])
        for node in np.flatnonzero(~tree.is_terminal):
            own, cut = worth[tree.feature[node]], int(tree.threshold[node])
            if 0 <= cut < len(own):  # splitting off missing values is not a cut
                own[cut] += max(gain[node], 0.0)
    return worth


def _predict_unseen_rows(schema: Schema, codes: NDArray[Any], grow_on: Classes | Numbers, max_depth: int) -> bool:
    """Whether a forest grown on one half of the distinct rows predicts the other half better than a mean does.

    Halves are drawn by the codes alone, so that repeated rows and rows of larger weight give the same result.
    """
    old = row_hashes(codes) % np.uint64(2) == 0
    moments = _moments(grow_on)
    of_row = moments[:, 0]
    if not (of_row[old].sum() > 0.0 and of_row[~old].sum() > 0.0):
        return False
    half = replace(grow_on, y=grow_on.y[old], weight=of_row[old])
    mean = moments[old, 1:].sum(axis=0) / of_row[old].sum()
    n_trees, found = N_TREES // 3, np.zeros((int((~old).sum()), len(mean)))
    for tree in _random_trees(schema, codes[old], half, max_depth, n_trees):
        sums = _sums_of_nodes(tree, codes[old], moments[old])
        has_rows = sums[:, :1] > 0.0
        of_node = np.where(has_rows, sums[:, 1:] / np.where(has_rows, sums[:, :1], 1.0), mean)
        found += of_node[tree.route(codes[~old])] / n_trees
    weight = of_row[~old]
    follow = moments[~old, 1:] / np.where(weight > 0.0, weight, 1.0)[:, None]
    gain = ((follow - mean) ** 2 - (follow - found) ** 2).sum(axis=1)
    error = np.sqrt((weight * (gain - np.average(gain, weights=weight)) ** 2).sum())
    return bool(weight @ gain > MIN_STANDARD_ERRORS * error)


def _random_trees(
    schema: Schema, codes: NDArray[Any], grow_on: Classes | Numbers, max_depth: int, n_trees: int
) -> Iterator[MetaTree]:
    """Trees with random thresholds, grown on all rows."""
    growth = Growth("extra_trees", max_depth=max(max_depth, 1), max_features=None, subsample=1.0)
    grown = grow(
        codes, grow_on, growth, n_trees, n_codes=schema.n_codes, has_missing=schema.has_missing, seeds=range(n_trees)
    )
    return (one.tree for one in grown)


def _moments(grow_on: Classes | Numbers) -> FloatArray:
    """(n_rows, 1 + n_values) weight of each row, and the weight times its target; of classes, one column for each."""
    y = grow_on.y
    weight = np.ones(len(y)) if grow_on.weight is None else grow_on.weight
    follow = np.eye(int(y.max(initial=0)) + 1)[y] if isinstance(grow_on, Classes) else y[:, None]
    return np.column_stack([weight, weight[:, None] * follow])


def _sums_of_nodes(tree: MetaTree, codes: NDArray[Any], moments: FloatArray) -> FloatArray:
    """(n_nodes, n_moments) sums over the rows of each node."""
    ends = tree.route(codes)
    sums: FloatArray = np.stack([np.bincount(ends, column, tree.n_nodes) for column in moments.T], axis=1).astype(float)
    for depth in range(int(tree.depth.max()), 0, -1):
        at = np.flatnonzero(tree.depth == depth)
        np.add.at(sums, tree.parent[at], sums[at])
    return sums


def _allot(worth: list[FloatArray], max_each: int, n: int) -> list[int]:
    """Number of cuts of each column, n in total: the next one goes to the column with the largest worth per share."""
    total, limit = [own.sum() for own in worth], [min(int((own > 0.0).sum()), max_each) for own in worth]
    given = [0] * len(worth)
    for _ in range(n):
        open_columns = [k for k in range(len(worth)) if given[k] < limit[k]]
        if not open_columns:
            break
        # The more cuts a column has, the less another is worth; rounding must not break ties.
        best = max(open_columns, key=lambda k: (float(f"{total[k] / (given[k] + 1) ** 2:.8g}"), -k))
        given[best] += 1
    return given


def _equal_shares(worth: FloatArray, n: int) -> list[int]:
    """Return n cuts, each in the middle of one n-th of the worth; fewer where they coincide."""
    upto = np.cumsum(worth)
    middles = (np.arange(n) + 0.5) / max(n, 1) * (upto[-1] if len(upto) else 0.0)
    return sorted({int(cut) for cut in np.searchsorted(upto, middles * (1.0 + 1e-9))})
