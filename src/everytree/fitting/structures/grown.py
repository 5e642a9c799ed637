"""Structures whose trees are there before priors are chosen."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from everytree.base.arrays import FloatArray
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.structures.learning import learn_forest
from everytree.fitting.structures.origin import GrownTrees, Weights
from everytree.fitting.structures.structure import Learnt, fit_schema
from everytree.fitting.targets.target import GrowthTarget, Target
from everytree.posterior.rows import Rows
from everytree.structure.grown import Grown
from everytree.tables.repeats import row_groups
from everytree.tables.schema import Schema


@dataclass(frozen=True)
class GrownStructure(ABC):
    """Meta-trees that are there before their priors are chosen.

    Attributes
    ----------
    n_structures : int
        Trees that are grown, those among them that only judge priors too.
    random_state : int, RandomState or None
    weights : str
        Of the trees; see `MetaForestClassifier`.
    sharpen : bool
        Whether the average of the trees is sharpened.
    """

    n_structures: int
    random_state: Any
    weights: Weights
    sharpen: bool

    def schema(
        self, given: GivenRows, target: GrowthTarget, y: NDArray[Any], weight: FloatArray | None, settings: Settings
    ) -> Schema:
        return fit_schema(given, target, y, weight, settings, max_bins=settings.max_bins)

    def grow(self, rows: Rows, target: GrowthTarget, schema: Schema, settings: Settings) -> GrownTrees:
        rows = replace(rows, group=row_groups(rows.codes, rows.group))
        random = check_random_state(self.random_state)
        seeds = random.randint(np.iinfo(np.int32).max, size=self.n_structures).tolist()
        rng = np.random.default_rng(random.randint(np.iinfo(np.int32).max))
        kept, judged = self.kept_and_judged(rows, target, schema, settings, seeds)
        return GrownTrees(rows, kept, judged, self.weights, self.sharpen, rng)

    def fit(self, rows: Rows, target: Target, schema: Schema, settings: Settings) -> Learnt:
        return learn_forest(self.grow(rows, target, schema, settings), target, schema, settings)

    @abstractmethod
    def kept_and_judged(
        self, rows: Rows, target: GrowthTarget, schema: Schema, settings: Settings, seeds: list[int]
    ) -> tuple[list[Grown], list[Grown]]:
        """Structures to keep, and those by which priors are chosen (the same, or stand-ins)."""
