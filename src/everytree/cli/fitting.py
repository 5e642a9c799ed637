"""Which estimator a table and its options ask for, and its fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.cli.models import Counted, TableRoles, counted_files, row_columns, working
from everytree.cli.options import Structure
from everytree.cli.problems import UserError, no_column, warn
from everytree.cli.rows import TableRows, check_target
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
    """A fitted estimator, and the files it has counted."""
    rows = table.read()
    return fit_rows(rows, roles, wanted, say), counted_files(table, rows.stretches)


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
    kind = _kind(target, wanted, roles)
    if kind == "number":
        target = source.numbers(roles.target, "target", CLASS_ADVICE)
    else:
        source.check_whole(target, roles.target)
    _warn_if_useless(source.name, roles.target, target)
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


def _kind(target: NDArray[Any], wanted: Wanted, roles: TableRoles) -> str:
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
    return "class" if target.dtype.kind not in "iuf" or _are_few_whole_numbers(target) else "number"


def _are_few_whole_numbers(target: NDArray[Any]) -> bool:
    """Whether numbers can be taken for classes."""
    # Floats beyond 2^53 are all whole, so that says nothing of them.
    is_whole = target.dtype.kind != "f" or ((target == np.floor(target)).all() and np.abs(target).max() <= 2.0**53)
    return bool(is_whole) and len(np.unique(target)) <= MAX_CLASSES


def _warn_if_useless(table: str, name: str, target: NDArray[Any]) -> None:
    """Say where no model can learn anything from the rows."""
    only = target[0]
    if (target != only).any():
        return
    value = repr(str(only)) if isinstance(only, str) else f"{only:g}"
    found = f"has one row, whose target {name!r} is {value}"
    if len(target) > 1:
        found = f"the target {name!r} is {value} in every row"
    warn(f"{table}: {found}: a model of it is useless, since it predicts the same for every row")


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
