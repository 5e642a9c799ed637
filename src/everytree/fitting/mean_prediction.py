"""The mean prediction of the rows of fit, where the model itself does not say it: explanations start from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.boosting.numbers import BoostedNumbers
from everytree.exact.forest import ExactForest
from everytree.posterior.forest import Forest
from everytree.posterior.rows import Rows

MAX_ROWS = 10_000
"""Rows that are predicted, drawn at random from more: their mean is within a hundredth of a standard deviation."""


def is_plain_sum(model: Any) -> bool:
    """Whether predictions are sums of what trees say, so that their mean follows from the rows in each node."""
    if isinstance(model, Forest):
        return model.sharpness == 1.0 or not model.family.has_classes
    if isinstance(model, BoostedNumbers):
        return model.about.family == "normal"
    return isinstance(model, ExactForest)


def mean_prediction(model: Any, rows: Rows, n_jobs: int | None) -> FloatArray | None:
    """(n_outputs,) mean of the predictions of rows by their weights, of counts in one unit of exposure.

    None where it need not be kept, because it follows from the rows in each node, or where it is not finite.
    """
    if is_plain_sum(model):
        return None
    if len(rows) > MAX_ROWS:
        rows = rows.at(np.sort(np.random.default_rng(0).choice(len(rows), MAX_ROWS, replace=False)))
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    weight = weight * rows.row_data.get("exposure", 1.0)
    said = (model.means if isinstance(model, BoostedNumbers) else model.probs)(rows.codes, n_jobs=n_jobs)
    mean = np.atleast_1d(weight @ said / weight.sum())
    return mean if np.isfinite(mean).all() else None
