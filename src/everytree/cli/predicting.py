"""Predictions as columns of a table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.progress import Progress
from everytree.base.words import number_of, short_number
from everytree.cli.models import ModelFile, input_names, open_inputs, open_model, working
from everytree.cli.problems import UserError, no_column
from everytree.cli.rows import TableRows
from everytree.cli.tables import STREAM, OpenTable, Reading
from everytree.cli.writing import check_output, output_format, write_file
from everytree.predictive.restricted import restricted_mean

ROWS_AT_ONCE = 2**15
"""Rows predicted at a time: enough for the kernels, few enough for the memory of quantiles and for a bar to move."""


@dataclass(frozen=True)
class Asked:
    """Columns to predict for each row, by the names of the options."""

    proba: bool = False
    std: bool = False
    quantiles: Sequence[float] = ()
    interval: float | None = None
    keep: Sequence[str] = ()
    jobs: int | None = None
    progress: bool = False


def predict_file(model: str, table: str, out: str, how: Reading, asked: Asked, say: Callable[[str], object]) -> None:
    """A model and a table, by their paths, to a table of answers."""
    check_output(out, model, table)
    output_format(out, how.format)
    file = open_model(model)
    source = open_inputs(file, table, how)
    if file.roles.exposure is not None and file.roles.exposure not in source.columns:
        say(f"{source.name}: there is no column {file.roles.exposure!r}; every exposure is taken to be 1")
    last_time = file.model.fitted_.last_time
    if last_time is not None and file.model.model_.baseline is None:
        say(
            f"{file.path}: times were censored, and the longest seen is {short_number(last_time, 6)}: mean_up_to is "
            "the mean of times up to it, and quantiles beyond it are inf; prediction and std extrapolate the rates"
        )
    written = write_file(predict_table(source, file, asked), out, how.format)
    if out != STREAM:
        columns = number_of(len(written.columns), "column")
        say(f"{out}: {number_of(written.n_rows, 'row')}, {columns}: {', '.join(written.columns)}")


def predict_table(table: OpenTable, file: ModelFile, asked: Asked) -> Iterator[dict[str, Any]]:
    """Columns of answers by name, a row each, part by part of the table."""
    model, roles = file.model, file.roles
    _check(table, model, asked)
    names = input_names(table.name, table.columns, file)
    read = [*names, *([] if roles.exposure is None else [roles.exposure])]
    with working(model, asked.jobs, False), Progress("predicting", None, asked.progress, unit="rows") as progress:
        for part in table.parts(read, asked.keep):
            with part.reporting_errors(exposure=roles.exposure):
                answers = _predict_part(part, file, asked, names, progress)
            yield {**{name: part.kept[name] for name in asked.keep}, **answers}


def _predict_part(
    part: TableRows, file: ModelFile, asked: Asked, names: Sequence[str], progress: Progress
) -> dict[str, NDArray[Any]]:
    X, exposure = part.table.select(names), None
    if file.roles.exposure is not None:
        is_there = file.roles.exposure in part.columns
        exposure = part.numbers(file.roles.exposure, "exposure") if is_there else np.ones(part.n_rows)
    answer = _classes if file.model.has_classes else _numbers
    answers: list[list[NDArray[Any]]] = []
    for start in range(0, part.n_rows, ROWS_AT_ONCE):
        some = X.slice(start, ROWS_AT_ONCE)
        more = {} if exposure is None else {"exposure": exposure[start : start + ROWS_AT_ONCE]}
        answers.append(answer(file.model, some, asked, more))
        progress.step(some.num_rows)
    return dict(zip(_names(file.model, asked), map(np.concatenate, zip(*answers, strict=True)), strict=True))


def _check(source: OpenTable, model: Any, asked: Asked) -> None:
    """Options that this model has no answer for."""
    for name in asked.keep:
        if name not in source.columns:
            raise no_column(source.name, name, source.columns, "keep")
    if model.has_classes:
        if asked.quantiles or asked.interval is not None or asked.std:
            raise UserError(
                "--quantiles, --interval and --std are for numbers, but this model has classes; see --proba"
            )
    elif asked.proba:
        raise UserError("--proba is for classes, but this model has numbers; see --quantiles and --interval")
    for option, level in [*(("quantiles", level) for level in asked.quantiles), ("interval", asked.interval)]:
        if level is not None and not 0.0 < level < 1.0:
            hint = f"; for {level:g}% write {level / 100:g}" if 1.0 <= level < 100.0 else ""
            raise UserError(f"--{option} must lie between 0 and 1, but is {level:g}{hint}")
    _check_names(source, model, asked)


def _check_names(source: OpenTable, model: Any, asked: Asked) -> None:
    """Each column of the answers has a name to itself."""
    for k, level in enumerate(asked.quantiles):
        if level in asked.quantiles[:k]:
            raise UserError(f"--quantiles has {level!r} twice")
    taken = set(_names(model, asked))
    for name in asked.keep:
        if name in taken:
            raise UserError(
                f"{source.name}: a column {name!r} cannot be kept, since a column of predictions has that name"
            )


def _names(model: Any, asked: Asked) -> list[str]:
    """Names of the columns of predictions."""
    names = ["prediction"] if model.fitted_.last_time is None else ["prediction", "median", "mean_up_to"]
    if asked.proba:
        names += [f"p_{label}" for label in model.classes_]
    if asked.std:
        names += ["std"]
    names += [f"q{level!r}" for level in asked.quantiles]
    return names if asked.interval is None else [*names, "lower", "upper"]


def _classes(model: Any, X: Any, asked: Asked, more: dict[str, Any]) -> list[NDArray[Any]]:
    """The columns that `_names` lists."""
    del more  # classes have no exposure
    probs = model.predict_proba(X)
    return [model.classes_[probs.argmax(axis=1)], *(probs.T if asked.proba else ())]


def _numbers(model: Any, X: Any, asked: Asked, more: dict[str, Any]) -> list[NDArray[Any]]:
    """The columns that `_names` lists."""
    mean, std = model.predict(X, return_std=True, **more)
    columns, last_time = [mean], model.fitted_.last_time
    if last_time is not None:
        dist = model.predictive(X)
        columns += [model.predict_quantiles(X, 0.5), restricted_mean(dist.sf, last_time)]
    columns += [std] if asked.std else []
    if asked.quantiles:
        columns += [*model.predict_quantiles(X, list(asked.quantiles), **more).T]
    if asked.interval is not None:
        columns += [*model.predict_interval(X, asked.interval, **more).T]
    if last_time is None:
        return columns
    are_times = [name not in ("prediction", "std") for name in _names(model, asked)]
    return [
        np.where(column > last_time, np.inf, column) if is_time else column
        for column, is_time in zip(columns, are_times, strict=True)
    ]
