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
    """The structures of a fitted model of another library."""

    schema: Schema  # turns tables that the model reads into codes
    # in the model's order; a row ends in the terminal of `tree.route(schema.encode(X))` exactly when it ends in the
    # leaf of the model's own tree in the same position
    trees: tuple[MetaTree, ...]
    classes: NDArray[Any] | None  # (n_classes,) array: the labels of a classifier's classes


@dataclass(frozen=True)
class Input:
    """One column of the tables that a model reads."""

    name: str | None
    # Its categories; the k-th has the number k in the model, and any other is missing. None for numbers.
    labels: tuple[Label, ...] | None = None
    single: bool = False  # whether numbers are rounded to float32 first
    # (float, float): numbers from the first to the second are missing for nodes with `in_gap`
    gap: tuple[float, float] | None = None


@dataclass(frozen=True)
class Subset:
    """A set of categories, by their numbers."""

    members: frozenset[int]
    child: int  # the child to which its members go; all others go to the other one
    # Whether a number between -1 and 0 is category 0; otherwise it is no category. Any other number stands for its
    # integer part.
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
    """One tree of a model; node 0 is its root."""

    children_left: NDArray[Any]  # (n_nodes,) int: -1 at leaves, and at nodes that the root does not lead to
    children_right: NDArray[Any]
    feature: NDArray[Any]  # (n_nodes,) int: index of the input that is split on
    threshold: FloatArray  # (n_nodes,): the largest number that goes to the left
    missing_left: NDArray[Any]  # (n_nodes,) bool: whether missing values go to the left
    # (n_nodes,) bool or False: whether numbers in the gap of the input are missing here
    in_gap: NDArray[Any] | bool = False
    # dict of int to Subset: nodes that test for a set of categories instead
    subsets: dict[int, Subset] = field(default_factory=dict)


def below(numbers: Any) -> Any:
    """The next smaller float64, so that `x < t` is `x <= below(t)`."""
    return np.nextafter(numbers, -np.inf)


def members_of_bits(words: NDArray[np.uint32]) -> frozenset[int]:
    """The numbers whose bits are set, the lowest bit of the first word being 0."""
    bits = np.unpackbits(np.ascontiguousarray(words, dtype="<u4").view(np.uint8), bitorder="little")
    return frozenset(np.flatnonzero(bits).tolist())
