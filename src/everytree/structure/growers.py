"""Growing the trees of a forest: scikit-learn's trees, grown on codes.

On codes every threshold lies between two whole numbers, so a grown tree is a meta-tree without rounding: `code <= t`.
Each tree sees a random part of the rows, without replacement. The other rows did not influence its splits, so its
predictions for them are unbiased: priors are chosen by these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from everytree.structure.importers.sklearn_trees import metatree_from_sklearn_tree
from everytree.tables.column import missing_code
from everytree.trees.metatree import MetaTree

Splitter = Literal["best", "random"]
MaxFeatures = int | float | Literal["sqrt", "log2"] | None

CLASS_CRITERIA = ("gini", "entropy", "log_loss")

Recipes = tuple[tuple[Splitter, MaxFeatures], ...]

GROWERS: dict[str, dict[bool, Recipes]] = {
    "random_forest": {True: (("best", "sqrt"),), False: (("best", None), ("best", 0.5))},
    "extra_trees": {
        True: (("random", "sqrt"), ("random", 0.5), ("random", None)),
        False: (("random", None),),
    },
    "mixed": {
        True: (
            ("best", "sqrt"), ("random", "sqrt"), ("best", "sqrt"), ("random", 0.5), ("best", "sqrt"), ("random", None),
        ),
        False: (("best", 0.5), ("random", None)),
    },
}  # fmt: skip
"""Recipes for the trees of a forest, used in turn, for classes and for numbers: how a split is chosen, and among how
many features."""


@dataclass(frozen=True)
class Grown:
    """One structure and the rows it was grown on.

    Attributes
    ----------
    tree : MetaTree
    in_bag : (n_rows,) bool
    """

    tree: MetaTree
    in_bag: NDArray[np.bool_]


@dataclass(frozen=True)
class Growth:
    """Settings for growing trees.

    Attributes
    ----------
    grower : str or scikit-learn forest
        A key of `GROWERS`, or an unfitted forest of scikit-learn's that is grown on the codes as it is.
    max_depth, min_samples_leaf, max_features
        As in scikit-learn's trees; `max_features="auto"` is set by the recipe.
    subsample : float
        Share of the rows that each tree sees.
    criterion : str
        Criterion of scikit-learn's trees; "gini" and the like grow classification trees.
    """

    grower: Any = "mixed"
    max_depth: int | None = None
    min_samples_leaf: int | float = 1
    max_features: MaxFeatures | Literal["auto"] = "auto"
    subsample: float = 0.8
    criterion: str = "gini"

    @property
    def is_classification(self) -> bool:
        return self.criterion in CLASS_CRITERIA


def grow(
    codes: NDArray[Any],
    y: NDArray[Any],
    weight: NDArray[np.float64] | None,
    growth: Growth,
    n_trees: int,
    *,
    has_missing: NDArray[np.bool_],
    seeds: Sequence[int],
    group: NDArray[np.int64] | None = None,
    n_jobs: int = 1,
    progress: Callable[[], object] = lambda: None,
) -> list[Grown]:
    """Grow structures for the rows, in the order of their seeds for any `n_jobs`.

    Parameters
    ----------
    codes : (n_rows, n_features) uint8 or uint16
    y : (n_rows,) or (n_rows, n_outputs)
        Class numbers, or numbers for the trees to predict.
    weight : (n_rows,) float64, optional
    has_missing : (n_features,) bool
        Which columns have missing values; each split on one of them has a side for those.
    seeds : sequence of int
        One per tree.
    group : (n_rows,) int64, optional
        Numbers from 0 on; rows of one group are in the same samples.
    progress : callable
        Called once per tree.
    """
    table = as_floats(codes, has_missing)
    if not isinstance(growth.grower, str):
        return list(_grow_as_given(table, y, weight, growth.grower, has_missing, seeds[0], n_jobs, progress))
    recipes = GROWERS[growth.grower][growth.is_classification]
    one = partial(_grow_one, table, y, weight, growth, has_missing, group)

    def numbered(number: int) -> Grown:
        grown = one(recipes[number % len(recipes)], seeds[number])
        progress()
        return grown

    if n_jobs == 1:
        return [numbered(number) for number in range(n_trees)]
    with ThreadPoolExecutor(n_jobs) as pool:
        return list(pool.map(numbered, range(n_trees)))


def as_floats(codes: NDArray[Any], has_missing: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return codes as scikit-learn's trees take them: missing is NaN in the columns that have it."""
    table = codes.astype(np.float32)
    for column in np.flatnonzero(has_missing):
        table[codes[:, column] == missing_code(codes.dtype), column] = np.nan
    return table


