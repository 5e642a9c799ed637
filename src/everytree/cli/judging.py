"""How good a model is on a table: a page about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from everytree.base.errors import OverlapError
from everytree.base.words import number_of
from everytree.cli.models import ModelFile, input_names, n_rows_of, open_model, open_rows, row_columns
from everytree.cli.problems import UserError
from everytree.cli.rows import TableRows
from everytree.cli.tables import STREAM, OpenTable, Reading
from everytree.cli.writing import check_output, replace_whole
from everytree.report.page import Page, contained, report_page


def report_file(
    model: str,
    table: str | None,
    out: str,
    how: Reading,
    *,
    target: str | None,
    groups: str | None = None,
    refit: bool,
    say: Callable[[str], object],
) -> None:
    """A page about a model, as a whole or not at all, judged by a table."""
    check_output(out, model, *([] if table is None else [table]))
    if out == STREAM:
        raise UserError("a page cannot go to standard output; give --out the name of a file")
    file = open_model(model).with_target(target)
    if groups is not None:
        file = replace(file, roles=replace(file.roles, groups=groups))
    if table is None:
        page, note = report_page(file.model, target_name=file.roles.target, progress=how.progress), ""
    else:
        source = open_rows(file, table, how)
        rows = source.read()
        is_new = not refit and _is_new(file, source)
        labels = _groups(file, rows, is_told=groups is not None)
        try:
            page = _judged_page(file, rows, labels, is_new, how.progress)
        except OverlapError:  # the same rows in another file
            is_new = False
            page = _judged_page(file, rows, labels, is_new, how.progress)
        note = _said(rows, is_new)
    replace_whole(out, [page.text.encode("utf-8")])
    say(f"{out}: {number_of(Path(out).stat().st_size, 'byte')}{note}")
    if page.listed:
        say(f"{out}: {contained(page.listed)}")


def _is_new(file: ModelFile, table: OpenTable) -> bool:
    """Whether the model has not counted the table; one that was saved by Python does not say what it has counted."""
    is_told = bool(file.roles.counted) or n_rows_of(file.model) == 0
    return is_told and file.roles.first_counted(table) is None


def _groups(file: ModelFile, rows: TableRows, *, is_told: bool) -> Any:
    """The groups of the rows; None where the model has none, or the table lacks their column and none was asked for."""
    name = file.roles.groups or file.model.fitted_.groups
    return rows.values(name, "groups") if name and (is_told or name in rows.columns) else None


def _judged_page(file: ModelFile, rows: TableRows, groups: Any, is_new: bool, progress: bool) -> Page:
    roles = file.roles
    assert roles.target is not None
    y = rows.targets(roles.target)
    X = rows.table.select(input_names(rows.name, rows.columns, file))
    columns: dict[str, Any] = row_columns(rows, roles)
    weight = None if roles.weight is None else rows.values(roles.weight, "weight")
    with rows.reporting_errors(**roles.by_argument):
        return report_page(
            file.model, X, target=y, held_out=is_new, sample_weight=weight, groups=groups, target_name=roles.target,
            progress=progress, **columns,
        )  # fmt: skip


def _said(rows: TableRows, is_new: bool) -> str:
    if is_new:
        return f", judged by the rows of {rows.name}, which are new to the model"
    return f", the estimator judged by refitting it to parts of {rows.name}"
