"""Target encoding: shrunken mean targets of categories, and pools of categories with similar ones.

The few targets of a rare category say little about it, and those of all categories together say how little. Let the
category c have n rows with the mean target m, the deviations of categories from the overall mean the variance B, and
the targets within a category the variance W. The conjugate (normal) estimate of its deviation is

    (m - overall mean) n / (n + k),    k = W / B,

as if the overall mean had been seen k times before. B and W come from all categories of the column (empirical Bayes).
Categories of similar estimates get the same code: a pool. Its rows are many where those of a category are few.

A category's estimate contains the targets of its own rows, so rows of fit must not be coded by it: a tree would find
each row's own target in its code. They are cross-fitted: in turn a fifth of the rows is coded by the estimates that the
other rows give, and later rows by the estimates of all. An estimate is not biased by how many rows it comes from, so a
code means the same in both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.tables.cutting import cut_points, leading_direction, midpoints, sums_of

N_FOLDS = 5
"""More of them make the codes of rows of fit and of others more alike; of five, the code is that of four fifths."""

MAX_DIRECTIONS, MIN_SHARE = 4, 0.05
"""Of several targets, such as classes, at most so many directions are told apart, down to this share of the largest."""

START, N_ROUNDS = 10.0, 10
"""First guess of the prior's strength, and how often it is improved."""


@dataclass(frozen=True)
class CategoryMeans:
    """Mean targets of categories, shrunk towards that of all rows."""

    index: NDArray[np.int64]  # (n_rows,): category of each row that counts
    apart: FloatArray  # (n_rows,): target of each of these rows less the mean of all, divided by the largest of them
    weight: FloatArray  # (n_rows,): a row of weight 2 counts as two
    n_labels: int
    strength: float  # rows that the overall mean counts for; infinite if categories do not differ

    @classmethod
    def fit(
        cls, index: NDArray[np.int64], n_labels: int, targets: FloatArray, weight: FloatArray | None
    ) -> CategoryMeans:
        """Estimate the strength of the prior.

        `index`, (n_rows,) int64: category of each row, not negative. `targets`: (n_rows,). `weight`: (n_rows,).
        """
        weight = np.ones(len(index)) if weight is None else weight
        apart = targets - (weight @ targets / weight.sum() if len(index) else 0.0)
        size = np.abs(apart).max(initial=0.0)
        apart = apart / size if size > 0.0 else apart
        return cls(index, apart, weight, n_labels, _strength(index, n_labels, apart, weight))

    @property
    def of_all(self) -> FloatArray:
        """(n_labels,) the estimates of all rows."""
        total = sums_of(self.index, self.weight * self.apart, self.n_labels)
        return self._shrunken(total, sums_of(self.index, self.weight, self.n_labels))

    def of_others(self, fold: NDArray[np.int64]) -> FloatArray:
        """(n_rows,) the estimate for each row's category by the rows of the other folds."""
        place, shape = self.index * N_FOLDS + fold, (self.n_labels, N_FOLDS)
        total = sums_of(place, self.weight * self.apart, self.n_labels * N_FOLDS).reshape(shape)
        mass = sums_of(place, self.weight, self.n_labels * N_FOLDS).reshape(shape)
        others = self._shrunken(
            (total.sum(axis=1, keepdims=True) - total).ravel(), (mass.sum(axis=1, keepdims=True) - mass).ravel()
        )
        estimates: FloatArray = others[place]
        return estimates

    def _shrunken(self, total: FloatArray, mass: FloatArray) -> FloatArray:
        """Rounded to twelve digits, so that equal estimates are equal."""
        if np.isinf(self.strength):
            return np.zeros(len(mass))
        rows = mass + self.strength
        estimates: FloatArray = np.divide(total, rows, out=np.zeros(len(mass)), where=rows > 0.0).round(12)
        return estimates


