"""A forest and boosted trees, mixed; they have the methods of a forest that predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from everytree.base.arrays import FloatArray
from everytree.boosting.classes import BoostedClasses, predictive_of_probs
from everytree.boosting.numbers import AboutCentre
from everytree.boosting.trees import AdditiveTrees
from everytree.families.base import NativeFamily
from everytree.posterior.forest import Forest
from everytree.predictive.predictive import Predictive

LEAST = 1e-300
"""Probabilities below this have no logarithm to work with."""


@dataclass(frozen=True)
class MixedClasses:
    """Probabilities of classes by a forest and by boosted trees: the weighted mean of their logarithms.

    Attributes
    ----------
    forest : Forest
    boosted : BoostedClasses
    weight : float
        Of the boosted trees; the forest has the rest.
    sharpness : float
        Power of the mixed probabilities.
    """

    forest: Forest
    boosted: BoostedClasses
    weight: float
    sharpness: float

    @property
    def family(self) -> NativeFamily:
        return self.boosted.family

    @property
    def n_rows(self) -> int:
        """Rows that it was fitted to."""
        return int(self.forest.n_rows)

    @property
    def n_steps(self) -> list[int]:
        return self.boosted.n_steps

    def feature_importances(self) -> FloatArray:
        """(n_features,) those of both, by their weights."""
        each = self.forest.feature_importances(), self.boosted.feature_importances()
        return (1.0 - self.weight) * each[0] + self.weight * each[1]

    def probs(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        """(n_rows, n_classes) probability of each class."""
        each = self.forest.probs(X, n_jobs=n_jobs), self.boosted.probs(X, n_jobs=n_jobs)
        return mix_probs(*each, self.weight, self.sharpness)

    def predictive(self, X: Any, *, n_jobs: int | None = None) -> Predictive:
        """One predictive distribution for each row."""
        return predictive_of_probs(self.probs(X, n_jobs=n_jobs))


@dataclass(frozen=True)
class MixedCentres:
    """Centres of numbers by a forest and by boosted trees.

    Attributes
    ----------
    forest : Forest
        Of the targets; of their logarithms for lognormal ones.
    trees : AdditiveTrees
    weight : float
        Of the boosted trees; the forest has the rest.
    about : AboutCentre
    """

    forest: Forest
    trees: AdditiveTrees
    weight: float
    about: AboutCentre

    def scores(self, X: NDArray[Any], *, n_jobs: int | None = None) -> FloatArray:
        """(n_rows, 1) centre of each row."""
        by_boosting = self.trees.scores(X, n_jobs=n_jobs)
        by_forest = self.about.centre_of_mean(self.forest.moments(X, n_jobs=n_jobs)[0])[:, None]
        return mix(np.where(np.isfinite(by_forest), by_forest, by_boosting), by_boosting, self.weight)


def boosted_trees(model: Any) -> AdditiveTrees:
    """The boosted trees of a model: of its own, or of the part of it that is mixed with a forest."""
    trees = (model.boosted if isinstance(model, MixedClasses) else model).trees
    return trees.trees if isinstance(trees, MixedCentres) else trees


def mix_probs(by_forest: FloatArray, by_boosting: FloatArray, weight: float, sharpness: float = 1.0) -> FloatArray:
    """Return probabilities whose logarithms are the weighted means of both, times the sharpness, less a constant."""
    first, second = (np.log(np.maximum(probs, LEAST)) for probs in (by_forest, by_boosting))
    return np.asarray(softmax(sharpness * mix(first, second, weight), axis=1))


def mix(by_forest: FloatArray, by_boosting: FloatArray, weight: float) -> FloatArray:
    """Return the weighted mean of both."""
    return np.asarray((1.0 - weight) * by_forest + weight * by_boosting)
