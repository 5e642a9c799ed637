"""Trees of an online forest with thresholds as codes, so that their splits are those of meta-trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from everytree.base.arrays import LARGEST_CODE, FloatArray
from everytree.trees.metatree import MetaTree


@dataclass(frozen=True)
class CodedTree:
    """A tree of the pool in level order.

    Attributes
    ----------
    node : (n_nodes,) int64
        Its nodes in the pool.
    first_child : (n_nodes,) int32
        -1 at leaves.
    features : list of int
        Those that it splits on.
    cuts : list of arrays
        The thresholds on each of them, in ascending order.
    column, threshold, missing_child : (n_nodes,) int32
        As in meta-trees, columns being places in `features`.
    """

    node: NDArray[np.int64]
    first_child: NDArray[np.int32]
    features: list[int]
    cuts: list[FloatArray]
    column: NDArray[np.int32]
    threshold: NDArray[np.int32]
    missing_child: NDArray[np.int32]

    def metatree(self, first_column: int, n_columns: int) -> MetaTree:
        """The tree as a meta-tree whose columns begin at a number."""
        is_inner = self.first_child >= 0
        arrays = {
            "feature": np.where(is_inner, self.column + first_column, -1).astype(np.int32),
            "first_child": self.first_child,
            "n_children": np.where(is_inner, 2, 0).astype(np.int32),
            "threshold": self.threshold,
            "missing_child": self.missing_child,
        }
        return MetaTree.from_checked_arrays(arrays, n_columns)


def coded_tree(nodes: NDArray[Any], root: int) -> CodedTree:
    """Read a tree out of the pool, from its root on."""
    order, first = [root], []
    for s in order:  # grows on the way
        is_leaf = nodes["left"][s] < 0
        first.append(-1 if is_leaf else len(order))
        order += [] if is_leaf else [int(nodes["left"][s]), int(nodes["right"][s])]
    own = nodes[np.array(order)]
    is_inner = np.array(first) >= 0
    features = np.unique(own["feature"][is_inner]).tolist()
    cuts = [np.unique(own["threshold"][is_inner & (own["feature"] == f)]) for f in features]
    if any(len(each) >= LARGEST_CODE for each in cuts):
        raise ValueError(f"a tree has more than {LARGEST_CODE:,} thresholds on one feature: too many to explain it")
    n = len(order)
    column, threshold = np.full(n, -1, dtype=np.int32), np.full(n, -1, dtype=np.int32)
    for k, (feature, each) in enumerate(zip(features, cuts, strict=True)):
        at = is_inner & (own["feature"] == feature)
        column[at], threshold[at] = k, np.searchsorted(each, own["threshold"][at])
    missing = np.where(is_inner, own["missing_right"], -1).astype(np.int32)
    return CodedTree(np.array(order), np.array(first, dtype=np.int32), features, cuts, column, threshold, missing)


def split_probs(nodes: NDArray[Any], tree: CodedTree) -> FloatArray:
    """(n_nodes,) posterior probability that each node is split, if it is in the tree; 0 at leaves."""
    own, inner = nodes[tree.node], np.flatnonzero(tree.first_child >= 0)
    first = tree.first_child[inner]
    children = own["subtree"][first] + own["subtree"][first + 1]
    log_odds = own["log_split"][inner] + children - own["log_stop"][inner] - own["leaf"][inner]
    probs = np.zeros(len(own))
    probs[inner] = expit(log_odds)
    return probs
