"""Scores of whole distributions, as scikit-learn takes them for `scoring`: larger is better.

Examples
--------
>>> import everytree as et
>>> from sklearn.datasets import load_diabetes
>>> from sklearn.model_selection import cross_val_score
>>> X, y = load_diabetes(return_X_y=True)
>>> model = et.MetaTreeRegressor(random_state=0)
>>> bool((cross_val_score(model, X, y, scoring=et.scorers.crps) < 0).all())  # the negative score: the larger the better
True
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils.metadata_routing import MetadataRequest

from everytree.base.arrays import FloatArray, as_column, check_lengths
from everytree.base.checks import whole_number
from everytree.estimators.survival import times_and_events
from everytree.predictive.predictive import Predictive
from everytree.survival.rows import TimesOfRows, times_of_rows
from everytree.survival.scores import brier_scores, calibration_counts, expected_events, score_times
from everytree.survival.scores import concordance as share_in_order

__all__ = ["Scorer", "concordance", "crps", "d_calibration", "integrated_brier", "interval_score", "log_score"]

ROW_COLUMNS = ("sample_weight", "exposure", "censored", "event", "entry")
"""Row data that scorers accept besides targets."""


@dataclass(frozen=True)
class Scorer:
    """The mean over rows of a score of each row's distribution; for `scoring=` of scikit-learn's tools.

    Row data (`sample_weight`, `exposure`, `censored` or `event`, `entry`) is given to a call by name; within
    scikit-learn's tools it is routed as metadata: `scorer.set_score_request(exposure=True)`.
    """

    name: str
    # function of an estimator, a table, targets and row data that returns the score of each row
    of_rows: Callable[..., FloatArray]
    requests: tuple[tuple[str, Any], ...] = ()  # the metadata that are requested, by name

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None, **row_data: Any) -> float:
        unknown = sorted(set(row_data) - set(ROW_COLUMNS))
        if unknown:
            raise TypeError(f"{self.name} takes no {unknown[0]!r}; rows may have {', '.join(ROW_COLUMNS)}")
        given = {name: values for name, values in row_data.items() if values is not None}
        scores = self.of_rows(estimator, X, y, given)
        weight = None if sample_weight is None else as_column("sample_weight", sample_weight)
        return float(np.average(scores, weights=weight))

    def set_score_request(self, **requests: Any) -> Self:
        """Return a scorer that requests these metadata of rows: True, False, None or the name they are passed by."""
        unknown = sorted(set(requests) - set(ROW_COLUMNS))
        if unknown:
            raise TypeError(f"{self.name} takes no {unknown[0]!r}; rows may have {', '.join(ROW_COLUMNS)}")
        return replace(self, requests=tuple({**dict(self.requests), **requests}.items()))

    def get_metadata_routing(self) -> MetadataRequest:
        """Return the metadata requests, for scikit-learn's tools."""
        request = MetadataRequest(owner=self)
        for name in ROW_COLUMNS:
            request.score.add_request(param=name, alias=dict(self.requests).get(name))
        return request

    def __repr__(self) -> str:
        return f"everytree.estimators.scorers.{self.name}"


def _log_scores(estimator: Any, X: Any, y: Any, row_data: dict[str, Any]) -> FloatArray:
    scores: FloatArray = estimator.log_scores(X, y, **row_data)
    return scores


def _negative_crps(estimator: Any, X: Any, y: Any, row_data: dict[str, Any]) -> FloatArray:
    _refuse_censored("crps", row_data)
    dist = _distribution(estimator, X, row_data)
    return -dist.crps(_numbers(y, len(dist)))


def _distribution(estimator: Any, X: Any, row_data: dict[str, Any]) -> Predictive:
    if hasattr(estimator, "classes_"):
        raise TypeError(f"{type(estimator).__name__} predicts classes; for those use log_score")
    dist: Predictive = estimator.predictive(X, **row_data)
    return dist


def _refuse_censored(name: str, row_data: dict[str, Any]) -> None:
    given = [row_data.pop(known, None) is not None for known in ("censored", "event", "entry")]
    if any(given):
        raise ValueError(f"{name} needs the target itself, which is not known of censored rows; use log_score")


def _numbers(y: Any, n_rows: int) -> FloatArray:
    """Return one number per row."""
    target = as_column("y", y).astype(np.float64)
    check_lengths(n_rows, {"y": target})
    return target


