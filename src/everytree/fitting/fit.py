"""From a table and its target to a model, top to bottom.

    table, target -> codes -> structures -> counts -> priors -> model

`fit` is the whole of it; `learn_forest` is its second half, from the trees that a structure has grown to the forest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.checks import resolve_n_jobs
from everytree.base.progress import Progress
from everytree.families.base import NativeFamily
from everytree.fitting.chosen_again import cross_fitted_splits
from everytree.fitting.held_out import HeldOut, held_out
from everytree.fitting.helpful_splits import HelpfulSplits, held_out_splits
from everytree.fitting.mean_prediction import mean_prediction
from everytree.fitting.out_of_bag import OutOfBag, out_of_bag
from everytree.fitting.scores import NoScores, Scores
from everytree.fitting.search import Choice, choose
from everytree.fitting.stacking import stacking_weights
from everytree.fitting.targets import GrowthTarget, Target
from everytree.fitting.tempering import tempered_weights
from everytree.fitting.unseen import GROWN_ON_ALL, UnseenRows, scores_of, unseen_rows
from everytree.fitting.weights import TotalWeight, read_weight, scaled_weight, weight_factor
from everytree.models.average import AverageModel
from everytree.models.model import Model
from everytree.posterior.counts import Tally, count
from everytree.posterior.forest import Forest
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.structure.draws import Draw
from everytree.structure.grown import Grown
from everytree.tables.cross_fitting import cross_fitted_codes
from everytree.tables.repeats import read_groups
from everytree.tables.schema import Schema

Weights = Literal["uniform", "tempered", "stacking", "evidence"]
AnyTarget = TypeVar("AnyTarget", bound=GrowthTarget)

MIN_DIGEST_ROWS = 10
"""Batches of fewer different rows leave no digest: these could be guessed from it, or be those of another batch."""


class GivenRows(NamedTuple):
    """Rows as a user gives them.

    Attributes
    ----------
    X : (n_rows, n_features) table
    y : (n_rows,) array_like
    weight : (n_rows,) array_like or None
    row_data : mapping
        What the family wants to know of each row; None where it is not given.
    groups : (n_rows,) array_like or None
    groups_name : str
        Of the column of groups; empty where they have none.
    """

    X: Any
    y: Any
    weight: Any = None
    row_data: Mapping[str, Any] = {}
    groups: Any = None
    groups_name: str = ""


@dataclass(frozen=True)
class Settings:
    """How tables are read, whatever is fitted to them.

    Attributes
    ----------
    owner : str
        The estimator's name, for errors.
    categorical_features, max_bins, relative_weights, n_jobs, verbose
        As in the estimators.
    """

    owner: str
    categorical_features: Any
    max_bins: int
    relative_weights: bool
    n_jobs: int | None
    verbose: int


@dataclass(frozen=True)
class GrownTrees:
    """Trees that are there before their priors are chosen.

    Attributes
    ----------
    rows : Rows
        With the groups of rows that are left out together.
    kept : sequence of Grown
        The structures of the forest.
    judged : sequence of Grown
        The structures by which priors are chosen: those that are kept, or stand-ins for them.
    weights : str
        Of the trees; see `MetaForestClassifier`.
    sharpen : bool
        Whether the average of the trees is sharpened.
    rng : numpy.random.Generator
        Draws the held-out rows.
    predict_out_of_bag : bool
        Whether every row is predicted by the trees that were not grown on it.
    """

    rows: Rows
    kept: Sequence[Grown]
    judged: Sequence[Grown]
    weights: Weights
    sharpen: bool
    rng: np.random.Generator
    predict_out_of_bag: bool = False


class Structure(Protocol):
    """The chooser of the splits."""

    def schema(
        self, given: GivenRows, target: Target, y: NDArray[Any], weight: FloatArray | None, settings: Settings
    ) -> Schema:
        """Columns, cut points and categories of the first rows."""

    def grow(self, rows: Rows, target: Target, schema: Schema, settings: Settings) -> GrownTrees | Learnt:
        """Trees of which a forest is made; or a whole model: the exact sum over all trees, or boosted trees."""


@dataclass(frozen=True)
class Origin:
    """Where the trees of a forest come from, so that a later fit to the same rows can keep them.

    Attributes
    ----------
    rows : str
        Digest of the rows.
    draws : tuple of Draw
        How the rows of each tree were drawn.
    """

    rows: str
    draws: tuple[Draw, ...]

    @classmethod
    def of(cls, grown: GrownTrees) -> Origin | None:
        """None where the trees were not grown here."""
        draws = tuple(one.draw for one in grown.kept if one.draw is not None)
        return cls(digest_with_groups(grown.rows), draws) if len(draws) == len(grown.kept) else None


def digest_with_groups(rows: Rows) -> str:
    """Hash that identifies rows and their groups."""
    besides = {} if rows.group is None else {"groups": rows.group}
    return replace(rows, row_data={**rows.row_data, **besides}).digest()


@dataclass(frozen=True)
class Fitted:
    """Everything that was learnt.

    Attributes
    ----------
    target : Target
    schema : Schema
    model : Model
    choice : Choice or None
        None where no priors were chosen.
    row_names : list of str
        What the rows came with besides.
    weight_factor : float
        By what weights are multiplied.
    batches : list of str
        Digests of the batches that were counted.
    origin : Origin or None
        Of the trees; None where they are not known to be of one table.
    out_of_bag : OutOfBag or None
        Of the rows of `fit`, where it was asked for.
    unseen : Scores or NoScores
        Of rows of `fit` that the trees had not seen.
    helpful : HelpfulSplits or None
        Of the tree that pictures show: whether its splits help rows on which they were not chosen.
    groups : str or None
        Name of the groups that rows of `fit` came in, empty where they had no name; None without groups.
    mean_prediction : (n_classes or 1,) float64 or None
        Of the rows of `fit`, from which explanations start; None where it follows from the trees, or is not known any
        more since rows were added.
    last_time : float or None
        The longest time that was seen, where some were cut short.
    """

    target: Target
    schema: Schema
    model: Model
    choice: Choice | None
    row_names: list[str]
    weight_factor: float
    batches: list[str]
    origin: Origin | None = None
    out_of_bag: OutOfBag | None = None
    unseen: Scores | NoScores = GROWN_ON_ALL
    helpful: HelpfulSplits | None = None
    groups: str | None = None
    mean_prediction: FloatArray | None = None
    last_time: float | None = None

    def with_batch(self, rows: Rows) -> Fitted:
        """The same, with the digest of one more batch that was counted; rows are coded as those of later batches."""
        digest = rows.batch_digest(MIN_DIGEST_ROWS)
        return self if digest is None else replace(self, batches=[*self.batches, digest])

    def has_counted(self, rows: Rows) -> bool:
        """Whether these rows are one of the batches that were counted, in any order."""
        return rows.batch_digest(MIN_DIGEST_ROWS) in self.batches


def fit(given: GivenRows, target: Target, structure: Structure, settings: Settings) -> Fitted:
    """The model of a table.

    Parameters
    ----------
    given : GivenRows
    target : Target
    structure : Structure
    settings : Settings
    """
    return fit_sample(given, target, structure, settings)[0]


def fit_sample(
    given: GivenRows,
    target: Target,
    structure: Structure,
    settings: Settings,
    *,
    schema: Schema | None = None,
    of_all: TotalWeight | None = None,
) -> tuple[Fitted, Callable[[Forest], Scores | NoScores]]:
    """The model of a table, and a function that scores its unseen rows in the forest of more rows.

    Parameters
    ----------
    given, target, structure, settings
        As in `fit`.
    schema : Schema, optional
        Where it is known already, as from a first pass over batches.
    of_all : TotalWeight, optional
        Of all rows, where these are a sample of them.
    """
    labels = target.read(given.y)
    weight, factor = first_weights(given, len(labels), settings, of_all)
    target, y = target.learn(labels, weight)
    schema = structure.schema(given, target, y, weight, settings) if schema is None else schema
    target, rows, later_codes = code_first_rows(given, target, y, weight, schema, settings)
    target.warn_about(rows)
    grown = structure.grow(rows, target, schema, settings)
    learnt = learn_forest(grown, target, schema, settings) if isinstance(grown, GrownTrees) else grown
    groups = None if given.groups is None else given.groups_name
    fitted = learnt.fitted(target, schema, rows, weight, factor, settings.n_jobs)
    fitted = fitted.with_batch(replace(rows, codes=later_codes))
    return replace(fitted, groups=groups), partial(_scored_by, fitted, learnt, rows)


def _scored_by(fitted: Fitted, learnt: Learnt, rows: Rows, forest: Forest) -> Scores | NoScores:
    """The scores of unseen rows of a sample by a forest with the same trees and the statistics of all rows.

    Those by the sample alone, where rows of the same groups may be counted beyond it, or trees stand in for others.
    """
    if learnt.unseen_by is None or isinstance(fitted.unseen, NoScores):
        return fitted.unseen
    return scores_of(fitted.target, rows, learnt.unseen_by(forest))


def first_weights(
    given: GivenRows, n_rows: int, settings: Settings, of_all: TotalWeight | None = None
) -> tuple[FloatArray | None, float]:
    """Weights of the first rows, and by what they and those of later rows are multiplied."""
    weight = read_weight(given.weight, n_rows)
    factor = weight_factor(weight, of_all, is_relative=settings.relative_weights, owner=settings.owner)
    return None if weight is None else weight * factor, factor


def code_first_rows(
    given: GivenRows,
    target: AnyTarget,
    y: NDArray[Any],
    weight: FloatArray | None,
    schema: Schema,
    settings: Settings,
) -> tuple[AnyTarget, Rows, NDArray[Any]]:
    """The target that knows the inputs of leaves, coded rows, and their codes if they came later; no rows of weight 0.

    The groups of the rows are those that were given. Codes that pool categories by their targets do not contain the
    row's own target; those of later rows do not either, but these would.
    """
    named = read_groups(given.groups, len(y))
    codes = schema.encode(given.X, n_jobs=settings.n_jobs, owner=settings.owner)
    check_same_length(codes, y)
    later_codes = codes
    codes = cross_fitted_codes(schema, given.X, codes, target.order_by(y), weight, named, owner=settings.owner)
    used = None if weight is None else weight > 0.0
    target = target.learn_inputs(schema, given.X, used)
    columns = target.columns(schema, given.X, len(y), given.row_data)
    rows = Rows(codes, y, weight, columns)
    if used is not None:
        rows, named, later_codes = rows.at(used), None if named is None else named[used], later_codes[used]
    return target, replace(rows, group=named), later_codes


def code_more_rows(given: GivenRows, fitted: Fitted, settings: Settings, only: NDArray[np.bool_] | None = None) -> Rows:
    """Rows after the first, their targets as the family takes them; `only` some columns are coded."""
    weight = scaled_weight(given.weight, len(given.y), fitted.weight_factor)
    codes = fitted.schema.encode(given.X, only=only, n_jobs=settings.n_jobs, owner=settings.owner)
    check_same_length(codes, given.y)
    columns = fitted.target.columns(fitted.schema, given.X, len(given.y), given.row_data)
    if sorted(columns) != fitted.row_names:
        raise ValueError(
            f"the first rows came with {fitted.row_names or 'nothing'} besides, these with {sorted(columns)}"
        )
    return Rows(codes, given.y, weight, columns)


def check_same_length(codes: NDArray[Any], y: NDArray[Any]) -> None:
    """As many targets as rows, in the words that scikit-learn has for it."""
    if len(codes) != len(y):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {len(codes)} rows, y {len(y)}"
        )


def last_time_of(rows: Rows, before: float | None = None) -> float | None:
    """The longest time of rows and of those before them; None where no time was cut short."""
    if before is None and not np.any(rows.row_data.get("censored", 0.0)):
        return None
    return max(before or 0.0, float(np.max(rows.y, initial=0.0)))


# ---- trees that are grown -------------------------------------------------------------------------------------------


class Learnt(NamedTuple):
    """A model of coded rows; for the attributes see `Fitted`.

    What is said of unseen rows is computed when it is asked for: not every model is kept as it is. `unseen_by` computes
    it of a forest of more rows in the same trees.
    """

    model: Model
    choice: Choice | None = None
    out_of_bag: OutOfBag | None = None
    origin: Origin | None = None
    unseen: Callable[[], UnseenRows] | NoScores = GROWN_ON_ALL
    helpful: HelpfulSplits | None = None
    unseen_by: Callable[[Forest], UnseenRows] | None = None

    def fitted(
        self, target: Target, schema: Schema, rows: Rows, weight: FloatArray | None, factor: float, n_jobs: int | None
    ) -> Fitted:
        """The model of a table; `rows` are those of it that have a `weight` above 0."""
        oob = self.out_of_bag
        if oob is not None and weight is not None:
            oob = oob.on(weight > 0.0)
        unseen = self.unseen if isinstance(self.unseen, NoScores) else scores_of(target, rows, self.unseen())
        return Fitted(
            target,
            schema,
            self.model,
            self.choice,
            sorted(rows.row_data),
            factor,
            [],
            self.origin,
            oob,
            unseen,
            self.helpful,
            mean_prediction=mean_prediction(self.model, rows, n_jobs),
            last_time=last_time_of(rows),
        )


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
    held = held_out(rows, judged, tally.statistics, grown.rng, n_jobs, is_counted=not stand_in)
    choice = choose(search, held, sharpen=grown.sharpen, show=show)
    if stand_in:
        tally = _counted(rows, kept, search.first_family, schema, n_jobs, show)
    posteriors = _posteriors(kept, tally, choice, n_jobs)
    weights: Any = "evidence" if grown.weights == "evidence" else None
    if grown.weights == "stacking":
        weights = stacking_weights(held, choice)
    elif grown.weights == "tempered":
        log_evidence = np.array([one.log_evidence for one in posteriors])
        tempered = tempered_weights(held, choice, log_evidence, sharpen=grown.sharpen)
        weights, choice = tempered.weights, replace(choice, score=tempered.score, sharpness=tempered.sharpness)
    forest = Forest(posteriors, weights=weights, sharpness=choice.sharpness, n_codes=schema.n_codes)
    oob = None
    if grown.predict_out_of_bag:
        oob = out_of_bag(rows, kept, tally.statistics, forest.weights, choice, n_jobs)
    unseen: Callable[[], UnseenRows] | NoScores = GROWN_ON_ALL
    if held.is_honest:
        unseen = partial(unseen_rows, held, choice, None if stand_in else forest.weights)
    helpful = _helpful(grown, forest, choice, target, schema, n_jobs)
    unseen_by = None if stand_in or held.has_companions else partial(_unseen_by, held, choice)
    return Learnt(AverageModel(forest), choice, oob, Origin.of(grown), unseen, helpful, unseen_by)


def _unseen_by(held: HeldOut, choice: Choice, forest: Forest) -> UnseenRows:
    """What the forest of more rows in the same trees says of rows that these were not grown on."""
    return unseen_rows(held, choice, forest.weights, [post.statistics for post in forest.posteriors])


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
    """The posterior of each structure, with the priors that were chosen."""

    def one(grown: Grown, statistics: FloatArray, n_rows: int) -> Posterior:
        return Posterior.from_statistics(grown.tree, choice.family, choice.split_prior, statistics, int(n_rows))

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
