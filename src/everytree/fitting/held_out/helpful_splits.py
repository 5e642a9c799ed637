"""The probability that a split helps rows on which it was not chosen.

Posterior split probabilities of a grown tree are nearly all 1, because its splits were chosen on the same rows that
count in them. Here, rows H that a tree was not grown on are predicted from the rows B that it was grown on. The log
evidence of H in a node that is a leaf is leaf(B and H) - leaf(B); the recursion of Theorem 1 over these evidences, with
even odds for every split, gives the probability that splitting the node predicts such rows better than a leaf.

A tree that was grown on all rows is cross-fitted instead. Every row of a node was seen when its split was chosen. So
the choice is repeated: for each part of the rows that is left out, the best split of the node's region is found by the
other rows, by the same criterion, and judged by the rows left out: are they predicted better by its two sides or by
one leaf? The log odds of all parts add up. What is judged is that the region is split, by whatever split is best there;
the regions themselves are those of the tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.fitting.held_out.held_out import with_group_members
from everytree.posterior.counts import count
from everytree.posterior.rows import Rows
from everytree.structure.grow_on import Classes, Numbers
from everytree.structure.grown import Grown
from everytree.trees.metatree import MetaTree

MAX_DEPTH = 6
MIN_ROWS = 6
"""Deeper and smaller nodes are not judged: their rows would say little. All nodes of two leaves of three rows are."""

MAX_ROWS = 20_000
"""Of a longer table, a random sample of so many rows judges."""


@dataclass(frozen=True)
class HelpfulSplits:
    """For each inner node of one tree, the probability that its split helps rows on which it was not chosen."""

    tree: int  # number of the tree in its forest
    prob: FloatArray  # (n_nodes,): 0.5 where no such rows are in the node, or it is not judged; NaN at terminals
    n_rows: int  # rows that judged
    # whether splits were chosen again without some of the rows, since the tree was grown on all of them
    is_cross_fitted: bool


def held_out_splits(
    number: int, grown: Grown, rows: Rows, family: NativeFamily, n_codes: NDArray[np.int32], n_jobs: int
) -> HelpfulSplits | None:
    """Judge one tree by the rows that it was not grown on; None where there are none."""
    unseen = ~with_group_members(grown.in_bag, rows.group)
    if not unseen.any():
        return None
    gain = _gains(grown.tree, rows, unseen, family, n_codes, n_jobs)
    prob = np.where(grown.tree.is_terminal, np.nan, expit(gain))
    return HelpfulSplits(number, prob, int(unseen.sum()), is_cross_fitted=False)


def _gains(
    tree: MetaTree, rows: Rows, unseen: NDArray[np.bool_], family: NativeFamily, n_codes: NDArray[np.int32], n_jobs: int
) -> FloatArray:
    """(n_nodes,) log evidence of unseen rows if a node is split, less that if it is a leaf; 0 at terminals."""
    (with_them,), _ = count([tree], family, n_codes, rows, n_jobs)
    (before,), _ = count([tree], family, n_codes, rows.at(np.flatnonzero(~unseen)), n_jobs)
    leaf = family.log_evidence(with_them) - family.log_evidence(before)
    return gains_of_splits(tree, leaf)


def gains_of_splits(tree: MetaTree, leaf: FloatArray) -> FloatArray:
    """(n_nodes,) log evidence below a node if it is split, less that if it is a leaf; 0 at terminals.

    Splits below have even odds; `leaf` is the log evidence of each node as a leaf.
    """
    even = np.log(np.full(1, 0.5))
    subtree, prob = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes)
    order = np.arange(tree.n_nodes - 1, -1, -1, dtype=np.int32)  # children before parents
    tree.kernel.sweep(order, log_split=even, log_stop=even, leaf=leaf, subtree=subtree, split_prob=prob)
    of_children = np.zeros(tree.n_nodes)
    np.add.at(of_children, tree.parent[1:], subtree[1:])
    return np.where(tree.is_terminal, 0.0, of_children - leaf)


# ---- trees that were grown on all rows ------------------------------------------------------------------------------


def cross_fitted_splits(
    tree: MetaTree,
    in_bags: Sequence[NDArray[np.bool_]],
    rows: Rows,
    grow_on: Classes | Numbers,
    family: NativeFamily,
    n_codes: NDArray[np.int32],
) -> HelpfulSplits | None:
    """Judge the splits of a tree that was grown on all rows.

    Parameters
    ----------
    tree : MetaTree
    in_bags : sequence of (n_rows,) bool
        The rows that are not left out, for each part.
    rows : Rows
    grow_on : Classes or Numbers
        By which splits are chosen; classes by their Gini impurity.
    family : NativeFamily
    n_codes : (n_features,) int
    """
    part = np.full(len(rows), len(in_bags), dtype=np.int64)  # rows that are never left out come last
    for number, in_bag in enumerate(in_bags):
        part[~in_bag] = number
    if len(rows) > MAX_ROWS:
        chosen = np.sort(np.random.default_rng(0).permutation(len(rows))[:MAX_ROWS])
    else:
        chosen = np.arange(len(rows))
    n_judging = int((part[chosen] < len(in_bags)).sum())
    if not n_judging:
        return None
    table = _table(rows, grow_on, family, n_codes, part, len(in_bags), chosen)
    gain = np.zeros(tree.n_nodes)
    for node, members in _nodes(tree, table.codes_of_tree):
        gain[node] = _gain(table, members)
    return HelpfulSplits(0, _probs(tree, gain), n_judging, is_cross_fitted=True)


class _Table(NamedTuple):
    """The rows that judge."""

    codes_of_tree: NDArray[np.integer]  # (n_rows, n_features) array: as the tree reads them
    codes: NDArray[np.int64]  # (n_rows, n_features): unknown and missing ones after all others
    n_codes: NDArray[np.int64]  # (n_features,): those included
    part: NDArray[np.int64]  # (n_rows,)
    n_parts: int
    weight: FloatArray  # (n_rows,)
    targets: FloatArray  # (n_rows, n_targets): times the weight: a split is the better the more their sums differ
    statistics: FloatArray  # (n_rows, n_statistics)
    family: NativeFamily


def _table(
    rows: Rows,
    grow_on: Classes | Numbers,
    family: NativeFamily,
    n_codes: NDArray[np.int32],
    part: NDArray[np.int64],
    n_parts: int,
    chosen: NDArray[np.int64],
) -> _Table:
    some = rows.at(chosen)
    weight = np.ones(len(chosen)) if grow_on.weight is None else np.asarray(grow_on.weight, np.float64)[chosen]
    y = np.asarray(grow_on.y)[chosen]
    targets = np.eye(int(y.max(initial=0)) + 1)[y] if isinstance(grow_on, Classes) else y[:, None].astype(np.float64)
    return _Table(
        some.codes, np.minimum(some.codes.astype(np.int64), n_codes), n_codes.astype(np.int64) + 1, part[chosen],
        n_parts, weight, targets * weight[:, None], family.statistics(some.y, some.weight, **some.row_data), family,
    )  # fmt: skip


def _nodes(tree: MetaTree, codes: NDArray[np.integer]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Inner nodes near the root with enough rows, and their rows."""
    here = tree.route(codes).astype(np.int64)
    for depth in range(min(int(tree.depth[-1]), MAX_DEPTH), -1, -1):
        while (too_deep := tree.depth[here] > depth).any():
            here = np.where(too_deep, tree.parent[here], here)
        at = np.flatnonzero((tree.depth[here] == depth) & ~tree.is_terminal[here])
        if not len(at):
            continue
        by_node = at[np.argsort(here[at], kind="stable")]
        starts = np.flatnonzero(np.diff(here[by_node], prepend=-1))
        for members in np.split(by_node, starts[1:]):
            if len(members) >= MIN_ROWS:
                yield int(here[members[0]]), members


