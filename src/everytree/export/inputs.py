"""The inputs of an exported graph: one tensor per input column, each with its own type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.export.checks import check_exportable
from everytree.tables.column import Column, read_labels, read_numbers
from everytree.tables.reading import SAYS_MISSING, Values, column_label, read_table
from everytree.tables.schema import Schema


@dataclass(frozen=True)
class Input:
    """One input column."""

    name: str
    readers: tuple[int, ...]  # the columns of the schema that read it
    is_text: bool  # whether it holds text; numbers otherwise


def inputs_of(schema: Schema) -> list[Input]:
    """The input columns of a schema, in its order."""
    known = schema.input_names
    readers: list[list[int]] = [[] for _ in range(schema.n_inputs)]
    for k, place in enumerate(schema.input_of.tolist()):
        if schema.columns[k].formula is None:
            readers[place].append(k)
    found = []
    for place, own in enumerate(readers):
        name = f"x{place}" if known is None else known[place]
        if not name:
            raise ValueError(f"column {place} has an empty name, which an exported input cannot have")
        label = column_label(None if known is None else name, place)
        kinds = {_is_text(label, schema.columns[k]) for k in own}
        if len(kinds) > 1:
            raise ValueError(f"{label} is read as text and as numbers, but an exported input has one type")
        found.append(Input(name, tuple(own), kinds.pop()))
    return found


def _is_text(label: str, column: Column) -> bool:
    if column.hashed is not None:
        raise ValueError(f"{label} is text that each tree reads by a hash, for which exported graphs have no operator")
    kinds = {isinstance(value, str) for value in column.categories}
    if len(kinds) > 1:
        raise ValueError(
            f"{label} has categories of text and of numbers, {str(list(column.categories))[1:-1]}, "
            "but an exported input has one type; make them all text before the fit"
        )
    return kinds.pop() if kinds else column.kind == "categorical"


def missing_text(column: Column) -> list[str]:
    """Texts that mean a missing value, unless they are categories; the empty text first."""
    return sorted(SAYS_MISSING.difference(column.categories))


def onnx_inputs(model: Any, X: Any) -> dict[str, NDArray[Any]]:
    """Return a table as the tensors that the graph of `to_onnx(model)` takes.

    Parameters
    ----------
    model : fitted estimator
    X : (n_rows, n_features) table
        Whatever `model.predict` takes.

    Returns
    -------
    dict of str to (n_rows, 1) array
        Numbers as float64, NaN where missing: booleans as 0 and 1, dates as microseconds since 1970. Text as objects,
        "" where missing.
    """
    check_exportable(model)
    schema, owner = model.schema_, type(model).__name__
    table = read_table(X, owner)
    places = schema.places(table, owner, range(schema.n_features))
    feed = {}
    for one in inputs_of(schema):
        column, place = schema.columns[one.readers[0]], places[one.readers[0]]
        values, label = table.column(place), table.label(place)
        read = _text if one.is_text else _labels_as_numbers if column.kind == "categorical" else read_numbers
        feed[one.name] = np.asarray(read(column, label, values, table.n_rows)).reshape(-1, 1)
        if not one.is_text:
            feed[one.name] = feed[one.name].astype(np.float64)
    return feed


def _text(column: Column, label: str, values: Values, n_rows: int) -> NDArray[Any]:
    labels, index = read_labels(column, label, values, n_rows)
    return np.asarray(np.array([*map(str, labels), missing_text(column)[0]], dtype=object)[index])


def _labels_as_numbers(column: Column, label: str, values: Values, n_rows: int) -> NDArray[Any]:
    labels, index = read_labels(column, label, values, n_rows)
    numbers = [value if isinstance(value, int | float) else np.inf for value in labels]  # text is not a category here
    return np.asarray(np.array([*numbers, np.nan], dtype=np.float64)[index])
