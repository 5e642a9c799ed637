"""Structures whose trees are there before their priors are chosen: trees -> counts -> priors -> weights -> forest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
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
from everytree.conformal.conformal import Conformal
from everytree.conformal.folds import FoldConformal
from everytree.conformal.forest import ForestConformal
from everytree.families.base import NativeFamily
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.held_out.held_out import held_out, held_out_by_few, unseen_by_trees
from everytree.fitting.held_out.helpful_splits import HelpfulSplits, cross_fitted_splits, held_out_splits
from everytree.fitting.held_out.out_of_bag import out_of_bag
from everytree.fitting.held_out.predictions import Predictions
from everytree.fitting.held_out.scores import GROWN_ON_ALL, NoScores
from everytree.fitting.held_out.search import Choice, choose
from everytree.fitting.held_out.stacking import stacking_weights
from everytree.fitting.held_out.tempering import tempered_weights
from everytree.fitting.held_out.unseen import UnseenRows, unseen_rows
from everytree.fitting.structures.origin import GrownTrees, Origin, Weights
from everytree.fitting.structures.structure import Learnt, fit_schema
from everytree.fitting.targets.target import GrowthTarget, Target
from everytree.models.average import AverageModel
from everytree.posterior.counts import Tally, count
from everytree.posterior.forest import Forest
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.structure.grown import Grown
from everytree.tables.repeats import row_groups
from everytree.tables.schema import Schema


@dataclass(frozen=True)
class GrownStructure(ABC):
    """Meta-trees that are there before their priors are chosen."""

    n_structures: int  # trees that are grown, those among them that only judge priors too
    random_state: Any
    weights: Weights  # of the trees; see `MetaForestClassifier`
    sharpen: bool  # whether the average of the trees is sharpened

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
        return GrownTrees(rows, kept, judged, self.weights, self.sharpen, rng, self.predict_out_of_bag)

    def fit(self, rows: Rows, target: Target, schema: Schema, settings: Settings) -> Learnt:
        return learn_forest(self.grow(rows, target, schema, settings), target, schema, settings)

    @property
    def predict_out_of_bag(self) -> bool:
        """Whether every row is predicted by the trees that were not grown on it."""
        return False

    @abstractmethod
    def kept_and_judged(
        self, rows: Rows, target: GrowthTarget, schema: Schema, settings: Settings, seeds: list[int]
    ) -> tuple[list[Grown], list[Grown]]:
        """Structures to keep, and those by which priors are chosen (the same, or stand-ins)."""


def learn_forest(grown: GrownTrees, target: Target, schema: Schema, settings: Settings) -> Learnt:
    """A forest of the structures to keep, with statistics of all rows.

    Its priors are chosen by rows that the structures `judged` were not grown on. Where these are the ones to keep, all
    rows count in them, as in the forest. Where they are stand-ins, each grown without some of the rows for one that is
    grown on all of them, only the rows that grew them count, as in what they stand for.
    """
    rows, kept, judged = grown.rows, grown.kept, grown.judged
    search, n_jobs, stand_in = target.search(rows), resolve_n_jobs(settings.n_jobs), judged is not kept
    show = bool(settings.verbose)
    tally = _counted(rows, judged, search.first_family, schema, n_jobs, show)
    has_classes = search.first_family.has_classes
    held = held_out(rows, judged, tally.statistics, grown.rng, n_jobs, has_classes=has_classes, is_counted=not stand_in)
    few = held if has_classes else held_out_by_few(held, rows, judged, tally.statistics, grown.rng)
    choice, predictions = choose(search, held, few, sharpen=grown.sharpen, show=show)
    if stand_in:
        tally = _counted(rows, kept, search.first_family, schema, n_jobs, show)
    posteriors = _posteriors(kept, tally, choice, n_jobs)
    leaves = posteriors[0]
    choice.family.warn_about(leaves.statistics[leaves.tree.is_terminal])
    weights: Any = "evidence" if grown.weights == "evidence" else None
    if grown.weights == "stacking":
        weights = stacking_weights(predictions)
    elif grown.weights == "tempered":
        log_evidence = np.array([one.log_evidence for one in posteriors])
        tempered = tempered_weights(predictions, choice, log_evidence, sharpen=grown.sharpen)
        weights, choice = tempered.weights, replace(choice, score=tempered.score, sharpness=tempered.sharpness)
    forest = Forest(posteriors, weights=weights, sharpness=choice.sharpness, n_codes=schema.n_codes)
    oob = None
    if grown.predict_out_of_bag:
        oob = out_of_bag(rows, kept, tally.statistics, forest.weights, choice, n_jobs)
    unseen: Callable[[], UnseenRows] | NoScores = GROWN_ON_ALL
    if held.is_honest:
        unseen = partial(unseen_rows, predictions, choice.sharpness, None if stand_in else forest.weights)
    helpful = _helpful(grown, forest, choice, target, schema, n_jobs)
    unseen_by = None if stand_in or held.has_companions else partial(_unseen_by, predictions, choice.sharpness)
    left_out: Callable[[], Conformal] | None = None
    if held.is_honest:
        by_folds = partial(_without_folds, rows, judged, choice, search.first_family, schema, n_jobs)
        left_out = by_folds if stand_in else partial(_without_rows, rows, kept, forest)
    return Learnt(AverageModel(forest), choice, oob, Origin.of(grown), unseen, helpful, unseen_by, left_out)


def _without_rows(rows: Rows, kept: Sequence[Grown], forest: Forest) -> Conformal:
    """By the trees that were not grown on each row."""
    return ForestConformal.of_rows(forest, rows, unseen_by_trees(rows, kept))


def _without_folds(
    rows: Rows, judged: Sequence[Grown], choice: Choice, family: NativeFamily, schema: Schema, n_jobs: int
) -> Conformal:
    """By the trees without each fold, in which the rows of other folds count."""
    posteriors = _posteriors(judged, _counted(rows, judged, family, schema, n_jobs, False), choice, n_jobs)
    models = [AverageModel(Forest([own], sharpness=choice.sharpness, n_codes=schema.n_codes)) for own in posteriors]
    fold = np.argmin([one.in_bag for one in judged], axis=0)
    fold[np.all([one.in_bag for one in judged], axis=0)] = len(judged)
    return FoldConformal.of_rows(models, fold, rows, n_jobs)


def _unseen_by(predictions: Predictions, sharpness: float, forest: Forest) -> UnseenRows:
    """Unseen rows as predicted by the forest of more rows in the same trees."""
    held = replace(predictions.held, statistics=[post.statistics for post in forest.posteriors])
    return unseen_rows(replace(predictions, held=held), sharpness, forest.weights)


def _helpful(
    grown: GrownTrees, forest: Forest, choice: Choice, target: Target, schema: Schema, n_jobs: int
) -> HelpfulSplits | None:
    """Whether splits help rows on which they were not chosen: of the tree that pictures show."""
    rows, kept, judged = grown.rows, grown.kept, grown.judged
    if judged is not kept:
        in_bags = [one.in_bag for one in judged]
        return cross_fitted_splits(kept[0].tree, in_bags, rows, target.grow_on(rows), choice.family, schema.n_codes)
    number = forest.best_tree()
    return held_out_splits(number, kept[number], rows, choice.family, schema.n_codes, n_jobs)


def _posteriors(kept: Sequence[Grown], tally: Tally, choice: Choice, n_jobs: int) -> list[Posterior]:
    """The posterior of each structure, with the priors that were chosen; the arrays of the tally are theirs."""

    def one(grown: Grown, statistics: FloatArray, n_rows: int) -> Posterior:
        return Posterior.from_counts(grown.tree, choice.family, choice.split_prior, statistics, int(n_rows))

    with ThreadPoolExecutor(n_jobs) as pool:
        return list(pool.map(one, kept, *tally))


def _counted(
    rows: Rows, grown: Sequence[Grown], family: NativeFamily, schema: Schema, n_jobs: int, show: bool
) -> Tally:
    """Statistics of the rows in each structure, where they were not counted together with the growing."""
    known = [one.statistics for one in grown if one.statistics is not None]
    if len(known) == len(grown):
        return Tally(known, np.full(len(grown), len(rows)))
    with Progress("counting", len(grown), show) as progress:
        tally = count([one.tree for one in grown], family, schema.n_codes, rows, n_jobs)
        progress.step(len(grown))
        return tally
