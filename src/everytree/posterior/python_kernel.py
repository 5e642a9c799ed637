"""The kernel of families written in Python: the same contract as the native one, the same sweep, three callbacks.

New values are computed first and written only when all of them exist, so that a family that raises changes nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray, check_lengths
from everytree.base.checks import row_weights
from everytree.families.base import Family

if TYPE_CHECKING:
    from everytree.trees.metatree import MetaTree


class PythonKernel:
    """Borrows the arrays of a posterior, as the native kernel does."""

    def __init__(
        self,
        family: Family,
        tree: MetaTree,
        log_split: FloatArray,
        log_stop: FloatArray,
        arrays: dict[str, NDArray[Any]],
    ) -> None:
        self._family, self._tree, self._arrays = family, tree, arrays
        self._log_split, self._log_stop = log_split, log_stop
        self.n_touched = 0  # nodes of the last update
        self.version = 0  # of the arrays: changes after anything that may have written to them
        self._guard = _kernels.Guard()

    def __enter__(self) -> None:
        self._guard.__enter__()

    def __exit__(self, *_: object) -> None:
        self._guard.__exit__()

    @property
    def writing(self) -> _kernels.Writing:
        return self._guard.writing

    def update(self, X: Any, y: Any, weight: Any, extra: dict[str, Any] | None, n_jobs: int) -> bool:
        if not _is_column(y) or not (weight is None or _is_column(weight)):
            return False
        ends = self._tree.kernel.route(X, n_jobs)
        if ends is None:
            return False
        check_lengths(len(ends), {"y": y, "sample_weight": weight})
        weights = np.ones(len(y)) if weight is None else row_weights(weight)
        # Targets as floats: the squares of small integer types would wrap around.
        targets = y.astype(np.float64)
        rows = np.asarray(self._family.statistics(targets, weights, **(extra or {})), dtype=np.float64)
        if rows.shape != (len(y), self._family.n_statistics):
            raise ValueError(
                f"{type(self._family).__name__}.statistics returned shape {rows.shape}, "
                f"but must return {(len(y), self._family.n_statistics)}"
            )
        counted = weights > 0.0
        with self.writing:
            self._add(ends[counted], rows[counted])
            self._arrays["n_rows"] += counted.sum()
        return True

    def merge(self, other: FloatArray) -> None:
        ends = np.flatnonzero(self._tree.is_terminal & (other != 0.0).any(axis=1)).astype(np.int32)
        self._add(ends, other[ends])

    def _add(self, ends: NDArray[np.int32], rows: FloatArray) -> None:
        """Add rows of statistics to the nodes where they end and all nodes above."""
        tree, arrays = self._tree, self._arrays
        self.version += 1
        touched = tree.kernel.upward_closure(np.ascontiguousarray(ends))
        self.n_touched = len(touched)
        if len(touched) == 0:
            return
        order = np.argsort(touched)
        statistics = arrays["statistics"][touched]
        node = ends
        while len(node):
            np.add.at(statistics, order[np.searchsorted(touched, node, sorter=order)], rows)
            above = tree.parent[node]
            node, rows = above[above >= 0], rows[above >= 0]
        leaf = np.asarray(self._family.at(touched).log_evidence(statistics), dtype=np.float64)
        if leaf.shape != touched.shape or not np.isfinite(leaf).all():
            raise ValueError(f"{type(self._family).__name__}.log_evidence must return one finite number per row")
        arrays["statistics"][touched] = statistics
        arrays["leaf"][touched] = leaf
        tree.kernel.sweep(
            touched, log_split=self._log_split, log_stop=self._log_stop, leaf=arrays["leaf"],
            subtree=arrays["subtree"], split_prob=arrays["split_prob"],
        )  # fmt: skip


def _is_column(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "biuf"
