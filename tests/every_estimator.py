"""Every public estimator that fits tables, and the targets that each takes: found, not listed."""

from __future__ import annotations

import inspect
from functools import cache
from typing import Any

import numpy as np
import pytest
from sklearn.base import BaseEstimator, is_classifier

import everytree as et
from everytree.families.registry import NUMBER_FAMILIES
from everytree.families.shapes import OfShapes

FAMILIES = [
    name for name in NUMBER_FAMILIES
    if not name.startswith("hurdle_") or name in ("hurdle_negative_binomial", "hurdle_lognormal")
]  # fmt: skip
"""Families of numbers; of those with a hurdle, one of counts and one of amounts."""


def estimators() -> list[type[Any]]:
    """The public classes with scikit-learn's contract."""
    found = [getattr(et, name) for name in et.__all__]
    return [one for one in found if inspect.isclass(one) and issubclass(one, BaseEstimator) and hasattr(one, "fit")]


@cache
def families_of(kind: type[Any]) -> tuple[str, ...]:
    """Families of numbers that an estimator takes; none for one of classes."""
    if is_classifier(kind()) or "family" not in kind().get_params():
        return ()
    return tuple(family for family in FAMILIES if _takes(kind, family))


def _takes(kind: type[Any], family: str) -> bool:
    X, y = [[0.0], [1.0], [2.0], [3.0]] * 3, [1.0, 2.0, 1.0, 3.0] * 3
    try:
        make(kind, family=family).fit(X, y)
    except ValueError as error:
        if "family" in str(error):
            return False
        raise
    return True


def as_targets(family: str | None, y: np.ndarray) -> np.ndarray:
    """Positive numbers as targets of a family: whole ones where it has no others."""
    holds_all = family is None or NUMBER_FAMILIES[family].support.holds(np.array([1.5])).all()
    return np.round(np.maximum(y, 0.1), 3 if holds_all else 0)


def make(kind: type[Any], **options: Any) -> Any:
    """An estimator as it is by default, on one thread and with a fixed seed; sums over all trees to a small depth."""
    known = kind().get_params()
    fixed = {name: value for name, value in {"random_state": 0, "n_jobs": 1}.items() if name in known}
    if "Exact" in kind.__name__:
        fixed["max_depth"] = 2
    return kind(**{**fixed, **options})


SMALL: dict[str, Any] = {
    "n_estimators": 4, "max_iter": 6, "n_residual_trees": 4, "n_draws": 4, "n_structures": 3, "max_cuts": 6,
}  # fmt: skip


def small(kind: type[Any], **options: Any) -> Any:
    """An estimator that takes little time to fit: few trees, steps and draws, by its own parameters."""
    known = kind().get_params()
    few = {name: value for name, value in SMALL.items() if name in known}
    if "n_draws" in known:
        few |= {"n_chains": 1, "temperature": 1.0, "max_depth": 2}
    return make(kind, **{**few, **options})


def with_families(
    kinds: list[type[Any]], of_classes: str | None = None, shapes_of: type[Any] | None = et.MetaTreeRegressor
) -> list[Any]:
    """Parameters of a test that fits each with each of its families; `of_classes` stands for those of classes.

    Chains over structures take long, and so do families with a grid of shapes: these are tried on `shapes_of` alone,
    and on all estimators in `make check-slow`.
    """
    return [
        pytest.param(kind, family, id=f"{kind.__name__} {family}", marks=pytest.mark.slow if is_slow else ())
        for kind in kinds
        for family in (families_of(kind) or (of_classes,))
        for is_slow in [kind.__name__.startswith("Sampled") or (_has_shapes(family) and kind is not shapes_of)]
    ]


def _has_shapes(family: str | None) -> bool:
    name = (family or "").removeprefix("hurdle_")
    return name in NUMBER_FAMILIES and issubclass(NUMBER_FAMILIES[name], OfShapes)


def marked(kinds: list[type[Any]]) -> list[Any]:
    """Parameters of a test that fits each; chains over structures take long."""
    return [
        pytest.param(kind, id=kind.__name__, marks=pytest.mark.slow if kind.__name__.startswith("Sampled") else ())
        for kind in kinds
    ]
