"""Fits of tables that are too long to keep."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everytree.batches.batch import Batch, Roles
from everytree.batches.passes import BatchPasses, Labels, Passes
from everytree.batches.sketch import SAMPLE_ROWS, SchemaSketch
from everytree.batches.sources import open_source
from everytree.batches.target_column import Target
from everytree.estimators.grown import GrownEstimator
from everytree.fitting.fit import Rows
from everytree.posterior.counts import ForestCounts


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

        The first pass looks at every row for the columns (kinds, categories, missing values, classes) and keeps a
        uniform sample of them. On the sample, structures are grown and priors are chosen as `fit` does it. The second
        pass counts every row of every batch once: statistics, evidence, split probabilities and predictions are those
        of all rows, to rounding the ones of `partial_fit` with all rows at once in the same structures. Where all rows
        are in the sample, the result is that of `fit` and there is no second pass.

        Parameters
        ----------
        batches : path, dataset, relation, iterable or callable
            The path of a Parquet, CSV or Feather file, a folder or a pattern such as "2024-*.parquet"; a pyarrow
            dataset or table; a DuckDB relation; a list or another object that can be iterated more than once, or a
            function that returns an iterator. Batches are Arrow record batches, data frames of any library, or tuples
            `(X, y)` or `(X, y, sample_weight)`. All have the same columns, of the same kinds.
        target : str, optional
            Name of the column of targets; not with tuples.
        sample_weight : str, optional
            Name of the column of weights; a row of weight 0 counts as absent.
        groups : str, optional
            Name of the column that says which rows belong together; see `fit`.
        sample_rows : int
            Size of the sample.
        **row_columns
            Names of the columns of what the family wants to know of each row, such as `exposure="time"`.

        Returns
        -------
        The estimator itself; a fit that fails leaves it as it was.

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
        owner = type(self).__name__
        self._check_row_names(row_columns)
        roles = Roles.of(target, sample_weight, {**row_columns, "groups": groups})
        with self._anew():
            self._check_parameters()
            return self._two_passes(
                BatchPasses(open_source(batches), roles, owner, self.n_jobs, bool(self.verbose)), sample_rows
            )

    def _two_passes(self, passes: Passes, sample_rows: int) -> Self:
        if hasattr(self, "structures_"):
            raise ValueError("the structures were imported, and passes over batches would grow others; use partial_fit")
        sketch = passes.sketch(
            SchemaSketch(
                max_bins=self.max_bins, categorical_features=self.categorical_features, sample_rows=sample_rows,
                owner=passes.owner,
            ),
            self._look,
            self._note,
        )  # fmt: skip
        sample = sketch.sample
        target = self._read_target(sample.y, first=True)
        schema = sketch.schema(self._order_by(target))
        of_all = None if sketch.is_complete else (sketch.total_weight, sketch.n_rows)
        weight = self._first_weight(sample.weight, len(target), of_all)
        row_data = dict(sample.row_data)
        groups = row_data.pop("groups", None)
        self._fit_by(schema, sample.table, target, weight, row_data, groups)
        if not sketch.is_complete:
            asked = self._asked()
            rows_of = partial(self._rows_in, asked=asked)  # no lambda: it may be sent to other processes
            counts = passes.count(ForestCounts(self.forest_), rows_of, self._names(asked))
            self.forest_, self._batches = counts.forest(), [counts.digest()]
        return self

    def _asked(self) -> NDArray[np.bool_]:
        """(n_features,) which columns some tree asks for, or a leaf: the others need not be read again."""
        asked = np.zeros(self.schema_.n_features, dtype=bool)
        for tree in self.forest_.trees:
            asked[tree.feature[~tree.is_terminal]] = True
        asked[0] |= not asked.any()  # a table has at least one column
        return asked | ~self.schema_.is_categorical if "inputs" in self._row_names else asked

    def _names(self, asked: NDArray[np.bool_]) -> list[str] | None:
        names = self.schema_.names
        return None if names is None else [name for name, is_asked in zip(names, asked, strict=True) if is_asked]

    def _look(self, batch: Batch) -> Labels:
        """What must be known of the targets of all rows before the first one is counted; changes nothing."""
        if batch.target is None:
            raise ValueError("it has no target: name its column by target=, or pass pairs (X, y)")
        self._checked_row_data(batch.table.n_rows, _without_groups(batch.row_data))
        return self._labels_in(batch.target)

    @abstractmethod
    def _labels_in(self, target: Target) -> Labels:
        """The labels of classes; None for numbers. An error for targets that the family does not have."""

    def _note(self, labels: Labels) -> None:
        """Keep what `_look` has found."""

    def _rows_in(self, batch: Batch, asked: NDArray[np.bool_]) -> Rows:
        assert batch.target is not None
        target = batch.target.read(self._target_numbers)
        return self._coded_rows(batch.table, target, batch.weight, _without_groups(batch.row_data), asked)


def _without_groups(row_data: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """What the family wants to know: groups matter to the sample alone."""
    return {name: column for name, column in row_data.items() if name != "groups"}
