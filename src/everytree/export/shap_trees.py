"""Models for the tree explainer of shap.

With `data=` the explainer keeps thresholds in float32, in which dates and large numbers lose their last digits. So
these trees split on codes, with thresholds half-way between them: rows take the same paths as in the model.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.export.averaged import AveragedTrees, forest_of, to_tables
from everytree.export.tables import TreeTable, coded_inputs, coded_thresholds, sum_upward
from everytree.tables.schema import Schema

MIN_MASS = 1e-12
"""Minimum share of a tree's rows that a leaf counts for: explainers divide by the number of rows in a node, which
may be zero."""


def to_shap(model: Any) -> dict[str, Any]:
    """A fitted model in the form that `shap.TreeExplainer` takes.

    The explained values are the probabilities of all classes, or the mean of the target, before sharpening. They are
    sums over trees, as the explainer needs; sharpened probabilities are not. Give the explainer `shap_inputs(model, X)`
    for a table X, as rows to explain and as `data`.

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


def shap_inputs(model: Any, X: Any) -> FloatArray:
    """Return a table as the trees of `to_shap(model)` read it.

    Parameters
    ----------
    model : fitted estimator
        As in `to_tables`.
    X : (n_rows, n_features) table
        Whatever `model.predict` takes.

    Returns
    -------
    (n_rows, n_columns) float64
        The model's own codes: the index of a number among the cut points, of a category among those of fit. -1 is a
        category that was not there at fit, NaN is missing.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = et.MetaTreeClassifier(max_depth=1, max_bins=4, random_state=0).fit(X, y)
    >>> et.shap_inputs(model, X[[0, 60, 120]])
    array([[0., 3., 0., 0.],
           [0., 0., 1., 1.],
           [3., 2., 3., 3.]])
    """
    forest_of(model)  # refuses what to_shap refuses
    schema: Schema = model.schema_
    return coded_inputs(schema.columns, schema.encode(X, owner=type(model).__name__))


def _tree(trees: AveragedTrees, number: int) -> dict[str, Any]:
    tree, weight = trees.trees[number], trees.weights[number]
    n_outputs = 1 if trees.classes is None else tree.value.shape[1]
    return {
        "children_left": tree.children_left,
        "children_right": tree.children_right,
        "children_default": np.where(tree.missing_go_to_left, tree.children_left, tree.children_right),
        "features": tree.feature,
        "thresholds": coded_thresholds(tree, trees.schema.columns),
        "values": weight * tree.value[:, :n_outputs],
        "node_sample_weight": _mass(tree),
    }


def _mass(tree: TreeTable) -> Any:
    """Weight of the rows in each node; leaves without rows get a small share."""
    rows = tree.weighted_n_node_samples
    return sum_upward(tree.children_left, tree.children_right, np.maximum(rows, MIN_MASS * max(rows[0], 1.0)))
