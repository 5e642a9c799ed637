"""The nodes that rows go through, as a sparse table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.trees.metatree import MetaTree


def decision_paths(trees: Sequence[MetaTree], ends: NDArray[np.int32]) -> tuple[Any, NDArray[np.int64]]:
    """Mark the nodes on the path of each row through each tree.

    Parameters
    ----------
    trees : sequence of MetaTree
    ends : (n_rows, n_trees) int32
        The node where each row ends in each tree.

    Returns
    -------
    indicator : (n_rows, n_nodes of all trees) scipy.sparse CSR matrix
        1 where a row goes through a node.
    n_nodes_ptr : (n_trees + 1,) int64
        Tree i has the columns n_nodes_ptr[i] .. n_nodes_ptr[i + 1].
    """
    from scipy import sparse

    first = np.concatenate([[0], np.cumsum([tree.n_nodes for tree in trees])]).astype(np.int64)
    depth = np.column_stack([tree.depth[end] for tree, end in zip(trees, ends.T, strict=True)])
    last = np.cumsum(depth.ravel() + 1).reshape(depth.shape) - 1  # place of each end among all marks, row by row
    columns = np.empty(int(last[-1, -1]) + 1 if last.size else 0, dtype=np.int64)
    for number, tree in enumerate(trees):
        here, place = ends[:, number], last[:, number]
        while len(here):  # upward, all rows together, until each has passed the root
            columns[place] = first[number] + here
            here = tree.parent[here]
            here, place = here[here >= 0], place[here >= 0] - 1
    start = np.concatenate([[0], last[:, -1] + 1])
    marks = np.ones(len(columns), dtype=np.int64)
    return sparse.csr_matrix((marks, columns, start), shape=(len(ends), int(first[-1]))), first
