"""Trees that are summed over exactly near the root and go on below as they were grown; with the methods of a forest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.checks import resolve_n_jobs
from everytree.exact.continuations import Continuations, evidence_of_regions, evidences
from everytree.exact.kept_rows import KeepsRows
from everytree.exact.path_tree import PathTree, path_tree
from everytree.exact.posterior import ExactPosterior
from everytree.exact.prediction import Columns
from everytree.exact.top_columns import TopColumns
from everytree.exact.trees import ExactTree
from everytree.families.base import NativeFamily
from everytree.posterior.forest import forest_kernel, values_of_nodes
from everytree.posterior.pooling import pool_nodes
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.predictive.paths import PathPredictive, Paths
from everytree.predictive.pooled import NEGLIGIBLE, Pool, PooledPredictive, sharpen
from everytree.predictive.predictive import Predictive
from everytree.trees.metatree import MetaTree


@dataclass
class ContinuedForest(KeepsRows):
    """The average over every tree near the root, each of whose last regions has a tree that was grown on its rows.

    Attributes
    ----------
    posterior : ExactPosterior
        Of the splits near the root; its codes are the few of `columns`.
    columns : TopColumns
    trees : Continuations
        Below all regions that held rows when they were grown.
    below : sequence of Posterior
        Over the prunings of the trees of the regions of `posterior.continued`, one region after another.
    sharpness : float
        Of the average, as in `Forest`.
    rows : Rows
        The rows that were fitted: with more of them the sum near the root is made again; the trees below stay.
    """

    posterior: ExactPosterior
    columns: TopColumns
    trees: Continuations
    below: Sequence[Posterior]
    sharpness: float
    rows: Rows

    # ---- facts ------------------------------------------------------------------------------------------------------

    @property
    def n_codes(self) -> NDArray[np.int64]:
        """Codes of the table; larger ones are unknown."""
        return np.array([len(own) for own in self.columns.few_of], dtype=np.int64)

    def feature_importances(self) -> FloatArray:
        """(n_features,) expected number of splits on each column near the root, scaled to sum to 1."""
        splits = self.posterior.expected_splits
        return splits / splits.sum() if splits.sum() > 0.0 else splits

    def in_table(self, tree: ExactTree) -> ExactTree:
        """The same tree over the codes of the table."""
        code = tree.code.copy()
        for node in np.flatnonzero(tree.code >= 0):
            code[node] = self.columns.threshold(int(tree.feature[node]), int(tree.code[node]))
        return ExactTree(tree.feature, code, tree.first_child, tree.n_children, tree.log_prob, tree.kinds)

    # ---- more rows --------------------------------------------------------------------------------------------------

    @classmethod
    def of(
        cls, posterior: ExactPosterior, columns: TopColumns, trees: Continuations, sharpness: float, rows: Rows
    ) -> Self:
        """Count rows in trees and sum over the splits near the root, whose priors and temperature are given."""
        few = columns.read(rows.codes)
        placed = (few < np.array(columns.n_few)).all(axis=1)
        if not placed.all():
            rows, few = rows.at(np.flatnonzero(placed)), few[placed]
        rows_of: list[NDArray[np.int64]] = []

        def note(found: list[NDArray[np.int64]]) -> FloatArray:
            rows_of.extend(found)
            return np.zeros(len(found))

        listed = posterior.without_rows().fit(
            few, rows.y, rows.weight, continuation=note, **dict[str, Any](rows.row_data)
        )
        n_jobs = resolve_n_jobs(posterior.n_jobs)
        below = trees.conditioned(listed.continued, rows_of, rows, posterior.family, n_jobs)
        given = evidence_of_regions(evidences(below, trees.n_each), posterior.temperature)
        return cls(listed.tempered(posterior.temperature, given), columns, trees, below, sharpness, rows)

    def check_mergeable(self, other: ContinuedForest) -> None:
        """Raise unless the other has the same trees and priors."""
        self.posterior.check_mergeable(other.posterior)
        mine, theirs = self.trees, other.trees
        if self.sharpness != other.sharpness or mine.split_prior != theirs.split_prior:
            raise ValueError("other has another sharpness or another split_prior of its trees")
        if mine is theirs:
            return
        if not np.array_equal(mine.regions.codes, theirs.regions.codes) or list(mine.trees) != list(theirs.trees):
            raise ValueError("other has other trees below the splits near the root: begin both with the same blank()")

    def _with(self, rows: Rows) -> ContinuedForest:
        return ContinuedForest.of(self.posterior, self.columns, self.trees, self.sharpness, rows)

    # ---- predictions ------------------------------------------------------------------------------------------------

    def probs(self, X: NDArray[Any], *, n_jobs: int | None = None) -> FloatArray:
        """(n_rows, n_classes) probability of each class."""
        sums = self._sums(X, n_jobs)
        return sharpen(sums / sums.sum(axis=1, keepdims=True), self.sharpness, resolve_n_jobs(n_jobs))

    def moments(self, X: NDArray[Any], *, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each row's target."""
        total, first, second = self._sums(X, n_jobs).T
        first, second = first / total, second / total
        return first + self.posterior.centre, np.maximum(second - first**2, 0.0) / self.sharpness**2

    def predictive(self, X: NDArray[Any], *, n_jobs: int | None = None, **row_data: Any) -> Predictive:
        """One predictive distribution for each row."""
        columns = self.family.row_columns(row_data, len(X))
        return PooledPredictive(_Mixtures(self), X, columns, self.sharpness, resolve_n_jobs(n_jobs))

    def _sums(self, X: NDArray[Any], n_jobs: int | None) -> FloatArray:
        """Sums over the leaves near the root that hold a row, and over the regions below them."""
        near = self.posterior.sums_of_leaves(self.columns.read(X))
        if not self.path_trees:
            return near
        below = self.engine.average(
            X, values=self.tables, weights=self.weights, n_values=near.shape[1], n_jobs=resolve_n_jobs(n_jobs)
        )
        assert below is not None, "codes of a schema are arrays that the kernels read"
        return np.asarray(near + below)

    @cached_property
    def _weights_of_all(self) -> FloatArray:
        """Posterior probability of each tree: of its region, times its share there."""
        of_region = self.posterior.continued.weight
        if not len(of_region):
            return np.empty(0)
        log_evidence = evidences(self.below, self.trees.n_each)
        powers = self.posterior.temperature * (log_evidence - log_evidence.max(axis=1, keepdims=True))
        shares = np.exp(powers) / np.exp(powers).sum(axis=1, keepdims=True)
        return np.ravel(of_region[:, None] * shares)

    @cached_property
    def kept(self) -> NDArray[np.int64]:
        """Trees whose share of the average is not negligible."""
        return np.flatnonzero(self._weights_of_all > NEGLIGIBLE)

    @cached_property
    def weights(self) -> FloatArray:
        """Posterior probability of each tree that is kept."""
        return self._weights_of_all[self.kept]

    @cached_property
    def path_trees(self) -> list[PathTree]:
        """The trees that are kept, each below the splits that lead to its region."""
        regions, width, n_each = self.posterior.continued, len(self.columns.few_of), self.trees.n_each
        return [path_tree(self.columns.path(*regions.conditions(i // n_each)), self.below[i], width) for i in self.kept]

    @cached_property
    def engine(self) -> _kernels.Forest:
        return forest_kernel([one.posterior.tree for one in self.path_trees], self.n_codes)

    @cached_property
    def tables(self) -> list[FloatArray]:
        """Values of the nodes, 0 where a row is not in the region: a tree speaks for its own rows only."""
        tables = []
        for posterior, inside in self.path_trees:
            values = values_of_nodes(posterior, self.posterior.centre)
            if not self.family.has_classes:
                values = np.column_stack([np.ones(len(values)), values])
            tables.append(np.ascontiguousarray(values * inside[:, None]))
        return tables

    @cached_property
    def pool(self) -> Pool:
        """All nodes in one list; those outside of the regions are never reached."""
        pool = pool_nodes([one.posterior for one in self.path_trees], self.weights)
        pool.log_reached[~np.concatenate([one.inside for one in self.path_trees])] = -np.inf
        return pool

    def __getstate__(self) -> dict[str, Any]:
        names = ("posterior", "columns", "trees", "below", "sharpness", "rows")
        return {name: getattr(self, name) for name in names}

    def in_tree(self, tree: MetaTree) -> Posterior:
        """The posterior over the prunings of one tree over the codes of the table, of the same rows."""
        inner = ~tree.is_terminal
        missing = np.where(tree.threshold >= 0, 1, tree.n_children - 1)
        has_missing = inner & np.append(self.columns.has_missing, False)[tree.feature]
        whole = MetaTree.from_arrays(
            tree.feature, tree.first_child, tree.n_children, tree.threshold,
            missing_child=np.where(has_missing, missing, -1), n_features=len(self.columns.few_of),
        )  # fmt: skip
        rows = self.rows
        post = Posterior(whole, self.family, self.posterior.split_prior)
        return post.update(rows.codes, rows.y, rows.weight, **dict[str, Any](rows.row_data))


@dataclass(frozen=True)
class _Mixtures:
    """The mixture of each row: leaves near the root, and nodes below."""

    forest: ContinuedForest
    rows_at_once: int = 64

    @property
    def family(self) -> NativeFamily:
        return self.forest.family

    def predictive(self, codes: NDArray[Any], row_data: Mapping[str, NDArray[Any]]) -> PathPredictive:
        """Return the mixtures of some rows."""
        near, below = self._near(codes), self._below(codes)
        row = np.concatenate([near[0], below[0]])
        order = np.argsort(row, kind="stable")
        start = np.searchsorted(row[order], np.arange(len(codes) + 1))
        summary = np.concatenate([near[2], below[2]])
        entries = np.concatenate([near[1], below[1] + len(near[2])])[order]
        log_weights = np.concatenate([near[3], below[3]])[order]
        total = np.log(np.add.reduceat(np.exp(log_weights), start[:-1])) if len(codes) else np.zeros(0)
        log_weights = log_weights - np.repeat(total, np.diff(start))
        paths = Paths(start, entries, log_weights, np.arange(len(codes), dtype=np.int32))
        return PathPredictive(self.family, summary, paths, row_data)

    def _near(self, codes: NDArray[Any]) -> _Entries:
        """Leaves near the root."""
        post, few = self.forest.posterior, self.forest.columns.read(codes)
        columns = Columns(post.n_codes, post.kinds)
        leaves = post.leaf_regions(bool(columns.has_unknown(few).any()))
        start, found = _kernels.leaves_of_rows(
            **leaves.conditions, rows=few, n_codes=columns.n_codes, kinds=columns.kind_numbers
        )
        used, entries = np.unique(found, return_inverse=True)
        row = np.repeat(np.arange(len(codes)), np.diff(start))
        return row, entries, self.family.summarise(leaves.statistics[used]), np.log(leaves.weight[found])

    def _below(self, codes: NDArray[Any]) -> _Entries:
        """Nodes of the regions that hold a row."""
        forest = self.forest
        nothing: Any = np.empty(0, dtype=np.int64)
        if not forest.path_trees:
            return nothing, nothing, self.family.summarise(np.zeros((0, self.family.n_statistics))), np.empty(0)
        ends = forest.engine.ends(codes, 1)
        assert ends is not None, "codes of a schema are arrays that the kernels read"
        pool = forest.pool
        first = pool.first
        inside = np.isfinite(pool.log_reached)[ends + first]
        share = inside @ forest.weights
        some = np.flatnonzero(share > 0.0)
        start, nodes, log_weights = _kernels.pooled_paths(
            ends=(ends[some] + first).astype(np.int64), parent=pool.parent, log_reached=pool.log_reached,
            log_stop=pool.log_stop, log_tree_weights=pool.log_weights, log_negligible=float(np.log(NEGLIGIBLE)),
        )  # fmt: skip
        used, entries = np.unique(nodes, return_inverse=True)
        lengths = np.diff(start)
        return (
            np.repeat(some, lengths), entries, pool.summary[used],
            log_weights + np.repeat(np.log(share[some]), lengths),
        )  # fmt: skip

    def students(self, n_jobs: int) -> None:
        """Return nothing: no kernel solves these mixtures."""

    def means(self, ends: NDArray[Any], n_jobs: int) -> None:
        """Return nothing: means are read from the mixtures."""


_Entries = tuple[NDArray[np.int64], NDArray[np.int64], Any, FloatArray]
"""Row, place in a list of summaries, that list, and log weight of each entry of the mixtures."""