def _strength(index: NDArray[np.int64], n_labels: int, apart: FloatArray, weight: FloatArray) -> float:
    """W / B by the method of moments.

    The mean product of two rows of a category is an unbiased estimate of its squared deviation from the overall mean.
    B is the average of these over the categories, weighted by their precisions, which depend on W / B themselves.
    """
    mass = sums_of(index, weight, n_labels)
    total, squares = sums_of(index, weight * apart, n_labels), sums_of(index, weight * apart**2, n_labels)
    has_pairs = mass > 1.0
    mass, total, own = mass[has_pairs], total[has_pairs], squares[has_pairs]
    products, strength = total**2 - own, START
    for _ in range(N_ROUNDS):
        precision = 1.0 / (mass + strength) ** 2
        n_pairs = float(precision @ (mass * (mass - 1.0)))
        between = float(precision @ products) / n_pairs if n_pairs > 0.0 else 0.0
        within = float(squares.sum()) / max(float(weight.sum()), 1e-300) - between
        if between <= 0.0:
            return float("inf")
        strength = max(within, 0.0) / between
    return strength


# ---- several targets ------------------------------------------------------------------------------------------------


def directions(
    index: NDArray[np.int64], n_labels: int, targets: FloatArray, weight: FloatArray | None
) -> list[FloatArray]:
    """Directions, (n_targets,) each, in which the mean targets of categories differ, the clearest first.

    The principal components of B, the covariance of the categories' means: from products of two rows of a category, to
    which chance alone contributes nothing on average.
    """
    if targets.shape[1] == 1:
        return [np.ones(1)]
    weight = np.ones(len(index)) if weight is None else weight
    apart = targets - (weight @ targets / weight.sum() if len(index) else 0.0)
    weighted = weight[:, None] * apart
    sums = np.stack([sums_of(index, column, n_labels) for column in weighted.T])
    mass = np.maximum(sums_of(index, weight, n_labels), 1.0)
    between = (sums / mass) @ sums.T - (weighted / mass[index, None]).T @ apart
    sizes, ways = np.linalg.eigh(between)
    is_clear = sizes[::-1] > MIN_SHARE * max(sizes[-1], 0.0)
    n_ways = max(1, min(int(is_clear.sum()), MAX_DIRECTIONS))
    return [leading_direction(ways[:, -1 - k]) for k in range(n_ways)]


# ---- pools ----------------------------------------------------------------------------------------------------------


def pools(means: CategoryMeans, max_pools: int) -> tuple[NDArray[np.int64], int]:
    """The pool of each category, numbered from 0 on in the order of their estimates, and the pool of the overall mean.

    The first is (n_labels,) int64; the last is -1 where there are no categories.
    """
    estimates = means.of_all
    if len(estimates) == 0:
        return np.zeros(0, dtype=np.int64), -1
    cuts = cut_points(estimates[means.index], means.weight, max_pools)
    pool = np.unique(np.searchsorted(cuts, estimates), return_inverse=True)[1].astype(np.int64)
    return pool, int(_nearest_pools(means, pool, np.zeros(1))[0])


def cross_fitted_pools(means: CategoryMeans, pool: NDArray[np.int64], fold: NDArray[np.int64]) -> NDArray[np.int64]:
    """(n_rows,) for each row the pool whose categories are nearest to its cross-fitted estimate."""
    return _nearest_pools(means, pool, means.of_others(fold))


def _nearest_pools(means: CategoryMeans, pool: NDArray[np.int64], estimates: FloatArray) -> NDArray[np.int64]:
    of_all, n_pools = means.of_all, int(pool.max(initial=0)) + 1
    low, high = np.full(n_pools, np.inf), np.full(n_pools, -np.inf)
    np.minimum.at(low, pool, of_all)
    np.maximum.at(high, pool, of_all)
    return np.searchsorted(midpoints(high[:-1], low[1:]), estimates).astype(np.int64)


def folds(n_rows: int, group: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """(n_rows,) the fold of each row, the same for the rows of a group; drawn with a fixed seed."""
    group = np.arange(n_rows) if group is None else group
    return np.asarray(np.random.default_rng(0).permutation(int(group.max(initial=-1)) + 1)[group] % N_FOLDS)
