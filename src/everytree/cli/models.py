"""Model files, and what the command line remembers in their notes."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.words import number_of, with_article
from everytree.cli.problems import UserError, one_of
from everytree.cli.rows import Stretch, TableRows
from everytree.cli.tables import STREAM, OpenTable, Reading, open_table, table_in
from everytree.cli.writing import check_output
from everytree.estimators.registry import is_estimator
from everytree.files import Layout, ModelFileError, load_with_notes, save
from everytree.files.locking import alone_with
from everytree.online.base import OnlineForest

NOTES = "command_line"
"""Where these notes stand among those of a file, which may have others."""


ROW_DATA = {
    "exposure": "",
    "censored": "; 0 and 1, or false and true, say which rows are censored",
    "event": "; 0 and 1, or false and true, say in which rows the event was seen",
    "entry": "; a time from 0 on and before that of the target",
}
"""What families read of a row besides the target, and how errors end that say what it must hold."""


@dataclass(frozen=True)
class Counted:
    """Rows that a model has seen: the file's name without its folder, how many, and the file's SHA-256."""

    table: str
    rows: int
    digest: str


@dataclass(frozen=True)
class TableRoles:
    """The columns of the tables that a model file goes with: which are the target, weights and other row data."""

    target: str | None = None  # names of columns
    weight: str | None = None
    exposure: str | None = None
    censored: str | None = None
    has_header: bool = True  # whether text files name their columns
    compressed: bool = False  # whether the model file is compressed, also when it is written again
    counted: tuple[Counted, ...] = ()  # tables whose rows the model has seen
    event: str | None = None
    groups: str | None = None
    entry: str | None = None

    @property
    def by_argument(self) -> dict[str, str | None]:
        """The columns that are not features, by the arguments of `fit` that they are."""
        return {
            "y": self.target, "sample_weight": self.weight, **{name: getattr(self, name) for name in ROW_DATA},
            "groups": self.groups,
        }  # fmt: skip

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are not features."""
        return [name for name in self.by_argument.values() if name is not None]

    def also(self, tables: Sequence[Counted]) -> TableRoles:
        """Add tables whose rows the model has seen."""
        return replace(self, counted=(*self.counted, *tables))

    def first_counted(self, table: OpenTable) -> str | None:
        """The first file of a table whose rows are counted already."""
        known = {one.digest for one in self.counted}
        return next((path for path, digest in table.digests.items() if digest in known), None)

    @classmethod
    def read(cls, plain: Any) -> TableRoles:
        """Checked, since anybody can write a file."""
        given = dict(plain)
        counted = tuple(Counted(**one) for one in given.pop("counted", ()))
        roles = cls(**given, counted=counted)
        is_sound = all(name is None or isinstance(name, str) for name in roles.by_argument.values())
        is_sound = is_sound and isinstance(roles.has_header, bool) and isinstance(roles.compressed, bool)
        if not is_sound or any(tuple(map(type, asdict(one).values())) != (str, int, str) for one in counted):
            raise ValueError("names must be text, numbers of rows whole")
        return roles


def counted_files(table: OpenTable, stretches: Iterable[Stretch]) -> list[Counted]:
    """The files of a table whose rows were counted, by their names without the folder."""
    n_rows: Counter[str] = Counter()
    for stretch in stretches:
        n_rows[stretch.path] += stretch.n_rows
    digests = table.digests
    table.check_unchanged()
    return [Counted(Path(path).name, n_rows[path], digest) for path, digest in digests.items()]


@dataclass(frozen=True)
class ModelFile:
    """A model, the columns it reads, all notes of its file, and which version of the file that was."""

    path: str
    model: Any
    roles: TableRoles
    notes: dict[str, Any]
    version: tuple[int, ...] = ()

    def with_target(self, target: str | None) -> ModelFile:
        """Replace the column of targets, where one is named."""
        return self if target is None else replace(self, roles=replace(self.roles, target=target))

    def save(self, path: str) -> None:
        """To a file, as a whole or not at all; not over the file it came from where that is no longer the same."""
        if is_same_file(path, self.path) and _version(path) != self.version:
            raise UserError(f"{path}: has changed since it was read; nothing was written, run the command again")
        save_model(self.model, path, self.roles, self.notes)


def open_model(path: str, *, estimator: bool = True) -> ModelFile:
    """A model from a file; a fitted estimator, unless any model will do."""
    if path == STREAM:
        raise UserError("a model cannot come from standard input; give the name of its file")
    try:
        version = _version(path)
        model, notes = load_with_notes(path)
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except ModelFileError as error:
        table = table_in(path)
        if table:
            fit = f"everytree fit {path} --target COLUMN"
            raise UserError(f"{path}: this is a {table} table, not a model; a model of it comes from `{fit}`") from None
        complaint = str(error).removeprefix(f"{path}: ")
        raise UserError(f"{path} is not a model file of this version: {complaint}") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from None
    try:
        roles = TableRoles.read(notes.get(NOTES, {}))
    except (TypeError, ValueError) as error:
        raise UserError(f"{path}: notes.{NOTES}: {error}") from None
    is_fitted = is_estimator(model) and model.__sklearn_is_fitted__()
    if estimator and not is_fitted:
        advice = ""
        if isinstance(model, OnlineForest):
            advice = (
                "; every command takes a snapshot of it: load the file in Python with everytree.load, and save "
                "model.snapshot() with everytree.save"
            )
        held = with_article(type(model).__name__)
        raise UserError(f"{path}: holds {held}, but a fitted estimator is needed, as `fit` writes it{advice}")
    return ModelFile(path, model, roles, notes, version)


