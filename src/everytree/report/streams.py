"""An online forest and rows for it, as pages read other models and tables."""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.errors import ArgumentError
from everytree.explaining.effect import Effect
from everytree.explaining.explanation import Explanation
from everytree.online.base import OnlineForest
from everytree.online.rows import Row, is_missing, kind_of, simplify
from everytree.online.tables import rows_of, targets_of
from everytree.predictive.predictive import Predictive
from everytree.report.opening import target_name_of
from everytree.report.rows import JudgedRows
from everytree.tables.code_names import DAY

MICROSECONDS_OF_DAY = DAY
"""Dates are days in an online forest, and microseconds on the page."""


# ---- rows -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StreamRows(JudgedRows):
    """Rows as dicts: `table` is an array of them.

    Attributes
    ----------
    names : tuple
        The features of the forest.
    kinds : tuple of str
        "categorical", "datetime", "boolean" or "numeric", by the values of the rows.
    target_name : str or None
    """

    names: tuple[Hashable, ...]
    kinds: tuple[str, ...]
    target_name: str | None

    def column(self, number: int) -> NDArray[Any]:
        given = [row.get(self.names[number]) for row in self.table]
        given = [None if is_missing(value) else value for value in given]
        if self.kinds[number] == "categorical":
            return np.array([*given, None], dtype=object)[:-1]
        numbers = np.array([np.nan if value is None else simplify(value) for value in given])
        if self.kinds[number] != "datetime":
            return numbers
        moments = np.where(np.isnan(numbers), 0.0, numbers * MICROSECONDS_OF_DAY).round().astype("datetime64[us]")
        return np.where(np.isnan(numbers), np.datetime64("NaT", "us"), moments)

    def at(self, rows: NDArray[np.int64]) -> StreamRows:
        return replace(self, table=self.table[rows], y=self.y[rows], weight=self.weight[rows])


def read_stream_rows(forest: OnlineForest, table: Any, target: Any) -> StreamRows:
    """Read the rows of a table or several dicts; `target` is a name, the targets, or None for the only other column."""
    rows, features = rows_of(table), forest.features
    if not features:
        raise ArgumentError(
            "table", "must be None: the model has learned rows without features, so it predicts the same for every row"
        )
    there = list(dict.fromkeys(name for row in rows for name in row))
    if rows and not set(there) & set(features):
        raise ArgumentError("table", f"has none of the features {features} that the model knows, but {there}")
    name = _only_other(there, features) if target is None else target if isinstance(target, str) else None
    if name is not None and name not in there:
        raise ArgumentError("target", f"is {name!r}, but the columns of the table are {there}")
    given = targets_of(target) if name is None else [row.get(name) for row in rows]
    if len(given) != len(rows):
        raise ArgumentError("target", f"has {len(given)} entries, but the table has {len(rows)} rows")
    targets = [forest.checked_target(one, f"target, row {i},") for i, one in enumerate(given)]
    y = np.array([*targets, None], dtype=object)[:-1]
    known = [{name: row[name] for name in features if name in row} for row in rows]  # the target is not among them
    return StreamRows(
        table=np.array([*known, None], dtype=object)[:-1],
        y=y if hasattr(forest, "classes") else y.astype(np.float64),
        weight=np.ones(len(rows)),
        row_data={},
        names=tuple(features),
        kinds=tuple(_kind(forest, name, rows) for name in features),
        target_name=target_name_of(target, ()) if name is None else str(name),
    )


def _only_other(there: Sequence[Hashable], features: Sequence[Hashable]) -> Hashable:
    others = [name for name in there if name not in features]
    if len(others) != 1:
        raise ArgumentError("target", f"must say which column of the table is the target; candidates are {others}")
    return others[0]


def _kind(forest: OnlineForest, name: Hashable, rows: Sequence[Row]) -> str:
    """What the values of a feature are; the forest itself knows texts and numbers alone."""
    if forest.is_category(name):
        return "categorical"
    found = kind_of(row[name] for row in rows if not is_missing(row.get(name)))
    return {"date": "datetime", "boolean": "boolean"}.get(found, "numeric")


# ---- the forest -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NumberStream:
    """An online regressor."""

    forest: Any

    family = "normal"

    def predictive(self, rows: Any) -> Predictive:
        """Distributions of the targets."""
        found: Predictive = self.forest.predictive_many(rows)
        return found

    def explain(self, rows: Any) -> Explanation:
        """What each feature adds to the predictions."""
        found: Explanation = self.forest.explain(rows)
        return found

    def effect(self, column: Hashable, rows: Any, **rule: Any) -> Effect:
        """The effect of a feature."""
        found: Effect = self.forest.effect(column, rows, **rule)
        return found


@dataclass(frozen=True)
class ClassStream(NumberStream):
    """An online classifier, its classes in order and with those that only the table has.

    Attributes
    ----------
    labels : tuple
        Classes of the rows that it is judged by.
    """

    labels: tuple[Any, ...]

    @cached_property
    def classes_(self) -> NDArray[Any]:
        """All labels, in the order of their names."""
        every = dict.fromkeys([*self.forest.classes, *self.labels])
        return np.array([*sorted(every, key=_sort_key), None], dtype=object)[:-1]

    @cached_property
    def places(self) -> dict[Any, int]:
        """Place of each label."""
        return {label: place for place, label in enumerate(self.classes_)}

    def predict_proba(self, rows: Any) -> FloatArray:
        """(n_rows, n_classes) probabilities; 0 for a class that the forest has not seen."""
        return self._in_order(self.forest.probabilities_many(rows))

    def explain(self, rows: Any) -> Explanation:
        found: Explanation = self.forest.explain(rows)
        parts: dict[str, Any] = {
            name: self._in_order(getattr(found, name)) for name in ("values", "base", "prediction")
        }
        return replace(found, **parts, classes=tuple(self.classes_))

    def effect(self, column: Hashable, rows: Any, **rule: Any) -> Effect:
        found: Effect = self.forest.effect(column, rows, **rule)
        parts: dict[str, Any] = {name: self._in_order(getattr(found, name)) for name in ("mean", "low", "high")}
        return replace(found, **parts, classes=tuple(self.classes_))

    def _in_order(self, values: FloatArray) -> FloatArray:
        """Values whose last axis is the forest's classes, moved to `classes_`."""
        moved = np.zeros((*values.shape[:-1], len(self.places)))
        moved[..., [self.places[label] for label in self.forest.classes]] = values
        return moved


def _sort_key(label: Any) -> tuple[bool, Any, str]:
    """Numbers by their size, then texts."""
    is_text = not isinstance(label, int | float)
    return is_text, 0 if is_text else label, str(label)


def stream_of(forest: OnlineForest, rows: StreamRows | None) -> NumberStream:
    """The forest, ready to be asked as other models are."""
    if not hasattr(forest, "classes"):
        return NumberStream(forest)
    return ClassStream(forest, () if rows is None else tuple(dict.fromkeys(rows.y)))


def parameters_of(forest: OnlineForest) -> dict[str, Any]:
    """The arguments that the forest was made with."""
    return {name: getattr(forest, name) for name in inspect.signature(type(forest)).parameters}