def _gain(table: _Table, members: NDArray[np.int64]) -> float:
    """Log evidence of rows left out in both sides of splits that were chosen without them, less that in one leaf."""
    part, total = table.part[members], 0.0
    for number, (column, cut) in enumerate(_best_splits(table, members)):
        judging = part == number
        if column < 0 or not judging.any():
            continue
        side = (table.codes[members, column] > cut).astype(np.int64)
        total += _evidence(table, members, side, 2) - _evidence(table, members[~judging], side[~judging], 2)
        leaf = np.zeros(len(members), dtype=np.int64)
        total -= _evidence(table, members, leaf, 1) - _evidence(table, members[~judging], leaf[~judging], 1)
    return total


def _evidence(table: _Table, members: NDArray[np.int64], group: NDArray[np.int64], n_groups: int) -> float:
    family = table.family
    sums = _kernels.sum_statistics(
        family.kernel, family.size, statistics=np.ascontiguousarray(table.statistics[members]),
        group=np.ascontiguousarray(group), n_groups=n_groups,
    )  # fmt: skip
    return float(family.log_evidence(sums).sum())


def _best_splits(table: _Table, members: NDArray[np.int64]) -> list[tuple[int, int]]:
    """For each part, the column and the last code on the left of the best split by the rows of all other parts.

    The column is -1 where no split divides these rows.
    """
    n_parts, part = table.n_parts, table.part[members]
    weight, targets = table.weight[members], table.targets[members]
    best, found = np.full(n_parts, -np.inf), [(-1, 0)] * n_parts
    for column in range(table.codes.shape[1]):
        n_codes = int(table.n_codes[column])
        place = table.codes[members, column] * (n_parts + 1) + part
        if n_codes < 2 or (place // (n_parts + 1) == place[0] // (n_parts + 1)).all():
            continue
        sums = np.stack(
            [np.bincount(place, each, n_codes * (n_parts + 1)) for each in (weight, *targets.T)], axis=1
        ).reshape(n_codes, n_parts + 1, -1)
        left = np.cumsum(sums, axis=0)
        left = (left.sum(axis=1, keepdims=True) - left)[:-1, :n_parts]  # without the part itself
        every = sums.sum(axis=0)
        right = (every.sum(axis=0) - every)[None, :n_parts] - left
        both = (left[:, :, 0] > 0.0) & (right[:, :, 0] > 0.0)
        score = np.where(both, _purity(left) + _purity(right), -np.inf)
        cut = score.argmax(axis=0)
        for number in np.flatnonzero(score[cut, np.arange(n_parts)] > best):
            best[number] = score[cut[number], number]
            found[number] = (column, int(cut[number]))
    return found


def _purity(sums: FloatArray) -> FloatArray:
    """Squared sums of targets over their weight: the larger, the less they vary."""
    weight = np.where(sums[..., 0] > 0.0, sums[..., 0], 1.0)
    return np.asarray((sums[..., 1:] ** 2).sum(axis=-1) / weight)


def _probs(tree: MetaTree, gain: FloatArray) -> FloatArray:
    """(n_nodes,) probability that a node is split, with what is gained by the splits below; NaN at terminals.

    The children share the evidence that a split gains, so that the recursion sums over the splits that are gained.
    """
    leaf = np.zeros(tree.n_nodes)
    for node in np.flatnonzero(~tree.is_terminal):  # parents before children
        children = slice(tree.first_child[node], tree.first_child[node] + tree.n_children[node])
        leaf[children] = (leaf[node] + gain[node]) / tree.n_children[node]
    return np.where(tree.is_terminal, np.nan, expit(gains_of_splits(tree, leaf)))
