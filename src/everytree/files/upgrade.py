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


_STEPS: dict[int, Callable[[Values, Arrays], tuple[Values, Arrays]]] = {1: _sums_as_pairs}
"""The step from each version to the next."""


def _sections(values: Values) -> Iterator[tuple[str, Values]]:
    """Yield all sections of a model, and the prefix of the names of their arrays."""
    left = [("", values)]
    while left:
        prefix, section = left.pop()
        yield prefix, section
        left += [(f"{prefix}{name}.", inner) for name, inner in section.items() if isinstance(inner, dict)]
