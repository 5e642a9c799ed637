"""The mean prediction of the training rows, where it cannot be derived from the model: the base of explanations."""

from __future__ import annotations

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.models.model import Model
from everytree.posterior.rows import Rows


def mean_prediction(model: Model, rows: Rows, n_jobs: int | None) -> FloatArray | None:
    """(n_outputs,) mean of the predictions of rows by their weights, of counts in one unit of exposure.

    None where it need not be kept, because it follows from the rows in each node, or where it is not finite.
    """
    if model.is_sum_of_trees:
        return None
    if len(rows) > model.rows_of_mean:  # drawn at random
        rows = rows.at(np.sort(np.random.default_rng(0).choice(len(rows), model.rows_of_mean, replace=False)))
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    weight = weight * rows.row_data.get("exposure", 1.0)
    mean = np.atleast_1d((weight * model.means(rows.codes, n_jobs=n_jobs).T).sum(axis=-1) / weight.sum())
    return mean if np.isfinite(mean).all() else None
