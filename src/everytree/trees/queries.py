"""Questions about the tree, answered from split probabilities: closed forms and dynamic programming over flat arrays.

Every function takes a `TreeDistribution`: a probability for each node of being split given that it is in the tree. The
prior and the posterior both have that form (Proposition 1 of the paper), so every function applies to both. Levels
are contiguous in level order and so are the children of a level, which makes each sweep a handful of vectorised steps
per level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.checks import whole_number
from everytree.base.lazy import cached_property
from everytree.trees.metatree import MetaTree
from everytree.trees.pruned import PrunedTree


class RankedTree(NamedTuple):
    """A pruned tree and its log probability."""

    tree: PrunedTree
    log_prob: float


@dataclass(frozen=True)
class TreeDistribution:
    """p(T) = prod(split_prob of inner nodes) * prod(1 - split_prob of leaves), in logs.

    Attributes
    ----------
    tree : MetaTree
    log_split, log_stop : (n_nodes,) float64
        Log probability that a node is split, and that it is not, given that it is in the tree. Both are kept: a
        probability near 1 loses the digits of its complement.
    """

    tree: MetaTree
    log_split: FloatArray
    log_stop: FloatArray

    @cached_property
    def split_prob(self) -> FloatArray:
        return np.exp(self.log_split)

    @cached_property
    def levels(self) -> list[tuple[int, int]]:
        """First node of each level, and of the next."""
        depth = self.tree.depth
        starts = np.searchsorted(depth, np.arange(int(depth[-1]) + 2))
        return list(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))

    def upward(
        self,
        at_terminals: float | FloatArray,
        at_inner: Callable[[NDArray[np.int64], FloatArray], FloatArray],
        reduce: np.ufunc,
    ) -> FloatArray:
        """Fill values from the deepest level up: `at_inner(nodes, reduce of their children's values)`."""
        tree = self.tree
        values = np.array(np.broadcast_to(np.asarray(at_terminals, dtype=np.float64), (tree.n_nodes,)))
        for start, stop in reversed(self.levels):
            nodes = np.arange(start, stop)[~tree.is_terminal[start:stop]]
            if len(nodes):
                first = int(tree.first_child[nodes[0]])
                last = int(tree.first_child[nodes[-1]] + tree.n_children[nodes[-1]])
                combined = reduce.reduceat(values[first:last], tree.first_child[nodes] - first)
                values[nodes] = at_inner(nodes, combined)
        return values

    def downward(self, at_root: float, step: FloatArray) -> FloatArray:
        """Fill values from the root down: a child has its parent's value times `step` of the parent."""
        tree = self.tree
        values = np.empty(tree.n_nodes)
        values[0] = at_root
        for start, stop in self.levels[1:]:
            above = tree.parent[start:stop]
            values[start:stop] = values[above] * step[above]
        return values


def tree_log_prob(over: TreeDistribution, tree: PrunedTree) -> float:
    """Log probability of one pruned tree."""
    return float(over.log_split[tree.inner].sum() + over.log_stop[tree.leaves].sum())


def node_prob(over: TreeDistribution) -> FloatArray:
    """P(s in T): the probability that all nodes above are split."""
    return over.downward(1.0, over.split_prob)


def leaf_prob(over: TreeDistribution) -> FloatArray:
    """P(s is a leaf of T)."""
    return node_prob(over) * np.exp(over.log_stop)


def entropy(over: TreeDistribution) -> float:
    """Entropy of p(T) in nats: each node's own, weighted by the probability that it is in the tree."""
    own = -(_times_log(over.log_split, over.log_split) + _times_log(over.log_stop, over.log_stop))
    return float(node_prob(over) @ own)


def kl_divergence(over: TreeDistribution, other: TreeDistribution) -> float:
    """Kullback-Leibler divergence of p(T) from another distribution over the same trees, in nats."""
    with np.errstate(invalid="ignore"):  # -inf - (-inf), where the probability is zero as well
        own = _times_log(over.log_split, over.log_split - other.log_split)
        own += _times_log(over.log_stop, over.log_stop - other.log_stop)
    return float(node_prob(over) @ own)


def expected_leaves(over: TreeDistribution) -> float:
    """Mean number of leaves of T."""
    return float(leaf_prob(over).sum())


def expected_depth(over: TreeDistribution) -> float:
    """Mean depth of T's deepest leaf."""
    distribution = depth_distribution(over)
    return float(distribution @ np.arange(len(distribution)))


