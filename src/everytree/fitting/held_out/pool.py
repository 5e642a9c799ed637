"""What the average of the trees says of held-out rows under many priors at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.fitting.held_out.held_out import HeldOut
from everytree.posterior.split_prior import SplitPriorLike

TREES_PER_CALL = 16
"""Number of trees per thread that predict in one call of the kernel."""


class Pool:
    """The average of the trees that may predict each row; trees are asked some at a time.

    Parameters
    ----------
    held : HeldOut
    families : sequence of NativeFamily
    split_priors : sequence of float or callable
    """

    def __init__(self, held: HeldOut, families: Sequence[NativeFamily], split_priors: Sequence[SplitPriorLike]) -> None:
        self._held, self._families, self._split_priors = held, list(families), split_priors
        self.is_classes = families[0].has_classes
        n_values = families[0].size if self.is_classes else 1
        shape = len(families), len(split_priors), held.n_scored, n_values
        self._sums = np.full(shape, 0.0 if self.is_classes else -np.inf)
        self._counts = np.zeros(held.n_scored)

    def ask(self, trees: Sequence[int]) -> None:
        """Ask some trees that predict any rows, none of them twice."""
        rows = self._held.rows
        together = TREES_PER_CALL * self._held.n_jobs
        for start in range(0, len(trees), together):  # an interrupt is noticed between calls
            some = trees[start : start + together]
            _kernels.pool_held_out(
                pooled=self._sums, rows=[rows[tree] for tree in some], n_jobs=self._held.n_jobs,
                **self._held.kernel_arguments(some, self._families, self._split_priors),
            )  # fmt: skip
        for tree in trees:
            self._counts[rows[tree]] += 1.0

    def keep(self, numbers: NDArray[np.int64]) -> None:
        """Go on with some of the families only."""
        self._families = [self._families[number] for number in numbers]
        self._sums = np.ascontiguousarray(self._sums[numbers])

    @property
    def is_predicted(self) -> NDArray[np.bool_]:
        """(n_scored,) which rows some tree predicts."""
        return self._counts > 0.0

    def average(self) -> FloatArray:
        """(n families, n split priors, n_scored, n_values): probabilities of classes, else the log of the average
        density."""
        many = np.maximum(self._counts, 1.0)[:, None]
        return self._sums / many if self.is_classes else self._sums - np.log(many)
