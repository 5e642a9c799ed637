"""Explanations of the predictions of estimators."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.errors import ArgumentError
from everytree.base.words import short_number
from everytree.explaining.contributions import Contributions
from everytree.explaining.explanation import Explanation
from everytree.explaining.tree_sums import Asked
from everytree.models.model import Scale
from everytree.tables.one_row import cells_of, rows_table
from everytree.tables.reading import Table, read_table
from everytree.tables.schema import Schema


def explanation(model: Any, X: Any, scale: Scale, table: Any) -> Explanation:
    """Contributions of columns to predictions of an estimator; see `MetaEstimator.explain`."""
    _check_explainable(model)
    if scale not in get_args(Scale):
        raise ArgumentError("scale", f"must be one of {list(get_args(Scale))}, but is {scale!r}")
    owner, schema = type(model).__name__, model.schema_
    rows = rows_table(X, owner)
    codes = model._encode(rows)
    others, mean = None, model.fitted_.mean_prediction
    if table is not None:
        table = read_table(table, owner)
        others = model._encode(table)
        mean = None if model.model_.is_sum_of_trees else np.atleast_1d(model._predicted(table).mean(axis=0))
    n_players = schema.n_inputs + schema.n_formulas
    asked = Asked(codes, schema.input_of.astype(np.int32), n_players, others, model.n_jobs, mean)
    classes = tuple(getattr(model, "classes_", ())) or None
    if classes is not None and len(classes) == 1:
        found = Contributions(np.ones(1), np.zeros((len(codes), schema.n_inputs, 1)))
    else:
        found = model.model_.contributions(asked, scale)
        if schema.n_formulas:
            found = Contributions(found.base, np.moveaxis(schema.of_inputs(np.moveaxis(found.values, 1, 0)), 0, 1))
    prediction = model._predicted(rows) if scale == "prediction" else found.total()
    names = schema.input_names or [f"x{k}" for k in range(schema.n_inputs)]
    return _explanation(found, prediction, tuple(names), _cells(schema, rows, owner), classes, _what(model, scale))


def _check_explainable(model: Any) -> None:
    """Raise unless the model is fitted and its leaves are classes or constants."""
    model._check_fitted()
    family = model.model_.family
    if getattr(family, "mass", None) is None:
        what = "leaves that are lines" if "inputs" in family.row_data else f"leaves of a family of its own, {family}"
        raise ValueError(
            f"this {type(model).__name__} has {what}, which have no contributions of columns yet; only leaves that "
            "are classes or constants have them. effect() works for all"
        )


def _what(model: Any, scale: Scale) -> str:
    """Name of the quantity that the contributions sum to."""
    if scale == "trees" and model.model_.of_trees is not None:
        return str(model.model_.of_trees)
    if model.model_.baseline is not None:
        return f"mean of times cut off at {short_number(float(model.model_.baseline.times[-1]), 6)}"
    last_time = model.fitted_.last_time
    if last_time is not None:
        return f"mean if rates go on beyond {short_number(last_time, 6)}"
    return "probability" if model.has_classes else "mean"


def _cells(schema: Schema, table: Table, owner: str) -> NDArray[Any]:
    """(n_rows, n_inputs) the values of the inputs."""
    out = np.full((table.n_rows, schema.n_inputs), None, dtype=object)
    for k, place in schema.places(table, owner, range(schema.n_features)).items():
        number = int(schema.input_of[k])
        out[:, number] = cells_of(table.column(place), table.n_rows)
    return out


def _explanation(
    found: Contributions,
    prediction: FloatArray,
    columns: tuple[str, ...],
    cells: NDArray[Any],
    classes: tuple[Any, ...] | None,
    what: str,
) -> Explanation:
    """Of one number, without the axis of outputs; a score is that of the second of two classes."""
    if classes is not None and what == "score" and len(classes) == 2:
        found = Contributions(
            np.array([-found.base[0], found.base[0]]), np.concatenate([-found.values, found.values], axis=2)
        )
        prediction = found.total()
    if classes is not None:
        return Explanation(found.values, found.base, prediction, columns, cells, classes, what)
    total = prediction if prediction.ndim == 1 else prediction[:, 0]
    return Explanation(found.values[:, :, 0], float(found.base[0]), total, columns, cells, None, what)
