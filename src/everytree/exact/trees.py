"""Single trees from the exact posterior over trees and splits: the most probable ones, and samples."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.lazy import cached_property
from everytree.exact.regions import Codes, Kind, splits
from everytree.trees.metatree import MetaTree, read_only

Leaf = tuple[()]
Tree = tuple[Any, ...]  # () for a leaf, or (column, code, child trees)


@dataclass(frozen=True, eq=False)
class ExactTree:
    """One tree with its splits, as flat arrays in level order."""

    feature: NDArray[np.int32]  # (n_nodes,) int32: the column that is split on, -1 at leaves
    # (n_nodes,) int32: the threshold, the single category, or -1 for a split into all categories; -1 at leaves
    code: NDArray[np.int32]
    first_child: NDArray[np.int32]  # (n_nodes,) int32
    n_children: NDArray[np.int32]
    log_prob: float  # log of its posterior probability
    kinds: tuple[Kind, ...]  # kind of each column

    @classmethod
    def of(cls, tree: Tree, log_prob: float, kinds: Sequence[Kind]) -> ExactTree:
        """Make the tree from nested tuples."""
        feature, code, first_child, n_children = [], [], [], []
        level: list[Tree] = [tree]
        n_listed = 1
        while level:
            below: list[Tree] = []
            for node in level:
                children = node[2] if node else ()
                feature.append(node[0] if node else -1)
                code.append(node[1] if node else -1)
                first_child.append(n_listed if node else -1)
                n_children.append(len(children))
                n_listed += len(children)
                below.extend(children)
            level = below
        a, b, c, d = (
            read_only(np.array(values, dtype=np.int32)) for values in (feature, code, first_child, n_children)
        )
        return cls(a, b, c, d, float(log_prob), tuple(kinds))

    @property
    def n_nodes(self) -> int:
        return len(self.feature)

    @property
    def n_leaves(self) -> int:
        return int((self.n_children == 0).sum())

    @cached_property
    def depth(self) -> int:
        """Number of splits on the longest path."""
        depths = np.zeros(self.n_nodes, dtype=np.int64)
        for node in np.flatnonzero(self.n_children > 0):
            first = self.first_child[node]
            depths[first : first + self.n_children[node]] = depths[node] + 1
        return int(depths.max())

    def as_metatree(self) -> MetaTree:
        """Convert to a `MetaTree`, which cannot hold splits of one category against the rest."""
        inner = self.n_children > 0
        asked = {self.kinds[column] for column in self.feature[inner]}
        if "one_against_rest" in asked:
            raise ValueError("splits of one category against the rest are not thresholds: a MetaTree cannot hold them")
        return MetaTree.from_arrays(
            self.feature, self.first_child, self.n_children, self.code, n_features=len(self.kinds)
        )

    def _key(self) -> tuple[bytes, bytes]:
        return self.feature.tobytes(), self.code.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExactTree) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


class TreeSearch:
    """Finds single trees by walking through the regions of an engine, each visited once."""

    def __init__(
        self,
        engine: Any,
        n_codes: Sequence[int],
        kinds: Sequence[Kind],
        log_split: FloatArray,
        log_stop: FloatArray,
        splits_empty: bool,
    ) -> None:
        self._engine = engine
        self._kinds = tuple(kinds)
        self._log_split, self._log_stop = log_split, log_stop
        self._splits_empty = splits_empty
        self._known: dict[Any, _Region] = {}
        self._root = self.region(0, 0, tuple(tuple(range(n)) for n in n_codes))
        self._log_evidence = float(engine.log_evidence())

    def best(self, k: int) -> list[ExactTree]:
        """Return the k best trees, or fewer if there are fewer."""
        found = []
        for rank in range(k):
            one = self._root.ranked(rank, self)
            if one is None or one[0] == -np.inf:
                break
            found.append(ExactTree.of(one[1], one[0] - self._log_evidence, self._kinds))
        return found

    def draw(self, rng: np.random.Generator) -> ExactTree:
        """Draw a tree from the posterior."""
        log_joint, tree = self._root.draw(rng, self)
        return ExactTree.of(tree, log_joint - self._log_evidence, self._kinds)

    # ---- regions ----------------------------------------------------------------------------------------------------

    def region(self, depth: int, number: int, codes: tuple[Codes, ...]) -> _Region:
        """Return a region with rows, by its number in its level."""
        key = (depth, number)
        if key not in self._known:
            self._known[key] = self._with_rows(depth, number, codes)
        return self._known[key]

    def _with_rows(self, depth: int, number: int, codes: tuple[Codes, ...]) -> _Region:
        facts = self._engine.region(depth, number)
        n = len(facts["column"])
        region = _Region(float(facts["log_leaf"]), float(facts["log_stop"]))
        each = self._log_split[depth] - np.log(n) if n else 0.0
        at = 0
        for i in range(n):
            column, code = int(facts["column"][i]), int(facts["code"][i])
            places = range(at, at + int(facts["n_children"][i]))
            at = places.stop
            child_codes = dict(splits(self._kinds[column], codes[column]))[code]
            children = [
                _Child(
                    depth + 1, int(facts["children"][place]), (*codes[:column], own, *codes[column + 1 :]),
                    float(facts["child_best"][place]),
                )
                for place, own in zip(places, child_codes, strict=True)
            ]  # fmt: skip
            region.add(column, code, each, children, float(facts["log_split"][i]))
        return region

    def empty_region(self, depth: int, codes: tuple[Codes, ...]) -> _Region:
        """Return a region without rows, where the posterior is the prior; it is identified by its remaining splits."""
        key = (depth, codes)
        if key not in self._known:
            self._known[key] = self._without_rows(depth, codes)
        return self._known[key]

    def _without_rows(self, depth: int, codes: tuple[Codes, ...]) -> _Region:
        if depth >= len(self._log_split) or not self._splits_empty:
            return _Region(0.0, 0.0)
        found = [
            (column, code, children)
            for column, own in enumerate(codes)
            for code, children in splits(self._kinds[column], own)
        ]
        if not found:
            return _Region(0.0, 0.0)
        region = _Region(float(self._log_stop[depth]), float(self._log_stop[depth]))
        each = float(self._log_split[depth] - np.log(len(found)))
        for column, code, sets in found:
            children = [_Child(depth + 1, -1, (*codes[:column], own, *codes[column + 1 :]), None) for own in sets]
            region.add(column, code, each, children, each)
        return region


@dataclass
class _Child:
    """A region below another, visited when needed.

    It does not hold the `TreeSearch` that visits it: the two would keep each other, and the engine, in memory.
    """

    depth: int
    number: int  # in its level; -1 without rows, -2 below the last level
    codes: tuple[Codes, ...]
    log_best: float | None

    def best(self, search: TreeSearch) -> float:
        if self.log_best is None:
            one = self.region(search).ranked(0, search)
            assert one is not None
            self.log_best = one[0]
        return self.log_best

    def region(self, search: TreeSearch) -> _Region:
        if self.number >= 0:
            return search.region(self.depth, self.number, self.codes)
        if self.number == -2:
            assert self.log_best is not None
            return _Region(self.log_best, 0.0)
        return search.empty_region(self.depth, self.codes)


class _Region:
    """The trees below a region, best first, found one after another; and samples of them.

    Values are log prior times evidence. The queue holds each candidate split with its best tree; when that is taken,
    it is replaced by the trees that differ from it by the next best tree of one child.
    """

    def __init__(self, log_leaf: float, log_stop: float) -> None:
        self._log_leaf = log_leaf
        self._found: list[tuple[float, Tree]] = []
        self._queue: list[tuple[float, int, tuple[int, ...]]] = [(-log_leaf, -1, ())]
        self._queued: set[tuple[int, tuple[int, ...]]] = set()
        self._candidates: list[tuple[int, int, float, list[_Child]]] = []
        self._log_fates = [log_stop]
        self._is_ready = False

    def add(self, column: int, code: int, log_prior: float, children: list[_Child], log_prob: float) -> None:
        self._candidates.append((column, code, log_prior, children))
        self._log_fates.append(log_prob)

    def _prepare(self, search: TreeSearch) -> None:
        if not self._is_ready:
            self._is_ready = True
            for i, (_, _, log_prior, children) in enumerate(self._candidates):
                value = log_prior + sum(child.best(search) for child in children)
                self._queue.append((-value, i, (0,) * len(children)))
            heapq.heapify(self._queue)

    def ranked(self, rank: int, search: TreeSearch) -> tuple[float, Tree] | None:
        """Return the tree of that rank and its value, or None if there are fewer."""
        self._prepare(search)
        while len(self._found) <= rank and self._queue:
            value, i, ranks = heapq.heappop(self._queue)
            if i < 0:
                self._found.append((-value, ()))
                continue
            column, code, _, children = self._candidates[i]
            chosen = [child.region(search).ranked(r, search) for child, r in zip(children, ranks, strict=True)]
            trees = tuple(one[1] for one in chosen if one is not None)
            self._found.append((-value, (column, code, trees)))
            for c in range(len(ranks)):
                self._push(i, (*ranks[:c], ranks[c] + 1, *ranks[c + 1 :]), search)
        return self._found[rank] if rank < len(self._found) else None

    def _push(self, i: int, ranks: tuple[int, ...], search: TreeSearch) -> None:
        if (i, ranks) in self._queued:
            return
        _, _, log_prior, children = self._candidates[i]
        chosen = [child.region(search).ranked(r, search) for child, r in zip(children, ranks, strict=True)]
        if all(one is not None for one in chosen):
            self._queued.add((i, ranks))
            heapq.heappush(self._queue, (-(log_prior + sum(one[0] for one in chosen if one is not None)), i, ranks))

    def draw(self, rng: np.random.Generator, search: TreeSearch) -> tuple[float, Tree]:
        """Draw a tree from the posterior below this region; return its value and the tree."""
        probs = np.exp(self._log_fates)
        i = int(rng.choice(len(probs), p=probs / probs.sum())) - 1
        if i < 0:
            return self._log_leaf, ()
        column, code, log_prior, children = self._candidates[i]
        drawn = [child.region(search).draw(rng, search) for child in children]
        return log_prior + sum(one[0] for one in drawn), (column, code, tuple(one[1] for one in drawn))
