"""The trees of a forest as plain arrays inside the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.posterior.posterior import Posterior
from everytree.report.packing import n_bytes, packed
from everytree.trees.metatree import MetaTree

NEGLIGIBLE_PROB = 1e-13
"""A node with a smaller probability to be in its tree changes no prediction."""

ARRAYS = ("n_children", "feature", "threshold", "missing_child", "split_high", "split_low")


def trees_data(
    posts: Sequence[Posterior], weights: Sequence[float], n_codes: NDArray[Any], budget: int, with_statistics: bool
) -> dict[str, Any]:
    """Nodes of all trees that matter, or for which there is room."""
    reached = [post.node_prob for post in posts]
    max_nodes = sum(map(len, reached))
    while True:
        least = _min_probability(reached, max_nodes)
        kept = [prob >= least for prob in reached]
        trees = [_tree_arrays(post, keep, n_codes, with_statistics) for post, keep in zip(posts, kept, strict=True)]
        arrays = _joined(trees)
        size = n_bytes(arrays)
        if size <= budget or max_nodes <= len(posts):
            break
        max_nodes = min(int(0.95 * budget / size * sum(keep.sum() for keep in kept)), max_nodes - 1)
    left_out = sum(
        weight * float(prob[~keep].max(initial=0.0)) for weight, prob, keep in zip(weights, reached, kept, strict=True)
    )
    return {
        "kept": kept,
        "sizes": [int(keep.sum()) for keep in kept],
        "all_sizes": [post.tree.n_nodes for post in posts],
        "arrays": dict(zip(ARRAYS, arrays, strict=False)),
        "statistics": arrays[len(ARRAYS) :],
        "left_out": left_out,
    }


def _joined(trees: list[dict[str, NDArray[Any]]]) -> list[list[str]]:
    """Join the arrays of all trees as text: those of `ARRAYS`, then the columns of statistics."""
    joined = {name: np.concatenate([tree[name] for tree in trees]) for name in trees[0]}
    return [packed(joined[name]) for name in ARRAYS] + [packed(column) for column in joined["statistics"].T]


def _min_probability(reached: Sequence[FloatArray], max_nodes: int) -> float:
    """Probability below which nodes are left out. Siblings have the same one: they stay or go together."""
    every = np.concatenate(reached)
    if len(every) <= max_nodes:
        return NEGLIGIBLE_PROB
    least = float(np.partition(every, -max_nodes)[-max_nodes]) if max_nodes > 0 else 1.0
    return max(NEGLIGIBLE_PROB, min(float(np.nextafter(least, 2.0)), 1.0))  # roots, which are in every tree, stay


def _tree_arrays(
    post: Posterior, keep: NDArray[np.bool_], n_codes: NDArray[Any], with_statistics: bool
) -> dict[str, NDArray[Any]]:
    """Arrays of one tree. A node whose children are left out is a terminal here."""
    tree, family = post.tree, post.family
    assert isinstance(family, NativeFamily)
    inner = _inner(tree, keep)
    ends = keep & ~inner
    fixed = np.round(np.clip(post.split_prob[inner], 0.0, 1.0) * (2**40 - 1)).astype(np.uint64)
    return {
        "n_children": np.where(inner, tree.n_children, 0)[keep],
        "feature": tree.feature[inner],
        # Thresholds from the last code on only test for a value; the smallest of them fits in a byte.
        "threshold": np.minimum(tree.threshold[inner], n_codes[tree.feature[inner]] - 1) + 1,
        "missing_child": tree.missing_child[inner] + 1,
        "split_high": (fixed >> np.uint64(8)).astype(np.uint32),
        "split_low": (fixed & np.uint64(255)).astype(np.uint8),
        "statistics": family.additive(post.statistics[ends]) if with_statistics else np.zeros((ends.sum(), 0)),
    }


def _inner(tree: MetaTree, keep: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(n_nodes,) which nodes have children that are kept."""
    first_child = np.where(tree.is_terminal, 0, tree.first_child)
    return np.asarray(keep & ~tree.is_terminal & keep[first_child])


def asked_by(
    posts: Sequence[Posterior], n_features: int, kept: Sequence[NDArray[np.bool_]] | None = None
) -> NDArray[np.bool_]:
    """(n_features,) which columns the nodes ask for, or those of them that are kept."""
    asked = np.zeros(n_features, dtype=bool)
    for i, post in enumerate(posts):
        keep = np.ones(post.tree.n_nodes, dtype=bool) if kept is None else kept[i]
        asked[post.tree.feature[_inner(post.tree, keep)]] = True
    return asked
