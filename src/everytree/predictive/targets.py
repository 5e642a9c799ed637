"""Targets that distributions are asked about: numbers that broadcast against one distribution a row."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from everytree.base.arrays import FloatArray, as_numbers


class Targets(NamedTuple):
    """Targets, and the shape of what is said of them.

    Attributes
    ----------
    grid : (n_points, n_rows) or (n_points, 1) float64
        The second where the points are the same for all rows.
    shape : tuple of int
        That of the targets broadcast against (n_rows,); as many entries as n_points * n_rows.
    """

    grid: FloatArray
    shape: tuple[int, ...]


def read_targets(y: ArrayLike, n_rows: int) -> Targets:
    """By NumPy's rule: one number, one a row, or anything whose last axis has one entry, or one a row."""
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
