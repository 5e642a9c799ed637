"""Scores of a table from the scores of its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.batches.batch import Batch


def mean_score(model: Any, batch: Batch) -> tuple[float, float]:
    """Return a score that is a mean over rows, and the weight of the rows."""
    weight = _weight(batch)
    return float(model.score(batch.table, _targets(batch), weight, **batch.row_data)), float(weight.sum())


def weighted_mean(scores: Sequence[tuple[float, float]]) -> float:
    """Return the mean over all rows."""
    values, weights = zip(*scores, strict=True)
    return float(np.average(values, weights=weights))


class Squares(NamedTuple):
    """Weight and mean of targets, and sums of squares: about their mean, and about what was predicted."""

    weight: float
    mean: float
    about_mean: float
    about_prediction: float


def squares(model: Any, batch: Batch) -> Squares:
    """Return what R2 needs of some rows."""
    y, weight = model.fitted_.target.read(_targets(batch)), _weight(batch)
    columns = model.fitted_.target.row_data(len(y), batch.row_data)
    predicted = model.predict(batch.table, exposure=columns.get("exposure"))
    mean = float(np.average(y, weights=weight))
    return Squares(float(weight.sum()), mean, float(weight @ (y - mean) ** 2), float(weight @ (y - predicted) ** 2))


def r2_of_parts(parts: Sequence[Squares]) -> float:
    """Return R2 of all rows; where all targets are equal, as scikit-learn has it."""
    weight, mean = np.array([one.weight for one in parts]), np.array([one.mean for one in parts])
    total = sum(one.about_mean for one in parts) + float(weight @ (mean - np.average(mean, weights=weight)) ** 2)
    error = sum(one.about_prediction for one in parts)
    if total == 0.0:
        return 1.0 if error == 0.0 else 0.0
    return 1.0 - error / total


def _targets(batch: Batch) -> Any:
    assert batch.target is not None
    return batch.target.at(np.arange(batch.table.n_rows))


def _weight(batch: Batch) -> FloatArray:
    return np.ones(batch.table.n_rows) if batch.weight is None else batch.weight
