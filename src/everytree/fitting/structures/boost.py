"""Structures that are boosted: the next tree is grown on what the sum of the trees before it leaves unexplained."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.utils import check_random_state

from everytree.base.arrays import FloatArray
from everytree.base.checks import resolve_n_jobs
from everytree.base.progress import Progress
from everytree.boosting.chains import NUMBERS, SHARED, Boosted, BoostRule, Likelihood, boost, class_scores
from everytree.boosting.lines import LinedTrees, points_of_codes
from everytree.boosting.scales import FLATTENED, KEPT, SHARPENED
from everytree.boosting.trees import AdditiveTrees
from everytree.conformal.conformal import Conformal
from everytree.conformal.folds import FoldConformal
from everytree.families.link import Link
from everytree.families.prior_search import overall_rate
from everytree.fitting.coding import code_first_rows
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.held_out.scores import NoScores
from everytree.fitting.held_out.unseen import UnseenRows
from everytree.fitting.structures.forest import ForestStructure
from everytree.fitting.structures.generated import chosen_formulas, drawn_rows
from everytree.fitting.structures.structure import Learnt, fit_schema
from everytree.fitting.targets.classes import ClassTarget
from everytree.fitting.targets.numbers import NumberTarget
from everytree.fitting.targets.target import Target
from everytree.fitting.targets.units import standardised
from everytree.models.boosted import BoostedClasses, BoostedNumbers, Chains, with_centre
from everytree.models.centres import Centres
from everytree.models.model import Model
from everytree.posterior.counts import recounted
from everytree.posterior.rows import Rows
from everytree.predictive.moved import ShiftedPredictive
from everytree.structure.growers import Growth
from everytree.tables.reading import read_table
from everytree.tables.repeats import row_groups
from everytree.tables.schema import Schema

MAX_CENTRE_CODES = 255
"""So that the centre fits beside columns of any number of codes."""

DIGIT = 2.0**-32
"""To which exposures are rounded, as a share of their size."""

MANY_CLASSES = 5
"""Classes from which on a step is one tree, with a value for each class in every leaf."""

MAX_RESIDUAL_ROWS = 20_000
"""Rows that are enough to grow the forest of residuals and to choose its priors; all others are counted in it too."""

ROWS_OF_LEAF_OF_RESIDUALS = 5
"""Rows of the smallest leaf of that forest: what boosting has left is mostly noise."""

ROWS_OF_WIDER_LEAVES = 200
"""Rows of a table for each of these: leaves of a short table are as small as they can be."""

FEW_COLUMNS = 3
"""Tables with so few columns are always looked at whole."""


@dataclass(frozen=True)
class BoostStructure:
    """Chains of boosted trees; for numbers, a forest of what is left besides."""

    rule: BoostRule
    random_state: Any
    sharpen: bool  # whether the average of the chains is calibrated (temperature scaling) by out-of-fold predictions
    n_residual_trees: int = 0  # number of trees of the forest that models residuals
    # whether the nodes of trees may be lines, where boosting predicts a mean or the mean of a logarithm
    lines: bool = False
    generates: bool = False  # whether columns are computed from others, where trees predict clearly better with them

    def schema(
        self, given: GivenRows, target: Target, y: NDArray[Any], weight: FloatArray | None, settings: Settings
    ) -> Schema:
        schema = fit_schema(given, target, y, weight, settings, max_bins=settings.max_bins)
        return self._with_formulas(schema, given, target, y, weight, settings) if self.generates else schema

    def _with_formulas(
        self, schema: Schema, given: GivenRows, target: Target, y: NDArray[Any], weight: FloatArray | None,
        settings: Settings,
    ) -> Schema:  # fmt: skip
        """The schema, with columns more where trees predict clearly better with them."""
        table = read_table(given.X, settings.owner)
        some = drawn_rows(np.arange(len(y)) if weight is None else np.flatnonzero(weight > 0.0))
        own = given.at(some)._replace(X=table.at(some))
        of_some = None if weight is None else weight[some]
        target, rows, _ = code_first_rows(own, target, y[some], of_some, schema, settings)
        likelihood = self._likelihood(rows, target)
        rows = replace(rows, group=row_groups(rows.codes, rows.group))
        formulas = chosen_formulas(
            schema, own.X, rows, likelihood, self._rule(schema), has_lines=self._has_lines(likelihood),
            max_bins=settings.max_bins, n_jobs=resolve_n_jobs(settings.n_jobs),
        )  # fmt: skip
        return schema.with_formulas(table, formulas, sample_weight=weight, max_bins=settings.max_bins)

    def fit(self, rows: Rows, target: Target, schema: Schema, settings: Settings) -> Learnt:
        if isinstance(target, ClassTarget):
            boosted_classes = self.classes(rows, target, schema, settings)
            model, left_out, fold, without = boosted_classes
            conformal = partial(by_folds, without, fold, rows, settings)
            return Learnt(model, unseen=partial(UnseenRows.of_folds, left_out, rows, fold), left_out=conformal)
        assert isinstance(target, NumberTarget)
        link = link_of(target)
        boosted = self.centres(rows, link, schema, settings)
        centres = Centres(boosted.trees, link, lined=boosted.lined)

        def about(out_of_fold: FloatArray, centres: Centres) -> Learnt:
            return fit_residuals(
                rows, out_of_fold, centres, boosted.chains, target, schema, settings, self.residuals(target, len(rows))
            )

        def without_fold(number: int) -> Model:
            own = Centres(boosted.without(number)[0], link, lined=boosted.without(number)[1])
            return about(np.where(boosted.fold == number, np.nan, boosted.left_out), own).model

        conformal = partial(by_folds, without_fold, boosted.fold, rows, settings)
        return about(boosted.left_out, centres)._replace(left_out=conformal)

    def residuals(self, target: NumberTarget, n_rows: int) -> ForestStructure:
        """The forest that models the residuals of out-of-fold predictions."""
        sharpen = target.leaves.support.is_real_line
        growth = Growth(min_samples_leaf=int(np.clip(n_rows // ROWS_OF_WIDER_LEAVES, 1, ROWS_OF_LEAF_OF_RESIDUALS)))
        return ForestStructure(self.n_residual_trees, self.random_state, "tempered", sharpen, growth)

    def classes(self, rows: Rows, target: ClassTarget, schema: Schema, settings: Settings) -> BoostedWithout:
        """The model, what each row's chain without it says, and these chains as models."""
        boosted = self._boost(
            rows, self._likelihood(rows, target), schema, settings, SHARPENED if self.sharpen else KEPT
        )
        trees = AdditiveTrees.average(boosted.chains, boosted.factor)
        sharpness = boosted.factor or 1.0  # of no trees it does not matter
        chains = Chains(boosted.gains, boosted.split_prior, boosted.n_steps)
        model = BoostedClasses(trees, sharpness, chains, len(rows))

        def without(number: int) -> BoostedClasses:
            return replace(model, trees=boosted.without(number)[0])

        left_out = softmax(class_scores(boosted.base + boosted.departure), axis=1)
        return BoostedWithout(model, left_out, boosted.fold, without)

    def centres(self, rows: Rows, link: Link, schema: Schema, settings: Settings) -> BoostedCentres:
        """Boost the centres of numbers, in a unit of their own."""
        likelihood, centre, scale = _in_own_unit(likelihood_of(link, rows), rows.weight)
        boosted = self._boost(rows, likelihood, schema, settings, FLATTENED)
        trees = AdditiveTrees.average(boosted.chains, boosted.factor, unit=scale, shift=centre)
        # From one base, whichever chain left a row out: each chain's own says which rows it has not seen.
        left_out = trees.base[0] + scale * boosted.departure[:, 0]
        chains = Chains(boosted.gains, boosted.split_prior, boosted.n_steps)
        lined = LinedTrees.average(boosted.lined, boosted.factor, unit=scale)

        def without(number: int) -> tuple[AdditiveTrees, LinedTrees | None]:
            own, own_lined = boosted.without(number)
            lined = None if own_lined is None else LinedTrees.average([own_lined], 1.0, unit=scale)
            return AdditiveTrees.average([own], unit=scale, shift=centre), lined

        return BoostedCentres(trees, lined, left_out, boosted.fold, chains, without)

    def _likelihood(self, rows: Rows, target: Target) -> Likelihood:
        if isinstance(target, ClassTarget):
            n_classes = target.n_leaf_classes
            return Likelihood(loss_of_classes(n_classes), rows.y, None, n_classes)
        assert isinstance(target, NumberTarget)
        return _in_own_unit(likelihood_of(link_of(target), rows), rows.weight)[0]

    def _rule(self, schema: Schema) -> BoostRule:
        return replace(self.rule, max_features=1.0) if schema.n_features <= FEW_COLUMNS else self.rule

    def _has_lines(self, likelihood: Likelihood) -> bool:
        return self.lines and likelihood.loss in NUMBERS

    def _boost(
        self, rows: Rows, likelihood: Likelihood, schema: Schema, settings: Settings, factors: FloatArray
    ) -> Boosted:
        rule = self._rule(schema)
        points = points_of_codes(schema, rows.codes, rows.weight) if self._has_lines(likelihood) else None
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        with Progress("boosting", rule.n_chains, bool(settings.verbose)) as progress:
            return boost(
                replace(rows, group=row_groups(rows.codes, rows.group)), likelihood, rule, n_codes=schema.n_codes,
                has_missing=schema.has_missing, factors=factors,
                rng=np.random.default_rng(seed), either=schema.either(len(rows)), points=points,
                n_jobs=resolve_n_jobs(settings.n_jobs), progress=progress.step,
            )  # fmt: skip


