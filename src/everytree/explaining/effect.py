"""The effect of a column: the average prediction of some rows, all of them given the same value in that column."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.checks import whole_number
from everytree.base.errors import ArgumentError
from everytree.base.words import number_of
from everytree.explaining.explanation import cell_text, place_of_class
from everytree.tables.one_row import cells_of
from everytree.tables.reading import Table, Values
from everytree.tables.schema import Schema

Kind = Literal["number", "date", "category"]


@dataclass(frozen=True)
class Effect:
    """The effect of a column, at some of its values.

    Attributes
    ----------
    column : str
    kind : {"number", "date", "category"}
    points : tuple
        Values of the column, in ascending order for numbers; None, the last one, is a missing value.
    mean : (n_points,) or (n_points, n_classes) float64
        The average prediction of the rows, each with this value in the column and its own values in all others.
    low, high : arrays like `mean`
        The spread over the rows: `spread` of their predictions lie between these quantiles, with equal tails. A wide
        band says that the other columns matter at this value; it is not the uncertainty of the mean.
    spread : float
    share : (n_points,) float64
        Share of the rows whose own value is nearest to the point.
    n_rows : int
        Number of rows that were averaged over.
    classes : tuple or None
        None where the target is a number.
    """

    column: str
    kind: Kind
    points: tuple[Any, ...]
    mean: FloatArray
    low: FloatArray
    high: FloatArray
    spread: float
    share: FloatArray
    n_rows: int
    classes: tuple[Any, ...] | None

    def __repr__(self) -> str:
        what = "means" if self.classes is None else f"probabilities of {list(self.classes)}"
        points, rows = number_of(len(self.points), "point"), number_of(self.n_rows, "row")
        return f"Effect({self.column!r}: {what} at {points}, over {rows})"

    def plot(self, *, of: Any = None, ax: Any = None) -> Any:
        """Draw the effect and its spread over the rows; returns matplotlib's axes.

        Parameters
        ----------
        of : class label, optional
            By default the second of two classes, or all of more, these without their spread.
        ax : matplotlib.axes.Axes, optional
        """
        from everytree.view.plot.effect import draw_effect

        band = f"{100 * self.spread:.3g} % of the {self.n_rows:,} rows"
        return draw_effect(self, self.outputs(of), line="mean over the rows", band=band, ax=ax)

    def outputs(self, of: Any = None) -> list[int]:
        """Places of the classes to draw; of numbers, none."""
        place = place_of_class(self.classes, of)
        if place is None and self.classes is not None:
            return [1] if len(self.classes) == 2 else list(range(len(self.classes)))
        return [] if place is None else [place]

    def labels(self) -> list[str]:
        """The points as text."""
        return [cell_text(point) for point in self.points]


def input_number(schema: Schema, column: Any) -> int:
    """The number of an input column by its name or number; an error names those that there are."""
    known = schema.input_names
    if isinstance(column, str):
        if known is None or column not in known:
            names = f"{known}" if known is not None else f"0..{schema.n_inputs - 1}; the table of fit had no names"
            raise ArgumentError("column", f"is {column!r}, but the columns are {names}")
        return known.index(column)
    if isinstance(column, bool) or not isinstance(column, int | np.integer) or not 0 <= column < schema.n_inputs:
        last = schema.n_inputs - 1
        raise ArgumentError("column", f"must be a name or a number from 0 to {last}, but is {column!r}")
    return int(column)


def effect_of(
    predict: Callable[[Table], FloatArray],
    schema: Schema,
    table: Table,
    column: Any,
    owner: str,
    *,
    max_points: int,
    max_rows: int | None,
    spread: float,
) -> Effect:
    """The effect of an input column over the rows of a table."""
    whole_number("max_points", max_points, 2)
    if not 0.0 < spread < 1.0:
        raise ArgumentError("spread", f"must be between 0 and 1, but is {spread!r}")
    number = input_number(schema, column)
    if max_rows is not None and table.n_rows > whole_number("max_rows", max_rows, 1):
        table = table.at(np.sort(np.random.default_rng(0).permutation(table.n_rows)[:max_rows]))
    readers = np.flatnonzero(schema.input_of == number)
    place = schema.places(table, owner, [int(readers[0])])[int(readers[0])]
    table = schema.as_read(table, owner)
    columns = {k: table.column(k) for k in range(table.n_columns)}  # read once
    table = replace(table, read=lambda label, k: columns[k])
    codes = schema.encode(table, owner=owner)[:, readers]
    cells = cells_of(columns[place], table.n_rows)
    of_point, rows = _points(codes, columns[place], cells, max_points)
    found = np.stack([predict(_with_value(table, columns, place, row)) for row in rows])  # (points, rows, ...)
    tail = 0.5 * (1.0 - spread)
    low, high = np.quantile(found, [tail, 1.0 - tail], axis=1)
    share = np.bincount(of_point, minlength=len(rows)) / table.n_rows
    name = schema.input_names[number] if schema.input_names is not None else f"x{number}"
    kind = _kind(schema, readers)
    points = tuple(cells[row] for row in rows)
    return Effect(name, kind, points, found.mean(axis=1), low, high, spread, share, table.n_rows, None)


def _kind(schema: Schema, readers: NDArray[np.int64]) -> Kind:
    column = schema.columns[int(readers[0])]
    kind = column.kind if column.hashed is None else "categorical"
    return "date" if kind == "datetime" else "number" if kind == "numeric" else "category"


def _with_value(table: Table, columns: dict[int, Values], index: int, row: int) -> Table:
    """The table with the value of one row in a column of all rows."""
    same = columns | {index: columns[index].at(np.full(table.n_rows, row))}
    return replace(table, read=lambda label, k: same[k])


def _points(
    codes: NDArray[Any], values: Values, cells: NDArray[Any], max_points: int
) -> tuple[NDArray[np.int64], list[int]]:
    """The point to which each row belongs, and for each point a row that has its value.

    The model cannot tell rows of the same codes apart. A point of numbers is the middle row of those.
    """
    _, group = np.unique(codes, axis=0, return_inverse=True)
    group = np.ravel(group)
    by = np.arange(len(cells), dtype=np.float64)
    if values.numbers is not None:
        by = np.asarray(values.numbers, dtype=np.float64)
    is_missing = np.array([cell is None for cell in cells])
    known = np.flatnonzero(~is_missing)
    members = [known[group[known] == g] for g in np.unique(group[known])]
    members = [rows[np.argsort(by[rows], kind="stable")] for rows in members]
    if values.numbers is not None:
        members.sort(key=lambda rows: float(by[rows[0]]))
        members = _fewer(members, max_points)
    points = [int(rows[len(rows) // 2]) for rows in members]
    of_point = np.zeros(len(cells), dtype=np.int64)
    for number, rows in enumerate(members):
        of_point[rows] = number
    if is_missing.any():
        of_point[is_missing] = len(points)
        points.append(int(np.flatnonzero(is_missing)[0]))
    return of_point, points


def _fewer(members: list[NDArray[np.int64]], max_points: int) -> list[NDArray[np.int64]]:
    """Join neighbours until there are few enough, about as many rows in each; the first and the last stay alone."""
    if len(members) <= max_points:
        return members
    up_to = np.cumsum([len(rows) for rows in members[1:-1]])
    part = np.minimum((up_to - 1) * (max_points - 2) // up_to[-1], max_points - 3)
    middle = [np.concatenate([rows for rows, p in zip(members[1:-1], part, strict=True) if p == k]) for k in
              np.unique(part)]  # fmt: skip
    return [members[0], *middle, members[-1]]
