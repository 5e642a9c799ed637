"""What other parts need to know of a family besides its mathematics: its targets, and what its rows bring along."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray


@dataclass(frozen=True)
class Support:
    """Which numbers targets may be.

    Attributes
    ----------
    must : str
        In words, for errors.
    lowest : float
        No target is below it.
    is_open : bool
        Whether none is equal to it either.
    is_whole : bool
        Whether targets are whole numbers.
    needs_some_above : bool
        Whether not all targets of a table may be the lowest one: no rate explains times that are all 0.
    """

    must: str
    lowest: float = -math.inf
    is_open: bool = False
    is_whole: bool = False
    needs_some_above: bool = False

    def holds(self, y: FloatArray) -> NDArray[np.bool_]:
        """Which targets are possible."""
        above = y > self.lowest if self.is_open else y >= self.lowest
        return above & (y == np.floor(y)) if self.is_whole else above

    @property
    def is_real_line(self) -> bool:
        """Whether a target may be anywhere, so that a distribution may be drawn towards its mean."""
        return self.lowest == -math.inf and not self.is_whole


REAL_LINE = Support("a finite number")
COUNTS = Support("counts from 0 on", 0.0, is_whole=True)
TIMES = Support("times from 0 on", 0.0, needs_some_above=True)


@dataclass(frozen=True)
class RowColumn:
    """A number that users give for each row besides its target.

    Attributes
    ----------
    name : str
    must : str
        In words, for errors.
    holds : callable
        Which values are possible.
    if_absent : str
        What is taken for granted where it is not given.
    """

    name: str
    must: str
    holds: Callable[[FloatArray], NDArray[np.bool_]]
    if_absent: str


EXPOSURE = RowColumn(
    "exposure",
    "positive and at most 1e60",
    lambda values: (values > 0.0) & (values <= 1e60),
    "every exposure is taken to be 1",
)
CENSORED = RowColumn(
    "censored", "0 or 1", lambda values: np.isin(values, (0.0, 1.0)), "every target is taken for an event"
)


class Seen(NamedTuple):
    """How much each node has seen, and in what unit."""

    amount: FloatArray
    unit: str
