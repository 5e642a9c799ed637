"""More rows for a model: from a table or from another model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from everytree.base.errors import OverlapError
from everytree.base.words import number_of
from everytree.cli.models import (
    Counted,
    ModelFile,
    check_model_output,
    check_takes_rows,
    counted_files,
    described,
    input_names,
    n_rows_of,
    open_model,
    open_rows,
    row_columns,
    rows_placed,
    to_be_replaced,
    working,
)
from everytree.cli.problems import UserError
from everytree.cli.rows import TableRows
from everytree.cli.tables import OpenTable, Reading
from everytree.tables.schema_difference import schema_difference

ADVICE = "; models to merge come from one `fit --empty`"


def update_file(
    model: str,
    table: str,
    out: str,
    how: Reading,
    *,
    target: str | None,
    jobs: int | None,
    allow_twice: bool,
    say: Callable[[str], object],
) -> None:
    """A model with the rows of a table, both by their paths, to a model file."""
    check_model_output(out, table)
    with to_be_replaced(model, out, say):
        file = open_model(model).with_target(target)
        check_takes_rows(file)
        opened = open_rows(file, table, how)
        before = rows_placed(file.model)
        counted = _add_rows(file, opened, jobs, allow_twice)
        replace(file, roles=file.roles.also(counted)).save(out)
    newer, n_rows = file.model, sum(one.rows for one in counted)
    left_out = n_rows - (rows_placed(newer) - before)
    if (left_out > 0).any():
        say(
            f"{opened.name}: has values that were not there at fit; of {number_of(len(left_out), 'tree')}, "
            f"{(left_out > 0).sum()} cannot place them and leave out up to {number_of(int(left_out.max()), 'row')}"
        )
    rows = f"{number_of(n_rows, 'row')} more, {n_rows_of(newer):,} in all"
    say(f"{out}: {described(newer)}, {rows}, log evidence {newer.log_evidence_:.4f}")


def _add_rows(file: ModelFile, table: OpenTable, jobs: int | None, allow_twice: bool) -> list[Counted]:
    """The rows of a table to the statistics of a model; the files they were in."""
    _refuse_twice(file, table, allow_twice)
    rows = table.read()
    counted = counted_files(table, rows.stretches)
    with working(file.model, jobs, table.progress):
        _add(file.model, rows, file, allow_twice=allow_twice)
    return counted


def _refuse_twice(file: ModelFile, table: OpenTable, allow_twice: bool) -> None:
    counted = None if allow_twice else file.roles.first_counted(table)
    if counted is not None:
        rows = "these rows" if len(table.files.paths) == 1 else f"the rows of {counted}"
        raise UserError(f"{table.name}: {file.path} has {rows} already; --allow-twice counts them once more")


def _add(model: Any, rows: TableRows, file: ModelFile, *, allow_twice: bool) -> None:
    """Rows to the statistics of a model; those that it refuses change nothing."""
    roles = file.roles
    assert roles.target is not None
    y = rows.targets(roles.target)
    if not model.has_classes:
        y = rows.numbers(roles.target, "target")
    X = rows.table.select(input_names(rows.name, rows.columns, file))
    columns = row_columns(rows, roles)
    weight = None if roles.weight is None else rows.numbers(roles.weight, "weight")
    try:
        with rows.reporting_errors(**roles.by_argument):
            model.partial_fit(X, y, sample_weight=weight, allow_overlap=allow_twice, **columns)
    except OverlapError:
        raise UserError(
            f"{rows.name}: {file.path} has these rows already, from another file; --allow-twice counts them once more"
        ) from None


def merge_files(models: Sequence[str], out: str, *, allow_twice: bool, say: Callable[[str], object]) -> None:
    """One model with the rows of all, which are named by their paths, to a model file."""
    check_model_output(out, *models)
    parts = [open_model(path) for path in models]
    for part in parts:
        check_takes_rows(part)
    merged = merge_models(parts, allow_twice=allow_twice)
    merged.save(out)
    rows, evidence = number_of(n_rows_of(merged.model), "row"), merged.model.log_evidence_
    say(f"{out}: {described(merged.model)}, {rows}, log evidence {evidence:.4f}")


def merge_models(parts: Sequence[ModelFile], *, allow_twice: bool) -> ModelFile:
    """One model with the rows of all."""
    merged, *others = parts
    for other in others:
        seen = {one.digest: one for one in merged.roles.counted}
        twins = [one for one in other.roles.counted if one.digest in seen]
        if twins and not allow_twice:
            raise UserError(
                f"{other.path}: has the rows of {twins[0].table}, which {_having(parts, twins[0].digest)} has "
                "too, and they would count twice; let shards start from `fit --empty`, or use --allow-twice"
            )
        _check_columns(merged, other)
        try:
            merged.model.merge(other.model, allow_overlap=allow_twice)
        except (TypeError, ValueError) as error:
            raise UserError(f"{other.path}: does not fit {merged.path}: {error}{ADVICE}") from None
        roles = replace(merged.roles, counted=(*merged.roles.counted, *other.roles.counted))
        merged = replace(merged, roles=roles)
    return merged


def _check_columns(one: ModelFile, other: ModelFile) -> None:
    """Models of other columns are told apart in a few words; the library compares the rest."""
    difference = schema_difference(one.model.schema_, other.model.schema_)
    if difference:
        raise UserError(f"{other.path}: {difference.replace('this one', one.path)}{ADVICE}")


def _having(parts: Sequence[ModelFile], digest: str) -> str:
    """The first model that has a table."""
    return next(part.path for part in parts if any(one.digest == digest for one in part.roles.counted))
