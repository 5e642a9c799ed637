"""Mixtures of Student's t over the nodes of a forest, solved natively for many rows at a time.

Leaves that are normal, with a known or an unknown variance, predict by Student's t, or their logarithms do. The kernel
has one table of the distribution function for each number of degrees of freedom, exact to 1e-13. Probabilities from
1e-3 to 1 - 1e-3 are computed by these tables; smaller tails without them. A quantile is found by Newton's method with
second derivatives; it ends where a bound on the third derivative proves the rest to be below 5e-11 of the smaller tail.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.families.student import Students


class StudentRows:
    """Answers about rows by the nodes where they end in each tree; on several threads, with the same bits as on one.

    Parameters
    ----------
    pool : NodePool
    nodes : Students
        The distribution of each node of the pool.
    n_jobs : int
        Threads that make the tables.
    """

    def __init__(self, pool: _kernels.NodePool, nodes: Students, n_jobs: int) -> None:
        self._is_log = nodes.is_log
        self._kernel = _kernels.StudentForest(
            pool, freedom=nodes.freedom, location=nodes.location, location_rest=nodes.location_rest,
            scale=nodes.scale, n_jobs=n_jobs,
        )  # fmt: skip

    def quantiles(self, ends: NDArray[np.int32], levels: FloatArray, n_jobs: int) -> FloatArray:
        """(n_rows, n_levels), ordered as the levels are."""
        found = self._kernel.quantiles(ends=ends, levels=levels, n_jobs=n_jobs)
        order = np.argsort(levels)
        found[:, order] = np.maximum.accumulate(found[:, order], axis=1)  # rounding cannot make them cross either
        return self._targets(found)

    def shortest(self, ends: NDArray[np.int32], coverage: float, n_jobs: int) -> FloatArray:
        """(n_rows, 2) ends of the shortest interval."""
        return self._targets(self._kernel.shortest(ends=ends, coverage=coverage, is_log=self._is_log, n_jobs=n_jobs))

    def log_prob(self, ends: NDArray[np.int32], grid: FloatArray, n_jobs: int) -> FloatArray:
        """(n_points, n_rows) log densities, for a grid as in `Targets`."""
        logs = self._numbers(grid)
        found = self._kernel.log_densities(ends=ends, y=logs, n_jobs=n_jobs)
        return found - np.where(np.isfinite(logs), logs, 0.0) if self._is_log else found

    def tails(self, ends: NDArray[np.int32], grid: FloatArray, is_above: bool, n_jobs: int) -> FloatArray:
        """(n_points, n_rows) P(Y > y) if `is_above`, else P(Y <= y)."""
        return self._kernel.tails(ends=ends, y=self._numbers(grid), is_above=is_above, n_jobs=n_jobs)

    def scores(self, ends: NDArray[np.int32], grid: FloatArray, n_jobs: int) -> FloatArray:
        """(n_points, n_rows) `crps`, or NaN for rows whose score has to be computed in another way."""
        found = self._kernel.scores(ends=ends, y=self._numbers(grid), is_log=self._is_log, n_jobs=n_jobs)
        return found + np.maximum(-grid, 0.0) if self._is_log else found  # below 0 there is no probability

    def _numbers(self, y: FloatArray) -> FloatArray:
        """Targets as the kernel takes them: their logarithms, if those are what the distributions are of."""
        if self._is_log:
            with np.errstate(divide="ignore"):
                y = np.log(np.maximum(y, 0.0))
        return np.ascontiguousarray(y)

    def _targets(self, numbers: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.exp(numbers) if self._is_log else numbers
