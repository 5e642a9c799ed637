"""The probability that a split helps rows on which it was not chosen.

Posterior split probabilities of a grown tree are nearly all 1, because its splits were chosen on the same rows that
count in them. Here, rows H that a tree was not grown on are predicted from the rows B that it was grown on. The log
evidence of H in a node that is a leaf is leaf(B and H) - leaf(B); the recursion of Theorem 1 over these evidences, with
even odds for every split, gives the probability that splitting the node predicts such rows better than a leaf.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.posterior.counts import count
from everytree.posterior.rows import Rows
from everytree.structure.grown import Grown
from everytree.trees.metatree import MetaTree


@dataclass(frozen=True)
class HelpfulSplits:
    """For each inner node of one tree, the probability that its split helps rows on which it was not chosen.

    Attributes
    ----------
    tree : int
        Number of the tree in its forest.
    prob : (n_nodes,) float64
        0.5 where no such rows are in the node; NaN at terminals.
    n_rows : int
        Rows that judged.
    is_cross_fitted : bool
        Whether stand-ins for the tree were judged, each grown without some of the rows.
    """

    tree: int
    prob: FloatArray
    n_rows: int
    is_cross_fitted: bool


def held_out_splits(
    number: int, grown: Grown, rows: Rows, family: NativeFamily, n_codes: NDArray[np.int32], n_jobs: int
) -> HelpfulSplits | None:
    """Judge one tree by the rows that it was not grown on; None where there are none."""
    unseen = _unseen(grown, rows)
    if not unseen.any():
        return None
    gain = _gains(grown.tree, rows, unseen, family, n_codes, n_jobs)
    prob = np.where(grown.tree.is_terminal, np.nan, expit(gain))
    return HelpfulSplits(number, prob, int(unseen.sum()), is_cross_fitted=False)


def cross_fitted_splits(
    kept: Grown, stand_ins: Sequence[Grown], rows: Rows, family: NativeFamily, n_codes: NDArray[np.int32], n_jobs: int
) -> HelpfulSplits | None:
    """Judge a tree that was grown on all rows by trees that were each grown without some of them.

    A node is judged by the nodes at the same place of those trees that ask for the same columns on the way there; their
    own splits there may differ. Each counts the rows that its tree was not grown on, and their log odds add up.
    """
    log_odds, n_rows = np.zeros(kept.tree.n_nodes), 0
    for one in stand_ins:
        unseen = _unseen(one, rows)
        if not unseen.any():
            continue
        gain, place = _gains(one.tree, rows, unseen, family, n_codes, n_jobs), same_places(kept.tree, one.tree)
        log_odds += np.where(place >= 0, gain[place], 0.0)
        n_rows += int(unseen.sum())
    prob = np.where(kept.tree.is_terminal, np.nan, expit(log_odds))
    return HelpfulSplits(0, prob, n_rows, is_cross_fitted=True) if n_rows else None


def _unseen(grown: Grown, rows: Rows) -> NDArray[np.bool_]:
    """(n_rows,) rows of groups that a tree was not grown on."""
    if rows.group is None:
        return ~grown.in_bag
    is_seen = np.zeros(int(rows.group.max()) + 1, dtype=bool)
    is_seen[rows.group[grown.in_bag]] = True
    return ~is_seen[rows.group]


def _gains(
    tree: MetaTree,
    rows: Rows,
    unseen: NDArray[np.bool_],
    family: NativeFamily,
    n_codes: NDArray[np.int32],
    n_jobs: int,
) -> FloatArray:
    """(n_nodes,) log evidence of unseen rows if a node is split, less that if it is a leaf; 0 at terminals."""
    (with_them,), _ = count([tree], family, n_codes, rows, n_jobs)
    (before,), _ = count([tree], family, n_codes, rows.at(np.flatnonzero(~unseen)), n_jobs)
    leaf = family.log_evidence(with_them) - family.log_evidence(before)
    even = np.log(np.full(1, 0.5))
    subtree, prob = np.zeros(tree.n_nodes), np.zeros(tree.n_nodes)
    order = np.arange(tree.n_nodes - 1, -1, -1, dtype=np.int32)  # children before parents
    tree.kernel.sweep(order, log_split=even, log_stop=even, leaf=leaf, subtree=subtree, split_prob=prob)
    of_children = np.zeros(tree.n_nodes)
    np.add.at(of_children, tree.parent[1:], subtree[1:])
    return np.where(tree.is_terminal, 0.0, of_children - leaf)


def same_places(tree: MetaTree, other: MetaTree) -> NDArray[np.int64]:
    """(n_nodes,) for each node the one at the same place of another tree; -1 where other columns are asked above it."""
    place = np.full(tree.n_nodes, -1, dtype=np.int64)
    place[0] = 0
    starts = np.searchsorted(tree.depth, np.arange(int(tree.depth[-1]) + 2))
    for level in range(len(starts) - 2):
        nodes = np.arange(starts[level], starts[level + 1])
        nodes = nodes[(place[nodes] >= 0) & ~tree.is_terminal[nodes]]
        there = place[nodes]
        is_same = (
            (other.feature[there] == tree.feature[nodes])
            & (other.n_children[there] == tree.n_children[nodes])
            & ((other.threshold[there] < 0) == (tree.threshold[nodes] < 0))
        )
        nodes, there = nodes[is_same], there[is_same]
        for child in range(int(tree.n_children[nodes].max(initial=0))):
            has_it = tree.n_children[nodes] > child
            place[tree.first_child[nodes[has_it]] + child] = other.first_child[there[has_it]] + child
    return place
