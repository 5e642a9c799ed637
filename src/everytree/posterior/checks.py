"""Checks that a tree and a leaf model fit each other, and that rows to be added are those of another object."""

from __future__ import annotations

from everytree.base.errors import OverlapError
from everytree.families.base import Family
from everytree.trees.metatree import MetaTree


def check_model(tree: object, family: object) -> None:
    """Check that a tree and a leaf model fit each other."""
    if not isinstance(tree, MetaTree):
        raise TypeError(f"tree must be a MetaTree, not {type(tree).__name__}")
    if not isinstance(family, Family):
        raise TypeError(f"family must be a Family such as Bernoulli(0.5, 0.5), not {family!r}")
    family.check_nodes(tree.n_nodes)


def check_is_other(this: object, other: object) -> None:
    """Check that rows to be added are not those that are there already."""
    if other is this:
        raise OverlapError(
            f"other is this {type(this).__name__} itself, whose rows would count twice; merge a copy to do that"
        )
