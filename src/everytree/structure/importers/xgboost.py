"""Fitted XGBoost models, read from the JSON that XGBoost saves.

Its rule: numbers are rounded to float32, and `x < threshold` goes to the left. A set of categories goes to the right,
all other categories and numbers to the left; missing values go to the node's default side. From version
3.1 a model keeps the values of the categories of data frames; older ones keep their numbers only.
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.structure.importers.assemble import assemble
from everytree.structure.importers.model import Imported, Input, Nodes, Subset, below
from everytree.tables.reading import Label, column_label, plain_labels, read_table


def read_xgboost(model: Any, X: Any = None) -> Imported:
    """The trees of a fitted XGBoost model; for an estimator those up to the best iteration, for a Booster all.

    XGBoost refuses categories that it was not trained with; here they are missing values.

    `model`: of trees: `gbtree` or `dart`. An estimator has a number that is missing besides NaN; a Booster has none.
    `X`: a table as the model was trained with, of any number of rows. Needed only where the model does not keep the
    values of its categories, or does so wrongly.
    """
    is_estimator = hasattr(model, "get_booster")
    booster = model.get_booster() if is_estimator else model
    if not hasattr(booster, "save_raw"):
        raise TypeError(f"model must be an XGBoost estimator or Booster, but is {type(model).__name__}")
    learner = json.loads(booster.save_raw("json"))["learner"]
    gradient_booster = learner["gradient_booster"]
    if gradient_booster["name"] not in ("gbtree", "dart"):
        raise ValueError(f"model must be of trees, booster='gbtree' or 'dart', but is {gradient_booster['name']!r}")
    forest = gradient_booster.get("gbtree", gradient_booster)["model"]
    n_inputs = int(learner["learner_model_param"]["num_feature"])
    names = learner["feature_names"] or [None] * n_inputs
    labels = _labels(learner.get("feature_types", []), forest.get("cats", {}).get("enc", []), names, X)
    missing = getattr(model, "missing", None) if is_estimator else None
    gap = None if missing is None or not math.isfinite(missing) else (float(np.float32(missing)),) * 2
    inputs = [Input(name, labels.get(place), single=True, gap=gap) for place, name in enumerate(names)]
    trees = [_nodes(tree, gap is not None) for tree in forest["trees"][: _n_trees(model, forest)]]
    return assemble(inputs, trees, _classes(model, learner))


def _n_trees(model: Any, forest: dict[str, Any]) -> int:
    """Number of trees that the model's own predictions use."""
    n_trees = len(forest["trees"])
    try:
        best = model.best_iteration if hasattr(model, "get_booster") else None
    except AttributeError:  # it is only there after early stopping
        best = None
    if best is None:
        return n_trees
    return int(forest["iteration_indptr"][best + 1])


def _classes(model: Any, learner: dict[str, Any]) -> NDArray[Any] | None:
    """Labels of the estimator's classes, or the class numbers that follow from a booster's objective."""
    if hasattr(model, "get_booster"):
        return np.asarray(model.classes_) if hasattr(model, "classes_") else None
    objective = learner["objective"]["name"]
    if objective.startswith("multi:"):
        return np.arange(int(learner["learner_model_param"]["num_class"]))
    return np.arange(2) if objective.startswith("binary:") else None


def _labels(
    types: list[str], kept: list[dict[str, Any]], names: list[str | None], X: Any
) -> dict[int, tuple[Label, ...]]:
    """Categories of the columns that were categories of a data frame."""
    table = None if X is None else read_table(X, "read_xgboost")
    labels = {}
    for place in (place for place, kind in enumerate(types) if kind == "c"):
        its_own = kept[place] if place < len(kept) else {"values": []}
        values = _kept_values(its_own)
        if values is None and table is not None:
            values = _values_of_table(table, names[place], place)
        if values is None and its_own["values"]:
            raise ValueError(
                f"{column_label(names[place], place)}: XGBoost keeps categories of text beyond ASCII cut at the wrong "
                "places, so they cannot be recovered; pass X, a few rows of the data frame it was trained with"
            )
        if values is not None:
            labels[place] = plain_labels(values)
    return labels


def _kept_values(kept: dict[str, Any]) -> list[Any] | None:
    """Categories as the model keeps them: numbers, or text as bytes; None where it keeps none, or not the right ones.

    Text of pandas is divided by letters instead of bytes, which is the same for ASCII alone.
    """
    values = kept["values"]
    if not values or "offsets" not in kept:
        return values or None
    if min(values) < 0 or max(values) > 127:
        return None
    text, ends = bytes(values).decode("ascii"), kept["offsets"]
    return [text[begin:end] for begin, end in pairwise(ends)]


def _values_of_table(table: Any, name: str | None, index: int) -> list[Any] | None:
    """Categories that a column of a data frame declares, in its order."""
    if table.names is not None and name in table.names:
        index = table.names.index(name)
    values = table.column(index)
    return list(values.labels) if values.declared else None


def _nodes(tree: dict[str, Any], in_gap: bool) -> Nodes:
    """One tree; pruned nodes are still in its arrays, as leaves that nothing leads to."""
    left, right = (np.array(tree[name], dtype=np.int64) for name in ("left_children", "right_children"))
    threshold = np.array(tree["split_conditions"], dtype=np.float64).astype(np.float32).astype(np.float64)
    subsets = {}
    starts, sizes = tree.get("categories_segments", []), tree.get("categories_sizes", [])
    for node, begin, size in zip(tree.get("categories_nodes", []), starts, sizes, strict=True):
        subsets[int(node)] = Subset(frozenset(tree["categories"][begin : begin + size]), child=1)
    return Nodes(
        children_left=left,
        children_right=right,
        feature=np.array(tree["split_indices"], dtype=np.int64),
        threshold=below(threshold),
        missing_left=np.array(tree["default_left"], dtype=bool),
        in_gap=np.full(len(left), in_gap),
        subsets=subsets,
    )
