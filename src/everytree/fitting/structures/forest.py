"""A forest: many trees, each grown on a part of the rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.checks import resolve_n_jobs
from everytree.base.progress import Progress
from everytree.families.base import NativeFamily
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.held_out.scores import NoScores
from everytree.fitting.held_out.unseen import LEAST_PROB
from everytree.fitting.structures.growing import grow_trees
from everytree.fitting.structures.grown import GrownStructure
from everytree.fitting.structures.origin import Origin, digest_with_groups
from everytree.fitting.targets.target import GrowthTarget, Target
from everytree.posterior.counts import count
from everytree.posterior.rows import Rows
from everytree.structure.growers import Growth
from everytree.structure.grown import Grown
from everytree.tables.schema import Schema
from everytree.trees.metatree import MetaTree

LONG_TABLE = 10_000
"""Rows above which leaves of noisy numbers are wider."""

ROWS_OF_LEAF_OF_NOISE = 2
"""Rows of the smallest of these leaves."""

N_FIRST_TREES = 2
"""Trees that show how noisy targets are, one of each recipe."""

NOISY = 0.1
"""Share of the variance that single trees miss above which targets are noisy. Of noise, single rows as leaves miss
twice as much as there is."""

N_COMPARING_TREES = 30
"""Trees of the forests by which families are compared."""

MOST_COMPARING_ROWS = 4000
"""Maximum number of rows that they are grown on."""

MOST_SCORED = 200
"""Maximum number of rows by which they are compared."""

MIN_ERRORS_OF_FAMILY = 1.0
"""Standard errors by which a family must be better than the first, so that chance seldom decides."""

TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class EarlierTrees:
    """The trees of an earlier fit to the same rows, which are kept."""

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
    """Many trees, each grown on a part of the rows."""

    growth: Growth  # how; the criterion included
    predict_out_of_bag: bool = False  # whether every row is predicted by the trees that were not grown on it
    earlier: EarlierTrees | None = None  # the first of the trees, where they are there already
    # Whether trees of noisy numbers have leaves of no less than `ROWS_OF_LEAF_OF_NOISE` rows where tables are long. The
    # first trees, which show how noisy they are, have not.
    widens_leaves: bool = False

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
        growth, widens = self.growth, self._may_widen(rows, target)
        with Progress("growing", len(seeds) - len(grown), bool(settings.verbose)) as progress:
            for upto in (min(N_FIRST_TREES, len(seeds)), len(seeds)) if widens else (len(seeds),):
                if len(grown) >= N_FIRST_TREES and widens and is_noise(grown[:N_FIRST_TREES], rows, target):
                    growth = replace(growth, min_samples_leaf=ROWS_OF_LEAF_OF_NOISE)
                more = grow_trees(rows, target, schema, settings, seeds[:upto], progress, growth, first=len(grown))
                grown = [*grown, *more]
        return grown, grown

    def _may_widen(self, rows: Rows, target: GrowthTarget) -> bool:
        """Whether leaves are widened where targets are noisy."""
        return (
            self.widens_leaves
            and len(rows) > LONG_TABLE
            and isinstance(self.growth.grower, str)
            and isinstance(target, Target)
            and not target.grow_on(rows).is_classification
        )


def is_noise(grown: Sequence[Grown], rows: Rows, target: GrowthTarget) -> bool:
    """Whether trees miss more than a share of the variance of the rows that they were not grown on."""
    grow_on = target.grow_on(rows)
    y = np.asarray(grow_on.y, dtype=np.float64)
    weight = np.ones(len(rows)) if grow_on.weight is None else np.asarray(grow_on.weight, dtype=np.float64)
    missed = total = 0.0
    for one in grown:
        ends, own = one.tree.route(rows.codes), one.in_bag
        of_node, sums = (np.bincount(ends[own], each[own], one.tree.n_nodes) for each in (weight, weight * y))
        new = ~own & (of_node[ends] > 0.0)
        missed += float((weight[new] * (y[new] - sums[ends[new]] / of_node[ends[new]]) ** 2).sum())
        total += float((weight[new] * (y[new] - sums.sum() / max(of_node.sum(), TINY)) ** 2).sum())
    return missed > NOISY * total


# ---- family="auto" ---------------------------------------------------------------------------------------------------


def with_family(target: Target, rows: Rows, schema: Schema, settings: Settings) -> Target:
    """Return the target with the best of the families that `family="auto"` may take: by the score of rows left out.

    A forest is grown for each family, and forgotten. The first family, the plainest, is kept unless another is better
    by more than one standard error of the difference over the rows that both predict.
    """
    candidates = target.candidates(rows)
    if len(candidates) == 1:
        return candidates[0]
    if len(rows) > MOST_COMPARING_ROWS:
        rows = rows.at(np.sort(np.random.default_rng(0).choice(len(rows), MOST_COMPARING_ROWS, replace=False)))
    structure = ForestStructure(N_COMPARING_TREES, 0, "uniform", True, Growth())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is forgotten needs no advice
        scores = [_scores_of_family(structure, one, rows, schema, settings) for one in candidates]
    known = reduce(np.logical_and, map(np.isfinite, scores))
    if not known.any():
        return candidates[0]
    weight = np.ones(len(rows)) if rows.weight is None else rows.weight
    means = [float(np.average(each[known], weights=weight[known])) for each in scores]
    best = int(np.argmin(means))
    lead = (scores[0] - scores[best])[known]
    error = float(np.std(lead) / np.sqrt(len(lead)))
    return candidates[best] if means[0] - means[best] > MIN_ERRORS_OF_FAMILY * error else candidates[0]


def _scores_of_family(
    structure: ForestStructure, target: Target, rows: Rows, schema: Schema, settings: Settings
) -> FloatArray:
    """(n_rows,) scores of rows by the trees that were not grown on them, small ones are better; NaN of other rows.

    Of whole numbers minus the log probability to round to the target, of others the CRPS: both compare distributions
    with densities and those with probabilities.
    """
    scores = np.full(len(rows), np.nan)
    learnt = structure.fit(rows, target, schema, settings)
    if isinstance(learnt.unseen, NoScores):
        return scores
    unseen = learnt.unseen()
    some, dist = unseen.numbers[:MOST_SCORED], unseen.predicted[:MOST_SCORED]
    y = np.asarray(rows.y[some], dtype=np.float64)
    if (rows.y == np.floor(rows.y)).all():
        scores[some] = -np.log(np.maximum(dist.cdf(y + 0.5) - dist.cdf(y - 0.5), LEAST_PROB))
    else:
        scores[some] = dist.crps(y)
    return scores
