"""Held-out scores of a model: of out-of-bag and out-of-fold predictions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import r2_score

from everytree.base.arrays import FloatArray
from everytree.fitting.held_out.baselines import (
    as_if_folds_were_drawn,
    frequencies_of_others,
    n_independent,
    naming,
    r2_of_left_out,
)
from everytree.fitting.held_out.held_out import left_out
from everytree.fitting.held_out.out_of_bag import average_of_trees
from everytree.fitting.held_out.predictions import Predictions
from everytree.fitting.held_out.scores import ClassScores, CurveScores, NoScores, NumberScores, Scores
from everytree.fitting.targets.classes import ClassTarget
from everytree.fitting.targets.numbers import NumberTarget
from everytree.fitting.targets.target import Target
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.predictive.paths import predictive_of_probs
from everytree.predictive.pooled import sharpened
from everytree.predictive.predictive import Predictive
from everytree.survival.rows import times_of_rows
from everytree.survival.scores import (
    brier_scores,
    concordance,
    expected_events,
    kaplan_meier_of_others,
    score_times,
)
from everytree.tables.repeats import consecutive, repeated_rows
from everytree.trees.metatree import MetaTree

LEAST_PROB = 1e-300
"""Smaller probabilities of classes count as this."""

COVERAGE = 0.9

NOTHING_TO_PREDICT = NoScores("all targets are the same, so that there is nothing to predict")


@dataclass(frozen=True)
class UnseenRows:
    """Rows of a table, each with a prediction by trees that had not seen it: out-of-bag or out-of-fold."""

    numbers: NDArray[np.int64]  # (n_unseen,): which rows
    predicted: Predictive  # their distributions
    are_new: bool = False  # whether they are not of the table of the fit, so that they were not left out of it

    @classmethod
    def of_probs(cls, probs: FloatArray) -> UnseenRows:
        """Rows with probabilities of classes; those where they are NaN are left out."""
        numbers = np.flatnonzero(~np.isnan(probs[:, 0]))
        return cls(numbers, predictive_of_probs(probs[numbers]))

    @classmethod
    def of_folds(cls, probs: FloatArray, rows: Rows, fold: NDArray[np.int64]) -> UnseenRows:
        """All rows, with probabilities of classes by what was learnt without their folds."""
        group = repeated_rows(rows.codes) if rows.group is None else consecutive(rows.group)
        return cls.of_probs(as_if_folds_were_drawn(probs, rows.y, fold, group, _weight(rows)))


def unseen_rows(predictions: Predictions, sharpness: float, weights: FloatArray | None) -> UnseenRows:
    """Average the trees that were not grown on a row, without the row in their statistics, for the scored rows.

    Parameters
    ----------
    predictions : Predictions
    sharpness : float
    weights : (n_trees,) float64 or None
        Of the trees; None for equal ones.
    """
    held = predictions.held
    weights = np.ones(len(held.trees)) if weights is None else weights
    numbers = held.numbers
    assert numbers is not None, "rows of a table have numbers"
    if predictions.family.has_classes:
        of_tree = {tree: values for tree, _, values in predictions.of_trees}
        probs = average_of_trees(held, weights, of_tree.__getitem__)
        known = np.flatnonzero(~np.isnan(probs[:, 0]))
        return UnseenRows(numbers[known], predictive_of_probs(sharpened(probs[known], sharpness)))
    mixtures, rows = predictions.mixtures(weights)
    return UnseenRows(numbers[rows], mixtures.sharpened(sharpness))


def scores_of(target: Target, rows: Rows, unseen: UnseenRows) -> Scores | NoScores:
    """Scores of unseen rows, beside those of a constant prediction; rows count by their weights.

    The constant prediction is leave-group-out, as those of the trees are.

    Parameters
    ----------
    target : Target
    rows : Rows
        All rows of the table.
    unseen : UnseenRows
    """
    if len(unseen.numbers) == 0:
        return NoScores("the trees with any weight were grown on all rows")
    if (rows.y == rows.y[0]).all() and not rows.row_data:
        return NOTHING_TO_PREDICT
    rows = replace(rows, group=repeated_rows(rows.codes) if rows.group is None else consecutive(rows.group))
    if isinstance(target, ClassTarget):
        return _of_classes(target, rows, unseen)
    assert isinstance(target, NumberTarget)
    if target.leaves.predicts_curves:
        return _of_curves(rows, unseen)
    return _of_numbers(target, rows, unseen)


def _of_classes(target: ClassTarget, rows: Rows, unseen: UnseenRows) -> ClassScores:
    weight = _weight(rows)
    n_rows = n_independent(rows.group, weight)
    some, of_row = rows.at(unseen.numbers), weight[unseen.numbers]
    same = frequencies_of_others(rows.y, target.n_leaf_classes, rows.group, weight)[unseen.numbers]

    def log_loss(probs: FloatArray) -> float:
        return -float(np.average(np.log(np.maximum(_of_true(probs, some.y), LEAST_PROB)), weights=of_row))

    def accuracy(probs: FloatArray, n_rows: float | None) -> float:
        return float(np.average(_of_true(naming(probs, n_rows), some.y), weights=of_row))

    probs = unseen.predicted.probs()
    return ClassScores(
        len(some), log_loss(probs), accuracy(probs, None if unseen.are_new else n_rows),
        log_loss(same), accuracy(same, n_rows),
    )  # fmt: skip


def _of_true(values: FloatArray, y: NDArray[np.int64]) -> FloatArray:
    """The value of each row's own class."""
    return values[np.arange(len(y)), y]


