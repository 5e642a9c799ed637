"""A weighted set of posteriors over the same columns: the average of many averages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from everytree import _kernels
from everytree.base.arrays import LARGEST_CODE, FloatArray, as_codes, check_lengths, narrowest, readable
from everytree.base.checks import resolve_n_jobs
from everytree.base.errors import ArgumentError
from everytree.families.base import Family, NativeFamily
from everytree.families.traits import mean_less
from everytree.posterior.checks import check_is_other
from everytree.posterior.packing import pack_shapes, slices, terminal_statistics, unpack_shapes
from everytree.posterior.posterior import Posterior
from everytree.posterior.split_prior import log_split_stop
from everytree.predictive.pooled import Pool, PooledPredictive, sharpen
from everytree.predictive.predictive import Predictive
from everytree.tables.column import missing_code
from everytree.trees.metatree import MetaTree, read_only, whole_numbers


class Forest:
    """Posteriors over different meta-trees of the same columns, and a weight for each.

    A row is predicted by the weighted average of the posteriors' predictions. An average of many predictions is less
    certain than it should be; `sharpness` above 1 corrects that. Probabilities of classes and of cells are raised to
    that power and scaled to sum to 1 again; another distribution over numbers is narrowed around its mean, its spread
    divided by the sharpness.

    A row may have a value that a tree has no branch for: a category that was not there at fit, or a missing value in a
    column that had none. In prediction it stops at the node that splits on it and is predicted as a row of that node;
    in `update`, a tree that cannot place a row leaves it out.

    Parameters
    ----------
    posteriors : sequence of Posterior
        With leaves of one family.
    weights : (n_trees,) array_like or "evidence"
        Weights that sum to 1; uniform by default. "evidence" weights each tree by its evidence, also after updates.
    sharpness : float
    n_codes : (n_features,) array_like of int, optional
        Codes 0 .. n_codes - 1 of a column are known, all others unknown. By default every code is known.
    """

    def __init__(
        self,
        posteriors: Sequence[Posterior],
        *,
        weights: ArrayLike | str | None = None,
        sharpness: float = 1.0,
        n_codes: ArrayLike | None = None,
    ) -> None:
        self._posteriors = tuple(posteriors)
        if not self._posteriors:
            raise ValueError("posteriors is empty: a forest has at least one tree")
        for i, post in enumerate(self._posteriors):
            if not isinstance(post, Posterior):
                raise TypeError(f"posteriors[{i}] must be a Posterior, not {type(post).__name__}")
            if type(post.family) is not type(self.family) or post.family.n_statistics != self.family.n_statistics:
                raise ValueError(f"posteriors[{i}] has leaves {post.family}, but posteriors[0] has {self.family}")
            if not isinstance(post.family, NativeFamily) and post.family != self.family:
                raise ValueError(
                    f"posteriors[{i}] has leaves {post.family}; a family written in Python must be one for all"
                )
        if len({id(post) for post in self._posteriors}) < len(self._posteriors):
            raise ValueError("posteriors has the same posterior twice; its rows would be counted twice")
        widths = {post.tree.n_features for post in self._posteriors}
        if len(widths) > 1:
            raise ValueError(f"the trees of a forest read tables of one width, but these read {sorted(widths)}")
        if not 0.0 < sharpness < np.inf:
            raise ValueError(f"sharpness must be positive, but is {sharpness!r}")
        if sharpness != 1.0 and not _can_be_sharpened(self.family):
            raise ValueError(f"sharpness is for classes and for measurements on the whole line, not for {self.family}")
        self.sharpness = float(sharpness)
        self.weighs_by_evidence = isinstance(weights, str)
        if isinstance(weights, str) and weights != "evidence":
            raise ValueError(f"weights must be numbers or 'evidence', but is {weights!r}")
        self._weights = None if self.weighs_by_evidence else _checked_weights(weights, len(self._posteriors))
        width = widths.pop()
        self._known = read_only(_known_codes(n_codes, width, [post.tree for post in self._posteriors]))
        self._engine = forest_kernel(self.trees, self._known)
        self._tables: tuple[Any, list[FloatArray], float] | None = None
        self._pool: tuple[Any, Pool] | None = None

    # ---- reading --------------------------------------------------------------------------------------------------

    @property
    def posteriors(self) -> tuple[Posterior, ...]:
        return self._posteriors

    @property
    def family(self) -> Any:
        return self._posteriors[0].family

    @property
    def trees(self) -> list[MetaTree]:
        return [post.tree for post in self._posteriors]

    @property
    def n_features(self) -> int:
        return len(self._known)

    @property
    def n_codes(self) -> NDArray[np.uint16]:
        return self._known

    @property
    def n_rows(self) -> int:
        """Number of rows seen: the maximum that any tree has placed."""
        return max(post.n_rows for post in self._posteriors)

    @property
    def weights(self) -> FloatArray:
        """(n_trees,) weights that sum to 1."""
        if self._weights is not None:
            return self._weights
        evidence = np.array([post.log_evidence for post in self._posteriors])
        return np.asarray(np.exp(evidence - logsumexp(evidence)))

    @property
    def log_evidence(self) -> float:
        """Log of the average evidence of the trees, each of them equally probable a priori."""
        evidence = [post.log_evidence for post in self._posteriors]
        return float(logsumexp(evidence) - np.log(len(evidence)))

    def best_tree(self) -> int:
        """Number of the tree that explains the rows best: the one with the largest evidence, which pictures show."""
        return int(np.argmax([post.log_evidence for post in self._posteriors]))

    def feature_importances(self) -> FloatArray:
        """(n_features,) weighted mean of the trees' importances; sums to 1 unless no tree has a useful split."""
        total = np.zeros(self.n_features)
        for weight, post in zip(self.weights, self._posteriors, strict=True):
            total += weight * post.feature_importances()
        return total / total.sum() if total.sum() > 0.0 else total

    def __len__(self) -> int:
        return len(self._posteriors)

    def __repr__(self) -> str:
        return f"Forest(n_trees={len(self)}, {self.family}, n_rows={self.n_rows}, sharpness={self.sharpness:.4g})"

    # ---- learning -------------------------------------------------------------------------------------------------

    def update(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        n_jobs: int | None = None,
        **row_data: Any,
    ) -> Self:
        """Condition every tree on more rows; one that fails changes nothing. Arguments as in `Posterior.update`."""
        if not isinstance(self.family, NativeFamily):
            self._update_in_python(as_codes(X), np.asarray(y), sample_weight, n_jobs, row_data)
            return self
        extra = self.family.pack_rows(row_data, X) if row_data or self.family.row_data else None
        kernels = [post._kernel for post in self._posteriors]
        with self._writing():
            update = partial(
                kernels[0].update_forest, forest=self._engine, all=kernels, extra=extra, n_jobs=resolve_n_jobs(n_jobs)
            )
            if not update(X=X, y=y, weight=sample_weight):
                codes, targets, weight = readable(X, y, sample_weight)
                update(X=codes, y=targets, weight=weight)
        return self

    @contextmanager
    def _writing(self) -> Iterator[None]:
        """Lock all trees against other readers and writers."""
        with ExitStack() as held:
            for post in sorted(self._posteriors, key=id):  # one order for all callers prevents deadlocks
                held.enter_context(post._kernel.writing)
            yield

    def _update_in_python(
        self,
        codes: NDArray[Any],
        y: NDArray[Any],
        sample_weight: ArrayLike | None,
        n_jobs: int | None,
        row_data: Mapping[str, Any],
    ) -> None:
        """For a family written in Python: tree after tree; if one fails, those before it are restored."""
        check_lengths(len(codes), {"y": y, "sample_weight": sample_weight, **row_data})
        codes, ends = _unsigned(codes), self.ends(codes, n_jobs=n_jobs)
        weight = None if sample_weight is None else np.asarray(sample_weight)
        columns = {name: np.asarray(values) for name, values in row_data.items() if values is not None}
        missing = codes == missing_code(codes.dtype)
        with self._writing():
            before = [post.__getstate__() for post in self._posteriors]
            try:
                for post, end in zip(self._posteriors, ends.T, strict=True):
                    placed = post.tree.is_terminal[end]
                    unknown = ((codes >= self._known) | missing) & ~(post.tree.has_missing & missing)
                    post.update(
                        np.where(unknown, 0, codes)[placed].astype(codes.dtype),
                        y[placed],
                        None if weight is None else weight[placed],
                        n_jobs=n_jobs,
                        **{name: values[placed] for name, values in columns.items()},
                    )
            except BaseException:
                for post, state in zip(self._posteriors, before, strict=True):
                    post._restore(state)
                raise

    def merge(self, other: Forest) -> Self:
        """Add the rows of another forest of the same trees and priors. Returns itself."""
        self.check_mergeable(other)
        check_is_other(self, other)
        for own, theirs in zip(self._posteriors, other._posteriors, strict=True):
            check_is_other(own, theirs)
        mine = set(self._posteriors)
        with ExitStack() as held:  # all of them, so that no reader sees rows in some trees only
            for post in sorted({*mine, *other._posteriors}, key=id):  # one order for all callers
                held.enter_context(post._kernel.writing if post in mine else post._kernel)
            for own, theirs in zip(self._posteriors, other._posteriors, strict=True):
                own.merge(theirs)
        return self

    def forget(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        n_jobs: int | None = None,
        **row_data: Any,
    ) -> Self:
        """Take back rows from every tree, or from none where that fails. Arguments as in `Posterior.forget`."""
        return self.take_away(self.without_rows().update(X, y, sample_weight, n_jobs=n_jobs, **row_data))

    def take_away(self, other: Forest) -> Self:
        """Subtract the rows of another forest of the same trees, all of which are in this one."""
        with self._writing():
            self.check_counted(other)
            for own, theirs in zip(self._posteriors, other._posteriors, strict=True):
                own.take_away(theirs)
        return self

    def check_counted(self, other: Forest) -> None:
        """Raise unless all rows of another forest of the same trees can be in this one."""
        for own, theirs in zip(self._posteriors, other._posteriors, strict=True):
            own.check_counted(theirs)

    def check_mergeable(self, other: Forest) -> None:
        """Raise unless the other has the same trees, priors, weights and sharpness."""
        if not isinstance(other, Forest):
            raise TypeError(f"other must be a Forest, not {type(other).__name__}")
        if len(other) != len(self):
            raise ValueError(f"other has {len(other)} trees, this forest {len(self)}")
        for mine, theirs in zip(self._posteriors, other._posteriors, strict=True):
            mine.check_mergeable(theirs)
        apart = self._known != other._known
        if apart.any():
            k = int(np.argmax(apart))
            raise ValueError(f"other has n_codes[{k}] = {other._known[k]}, this forest {self._known[k]}")
        if self.sharpness != other.sharpness:
            raise ValueError(f"other has sharpness {other.sharpness}, this forest {self.sharpness}")
        if self.weighs_by_evidence != other.weighs_by_evidence or not (
            self.weighs_by_evidence or (self.weights == other.weights).all()
        ):
            raise ValueError("other has different weights than this forest")

    def without_rows(self) -> Forest:
        """Return the same trees, priors, weights and sharpness without rows."""
        return self.with_posteriors(
            [Posterior(post.tree, post.family, post.split_prior_argument) for post in self._posteriors]
        )

    def with_posteriors(self, posteriors: Sequence[Posterior]) -> Forest:
        """Return a forest of other posteriors over the same trees, with the same weights, sharpness and codes."""
        weights = "evidence" if self.weighs_by_evidence else self._weights
        return Forest(posteriors, weights=weights, sharpness=self.sharpness, n_codes=self.n_codes)

    def copy(self) -> Forest:
        """An independent forest with the same rows."""
        other = object.__new__(Forest)
        other.__setstate__(self.__getstate__())
        return other

    # ---- predicting -----------------------------------------------------------------------------------------------

    def ends(self, X: ArrayLike, *, n_jobs: int | None = None) -> NDArray[np.int32]:
        """(n_rows, n_trees) the node where each row ends in each tree: a terminal, or the node where it stops."""
        jobs = resolve_n_jobs(n_jobs)
        nodes = self._engine.ends(X, jobs)
        if nodes is None:
            nodes = self._engine.ends(as_codes(X), jobs)
        assert nodes is not None, "as_codes promises arrays that the kernels read"
        return nodes

    def probs(self, X: ArrayLike, *, n_jobs: int | None = None) -> FloatArray:
        """(n_rows, n_classes) probability of each class; for families of classes."""
        if not self._has_classes():
            raise TypeError(f"probs() is for families of classes; {type(self.family).__name__} has none")
        return sharpen(self._average(X, self.node_values()[0], n_jobs), self.sharpness, resolve_n_jobs(n_jobs))

    def moments(self, X: ArrayLike, *, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of each row's target, for families of numbers without row data."""
        if self._has_classes():
            raise TypeError(f"moments() is for families of numbers, not for {type(self.family).__name__}")
        tables, centre = self.node_values()
        is_powered = self.family.is_sharpened_by_power and self.sharpness != 1.0
        # Some leaf has an infinite variance, or no mean.
        if is_powered or not all(np.isfinite(table).all() for table in tables):
            dist = self.predictive(X, n_jobs=n_jobs)
            return dist.mean(), dist.variance()
        first, second = self._average(X, tables, n_jobs).T
        return first + centre, np.maximum(second - first**2, 0.0) / self.sharpness**2

    def _has_classes(self) -> bool:
        of_root = self.family.at(np.zeros(1, dtype=np.int64))
        return hasattr(of_root.predictive(np.zeros((1, self.family.n_statistics))), "probs")

    def _average(self, X: ArrayLike, tables: list[FloatArray], n_jobs: int | None) -> FloatArray:
        jobs = resolve_n_jobs(n_jobs)
        average = partial(
            self._engine.average, values=tables, weights=self.weights, n_values=tables[0].shape[1], n_jobs=jobs
        )
        values = average(X)
        if values is None:
            values = average(as_codes(X))
        assert values is not None, "as_codes promises arrays that the kernels read"
        return values

    def node_values(self) -> tuple[list[FloatArray], float]:
        """Return the prediction for a row that ends in each node, one table per tree, and the centre of moments."""
        now, made = [post._kernel.version for post in self._posteriors], self._tables
        if made is None or made[0] != now:
            centre = self._new_centre()
            made = self._tables = now, [values_of_nodes(post, centre) for post in self._posteriors], centre
        return made[1], made[2]

    def _new_centre(self) -> float:
        """Centre of the moments: the overall mean, so that their difference keeps its digits."""
        if self._has_classes():
            return 0.0
        post = self._posteriors[0]
        root = float(np.ravel(post.family.at(np.zeros(1, dtype=np.int64)).predictive(post.statistics[:1]).mean())[0])
        return root if np.isfinite(root) else 0.0

    def predictive(self, X: ArrayLike, *, n_jobs: int | None = None, **row_data: Any) -> Predictive:
        """One predictive distribution for each row: the average over all trees and all their prunings."""
        ends = self.ends(X, n_jobs=n_jobs)
        columns = self.family.row_columns(row_data, len(ends))
        return PooledPredictive(self._pool_of_nodes(), ends, columns, self.sharpness, resolve_n_jobs(n_jobs))

    def _pool_of_nodes(self) -> Pool:
        """Return the nodes of all trees as mixtures need them, made again only after an update."""
        now, made = [post._kernel.version for post in self._posteriors], self._pool
        if made is None or made[0] != now:
            made = self._pool = now, pool_nodes(self._posteriors, self.weights)
        return made[1]

    # ---- copies and files -----------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {
            "posteriors": pack_posteriors(self._posteriors),
            "weights": "evidence" if self.weighs_by_evidence else self._weights,
            "sharpness": self.sharpness,
            "n_codes": self._known,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        posteriors = unpack_posteriors(state["posteriors"])
        self.__init__(  # type: ignore[misc]
            posteriors, weights=state["weights"], sharpness=state["sharpness"], n_codes=state["n_codes"]
        )


def values_of_nodes(post: Posterior, centre: float) -> FloatArray:
    """Prediction for a row that ends in each node: class probabilities, or mean and mean square about `centre`."""

    def values(statistics: FloatArray) -> FloatArray:
        components: Any = post.family.predictive(statistics)
        if hasattr(components, "probs"):
            return np.asarray(components.probs())
        away = mean_less(components, centre)
        return np.stack([away, components.variance() + away**2], axis=1)

    return averaged_over_prunings(post, values)


def averaged_over_prunings(post: Posterior, values: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Mean over prunings of values (n_nodes, n_values) of statistics, for a row that ends in each node."""
    with post._kernel:
        statistics, leaf, subtree = (post._arrays[name].copy() for name in ("statistics", "leaf", "subtree"))
    log_split, log_stop = log_split_stop(post._split_prior)
    return _kernels.average_over_paths(
        post.tree.kernel, log_split=log_split, log_stop=log_stop, leaf=leaf, subtree=subtree,
        values=np.ascontiguousarray(values(statistics)),
    )  # fmt: skip


def _unsigned(codes: NDArray[Any]) -> NDArray[Any]:
    """Return codes of signed types, in which -1 is missing, as unsigned ones."""
    if codes.dtype.kind != "i":
        return codes
    if (codes < -1).any() or (codes > LARGEST_CODE).any():
        row, column = np.argwhere((codes < -1) | (codes > LARGEST_CODE))[0]
        found = str(codes[row, column])
        raise ArgumentError("X", f"codes are 0..{LARGEST_CODE}", f"column {column}", int(row), found)
    return np.where(codes < 0, np.uint16(65535), codes).astype(np.uint16)


def _known_codes(n_codes: ArrayLike | None, width: int, trees: Sequence[MetaTree]) -> NDArray[np.uint16]:
    """Number of known codes of each column; a split into all codes has a child for each of them."""
    asked = np.max([tree.n_codes for tree in trees], axis=0) if width else np.zeros(0, dtype=np.int32)
    if n_codes is None:
        return np.where(asked > 0, asked, LARGEST_CODE + 1).astype(np.uint16)
    known = whole_numbers("n_codes", n_codes, 1, LARGEST_CODE + 1)
    if known.shape != (width,):
        raise ValueError(f"n_codes has shape {known.shape}, but the trees read {width} columns")
    for i, tree in enumerate(trees):
        wrong = (tree.n_codes > 0) & (tree.n_codes < known)
        if wrong.any():
            k = int(np.argmax(wrong))
            raise ValueError(
                f"n_codes[{k}] is {known[k]}, but posteriors[{i}] splits column {k} into {tree.n_codes[k]}"
            )
    return known.astype(np.uint16)


def forest_kernel(trees: Sequence[MetaTree], n_codes: NDArray[Any]) -> _kernels.Forest:
    """Return the trees as the kernels walk through them together."""
    return _kernels.Forest([tree.kernel for tree in trees], np.asarray(n_codes, dtype=np.uint16))


def _can_be_sharpened(family: Family) -> bool:
    """Whether sharpness is defined; families written in Python do not tell."""
    return isinstance(family, NativeFamily) and (family.is_sharpened_by_power or family.support.is_real_line)


def _checked_weights(weights: ArrayLike | None, n_trees: int) -> FloatArray:
    values = np.full(n_trees, 1.0 / n_trees) if weights is None else np.array(weights, dtype=np.float64)
    if values.shape != (n_trees,):
        raise ValueError(f"weights has shape {values.shape}, but there are {n_trees} trees")
    if not (np.isfinite(values) & (values >= 0.0)).all() or not abs(values.sum() - 1.0) < 1e-9:
        raise ValueError("weights must be numbers from 0 on that sum to 1")
    return read_only(values)


def pool_nodes(posteriors: Sequence[Posterior], weights: FloatArray) -> Pool:
    """Return a copy of the posteriors' nodes in one list."""
    first = np.cumsum([0] + [post.tree.n_nodes for post in posteriors])
    summaries, parents, reached, stop = [], [], [], []
    for post, start in zip(posteriors, first, strict=False):
        with post._kernel:
            leaf, subtree = (post._arrays[name].copy() for name in ("leaf", "subtree"))
            statistics = post._arrays["statistics"]
            summary = post.family.summarise(statistics)
            summaries.append(summary.copy() if summary is statistics else summary)
        log_split, log_stop = log_split_stop(post._split_prior)
        fates = _kernels.log_node_fates(
            post.tree.kernel, log_split=log_split, log_stop=log_stop, leaf=leaf, subtree=subtree
        )
        parents.append(np.where(post.tree.parent >= 0, post.tree.parent + start, -1).astype(np.int32))
        reached.append(fates[0])
        stop.append(fates[1])
    with np.errstate(divide="ignore"):
        log_weights = np.log(weights)
    join = np.concatenate
    return Pool(
        _of_any_node(posteriors[0].family),
        join(summaries),
        first[:-1],
        join(parents),
        join(reached),
        join(stop),
        log_weights,
    )


def _of_any_node(family: Family) -> Family:
    """Return the family for summaries, which contain the prior of their node."""
    return family if family.has_one_prior else family.at(np.zeros(1, dtype=np.int64))


# ---- pickles of forests ---------------------------------------------------------------------------------------------


def pack_posteriors(posteriors: Sequence[Posterior]) -> dict[str, Any]:
    """Return plain arrays of all trees one after another, and what they have in common."""
    trees = [post.tree for post in posteriors]
    statistics, n_rows = terminal_statistics(posteriors)
    models = [(post.family, post.split_prior_argument) for post in posteriors]
    same = all(family == models[0][0] and np.array_equal(prior, models[0][1]) for family, prior in models)
    return {
        "n_nodes": np.array([tree.n_nodes for tree in trees]),
        "widths": [tree.declared_width for tree in trees],
        "shapes": {name: narrowest(array) for name, array in pack_shapes(trees).items()},
        "statistics": [narrowest(column) for column in statistics.T],
        "n_rows": n_rows,
        "models": models[:1] if same else models,
    }


def unpack_posteriors(packed: dict[str, Any]) -> list[Posterior]:
    """Return the posteriors, their trees checked and their evidences computed."""
    n_nodes = np.asarray(packed["n_nodes"])
    shapes = unpack_shapes(n_nodes, {name: array.astype(np.int32) for name, array in packed["shapes"].items()})
    statistics = np.stack([np.asarray(column).astype(np.float64) for column in packed["statistics"]], axis=1)
    posteriors, n_used = [], 0
    for i, nodes in enumerate(slices(n_nodes)):
        tree = MetaTree.from_checked_arrays({name: array[nodes] for name, array in shapes.items()}, packed["widths"][i])
        family, split_prior = packed["models"][i % len(packed["models"])]
        terminals = slice(n_used, n_used + tree.n_terminals)
        posteriors.append(
            Posterior.from_terminals(tree, family, split_prior, statistics[terminals], packed["n_rows"][i])
        )
        n_used = terminals.stop
    return posteriors
