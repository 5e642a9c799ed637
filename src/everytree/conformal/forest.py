"""Jackknife+ after bootstrap: by the trees of a forest that were not grown on a row, in which it does not count.

A row is subtracted from the statistics on its path in closed form, which changes the probabilities of the splits on the
path. A new row shares the first nodes of it: what they say is a sum `stopped` of all that end there, and the rest,
`goes_on`, takes what the new row's own path says from the node on where the two part. That part has not seen the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.errors import ArgumentError
from everytree.conformal.conformal import Asked, Conformal
from everytree.conformal.folds import plus_interval
from everytree.conformal.guarantee import Guarantee, rows_needed
from everytree.conformal.scores import SMALLEST_SCALE, moments_of, random_shares, ranked_scores
from everytree.posterior.forest import Forest
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.posterior.split_prior import log_split_stop
from everytree.predictive.pooled import sharpened
from everytree.trees.metatree import MetaTree

MAX_ROWS = 1000
"""Rows that are left out one by one; of a longer table they are drawn, and all others count in every tree."""

MAX_VALUES = 4000
"""Of many classes there are fewer of these rows, so many times the number of classes at most."""

ROWS_AT_ONCE = 512
"""New rows for which memory is taken at a time."""

SHARED = (
    "columns, cut points and the order of categories are those of all rows, as are the priors of leaves and splits, "
    "the weights of trees and their sharpness"
)
"""What trees that were not grown on a row still know of it."""


@dataclass(frozen=True)
class ForestConformal(Conformal):
    """Rows that are left out, and the trees that were not grown on them.

    Attributes
    ----------
    codes : (n_rows, n_features) array of codes
    target : (n_rows,) array
    own : (n_rows, n_statistics) float64
        What is subtracted with each row: its statistics, and those of rows that repeat it.
    unseen : (n_trees, n_rows) bool
    salt : int
        By which random shares of class probabilities are drawn.
    """

    codes: NDArray[Any]
    target: NDArray[Any]
    own: FloatArray
    unseen: NDArray[np.bool_]
    salt: int

    @classmethod
    def of_rows(cls, forest: Forest, rows: Rows, unseen: NDArray[np.bool_]) -> ForestConformal:
        """Draw the rows to leave out, one of each group, of those that some tree was not grown on.

        Parameters
        ----------
        forest : Forest
        rows : Rows
            All of them are counted in it.
        unseen : (n_trees, n_rows) bool
            Which rows of groups each tree was not grown on.
        """
        _check(rows)
        rng = np.random.default_rng(0)
        salt = int(rng.integers(2**63))
        drawn = rng.permutation(np.flatnonzero((unseen & (forest.weights > 0.0)[:, None]).any(axis=0)))
        own = forest.family.statistics(rows.y, rows.weight, **rows.row_data)
        if rows.group is not None:
            drawn = drawn[np.unique(rows.group[drawn], return_index=True)[1]]
            sums = np.zeros((int(rows.group.max()) + 1, own.shape[1]))
            np.add.at(sums, rows.group, own)
            own = sums[rows.group]
        n_values = forest.family.size if forest.family.has_classes else 1
        drawn = np.sort(rng.permutation(drawn)[: min(MAX_ROWS, max(MAX_VALUES // n_values, 100))])
        return cls(rows.codes[drawn], rows.y[drawn], own[drawn], unseen[:, drawn], salt)

    @property
    def guarantee(self) -> Guarantee:
        promise = "a new row is covered at least as often as 1 - 2 (1 - coverage)"
        return Guarantee("Jackknife+ after bootstrap", promise, len(self.codes), 2, 0.0, SHARED)

    def interval(self, asked: Asked, coverage: float) -> FloatArray:
        needed = rows_needed(len(self.codes), coverage)
        forest = asked.model.parts.averaged
        centre = float(np.mean(self.target))
        without = self.without(forest, centre)
        middle, scale = _about(without.of_rows)
        score = np.abs(self.target - centre - middle) / scale
        ends = np.empty((len(asked.codes), 2))
        for some in _chunks(len(asked.codes)):
            middle, scale = (each.T for each in _about(without.at(asked.codes[some])))
            ends[some] = centre + plus_interval(middle - score * scale, middle + score * scale, needed)
        return ends

    def classes(self, asked: Asked, coverage: float, *, each_class: bool) -> NDArray[np.bool_]:
        forest, labels = asked.model.parts.averaged, range(len(asked.labels))
        without = self.without(forest, 0.0)
        shares = random_shares(self.codes, self.salt)
        own = ranked_scores(sharpened(without.of_rows, forest.sharpness), shares)[range(len(self.target)), self.target]
        known = [self.target == label if each_class else np.ones(len(own), dtype=bool) for label in labels]
        of = [f" of class {label!r}" if each_class else "" for label in asked.labels]
        needed = [rows_needed(int(some.sum()), coverage, which) for some, which in zip(known, of, strict=True)]
        inside = np.empty((len(asked.codes), len(asked.labels)), dtype=bool)
        for some in _chunks(len(asked.codes)):
            probs = without.at(asked.codes[some])
            n_rows, _, n_classes = probs.shape
            shares = np.tile(random_shares(asked.codes[some], self.salt), n_rows)
            scores = ranked_scores(sharpened(probs.reshape(-1, n_classes), forest.sharpness), shares)
            scores = scores.reshape(probs.shape)
            for label in labels:
                as_unusual = own[known[label], None] >= scores[known[label], :, label]
                inside[some, label] = as_unusual.sum(axis=0) >= needed[label]
        return inside

    def without(self, forest: Forest, centre: float) -> ForestWithout:
        """What the forest says without each of the rows."""

        def values(statistics: FloatArray) -> FloatArray:
            nodes = statistics.reshape(-1, statistics.shape[-1])
            if forest.family.has_classes:
                components: Any = forest.family.predictive(nodes)
                found = components.probs()
            else:
                mean, variance = moments_of(forest.family, nodes)
                found = np.stack([mean - centre, variance + (mean - centre) ** 2], axis=1)
            return np.asarray(found).reshape(*statistics.shape[:-1], -1)

        trees = []
        for post, weight, unseen in zip(forest.posteriors, forest.weights, self.unseen, strict=True):
            rows = np.flatnonzero(unseen)
            if weight > 0.0 and len(rows):
                path = paths_of(post.tree, post.tree.route(self.codes[rows]))
                trees.append(TreeWithout.of(post, rows, path, self.own[rows], values, float(weight)))
        return ForestWithout(trees, len(self.codes))


class ForestWithout(NamedTuple):
    """Trees that leave rows out."""

    trees: list[TreeWithout]
    n_rows: int

    @property
    def of_rows(self) -> FloatArray:
        """(n_rows, n_values) of each row itself."""
        return self._average((), lambda tree: tree.of_rows)

    def at(self, codes: NDArray[Any]) -> FloatArray:
        """(n_rows, n_new, n_values) of new rows, without each of the rows."""
        return self._average((len(codes),), lambda tree: tree.at(codes))

    def _average(self, shape: tuple[int, ...], of_tree: Callable[[TreeWithout], FloatArray]) -> FloatArray:
        total = np.zeros((self.n_rows, *shape, self.trees[0].stopped.shape[-1]))
        weight = np.zeros(self.n_rows)
        for tree in self.trees:
            total[tree.rows] += tree.weight * of_tree(tree)
            weight[tree.rows] += tree.weight
        return total / weight.reshape(-1, *[1] * (total.ndim - 1))


@dataclass(frozen=True)
class TreeWithout:
    """A tree, without each of some rows at a time.

    Attributes
    ----------
    rows : (n_rows,) int64
        Numbers of the rows.
    path : (n_rows, depth) int64
        Nodes of each, from the root on; then -1.
    stopped : (n_rows, depth, n_values) float64
        Sum over the nodes up to one of the probability that it is the leaf of the row, times its values.
    goes_on : (n_rows, depth) float64
        Probability that no node up to one is the leaf.
    values : (n_rows, depth, n_values) float64
        Of each node on the path, without the row.
    post : Posterior
    of_nodes : (n_nodes, n_values) float64
        Of all nodes, with all rows.
    weight : float
        Of the tree.
    """

    rows: NDArray[np.int64]
    path: NDArray[np.int64]
    stopped: FloatArray
    goes_on: FloatArray
    values: FloatArray
    post: Posterior
    of_nodes: FloatArray
    weight: float

    @classmethod
    def of(
        cls,
        post: Posterior,
        rows: NDArray[np.int64],
        path: NDArray[np.int64],
        own: FloatArray,
        values_of: Callable[[FloatArray], FloatArray],
        weight: float,
    ) -> TreeWithout:
        """Subtract each row's own statistics from those on its path."""
        every, family = post.statistics, post.family
        without = every[path] - own[:, None, :]
        without[path < 0] = 0.0
        leaf = family.log_evidence(without.reshape(-1, without.shape[-1])).reshape(path.shape)
        split = _split_prob(post, path, leaf)
        goes_on = np.asarray(np.cumprod(split, axis=1), dtype=np.float64)
        reached = np.column_stack([np.ones(len(path)), goes_on[:, :-1]])
        values = values_of(without)
        stopped: FloatArray = np.cumsum((reached * (1.0 - split))[:, :, None] * values, axis=1)
        return cls(rows, path, stopped, goes_on, values, post, values_of(every), weight)

    @property
    def of_rows(self) -> FloatArray:
        """(n_rows, n_values) of each row itself, whose path ends where it ends."""
        end = (np.arange(len(self.path)), (self.path >= 0).sum(axis=1) - 1)
        return np.asarray(self.stopped[end] + self.goes_on[end][:, None] * self.values[end])

    def at(self, codes: NDArray[Any]) -> FloatArray:
        """(n_rows, n_new, n_values) of new rows, without each of the rows."""
        ends, which = np.unique(self.post.tree.route(codes), return_inverse=True)
        new = paths_of(self.post.tree, ends)
        rest, length = self._rest(new), (new >= 0).sum(axis=1)
        shared = np.zeros((len(self.path), len(new)), dtype=np.int64)
        for level in range(min(new.shape[1], self.path.shape[1])):  # padding is never shared
            shared += (self.path[:, level, None] == new[None, :, level]) & (new[None, :, level] >= 0)
        row, column = np.arange(len(self.path))[:, None], np.arange(len(new))[None, :]
        last = shared - 1
        is_end = (length[None, :] == shared)[:, :, None]
        beyond = np.where(is_end, self.values[row, last], rest[column, np.minimum(shared, new.shape[1] - 1)])
        found: FloatArray = self.stopped[row, last] + self.goes_on[row, last][:, :, None] * beyond
        return found[:, which]

    def _rest(self, new: NDArray[np.int64]) -> FloatArray:
        """(n_new, depth, n_values) what is said of new rows from each node of their paths on."""
        split = self.post.split_prob[new]
        rest = self.of_nodes[new]
        for level in range(new.shape[1] - 2, -1, -1):
            on = (new[:, level + 1] >= 0)[:, None]
            share = np.where(on, split[:, level, None], 0.0)
            rest[:, level] = (1.0 - share) * rest[:, level] + share * rest[:, level + 1]
        return np.asarray(rest)


