"""Centres of numbers: by boosted trees, or by these and a forest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.errors import ArgumentError
from everytree.boosting.lines import LinedTrees
from everytree.boosting.trees import AdditiveTrees
from everytree.explaining.contributions import Contributions, log_of
from everytree.explaining.tree_sums import Asked, additive_sum, forest_sum, lined_sum
from everytree.families.link import Link
from everytree.models.model import Scale
from everytree.posterior.forest import Forest


@dataclass(frozen=True)
class Centres:
    """Model of the centres of numbers, the location about which targets are distributed."""

    additive: AdditiveTrees
    link: Link
    forest: Forest | None = None  # of the targets, or of their logarithms
    weight: float = 1.0  # of the boosted trees; the forest has the rest
    lined: LinedTrees | None = None  # boosted trees whose nodes are lines; their scores add to those of `additive`

    def scores(self, X: NDArray[np.integer], *, n_jobs: int | None = None) -> FloatArray:
        """(n_rows, 1) centre of each row."""
        by_boosting = self.additive.scores(X, n_jobs=n_jobs)
        if self.lined is not None:
            by_boosting = by_boosting + self.lined.scores(X, n_jobs=n_jobs)
        if self.forest is None:
            return by_boosting
        by_forest = self.link.centre_of(self.forest.moments(X, n_jobs=n_jobs)[0])[:, None]
        return mix(np.where(np.isfinite(by_forest), by_forest, by_boosting), by_boosting, self.weight)

    def contributions(self, asked: Asked, scale: Scale) -> Contributions:
        """Contributions to the centre of each row."""
        by_boosting = additive_sum(asked, self.additive)
        if self.lined is not None:
            by_boosting = by_boosting.plus(lined_sum(asked, self.lined))
        if self.forest is None:
            return by_boosting
        mean = forest_sum(asked, self.forest)
        if self.has_logs_of_means:
            if scale == "trees":
                raise no_sum_over_trees("means")
            mean = log_of(mean).times(self.link.sign)
        return mean.times(1.0 - self.weight).plus(by_boosting.times(self.weight))

    @property
    def has_logs_of_means(self) -> bool:
        """Whether logarithms of the forest's means are mixed, which are no sums over its trees."""
        return self.forest is not None and bool(self.link.sign) and not self.link.averages_logs


def mix(by_forest: FloatArray, by_boosting: FloatArray, weight: float) -> FloatArray:
    """Return the weighted mean of both."""
    return np.asarray((1.0 - weight) * by_forest + weight * by_boosting)


def no_sum_over_trees(what: str) -> ArgumentError:
    return ArgumentError(
        "scale", f"is 'trees', but this ensemble averages logarithms of {what}, and that of a forest is not a sum over "
        "its trees; pass scale='prediction'",
    )  # fmt: skip
