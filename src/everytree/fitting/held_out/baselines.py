"""Scores of predictions without the row itself, and what is predicted of it by the targets of the other rows alone.

Both sides leave the row out. If only the model did, it would look worse than it is: of 25 rows in each of two classes,
leaving one out makes the other class the largest, and always naming that is always wrong.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray

AS_PROBABLE, LESS_PROBABLE = 1.0, 2.0
"""Standard errors of a difference of two shares: up to the first, two classes are named alike; from the second on, the
less probable one is not named at all. A single row changes shares by less than the first."""

EQUAL = 1e-12
"""Probabilities that differ by no more are equal."""

PRIOR_ROWS = 0.5
"""By which each class is counted beforehand, so that a class of one row has a probability without it."""


def n_independent(group: NDArray[np.int64] | None, weight: FloatArray) -> float:
    """Effective number of rows: of rows with unequal weights, or of groups of rows that belong together, there are
    fewer."""
    of_each: FloatArray = weight if group is None else np.bincount(group, weight).astype(np.float64)
    return float(of_each.sum() ** 2 / (of_each**2).sum())


def naming(probs: FloatArray, n_rows: float | None) -> FloatArray:
    """Share of each class in naming the most probable one; ties share it.

    Parameters
    ----------
    probs : (n_scored, n_classes) or (n_scored, n_classes, n_outputs) float64
    n_rows : float or None
        Number of rows by which classes were told apart, the scored one left out: classes that so many rows cannot tell
        apart are tied, or leaving out the row decides which is named. The more predictions differ between rows, the
        fewer are so near a tie, and the nearer they must be. None for rows that were not left out.
    """
    top = probs.max(axis=1, keepdims=True)
    if n_rows is None:
        share = (top - probs <= EQUAL).astype(np.float64)
    else:
        unit = np.sqrt((top + probs) / n_rows)
        spread = np.sqrt(2.0 * probs.var(axis=0).sum(axis=0))  # of the difference, if there are two classes
        unit = unit**2 / np.maximum(unit, spread)
        share = np.clip((LESS_PROBABLE * unit - (top - probs)) / ((LESS_PROBABLE - AS_PROBABLE) * unit), 0.0, 1.0)
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def frequencies_of_others(
    y: NDArray[np.int64], n_classes: int, group: NDArray[np.int64] | None, weight: FloatArray
) -> FloatArray:
    """(n_rows, n_classes) frequencies of the classes among the rows of other groups."""
    of_class = _of_others(np.eye(n_classes)[y], group, weight) + PRIOR_ROWS
    return np.asarray(of_class / of_class.sum(axis=1, keepdims=True))


def as_if_folds_were_drawn(
    probs: FloatArray,
    y: NDArray[np.int64],
    fold: NDArray[np.int64],
    group: NDArray[np.int64] | None,
    weight: FloatArray,
) -> FloatArray:
    """(n_rows, n_classes) probabilities of rows that were learnt without their folds, alike in their classes.

    The frequencies of the classes outside such a fold are those of all rows, the row itself included, whatever its
    class: they have seen it. Those of the rows of other groups stand in their place.
    """
    n_classes = probs.shape[1]
    others = frequencies_of_others(y, n_classes, group, weight)
    of_fold = np.empty_like(others)
    for k in np.unique(fold):
        of_class = np.bincount(y[fold != k], weight[fold != k], n_classes) + PRIOR_ROWS
        of_fold[fold == k] = of_class / of_class.sum()
    shifted = probs * others / of_fold
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def r2_of_left_out(
    y: FloatArray,
    predicted: FloatArray,
    group: NDArray[np.int64] | None,
    weight: FloatArray,
    numbers: NDArray[np.int64] | None = None,
) -> float | None:
    """Coefficient of determination, where the mean of the rows of other groups has 0; None where targets are equal.

    Parameters
    ----------
    y : (n_rows,) float64
    predicted : (n_scored,) float64
    group : (n_rows,) int64 or None
    weight : (n_rows,) float64
    numbers : (n_scored,) int64, optional
        The rows that are scored; all by default.
    """
    sums, weights = _of_others(y[:, None], group, weight)[:, 0], _of_others(np.ones((len(y), 1)), group, weight)[:, 0]
    mean = np.average(y, weights=weight)
    others = np.where(weights > 0.0, sums / np.where(weights > 0.0, weights, 1.0), mean)
    if numbers is not None:
        y, others, weight = y[numbers], others[numbers], weight[numbers]
    spread = np.average((y - others) ** 2, weights=weight)
    if not np.ptp(y) > 0.0 or not np.isfinite(predicted).all():
        return None
    return 1.0 - float(np.average((y - predicted) ** 2, weights=weight) / spread)


def _of_others(values: FloatArray, group: NDArray[np.int64] | None, weight: FloatArray) -> FloatArray:
    """(n_rows, n_values) weighted sums over the rows of other groups."""
    weighted = values * weight[:, None]
    if group is None:
        return np.asarray(weighted.sum(axis=0) - weighted)
    of_group = np.stack([np.bincount(group, column) for column in weighted.T], axis=1)
    return np.asarray(of_group.sum(axis=0) - of_group[group])
