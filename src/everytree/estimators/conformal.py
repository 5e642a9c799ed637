"""Conformal prediction of estimators: which rows are set aside, how they are read, and what is asked of new rows."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from everytree.base.arrays import as_labels
from everytree.base.errors import ArgumentError, OverlapError
from everytree.conformal.conformal import Asked, Conformal, Strata
from everytree.conformal.split import UNKNOWN, SplitConformal
from everytree.fitting.fitted import Fitted, code_more_rows
from everytree.fitting.given import GivenRows
from everytree.fitting.outputs import output_columns
from everytree.fitting.targets.target import Target
from everytree.fitting.targets.weights import read_weight
from everytree.tables.one_row import cells_of
from everytree.tables.reading import Table, read_table
from everytree.tables.repeats import read_groups

CUT_SHORT = ("censored", "entry")
"""Row data of times that are not known to the end, or only of those who lived so long."""

UNKNOWN_TARGETS = "leaves targets unknown: conformal intervals are proved for times that are all known"

LEFT_OUT = "left_out"
"""Value of `calibration_rows`: none is set aside, and what left rows out while the model was fitted is kept."""

HOW = "set rows aside by fit(..., calibration_rows=0.2), or give others to conformalize(X, y)"


def set_aside(given: GivenRows, calibration_rows: Any, random_state: Any, owner: str) -> tuple[GivenRows, GivenRows]:
    """Divide rows at random into those to fit and those to set aside; rows of one group stay together.

    Parameters
    ----------
    given : GivenRows
    calibration_rows : int or float
        Number or share of the rows, or of the groups, that are set aside.
    random_state : int, RandomState or None
    owner : str
        Name of the estimator, for errors.
    """
    _refuse_several(given)
    y = as_labels(given.y)
    weight = read_weight(given.weight, len(y))
    group = read_groups(given.groups, len(y))
    used = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    units = np.unique(used if group is None else group[used])
    n_aside = _number_aside(calibration_rows, len(units), "rows" if group is None else "groups")
    rng = np.random.default_rng(check_random_state(random_state).randint(np.iinfo(np.int32).max))
    is_aside = np.isin(np.arange(len(y)) if group is None else group, rng.permutation(units)[:n_aside])
    if weight is not None:
        is_aside &= weight > 0.0
    return _rows_of(given, ~is_aside, owner), _rows_of(given, is_aside, owner)._replace(weight=None)


def check_left_out(given: GivenRows) -> None:
    """Check rows of which some are left out while a model is fitted."""
    _refuse_several(given)
    for name in (*CUT_SHORT, "event"):
        if given.row_data.get(name) is not None:
            raise ArgumentError(name, UNKNOWN_TARGETS)


def _refuse_several(given: GivenRows) -> None:
    if output_columns(given.y) is not None:
        must = "is for one column of targets: fit without it, and give rows that were set aside to conformalize"
        raise ArgumentError("calibration_rows", must)


def _number_aside(calibration_rows: Any, n_units: int, units: str) -> int:
    is_share = isinstance(calibration_rows, numbers.Real) and not isinstance(calibration_rows, bool | numbers.Integral)
    if is_share and 0.0 < calibration_rows < 1.0:
        return min(max(round(float(calibration_rows) * n_units), 1), n_units - 1)
    is_number = isinstance(calibration_rows, numbers.Integral) and not isinstance(calibration_rows, bool)
    if is_number and 0 < calibration_rows < n_units:
        return int(calibration_rows)
    must = f"must be a share between 0 and 1, or a number from 1 to {n_units - 1} of the {n_units} {units}"
    raise ArgumentError("calibration_rows", f"{must}, but is {calibration_rows!r}")


def _rows_of(given: GivenRows, which: NDArray[np.bool_], owner: str) -> GivenRows:
    """Some of the rows."""
    rows = np.flatnonzero(which)
    return given.at(rows)._replace(X=read_table(given.X, owner).at(rows))


def split_conformal(model: Any, fitted: Fitted, given: GivenRows, by: Any = None) -> SplitConformal:
    """The scores of calibration rows, which the model was not fitted to; of each group, one row that is drawn.

    Parameters
    ----------
    model : estimator
    fitted : Fitted
        Its state, which it need not have yet.
    given : GivenRows
    by : str, int or None
        Column within whose categories coverage is to hold.
    """
    owner = type(model).__name__
    y = fitted.target.read(given.y)
    target = _numbers_or_unknown(fitted.target, y)
    table = read_table(given.X, owner)
    strata = None if by is None else _strata(table, by)
    rows = code_more_rows(given._replace(X=table, y=np.where(target == UNKNOWN, 0, target)), fitted, model._settings())
    _refuse_cut_short(rows.row_data)
    if fitted.has_counted(rows):
        raise OverlapError(f"this {owner} was fitted to these rows: calibration rows must be others")
    stratum = None if strata is None else _stratum(table, strata)
    rng = np.random.default_rng(0)
    salt = int(rng.integers(2**63))
    drawn = _one_of_each(read_groups(given.groups, len(y)), stratum, len(y), rng)
    some = rows.at(drawn)
    asked = Asked(
        fitted.model, some.codes, some.row_data, None if stratum is None else stratum[drawn], (), model.n_jobs
    )
    return SplitConformal.of_rows(asked, target[drawn], salt, strata)


def _numbers_or_unknown(target: Target, y: NDArray[Any]) -> NDArray[Any]:
    """Targets as the family takes them; of labels that the model has not seen, `UNKNOWN`."""
    classes = target.attributes().get("classes_")
    if classes is None:
        return np.asarray(target.numbers(y))
    known = np.isin(y, classes)
    found = np.full(len(y), UNKNOWN, dtype=np.int64)
    if known.any():
        found[known] = target.numbers(y[known])
    return found


def _refuse_cut_short(row_data: Mapping[str, NDArray[Any]]) -> None:
    for name in CUT_SHORT:
        if name in row_data and row_data[name].any():
            raise ArgumentError(name, UNKNOWN_TARGETS)


def _one_of_each(
    group: NDArray[np.int64] | None, stratum: NDArray[np.int64] | None, n_rows: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """One row of each group, drawn at random; of each group and category, where there are strata."""
    if group is None:
        return np.arange(n_rows)
    order = rng.permutation(n_rows)
    units = np.column_stack([group, np.zeros_like(group) if stratum is None else stratum])[order]
    return np.sort(order[np.unique(units, axis=0, return_index=True)[1]])


# ---- categories within which coverage holds --------------------------------------------------------------------------


def _strata(table: Table, by: Any) -> Strata:
    """The categories of a column of calibration rows."""
    if isinstance(by, str) and table.names is not None and by in table.names:
        place = table.names.index(by)
    elif isinstance(by, int | np.integer) and 0 <= by < table.n_columns:
        place = int(by)
    else:
        columns = list(table.names) if table.names is not None else f"0 .. {table.n_columns - 1}"
        raise ArgumentError("by", f"must be a column of X, one of {columns}", value=repr(by))
    name = f"column {place}" if table.names is None else table.names[place]
    labels = dict.fromkeys(_cells(table, place))
    return Strata(place, name, list(labels))


def _stratum(table: Table, strata: Strata) -> NDArray[np.int64]:
    """(n_rows,) number of each row's category; rows with another value are refused."""
    place = strata.column
    if table.names is not None and strata.name in table.names:
        place = table.names.index(strata.name)
    number_of = {label: number for number, label in enumerate(strata.labels)}
    cells = _cells(table, place)
    for row, cell in enumerate(cells):
        if cell not in number_of:
            must = f"no calibration row has this value, so that no coverage is possible; they have {strata.labels}"
            raise ArgumentError("X", must, table.label(place), row, repr(cell))
    return np.array([number_of[cell] for cell in cells], dtype=np.int64)


def _cells(table: Table, place: int) -> list[Any]:
    """Values of a column; dates as text, which files can hold."""
    cells = cells_of(table.column(place), table.n_rows).tolist()
    return [str(cell) if isinstance(cell, np.datetime64) else cell for cell in cells]


# ---- new rows --------------------------------------------------------------------------------------------------------


def conformal_of(model: Any) -> Conformal:
    """What makes the intervals and sets of a fitted estimator."""
    conformal = model._learnt().conformal
    if conformal is None:
        raise AttributeError(f"this {type(model).__name__} has no rows behind a guarantee: {HOW}")
    found: Conformal = conformal
    return found


def asked_of(model: Any, X: Any, row_data: Mapping[str, Any]) -> Asked:
    """New rows, as conformal prediction reads them."""
    table = read_table(X, type(model).__name__)
    codes = model._encode(table)
    strata = conformal_of(model).strata
    return Asked(
        model.model_, codes, model._columns(table, len(codes), row_data),
        None if strata is None else _stratum(table, strata), getattr(model, "classes_", ()), model.n_jobs,
    )  # fmt: skip
