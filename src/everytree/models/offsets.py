"""Relative hazards of rows that are known before the trees: sums over columns, or over boosted trees."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.boosting.trees import AdditiveTrees
from everytree.explaining.contributions import Contributions, complete
from everytree.explaining.tree_sums import Asked, additive_sum
from everytree.models.boosted import Chains
from everytree.survival.offset import within_limits


class Offset(ABC):
    """The logarithm of a row's relative hazard, within limits."""

    trees: AdditiveTrees | None = None  # whose score it is; None where it is a sum over columns
    chains: Chains | None = None  # of these trees

    def log_hazard(self, codes: NDArray[Any], n_jobs: int | None = None) -> FloatArray:
        """(n_rows,) for rows of codes."""
        return within_limits(self._sums(codes, n_jobs))

    def contributions(self, asked: Asked) -> Contributions:
        """What each column adds to it."""
        return complete(self._parts(asked), self.log_hazard(asked.codes, asked.n_jobs)[:, None])

    @abstractmethod
    def _sums(self, codes: NDArray[Any], n_jobs: int | None) -> FloatArray:
        """(n_rows,) before limits."""

    @abstractmethod
    def _parts(self, asked: Asked) -> Contributions:
        """Contributions to that."""


@dataclass(frozen=True)
class OffsetOfColumns(Offset):
    """The sum of one number for the code of each column."""

    # (n_columns + 1,): where the numbers of each column begin; the last one of a column is for codes that are not known
    first: NDArray[np.int64]
    values: FloatArray  # (n_values,): their mean over the rows of fit is 0 in each column
    centre: float  # what is subtracted from the sums

    def _sums(self, codes: NDArray[Any], n_jobs: int | None) -> FloatArray:
        del n_jobs  # one look a column
        total = np.full(len(codes), -self.centre)
        for column in range(codes.shape[1]):
            total += self._of_column(codes, column)
        return total

    def _of_column(self, codes: NDArray[Any], column: int) -> FloatArray:
        begin, end = self.first[column], self.first[column + 1]
        return np.asarray(self.values[begin + np.minimum(codes[:, column].astype(np.int64), end - begin - 1)])

    def _parts(self, asked: Asked) -> Contributions:
        """Shapley values of a sum over columns: each number less its mean over the rows."""
        base, values = -self.centre, np.zeros((len(asked.codes), asked.n_inputs, 1))
        for column, number in enumerate(asked.inputs):
            mean = 0.0 if asked.table is None else float(self._of_column(asked.table, column).mean())
            base += mean
            values[:, number, 0] += self._of_column(asked.codes, column) - mean
        return Contributions(np.array([base]), values)


@dataclass(frozen=True)
class OffsetOfTrees(Offset):
    """The score of boosted trees."""

    trees: AdditiveTrees = field()  # of one output
    chains: Chains = field()

    def _sums(self, codes: NDArray[Any], n_jobs: int | None) -> FloatArray:
        return self.trees.scores(codes, n_jobs=n_jobs)[:, 0]

    def _parts(self, asked: Asked) -> Contributions:
        return additive_sum(asked, self.trees)