def interval_score(coverage: float = 0.9) -> Scorer:
    """The negative interval score: the width of the central interval, and 2 / (1 - coverage) times its distance from y.

    Parameters
    ----------
    coverage : float
        In (0, 1).
    """
    if not 0.0 < coverage < 1.0:
        raise ValueError(f"coverage must be in (0, 1), but is {coverage!r}")

    def of_rows(estimator: Any, X: Any, y: Any, row_data: dict[str, Any]) -> FloatArray:
        _refuse_censored("interval_score", row_data)
        low, high = _distribution(estimator, X, row_data).interval(coverage).T
        target = _numbers(y, len(low))
        missed = np.maximum(low - target, 0.0) + np.maximum(target - high, 0.0)
        return np.asarray(low - high - 2.0 / (1.0 - coverage) * missed)

    return Scorer(f"interval_score({coverage})", of_rows)


@dataclass(frozen=True)
class _CurveScorer(Scorer):
    """A score of survival curves that is not a mean over rows, or needs all of their times."""

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None, **row_data: Any) -> float:
        given = {name: values for name, values in row_data.items() if values is not None}
        times, row_data = y, given
        if isinstance(y, np.ndarray) and y.dtype.names is not None:
            times, row_data = times_and_events(y, given)
        target = estimator.fitted_.target
        time = target.read(times)
        columns = target.row_data(len(time), row_data)
        weight = None if sample_weight is None else np.asarray(as_column("sample_weight", sample_weight), np.float64)
        return float(self.of_rows(estimator, X, times_of_rows(time, weight, columns), None))


def integrated_brier(until: float | None = None) -> Scorer:
    """The negative integrated Brier score of survival curves, for family "survival" and "exponential".

    Squared distances of S(t) from whether the event is still to come, as Graf weighs them by the probability not to be
    censored, averaged over times. That probability is estimated by the scored rows.

    Parameters
    ----------
    until : float, optional
        The last time; by default the one from which on less than a fifth of the rows is at risk.
    """

    def of_rows(estimator: Any, X: Any, rows: TimesOfRows, _: Any) -> FloatArray:
        times = score_times(rows, until)
        curves = estimator.predictive(X).sf(times[:, None]).T
        return -np.asarray(np.average(brier_scores(curves, times, rows, rows), weights=rows.weight))

    return _CurveScorer("integrated_brier" if until is None else f"integrated_brier({until})", of_rows)


def concordance(until: float | None = None, *, weighted: bool = False) -> Scorer:
    """Share of pairs of rows, of which it is known whose event came first, that survival curves put in that order.

    Rows are ordered by their expected number of events, the sum of -log S(t) over times; 0.5 is no order at all.

    Parameters
    ----------
    until : float, optional
        Events count up to this time, and times of curves too; by default all events count, and curves up to the time
        from which on less than a fifth of the rows is at risk.
    weighted : bool
        Uno's C, in which pairs count by the inverse of the squared probability not to be censored, as estimated by the
        scored rows; Harrell's C by default.
    """

    def of_rows(estimator: Any, X: Any, rows: TimesOfRows, _: Any) -> FloatArray:
        curves = estimator.predictive(X).sf(score_times(rows, until)[:, None]).T
        return np.asarray(share_in_order(expected_events(curves), rows, rows if weighted else None, until))

    name = "uno_concordance" if weighted else "concordance"
    return _CurveScorer(name if until is None else f"{name}({until})", of_rows)


def d_calibration(n_bins: int = 10) -> Scorer:
    """The negative chi-square statistic of D-calibration: whether events come when survival curves say they do.

    Where curves are right, the probabilities S(t) at the times of events are uniform between 0 and 1. They are counted
    in bins, a censored row in equal parts of the interval below its own; the statistic is the sum over bins of the
    squared distance from the even share, divided by that share. Of calibrated curves it is about `n_bins - 1`.

    Parameters
    ----------
    n_bins : int
    """
    whole_number("n_bins", n_bins, 2)

    def of_rows(estimator: Any, X: Any, rows: TimesOfRows, _: Any) -> FloatArray:
        dist = estimator.predictive(X)
        end = getattr(dist, "times", np.array([np.inf]))[-1]
        known = rows._replace(time=np.minimum(rows.time, end), is_event=rows.is_event & (rows.time <= end))
        counts = calibration_counts(dist.sf(known.time) / dist.sf(known.entry), known, n_bins)
        share = counts.sum() / n_bins
        return -np.asarray(((counts - share) ** 2).sum() / share)

    return _CurveScorer("d_calibration" if n_bins == 10 else f"d_calibration({n_bins})", of_rows)


log_score = Scorer("log_score", _log_scores)
"""The mean log probability or density of the targets; of censored rows, the log probability to exceed them."""

crps = Scorer("crps", _negative_crps)
"""The negative mean continuous ranked probability score, in units of the target."""
