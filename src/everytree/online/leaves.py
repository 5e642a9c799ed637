"""The leaf models of online forests: a family, or many classes of which every node lists its own."""

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
"""From so many classes on, a node lists those that its rows have: most nodes have few of them."""


class ClassWeights(NamedTuple):
    """The lists of all nodes, one after another.

    Attributes
    ----------
    start : (n_nodes + 1,) int64
        Where the list of each node starts; the last one is the length of the others.
    number : int32
        Classes, in ascending order in each list.
    weight : float64
        Of the rows of each class.
    """

    start: NDArray[np.int64]
    number: NDArray[np.int32]
    weight: FloatArray

    @classmethod
    def listed(cls, statistics: FloatArray) -> ClassWeights:
        """From the weight of every class in every node, (n_nodes, n_classes)."""
        node, number = np.nonzero(statistics)
        start = np.searchsorted(node, np.arange(len(statistics) + 1))
        return cls(start.astype(np.int64), number.astype(np.int32), statistics[node, number])


@dataclass(frozen=True)
class ClassLists:
    """Many classes that share the concentration equally. One more of them costs nothing until a family is asked for."""

    size: int
    concentration: float
    kernel: ClassVar[str] = "class lists"
    n_statistics: ClassVar[int] = 0  # in the array of all nodes: lists are elsewhere

    @property
    def kernel_prior(self) -> FloatArray:
        return np.array([self.concentration])

    @property
    def family(self) -> Categorical:
        """The same as a family."""
        return Categorical(self.size, self.concentration / self.size)


Leaves = NativeFamily | ClassLists


def leaves_of_classes(n_classes: int, concentration: float) -> Leaves:
    """Leaves of so many classes that share a concentration."""
    lists = ClassLists(n_classes, concentration)
    return lists if n_classes >= MANY_CLASSES else lists.family
