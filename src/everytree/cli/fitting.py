"""Which estimator a table and its options ask for, and its fit: of all rows in memory, or in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.errors import RefusedError
from everytree.base.progress import Progress
from everytree.batches.sketch import SAMPLE_ROWS
from everytree.batches.source import Names, Source
from everytree.batches.text_types import SeenTypes
from everytree.cli.memory import too_long
from everytree.cli.models import Counted, TableRoles, counted_files, row_columns, working
from everytree.cli.options import Structure
from everytree.cli.problems import ROLES, UserError, in_words_of_files, no_column, warn
from everytree.cli.rows import Stretch, TableRows, check_target, no_such_column
from everytree.cli.tables import OpenTable
from everytree.estimators.registry import STRUCTURES, estimators_of
from everytree.families.registry import boosted_families, families_with

MAX_CLASSES = 10
"""Whole numbers with no more distinct values than this are taken for classes, unless told otherwise."""
CLASS_ADVICE = "; --kind class takes it for a class"


@dataclass(frozen=True)
class Wanted:
    """The options of a fit, by their names; None leaves it to the estimator."""

    structure: Structure = "forest"
    kind: str = "auto"
    family: str | None = None
    trees: int | None = None
    depth: int | None = None
    seed: int | None = None
    jobs: int | None = None
    drop: Sequence[str] = ()
    progress: bool = False
    relative_weights: bool = False
    empty: bool = False
    min_leaf: int | None = None
    max_features: int | float | str | None = None


def fit_model(
    table: OpenTable, roles: TableRoles, wanted: Wanted, say: Callable[[str], object]
) -> tuple[Any, list[Counted]]:
    """A fitted estimator, and the files it has counted; in batches, with a note, where all rows are too many."""
    found = too_long(table)
    if not found:
        rows = table.read()
        return fit_rows(rows, roles, wanted, say), counted_files(table, rows.stretches)
    if not estimators_of(wanted.structure)[0].grows_trees:
        raise UserError(
            f"{found}, but --model {wanted.structure} needs all rows in memory; allow more by --memory, give it "
            "fewer rows, or fit a forest or a tree, which do not"
        )
    say(f"{found}: fitting in batches, structures from a sample of {SAMPLE_ROWS:,} rows, statistics from all")
    return fit_in_batches(table, roles, wanted)


# ---- all rows in memory ---------------------------------------------------------------------------------------------


def fit_rows(source: TableRows, roles: TableRoles, wanted: Wanted, say: Callable[[str], object]) -> Any:
    """A fitted estimator, with notes about surprising columns."""
    assert roles.target is not None
    kind, target = kind_and_target(source, roles, wanted)
    X = source.table.select(feature_names(source.name, source.columns, roles, wanted.drop))
    if kind == "class" and wanted.kind == "auto":
        about_classes(source.name, roles.target, target, say)
    model = make_estimator(kind, wanted, roles)
    columns = row_columns(source, roles)
    if roles.groups is not None:
        columns["groups"] = source.values(roles.groups, "groups")
    weight = None if roles.weight is None else source.numbers(roles.weight, "weight")
    with source.reporting_errors(**roles.by_argument), working(model, wanted.jobs, wanted.progress):
        return model.fit(X, target, weight, **columns)


def kind_and_target(source: TableRows, roles: TableRoles, wanted: Wanted) -> tuple[str, NDArray[Any]]:
    """Whether targets are classes or numbers, and the targets; which may be all the same."""
    assert roles.target is not None
    check_target(source.name, source.columns, roles.target, is_text=source.is_text, has_header=roles.has_header)
    target = source.targets(roles.target)
    summary = TargetSummary()
    summary.add(target)
    kind = summary.kind(wanted, roles)
    if kind == "number":
        target = source.numbers(roles.target, "target", CLASS_ADVICE)
    else:
        source.check_whole(target, roles.target)
    summary.warn_if_useless(source.name, roles.target)
    return kind, target


def about_classes(name: str, target: str, values: NDArray[Any], say: Callable[[str], object]) -> None:
    """Say that whole numbers are taken as classes; of nearly as many classes as rows, scikit-learn warns."""
    n_classes = len(np.unique(values))
    if values.dtype.kind in "iuf" and n_classes > 2:
        say(
            f"{name}: {target!r} has {n_classes} different whole numbers, which are taken as classes; --kind number "
            "takes them as numbers, --family poisson as counts"
        )


def feature_names(name: str, columns: Sequence[str], roles: TableRoles, drop: Sequence[str]) -> list[str]:
    """All columns but those with another role, and those to be dropped."""
    for dropped in drop:
        if dropped not in columns:
            raise no_column(name, dropped, columns, "drop")
    others = {*roles.columns, *drop}
    kept = [column for column in columns if column not in others]
    if not kept:
        raise UserError(f"{name}: no column is left to predict {roles.target!r} from")
    return kept


@dataclass
class TargetSummary:
    """Statistics of targets that come in parts: are they classes or numbers, and is there more than one value?"""

    n_rows: int = 0
    only: Any = None
    has_several: bool = False
    are_numbers: bool = True
    are_whole: bool = True
    distinct: NDArray[Any] = field(default_factory=lambda: np.empty(0))

    def add(self, values: NDArray[Any]) -> None:
        """More targets."""
        self.only = values[0] if self.n_rows == 0 else self.only
        self.has_several = self.has_several or bool((values != self.only).any())
        self.n_rows += len(values)
        self.are_numbers &= values.dtype.kind in "iuf"
        if not self.are_numbers or not self.are_whole or len(self.distinct) > MAX_CLASSES:
            return
        if values.dtype.kind == "f":  # those beyond 2^53 are all whole, so that says nothing of them
            self.are_whole = bool((values == np.floor(values)).all() and np.abs(values).max() <= 2.0**53)
        self.distinct = np.union1d(self.distinct, np.unique(values))[: MAX_CLASSES + 1]

    def warn_if_useless(self, table: str, target: str) -> None:
        """Say where no model can learn anything from the rows."""
        message = repr(str(self.only)) if isinstance(self.only, str) else f"{self.only:g}"
        if self.n_rows == 1:
            found = f"has one row, whose target {target!r} is {message}"
        elif not self.has_several:
            found = f"the target {target!r} is {message} in every row"
        else:
            return
        warn(f"{table}: {found}: a model of it is useless, since it predicts the same for every row")

    def kind(self, wanted: Wanted, roles: TableRoles) -> str:
        """Whether targets are classes or numbers: as told, or as the options or the values have it."""
        for option, families in families_with().items():
            if getattr(roles, option) is not None and wanted.family not in ("auto", *families):
                known = " or ".join(families)
                raise UserError(f"--{option} is for --family {known}, but --family is {wanted.family or 'normal'}")
        if wanted.kind != "auto":
            if wanted.kind == "class" and wanted.family is not None:
                raise UserError(f"--family {wanted.family} is for numbers, but --kind is class")
            return wanted.kind
        if wanted.family is not None:
            return "number"
        is_class = not self.are_numbers or (self.are_whole and len(self.distinct) <= MAX_CLASSES)
        return "class" if is_class else "number"


PARAMETERS = {
    "n_estimators": "--trees", "max_depth": "--depth", "min_samples_leaf": "--min-leaf",
    "max_features": "--max-features", "family": "--family",
    "relative_weights": "--relative-weights",
}  # fmt: skip
"""The options that are parameters of estimators."""


def make_estimator(kind: str, wanted: Wanted, roles: TableRoles) -> Any:
    """The estimator with its parameters."""
    number = int(kind == "number")
    estimator = estimators_of(wanted.structure)[number]
    known = _parameters(estimator)
    given = {
        "n_estimators": wanted.trees,
        "max_depth": wanted.depth,
        "min_samples_leaf": wanted.min_leaf,
        "max_features": wanted.max_features,
        "random_state": (wanted.seed or 0) if "random_state" in known else None,  # the same command, the same model
        "family": wanted.family,
        "relative_weights": wanted.relative_weights or None,
    }
    given = {name: value for name, value in given.items() if value is not None}
    for name in sorted(given.keys() - known):
        others = [one for one in STRUCTURES if name in _parameters(estimators_of(one)[number])]
        raise UserError(f"{PARAMETERS[name]} is for --model {' or '.join(others)}, but not for {wanted.structure}")
    _check_options(kind, wanted, roles)
    return estimator(**given)


def _parameters(estimator: type[Any]) -> set[str]:
    return {*estimator().get_params(deep=False)}


def _check_options(kind: str, wanted: Wanted, roles: TableRoles) -> None:
    """Options whose values the model would have no use for."""
    structure, estimator = wanted.structure, estimators_of(wanted.structure)[0]
    is_share = wanted.max_features is None or isinstance(wanted.max_features, float)
    if structure == "boost" and not is_share:
        raise UserError(
            f"--max-features {wanted.max_features} is for forests; boosting takes a share such as 0.5, or all"
        )
    if roles.groups is not None and structure == "exact":
        raise UserError("--groups is for models that leave rows out; --model exact leaves none out")
    if wanted.empty and not estimator.counts_rows:
        raise UserError(f"--empty is for models that count rows; --model {structure} has no structures without rows")
    if kind == "number" and not estimator.counts_rows and wanted.family not in (None, "auto", *boosted_families()):
        known = ", ".join(boosted_families())
        raise UserError(f"--family {wanted.family} cannot be boosted; --model {structure} takes {known}")


# ---- in batches -----------------------------------------------------------------------------------------------------


def fit_in_batches(table: OpenTable, roles: TableRoles, wanted: Wanted) -> tuple[Any, list[Counted]]:
    """Scan a table part by part, then fit an estimator in batches; return it and the files that it has counted."""
    assert roles.target is not None
    by_argument = {name: column for name, column in roles.by_argument.items() if column is not None and name != "y"}
    features = feature_names(table.name, table.columns, roles, wanted.drop)
    scanned = _scan(table, roles, wanted, by_argument)
    scanned.target.warn_if_useless(table.name, roles.target)
    model = make_estimator(scanned.target.kind(wanted, roles), wanted, roles)
    batches = _Batches(table, scanned, [*features, *dict.fromkeys((roles.target, *by_argument.values()))])
    try:
        with working(model, wanted.jobs, wanted.progress):
            model.fit_batches(batches.source(), roles.target, **by_argument)
    except (TypeError, ValueError) as error:
        message = in_words_of_files(error, {"y": roles.target, **by_argument}, batches.places(error, roles))
        raise UserError(f"{table.name}: {message}") from error
    return model, counted_files(table, scanned.stretches)


class _Batches:
    """The parts of a table as batches, and where each of them came from."""

    def __init__(self, table: OpenTable, scanned: _Scanned, columns: list[str]) -> None:
        self._table, self._scanned, self._columns = table, scanned, columns
        self._stretches: list[Stretch] = []

    def source(self) -> Source:
        """The batches; where those of the last reading came from is kept."""
        n_rows = sum(stretch.n_rows for stretch in self._scanned.stretches)
        return Source(self._start, n_rows, self._table.files.marks)

    def _start(self, names: Names) -> Iterator[Any]:
        stretches: list[Stretch] = []
        self._stretches = stretches
        types = self._scanned.seen.types if self._table.is_text else None
        for part in self._table.parts(names or self._columns, types=types, dictionaries=True):
            stretches += part.stretches
            yield part.table

    def places(self, error: Exception, roles: TableRoles) -> Callable[[int], str]:
        """Location of a row of a batch, for errors."""
        part = error.part if isinstance(error, RefusedError) else None
        if part is None or roles.weight is not None:  # rows of weight 0 have been left out of the batch by then
            return lambda row: f"row {row}" if part is None else f"{part[0]} {part[1]}, row {row}"
        return self._stretches[part[1]].place


@dataclass
class _Scanned:
    """Statistics of all parts of a table: its targets, types of columns of text, and rows of files."""

    target: TargetSummary = field(default_factory=TargetSummary)
    seen: SeenTypes = field(default_factory=SeenTypes)
    stretches: list[Stretch] = field(default_factory=list)

    def add(self, part: TableRows, target: str, wanted: Wanted, by_argument: Mapping[str, str]) -> None:
        """More rows; nothing may be missing in the target and in columns with other roles."""
        self.seen.add(part.table)
        self.stretches += part.stretches
        self.target.add(_part_target(part, target, wanted))
        for argument, column in by_argument.items():
            check = part.values if argument == "groups" else part.numbers
            check(column, ROLES[argument])


def _scan(table: OpenTable, roles: TableRoles, wanted: Wanted, by_argument: Mapping[str, str]) -> _Scanned:
    """Types of all columns of text, what targets are, and that nothing is missing where it must not be."""
    assert roles.target is not None
    check_target(table.name, table.columns, roles.target, is_text=table.is_text, has_header=roles.has_header)
    for argument, column in by_argument.items():
        if column not in table.columns:
            raise no_such_column(table.name, column, ROLES[argument], table.columns)
    scanned = _Scanned()
    with Progress("looking", table.count_rows(), wanted.progress, unit="rows") as progress:
        for part in table.parts(None if table.is_text else [roles.target, *by_argument.values()]):
            scanned.add(part, roles.target, wanted, by_argument)
            progress.step(part.n_rows)
    numbers = [column for argument, column in by_argument.items() if argument != "groups"]
    numbers += [roles.target] if scanned.target.kind(wanted, roles) == "number" else []
    for column in numbers:
        _refuse_text(table, column, scanned.seen.types[column])
    return scanned


def _part_target(part: TableRows, target: str, wanted: Wanted) -> NDArray[Any]:
    values = part.targets(target)
    if wanted.kind == "number" or wanted.family is not None:
        return part.numbers(target, "target", CLASS_ADVICE)
    if wanted.kind == "class":
        part.check_whole(values, target)
    return values


def _refuse_text(table: OpenTable, column: str, arrow_type: Any) -> None:
    """Refuse a column of text where numbers are needed: batches do not parse text value by value."""
    from pyarrow import types

    if types.is_dictionary(arrow_type) or types.is_string(arrow_type) or types.is_large_string(arrow_type):
        raise UserError(
            f"{table.name}: the column {column!r} holds text, but must hold numbers where a table is fitted in batches"
        )
