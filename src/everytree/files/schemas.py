"""Schemas in a file: their columns as JSON, long lists of numbers as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from everytree.files.families import check_all
from everytree.files.sections import Reader, Writer
from everytree.posterior.packing import slices
from everytree.tables.schema import Schema

_MANY = 32
"""From this length on, numbers take fewer bytes in an array of their own than in JSON."""

_TYPES: dict[str, tuple[type, Any]] = {"ints": (int, np.int64), "floats": (float, np.float64)}
"""Names of lists of one type in an array, the type, and that of the array."""


def write_schema(writer: Writer, schema: Schema) -> None:
    """Write the columns of a schema, the cut points of all of them one after another in an array."""
    plain = schema.to_dict()
    for i, column in enumerate(plain["columns"]):
        del column["cuts"]
        for name in ("categories", "groups"):
            column[name] = _as_array(writer, f"{name}{i}", column[name])
    writer.put(**plain)
    cuts = [column.cuts for column in schema.columns]
    writer.put_arrays(
        n_cuts=np.array([len(some) for some in cuts], dtype=np.int64), cuts=np.concatenate([np.zeros(0), *cuts])
    )


def _as_array(writer: Writer, name: str, values: list[Any]) -> Any:
    """Put many numbers of one type into an array, and return where they are; else the values."""
    for tag, (kind, dtype) in _TYPES.items():
        if len(values) >= _MANY and all(type(value) is kind for value in values):
            try:
                writer.put_arrays(**{name: np.array(values, dtype=dtype)})
            except OverflowError:  # a whole number of very many digits
                return values
            return {tag: name}
    return values


def read_schema(reader: Reader) -> Schema:
    """Read the schema, every column checked."""
    dtype, columns = reader.value("dtype", str), reader.value("columns", list)
    if dtype not in ("uint8", "uint16"):
        raise reader.error("dtype", f"must be uint8 or uint16, but is {dtype!r:.200}")
    for i, column in enumerate(columns):
        if not isinstance(column, dict) or "cuts" in column:
            raise reader.error("columns", f"[{i}] must be an object without cuts, but is {column!r:.200}")
    n_cuts, cuts = reader.array("n_cuts", np.int64, (len(columns),)), reader.array("cuts", np.float64, (None,))
    check_all(reader, "n_cuts", n_cuts, (n_cuts >= 0) & (n_cuts <= len(cuts)), f"must be from 0 to {len(cuts)}")
    if sum(n_cuts.tolist()) != len(cuts):
        raise reader.error("n_cuts", f"must sum to {len(cuts)}, the number of cuts")
    whole = [
        {name: _from_array(reader, value) for name, value in column.items()} | {"cuts": cuts[place]}
        for column, place in zip(columns, slices(n_cuts), strict=True)
    ]
    with reader.checking("columns"):
        return Schema.from_dict({"dtype": dtype, "columns": whole})


def _from_array(reader: Reader, value: Any) -> Any:
    """Return a list that is in an array, or the value itself."""
    if not isinstance(value, dict):
        return value
    tag = next(iter(value), None)
    if len(value) != 1 or tag not in _TYPES or not isinstance(value[tag], str):
        raise reader.error("columns", f"must name an array of {' or '.join(_TYPES)}, but one has {value!r:.200}")
    return reader.array(value[tag], _TYPES[tag][1], (None,)).tolist()
