"""All estimators of tables, by their names: whoever lists them reads this, which imports none of them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

STRUCTURES: dict[str, tuple[str, str]] = {
    "forest": ("MetaForestClassifier", "MetaForestRegressor"),
    "boost": ("MetaBoostClassifier", "MetaBoostRegressor"),
    "ensemble": ("MetaEnsembleClassifier", "MetaEnsembleRegressor"),
    "tree": ("MetaTreeClassifier", "MetaTreeRegressor"),
    "exact": ("ExactTreeClassifier", "ExactTreeRegressor"),
    "sampled": ("SampledTreeClassifier", "SampledTreeRegressor"),
}
"""The estimators of classes and of numbers, by the name of their structure on the command line and of their module."""


def structure_of(name: str) -> str | None:
    """The name of the structure of an estimator; None if there is no such estimator."""
    return next((structure for structure, both in STRUCTURES.items() if name in both), None)


def estimator_names() -> list[str]:
    """The names of all estimators."""
    return [name for both in STRUCTURES.values() for name in both]


def estimators_of(structure: str) -> tuple[type[Any], type[Any]]:
    """The estimators of classes and of numbers that have a structure."""
    home = import_module(f"everytree.estimators.{structure}")
    of_classes, of_numbers = (getattr(home, name) for name in STRUCTURES[structure])
    return of_classes, of_numbers


def estimator_named(name: str) -> type[Any]:
    """The estimator with a name."""
    structure = structure_of(name)
    if structure is None:
        raise LookupError(f"there is no estimator {name}")
    return estimators_of(structure)[STRUCTURES[structure].index(name)]


def is_estimator(model: Any) -> bool:
    """Whether an object is one of these estimators, or of a class that is derived from one."""
    return any(structure_of(kind.__name__) for kind in type(model).__mro__)
