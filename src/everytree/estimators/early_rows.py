"""The first rows of a model that learns by `partial_fit` alone, kept until there are enough for its structures."""

from __future__ import annotations

import copy
from typing import Any, Self

import numpy as np

from everytree.base.arrays import as_labels
from everytree.batches.sketch import SchemaSketch
from everytree.batches.two_passes import given_rows
from everytree.fitting.fit import GivenRows
from everytree.fitting.targets import Target
from everytree.tables.reading import read_table

MAX_EARLY_ROWS = 20_000
"""With more rows than this, structures stay as they are and rows are no longer kept."""

GROWTH = 1.1
"""Structures are grown again when there are this many times the rows that the last ones were grown on: what all these
fits cost is some ten times the last one, and no model is far behind a fit of all its rows."""


class EarlyRows:
    """Rows of several calls, in the order in which they came.

    Parameters
    ----------
    owner : str
        Who asks, for the wording of errors.
    categorical_features
        As in the estimators.
    target : Target
        As it was before the first rows: with the classes that were declared.
    """

    def __init__(self, owner: str, categorical_features: Any, target: Target) -> None:
        self._sketch = SchemaSketch(
            categorical_features=categorical_features, sample_rows=MAX_EARLY_ROWS, owner=owner
        )  # fmt: skip
        self._has_weights = False
        self._n_grown = 0
        self.target = target

    @property
    def n_rows(self) -> int:
        return self._sketch.n_rows

    def add(self, given: GivenRows) -> bool:
        """Keep more rows; False where there are too many, or not all of them can stand in one table."""
        if self.n_rows + len(given.y) > MAX_EARLY_ROWS:
            return False
        try:
            self._add(given)
        except (TypeError, ValueError):  # this batch fits the columns that there are, but not the table to grow from
            return False
        return True

    def _add(self, given: GivenRows) -> None:
        """Keep rows that were learnt from, without those of weight 0, which count as absent."""
        self._has_weights |= given.weight is not None
        y = as_labels(given.y)
        weight = np.ones(len(y)) if given.weight is None else np.asarray(given.weight, dtype=np.float64)
        used = np.flatnonzero(weight)
        besides = {**given.row_data, "groups": given.groups}
        columns = {name: as_labels(values)[used] for name, values in besides.items() if values is not None}
        table = read_table(given.X, self._sketch.owner).at(used)
        self._sketch.update(table, np.ravel(y)[used], weight[used], row_data=columns)

    def if_grown_with(self, given: GivenRows) -> Self | None:
        """A copy with those rows too, on all of which structures are to be grown; None where that can wait."""
        if self.n_rows + len(given.y) < GROWTH * self._n_grown:
            return None
        every = copy.deepcopy(self)
        if not every.add(given) or every.n_rows < GROWTH * self._n_grown:
            return None
        every._n_grown = every.n_rows
        return every

    def all(self) -> GivenRows:
        """All rows that were kept."""
        given = given_rows(self._sketch)
        return given if self._has_weights else given._replace(weight=None)
