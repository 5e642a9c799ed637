"""The rows that a model is judged by: its columns of a table, the targets, weights and row data."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.fitting.targets.weights import read_weight
from everytree.tables.reading import in_memory, is_records, read_table
from everytree.tables.repeats import read_groups
from everytree.tables.schema import Schema


@dataclass(frozen=True)
class JudgedRows:
    """Rows with weight, read as the model reads them."""

    table: Any  # narwhals.DataFrame or (n_rows, n_columns) array: the columns that the model reads
    y: NDArray[Any]  # (n_rows,) array: labels as in `classes_`, or numbers
    weight: FloatArray  # (n_rows,)
    row_data: dict[str, FloatArray]  # `exposure` or `censored`, where the model has them
    # (n_rows,): equal for rows that belong together, as the caller or the model says
    group: NDArray[np.int64] | None = field(default=None, kw_only=True)
    # (n_rows,): numbers of the rows in the table, from 0 on; None where these are all of it
    place: NDArray[np.int64] | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return len(self.y)

    @property
    def inputs(self) -> Any:
        """The table in its own library."""
        return self.table.to_native() if isinstance(self.table, nw.DataFrame) else self.table

    @property
    def targets(self) -> dict[str, Any]:
        """The targets as `fit` takes them."""
        weight = None if (self.weight == 1.0).all() else self.weight
        return {"y": self.y, "sample_weight": weight, **self.row_data}

    def column(self, number: int) -> NDArray[Any]:
        """(n_rows,) the values of one column that the model reads."""
        is_frame = isinstance(self.table, nw.DataFrame)
        given = self.table.get_column(self.table.columns[number]).to_numpy() if is_frame else self.table[:, number]
        values = np.asarray(given)
        if values.dtype.kind in "biufM":
            return values
        found = read_table(self.inputs, "report").column(number)  # durations are their seconds
        return values if found.numbers is None or found.kind != "numeric" else np.asarray(found.numbers)

    def at(self, rows: NDArray[np.int64]) -> JudgedRows:
        """Return some of the rows."""
        more = {name: values[rows] for name, values in self.row_data.items()}
        group, place = None if self.group is None else self.group[rows], self.places[rows]
        return JudgedRows(self.table[rows], self.y[rows], self.weight[rows], more, group=group, place=place)

    @property
    def places(self) -> NDArray[np.int64]:
        """(n_rows,) numbers of the rows in the table, from 0 on."""
        return np.arange(len(self)) if self.place is None else self.place


def read_rows(
    model: Any, table: Any, target: Any, sample_weight: Any, row_data: Mapping[str, Any], groups: Any = None
) -> JudgedRows:
    """Read and check the rows; those of weight 0 are left out."""
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    is_frame = isinstance(frame, nw.DataFrame)
    frame = frame if is_frame else np.asarray(table)
    given = {"target": target, "sample_weight": sample_weight, "groups": groups, **row_data}
    if target is None:
        given["target"] = _only_other(model, frame, [name for name in given.values() if isinstance(name, str)])
    columns = {role: _column_of(frame, role, value) for role, value in given.items()}
    if is_frame:
        frame = _inputs(model, frame, [name for name in given.values() if isinstance(name, str)])
    elif frame.ndim != 2 or frame.shape[1] != model.schema_.n_inputs:
        shape = f"shape {frame.shape}" if frame.ndim != 2 else f"{frame.shape[1]} columns"
        raise ValueError(f"table has {shape}, but the model reads {model.schema_.n_inputs} columns, by position")
    frame = _with_values(frame, model.schema_)
    if len(frame) != len(columns["target"]):
        raise ValueError(f"target has {len(columns['target'])} entries, but the table has {len(frame)} rows")
    known = model.fitted_.target
    y = known.numbers(known.read(columns.pop("target")))
    weight, group = read_weight(columns.pop("sample_weight"), len(y)), read_groups(columns.pop("groups"), len(y))
    labels = model.classes_[y] if model.has_classes else y
    rows = JudgedRows(frame, labels, np.ones(len(y)) if weight is None else weight, {}, group=group)
    rows = replace(rows, row_data=_row_data(model, rows, columns))
    return rows if (rows.weight > 0.0).all() else rows.at(np.flatnonzero(rows.weight))


def groups_of(model: Any, table: Any, told: Any) -> Any:
    """The groups of rows as told, or by default the name that they had at fit, if the table has such a column."""
    name = getattr(getattr(model, "fitted_", None), "groups", None)
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    is_there = bool(name) and isinstance(frame, nw.DataFrame) and name in frame.columns
    return name if told is None and is_there else told


def _with_values(frame: Any, schema: Schema) -> Any:
    """The columns that a model reads, text as the numbers or dates that it is read as."""
    place_of = {int(schema.input_of[k]): column for k, column in enumerate(schema.columns) if column.text is not None}
    if not place_of:
        return frame
    is_frame = isinstance(frame, nw.DataFrame)
    table = schema.as_read(read_table(frame.to_native() if is_frame else frame, "report"), "report")
    values = {place: np.asarray(table.column(place).numbers, dtype=np.float64) for place in place_of}
    for place, column in place_of.items():
        if column.kind == "datetime":
            known = np.nan_to_num(values[place]).astype("datetime64[us]")
            values[place] = np.where(np.isnan(values[place]), np.datetime64("NaT", "us"), known)
    if is_frame:
        names, kind = frame.columns, frame.implementation
        return frame.with_columns(*(nw.new_series(names[k], numbers, backend=kind) for k, numbers in values.items()))
    read = np.array(frame, dtype=object)
    for place, numbers in values.items():
        read[:, place] = numbers
    return read


def check_table(table: Any) -> None:
    """Refuse a path in the place of a table."""
    if isinstance(table, str | os.PathLike):
        raise TypeError(
            f"table is {os.fspath(table)!r}, but must be a table in memory, such as pandas.read_csv makes of a file"
        )


def as_table(table: Any) -> Any:
    """A table as it was given; of dicts, one a row, a data frame; of a query, its result."""
    if not is_records(table):
        return None if table is None else in_memory(table)
    names = dict.fromkeys(name for row in table for name in row)
    columns = {str(name): [row.get(name) for row in table] for name in names}
    for backend in ("pandas", "polars", "pyarrow"):
        if find_spec(backend) is not None:
            return nw.from_dict(columns, backend=backend).to_native()
    raise TypeError("a table of dicts needs pandas, polars or pyarrow; install one of them")


def other_columns(model: Any, table: Any) -> list[str]:
    """Names of a table's columns that a model does not read; none where it knows no names."""
    frame = nw.from_native(table, eager_only=True, pass_through=True)
    known = list(getattr(model, "feature_names_in_", ()))
    if not known or not isinstance(frame, nw.DataFrame):
        return []
    return [name for name in frame.columns if name not in known]


