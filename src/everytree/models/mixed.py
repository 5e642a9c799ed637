"""A blend of a forest and boosted trees, for classes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from everytree.base.arrays import FloatArray
from everytree.base.words import short_number
from everytree.explaining.contributions import LEAST, Contributions, log_of, probs_of, safe_log
from everytree.explaining.tree_sums import Asked, additive_sum, forest_sum
from everytree.families.base import NativeFamily
from everytree.models.boosted import BoostedClasses, Chains, of_every_class, sentence_of_sum, size_of_mixture
from everytree.models.centres import mix, no_sum_over_trees
from everytree.models.model import Model, Parts, Scale
from everytree.posterior.forest import Forest
from everytree.predictive.paths import predictive_of_probs
from everytree.predictive.predictive import Predictive


@dataclass(frozen=True)
class MixedClasses(Model):
    """Probabilities of classes by a forest and by boosted trees: the weighted mean of their logarithms."""

    forest: Forest
    boosted: BoostedClasses
    weight: float  # of the boosted trees; the forest has the rest
    sharpness: float  # power of the mixed probabilities

    kind = "mixed classes"

    @property
    def chains(self) -> Chains:
        return self.boosted.chains

    @property
    def family(self) -> NativeFamily:
        return self.boosted.family

    @property
    def n_rows(self) -> int:
        return int(self.forest.n_rows)

    def probs(self, X: NDArray[Any], *, n_jobs: int | None = None) -> FloatArray:
        each = self.forest.probs(X, n_jobs=n_jobs), self.boosted.probs(X, n_jobs=n_jobs)
        return mix_probs(*each, self.weight, self.sharpness)

    def predictive(self, X: NDArray[Any], *, n_jobs: int | None = None, **row_data: Any) -> Predictive:
        return predictive_of_probs(self.probs(X, n_jobs=n_jobs))

    # ---- explanations ---------------------------------------------------------------------------------------------

    def feature_importances(self) -> FloatArray:
        """(n_features,) those of both, by their weights."""
        each = self.forest.feature_importances(), self.boosted.feature_importances()
        return (1.0 - self.weight) * each[0] + self.weight * each[1]

    @property
    def is_sum_of_trees(self) -> bool:
        return False

    def contributions(self, asked: Asked, scale: Scale) -> Contributions:
        if scale == "trees":
            raise no_sum_over_trees("probabilities")
        by_boosting = of_every_class(additive_sum(asked, self.boosted.trees)).times(self.weight)
        by_forest = log_of(forest_sum(asked, self.forest)).times((1.0 - self.weight) * self.forest.sharpness)
        logits = by_forest.plus(by_boosting).times(self.sharpness)
        if asked.mean is not None:
            logits = logits.starting_at(safe_log(asked.mean), self.importances_of_inputs(asked))
        return probs_of(logits)

    # ---- parts and words ------------------------------------------------------------------------------------------

    @property
    def parts(self) -> Parts:
        return Parts(self.forest, self.boosted.trees, self.weight, self.sharpness)

    @property
    def size(self) -> str:
        return size_of_mixture(self.parts)

    @property
    def sentence(self) -> str:
        return sentence_of_sum(self.parts)

    def facts(self) -> Iterator[tuple[str, str]]:
        yield from self.chains.facts(self.boosted.trees)
        yield "Weight of boosting", short_number(self.weight, 4)
        yield "Sharpness of the average", short_number(self.sharpness, 4)


def mix_probs(by_forest: FloatArray, by_boosting: FloatArray, weight: float, sharpness: float = 1.0) -> FloatArray:
    """Return probabilities whose logarithms are the weighted means of both, times the sharpness, less a constant."""
    first, second = (np.log(np.maximum(probs, LEAST)) for probs in (by_forest, by_boosting))
    return np.asarray(softmax(sharpness * mix(first, second, weight), axis=1))
