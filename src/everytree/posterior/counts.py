"""Statistics of rows in every tree of a forest, without anything derived from them: the one way rows are counted."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray, readable
from everytree.base.checks import resolve_n_jobs
from everytree.families.base import NativeFamily
from everytree.posterior.forest import Forest, forest_kernel
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.trees.metatree import MetaTree


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


def count(trees: Sequence[MetaTree], family: NativeFamily, n_codes: NDArray[Any], rows: Rows, n_jobs: int = 1) -> Tally:
    """Rows in some trees: the statistics of all nodes, which do not depend on any prior.

    Parameters
    ----------
    trees : sequence of MetaTree
    family : NativeFamily
    n_codes : (n_features,) int array
        Codes that are answers; rows with others are left out by the trees that ask for them.
    rows : Rows
    n_jobs : int
    """
    counts = ForestCounts.of_trees(trees, family, n_codes)
    counts.update(rows.codes, rows.y, rows.weight, n_jobs=n_jobs, **dict[str, Any](rows.row_data))
    return counts.with_inner_nodes()


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
        self._begin(forest.trees, forest.family, forest.n_codes)
        self._like: Forest | None = forest

    @classmethod
    def of_trees(cls, trees: Sequence[MetaTree], family: NativeFamily, n_codes: NDArray[Any]) -> ForestCounts:
        """Counts of no rows over trees whose priors are not known yet."""
        counts = object.__new__(cls)
        counts._like = None
        counts._begin(trees, family, n_codes)
        return counts

    def _begin(
        self, trees: Sequence[MetaTree], family: NativeFamily, n_codes: NDArray[Any], engine: Any = None
    ) -> None:
        self._trees, self._family, self._n_codes = trees, family, n_codes
        self._engine: _kernels.Forest = engine or forest_kernel(trees, n_codes)
        self.statistics: list[FloatArray] = [np.zeros((tree.n_nodes, family.n_statistics)) for tree in trees]
        self.n_rows: NDArray[np.int64] = np.zeros(len(trees), dtype=np.int64)
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
        family, jobs = self._family, resolve_n_jobs(n_jobs)
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
        if other._like is not self._like and self._like is not None and other._like is not None:
            self._like.check_mergeable(other._like)
        return self.add(other.tally())

    def empty(self) -> ForestCounts:
        """Counts of no rows over the same trees, which are not prepared once more."""
        fresh = object.__new__(ForestCounts)
        fresh._like = self._like
        fresh._begin(self._trees, self._family, self._n_codes, self._engine)
        return fresh

    def with_inner_nodes(self) -> Tally:
        """What was counted, the statistics of inner nodes filled in from those of terminals."""
        found = self.tally()
        self._engine.sum_up(name=self._family.kernel, size=self._family.size, statistics=found.statistics)
        return found

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
        family = self._family
        with self._alone.writing:
            self._engine.add(
                name=family.kernel, size=family.size, statistics=self.statistics, n_rows=self.n_rows,
                more=tally.statistics, n_more=tally.n_rows,
            )  # fmt: skip
        return self

    def forest(self) -> Forest:
        """The forest of these rows: its trees, priors, sharpness and weights are those of the one given."""
        like = self._like
        assert like is not None, "counts of bare trees have no priors"
        posteriors = [
            Posterior.from_statistics(post.tree, post.family, post.split_prior_argument, statistics, int(n_rows))
            for post, statistics, n_rows in zip(like.posteriors, self.statistics, self.n_rows, strict=True)
        ]
        weights = "evidence" if like.weighs_by_evidence else like._weights
        return Forest(posteriors, weights=weights, sharpness=like.sharpness, n_codes=like.n_codes)

    def __getstate__(self) -> dict[str, Any]:
        return {"like": self._like, "statistics": self.statistics, "n_rows": self.n_rows}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["like"])  # type: ignore[misc]
        for mine, given in zip([*self.statistics, self.n_rows], [*state["statistics"], state["n_rows"]], strict=True):
            mine[...] = given  # own copies: what was pickled may be shared or read-only
