"""The model that a page is about, with the properties that every part of the page uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from everytree.base.arrays import FloatArray
from everytree.boosting.classes import BoostedClasses
from everytree.boosting.numbers import BoostedNumbers
from everytree.estimators import ExactTreeClassifier, ExactTreeRegressor
from everytree.estimators.base import MetaEstimator
from everytree.estimators.boost import BoostedEstimator
from everytree.estimators.outputs import refuse_several_outputs
from everytree.families.base import NativeFamily
from everytree.posterior.posterior import Posterior
from everytree.report.words import Words


@dataclass(frozen=True)
class Subject:
    """A fitted model, with everything the page needs read once.

    Attributes
    ----------
    model : estimator
    words : Words
    is_exact : bool
        Whether the average is over every choice of splits too.
    is_boosted : bool
        Whether it is made of boosted trees, which are too many and too small to be drawn.
    posts, weights : list
        The meta-trees and their weights; of an exact model the prunings of its most probable tree, of boosted trees
        those of the forest that they are mixed with.
    first : int
        The tree with the largest weight, and among equals the largest evidence.
    """

    model: Any
    words: Words
    is_exact: bool
    is_boosted: bool
    posts: list[Posterior]
    weights: list[float]
    first: int

    @classmethod
    def of(cls, model: Any, names: list[str] | None = None) -> Subject:
        """Read a fitted estimator; `names` are those of its columns where it has none itself."""
        if not isinstance(model, MetaEstimator):
            raise TypeError(
                "model must be a fitted MetaForest, MetaTree, MetaBoost, MetaEnsemble or ExactTree classifier or "
                "regressor, a pipeline that ends with one, or the snapshot() of an online forest, "
                f"not {type(model).__name__}"
            )
        refuse_several_outputs(model)
        check_is_fitted(model, "forest_")
        is_exact = isinstance(model, ExactTreeClassifier | ExactTreeRegressor)
        is_boosted = isinstance(model, BoostedEstimator)
        posts, weights = [], []
        if is_exact:
            posts, weights = [model.map_posterior_], [1.0]
        elif not isinstance(model.forest_, BoostedClasses | BoostedNumbers):
            forest = model.forest_.forest if is_boosted else model.forest_
            posts, weights = list(forest.posteriors), forest.weights.tolist()
        first = max(range(len(posts)), key=lambda i: (weights[i], posts[i].log_evidence), default=0)
        return cls(model, Words.of(model, names), is_exact, is_boosted, posts, weights, first)

    @property
    def average(self) -> Any:
        """The object that averages: a forest, or the posterior over every tree."""
        return self.model.forest_.posterior if self.is_exact else self.model.forest_

    @property
    def family(self) -> NativeFamily:
        """The leaf model."""
        family: NativeFamily = getattr(self.average, "forest", self.average).family  # that of a forest in a mixture
        return family

    @property
    def n_rows(self) -> int:
        return int(self.average.n_rows)

    @property
    def helpful(self) -> FloatArray | None:
        """For the tree that is shown first: how probable it is that each split helps rows it was not chosen on."""
        if self.is_exact or self.is_boosted or not hasattr(self.model, "helpful_splits_"):
            return None
        is_first = len(self.posts) == 1 or self.model.forest_.best_tree() == self.first
        return self.model.helpful_splits_ if is_first else None

    @property
    def can_be_explained(self) -> bool:
        """Whether predictions are sums of what columns add: leaves are classes or constants."""
        return "inputs" not in self.family.row_data
