"""Predictions of a model along one column, all others fixed."""

from __future__ import annotations

from typing import Any

import numpy as np

from everytree.base.errors import ArgumentError
from everytree.explaining.effect import Effect, input_number
from everytree.tables.column import Column
from everytree.tables.one_row import cells_of, rows_table
from everytree.tables.reading import Table, Values
from everytree.tables.schema import Schema
from everytree.view.describe import repeated
from everytree.view.plot.effect import draw_effect

ANY_VALUE = "any value"
"""Of a column of numbers without cuts, all values of which are predicted alike, where the row has none."""


def plot_predictive(
    model: Any, feature: int | str, *, at: Any = None, coverage: float = 0.9, ax: Any = None, **row_data: Any
) -> Any:
    """Draw the predictions of an estimator along one of its columns, with all other columns fixed.

    Classes have a line each; numbers have the mean and an interval.

    Parameters
    ----------
    model : fitted estimator
    feature : int or str
        Number of a column, or its name.
    at : one row of a table, dict or pandas Series, optional
        The row to vary; by default the median of each column of numbers, and the middle category in the order of their
        codes.
    coverage : float
        Probability of the interval.
    ax : matplotlib.axes.Axes, optional
    **row_data
        Row data of the family, such as `exposure`: one value, for all points.

    Returns
    -------
    matplotlib.axes.Axes
    """
    if not hasattr(model, "schema_") and hasattr(model, "snapshot"):
        raise TypeError("plot_predictive is for estimators; pass model.snapshot() of an online forest")
    if hasattr(model, "tree"):
        raise TypeError("plot_predictive is for estimators; post.predictive(rows) has the distributions of a posterior")
    schema: Schema = model.schema_
    number, owner = input_number(schema, feature), type(model).__name__
    fixed = _typical_row(schema) if at is None else schema.as_read(rows_table(at, owner), owner)
    if fixed.n_rows != 1:
        raise ArgumentError("at", f"must be one row, but has {fixed.n_rows}")
    place = schema.places(fixed, owner, range(schema.n_features))[int(np.flatnonzero(schema.input_of == number)[0])]
    reader, own = _reader(schema, number), fixed.column(place).numbers
    if reader.hashed is not None:
        raise ArgumentError(
            "column", f"is {feature!r}, whose texts are hashed, so that the model has no list of them; use effect()"
        )
    is_known = own is not None and bool(own[0] == own[0])
    values = _every_value(reader, float(own[0]) if own is not None and is_known else 0.0)
    n = _length(values)
    columns = {k: fixed.column(k).at(np.zeros(n, dtype=np.int64)) for k in range(fixed.n_columns)} | {place: values}
    table = Table(n, fixed.n_columns, fixed.names, lambda label, k: columns[k])
    dist = model.predictive(table, **repeated(row_data, n))
    name = schema.input_names[number] if schema.input_names is not None else f"x{number}"
    kind: Any = {"datetime": "date", "numeric": "number"}.get(reader.kind, "category")
    points = tuple(cells_of(values, n))
    if kind != "category" and not len(reader.cuts) and not is_known:
        kind, points = "category", (ANY_VALUE, *points[1:])
    if model.has_classes:
        classes = tuple(model.classes_)
        mean = dist.probs()[:, : len(classes)]
        mean = low = high = np.ones_like(mean) if len(classes) == 1 else mean
        outputs, band = list(range(len(classes))), None
    else:
        classes, outputs, band = None, [], f"{100 * coverage:.3g} % interval"
        mean, (low, high) = dist.mean(), dist.interval(coverage).T
        high = np.minimum(high, getattr(dist, "times", [np.inf])[-1])  # survival curves may end above it
    curve = Effect(name, kind, points, mean, low, high, 0.0, np.zeros(n), 1, classes)
    return draw_effect(curve, outputs, line="mean", band=band, ax=ax)


# ---- values of columns -----------------------------------------------------------------------------------------------


def _reader(schema: Schema, number: int) -> Column:
    """The first column of codes that reads an input."""
    return schema.columns[int(np.flatnonzero(schema.input_of == number)[0])]


def _every_value(column: Column, only: float) -> Values:
    """One value for each code of a column, and a missing one where rows of fit had some; `only` one without cuts."""
    missing = [np.nan] if column.has_missing else []
    if column.kind == "categorical":
        index = np.append(np.arange(len(column.categories)), [-1] if missing else []).astype(np.int64)
        return Values("categorical", None, column.categories, index)
    if column.kind == "boolean":
        return Values("boolean", np.array([0.0, 1.0, *missing]))
    cuts = column.cuts
    if not len(cuts):
        return Values(column.kind, np.array([only, *missing]))
    step = (cuts[-1] - cuts[0]) / len(cuts) or 1.0
    middle = 0.5 * (cuts[:-1] + cuts[1:])
    return Values(column.kind, np.array([cuts[0] - 0.5 * step, *middle, cuts[-1] + 0.5 * step, *missing]))


def _length(values: Values) -> int:
    found = values.index if values.index is not None else values.numbers
    assert found is not None
    return len(found)


def _typical_row(schema: Schema) -> Table:
    """The middle of each column: its median cut point, or the middle category in the order of its codes."""
    columns = []
    for number in range(schema.n_inputs):
        column = _reader(schema, number)
        if column.kind == "categorical" or column.hashed is not None:
            index = np.array([len(column.categories) // 2 if column.categories else -1])
            columns.append(Values("categorical", None, column.categories, index))
        else:
            middle = float(column.cuts[len(column.cuts) // 2]) if len(column.cuts) else np.nan
            columns.append(Values(column.kind, np.array([0.0 if column.kind == "boolean" else middle])))
    names = None if schema.input_names is None else tuple(schema.input_names)
    return Table(1, len(columns), names, lambda label, k: columns[k])
