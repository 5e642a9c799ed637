"""A grown tree with its multiway splits and the statistics of all rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everytree.families.base import NativeFamily
from everytree.posterior.counts import count_placed
from everytree.posterior.rows import Rows
from everytree.structure.growers import Growth
from everytree.structure.grown import Grown
from everytree.structure.multiway import with_multiway_splits
from everytree.tables.schema import Schema
from everytree.trees.metatree import MetaTree


def with_statistics(
    rows: Rows,
    family: NativeFamily,
    schema: Schema,
    growth: Growth,
    tree: MetaTree,
    in_bag: NDArray[np.bool_],
    terminal: NDArray[np.int32],
) -> Grown:
    """A grown tree with its multiway splits and its statistics; `terminal` is where the rows of its sample are."""
    others = ~in_bag
    is_nominal = np.array([column.kind == "categorical" and not column.pooled for column in schema.columns])
    if is_nominal.any():
        some, fewest = rows.at(in_bag), growth.min_samples_leaf
        wider = with_multiway_splits(
            tree, some.codes, some.y, some.weight, family, schema.n_codes, is_nominal,
            fewest if fewest >= 1 else fewest * len(some), **some.row_data,
        )  # fmt: skip
        if wider is not tree and wider.n_terminals <= (growth.max_leaf_nodes or np.inf):
            tree, others = wider, np.ones(len(rows), dtype=bool)
    ends = np.empty(len(rows), dtype=np.int32)
    ends[in_bag] = terminal
    if others.any():
        ends[others] = tree.route(rows.codes[others], n_jobs=1)
    return Grown(tree, in_bag, count_placed(tree, family, ends, rows))
