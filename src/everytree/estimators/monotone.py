"""Columns with which predictions must rise or fall."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.errors import ArgumentError
from everytree.explaining.effect import input_number
from everytree.fitting.fitted import Fitted
from everytree.predictive.rearranged import MAX_CELLS, Axis, Grid
from everytree.tables.schema import Schema

NAME = "monotonic_cst"

MAX_COLUMNS = int(np.log2(MAX_CELLS))
"""With more constrained columns, a grid would not have two points along each."""

POINTS_AT_ONCE = 1 << 18


def axes_of(constraint: Any, fitted: Fitted) -> tuple[Axis, ...]:
    """The columns of codes in which predictions are monotone, and in which direction; none without a constraint."""
    signs = _signs(constraint, fitted.schema) if constraint is not None else {}
    if not signs:
        return ()
    if len(signs) > MAX_COLUMNS:
        raise ArgumentError(NAME, f"constrains {len(signs)} columns, but at most {MAX_COLUMNS} can be")
    family = fitted.model.family
    if family.has_classes and family.size > 2:
        raise ArgumentError(NAME, f"is for numbers and for two classes, but y has {family.size} classes")
    if "inputs" in family.row_data:
        raise ArgumentError(NAME, "is not for leaves that are lines, whose slopes have no sign; choose another family")
    return tuple(_axis(fitted.schema, number, sign) for number, sign in sorted(signs.items()))


def _signs(constraint: Any, schema: Schema) -> dict[int, int]:
    """The sign of each constrained input, by its number."""
    if isinstance(constraint, Mapping):
        given = list(constraint.items())
    else:
        values = np.asarray(constraint)
        if values.shape != (schema.n_inputs,):
            must = f"must have one entry for each of the {schema.n_inputs} columns, or name some: {{'age': 1}}"
            raise ArgumentError(NAME, f"{must}; its shape is {values.shape}")
        given = list(enumerate(values.tolist()))
    signs: dict[int, int] = {}
    for column, sign in given:
        if isinstance(sign, bool) or sign not in (-1, 0, 1):
            raise ArgumentError(NAME, f"must be 1 (rises), -1 (falls) or 0 for column {column!r}, but is {sign!r}")
        try:
            number = input_number(schema, column)
        except ArgumentError as error:
            raise ArgumentError(NAME, f"names a column that {error.must}") from None
        if sign and signs.setdefault(number, int(sign)) != sign:
            raise ArgumentError(NAME, f"says both 1 and -1 for column {column!r}")
    return signs


def _axis(schema: Schema, number: int, sign: int) -> Axis:
    """The codes of a column of numbers or dates."""
    columns = np.flatnonzero(schema.input_of == number)
    name = schema.input_names[number] if schema.input_names is not None else f"x{number}"
    reader = schema.columns[columns[0]]
    is_ordered = reader.kind != "categorical" and reader.hashed is None and list(reader.groups) == sorted(reader.groups)
    if len(columns) != 1 or not is_ordered:
        raise ArgumentError(NAME, f"constrains column {name!r}, whose values have no order: it holds categories")
    return Axis(int(columns[0]), sign, reader.n_codes)


def over_grids(
    codes: NDArray[Any], axes: tuple[Axis, ...], predict: Callable[[NDArray[Any]], FloatArray]
) -> FloatArray:
    """(n_rows, ...) rearranged predictions of coded rows; `predict` is called with points of some of them at a time."""
    return np.concatenate([grid.sorted(predict(grid.codes)) for grid in _grids(codes, axes)])


def _grids(codes: NDArray[Any], axes: tuple[Axis, ...]) -> Iterator[Grid]:
    n_rows = max(1, POINTS_AT_ONCE // (2 * MAX_CELLS))
    for first in range(0, max(len(codes), 1), n_rows):
        yield Grid.of(codes[first : first + n_rows], axes, {})
