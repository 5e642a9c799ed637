"""Contributions of features to the predictions of online forests."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.explaining.contributions import Contributions
from everytree.explaining.tree_sums import Asked, of_both_classes, tree_sum
from everytree.online.coded import CodedTree, coded_tree, split_probs
from everytree.online.trees import OnlineTrees

MISSING = 65535


def online_contributions(trees: OnlineTrees, rows: FloatArray) -> Contributions:
    """Contributions of all features to the probabilities of classes, or to the mean; (n_rows, width) values.

    Thresholds of a tree are coded, feature by feature, so that its splits are those of a meta-tree. Categories have
    another position in every tree, hence every tree has columns of its own.
    """
    nodes, mass, values = trees.snapshot()
    parts = [coded_tree(nodes, int(root)) for root in trees.roots[:, 0]]
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


def _along_paths(nodes: NDArray[Any], values: FloatArray, tree: CodedTree) -> FloatArray:
    """(n_nodes, n_values) the prediction for a row that ends in a node: the average over every pruning."""
    split, own = split_probs(nodes, tree), values[tree.node]
    reached, above = np.ones(len(own)), np.zeros_like(own)
    out = np.empty_like(own)
    for s, first in enumerate(tree.first_child.tolist()):
        out[s] = above[s] + reached[s] * own[s]
        if first < 0:
            continue
        for child in (first, first + 1):
            reached[child] = reached[s] * split[s]
            above[child] = above[s] + reached[s] * (1.0 - split[s]) * own[s]
    return out
