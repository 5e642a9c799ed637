"""What other packages know of a family: its possible targets, the data of its rows, its predictive distributions."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray


@dataclass(frozen=True)
class Support:
    """The set of possible targets."""

    must: str  # the requirement in words, for errors
    lowest: float = -math.inf  # no target is below it
    is_open: bool = False  # whether none is equal to it either
    is_whole: bool = False  # whether targets are whole numbers
    # whether not all targets of a table may be the lowest one: no rate explains times that are all 0
    needs_some_above: bool = False

    def holds(self, y: FloatArray) -> NDArray[np.bool_]:
        """Whether each target is possible."""
        above = y > self.lowest if self.is_open else y >= self.lowest
        return above & (y == np.floor(y)) if self.is_whole else above

    @property
    def is_real_line(self) -> bool:
        """Whether every number is a possible target, so that a distribution may be narrowed around its mean."""
        return self.lowest == -math.inf and not self.is_whole


REAL_LINE = Support("a finite number")
COUNTS = Support("counts from 0 on", 0.0, is_whole=True)
POSITIVE = Support("positive", 0.0, is_open=True)
TIMES = Support("times from 0 on", 0.0, needs_some_above=True)


@dataclass(frozen=True)
class RowColumn:
    """A number that users give for each row besides its target."""

    name: str
    must: str  # the requirement in words, for errors
    holds: Callable[[FloatArray], NDArray[np.bool_]]  # function that says which values are possible
    if_absent: str  # what is assumed if it is not given
    opposite: str = ""  # name under which 1 minus the number may be given instead; empty where there is none


EXPOSURE = RowColumn(
    "exposure",
    "positive and at most 1e60",
    lambda values: (values > 0.0) & (values <= 1e60),
    "every exposure is taken to be 1",
)
CENSORED = RowColumn(
    "censored",
    "0 or 1 (make it so by a comparison, such as column == 2)",
    lambda values: np.isin(values, (0.0, 1.0)),
    "every target is taken for an event",
    "event",
)


class Seen(NamedTuple):
    """Amount of data in each node, and its unit."""

    amount: FloatArray
    unit: str


class Components(Protocol):
    """Predictive distributions, one for each row of statistics they were made from."""

    def mean(self) -> FloatArray: ...
    def variance(self) -> FloatArray: ...
    def log_prob(self, y: FloatArray) -> FloatArray: ...


def mean_less(components: Any, centre: FloatArray | float) -> FloatArray:
    """Means minus numbers near them; exact for components that know their means to more digits than a double has."""
    exact = getattr(components, "mean_less", None)
    return np.asarray(components.mean() - centre if exact is None else exact(centre))
