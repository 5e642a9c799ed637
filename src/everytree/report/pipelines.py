"""Pipelines: a page about their last step, and the table as that step reads it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from everytree.report.rows import column_of, only_other


@dataclass(frozen=True)
class Given:
    """Arguments of a page.

    Attributes
    ----------
    model : estimator
    table : data frame or array_like or None
        As the model reads it.
    beside : dict
        Target, weights and row data: names of columns of the table, values, or None.
    names : list of str or None
        Names of the columns, where the model itself has none.
    """

    model: Any
    table: Any
    beside: dict[str, Any]
    names: list[str] | None = None


def last_step(given: Given) -> Given:
    """The last step of a pipeline, with the table that the steps before it make; any other model as it is."""
    if not isinstance(given.model, Pipeline):
        return given
    check_is_fitted(given.model)
    before, last = given.model[:-1], given.model[-1]
    if not len(before):
        return Given(last, given.table, given.beside)
    names = [str(name) for name in before.get_feature_names_out()] if _has_names(before) else None
    if given.table is None:
        return Given(last, None, given.beside, names)
    inputs, beside = _apart(given)
    made = before.transform(inputs)
    return Given(last, made.toarray() if hasattr(made, "toarray") else made, beside, names)


def groups_of(model: Any, table: Any, told: Any) -> Any:
    """The groups of rows as told, or by default the name that they had at fit, if the table has such a column."""
    last = model[-1] if isinstance(model, Pipeline) else model
    name = getattr(getattr(last, "fitted_", None), "groups", None)
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    is_there = bool(name) and isinstance(frame, nw.DataFrame) and name in frame.columns
    return name if told is None and is_there else told


def _has_names(before: Pipeline) -> bool:
    return all(hasattr(step, "get_feature_names_out") for _, step in before.steps if step not in (None, "passthrough"))


def _apart(given: Given) -> tuple[Any, dict[str, Any]]:
    """The columns that the pipeline reads, and those beside them as arrays."""
    frame = nw.from_native(given.table, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return given.table, given.beside
    known = [str(name) for name in getattr(given.model, "feature_names_in_", ())]
    beside = dict(given.beside)
    if beside["target"] is None:
        taken = [name for name in beside.values() if isinstance(name, str)]
        beside["target"] = only_other(given.model, frame, taken)
    names = [name for name in beside.values() if isinstance(name, str)]
    inputs = frame.select(known) if known else frame.drop(names)
    return inputs.to_native(), {role: column_of(frame, role, value) for role, value in beside.items()}