class BoostedWithout(NamedTuple):
    """Boosted classes, (n_rows, n_classes) probabilities by the chain that left a row out, of number `fold`, and the
    model of the chain without a fold."""

    model: BoostedClasses
    left_out: FloatArray
    fold: NDArray[np.int64]
    without: Callable[[int], BoostedClasses]


class BoostedCentres(NamedTuple):
    """Centres of numbers: by trees, and (n_rows,) those by the chain that left a row out, of number `fold`; and the
    trees of the chain without a fold."""

    trees: AdditiveTrees
    lined: LinedTrees | None
    left_out: FloatArray
    fold: NDArray[np.int64]
    chains: Chains
    without: Callable[[int], tuple[AdditiveTrees, LinedTrees | None]]


def by_folds(without: Callable[[int], Model], fold: NDArray[np.int64], rows: Rows, settings: Settings) -> Conformal:
    """Intervals and sets by the models without each fold."""
    models = [without(number) for number in range(int(fold.max()) + 1)]
    return FoldConformal.of_rows(models, fold, rows, resolve_n_jobs(settings.n_jobs))


def loss_of_classes(n_classes: int) -> str:
    """Of two classes one score; of a few, a tree for each; of more, trees of all of them."""
    return "logit" if n_classes == 2 else "softmax" if n_classes < MANY_CLASSES else SHARED


