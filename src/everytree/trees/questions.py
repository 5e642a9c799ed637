"""Questions about the tree, as methods of any object with a distribution over pruned trees."""

from __future__ import annotations

from abc import ABC, abstractmethod

from everytree.base.arrays import FloatArray
from everytree.base.checks import whole_number
from everytree.base.randomness import RandomSource, random_generator
from everytree.trees import queries
from everytree.trees.metatree import MetaTree
from everytree.trees.pruned import PrunedTree
from everytree.trees.queries import RankedTree, TreeDistribution


class TreeQuestions(ABC):
    """Answers about T from its distribution; each is a closed form or one sweep over the tree."""

    @property
    @abstractmethod
    def tree(self) -> MetaTree:
        """The meta-tree."""

    @abstractmethod
    def tree_distribution(self) -> TreeDistribution:
        """p(T), as probabilities that a node is split given that it is in the tree."""

    # ---- single trees ---------------------------------------------------------------------------------------------

    def map_tree(self) -> PrunedTree:
        """The most probable pruned tree; in a tie, the smaller one."""
        return queries.map_tree(self.tree_distribution()).tree

    def top_trees(self, k: int) -> list[RankedTree]:
        """The k most probable trees with their log probabilities, best first.

        Trees of probability zero are left out; if there are at most k, all of them are returned.
        """
        return queries.top_trees(self.tree_distribution(), k)

    def sample_trees(self, n: int, *, rng: RandomSource = None, random_state: RandomSource = None) -> list[PrunedTree]:
        """n exact, independent draws of T.

        Parameters
        ----------
        n : int
        rng : numpy.random.Generator or int, optional
            Source of randomness, or its seed; by default one that differs from call to call.
        random_state : int, numpy.random.RandomState or numpy.random.Generator, optional
            scikit-learn's name for `rng`: give one of the two.
        """
        n, generator = whole_number("n", n, 0), random_generator(rng, random_state)
        return queries.sample_trees(self.tree_distribution(), n, generator)

    def tree_log_prob(self, T: PrunedTree) -> float:
        """Log probability of one pruned tree of this meta-tree."""
        if not isinstance(T, PrunedTree):
            raise TypeError(f"T must be a PrunedTree, not {type(T).__name__}")
        if T.tree != self.tree:
            raise ValueError(f"T is a pruning of another meta-tree: {T.tree}, this one is {self.tree}")
        return queries.tree_log_prob(self.tree_distribution(), T)

    # ---- nodes ----------------------------------------------------------------------------------------------------

    @property
    def node_prob(self) -> FloatArray:
        """(n_nodes,) P(s in T)."""
        return queries.node_prob(self.tree_distribution())

    @property
    def leaf_prob(self) -> FloatArray:
        """(n_nodes,) P(s is a leaf of T)."""
        return queries.leaf_prob(self.tree_distribution())

    # ---- the whole tree -------------------------------------------------------------------------------------------

    def entropy(self) -> float:
        """Entropy of p(T) in nats: 0 when one tree is certain."""
        return queries.entropy(self.tree_distribution())

    def expected_leaves(self) -> float:
        """Mean number of leaves of T."""
        return queries.expected_leaves(self.tree_distribution())

    def expected_depth(self) -> float:
        """Mean depth of T's deepest leaf."""
        return queries.expected_depth(self.tree_distribution())

    def leaf_count_distribution(self, max_leaves: int = 1000) -> FloatArray:
        """(m + 1,) P(T has n leaves) for n = 0 .. m, m the smaller of max_leaves and the number of terminals.

        Costs O(n_nodes * max_leaves) at worst; the rest of the probability belongs to larger trees.
        """
        return queries.leaf_count_distribution(self.tree_distribution(), max_leaves)

    def depth_distribution(self) -> FloatArray:
        """(D + 1,) P(depth of T is d) for d = 0 .. D, the depth of the meta-tree."""
        return queries.depth_distribution(self.tree_distribution())

    def feature_inclusion_prob(self) -> FloatArray:
        """(n_features,) P(T splits on the feature)."""
        return queries.feature_inclusion_prob(self.tree_distribution())
