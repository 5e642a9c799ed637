"""Times and events in one array, as scikit-survival has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.errors import ArgumentError


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
        raise ArgumentError("y", f"{must}, but has the fields {y.dtype}")
    for name in ("censored", "event"):
        if row_data.get(name) is not None:
            raise ArgumentError(name, f"is given twice: the field {events[0]!r} of y says which events were seen")
    return np.ascontiguousarray(y[times[0]]), {**row_data, "event": np.ascontiguousarray(y[events[0]])}
