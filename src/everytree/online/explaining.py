"""Contributions of features to the predictions of online forests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import LARGEST_CODE, FloatArray
from everytree.explaining.contributions import Contributions
from everytree.explaining.tree_sums import Asked, of_both_classes, tree_sum
from everytree.online.trees import OnlineTrees
from everytree.trees.metatree import MetaTree

MISSING = 65535


def online_contributions(trees: OnlineTrees, rows: FloatArray) -> Contributions:
    """Contributions of all features to the probabilities of classes, or to the mean; (n_rows, width) values.

    Thresholds of a tree are coded, feature by feature, so that its splits are those of a meta-tree. Categories have
    another position in every tree, hence every tree has columns of its own.
    """
    nodes, mass, values = trees.snapshot()
    parts = [_coded_tree(nodes, int(root)) for root in trees.roots[:, 0]]
    n_features = len(trees.features.index)
    first = np.cumsum([0, *(len(part.features) for part in parts)])
    n_columns = max(int(first[-1]), 1)
    codes = np.zeros((len(rows), n_columns), dtype=np.uint16)
    inputs, n_codes = np.zeros(n_columns, dtype=np.int32), np.ones(n_columns, dtype=np.uint16)
    for t, part in enumerate(parts):
        seen = trees.views(rows, t)
        for k, (feature, cuts) in enumerate(zip(part.features, part.cuts, strict=True), start=int(first[t])):
            codes[:, k] = np.where(np.isnan(seen[:, feature]), MISSING, np.searchsorted(cuts, seen[:, feature]))
            inputs[k], n_codes[k] = feature, len(cuts) + 1
    asked = Asked(codes, inputs, n_features, None, None)
    metatrees = [part.metatree(int(first[t]), n_columns) for t, part in enumerate(parts)]
    two = values.shape[1] == 2
    found = tree_sum(
        asked, metatrees, [mass[part.node] for part in parts],
        [_along_paths(nodes, values[:, 1:] if two else values, part) for part in parts],
        np.full(len(parts), 1.0 / len(parts)), n_codes, 1 if two else values.shape[1],
    )  # fmt: skip
    return of_both_classes(found) if two else found


@dataclass(frozen=True)
class _CodedTree:
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


def _coded_tree(nodes: NDArray[Any], root: int) -> _CodedTree:
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
    return _CodedTree(np.array(order), np.array(first, dtype=np.int32), features, cuts, column, threshold, missing)


def _along_paths(nodes: NDArray[Any], values: FloatArray, tree: _CodedTree) -> FloatArray:
    """(n_nodes, n_values) the prediction for a row that ends in a node: the average over every pruning."""
    own = nodes[tree.node]
    reached, above = np.ones(len(own)), np.zeros((len(own), values.shape[1]))
    out = np.empty_like(above)
    for s, first in enumerate(tree.first_child.tolist()):
        here = values[tree.node[s]]
        out[s] = above[s] + reached[s] * here
        if first < 0:
            continue
        children = own["subtree"][first] + own["subtree"][first + 1]
        log_odds = own["log_stop"][s] + own["leaf"][s] - own["log_split"][s] - children
        stop = 1.0 / (1.0 + np.exp(-log_odds)) if log_odds > -700.0 else 0.0
        for child in (first, first + 1):
            reached[child] = reached[s] * (1.0 - stop)
            above[child] = above[s] + reached[s] * stop * here
    return out
