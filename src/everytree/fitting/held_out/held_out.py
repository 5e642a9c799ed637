"""Rows that a tree was not grown on, and predictions of the tree without them: nothing is grown again.

Each tree predicts rows it was not grown on, with the row itself subtracted from the statistics (in closed form,
O(depth) per row).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.lazy import cached_property
from everytree.families.base import NativeFamily
from everytree.posterior.rows import Rows
from everytree.posterior.split_prior import SplitPriorLike, log_split_stop, resolve_split_prior
from everytree.structure.grown import Grown
from everytree.trees.metatree import MetaTree

SCORED_ROWS = (1000, 4000)
"""Minimum and maximum number of scored rows, where there are as many: enough to compare priors for any size of table.
For numbers, whose densities cost more, the minimum is used."""

SCORED_PAIRS = 50_000
"""Number of pairs of a scored row and a tree that sets the number of rows between these limits."""

MOST_NODES = 100_000
"""Nodes of all trees by which priors of numbers are chosen, about: each prior asks for the evidence of every node."""

LEAST_TREES = 30
"""Priors are chosen by so many trees at least, if there are. An average of a dozen asks for smoother ones."""

MIN_GROUPS = 300
"""Fewer groups of rows would not tell priors apart."""

TreePrediction = tuple[int, NDArray[np.int64], FloatArray]
"""A tree, the scored rows that it predicts, and its predictions of them."""


class PathMixtures(NamedTuple):
    """Mixtures over the nodes on the paths of some rows of a tree, each without its row."""

    start: NDArray[np.int64]  # (n_rows + 1,): the first node of each row
    log_weights: FloatArray  # (n_entries,)
    parameters: FloatArray  # (n_entries, n_parameters): posterior parameters of the nodes without the row
    # (n_rows, n_values): what each mixture says of its row: class probabilities, or the log density of its target
    values: FloatArray


@dataclass(frozen=True)
class HeldOut:
    """Trees with their statistics, and the rows that each may predict."""

    trees: Sequence[MetaTree]
    statistics: Sequence[FloatArray]  # list of (n_nodes, n_statistics) arrays
    # list of (n_taken,) int arrays: for each tree, the rows that are subtracted, group after group: those it predicts,
    # and the others of their groups
    taken: Sequence[NDArray[np.int64]]
    ends: Sequence[NDArray[np.int32]]  # list of (n_taken,) int32 arrays: the terminals of those rows
    # of the scored rows, followed by their companions: rows of the same groups that are not scored themselves
    y: NDArray[Any]
    weight: FloatArray | None = None
    row_data: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    # (n_rows,): the group of each of these rows; None where each row is its own group
    group: NDArray[np.int64] | None = None
    n_scored: int = -1  # number of scored rows
    is_counted: bool = True  # whether these rows are in the statistics
    n_jobs: int = 1
    is_honest: bool = True  # whether the trees were not grown on these rows
    numbers: NDArray[np.int64] | None = None  # (n_rows,): which rows of the table these are
    _with_rows: dict[tuple[int, str, int], _kernels.HeldOutTree] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        if self.n_scored < 0:
            object.__setattr__(self, "n_scored", len(self.y))

    @cached_property
    def rows(self) -> list[NDArray[np.int64]]:
        """For each tree, the scored rows that it predicts."""
        return [taken[taken < self.n_scored] for taken in self.taken]

    @property
    def has_companions(self) -> bool:
        """Whether any of these rows are left out together."""
        return self.group is not None and len(np.unique(self.group)) < len(self.group)

    @property
    def scored_weight(self) -> FloatArray:
        """(n_scored,) weights of the scored rows."""
        return np.ones(self.n_scored) if self.weight is None else self.weight[: self.n_scored]

    @property
    def distinct_share(self) -> float:
        """Number of groups of the scored rows over the number of these rows."""
        if self.group is None or self.n_scored == 0:
            return 1.0
        return len(np.unique(self.group[: self.n_scored])) / self.n_scored

    def first(self, n_scored: int) -> HeldOut:
        """Score only the first of the scored rows: any prefix is a random sample."""
        if n_scored >= self.n_scored:
            return self
        is_kept = np.arange(len(self.y)) < n_scored
        if self.group is not None:
            is_kept = np.isin(self.group, self.group[:n_scored])
        kept = [is_kept[taken] for taken in self.taken]
        taken = [rows[which] for rows, which in zip(self.taken, kept, strict=True)]
        ends = [nodes[which] for nodes, which in zip(self.ends, kept, strict=True)]
        return replace(self, taken=taken, ends=ends, n_scored=n_scored)

    def predict_each(self, family: NativeFamily, split_prior: SplitPriorLike) -> list[TreePrediction]:
        """Number, rows and (n_held, n_values) predictions of each tree that predicts any."""
        rows = self.rows
        asked = [tree for tree in range(len(rows)) if len(rows[tree])]
        values = _kernels.predict_held_out(n_jobs=self.n_jobs, **self.kernel_arguments(asked, [family], [split_prior]))
        return [(tree, rows[tree], of_tree[0, 0]) for tree, of_tree in zip(asked, values, strict=True)]

    def predict(
        self, tree: int, families: Sequence[NativeFamily], split_priors: Sequence[SplitPriorLike]
    ) -> FloatArray:
        """(n families, n split priors, n_held, n_values): class probabilities, or the log density of each target."""
        return _kernels.predict_held_out(n_jobs=1, **self.kernel_arguments([tree], families, split_priors))[0]

    def components(self, tree: int, family: NativeFamily, split_prior: SplitPriorLike) -> PathMixtures:
        """The mixtures over the nodes on the paths of the rows that a tree predicts."""
        log_split, log_stop = _stacked([split_prior], self.trees[tree])
        kernel = self._kernel(tree, family)
        start, log_weights, parameters, values = kernel.components(
            prior=family.kernel_prior, log_split=log_split, log_stop=log_stop
        )
        n_nodes, n_rows = len(log_weights), len(start) - 1
        return PathMixtures(start, log_weights, parameters.reshape(n_nodes, -1), values.reshape(n_rows, -1))

    def kernel_arguments(
        self, trees: Sequence[int], families: Sequence[NativeFamily], split_priors: Sequence[SplitPriorLike]
    ) -> dict[str, Any]:
        """Return the kernels' arguments: trees with their rows, and the priors to try."""
        if any(callable(prior) or np.ndim(prior) for prior in split_priors):
            pairs = [_stacked(split_priors, self.trees[tree]) for tree in trees]
        else:
            pairs = [_stacked(split_priors, self.trees[0])] * len(trees)
        return {
            "trees": [self._kernel(tree, families[0]) for tree in trees],
            "priors": np.concatenate([family.kernel_prior for family in families]),
            "log_split": [log_split for log_split, _ in pairs],
            "log_stop": [log_stop for _, log_stop in pairs],
        }

    def _kernel(self, tree: int, family: NativeFamily) -> _kernels.HeldOutTree:
        """Return the tree with the rows to subtract, group after group, for all priors of a family."""
        key = tree, family.kernel, family.size
        if key not in self._with_rows:
            self._with_rows[key] = self._make_kernel(tree, family)
        return self._with_rows[key]

    def _make_kernel(self, tree: int, family: NativeFamily) -> _kernels.HeldOutTree:
        taken = self.taken[tree]
        kernel = _kernels.make_held_out(
            name=family.kernel,
            size=family.size,
            tree=self.trees[tree].kernel,
            statistics=self.statistics[tree],
            ends=self.ends[tree],
            counted=np.full(len(taken), self.is_counted, dtype=np.uint8),
            y=self.y[taken],
            weight=None if self.weight is None else self.weight[taken],
            extra=family.pack({name: column[taken] for name, column in self.row_data.items()}),
            constant=family.default_row_data,
            scored=(taken < self.n_scored).astype(np.uint8),
            group_start=self._group_start(taken),
        )
        assert kernel is not None, "the columns of HeldOut are those that the kernels read"
        return kernel

    def _group_start(self, taken: NDArray[np.int64]) -> NDArray[np.int64]:
        """(n_groups + 1,) start of each group among the rows that are subtracted."""
        if self.group is None:
            return np.arange(len(taken) + 1)
        group = self.group[taken]
        return (
            np.concatenate([[0], np.flatnonzero(np.diff(group)) + 1, [len(taken)]])
            if len(taken)
            else np.zeros(1, dtype=np.int64)
        )


