"""Rows in a file: codes, targets, weights and row data."""

from __future__ import annotations

import numpy as np

from everytree.families.base import NativeFamily
from everytree.files.sections import Reader, Writer
from everytree.posterior.rows import Rows
from everytree.tables.schema import Schema


def write_rows(to: Writer, rows: Rows) -> None:
    weight = {} if rows.weight is None else {"weight": rows.weight}
    to.put_arrays(codes=rows.codes, y=rows.y, **weight, **rows.row_data)


def read_rows(of: Reader, schema: Schema, row_names: list[str], family: NativeFamily, is_classes: bool) -> Rows:
    """Read rows that the leaf model accepts."""
    codes = of.array("codes", schema.dtype, (None, schema.n_features))
    y = of.array("y", np.int64 if is_classes else np.float64, (len(codes),))
    weight = of.array("weight", np.float64, (len(codes),)) if "weight" in of else None
    row_data = {
        name: of.array(name, np.float64, (len(codes), None) if name == "inputs" else (len(codes),))
        for name in row_names
    }
    with of.checking("y"):
        family.statistics(y, weight, **row_data)
    return Rows(codes, y, weight, row_data)
