"""Trees grown by an unfitted forest of scikit-learn's that the user brings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.errors import ArgumentError
from everytree.structure.grow_on import Classes, Numbers
from everytree.structure.growers import Growth
from everytree.structure.grown import Grown
from everytree.structure.importers.sklearn_trees import metatree_from_sklearn_tree
from everytree.tables.column import missing_code


def as_floats(codes: NDArray[Any], has_missing: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return codes as scikit-learn's trees take them: missing is NaN in the columns that have it."""
    table = codes.astype(np.float32)
    for column in np.flatnonzero(has_missing):
        table[codes[:, column] == missing_code(codes.dtype), column] = np.nan
    return table


def tree_for_several(growth: Growth, is_classification: bool) -> Any:
    """An unfitted tree of scikit-learn's with the same limits, whose criterion is the mean over several targets."""
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

    if growth.criterion == "evidence":
        must = "is 'evidence', by which one tree cannot be grown for several outputs; choose another, or a forest"
        raise ArgumentError("criterion", must)
    kind = DecisionTreeClassifier if is_classification else DecisionTreeRegressor
    criterion = growth.criterion or ("gini" if is_classification else "squared_error")
    return kind(
        criterion=criterion, max_depth=growth.max_depth, min_samples_leaf=growth.min_samples_leaf,
        max_leaf_nodes=growth.max_leaf_nodes,
    )  # fmt: skip


def grow_as_given(
    codes: NDArray[Any],
    grow_on: Classes | Numbers,
    forest: Any,
    has_missing: NDArray[np.bool_],
    seed: int,
    n_jobs: int,
    progress: Callable[[], object],
    columns: NDArray[np.integer],
) -> list[Grown]:
    """Grow a forest of the user's choice, on these columns; the others are constant for it."""
    from sklearn.base import clone

    table = as_floats(codes, has_missing)
    table[:, ~np.isin(np.arange(table.shape[1]), columns)] = 0.0
    grown = clone(forest)
    for name, value in (("random_state", seed), ("n_jobs", n_jobs)):
        if name in grown.get_params() and grown.get_params()[name] is None:
            grown.set_params(**{name: value})
    grown.fit(table, grow_on.y, sample_weight=grow_on.weight)
    trees = list(np.ravel(np.asarray(getattr(grown, "estimators_", [grown]), dtype=object)))
    if not all(hasattr(tree, "tree_") for tree in trees):
        raise TypeError(f"grower must be a tree or a forest of trees with scikit-learn's attributes, not {forest!r}")
    subsets = getattr(grown, "estimators_features_", [np.arange(table.shape[1])] * len(trees))
    bootstrapped = bool(getattr(grown, "bootstrap", False))
    bags = grown.estimators_samples_ if bootstrapped else [slice(None)] * len(trees)
    structures = []
    for tree, bag, features in zip(trees, bags, subsets, strict=True):
        in_bag = np.zeros(len(table), dtype=bool)
        in_bag[bag] = True
        structures.append(Grown(metatree_from_sklearn_tree(tree.tree_, table.shape[1], has_missing, features), in_bag))
        progress()
    return structures