def depth_distribution(over: TreeDistribution) -> FloatArray:
    """P(depth of T is d) for d = 0, 1, ...: P(at most d) is one upward sweep over the levels above d."""
    stop, split, depth = np.exp(over.log_stop), over.split_prob, over.tree.depth
    at_most = [
        over.upward(
            np.where(depth <= limit, 1.0, 0.0),
            lambda nodes, children, limit=limit: np.where(  # type: ignore[misc]
                depth[nodes] <= limit, stop[nodes] + split[nodes] * children, 0.0
            ),
            np.multiply,
        )[0]
        for limit in range(len(over.levels))
    ]
    return np.diff(np.array(at_most), prepend=0.0)


def leaf_count_distribution(over: TreeDistribution, max_leaves: int) -> FloatArray:
    """P(T has n leaves) for n = 0 .. max_leaves: a product of polynomials up the tree, cut off there."""
    tree = over.tree
    max_leaves = min(whole_number("max_leaves", max_leaves, 1), tree.n_terminals)
    stop, split = np.exp(over.log_stop), over.split_prob
    of_node: dict[int, FloatArray] = {}
    for s in range(tree.n_nodes - 1, -1, -1):
        product = np.zeros(1)
        if not tree.is_terminal[s] and split[s] > 0.0:
            product = np.ones(1)
            for child in range(tree.first_child[s], tree.first_child[s] + tree.n_children[s]):
                product = np.convolve(product, of_node[child])[: max_leaves + 1]
        for child in range(tree.first_child[s], tree.first_child[s] + tree.n_children[s]):
            del of_node[child]
        counts = np.zeros(max(2, len(product)))
        counts[: len(product)] = split[s] * product
        counts[1] += stop[s]
        of_node[s] = counts
    out = np.zeros(max_leaves + 1)
    root = of_node[0][: max_leaves + 1]
    out[: len(root)] = root
    return out


def feature_inclusion_prob(over: TreeDistribution) -> FloatArray:
    """P(T splits on the feature), for each feature."""
    tree = over.tree
    stop, split = np.exp(over.log_stop), over.split_prob
    out = np.zeros(tree.n_features)
    for feature in np.unique(tree.feature[tree.feature >= 0]):
        other = tree.feature != feature
        unused = over.upward(
            1.0,
            lambda nodes, children, other=other: stop[nodes] + np.where(other[nodes], split[nodes] * children, 0.0),  # type: ignore[misc]
            np.multiply,
        )
        out[feature] = 1.0 - unused[0]
    return out


def map_tree(over: TreeDistribution) -> RankedTree:
    """The most probable tree; in a tie, the smaller one."""
    best = over.upward(
        over.log_stop,
        lambda nodes, children: np.maximum(over.log_stop[nodes], over.log_split[nodes] + children),
        np.add,
    )
    return RankedTree(PrunedTree(over.tree, _leaves_where(over, best > over.log_stop)), float(best[0]))


def top_trees(over: TreeDistribution, k: int) -> list[RankedTree]:
    """The k most probable trees, best first; all of them if there are at most k."""
    k = whole_number("k", k, 1, 2**31 - 1)
    log_probs, start, leaves = _kernels.top_trees(over.tree.kernel, over.log_split, over.log_stop, k)
    return [
        RankedTree(PrunedTree(over.tree, leaves[a:b]), float(log_prob))
        for log_prob, a, b in zip(log_probs, start[:-1], start[1:], strict=True)
    ]


def sample_trees(over: TreeDistribution, n: int, rng: np.random.Generator) -> list[PrunedTree]:
    """n exact, independent draws of T."""
    return [PrunedTree(over.tree, np.concatenate(list(_sampled_leaves(over, rng)))) for _ in range(n)]


def _sampled_leaves(over: TreeDistribution, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
    """Leaves level by level: each node that is reached is split with its probability."""
    reached = np.zeros(1, dtype=np.int64)
    while len(reached):
        split = rng.random(len(reached)) < over.split_prob[reached]
        yield reached[~split]
        reached = _children(over.tree, reached[split])


def _leaves_where(over: TreeDistribution, split: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Leaves of the tree that splits exactly the nodes in `split`, from the root down."""
    reached, leaves = np.zeros(1, dtype=np.int64), []
    while len(reached):
        leaves.append(reached[~split[reached]])
        reached = _children(over.tree, reached[split[reached]])
    return np.concatenate(leaves)


def _children(tree: MetaTree, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """The children of all the nodes, in order."""
    sizes = tree.n_children[nodes].astype(np.int64)
    offsets = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return np.asarray(np.repeat(tree.first_child[nodes].astype(np.int64), sizes) + offsets)


def _times_log(log_p: FloatArray, log_value: FloatArray) -> FloatArray:
    """p * value, zero if p is zero whatever the value."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isneginf(log_p), 0.0, np.exp(log_p) * log_value)
