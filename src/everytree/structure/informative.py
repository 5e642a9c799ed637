"""Few cut points, chosen by what they say about the target."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.families.base import FloatArray
from everytree.schema import Schema
from everytree.structure.growers import CLASS_CRITERIA, as_floats


def with_few_cuts(
    schema: Schema,
    codes: NDArray[Any],
    y: NDArray[Any],
    weight: FloatArray | None,
    *,
    max_bins: int,
    max_cuts: int,
    criterion: str,
) -> Schema:
    """The schema with at most `max_bins` codes a column of numbers, and `max_cuts` cut points in all.

    A small tree on each column alone finds its best cuts; of all columns' cuts, those that reduce impurity most are
    kept. Columns of categories keep theirs, and count.
    """
    has_missing = np.array([column.has_missing for column in schema.columns])
    table = as_floats(codes, has_missing)
    found: list[tuple[float, int, int]] = []
    n_fixed = 0
    for k, column in enumerate(schema.columns):
        if column.kind == "categorical":
            n_fixed += column.n_codes - 1
        elif column.n_codes > 1:
            found += [(gain, k, t) for gain, t in _cuts_of(table[:, k], y, weight, max_bins, criterion)]
    found.sort(key=lambda one: (-round(one[0], 8), one[1], one[2]))  # rounding decides no ties
    kept: dict[int, list[int]] = {}
    for _, k, t in found[: max(max_cuts - n_fixed, 1)]:
        kept.setdefault(k, []).append(t)
    columns = [
        column
        if column.kind == "categorical"
        else replace(column, cuts=np.asarray(column.cuts)[sorted(kept.get(k, []))])
        for k, column in enumerate(schema.columns)
    ]
    return Schema.from_columns(columns)


def _cuts_of(
    values: NDArray[np.float32], y: NDArray[Any], weight: FloatArray | None, max_bins: int, criterion: str
) -> list[tuple[float, int]]:
    """Thresholds on one column, each with what it adds."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    known = ~np.isnan(values)
    if not known.any():
        return []
    kind = DecisionTreeClassifier if criterion in CLASS_CRITERIA else DecisionTreeRegressor
    leaf = max(1, int(known.sum()) // 200)
    tree = kind(criterion=criterion, max_leaf_nodes=max_bins, min_samples_leaf=leaf, random_state=0)
    tree.fit(values[known, None], y[known], None if weight is None else weight[known])
    nodes = tree.tree_
    inner = np.flatnonzero(nodes.children_left >= 0)
    mass = nodes.weighted_n_node_samples * nodes.impurity
    gains = mass[inner] - mass[nodes.children_left[inner]] - mass[nodes.children_right[inner]]
    return [
        (float(gain), int(np.floor(threshold))) for gain, threshold in zip(gains, nodes.threshold[inner], strict=True)
    ]
