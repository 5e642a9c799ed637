"""Structures that are boosted: the next tree is grown on what the sum of the trees before it leaves unexplained."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from everytree.base.arrays import FloatArray
from everytree.base.checks import resolve_n_jobs
from everytree.base.progress import Progress
from everytree.boosting.chains import Boosted, BoostRule, Likelihood, boost, class_scores
from everytree.boosting.classes import BoostedClasses, softmax
from everytree.boosting.numbers import AboutCentre, BoostedNumbers, with_centre
from everytree.boosting.trees import AdditiveTrees
from everytree.fitting.fit import GivenRows, Settings, learn_forest
from everytree.fitting.sharpness import best_sharpness
from everytree.fitting.structures import ForestStructure, fit_schema
from everytree.fitting.targets import ClassTarget, NumberTarget, Target
from everytree.posterior.forest import Forest
from everytree.posterior.rows import Rows
from everytree.structure.growers import Growth
from everytree.tables.repeats import row_groups
from everytree.tables.schema import Schema

RESIDUAL_TREES = 100
FEW_COLUMNS = 3
"""Tables with so few columns are always looked at whole."""


@dataclass(frozen=True)
class BoostStructure:
    """Chains of boosted trees; for numbers, a forest of what is left besides.

    Attributes
    ----------
    rule : BoostRule
    random_state : int, RandomState or None
    sharpen : bool
        Whether the average of the chains is sharpened by the rows that they left out.
    """

    rule: BoostRule
    random_state: Any
    sharpen: bool

    def schema(
        self, given: GivenRows, target: Target, y: NDArray[Any], weight: FloatArray | None, settings: Settings
    ) -> Schema:
        return fit_schema(given, target, y, weight, settings, max_bins=settings.max_bins)

    def grow(self, rows: Rows, target: Target, schema: Schema, settings: Settings) -> BoostedClasses | BoostedNumbers:
        rows = replace(rows, group=row_groups(rows.codes, rows.group))
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        rng = np.random.default_rng(seed)
        if isinstance(target, ClassTarget):
            return self._classes(rows, target, schema, settings, rng)
        assert isinstance(target, NumberTarget)
        return self._numbers(rows, target, schema, settings, rng)

    def _classes(
        self, rows: Rows, target: ClassTarget, schema: Schema, settings: Settings, rng: np.random.Generator
    ) -> BoostedClasses:
        n_classes = target.n_leaf_classes
        likelihood = Likelihood("logit" if n_classes == 2 else "softmax", rows.y, None, n_classes)
        boosted = self._boost(rows, likelihood, schema, settings, rng)
        weight = np.ones(len(rows)) if rows.weight is None else rows.weight
        probs = softmax(class_scores(boosted.left_out))
        _, sharpness = best_sharpness(probs, rows.y, weight, self.sharpen)
        trees = AdditiveTrees.average(boosted.chains, sharpness)
        return BoostedClasses(trees, boosted.gains, sharpness, boosted.split_prior, boosted.n_steps)

    def _numbers(
        self, rows: Rows, target: NumberTarget, schema: Schema, settings: Settings, rng: np.random.Generator
    ) -> BoostedNumbers:
        about = AboutCentre(target.family)
        boosted = self._boost(rows, about.likelihood(rows), schema, settings, rng)
        centre = boosted.left_out[:, 0]
        own = Schema.fit(centre[:, None], max_bins=settings.max_bins)
        # No table is ever read by it, so that names do not matter.
        nameless = [replace(column, name=None, source=None) for column in (*schema.columns, *own.columns)]
        with_own = Schema.from_columns(nameless)
        about_rows = Rows(
            with_centre(rows.codes, centre, own), about.target(rows.y, centre), rows.weight,
            about.row_data(dict(rows.row_data), centre), rows.group,
        )  # fmt: skip
        structure = ForestStructure(
            RESIDUAL_TREES, int(rng.integers(2**31)), "tempered", target.leaves.support.is_real_line, Growth()
        )
        grown = structure.grow(about_rows, target, with_own, settings)
        forest = learn_forest(grown, target, with_own, settings).forest
        assert isinstance(forest, Forest)
        trees = AdditiveTrees.average(boosted.chains)
        return BoostedNumbers(trees, about, own, forest, boosted.gains, boosted.split_prior, boosted.n_steps)

    def _boost(
        self, rows: Rows, likelihood: Likelihood, schema: Schema, settings: Settings, rng: np.random.Generator
    ) -> Boosted:
        rule = self.rule
        if rows.codes.shape[1] <= FEW_COLUMNS:
            rule = replace(rule, max_features=1.0)
        with Progress("boosting", rule.n_chains, bool(settings.verbose)) as progress:
            return boost(
                rows, likelihood, rule, n_codes=schema.n_codes,
                has_missing=np.array([column.has_missing for column in schema.columns]), rng=rng,
                n_jobs=resolve_n_jobs(settings.n_jobs), progress=progress.step,
            )  # fmt: skip
