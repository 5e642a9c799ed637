"""What a theorem promises of intervals and sets, and the order statistics by which it holds."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.base.checks import probabilities
from everytree.base.errors import ArgumentError

ROUNDING = 1e-9
"""Of shares of rows: a coverage of 0.9 is met by 9 rows, although 1 - 0.9 is a little less than 0.1."""


@dataclass(frozen=True)
class Guarantee:
    """What holds of conformal intervals and sets, for new rows that are exchangeable with those behind the guarantee.

    Attributes
    ----------
    theorem : str
        Its name.
    promise : str
        What it promises, as a formula of the coverage that is asked for.
    n_rows : int
        Number of rows, or of groups of rows, behind it.
    errors : int
        How often the share of errors, 1 - coverage, is lost at most.
    slack : float
        What is lost besides.
    unproved : str
        Why the theorem holds approximately only; empty where it is proved of this model.
    """

    theorem: str
    promise: str
    n_rows: int
    errors: int = 1
    slack: float = 0.0
    unproved: str = ""

    @property
    def is_proved(self) -> bool:
        """Whether the theorem is proved of this model, or holds approximately."""
        return not self.unproved

    def promised(self, coverage: float) -> float:
        """The probability that is promised where a coverage is asked for."""
        return max(1.0 - self.errors * (1.0 - float(probabilities("coverage", coverage))) - self.slack, 0.0)

    def __str__(self) -> str:
        about = f" Approximate: {self.unproved}." if self.unproved else ""
        return f"{self.theorem} by {self.n_rows} rows: {self.promise}.{about}"


def rows_needed(n_rows: int, coverage: float, of: str = "") -> int:
    """Number of known scores that are at least that of a target inside; raise where none would be enough.

    Parameters
    ----------
    n_rows : int
        Number of known scores.
    coverage : float
    of : str
        Which rows these are, for the error.
    """
    share = float(probabilities("coverage", coverage))
    needed = math.floor((1.0 - share) * (n_rows + 1) + ROUNDING)
    if needed < 1:
        most = f"{n_rows / (n_rows + 1):.6g} is the largest coverage possible" if n_rows else "none is possible"
        raise ArgumentError("coverage", f"is {share:g}, but with {n_rows} calibration rows{of} {most}")
    return needed


def threshold(scores: FloatArray, coverage: float, of: str = "") -> float:
    """The largest score that a target inside may have."""
    needed = rows_needed(len(scores), coverage, of)
    return float(np.partition(scores, len(scores) - needed)[len(scores) - needed])
