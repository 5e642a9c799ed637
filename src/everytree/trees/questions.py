"""Questions about the tree, answered from split probabilities: closed forms and dynamic programming over flat arrays.

Every answer is read from a `TreeDistribution`: a probability for each node of being split given that it is in the tree.
The prior and the posterior both have that form (Proposition 1 of the paper), so every question is for both. Levels are
contiguous in level order and so are the children of a level, which makes each sweep a handful of vectorised steps per
level.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.checks import whole_number
from everytree.base.lazy import cached_property
from everytree.base.randomness import RandomSource, random_generator
from everytree.trees.metatree import MetaTree
from everytree.trees.pruned import PrunedTree


class RankedTree(NamedTuple):
    """A pruned tree and its log probability."""

    tree: PrunedTree
    log_prob: float


class TreeQuestions(ABC):
    """Answers about T, for any object with a distribution over pruned trees."""

    @abstractmethod
    def tree_distribution(self) -> TreeDistribution:
        """p(T), as probabilities that a node is split given that it is in the tree."""

    # ---- single trees ---------------------------------------------------------------------------------------------

    def map_tree(self) -> PrunedTree:
        """The most probable pruned tree; in a tie, the smaller one."""
        over = self.tree_distribution()
        best = over.upward(
            over.log_stop,
            lambda nodes, children: np.maximum(over.log_stop[nodes], over.log_split[nodes] + children),
            np.add,
        )
        return PrunedTree(over.tree, _leaves_where(over, best > over.log_stop))

    def top_trees(self, k: int) -> list[RankedTree]:
        """The k most probable trees with their log probabilities, best first.

        Trees of probability zero are left out; if there are at most k, all of them are returned.
        """
        over, k = self.tree_distribution(), whole_number("k", k, 1, 2**31 - 1)
        log_probs, start, leaves = _kernels.top_trees(over.tree.kernel, over.log_split, over.log_stop, k)
        return [
            RankedTree(PrunedTree(over.tree, leaves[a:b]), float(log_prob))
            for log_prob, a, b in zip(log_probs, start[:-1], start[1:], strict=True)
        ]

    def sample_trees(self, n: int, *, rng: RandomSource = None) -> list[PrunedTree]:
        """n exact, independent draws of T.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator, numpy.random.RandomState or int, optional
            Source of randomness, or its seed; by default one that differs from call to call.
        """
        over, n, generator = self.tree_distribution(), whole_number("n", n, 0), random_generator(rng)
        return [PrunedTree(over.tree, np.concatenate(list(_sampled_leaves(over, generator)))) for _ in range(n)]

    def tree_log_prob(self, T: PrunedTree) -> float:
        """Log probability of one pruned tree of this meta-tree."""
        over = self.tree_distribution()
        if not isinstance(T, PrunedTree):
            raise TypeError(f"T must be a PrunedTree, not {type(T).__name__}")
        if T.tree != over.tree:
            raise ValueError(f"T is a pruning of another meta-tree: {T.tree}, this one is {over.tree}")
        return float(over.log_split[T.inner].sum() + over.log_stop[T.leaves].sum())

    # ---- nodes ----------------------------------------------------------------------------------------------------

    @property
    def node_prob(self) -> FloatArray:
        """(n_nodes,) P(s in T): the probability that all nodes above are split."""
        over = self.tree_distribution()
        return over.downward(1.0, over.split_prob)

    @property
    def leaf_prob(self) -> FloatArray:
        """(n_nodes,) P(s is a leaf of T)."""
        over = self.tree_distribution()
        return over.node_prob * np.exp(over.log_stop)

    # ---- the whole tree -------------------------------------------------------------------------------------------

    def entropy(self) -> float:
        """Entropy of p(T) in nats, 0 when one tree is certain: that of each node, times P(s in T)."""
        over = self.tree_distribution()
        own = -(_times_log(over.log_split, over.log_split) + _times_log(over.log_stop, over.log_stop))
        return float(over.node_prob @ own)

    def expected_leaves(self) -> float:
        """Mean number of leaves of T."""
        return float(self.leaf_prob.sum())

    def leaf_count_distribution(self, max_leaves: int = 1000) -> FloatArray:
        """(m + 1,) P(T has n leaves) for n = 0 .. m, m the smaller of max_leaves and the number of terminals.

        A product of polynomials up the tree, cut off there; the rest of the probability belongs to larger trees. Costs
        O(n_nodes * max_leaves) at worst.
        """
        over = self.tree_distribution()
        tree, stop, split = over.tree, np.exp(over.log_stop), over.split_prob
        max_leaves = min(whole_number("max_leaves", max_leaves, 1), tree.n_terminals)
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

    def feature_inclusion_prob(self) -> FloatArray:
        """(n_features,) P(T splits on the feature)."""
        over = self.tree_distribution()
        tree, stop, split = over.tree, np.exp(over.log_stop), over.split_prob
        out = np.zeros(tree.n_features)
        for feature in np.unique(tree.feature[tree.feature >= 0]):
            other = tree.feature != feature
            unused = over.upward(
                1.0,
                lambda nodes, children, other=other: (  # type: ignore[misc]
                    stop[nodes] + np.where(other[nodes], split[nodes] * children, 0.0)
                ),
                np.multiply,
            )
            out[feature] = 1.0 - unused[0]
        return out


@dataclass(frozen=True)
class TreeDistribution(TreeQuestions):
    """p(T) = prod(split_prob of inner nodes) * prod(1 - split_prob of leaves), in logs."""

    tree: MetaTree
    # (n_nodes,): Log probability that a node is split, and that it is not, given that it is in the tree. Both are kept:
    # a probability near 1 loses the digits of its complement.
    log_split: FloatArray
    log_stop: FloatArray

    def tree_distribution(self) -> TreeDistribution:
        return self

    def kl_divergence(self, other: TreeDistribution) -> float:
        """Kullback-Leibler divergence of p(T) from another distribution over the same trees, in nats."""
        with np.errstate(invalid="ignore"):  # -inf - (-inf), where the probability is zero as well
            own = _times_log(self.log_split, self.log_split - other.log_split)
            own += _times_log(self.log_stop, self.log_stop - other.log_stop)
        return float(self.node_prob @ own)

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
