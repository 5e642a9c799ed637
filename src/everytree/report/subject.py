"""The model that a page is about, with the properties that every part of the page uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.utils.validation import check_is_fitted

from everytree.base.arrays import FloatArray
from everytree.estimators.availability import refuse_several_outputs
from everytree.estimators.registry import is_estimator
from everytree.families.base import NativeFamily
from everytree.models.model import Parts
from everytree.posterior.posterior import Posterior
from everytree.report.words import Words


@dataclass(frozen=True)
class Subject:
    """A fitted model, with everything the page needs read once.

    Attributes
    ----------
    model : estimator
    words : Words
    parts : Parts
        What its predictions are made of.
    posts, weights : list
        The meta-trees and their weights; of an exact model the prunings of its most probable tree, of boosted trees
        those of the forest that they are mixed with.
    first : int
        The tree with the largest weight, and among equals the largest evidence.
    """

    model: Any
    words: Words
    parts: Parts
    posts: list[Posterior]
    weights: list[float]
    first: int

    @classmethod
    def of(cls, model: Any, names: list[str] | None = None) -> Subject:
        """Read a fitted estimator; `names` are those of its columns where it has none itself."""
        if not is_estimator(model):
            raise TypeError(
                "model must be a fitted MetaForest, MetaTree, MetaBoost, MetaEnsemble or ExactTree classifier or "
                "regressor, a pipeline that ends with one, or the snapshot() of an online forest, "
                f"not {type(model).__name__}"
            )
        refuse_several_outputs(model)
        check_is_fitted(model, "fitted_")
        parts, posts, weights = model.model_.parts, [], []
        if parts.exact is not None:
            posts, weights = [model.model_.pictured()], [1.0]
        elif parts.forest is not None and parts.residuals is None:
            posts, weights = list(parts.forest.posteriors), parts.forest.weights.tolist()
        first = max(range(len(posts)), key=lambda i: (weights[i], posts[i].log_evidence), default=0)
        return cls(model, Words.of(model, names), parts, posts, weights, first)

    @property
    def is_drawn(self) -> bool:
        """Whether there is a tree to draw: boosted trees are too many and too small."""
        return self.parts.additive is None

    @property
    def family(self) -> NativeFamily:
        """The leaf model."""
        in_mixture = self.parts.forest if self.parts.residuals is None else None
        family: NativeFamily = self.model.model_.family if in_mixture is None else in_mixture.family
        return family

    @property
    def n_rows(self) -> int:
        return int(self.model.model_.n_rows)

    @property
    def helpful(self) -> FloatArray | None:
        """For the tree that is shown first: how probable it is that each split helps rows it was not chosen on."""
        if self.parts.exact is not None or not self.is_drawn:
            return None
        helpful: FloatArray | None = getattr(self.model, "helpful_splits_", None)
        is_first = len(self.posts) == 1 or self.parts.averaged.best_tree() == self.first
        return helpful if is_first else None

    @property
    def can_be_explained(self) -> bool:
        """Whether predictions are sums of what columns add: leaves are classes or constants."""
        return "inputs" not in self.family.row_data
