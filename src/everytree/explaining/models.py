"""Contributions of columns to what each kind of model predicts."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.base.errors import ArgumentError
from everytree.boosting.classes import BoostedClasses
from everytree.boosting.mixed import LEAST, MixedCentres, MixedClasses
from everytree.boosting.numbers import AboutCentre, BoostedNumbers, with_centre
from everytree.boosting.trees import AdditiveTrees
from everytree.exact.forest import ExactForest
from everytree.explaining.contributions import Contributions, exp_of, log_of, probs_of, product_of
from everytree.explaining.exact_sums import exact_sum
from everytree.explaining.tree_sums import Asked, additive_sum, forest_sum
from everytree.posterior.forest import Forest

Scale = Literal["prediction", "trees"]


def contributions_of(model: Any, asked: Asked, scale: Scale) -> Contributions:
    """Contributions to probabilities of classes or means, or to the sums over trees from which they are made."""
    if isinstance(model, BoostedNumbers):
        return _of_boosted_numbers(model, asked, scale)
    if isinstance(model, BoostedClasses | MixedClasses):
        return _of_boosted_classes(model, asked, scale)
    if isinstance(model, ExactForest):
        return exact_sum(asked, model)
    assert isinstance(model, Forest)
    found = forest_sum(asked, model)
    if scale == "trees" or not model.family.has_classes or model.sharpness == 1.0:
        return found
    # A softmax of multiples of logarithms. The mean before sharpening is near that after it.
    mean = found.base if asked.mean is None else asked.mean
    logits = log_of(found).times(model.sharpness)
    return probs_of(logits.starting_at(_log(mean), _importances(model, asked)))


def _importances(model: Any, asked: Asked) -> FloatArray:
    """(n_inputs,) the model's importances of columns, which sum to 1; equal ones where nothing is split on."""
    found = np.bincount(asked.inputs, model.feature_importances(), asked.n_inputs)
    total = found.sum()
    return np.asarray(found / total if total > 0.0 else np.full(asked.n_inputs, 1.0 / asked.n_inputs))


def _log(probs: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.maximum(probs, LEAST)))


def _of_boosted_classes(model: BoostedClasses | MixedClasses, asked: Asked, scale: Scale) -> Contributions:
    boosted = model.boosted if isinstance(model, MixedClasses) else model
    scores = additive_sum(asked, boosted.trees)
    if scale == "trees":
        if isinstance(model, MixedClasses):
            raise _no_sum("probabilities")
        return scores
    logits = _of_every_class(scores)
    if isinstance(model, MixedClasses):
        of_forest = log_of(forest_sum(asked, model.forest)).times((1.0 - model.weight) * model.forest.sharpness)
        logits = of_forest.plus(logits.times(model.weight)).times(model.sharpness)
    if asked.mean is not None:
        logits = logits.starting_at(_log(asked.mean), _importances(model, asked))
    return probs_of(logits)


def _of_every_class(scores: Contributions) -> Contributions:
    """One score is the logit of the second of two classes."""
    if len(scores.base) > 1:
        return scores
    base, values = np.append(0.0, scores.base), scores.values
    return Contributions(base, np.concatenate([np.zeros_like(values), values], axis=2))


def _of_boosted_numbers(model: BoostedNumbers, asked: Asked, scale: Scale) -> Contributions:
    centre = _of_centre(model.trees, asked, scale)
    if scale == "trees":
        return centre
    about = _about_centre(model, asked, centre)
    if model.about.family == "normal":
        return about.plus(centre)
    if asked.mean is not None:
        start = np.log(asked.mean / about.base)
        start = -start if model.about.family == "exponential" else start
        centre = centre.starting_at(start, _importances(model, asked))
    return product_of(_of_scale(model.about, centre), about)


def _of_centre(trees: Any, asked: Asked, scale: Scale) -> Contributions:
    """Contributions to the centre of each row."""
    if isinstance(trees, AdditiveTrees):
        return additive_sum(asked, trees)
    assert isinstance(trees, MixedCentres)
    mean = forest_sum(asked, trees.forest)
    if trees.about.family in ("poisson", "exponential"):
        if scale == "trees":
            raise _no_sum("means")
        mean = log_of(mean).times(1.0 if trees.about.family == "poisson" else -1.0)
    return mean.times(1.0 - trees.weight).plus(additive_sum(asked, trees.trees).times(trees.weight))


def _of_scale(about: AboutCentre, centre: Contributions) -> Contributions:
    """By what targets about their centres are multiplied."""
    return exp_of(centre.times(-1.0) if about.family == "exponential" else centre)


def _about_centre(model: BoostedNumbers, asked: Asked, centre: Contributions) -> Contributions:
    """Contributions to the mean about the centre.

    The forest of residuals reads the centre as one more column. What that adds is shared among the columns by the sizes
    of their contributions to the centre.
    """
    table = asked.table
    if table is not None:
        table = with_centre(table, model.trees.scores(table, n_jobs=asked.n_jobs)[:, 0], model.centre_codes)
    scores = model.trees.scores(asked.codes, n_jobs=asked.n_jobs)[:, 0]
    wide = asked.with_column(with_centre(asked.codes, scores, model.centre_codes), table)
    return forest_sum(wide, model.residuals).without_player(asked.n_inputs, _shares(centre.values[:, :, 0]))


def _shares(values: FloatArray) -> FloatArray:
    """Sizes as shares of their sum; equal ones where all are 0."""
    sizes = np.abs(values)
    total = sizes.sum(axis=1, keepdims=True)
    return np.where(total > 0.0, sizes / np.where(total > 0.0, total, 1.0), 1.0 / values.shape[1])


def _no_sum(what: str) -> ArgumentError:
    return ArgumentError(
        "scale", f"is 'trees', but this ensemble averages logarithms of {what}, and that of a forest is not a sum over "
        "its trees; pass scale='prediction'",
    )  # fmt: skip
