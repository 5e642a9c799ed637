"""A page about a model, judged by a table where there is one."""

from __future__ import annotations

from everytree.cli.fitting import n_rows_of, row_columns, target_values
from everytree.cli.models import ModelFile, inputs
from everytree.cli.problems import UserError
from everytree.cli.tables import TableFile
from everytree.files.atomic import replace_file
from everytree.report import report_html


def write_report_of(of: ModelFile, source: TableFile | None, out: str, *, refit: bool) -> str:
    """The page, as a whole or not at all. Returns what the model was judged by, in a few words."""
    if source is None:
        page, said = report_html(of.model), ""
    else:
        is_new = not refit and _is_new(of, source)
        page, said = _judged_page(of, source, is_new), _said(source, is_new)
    try:
        replace_file(out, [page.encode("utf-8")])
    except OSError as error:
        raise UserError(f"{out}: cannot be written: {error.strerror or error}; nothing is left of it") from None
    return said


def _is_new(of: ModelFile, source: TableFile) -> bool:
    """Whether the model has not counted the table; one that was saved by Python does not say what it has counted."""
    is_told = bool(of.memory.counted) or n_rows_of(of.model) == 0
    return is_told and not of.memory.has_counted(source)


def _judged_page(of: ModelFile, source: TableFile, is_new: bool) -> str:
    memory = of.memory
    assert memory.target is not None
    y = target_values(source, memory.target)
    X = inputs(source, of, (memory.target, memory.weight, memory.exposure, memory.censored))
    columns = row_columns(source, memory)
    roles = {"y": memory.target, "sample_weight": memory.weight, **{name: getattr(memory, name) for name in columns}}
    weight = None if memory.weight is None else source.values(memory.weight, "weight")
    with source.blamed(**roles):
        return report_html(of.model, X, target=y, held_out=is_new, sample_weight=weight, **columns)


def _said(source: TableFile, is_new: bool) -> str:
    if is_new:
        return f", judged by the rows of {source.name}, which are new to the model"
    return f", the estimator judged by refitting it to parts of {source.name}"
