"""Operators that turn raw columns into what trees read; `export.tables` defines that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from everytree.export.graph import ML, Graph, tensor
from everytree.export.inputs import Input, inputs_of, missing_text
from everytree.export.tables import UNSEEN, is_asked_by_value
from everytree.tables.column import Column
from everytree.tables.formulas import Formula
from everytree.tables.schema import Schema


def tree_inputs(graph: Graph, schema: Schema, *, all_codes: bool = False) -> str:
    """(n_rows, n_features) float64: numbers unchanged, or codes of all columns with `all_codes`; NaN is missing."""
    of_column: dict[int, str] = {}
    for one in inputs_of(schema):
        for k in one.readers:
            column = schema.columns[k]
            if column.kind == "categorical":
                of_column[k] = _category_codes(graph, column, one)
            else:
                of_column[k] = _numbers(graph, column, one, all_codes)
    for k, column in enumerate(schema.columns):
        if column.formula is not None:
            of_column[k] = _computed(graph, column.formula, of_column)
    return graph.add("Concat", *(of_column[k] for k in sorted(of_column)), axis=1)


def _computed(graph: Graph, formula: Formula, of_column: Mapping[int, str]) -> str:
    """The numbers of a column with a formula, by the same steps as in `Formula.numbers`."""
    a, b = (
        graph.add("Div", of_column[place], graph.constant(np.array(scale)))
        for place, scale in ((formula.first, formula.first_scale), (formula.second, formula.second_scale))
    )
    found = graph.add(_OPERATORS[formula.operator], a, b)
    zero, largest = graph.constant(np.array(0.0)), np.finfo(np.float64).max
    if formula.operator == "/":
        found = graph.add("Where", graph.add("Equal", b, zero), graph.add("Mul", a, zero), found)
    ends = [graph.constant(np.array(end)) for end in (largest, -largest)]
    end = graph.add("Where", graph.add("Less", zero, found), *ends)
    return graph.add("Where", graph.add("IsInf", found), end, found)


_OPERATORS = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div"}


def _category_codes(graph: Graph, column: Column, one: Input) -> str:
    keys: list[Any] = list(column.categories) if one.is_text else _distinct_numbers(one.name, column)
    missing: list[Any] = missing_text(column) if one.is_text else [np.nan]
    codes = np.append(_codes_of(column, len(keys)), np.full(len(missing), np.nan))
    return graph.add(
        "LabelEncoder", one.name, domain=ML,
        keys_tensor=tensor(np.array(keys + missing, dtype=object if one.is_text else np.float64)),
        values_tensor=tensor(codes), default_tensor=tensor(np.array([_new_code(column)])),
    )  # fmt: skip


def _new_code(column: Column) -> float:
    """The code of a category that was not there at fit."""
    if column.new_code >= 0:
        return float(column.new_code)
    return UNSEEN if column.has_unseen else np.nan


def _codes_of(column: Column, n_values: int) -> NDArray[np.float64]:
    """The code of each category, or of each interval between cuts; NaN where that is missing."""
    codes = np.array(column.groups or range(n_values), dtype=np.float64)
    codes[codes < 0] = np.nan
    return codes


def _distinct_numbers(name: str, column: Column) -> list[float]:
    """Categories that are numbers, as float64."""
    numbers = [float(value) for value in column.categories]
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"input {name!r} has categories that are the same number in float64, and cannot be exported")
    return numbers


def _numbers(graph: Graph, column: Column, one: Input, all_codes: bool) -> str:
    values = one.name
    if column.single:
        values = graph.add("Cast", values, to=TensorProto.FLOAT)
        values = graph.add("Cast", values, to=TensorProto.DOUBLE)
    if is_asked_by_value(column) and not all_codes:
        return values
    is_above = graph.add("Less", graph.constant(column.cuts[None, :]), values)
    n_below = graph.add("Cast", is_above, to=TensorProto.INT64)
    n_below = graph.add("ReduceSum", n_below, graph.constant(np.array([1])), keepdims=1)
    code = graph.add("Gather", graph.constant(_codes_of(column, len(column.cuts) + 1)), n_below)
    return graph.add("Where", graph.add("IsNaN", values), graph.constant(np.array(np.nan)), code)
