"""Random meta-trees without redundant splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

import everytree as et
from everytree.base.arrays import NodeArray


@dataclass
class _Open:
    """A node that may still be split: its depth, and the codes of each feature that its conditions allow."""

    depth: int
    low: NodeArray
    high: NodeArray


@dataclass
class _Arrays:
    feature: list[int] = field(default_factory=list)
    first_child: list[int] = field(default_factory=list)
    n_children: list[int] = field(default_factory=list)
    threshold: list[int] = field(default_factory=list)
    missing_child: list[int] = field(default_factory=list)

    def append(self, *values: int) -> None:
        for column, value in zip(vars(self).values(), values, strict=True):
            column.append(value)


def random_shape(
    n_children: Sequence[int],
    max_depth: int,
    *,
    rng: np.random.Generator | int,
    stop: float = 0.0,
    kind: str = "multiway",
    missing: bool = False,
) -> et.MetaTree:
    """A meta-tree over features with so many codes, split in the way of `kind`: "multiway", "threshold" or "mixed".

    Parameters
    ----------
    stop : float
        Probability that a node above `max_depth` is terminal although it could be split.
    missing : bool
        Whether every inner node has a branch for the missing code.
    """
    sizes = np.array(n_children, dtype=np.int32)
    arrays = _random_arrays(sizes, max_depth, np.random.default_rng(rng), stop, kind, missing)
    return et.MetaTree.from_arrays(**arrays, n_features=len(sizes))


def _random_arrays(
    sizes: NodeArray, max_depth: int, rng: np.random.Generator, stop: float, kind: str, missing: bool
) -> dict[str, list[int]]:
    """The arrays in level order."""
    arrays = _Arrays()
    queue = [_Open(0, np.zeros_like(sizes), sizes - 1)]
    for node in queue:  # grows during iteration: level order
        useful = np.flatnonzero(node.low < node.high)
        if node.depth == max_depth or len(useful) == 0 or rng.random() < stop:
            arrays.append(-1, -1, 0, -1, -1)
            continue
        feature = int(rng.choice(useful))
        # A feature that was split at thresholds gets no multiway split, which would need a child for every code.
        untouched = node.low[feature] == 0 and node.high[feature] == sizes[feature] - 1
        multiway = untouched and (kind == "multiway" or (kind == "mixed" and rng.random() < 0.5))
        first = len(queue)
        if multiway:
            codes = [(c, c) for c in range(sizes[feature])]
            arrays.append(feature, first, len(codes) + missing, -1, len(codes) if missing else -1)
            extra = missing
        else:
            threshold = int(rng.integers(node.low[feature], node.high[feature]))
            codes = [(node.low[feature], threshold), (threshold + 1, node.high[feature])]
            branch = int(rng.integers(3)) if missing else -1
            extra = branch == 2
            arrays.append(feature, first, 2 + extra, threshold, branch)
        queue += [_child(node, feature, low, high) for low, high in codes]
        if extra:
            queue.append(_child(node, feature, 0, 0))  # a missing value cannot be split again
    return vars(arrays)


def _child(node: _Open, feature: int, low: int, high: int) -> _Open:
    lows, highs = node.low.copy(), node.high.copy()
    lows[feature], highs[feature] = low, high
    return _Open(node.depth + 1, lows, highs)
