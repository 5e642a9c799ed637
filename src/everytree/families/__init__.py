"""Leaf models: a likelihood and its conjugate prior, one file each; `base` defines a family, `registry` lists them."""

from everytree.families.base import Family, NativeFamily
from everytree.families.registry import *  # noqa: F403
from everytree.families.registry import __all__ as _names
from everytree.families.traits import Components

__all__ = ["Components", "Family", "NativeFamily"]
__all__ += _names
