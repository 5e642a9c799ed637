"""Which estimator a table and its options ask for, and its fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from everytree.cli.models import Memory, working
from everytree.cli.problems import UserError, nearest, no_column
from everytree.cli.tables import DELIMITER_HINT, NO_HEADER_HINT, TableFile
from everytree.estimators import (
    ExactTreeClassifier,
    ExactTreeRegressor,
    MetaForestClassifier,
    MetaForestRegressor,
    MetaTreeClassifier,
    MetaTreeRegressor,
)

Structure = Literal["forest", "tree", "exact"]
MOST_CLASSES = 10
"""Whole numbers with no more distinct values than this are taken for classes, unless told otherwise."""

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
    roles = {"y": memory.target, "sample_weight": memory.weight, "groups": wanted.groups}
    roles |= {name: getattr(memory, name) for name in columns if name != "groups"}
    weight = None if memory.weight is None else source.numbers(memory.weight, "weight")
    with source.blamed(**roles), working(model, wanted.jobs, wanted.progress):
        return model.fit(X, target, weight, **columns)


def kind_and_target(source: TableFile, memory: Memory, wanted: Wanted) -> tuple[str, NDArray[Any]]:
    """Whether targets are classes or numbers, and the targets."""
    assert memory.target is not None
    target = _target(source, memory)
    kind = kind_of(target, wanted, memory)
    if kind == "number":
        target = source.numbers(memory.target, "target", "; --kind class takes it for a class")
    elif target.dtype.kind == "f" and (target != np.floor(target)).any():
        row = int(np.argmax(target != np.floor(target)))
        where = f"{source.name}, {source.place(row)}"
        raise UserError(f"{where}: the target {memory.target!r} is {target[row]:g}, but classes are whole or text")
    return kind, target


def _target(source: TableFile, memory: Memory) -> NDArray[Any]:
    assert memory.target is not None
    try:
        return target_values(source, memory.target)
    except UserError as problem:
        if memory.target in source.columns or source.first_line is None:
            raise
        is_like_none = memory.has_header and not nearest(memory.target, source.columns)
        hint = DELIMITER_HINT if len(source.columns) == 1 else NO_HEADER_HINT if is_like_none else ""
        raise UserError(f"{problem}{hint}") from None


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
    for name in drop:
        if name not in source.columns:
            raise no_column(source.name, name, source.columns, "drop")
    others = {memory.target, memory.weight, memory.exposure, memory.censored, groups, *drop}
    kept = [name for name in source.columns if name not in others]
    if not kept:
        raise UserError(f"{source.name}: no column is left to predict {memory.target!r} from")
    return source.table.select(kept)


def kind_of(target: NDArray[Any], wanted: Wanted, memory: Memory) -> str:
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
    if target.dtype.kind not in "iuf":
        return "class"
    # Floats beyond 2^53 are all whole, so that says nothing of them.
    is_whole = target.dtype.kind in "iu" or bool((target == np.floor(target)).all() and np.abs(target).max() <= 2.0**53)
    return "class" if is_whole and len(np.unique(target)) <= MOST_CLASSES else "number"


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
    return int(model.forest_.n_rows if hasattr(model.forest_, "n_rows") else len(model._rows.y))
