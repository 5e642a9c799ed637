"""Models for the tree explainer of shap."""

from __future__ import annotations

from typing import Any

import numpy as np

from everytree.export.averaged import AveragedTrees, to_tables
from everytree.export.tables import TreeTable, summed_up

LEAST_MASS = 1e-12
"""Share of a tree's rows that a leaf counts for at least: explainers divide by the rows of nodes, some of which have
none."""


def to_shap(model: Any) -> dict[str, Any]:
    """A fitted model in the form that `shap.TreeExplainer` takes.

    Explained are, before sharpening, the probabilities of all classes or the mean of the target. They are sums over
    trees, as the explainer needs them; sharpened probabilities are not. Give the explainer `to_tables(model).inputs(X)`
    for a table X.

    Parameters
    ----------
    model : fitted estimator
        As in `to_tables`.

    Returns
    -------
    dict
        `trees`, each a dict of arrays, and the types in which they are evaluated.
    """
    trees = to_tables(model)
    return {
        "trees": [_tree(trees, number) for number in range(len(trees.trees))],
        "base_offset": trees.centre,
        "tree_output": "raw_value" if trees.classes is None else "probability",
        "objective": "squared_error" if trees.classes is None else "binary_crossentropy",
        "input_dtype": np.float64,
        "internal_dtype": np.float64,
        "num_stacked_models": 1,
    }


def _tree(trees: AveragedTrees, number: int) -> dict[str, Any]:
    tree, weight = trees.trees[number], trees.weights[number]
    n_outputs = 1 if trees.classes is None else tree.value.shape[1]
    return {
        "children_left": tree.children_left,
        "children_right": tree.children_right,
        "children_default": np.where(tree.missing_go_to_left, tree.children_left, tree.children_right),
        "features": tree.feature,
        "thresholds": tree.threshold,
        "values": weight * tree.value[:, :n_outputs],
        "node_sample_weight": _mass(tree),
    }


def _mass(tree: TreeTable) -> Any:
    """Rows of each node, no leaf quite without."""
    rows = tree.weighted_n_node_samples
    return summed_up(tree.children_left, tree.children_right, np.maximum(rows, LEAST_MASS * max(rows[0], 1.0)))