def _of_numbers(target: NumberTarget, rows: Rows, unseen: UnseenRows) -> NumberScores:
    some, dist = rows.at(unseen.numbers), unseen.predicted
    log_scores, same = _log_scores(dist, some), _same_for_all(target, rows, unseen.numbers)
    r2, coverage = None, None
    if not some.row_data.get("censored", np.zeros(1)).any():
        r2, coverage = _r2(rows, unseen), _share(_in_interval(dist, some.y), some)
    mean, mean_same = (float(np.average(each, weights=some.weight)) for each in (log_scores, same))
    return NumberScores(len(some), mean, mean_same, r2, coverage)


def _of_curves(rows: Rows, unseen: UnseenRows) -> CurveScores | NoScores:
    known = times_of_rows(rows.y, rows.weight, rows.row_data)
    some = known.at(unseen.numbers)
    if not some.is_event.any():
        return NoScores("no event was seen in the rows that were left out")
    times = score_times(some)
    curves = unseen.predicted.sf(times[:, None]).T
    group = np.arange(len(rows)) if rows.group is None else rows.group
    alike = kaplan_meier_of_others(known, group, unseen.numbers, times)
    mean, mean_alike = (
        float(np.average(brier_scores(each, times, some, known), weights=some.weight)) for each in (curves, alike)
    )
    order = concordance(expected_events(curves), some)
    return CurveScores(len(some.time), mean, mean_alike, None if np.isnan(order) else order)


def _weight(rows: Rows) -> FloatArray:
    return np.ones(len(rows)) if rows.weight is None else rows.weight


def _share(is_so: NDArray[np.bool_], rows: Rows) -> float:
    return float(np.average(is_so, weights=rows.weight))


def _log_scores(dist: Predictive, rows: Rows) -> FloatArray:
    """Log densities; of censored rows, the log probability of a larger target."""
    scores, is_censored = dist.log_prob(rows.y), rows.row_data.get("censored")
    if is_censored is not None:
        with np.errstate(divide="ignore"):
            scores = np.where(is_censored > 0.0, np.log(dist.sf(rows.y)), scores)
    return np.asarray(scores)


def _r2(rows: Rows, unseen: UnseenRows) -> float | None:
    """R2 of the mean; of new rows, which are not left out, as `score` has it."""
    some, mean = rows.at(unseen.numbers), unseen.predicted.mean()
    if not unseen.are_new:
        return r2_of_left_out(rows.y, mean, rows.group, _weight(rows), unseen.numbers)
    if not np.ptp(some.y) > 0.0 or not np.isfinite(mean).all():
        return None
    return float(r2_score(some.y, mean, sample_weight=some.weight))


def _in_interval(dist: Predictive, y: FloatArray) -> NDArray[np.bool_]:
    """Whether targets are in the interval with equal tails: not too much of the distribution is on one side of them."""
    tail = 0.5 * (1.0 - COVERAGE)
    up_to = dist.cdf(y)
    below = dist.cdf(np.nextafter(y, -np.inf))  # values may have probabilities
    return np.asarray((up_to >= tail) & (below <= 1.0 - tail))


def _same_for_all(target: NumberTarget, rows: Rows, numbers: NDArray[np.int64]) -> FloatArray:
    """Log scores of some rows by one distribution of the target's family, learnt from all rows of other groups.

    Where leaves are lines through the columns, it is normal: a line would not be the same for every row.
    """
    plain = NumberTarget(target.owner, "normal" if target.has_inputs else target.family, "auto", "auto")
    columns = {name: rows.row_data[name] for name in rows.row_data if name != "inputs"}
    alike = replace(rows, codes=np.zeros((len(rows), 1), dtype=np.uint8), row_data=columns)
    if "noise" in plain.search(alike).start:  # the columns explain nothing: all of the variance is left
        plain = replace(plain, prior={"noise": 1.0})
    family, tree = plain.fixed_family(alike), MetaTree.complete([], n_features=1)
    posterior = Posterior(tree, family, 0.0).update(alike.codes, rows.y, rows.weight, **dict[str, Any](columns))
    held = left_out(alike, tree, posterior.statistics, numbers)
    scores = np.empty(len(numbers))
    for _, of_tree, values in held.predict_each(family, 0.0):
        scores[of_tree] = values[:, 0]
    return scores