def _version(path: str) -> tuple[int, ...]:
    """Identity of a file, which changes when it is replaced or written over."""
    status = os.stat(path)
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def is_same_file(path: str, other: str) -> bool:
    """Whether two names lead to one file that is there."""
    return os.path.isfile(path) and os.path.isfile(other) and os.path.samefile(path, other)


@contextmanager
def to_be_replaced(path: str, output: str, say: Callable[[str], object]) -> Iterator[None]:
    """A model is read and written in here: where that is one file, one command after the other."""
    if not is_same_file(path, output):
        yield
        return
    with alone_with(path, waiting=lambda: say(f"{path}: waiting for another command that writes it")):
        yield


def save_model(model: Any, path: str, roles: TableRoles, notes: dict[str, Any] | None = None) -> None:
    """A model with the roles of the columns of its tables."""
    plain = {field.name: getattr(roles, field.name) for field in fields(roles) if field.name != "counted"}
    plain["counted"] = [asdict(one) for one in roles.counted]
    layout: Layout = "compressed" if roles.compressed else "packed"
    try:
        save(model, path, layout=layout, notes={**(notes or {}), NOTES: plain})
    except OSError as error:
        raise UserError(f"could not write {path} ({error.strerror or error}); no partial file is left") from None


def check_model_output(path: str, *inputs: str) -> None:
    """Check that a model can be written here, before the work rather than after it."""
    if path == STREAM:
        raise UserError("a model cannot go to standard output; give --out the name of a file")
    check_output(path, *inputs)


def check_not_there(path: str, *, force: bool) -> None:
    """Refuse to replace a file, unless told to."""
    if not force and os.path.lexists(path):
        raise UserError(f"{path} already exists; use --force to overwrite, or another name with --out")


@contextmanager
def working(model: Any, jobs: int | None, progress: bool) -> Iterator[None]:
    """Threads and progress for one run; a model's own parameters are as before when it is stored."""
    before = {name: getattr(model, name) for name in ("n_jobs", "verbose")}
    model.set_params(n_jobs=jobs, verbose=int(progress))
    try:
        yield
    finally:
        model.set_params(**before)


# ---- what a model reads of a table ----------------------------------------------------------------------------------


KINDS = {"numeric": "number", "boolean": "boolean", "datetime": "date"}
"""Kinds of columns, categories aside, and what they are in a text file."""


def column_types(file: ModelFile, *, with_target: bool) -> dict[str, str]:
    """Types of the columns as the model knows them: text that looks like numbers is still text."""
    model, roles = file.model, file.roles
    types = {name: "number" for name in (roles.weight, roles.exposure) if name is not None}
    schema = model.schema_
    for column in schema.columns if schema.input_names is not None else ():
        name = column.source if isinstance(column.source, str) else column.name
        if column.text is not None or column.hashed is not None:
            types[name] = "text"
        elif column.kind in KINDS:
            types[name] = KINDS[column.kind]
        elif any(isinstance(value, str) for value in column.categories):
            types[name] = "text"
    if with_target and roles.target is not None:
        if not model.has_classes:
            types[roles.target] = "number"
        elif model.classes_.dtype.kind in "OU":
            types[roles.target] = "text"
    return types


def open_inputs(file: ModelFile, table: str, how: Reading, *, with_target: bool = False) -> OpenTable:
    """A table, its columns of the types that the model knows."""
    types = column_types(file, with_target=with_target)
    return open_table(table, replace(how, has_header=file.roles.has_header, types=types))


def open_rows(file: ModelFile, table: str, how: Reading) -> OpenTable:
    """A table with targets."""
    if file.roles.target is None:
        raise UserError(f"{file.path}: does not say which column is the target; name it by --target")
    return open_inputs(file, table, how, with_target=True)


def input_names(name: str, columns: Sequence[str], file: ModelFile) -> list[str]:
    """The columns of a table that a model reads, in its order, or an error that names the table."""
    wanted = file.model.schema_.input_names
    if wanted is None:
        kept = [column for column in columns if column not in file.roles.columns]
        if len(kept) != file.model.n_features_in_:
            raise UserError(
                f"{name}: has {number_of(len(kept), 'column')} besides the target, but {file.path} reads "
                f"{file.model.n_features_in_}, by position"
            )
        return kept
    for column in wanted:
        if column not in columns:
            raise UserError(
                f"{name}: there is no column {column!r}, which the model {file.path} reads; {one_of(column, columns)}"
            )
    return list(wanted)


def row_columns(source: TableRows, roles: TableRoles) -> dict[str, NDArray[Any]]:
    """Row data of the family: exposure, censoring or event of each row."""
    named = {role: getattr(roles, role) for role in ROW_DATA}
    return {role: source.numbers(name, role, ROW_DATA[role]) for role, name in named.items() if name is not None}


# ---- a model in a few words -----------------------------------------------------------------------------------------


def described(model: Any) -> str:
    """A model in a few words."""
    size = model.model_.size
    return f"{type(model).__name__}{f' of {size}' if size else ''}"


def rows_placed(model: Any) -> NDArray[np.int64]:
    """(n_trees,) rows that each tree has counted: it leaves out those with answers that it has no branch for."""
    return np.array([post.n_rows for post in getattr(model, "posteriors_", ())])


def n_rows_of(model: Any) -> int:
    """Rows that a fitted model has seen."""
    return int(model.model_.n_rows)


def check_takes_rows(file: ModelFile) -> None:
    """Whether rows can be added to a model."""
    if not file.model.counts_rows:
        raise UserError(
            f"{file.path}: holds a {type(file.model).__name__}, to which no rows can be added: a boosted tree depends "
            "on all trees before it; fit it to all rows, or fit a forest"
        )
