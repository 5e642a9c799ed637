"""Trees inside a graph, averaged or summed.

One operator finds the leaf in which a row ends in each tree; the values of these leaves are then looked up and added.
That operator returns float32 whatever its input: enough for the index of a leaf, but not for the digits of its values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from everytree.base.arrays import FloatArray
from everytree.export.averaged import AveragedTrees
from everytree.export.graph import ML, Graph, tensor
from everytree.export.tables import TreeTable

MAX_LEAVES = 2**24
"""Whole numbers up to here are exact in float32."""

TREES_AT_ONCE = 256
"""Boosted trees whose leaves are held at a time: a graph of thousands would need memory for all of them, times rows."""


def averaged(graph: Graph, trees: AveragedTrees, table: str) -> str:
    """(n_rows, n_outputs) the sum over trees of the weight times the value of the leaf in which a row ends."""
    leaves = leaf_numbers(graph, trees.trees, table)
    values = [w * tree.value[tree.is_leaf] for w, tree in zip(trees.weights, trees.trees, strict=True)]
    of_leaves = graph.add("Gather", graph.constant(np.concatenate(values)), leaves)
    return graph.add("ReduceSum", of_leaves, graph.constant(np.array([1])), keepdims=0)


def summed(graph: Graph, trees: Sequence[TreeTable], base: FloatArray, table: str) -> str:
    """(n_rows, n_scores) the base, plus the values of the leaves in which a row ends.

    Values are added one after another, as the model does: a row whose score is close to a cut point of `residuals` is
    then on the same side of it. The order in which a plain sum adds is up to the runtime.
    """
    n_scores, n_values = len(base), trees[0].value.shape[1]
    at_once = TREES_AT_ONCE if n_values == n_scores else max(TREES_AT_ONCE // n_scores, 1) * n_scores
    axis, total = graph.constant(np.array(1)), None
    for start in range(0, len(trees), at_once):
        some = trees[start : start + at_once]
        of_leaves = np.concatenate([tree.value[tree.is_leaf] for tree in some])
        values = graph.constant(of_leaves if n_values > 1 else of_leaves[:, 0])
        values = graph.add("Gather", values, leaf_numbers(graph, some, table))
        # 0: as many rows as there are
        by_score = graph.constant(np.array([0, len(some) * n_values // n_scores, n_scores]))
        values = graph.add("Reshape", values, by_score)
        if total is not None:
            values = graph.add("Concat", total, values, axis=1)
        last = graph.constant(np.array([-1]))
        total = graph.add("Gather", graph.add("CumSum", values, axis), last, axis=1)
    assert total is not None, "there is always a tree"
    scores = graph.add("Squeeze", total, graph.constant(np.array([1])))
    return graph.add("Add", scores, graph.constant(base))


def leaf_numbers(graph: Graph, trees: Sequence[TreeTable], table: str) -> str:
    """(n_rows, n_trees) the leaf in which each row ends, the leaves of all trees numbered one after another."""
    leaves = [np.flatnonzero(tree.is_leaf) for tree in trees]
    n_leaves = np.array([len(own) for own in leaves])
    if n_leaves.max() > MAX_LEAVES:
        raise ValueError(f"a tree has {n_leaves.max()} leaves, but at most {MAX_LEAVES} can be exported")
    tree_of_leaf = np.repeat(np.arange(len(leaves)), n_leaves).tolist()
    number = graph.add(
        "TreeEnsembleRegressor", table, domain=ML, n_targets=len(leaves), **_nodes(trees),
        target_treeids=tree_of_leaf, target_ids=tree_of_leaf, target_nodeids=np.concatenate(leaves).tolist(),
        target_weights_as_tensor=tensor(np.concatenate([np.arange(n, dtype=np.float64) for n in n_leaves])),
    )  # fmt: skip
    first = graph.constant(np.cumsum(n_leaves, dtype=np.int64) - n_leaves)
    return graph.add("Add", graph.add("Cast", number, to=TensorProto.INT64), first)


def _nodes(trees: Sequence[TreeTable]) -> dict[str, Any]:
    """Return the nodes of all trees; the fields of a leaf are never read."""

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([np.asarray(getattr(tree, name)) for tree in trees])

    n_nodes = [tree.node_count for tree in trees]
    whole = {
        "nodes_treeids": np.repeat(np.arange(len(n_nodes)), n_nodes),
        "nodes_nodeids": np.concatenate([np.arange(n) for n in n_nodes]),
        "nodes_featureids": joined("feature"),
        "nodes_truenodeids": joined("children_left"),
        "nodes_falsenodeids": joined("children_right"),
        "nodes_missing_value_tracks_true": joined("missing_go_to_left"),
    }
    return {name: np.maximum(values.astype(np.int64), 0).tolist() for name, values in whole.items()} | {
        "nodes_modes": np.where(joined("is_leaf"), "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_values_as_tensor": tensor(joined("threshold")),
    }
