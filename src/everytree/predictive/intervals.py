"""The shortest interval that holds a given share of a mixture, for many mixtures at once."""

from __future__ import annotations

from itertools import count
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.predictive.mixture import Mixture
from everytree.predictive.roots import bracketed_root

FINEST = 2.0**-32
"""Lengths of intervals of counts are exact to this share of themselves: all up to four billion."""

PROB_ERROR = 1e-12
"""Relative error of the probability of a count."""

TAIL_ERROR = 16.0 * np.finfo(np.float64).eps
"""Absolute error of a tail, and relative error of the count at which it is evaluated."""


def shortest_interval(mixture: Mixture, coverage: float) -> FloatArray:
    """(n_units, 2) lower and upper ends."""
    if len(mixture) == 0:
        return np.empty((0, 2))
    if mixture.as_one is not None:
        return np.asarray(mixture.as_one.shortest(coverage))
    mixture = mixture.apart
    return _shortest_of_counts(mixture, coverage) if mixture.is_discrete else _shortest_of_reals(mixture, coverage)


# ---- counts ----------------------------------------------------------------------------------------------------------


class _Starts(NamedTuple):
    """Blocks of whole numbers first .. first + size - 1 at which an interval of a unit may start.

    `room` is the probability that may lie beyond the end of an interval that starts with its block.
    """

    unit: NDArray[np.int64]
    first: FloatArray
    size: FloatArray
    room: FloatArray

    def some(self, which: NDArray[Any]) -> _Starts:
        return _Starts(*(column[which] for column in self))

    def joined(self, other: _Starts) -> _Starts:
        return _Starts(*(np.concatenate(columns) for columns in zip(self, other, strict=True)))


class _Best(NamedTuple):
    """The shortest interval of each unit so far, start .. start + length, and of those the lowest."""

    start: FloatArray
    length: FloatArray

    def length_to_beat(self, starts: _Starts) -> FloatArray:
        """The greatest length with which an interval that starts in its block would be better."""
        return self.length[starts.unit] - (starts.first >= self.start[starts.unit])

    def take(self, unit: NDArray[np.int64], start: FloatArray, length: FloatArray) -> None:
        """Keep the best interval of each unit, of intervals that are all better than before."""
        order = np.lexsort((start, length, unit))
        best = order[np.diff(unit[order], prepend=-1) > 0]
        self.start[unit[best]], self.length[unit[best]] = start[best], length[best]


def _shortest_of_counts(mixture: Mixture, coverage: float) -> FloatArray:
    """The smallest b - a with P(a <= Y <= b) >= coverage, and of those intervals the lowest.

    Blocks of starts are halved until none of their starts can be better than the best so far. The mixture may have any
    number of modes. If each component has one, the number of blocks grows with the logarithm of the counts; with their
    square root only where steep components add up to a mixture that is flat at both ends of the interval.
    """
    n_units = len(mixture)
    last_start = mixture.quantile(np.full(n_units, np.nextafter(1.0 - coverage, 1.0)))  # beyond it, too much is below
    best = _Best(np.zeros(n_units), mixture.quantile(np.full(n_units, coverage)))
    size = 2.0 ** np.ceil(np.log2(last_start + 1.0))
    blocks = _Starts(np.arange(n_units), np.zeros(n_units), size, np.full(n_units, 1.0 - coverage))
    _improve(mixture, best, blocks)
    while len(blocks.unit):
        blocks = blocks.some(_may_be_better(mixture, best, blocks, last_start))
        lower = blocks._replace(size=0.5 * blocks.size)
        upper = lower._replace(first=lower.first + lower.size)
        upper = upper.some(upper.first <= last_start[upper.unit])
        below = mixture.tail(upper.unit, upper.first - 1.0, np.zeros(len(upper.unit), dtype=bool))
        upper = upper._replace(room=1.0 - coverage - below)
        _improve(mixture, best, upper)
        blocks = lower.joined(upper)
    return np.stack([best.start, best.start + best.length], axis=1)


def _improve(mixture: Mixture, best: _Best, starts: _Starts) -> None:
    """Keep the better ones of the intervals that start with these blocks."""
    length = best.length_to_beat(starts)
    beyond = _beyond(mixture, starts.unit, starts.first + length)
    better = (beyond <= starts.room) & (length >= 0.0)
    starts = starts.some(better)
    best.take(starts.unit, starts.first, _min_lengths(mixture, starts, length[better], beyond[better]))


