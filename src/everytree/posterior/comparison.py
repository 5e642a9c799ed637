"""Whether two sets of rows follow one law, and where not: two posteriors on one meta-tree.

Both sets share the pruned tree. From the root down, a node is the same in both as a whole, or it is looked into: each
of its children decides in turn, and a leaf that is looked into has parameters of its own in each set. The sum over
every pruning and every set of changed leaves is one upward sweep, like Theorem 1 of the paper:

`looked_into = stop * leaf(a) * leaf(b) + split * product of any(child)`
`any = (1 - c) * subtree(a and b together) + c * looked_into`

with c the prior probability that a node is looked into. Without the term of leaves, it is the sum over all ways in
which nothing has changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from everytree.base.arrays import FloatArray
from everytree.posterior.posterior import Posterior
from everytree.trees.questions import TreeDistribution


@dataclass(frozen=True)
class Comparison:
    """Whether rows of `a` and of `b` follow one law."""

    log_unchanged_prob: float  # logarithms of `unchanged_prob` and `prior_unchanged_prob`
    log_prior_unchanged_prob: float
    # (n_nodes,): for each node of the tree that is drawn, the probability that something has changed in its region
    change_prob: FloatArray
    # (n_nodes,): for each node of this tree, if it were a leaf: log evidence of a parameter for each set, less that of
    # one for both
    node_log_bayes_factor: FloatArray
    a: Posterior  # of the tree that is drawn: of several, the one with the largest evidence
    b: Posterior
    _at_rows: Callable[[Any], FloatArray]
    _words: dict[str, Any]

    @property
    def unchanged_prob(self) -> float:
        """Probability that nothing has changed: every leaf has one parameter for both sets of rows."""
        return math.exp(self.log_unchanged_prob)

    @property
    def prior_unchanged_prob(self) -> float:
        """The same before any rows; it depends on the shapes of the trees and the priors alone."""
        return math.exp(self.log_prior_unchanged_prob)

    @property
    def log_bayes_factor(self) -> float:
        """Log of how much more probable the rows are if something has changed than if nothing has."""
        return _log_odds_of_change(self.log_unchanged_prob) - _log_odds_of_change(self.log_prior_unchanged_prob)

    def at_rows(self, X: Any) -> FloatArray:
        """(n_rows,) probability that the law of the target has changed at each row; X as for the models compared."""
        return self._at_rows(X)

    def to_text(self, **options: Any) -> str:
        """The tree with characters, and at each node the probability of a change, rows and predictions of both.

        Options as in `Posterior.to_text`.
        """
        from everytree.view.comparison import comparison_text

        return comparison_text(self, **{**self._words, **options})

    def plot(self, **options: Any) -> Any:
        """Draw the tree, the probability of a change at each node and predictions of both; returns matplotlib's axes.

        Options as in `everytree.plot_tree`.
        """
        from everytree.view.plot.comparison import plot_comparison

        return plot_comparison(self, **{**self._words, **options})

    def __repr__(self) -> str:
        return f"Comparison(unchanged_prob={self.unchanged_prob:.4g}, a={self.a.n_rows} rows, b={self.b.n_rows} rows)"


@dataclass(frozen=True)
class TreeChange:
    """Sums over the prunings of one tree, in logs."""

    log_any: float  # log evidence of both sets, whatever has changed
    log_unchanged: float  # the part of it in which nothing has
    change_prob: FloatArray  # (n_nodes,)


def compare_posteriors(
    pairs: Sequence[tuple[Posterior, Posterior]],
    change_prior: float,
    weights: FloatArray | None,
    ends: Callable[[Any], NDArray[np.int32]],
    words: dict[str, Any],
) -> Comparison:
    """Compare pairs of posteriors, each pair on a tree of its own.

    Parameters
    ----------
    pairs : sequence of (Posterior, Posterior)
    change_prior : float
    weights : (n_trees,) float64 or None
        Of the trees; by default in proportion to their evidence.
    ends : callable
        For rows, (n_rows, n_trees) the node of each tree where they end.
    words : dict
        Options of pictures: names of columns and classes.
    """
    boths = [a.copy().merge(b) for a, b in pairs]
    found = [
        tree_change(
            both.prior_tree_distribution(), both.subtree_log_evidence, a.leaf_log_evidence + b.leaf_log_evidence,
            change_prior,
        )
        for both, (a, b) in zip(boths, pairs, strict=True)
    ]  # fmt: skip
    log_any = np.array([one.log_any for one in found])
    if weights is None:
        weights = np.exp(log_any - logsumexp(log_any))
    unchanged = logsumexp([one.log_unchanged - one.log_any for one in found], b=weights)
    prior = logsumexp([_log_prior_unchanged(both, change_prior) for both in boths], b=weights)
    drawn = int(np.argmax(log_any))
    a, b = pairs[drawn]
    apart = a.leaf_log_evidence + b.leaf_log_evidence - boths[drawn].leaf_log_evidence

    def at_rows(X: Any) -> FloatArray:
        of_tree = zip(weights, found, ends(X).T, strict=True)
        return np.asarray(sum(weight * one.change_prob[end] for weight, one, end in of_tree))

    return Comparison(float(unchanged), float(prior), found[drawn].change_prob, apart, a, b, at_rows, words)


def tree_change(
    prior: TreeDistribution, together: FloatArray, leaves_apart: FloatArray, change_prior: float
) -> TreeChange:
    """Sum over every pruning of a tree and every set of changed leaves.

    Parameters
    ----------
    prior : TreeDistribution
    together : (n_nodes,) float64
        Log evidence of both sets in each node together, averaged over every subtree below it.
    leaves_apart : (n_nodes,) float64
        Log evidence of each node as a leaf with parameters of its own for each set.
    change_prior : float
        Prior probability that a node is looked into.
    """
    look, same = np.log(change_prior), np.log1p(-change_prior) + together
    as_leaf = look + prior.log_stop + leaves_apart
    into = look + prior.log_split
    anything = prior.upward(
        np.logaddexp(same, as_leaf),
        lambda nodes, below: np.logaddexp(same[nodes], np.logaddexp(as_leaf[nodes], into[nodes] + below)),
        np.add,
    )
    unchanged = prior.upward(same, lambda nodes, below: np.logaddexp(same[nodes], into[nodes] + below), np.add)
    tree = prior.tree
    inner = np.flatnonzero(~tree.is_terminal)
    goes_on, is_changed = np.zeros(tree.n_nodes), np.exp(as_leaf - anything)
    if len(inner):
        below = np.add.reduceat(anything, tree.first_child[inner])
        goes_on[inner] = np.exp(into[inner] + below - anything[inner])
    reached = prior.downward(1.0, goes_on)
    above = np.zeros(tree.n_nodes)  # probability that a leaf above has changed
    for start, stop in prior.levels[1:]:
        parent = tree.parent[start:stop]
        above[start:stop] = above[parent] + reached[parent] * is_changed[parent]
    change_prob = np.minimum(above - reached * np.expm1(unchanged - anything), 1.0)
    return TreeChange(float(anything[0]), float(unchanged[0]), change_prob)


def _log_prior_unchanged(post: Posterior, change_prior: float) -> float:
    """Log probability that nothing changes, before any rows."""
    nothing = np.zeros(post.tree.n_nodes)
    return tree_change(post.prior_tree_distribution(), nothing, nothing, change_prior).log_unchanged


def _log_odds_of_change(log_unchanged: float) -> float:
    return float(np.log(-np.expm1(log_unchanged)) - log_unchanged) if log_unchanged < 0.0 else -math.inf
