"""The leaf models of online forests: a family, or a list of the classes in each node where there are many."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.families import Categorical
from everytree.families.base import NativeFamily

MANY_CLASSES = _kernels.MANY_CLASSES
"""From this number of classes on, a node lists those that its rows have: most nodes have few of them."""


class ClassWeights(NamedTuple):
    """The lists of all nodes, one after another."""

    # (n_nodes + 1,): start of the list of each node; the last entry is the length of the others
    start: NDArray[np.int64]
    number: NDArray[np.int32]  # classes, in ascending order in each list
    weight: FloatArray  # weight of the rows of each class

    @classmethod
    def listed(cls, statistics: FloatArray) -> ClassWeights:
        """Make the lists from the weight of every class in every node, (n_nodes, n_classes)."""
        node, number = np.nonzero(statistics)
        start = np.searchsorted(node, np.arange(len(statistics) + 1))
        return cls(start.astype(np.int64), number.astype(np.int32), statistics[node, number])


@dataclass(frozen=True)
class ClassLists:
    """Many classes that share the concentration equally. Adding a class costs nothing until a family is needed."""

    size: int
    concentration: float
    kernel: ClassVar[str] = "class lists"
    n_statistics: ClassVar[int] = 0  # in the array of all nodes: lists are stored separately

    @property
    def kernel_prior(self) -> FloatArray:
        return np.array([self.concentration])

    @property
    def family(self) -> Categorical:
        """The leaf model as a family."""
        return Categorical(self.size, self.concentration / self.size)


Leaves = NativeFamily | ClassLists


def leaves_of_classes(n_classes: int, concentration: float) -> Leaves:
    """Return leaves for this many classes that share a concentration."""
    lists = ClassLists(n_classes, concentration)
    return lists if n_classes >= MANY_CLASSES else lists.family