def _grow_one(
    table: NDArray[np.float32],
    y: NDArray[Any],
    weight: NDArray[np.float64] | None,
    growth: Growth,
    has_missing: NDArray[np.bool_],
    group: NDArray[np.int64] | None,
    recipe: tuple[Splitter, MaxFeatures],
    seed: int,
) -> Grown:
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor, ExtraTreeClassifier, ExtraTreeRegressor

    splitter, max_features = recipe
    kinds = {
        (True, "best"): DecisionTreeClassifier, (True, "random"): ExtraTreeClassifier,
        (False, "best"): DecisionTreeRegressor, (False, "random"): ExtraTreeRegressor,
    }  # fmt: skip
    in_bag = sample_of_rows(len(table), growth.subsample, seed, group)
    tree = kinds[growth.is_classification, splitter](
        criterion=growth.criterion,
        max_depth=growth.max_depth,
        min_samples_leaf=growth.min_samples_leaf,
        max_features=max_features if growth.max_features == "auto" else growth.max_features,
        random_state=seed,
    )
    tree.fit(table[in_bag], y[in_bag], None if weight is None else weight[in_bag])
    return Grown(metatree_from_sklearn_tree(tree.tree_, table.shape[1], has_missing), in_bag)


def sample_of_rows(n_rows: int, share: float, seed: int, group: NDArray[np.int64] | None = None) -> NDArray[np.bool_]:
    """Draw a random part of the rows, or of their groups; at least one."""
    n_groups = n_rows if group is None else int(group.max()) + 1
    in_bag = np.zeros(n_groups, dtype=bool)
    in_bag[np.random.default_rng(seed).permutation(n_groups)[: max(1, round(share * n_groups))]] = True
    return in_bag if group is None else in_bag[group]


def _grow_as_given(
    table: NDArray[np.float32],
    y: NDArray[Any],
    weight: NDArray[np.float64] | None,
    forest: Any,
    has_missing: NDArray[np.bool_],
    seed: int,
    n_jobs: int,
    progress: Callable[[], object],
) -> Iterator[Grown]:
    """Grow a forest of the user's choice."""
    from sklearn.base import clone

    grown = clone(forest)
    for name, value in (("random_state", seed), ("n_jobs", n_jobs)):
        if name in grown.get_params() and grown.get_params()[name] is None:
            grown.set_params(**{name: value})
    grown.fit(table, y, sample_weight=weight)
    trees = list(np.ravel(np.asarray(getattr(grown, "estimators_", [grown]), dtype=object)))
    if not all(hasattr(tree, "tree_") for tree in trees):
        raise TypeError(f"grower must be a tree or a forest of trees with scikit-learn's attributes, not {forest!r}")
    subsets = getattr(grown, "estimators_features_", [np.arange(table.shape[1])] * len(trees))
    bootstrapped = bool(getattr(grown, "bootstrap", False))
    bags = grown.estimators_samples_ if bootstrapped else [slice(None)] * len(trees)
    for tree, bag, features in zip(trees, bags, subsets, strict=True):
        in_bag = np.zeros(len(table), dtype=bool)
        in_bag[bag] = True
        yield Grown(metatree_from_sklearn_tree(tree.tree_, table.shape[1], has_missing, features), in_bag)
        progress()
