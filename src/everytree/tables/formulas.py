"""Columns of numbers that are computed from two others."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Literal, NamedTuple, get_args

import numpy as np

from everytree.base.arrays import FloatArray

Operator = Literal["+", "-", "*", "/"]
"""Sums and differences are those of numbers over scales of their own."""


class Formula(NamedTuple):
    """How the numbers of a column follow from those of two others.

    A number is missing where one of the two is, a ratio by zero is 0, and what is too large for a float is the largest
    float.
    """

    operator: Operator  # {"+", "-", "*", "/"}
    first: int  # the two columns of numbers, by their places in the schema
    second: int
    first_scale: float = 1.0  # by which the numbers of each are divided before; 1 in products and ratios
    second_scale: float = 1.0

    def check(self, label: str) -> None:
        """Raise unless operator, columns and scales are possible ones."""
        if self.operator not in get_args(Operator):
            raise ValueError(f"formula of {label} must have an operator of {get_args(Operator)}, but is {self!r}")
        if not all(type(place) is int and place >= 0 for place in self[1:3]) or self.first == self.second:
            raise ValueError(f"formula of {label} must name the places of two other columns, but is {self!r}")
        if not all(type(scale) is float and 0.0 < scale < np.inf for scale in self[3:]):
            raise ValueError(f"formula of {label} must have positive, finite scales, but is {self!r}")

    def numbers(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """(n_rows,) the numbers of the column, from those of the two others; NaN where missing."""
        largest = np.finfo(np.float64).max
        with np.errstate(over="ignore", under="ignore", divide="ignore", invalid="ignore"):
            a, b = first / self.first_scale, second / self.second_scale
            if self.operator == "/":
                found = np.where(b == 0.0, a * 0.0, a / b)
            else:
                found = a * b if self.operator == "*" else a + b if self.operator == "+" else a - b
        return np.asarray(np.clip(found, -largest, largest))

    def words(self, names: Sequence[str]) -> str:
        """The formula with the names of the columns: "mass / height"."""
        first, second = names[self.first], names[self.second]
        if self.operator in "+-":
            first, second = f"{first} / {self.first_scale:.4g}", f"{second} / {self.second_scale:.4g}"
        return f"{first} {self.operator} {second}"


def formulas_of(numbers: dict[int, FloatArray]) -> list[Formula]:
    """Sums, differences, products and ratios of each two of some columns, by their numbers in the rows of fit.

    Sums and differences are those of numbers over their standard deviations. Of a ratio, the column with fewer zeros
    divides.
    """
    found = []
    scale = {k: _spread(own) for k, own in numbers.items()}
    n_zeros = {k: int((own == 0.0).sum()) for k, own in numbers.items()}
    for a, b in combinations(sorted(numbers), 2):
        over, under = (a, b) if n_zeros[b] <= n_zeros[a] else (b, a)
        found += [Formula(operator, a, b, scale[a], scale[b]) for operator in ("+", "-")]
        found += [Formula("*", a, b), Formula("/", over, under)]
    return found


def _spread(numbers: FloatArray) -> float:
    """Standard deviation of what is known; 1 where it is no positive float."""
    known = numbers[~np.isnan(numbers)]
    largest = float(np.abs(known).max(initial=0.0)) or 1.0
    spread = float(np.std(known / largest)) * largest if len(known) else 1.0
    spread = float(f"{spread:.3g}")  # what its formula says in words
    return spread if 0.0 < spread < np.inf else 1.0
