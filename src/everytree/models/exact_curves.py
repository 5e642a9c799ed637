"""The exact sum over every tree and every choice of splits, of survival curves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.words import short_number
from everytree.explaining.contributions import Contributions, complete
from everytree.explaining.tree_sums import Asked
from everytree.families.base import NativeFamily
from everytree.models.exact import ExactModel
from everytree.models.model import Parts, Scale, UpdatableModel
from everytree.posterior.posterior import Posterior
from everytree.predictive.curves import CurvePredictive
from everytree.survival.baseline import Baseline
from everytree.survival.curves import PER_CELL, curves_at
from everytree.survival.rows import positions_of_rows
from everytree.tables.code_names import CodeWords
from everytree.tables.schema import Schema


@dataclass
class ExactCurves(UpdatableModel):
    """Every tree and every choice of splits, whose leaves count positions on a baseline hazard."""

    exact: ExactModel  # of positions
    hazard: Baseline

    kind = "exact curves"

    @property
    def baseline(self) -> Baseline:
        return self.hazard

    @property
    def family(self) -> NativeFamily:
        return self.exact.family

    @property
    def n_rows(self) -> int:
        return self.exact.n_rows

    @property
    def times(self) -> FloatArray:
        """The grid of the curves; the last is where they end."""
        return self.hazard.times

    # ---- predictions ------------------------------------------------------------------------------------------------

    def predictive(self, X: NDArray[Any], *, n_jobs: int | None = None, **row_data: Any) -> CurvePredictive:
        del n_jobs, row_data  # the posterior has its own; of the future, none is known
        sums = self.exact.posterior.sums_of_leaves(self.exact.read(X), self.at_points)
        return self._on_grid(sums[:, 1:] / sums[:, :1])

    def at_points(self, statistics: FloatArray) -> FloatArray:
        """(n_leaves, 1 + n_points) of leaves 1, and survival at points of the cells."""
        family: Any = self.family
        return np.column_stack([np.ones(len(statistics)), family.curves(statistics, PER_CELL)])

    def restricted_means(self, statistics: FloatArray) -> FloatArray:
        """(n_leaves, 2) of leaves 1, and the mean of times that are cut off at the end."""
        curves = self._on_grid(self.at_points(statistics)[:, 1:])
        return np.column_stack([np.ones(len(statistics)), curves.mean()])

    def _on_grid(self, at_points: FloatArray) -> CurvePredictive:
        return CurvePredictive(self.family, self.times, curves_at(self.hazard, at_points, self.times))

    def moments(self, X: NDArray[Any], *, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        found = self.predictive(X, n_jobs=n_jobs)
        return found.mean(), found.variance()

    # ---- more rows --------------------------------------------------------------------------------------------------

    @property
    def log_evidence(self) -> float:
        """Of positions on the scale of the baseline."""
        return self.exact.log_evidence

    def update(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        sample_weight: FloatArray | None = None,
        *,
        n_jobs: int | None = None,
        **row_data: Any,
    ) -> Self:
        positions, columns = positions_of_rows(self.hazard, y, sample_weight, row_data)
        self.exact.update(X, positions, sample_weight, n_jobs=n_jobs, **columns)
        return self

    def check_mergeable(self, other: Self) -> None:
        self.hazard.check_same(other.hazard)
        self.exact.check_mergeable(other.exact)

    def merge(self, other: Self) -> Self:
        self.exact.merge(other.exact)
        return self

    def take_away(self, other: Self) -> Self:
        self.exact.take_away(other.exact)
        return self

    def without_rows(self) -> ExactCurves:
        return ExactCurves(self.exact.without_rows(), self.hazard)

    # ---- explanations -----------------------------------------------------------------------------------------------

    def feature_importances(self) -> FloatArray:
        return self.exact.feature_importances()

    @property
    def is_sum_of_trees(self) -> bool:
        return False

    def contributions(self, asked: Asked, scale: Scale) -> Contributions:
        """Contributions to the mean over trees of the restricted mean; that of the mean curve is nearly the same."""
        found = self.exact.contributions_of(asked, self.restricted_means)
        if scale == "trees":
            return found
        base = found.base if asked.mean is None else asked.mean
        means = self.means(asked.codes, n_jobs=asked.n_jobs)[:, None]
        return complete(found.starting_at(base, self.importances_of_inputs(asked)), means)

    # ---- parts and words --------------------------------------------------------------------------------------------

    def words_of_codes(self, schema: Schema) -> list[CodeWords]:
        return self.exact.words_of_codes(schema)

    @property
    def parts(self) -> Parts:
        return self.exact.parts

    def pictured(self) -> Posterior:
        return self.exact.pictured()

    @property
    def size(self) -> str:
        return self.exact.size

    @property
    def sentence(self) -> str:
        return self.exact.sentence

    def facts(self) -> Iterator[tuple[str, str]]:
        yield from self.exact.facts()
        yield "Curves end at", short_number(float(self.times[-1]), 6)
