"""Contributions of columns that add up, and what becomes of them on the way from sums of trees to a prediction.

A sum of trees has exact Shapley values. What a model predicts may be a function of such sums: a power of probabilities,
a softmax of scores, a centre and what lies about it. A function is followed by its mean slope between the value without
any column and the value of the row: contributions are multiplied by that slope, so that they add up on the other side
too. Of a linear function that is exact; there, contributions stay Shapley values.

The value without any column is the mean prediction of the rows, which is not the function of mean sums: where a third
of the rows has each of three classes, the softmax of the mean scores may give one of them nearly everything. So the
path to a row starts where the function is the mean prediction, and what the mean sums differ from there is shared among
the columns by their importance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, softmax

from everytree.base.arrays import FloatArray

N_POINTS = 32
"""Points at which the slope of a softmax of more than two classes is averaged."""


LEAST = 1e-300
"""Probabilities below this have no logarithm to work with."""


@dataclass(frozen=True)
class Contributions:
    """Contributions of the columns to some numbers of each row."""

    base: FloatArray  # (n_outputs,): the numbers without any column
    values: FloatArray  # (n_rows, n_columns, n_outputs)

    def total(self) -> FloatArray:
        """(n_rows, n_outputs) the numbers of each row."""
        return np.asarray(self.base + self.values.sum(axis=1))

    def times(self, factor: float) -> Contributions:
        return Contributions(factor * self.base, factor * self.values)

    def plus(self, other: Contributions) -> Contributions:
        return Contributions(self.base + other.base, self.values + other.values)

    def shifted(self, by: float) -> Contributions:
        return Contributions(self.base + by, self.values)

    def by_slope(self, base: FloatArray, slope: FloatArray) -> Contributions:
        """Contributions to a function of each number, by its mean slope (n_rows, n_outputs)."""
        return Contributions(base, self.values * slope[:, None, :])

    def starting_at(self, base: FloatArray, shares: FloatArray) -> Contributions:
        """Change the base, not the totals: columns take the difference by their shares (n_columns,), which sum to 1."""
        return Contributions(base, self.values + shares[:, None] * (self.base - base))

    def without_player(self, number: int, shares: FloatArray) -> Contributions:
        """Give what one column adds to the others, by shares (n_rows, n_columns - 1) that sum to 1."""
        own, others = self.values[:, number], np.delete(self.values, number, axis=1)
        return Contributions(self.base, others + shares[:, :, None] * own[:, None, :])


def safe_log(probs: FloatArray) -> FloatArray:
    """Logarithms of probabilities, some of which may be 0."""
    return np.asarray(np.log(np.maximum(probs, LEAST)))


def log_of(given: Contributions) -> Contributions:
    """Contributions to the logarithms."""
    relative = given.values.sum(axis=1) / given.base
    small = np.abs(relative) < 1e-8
    safe = np.where(small, 1.0, relative)
    slope = np.where(small, 1.0 - 0.5 * relative, np.log1p(safe) / safe) / given.base
    return given.by_slope(np.log(given.base), slope)


def exp_of(given: Contributions) -> Contributions:
    """Contributions to the exponentials."""
    change = given.values.sum(axis=1)
    small = np.abs(change) < 1e-8
    safe = np.where(small, 1.0, change)
    slope = np.exp(given.base) * np.where(small, 1.0 + 0.5 * change, np.expm1(safe) / safe)
    return given.by_slope(np.exp(given.base), slope)


def inverse_of(given: Contributions) -> Contributions:
    """Contributions to the inverses."""
    return given.by_slope(1.0 / given.base, -1.0 / (given.base * given.total()))


def product_of(one: Contributions, other: Contributions) -> Contributions:
    """Contributions to the products: what changes in one factor counts by the mean of the other."""
    means = [0.5 * (each.base + each.total()) for each in (one, other)]
    values = one.values * means[1][:, None, :] + other.values * means[0][:, None, :]
    return Contributions(one.base * other.base, values)


def probs_of(logits: Contributions) -> Contributions:
    """Contributions to probabilities of classes, from logits (n_rows, n_columns, n_classes)."""
    if logits.values.shape[2] == 2:
        return _of_two(logits)
    change = logits.values.sum(axis=1)
    points, weights = np.polynomial.legendre.leggauss(N_POINTS)
    slope = np.zeros((len(change), change.shape[1], change.shape[1]))
    for point, weight in zip(0.5 + 0.5 * points, 0.5 * weights, strict=True):
        probs = softmax(logits.base + point * change, axis=1)
        slope -= weight * probs[:, :, None] * probs[:, None, :]
        slope[:, np.arange(probs.shape[1]), np.arange(probs.shape[1])] += weight * probs
    values = np.matmul(logits.values, slope)  # slopes of a softmax are symmetric
    base = softmax(logits.base)
    return complete(Contributions(base, values), softmax(logits.base + change, axis=1))


def _of_two(logits: Contributions) -> Contributions:
    """Of two classes only the difference of the logits matters."""
    base = float(logits.base[1] - logits.base[0])
    each = logits.values[:, :, 1] - logits.values[:, :, 0]
    change = each.sum(axis=1)
    small = np.abs(change) < 1e-5
    secant = (expit(base + change) - expit(base)) / np.where(small, 1.0, change)
    middle = expit(base + 0.5 * change) * expit(-base - 0.5 * change)
    second = each * np.where(small, middle, secant)[:, None]
    return Contributions(np.array([expit(-base), expit(base)]), np.stack([-second, second], axis=2))


def complete(given: Contributions, total: FloatArray) -> Contributions:
    """Share what rounding or integration has left open among the columns, by the sizes of their contributions."""
    left = total - given.total()
    sizes = np.abs(given.values)
    sums = sizes.sum(axis=1, keepdims=True)
    shares = np.where(sums > 0.0, sizes / np.where(sums > 0.0, sums, 1.0), 1.0 / sizes.shape[1])
    return Contributions(given.base, given.values + shares * left[:, None, :])
