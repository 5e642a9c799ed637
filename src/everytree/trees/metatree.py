"""The shape of a meta-tree: the feature that each inner node splits on, and the child for each code.

Array contract, stated once
---------------------------
Nodes are numbered in level order: node 0 is the root, each level is numbered from left to right, the children of a
node are neighbours. A terminal has `feature` -1, `first_child` -1 and `n_children` 0. An inner node splits on the code
of its feature in one of two ways:

* `threshold` -1, a multiway split: child number = code;
* `threshold` t, a binary split: codes up to and including t go to child 0, all others to child 1.

`missing_child` is the number of the child that takes the missing code, -1 where there is no such branch. In a multiway
split it is always one more child, the last; in a binary split it is child 0, child 1, or a third child of its own.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree import _kernels
from everytree.base.arrays import LARGEST_CODE, MAX_FEATURES, NodeArray, as_codes
from everytree.base.checks import resolve_n_jobs, whole_number
from everytree.base.lazy import cached_property
from everytree.trees.invariants import check_features, check_level_order, check_splits


class MetaTree:
    """One big tree, read as the set of all its pruned subtrees (T_max with k in the paper).

    Frozen: the arrays are read-only and all checks were made at construction. Build one with `complete`
    or `from_arrays`.

    Attributes
    ----------
    feature, first_child, n_children, threshold, missing_child : (n_nodes,) int32
        The shape; see the array contract of this module.
    parent, depth : (n_nodes,) int32
        The node above (-1 at the root) and the number of nodes above.
    is_terminal : (n_nodes,) bool
    n_nodes, n_features : int
    """

    feature: NodeArray
    first_child: NodeArray
    n_children: NodeArray
    threshold: NodeArray
    missing_child: NodeArray
    declared_width: int | None

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError("use MetaTree.complete(...) or MetaTree.from_arrays(...)")

    # ---- constructors -------------------------------------------------------------------------------------------

    @classmethod
    def from_arrays(
        cls,
        feature: ArrayLike,
        first_child: ArrayLike,
        n_children: ArrayLike,
        threshold: ArrayLike | None = None,
        *,
        missing_child: ArrayLike | None = None,
        n_features: int | None = None,
    ) -> MetaTree:
        """A meta-tree from flat arrays in level order, one entry per node.

        Parameters
        ----------
        feature, first_child, n_children, threshold, missing_child : (n_nodes,) array_like of int
            See the array contract of this module; `threshold` and `missing_child` default to -1 everywhere.
        n_features : int, optional
            Width of the code tables this tree reads. If it is not given, any table with the columns that are split on
            is accepted.

        Examples
        --------
        >>> import everytree as et
        >>> tree = et.MetaTree.from_arrays([0, 1, -1, -1, -1], [1, 3, -1, -1, -1], [2, 2, 0, 0, 0])
        >>> tree
        MetaTree(n_nodes=5, n_terminals=3, depth=2, n_features>=2)
        """
        given = dict(zip(_NAMES, (feature, first_child, n_children, threshold, missing_child), strict=True))
        arrays = _int_arrays(given)
        n_features = None if n_features is None else whole_number("n_features", n_features, 0, MAX_FEATURES)
        return cls.from_checked_arrays(arrays, n_features)

    @classmethod
    def complete(
        cls, features: ArrayLike, n_children: int | Sequence[int] = 2, *, n_features: int | None = None
    ) -> MetaTree:
        """Make a tree whose terminals all have the same depth, with multiway splits.

        Parameters
        ----------
        features : sequence of int
            The feature that each inner node splits on, in level order. An empty sequence makes a tree of one node.
        n_children : int or sequence of int
            Number of codes, for all features or one for each feature.
        n_features : int, optional
            Width of the code tables, if there are more features than in `features` and `n_children`.

        Examples
        --------
        >>> import everytree as et
        >>> et.MetaTree.complete([0, 1, 2])
        MetaTree(n_nodes=7, n_terminals=4, depth=2, n_features>=3)
        """
        asked = whole_numbers("features", features)
        n_features = None if n_features is None else whole_number("n_features", n_features, 0, MAX_FEATURES)
        sizes = None
        if np.ndim(n_children):
            sizes = whole_numbers("n_children", n_children, 1, LARGEST_CODE)
            n_features = len(sizes) if n_features is None else n_features
        _check_complete(asked, sizes, n_features)
        one_size = 0 if sizes is not None else whole_number("n_children", n_children, 1, LARGEST_CODE)
        children = np.full(len(asked), one_size, dtype=np.int32) if sizes is None else sizes[asked]
        _check_full_levels(children)
        n_nodes = 1 + int(children.sum(dtype=np.int64))
        if n_nodes >= 2**31:
            raise ValueError(f"features and n_children make {n_nodes} nodes, but at most 2**31 - 1 are possible")
        arrays = {name: np.full(n_nodes, -1, dtype=np.int32) for name in _NAMES}
        arrays["feature"][: len(asked)] = asked
        arrays["n_children"][:] = 0
        arrays["n_children"][: len(asked)] = children
        arrays["first_child"][: len(asked)] = 1 + np.cumsum(children) - children
        return cls.from_trusted_arrays(arrays, n_features)

    @classmethod
    def from_checked_arrays(cls, arrays: dict[str, NodeArray], n_features: int | None) -> MetaTree:
        """Return the tree of these arrays, all of one length, which are kept, not copied."""
        check_level_order(arrays["first_child"], arrays["n_children"])
        check_features(arrays["feature"], arrays["n_children"], n_features)
        check_splits(**{name: arrays[name] for name in _NAMES if name != "first_child"})
        return cls.from_trusted_arrays(arrays, n_features)

    @classmethod
    def from_trusted_arrays(cls, arrays: dict[str, NodeArray], n_features: int | None) -> MetaTree:
        """Return the tree of arrays that keep the contract of this module by construction: nothing is checked."""
        self = object.__new__(cls)
        for name in _NAMES:
            self.__dict__[name] = read_only(arrays[name])
        self.__dict__["declared_width"] = n_features
        return self

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a MetaTree is frozen: {name} cannot be set")

    # ---- derived from the arrays ----------------------------------------------------------------------------------

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    @cached_property
    def n_features(self) -> int:
        """Width of the code tables; the smallest possible one if it was not given."""
        return int(self.feature.max()) + 1 if self.declared_width is None else self.declared_width

    @cached_property
    def is_terminal(self) -> NDArray[np.bool_]:
        return read_only(self.n_children == 0)

    @property
    def n_terminals(self) -> int:
        return int(self.is_terminal.sum())

    @cached_property
    def parent(self) -> NodeArray:
        return self.kernel.parent

    @cached_property
    def depth(self) -> NodeArray:
        return self.kernel.depth

    @cached_property
    def n_codes(self) -> NodeArray:
        """Number of codes of each feature in multiway splits; 0 for features without, which accept any code."""
        multiway = ~self.is_terminal & (self.threshold < 0)
        n_codes = np.zeros(self.n_features, dtype=np.int32)
        own_branch = self.missing_child[multiway] >= 0
        n_codes[self.feature[multiway]] = self.n_children[multiway] - own_branch
        return read_only(n_codes)

    @cached_property
    def has_missing(self) -> NDArray[np.bool_]:
        """Whether the nodes that split on a feature have a branch for its missing code."""
        has_missing = np.zeros(self.n_features, dtype=bool)
        has_missing[self.feature[self.missing_child >= 0]] = True
        return read_only(has_missing)

    @cached_property
    def kernel(self) -> _kernels.Tree:
        return _kernels.Tree(
            feature=self.feature, first_child=self.first_child, n_children=self.n_children, threshold=self.threshold,
            missing_child=self.missing_child, n_features=self.n_features, exact_width=self.declared_width is not None,
        )  # fmt: skip

    def route(self, X: ArrayLike, *, n_jobs: int | None = None) -> NodeArray:
        """The terminal in which each row ends.

        Parameters
        ----------
        X : (n_rows, n_features) array_like of codes

        Returns
        -------
        (n_rows,) int32
        """
        jobs = resolve_n_jobs(n_jobs)
        ends = self.kernel.route(X, jobs)
        if ends is None:
            ends = self.kernel.route(as_codes(X), jobs)
        assert ends is not None, "as_codes promises arrays that the kernels read"
        return ends

    # ---- identity -------------------------------------------------------------------------------------------------

    @cached_property
    def _digest(self) -> bytes:
        digest = hashlib.blake2b(str(self.declared_width).encode(), digest_size=16)
        for name in _NAMES:
            digest.update(np.ascontiguousarray(getattr(self, name)).data)
        return digest.digest()

    def __hash__(self) -> int:
        return int.from_bytes(self._digest[:8], "little")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MetaTree):
            return NotImplemented
        if self is other:
            return True
        return self.declared_width == other.declared_width and all(
            np.array_equal(getattr(self, name), getattr(other, name)) for name in _NAMES
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (*(np.asarray(getattr(self, name)) for name in _NAMES), self.declared_width)

    def __repr__(self) -> str:
        width = f"n_features={self.n_features}" if self.declared_width is not None else f"n_features>={self.n_features}"
        return f"MetaTree(n_nodes={self.n_nodes}, n_terminals={self.n_terminals}, depth={self.depth[-1]}, {width})"


_NAMES = ("feature", "first_child", "n_children", "threshold", "missing_child")


def _rebuild(*parts: Any) -> MetaTree:
    """Unpickle: checked again, since a pickle may come from anywhere."""
    feature, first_child, n_children, threshold, missing_child, width = parts
    return MetaTree.from_arrays(
        feature, first_child, n_children, threshold, missing_child=missing_child, n_features=width
    )


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Make an array read-only and return it."""
    array.flags.writeable = False
    return array