def _only_other(model: Any, frame: Any, taken: list[str]) -> str:
    """Return the name of the only column of a table that has no other use."""
    if not isinstance(frame, nw.DataFrame):
        raise ValueError("target must be an array of targets, since table has no names of columns")
    absent = [name for name in getattr(model, "feature_names_in_", ()) if name not in frame.columns]
    if absent:
        raise ValueError(f"table lacks the columns {absent}, which the model reads; it has {frame.columns}")
    others = [name for name in other_columns(model, frame) if name not in taken]
    if len(others) != 1:
        raise ValueError(f"target must say which column of the table is the target; candidates are {others}")
    return str(others[0])


def _column_of(frame: Any, role: str, given: Any) -> Any:
    """Return a column by its name, or as it was given."""
    if not isinstance(given, str):
        return given
    if not isinstance(frame, nw.DataFrame):
        what = {"target": "targets", "groups": "their names"}.get(role, "numbers")
        raise ValueError(f"{role} must be an array of {what}, since table has no names of columns")
    if given not in frame.columns:
        raise ValueError(f"{role} is {given!r}, but the columns of the table are {frame.columns}")
    return frame[given].to_numpy()


def _inputs(model: Any, frame: Any, taken: list[str]) -> Any:
    """Return the columns of a data frame that the model reads: by name, or by position if it has no names."""
    known = model.schema_.input_names
    if known is None:
        rest = frame.drop(taken)
        if len(rest.columns) != model.schema_.n_inputs:
            raise ValueError(
                f"table has {len(rest.columns)} columns besides {taken}, but the model reads "
                f"{model.schema_.n_inputs}, by position"
            )
        return rest
    by_name = {str(name): name for name in frame.columns}  # names may be numbers
    absent = [name for name in known if name not in by_name]
    if absent:
        raise ValueError(f"table lacks the columns {absent}, which the model reads; it has {frame.columns}")
    return frame.select([nw.col(by_name[name]) for name in known])


def _row_data(model: Any, rows: JudgedRows, given: Mapping[str, Any]) -> dict[str, FloatArray]:
    """Return the row data, as at fit; inputs of linear leaves are read from the columns."""
    fitted = model.fitted_
    columns: dict[str, FloatArray] = fitted.target.row_data(len(rows), given)
    for name in fitted.target.known_names:
        if (name in columns) != (name in fitted.row_names):
            problem = (
                "is given, but the model was fitted without it"
                if name in columns
                else "is None, but the model was fitted with it"
            )
            raise ValueError(f"{name} {problem}")
    return columns
