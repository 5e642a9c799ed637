"""The state of an online forest: arrays that grow, and the kernel that works on them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.online.rows import FIXED_RANGE, NOMINAL, Features, Range
from everytree.predictive.paths import PathPredictive, Paths

NODE = np.dtype(
    [
        ("parent", "i4"), ("left", "i4"), ("right", "i4"), ("feature", "i4"), ("missing_right", "i4"), ("tree", "i4"),
        ("time", "f8"), ("threshold", "f8"), ("log_split", "f8"), ("log_stop", "f8"), ("leaf", "f8"),
        ("subtree", "f8"), ("stamp", "i8"),
    ]
)  # fmt: skip
"""A node as the kernel has it: `OnlineNode` of online_nodes.hpp says what the fields mean."""

SLOTS_USED, FIRST_FREE, N_FREE, N_SEEN = range(4)
NO_BOUND = 2**31 - 1
ROWS_AT_ONCE = 4096
FEW_STATISTICS = 16
"""Up to so many there is no room for more of them, which every node would carry along."""


class OnlineTrees:
    """Growing trees over the rows of one stream, each averaged over all its prunings.

    Parameters
    ----------
    family : NativeFamily
        The leaf model.
    n_trees, seed, split_prior
        How many trees, what chooses their splits, and the prior probability of finer detail.
    half_life : float or None
        Rows after which a row counts half.
    max_nodes : int or None
        Bound on the nodes of all trees together.
    """

    def __init__(
        self,
        family: NativeFamily,
        n_trees: int,
        seed: int,
        split_prior: float,
        half_life: float | None,
        max_nodes: int | None,
    ) -> None:
        self.family = family
        self.n_trees = n_trees
        self.seed = seed
        self.split_prior = split_prior
        self.half_life = half_life
        self.max_nodes = max_nodes
        self.features = Features()
        self.arrays = _room(0, 0, family.n_statistics)
        self.ranges = np.zeros((0, 2))
        self.roots = np.full((n_trees, 2), -1, dtype=np.int32)
        self.counts = np.array([0, -1, 0, 0], dtype=np.int64)
        self._borrow()

    def _borrow(self) -> None:
        self._kernel = _kernels.make_online(
            self.family.kernel, self.family.size, self.family._prior, self.seed, self.split_prior,
            math.inf if self.half_life is None else self.half_life, self.max_nodes or NO_BOUND,
        )  # fmt: skip
        self._attach()

    def _attach(self) -> None:
        arrays = self.arrays | {"nodes": self.arrays["nodes"].view(np.uint8)}
        self._kernel.attach(*arrays.values(), self.ranges, self.features.kinds, self.roots, self.counts)

    def _larger(
        self, *, capacity: int | None = None, width: int | None = None, n_statistics: int | None = None
    ) -> dict[str, NDArray[Any]]:
        """What there is, with room for more nodes, features or statistics.

        The kernel fills a node when it takes it: only those in use, and what is new in them, are filled here.
        """
        sizes = (
            len(self.arrays["nodes"]) if capacity is None else capacity,
            len(self.ranges) if width is None else width,
            self.arrays["statistics"].shape[1] if n_statistics is None else n_statistics,
        )
        used, larger = int(self.counts[SLOTS_USED]), _room(*sizes)
        of_no_rows = _room(1, *sizes[1:], filled=True)
        for name, array in self.arrays.items():
            old, new = array[:used], larger[name][:used]
            if old.shape != new.shape:
                new[...] = of_no_rows[name]
            new[tuple(slice(0, n) for n in old.shape)] = old
        return larger

    # ---- learning ---------------------------------------------------------------------------------------------------

    def use_features(self, features: Features, ranges: Mapping[Hashable, Range]) -> None:
        """More features: those of the rows to come."""
        width, before = len(features.kinds), len(self.features.index)
        if width > len(self.ranges):
            self.arrays = self._larger(width=width)
            nowhere = np.tile([np.inf, -np.inf], (width - len(self.ranges), 1))
            self.ranges = np.concatenate([self.ranges, nowhere])
        for name, column in list(features.index.items())[before:]:
            if features.kinds[column] == NOMINAL:
                self.ranges[column] = 0.0, 1.0
            elif features.kinds[column] == FIXED_RANGE:
                self.ranges[column] = ranges[name]
        self.features = features
        self._attach()

    def use_family(self, family: NativeFamily) -> None:
        """Another prior, or more classes: all evidence is derived anew, when it is next needed.

        Where there are many classes, room for them doubles when it runs out: one more of them mostly moves nothing.
        """
        room = self.arrays["statistics"].shape[1]
        if family.n_statistics > room:
            few = family.n_statistics <= FEW_STATISTICS
            self.arrays = self._larger(n_statistics=family.n_statistics if few else max(family.n_statistics, 2 * room))
            self._attach()
        self.family = family
        self._kernel.use_family(family.size, family._prior)

    def learn(self, rows: FloatArray, y: FloatArray) -> None:
        """Rows in the order in which they came, not too many at once: the user may want to interrupt."""
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            some = slice(begin, begin + ROWS_AT_ONCE)
            self._learn(rows[some], y[some])

    def _learn(self, rows: FloatArray, y: FloatArray) -> None:
        done = self._kernel.learn(rows, y, 0)
        while done < len(rows):
            capacity = max(4 * len(self.arrays["nodes"]), 64 * self.n_trees)  # what is not in use is hardly there
            self.arrays = self._larger(capacity=min(capacity, self.max_nodes or NO_BOUND))
            self._attach()
            done = self._kernel.learn(rows, y, done)

    def refresh(self) -> None:
        """Decay all statistics to the present row, and derive all evidence from them."""
        self._kernel.refresh()

    # ---- reading ----------------------------------------------------------------------------------------------------

    def predict(self, rows: FloatArray) -> FloatArray:
        """(n_rows, n_classes) probabilities, or (n_rows, 1) means."""
        return np.asarray(self._kernel.predict(rows))

    def predictive(self, rows: FloatArray) -> PathPredictive:
        """The same as distributions."""
        start, statistics, log_weights, nodes = self._kernel.shares(rows)
        summary = self.family.summarise(statistics.reshape(len(nodes), self.family.n_statistics))
        paths = Paths(start, np.arange(len(nodes)), log_weights, np.arange(len(rows), dtype=np.int32))
        return PathPredictive(self.family, summary, paths, {})

    @property
    def n_nodes(self) -> int:
        """Nodes of all trees."""
        return int(self.counts[SLOTS_USED] - self.counts[N_FREE])

    @property
    def n_rows(self) -> int:
        """Rows learned."""
        return int(self.counts[N_SEEN])

    @property
    def log_evidence(self) -> FloatArray:
        """(n_trees,) log evidence of each tree."""
        self._kernel.settle()
        return self.arrays["nodes"]["subtree"][self.roots[:, 0]] if self.n_rows else np.zeros(self.n_trees)

    @property
    def n_bytes(self) -> int:
        """Of all arrays."""
        return sum(array.nbytes for array in self.arrays.values()) + self.ranges.nbytes

    # ---- copies and files -------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Own copies, without the room that is not in use."""
        self._kernel.settle()
        state = {name: value for name, value in self.__dict__.items() if name != "_kernel"}
        used = self.counts[SLOTS_USED]
        in_use = self.arrays | {"statistics": self.arrays["statistics"][:, : self.family.n_statistics]}
        state["arrays"] = {name: array[:used].copy() for name, array in in_use.items()}
        return state | {name: getattr(self, name).copy() for name in ("ranges", "roots", "counts")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Own copies, of the shapes the kernels rely on: what was pickled may be shared, read-only or not ours."""
        self.__dict__.update(state)
        for name in ("ranges", "roots", "counts"):
            setattr(self, name, np.array(state[name], order="C"))
        used, width = int(self.counts[SLOTS_USED]), len(self.features.kinds)
        self.arrays = {}
        for name, like in _room(used, width, self.family.n_statistics).items():
            self.arrays[name] = np.array(state["arrays"][name], dtype=like.dtype, order="C")
            if self.arrays[name].shape != like.shape:
                shape = self.arrays[name].shape
                raise ValueError(f"{name} has shape {shape}, but {like.shape} belongs to {used} nodes")
        self._borrow()


def _room(capacity: int, width: int, n_statistics: int, filled: bool = False) -> dict[str, NDArray[Any]]:
    """Room for nodes, or nodes of no rows: nobody has the features of an empty box."""
    room = {
        "nodes": np.empty(capacity, dtype=NODE),
        "boxes": np.empty((capacity, 2, width)),
        "some_missing": np.empty((capacity, width), dtype=np.uint8),
        "statistics": np.empty((capacity, n_statistics)),
    }
    if filled:
        room["nodes"][:], room["some_missing"][:], room["statistics"][:] = np.zeros((), dtype=NODE), 1, 0.0
        room["boxes"][:, 0], room["boxes"][:, 1] = np.inf, -np.inf
    return room
