"""What is known of the times of rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.errors import ArgumentError


class TimesOfRows(NamedTuple):
    """The times of rows, one entry each."""

    time: FloatArray  # (n_rows,)
    # (n_rows,): whether the event was seen at that time; otherwise it is only known to come later
    is_event: NDArray[np.bool_]
    entry: FloatArray  # (n_rows,): the time from which on the row was observed
    weight: FloatArray  # (n_rows,)

    def at(self, rows: NDArray[Any]) -> TimesOfRows:
        """Return some of the rows."""
        return TimesOfRows(*(column[rows] for column in self))


class Positions(Protocol):
    """What maps times to positions in cells."""

    def position(self, time: FloatArray) -> FloatArray: ...


def positions_of_rows(
    baseline: Positions, y: NDArray[Any], weight: FloatArray | None, row_data: Mapping[str, Any]
) -> tuple[FloatArray, dict[str, Any]]:
    """Times as positions on a baseline, and their row data with entries as positions."""
    known = times_of_rows(y, weight, row_data)
    entry = {"entry": baseline.position(known.entry)} if "entry" in row_data else {}
    return baseline.position(known.time), {**row_data, **entry}


def times_of_rows(y: NDArray[Any], weight: FloatArray | None, row_data: Mapping[str, Any]) -> TimesOfRows:
    """Times and row data as users give them; a row must be observed for some time."""
    time, nothing = np.asarray(y, dtype=np.float64), np.zeros(len(y))
    entry = np.asarray(row_data.get("entry", nothing), dtype=np.float64)
    late = (entry >= time) & (entry > 0.0)
    if late.any():
        row = int(np.argmax(late))
        must = f"must be before the time of the row, which is {time[row]:g}"
        raise ArgumentError("entry", must, row=row, value=f"{entry[row]:g}")
    is_event = np.asarray(row_data.get("censored", nothing), dtype=np.float64) == 0.0
    return TimesOfRows(time, is_event, entry, np.ones(len(y)) if weight is None else weight)
