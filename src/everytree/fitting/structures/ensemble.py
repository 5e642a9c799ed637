"""Blending of a forest and boosted trees, by weights that out-of-fold predictions of both choose.

The folds are those that the chains of boosting leave out. Of the forest, the trees that were not grown on a row predict
it, each by the rows that it was grown on. Where rows repeat, trees that were not grown on a row know others like it, so
that forests grown without its fold predict it. On large tables the rows of one fold are enough.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.utils import check_random_state

from everytree.base.arrays import FloatArray
from everytree.base.checks import resolve_n_jobs
from everytree.boosting.folds import folds
from everytree.explaining.contributions import LEAST
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.held_out.sharpness import best_sharpness
from everytree.fitting.held_out.unseen import UnseenRows
from everytree.fitting.structures.boost import BoostStructure, by_folds, fit_residuals, likelihood_of, link_of
from everytree.fitting.structures.forest import ForestStructure
from everytree.fitting.structures.grown import learn_forest
from everytree.fitting.structures.origin import GrownTrees
from everytree.fitting.structures.structure import Learnt
from everytree.fitting.targets.classes import ClassTarget
from everytree.fitting.targets.numbers import NumberTarget
from everytree.fitting.targets.target import Target
from everytree.models.centres import Centres, mix
from everytree.models.mixed import MixedClasses, mix_probs
from everytree.models.model import Model
from everytree.posterior.counts import recounted
from everytree.posterior.forest import Forest
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.predictive.pooled import sharpened
from everytree.structure.grown import Grown
from everytree.tables.repeats import row_groups, rows_repeat
from everytree.tables.schema import Schema

PRIOR_ROWS = 1.0
"""Rows that the prior of the weight is worth: as if half of them were predicted by the forest, half by boosting."""

ONE_FOLD_ROWS = 50_000
"""Above so many rows, those of one fold are enough: they say enough about the weight and the residuals."""


@dataclass(frozen=True)
class EnsembleStructure:
    """A forest and boosted trees, fitted to the same rows."""

    forest: ForestStructure
    boost: BoostStructure

    def schema(
        self, given: GivenRows, target: Target, y: NDArray[Any], weight: FloatArray | None, settings: Settings
    ) -> Schema:
        return self.boost.schema(given, target, y, weight, settings)

    def fit(self, rows: Rows, target: Target, schema: Schema, settings: Settings) -> Learnt:
        if isinstance(target, ClassTarget):
            return self._classes(rows, target, schema, settings)
        assert isinstance(target, NumberTarget)
        return self._numbers(rows, target, schema, settings)

    def _classes(self, rows: Rows, target: ClassTarget, schema: Schema, settings: Settings) -> Learnt:
        boosted, by_boosting, fold, chain = self.boost.classes(rows, target, schema, settings)
        known = _known(fold)
        forest, probs = self._forest_and_left_out(
            rows, fold, target, schema, settings, lambda own, codes: own.probs(codes)
        )
        by_forest = by_boosting if probs is None else probs
        by_forest = np.where(np.isfinite(by_forest), by_forest, by_boosting)
        of_row = np.ones(len(rows)) if rows.weight is None else rows.weight

        def mixture(some: NDArray[np.bool_]) -> tuple[float, float]:
            """Weight and sharpness by some of the rows."""
            if not some.any():
                return 0.5, 1.0

            first, second = (np.log(np.maximum(probs[some], LEAST)) for probs in (by_forest, by_boosting))
            own = np.arange(len(first)), rows.y[some]

            def loss(weight: float) -> float:
                log_probs = mix(first, second, weight)
                log_probs -= log_probs.max(axis=1, keepdims=True)
                nats = np.log(np.exp(log_probs).sum(axis=1)) - log_probs[own]
                return float((of_row[some] * nats).sum())

            weight = best_weight(loss)
            honest = mix_probs(by_forest[some], by_boosting[some], weight)
            return weight, best_sharpness(honest, rows.y[some], of_row[some], self.boost.sharpen)[1]

        left_out = np.full_like(by_boosting, np.nan)
        for own in _each(self._parts(rows, fold, known)):
            left_out[own] = mix_probs(by_forest[own], by_boosting[own], *mixture(known & ~own))
        mixed = MixedClasses(forest, boosted, *mixture(known))

        def without(number: int) -> MixedClasses:
            others = self._forest_of(rows.at(fold != number), target, schema, settings)
            return MixedClasses(others, chain(number), *mixture(known & (fold != number)))

        conformal = partial(by_folds, without, fold, rows, settings) if known.all() else None
        return Learnt(mixed, unseen=partial(UnseenRows.of_folds, left_out, rows, fold), left_out=conformal)

    def _numbers(self, rows: Rows, target: NumberTarget, schema: Schema, settings: Settings) -> Learnt:
        link = link_of(target)
        own = replace(target, family=link.forest_family, learnt=None) if link.forest_family else target
        on_scale = replace(rows, y=np.log(rows.y)) if link.averages_logs else rows
        boosted = self.boost.centres(rows, link, schema, settings)
        by_boosting, likelihood = boosted.left_out, likelihood_of(link, rows)
        known = _known(boosted.fold)
        forest, mean = self._forest_and_left_out(
            on_scale, boosted.fold, own, schema, settings, lambda one, codes: one.moments(codes)[0]
        )
        by_forest = by_boosting if mean is None else link.centre_of(mean)
        by_forest = np.where(np.isfinite(by_forest), by_forest, by_boosting)
        of_row = np.ones(len(rows)) if rows.weight is None else rows.weight
        errors = likelihood.losses(by_boosting[:, None])
        size = 2.0 * float(np.average(errors, weights=of_row)) if likelihood.loss == "squared" else 1.0

        def weight_by(some: NDArray[np.bool_]) -> float:
            asked = likelihood.at(some)

            def loss(weight: float) -> float:
                losses = asked.losses(mix(by_forest[some], by_boosting[some], weight)[:, None])
                return float((of_row[some] * losses).sum()) / max(size, 1e-300)

            return best_weight(loss)

        left_out = np.full_like(by_boosting, np.nan)
        for each in _each(self._parts(rows, boosted.fold, known)):
            left_out[each] = mix(by_forest[each], by_boosting[each], weight_by(known & ~each))
        centres = Centres(boosted.trees, link, forest, weight_by(known), boosted.lined)

        def about(out_of_fold: FloatArray, centres: Centres) -> Learnt:
            residuals = self.boost.residuals(target, len(rows))
            return fit_residuals(rows, out_of_fold, centres, boosted.chains, target, schema, settings, residuals)

        def without(number: int) -> Model:
            trees, lined = boosted.without(number)
            is_other = boosted.fold != number
            others = self._forest_of(on_scale.at(is_other), own, schema, settings)
            own_centres = Centres(trees, link, others, weight_by(known & is_other), lined)
            return about(np.where(is_other, left_out, np.nan), own_centres).model

        conformal = partial(by_folds, without, boosted.fold, rows, settings) if known.all() else None
        return about(left_out, centres)._replace(left_out=conformal)

    def _forest_and_left_out(
        self,
        rows: Rows,
        fold: NDArray[np.int64],
        target: Target,
        schema: Schema,
        settings: Settings,
        predict: Callable[[Forest, NDArray[Any]], FloatArray],
    ) -> tuple[Forest, FloatArray | None]:
        """The forest, and what trees that know neither a row nor any other like it predict."""
        grown = self.forest.grow(rows, target, schema, settings)
        forest = learn_forest(grown, target, schema, settings).model.parts.averaged
        if not rows_repeat(rows.codes, rows.group):
            values = by_other_trees(grown, forest, fold, predict, settings.n_jobs)
            if values is None or not forest.family.has_classes:
                return forest, values
            return forest, sharpened(values, forest.sharpness)
        if not fold.any():
            return forest, None
        values = None
        for number in np.unique(fold[_known(fold)]):
            own = fold == number
            found = predict(self._forest_of(rows.at(~own), target, schema, settings), rows.codes[own])
            values = np.full((len(rows), *found.shape[1:]), np.nan) if values is None else values
            values[own] = found
        return forest, values

    def _forest_of(self, rows: Rows, target: Target, schema: Schema, settings: Settings) -> Forest:
        """The forest of some of the rows, with half of the trees."""
        structure = replace(self.forest, n_structures=-(-self.forest.n_structures // 2))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the forest of all rows has said it
            return structure.fit(rows, target, schema, replace(settings, verbose=0)).model.parts.averaged

    def _parts(self, rows: Rows, fold: NDArray[np.int64], known: NDArray[np.bool_]) -> NDArray[np.int64]:
        """(n_rows,) parts of the rows, each mixed by the others: the folds, or two parts of the one that is known."""
        if known.all():
            return fold
        group = row_groups(rows.codes, rows.group)
        rng = np.random.default_rng(check_random_state(self.boost.random_state).randint(np.iinfo(np.int32).max))
        parts = np.full(len(rows), -1)
        parts[known] = folds(rows.y[known], None if group is None else group[known], 2, rng)
        return parts


def by_other_trees(
    grown: GrownTrees,
    forest: Forest,
    fold: NDArray[np.int64],
    predict: Callable[[Forest, NDArray[Any]], FloatArray],
    n_jobs: int | None,
) -> FloatArray | None:
    """(n_rows, ...) the mean of what the trees that were not grown on a row say of it; NaN where it need not be known.

    Each tree says it by the rows that it was grown on, less those of the row's fold. Without the row alone it would not
    do: the larger a target, the smaller is the mean of the others. None where all rows are in one fold.
    """
    rows, known = grown.rows, _known(fold)
    if not fold.any():
        return None

    def one(tree: Grown, by_all: Posterior) -> list[tuple[NDArray[np.int64], FloatArray]]:
        found = []
        for number in np.unique(fold[known]):
            own = fold == number
            post, asked = recounted(by_all, rows.at(tree.in_bag & ~own)), np.flatnonzero(~tree.in_bag & own)
            found.append((asked, predict(Forest([post], n_codes=forest.n_codes), rows.codes[asked])))
        return found

    total, n_trees = None, np.zeros(len(rows))
    with ThreadPoolExecutor(resolve_n_jobs(n_jobs)) as pool:
        for found in pool.map(one, grown.kept, forest.posteriors):
            for asked, values in found:
                total = np.zeros((len(rows), *values.shape[1:])) if total is None else total
                total[asked] += values
                n_trees[asked] += 1.0
    assert total is not None, "a forest has trees"
    with np.errstate(invalid="ignore"):
        return np.asarray(total / np.where(n_trees > 0.0, n_trees, np.nan).reshape(-1, *[1] * (total.ndim - 1)))


def _known(fold: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(n_rows,) rows that forests of other folds predict: all, or on large tables those of one fold."""
    return fold == 0 if len(fold) > ONE_FOLD_ROWS else np.ones(len(fold), dtype=bool)


def _each(fold: NDArray[np.int64]) -> Iterator[NDArray[np.bool_]]:
    """(n_rows,) which rows are in a fold, for each fold."""
    return (fold == number for number in range(int(fold.max()) + 1))


def best_weight(loss: Callable[[float], float]) -> float:
    """The weight of boosting in (0, 1) with the smallest total loss, drawn to the middle by a weak prior."""

    def penalised(weight: float) -> float:
        return loss(weight) - 0.5 * PRIOR_ROWS * float(np.log(weight) + np.log1p(-weight))

    return float(minimize_scalar(penalised, bounds=(1e-6, 1.0 - 1e-6), method="bounded", options={"xatol": 1e-4}).x)
