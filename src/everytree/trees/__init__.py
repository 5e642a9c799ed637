"""The shape of a meta-tree, its pruned subtrees, and distributions over them."""

from everytree.trees.metatree import MetaTree
from everytree.trees.pruned import PrunedTree

__all__ = ["MetaTree", "PrunedTree"]
