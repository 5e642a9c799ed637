"""How good a model is on a table: a page about it, and how it does beside a scikit-learn forest."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.metrics import root_mean_squared_error

from everytree.cli.fitting import Wanted, feature_names, kind_and_target, make_estimator
from everytree.cli.memory import rows_that_fit
from everytree.cli.models import Memory, ModelFile, input_names, n_rows_of, open_model, open_rows, row_columns
from everytree.cli.problems import UserError
from everytree.cli.rows import TableRows
from everytree.cli.tables import STREAM, OpenTable, Reading
from everytree.cli.writing import check_output
from everytree.files.atomic import replace_file
from everytree.tables.schema import Schema

REPEATS = 3
TREES = 100
"""Of the forests on both sides, unless told otherwise; where ours is one tree, of theirs."""


# ---- a page ---------------------------------------------------------------------------------------------------------


def report_file(
    model: str,
    table: str | None,
    out: str,
    how: Reading,
    *,
    target: str | None,
    refit: bool,
    say: Callable[[str], object],
) -> None:
    """A page about a model, as a whole or not at all; judged by a table, or a sample of it that takes no more memory.

    Parameters
    ----------
    model, table, out : str
        Paths.
    how : Reading
    target : str or None
        Column of targets, if not that of the fit.
    refit : bool
        Whether the estimator is judged, refitted, though the table is new to the model.
    say : callable
    """
    check_output(out, model, *([] if table is None else [table]))
    if out == STREAM:
        raise UserError("a page cannot go to standard output; give --out the name of a file")
    of = open_model(model).with_target(target)
    if table is None:
        page, said = _page(of.model), ""
    else:
        source = open_rows(of, table, how)
        rows = rows_that_fit(source, say)
        is_new = not refit and _is_new(of, source)
        page, said = _judged_page(of, rows, is_new), _said(rows, is_new)
    try:
        replace_file(out, [page.encode("utf-8")])
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror or error}; nothing is left of it") from None
    say(f"{out}: {Path(out).stat().st_size:,} bytes{said}")


def _page(model: Any, *rows: Any, **more: Any) -> str:
    from everytree.report import report_html  # a comparison with a forest does without

    return report_html(model, *rows, **more)


def _is_new(of: ModelFile, table: OpenTable) -> bool:
    """Whether the model has not counted the table; one that was saved by Python does not say what it has counted."""
    is_told = bool(of.memory.counted) or n_rows_of(of.model) == 0
    return is_told and of.memory.first_counted(table) is None


def _judged_page(of: ModelFile, rows: TableRows, is_new: bool) -> str:
    memory = of.memory
    assert memory.target is not None
    y = rows.targets(memory.target)
    X = rows.table.select(input_names(rows.name, rows.columns, of))
    columns = row_columns(rows, memory)
    roles = {"y": memory.target, "sample_weight": memory.weight, **{name: getattr(memory, name) for name in columns}}
    weight = None if memory.weight is None else rows.values(memory.weight, "weight")
    with rows.blamed(**roles):
        return _page(of.model, X, target=y, held_out=is_new, sample_weight=weight, target_name=memory.target, **columns)


def _said(rows: TableRows, is_new: bool) -> str:
    of_rows = "" if rows.drawn is None else f"{rows.n_rows:,} of the {rows.n_rows_in_all:,} rows of "
    if is_new:
        return f", judged by {of_rows or 'the rows of '}{rows.name}, which are new to the model"
    return f", the estimator judged by refitting it to parts of {of_rows}{rows.name}"


# ---- beside a forest ------------------------------------------------------------------------------------------------


def bench_table(source: TableRows, memory: Memory, wanted: Wanted) -> str:
    """A Markdown table: fit and predict of both, side by side, and how well they do on the half they have not seen."""
    assert memory.target is not None
    if source.n_rows < 4:
        raise UserError(f"{source.name}: has {source.n_rows} rows, but a half to fit and a half to predict need 4")
    kind, y = kind_and_target(source, memory, wanted)
    X = source.table.select(feature_names(source.name, source.columns, memory, wanted.drop))
    seen = np.random.default_rng(wanted.seed or 0).permutation(source.n_rows) < source.n_rows // 2
    with source.blamed(y=memory.target):
        return _compare(X, y, seen, kind, wanted)


def _compare(X: Any, y: NDArray[Any], seen: NDArray[np.bool_], kind: str, wanted: Wanted) -> str:
    fit_rows, new_rows = X.filter(seen), X.filter(~seen)
    schema = Schema.fit(X)  # scikit-learn's trees take numbers only: they get the codes, and no time for making them
    fit_codes, new_codes = schema.encode(fit_rows), schema.encode(new_rows)
    ours = make_estimator(kind, wanted).set_params(n_jobs=wanted.jobs)
    forest = RandomForestClassifier if kind == "class" else RandomForestRegressor
    plain = forest(n_estimators=wanted.trees or TREES, random_state=wanted.seed or 0, n_jobs=wanted.jobs)
    answer = "predict_proba" if kind == "class" else "predict"
    fits = _seconds(lambda: ours.fit(fit_rows, y[seen]), lambda: plain.fit(fit_codes, y[seen]))
    predicts = _seconds(lambda: getattr(ours, answer)(new_rows), lambda: getattr(plain, answer)(new_codes))
    losses = [_loss(model, answer, rows, y[~seen]) for model, rows in ((ours, new_rows), (plain, new_codes))]
    score = "log-loss" if kind == "class" else "RMSE"
    head = f"| {int(seen.sum())} rows to fit, {int((~seen).sum())} to predict | {type(ours).__name__} "
    lines = [
        head + f"| {type(plain).__name__} | ratio |",
        "|---|---|---|---|",
        f"| fit | {_time(fits[0])} | {_time(fits[1])} | {_ratio(fits[1], fits[0])} |",
        f"| predict | {_time(predicts[0])} | {_time(predicts[1])} | {_ratio(predicts[1], predicts[0])} |",
        f"| {score} | {losses[0]:.4f} | {losses[1]:.4f} | {_ratio(losses[1], losses[0])} |",
    ]
    return "\n".join(
        [*lines, "", "Above 1x, everytree is faster or better. Times are the best of three, taken in turn."]
    )


def _seconds(*works: Callable[[], object]) -> list[float]:
    """The shortest time of each work; they take turns, so that a slow moment of the machine hits them alike."""
    best = [np.inf] * len(works)
    for _ in range(REPEATS):
        for k, work in enumerate(works):
            start = time.perf_counter()
            work()
            best[k] = min(best[k], time.perf_counter() - start)
    return best


def _loss(model: Any, answer: str, rows: Any, y: NDArray[Any]) -> float:
    said = getattr(model, answer)(rows)
    if answer == "predict":
        return float(root_mean_squared_error(y, said))
    known = np.isin(y, model.classes_)  # a class of one row alone may lie in the half that nobody has seen
    if not known.any():
        raise UserError("bench: no class of one half of the rows is in the other, so there is nothing to compare")
    probs = said[known, np.searchsorted(model.classes_, y[known])]
    return float(-np.log(np.maximum(probs, np.finfo(np.float64).eps)).mean()) + 0.0  # no loss is 0, not -0


def _ratio(theirs: float, ours: float) -> str:
    """How many times as much theirs is."""
    if ours == 0.0:
        return "1.00x" if theirs == 0.0 else "∞x"
    return f"{theirs / ours:.2f}x"


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms" if seconds < 1.0 else f"{seconds:.2f} s"
