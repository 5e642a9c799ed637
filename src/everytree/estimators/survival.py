"""Survival: times and events in one array, as scikit-survival has them, and what estimators of curves take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.errors import ArgumentError
from everytree.fitting.structures.boost import BoostStructure
from everytree.fitting.structures.survival import OF_BOOSTING, OF_FOREST, SurvivalStructure
from everytree.structure.growers import Growth

NO_INTERVALS = (
    "intervals in which an event must have been are not taken: the evidence of a leaf then has no closed form"
)


def times_and_events(y: NDArray[Any], row_data: Mapping[str, Any]) -> tuple[NDArray[Any], dict[str, Any]]:
    """Return the times of a structured array, and the row data with its events.

    Parameters
    ----------
    y : (n_rows,) structured array
        A field of booleans, whether the event was seen, and a field of times, in any order and of any names.
    row_data : mapping
        What else is given of the rows.
    """
    assert y.dtype.names is not None
    events = [name for name in y.dtype.names if y.dtype[name].kind == "b"]
    times = [name for name in y.dtype.names if y.dtype[name].kind in "iuf"]
    if (len(events), len(times), len(y.dtype.names)) != (1, 1, 2):
        must = "a structured array must have two fields, booleans of events and numbers of times"
        raise ArgumentError("y", f"{must}, but has the fields {y.dtype}; {NO_INTERVALS}")
    for name in ("censored", "event"):
        if row_data.get(name) is not None:
            raise ArgumentError(name, f"is given twice: the field {events[0]!r} of y says which events were seen")
    return np.ascontiguousarray(y[times[0]]), {**row_data, "event": np.ascontiguousarray(y[events[0]])}


def survival_structure(
    model: Any, n_trees: int, growth: Growth, *, sharpen: bool, is_one_tree: bool = False
) -> SurvivalStructure:
    """The structure of a forest or of a tree of survival curves."""
    prior = {} if isinstance(model.prior, str) else dict(model.prior)
    groups = OF_FOREST[:1] if is_one_tree else OF_FOREST
    return SurvivalStructure(
        n_trees, model.random_state, growth, sharpen, model.split_prior, prior, is_one_tree, groups
    )


def boosted_survival(boost: BoostStructure, n_forest: int, n_boosted: int) -> SurvivalStructure:
    """The structure of boosted survival curves, beside a forest of so many trees."""
    groups = OF_BOOSTING if not n_forest else OF_FOREST + OF_BOOSTING
    return SurvivalStructure(
        n_forest + n_boosted, boost.random_state, Growth(subsample=0.8), True, "auto", {}, False, groups, boost
    )


def check_for_survival(model: Any, defaults: Mapping[str, Any]) -> None:
    """Raise for parameters that change nothing where survival curves are predicted, and for trees from elsewhere."""
    why = "which family='survival' does not use"
    for name, default in defaults.items():
        value = getattr(model, name)
        if value != default:
            raise ArgumentError(name, f"is {value!r}, {why}")
    if not isinstance(getattr(model, "grower", ""), str):
        raise ArgumentError("grower", f"is a forest of its own, {why}: its trees know nothing of censored times")
    if model.structures_ is not None:
        raise ArgumentError("family", "is 'survival', for which trees are grown here, but the structures were imported")
