"""The average over trees, each averaged over its prunings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.words import number_of, short_number
from everytree.explaining.contributions import Contributions, complete, log_of, probs_of, safe_log
from everytree.explaining.tree_sums import Asked, forest_sum
from everytree.models.model import Parts, Scale, UpdatableModel, split_columns
from everytree.posterior.counts import ForestCounts
from everytree.posterior.forest import Forest
from everytree.posterior.influence import predictions_without
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.predictive.predictive import Predictive


@dataclass
class AverageModel(UpdatableModel):
    """A forest of posteriors over pruned trees; one tree is a forest too."""

    forest: Forest

    kind = "forest"

    @property
    def family(self) -> Any:
        return self.forest.family

    @property
    def n_rows(self) -> int:
        return self.forest.n_rows

    # ---- predictions ----------------------------------------------------------------------------------------------

    def probs(self, X: NDArray[Any], *, n_jobs: int | None = None) -> FloatArray:
        return self.forest.probs(X, n_jobs=n_jobs)

    def moments(self, X: NDArray[Any], *, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        return self.forest.moments(X, n_jobs=n_jobs)

    def predictive(self, X: NDArray[Any], *, n_jobs: int | None = None, **row_data: Any) -> Predictive:
        return self.forest.predictive(X, n_jobs=n_jobs, **row_data)

    # ---- more rows ------------------------------------------------------------------------------------------------

    @property
    def log_evidence(self) -> float:
        return self.forest.log_evidence

    def update(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        sample_weight: FloatArray | None = None,
        *,
        n_jobs: int | None = None,
        **row_data: Any,
    ) -> AverageModel:
        self.forest.update(X, y, sample_weight, n_jobs=n_jobs, **row_data)
        return self

    def check_mergeable(self, other: AverageModel) -> None:
        self.forest.check_mergeable(other.forest)

    def merge(self, other: AverageModel) -> AverageModel:
        self.forest.merge(other.forest)
        return self

    def columns_read(self, n_features: int) -> NDArray[np.bool_]:
        return split_columns(self.forest.trees, n_features)

    def counts(self) -> ForestCounts:
        return ForestCounts(self.forest)

    def counted(self, counts: ForestCounts) -> AverageModel:
        return AverageModel(counts.forest())

    def without_rows(self) -> AverageModel:
        return AverageModel(self.forest.without_rows())

    def take_away(self, other: AverageModel) -> AverageModel:
        self.forest.take_away(other.forest)
        return self

    def means_without(
        self,
        rows: Rows,
        group: NDArray[np.int64],
        X: NDArray[Any],
        row_data: Mapping[str, Any],
        *,
        n_jobs: int | None = None,
    ) -> FloatArray:
        is_mean_of_trees = self.family.has_classes or self.is_sum_of_trees
        if row_data or not is_mean_of_trees or not np.isfinite(self.means(X[:1], n_jobs=n_jobs)).all():
            return super().means_without(rows, group, X, row_data, n_jobs=n_jobs)
        return predictions_without(self.forest, rows, group, X, n_jobs)

    # ---- explanations ---------------------------------------------------------------------------------------------

    def feature_importances(self) -> FloatArray:
        return self.forest.feature_importances()

    @property
    def is_sum_of_trees(self) -> bool:
        return self.forest.sharpness == 1.0 or not self.family.is_sharpened_by_power

    def contributions(self, asked: Asked, scale: Scale) -> Contributions:
        found = forest_sum(asked, self.forest)
        if scale == "trees" or self.is_sum_of_trees:
            return found
        if not self.family.has_classes:  # the mean of sharpened shares is near that of the trees
            base = found.base if asked.mean is None else asked.mean
            means = self.means(asked.codes, n_jobs=asked.n_jobs)[:, None]
            return complete(found.starting_at(base, self.importances_of_inputs(asked)), means)
        # A softmax of multiples of logarithms. The mean before sharpening is near that after it.
        mean = found.base if asked.mean is None else asked.mean
        logits = log_of(found).times(self.forest.sharpness)
        return probs_of(logits.starting_at(safe_log(mean), self.importances_of_inputs(asked)))

    # ---- parts and words ------------------------------------------------------------------------------------------

    @property
    def parts(self) -> Parts:
        return Parts(forest=self.forest)

    def pictured(self) -> Posterior:
        return self.forest.posteriors[self.forest.best_tree()]

    @property
    def size(self) -> str:
        return f"{len(self.forest):,} trees" if len(self.forest) > 1 else ""

    @property
    def sentence(self) -> str:
        n_trees = len(self.forest)
        how = "one decision tree" if n_trees == 1 else f"each of {n_trees} decision trees"
        return f"It predicts by averaging every pruning of {how}, each weighted by its posterior probability."

    def facts(self) -> Iterator[tuple[str, str]]:
        posts = self.forest.posteriors
        n_nodes = sum(post.tree.n_nodes for post in posts)
        yield "Log evidence", f"{short_number(self.log_evidence, 8)} nats"
        yield "Averaged over", f"every pruning of {number_of(len(posts), 'tree')} ({n_nodes:,} nodes)"
        yield (
            "Expected leaves",
            short_number(float(np.mean([post.expected_leaves() for post in posts])), 4) + (" a tree"),
        )
