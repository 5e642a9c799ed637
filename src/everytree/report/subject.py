"""The model that a page is about, with the properties that every part of the page uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from everytree.estimators import ExactTreeClassifier, ExactTreeRegressor
from everytree.estimators.base import MetaEstimator
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
    posts, weights : list
        The meta-trees to draw and their weights; of an exact model the prunings of its most probable tree.
    first : int
        The tree with the largest weight, and among equals the largest evidence.
    """

    model: Any
    words: Words
    is_exact: bool
    posts: list[Posterior]
    weights: list[float]
    first: int

    @classmethod
    def of(cls, model: Any) -> Subject:
        """Read a fitted estimator that keeps whole trees."""
        if not isinstance(model, MetaEstimator):
            raise TypeError(
                "model must be a fitted MetaForest, MetaTree or ExactTree classifier or regressor, "
                f"not {type(model).__name__}"
            )
        refuse_several_outputs(model)
        check_is_fitted(model, "forest_")
        is_exact = isinstance(model, ExactTreeClassifier | ExactTreeRegressor)
        posts = [model.map_posterior_] if is_exact else list(model.forest_.posteriors)
        weights = [1.0] if is_exact else model.forest_.weights.tolist()
        first = max(range(len(posts)), key=lambda i: (weights[i], posts[i].log_evidence))
        return cls(model, Words.of(model), is_exact, posts, weights, first)

    @property
    def average(self) -> Any:
        """The object that averages: a forest, or the posterior over every tree."""
        return self.model.forest_.posterior if self.is_exact else self.model.forest_

    @property
    def family(self) -> NativeFamily:
        """The leaf model."""
        family: NativeFamily = self.average.family
        return family

    @property
    def n_rows(self) -> int:
        return int(self.average.n_rows)
