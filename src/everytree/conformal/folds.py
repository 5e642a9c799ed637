"""CV+: by models that each left a fold of the rows out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.conformal.conformal import Asked, Conformal
from everytree.conformal.guarantee import Guarantee, rows_needed
from everytree.conformal.scores import centre_and_scale, random_shares, ranked_scores
from everytree.models.model import Model
from everytree.posterior.rows import Rows

SHARED = (
    "columns, cut points and the order of categories are those of all rows, and what models without a fold choose is "
    "partly judged by others that have seen it"
)
"""What a model without a fold still knows of it."""


@dataclass(frozen=True)
class FoldConformal(Conformal):
    """Models that each left a fold out, and the scores of its rows by them.

    Attributes
    ----------
    models : sequence of Model
    fold : (n_rows,) int64
        Number of the model that left each row out.
    scores : (n_rows,) float64
    target : (n_rows,) int64
        Numbers of classes; 0 of numbers.
    salt : int
        By which random shares of class probabilities are drawn.
    """

    models: Sequence[Model]
    fold: NDArray[np.int64]
    scores: FloatArray
    target: NDArray[np.int64]
    salt: int

    @classmethod
    def of_rows(cls, models: Sequence[Model], fold: NDArray[np.int64], rows: Rows, n_jobs: int) -> FoldConformal:
        """Score rows by the models that left them out, one of each group; those of no model's fold are not used."""
        rng = np.random.default_rng(0)
        salt, used = int(rng.integers(2**63)), rng.permutation(np.flatnonzero(fold < len(models)))
        if rows.group is not None:
            used = used[np.unique(rows.group[used], return_index=True)[1]]
        some, fold = rows.at(used), fold[used]
        has_classes = models[0].family.has_classes
        scores = np.empty(len(used))
        for number, model in enumerate(models):
            own = np.flatnonzero(fold == number)
            of_fold = some.at(own)
            asked = Asked(model, of_fold.codes, of_fold.row_data, n_jobs=n_jobs)
            if has_classes:
                scores[own] = _class_scores(asked, model, salt)[np.arange(len(own)), of_fold.y]
            else:
                centre, scale = centre_and_scale(asked, model)
                scores[own] = np.abs(of_fold.y - centre) / scale
        target = some.y.astype(np.int64) if has_classes else np.zeros(len(used), dtype=np.int64)
        return cls(list(models), fold, scores, target, salt)

    @property
    def guarantee(self) -> Guarantee:
        n, k = len(self.scores), len(self.models)
        slack = min(2.0 * (1.0 - 1.0 / k) / (n / k + 1.0), (1.0 - k / n) / (k + 1.0))
        promise = f"a new row is covered at least as often as 1 - 2 (1 - coverage) - {slack:.3g}"
        return Guarantee(f"CV+ with {k} folds", promise, n, 2, slack, SHARED)

    def interval(self, asked: Asked, coverage: float) -> FloatArray:
        needed = rows_needed(len(self.scores), coverage)
        low, high = [], []
        for number, model in enumerate(self.models):
            centre, scale = centre_and_scale(asked, model)
            largest = np.sort(self.scores[self.fold == number])[::-1][:needed]  # others are no ends
            low.append(centre[:, None] - scale[:, None] * largest)
            high.append(centre[:, None] + scale[:, None] * largest)
        return plus_interval(np.hstack(low), np.hstack(high), needed)

    def classes(self, asked: Asked, coverage: float, *, each_class: bool) -> NDArray[np.bool_]:
        n_rows, n_classes = len(asked.codes), len(asked.labels)
        count = np.zeros((n_rows, n_classes))
        for number, model in enumerate(self.models):
            own, scores = self.fold == number, _class_scores(asked, model, self.salt)
            for label in range(n_classes):
                known = np.sort(self.scores[own & (self.target == label)] if each_class else self.scores[own])
                count[:, label] += len(known) - np.searchsorted(known, scores[:, label], "left")
        n_known = np.bincount(self.target, minlength=n_classes) if each_class else [len(self.scores)] * n_classes
        of = [f" of class {label!r}" if each_class else "" for label in asked.labels]
        return count >= [rows_needed(int(n), coverage, which) for n, which in zip(n_known, of, strict=False)]


def plus_interval(low: FloatArray, high: FloatArray, needed: int) -> FloatArray:
    """(n_rows, 2) ends between which all targets lie that are in at least so many of the intervals of a row.

    Parameters
    ----------
    low, high : (n_rows, n_intervals) float64
    needed : int
    """
    last = high.shape[1] - needed
    return np.stack(
        [np.partition(low, needed - 1, axis=1)[:, needed - 1], np.partition(high, last, axis=1)[:, last]], axis=1
    )


def _class_scores(asked: Asked, model: Model, salt: int) -> FloatArray:
    """(n_rows, n_classes) by one of the models."""
    return ranked_scores(model.probs(asked.codes, n_jobs=asked.n_jobs), random_shares(asked.codes, salt))
