"""All structures to a depth, summed: none of them is grown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.exact.posterior import ExactPosterior
from everytree.fitting.coding import code_first_rows
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.held_out.scores import NoScores
from everytree.fitting.structures.given_leaves import given_family, kinds_of_splits
from everytree.fitting.structures.structure import Learnt, fit_schema
from everytree.fitting.targets.target import Target
from everytree.models.exact import ExactModel
from everytree.posterior.rows import Rows
from everytree.structure.cut_choice import with_few_cuts
from everytree.tables.column import missing_code
from everytree.tables.schema import Schema


@dataclass(frozen=True)
class ExactStructure:
    """All structures to a depth, none of them grown."""

    max_depth: int  # as in `ExactTreeClassifier`
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

    def fit(self, rows: Rows, target: Target, schema: Schema, settings: Settings) -> Learnt:
        has_missing, n_codes = _missing_branches(schema, rows), schema.n_codes.astype(np.int64)
        family = given_family(rows, target, schema, settings, self.max_depth)
        posterior = ExactPosterior(
            [int(n) for n in n_codes + has_missing], family, self.max_depth, self.split_prior,
            kinds=kinds_of_splits(schema), candidates=self.candidates, truncation=self.truncation,
            max_regions=self.max_regions, n_jobs=settings.n_jobs,
        )  # fmt: skip
        unseen = NoScores("its priors are given, and it leaves no rows out")
        return Learnt(ExactModel.fit(posterior, has_missing, n_codes, rows, bool(settings.verbose)), unseen=unseen)


def _missing_branches(schema: Schema, rows: Rows) -> NDArray[np.bool_]:
    """(n_features,) columns whose splits have a branch for missing values; one that is all missing has no split."""
    is_missing: NDArray[np.bool_] = rows.codes == missing_code(rows.codes.dtype)
    return np.asarray(schema.has_missing & ~is_missing.all(axis=0))
