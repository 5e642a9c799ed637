"""Rows in a file: codes, targets, weights and row data."""

from __future__ import annotations

import numpy as np

from everytree.families.base import NativeFamily
from everytree.files.sections import Reader, Writer
from everytree.posterior.rows import Rows
from everytree.tables.schema import Schema


def write_rows(writer: Writer, rows: Rows) -> None:
    weight = {} if rows.weight is None else {"weight": rows.weight}
    writer.put_arrays(codes=rows.codes, y=rows.y, **weight, **rows.row_data)


def read_rows(reader: Reader, schema: Schema, row_names: list[str], family: NativeFamily, is_classes: bool) -> Rows:
    """Read rows that the leaf model accepts."""
    codes = reader.array("codes", schema.dtype, (None, schema.n_features))
    y = reader.array("y", np.int64 if is_classes else np.float64, (len(codes),))
    weight = reader.array("weight", np.float64, (len(codes),)) if "weight" in reader else None
    row_data = {
        name: reader.array(name, np.float64, (len(codes), None) if name == "inputs" else (len(codes),))
        for name in row_names
    }
    with reader.checking("y"):
        family.statistics(y, weight, **row_data)
    return Rows(codes, y, weight, row_data)
