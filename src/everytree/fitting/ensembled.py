"""A forest and boosted trees together, mixed by how well each predicts rows that it has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from everytree.base.arrays import FloatArray
from everytree.boosting.classes import BoostedClasses
from everytree.boosting.mixed import LEAST, MixedCentres, MixedClasses, mix, mix_probs
from everytree.boosting.numbers import AboutCentre
from everytree.fitting.boosted import BoostStructure, numbers_about
from everytree.fitting.fit import GivenRows, Learnt, Settings, learn_forest
from everytree.fitting.sharpness import best_sharpness
from everytree.fitting.structures import ForestStructure
from everytree.fitting.targets import ClassTarget, NumberTarget, Target
from everytree.fitting.unseen import UnseenRows
from everytree.posterior.forest import Forest
from everytree.posterior.rows import Rows
from everytree.tables.schema import Schema

PRIOR_ROWS = 1.0
"""Rows that the prior of the weight is worth: as if half of them were predicted by the forest, half by boosting."""


@dataclass(frozen=True)
class EnsembleStructure:
    """Both structures, for the same rows.

    Attributes
    ----------
    forest : ForestStructure
    boost : BoostStructure
    """

    forest: ForestStructure
    boost: BoostStructure

    def schema(
        self, given: GivenRows, target: Target, y: NDArray[Any], weight: FloatArray | None, settings: Settings
    ) -> Schema:
        return self.boost.schema(given, target, y, weight, settings)

    def grow(self, rows: Rows, target: Target, schema: Schema, settings: Settings) -> Learnt:
        if isinstance(target, ClassTarget):
            return self._classes(rows, target, schema, settings)
        assert isinstance(target, NumberTarget)
        return self._numbers(rows, target, schema, settings)

    def _classes(self, rows: Rows, target: ClassTarget, schema: Schema, settings: Settings) -> Learnt:
        forest, by_forest = self._forest(rows, target, schema, settings)
        learnt = self.boost.grow(rows, target, schema, settings)
        boosted = learnt.forest
        assert isinstance(boosted, BoostedClasses)
        assert learnt.out_of_bag is not None
        by_boosting = learnt.out_of_bag.prediction
        known, every = ~np.isnan(by_forest[:, 0]), np.arange(len(rows))
        of_row = np.ones(len(rows)) if rows.weight is None else rows.weight

        def loss(weight: float) -> float:
            probs = mix_probs(by_forest, by_boosting, weight)[every, rows.y]
            return -float(of_row[known] @ np.log(np.maximum(probs[known], LEAST)))

        weight = best_weight(loss) if known.any() else 0.5
        honest = mix_probs(by_forest, by_boosting, weight)
        sharpness = 1.0
        if known.any():
            _, sharpness = best_sharpness(honest[known], rows.y[known], of_row[known], self.boost.sharpen)
        mixed = MixedClasses(forest, boosted, weight, sharpness)
        return Learnt(mixed, unseen=lambda: UnseenRows.of_probs(mix_probs(by_forest, by_boosting, weight, sharpness)))

    def _numbers(self, rows: Rows, target: NumberTarget, schema: Schema, settings: Settings) -> Learnt:
        about = AboutCentre(target.family)
        own = replace(target, family="normal") if target.family == "lognormal" else target
        on_scale = replace(rows, y=np.log(rows.y)) if target.family == "lognormal" else rows
        forest, mean = self._forest(on_scale, own, schema, settings)
        boosted = self.boost.centres(rows, about, schema, settings)
        by_forest, likelihood = about.centre_of_mean(mean), about.likelihood(rows)
        by_boosting = boosted.left_out[:, 0]
        by_forest = np.where(np.isfinite(by_forest), by_forest, by_boosting)
        of_row = np.ones(len(rows)) if rows.weight is None else rows.weight
        errors = likelihood.losses(by_boosting[:, None])
        size = 2.0 * float(np.average(errors, weights=of_row)) if likelihood.loss == "squared" else 1.0

        def loss(weight: float) -> float:
            mixed = mix(by_forest, by_boosting, weight)[:, None]
            return float(of_row @ likelihood.losses(mixed)) / max(size, 1e-300)

        weight = best_weight(loss)
        centres = MixedCentres(forest, boosted.trees, weight, about)
        honest = mix(by_forest, by_boosting, weight)
        return numbers_about(rows, honest, centres, about, boosted, target, schema, settings, self.boost.random_state)

    def _forest(self, rows: Rows, target: Target, schema: Schema, settings: Settings) -> tuple[Forest, FloatArray]:
        """The forest, and what it says of rows that its trees have not seen."""
        structure = replace(self.forest, predict_out_of_bag=True)
        learnt = learn_forest(structure.grow(rows, target, schema, settings), target, schema, settings)
        assert isinstance(learnt.forest, Forest)
        assert learnt.out_of_bag is not None
        return learnt.forest, learnt.out_of_bag.prediction


def best_weight(loss: Callable[[float], float]) -> float:
    """The weight of boosting in (0, 1) with the smallest total loss, drawn to the middle by a weak prior."""

    def penalised(weight: float) -> float:
        return loss(weight) - 0.5 * PRIOR_ROWS * float(np.log(weight) + np.log1p(-weight))

    return float(minimize_scalar(penalised, bounds=(1e-6, 1.0 - 1e-6), method="bounded", options={"xatol": 1e-4}).x)
