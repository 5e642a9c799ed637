"""Which estimator a table and its options ask for, and its fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from everytree.cli.models import Memory, working
from everytree.cli.problems import UserError, nearest, no_column
from everytree.cli.reading import DELIMITER_HINT, NO_HEADER_HINT
from everytree.cli.tables import TableFile, no_such_column
from everytree.estimators import (
    ExactTreeClassifier,
    ExactTreeRegressor,
    MetaForestClassifier,
    MetaForestRegressor,
    MetaTreeClassifier,
    MetaTreeRegressor,
)

Structure = Literal["forest", "tree", "exact"]
MAX_CLASSES = 10
"""Whole numbers with no more distinct values than this are taken for classes, unless told otherwise."""
CLASS_ADVICE = "; --kind class takes it for a class"

ESTIMATORS: dict[tuple[Structure, str], type[Any]] = {
    ("forest", "class"): MetaForestClassifier,
    ("forest", "number"): MetaForestRegressor,
    ("tree", "class"): MetaTreeClassifier,
    ("tree", "number"): MetaTreeRegressor,
    ("exact", "class"): ExactTreeClassifier,
    ("exact", "number"): ExactTreeRegressor,
}


@dataclass(frozen=True)
class Wanted:
    """The options of a fit.

    Attributes
    ----------
    structure : {"forest", "tree", "exact"}
    kind : {"auto", "class", "number"}
    family : str or None
        Leaf model of numbers.
    trees, depth, seed, jobs : int or None
        None leaves it to the estimator.
    drop : sequence of str
        Columns that are no features.
    groups : str or None
        Column that says which rows belong together.
    relative_weights : bool
        Whether weights are relative.
    """

    structure: Structure = "forest"
    kind: str = "auto"
    family: str | None = None
    trees: int | None = None
    depth: int | None = None
    seed: int | None = None
    jobs: int | None = None
    drop: Sequence[str] = ()
    progress: bool = False
    groups: str | None = None
    relative_weights: bool = False


def fit_table(source: TableFile, memory: Memory, wanted: Wanted) -> Any:
    """A fitted estimator."""
    kind, target = kind_and_target(source, memory, wanted)
    X = features(source, memory, wanted.drop, wanted.groups)
    model = make_estimator(kind, wanted)
    columns = row_columns(source, memory)
    if wanted.groups is not None:
        columns["groups"] = source.values(wanted.groups, "groups")
    roles = {"y": memory.target, **role_columns(memory, wanted.groups)}
    weight = None if memory.weight is None else source.numbers(memory.weight, "weight")
    with source.blamed(**roles), working(model, wanted.jobs, wanted.progress):
        return model.fit(X, target, weight, **columns)


def kind_and_target(source: TableFile, memory: Memory, wanted: Wanted) -> tuple[str, NDArray[Any]]:
    """Whether targets are classes or numbers, and the targets."""
    assert memory.target is not None
    check_target(source.name, source.columns, memory, is_text=source.first_line is not None)
    target = target_values(source, memory.target)
    summary = TargetSummary()
    summary.add(target)
    kind = summary.kind(wanted, memory)
    if kind == "number":
        target = source.numbers(memory.target, "target", CLASS_ADVICE)
    else:
        check_whole(source, target, memory.target)
    return kind, target


def check_target(name: str, columns: Sequence[str], memory: Memory, *, is_text: bool) -> None:
    """Refuse a table without its target; of a text file that may have been read wrongly, say how to read it."""
    assert memory.target is not None
    if memory.target in columns:
        return
    is_like_none = memory.has_header and not nearest(memory.target, columns)
    hint = DELIMITER_HINT if len(columns) == 1 else NO_HEADER_HINT if is_like_none else ""
    raise UserError(f"{no_such_column(name, memory.target, 'target', columns)}{hint if is_text else ''}")


def check_whole(source: TableFile, values: NDArray[Any], target: str) -> None:
    """Refuse numbers with fractions for classes."""
    if values.dtype.kind == "f" and (values != np.floor(values)).any():
        row = int(np.argmax(values != np.floor(values)))
        where = f"{source.name}, {source.place(row)}"
        raise UserError(f"{where}: the target {target!r} is {values[row]:g}, but classes are whole or text")


def target_values(source: TableFile, target: str) -> NDArray[Any]:
    """The column of targets, classes or numbers; text as NumPy's."""
    values = source.values(target, "target")
    holds = _neither_class_nor_number(source.table.column(target).type)
    if holds:
        raise UserError(f"{source.name}: the target {target!r} holds {holds}, but must hold classes or numbers")
    return values.astype(str) if values.dtype == object and isinstance(values[0], str) else values


