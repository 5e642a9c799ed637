"""Adaptive integrals, and sums over whole numbers, of many functions at once.

The functions are squared tails of distributions: they never change sign, they may have steps far narrower than their
distance, and they may fall off as slowly as 1 / x^2, or more slowly where the integral has an end. Panels that are not
exact enough are halved; the outermost panel of each function is followed by a wider one until the remainder is
negligible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray, RowArray

TOLERANCE = 1e-10
"""Tolerance of the estimated error of one panel, relative to the whole integral."""

MAX_ROUNDS = 2000
"""Maximum number of halvings and extensions, far more than numbers have bits: only infinite and NaN values reach it."""

FIRST_PANEL = 0.4
"""Width of the first panel of an integral: smooth functions seldom need a narrower one."""

MIN_RUN = 16
"""Runs of at most this many whole numbers are summed term by term."""


class Panels(NamedTuple):
    """Intervals of the functions to integrate."""

    function: RowArray  # (n,) int64: the function of each panel
    left: FloatArray  # (n,)
    width: FloatArray
    is_outermost: NDArray[np.bool_]  # (n,): whether the panel may be followed by another one

    def at(self, which: NDArray[Any]) -> Panels:
        return Panels(self.function[which], self.left[which], self.width[which], self.is_outermost[which])

    @staticmethod
    def join(parts: list[Panels]) -> Panels:
        """Join panels in the order of their functions, so that each function is evaluated once."""
        together = Panels(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        return together.at(np.argsort(together.function, kind="stable"))


class Nodes(NamedTuple):
    """Points at which panels are evaluated, and weights of three rules, each of about half the degree of the one
    before.

    All arrays are (n_panels, n_nodes).
    """

    at: FloatArray
    weights: FloatArray
    coarse_weights: FloatArray
    coarsest_weights: FloatArray


@dataclass(frozen=True)
class Rule:
    """A rule to integrate, or sum, over a panel."""

    # nodes of panels from their left ends and widths; the last node is the right end
    nodes: Callable[[FloatArray, FloatArray], Nodes]
    growth: float  # ratio of the width of the next panel to that of the outermost
    # a bound of the remainder beyond the right end, from that end and the value there
    remainder: Callable[[FloatArray, FloatArray], FloatArray]


def integrate(
    term: Callable[[RowArray, FloatArray], FloatArray],
    rule: Rule,
    panels: Panels,
    unit: RowArray,
    n_units: int,
    reach: FloatArray,
    end: FloatArray,
) -> FloatArray:
    """Return the integral of each unit: the sum over its functions.

    Parameters
    ----------
    term : callable
        Values of functions at points; takes the number of a function and a point, any number of both.
    rule : Rule
    panels : Panels
        The first panels.
    unit : (n_functions,) int64
        The unit whose integral each function belongs to.
    n_units : int
    reach, end : (n_functions,) float64
        The outermost panel is extended at least to `reach`, and never beyond `end`.
    """
    total = np.zeros(n_units)
    for _ in range(MAX_ROUNDS):
        if len(panels.left) == 0:
            break
        nodes = rule.nodes(panels.left, panels.width)
        values = term(np.repeat(panels.function, nodes.at.shape[1]), nodes.at.ravel()).reshape(nodes.at.shape)
        sums = (nodes.weights * values).sum(axis=1)
        owner = unit[panels.function]
        allowed = TOLERANCE * (total + np.bincount(owner, sums, n_units))[owner]
        right = panels.left + panels.width
        too_narrow = panels.width <= 4.0 * np.spacing(np.abs(right))
        is_done = (_error(nodes, values, sums) <= allowed) | too_narrow | ~np.isfinite(sums)
        total += np.bincount(owner[is_done], sums[is_done], n_units)
        goes_on = panels.is_outermost & (right < end[panels.function])
        goes_on &= (right < reach[panels.function]) | (rule.remainder(right, values[:, -1]) > allowed)
        panels = Panels.join([*_halves(panels.at(~is_done)), _next(panels.at(goes_on), rule.growth, end)])
    return total


def _error(nodes: Nodes, values: FloatArray, sums: FloatArray) -> FloatArray:
    """Estimate the error from the differences between the rules, relative to the variation of the function.

    Each is about the square of the one before where the function is smooth; the power 1.5 leaves a margin. Two of them
    are used, since one alone may be small by accident.
    """
    variation = (nodes.weights * np.abs(values - (sums / nodes.weights.sum(axis=1))[:, None])).sum(axis=1)
    coarse, coarsest = ((w * values).sum(axis=1) for w in (nodes.coarse_weights, nodes.coarsest_weights))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.maximum(np.abs(sums - coarse) / variation, 0.1 * ((coarse - coarsest) / variation) ** 2)
        return np.where(variation > 0.0, variation * np.minimum(1.0, (20.0 * share) ** 1.5), 0.0)


def _halves(panels: Panels) -> list[Panels]:
    half, inner = 0.5 * panels.width, np.zeros(len(panels.left), dtype=bool)
    return [Panels(panels.function, left, half, inner) for left in (panels.left, panels.left + half)]


def _next(panels: Panels, growth: float, end: FloatArray) -> Panels:
    """The panels that follow the outermost ones."""
    left = panels.left + panels.width
    width = np.minimum(growth * panels.width, end[panels.function] - left)
    return Panels(panels.function, left, width, panels.is_outermost)


# ---- integrals -------------------------------------------------------------------------------------------------------

# Lobatto's rule of 4 points, its extension by Kronrod to 7, and that by Gander and Gautschi to 13. The ends are among
# them, so that no step of a monotone function can hide between panels.
_INNER = np.array([0.236383199662150, 0.2**0.5, 0.641853342345781, (2.0 / 3.0) ** 0.5, 0.942882415695480, 1.0])
_POINTS = np.concatenate([-_INNER[::-1], [0.0], _INNER])
_FINE = np.array([
    0.242611071901408, 0.224926465333340, 0.199773405226859, 0.188821573960182, 0.155071987336585, 0.0942738402188500,
    0.0158271919734802,
])  # fmt: skip
_COARSE = np.array([672.0, 0.0, 625.0, 0.0, 432.0, 0.0, 77.0]) / 1470.0
_COARSEST = np.array([0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 1.0]) / 6.0
_RULES = [np.concatenate([half[:0:-1], half]) for half in (_FINE, _COARSE, _COARSEST)]


def _lobatto_nodes(left: FloatArray, width: FloatArray) -> Nodes:
    half = 0.5 * width[:, None]
    return Nodes((left[:, None] + half) + half * _POINTS, *(half * rule for rule in _RULES))


def integral_rule() -> Rule:
    """For functions of t that fall off at least as exp(-t): the remainder is at most the value at the end."""
    return Rule(_lobatto_nodes, 1.25, lambda right, value: value)


# ---- sums over whole numbers -----------------------------------------------------------------------------------------


def sum_rule() -> Rule:
    """For functions of k that fall off at least as 1 / k^2; widths are powers of two from `MIN_RUN` on."""
    return Rule(_sum_nodes, 2.0, lambda right, value: right * value)


def _sum_nodes(left: FloatArray, width: FloatArray) -> Nodes:
    sizes, which = np.unique(width, return_inverse=True)
    offsets, *rules = (np.stack(parts)[which] for parts in zip(*map(_sum_weights, sizes), strict=True))
    return Nodes(left[:, None] + offsets, *rules)


@cache
def _sum_weights(size: float) -> tuple[FloatArray, ...]:
    """Whole numbers from 0 to size - 1 and three sets of weights that sum polynomials over all of them exactly.

    The numbers are near the extrema of a Chebyshev polynomial; every other one makes the coarse rule.
    """
    n = MIN_RUN + 1
    if size <= MIN_RUN:
        each = (np.arange(n) < size).astype(np.float64)
        return np.minimum(np.arange(n), size - 1.0), each, each, each
    wanted = np.floor(0.5 * (size - 1.0) * (1.0 - np.cos(np.pi * np.arange(n // 2 + 1) / (n - 1))) + 0.5)
    lower = np.maximum(wanted, np.arange(n // 2 + 1))
    offsets = np.concatenate([lower, size - 1.0 - lower[-2::-1]])
    rules = np.zeros((3, n))
    for rule, every in zip(rules, (1, 2, 4), strict=True):
        rule[::every] = _summing_weights(offsets[::every], size)
    return offsets, *rules


def _summing_weights(offsets: FloatArray, size: float) -> FloatArray:
    """Weights from the discrete Chebyshev polynomials, of which all but the first sum to zero over 0 .. size - 1."""
    u, n = (2.0 * offsets - size + 1.0) / size, len(offsets)
    polynomials = [np.ones(n), u]
    for j in range(1, n - 1):
        polynomials.append(
            ((2 * j + 1) * u * polynomials[j] - j * (1.0 - (j / size) ** 2) * polynomials[j - 1]) / (j + 1)
        )
    sums = np.zeros(n)
    sums[0] = size
    return np.asarray(np.linalg.solve(np.stack(polynomials), sums), dtype=np.float64)
