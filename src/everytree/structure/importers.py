"""Meta-trees from trees that others have grown."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.metatree import MetaTree


def metatree_from_sklearn_tree(tree: Any, n_features: int) -> MetaTree:
    """The meta-tree of a fitted scikit-learn tree that was grown on codes.

    scikit-learn sends `x <= threshold` to the left. On whole numbers that is `code <= floor(threshold)`, the rule of a
    binary split here, so rows take the same way in both.

    Parameters
    ----------
    tree : sklearn.tree._tree.Tree
        The `tree_` of a fitted estimator.
    n_features : int
        Width of the code tables.
    """
    order = _level_order(tree.children_left, tree.children_right)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    left = tree.children_left[order]
    inner = left >= 0
    return MetaTree.from_arrays(
        feature=np.where(inner, tree.feature[order], -1),
        first_child=np.where(inner, number[np.maximum(left, 0)], -1),
        n_children=np.where(inner, 2, 0),
        threshold=np.where(inner, np.floor(tree.threshold[order]), -1).astype(np.int64),
        n_features=n_features,
    )


def _level_order(left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.int64]:
    """Nodes from the root down, level by level, children of a node next to each other."""
    levels = [np.zeros(1, dtype=np.int64)]
    while len(levels[-1]):
        inner = levels[-1][left[levels[-1]] >= 0]
        levels.append(np.column_stack([left[inner], right[inner]]).ravel())
    return np.concatenate(levels)
