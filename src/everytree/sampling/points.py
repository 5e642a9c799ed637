"""Rows as distinct points: equal rows are never separated, so their statistics are added up once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.exact.posterior import read_rows
from everytree.families.base import NativeFamily
from everytree.posterior.posterior import Posterior
from everytree.trees.metatree import MetaTree


@dataclass(frozen=True)
class DistinctRows:
    """Distinct rows of codes with the statistics of all rows that are equal to each."""

    codes: NDArray[np.uint16]  # (n_points, n_features) uint16
    statistics: FloatArray  # (n_points, n_statistics)
    n_rows: int  # rows with positive weight

    @classmethod
    def read(
        cls,
        family: NativeFamily,
        n_codes: Sequence[int],
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None,
        row_data: dict[str, Any],
    ) -> Self:
        """Check rows and group them."""
        codes, statistics, _ = read_rows(family, n_codes, X, y, sample_weight, row_data)
        if not len(codes):
            return cls(codes, statistics, 0)
        points, group = np.unique(codes, axis=0, return_inverse=True)
        return cls(points, _sums(family, statistics, group.ravel().astype(np.int64), len(points)), len(codes))

    def posterior(self, tree: MetaTree, family: NativeFamily, split_prior: FloatArray) -> Posterior:
        """The posterior of these rows over the prunings of one structure."""
        ends = np.zeros(0, dtype=np.int64) if not len(self.codes) else tree.route(self.codes).astype(np.int64)
        statistics = _sums(family, self.statistics, ends, tree.n_nodes)
        return Posterior.from_statistics(tree, family, split_prior, statistics, self.n_rows)


def _sums(family: NativeFamily, statistics: FloatArray, group: NDArray[np.int64], n_groups: int) -> FloatArray:
    return np.asarray(
        _kernels.sum_statistics(family.kernel, family.size, statistics=statistics, group=group, n_groups=n_groups)
    )
