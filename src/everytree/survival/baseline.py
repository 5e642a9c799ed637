"""The baseline hazard of a table, and the cells of it by which leaves count."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.survival.rows import TimesOfRows

MAX_KNOTS = 200
MIN_KNOTS = 16
EVENTS_PER_KNOT = 5
"""Times at which the baseline changes: those of events, or where there are many, quantiles of these with five events
between them, so that a hazard is not that of one row."""

MAX_CELLS = 8


@dataclass(frozen=True)
class Baseline:
    """The hazard of all rows together, constant between the times of events.

    Between two knots, it is the number of events over the time that rows were observed there, each by its relative
    hazard: with it, all rows together accumulate as much hazard as they have events.
    """

    times: FloatArray  # (n_knots,): ascending, positive; the last one is the time of the last event
    # (n_knots,): where these times are among the cells: from 0 on, ascending, the last one is the number of cells
    positions: FloatArray
    lengths: FloatArray  # (n_cells,): hazard that the baseline accumulates in each cell

    @classmethod
    def of(cls, rows: TimesOfRows, log_hazard: FloatArray, times: FloatArray) -> Baseline:
        """The baseline of some rows.

        Parameters
        ----------
        rows : TimesOfRows
        log_hazard : (n_rows,) float64
            Logarithms of their relative hazards.
        times : (n_knots,) float64
            The knots, as `knots_of` gives them.
        """
        events, observed = _between_knots(rows, log_hazard, times)
        if not events.any():
            events[-1] = 0.5  # all rows are censored: as if half an event had been seen
        return cls._in_cells(times, _accumulated(times, events, observed), np.cumsum(events))

    @classmethod
    def _in_cells(cls, times: FloatArray, hazard: FloatArray, events: FloatArray) -> Baseline:
        """Cells with about equally many events, which end at knots; the hazard rises at each of their ends."""
        n_cells = MAX_CELLS
        while True:
            shares = events[-1] * np.arange(1, n_cells + 1) / n_cells
            ends = np.minimum(np.searchsorted(events, shares - 1e-9 * events[-1]), len(times) - 1)
            lengths = np.diff(hazard[ends], prepend=0.0)
            if n_cells == 1 or ((np.diff(ends, prepend=-1) > 0).all() and (lengths > 0.0).all()):
                break
            n_cells //= 2
        lengths = np.maximum(lengths, 1e-12)
        positions = np.interp(hazard, np.append(0.0, hazard[ends]), np.arange(n_cells + 1.0))
        return cls(times, positions, lengths)

    def check_same(self, other: Baseline) -> None:
        """Raise unless two baselines are equal, so that what was counted by them may be added."""
        mine, theirs = ((each.times, each.positions, each.lengths) for each in (self, other))
        if not all(np.array_equal(a, b) for a, b in zip(mine, theirs, strict=True)):
            raise ValueError("other has another baseline hazard; models to merge come from one blank()")

    def hazard(self) -> FloatArray:
        """(n_knots,) what the hazard has accumulated to at the knots."""
        upto = np.append(0.0, np.cumsum(self.lengths))
        return np.asarray(np.interp(self.positions, np.arange(len(upto)), upto))

    def hazard_between(self, start: FloatArray, end: FloatArray) -> FloatArray:
        """(n_rows,) what the hazard accumulates to from one time to another."""
        times, hazard = np.append(0.0, self.times), np.append(0.0, self.hazard())
        return np.asarray(np.interp(end, times, hazard) - np.interp(start, times, hazard))

    def position(self, time: FloatArray) -> FloatArray:
        """(n_rows,) where times are among the cells; those after the last event at its place."""
        return np.asarray(np.interp(time, np.append(0.0, self.times), np.append(0.0, self.positions)))


def shape_without(
    rows: TimesOfRows, log_hazard: FloatArray, times: FloatArray, group: NDArray[np.int64], some: NDArray[np.int64]
) -> FloatArray:
    """(n_some, n_knots) how the hazard at the knots would change if the groups of some rows were left out.

    As a factor that is 1 at the last knot: its size there makes no difference to leaves, which multiply it.
    """
    events, observed = _between_knots(rows, log_hazard, times)
    wanted, of_row = np.unique(group[some], return_inverse=True)
    own = np.flatnonzero(np.isin(group, wanted))
    place, known = np.searchsorted(wanted, group[own]), rows.at(own)
    starts, exposed = np.append(0.0, times[:-1]), known.weight * np.exp(log_hazard[own])
    shared = np.minimum(known.time[:, None], times) - np.maximum(known.entry[:, None], starts)
    less_events, less_observed = np.zeros((2, len(wanted), len(times)))
    interval = np.minimum(np.searchsorted(times, known.time), len(times) - 1)
    np.add.at(less_events, (place, interval), known.weight * known.is_event)
    np.add.at(less_observed, place, exposed[:, None] * np.maximum(shared, 0.0))
    left = np.maximum(events - less_events, 0.0), np.maximum(observed - less_observed, 1e-12 * observed)
    without, every = _accumulated(times, *left), _accumulated(times, events, observed)
    with np.errstate(divide="ignore", invalid="ignore"):
        change = (without / without[:, -1:]) / (every / every[-1])
    return np.asarray(np.where(np.isfinite(change), change, 1.0)[of_row])


def _between_knots(rows: TimesOfRows, log_hazard: FloatArray, times: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Events from each knot to the next, and the time that rows were observed there, each by its relative hazard."""
    time, is_event, entry, weight = rows
    exposed = weight * np.exp(log_hazard)
    place = np.minimum(np.searchsorted(times, time), len(times) - 1)
    events = np.bincount(place[is_event], weight[is_event], len(times)).astype(np.float64)
    return events, np.diff(_time_before(times, time, exposed) - _time_before(times, entry, exposed), prepend=0.0)


def _accumulated(times: FloatArray, events: FloatArray, observed: FloatArray) -> FloatArray:
    """The hazard at the knots."""
    gaps = np.diff(times, prepend=0.0)
    return np.cumsum(np.where(observed > 0.0, events * gaps / np.where(observed > 0.0, observed, 1.0), 0.0), axis=-1)


def knots_of(rows: TimesOfRows) -> FloatArray:
    """The times of events, or quantiles of many; the longest time where there is no event."""
    time, is_event, _, weight = rows
    used = is_event & (weight > 0.0) & (time > 0.0)
    if not used.any():
        return np.array([max(float(time.max(initial=0.0)), 1e-300)])
    distinct, inverse = np.unique(time[used], return_inverse=True)
    n_knots = min(max(int(used.sum()) // EVENTS_PER_KNOT, MIN_KNOTS), MAX_KNOTS)
    if len(distinct) <= n_knots:
        return distinct
    events = np.cumsum(np.bincount(inverse, weight[used]))
    places = np.searchsorted(events, events[-1] * np.arange(1, n_knots + 1) / n_knots * (1.0 - 1e-12))
    return np.asarray(distinct[np.unique(np.append(places, len(distinct) - 1))])


def _time_before(times: FloatArray, end: FloatArray, weight: FloatArray) -> FloatArray:
    """(n_times,) the time before each that rows lasted, those that end at `end`."""
    order = np.argsort(end)
    ends = end[order]
    n_over = np.searchsorted(ends, times, "right")
    total = np.append(0.0, np.cumsum((weight * end)[order]))
    count = np.append(0.0, np.cumsum(weight[order]))
    return np.asarray(total[n_over] + times * (count[-1] - count[n_over]))