def _stacked(split_priors: Sequence[SplitPriorLike], tree: MetaTree) -> tuple[FloatArray, FloatArray]:
    """log g and log(1 - g) of several split priors, each (n, 1) or (n, n_nodes)."""
    resolved = np.stack(np.broadcast_arrays(*(resolve_split_prior(prior, tree) for prior in split_priors)))
    log_split, log_stop = log_split_stop(np.ascontiguousarray(resolved))
    return log_split, log_stop


def held_out(
    rows: Rows,
    grown: Sequence[Grown],
    statistics: Sequence[FloatArray],
    rng: np.random.Generator,
    n_jobs: int = 1,
    *,
    has_classes: bool,
    is_counted: bool = True,
) -> HeldOut:
    """Find, for each tree, the rows of groups that it was not grown on; all rows if it was grown on every row.

    `is_counted` says whether these rows are in the statistics.
    """
    unseen = unseen_by_trees(rows, grown)
    is_honest = bool(unseen.any())
    if not is_honest:
        unseen = np.ones_like(unseen)
    candidates = np.flatnonzero(unseen.any(axis=0))
    min_rows, max_rows = SCORED_ROWS
    by_pairs = int(SCORED_PAIRS / unseen[:, candidates].sum(axis=0).mean())
    n_scored = min(max(by_pairs, min_rows), max_rows) if has_classes else min_rows
    scored = rng.permutation(candidates)[:n_scored]  # any prefix of the scored rows is a random sample of them
    involved = np.concatenate([scored, companions(scored, rows.group)])
    held = _routed(rows, grown, statistics, unseen, involved, n_jobs)
    return replace(held, n_scored=len(scored), is_counted=is_counted or not is_honest, is_honest=is_honest)


