"""A forest: many trees, each grown on a part of the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.checks import resolve_n_jobs
from everytree.base.progress import Progress
from everytree.families.base import NativeFamily
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.structures.growing import grow_trees
from everytree.fitting.structures.grown import GrownStructure
from everytree.fitting.structures.origin import Origin, digest_with_groups
from everytree.fitting.targets.target import GrowthTarget
from everytree.posterior.counts import count
from everytree.posterior.rows import Rows
from everytree.structure.growers import Growth
from everytree.structure.grown import Grown
from everytree.tables.schema import Schema
from everytree.trees.metatree import MetaTree


@dataclass(frozen=True)
class EarlierTrees:
    """The trees of an earlier fit to the same rows, which are kept.

    Attributes
    ----------
    schema : Schema
    trees : sequence of MetaTree
    origin : Origin
    """

    schema: Schema
    trees: Sequence[MetaTree]
    origin: Origin

    def grown(self, rows: Rows, family: NativeFamily | None, n_jobs: int) -> list[Grown]:
        """The structures, with their statistics where there is a family; other rows are refused."""
        if digest_with_groups(rows) != self.origin.rows:
            raise ValueError(
                "warm_start=True keeps the trees of the last fit, but X, y, sample_weight or groups are not those of "
                "that fit. Set warm_start=False to fit other rows, or add rows with partial_fit"
            )
        counted: Sequence[FloatArray | None] = [None] * len(self.trees)
        if family is not None:
            counted = count(self.trees, family, self.schema.n_codes, rows, n_jobs).statistics
        return [
            Grown(tree, draw.times(len(rows), rows.group) > 0, statistics, draw)
            for tree, draw, statistics in zip(self.trees, self.origin.draws, counted, strict=True)
        ]


@dataclass(frozen=True)
class ForestStructure(GrownStructure):
    """Many trees, each grown on a part of the rows.

    Attributes
    ----------
    growth : Growth
        How; the criterion included.
    predict_out_of_bag : bool
        Whether every row is predicted by the trees that were not grown on it.
    earlier : EarlierTrees, optional
        The first of the trees, where they are there already.
    """

    growth: Growth
    predict_out_of_bag: bool = False
    earlier: EarlierTrees | None = None

    def schema(
        self, given: GivenRows, target: GrowthTarget, y: NDArray[Any], weight: FloatArray | None, settings: Settings
    ) -> Schema:
        return super().schema(given, target, y, weight, settings) if self.earlier is None else self.earlier.schema

    def kept_and_judged(
        self, rows: Rows, target: GrowthTarget, schema: Schema, settings: Settings, seeds: list[int]
    ) -> tuple[list[Grown], list[Grown]]:
        grown: list[Grown] = []
        if self.earlier is not None:
            grown = self.earlier.grown(rows, target.counted_by(rows), resolve_n_jobs(settings.n_jobs))
        with Progress("growing", len(seeds) - len(grown), bool(settings.verbose)) as progress:
            grown = [
                *grown, *grow_trees(rows, target, schema, settings, seeds, progress, self.growth, first=len(grown))
            ]  # fmt: skip
        return grown, grown
