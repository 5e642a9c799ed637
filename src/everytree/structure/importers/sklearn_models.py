"""Fitted scikit-learn trees and forests.

`DecisionTree*`, `ExtraTree*` and the ensembles of them round X to float32 and send `x <= threshold` to the left, with
the threshold in float64. `HistGradientBoosting*` compares in float64; its own encoder numbers the categories, and those
that were not there at fit are missing. In both, each node has a side for missing values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.structure.importers.assemble import assemble
from everytree.structure.importers.model import Imported, Input, Nodes, Subset, members_of_bits
from everytree.tables.reading import is_missing, plain_labels


def read_sklearn(model: Any) -> Imported:
    """The trees of a fitted scikit-learn model.

    `model`: a decision tree or extra tree, a forest of them, `GradientBoosting*`, `HistGradientBoosting*`, or
    `Bagging*` or `AdaBoost*` of trees.
    """
    from sklearn.base import is_classifier
    from sklearn.ensemble import BaseEnsemble, HistGradientBoostingClassifier, HistGradientBoostingRegressor
    from sklearn.tree import BaseDecisionTree
    from sklearn.utils.validation import check_is_fitted

    name = type(model).__name__
    is_histogram = isinstance(model, HistGradientBoostingClassifier | HistGradientBoostingRegressor)
    if not (is_histogram or isinstance(model, BaseDecisionTree | BaseEnsemble)):
        raise TypeError(f"model must be a scikit-learn tree or ensemble of trees, but is {name}{_hint(model)}")
    check_is_fitted(model)
    classes = model.classes_ if is_classifier(model) else None
    if isinstance(classes, list):
        raise ValueError(f"model must have one target, but {name} classifies {len(classes)}; fit one model for each")
    if is_histogram:
        return _read_histogram(model, classes)
    inputs = [Input(name, single=True) for name in _input_names(model)]
    if isinstance(model, BaseDecisionTree):
        return assemble(inputs, [_nodes(model.tree_)], classes)
    members = np.ravel(np.array(model.estimators_, dtype=object))
    features = getattr(model, "estimators_features_", [np.arange(len(inputs))] * len(members))
    for member in members:
        if not hasattr(member, "tree_"):
            raise TypeError(
                f"model must be an ensemble of decision trees, but this {name} is one of {type(member).__name__}; "
                "pass its members one by one"
            )
    trees = [_nodes(member.tree_, own) for member, own in zip(members, features, strict=True)]
    return assemble(inputs, trees, None if classes is None else np.asarray(classes))


def _hint(model: Any) -> str:
    """A hint at what to pass instead, if there is one."""
    if hasattr(model, "steps"):
        return "; pass its last step, model[-1], and transformed rows, model[:-1].transform(X)"
    if hasattr(model, "best_estimator_"):
        return "; pass model.best_estimator_"
    if hasattr(model, "get_booster"):
        return "; use read_xgboost"
    return "; use read_lightgbm" if hasattr(type(model), "booster_") else ""


def _input_names(model: Any) -> list[str | None]:
    names = getattr(model, "feature_names_in_", None)
    return [None] * model.n_features_in_ if names is None else [str(name) for name in names]


def _nodes(tree: Any, features: NDArray[Any] | None = None) -> Nodes:
    """One tree; `features` are the indices of the inputs that it was given."""
    asked = np.maximum(tree.feature, 0)
    return Nodes(
        children_left=tree.children_left,
        children_right=tree.children_right,
        feature=asked if features is None else np.asarray(features)[asked],
        threshold=tree.threshold,
        missing_left=tree.missing_go_to_left.astype(bool),
    )


# ---- histogram gradient boosting ------------------------------------------------------------------------------------


def _read_histogram(model: Any, classes: NDArray[Any] | None) -> Imported:
    names = _input_names(model)
    labels: list[Any] = [None] * len(names)
    order = np.arange(len(names))
    if model.is_categorical_ is not None:
        # Its preprocessor moves the columns of categories before all others.
        order = np.argsort(~model.is_categorical_, kind="stable")
        encoder = model._preprocessor.named_transformers_["encoder"]
        for place, categories in zip(np.flatnonzero(model.is_categorical_), encoder.categories_, strict=True):
            labels[place] = plain_labels([value for value in categories.tolist() if not is_missing(value)])
    inputs = [Input(name, its_labels) for name, its_labels in zip(names, labels, strict=True)]
    trees = [_histogram_nodes(predictor, order) for stage in model._predictors for predictor in stage]
    return assemble(inputs, trees, classes)


def _histogram_nodes(predictor: Any, order: NDArray[np.int64]) -> Nodes:
    nodes, bitsets = predictor.nodes, predictor.raw_left_cat_bitsets
    is_leaf = nodes["is_leaf"].astype(bool)
    by_category = np.flatnonzero(nodes["is_categorical"].astype(bool) & ~is_leaf)
    return Nodes(
        children_left=np.where(is_leaf, -1, nodes["left"].astype(np.int64)),
        children_right=np.where(is_leaf, -1, nodes["right"].astype(np.int64)),
        feature=order[np.where(is_leaf, 0, nodes["feature_idx"])],
        threshold=nodes["num_threshold"],
        missing_left=nodes["missing_go_to_left"].astype(bool),
        subsets={
            int(node): Subset(members_of_bits(bitsets[nodes["bitset_idx"][node]]), child=0) for node in by_category
        },
    )
