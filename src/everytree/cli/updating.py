"""More rows for a model: from a table, or from another model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from everytree.cli.fitting import row_columns, target_values
from everytree.cli.models import ModelFile, column_types, counted_rows, inputs, working
from everytree.cli.problems import UserError
from everytree.cli.reading import Reading, open_table
from everytree.cli.tables import TableFile

ADVICE = "; models to merge come from one `fit --empty`"


def read_rows(of: ModelFile, table: str, format: str | None, delimiter: str | None) -> TableFile:
    """A table with targets, its columns of the types that the model knows."""
    if of.memory.target is None:
        raise UserError(f"{of.path}: does not say which column is the target; name it by --target")
    types = column_types(of, with_target=True)
    return open_table(table, Reading(format, of.memory.has_header, delimiter, types)).read()


def update_model(of: ModelFile, source: TableFile, *, jobs: int | None, allow_twice: bool, progress: bool) -> ModelFile:
    """The model with the rows of a table added to its statistics."""
    memory = of.memory
    assert memory.target is not None
    if memory.has_counted(source) and not allow_twice:
        raise UserError(f"{source.name}: {of.path} has these rows already; --allow-twice counts them once more")
    y = target_values(source, memory.target)
    if not hasattr(of.model, "classes_"):
        y = source.numbers(memory.target, "target")
    X = inputs(source, of, (memory.target, memory.weight, memory.exposure, memory.censored))
    columns = row_columns(source, memory)
    roles = {"y": memory.target, "sample_weight": memory.weight, **{name: getattr(memory, name) for name in columns}}
    weight = None if memory.weight is None else source.numbers(memory.weight, "weight")
    with source.blamed(**roles), working(of.model, jobs, progress):
        of.model.partial_fit(X, y, sample_weight=weight, **columns)
    return replace(of, memory=memory.also(counted_rows(source)))


def merge_models(parts: Sequence[ModelFile], *, allow_twice: bool) -> ModelFile:
    """One model with the rows of all."""
    merged, *others = parts
    for other in others:
        seen = {one.digest: one for one in merged.memory.counted}
        twins = [one for one in other.memory.counted if one.digest in seen]
        if twins and not allow_twice:
            raise UserError(
                f"{other.path}: has the rows of {twins[0].table}, which {_having(parts, twins[0].digest)} has "
                "too, and they would count twice; let shards start from `fit --empty`, or say --allow-twice"
            )
        _check_columns(merged, other)
        try:
            merged.model.merge(other.model, allow_overlap=allow_twice)
        except (TypeError, ValueError) as error:
            raise UserError(f"{other.path}: does not fit {merged.path}: {error}{ADVICE}") from None
        memory = replace(merged.memory, counted=(*merged.memory.counted, *other.memory.counted))
        merged = replace(merged, memory=memory)
    return merged


def _check_columns(one: ModelFile, other: ModelFile) -> None:
    """Models of other columns are told apart in a few words; the library compares the rest."""
    schemas = one.model.schema_, other.model.schema_
    mine, theirs = (set(schema.input_names or ()) for schema in schemas)
    for has, lacks, names in ((one, other, mine - theirs), (other, one, theirs - mine)):
        if names:
            raise UserError(f"{lacks.path}: does not read the column {min(names)!r}, but {has.path} does{ADVICE}")
    for column, twin in zip(*(schema.columns for schema in schemas), strict=False):
        if column != twin:
            way = "other cut points or categories"
            raise UserError(f"{other.path}: knows the column {twin.name!r} by {way} than {one.path}{ADVICE}")


def _having(parts: Sequence[ModelFile], digest: str) -> str:
    """The first model that has a table."""
    return next(part.path for part in parts if any(one.digest == digest for one in part.memory.counted))