def paths_of(tree: MetaTree, ends: NDArray[np.int32]) -> NDArray[np.int64]:
    """(n_rows, depth) nodes from the root to the ends of rows; then -1."""
    depth = tree.depth[ends]
    path = np.full((len(ends), int(depth.max(initial=0)) + 1), -1, dtype=np.int64)
    node, row = ends.astype(np.int64), np.arange(len(ends))
    for level in range(path.shape[1] - 1, -1, -1):
        on = depth[row] >= level
        path[row[on], level] = node[on]
        node = np.where(on & (level > 0), tree.parent[node], node)
    return path


def _split_prob(post: Posterior, path: NDArray[np.int64], leaf: FloatArray) -> FloatArray:
    """(n_rows, depth) split probabilities on paths whose nodes have other log evidences as leaves than in the tree."""
    tree, subtree = post.tree, post.subtree_log_evidence
    inner = np.flatnonzero(~tree.is_terminal)
    children = np.zeros(tree.n_nodes)
    if len(inner):
        children[inner] = np.add.reduceat(subtree, tree.first_child[inner])
    log_split, log_stop = log_split_stop(post.split_prior)
    split, below = np.zeros(path.shape), np.zeros(len(path))
    for level in range(path.shape[1] - 1, -1, -1):
        node = path[:, level]
        on_split, on_stop = log_split[node] + children[node] + below, log_stop[node] + leaf[:, level]
        total = np.logaddexp(on_split, on_stop)
        split[:, level] = np.exp(on_split - total)
        below = np.where(node >= 0, total - subtree[node], 0.0)  # change of what is above it
    split[path < 0] = 0.0
    return split


def _about(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations from the first two moments."""
    mean, square = values[..., 0], values[..., 1]
    return mean, np.maximum(np.sqrt(np.maximum(square - mean**2, 0.0)), SMALLEST_SCALE)


def _chunks(n_rows: int) -> list[slice]:
    return [slice(start, start + ROWS_AT_ONCE) for start in range(0, n_rows, ROWS_AT_ONCE)]


def _check(rows: Rows) -> None:
    """Check that rows can be left out one by one, or with those that repeat them."""
    if rows.row_data:
        must = f"is 'left_out', but not for forests with {', '.join(rows.row_data)}: give a share of the rows"
        raise ArgumentError("calibration_rows", must)
    if rows.group is not None:
        first = np.unique(rows.group, return_index=True)[1]
        if (rows.codes != rows.codes[first][rows.group]).any():
            must = "is 'left_out', but not for forests of rows in groups: give a share of the rows"
            raise ArgumentError("calibration_rows", must)
