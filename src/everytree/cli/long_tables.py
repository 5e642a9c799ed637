"""A fit of a table that does not fit in memory: looked at part by part, then fitted in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from everytree.base.errors import RefusedError
from everytree.batches.file_sources import known_types
from everytree.batches.sketch import SAMPLE_ROWS
from everytree.batches.source import Names, Source
from everytree.cli.fitting import (
    CLASS_ADVICE,
    TargetSummary,
    Wanted,
    check_target,
    check_whole,
    feature_names,
    make_estimator,
    role_columns,
    target_values,
)
from everytree.cli.memory import shown
from everytree.cli.models import Counted, Memory, counted_table, working
from everytree.cli.problems import ROLES, UserError, in_words_of_files
from everytree.cli.reading import OpenTable
from everytree.cli.tables import TableFile, no_such_column


def is_long(table: OpenTable, limit: int, wanted: Wanted, say: Callable[[str], object]) -> bool:
    """Whether a table takes more memory than it may, which is said; exact trees need all rows at once."""
    size = table.bytes_in_memory()
    if size <= limit:
        return False
    found = f"{table.name}: its rows take about {shown(size)} in memory, more than --memory {shown(limit)}"
    if wanted.structure == "exact":
        raise UserError(
            f"{found}, but --exact needs all of them there; allow more by --memory, give it fewer rows, or fit a "
            "forest or a --tree, which do not"
        )
    say(f"{found}: fitting in batches, structures from a sample of {SAMPLE_ROWS:,} rows, statistics from all")
    return True


def fit_long_table(table: OpenTable, memory: Memory, wanted: Wanted) -> tuple[Any, Counted]:
    """A fitted estimator, and what it has counted."""
    assert memory.target is not None
    roles = role_columns(memory, wanted.groups)
    features = feature_names(table.name, table.columns, memory, wanted.drop, wanted.groups)
    looked = _look(table, memory, wanted, roles)
    model = make_estimator(looked.target.kind(wanted, memory), wanted)
    source = table.source(looked.types, [*features, *dict.fromkeys((memory.target, *roles.values()))])
    batches = _CountedBatches(source)
    try:
        with working(model, wanted.jobs, wanted.progress):
            model.fit_batches(batches.source(), memory.target, **roles)
    except (TypeError, ValueError) as error:
        said = in_words_of_files(error, {"y": memory.target, **roles}, looked.places(error, memory, batches))
        raise UserError(f"{table.name}: {said}") from error
    return model, counted_table(table.name, looked.n_rows, table.digest())


class _CountedBatches:
    """Batches, and how many rows are before each of them."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self.starts: list[int] = []

    def source(self) -> Source:
        """The batches; those of the last reading are counted."""
        return replace(self._source, start=self._start)

    def _start(self, names: Names) -> Iterator[Any]:
        self.starts = starts = [0]
        for batch in self._source.start(names):
            starts.append(starts[-1] + batch.num_rows)
            yield batch


# ---- before the fit -------------------------------------------------------------------------------------------------


@dataclass
class _Looked:
    """What was found in all parts of a table.

    Attributes
    ----------
    target : TargetSummary
    types : dict of str to pyarrow.DataType
    n_rows : int
    first_line : int or None
        Line of the first row, where each row is one line.
    """

    target: TargetSummary = field(default_factory=TargetSummary)
    types: dict[str, Any] = field(default_factory=dict)
    n_rows: int = 0
    first_line: int | None = None

    def add(self, part: TableFile) -> None:
        """One part more."""
        if self.n_rows == 0 or part.first_line is None:
            self.first_line = part.first_line
        self.n_rows += part.n_rows
        self.types = _joined(self.types, known_types(part.table.schema))

    def places(self, error: Exception, memory: Memory, batches: _CountedBatches) -> Any:
        """What errors call a row of a batch."""
        part = error.part if isinstance(error, RefusedError) else None
        if part is None or memory.weight is not None:  # rows of weight 0 have been left out of the batch by then
            return lambda row: f"row {row}" if part is None else f"{part[0]} {part[1]}, row {row}"
        start = batches.starts[part[1]]
        whole = TableFile("", None, self.first_line)
        return lambda row: whole.place(start + row)


def _look(table: OpenTable, memory: Memory, wanted: Wanted, roles: Mapping[str, str]) -> _Looked:
    """Types of all columns of text, what targets are, and that nothing is missing where it must not be."""
    assert memory.target is not None
    check_target(table.name, table.columns, memory, is_text=table.reader is not None)
    for argument, column in roles.items():
        if column not in table.columns:
            raise no_such_column(table.name, column, ROLES[argument], table.columns)
    looked = _Looked()
    for part in table.parts(None if table.reader is not None else [memory.target, *roles.values()]):
        looked.add(part)
        looked.target.add(_part_target(part, memory, wanted))
        for argument, column in roles.items():
            check = part.values if argument == "groups" else part.numbers
            check(column, ROLES[argument])
    numbers = [column for argument, column in roles.items() if argument != "groups"]
    numbers += [memory.target] if looked.target.kind(wanted, memory) == "number" else []
    for column in numbers:
        _refuse_text(table, column, looked.types[column])
    return looked


def _part_target(part: TableFile, memory: Memory, wanted: Wanted) -> NDArray[Any]:
    assert memory.target is not None
    values = target_values(part, memory.target)
    if wanted.kind == "number" or wanted.family is not None:
        return part.numbers(memory.target, "target", CLASS_ADVICE)
    if wanted.kind == "class":
        check_whole(part, values, memory.target)
    return values


def _refuse_text(table: OpenTable, column: str, arrow_type: Any) -> None:
    """Text that says numbers is read one by one, which batches are not."""
    from pyarrow import types

    if types.is_dictionary(arrow_type) or types.is_string(arrow_type) or types.is_large_string(arrow_type):
        raise UserError(
            f"{table.name}: the column {column!r} holds text, but must hold numbers where a table is fitted in batches"
        )


def _joined(types: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Types that hold the values of both."""
    known = {name: _joined_type(types[name], arrow_type) for name, arrow_type in more.items() if name in types}
    return {**types, **more, **known}


def _joined_type(one: Any, other: Any) -> Any:
    """A type that holds the values of both; text where nothing else does."""
    import pyarrow as pa

    try:
        schemas = [pa.schema([("value", arrow_type)]) for arrow_type in (one, other)]
        return pa.unify_schemas(schemas, promote_options="permissive").field(0).type
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        are_dates = all(pa.types.is_date(kind) or pa.types.is_timestamp(kind) for kind in (one, other))
        return pa.timestamp("us") if are_dates else pa.string()