def held_out_rows(
    rows: Rows,
    grown: Sequence[Grown],
    statistics: Sequence[FloatArray],
    scored: NDArray[np.int64],
    n_jobs: int = 1,
    *,
    is_counted: bool = True,
) -> HeldOut:
    """Score these rows by the trees that were not grown on their groups; by all if each was grown on every row."""
    unseen = unseen_by_trees(rows, grown)
    is_honest = bool(unseen.any())
    involved = np.concatenate([scored, companions(scored, rows.group)])
    held = _routed(rows, grown, statistics, unseen if is_honest else np.ones_like(unseen), involved, n_jobs)
    return replace(held, n_scored=len(scored), is_counted=is_counted or not is_honest, is_honest=is_honest)


def is_unseen(rows: Rows, grown: Sequence[Grown]) -> NDArray[np.bool_]:
    """(n_rows,) whether some tree was not grown on a row and its group; every row if each was grown on all of them."""
    unseen = unseen_by_trees(rows, grown).any(axis=0)
    return np.asarray(unseen if unseen.any() else np.ones(len(rows), dtype=bool))


def held_out_by_few(
    held: HeldOut, rows: Rows, grown: Sequence[Grown], statistics: Sequence[FloatArray], rng: np.random.Generator
) -> HeldOut:
    """Return fewer trees and other rows, to choose priors of numbers by; `held` itself where trees are small.

    The rows are those that most of these trees were not grown on: the average of few trees would ask for other priors
    than the forest. Which rows these are has nothing to do with their targets.
    """
    n_nodes = sum(one.tree.n_nodes for one in grown)
    n_trees = max(int(len(grown) * MOST_NODES / n_nodes), LEAST_TREES)
    if n_trees >= len(grown) or not held.is_honest:
        return held
    some = grown[:n_trees]
    unseen = unseen_by_trees(rows, some)
    times = unseen.sum(axis=0)
    order = rng.permutation(len(rows))
    scored = order[np.argsort(-times[order], kind="stable")][: held.n_scored]
    scored = scored[times[scored] > 0]
    if rows.group is not None and len(np.unique(rows.group[scored])) < MIN_GROUPS:
        return held
    involved = np.concatenate([scored, companions(scored, rows.group)])
    few = _routed(rows, some, statistics[:n_trees], unseen, involved, held.n_jobs)
    return replace(few, n_scored=len(scored), is_counted=held.is_counted)


