"""No depth limit: Corollary 2 of the paper.

With one prior for all nodes, a node whose rows are all equal need not be expanded: whatever lies below has evidence
equal to its own, and its posterior there is the prior. So the tree is as deep as the data require, and only nodes where
rows have separated are stored.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree import _kernels
from everytree.base.arrays import LARGEST_CODE, FloatArray, as_codes, as_table, readable
from everytree.base.checks import whole_number
from everytree.families.base import Family, NativeFamily
from everytree.posterior.checks import check_is_other
from everytree.posterior.posterior import Posterior
from everytree.posterior.split_prior import SplitPriorLike, log_split_stop, split_prior_of_depths
from everytree.predictive.leaving_out import leave_one_out
from everytree.predictive.paths import PathPredictive, Paths
from everytree.predictive.predictive import Predictive
from everytree.trees.metatree import MetaTree, read_only, whole_numbers
from everytree.trees.pruned import PrunedTree
from everytree.trees.questions import RankedTree

ROWS_AT_ONCE = 1 << 14
"""Number of rows for which memory is allocated at a time: a new point needs at most two nodes."""


class GrowingPosterior:
    """The posterior over all prunings of a meta-tree that is as deep as the data require.

    Every node splits on one of the features not yet used on its path, chosen by a hash of the path and `seed`: shards
    of a table, in any order, grow the same tree. Memory is proportional to the number of distinct rows.

    Parameters
    ----------
    n_children : sequence of int
        Number of codes of each feature.
    family : Family
        The leaf model: a built-in family with one prior for all nodes.
    split_prior : float or callable
        Prior probability that a node is split: one number or a function of depth.
    seed : int
        Chooses the features.

    Examples
    --------
    >>> import numpy as np, everytree as et
    >>> grow = et.GrowingPosterior([2] * 40, et.Bernoulli(), split_prior=0.8, seed=1)
    >>> X = np.random.default_rng(0).integers(0, 2, size=(1000, 40)).astype(np.uint8)
    >>> grow.update(X, y=X[:, 3]).n_points
    1000
    """

    def __init__(
        self, n_children: Sequence[int], family: Family, split_prior: SplitPriorLike = 0.5, seed: int = 0
    ) -> None:
        self.n_children = read_only(whole_numbers("n_children", n_children, 1, LARGEST_CODE))
        self.family = _check_family(family)
        self.seed = whole_number("seed", seed, 0, 2**63 - 1)
        self._features = np.flatnonzero(self.n_children > 1).astype(np.int32)  # one code cannot be split
        self.split_prior_of_depth = split_prior_of_depths(split_prior, len(self._features) + 1)
        self._code: type = np.uint8 if self.n_children.max(initial=1) <= 255 else np.uint16
        self._arrays = self._empty(0)
        self._counts = np.array([0, 0, -1], dtype=np.int64)  # nodes, points, root: written by the kernel
        self._n_rows = 0
        self._borrow()

    @classmethod
    def of_points(
        cls,
        n_children: Sequence[int],
        family: Family,
        split_prior: SplitPriorLike,
        seed: int,
        points: NDArray[np.unsignedinteger],
        statistics: FloatArray,
        n_rows: int,
    ) -> GrowingPosterior:
        """Return the posterior of rows given as distinct rows with their statistics; everything else is derived."""
        grow = cls(n_children, family, split_prior, seed)
        grow._make_room(len(points))
        grow._kernel.insert_points(points, statistics)
        grow._n_rows = n_rows
        return grow

    def _empty(self, capacity: int) -> dict[str, NDArray[Any]]:
        return {
            "nodes": np.zeros(capacity, dtype=_kernels.GROWING_NODE),
            "points": np.zeros((capacity, len(self.n_children)), dtype=self._code),
            "log_odds": np.zeros((capacity, 2)),
            "statistics": np.zeros((capacity, self.family.n_statistics)),
            "leaf": np.zeros(capacity),
            "subtree": np.zeros(capacity),
            "split_prob": np.zeros(capacity),
        }

    def _borrow(self) -> None:
        self.lock = _kernels.Guard()
        log_split, _ = log_split_stop(self.split_prior_of_depth)
        limit = (self.n_children - 1).astype(np.uint16)
        self._kernel = _kernels.make_growing(
            name=self.family.kernel, size=self.family.size, wide=self._code is np.uint16,
            leaf_prior=self.family.kernel_prior, features=self._features, log_split=log_split, limit=limit,
            seed=self.seed, extra_constant=self.family.default_row_data,
        )  # fmt: skip
        self._attach()

    def _attach(self) -> None:
        self._kernel.attach(**self._arrays | {"nodes": self._arrays["nodes"].view(np.uint8)}, counts=self._counts)

    def _make_room(self, n_new: int) -> None:
        """Allocate capacity for this many new points, doubling when it runs out."""
        nodes, points, _ = self._counts
        needed = {name: points + n_new if name == "points" else nodes + 2 * n_new for name in self._arrays}
        grown = False
        for name, array in self._arrays.items():
            if len(array) < needed[name]:
                larger = np.zeros((max(needed[name], 2 * len(array)), *array.shape[1:]), dtype=array.dtype)
                larger[: len(array)] = array
                self._arrays[name] = larger
                grown = True
        if grown:
            self._attach()

    # ---- learning -------------------------------------------------------------------------------------------------

    def update(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None, **row_data: Any) -> Self:
        """Condition on more rows. Order and chunking do not matter; a call that fails changes nothing.

        Parameters
        ----------
        X, y
            As in `Posterior.update`.
        sample_weight
            As in `Posterior.update`.
        **row_data
            As in `Posterior.update`.
        """
        extra = self.family.pack_rows(row_data, X) if row_data or self.family.row_data else None
        codes, weight = X, sample_weight
        with self.lock.writing:
            if not self._kernel.check(codes, y, weight, extra):
                codes, y, weight = readable(X, y, sample_weight)
                read = self._kernel.check(codes, y, weight, extra)
                assert read, "as_codes and as_column promise arrays that the kernels read"
            n_rows = len(codes)  # type: ignore[arg-type]
            before = self.__getstate__() if n_rows > ROWS_AT_ONCE else None
            try:
                for begin in range(0, n_rows, ROWS_AT_ONCE):
                    n = min(ROWS_AT_ONCE, n_rows - begin)
                    self._make_room(n)
                    self._n_rows += self._kernel.insert(codes, y, weight, extra, begin=begin, n=n)
            except BaseException:
                if before is not None:  # one piece is all or nothing; several are undone together
                    self._restore(before)
                raise
        return self

    def merge(self, other: GrowingPosterior) -> Self:
        """Add the rows of another growing posterior with the same features and priors. Returns itself."""
        self._check_mergeable(other)
        check_is_other(self, other)
        with other.lock:
            points, statistics, n_rows = other.points, other.point_statistics(), other._n_rows
        with self.lock.writing:
            self._make_room(len(points))
            self._kernel.insert_points(points, statistics)
            self._n_rows += n_rows
        return self

    def _check_mergeable(self, other: GrowingPosterior) -> None:
        if not isinstance(other, GrowingPosterior):
            raise TypeError(f"other must be a GrowingPosterior, not {type(other).__name__}")
        if not np.array_equal(self.n_children, other.n_children):
            raise ValueError(f"other has n_children {other.n_children.tolist()}, this one {self.n_children.tolist()}")
        if self.family != other.family:
            raise ValueError(f"other has leaves {other.family}, this one {self.family}")
        if self.seed != other.seed:
            raise ValueError(f"other has seed {other.seed}, this one {self.seed}: they split on different features")
        apart = self.split_prior_of_depth != other.split_prior_of_depth
        if apart.any():
            depth = int(np.argmax(apart))
            mine, theirs = self.split_prior_of_depth[depth], other.split_prior_of_depth[depth]
            raise ValueError(f"other has split_prior {theirs} at depth {depth}, this one {mine}")

    def copy(self) -> GrowingPosterior:
        """An independent posterior with the same rows."""
        other = object.__new__(type(self))
        other.__setstate__(self.__getstate__())
        return other

    # ---- reading --------------------------------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Number of rows seen, those of weight 0 not counted."""
        with self.lock:
            return self._n_rows

    @property
    def n_points(self) -> int:
        """Number of distinct rows seen."""
        with self.lock:
            return int(self._counts[1])

    @property
    def n_nodes(self) -> int:
        """Number of stored nodes: the distinct rows, and the nodes where they separate."""
        with self.lock:
            return int(self._counts[0])

    @property
    def points(self) -> NDArray[np.unsignedinteger]:
        """(n_points, n_features) the distinct rows, in the order in which they first came."""
        with self.lock:
            return self._arrays["points"][: self.n_points].copy()

    def point_statistics(self) -> FloatArray:
        """(n_points, n_statistics) statistics of each distinct row."""
        nodes = self._arrays["nodes"][: self.n_nodes]
        leaves = np.flatnonzero(nodes["branch"] == len(self._features))
        out = np.zeros((self.n_points, self.family.n_statistics))
        out[nodes["point"][leaves]] = self._arrays["statistics"][leaves]
        return out

    @property
    def log_evidence(self) -> float:
        """log p(y | X), summed over every pruned tree however deep."""
        with self.lock:
            root = int(self._counts[2])
            return float(self._arrays["subtree"][root]) if root >= 0 else 0.0

    def feature_at(self, answers: Iterable[int]) -> int | None:
        """The feature that is split on after the given codes, from the root down; None when none is left.

        The code of the root's feature comes first, and each code decides which feature is next.
        """
        path = np.fromiter(answers, dtype=np.int32)
        feature = _kernels.feature_after(self._features, self.seed, path)
        return None if feature < 0 else int(feature)

    # ---- questions about the tree ---------------------------------------------------------------------------------

    def expanded(self) -> Posterior:
        """The tree as far as rows have separated, as the posterior over the prunings of a `MetaTree`.

        Nodes whose rows are all equal are its terminals: below them the posterior is the prior, so that the evidence
        and the split probabilities above are those of the whole tree. It also has the nodes between two separations,
        which are not stored here; its size is proportional to the distinct rows times the depth.
        """
        with self.lock:
            points, statistics, n_rows = self.points, self.point_statistics(), self._n_rows
        feature, first_child, n_children = [], [], []
        waiting: deque[tuple[tuple[int, ...], NDArray[np.int64]]] = deque([((), np.arange(len(points)))])
        sums, n_nodes = [], 1
        while waiting:  # level by level
            path, own = waiting.popleft()
            asked = self.feature_at(path) if len(own) > 1 else None
            n = 0 if asked is None else int(self.n_children[asked])
            waiting.extend(((*path, code), own[points[own, asked] == code]) for code in range(n))
            feature.append(-1 if asked is None else asked)
            first_child.append(-1 if asked is None else n_nodes)
            n_children.append(n)
            sums.append(statistics[own].sum(axis=0))
            n_nodes += n
        tree = MetaTree.from_arrays(feature, first_child, n_children, n_features=len(self.n_children))
        split_prior = np.where(tree.is_terminal, 0.0, self.split_prior_of_depth[tree.depth])
        return Posterior.from_statistics(tree, self.family, split_prior, np.array(sums), n_rows)

    @property
    def split_prob(self) -> FloatArray:
        """(n_nodes,) posterior split probabilities of the nodes of `expanded()`."""
        return self.expanded().split_prob

    def map_tree(self) -> PrunedTree:
        """The most probable pruned tree of those of `expanded()`; in a tie, the smaller one."""
        return self.expanded().map_tree()

    def top_trees(self, k: int) -> list[RankedTree]:
        """The k most probable pruned trees of `expanded()` with their log probabilities, best first."""
        return self.expanded().top_trees(k)

    def to_text(self, **options: Any) -> str:
        """The top of the tree drawn with characters; options as in `everytree.view.text.tree_text`."""
        return self.expanded().to_text(**options)

    def predictive(self, X: ArrayLike, **row_data: Any) -> Predictive:
        """One predictive distribution for each row, exact for any new row.

        Where a row separates from the rows of a node after passing nodes with split probabilities g_1 .. g_j, it has
        the node's predictive with weight 1 - g_1 ... g_j and the prior predictive with the rest.
        """
        columns = self.family.row_columns(row_data, len(as_table(X)))
        statistics, paths = self._paths(X)
        return PathPredictive(self.family, self.family.summarise(statistics), paths, columns)

    def loo_log_prob(self, X: ArrayLike, y: ArrayLike, **row_data: Any) -> FloatArray:
        """(n_rows,) log p(y_i | all other rows), for rows of weight 1 that are in this posterior.

        Closed form, as in `Posterior.loo_log_prob`: nothing grows again.
        """
        columns = self.family.row_columns(row_data, len(as_table(X)))
        statistics, paths = self._paths(X)
        return leave_one_out(self.family, statistics, paths, y, columns)

    def _paths(self, X: ArrayLike) -> tuple[FloatArray, Paths]:
        """Statistics of the nodes that may be the leaves of rows, and for each row which they are."""
        with self.lock:
            shares = self._kernel.shares(X)
            if shares is None:
                shares = self._kernel.shares(as_codes(X))
            assert shares is not None
            start, nodes, log_weights = shares
            on_paths, entries = np.unique(nodes, return_inverse=True)
            nothing = np.zeros((1, self.family.n_statistics))  # node -1 is the prior: the last row
            statistics = np.concatenate([self._arrays["statistics"][: self.n_nodes], nothing])[on_paths]
        of_row = np.arange(len(start) - 1, dtype=np.int32)
        return statistics, Paths(start, entries, log_weights, of_row)

    # ---- copies and files -----------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:
            state = {name: value for name, value in self.__dict__.items() if name not in ("lock", "_kernel")}
            nodes, points, _ = self._counts
            state["_arrays"] = {
                name: array[: points if name == "points" else nodes].copy() for name, array in self._arrays.items()
            }
            state["_counts"] = self._counts.copy()
            return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies with the shapes the kernels rely on: pickled arrays may be shared or read-only."""
        self.__dict__.update(state)
        nodes, points, _ = self._counts = np.array(state["_counts"], dtype=np.int64)
        arrays = {}
        for name, like in self._empty(0).items():
            given = np.array(state["_arrays"][name], dtype=like.dtype, order="C")
            if given.shape != ((points if name == "points" else nodes), *like.shape[1:]):
                raise ValueError(
                    f"{name} has shape {given.shape}, which does not belong to {nodes} nodes, {points} points"
                )
            arrays[name] = given
        self._arrays = arrays
        self._borrow()

    def _restore(self, state: dict[str, Any]) -> None:
        """Restore an earlier state, keeping the lock that is held."""
        lock = self.lock
        self.__setstate__(state)
        self.lock = lock

    def __repr__(self) -> str:
        return (
            f"GrowingPosterior({len(self.n_children)} features, {self.family}, seed={self.seed}, n_rows={self.n_rows}, "
            f"n_points={self.n_points}, log_evidence={self.log_evidence:.6g})"
        )


def _check_family(family: Family) -> NativeFamily:
    if not isinstance(family, NativeFamily):
        raise TypeError(f"family must be one of the built-in families, not {family!r}")
    if not family.has_one_prior:
        raise ValueError(
            "a growing posterior needs one leaf prior for all nodes: only then has a node whose rows are all equal the "
            "same evidence as everything below it (Corollary 2), and may stay unexpanded"
        )
    return family
