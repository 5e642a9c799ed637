"""The first rows of a model that learns by `partial_fit` alone, kept until there are enough for its structures."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from everytree.base.arrays import as_labels
from everytree.batches.sketch import SchemaSketch
from everytree.batches.two_passes import given_rows
from everytree.fitting.given import GivenRows
from everytree.fitting.targets.target import Target
from everytree.tables.reading import read_table

MAX_EARLY_ROWS = 20_000
"""With more rows than this, structures stay as they are and rows are no longer kept."""

GROWTH = 1.1
"""Structures are grown again when there are this many times the rows that the last ones were grown on. All these fits
together cost about ten times the last one, and no model is far behind a fit of all its rows."""


class EarlyRows:
    """Rows of several calls, in the order in which they came.

    Parameters
    ----------
    owner : str
        Name of the estimator, for errors.
    categorical_features
        As in the estimators.
    target : Target
        The target before the first rows: with the classes that were declared.
    """

    def __init__(self, owner: str, categorical_features: Any, target: Target) -> None:
        self._sketch = SchemaSketch(
            categorical_features=categorical_features, sample_rows=MAX_EARLY_ROWS, owner=owner
        )  # fmt: skip
        self._has_weights = False
        self._n_grown = 0
        self._sizes: list[int] = []
        self.target = target

    @property
    def n_rows(self) -> int:
        return self._sketch.n_rows

    def add(self, given: GivenRows) -> bool:
        """Keep more rows; return False if there are too many, or if not all of them fit into one table."""
        if self.n_rows + len(given.y) > MAX_EARLY_ROWS:
            return False
        try:
            self._add(given)
        except (TypeError, ValueError):  # the batch fits the known columns, but not the table to grow from
            return False
        return True

    def _add(self, given: GivenRows) -> None:
        """Keep rows that were learnt from, except those of weight 0, which count as absent."""
        self._has_weights |= given.weight is not None
        y = as_labels(given.y)
        weight = np.ones(len(y)) if given.weight is None else np.asarray(given.weight, dtype=np.float64)
        used = np.flatnonzero(weight)
        besides = {**given.row_data, "groups": given.groups}
        columns = {name: as_labels(values)[used] for name, values in besides.items() if values is not None}
        table = read_table(given.X, self._sketch.owner).at(used)
        self._sketch.update(table, np.ravel(y)[used], weight[used], row_data=columns)
        self._sizes.append(len(used))

    def with_rows_if_due(self, given: GivenRows) -> Self | None:
        """Return a copy with these rows too if structures are to be grown again on all of them; else None."""
        if self.n_rows + len(given.y) < GROWTH * self._n_grown:
            return None
        every = copy.deepcopy(self)
        if not every.add(given) or every.n_rows < GROWTH * self._n_grown:
            return None
        every._n_grown = every.n_rows
        return every

    def batches(self) -> Iterator[GivenRows]:
        """Return the rows of each call."""
        every, begin = self.all(), 0
        for size in self._sizes:
            rows = np.arange(begin, begin + size)
            weight = None if every.weight is None else every.weight[rows]
            row_data = {name: values[rows] for name, values in every.row_data.items()}
            yield GivenRows(every.X.at(rows), every.y[rows], weight, row_data)
            begin += size

    def all(self) -> GivenRows:
        """Return all rows that were kept."""
        given = given_rows(self._sketch)
        return given if self._has_weights else given._replace(weight=None)
