"""A check that a tree and a leaf model fit each other."""

from __future__ import annotations

from everytree.families.base import Family
from everytree.trees.metatree import MetaTree


def check_model(tree: object, family: object) -> None:
    """Check that a tree and a leaf model fit each other."""
    if not isinstance(tree, MetaTree):
        raise TypeError(f"tree must be a MetaTree, not {type(tree).__name__}")
    if not isinstance(family, Family):
        raise TypeError(f"family must be a Family such as Bernoulli(0.5, 0.5), not {family!r}")
    family.check_nodes(tree.n_nodes)
