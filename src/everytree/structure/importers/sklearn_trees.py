"""The arrays of a scikit-learn tree as those of a meta-tree."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import LARGEST_CODE
from everytree.trees.metatree import MetaTree


def metatree_from_sklearn_tree(
    tree: Any, n_features: int, has_missing: NDArray[np.bool_] | None = None, features: NDArray[Any] | None = None
) -> MetaTree:
    """The meta-tree of a fitted scikit-learn tree that was grown on codes.

    scikit-learn sends `x <= threshold` to the left. On whole numbers that is `code <= floor(threshold)`, the rule of a
    binary split here, so rows take the same path in both. Where a column has missing values, each split on it has a
    side for them; a split of missing from all other values has an infinite threshold there, and the largest here.

    `tree`: the `tree_` of a fitted estimator. `n_features`: width of the code tables. `has_missing`, (n_features,)
    bool: which columns have missing values; they were NaN for scikit-learn. `features`, (n_own,) int: columns that the
    tree was given, if not all.
    """
    order = _level_order(tree.children_left, tree.children_right)
    number = np.empty(len(tree.children_left), dtype=np.int64)
    number[order] = np.arange(len(order))
    left = tree.children_left[order]
    inner = left >= 0
    shown = np.arange(n_features) if features is None else np.asarray(features)
    feature = np.where(inner, shown[np.where(inner, tree.feature[order], 0)], -1)
    to_child = np.where(tree.missing_go_to_left[order], 0, 1)
    with_missing = inner & (np.zeros(n_features, dtype=bool) if has_missing is None else has_missing)[feature]
    threshold = np.where(inner, np.minimum(np.floor(tree.threshold[order]), LARGEST_CODE), -1)
    return MetaTree.from_arrays(
        feature=feature,
        first_child=np.where(inner, number[np.maximum(left, 0)], -1),
        n_children=np.where(inner, 2, 0),
        threshold=threshold.astype(np.int64),
        missing_child=np.where(with_missing, to_child, -1),
        n_features=n_features,
    )


def _level_order(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Nodes that the root leads to, level by level from the root down, children of a node next to each other."""
    levels = [np.zeros(1, dtype=np.int64)]
    while len(levels[-1]):
        inner = levels[-1][left[levels[-1]] >= 0]
        levels.append(np.column_stack([left[inner], right[inner]]).ravel())
    return np.concatenate(levels)
