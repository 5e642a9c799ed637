"""Cells of a line: where targets of any shape are counted, and how targets lie inside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.lazy import cached_property

N_CELLS = 32
"""Number of cells, about: an atom takes up two."""

MOST_ATOMS = 15
"""Maximum number of values that have a cell of their own."""

FREQUENT, LEAST_ROWS = 1.0 / MOST_ATOMS, 5.0
"""Least share, and least weight, of the rows of such a value where there are more."""

MOST_GAPS, GAP = 4, 1.0 / N_CELLS
"""Maximum number of gaps between targets that have a cell, and their least share of the range."""

N_GRID = 256
"""Number of equally large parts of the targets by which edges are laid."""

TAIL = 0.125
"""Size of the exponential tails beyond the outermost edges, as a share of the distance between these."""


@dataclass(frozen=True)
class Cells:
    """A line cut at edges: below the first one, between each two, and above the last one.

    Targets are spread evenly between two edges, and exponentially in the two cells without end. Two equal edges make a
    cell of one value, an atom.
    """

    edges: FloatArray  # (n_cells - 1,): in ascending order
    tails: FloatArray  # (2,): mean distance of targets beyond the first and the last edge from it

    def __len__(self) -> int:
        return len(self.edges) + 1

    @cached_property
    def low(self) -> FloatArray:
        """(n_cells,) lower ends; of the first one, where its mean would be the middle."""
        return np.concatenate([[self.edges[0] - 2.0 * self.tails[0]], self.edges])

    @cached_property
    def width(self) -> FloatArray:
        """(n_cells,) distances between edges; of the outermost ones, twice the mean distance to their edge."""
        return np.concatenate([[2.0 * self.tails[0]], np.diff(self.edges), [2.0 * self.tails[1]]])

    @cached_property
    def means(self) -> FloatArray:
        """(n_cells,) means."""
        return self.low + 0.5 * self.width

    @cached_property
    def variances(self) -> FloatArray:
        """(n_cells,) variances."""
        inside = self.width**2 / 12.0
        inside[[0, -1]] = self.tails**2
        return inside

    def of(self, y: FloatArray) -> NDArray[np.int64]:
        """The cell of each number: that of an atom, or the one above the next edge below the number."""
        cell = np.searchsorted(self.edges, y)
        nearby = np.minimum(cell, len(self.edges) - 2) if len(self.edges) > 1 else np.zeros_like(cell)
        is_atom = (self.edges[nearby] == y) & (self.edges[np.minimum(nearby + 1, len(self.edges) - 1)] == y)
        return np.where(is_atom, nearby + 1, cell)

    def log_density(self, cell: NDArray[np.int64], y: FloatArray) -> FloatArray:
        """Log density inside the cells of numbers, 0 at atoms."""
        scale = np.where(self.width > 0.0, self.width, 1.0)
        scale[[0, -1]] = self.tails
        return np.asarray(-np.log(scale[cell]) - self._beyond(cell, y))

    def up_to(self, cell: NDArray[np.int64], y: FloatArray) -> FloatArray:
        """Share of the cell of each number that is at most the number."""
        width = self.width[cell]
        with np.errstate(invalid="ignore"):
            share = np.where(width > 0.0, (y - self.low[cell]) / np.where(width > 0.0, width, 1.0), 1.0)
        far = np.exp(-self._beyond(cell, y))
        return np.where(cell == 0, far, np.where(cell == len(self) - 1, 1.0 - far, share))

    def quantile(self, cell: NDArray[np.int64], below: FloatArray, above: FloatArray) -> FloatArray:
        """The number in each cell with this share of the cell below it, and that share above."""
        with np.errstate(divide="ignore"):
            found = self.low[cell] + below * self.width[cell]
            found = np.where(cell == 0, self.edges[0] + self.tails[0] * np.log(below), found)
            return np.where(cell == len(self) - 1, self.edges[-1] - self.tails[1] * np.log(above), found)

    def _beyond(self, cell: NDArray[np.int64], y: FloatArray) -> FloatArray:
        """Distance from the outermost edges of numbers beyond them, in sizes of the tail there; else 0."""
        return np.asarray(
            np.where(
                cell == 0,
                (self.edges[0] - y) / self.tails[0],
                np.where(cell == len(self) - 1, (y - self.edges[-1]) / self.tails[1], 0.0),
            )
        )


def cells_of(y: FloatArray, weight: FloatArray | None) -> tuple[Cells, FloatArray]:
    """Return cells for targets like these, and the share of the targets in each of them.

    Values that are frequent get cells of their own: all of them where there are few, else those of at least a
    fifteenth of the rows. The other edges lie between values, half of them where targets are dense, and half of them
    where cells would be wide. Half a row is added to each of the two tails, and to the spaces between atoms together.
    """
    values, place = np.unique(y, return_inverse=True)
    counts = np.bincount(place, weights=weight).astype(np.float64)
    values, counts = values[counts > 0.0], counts[counts > 0.0]
    atoms = _atoms(values, counts)
    others = ~np.isin(values, atoms)
    edges = np.repeat(atoms, 2)
    if others.any():
        between = _edges_between(values, counts, others, max(N_CELLS - len(atoms), N_CELLS // 2))
        edges = np.sort(np.concatenate([edges, between]))
    size = TAIL * (edges[-1] - edges[0]) if edges[-1] > edges[0] else max(abs(edges[0]), 1.0)
    cells = Cells(edges, np.array([size, size]))
    shares = np.bincount(cells.of(values), weights=counts, minlength=len(cells))
    shares[[0, -1]] = shares[[0, -1]] + 0.5
    if (empty := shares == 0.0).any():
        shares[empty] = 0.5 / empty.sum()
    return cells, shares / shares.sum()


def _atoms(values: FloatArray, counts: FloatArray) -> FloatArray:
    """Values that have a cell of their own."""
    if len(values) <= MOST_ATOMS and counts.sum() >= 2.0 * len(values):
        return values
    return np.asarray(values[counts >= max(FREQUENT * counts.sum(), LEAST_ROWS)])


def _edges_between(values: FloatArray, counts: FloatArray, others: NDArray[np.bool_], n_cells: int) -> FloatArray:
    """Edges between values, such that none is one of them; the outermost ones lie beyond all."""
    part, of_part = values[others], counts[others]
    upto = (np.cumsum(of_part) - 0.5 * of_part) / of_part.sum()
    grid = np.interp((np.arange(N_GRID + 1)) / N_GRID, upto, part)
    wide = np.cbrt(np.diff(grid)) ** 2
    effort = np.full(N_GRID, 0.5 / N_GRID) + (0.5 * wide / wide.sum() if wide.sum() > 0.0 else 0.5 / N_GRID)
    step = float(np.min(np.diff(values))) if len(values) > 1 else max(abs(float(values[0])), 1.0) * 2e-3
    margin = max(0.5 * step, 1e-3 * float(values[-1] - values[0]))
    beside = _beside_gaps(values, margin)
    inner = _inner_edges(values, grid, np.concatenate([[0.0], np.cumsum(effort)]), n_cells - len(beside) // 2)
    return np.unique(np.concatenate([[values[0] - margin], inner, beside, [values[-1] + margin]]))


def _beside_gaps(values: FloatArray, margin: float) -> FloatArray:
    """Edges on both sides of the widest gaps between values: no cell holds such a gap and what lies beside it."""
    gaps = np.diff(values)
    widest = np.argsort(-gaps, kind="stable")[:MOST_GAPS]
    widest = widest[gaps[widest] > GAP * (values[-1] - values[0])]
    pad = np.minimum(0.25 * gaps[widest], margin)
    return np.concatenate([values[widest] + pad, values[widest + 1] - pad])


def _inner_edges(values: FloatArray, grid: FloatArray, upto: FloatArray, n_cells: int) -> FloatArray:
    """The middles between neighbouring values at which the effort is divided best.

    Of values that repeat, several edges would lie between the same two: then more are asked for.
    """
    middles = 0.5 * (values[:-1] + values[1:])
    found = middles
    for times in range(4, 40) if len(middles) >= n_cells else ():
        wanted = np.interp(np.arange(1, times * n_cells // 4) / (times * n_cells // 4), upto, grid)
        more = np.unique(middles[np.clip(np.searchsorted(values, wanted, side="right") - 1, 0, len(middles) - 1)])
        if times > 4 and len(more) >= n_cells:
            break
        found = more
    return found
