"""Why rows of a table are predicted as they are: what each column adds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from everytree.base.words import number_of, short_number
from everytree.cli.models import ModelFile, input_names, open_inputs, open_model
from everytree.cli.problems import UserError, one_of
from everytree.cli.tables import STREAM, OpenTable, Reading
from everytree.cli.writing import check_output, output_format, to_standard_output, write_file
from everytree.explaining.explanation import Explanation
from everytree.predictive.restricted import restricted_mean, time_text

ROWS_AT_ONCE = 2**12
"""Rows explained at a time: for each there are as many numbers as columns and classes."""


def explain_file(
    model: str, table: str, out: str | None, how: Reading, *, row: int, label: str | None, say: Callable[[str], object]
) -> None:
    """One row of a table in words, or with `out` all rows as a table of contributions to the class of this label."""
    if out is not None:
        check_output(out, model, table)
        output_format(out, how.format)
    file = open_model(model)
    which = _class(file, label)
    source = open_inputs(file, table, how)
    if out is None:
        to_standard_output(f"{_row_in_words(file, source, row, which)}\n".encode())
        return
    written = write_file(_contributions(file, source, which), out, how.format)
    if out != STREAM:
        say(f"{out}: {number_of(written.n_rows, 'row')}, what each of {len(file.model.schema_.columns)} columns adds")


def _class(file: ModelFile, label: str | None) -> Any:
    """The class that is named; None where none is."""
    if label is None:
        return None
    if not file.model.has_classes:
        raise UserError(f"--class is for classes, but {file.path} predicts numbers")
    known = {str(one): one for one in file.model.classes_.tolist()}
    if label not in known:
        raise UserError(f"--class is {label!r}, which is not a class of {file.path}; {one_of(label, known)}")
    return known[label]


def _row_in_words(file: ModelFile, table: OpenTable, row: int, which: Any) -> str:
    """The row's place, its prediction, and what each column adds to it."""
    names, n_before = input_names(table.name, table.columns, file), 0
    for part in table.parts(names):
        own = row - n_before
        if own < part.n_rows:
            X = part.table.select(names).slice(own, 1)
            with part.reporting_errors():
                explained = file.model.explain(X)
            place, called = part.place(own), f"row {row}"
            called = called if place == called else f"{called} ({place})"
            return f"{table.name}, {called}: {_said(file, explained, X)}\n{explained.of_row(0, which).text()}"
        n_before += part.n_rows
    raise UserError(f"{table.name}: there is no row {row}; it has {number_of(n_before, 'row')}, counted from 0")


def _said(file: ModelFile, explained: Explanation, X: Any) -> str:
    """The prediction of a row; of a count, in one unit of exposure, since that is what the columns add up to."""
    if explained.classes is not None:
        return str(explained.classes[int(explained.prediction[0].argmax())])
    last_time = file.model.fitted_.last_time
    if last_time is not None:
        dist = file.model.predictive(X)
        median, mean = float(dist.quantile(0.5)[0]), float(restricted_mean(dist.sf, last_time)[0])
        last = short_number(last_time, 6)
        return f"median {time_text(median, last_time, 6)}, mean of times up to {last} {short_number(mean, 6)}"
    unit = "" if file.roles.exposure is None else f" where {file.roles.exposure!r} is 1"
    return f"{short_number(float(explained.prediction[0]), 6)}{unit}"


def _contributions(file: ModelFile, table: OpenTable, which: Any) -> Iterator[dict[str, Any]]:
    """The prediction, the base and the contribution of each column; a row each."""
    names = input_names(table.name, table.columns, file)
    for part in table.parts(names):
        X = part.table.select(names)
        for start in range(0, X.num_rows, ROWS_AT_ONCE):
            with part.reporting_errors():
                explained = file.model.explain(X.slice(start, ROWS_AT_ONCE))
            yield _columns(explained, which)


def _columns(explained: Explanation, which: Any) -> dict[str, Any]:
    values, base, total = explained.values, np.asarray(explained.base), explained.prediction
    columns: dict[str, Any] = {}
    if explained.classes is not None:
        classes, every = np.array(explained.classes), np.arange(len(explained))
        place = total.argmax(axis=1)
        if which is not None:
            place = np.full(len(explained), explained.classes.index(which))
        columns["class"] = classes[place]
        values, base, total = values[every, :, place], base[place], total[every, place]
    columns |= {"prediction": total, "base": np.broadcast_to(base, len(explained)).copy()}
    return columns | {f"from_{name}": values[:, k].copy() for k, name in enumerate(explained.columns)}
