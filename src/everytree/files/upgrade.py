"""Upgrades of files from older versions of the format: all differences between versions are here.

Readers know the newest version only. A file of an older one goes through one step for each later version. A step does
not change what it does not recognise: the readers report what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.files.container import VERSION

Values = dict[str, Any]
Arrays = dict[str, NDArray[Any]]


def upgraded(version: int, values: Values, arrays: Arrays) -> tuple[Values, Arrays]:
    """Return the values and arrays of a file as in the newest version; the arguments are not changed."""
    for before in range(version, VERSION):
        values, arrays = _STEPS[before](values, arrays)
    return values, arrays


_FIRST_PAIRS = {"Normal": 1, "Poisson": 3}
"""The number of leading statistics of a family that became pairs (value, rest) in version 2."""


def _sums_as_pairs(values: Values, arrays: Arrays) -> tuple[Values, Arrays]:
    """Version 1 to 2: sums that were plain numbers become pairs, with a rest of zero."""
    wider = dict(arrays)
    for prefix, section in _sections(values):
        family = section.get("family0", section.get("family"))
        name = family.get("name") if isinstance(family, dict) else None
        statistics = arrays.get(f"{prefix}statistics")
        if not isinstance(name, str) or name not in _FIRST_PAIRS or statistics is None or statistics.ndim != 2:
            continue
        n_pairs = min(_FIRST_PAIRS[name], statistics.shape[1])
        wider[f"{prefix}statistics"] = np.insert(statistics, range(1, n_pairs + 1), 0, axis=1)
    return values, wider


def _cuts_as_arrays(values: Values, arrays: Arrays) -> tuple[Values, Arrays]:
    """Version 2 to 3: cut points move from the columns of a schema to an array. All older files are mappable ones."""
    values, more = _copy(values), dict(arrays)
    for prefix, section in _sections(values):
        cuts = _cuts(section)
        if cuts is None:
            continue
        section["columns"] = [
            {name: value for name, value in column.items() if name != "cuts"} for column in section["columns"]
        ]
        more[f"{prefix}n_cuts"] = np.array([len(some) for some in cuts], dtype=np.int64)
        more[f"{prefix}cuts"] = np.concatenate([np.zeros(0), *cuts])
    return values, more


def _cuts(section: Values) -> list[NDArray[np.float64]] | None:
    """Return the cut points of each column, if this is a schema."""
    columns = section.get("columns")
    if "dtype" not in section or not isinstance(columns, list):
        return None
    if not all(isinstance(column, dict) and isinstance(column.get("cuts"), list) for column in columns):
        return None
    if not all(type(cut) in (int, float) for column in columns for cut in column["cuts"]):
        return None
    try:
        return [np.array(column["cuts"], dtype=np.float64) for column in columns]
    except OverflowError:  # a whole number of very many digits
        return None


_PRIORS_OF_EXACT_TREES = {"split_prior": 0.5, "alpha": 0.5, "max_depth": 4}
"""Values that "auto" stood for in version 3."""


def _models_by_kind(values: Values, arrays: Arrays) -> tuple[Values, Arrays]:
    """Version 3 to 4: the kind of a model is written; exact trees have no trees below them, and priors are numbers."""
    values = _copy(values)
    for _, section in _sections(values):
        kind = _kind_of_model(section)
        if kind is not None:
            section["model_kind"] = kind
        _only_the_sum(section.get("parameters"))
    return values, arrays


def _kind_of_model(section: Values) -> str | None:
    """Kind of a fitted estimator, by the sections of its file."""
    if "row_data" not in section:
        return None
    boosted = section.get("boosted")
    if isinstance(boosted, dict):
        is_mixed = "mixed_sharpness" in boosted
        return "mixed classes" if is_mixed else "boosted classes" if "sharpness" in boosted else "boosted numbers"
    if "continued" in section:
        return "trees below an exact sum"
    return "forest" if "forest" in section else "exact"


def _only_the_sum(parameters: Any) -> None:
    """Leave out the parameters of trees below an exact sum."""
    if isinstance(parameters, dict) and "continuation" in parameters:
        for name in ("continuation", "temperature", "random_state"):
            parameters.pop(name, None)
        for name, number in _PRIORS_OF_EXACT_TREES.items():
            if parameters.get(name) == "auto":
                parameters[name] = number


def _trees_with_lines(values: Values, arrays: Arrays) -> tuple[Values, Arrays]:
    """Version 4 to 5: boosted numbers may have trees with lines, which readers of version 4 would leave out."""
    return values, arrays


_STEPS: dict[int, Callable[[Values, Arrays], tuple[Values, Arrays]]] = {
    1: _sums_as_pairs,
    2: _cuts_as_arrays,
    3: _models_by_kind,
    4: _trees_with_lines,
}
"""The step from each version to the next."""


def _sections(values: Values) -> Iterator[tuple[str, Values]]:
    """Yield all sections of a model, and the prefix of the names of their arrays."""
    left = [("", values)]
    while left:
        prefix, section = left.pop()
        yield prefix, section
        left += [(f"{prefix}{name}.", inner) for name, inner in section.items() if isinstance(inner, dict)]


def _copy(values: Values) -> Values:
    """Return the same sections as new objects; a loop, since forged ones may be nested too deep for calls."""
    top = dict(values)
    left = [top]
    while left:
        section = left.pop()
        section |= {name: dict(inner) for name, inner in section.items() if isinstance(inner, dict)}
        left += [inner for inner in section.values() if isinstance(inner, dict)]
    return top
