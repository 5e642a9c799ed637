"""Targets at which distributions are evaluated: numbers that broadcast against one distribution per row."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from everytree.base.arrays import FloatArray, as_numbers


class Targets(NamedTuple):
    """Targets, and the shape of the results."""

    grid: FloatArray  # (n_points, n_rows) or (n_points, 1): (n_points, 1) where the points are the same for all rows
    shape: tuple[int, ...]  # shape of the targets broadcast against (n_rows,); it has n_points * n_rows entries


def read_targets(y: ArrayLike, n_rows: int) -> Targets:
    """Read targets by NumPy's rule: one number, one per row, or arrays whose last axis has one entry or one per row."""
    numbers = as_numbers("y", y).astype(np.float64, copy=False)
    width = numbers.shape[-1] if numbers.ndim else 1
    if width != 1 and n_rows != 1 and width != n_rows:
        where = "" if numbers.ndim == 1 else " along its last axis"
        raise ValueError(
            f"y has {width} entries{where}, but there are {n_rows} rows; give one number, one a row, or a column "
            f"such as y[:, None] for the same ones for all rows"
        )
    shape = np.broadcast_shapes(numbers.shape, (n_rows,))
    same_for_all = width == 1 or n_rows == 1
    return Targets(numbers.reshape((-1, 1) if same_for_all else (math.prod(numbers.shape[:-1]), width)), shape)
