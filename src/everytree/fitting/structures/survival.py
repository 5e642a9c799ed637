"""Trees for survival curves: relative hazards first, then a baseline, trees and leaves for each group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from everytree.base.arrays import FloatArray
from everytree.base.checks import resolve_n_jobs
from everytree.base.progress import Progress
from everytree.families.link import LogRateOfCounts
from everytree.families.survival import Survival
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.held_out.curves import JudgedTrees, choose_curves
from everytree.fitting.held_out.held_out import held_out_rows, is_unseen
from everytree.fitting.held_out.scores import GROWN_ON_ALL, NoScores
from everytree.fitting.held_out.unseen import UnseenRows
from everytree.fitting.structures.boost import BoostStructure
from everytree.fitting.structures.structure import Learnt, fit_schema
from everytree.fitting.targets.numbers import NumberTarget
from everytree.fitting.targets.target import Target
from everytree.models.offsets import Offset, OffsetOfColumns, OffsetOfTrees
from everytree.models.survival import Member, SurvivalModel
from everytree.posterior.counts import count
from everytree.posterior.forest import Forest
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.predictive.curves import CurvePredictive
from everytree.structure.grow_on import Hazards
from everytree.structure.growers import ColumnsOf, Growth, grow
from everytree.structure.grown import Grown
from everytree.survival.baseline import Baseline, knots_of, shape_without
from everytree.survival.offset import fit_offset, terms_of, within_limits
from everytree.survival.rows import TimesOfRows, times_of_rows
from everytree.tables.either import columns_of_one_tree, drawn_columns
from everytree.tables.repeats import row_groups
from everytree.tables.schema import Schema

Relative = Literal["none", "lines", "hinges", "boosted"]
"""What the relative hazards of a group of trees are made of."""

OF_FOREST: tuple[Relative, ...] = ("none", "lines", "hinges")
OF_BOOSTING: tuple[Relative, ...] = ("boosted",)
N_FOLDS = 5
MIN_LEAF = 5
MAX_JUDGES = 1000
"""Rows by which priors are chosen, at most: a random sample of those that some tree was not grown on."""

GROWN_WITH = 2.0
"""Shape of the prior by whose evidence trees are grown."""


@dataclass(frozen=True)
class SurvivalStructure:
    """Groups of trees, grown by the evidence of one factor a leaf."""

    n_structures: int
    random_state: Any
    growth: Growth
    sharpen: bool
    split_prior: Any
    prior: Mapping[str, Any]
    # whether one tree is grown on all rows, by the best of all splits; priors are then chosen by trees that are each
    # grown without a fifth of them
    is_one_tree: bool = False
    # the relative hazards of each group of trees; of fewer trees the first ones
    groups: tuple[Relative, ...] = OF_FOREST
    boost: BoostStructure | None = None  # by which relative hazards are boosted

    def schema(
        self, given: GivenRows, target: Target, y: NDArray[Any], weight: FloatArray | None, settings: Settings
    ) -> Schema:
        return fit_schema(given, target, y, weight, settings, max_bins=settings.max_bins)

    def fit(self, rows: Rows, target: Target, schema: Schema, settings: Settings) -> Learnt:
        """The model of coded rows."""
        assert isinstance(target, NumberTarget)
        rows = replace(rows, group=row_groups(rows.codes, rows.group))
        times = times_of_rows(rows.y, rows.weight, rows.row_data)
        random = check_random_state(self.random_state)
        rng = np.random.default_rng(random.randint(np.iinfo(np.int32).max))
        knots, jobs = knots_of(times), resolve_n_jobs(settings.n_jobs)
        # Trees of all groups see the same parts of the rows, so that a row that is left out of one is left out of all.
        seeds = random.randint(np.iinfo(np.int32).max, size=self.n_structures + N_FOLDS * self.is_one_tree).tolist()
        groups = self.groups[: self.n_structures]
        sizes = np.diff(np.linspace(0, self.n_structures, len(groups) + 1).round().astype(int))
        fold = _folds(rows, rng)
        with Progress("growing", self.n_structures, bool(settings.verbose)) as progress:
            each = [
                _Group.grow(
                    self, *self._offset(relative, rows, times, target, schema, settings, knots, fold, rng), rows, times,
                    schema, knots, fold, seeds[: n + N_FOLDS * self.is_one_tree], jobs, progress,
                )
                for relative, n in zip(groups, sizes, strict=True)
            ]  # fmt: skip
        candidates = np.flatnonzero(np.all([is_unseen(one.rows, one.judging) for one in each], axis=0))
        scored = rng.permutation(candidates)[:MAX_JUDGES]
        judged = [one.judged(scored, times, jobs) for one in each]
        choice, sharpening, found = choose_curves(
            judged, times, self.prior, self.split_prior, sharpen=self.sharpen, n_jobs=jobs
        )
        members = [one.member(choice.parameters["shape"], choice.split_prior, schema) for one in each]
        unseen: Callable[[], UnseenRows] | NoScores = GROWN_ON_ALL
        if all(one.held.is_honest for one in judged) and len(found.numbers):
            curves = CurvePredictive(choice.family, knots, sharpening.of(found.curves))
            unseen = partial(UnseenRows, found.numbers, curves)
        return Learnt(SurvivalModel(members, sharpening), choice, unseen=unseen)

    def _offset(
        self,
        relative: Relative,
        rows: Rows,
        times: TimesOfRows,
        target: NumberTarget,
        schema: Schema,
        settings: Settings,
        knots: FloatArray,
        fold: NDArray[np.int64],
        rng: np.random.Generator,
    ) -> tuple[Offset | None, FloatArray]:
        """Relative hazards, and those of the rows by other rows."""
        nothing = None, np.zeros(len(rows))
        if relative == "none" or times.is_event.sum() < N_FOLDS:
            return nothing
        if relative == "boosted":
            assert self.boost is not None, "boosted relative hazards come with how they are boosted"
            return _boosted(self.boost, rows, times, schema, settings, knots)
        terms = terms_of(rows.codes, schema.n_codes, target.code_numbers, times.weight, hinges=relative == "hinges")
        if not terms.tables:
            return nothing
        values, centre, of_rows = fit_offset(terms, rows.codes, times, fold, rng)
        return OffsetOfColumns(terms.first, values, centre), of_rows


@dataclass(frozen=True)
class _Group:
    """Trees that share a baseline."""

    baseline: Baseline
    offset: Offset | None
    rows: Rows
    family: Survival
    kept: list[Grown]
    judging: list[Grown]
    statistics: Sequence[FloatArray]
    of_judging: Sequence[FloatArray]

    @classmethod
    def grow(
        cls,
        how: SurvivalStructure,
        offset: Offset | None,
        log_hazard: FloatArray,
        rows: Rows,
        times: TimesOfRows,
        schema: Schema,
        knots: FloatArray,
        fold: NDArray[np.int64],
        seeds: list[int],
        n_jobs: int,
        progress: Progress,
    ) -> _Group:
        baseline = Baseline.of(times, log_hazard, knots)
        positions = {
            "censored": 1.0 - times.is_event, "entry": baseline.position(times.entry), "log_hazard": log_hazard
        }  # fmt: skip
        own = replace(rows, y=baseline.position(times.time), row_data=positions)
        family = Survival(baseline.lengths)
        grow_on = Hazards(Survival((1.0,), GROWN_WITH), _one_cell(family, own))
        one = partial(_grow, grow_on, how.growth, schema, n_jobs=n_jobs, progress=progress, whole=how.is_one_tree)
        if not how.is_one_tree:
            kept = one(own, np.arange(len(own)), seeds)
            judging = kept
        else:
            kept = one(own, np.arange(len(own)), seeds[:1])
            judging = []
            if fold.max(initial=0) + 1 >= N_FOLDS:
                judging = [one(own, np.flatnonzero(fold != k), seeds[k + 1 : k + 2])[0] for k in range(N_FOLDS)]
            judging = judging or kept
        statistics = count([tree.tree for tree in kept], family, schema.n_codes, own, n_jobs).statistics
        of_judging = statistics
        if judging is not kept:
            of_judging = [
                count([tree.tree], family, schema.n_codes, own.at(tree.in_bag), n_jobs).statistics[0]
                for tree in judging
            ]
        return cls(baseline, offset, own, family, kept, judging, statistics, of_judging)

    def judged(self, scored: NDArray[np.int64], times: TimesOfRows, n_jobs: int) -> JudgedTrees:
        """The trees with rows that they may judge."""
        held = held_out_rows(
            self.rows, self.judging, self.of_judging, scored, n_jobs, is_counted=self.judging is self.kept
        )
        log_hazard = self.rows.row_data["log_hazard"]
        group = np.arange(len(self.rows)) if self.rows.group is None else self.rows.group
        assert held.numbers is not None, "rows of a table have numbers"
        change = shape_without(times, log_hazard, self.baseline.times, group, held.numbers[: held.n_scored])
        return JudgedTrees(self.baseline, self.family, held, log_hazard, change)

    def member(self, shape: float, split_prior: Any, schema: Schema) -> Member:
        """The trees with the statistics of all rows."""
        family, n_rows = replace(self.family, shape=shape), len(self.rows)
        posteriors = [
            Posterior.from_statistics(one.tree, family, split_prior, statistics, n_rows)
            for one, statistics in zip(self.kept, self.statistics, strict=True)
        ]
        return Member(self.baseline, self.offset, Forest(posteriors, n_codes=schema.n_codes))


def _folds(rows: Rows, rng: np.random.Generator) -> NDArray[np.int64]:
    """(n_rows,) one of five folds; rows of a group are in one. Fewer folds where there are fewer groups."""
    if rows.group is None:
        return rng.permutation(len(rows)) % N_FOLDS
    return (rng.permutation(int(rows.group.max()) + 1) % N_FOLDS)[rows.group]


def _boosted(
    boost: BoostStructure, rows: Rows, times: TimesOfRows, schema: Schema, settings: Settings, knots: FloatArray
) -> tuple[OffsetOfTrees, FloatArray]:
    """Proportional hazards by boosting: events are counts, whose exposure is the hazard that all rows accumulate."""
    baseline = Baseline.of(times, np.zeros(len(rows)), knots)
    exposure = baseline.hazard_between(times.entry, times.time)
    counts = replace(rows, y=times.is_event.astype(np.float64), row_data={"exposure": np.maximum(exposure, 1e-9)})
    boosted = boost.centres(counts, LogRateOfCounts(), schema, settings)
    return OffsetOfTrees(boosted.trees, boosted.chains), within_limits(np.nan_to_num(boosted.left_out))


def _one_cell(family: Survival, rows: Rows) -> FloatArray:
    """(n_rows, 3) the statistics of rows in leaves with one factor for all times."""
    each = family.statistics(rows.y, rows.weight, **rows.row_data)
    events, exposed = each[:, : family.size].sum(axis=1), each[:, family.size : -1] @ np.asarray(family.lengths)
    return np.ascontiguousarray(np.column_stack([events, exposed, np.zeros(len(rows))]))


def _grow(
    grow_on: Hazards,
    growth: Growth,
    schema: Schema,
    rows: Rows,
    some: NDArray[np.int64],
    seeds: list[int],
    *,
    n_jobs: int,
    progress: Progress,
    whole: bool,
) -> list[Grown]:
    """Trees grown on some of the rows, or each on a part of these."""
    if growth.min_samples_leaf == 1:
        growth = replace(growth, min_samples_leaf=min(MIN_LEAF, max(len(some) // 4, 1)))
    either = schema.either(len(rows))
    columns: ColumnsOf = partial(drawn_columns, schema.n_features, either)
    if whole:
        growth = replace(growth, grower="random_forest", max_features=None, subsample=1.0, bootstrap=False)
        fixed = columns_of_one_tree(schema.n_features, either)
        columns = lambda seed: fixed  # noqa: E731
    group = None if rows.group is None else np.unique(rows.group[some], return_inverse=True)[1].astype(np.int64)
    grown = grow(
        rows.codes[some], grow_on.at(some), growth, len(seeds), n_codes=schema.n_codes, has_missing=schema.has_missing,
        seeds=seeds, columns=columns, group=group, n_jobs=n_jobs, progress=progress.step,
    )  # fmt: skip
    if len(some) == len(rows):
        return grown
    in_bag = np.zeros(len(rows), dtype=bool)
    in_bag[some] = True
    return [Grown(one.tree, in_bag) for one in grown]