def _min_lengths(mixture: Mixture, starts: _Starts, high: FloatArray, beyond_high: FloatArray) -> FloatArray:
    """The smallest b - a that holds enough from each start on; `high` does.

    Regula falsi with the weight of a stale end halved, and a bisection every third time. The first guess is usually too
    short: started half a block earlier, the same end would make a shorter interval than the best.
    """
    low, over, under = np.full(len(high), -1.0), np.ones(len(high)), starts.room - beyond_high
    guess = high - starts.size - 1.0
    for step in count():
        open_ = np.flatnonzero(high - low > np.maximum(1.0, 1e-15 * high))
        if len(open_) == 0:
            break
        length = np.clip(guess[open_], low[open_] + 1.0, high[open_] - 1.0)
        excess = _beyond(mixture, starts.unit[open_], starts.first[open_] + length) - starts.room[open_]
        enough = excess <= 0.0
        holds, fails = open_[enough], open_[~enough]
        high[holds], under[holds], over[holds] = length[enough], -excess[enough], 0.5 * over[holds]
        low[fails], over[fails], under[fails] = length[~enough], excess[~enough], 0.5 * under[fails]
        share = 0.5 if step % 3 == 1 else under / (over + under)
        guess = np.ceil(high - share * (high - low))
    return high


def _may_be_better(mixture: Mixture, best: _Best, blocks: _Starts, last_start: FloatArray) -> NDArray[np.int64]:
    """Indices of the blocks in which some start after the first may have a better interval."""
    unit, first = blocks.unit, blocks.first
    last = np.minimum(first + blocks.size - 1.0, last_start[unit])
    length = best.length_to_beat(blocks)
    open_ = np.flatnonzero((first < last) & (blocks.size > FINEST * best.length[unit]) & (length >= 0.0))
    open_ = open_[_beyond(mixture, unit[open_], last[open_] + length[open_]) <= blocks.room[open_]]
    if not hasattr(mixture.components, "mode"):
        return open_
    columns = (column[open_] for column in (first, last, length, blocks.room))
    return np.asarray(open_[mixture.at_points(_may_hold, unit[open_], *columns)])


def _may_hold(
    mixture: Mixture, first: FloatArray, last: FloatArray, length: FloatArray, room: FloatArray
) -> NDArray[np.bool_]:
    """Whether an interval of this length may hold enough if it starts between `first` and `last`, for each unit.

    An interval moved by one loses the probability of its start and gains the one after its end. Within a range of
    counts, a component is most probable at its mode, or as near to it as possible, and least probable at one of the
    ends. Intervals are kept where only a rounding error may decide.
    """
    mode = mixture.components.mode()

    def prob(place: FloatArray) -> FloatArray:
        return np.asarray(np.exp(mixture.components.log_prob(place)))

    lost = mixture.average(np.minimum(prob(mixture.spread(first)), prob(mixture.spread(last - 1.0))))
    end = last + length
    gained = mixture.average(prob(np.clip(mode, mixture.spread(first + length + 1.0), mixture.spread(end))))
    gain = (last - first) * np.maximum(gained - lost, 0.0)
    rounding = PROB_ERROR * (last - first) * (gained + lost) + TAIL_ERROR * (1.0 + end * (gained + lost))
    return mixture.sf(first + length) - gain - rounding <= room


def _beyond(mixture: Mixture, unit: NDArray[np.int64], end: FloatArray) -> FloatArray:
    """P(Y > end) of each unit."""
    return mixture.tail(unit, end, np.ones(len(unit), dtype=bool))


# ---- numbers ---------------------------------------------------------------------------------------------------------


def _shortest_of_reals(mixture: Mixture, coverage: float) -> FloatArray:
    """Find the minimum width by a grid over the lower tail; there, the density is the same at both ends."""

    def ends(tail: FloatArray) -> FloatArray:
        inside = np.clip(tail, 1e-12, 1.0 - coverage - 1e-12)
        return np.stack([mixture.quantile(inside), mixture.quantile(inside + coverage)], axis=1)

    def slope(tail: FloatArray) -> FloatArray:
        """Sign of the derivative of the width: the log ratio of the densities."""
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