def whole_numbers(name: str, values: ArrayLike, low: int = -(2**31), high: int = 2**31 - 1) -> NodeArray:
    """Return a sequence of whole numbers within a range as int32."""
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.empty((0, 0))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be a sequence of whole numbers, but is {values!r}")
    wrong = (array.astype(np.float64) < low) | (array.astype(np.float64) > high)
    if wrong.any():
        index = int(np.argmax(wrong))
        raise ValueError(f"{name}[{index}] is {array[index]}, but must be from {low} to {high}")
    return array.astype(np.int32)


def _int_arrays(given: Mapping[str, ArrayLike | None]) -> dict[str, NodeArray]:
    """Copy the arrays as int32, all of the length of the first."""
    n_nodes = np.size(given["feature"])  # type: ignore[arg-type]
    if n_nodes == 0:
        raise ValueError("feature is empty: a tree has at least one node")
    arrays = {}
    for name, values in given.items():
        array = np.full(n_nodes, -1, dtype=np.int32) if values is None else whole_numbers(name, values)
        if array.shape != (n_nodes,):
            raise ValueError(f"{name} has {array.size} entries, but feature has {n_nodes}")
        arrays[name] = array if values is None else array.copy()
    return arrays


def _check_complete(asked: NodeArray, sizes: NodeArray | None, n_features: int | None) -> None:
    width = n_features if n_features is not None else MAX_FEATURES
    if len(asked) and (asked.min() < 0 or asked.max() >= width):
        index = int(np.flatnonzero((asked < 0) | (asked >= width))[0])
        raise ValueError(f"features[{index}] is {asked[index]}, but features are 0..{width - 1}")
    if sizes is not None and len(sizes) != n_features:
        raise ValueError(f"n_children has {len(sizes)} entries, but there are {n_features} features")


def _check_full_levels(children: NodeArray) -> None:
    """Check that the inner nodes of a complete tree fill whole levels."""
    start, stop = 0, 1
    while start < len(children):
        if stop > len(children):
            raise ValueError(
                f"features has {len(children)} entries, but the levels of a complete tree end at {start} and {stop}"
            )
        start, stop = stop, stop + int(children[start:stop].sum())
