"""Structures: many grown trees, one grown tree, the trees of another library's model, or the sum over all trees."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from everytree.base.arrays import FloatArray
from everytree.base.checks import resolve_n_jobs
from everytree.base.progress import Progress
from everytree.exact.posterior import ExactPosterior
from everytree.exact.regions import MAX_CATEGORIES, Kind
from everytree.families.base import NativeFamily
from everytree.fitting.fit import (
    GivenRows,
    GrownTrees,
    Learnt,
    Origin,
    Settings,
    Weights,
    code_first_rows,
    digest_with_groups,
    learn_forest,
)
from everytree.fitting.grown_tree import with_statistics
from everytree.fitting.scores import NoScores
from everytree.fitting.several import SeveralTargets
from everytree.fitting.targets import GrowthTarget, NumberTarget, Target
from everytree.models.exact import ExactModel
from everytree.posterior.counts import count
from everytree.posterior.rows import Rows
from everytree.structure.cut_choice import with_few_cuts
from everytree.structure.given_forest import grow_as_given, tree_for_several
from everytree.structure.grow_on import Evidence
from everytree.structure.growers import ColumnsOf, Growth, grow
from everytree.structure.grown import Grown
from everytree.structure.importers.model import Imported
from everytree.tables.column import missing_code
from everytree.tables.either import columns_of_one_tree, drawn_columns
from everytree.tables.repeats import row_groups
from everytree.tables.schema import Schema
from everytree.trees.metatree import MetaTree

N_FOLDS = 5

ENOUGH_ROWS = 10_000
"""Rows that say enough about priors: of long tables, not every fifth is left out in turn."""


def fit_schema(
    given: GivenRows, target: GrowthTarget, y: NDArray[Any], weight: FloatArray | None, settings: Settings,
    **options: Any,
) -> Schema:  # fmt: skip
    """Columns, cut points and categories of the first rows."""
    return Schema.fit(
        given.X, target.order_by(y), sample_weight=weight, categorical_features=settings.categorical_features,
        n_jobs=settings.n_jobs, owner=settings.owner, **options,
    )  # fmt: skip


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

    @abstractmethod
    def kept_and_judged(
        self, rows: Rows, target: GrowthTarget, schema: Schema, settings: Settings, seeds: list[int]
    ) -> tuple[list[Grown], list[Grown]]:
        """Structures to keep, and those by which priors are chosen (the same, or stand-ins)."""


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

    def grow(self, rows: Rows, target: GrowthTarget, schema: Schema, settings: Settings) -> GrownTrees:
        grown = super().grow(rows, target, schema, settings)
        return replace(grown, predict_out_of_bag=self.predict_out_of_bag)

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


@dataclass(frozen=True)
class TreeStructure(GrownStructure):
    """One tree, grown on all rows; its priors are chosen by trees that are each grown without a fifth of them.

    There are five such trees, or so many that 10,000 rows are left out by one of them. One tree for several targets is
    grown by scikit-learn, whose criterion is the mean over the targets.
    """

    growth: Growth

    def kept_and_judged(
        self, rows: Rows, target: GrowthTarget, schema: Schema, settings: Settings, seeds: list[int]
    ) -> tuple[list[Grown], list[Grown]]:
        group = np.arange(len(rows)) if rows.group is None else rows.group
        n_groups = int(group.max()) + 1
        bags = [np.ones(len(rows), dtype=bool)]
        with Progress("growing", len(seeds), bool(settings.verbose)) as progress:
            if n_groups >= 2 * N_FOLDS:
                fold = np.random.default_rng(seeds[0]).permutation(n_groups)[group] % N_FOLDS
                n_folds = min(N_FOLDS, -(-ENOUGH_ROWS * N_FOLDS // len(rows)))
                bags += [fold != k for k in range(n_folds)]
                progress.step(N_FOLDS - n_folds)
            columns = columns_of_one_tree(schema.n_features, schema.either(len(rows)))
            one = partial(self._grow_one, rows, target, schema, settings, progress, columns)
            with ThreadPoolExecutor(resolve_n_jobs(settings.n_jobs)) as pool:
                kept, *folds = pool.map(one, bags, seeds[: len(bags)])
        return [kept], folds or [kept]

    def _grow_one(
        self, rows: Rows, target: GrowthTarget, schema: Schema, settings: Settings, progress: Progress,
        columns: NDArray[np.int32], in_bag: Any, seed: int,
    ) -> Grown:  # fmt: skip
        growth = replace(self.growth, grower="random_forest", max_features=None, subsample=1.0)
        if isinstance(target, SeveralTargets):
            growth = replace(growth, grower=tree_for_several(growth, target.is_classification))
        (grown,) = grow_trees(
            rows.at(in_bag), target, schema, settings, [seed], progress, growth, columns=lambda seed: columns
        )  # fmt: skip
        return Grown(grown.tree, in_bag, grown.statistics)


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


def grow_trees(
    rows: Rows,
    target: GrowthTarget,
    schema: Schema,
    settings: Settings,
    seeds: list[int],
    progress: Progress,
    growth: Growth,
    *,
    columns: ColumnsOf | None = None,
    first: int = 0,
    step: int = 1,
) -> list[Grown]:
    """Trees grown on the codes, with multiway splits where they win evidence, and with the statistics of all rows.

    Those before the `first` are not grown, and of those after it only every `step`-th. `columns` are those that each
    may split on; where it is not given, codes of the same categories are drawn from.
    """
    if isinstance(target, SeveralTargets) and isinstance(growth.grower, str):
        return _grow_in_turn(rows, target, schema, settings, seeds, progress, growth, first)
    has_missing, n_jobs = np.array([column.has_missing for column in schema.columns]), resolve_n_jobs(settings.n_jobs)
    if not isinstance(growth.grower, str):
        used = columns_of_one_tree(schema.n_features, schema.either(len(rows)))
        return grow_as_given(
            rows.codes, target.grow_on(rows), growth.grower, has_missing, seeds[0], n_jobs, progress.step, used
        )
    family = target.counted_by(rows)
    assert family is not None, "several targets are grown on one by one"
    if growth.criterion == "evidence":
        assert isinstance(target, Target)
        grow_on: Any = evidence_of(*target.evidence_on(rows))
    else:
        grow_on = target.grow_on(rows, growth.criterion)
    return grow(
        rows.codes, grow_on, growth, len(seeds), n_codes=schema.n_codes, has_missing=has_missing, seeds=seeds,
        columns=columns or partial(drawn_columns, schema.n_features, schema.either(len(rows))),
        first=first, step=step, group=rows.group, n_jobs=n_jobs,
        finish=partial(with_statistics, rows, family, schema, growth), progress=progress.step,
    )  # fmt: skip


def _grow_in_turn(
    rows: Rows,
    target: SeveralTargets,
    schema: Schema,
    settings: Settings,
    seeds: list[int],
    progress: Progress,
    growth: Growth,
    first: int,
) -> list[Grown]:
    """Trees for several targets: the first follows the first target, the next one the next, and so on in turn."""
    n_targets = len(target.each)
    grown: dict[int, Grown] = {}
    for place, (own, own_rows) in enumerate(zip(target.each, target.rows_of(rows), strict=True)):
        numbers = range(first + (place - first) % n_targets, len(seeds), n_targets)
        trees = grow_trees(
            own_rows, own, schema, settings, seeds, progress, growth, first=numbers.start, step=n_targets
        )  # fmt: skip
        grown |= zip(numbers, (replace(tree, statistics=None) for tree in trees), strict=True)
    return [grown[number] for number in sorted(grown)]


def evidence_of(rows: Rows, family: NativeFamily) -> Evidence:
    """The rows as the leaf model sees them."""
    return Evidence(family, family.statistics(rows.y, rows.weight, **rows.row_data))


@dataclass(frozen=True)
class ExactStructure:
    """All structures to a depth, none of them grown.

    Attributes
    ----------
    max_depth, max_cuts, split_prior, candidates, truncation, max_regions
        As in `ExactTreeClassifier`.
    """

    max_depth: int
    max_cuts: int
    split_prior: Any
    candidates: Any
    truncation: float
    max_regions: int

    def schema(
        self, given: GivenRows, target: Target, y: NDArray[Any], weight: FloatArray | None, settings: Settings
    ) -> Schema:
        """Few cut points: those that say most about the target."""
        fine = fit_schema(given, target, y, weight, settings, at_once=True)
        if given.groups is not None:
            raise ValueError(f"{settings.owner} takes no groups: its priors are given, and it leaves no rows out")
        with_inputs, rows, _ = code_first_rows(given, target, y, weight, fine, settings)
        return with_few_cuts(
            fine, rows.codes, with_inputs.grow_on(rows),
            max_bins=settings.max_bins, max_cuts=self.max_cuts, max_depth=self.max_depth,
        )  # fmt: skip

    def grow(self, rows: Rows, target: Target, schema: Schema, settings: Settings) -> Learnt:
        has_missing, n_codes = missing_branches(schema, rows), schema.n_codes.astype(np.int64)
        family = given_family(rows, target, schema, settings, self.max_depth)
        posterior = ExactPosterior(
            [int(n) for n in n_codes + has_missing], family, self.max_depth, self.split_prior, kinds=_kinds(schema),
            candidates=self.candidates, truncation=self.truncation, max_regions=self.max_regions,
            n_jobs=settings.n_jobs,
        )  # fmt: skip
        unseen = NoScores("its priors are given, and it leaves no rows out")
        return Learnt(ExactModel.fit(posterior, has_missing, n_codes, rows, bool(settings.verbose)), unseen=unseen)


def given_family(rows: Rows, target: Target, schema: Schema, settings: Settings, max_depth: int | None) -> NativeFamily:
    """The leaf model where no priors are tried.

    If all leaves have one noise, it is the one by which a tree that is grown to this depth best predicts rows that it
    has not seen: with one that is too small every interval would be too narrow.
    """
    family, search = target.fixed_family(rows), target.search(rows)
    if not family.has_one_noise or not search.is_searched("noise"):
        return family
    structure = TreeStructure(1 + N_FOLDS, 0, "uniform", False, Growth(max_depth=max_depth))
    auto = replace(target, split_prior="auto") if isinstance(target, NumberTarget) else target
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the tree, which nobody sees
        quiet = replace(settings, verbose=0)
        learnt = learn_forest(structure.grow(rows, auto, schema, quiet), auto, schema, quiet)
    assert learnt.choice is not None, "the priors of a grown tree are chosen"
    found: NativeFamily = search.family({**search.start, "noise": learnt.choice.parameters["noise"]})
    return found


def missing_branches(schema: Schema, rows: Rows) -> NDArray[np.bool_]:
    """(n_features,) columns whose splits have a branch for missing values; one that is all missing has no split."""
    is_missing: NDArray[np.bool_] = rows.codes == missing_code(rows.codes.dtype)
    has_missing = np.array([column.has_missing for column in schema.columns])
    return np.asarray(has_missing & ~is_missing.all(axis=0))


def _kinds(schema: Schema) -> list[Kind]:
    """Numbers are asked by thresholds, categories all at once; pools and too many of these by thresholds on codes."""
    most = MAX_CATEGORIES - 1  # missing is one more
    return [
        "multiway" if column.kind == "categorical" and not column.pooled and column.n_codes <= most else "ordered"
        for column in schema.columns
    ]
