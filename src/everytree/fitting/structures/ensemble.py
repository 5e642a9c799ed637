"""Blending of a forest and boosted trees, by weights that out-of-fold predictions of both choose.

The folds are those that the chains of boosting leave out; a forest of all other rows predicts each fold too. On large
tables the rows of one fold are enough.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from sklearn.utils import check_random_state

from everytree.base.arrays import FloatArray
from everytree.boosting.folds import folds
from everytree.explaining.contributions import LEAST
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.held_out.sharpness import best_sharpness
from everytree.fitting.held_out.unseen import UnseenRows
from everytree.fitting.structures.boost import BoostStructure, by_folds, fit_residuals, likelihood_of, link_of
from everytree.fitting.structures.forest import ForestStructure
from everytree.fitting.structures.structure import Learnt
from everytree.fitting.targets.classes import ClassTarget
from everytree.fitting.targets.numbers import NumberTarget
from everytree.fitting.targets.target import Target
from everytree.models.centres import Centres, mix
from everytree.models.mixed import MixedClasses, mix_probs
from everytree.models.model import Model
from everytree.posterior.forest import Forest
from everytree.posterior.rows import Rows
from everytree.tables.repeats import row_groups
from everytree.tables.schema import Schema

PRIOR_ROWS = 1.0
"""Rows that the prior of the weight is worth: as if half of them were predicted by the forest, half by boosting."""

SHARES_OF_TREES = (2, 5)
"""Forests that predict the rows of a fold have one of so many trees of the forest of all rows: where all folds are
predicted, and where one is."""

ONE_FOLD_ROWS = 50_000
"""Above so many rows, forests predict those of one fold only: they say enough about the weight and the residuals."""


@dataclass(frozen=True)
class EnsembleStructure:
    """A forest and boosted trees, fitted to the same rows.

    Attributes
    ----------
    forest : ForestStructure
    boost : BoostStructure
    """

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
        forest = self._learn(rows, target, schema, settings, self.forest.n_structures)
        by_forest, others = self._by_others(rows, fold, target, schema, settings, lambda own, codes: own.probs(codes))
        by_forest = by_boosting if by_forest is None else by_forest
        known = _known(fold)
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
            return MixedClasses(others[number], chain(number), *mixture(known & (fold != number)))

        conformal = partial(by_folds, without, fold, rows, settings, len(others)) if others else None
        return Learnt(mixed, unseen=partial(UnseenRows.of_folds, left_out, rows, fold), left_out=conformal)

    def _numbers(self, rows: Rows, target: NumberTarget, schema: Schema, settings: Settings) -> Learnt:
        link = link_of(target)
        own = replace(target, family="normal") if link.averages_logs else target
        on_scale = replace(rows, y=np.log(rows.y)) if link.averages_logs else rows
        boosted = self.boost.centres(rows, link, schema, settings)
        by_boosting, likelihood = boosted.left_out, likelihood_of(link, rows)
        forest = self._learn(on_scale, own, schema, settings, self.forest.n_structures)
        mean, others = self._by_others(
            on_scale, boosted.fold, own, schema, settings, lambda own, codes: own.moments(codes)[0]
        )  # fmt: skip
        by_forest = by_boosting if mean is None else link.centre_of(mean)
        known = _known(boosted.fold)
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
            return fit_residuals(
                rows, out_of_fold, centres, boosted.chains, target, schema, settings, self.boost.residuals(target)
            )

        def without(number: int) -> Model:
            trees, lined = boosted.without(number)
            is_other = boosted.fold != number
            own = Centres(trees, link, others[number], weight_by(known & is_other), lined)
            return about(np.where(is_other, left_out, np.nan), own).model

        conformal = partial(by_folds, without, boosted.fold, rows, settings, len(others)) if others else None
        return about(left_out, centres)._replace(left_out=conformal)

    def _learn(self, rows: Rows, target: Target, schema: Schema, settings: Settings, n_trees: int) -> Forest:
        structure = replace(self.forest, n_structures=n_trees)
        learnt = structure.fit(rows, target, schema, settings)
        return learnt.model.parts.averaged

    def _by_others(
        self,
        rows: Rows,
        fold: NDArray[np.int64],
        target: Target,
        schema: Schema,
        settings: Settings,
        predict: Callable[[Forest, NDArray[Any]], FloatArray],
    ) -> tuple[FloatArray | None, list[Forest]]:
        """Out-of-fold predictions by forests of the rows of all other folds, and these; None if there is one fold.

        They are NaN for rows that need not be known.

        Leave-one-out predictions would not do: the larger a target, the smaller is the mean of the other rows.
        """
        if not fold.any():
            return None, []
        n_trees = -(-self.forest.n_structures // SHARES_OF_TREES[len(rows) > ONE_FOLD_ROWS])
        quiet = replace(settings, verbose=0)
        every, forests = None, []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the forest of all rows has said it
            for number in np.unique(fold[_known(fold)]):
                own = fold == number
                forest = self._learn(rows.at(~own), target, schema, quiet, n_trees)
                values = predict(forest, rows.codes[own])
                forests.append(forest)
                every = np.full((len(rows), *values.shape[1:]), np.nan) if every is None else every
                every[own] = values
        return every, forests

    def _parts(self, rows: Rows, fold: NDArray[np.int64], known: NDArray[np.bool_]) -> NDArray[np.int64]:
        """(n_rows,) parts of the rows, each mixed by the others: the folds, or two parts of the one that is known."""
        if known.all():
            return fold
        group = row_groups(rows.codes, rows.group)
        rng = np.random.default_rng(check_random_state(self.boost.random_state).randint(np.iinfo(np.int32).max))
        parts = np.full(len(rows), -1)
        parts[known] = folds(rows.y[known], None if group is None else group[known], 2, rng)
        return parts


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
