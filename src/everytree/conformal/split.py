"""Split conformal prediction: by the scores of rows that the model was not fitted to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.conformal.conformal import Asked, Conformal, Strata
from everytree.conformal.guarantee import Guarantee, threshold
from everytree.conformal.scores import random_shares, ranked_scores, tail_interval, tail_scores

UNKNOWN = -1
"""Number of a class that the model has never seen."""


@dataclass(frozen=True)
class SplitConformal(Conformal):
    """Scores of calibration rows.

    Attributes
    ----------
    scores : (n_rows,) float64
    target : (n_rows,) int64
        Numbers of the classes of these rows, `UNKNOWN` of those that the model has not seen; 0 of numbers.
    stratum : (n_rows,) int64
        Number of each row's category; 0 without strata.
    salt : int
        By which random shares of class probabilities are drawn.
    strata : Strata or None
    """

    scores: FloatArray
    target: NDArray[np.int64]
    stratum: NDArray[np.int64]
    salt: int
    strata: Strata | None = None

    @classmethod
    def of_rows(cls, asked: Asked, target: NDArray[Any], salt: int, strata: Strata | None) -> SplitConformal:
        """Score calibration rows; those of a class that the model has not seen are never inside."""
        stratum = np.zeros(len(target), dtype=np.int64) if asked.stratum is None else asked.stratum
        if not asked.model.family.has_classes:
            none = np.zeros(len(target), dtype=np.int64)
            return cls(tail_scores(asked.predictive(), target), none, stratum, salt, strata)
        scores = _class_scores(asked, salt)[np.arange(len(target)), target]
        return cls(np.where(target == UNKNOWN, np.inf, scores), target, stratum, salt, strata)

    @property
    def guarantee(self) -> Guarantee:
        within = "" if self.strata is None else f" within each {self.strata.name}"
        promise = f"a new row is covered at least as often as asked for{within}"
        return Guarantee("Split conformal prediction", promise, len(self.scores))

    def interval(self, asked: Asked, coverage: float) -> FloatArray:
        dist = asked.predictive()
        ends = np.empty((len(dist), 2))
        for rows, known, of in self._by_stratum(asked):
            ends[rows] = tail_interval(dist[rows], threshold(self.scores[known], coverage, of))
        return ends

    def classes(self, asked: Asked, coverage: float, *, each_class: bool) -> NDArray[np.bool_]:
        scores = _class_scores(asked, self.salt)[:, : len(asked.labels)]
        inside = np.empty(scores.shape, dtype=bool)
        for rows, known, of in self._by_stratum(asked):
            for number in range(scores.shape[1]):
                own = known & (self.target == number) if each_class else known
                which = f" of class {asked.labels[number]!r}{of}" if each_class else of
                inside[rows, number] = scores[rows, number] <= threshold(self.scores[own], coverage, which)
        return inside

    def _by_stratum(self, asked: Asked) -> Iterator[tuple[NDArray[np.int64], NDArray[np.bool_], str]]:
        """New rows of each category, which calibration rows have it, and its name."""
        stratum = np.zeros(len(asked.codes), dtype=np.int64) if asked.stratum is None else asked.stratum
        for number in np.unique(stratum).tolist():
            of = "" if self.strata is None else f" where {self.strata.name} is {self.strata.labels[number]!r}"
            yield np.flatnonzero(stratum == number), self.stratum == number, of


def _class_scores(asked: Asked, salt: int) -> FloatArray:
    """(n_rows, n_classes)"""
    probs = asked.model.probs(asked.codes, n_jobs=asked.n_jobs)
    return ranked_scores(probs, random_shares(asked.codes, salt))
