"""Models for the tree explainer of shap.

With `data=` the explainer keeps thresholds in float32, in which dates and large numbers lose their last digits. So
these trees split on codes, with thresholds half-way between them: rows take the same paths as in the model.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.export.averaged import AveragedTrees
from everytree.export.checks import check_has_trees
from everytree.export.plain_trees import to_tables
from everytree.export.summed import SummedTrees
from everytree.export.tables import TreeTable, coded_inputs, coded_thresholds, sum_upward
from everytree.tables.schema import Schema

MIN_MASS = 1e-12
"""Minimum share of a tree's rows that a leaf counts for: explainers divide by the number of rows in a node, which
may be zero."""


def to_shap(model: Any) -> dict[str, Any]:
    """A fitted model in the form that `shap.TreeExplainer` takes.

    Explained values are sums over trees, as the explainer needs:

    - of forests and trees, the probabilities of all classes, or the mean of the target, before sharpening: sharpened
      probabilities are no such sums;
    - of `MetaBoostClassifier`, scores, sharpened: the log-odds of the second of two classes, or one score for each of
      more, whose softmax is `predict_proba`;
    - of `MetaBoostRegressor` and `MetaEnsembleRegressor`, the centre of a row: the mean (`family="normal"`) or the mean
      logarithm (`"lognormal"`) of the target, or the logarithm of its rate (`"poisson"`, `"exponential"`), before what
      the forest of residuals adds.

    Give the explainer `shap_inputs(model, X)` for a table X, as rows to explain and as `data`. Boosted trees keep no
    counts of rows, so that for all but forests and trees the explainer needs `data`.

    Parameters
    ----------
    model : fitted estimator
        As in `to_tables`, but no ensemble that mixes logarithms: `MetaEnsembleClassifier`, or `MetaEnsembleRegressor`
        with `family="poisson"` or `"exponential"`.

    Returns
    -------
    dict
        `trees`, each a dict of arrays, and the types in which they are evaluated.
    """
    _check_explainable(model)
    trees = to_tables(model)
    found = _of_scores(trees) if isinstance(trees, SummedTrees) else _of_average(trees)
    return {**found, "input_dtype": np.float64, "internal_dtype": np.float64, "num_stacked_models": 1}


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
    _check_explainable(model)
    schema: Schema = model.schema_
    return coded_inputs(schema.columns, schema.encode(X, owner=type(model).__name__))


def _check_explainable(model: Any) -> None:
    """Raise unless what the model predicts is a sum over trees."""
    check_has_trees(model)
    name = type(model).__name__
    parts = model.model_.parts
    if parts.forest is None or parts.additive is None:
        return
    link = None if parts.residuals is None else parts.residuals.family.link
    if link is None or (link.sign and not link.averages_logs):
        what = "probabilities" if link is None else "means"
        others = " or ".join(name.replace("Ensemble", kind) for kind in ("Boost", "Forest"))
        raise ValueError(
            f"this {name} averages logarithms of {what}, and that of a forest is not a sum over its trees, so that it "
            f"cannot be explained tree by tree; fit {others} to the same rows and explain that"
        )


def _of_average(trees: AveragedTrees) -> dict[str, Any]:
    """Averages over trees."""
    is_classes = trees.classes is not None
    return {
        "trees": _averaged(trees, trees.trees[0].value.shape[1] if is_classes else 1),
        "base_offset": trees.centre,
        "tree_output": "probability" if is_classes else "raw_value",
        "objective": "binary_crossentropy" if is_classes else "squared_error",
    }


def _of_scores(trees: SummedTrees) -> dict[str, Any]:
    """Scores of classes, or centres of numbers."""
    n_scores, base = len(trees.base), trees.weight * trees.base
    of_boosting = [
        _tree(tree, trees.schema, _in_columns(trees.weight * tree.value, t, n_scores), _no_mass(tree))
        for t, tree in enumerate(trees.trees)
    ]
    of_forest = []
    if trees.forest is not None:
        share = 1.0 - trees.weight
        base = base + share * trees.forest.centre
        of_forest = _averaged(replace(trees.forest, weights=share * trees.forest.weights), 1)
    # Not more than one logit is a log-odds that the explainer may turn into a probability.
    is_logit = trees.classes is not None and len(trees.classes) == 2
    return {
        "trees": of_boosting + of_forest,
        "base_offset": base,
        "tree_output": "log_odds" if is_logit else "raw_value",
        "objective": "binary_crossentropy" if is_logit else "squared_error" if trees.family == "normal" else None,
    }


def _averaged(trees: AveragedTrees, n_outputs: int) -> list[dict[str, Any]]:
    return [
        _tree(tree, trees.schema, weight * tree.value[:, :n_outputs], _mass(tree))
        for tree, weight in zip(trees.trees, trees.weights, strict=True)
    ]


def _tree(tree: TreeTable, schema: Schema, values: FloatArray, mass: FloatArray) -> dict[str, Any]:
    return {
        "children_left": tree.children_left,
        "children_right": tree.children_right,
        "children_default": np.where(tree.missing_go_to_left, tree.children_left, tree.children_right),
        "features": tree.feature,
        "thresholds": coded_thresholds(tree, schema.columns),
        "values": values,
        "node_sample_weight": mass,
    }


def _in_columns(values: FloatArray, t: int, n_columns: int) -> FloatArray:
    """(n_nodes, n_columns) the values of tree t; where it has one a node, zeros in the other columns."""
    if values.shape[1] == n_columns:
        return values
    found = np.zeros((len(values), n_columns))
    found[:, t % n_columns] = values[:, 0]
    return found


def _mass(tree: TreeTable) -> FloatArray:
    """Weight of the rows in each node; leaves without rows get a small share."""
    rows = tree.weighted_n_node_samples
    return sum_upward(tree.children_left, tree.children_right, np.maximum(rows, MIN_MASS * max(rows[0], 1.0)))


def _no_mass(tree: TreeTable) -> FloatArray:
    """No rows in any node: the explainer counts those of `data`, and refuses to explain anything without."""
    return np.zeros(tree.node_count)
