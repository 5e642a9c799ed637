"""The trees of another library's model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.structures.grown import GrownStructure
from everytree.fitting.targets.target import GrowthTarget
from everytree.posterior.rows import Rows
from everytree.structure.grown import Grown
from everytree.structure.importers.model import Imported
from everytree.tables.schema import Schema


@dataclass(frozen=True)
class ImportedStructure(GrownStructure):
    """The trees of another library's model, with its columns."""

    imported: Imported

    def schema(
        self, given: GivenRows, target: GrowthTarget, y: NDArray[Any], weight: FloatArray | None, settings: Settings
    ) -> Schema:
        return self.imported.schema

    def kept_and_judged(
        self, rows: Rows, target: GrowthTarget, schema: Schema, settings: Settings, seeds: list[int]
    ) -> tuple[list[Grown], list[Grown]]:
        kept = [Grown(tree, np.ones(len(rows), dtype=bool)) for tree in self.imported.trees]
        return kept, kept
