"""An exact posterior over the codes of a schema, with the rows it was fitted to; it has the methods of a forest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.progress import Progress
from everytree.exact.kept_rows import KeepsRows
from everytree.exact.posterior import ExactPosterior
from everytree.exact.regions import WorkDone, regions_by_depth
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.predictive.predictive import Predictive
from everytree.tables.column import missing_code
from everytree.trees.metatree import MetaTree


@dataclass
class ExactForest(KeepsRows):
    """Every tree and every choice of splits.

    Attributes
    ----------
    posterior : ExactPosterior
        Its codes have one more for missing values where a column had some at fit.
    has_missing : (n_features,) bool
    n_codes : (n_features,) int64
        Codes of the schema; larger ones are unknown.
    rows : Rows
        The rows that were fitted: adding rows fits all of them again.
    """

    posterior: ExactPosterior
    has_missing: NDArray[np.bool_]
    n_codes: NDArray[np.int64]
    rows: Rows

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
        forest = cls(posterior, has_missing, n_codes, rows)
        is_placed = (forest.read(rows.codes) < np.array(posterior.n_codes)).all(axis=1)
        forest.rows = rows if is_placed.all() else rows.at(np.flatnonzero(is_placed))
        forest._run(show)
        return forest

    def _run(self, show: bool) -> None:
        post, rows = self.posterior, self.rows
        work_done = WorkDone(regions_by_depth(post.n_codes, post.kinds, post.max_depth).tolist())
        with Progress("regions", 1, show) as progress:
            post.fit(
                self.read(rows.codes), rows.y, rows.weight,
                progress=lambda *where: progress.at(*work_done(*where)), **dict[str, Any](rows.row_data),
            )  # fmt: skip
            progress.at(*work_done(0, 1, 1))

    def check_mergeable(self, other: ExactForest) -> None:
        """Raise unless the other has the same splits and priors."""
        self.posterior.check_mergeable(other.posterior)

    def _with(self, rows: Rows) -> ExactForest:
        return ExactForest.fit(self.posterior.without_rows(), self.has_missing, self.n_codes, rows)

    # ---- answers ----------------------------------------------------------------------------------------------------

    def feature_importances(self) -> FloatArray:
        """(n_features,) expected number of splits on each column, scaled to sum to 1."""
        splits = self.posterior.expected_splits
        return splits / splits.sum() if splits.sum() > 0.0 else splits

    def probs(self, X: NDArray[Any], *, n_jobs: int | None = None) -> FloatArray:
        """(n_rows, n_classes) probability of each class."""
        return self.posterior.probs(self.read(X))

    def moments(self, X: NDArray[Any], *, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each row's target."""
        return self.posterior.moments(self.read(X))

    def predictive(self, X: NDArray[Any], *, n_jobs: int | None = None, **row_data: Any) -> Predictive:
        """One predictive distribution for each row."""
        return self.posterior.predictive(self.read(X), **row_data)

    def in_tree(self, tree: MetaTree) -> Posterior:
        """The posterior over the prunings of one tree, of the same rows."""
        post = Posterior(tree, self.family, self.posterior.split_prior)
        codes = self.read(self.rows.codes)
        return post.update(codes, self.rows.y, self.rows.weight, **dict[str, Any](self.rows.row_data))

    def read(self, codes: NDArray[Any]) -> NDArray[np.uint16]:
        """Codes of the schema as the posterior reads them: missing is one more code where it occurred at fit."""
        wide = codes.astype(np.uint16)
        missing = codes == missing_code(codes.dtype)
        wide[codes >= self.n_codes] = 65535  # unknown
        known = missing & self.has_missing
        wide[known] = np.broadcast_to(self.n_codes, codes.shape)[known]
        wide[:, np.array(self.posterior.n_codes) == 1] = 0  # never split on
        return wide
