"""Trees whose nodes are lines: a constant, and slopes in some columns of numbers.

A line reads the codes of its columns as points: the numbers that they stand for, in standard deviations about the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray, as_codes
from everytree.boosting.trees import NODE_ARRAYS, AdditiveTrees
from everytree.tables.schema import Schema
from everytree.trees.metatree import read_only

FARTHEST = 4.0
"""Standard deviations from the mean beyond which all numbers of a column have the same point."""

LEAST_SPREAD = 1e-12
"""Standard deviation, as a share of the largest number, below which a column has no points: it is rounding."""

Points = Sequence[FloatArray]


def points_of_codes(schema: Schema, codes: NDArray[Any], weight: FloatArray | None) -> list[FloatArray]:
    """For each column the (n_codes,) points of its codes; 0 for each code of a column that is no number.

    The number of a code is the middle between its two cuts, and that of the first and the last lies as far beyond their
    only cut as the middle of the next interval lies before it. A missing value has the point 0, as the mean has.
    """
    found = []
    for k, column in enumerate(schema.columns):
        n_codes = int(schema.n_codes[k])
        if column.kind == "categorical" or column.groups or column.hashed is not None or not len(column.cuts):
            found.append(np.zeros(n_codes))
            continue
        mass = np.bincount(np.minimum(codes[:, k], n_codes), weight, n_codes + 1)[:n_codes].astype(np.float64)
        found.append(_standardised(_numbers(column.cuts), mass))
    return found


def _numbers(cuts: FloatArray) -> FloatArray:
    """(n_cuts + 1,) the number of each code, in a unit of their own."""
    if len(cuts) == 1:
        return np.array([0.0, 1.0])
    cuts = cuts / max(float(np.abs(cuts).max()), np.finfo(np.float64).tiny)
    before, beyond = 1.5 * cuts[0] - 0.5 * cuts[1], 1.5 * cuts[-1] - 0.5 * cuts[-2]
    return np.concatenate([[before], 0.5 * (cuts[:-1] + cuts[1:]), [beyond]])


def _standardised(numbers: FloatArray, mass: FloatArray) -> FloatArray:
    if not mass.sum() > 0.0:
        return np.zeros(len(numbers))
    away = numbers - np.average(numbers, weights=mass)
    spread = float(np.sqrt(np.average(away**2, weights=mass)))
    if not spread > LEAST_SPREAD * float(np.abs(numbers).max()):
        return np.zeros(len(numbers))
    return np.clip(away / spread, -FARTHEST, FARTHEST)


class LinedTrees:
    """Trees whose nodes have a constant and slopes: scores are sums of constants, and of slopes times points.

    Parameters
    ----------
    trees : AdditiveTrees
        With an output for the constant, and one for the slope in each of the columns.
    columns : (n_slopes,) int32
        Columns of codes, in ascending order.
    points : sequence of (n_codes,) float64
        Of the codes of each of these.
    """

    def __init__(self, trees: AdditiveTrees, columns: NDArray[np.int32], points: Points) -> None:
        self.trees, self.columns = trees, read_only(np.asarray(columns, dtype=np.int32))
        self.points = tuple(read_only(each) for each in points)

    @classmethod
    def of_chain(cls, lined: Mapping[str, Any], points: Points, n_codes: NDArray[Any]) -> LinedTrees:
        """The trees with lines of a chain as it comes from the kernel; `points` are those of all columns."""
        columns = lined["columns"]
        trees = AdditiveTrees(
            lined["n_nodes"], {name: lined[name] for name in NODE_ARRAYS},
            lined["value"].reshape(-1, 1 + len(columns)), np.zeros(1 + len(columns)), n_codes, lined["mass"],
        )  # fmt: skip
        return cls(trees, columns, [points[k] for k in columns])

    @classmethod
    def average(cls, every: Sequence[LinedTrees], factor: float, *, unit: float = 1.0) -> LinedTrees | None:
        """The trees whose scores are the mean of the scores of these, times a factor, in a unit; None if there is none.

        Lines run in the columns of all of them.
        """
        if factor == 0.0 or not any(len(one.trees) for one in every):
            return None
        points = {int(k): own for one in every for k, own in zip(one.columns, one.points, strict=True)}
        columns = np.array(sorted(points), dtype=np.int32)
        wide = [one._in_columns(columns) for one in every]
        return cls(AdditiveTrees.average(wide, factor, unit=unit), columns, [points[k] for k in columns.tolist()])

    def _in_columns(self, columns: NDArray[np.int32]) -> AdditiveTrees:
        """The trees with slopes of 0 in more columns."""
        value = np.zeros((len(self.trees.value), 1 + len(columns)))
        value[:, 0] = self.trees.value[:, 0]
        value[:, 1 + np.searchsorted(columns, self.columns)] = self.trees.value[:, 1:]
        trees = self.trees
        return AdditiveTrees(trees.n_nodes, trees.nodes, value, np.zeros(1 + len(columns)), trees.n_codes, trees.mass)

    def __len__(self) -> int:
        return len(self.trees)

    def points_of(self, X: Any) -> FloatArray:
        """(n_rows, n_slopes) the points of a table of codes; 0 for a missing value."""
        codes = X if isinstance(X, np.ndarray) and X.dtype.kind == "u" else as_codes(X)
        each = [
            np.append(own, 0.0)[np.minimum(codes[:, k], len(own)).astype(np.int64)]
            for k, own in zip(self.columns, self.points, strict=True)
        ]
        return np.column_stack(each)

    def scores(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        """(n_rows, 1) for a table of codes."""
        each, points = self.trees.scores(X, n_jobs=n_jobs), self.points_of(X)
        total = each[:, :1].copy()
        for j in range(points.shape[1]):  # one after another, as in exports
            total += each[:, 1 + j : 2 + j] * points[:, j : j + 1]
        return total
