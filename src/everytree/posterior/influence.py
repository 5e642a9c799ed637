"""Predictions of a forest without some of its rows, structures and priors held fixed.

A group of rows changes the nodes on its paths and no others. For each of these nodes the statistics without the group
give its evidence and its prediction; a new row shares the first of them with the group, and goes on from there as
before. So no forest is counted again: a group costs its paths, and a prediction one step beyond the last shared node.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.posterior.forest import Forest
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.predictive.pooled import sharpened

MAX_ENTRIES = 2_000_000
"""Numbers in the largest table for one tree: groups are taken in blocks."""


def predictions_without(
    forest: Forest, rows: Rows, group: NDArray[np.int64], X_new: NDArray[Any], n_jobs: int | None
) -> FloatArray:
    """(n_groups, n_new, n_values) probabilities of classes or means of new rows, without each group of rows.

    Parameters
    ----------
    forest : Forest
        Of a built-in family.
    rows : Rows
        Some of those that it has counted.
    group : (n_rows,) int64
        Numbers from 0 on.
    X_new : (n_new, n_features) codes
    n_jobs : int, optional
    """
    n_groups = int(group.max(initial=-1)) + 1
    ends, new_ends = (forest.ends(codes, n_jobs=n_jobs) for codes in (rows.codes, X_new))
    own = forest.family.statistics(rows.y, rows.weight, **dict[str, Any](rows.row_data))
    block = max(1, MAX_ENTRIES // (max(tree.n_nodes for tree in forest.trees) + len(X_new)))
    found = [
        _without_block(forest, ends[some], own[some], group[some] - first, min(block, n_groups - first), new_ends)
        for first in range(0, n_groups, block)
        for some in [np.flatnonzero((group >= first) & (group < first + block))]
    ]
    return np.concatenate(found) if found else np.zeros((0, len(X_new), 1))


def _without_block(
    forest: Forest, ends: NDArray[np.int32], own: FloatArray, group: NDArray[np.int64], n_groups: int,
    new_ends: NDArray[np.int32],
) -> FloatArray:  # fmt: skip
    """The same for some groups."""
    trees = [_Without(post, end, own, group, n_groups) for post, end in zip(forest.posteriors, ends.T, strict=True)]
    weights = np.broadcast_to(forest.weights[:, None], (len(trees), n_groups))
    if forest.weighs_by_evidence:
        evidence = np.array([tree.log_evidence for tree in trees])
        weights = np.exp(evidence - logsumexp(evidence, axis=0))
    total: Any = 0.0
    for tree, end, weight in zip(trees, new_ends.T, weights, strict=True):
        total = total + weight[:, None, None] * tree.predictions(end)
    if forest.family.has_classes:
        total = sharpened(total.reshape(-1, total.shape[2]), forest.sharpness).reshape(total.shape)
    return np.asarray(total)


class _Without:
    """One tree without each group: its touched nodes, one entry for each group and node, in ascending order of both.

    Attributes
    ----------
    log_evidence : (n_groups,) float64
        Of the rows without each group.
    """

    def __init__(
        self, post: Posterior, ends: NDArray[np.int32], own: FloatArray, group: NDArray[np.int64], n_groups: int
    ) -> None:
        self._post, self._n_groups = post, n_groups
        self._over = post.tree_distribution()
        placed = np.flatnonzero(post.tree.is_terminal[ends])
        keys, rows = _keys_upward(post.tree.parent, ends[placed], group[placed], post.tree.n_nodes)
        self._keys, entry = np.unique(keys, return_inverse=True)
        self._node, self._group = self._keys % post.tree.n_nodes, self._keys // post.tree.n_nodes
        left = self._statistics_left(own[placed][rows], entry)
        family = post.family.at(self._node)
        self._value = _values(family.predictive(left))
        self.log_evidence = np.full(n_groups, post.log_evidence)
        self._log_split, self._log_stop = self._sweep(family.log_evidence(left))

    def _statistics_left(self, own: FloatArray, entry: NDArray[np.int64]) -> FloatArray:
        """Statistics of the touched nodes without their group."""
        family: NativeFamily = self._post.family  # type: ignore[assignment]
        named = family.kernel, family.size
        removed = _kernels.sum_statistics(
            *named, statistics=np.ascontiguousarray(own), group=entry.astype(np.int64), n_groups=len(self._keys)
        )
        every = np.ascontiguousarray(self._post.statistics[self._node])
        left, was_there = _kernels.take_away(*named, statistics=every, others=removed)
        if not was_there:
            raise ValueError("X and y have rows that were never counted: there is less in a node than they would take")
        return left

    def _sweep(self, leaf: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log probabilities that touched nodes are split, and not, from their evidence as leaves: Theorem 1."""
        tree, prior = self._post.tree, self._post.prior_tree_distribution()
        before, subtree = self._post.subtree_log_evidence, np.zeros(len(leaf))
        log_split, log_stop = np.full(len(leaf), -np.inf), np.zeros(len(leaf))
        depth = tree.depth[self._node]
        for level in range(int(depth.max(initial=-1)), -1, -1):
            at = np.flatnonzero(depth == level)
            is_inner = ~tree.is_terminal[self._node[at]]
            subtree[at] = leaf[at]
            at = at[is_inner]
            if not len(at):
                continue
            sizes = tree.n_children[self._node[at]].astype(np.int64)
            begin = np.cumsum(sizes) - sizes
            owner = np.repeat(np.arange(len(at)), sizes)
            child = tree.first_child[self._node[at]][owner] + (np.arange(len(owner)) - begin[owner])
            place, is_touched = self._find(self._group[at][owner], child)
            below = np.add.reduceat(np.where(is_touched, subtree[place], before[child]), begin)
            stop = prior.log_stop[self._node[at]] + leaf[at]
            split = prior.log_split[self._node[at]] + below
            subtree[at] = np.logaddexp(stop, split)
            log_split[at], log_stop[at] = split - subtree[at], stop - subtree[at]
        roots = self._node == 0
        self.log_evidence[self._group[roots]] = subtree[roots]
        return log_split, log_stop

    def _find(self, group: NDArray[np.int64], node: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Entries of groups and nodes, and whether they are there."""
        key = group * self._post.tree.n_nodes + node
        place = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        return place, self._keys[place] == key

    def predictions(self, ends: NDArray[np.int32]) -> FloatArray:
        """(n_groups, n_new, n_values) predictions of rows that end in these nodes."""
        tree = self._post.tree
        nodes, of_row = np.unique(ends, return_inverse=True)
        beyond = self._going_on(nodes)
        out = np.broadcast_to(beyond[:, 0], (self._n_groups, *beyond[:, 0].shape)).copy()
        if len(self._keys):
            last = self._deepest_touched()[:, nodes]  # (n_groups, n_nodes): every group with rows touches the root
            group, at = np.nonzero(last >= 0)
            entry = last[group, at]
            so_far, reached = self._downward()
            is_end = self._node[entry] == nodes[at]
            stop = np.where(is_end, 1.0, np.exp(self._log_stop[entry]))
            goes_on = np.where(is_end, 0.0, np.exp(self._log_split[entry]))
            following = np.minimum(tree.depth[self._node[entry]] + 1, beyond.shape[1] - 1)
            own = stop[:, None] * self._value[entry] + goes_on[:, None] * beyond[at, following]
            out[group, at] = so_far[entry] + reached[entry][:, None] * own
        return np.asarray(out[:, of_row])

    def _going_on(self, nodes: NDArray[Any]) -> FloatArray:
        """(n_ends, n_levels, n_values) what rows that end in a node predict from each level on, with all rows."""
        tree, over = self._post.tree, self._over
        values = _values(self._post.family.predictive(self._post.statistics))
        n_levels = int(tree.depth[nodes].max(initial=0)) + 1
        found = np.repeat(values[nodes][:, None], n_levels, axis=1)
        current = nodes.astype(np.int64)
        for level in range(n_levels - 2, -1, -1):
            is_below = tree.depth[current] > level
            current = np.where(is_below, tree.parent[current], current)
            through = np.exp(over.log_stop[current])[:, None] * values[current]
            through += np.exp(over.log_split[current])[:, None] * found[:, level + 1]
            found[:, level] = np.where(is_below[:, None], through, found[:, level])
        return found

    def _deepest_touched(self) -> NDArray[np.int64]:
        """(n_groups, n_nodes) the entry of the last touched node on the way to each node; -1 where none is."""
        tree = self._post.tree
        last = np.full((self._n_groups, tree.n_nodes), -1, dtype=np.int64)
        last[self._group, self._node] = np.arange(len(self._keys))
        for start, stop in self._over.levels[1:]:
            here = last[:, start:stop]
            last[:, start:stop] = np.where(here >= 0, here, last[:, tree.parent[start:stop]])
        return last

    def _downward(self) -> tuple[FloatArray, FloatArray]:
        """For each entry what the nodes above it add to predictions, and the probability that all these are split."""
        tree = self._post.tree
        so_far, reached = np.zeros_like(self._value), np.ones(len(self._keys))
        depth = tree.depth[self._node]
        for level in range(1, int(depth.max()) + 1):
            at = np.flatnonzero(depth == level)
            up, _ = self._find(self._group[at], tree.parent[self._node[at]])
            so_far[at] = so_far[up] + (reached[up] * np.exp(self._log_stop[up]))[:, None] * self._value[up]
            reached[at] = reached[up] * np.exp(self._log_split[up])
        return so_far, reached


def _keys_upward(
    parent: NDArray[np.int32], ends: NDArray[np.int32], group: NDArray[np.int64], n_nodes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Group times number of nodes plus node for the nodes where rows end and all above, and the row of each."""
    node, row = ends.astype(np.int64), np.arange(len(ends))
    keys, rows = [], []
    while len(node):
        keys.append(group[row] * n_nodes + node)
        rows.append(row)
        node = parent[node].astype(np.int64)
        node, row = node[node >= 0], row[node >= 0]
    nothing = [np.zeros(0, dtype=np.int64)]
    return np.concatenate(keys or nothing), np.concatenate(rows or nothing)


def _values(components: Any) -> FloatArray:
    """(n, n_classes) probabilities, or (n, 1) means."""
    return np.asarray(components.probs() if hasattr(components, "probs") else components.mean()[:, None])
