"""One pruned subtree of a meta-tree."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from everytree.base.arrays import NodeArray
from everytree.trees.metatree import MetaTree, read_only, whole_numbers


class PrunedTree:
    """One pruned subtree of a meta-tree (T in the paper).

    Parameters
    ----------
    tree : MetaTree
    leaves : iterable of int
        The nodes at which this tree ends: every path from the root to a terminal passes exactly one of them.
    """

    def __init__(self, tree: MetaTree, leaves: Iterable[int]) -> None:
        if not isinstance(tree, MetaTree):
            raise TypeError(f"tree must be a MetaTree, not {type(tree).__name__}")
        self.tree = tree
        numbers = leaves if isinstance(leaves, np.ndarray) else list(leaves)
        self.leaves = read_only(np.unique(whole_numbers("leaves", numbers)))
        self.inner = read_only(self._check())

    def _check(self) -> NodeArray:
        """Return the nodes above the leaves; raise if the leaves do not cut every path exactly once."""
        tree = self.tree
        if len(self.leaves) == 0 or self.leaves[0] < 0 or self.leaves[-1] >= tree.n_nodes:
            raise ValueError(f"leaves must be nodes 0..{tree.n_nodes - 1} of the meta-tree, but are {self.leaves}")
        closure = np.sort(tree.kernel.upward_closure(self.leaves))
        inner = np.setdiff1d(closure, self.leaves, assume_unique=True)
        parents = tree.parent[self.leaves]
        nested = np.intersect1d(self.leaves, tree.kernel.upward_closure(np.unique(parents[parents >= 0])))
        if len(nested):
            upward = ((s, tree.kernel.upward_closure(tree.parent[s : s + 1])) for s in self.leaves if s > 0)
            below = next(s for s, above in upward if nested[0] in above)
            raise ValueError(f"leaves: node {below} lies below another leaf, {nested[0]}")
        # A tree with inner nodes I has 1 + sum(n_children - 1) leaves; fewer means that a path was left open.
        if len(self.leaves) != 1 + int((tree.n_children[inner] - 1).sum()):
            raise ValueError("leaves do not cover the meta-tree: some path to a terminal passes none of them")
        return inner.astype(np.int32)

    @property
    def n_leaves(self) -> int:
        return len(self.leaves)

    @property
    def depth(self) -> int:
        """Depth of the deepest leaf."""
        return int(self.tree.depth[self.leaves].max())

    def to_text(self, post: Any = None, **options: Any) -> str:
        """This tree, one line per node.

        Parameters
        ----------
        post : Posterior, optional
            Of the same meta-tree, by which leaves predict; without it the questions alone are written.
        **options
            `feature_names`, `code_names` and `class_names` as in `everytree.view.text.tree_text`.

        Examples
        --------
        >>> import everytree as et
        >>> post = et.Posterior(et.MetaTree.complete([0, 1, 1]), et.Bernoulli(1, 1))
        >>> post = post.update([[0, 0], [0, 1], [1, 0], [1, 1]] * 3, [0, 0, 1, 1] * 3)
        >>> print(post.map_tree().to_text(post, feature_names=["wet", "cold"]))
        wet?
        ├─ = 0  leaf: P(y = 1) = 0.125  (6 rows)
        └─ = 1  leaf: P(y = 1) = 0.875  (6 rows)
        """
        from everytree.view.text import pruned_text

        return pruned_text(self, post, **options)

    def apply(self, X: ArrayLike) -> NodeArray:
        """The leaf in which each row ends, as a position in `leaves`."""
        ends, which = np.unique(self.tree.route(X), return_inverse=True)
        is_leaf = np.zeros(self.tree.n_nodes, dtype=bool)
        is_leaf[self.leaves] = True
        while not is_leaf[ends].all():
            ends = np.where(is_leaf[ends], ends, self.tree.parent[ends])
        return np.searchsorted(self.leaves, ends)[which].astype(np.int32)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrunedTree):
            return NotImplemented
        return self.tree == other.tree and np.array_equal(self.leaves, other.leaves)

    def __hash__(self) -> int:
        return hash((self.tree, self.leaves.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return PrunedTree, (self.tree, self.leaves)

    def __repr__(self) -> str:
        return f"PrunedTree(n_leaves={self.n_leaves}, depth={self.depth}, leaves={self.leaves.tolist()})"
