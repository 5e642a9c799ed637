"""The common form into which models of other libraries are read, and the result of an import.

Every inner node splits on one input column. It sends numbers up to a threshold, or the members of a set of categories,
to one side, and missing values to a side of its own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.tables.reading import Label
from everytree.tables.schema import Schema
from everytree.trees.metatree import MetaTree


@dataclass(frozen=True)
class Imported:
    """The structures of a fitted model of another library.

    Attributes
    ----------
    schema : Schema
        Turns tables that the model reads into codes.
    trees : tuple of MetaTree
        In the model's order; a row ends in the terminal of `tree.route(schema.encode(X))` exactly when it ends in the
        leaf of the model's own tree in the same position.
    classes : (n_classes,) array or None
        The labels of a classifier's classes.
    """

    schema: Schema
    trees: tuple[MetaTree, ...]
    classes: NDArray[Any] | None


@dataclass(frozen=True)
class Input:
    """One column of the tables that a model reads.

    Attributes
    ----------
    name : str or None
    labels : tuple or None
        Its categories; the k-th has the number k in the model, and any other is missing. None for numbers.
    single : bool
        Whether numbers are rounded to float32 first.
    gap : (float, float) or None
        Numbers from the first to the second are missing for nodes with `in_gap`.
    """

    name: str | None
    labels: tuple[Label, ...] | None = None
    single: bool = False
    gap: tuple[float, float] | None = None


@dataclass(frozen=True)
class Subset:
    """A set of categories, by their numbers.

    Attributes
    ----------
    members : frozenset of int
    child : {0, 1}
        The child to which its members go; all others go to the other one.
    toward_zero : bool
        Whether a number between -1 and 0 is category 0; otherwise it is no category. Any other number stands for its
        integer part.
    """

    members: frozenset[int]
    child: int
    toward_zero: bool = False

    def sides(self, numbers: FloatArray) -> NDArray[np.int64]:
        """The child to which each number goes."""
        whole = np.trunc(numbers) if self.toward_zero else np.floor(numbers)
        return np.where(np.isin(whole, list(self.members)), self.child, 1 - self.child)

    def cuts(self) -> FloatArray:
        """The largest number of each interval that lies wholly inside or outside the set, except for the last."""
        first = np.array(sorted(self.members), dtype=np.float64)
        lower = below(first)
        if self.toward_zero:
            lower[first == 0] = -1.0
        return np.union1d(lower, below(first + 1))


@dataclass(frozen=True)
class Nodes:
    """One tree of a model; node 0 is its root.

    Attributes
    ----------
    children_left, children_right : (n_nodes,) int
        -1 at leaves, and at nodes that the root does not lead to.
    feature : (n_nodes,) int
        Index of the input that is split on.
    threshold : (n_nodes,) float64
        The largest number that goes to the left.
    missing_left : (n_nodes,) bool
        Whether missing values go to the left.
    in_gap : (n_nodes,) bool or False
        Whether numbers in the gap of the input are missing here.
    subsets : dict of int to Subset
        Nodes that test for a set of categories instead.
    """

    children_left: NDArray[Any]
    children_right: NDArray[Any]
    feature: NDArray[Any]
    threshold: FloatArray
    missing_left: NDArray[Any]
    in_gap: NDArray[Any] | bool = False
    subsets: dict[int, Subset] = field(default_factory=dict)


def below(numbers: Any) -> Any:
    """The next smaller float64, so that `x < t` is `x <= below(t)`."""
    return np.nextafter(numbers, -np.inf)


def members_of_bits(words: NDArray[np.uint32]) -> frozenset[int]:
    """The numbers whose bits are set, the lowest bit of the first word being 0."""
    bits = np.unpackbits(np.ascontiguousarray(words, dtype="<u4").view(np.uint8), bitorder="little")
    return frozenset(np.flatnonzero(bits).tolist())
