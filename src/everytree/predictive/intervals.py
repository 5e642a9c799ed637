"""The shortest interval that holds a given share of a mixture, for many mixtures at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.predictive.mixture import Mixture, bracketed_root

FINEST = 2.0**-32
"""Intervals of counts are told apart down to this share of their length: every one up to four billion."""


def shortest_interval(mixture: Mixture, coverage: float) -> FloatArray:
    """(n_units, 2) lower and upper ends."""
    if len(mixture) == 0:
        return np.empty((0, 2))
    return _shortest_of_counts(mixture, coverage) if mixture.is_discrete else _shortest_of_reals(mixture, coverage)


# ---- counts ----------------------------------------------------------------------------------------------------------


class _Starts(NamedTuple):
    """Blocks of whole numbers first .. first + size - 1 at which an interval of a unit may start."""

    unit: NDArray[np.int64]
    first: FloatArray
    size: FloatArray

    @staticmethod
    def up_to(last: FloatArray) -> _Starts:
        return _Starts(np.arange(len(last)), np.zeros(len(last)), 2.0 ** np.ceil(np.log2(last + 1.0)))

    def halves(self, which: NDArray[np.bool_]) -> _Starts:
        unit, first, half = self.unit[which], self.first[which], 0.5 * self.size[which]
        return _Starts(np.repeat(unit, 2), np.stack([first, first + half], axis=1).ravel(), np.repeat(half, 2))


def _shortest_of_counts(mixture: Mixture, coverage: float) -> FloatArray:
    """The least b - a with P(a <= Y <= b) >= coverage, and of those intervals the lowest.

    Nothing is assumed about the mixture, which may have any number of modes: a block of starts is halved until even the
    interval from its first start to the end that belongs to its last one holds too little. Near the shortest interval,
    about as many blocks remain as the square root of its length.
    """
    length = mixture.quantile(np.full(len(mixture), coverage))  # b - a; that of the interval from 0 to begin with
    last_start = mixture.quantile(
        np.full(len(mixture), np.nextafter(1.0 - coverage, 1.0))
    )  # too much is below the next
    start = np.zeros(len(mixture))
    blocks = _Starts.up_to(last_start)
    while len(blocks.unit):
        unit, first, room = blocks.unit, blocks.first, _room(mixture, blocks, coverage)
        shorter = _holds(mixture, unit, first + length[unit] - 1.0, room)
        found = _least_lengths(mixture, unit[shorter], first[shorter], length[unit[shorter]] - 1.0, room[shorter])
        np.minimum.at(length, unit[shorter], found)
        is_shortest = found == length[unit[shorter]]
        start[unit[shorter][is_shortest]] = first[shorter][is_shortest]
        last = np.minimum(first + blocks.size - 1.0, last_start[unit])
        may_hold = _holds(mixture, unit, last + length[unit] - 1.0, room)
        blocks = blocks.halves((first <= last) & may_hold & _divides(blocks, length))
    return _lowest_of_length(mixture, coverage, start, length)


def _lowest_of_length(mixture: Mixture, coverage: float, start: FloatArray, length: FloatArray) -> FloatArray:
    """The interval of this length with the lowest start, from one that holds enough."""
    blocks = _Starts.up_to(start)
    while len(blocks.unit):
        unit, first, room = blocks.unit, blocks.first, _room(mixture, blocks, coverage)
        enough = _holds(mixture, unit, first + length[unit], room)
        np.minimum.at(start, unit[enough], first[enough])
        last = np.minimum(first + blocks.size - 1.0, start[unit] - 1.0)
        may_hold = _holds(mixture, unit, last + length[unit], room)
        blocks = blocks.halves((first <= last) & may_hold & _divides(blocks, length))
    return np.stack([start, start + length], axis=1)


def _divides(blocks: _Starts, length: FloatArray) -> NDArray[np.bool_]:
    return blocks.size > np.maximum(1.0, FINEST * length[blocks.unit])


def _room(mixture: Mixture, blocks: _Starts, coverage: float) -> FloatArray:
    """How much probability may lie beyond an interval that starts with its block."""
    return 1.0 - coverage - mixture.tail(blocks.unit, blocks.first - 1.0, np.zeros(len(blocks.unit), dtype=bool))


def _holds(mixture: Mixture, unit: NDArray[np.int64], end: FloatArray, room: FloatArray) -> NDArray[np.bool_]:
    """Whether what lies beyond `end` fits in."""
    return mixture.tail(unit, end, np.ones(len(unit), dtype=bool)) <= room


def _least_lengths(
    mixture: Mixture, unit: NDArray[np.int64], start: FloatArray, high: FloatArray, room: FloatArray
) -> FloatArray:
    """The least b - a that holds enough from each start on, by bisection; `high` does."""
    low = np.full(len(unit), -1.0)
    while (open_ := high - low > np.maximum(1.0, 1e-15 * high)).any():
        middle = np.where(open_, np.floor(0.5 * (low + high)), high)
        enough = _holds(mixture, unit, start + middle, room)
        high, low = np.where(enough, middle, high), np.where(enough, low, middle)
    return high


# ---- numbers ---------------------------------------------------------------------------------------------------------


def _shortest_of_reals(mixture: Mixture, coverage: float) -> FloatArray:
    """A grid over the lower tail finds the valley; at its bottom, the density is the same at both ends."""

    def ends(tail: FloatArray) -> FloatArray:
        inside = np.clip(tail, 1e-12, 1.0 - coverage - 1e-12)
        return np.stack([mixture.quantile(inside), mixture.quantile(inside + coverage)], axis=1)

    def slope(tail: FloatArray) -> FloatArray:
        """Of the same sign as that of the width: the log ratio of the densities."""
        low, high = ends(tail).T
        with np.errstate(invalid="ignore"):
            return np.clip(np.nan_to_num(mixture.log_prob(low) - mixture.log_prob(high)), -1e3, 1e3)

    grid = (1.0 - coverage) * np.arange(17) / 16
    found = np.stack([ends(np.full(len(mixture), tail)) for tail in grid], axis=1)
    best = np.diff(found, axis=2)[:, :, 0].argmin(axis=1)
    low, high = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, 16)]
    falls, rises = slope(low) < 0.0, slope(high) > 0.0
    bottom = bracketed_root(slope, np.where(rises, low, high), np.where(falls, high, low), 1e-9)
    both = np.stack([found[np.arange(len(mixture)), best], ends(bottom)], axis=1)
    return np.asarray(both[np.arange(len(mixture)), np.diff(both, axis=2)[:, :, 0].argmin(axis=1)])
