"""Monotone rearrangement: predictions sorted along columns in which they must rise or fall.

For each row, predictions are made at every combination of values of the constrained columns, the others as in the row,
and sorted along one column after the other; the row has the one at its own place. Sorting along a column keeps the
order along those before it, so the result is monotone in all of them. Where the truth is monotone, it is nowhere
farther from the truth on average over the grid (Chernozhukov, Fernandez-Val, Galichon 2009).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.arrays import FloatArray
from everytree.predictive.mixture import Mixture
from everytree.predictive.predictive import Predictive, VarianceParts
from everytree.tables.column import missing_code

MAX_CELLS = 1024
"""Points of the grid of a row. One column has a point for each of its codes; of several, neighbours share a point."""

CELLS_AT_ONCE = 1 << 18

N_LEVELS = 200
"""Quantiles from which scores of a rearranged distribution are computed."""


@dataclass(frozen=True)
class Axis:
    """A column in which predictions are monotone."""

    column: int  # of the codes
    sign: int  # 1 if predictions rise with it, -1 if they fall
    n_codes: int  # Codes 0 .. n_codes - 1 are in the order of the values; all others stand for missing values.


@dataclass(frozen=True)
class Grid:
    """The points at which rows are predicted: all combinations, for each set of values of the other columns."""

    axes: Sequence[Axis]
    # (n_units * n_points, n_features) codes: a unit is what rows with the same values in all other columns have in
    # common
    codes: NDArray[Any]
    row_of: NDArray[np.int64]  # (n_units,): one of the rows of each unit
    unit: NDArray[np.int64]  # (n_rows,): unit of each row, and its own point among those of the unit
    own: NDArray[np.int64]
    # points along each axis; the last one along an axis stands for a missing value, and is not sorted
    shape: tuple[int, ...]

    @classmethod
    def of(cls, codes: NDArray[Any], axes: Sequence[Axis], row_data: Mapping[str, NDArray[Any]]) -> Self:
        """The grid of coded rows."""
        most = int(MAX_CELLS ** (1.0 / len(axes)) + 1e-9)
        sizes = [min(axis.n_codes, max(most, 2)) for axis in axes]
        rest, places = codes.copy(), []
        for axis, size in zip(axes, sizes, strict=True):
            own = codes[:, axis.column].astype(np.int64)
            places.append(np.where(own < axis.n_codes, own * size // axis.n_codes, size))
            rest[:, axis.column] = 0
        shape = tuple(size + 1 for size in sizes)
        told_by = [rest.astype(np.float64), *(values.reshape(len(codes), -1) for values in row_data.values())]
        _, row_of, unit = np.unique(np.hstack(told_by), axis=0, return_index=True, return_inverse=True)
        n_points = int(np.prod(shape))
        every = np.repeat(rest[row_of], n_points, axis=0)
        for axis, size, point in zip(axes, sizes, np.indices(shape).reshape(len(axes), -1), strict=True):
            middle = (2 * np.arange(size) + 1) * axis.n_codes // (2 * size)
            every[:, axis.column] = np.tile(np.append(middle, missing_code(codes.dtype))[point], len(row_of))
        own = np.ravel_multi_index(tuple(places), shape) if len(codes) else np.zeros(0, dtype=np.int64)
        return cls(axes, every, row_of, unit.reshape(-1), own, shape)

    @property
    def n_points(self) -> int:
        return int(np.prod(self.shape))

    def at(self, rows: NDArray[np.int64]) -> Grid:
        """Return the same for some rows."""
        return replace(self, unit=self.unit[rows], own=self.own[rows])

    def own_points(self) -> NDArray[np.int64]:
        """(n_rows,) the place of each row's own point among all codes."""
        return self.unit * self.n_points + self.own

    def sorted(self, values: FloatArray) -> FloatArray:
        """(n_rows, ...) values of all codes, (n_units * n_points, ...), sorted, at the rows' own points."""
        table = values.reshape(-1, *self.shape, *values.shape[1:])
        return self.sort(table)[0].reshape(values.shape)[self.own_points()]

    def sort(self, table: FloatArray, beside: FloatArray | None = None, turn: int = 1) -> tuple[FloatArray, FloatArray]:
        """Sort (n, *shape, ...) values along all axes, and move what is `beside` them in the same way.

        `turn` is -1 where values fall as predictions rise.
        """
        table = table.copy()
        beside = table if beside is None else beside.copy()
        for place, axis in enumerate(self.axes, start=1):
            some = (slice(None),) * place + (slice(0, self.shape[place - 1] - 1),)
            order = np.argsort(axis.sign * turn * table[some], axis=place, kind="stable")
            moved = np.take_along_axis(beside[some], order, axis=place)
            table[some] = np.take_along_axis(table[some], order, axis=place)
            if beside is not table:
                beside[some] = moved
        return table, beside


def rearranged(base: Predictive, grid: Grid) -> Predictive:
    """Distributions of rows, rearranged; `base` are those of all codes of the grid."""
    found = base._sorted_by(grid.sorted)
    return RearrangedPredictive(base, grid) if found is None else found


