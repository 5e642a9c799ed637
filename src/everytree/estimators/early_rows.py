"""The first rows of a model that learns by `partial_fit` alone, kept until there are enough for its structures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from everytree.base.arrays import as_labels
from everytree.batches.sketch import SchemaSketch
from everytree.tables.reading import read_table

MAX_EARLY_ROWS = 20_000
"""With more rows than this, structures stay as they are and rows are no longer kept."""

GROWTH = 1.1
"""Structures are grown again when there are this many times the rows that the last ones were grown on: what all these
fits cost is some ten times the last one, and no model is far behind a fit of all its rows."""


class LearningRows(NamedTuple):
    """Rows as a user gives them.

    Attributes
    ----------
    X : (n_rows, n_features) table
    y : (n_rows,) array_like
    weight : (n_rows,) array_like or None
    row_data : mapping
        What the family wants to know of each row; None where it is not given.
    groups : (n_rows,) array_like or None
    """

    X: Any
    y: Any
    weight: Any
    row_data: Mapping[str, Any]
    groups: Any


class EarlyRows:
    """Rows of several calls, in the order in which they came.

    Parameters
    ----------
    owner : str
        Who asks, for the wording of errors.
    categorical_features
        As in the estimators.
    """

    def __init__(self, owner: str, categorical_features: Any) -> None:
        self._sketch = SchemaSketch(
            categorical_features=categorical_features, sample_rows=MAX_EARLY_ROWS, owner=owner
        )  # fmt: skip
        self._has_weights = False
        self.n_grown = 0

    @property
    def n_rows(self) -> int:
        return self._sketch.n_rows

    def add(self, rows: LearningRows) -> None:
        """Keep rows that were learnt from, without those of weight 0, which count as absent."""
        self._has_weights |= rows.weight is not None
        y = as_labels(rows.y)
        weight = np.ones(len(y)) if rows.weight is None else np.asarray(rows.weight, dtype=np.float64)
        used = np.flatnonzero(weight)
        given = {**rows.row_data, "groups": rows.groups}
        columns = {name: as_labels(values)[used] for name, values in given.items() if values is not None}
        table = read_table(rows.X, self._sketch.owner).at(used)
        self._sketch.update(table, np.ravel(y)[used], weight[used], row_data=columns)

    @property
    def is_time_to_grow(self) -> bool:
        """Whether there are so many more rows than structures were grown on that others may be better."""
        return self.n_rows >= GROWTH * self.n_grown

    def has_room_for(self, rows: LearningRows) -> bool:
        return self.n_rows + len(rows.y) <= MAX_EARLY_ROWS

    def all(self) -> LearningRows:
        """All rows that were kept."""
        sample = self._sketch.sample
        row_data = dict(sample.row_data)
        groups = row_data.pop("groups", None)
        return LearningRows(sample.table, sample.y, sample.weight if self._has_weights else None, row_data, groups)
