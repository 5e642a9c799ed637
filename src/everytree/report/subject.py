"""The model that a page is about, with the properties that every part of the page uses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from everytree.base.arrays import FloatArray
from everytree.estimators.availability import refuse_several_outputs
from everytree.estimators.registry import is_estimator
from everytree.families.base import NativeFamily
from everytree.models.model import Parts
from everytree.posterior.posterior import Posterior
from everytree.tables.code_names import CodeWords, one_line
from everytree.view.describe import leaf_classes


@dataclass(frozen=True)
class Words:
    """Names, as text on one line."""

    inputs: list[str]  # names of the input columns
    features: list[str]  # names of the columns of codes; an imported model may read one input in several ways
    codes: list[CodeWords]  # labels of each column's codes
    classes: list[str]  # class labels; empty for numbers
    last_time: float | None = None  # of times, some of which were cut short: the longest that was seen
    baseline: Any = None  # of survival curves: the hazard of all rows

    @classmethod
    def of(cls, model: Any) -> Words:
        """Read a fitted estimator."""
        schema = model.schema_
        names = schema.input_names or [f"x{k}" for k in range(schema.n_inputs)]
        inputs = [one_line(name) for name in names]
        return cls(
            inputs,
            [one_line(words) for words in schema.feature_words],
            model.model_.words_of_codes(schema),
            [one_line(label) for label in getattr(model, "classes_", ())],
            model.fitted_.last_time,
            model.model_.baseline,
        )

    def options(self) -> dict[str, Any]:
        """Options for pictures of posteriors."""
        classes = leaf_classes(self.classes) or None
        names = {"feature_names": self.features, "code_names": self.codes, "class_names": classes}
        return names | {"last_time": self.last_time, "baseline": self.baseline}


@dataclass(frozen=True)
class Subject:
    """A fitted model, with everything the page needs read once."""

    model: Any
    words: Words
    parts: Parts  # what its predictions are made of
    # the meta-trees and their weights; of an exact model the prunings of its most probable tree, of boosted trees those
    # of the forest that they are mixed with
    posts: list[Posterior]
    weights: list[float]
    first: int  # the tree with the largest weight, and among equals the largest evidence

    @classmethod
    def of(cls, model: Any) -> Subject:
        """Read a fitted estimator."""
        if isinstance(model, Pipeline):
            raise TypeError(
                "model is a Pipeline, but a page is about one estimator: write_report(pipeline[-1], table, path, ...), "
                "with table=pipeline[:-1].transform(rows)"
            )
        if not is_estimator(model):
            raise TypeError(
                "model must be a fitted MetaForest, MetaTree, MetaBoost, MetaEnsemble or ExactTree classifier or "
                "regressor, or the snapshot() of an online forest, "
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
        return cls(model, Words.of(model), parts, posts, weights, first)

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
