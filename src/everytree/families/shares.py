"""Distributions that are shares of cells of a line. A mixture of them is one too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.lazy import cached_property
from everytree.families.cells import Cells


class ShareComponents:
    """y lies in cell k with probability `shares[:, k]`.

    Parameters
    ----------
    cells : Cells
    shares : (n, n_cells) float64
    variance_of_mean : (n,) float64
        Part of the variance that is due to unknown shares.
    """

    is_discrete = False

    def __init__(self, cells: Cells, shares: FloatArray, variance_of_mean: FloatArray) -> None:
        self._cells, self.shares, self._variance_of_mean = cells, shares, variance_of_mean

    def mixed(self, average: Callable[[FloatArray], FloatArray]) -> ShareComponents:
        """Return the mixtures of these, given what averages over the components of each."""
        shares = average(self.shares)
        return ShareComponents(self._cells, shares, np.zeros(len(shares)))

    def powered(self, power: float) -> ShareComponents:
        """Return distributions with shares raised to a power, and scaled to sum to 1."""
        if power == 1.0:
            return self
        top = self.shares.max(axis=1, keepdims=True)
        shares = (self.shares / np.where(top > 0.0, top, 1.0)) ** power
        return ShareComponents(self._cells, shares / shares.sum(axis=1, keepdims=True), self._variance_of_mean)

    # ---- moments ----------------------------------------------------------------------------------------------------

    def mean(self) -> FloatArray:
        return self.mean_less(self._centre) + self._centre

    def mean_less(self, centre: FloatArray | float) -> FloatArray:
        """The mean less numbers near it."""
        return np.asarray(self.shares @ (self._cells.means - self._centre) - (centre - self._centre))

    def variance(self) -> FloatArray:
        away = (self._cells.means - self._centre) - self.mean_less(self._centre)[:, None]
        return np.asarray((self.shares * (self._cells.variances + away**2)).sum(axis=1))

    def parameter_share(self) -> FloatArray:
        """Share of the variance that is due to unknown shares."""
        return np.asarray(self._variance_of_mean / self.variance())

    @property
    def _centre(self) -> float:
        """A number between the targets: sums of distances from it keep their digits."""
        return float(self._cells.edges[len(self._cells.edges) // 2])

    # ---- of targets -------------------------------------------------------------------------------------------------

    def log_prob(self, y: FloatArray) -> FloatArray:
        """Log density, of atoms the log probability."""
        possible = np.isfinite(y)
        safe = np.where(possible, y, self._centre)
        cell = self._cells.of(safe)
        with np.errstate(divide="ignore"):
            found = np.log(self.shares[np.arange(len(cell)), cell]) + self._cells.log_density(cell, safe)
        return np.where(possible, found, -np.inf)

    def cdf(self, y: FloatArray) -> FloatArray:
        cell, share, up_to = self._place(y)
        return np.asarray(self._before[np.arange(len(cell)), cell] + share * up_to)

    def sf(self, y: FloatArray) -> FloatArray:
        cell, share, up_to = self._place(y)
        is_last = cell == len(self._cells) - 1
        with np.errstate(over="ignore"):
            beyond = np.exp(-(np.maximum(y, self._cells.edges[-1]) - self._cells.edges[-1]) / self._cells.tails[1])
        rest = np.where(is_last, beyond, 1.0 - up_to)
        return np.asarray(self._after[np.arange(len(cell)), cell] + share * rest)

    def _place(self, y: FloatArray) -> tuple[NDArray[np.int64], FloatArray, FloatArray]:
        """The cell of each number, its share, and how much of it is at most the number."""
        safe = np.clip(y, -1e300, 1e300)
        cell = self._cells.of(safe)
        with np.errstate(over="ignore"):
            return cell, self.shares[np.arange(len(cell)), cell], self._cells.up_to(cell, safe)

    @cached_property
    def _before(self) -> FloatArray:
        """(n, n_cells) P(Y is in a cell below)."""
        return np.column_stack([np.zeros(len(self.shares)), np.cumsum(self.shares, axis=1)[:, :-1]])

    @cached_property
    def _after(self) -> FloatArray:
        """(n, n_cells) P(Y is in a cell above): sums of small numbers stay exact."""
        return np.column_stack([np.cumsum(self.shares[:, :0:-1], axis=1)[:, ::-1], np.zeros(len(self.shares))])

    def quantile(self, p: FloatArray) -> FloatArray:
        """The smallest y with cdf(y) >= p, by the smaller tail."""
        rows, last = np.arange(len(p)), len(self._cells) - 1
        is_above, above = p > 0.5, 1.0 - p
        from_below = (self._before + self.shares < p[:, None]).sum(axis=1)
        from_above = (self._after > above[:, None]).sum(axis=1)
        cell = np.minimum(np.where(is_above, from_above, from_below), last)
        share = np.where(self.shares[rows, cell] > 0.0, self.shares[rows, cell], 1.0)
        low = np.clip((p - self._before[rows, cell]) / share, 0.0, 1.0)
        high = np.clip((above - self._after[rows, cell]) / share, 0.0, 1.0)
        return self._cells.quantile(cell, np.where(is_above, 1.0 - high, low), np.where(is_above, high, 1.0 - low))

    def shortest(self, coverage: float) -> FloatArray:
        """(n, 2) the shortest interval with this probability: one of its ends is an edge, or its tails are equal."""
        before = np.column_stack([self._before, self._before + self.shares])
        starts = np.column_stack([before, before - coverage, np.full(len(before), 0.5 - 0.5 * coverage)])
        ends = np.empty((len(before), starts.shape[1], 2))
        for k, start in enumerate(starts.T):
            inside = np.clip(start, 1e-12, 1.0 - coverage - 1e-12)
            # At an edge between cells an interval begins with the one above it.
            ends[:, k] = np.stack([self.quantile(inside + 1e-12), self.quantile(inside + coverage)], axis=1)
        best = np.diff(ends, axis=2)[:, :, 0].argmin(axis=1)
        return np.asarray(ends[np.arange(len(ends)), best])

    def sample(self, rng: np.random.Generator) -> FloatArray:
        return self.quantile(rng.random(len(self.shares)))

    # ---- scores -----------------------------------------------------------------------------------------------------

    def crps(self, y: FloatArray) -> FloatArray:
        """The integral of (cdf(x) - 1[x >= y])^2, cell by cell: the square of a line, or of an exponential."""
        edges, rise = self._cells.edges, self.shares[:, 1:-1]
        left, right = self._before[:, 1:-1], self._after[:, 1:-1] + rise
        width = np.diff(edges)
        below = np.clip(y[:, None] - edges[:-1], 0.0, width)
        share = np.divide(below, width, out=np.zeros_like(below), where=width > 0.0)
        at, beyond = left + share * rise, right - share * rise
        total = (below * (left**2 + left * at + at**2)).sum(axis=1)
        total += ((width - below) * (beyond**2 + beyond * self._after[:, 1:-1] + self._after[:, 1:-1] ** 2)).sum(axis=1)
        total /= 3.0
        for share, edge, tail in (
            (self.shares[:, 0], edges[0] - y, self._cells.tails[0]),
            (self.shares[:, -1], y - edges[-1], self._cells.tails[1]),
        ):
            out = np.maximum(edge, 0.0)  # how far y lies in that tail
            total += 0.5 * tail * share**2 * np.exp(-2.0 * out / tail)
            total += (
                out + 2.0 * tail * share * np.expm1(-out / tail) - 0.5 * tail * share**2 * np.expm1(-2.0 * out / tail)
            )
        return np.asarray(np.where(np.isfinite(y), total, np.where(np.isnan(y), np.nan, np.inf)))
