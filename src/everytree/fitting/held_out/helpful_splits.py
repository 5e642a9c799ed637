"""The probability that a split helps rows on which it was not chosen.

Posterior split probabilities of a grown tree are nearly all 1, because its splits were chosen on the same rows that
count in them. Here, rows H that a tree was not grown on are predicted from the rows B that it was grown on. The log
evidence of H in a node that is a leaf is leaf(B and H) - leaf(B); the recursion of Theorem 1 over these evidences, with
even odds for every split, gives the probability that splitting the node predicts such rows better than a leaf.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.fitting.held_out.held_out import with_group_members
from everytree.posterior.counts import count
from everytree.posterior.rows import Rows
from everytree.structure.grown import Grown
from everytree.trees.metatree import MetaTree


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
