"""Contributions of the columns to the prediction of a row."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.checks import whole_number
from everytree.base.errors import ArgumentError
from everytree.base.words import short_number

SHOWN = 12
"""Columns that are listed one by one; the others are added up."""


@dataclass(frozen=True)
class Explanation:
    """Contributions of the columns of some rows: `base` and the `values` of a row add up to its `prediction`.

    Attributes
    ----------
    values : (n_rows, n_columns) or (n_rows, n_columns, n_classes) float64
        What each column adds.
    base : float or (n_classes,) float64
        The prediction without any column: the mean over the rows of fit, or of the table that was given.
    prediction : (n_rows,) or (n_rows, n_classes) float64
    columns : tuple of str
    data : (n_rows, n_columns) object
        The values of the rows; None where missing.
    classes : tuple or None
        None where the target is a number.
    what : str
        What is added up: "probability", "mean", or what the trees add up with `scale="trees"`.
    """

    values: FloatArray
    base: Any
    prediction: FloatArray
    columns: tuple[str, ...]
    data: NDArray[Any]
    classes: tuple[Any, ...] | None
    what: str

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: Any) -> Explanation:
        """Return some of the rows; one row for a number."""
        if isinstance(rows, int | np.integer):
            row = int(rows)
            if not -len(self) <= row < len(self):
                raise IndexError(f"row {row}: there are {len(self)} rows, 0..{len(self) - 1}")
            rows = [row]
        return replace(self, values=self.values[rows], prediction=self.prediction[rows], data=self.data[rows])

    def of_row(self, row: int = 0, of: Any = None) -> RowContributions:
        """The contributions of one row, largest first.

        Parameters
        ----------
        row : int
        of : class label, optional
            By default the second of two classes, or the most probable one of more.
        """
        row = whole_number("row", row, 0, len(self) - 1)
        place = place_of_class(self.classes, of)
        if self.classes is None:
            values, base, total, what = self.values[row], float(self.base), float(self.prediction[row]), self.what
        else:
            if place is None:
                place = 1 if len(self.classes) == 2 else int(np.argmax(self.prediction[row]))
            values, base = self.values[row, :, place], float(self.base[place])
            total = float(self.prediction[row, place])
            name = self.classes[place]
            what = f"P({name})" if self.what == "probability" else f"{self.what} of {name}"
        order = np.argsort(-np.abs(values), kind="stable")
        cells = [cell_text(self.data[row, k]) for k in order]
        return RowContributions(what, base, total, [self.columns[k] for k in order], cells, values[order])

    def to_frame(self, row: int = 0, of: Any = None) -> Any:
        """A pandas table of one row's contributions, largest first; arguments as in `of_row`."""
        import pandas as pd

        one = self.of_row(row, of)
        return pd.DataFrame({"column": one.columns, "value": one.cells, "contribution": one.values})

    def to_shap(self) -> Any:
        """Convert to a `shap.Explanation`, for the plots of shap; needs that library."""
        try:
            shap: Any = import_module("shap")
        except ImportError:
            raise ImportError("to_shap makes an object of shap, which is not installed: pip install shap") from None
        n_rows = len(self)
        base = np.full(n_rows, self.base) if self.classes is None else np.tile(self.base, (n_rows, 1))
        names = None if self.classes is None else [str(name) for name in self.classes]
        return shap.Explanation(
            self.values, base, data=self.data, feature_names=list(self.columns), output_names=names
        )  # fmt: skip

    def plot(self, row: int = 0, *, of: Any = None, max_columns: int = SHOWN, ax: Any = None) -> Any:
        """Draw one row's contributions as horizontal bars; returns matplotlib's axes. Arguments as in `of_row`."""
        from everytree.view.plot.contributions import plot_contributions

        return plot_contributions(self.of_row(row, of), max_columns=max_columns, ax=ax)

    def __repr__(self) -> str:
        if not len(self):
            return f"Explanation(no rows, {len(self.columns)} columns)"
        more = f"\n... and {len(self) - 1} more row{'s' if len(self) > 2 else ''}" if len(self) > 1 else ""
        return self.of_row(0).text() + more


@dataclass(frozen=True)
class RowContributions:
    """Contributions of the columns to one predicted number of one row, largest first."""

    what: str  # what is predicted
    base: float
    prediction: float
    columns: list[str]  # names of columns, and their values in the row
    cells: list[str]
    values: FloatArray  # (n_columns,)

    def number(self, value: float, *, sign: bool = False) -> str:
        """A number of this row as text; all of them have the same number of digits after the point."""
        largest = max(abs(self.base), abs(self.prediction), float(np.abs(self.values).max(initial=0.0)))
        if not np.isfinite(largest):
            return f"{value:+.4g}" if sign else f"{value:.4g}"
        first = int(np.floor(np.log10(largest))) if largest > 0.0 else 0
        digits = min(max(3 - first, 2 if first < 4 else 0), 15)
        return f"{value:+,.{digits}f}" if sign else f"{value:,.{digits}f}"

    def lines(self, max_columns: int = SHOWN) -> list[tuple[str, str, float]]:
        """Column, value and contribution of the largest ones, then the sum of all others."""
        n = len(self.columns) if len(self.columns) <= max_columns + 1 else max_columns
        listed = list(zip(self.columns[:n], self.cells[:n], self.values[:n].tolist(), strict=True))
        n_others = len(self.columns) - n
        return [*listed, (f"{n_others} other columns", "", float(self.values[n:].sum()))] if n_others else listed

    def text(self) -> str:
        """A table of plain text."""
        rows = [("without any column", "", self.number(self.base))]
        rows += [(name, cell, self.number(value, sign=True)) for name, cell, value in self.lines()]
        rows += [(self.what, "", self.number(self.prediction))]
        widths = [max(len(row[k]) for row in rows) for k in range(3)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in rows]
        return "\n".join(line.rstrip() for line in lines)


def place_of_class(classes: tuple[Any, ...] | None, of: Any) -> int | None:
    """The place of a class that is asked for; None where none is."""
    if of is None:
        return None
    if classes is None:
        raise ArgumentError("of", f"is for classes, but the target is a number: {of!r}")
    if of not in classes:
        raise ArgumentError("of", f"must be one of the classes {list(classes)}, but is {of!r}")
    return classes.index(of)


def day_text(value: Any) -> str:
    """A date, or a moment at midnight, without hours; empty for anything else."""
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    if isinstance(value, datetime.datetime) and value.tzinfo is None and value.time() == datetime.time():
        return value.date().isoformat()
    return ""


def cell_text(value: Any) -> str:
    """A cell of a table in a few characters."""
    if value is None:
        return "missing"
    if isinstance(value, float):
        return short_number(value, 6)
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    text = day_text(value) or str(value)
    return text if len(text) <= 24 else f"{text[:23]}…"
