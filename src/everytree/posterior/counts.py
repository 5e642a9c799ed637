"""Statistics of rows in every tree of a forest, without derived quantities: rows are counted nowhere else."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray, readable
from everytree.base.checks import resolve_n_jobs
from everytree.families.base import NativeFamily
from everytree.posterior.checks import check_is_other
from everytree.posterior.forest import Forest, forest_kernel
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.trees.metatree import MetaTree


class Tally(NamedTuple):
    """The counted statistics without the trees: small to send where the receiver has the trees."""

    statistics: list[FloatArray]  # list of (n_nodes, n_statistics) float64: one table per tree
    n_rows: NDArray[np.int64]  # (n_trees,)

    @classmethod
    def of_nothing(cls, trees: Sequence[MetaTree], family: NativeFamily) -> Tally:
        """Statistics of no rows."""
        return cls([np.zeros((tree.n_nodes, family.n_statistics)) for tree in trees], np.zeros(len(trees), np.int64))


def count(trees: Sequence[MetaTree], family: NativeFamily, n_codes: NDArray[Any], rows: Rows, n_jobs: int = 1) -> Tally:
    """Count rows in some trees: the statistics of all nodes, which do not depend on any prior.

    `n_codes`, (n_features,) int: known codes; trees leave out rows with other codes in the columns they split on.
    """
    engine, tally = forest_kernel(trees, n_codes), Tally.of_nothing(trees, family)
    _add_rows(engine, family, tally, rows.codes, rows.y, rows.weight, n_jobs, rows.row_data)
    engine.sum_up(name=family.kernel, size=family.size, statistics=tally.statistics)
    return tally


def count_placed(tree: MetaTree, family: NativeFamily, ends: NDArray[np.int32], rows: Rows) -> FloatArray:
    """Count rows in one tree whose terminals are known: the statistics of all nodes.

    `ends`, (n_rows,) int32: the terminal of each row.
    """
    extra = family.pack_rows(rows.row_data, rows.codes) if rows.row_data or family.row_data else None
    statistics = _kernels.placed_statistics(
        family.kernel, family.size, tree=tree.kernel, ends=ends, y=rows.y, weight=rows.weight, extra=extra,
        constant=family.default_row_data,
    )  # fmt: skip
    assert statistics is not None, "the columns of Rows are those that the kernels read"
    return statistics


def recounted(post: Posterior, rows: Rows) -> Posterior:
    """The posterior of these rows alone, with the tree and the priors of another one. All codes are known to it."""
    family = post.family
    assert isinstance(family, NativeFamily), "only built-in families are counted by terminals"
    statistics = count_placed(post.tree, family, post.tree.route(rows.codes, n_jobs=1), rows)
    return Posterior.from_counts(post.tree, family, post.split_prior_argument, statistics, len(rows))


def _add_rows(
    engine: _kernels.Forest,
    family: NativeFamily,
    tally: Tally,
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None,
    n_jobs: int,
    row_data: Mapping[str, Any],
) -> None:
    """Add rows to the statistics of terminals; a call that fails changes nothing."""
    extra = family.pack_rows(row_data, X) if row_data or family.row_data else None
    add = partial(
        engine.count, name=family.kernel, size=family.size, constant=family.default_row_data,
        statistics=tally.statistics, n_rows=tally.n_rows, n_jobs=n_jobs,
    )  # fmt: skip
    if not add(X, y, sample_weight, extra):
        add(*readable(X, y, sample_weight), extra)


class Counts(Protocol):
    """The rows of any number of batches, as sufficient statistics."""

    @property
    def n_rows(self) -> NDArray[np.int64]: ...
    def update(
        self, X: Any, y: Any, sample_weight: Any = None, *, n_jobs: int | None = None, **row_data: Any
    ) -> Self: ...
    def tally(self) -> Tally: ...
    def add(self, tally: Tally) -> Self: ...
    def empty(self) -> Self: ...
    def digest(self) -> str: ...


class ForestCounts:
    """The rows of any number of batches, as sufficient statistics of each tree's terminals.

    An update costs O(n_rows * depth) per tree and nothing for nodes that no row reaches; evidence and split
    probabilities are computed only by `forest()`. Counts of different rows merge.

    `forest`: supplies trees, leaves and priors, but no rows. With leaves of a built-in family.
    """

    def __init__(self, forest: Forest) -> None:
        if not isinstance(forest.family, NativeFamily):
            raise TypeError(f"rows are counted for built-in families, not for {type(forest.family).__name__}")
        self._begin(forest, forest_kernel(forest.trees, forest.n_codes))

    def _begin(self, forest: Forest, engine: _kernels.Forest) -> None:
        self._like, self._engine = forest, engine
        self.statistics, self.n_rows = Tally.of_nothing(forest.trees, forest.family)
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
        jobs, counted = resolve_n_jobs(n_jobs), Tally(self.statistics, self.n_rows)
        with self._alone.writing:
            _add_rows(self._engine, self._like.family, counted, X, y, sample_weight, jobs, row_data)
        return self

    def merge(self, other: ForestCounts) -> Self:
        """Add the rows of counts over the same trees and priors. Returns itself."""
        check_is_other(self, other)
        if other._like is not self._like:
            self._like.check_mergeable(other._like)
        return self.add(other.tally())

    def empty(self) -> ForestCounts:
        """Return counts of no rows over the same trees, which are not prepared again."""
        fresh = object.__new__(ForestCounts)
        fresh._begin(self._like, self._engine)
        return fresh

    def tally(self) -> Tally:
        """Return a copy of the counts, without the trees."""
        with self._alone:
            return Tally([one.copy() for one in self.statistics], self.n_rows.copy())

    def digest(self) -> str:
        """Hash that identifies the counted rows, whatever batches they came in."""
        with self._alone:
            found = hashlib.blake2b(b"statistics", digest_size=16)
            for statistics in self.statistics:
                found.update(statistics.tobytes())
            return found.hexdigest()

    def add(self, tally: Tally) -> Self:
        """Add counts made elsewhere over the same trees; `merge` also checks that they are the same."""
        family = self._like.family
        with self._alone.writing:
            self._engine.add(
                name=family.kernel, size=family.size, statistics=self.statistics, n_rows=self.n_rows,
                more=tally.statistics, n_more=tally.n_rows,
            )  # fmt: skip
        return self

    def forest(self) -> Forest:
        """Return the forest of these rows, with the trees, priors, sharpness and weights of the one given."""
        like = self._like
        posteriors = [
            Posterior.from_statistics(post.tree, post.family, post.split_prior_argument, statistics, int(n_rows))
            for post, statistics, n_rows in zip(like.posteriors, self.statistics, self.n_rows, strict=True)
        ]
        return like.with_posteriors(posteriors)

    def __getstate__(self) -> dict[str, Any]:
        return {"like": self._like, "statistics": self.statistics, "n_rows": self.n_rows}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["like"])  # type: ignore[misc]
        for mine, given in zip([*self.statistics, self.n_rows], [*state["statistics"], state["n_rows"]], strict=True):
            mine[...] = given  # copies: pickled arrays may be shared or read-only