def _neither_class_nor_number(arrow_type: Any) -> str:
    """What a column of this type holds that no model predicts; nothing for classes and numbers."""
    from pyarrow import types

    if types.is_dictionary(arrow_type):
        arrow_type = arrow_type.value_type
    for test, name in (
        (types.is_date, "dates"), (types.is_timestamp, "dates"), (types.is_duration, "durations"),
        (types.is_time, "times of day"), (types.is_nested, f"values of type {arrow_type}"),
        (types.is_binary, "bytes"), (types.is_large_binary, "bytes"), (types.is_fixed_size_binary, "bytes"),
    ):  # fmt: skip
        if test(arrow_type):
            return name
    return ""


def row_columns(source: TableFile, memory: Memory) -> dict[str, NDArray[Any]]:
    """What the family wants to know of each row."""
    named = {"exposure": memory.exposure, "censored": memory.censored}
    advice = {"exposure": "", "censored": "; 0 and 1, or false and true, say which rows are censored"}
    return {role: source.numbers(name, role, advice[role]) for role, name in named.items() if name is not None}


def features(source: TableFile, memory: Memory, drop: Sequence[str], groups: str | None = None) -> Any:
    """All columns but those with another role, and those to be dropped."""
    return source.table.select(feature_names(source.name, source.columns, memory, drop, groups))


def feature_names(
    name: str, columns: Sequence[str], memory: Memory, drop: Sequence[str], groups: str | None
) -> list[str]:
    """The names of the same, or an error that names the table."""
    for dropped in drop:
        if dropped not in columns:
            raise no_column(name, dropped, columns, "drop")
    others = {memory.target, memory.weight, memory.exposure, memory.censored, groups, *drop}
    kept = [column for column in columns if column not in others]
    if not kept:
        raise UserError(f"{name}: no column is left to predict {memory.target!r} from")
    return kept


def role_columns(memory: Memory, groups: str | None = None) -> dict[str, str]:
    """The columns that are neither features nor the target, by the arguments that they are."""
    named = {"sample_weight": memory.weight, "exposure": memory.exposure, "censored": memory.censored, "groups": groups}
    return {argument: column for argument, column in named.items() if column is not None}


@dataclass
class TargetSummary:
    """What tells classes from numbers, of targets that come in parts."""

    are_numbers: bool = True
    are_whole: bool = True
    distinct: NDArray[Any] = field(default_factory=lambda: np.empty(0))

    def add(self, values: NDArray[Any]) -> None:
        """More targets."""
        self.are_numbers &= values.dtype.kind in "iuf"
        if not self.are_numbers or not self.are_whole or len(self.distinct) > MAX_CLASSES:
            return
        if values.dtype.kind == "f":  # those beyond 2^53 are all whole, so that says nothing of them
            self.are_whole = bool((values == np.floor(values)).all() and np.abs(values).max() <= 2.0**53)
        self.distinct = np.union1d(self.distinct, np.unique(values))[: MAX_CLASSES + 1]

    def kind(self, wanted: Wanted, memory: Memory) -> str:
        """Whether targets are classes or numbers: as told, or as the options or the values have it."""
        for option, column, family in (
            ("exposure", memory.exposure, "poisson"),
            ("censored", memory.censored, "exponential"),
        ):
            if column is not None and wanted.family != family:
                raise UserError(f"--{option} is for --family {family}, but --family is {wanted.family or 'normal'}")
        if wanted.kind != "auto":
            if wanted.kind == "class" and wanted.family is not None:
                raise UserError(f"--family {wanted.family} is for numbers, but --kind is class")
            return wanted.kind
        if wanted.family is not None:
            return "number"
        is_class = not self.are_numbers or (self.are_whole and len(self.distinct) <= MAX_CLASSES)
        return "class" if is_class else "number"


def make_estimator(kind: str, wanted: Wanted) -> Any:
    """The estimator with its parameters."""
    exact = wanted.structure == "exact"
    given = {
        "n_estimators": wanted.trees,
        "max_depth": wanted.depth,
        "random_state": None if exact else (wanted.seed or 0),  # the same command gives the same model
        "family": wanted.family,
        "relative_weights": wanted.relative_weights or None,
    }
    if wanted.trees is not None and wanted.structure != "forest":
        raise UserError("--trees is for forests, but --tree and --exact have one tree")
    if wanted.groups is not None and exact:
        raise UserError("--groups is for forests and trees; --exact leaves no rows out")
    return ESTIMATORS[wanted.structure, kind](**{name: value for name, value in given.items() if value is not None})


def described(model: Any) -> str:
    """A model in a few words."""
    n_trees = len(model.forest_) if hasattr(model.forest_, "posteriors") else 1
    return f"{type(model).__name__}{f' of {n_trees} trees' if n_trees > 1 else ''}"


def rows_placed(model: Any) -> NDArray[np.int64]:
    """(n_trees,) rows that each tree has counted: it leaves out those with answers that it has no branch for."""
    return np.array([post.n_rows for post in getattr(model, "posteriors_", ())])


def n_rows_of(model: Any) -> int:
    """Rows that a fitted model has seen."""
    return int(model.forest_.n_rows)
