"""Statistics of rows in every tree of a forest, without anything derived from them."""

from __future__ import annotations

import hashlib
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray, readable
from everytree.base.checks import resolve_n_jobs
from everytree.families.base import NativeFamily
from everytree.posterior.forest import Forest
from everytree.posterior.posterior import Posterior


class Tally(NamedTuple):
    """What was counted, without the trees: a small part of counts, where those are known at the other end.

    Attributes
    ----------
    statistics : list of (n_nodes, n_statistics) float64
        One table a tree.
    n_rows : (n_trees,) int64
    """

    statistics: list[FloatArray]
    n_rows: NDArray[np.int64]


class ForestCounts:
    """The rows of any number of batches, as sufficient statistics of each tree's terminals.

    An update costs O(n_rows * depth) a tree and nothing for nodes that no row reaches; evidence and split probabilities
    wait until `forest()` asks for them. Counts of different rows merge.

    Parameters
    ----------
    forest : Forest
        Whose trees, leaves and priors are meant; its rows are not. With leaves of a built-in family.
    """

    def __init__(self, forest: Forest) -> None:
        if not isinstance(forest.family, NativeFamily):
            raise TypeError(f"rows are counted for built-in families, not for {type(forest.family).__name__}")
        self._begin(forest, _kernels.Forest([tree._kernel for tree in forest.trees], forest.n_codes))

    def _begin(self, forest: Forest, engine: _kernels.Forest) -> None:
        self._like, self._engine = forest, engine
        size = forest.family.n_statistics
        self.statistics: list[FloatArray] = [np.zeros((tree.n_nodes, size)) for tree in forest.trees]
        self.n_rows: NDArray[np.int64] = np.zeros(len(forest), dtype=np.int64)
        self._alone = _kernels.Guard()

    def update(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        n_jobs: int | None = None,
        **row_data: Any,
    ) -> Self:
        """Count more rows; a tree that cannot place one leaves it out. Arguments as in `Posterior.update`."""
        family, jobs = self._like.family, resolve_n_jobs(n_jobs)
        extra = family.pack_rows(row_data, X) if row_data or family.row_data else None
        with self._alone.writing:
            count = partial(
                self._engine.count, name=family.kernel, size=family.size, constant=family.default_row_data,
                statistics=self.statistics, n_rows=self.n_rows, n_jobs=jobs,
            )  # fmt: skip
            if not count(X, y, sample_weight, extra):
                count(*readable(X, y, sample_weight), extra)
        return self

    def merge(self, other: ForestCounts) -> Self:
        """Add the rows of counts over the same trees and priors. Returns itself."""
        if other._like is not self._like:
            self._like.check_mergeable(other._like)
        return self.add(other.tally())

    def empty(self) -> ForestCounts:
        """Counts of no rows over the same trees, which are not prepared once more."""
        fresh = object.__new__(ForestCounts)
        fresh._begin(self._like, self._engine)
        return fresh

    def tally(self) -> Tally:
        """A copy of what was counted, without the trees."""
        with self._alone:
            return Tally([one.copy() for one in self.statistics], self.n_rows.copy())

    def digest(self) -> str:
        """By which the rows that were counted are recognised, whatever batches they came in."""
        with self._alone:
            found = hashlib.blake2b(b"statistics", digest_size=16)
            for statistics in self.statistics:
                found.update(statistics.tobytes())
            return found.hexdigest()

    def add(self, tally: Tally) -> Self:
        """Add what was counted elsewhere over the same trees; `merge` also checks that they are the same."""
        family = self._like.family
        with self._alone.writing:
            self._engine.add(
                name=family.kernel, size=family.size, statistics=self.statistics, n_rows=self.n_rows,
                more=tally.statistics, n_more=tally.n_rows,
            )  # fmt: skip
        return self

    def forest(self) -> Forest:
        """The forest of these rows: its trees, priors, sharpness and weights are those of the one given."""
        like = self._like
        posteriors = [
            Posterior._counted(post.tree, post.family, post.split_prior_argument, statistics, int(n_rows))
            for post, statistics, n_rows in zip(like.posteriors, self.statistics, self.n_rows, strict=True)
        ]
        weights = "evidence" if like._by_evidence else like._weights
        return Forest(posteriors, weights=weights, sharpness=like.sharpness, n_codes=like.n_codes)

    def __getstate__(self) -> dict[str, Any]:
        return {"like": self._like, "statistics": self.statistics, "n_rows": self.n_rows}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["like"])  # type: ignore[misc]
        for mine, given in zip([*self.statistics, self.n_rows], [*state["statistics"], state["n_rows"]], strict=True):
            mine[...] = given  # own copies: what was pickled may be shared or read-only
