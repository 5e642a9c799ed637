"""Trees below the regions of an exact sum, found by the conditions of their region."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.exact.posterior import ContinuedRegions
from everytree.families.base import NativeFamily
from everytree.posterior.counts import count_placed
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.posterior.split_prior import SplitPriorLike
from everytree.trees.metatree import MetaTree


@dataclass(frozen=True)
class Continuations:
    """Trees on the codes of a table, the same number for every region; all are equally probable a priori.

    Attributes
    ----------
    regions : ContinuedRegions
        Whose conditions count.
    trees : sequence of MetaTree
        Those of the first region, those of the second, and so on.
    split_prior : float or callable
        Of their nodes.
    """

    regions: ContinuedRegions
    trees: Sequence[MetaTree]
    split_prior: SplitPriorLike

    @property
    def n_each(self) -> int:
        """Number of trees of a region."""
        return max(len(self.trees) // max(len(self.regions), 1), 1)

    @cached_property
    def _numbers(self) -> dict[bytes, int]:
        return {self.regions.key(i): i for i in range(len(self.regions))}

    def of(self, regions: ContinuedRegions, n_features: int) -> list[MetaTree]:
        """Return the trees of these regions; those that held no row when trees were grown are leaves."""
        leaf = MetaTree.from_arrays([-1], [-1], [0], n_features=n_features)
        found: list[MetaTree] = []
        for i in range(len(regions)):
            number = self._numbers.get(regions.key(i))
            first = 0 if number is None else number * self.n_each
            found += [leaf] * self.n_each if number is None else self.trees[first : first + self.n_each]
        return found

    def conditioned(
        self,
        regions: ContinuedRegions,
        rows_of: Sequence[NDArray[np.int64]],
        rows: Rows,
        family: NativeFamily,
        n_jobs: int,
    ) -> list[Posterior]:
        """Return the posterior of each tree of these regions, which hold these rows."""
        trees = self.of(regions, rows.codes.shape[1])

        def one(number: int) -> Posterior:
            own, tree = rows.at(rows_of[number // self.n_each]), trees[number]
            statistics = count_placed(tree, family, tree.route(own.codes, n_jobs=1), own)
            return Posterior.from_statistics(tree, family, self.split_prior, statistics, len(own))

        with ThreadPoolExecutor(n_jobs) as pool:
            return list(pool.map(one, range(len(trees))))


def evidence_of_regions(log_evidence: FloatArray, temperature: float) -> FloatArray:
    """(n_regions,) log evidence of regions with several trees, (n_regions, n_trees), each as probable as the others.

    It is the mean of powers of the evidence, to the power of 1 / temperature.
    """
    if temperature == 0.0:
        return np.asarray(log_evidence.mean(axis=1))
    top = log_evidence.max(axis=1)
    powers = np.exp(temperature * (log_evidence - top[:, None]))
    return np.asarray(top + np.log(powers.mean(axis=1)) / temperature)


def evidences(posteriors: Sequence[Posterior], n_each: int) -> FloatArray:
    """(n_regions, n_each) log evidence of the trees of each region."""
    found: Any = np.array([one.log_evidence for one in posteriors])
    return np.asarray(found.reshape(-1, n_each))
