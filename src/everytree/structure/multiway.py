"""Splits of a categorical column into all its categories, where that gains evidence over the grown splits.

A grower of binary trees splits a column of categories at thresholds in the order of their targets. If the few
categories of a node all differ, one split with a child for each is simpler.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.posterior.posterior import Posterior
from everytree.tables.column import missing_code
from everytree.trees.metatree import MetaTree

MAX_CATEGORIES = 12
"""Columns with more categories than this are split at thresholds only."""


def with_multiway_splits(
    tree: MetaTree,
    codes: NDArray[Any],
    y: NDArray[Any],
    weight: FloatArray | None,
    family: NativeFamily,
    n_codes: NDArray[Any],
    is_categorical: NDArray[np.bool_],
    min_samples_leaf: float = 1,
    **row_data: Any,
) -> MetaTree:
    """The tree with each subtree replaced, from the root down, by one multiway split where its evidence is higher.

    A node that splits on a column of 3 to 12 categories is compared with a split of its rows into all of them, the
    children as leaves: the evidence of those against the evidence of the grown children, averaged over all their
    prunings.

    `codes`, `y`, `weight` and `**row_data`: the rows the tree was grown on. `family`: the leaf model by which
    evidence is measured. `n_codes` and `is_categorical`, (n_features,) arrays: of the schema. `min_samples_leaf`: a
    category with fewer rows than this, but some, prevents a split of its node into all categories.
    """
    few = is_categorical & (n_codes >= 3) & (n_codes <= MAX_CATEGORIES)
    inner = ~tree.is_terminal
    candidates = inner & few[np.where(inner, tree.feature, 0)] & (tree.threshold >= 0)
    if not candidates.any():
        return tree
    post = Posterior(tree, family).update(codes, y, weight, **row_data)
    statistics = family.statistics(y, weight, **row_data)
    gain = _gains(tree, post, candidates, codes, statistics, family, min_samples_leaf)
    chosen = candidates & (gain > 0.0)
    return _rebuilt(tree, chosen, n_codes) if chosen.any() else tree


def _gains(
    tree: MetaTree,
    post: Posterior,
    candidates: NDArray[np.bool_],
    codes: NDArray[Any],
    statistics: FloatArray,
    family: NativeFamily,
    min_samples_leaf: float,
) -> FloatArray:
    """Log evidence of a split into all categories less that of the grown children, for each candidate node."""
    grown = np.zeros(tree.n_nodes)
    inner = ~tree.is_terminal
    grown[inner] = np.add.reduceat(post.subtree_log_evidence, tree.first_child[inner])
    gains = np.full(tree.n_nodes, -np.inf)
    here = tree.route(codes)
    for depth in range(int(tree.depth[-1]), -1, -1):  # upward: at each depth, all rows of a node are there
        rows = np.flatnonzero((tree.depth[here] == depth) & candidates[here])
        nodes, place = np.unique(here[rows], return_inverse=True)
        asked = codes[rows, tree.feature[here[rows]]]
        child = np.where(asked == missing_code(codes.dtype), MAX_CATEGORIES, asked).astype(np.int64)
        shape = len(nodes), MAX_CATEGORIES + 1
        group = place.astype(np.int64) * shape[1] + child
        totals = _kernels.sum_statistics(
            family.kernel, family.size, statistics=statistics[rows], group=group, n_groups=shape[0] * shape[1]
        )
        evidence = family.log_evidence(totals).reshape(shape)
        counts = np.zeros(shape)
        np.add.at(counts, (place, child), 1.0)
        too_few = ((counts > 0) & (counts < min_samples_leaf)).any(axis=1)
        gains[nodes] = np.where(too_few, -np.inf, evidence.sum(axis=1) - grown[nodes])
        here = np.where((tree.depth[here] == depth) & (depth > 0), tree.parent[here], here)
    return gains


def _rebuilt(tree: MetaTree, chosen: NDArray[np.bool_], n_codes: NDArray[Any]) -> MetaTree:
    """The tree down to the chosen nodes, each of which has a terminal for every category."""
    feature, n_children, threshold, missing_child = [], [], [], []
    level = np.zeros(1, dtype=np.int64)  # nodes of the old tree; -1 stands for a new terminal
    while len(level):
        below = []
        for node in level:
            is_inner = node >= 0 and not tree.is_terminal[node]
            feature.append(tree.feature[node] if is_inner else -1)
            missing = tree.missing_child[node] >= 0 if is_inner else False
            if is_inner and chosen[node]:
                n = int(n_codes[tree.feature[node]])
                n_children.append(n + missing)
                threshold.append(-1)
                missing_child.append(n if missing else -1)
                below.append(np.full(n + missing, -1))
            else:
                n_children.append(tree.n_children[node] if is_inner else 0)
                threshold.append(tree.threshold[node] if is_inner else -1)
                missing_child.append(tree.missing_child[node] if is_inner else -1)
                if is_inner:
                    below.append(tree.first_child[node] + np.arange(tree.n_children[node]))
        level = np.concatenate(below) if below else np.empty(0, dtype=np.int64)
    counts = np.array(n_children)
    first_child = np.where(counts > 0, 1 + np.cumsum(counts) - counts, -1)
    return MetaTree.from_arrays(
        feature, first_child, counts, threshold, missing_child=missing_child, n_features=tree.n_features
    )
