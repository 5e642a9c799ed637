"""Scores of survival curves by times of which some are censored."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.errors import ArgumentError
from everytree.survival.rows import TimesOfRows

AT_RISK = 0.2
"""Scores are taken up to the time from which on less than this share of the rows is at risk."""

FEW_ROWS = 1000
"""Rows of which each is left out where the curve of the table is its prediction; one of more hardly changes it."""

N_TIMES = 100
PAIRS_AT_ONCE = 4_000_000


def kaplan_meier(rows: TimesOfRows, *, of_censoring: bool = False) -> tuple[FloatArray, FloatArray]:
    """Times and the probability to be without event (or without being censored) after each of them.

    Of rows with one time, events come before those that are censored.
    """
    times, place = np.unique(rows.time, return_inverse=True)
    counted = ~rows.is_event if of_censoring else rows.is_event
    ends = np.bincount(place, np.where(counted, rows.weight, 0.0), len(times))
    gone = np.bincount(place, rows.weight, len(times))
    late = np.bincount(np.searchsorted(times, rows.entry), rows.weight, len(times) + 1)[: len(times)]
    at_risk = rows.weight.sum() - np.append(0.0, np.cumsum(gone)[:-1])
    at_risk = at_risk - (rows.weight.sum() - np.cumsum(late)) if (rows.entry > 0.0).any() else at_risk
    if of_censoring:
        at_risk = at_risk - np.bincount(place, np.where(rows.is_event, rows.weight, 0.0), len(times))
    with np.errstate(divide="ignore", invalid="ignore"):
        left = np.where(at_risk > 1e-12, 1.0 - ends / at_risk, 1.0)
    return times, np.cumprod(np.clip(left, 0.0, 1.0))


def kaplan_meier_of_others(
    rows: TimesOfRows, group: NDArray[np.int64], some: NDArray[np.int64], at: FloatArray
) -> FloatArray:
    """(n_some, n_times) the curve of the table at times, without the groups of some rows; of long tables with them."""
    if len(group) > FEW_ROWS:
        return np.broadcast_to(steps_at(*kaplan_meier(rows), at), (len(some), len(at)))
    wanted, of_row = np.unique(group[some], return_inverse=True)
    others = [rows.at(group != one) for one in wanted]
    each = [steps_at(*kaplan_meier(left), at) if len(left.time) else np.ones(len(at)) for left in others]
    return np.stack(each)[of_row]


def steps_at(times: FloatArray, values: FloatArray, at: FloatArray, *, before: bool = False) -> FloatArray:
    """A function that steps to each value at its time, from 1 on; `before` gives what it is just before."""
    place = np.searchsorted(times, at, "left" if before else "right")
    return np.append(1.0, values)[place]


def horizon(rows: TimesOfRows) -> float:
    """The first time with less than 20% of the rows at risk."""
    order = np.argsort(rows.time)
    left = 1.0 - np.append(0.0, np.cumsum(rows.weight[order])[:-1]) / rows.weight.sum()
    late = np.flatnonzero(left < AT_RISK - 1e-12)
    return float(rows.time[order][late[0]] if len(late) else rows.time.max())


def score_times(rows: TimesOfRows, until: float | None = None) -> FloatArray:
    """Times at which curves are scored: those of rows up to a horizon, or quantiles of many."""
    last = horizon(rows) if until is None else float(until)
    times = np.unique(rows.time[rows.time <= last])
    if len(times) == 0:
        raise ArgumentError("until", f"must not be before the first time, {rows.time.min():g}, but is {last:g}")
    return times if len(times) <= N_TIMES else times[np.unique(np.linspace(0, len(times) - 1, N_TIMES).astype(int))]


def brier_scores(curves: FloatArray, times: FloatArray, rows: TimesOfRows, known: TimesOfRows) -> FloatArray:
    """(n_rows,) each row's Brier score, averaged over the range of times: Graf's, weighted by inverse censoring.

    Parameters
    ----------
    curves : (n_rows, n_times) float64
    times : (n_times,) float64
    rows : TimesOfRows
    known : TimesOfRows
        By which the distribution of censoring is estimated.
    """
    censoring = kaplan_meier(known, of_censoring=True)
    own = np.maximum(steps_at(*censoring, rows.time, before=True), 1e-3)
    at = np.maximum(steps_at(*censoring, times), 1e-3)
    alive = rows.time[:, None] > times
    losses = np.where(alive, (1.0 - curves) ** 2 / at, curves**2 * (rows.is_event / own)[:, None])
    if len(times) == 1:
        return np.asarray(losses[:, 0])
    gaps = np.diff(times)
    return np.asarray((losses[:, :-1] + losses[:, 1:]) @ gaps / (2.0 * gaps.sum()))


def calibration_counts(survival: FloatArray, rows: TimesOfRows, n_bins: int) -> FloatArray:
    """(n_bins,) weight of the rows whose probability to be without event, at the time of the event, is in each bin.

    Of a censored row that probability is only known to be at most `survival`: its weight is spread evenly below.
    """
    ends = np.arange(n_bins + 1) / n_bins
    place = np.minimum((survival * n_bins).astype(np.int64), n_bins - 1)
    counts = np.bincount(place, np.where(rows.is_event, rows.weight, 0.0), n_bins)
    late = ~rows.is_event
    most = np.maximum(survival[late, None], 1e-12)
    shares = np.clip(most - ends[:-1], 0.0, 1.0 / n_bins) / most
    return np.asarray(counts + rows.weight[late] @ shares)


def expected_events(curves: FloatArray) -> FloatArray:
    """(n_rows,) sum over times of -log S: a number by which rows are ordered, the larger the sooner."""
    return np.asarray(-np.log(np.maximum(curves, 1e-12)).sum(axis=1))


def concordance(
    risk: FloatArray, rows: TimesOfRows, known: TimesOfRows | None = None, until: float | None = None
) -> float:
    """Share of pairs of rows whose order is known that risks put in the right order; equal risks count one half.

    Harrell's C; with the rows `known` to estimate the distribution of censoring, Uno's, whose pairs count by its
    inverse square. NaN where the order of no pair is known.

    Parameters
    ----------
    risk : (n_rows,) float64
    rows : TimesOfRows
    known : TimesOfRows, optional
    until : float, optional
        Only events before this time count.
    """
    pair_weight = rows.weight.copy()
    if known is not None:
        pair_weight /= np.maximum(steps_at(*kaplan_meier(known, of_censoring=True), rows.time, before=True), 1e-3) ** 2
    events = np.flatnonzero(rows.is_event & ((rows.time < until) if until is not None else True))
    right = total = 0.0
    step = max(PAIRS_AT_ONCE // max(len(risk), 1), 1)
    for begin in range(0, len(events), step):
        some = events[begin : begin + step, None]
        later = (rows.time > rows.time[some]) & (rows.entry < rows.time[some])
        of_pair = np.where(later, rows.weight, 0.0)
        better = (risk[some] > risk) + 0.5 * (risk[some] == risk)
        right += float(pair_weight[some[:, 0]] @ (of_pair * better).sum(axis=1))
        total += float(pair_weight[some[:, 0]] @ of_pair.sum(axis=1))
    return right / total if total else float("nan")
