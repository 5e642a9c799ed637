"""How well a model predicts rows that its trees had not seen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.boosting.classes import predictive_of_probs
from everytree.fitting.held_out import HeldOut
from everytree.fitting.out_of_bag import average_of_trees
from everytree.fitting.pooled_rows import POOL, pool_without_own_row
from everytree.fitting.scores import ClassScores, NoScores, NumberScores, Scores
from everytree.fitting.search import Choice
from everytree.fitting.targets import ClassTarget, NumberTarget, Target
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.predictive.moved import MovedPredictive
from everytree.predictive.pooled import sharpened
from everytree.predictive.predictive import Predictive
from everytree.trees.metatree import MetaTree

LEAST_PROB = 1e-300
"""Smaller probabilities of classes count as this."""

FEW_ROWS = 400
"""Number of scored rows where their distributions are made for the scores alone, so that a fit takes little longer."""

COVERAGE = 0.9

NOTHING_TO_PREDICT = NoScores("all targets are the same, so that there is nothing to predict")

GROWN_ON_ALL = NoScores("every tree was grown on all rows, so that there are none which it had not seen")


@dataclass(frozen=True)
class UnseenRows:
    """Rows of a table, and what is said of each by trees that had not seen it.

    Attributes
    ----------
    numbers : (n_unseen,) int64
        Which rows.
    predicted : Predictive
        Their distributions.
    """

    numbers: NDArray[np.int64]
    predicted: Predictive

    @classmethod
    def of_probs(cls, probs: FloatArray) -> UnseenRows:
        """Rows with probabilities of classes; those where they are NaN are left out."""
        numbers = np.flatnonzero(~np.isnan(probs[:, 0]))
        return cls(numbers, predictive_of_probs(probs[numbers]))


def unseen_rows(held: HeldOut, choice: Choice, weights: FloatArray | None) -> UnseenRows:
    """Average the trees that were not grown on a row, without the row in their statistics, for the scored rows.

    Parameters
    ----------
    held : HeldOut
    choice : Choice
        Priors and sharpness.
    weights : (n_trees,) float64 or None
        Of the trees; None for equal ones.
    """
    weights = np.ones(len(held.trees)) if weights is None else weights
    numbers, family, split_prior = held.numbers, choice.family, choice.split_prior
    assert numbers is not None, "rows of a table have numbers"
    if family.has_classes:
        said = {tree: values for tree, _, values in held.predict_chosen(family, split_prior)}
        probs = average_of_trees(held, weights, said.__getitem__)
        known = np.flatnonzero(~np.isnan(probs[:, 0]))
        return UnseenRows(numbers[known], predictive_of_probs(sharpened(probs[known], choice.sharpness)))
    if not held.has_kept(POOL):
        held = held.first(FEW_ROWS)
    pool, rows = pool_without_own_row(held, family, split_prior, weights)
    return UnseenRows(numbers[rows], _narrowed(pool, choice.sharpness))


def _narrowed(pool: Predictive, sharpness: float) -> Predictive:
    """The distributions, narrower about their means by this factor."""
    if sharpness == 1.0:
        return pool
    mean = pool.mean()
    return MovedPredictive(pool, mean * (1.0 - 1.0 / sharpness), np.full(len(mean), 1.0 / sharpness))


def scores_of(target: Target, rows: Rows, unseen: UnseenRows) -> Scores | NoScores:
    """The scores of unseen rows, beside those of predicting the same for each; rows count by their weights.

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
    if isinstance(target, ClassTarget):
        return _of_classes(target, rows, unseen)
    assert isinstance(target, NumberTarget)
    return _of_numbers(target, rows, unseen)


def _of_classes(target: ClassTarget, rows: Rows, unseen: UnseenRows) -> ClassScores:
    some = rows.at(unseen.numbers)
    shares = np.bincount(rows.y, rows.weight, target.n_leaf_classes)
    shares = shares / shares.sum()
    probs = unseen.predicted.probs()

    def log_loss(of_class: FloatArray) -> float:
        return -float(np.average(np.log(np.maximum(of_class, LEAST_PROB)), weights=some.weight))

    return ClassScores(
        len(some), log_loss(probs[np.arange(len(some)), some.y]), _share(probs.argmax(axis=1) == some.y, some),
        log_loss(shares[some.y]), _share(some.y == shares.argmax(), some),
    )  # fmt: skip


def _of_numbers(target: NumberTarget, rows: Rows, unseen: UnseenRows) -> NumberScores:
    some, dist = rows.at(unseen.numbers), unseen.predicted
    log_scores, same = _log_scores(dist, some), _log_scores(_same_for_all(target, rows, some), some)
    r2, coverage = None, None
    if not some.row_data.get("censored", np.zeros(1)).any():
        r2, coverage = _r2(some, dist.mean()), _share(_in_interval(dist, some.y, log_scores, target), some)
    mean, mean_same = (float(np.average(each, weights=some.weight)) for each in (log_scores, same))
    return NumberScores(len(some), mean, mean_same, r2, coverage)


def _share(is_so: NDArray[np.bool_], rows: Rows) -> float:
    return float(np.average(is_so, weights=rows.weight))


def _log_scores(dist: Predictive, rows: Rows) -> FloatArray:
    """Log densities; of censored rows, the log probability of a larger target."""
    scores, is_censored = dist.log_prob(rows.y), rows.row_data.get("censored")
    if is_censored is not None:
        with np.errstate(divide="ignore"):
            scores = np.where(is_censored > 0.0, np.log(dist.sf(rows.y)), scores)
    return np.asarray(scores)


def _r2(rows: Rows, mean: FloatArray) -> float | None:
    spread = np.average((rows.y - np.average(rows.y, weights=rows.weight)) ** 2, weights=rows.weight)
    if not spread > 0.0 or not np.isfinite(mean).all():
        return None
    return 1.0 - float(np.average((rows.y - mean) ** 2, weights=rows.weight) / spread)


def _in_interval(
    dist: Predictive, y: FloatArray, log_probs: FloatArray, target: NumberTarget
) -> NDArray[np.bool_]:  # fmt: skip
    """Whether targets are in the interval with equal tails: not too much of the distribution is on one side of them."""
    tail = 0.5 * (1.0 - COVERAGE)
    up_to = dist.cdf(y)
    below = up_to - np.exp(log_probs) if target.leaves.support.is_whole else up_to
    return np.asarray((up_to >= tail) & (below <= 1.0 - tail))


def _same_for_all(target: NumberTarget, rows: Rows, some: Rows) -> Predictive:
    """One distribution of the target's family for all rows, learnt from all of them; of some of the rows.

    Where leaves are lines through the columns, it is normal: a line would not be the same for every row.
    """
    family = "normal" if target.has_inputs else target.family
    plain = NumberTarget(target.owner, family, {"noise": 1.0} if target.leaves.has_one_noise else "auto", "auto")
    learnt, asked = ({name: one.row_data[name] for name in one.row_data if name != "inputs"} for one in (rows, some))
    posterior = Posterior(MetaTree.complete([], n_features=1), plain.fixed_family(replace(rows, row_data=learnt)), 0.0)
    posterior.update(_no_codes(rows), rows.y, rows.weight, **dict[str, Any](learnt))
    return posterior.predictive(_no_codes(some), **dict[str, Any](asked))


def _no_codes(rows: Rows) -> NDArray[np.uint8]:
    """A table for a tree that does not ask for any column."""
    return np.zeros((len(rows), 1), dtype=np.uint8)
