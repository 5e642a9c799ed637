"""Columns of codes of which a tree uses one or the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Either = Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]
"""Pairs of columns, see `Schema.either`."""


def drawn_columns(n_features: int, either: Either, seed: int) -> NDArray[np.int32]:
    """Columns that a tree of many may split on: of each pair, one side or the other."""
    sides = np.random.default_rng(seed).integers(2, size=len(either))
    return _without(n_features, [pair[side] for pair, side in zip(either, sides, strict=True)])


def columns_of_one_tree(n_features: int, either: Either) -> NDArray[np.int32]:
    """Columns that a tree by itself may split on: of each pair, the codes by mean targets."""
    return _without(n_features, [own for own, _ in either])


def _without(n_features: int, unused: Sequence[NDArray[np.int64]]) -> NDArray[np.int32]:
    is_used = np.ones(n_features, dtype=bool)
    for columns in unused:
        is_used[columns] = False
    return np.flatnonzero(is_used).astype(np.int32)
