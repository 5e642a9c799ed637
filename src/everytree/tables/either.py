"""Columns of codes of which a tree uses one or the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Either = Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]]
"""Pairs of columns, see `Schema.either`."""


def drawn_columns(n_features: int, either: Either, seed: int) -> NDArray[np.int32]:
    """Columns that a tree may split on: of each pair, one side or the other."""
    is_used = np.ones(n_features, dtype=bool)
    for sides, side in zip(either, np.random.default_rng(seed).integers(2, size=len(either)), strict=True):
        is_used[sides[side]] = False
    return np.flatnonzero(is_used).astype(np.int32)
