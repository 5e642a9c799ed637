"""Fitted LightGBM models, read from the text that LightGBM saves.

Its rule: numbers are float64, those within `ZERO` of zero are zero, and `x <= threshold` goes to the left. NaN is zero
in a node without missing values; where zero itself is missing, both go to the node's default side. A set of
categories goes to the left, all other categories and NaN to the right. The categories of pandas columns are numbered in
the order that the model keeps; any other category is NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.structure.importers.assemble import assemble
from everytree.structure.importers.model import Imported, Input, Nodes, Subset, below, members_of_bits
from everytree.tables.reading import Label, plain_labels, read_table

ZERO = float(np.float32(1e-35))

# The bits of a node's `decision_type`, and of the rest after the first two are shifted out.
IS_CATEGORICAL, DEFAULT_LEFT = 1, 2
MISSING_IS_ZERO, MISSING_IS_NAN = 1, 2


def read_lightgbm(model: Any, X: Any = None) -> Imported:
    """The trees of a fitted LightGBM model, up to the best iteration if training was stopped early.

    LightGBM finds columns by position, whatever their names, and so does the schema, unless X has names.

    `X`: a table as the model reads it, of any number of rows. Its names, if it has some, are those of the columns, and
    its pandas columns of categories those whose categories the model keeps. Needed only where the model does not tell
    which columns they are.
    """
    is_estimator = hasattr(type(model), "booster_")
    if not (is_estimator or hasattr(model, "model_to_string")):
        raise TypeError(f"model must be a LightGBM estimator or Booster, but is {type(model).__name__}")
    booster = model.booster_ if is_estimator else model
    header, *texts = booster.model_to_string().split("\n\nTree=")
    about = _fields(header)
    trees = [_nodes(_fields(text.split("\n\n")[0])) for text in texts]
    table = None if X is None else read_table(X, "read_lightgbm")
    names = booster.feature_name()
    if table is not None and table.n_columns != len(names):
        raise ValueError(f"X has {table.n_columns} features, but the model is expecting {len(names)} features as input")
    labels = _labels(about, booster.pandas_categorical or [], table, trees)
    by_place = table is None or table.names is None
    if table is not None and table.names is not None:
        names = table.names
    elif names == [f"Column_{index}" for index in range(len(names))]:
        names = [None] * len(names)
    inputs = [Input(name, labels.get(index), gap=(-ZERO, ZERO)) for index, name in enumerate(names)]
    return assemble(inputs, trees, _classes(model, about), by_place=by_place)


def _fields(text: str) -> dict[str, str]:
    """The lines `name=value` of a text."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _classes(model: Any, about: dict[str, str]) -> NDArray[Any] | None:
    """Labels of the estimator's classes, or the class numbers that follow from a booster's objective."""
    if hasattr(type(model), "booster_"):
        return np.asarray(model.classes_) if hasattr(model, "classes_") else None
    objective = about.get("objective", "").split(" ")[0]
    if objective in ("multiclass", "multiclassova"):
        return np.arange(int(about["num_class"]))
    return np.arange(2) if objective == "binary" else None


def _labels(
    about: dict[str, str], kept: list[list[Any]], table: Any, trees: list[Nodes]
) -> dict[int, tuple[Label, ...]]:
    """Categories of the columns that were categories in pandas; the model keeps them, but not their columns."""
    if not kept:
        return {}
    if table is not None and table.names is not None:
        columns = [table.column(index) for index in range(table.n_columns)]
        places = [index for index, values in enumerate(columns) if values.kind == "categorical" and values.declared]
        if len(places) != len(kept):
            raise ValueError(f"X has {len(places)} columns of categories, but the model was trained with {len(kept)}")
        return {index: plain_labels(values) for index, values in zip(places, kept, strict=True)}
    numbers = {
        index: [int(number) for number in info.split(":")]
        for index, info in enumerate(about["feature_infos"].split(" "))
        if info != "none" and not info.startswith("[")
    }
    fits = len(numbers) == len(kept) and all(
        max(its_numbers) < len(values) for its_numbers, values in zip(numbers.values(), kept, strict=True)
    )
    if not fits:
        raise ValueError(
            f"model keeps the categories of {len(kept)} pandas columns, but does not tell which columns they are; "
            "pass X, a few rows of the table it was trained with"
        )
    return {index: plain_labels(values) for index, values in zip(numbers, kept, strict=True)}


def _nodes(fields: dict[str, str]) -> Nodes:
    """One tree: LightGBM numbers inner nodes from 0, and leaf k is -k - 1; here leaves come after all inner nodes."""
    n_inner, n_leaves = int(fields["num_leaves"]) - 1, int(fields["num_leaves"])
    if n_inner == 0:
        nothing = np.zeros(1, dtype=np.int64)
        return Nodes(nothing - 1, nothing - 1, nothing, nothing.astype(np.float64), nothing > 0)

    def read(name: str, dtype: type) -> NDArray[Any]:
        return np.array(fields[name].split(), dtype=dtype)

    def at_all_nodes(values: NDArray[Any]) -> NDArray[Any]:
        return np.concatenate([values, np.zeros(n_leaves, dtype=values.dtype)])

    def child(name: str) -> NDArray[Any]:
        children = read(name, np.int64)
        return np.concatenate([np.where(children < 0, n_inner - 1 - children, children), np.full(n_leaves, -1)])

    decision, threshold = read("decision_type", np.int64), read("threshold", np.float64)
    is_categorical, missing_type = (decision & IS_CATEGORICAL) > 0, decision >> 2
    left_of_zero = np.where(missing_type == 0, threshold >= 0, (decision & DEFAULT_LEFT) > 0)
    # Numbers within ZERO of zero go to the side of zero.
    near = np.where(threshold >= 0, ZERO, below(-ZERO))
    subsets = {}
    if is_categorical.any():
        words, bounds = read("cat_threshold", np.uint32), read("cat_boundaries", np.int64)
        for node in np.flatnonzero(is_categorical).tolist():
            number = int(threshold[node])
            members = members_of_bits(words[bounds[number] : bounds[number + 1]])
            subsets[node] = Subset(members, child=0, toward_zero=True)
    return Nodes(
        children_left=child("left_child"),
        children_right=child("right_child"),
        feature=at_all_nodes(read("split_feature", np.int64)),
        threshold=at_all_nodes(np.where(np.abs(threshold) <= ZERO, near, threshold)),
        missing_left=at_all_nodes(left_of_zero & ~is_categorical),
        in_gap=at_all_nodes((missing_type == MISSING_IS_ZERO) & ~is_categorical),
        subsets=subsets,
    )
