"""Boosted probabilities of classes; they have the methods of a forest that predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import softmax

from everytree.base.arrays import FloatArray
from everytree.boosting.chains import class_scores
from everytree.boosting.trees import AdditiveTrees
from everytree.families.categorical import Bernoulli, Categorical
from everytree.predictive.paths import PathPredictive, Paths
from everytree.predictive.predictive import Predictive


@dataclass(frozen=True)
class BoostedClasses:
    """Probabilities of classes from sums of trees.

    Attributes
    ----------
    trees : AdditiveTrees
        One output, the logit of the second class, or one for each of more classes.
    gains : (n_features,) float64
        Expected gain in log evidence by the splits on each column.
    sharpness : float
        By which the average of the chains goes farther, or less far, from the frequencies of the classes.
    split_prior : float
        That was given or chosen.
    n_steps : list of int
        Of each chain.
    n_rows : int
        Rows that it was fitted to.
    """

    trees: AdditiveTrees
    gains: FloatArray
    sharpness: float
    split_prior: float
    n_steps: list[int]
    n_rows: int

    @property
    def family(self) -> Bernoulli | Categorical:
        n_classes = max(self.trees.n_outputs, 2)
        return Bernoulli() if n_classes == 2 else Categorical(n_classes)

    def feature_importances(self) -> FloatArray:
        """(n_features,) the gains, scaled to sum to 1."""
        total = self.gains.sum()
        return self.gains / total if total > 0.0 else self.gains.copy()

    def probs(self, X: Any, *, n_jobs: int | None = None) -> FloatArray:
        """(n_rows, n_classes) probability of each class."""
        return np.asarray(softmax(class_scores(self.trees.scores(X, n_jobs=n_jobs)), axis=1))

    def predictive(self, X: Any, *, n_jobs: int | None = None) -> Predictive:
        """One predictive distribution for each row."""
        return predictive_of_probs(self.probs(X, n_jobs=n_jobs))


def predictive_of_probs(probs: FloatArray) -> Predictive:
    """Distributions over classes with these probabilities."""
    place = np.arange(len(probs) + 1)
    paths = Paths(place, place[:-1], np.zeros(len(probs)), place[:-1].astype(np.int32))
    family = Bernoulli() if probs.shape[1] == 2 else Categorical(probs.shape[1])
    return PathPredictive(family, probs, paths, {})
