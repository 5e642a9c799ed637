"""Choice of a few cut points by their relation to the target, if there is any."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.structure.given_forest import as_floats
from everytree.structure.grow_on import Classes, Numbers
from everytree.tables.repeats import row_hashes
from everytree.tables.schema import Schema

N_TREES = 30

MIN_STANDARD_ERRORS = 3.0
"""Number of standard errors by which a forest must predict unseen rows better than their overall mean does."""


def with_few_cuts(
    schema: Schema,
    codes: NDArray[Any],
    grow_on: Classes | Numbers,
    *,
    max_bins: int,
    max_cuts: int,
    max_depth: int,
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
    is_number = [column.kind != "categorical" for column in schema.columns]
    worth = [
        np.zeros(max(c.n_codes - 1, 0) if number else 0) for c, number in zip(schema.columns, is_number, strict=True)
    ]
    if not any(len(own) for own in worth) or len(codes) == 0:
        return worth
    forest = _forest(max_depth, grow_on.is_classification)
    forest.fit(_as_floats(schema, codes), grow_on.y, grow_on.weight)
    for tree in forest.estimators_:
        nodes = tree.tree_
        mass = nodes.weighted_n_node_samples * nodes.impurity
        inner = np.flatnonzero((nodes.children_left >= 0) & np.isfinite(nodes.threshold))
        gains = mass[inner] - mass[nodes.children_left[inner]] - mass[nodes.children_right[inner]]
        for column, threshold, gain in zip(nodes.feature[inner], nodes.threshold[inner], gains, strict=True):
            cut = int(np.floor(threshold))
            if 0 <= cut < len(worth[column]):  # splitting off missing values is not a cut
                worth[column][cut] += max(gain, 0.0)
    return worth


def _predict_unseen_rows(schema: Schema, codes: NDArray[Any], grow_on: Classes | Numbers, max_depth: int) -> bool:
    """Whether a forest grown on one half of the distinct rows predicts the other half better than a mean does.

    Halves are drawn by the codes alone, so that repeated rows and rows of larger weight give the same result.
    """
    half = row_hashes(codes) % np.uint64(2) == 0
    y, weight = grow_on.y, grow_on.weight
    table, of_row = _as_floats(schema, codes), np.ones(len(y)) if weight is None else weight
    follow = np.eye(int(y.max()) + 1)[y] if grow_on.is_classification and len(y) else y.reshape(len(y), -1)
    old, new = half, ~half
    if not (of_row[old].sum() > 0.0 and of_row[new].sum() > 0.0):
        return False
    forest = _forest(max_depth, False, N_TREES // 3)
    forest.fit(table[old], _column_or_table(follow[old]), of_row[old])
    mean = np.average(follow[old], axis=0, weights=of_row[old])
    found = forest.predict(table[new]).reshape(follow[new].shape)
    gain, weight_new = ((follow[new] - mean) ** 2 - (follow[new] - found) ** 2).sum(axis=1), of_row[new]
    error = np.sqrt((weight_new * (gain - np.average(gain, weights=weight_new)) ** 2).sum())
    return bool(weight_new @ gain > MIN_STANDARD_ERRORS * error)


def _column_or_table(values: FloatArray) -> FloatArray:
    """Return one output as a column, several as a table, as scikit-learn expects."""
    return values[:, 0] if values.shape[1] == 1 else values


def _forest(max_depth: int, is_classification: bool, n_trees: int = N_TREES) -> Any:
    from sklearn.ensemble import ExtraTreesClassifier, ExtraTreesRegressor

    kind = ExtraTreesClassifier if is_classification else ExtraTreesRegressor
    return kind(n_trees, max_depth=max(max_depth, 1), max_features=1.0, random_state=0)


def _as_floats(schema: Schema, codes: NDArray[Any]) -> NDArray[np.float32]:
    return as_floats(codes, schema.has_missing)


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
