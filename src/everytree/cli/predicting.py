"""Predictions as columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.cli.models import ModelFile, inputs, working
from everytree.cli.problems import UserError, one_of
from everytree.cli.tables import TableFile
from everytree.progress import Progress

ROWS_AT_ONCE = 2**15
"""Rows predicted at a time: enough for the kernels, few enough for the memory of quantiles and for a bar to move."""


@dataclass(frozen=True)
class Asked:
    """What is wanted of each row.

    Attributes
    ----------
    proba, std : bool
    quantiles : sequence of float
    interval : float or None
        Coverage.
    keep : sequence of str
        Columns of the table to repeat.
    """

    proba: bool = False
    std: bool = False
    quantiles: Sequence[float] = ()
    interval: float | None = None
    keep: Sequence[str] = ()
    jobs: int | None = None
    progress: bool = False


def predict_table(source: TableFile, of: ModelFile, asked: Asked) -> dict[str, Any]:
    """Columns of answers by name, a row each."""
    model, memory = of.model, of.memory
    _check(source, model, asked)
    X = inputs(source, of, (memory.target, memory.weight, memory.exposure, memory.censored))
    exposure = None
    if memory.exposure is not None and memory.exposure in source.columns:
        exposure = source.values(memory.exposure, "exposure")
    answer = _classes if hasattr(model, "classes_") else _numbers
    parts: list[dict[str, NDArray[Any]]] = []
    with (
        source.blamed(exposure=memory.exposure),
        working(model, asked.jobs, False),
        Progress("predicting", source.n_rows, asked.progress, unit="rows") as progress,
    ):
        for start in range(0, source.n_rows, ROWS_AT_ONCE):
            some = X.slice(start, ROWS_AT_ONCE)
            more = {} if exposure is None else {"exposure": exposure[start : start + ROWS_AT_ONCE]}
            parts.append(answer(model, some, asked, more))
            progress.step(some.num_rows)
    answers = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return {**{name: source.table.column(name) for name in asked.keep}, **answers}


def _check(source: TableFile, model: Any, asked: Asked) -> None:
    """Options that this model has no answer for."""
    for name in asked.keep:
        if name not in source.columns:
            raise UserError(f"{source.name}: there is no column {name!r} to keep; {one_of(name, source.columns)}")
    if "prediction" in asked.keep:
        raise UserError(f"{source.name}: a column 'prediction' cannot be kept, since the answers have that name")
    if hasattr(model, "classes_"):
        if asked.quantiles or asked.interval is not None or asked.std:
            raise UserError(
                "--quantiles, --interval and --std are for numbers, but this model has classes; see --proba"
            )
    elif asked.proba:
        raise UserError("--proba is for classes, but this model has numbers; see --quantiles and --interval")
    if not all(
        0.0 < level < 1.0 for level in (*asked.quantiles, *([] if asked.interval is None else [asked.interval]))
    ):
        raise UserError("--quantiles and --interval must lie between 0 and 1")


def _classes(model: Any, X: Any, asked: Asked, more: dict[str, Any]) -> dict[str, NDArray[Any]]:
    del more  # classes have no exposure
    probs = model.predict_proba(X)
    columns = {"prediction": model.classes_[probs.argmax(axis=1)]}
    if asked.proba:
        columns |= {f"p_{label}": probs[:, k] for k, label in enumerate(model.classes_)}
    return columns


def _numbers(model: Any, X: Any, asked: Asked, more: dict[str, Any]) -> dict[str, NDArray[Any]]:
    mean, std = model.predict(X, return_std=True, **more)
    columns = {"prediction": mean}
    if asked.std:
        columns["std"] = std
    if asked.quantiles:
        values = model.predict_quantiles(X, list(asked.quantiles), **more)
        columns |= {f"q{level:g}": values[:, k] for k, level in enumerate(asked.quantiles)}
    if asked.interval is not None:
        ends = model.predict_interval(X, asked.interval, **more)
        columns |= {"lower": ends[:, 0], "upper": ends[:, 1]}
    return columns