def link_of(target: NumberTarget) -> Link:
    """Link between the centre and the distribution of targets about it."""
    link = target.leaves.link
    assert link is not None, "estimators check that the family can be boosted"
    return link


def likelihood_of(link: Link, rows: Rows) -> Likelihood:
    """Targets as scores predict them."""
    return Likelihood(*link.likelihood(np.asarray(rows.y, dtype=np.float64), rows.row_data))


def _in_own_unit(likelihood: Likelihood, weight: FloatArray | None) -> tuple[Likelihood, float, float]:
    """Standardise targets; return the shift and scale that turn their scores into centres.

    Numbers are in standard deviations about their mean, and exposures such that the overall rate is 1.
    """
    if likelihood.loss == "squared":
        values, centre, scale = standardised(likelihood.y, weight)
        return likelihood._replace(y=values), centre, scale
    exposure = np.ones(len(likelihood.y)) if likelihood.exposure is None else likelihood.exposure
    rate = overall_rate(likelihood.y, exposure, weight)
    return likelihood._replace(exposure=_rounded(exposure * rate)), float(np.log(rate)), 1.0


def _rounded(exposure: FloatArray) -> FloatArray:
    """Exposures that are the same bits in any unit, so that splits that are equally good still are."""
    digits, power = np.frexp(exposure)
    return np.asarray(np.ldexp(np.round(digits / DIGIT) * DIGIT, power))