def every_held_out(
    rows: Rows, grown: Sequence[Grown], statistics: Sequence[FloatArray], n_jobs: int = 1
) -> tuple[HeldOut, NDArray[np.bool_]]:
    """Score every row that some tree was not grown on, all rows being in the statistics; and say which rows these are.

    Rows of a group are in the same samples, so that all companions of these rows are among them.
    """
    unseen = unseen_by_trees(rows, grown)
    places = np.asarray(unseen.any(axis=0))
    return _routed(rows, grown, statistics, unseen, np.flatnonzero(places), n_jobs), places


def left_out(rows: Rows, tree: MetaTree, statistics: FloatArray, numbers: NDArray[np.int64]) -> HeldOut:
    """Score some rows by a tree that was grown on none, in whose statistics all are."""
    involved = np.concatenate([numbers, companions(numbers, rows.group)])
    none, every = np.zeros(len(rows), dtype=bool), np.ones((1, len(rows)), dtype=bool)
    held = _routed(rows, [Grown(tree, none)], [statistics], every, involved, 1)
    return replace(held, n_scored=len(numbers))


def unseen_by_trees(rows: Rows, grown: Sequence[Grown]) -> NDArray[np.bool_]:
    """(n_trees, n_rows) the rows of groups that a tree was not grown on."""
    return np.stack([~with_group_members(one.in_bag, rows.group) for one in grown])


def _routed(
    rows: Rows,
    grown: Sequence[Grown],
    statistics: Sequence[FloatArray],
    unseen: NDArray[np.bool_],
    involved: NDArray[np.int64],
    n_jobs: int,
) -> HeldOut:
    """The involved rows in the trees that have not seen them; all of them are scored."""
    some = rows.at(involved)
    by_group = np.arange(len(involved)) if some.group is None else np.argsort(some.group, kind="stable")
    taken = [by_group[unseen[tree, involved[by_group]]] for tree in range(len(grown))]
    ends = [
        one.tree.route(some.codes[which], n_jobs=n_jobs) if len(which) else np.empty(0, dtype=np.int32)
        for one, which in zip(grown, taken, strict=True)
    ]
    return HeldOut(
        [one.tree for one in grown], list(statistics), taken, ends, some.y, some.weight,
        some.row_data, some.group, n_jobs=n_jobs, numbers=involved,
    )  # fmt: skip


def with_group_members(in_bag: NDArray[np.bool_], group: NDArray[np.int64] | None) -> NDArray[np.bool_]:
    """The rows of a sample, and all other rows of their groups."""
    if group is None:
        return in_bag
    is_seen = np.zeros(int(group.max()) + 1, dtype=bool)
    is_seen[group[in_bag]] = True
    return is_seen[group]


def companions(rows: NDArray[np.int64], group: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Return the other rows of the groups of these rows."""
    if group is None:
        return np.empty(0, dtype=np.int64)
    others = np.zeros(len(group), dtype=bool)
    others[rows] = True
    companions = with_group_members(others, group) & ~others
    return np.flatnonzero(companions)
