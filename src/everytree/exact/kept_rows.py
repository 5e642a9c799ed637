"""Forests that keep the rows they were fitted to, and count all of them again when there are more."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.exact.posterior import ExactPosterior
from everytree.families.base import NativeFamily
from everytree.posterior.checks import check_is_other
from everytree.posterior.rows import Rows


class KeepsRows(ABC):
    """A posterior over splits, with its rows.

    Attributes
    ----------
    posterior : ExactPosterior
    rows : Rows
    """

    posterior: ExactPosterior
    rows: Rows

    @abstractmethod
    def _with(self, rows: Rows) -> Self:
        """Return the same splits and priors with other rows."""

    @abstractmethod
    def check_mergeable(self, other: Self) -> None:
        """Raise unless the other has the same splits and priors."""

    @property
    def family(self) -> NativeFamily:
        return self.posterior.family

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    @property
    def log_evidence(self) -> float:
        return self.posterior.log_evidence

    def update(
        self,
        X: NDArray[Any],
        y: NDArray[Any],
        sample_weight: FloatArray | None = None,
        *,
        n_jobs: int | None = None,
        **row_data: Any,
    ) -> Self:
        """Count more rows: the sum over all splits is made again. If it fails, nothing changes."""
        del n_jobs  # the posterior has its own
        return self._become(self.rows.joined(Rows(X, y, sample_weight, row_data)))

    def merge(self, other: Self) -> Self:
        """Add the rows of another one with the same splits and priors. Returns itself."""
        self.check_mergeable(other)
        check_is_other(self, other)
        return self._become(self.rows.joined(other.rows))

    def without_rows(self) -> Self:
        """Return the same splits and priors without rows."""
        return self._with(self.rows.at(np.zeros(0, dtype=np.int64)))

    def _become(self, rows: Rows) -> Self:
        fresh = self._with(rows)
        self.__dict__.clear()  # what was computed from the old rows goes too
        self.__dict__.update(vars(fresh))
        return self