class RearrangedPredictive(Predictive):
    """Distributions that rise or fall with some columns: for every target, its cdf is rearranged.

    Quantiles, intervals and tails follow from that, and are monotone in these columns; the rearranged mean is, too,
    which differs from the mean of the rearranged distribution where distributions of a row's grid cross.

    Parameters
    ----------
    base : Predictive
        Of all codes of the grid.
    grid : Grid
    """

    def __init__(self, base: Predictive, grid: Grid) -> None:
        super().__init__(base._family, base._row_data)
        self._base, self._grid = base, grid

    def __len__(self) -> int:
        return len(self._grid.unit)

    def _at_rows(self, rows: NDArray[np.int64]) -> Self:
        return type(self)(self._base, self._grid.at(rows))

    # ---- answers ----------------------------------------------------------------------------------------------------

    def mean(self) -> FloatArray:
        """(n_rows,) rearranged mean of y."""
        return self._grid.sorted(self._base.mean())

    def variance(self) -> FloatArray:
        """(n_rows,) variance of y before the rearrangement."""
        return self._base[self._grid.own_points()].variance()

    def variance_parts(self) -> VarianceParts:
        """Parts of the variance before the rearrangement: noise, parameters, trees. They add up to `variance()`."""
        return self._base[self._grid.own_points()].variance_parts()

    def quantile(self, p: ArrayLike) -> FloatArray:
        """The smallest y such that the target is at most y with probability p."""
        return self._grid.sorted(self._base.quantile(p))

    def _shortest(self, coverage: float) -> FloatArray:
        levels = (np.arange(N_LEVELS) + 0.5) / N_LEVELS
        ends, n = self.quantile(levels), max(int(np.ceil(coverage * N_LEVELS)) - 1, 0)
        widths = ends[:, n:] - ends[:, : N_LEVELS - n]
        first = np.argmin(widths, axis=1)
        every = np.arange(len(self))
        return np.stack([ends[every, first], ends[every, first + n]], axis=1)

    def _tails(self, grid: FloatArray, is_above: bool) -> FloatArray:
        turn = 1 if is_above else -1
        return self._at_targets(grid, lambda base, y: base.sf(y) if is_above else base.cdf(y), turn, None)

    def _log_probs(self, grid: FloatArray) -> FloatArray:
        with np.errstate(divide="ignore"):
            if getattr(self._no_components(), "is_discrete", False):
                up_to = [self._tails(targets, is_above=False) for targets in (grid, grid - 1.0)]
                beyond = [self._tails(targets, is_above=True) for targets in (grid - 1.0, grid)]
                return np.log(np.where(up_to[0] < 0.5, up_to[0] - up_to[1], beyond[0] - beyond[1]))
            return self._at_targets(grid, _log_odds, 1, Predictive.log_prob)

    def _scores(self, grid: FloatArray) -> FloatArray:
        levels = (np.arange(N_LEVELS) + 0.5) / N_LEVELS
        ends = self.quantile(levels)
        spread = (ends * (2.0 * levels - 1.0)).mean(axis=1)  # half of the mean distance of two of them
        return np.asarray(np.abs(grid[:, :, None] - ends).mean(axis=2) - spread)

    def _draws(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        draws = self.quantile(rng.uniform(1e-12, 1.0 - 1e-12, n_draws))
        return rng.permuted(draws, axis=1)

    def _at_targets(
        self,
        grid: FloatArray,
        sorted_by: Callable[[Predictive, FloatArray], FloatArray],
        turn: int,
        beside: Callable[[Predictive, FloatArray], FloatArray] | None,
    ) -> FloatArray:
        """(n_points, n_rows) values of rows at their own targets, which are not those of other rows of a unit."""
        grid = np.broadcast_to(grid, (len(grid), len(self)))
        n_points, out = self._grid.n_points, np.empty(grid.shape)
        n_rows = max(1, CELLS_AT_ONCE // n_points)
        for first in range(0, len(self), n_rows):
            rows = np.arange(first, min(first + n_rows, len(self)))
            points = self._grid.unit[rows][:, None] * n_points + np.arange(n_points)
            base, own = self._base[points.ravel()], self._grid.own[rows]
            for number, targets in enumerate(grid[:, rows]):
                y = np.repeat(targets, n_points)
                by = sorted_by(base, y).reshape(len(rows), *self._grid.shape)
                other = None if beside is None else beside(base, y).reshape(by.shape)
                found = self._grid.sort(by, other, turn)[1].reshape(len(rows), n_points)
                out[number, rows] = found[np.arange(len(rows)), own]
        return out

    # ---- of mixtures, which there are none of -----------------------------------------------------------------------

    def _per_row(self, function: Callable[[Mixture], FloatArray]) -> FloatArray:
        raise TypeError(f"a rearranged distribution of {self._family_name()} is no mixture, and does not answer this")

    def _per_target(self, function: Callable[[Mixture, FloatArray], FloatArray], grid: FloatArray) -> FloatArray:
        return self._per_row(lambda mixture: function(mixture, grid))


def _log_odds(base: Predictive, y: FloatArray) -> FloatArray:
    """Log odds that targets are exceeded: precise in both tails."""
    return np.asarray(np.log(base.sf(y)) - np.log(base.cdf(y)))
