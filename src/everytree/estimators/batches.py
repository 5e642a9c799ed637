"""Out-of-core fits: tables that are too long for memory."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Self

from everytree.base.errors import ArgumentError
from everytree.batches.batch import Roles
from everytree.batches.passes import BatchPasses, Passes
from everytree.batches.sketch import SAMPLE_ROWS, SchemaSketch
from everytree.batches.sources import is_dask, open_source
from everytree.batches.two_passes import SeenTarget, count_all, given_rows, look
from everytree.estimators.grown import GrownEstimator
from everytree.fitting.fit import fit_sample
from everytree.fitting.weights import TotalWeight
from everytree.posterior.forest import Forest


class BatchedEstimator(GrownEstimator):
    """Structures and priors from a sample of the rows, statistics from all of them."""

    def fit_batches(
        self,
        batches: Any,
        target: str | None = None,
        *,
        sample_weight: str | None = None,
        groups: str | None = None,
        sample_rows: int = SAMPLE_ROWS,
        **row_columns: str,
    ) -> Self:
        """Learn from a table that does not fit in memory, in two passes over its batches.

        The first pass reads every row for the columns (kinds, categories, missing values, classes) and keeps a uniform
        sample of the rows. On the sample, structures are grown and priors are chosen as in `fit`. The second pass
        counts every row of every batch once, so statistics, evidence, split probabilities and predictions are those of
        all rows: up to rounding, the same as from `partial_fit` with all rows at once in these structures. If the
        sample holds all rows, the result is that of `fit` and there is no second pass. `unseen_` has the scores of rows
        of the sample, as after `fit`.

        Parameters
        ----------
        batches : path, dataset, relation, Dask collection, iterable or callable
            The path of a Parquet, CSV or Feather file, a folder or a pattern such as "2024-*.parquet"; a pyarrow
            dataset or table; a DuckDB relation or a polars LazyFrame, computed in each pass; a list or another object
            that can be iterated more than once, or a function that returns an iterator. Batches are Arrow record
            batches, data frames of any library, or tuples `(X, y)` or `(X, y, sample_weight)`. All have the same
            columns, of the same kinds. Of Dask, a dataframe, or a tuple of dataframe and series or of arrays with the
            same partitions: both passes are computed where these are, on the cluster of the active client.
        target : str, optional
            Name of the column of targets; not with tuples.
        sample_weight : str, optional
            Name of the column of weights; a row of weight 0 counts as absent.
        groups : str, optional
            Name of the column of groups, whose rows belong together; see `fit`.
        sample_rows : int
            Size of the sample.
        **row_columns
            Names of the columns with the row data of the family, such as `exposure="time"`.

        Returns
        -------
        The estimator itself; a fit that fails leaves it unchanged.

        Examples
        --------
        >>> import numpy as np, everytree as et
        >>> rng = np.random.default_rng(0)
        >>> tables = [rng.normal(size=(500, 3)) for _ in range(4)]
        >>> batches = [(X, X[:, 0] > 0) for X in tables]
        >>> model = et.MetaForestClassifier(n_estimators=5, random_state=0).fit_batches(batches, sample_rows=1000)
        >>> model.forest_.n_rows
        2000
        """
        self.target_before_fit().check_names(row_columns)
        roles = Roles.of(target, sample_weight, {**row_columns, "groups": groups})
        self._check_parameters()
        self._two_passes(self._passes(batches, roles), sample_rows)
        self.fitted_ = replace(self.fitted_, groups=groups)
        return self

    def _passes(self, batches: Any, roles: Roles) -> Passes:
        """Return both passes: here, or on a cluster where batches are collections of Dask."""
        owner = type(self).__name__
        if is_dask(batches):
            from everytree.batches.dask_parts import Partitions
            from everytree.batches.dask_passes import DaskPasses

            return DaskPasses(Partitions.of(batches, roles), owner, self.n_jobs)
        return BatchPasses(open_source(batches), roles, owner, self.n_jobs, bool(self.verbose))

    def _two_passes(self, passes: Passes, sample_rows: int) -> None:
        """Fit the sample that the first pass keeps, then count all rows in a second pass."""
        self._check_for_parts("a fit of batches")
        if getattr(self, "class_weight", None) is not None:
            must = "is for fit and partial_fit; name a column of weights by sample_weight instead"
            raise ArgumentError("class_weight", must)
        if hasattr(self, "structures_"):
            raise ValueError("the structures were imported, and passes over batches would grow others; use partial_fit")
        settings = replace(self._settings(), owner=passes.owner)
        seen = SeenTarget(self.target_before_fit())
        sketch = SchemaSketch(
            max_bins=self.max_bins, categorical_features=self.categorical_features, sample_rows=sample_rows,
            owner=passes.owner,
        )  # fmt: skip
        sketch = passes.sketch(sketch, partial(look, target=seen.now), seen.note)
        given, of_all = given_rows(sketch), None
        if not sketch.is_complete:
            of_all = TotalWeight(sketch.total_weight, sketch.n_rows)
        learnt, y = seen.now.learn(seen.now.read(given.y), None)
        fitted, scored_by = fit_sample(
            given, learnt, self._structure(), settings, schema=sketch.schema(learnt.order_by(y)), of_all=of_all
        )
        if not sketch.is_complete:
            fitted = count_all(passes, fitted, settings, sketch.rule)
            assert isinstance(fitted.forest, Forest)
            fitted = replace(fitted, unseen=scored_by(fitted.forest))
        self._keep(fitted, given.X)
        self._keep_early(None)