def fit_residuals(
    rows: Rows,
    out_of_fold: FloatArray,
    centres: Centres,
    chains: Chains,
    target: NumberTarget,
    schema: Schema,
    settings: Settings,
    residuals: ForestStructure,
) -> Learnt:
    """Fit a forest to the residuals of out-of-fold predictions.

    Parameters
    ----------
    rows : Rows
    out_of_fold : (n_rows,) float64
        Out-of-fold centre of each row, from models that have not seen it; rows where it is NaN are not used.
    centres : Centres
        To predict other rows by.
    residuals : ForestStructure
    """
    used = np.flatnonzero(~np.isnan(out_of_fold))
    centre, some = out_of_fold[used], _drawn(len(used), residuals.random_state)
    rows = rows if len(used) == len(rows) else rows.at(used)
    own = Schema.fit(centre[:, None], max_bins=min(settings.max_bins, MAX_CENTRE_CODES))
    # No table is ever read by it, so that names do not matter.
    nameless = [replace(column, name=None, source=None, formula=None) for column in (*schema.columns, *own.columns)]
    with_own = Schema.from_columns(nameless)
    row_data = centres.link.row_data_of_leaf(rows.row_data, centre)
    if "exposure" in row_data:
        row_data = {**row_data, "exposure": _rounded(row_data["exposure"])}
    of_leaves = centres.link.to_leaf(rows.y, centre)
    about_rows = Rows(with_centre(rows.codes, centre, own), of_leaves, rows.weight, row_data, rows.group)
    is_drawn = len(some) < len(rows)
    learnt = residuals.fit(about_rows.at(some) if is_drawn else about_rows, target, with_own, settings)
    forest = learnt.model.parts.averaged
    if is_drawn:
        with ThreadPoolExecutor(resolve_n_jobs(settings.n_jobs)) as pool:
            forest = forest.with_posteriors(list(pool.map(partial(recounted, rows=about_rows), forest.posteriors)))
    model = BoostedNumbers(centres, centres.link, own, forest, chains)
    unseen = learnt.unseen
    if not isinstance(unseen, NoScores):
        unseen = partial(_shifted, unseen, centres.link, out_of_fold, used[some])
    return Learnt(model, unseen=unseen)


def _drawn(n_rows: int, random_state: Any) -> NDArray[np.int64]:
    """All rows in their order, or as many of them as are enough, drawn at random."""
    if n_rows <= MAX_RESIDUAL_ROWS:
        return np.arange(n_rows)
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    return np.sort(np.random.default_rng(seed).choice(n_rows, MAX_RESIDUAL_ROWS, replace=False))


def _shifted(
    about_centres: Callable[[], UnseenRows], link: Link, centres: FloatArray, numbers: NDArray[np.int64]
) -> UnseenRows:
    """Shift predictions of residuals by the centres of the rows; they are of rows with these numbers."""
    unseen = about_centres()
    unseen = replace(unseen, numbers=numbers[unseen.numbers])
    if not link.is_moved:
        return unseen
    shift_and_scale = link.shift_and_scale(centres[unseen.numbers])
    return replace(unseen, predicted=ShiftedPredictive(unseen.predicted, *shift_and_scale))
