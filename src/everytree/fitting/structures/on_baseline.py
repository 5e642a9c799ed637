"""Structures whose leaves count positions on the hazard of all rows, where every row has the same relative hazard."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.structures.structure import Learnt, Structure
from everytree.fitting.targets.numbers import NumberTarget
from everytree.fitting.targets.target import Target
from everytree.models.exact import ExactModel
from everytree.models.exact_curves import ExactCurves
from everytree.models.model import Model
from everytree.models.survival import Member, SurvivalModel
from everytree.posterior.rows import Rows
from everytree.survival.baseline import Baseline, knots_of
from everytree.survival.curves import Sharpening
from everytree.survival.rows import positions_of_rows, times_of_rows
from everytree.tables.schema import Schema


@dataclass(frozen=True)
class OnBaseline:
    """Another structure, fitted to the positions of times on their baseline."""

    structure: Structure

    def schema(
        self, given: GivenRows, target: Target, y: NDArray[Any], weight: FloatArray | None, settings: Settings
    ) -> Schema:
        return self.structure.schema(given, target, y, weight, settings)

    def fit(self, rows: Rows, target: Target, schema: Schema, settings: Settings) -> Learnt:
        assert isinstance(target, NumberTarget)
        times = times_of_rows(rows.y, rows.weight, rows.row_data)
        baseline = Baseline.of(times, np.zeros(len(rows)), knots_of(times))
        positions, columns = positions_of_rows(baseline, rows.y, rows.weight, rows.row_data)
        own = replace(rows, y=positions, row_data=columns)
        learnt = self.structure.fit(own, replace(target, learnt=baseline.lengths), schema, settings)
        return learnt._replace(model=_curves(learnt.model, baseline))


def _curves(model: Any, baseline: Baseline) -> Model:
    """The survival curves of a model of positions."""
    if model.parts.exact is not None:
        exact: ExactModel = model
        return ExactCurves(exact, baseline)
    member = Member(baseline, None, model.parts.averaged)
    return SurvivalModel([member], Sharpening(1.0, np.zeros(len(baseline.times))))
