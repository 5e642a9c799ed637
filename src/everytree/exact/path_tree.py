"""A tree that goes on below one region: the splits that lead there, and all other ways end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree.exact.top_columns import PathSplit
from everytree.posterior.posterior import Posterior
from everytree.trees.metatree import MetaTree


class PathTree(NamedTuple):
    """A posterior over the prunings below a region, and which nodes are there.

    Attributes
    ----------
    posterior : Posterior
        The splits on the way are certain.
    inside : (n_nodes,) bool
        Whether a node is the region or below it.
    """

    posterior: Posterior
    inside: NDArray[np.bool_]


def path_tree(path: Sequence[PathSplit], below: Posterior, n_features: int) -> PathTree:
    """Put the tree of a posterior below the splits that lead to its region.

    Parameters
    ----------
    path : sequence of PathSplit
    below : Posterior
        Of the region.
    n_features : int
    """
    tree, statistics = below.tree, below.statistics
    n_above = 1 + sum(split.n_children for split in path)  # nodes of the path, the region among them
    region = 0
    names = ("feature", "first_child", "n_children", "threshold", "missing_child")
    arrays = {name: np.full(n_above + tree.n_nodes - 1, -1, dtype=np.int32) for name in names}
    arrays["n_children"][:] = 0
    prior = np.zeros(n_above + tree.n_nodes - 1)
    next_level = 1
    for split in path:
        arrays["feature"][region], arrays["threshold"][region] = split.feature, split.threshold
        arrays["missing_child"][region], arrays["n_children"][region] = split.missing_child, split.n_children
        arrays["first_child"][region] = next_level
        prior[region] = 1.0
        region, next_level = next_level + split.child, next_level + split.n_children
    # In level order the nodes of the tree come after those of the path, but for its root, which is the region.
    place = np.concatenate([[region], np.arange(n_above, n_above + tree.n_nodes - 1)])
    for name in names:
        arrays[name][place] = getattr(tree, name)
    inner = place[~tree.is_terminal]
    arrays["first_child"][inner] += n_above - 1
    prior[place] = below.split_prior
    own = np.zeros((len(prior), statistics.shape[1]))
    own[place] = statistics
    inside = np.zeros(len(prior), dtype=bool)
    inside[place] = True
    whole = MetaTree.from_checked_arrays(arrays, n_features)
    return PathTree(Posterior.from_statistics(whole, below.family, prior, own, below.n_rows), inside)
