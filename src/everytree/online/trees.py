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
from everytree.online.leaves import ClassLists, ClassWeights, Leaves
from everytree.online.rows import FIXED_RANGE, NOMINAL, Features, Range
from everytree.predictive.paths import PathPredictive, Paths

NODE = _kernels.ONLINE_NODE
"""A node as in the kernel: `OnlineNode` of online/nodes.hpp documents the fields."""

SLOTS_USED, FIRST_FREE, N_FREE, N_SEEN = range(4)
NO_BOUND = 2**31 - 1
ROWS_AT_ONCE = 4096


class OnlineTrees:
    """Growing trees over the rows of one stream, each averaged over all its prunings.

    `leaves`: the leaf model. `n_trees`, `seed` and `split_prior`: number of trees, seed of their splits, and prior
    probability of finer splits. `half_life`: number of rows after which a row counts half. `max_nodes`: maximum number
    of nodes of all trees together.
    """

    def __init__(
        self,
        leaves: Leaves,
        n_trees: int,
        seed: int,
        split_prior: float,
        half_life: float | None,
        max_nodes: int | None,
    ) -> None:
        self.leaves = leaves
        self.n_trees = n_trees
        self.seed = seed
        self.split_prior = split_prior
        self.half_life = half_life
        self.max_nodes = max_nodes
        self.features = Features()
        self.arrays = _room(0, 0, leaves.n_statistics)
        self.ranges = np.zeros((0, 2))
        self.roots = np.full((n_trees, 2), -1, dtype=np.int32)
        self.counts = np.array([0, -1, 0, 0], dtype=np.int64)
        self._borrow()

    def _borrow(self) -> None:
        self._kernel = _kernels.make_online(
            name=self.leaves.kernel, size=self.leaves.size, prior=self.leaves.kernel_prior, seed=self.seed,
            split_prior=self.split_prior, half_life=math.inf if self.half_life is None else self.half_life,
            max_nodes=self.max_nodes or NO_BOUND,
        )  # fmt: skip
        self._attach()

    def _attach(self) -> None:
        arrays = self.arrays | {"nodes": self.arrays["nodes"].view(np.uint8)}
        self._kernel.attach(
            **arrays, ranges=self.ranges, kinds=self.features.kinds, roots=self.roots, counts=self.counts
        )

    def _larger(
        self, *, capacity: int | None = None, width: int | None = None, n_statistics: int | None = None
    ) -> dict[str, NDArray[Any]]:
        """Return the arrays with room for more nodes, features or statistics.

        The kernel fills a node when it uses it: only nodes in use, and their new parts, are filled here.
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
        """Add features: those of the next rows."""
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

    def use_leaves(self, leaves: Leaves) -> None:
        """Change the prior or add classes: all evidence is derived again when it is next needed."""
        if leaves.kernel != self.leaves.kernel:
            self._list_classes(leaves)
        elif leaves.n_statistics > self.arrays["statistics"].shape[1]:
            self.arrays = self._larger(n_statistics=leaves.n_statistics)
            self._attach()
        self._kernel.use_prior(leaves.size, leaves.kernel_prior)
        self.leaves = leaves

    def _list_classes(self, leaves: Leaves) -> None:
        """Replace the array of all classes by lists of those that occur."""
        used = int(self.counts[SLOTS_USED])
        lists = ClassWeights.listed(self.arrays["statistics"][:used])
        self.leaves, self.arrays = leaves, self.arrays | {"statistics": np.empty((len(self.arrays["nodes"]), 0))}
        self._borrow()
        self._kernel.set_class_lists(*lists)

    def learn(self, rows: FloatArray, y: FloatArray) -> None:
        """Learn rows in their order, in pieces between which the user can interrupt."""
        for begin in range(0, len(rows), ROWS_AT_ONCE):
            some = slice(begin, begin + ROWS_AT_ONCE)
            self._learn(rows[some], y[some])

    def _learn(self, rows: FloatArray, y: FloatArray) -> None:
        done = self._kernel.learn(rows, y, 0)
        while done < len(rows):
            capacity = max(4 * len(self.arrays["nodes"]), 64 * self.n_trees)  # untouched memory costs little
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
        """Like `predict`, as distributions."""
        start, statistics, log_weights, nodes = self._kernel.shares(rows)
        family = self.family
        summary = family.summarise(statistics.reshape(len(nodes), family.n_statistics))
        paths = Paths(start, np.arange(len(nodes)), log_weights, np.arange(len(rows), dtype=np.int32))
        return PathPredictive(family, summary, paths, {})

    def copy(self) -> OnlineTrees:
        """Independent trees of the same rows."""
        other = object.__new__(OnlineTrees)
        other.__setstate__(self.__getstate__())
        return other

    def current_nodes(self) -> tuple[NDArray[Any], FloatArray]:
        """The nodes with their evidence and (n_nodes, n_statistics) statistics; those of slots not in use are 0.

        Rows count by their age at present.
        """
        self._kernel.write_evidence()
        used = int(self.counts[SLOTS_USED])
        nodes, family = self.arrays["nodes"][:used].copy(), self.family
        statistics = self.arrays["statistics"][:used, : family.n_statistics].copy()
        if isinstance(self.leaves, ClassLists):
            start, number, weight = self._kernel.class_lists()
            statistics = np.zeros((used, family.n_statistics))
            statistics[np.repeat(np.arange(used), np.diff(start)), number] = weight
        if self.half_life is not None:
            age = self.counts[N_SEEN] - nodes["stamp"]
            statistics = statistics * np.exp2(-age / self.half_life)[:, None]
        statistics[nodes["tree"] < 0] = 0.0
        return nodes, statistics

    @property
    def family(self) -> NativeFamily:
        """The leaf model."""
        return self.leaves.family if isinstance(self.leaves, ClassLists) else self.leaves

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
        return np.asarray(self._kernel.log_evidence())

    # ---- copies and files -------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        """Copies of the arrays, without unused room."""
        self._kernel.write_evidence()
        state = {name: value for name, value in self.__dict__.items() if name != "_kernel"}
        used = self.counts[SLOTS_USED]
        state["arrays"] = {name: array[:used].copy() for name, array in self.arrays.items()}
        if isinstance(self.leaves, ClassLists):
            state["class_weights"] = ClassWeights(*self._kernel.class_lists())
        return state | {name: getattr(self, name).copy() for name in ("ranges", "roots", "counts")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies with the shapes the kernels rely on: pickled arrays may be shared or read-only."""
        state = dict(state)
        lists = state.pop("class_weights", None)
        self.__dict__.update(state)
        for name in ("ranges", "roots", "counts"):
            setattr(self, name, np.array(state[name], order="C"))
        used, width = int(self.counts[SLOTS_USED]), len(self.features.kinds)
        self.arrays = {}
        for name, like in _room(used, width, self.leaves.n_statistics).items():
            self.arrays[name] = np.array(state["arrays"][name], dtype=like.dtype, order="C")
            if self.arrays[name].shape != like.shape:
                shape = self.arrays[name].shape
                raise ValueError(f"{name} has shape {shape}, but {like.shape} belongs to {used} nodes")
        self._borrow()
        if lists is not None:
            self._kernel.set_class_lists(*lists)


def _room(capacity: int, width: int, n_statistics: int, filled: bool = False) -> dict[str, NDArray[Any]]:
    """Arrays for nodes, or nodes without rows: an empty box holds no features."""
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
