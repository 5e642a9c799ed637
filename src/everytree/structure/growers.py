"""Growing the trees of a forest on codes.

On codes every threshold lies between two whole numbers, so a grown tree is a meta-tree without rounding: `code <= t`.
Each tree sees a random part of the rows. The other rows did not influence its splits, so its predictions for them are
unbiased: priors are chosen by these rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.structure.draws import Draw
from everytree.structure.grow_on import GrowOn
from everytree.structure.grown import Grown
from everytree.trees.metatree import MetaTree

Splitter = Literal["best", "random"]
MaxFeatures = int | float | Literal["sqrt", "log2"] | None

Recipes = tuple[tuple[Splitter, MaxFeatures], ...]

Finish = Callable[[MetaTree, NDArray[np.bool_], NDArray[np.int32]], Grown]
"""From a tree, the rows of its sample and their terminals to the structure."""

ColumnsOf = Callable[[int], NDArray[np.int32]]
"""From the seed of a tree to the columns that it may split on."""

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
class Growth:
    """Settings for growing trees."""

    # a key of `GROWERS`, or an unfitted forest of scikit-learn's that is grown on the codes as it is
    grower: Any = "mixed"
    max_depth: int | None = None  # as in scikit-learn's trees; `max_features="auto"` is set by the recipe
    min_samples_leaf: int | float = 1
    max_features: MaxFeatures | Literal["auto"] = "auto"
    subsample: float = 0.8  # share of the rows that each tree sees, without replacement
    criterion: str | None = None  # one of `CLASS_CRITERIA` or `NUMBER_CRITERIA`; by default "gini" or "squared_error"
    max_leaf_nodes: int | None = None  # trees grow best split first until they have so many leaves
    # Whether each tree sees as many rows as there are, drawn with replacement. A row that is drawn twice counts twice.
    bootstrap: bool = False

    def draw(self, seed: int) -> Draw:
        """The rows of a tree."""
        return Draw(seed, self.subsample, self.bootstrap)


def grow(
    codes: NDArray[Any],
    grow_on: GrowOn,
    growth: Growth,
    n_trees: int,
    *,
    n_codes: NDArray[Any],
    has_missing: NDArray[np.bool_],
    seeds: Sequence[int],
    columns: ColumnsOf | None = None,
    first: int = 0,
    step: int = 1,
    group: NDArray[np.int64] | None = None,
    n_jobs: int = 1,
    finish: Finish | None = None,
    progress: Callable[[], object] = lambda: None,
) -> list[Grown]:
    """Grow structures for the rows, in the order of their seeds for any `n_jobs`.

    Parameters
    ----------
    codes : (n_rows, n_features) uint8 or uint16
    grow_on : GrowOn
        Targets of the rows.
    growth : Growth
        With a grower of `GROWERS`.
    n_codes : (n_features,) int
        How many codes each column has, missing not counted.
    has_missing : (n_features,) bool
        Which columns have missing values; each split on one of them has a side for those.
    seeds : sequence of int
        One per tree.
    columns : callable, optional
        From the seed of a tree to the columns that it may split on; all by default.
    first : int
        Number of the first tree to grow, of `n_trees` in all; those before it are there already.
    step : int
        Only every so many trees are grown from the first on, each with the next recipe.
    group : (n_rows,) int64, optional
        Numbers from 0 on; rows of one group are in the same samples.
    finish : callable, optional
        Makes the structure of each grown tree, on the thread that grew it.
    progress : callable
        Called once per tree.
    """
    recipes = GROWERS[growth.grower][grow_on.is_classification]
    grower = grow_on.grower(
        codes=np.ascontiguousarray(codes), n_codes=n_codes.astype(np.int32), has_missing=has_missing
    )
    every = np.arange(codes.shape[1], dtype=np.int32)
    one = partial(_grow_one, grower, codes.shape, growth, group, columns or (lambda seed: every))

    def numbered(number: int) -> Grown:
        draw = growth.draw(seeds[number])
        tree, in_bag, terminal = one(recipes[number // step % len(recipes)], draw)
        grown = Grown(tree, in_bag) if finish is None else finish(tree, in_bag, terminal)
        progress()
        return replace(grown, draw=draw)

    numbers = range(first, n_trees, step)
    if n_jobs == 1:
        return [numbered(number) for number in numbers]
    with ThreadPoolExecutor(n_jobs) as pool:
        return list(pool.map(numbered, numbers))


def _grow_one(
    grower: _kernels.Grower,
    shape: tuple[int, int],
    growth: Growth,
    group: NDArray[np.int64] | None,
    columns_of: ColumnsOf,
    recipe: tuple[Splitter, MaxFeatures],
    draw: Draw,
) -> tuple[MetaTree, NDArray[np.bool_], NDArray[np.int32]]:
    """A tree, the rows of its sample, and the terminals of these."""
    n_rows, n_features = shape
    splitter, max_features = recipe
    times = draw.times(n_rows, group)
    in_bag = times > 0
    sample = drawn = np.flatnonzero(in_bag)
    if draw.bootstrap:
        of_drawn = times[drawn]
        sample = np.repeat(drawn, of_drawn)
    fewest, columns = growth.min_samples_leaf, columns_of(draw.seed)
    *arrays, terminal = grower.grow(
        sample=sample, columns=columns, seed=draw.seed, random_splits=splitter == "random",
        max_features=n_looked_at(max_features if growth.max_features == "auto" else growth.max_features, len(columns)),
        min_samples_leaf=fewest if isinstance(fewest, int | np.integer) else int(np.ceil(fewest * len(sample))),
        max_depth=growth.max_depth or 0, max_leaf_nodes=growth.max_leaf_nodes or 0,
    )  # fmt: skip
    names = ("feature", "first_child", "n_children", "threshold", "missing_child")
    tree = MetaTree.from_trusted_arrays(dict(zip(names, arrays, strict=True)), n_features)
    return tree, in_bag, terminal[np.cumsum(of_drawn) - of_drawn] if draw.bootstrap else terminal


def n_looked_at(max_features: MaxFeatures, n_features: int) -> int:
    """Columns that a node looks at, counted as scikit-learn counts them."""
    if max_features is None:
        return n_features
    if max_features == "sqrt":
        return max(1, int(np.sqrt(n_features)))
    if max_features == "log2":
        return max(1, int(np.log2(n_features)))
    if isinstance(max_features, int | np.integer):
        return min(int(max_features), n_features)
    return max(1, int(float(max_features) * n_features))
