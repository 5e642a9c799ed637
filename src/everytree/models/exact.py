"""The exact sum over every tree and every choice of splits, with the rows it was fitted to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.progress import Progress
from everytree.base.words import short_number
from everytree.exact.posterior import ExactPosterior, LeafValues
from everytree.exact.regions import WorkDone, regions_by_depth
from everytree.explaining.contributions import Contributions
from everytree.explaining.exact_sums import exact_sum
from everytree.explaining.tree_sums import Asked
from everytree.families.base import NativeFamily
from everytree.models.model import Parts, Scale, UpdatableModel
from everytree.posterior.checks import check_is_other
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.predictive.predictive import Predictive
from everytree.tables.code_names import CodeWords
from everytree.tables.column import missing_code
from everytree.tables.schema import Schema
from everytree.trees.metatree import MetaTree


@dataclass
class ExactModel(UpdatableModel):
    """Every tree and every choice of splits over the codes of a schema."""

    posterior: ExactPosterior  # its codes have one more for missing values where a column had some at fit
    has_missing: NDArray[np.bool_]  # (n_features,)
    n_codes: NDArray[np.int64]  # (n_features,): codes of the schema; larger ones are unknown
    rows: Rows  # the rows that were fitted: adding rows fits all of them again

    kind = "exact"

    @classmethod
    def fit(
        cls,
        posterior: ExactPosterior,
        has_missing: NDArray[np.bool_],
        n_codes: NDArray[np.int64],
        rows: Rows,
        show: bool = False,
    ) -> Self:
        """Condition a posterior that has no rows on those that every tree has branches for.

        So all trees are compared on the same rows. `show` says whether progress is shown.
        """
        model = cls(posterior, has_missing, n_codes, rows)
        model.rows = model._placed(rows)
        model._run(show)
        return model

    def _placed(self, rows: Rows) -> Rows:
        """The rows that every tree has branches for."""
        is_placed = (self.read(rows.codes) < np.array(self.posterior.n_codes)).all(axis=1)
        return rows if is_placed.all() else rows.at(np.flatnonzero(is_placed))

    def _run(self, show: bool) -> None:
        post, rows = self.posterior, self.rows
        work_done = WorkDone(regions_by_depth(post.n_codes, post.kinds, post.max_depth).tolist())
        with Progress("regions", 1, show) as progress:
            post.fit(
                self.read(rows.codes), rows.y, rows.weight,
                progress=lambda *where: progress.at(*work_done(*where)), **dict[str, Any](rows.row_data),
            )  # fmt: skip
            progress.at(*work_done(0, 1, 1))

    @property
    def family(self) -> NativeFamily:
        return self.posterior.family

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    def read(self, codes: NDArray[Any]) -> NDArray[np.uint16]:
        """Codes of the schema as the posterior reads them: missing is one more code where it occurred at fit."""
        wide = codes.astype(np.uint16)
        missing = codes == missing_code(codes.dtype)
        wide[codes >= self.n_codes] = 65535  # unknown
        known = missing & self.has_missing
        wide[known] = np.broadcast_to(self.n_codes, codes.shape)[known]
        wide[:, np.array(self.posterior.n_codes) == 1] = 0  # never split on
        return wide

    # ---- predictions ----------------------------------------------------------------------------------------------

    def probs(self, X: NDArray[Any], *, n_jobs: int | None = None) -> FloatArray:
        return self.posterior.probs(self.read(X))

    def moments(self, X: NDArray[Any], *, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        return super().moments(X) if self.family.has_classes else self.posterior.moments(self.read(X))

    def predictive(self, X: NDArray[Any], *, n_jobs: int | None = None, **row_data: Any) -> Predictive:
        return self.posterior.predictive(self.read(X), **row_data)

    # ---- more rows ------------------------------------------------------------------------------------------------

    @property
    def log_evidence(self) -> float:
        return self.posterior.log_evidence

    def update(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        sample_weight: FloatArray | None = None,
        *,
        n_jobs: int | None = None,
        **row_data: Any,
    ) -> Self:
        """Count more rows: the sum over all splits is made again. If it fails, nothing changes."""
        del n_jobs  # the posterior has its own
        return self._replace_rows(self.rows.joined(Rows(X, y, sample_weight, row_data)))

    def check_mergeable(self, other: ExactModel) -> None:
        self.posterior.check_mergeable(other.posterior)

    def merge(self, other: ExactModel) -> Self:
        self.check_mergeable(other)
        check_is_other(self, other)
        return self._replace_rows(self.rows.joined(other.rows))

    def forget(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        sample_weight: FloatArray | None = None,
        *,
        n_jobs: int | None = None,
        **row_data: Any,
    ) -> Self:
        """Take back rows that were fitted: the sum over all splits is made again. If it fails, nothing changes."""
        del n_jobs
        return self._replace_rows(self.rows.without(self._placed(Rows(X, y, sample_weight, row_data))))

    def take_away(self, other: ExactModel) -> Self:
        return self._replace_rows(self.rows.without(other.rows))

    def without_rows(self) -> ExactModel:
        return self._with(self.rows.at(np.zeros(0, dtype=np.int64)))

    def _replace_rows(self, rows: Rows) -> Self:
        fresh = self._with(rows)
        self.posterior, self.rows = fresh.posterior, fresh.rows
        return self

    def _with(self, rows: Rows) -> ExactModel:
        return ExactModel.fit(self.posterior.without_rows(), self.has_missing, self.n_codes, rows)

    # ---- explanations ---------------------------------------------------------------------------------------------

    def feature_importances(self) -> FloatArray:
        """(n_features,) expected number of splits on each column, scaled to sum to 1."""
        splits = self.posterior.expected_splits
        return splits / splits.sum() if splits.sum() > 0.0 else splits

    @property
    def is_sum_of_trees(self) -> bool:
        return True

    def contributions(self, asked: Asked, scale: Scale) -> Contributions:
        return self.contributions_of(asked)

    def contributions_of(self, asked: Asked, values_of: LeafValues | None = None) -> Contributions:
        """Contributions to the mean over all trees of a number of a leaf."""
        weight = self.rows.weight if asked.table is None else None
        rows = self.read(self.rows.codes if asked.table is None else asked.table)
        return exact_sum(asked, self.posterior, self.read(asked.codes), rows, weight, values_of)

    # ---- parts and words ------------------------------------------------------------------------------------------

    def words_of_codes(self, schema: Schema) -> list[CodeWords]:
        columns = zip(schema.code_names, schema.columns, strict=True)
        return [words.with_missing_code(column.has_missing) for words, column in columns]

    @property
    def parts(self) -> Parts:
        return Parts(exact=self.posterior)

    def pictured(self) -> Posterior:
        return self.in_tree(self.posterior.map_tree().as_metatree())

    def in_tree(self, tree: MetaTree) -> Posterior:
        """The posterior over the prunings of one tree, of the same rows."""
        post = Posterior(tree, self.family, self.posterior.split_prior)
        codes = self.read(self.rows.codes)
        return post.update(codes, self.rows.y, self.rows.weight, **dict[str, Any](self.rows.row_data))

    @property
    def size(self) -> str:
        return ""

    @property
    def sentence(self) -> str:
        return (
            "It predicts by averaging every decision tree to a depth, and every choice of its splits, each weighted by "
            "its posterior probability."
        )

    def facts(self) -> Iterator[tuple[str, str]]:
        posterior = self.posterior
        yield "Log evidence", f"{short_number(self.log_evidence, 8)} nats"
        yield "Averaged over", f"every tree to depth {posterior.max_depth} and every choice of its splits"
        yield "Expected leaves", short_number(posterior.expected_leaves(), 4)
        yield "Posterior mass left out", f"{posterior.truncation:.1e} at most"
