"""The posterior distribution over all pruned subtrees of one meta-tree.

Store statistics, derive everything else: a node keeps the sufficient statistics of all rows seen so far, and evidence
and split probabilities are always computed from the prior and these totals, never fed back in as a prior. Hence one
batch, any chunking, one row at a time, any order, and shards merged are all the same posterior.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray, readable
from everytree.base.checks import resolve_n_jobs
from everytree.base.errors import ArgumentError
from everytree.families.base import Family, NativeFamily
from everytree.posterior.checks import check_is_other, check_model
from everytree.posterior.python_kernel import PythonKernel
from everytree.posterior.split_prior import SplitPriorLike, log_split_stop, resolve_split_prior
from everytree.predictive.paths import PathPredictive, Paths
from everytree.predictive.predictive import Predictive
from everytree.trees.metatree import MetaTree
from everytree.trees.questions import TreeDistribution, TreeQuestions


class Posterior(TreeQuestions):
    """p(T | data) over every pruned tree T of a meta-tree, with conjugate leaves, computed exactly.

    Parameters
    ----------
    tree : MetaTree
    family : Family
        The leaf model, for example `Bernoulli(0.5, 0.5)`.
    split_prior : float, (n_nodes,) array_like or callable
        Prior probability g_s that a node is split given that it is in the tree: one number for all inner nodes, one for
        each node (0 at terminals), or a function of depth such as `depth_prior(0.95, 1.0)`.

    Notes
    -----
    Safe to use from several threads: updates and reads of one posterior wait for each other. The array attributes are
    copies, which later updates do not change. In a process that was forked while a thread of its parent was updating a
    posterior, every use of that posterior raises a `RuntimeError`; all others are intact.

    Examples
    --------
    >>> import numpy as np, everytree as et
    >>> tree = et.MetaTree.complete([0, 1, 1], n_children=2)
    >>> post = et.Posterior(tree, et.Bernoulli(0.5, 0.5), split_prior=0.5)
    >>> X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5, dtype=np.uint8)
    >>> round(post.update(X, y=X[:, 0]).log_evidence, 4)
    -4.9609
    >>> bool(post.split_prob[0] > 0.9999)  # the root is split on column 0, as good as certain
    True
    >>> post.predictive(np.array([[1, 0]], dtype=np.uint8)).probs().round(3)
    array([[0.055, 0.945]])
    """

    def __init__(self, tree: MetaTree, family: Family, split_prior: SplitPriorLike = 0.5) -> None:
        check_model(tree, family)
        self._tree = tree
        self._family = family
        self._split_prior = resolve_split_prior(split_prior, tree)
        self._arrays: dict[str, NDArray[Any]] = {
            "statistics": np.zeros((tree.n_nodes, family.n_statistics)),
            "leaf": np.zeros(tree.n_nodes),
            "subtree": np.zeros(tree.n_nodes),
            "split_prob": self.split_prior,
            "n_rows": np.zeros(1, dtype=np.int64),
        }
        self._borrow()

    @classmethod
    def from_statistics(
        cls, tree: MetaTree, family: Family, split_prior: SplitPriorLike, statistics: FloatArray, n_rows: int
    ) -> Posterior:
        """Return the posterior of rows that were counted elsewhere.

        Parameters
        ----------
        tree
            As in the constructor.
        family
            As in the constructor.
        split_prior
            As in the constructor.
        statistics : (n_nodes, n_statistics) float64
            Those of the terminals are sufficient.
        n_rows : int
        """
        post = cls(tree, family, split_prior)
        post._kernel.merge(statistics)
        post._arrays["n_rows"][0] = n_rows
        return post

    @classmethod
    def from_counts(
        cls, tree: MetaTree, family: NativeFamily, split_prior: SplitPriorLike, statistics: FloatArray, n_rows: int
    ) -> Posterior:
        """As `from_statistics`, but the array of statistics is kept, and changes with the posterior."""
        n_nodes = tree.n_nodes
        arrays: dict[str, NDArray[Any]] = {
            "statistics": statistics, "leaf": np.zeros(n_nodes), "subtree": np.zeros(n_nodes),
            "split_prob": np.where(tree.is_terminal, 0.0, resolve_split_prior(split_prior, tree)),
            "n_rows": np.array([n_rows], dtype=np.int64),
        }  # fmt: skip
        post = cls.from_arrays(tree, family, split_prior, arrays)
        post._kernel.sweep_all()
        return post

    @classmethod
    def from_terminals(
        cls, tree: MetaTree, family: Family, split_prior: SplitPriorLike, statistics: FloatArray, n_rows: int
    ) -> Posterior:
        """Return the posterior whose terminals have these statistics, in their order."""
        of_nodes = np.zeros((tree.n_nodes, statistics.shape[1]))
        of_nodes[tree.is_terminal] = statistics
        return cls.from_statistics(tree, family, split_prior, of_nodes, n_rows)

    @classmethod
    def from_arrays(
        cls, tree: MetaTree, family: Family, split_prior: SplitPriorLike, arrays: dict[str, NDArray[Any]]
    ) -> Posterior:
        """Return the posterior with this state: the arrays are kept, not copied, and must be those of a posterior."""
        check_model(tree, family)
        post = object.__new__(cls)
        post._tree, post._family, post._arrays = tree, family, arrays
        post._split_prior = resolve_split_prior(split_prior, tree)
        post._borrow()
        return post

    @property
    def tree(self) -> MetaTree:
        """The meta-tree whose prunings are averaged."""
        return self._tree

    @property
    def family(self) -> Family:
        """The leaf model."""
        return self._family

    def _borrow(self) -> None:
        """Pass the arrays to a kernel.

        As a context manager it excludes other threads; `kernel.writing` does the same for code that changes the arrays.
        """
        log_split, log_stop = log_split_stop(self._split_prior)
        if isinstance(self.family, NativeFamily):
            self._kernel: Any = _kernels.make_posterior(
                name=self.family.kernel, size=self.family.size, tree=self.tree.kernel, log_split=log_split,
                log_stop=log_stop, leaf_prior=self.family.kernel_prior, **self._arrays,
                extra_constant=self.family.default_row_data,
            )  # fmt: skip
        else:
            self._kernel = PythonKernel(self.family, self.tree, log_split, log_stop, self._arrays)
        self._has_row_data = bool(self.family.row_data)

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
        """Condition on more rows: Theorem 1 and Corollary 1 of the paper, Proposition 1 for a single row.

        Costs O(n_rows * depth) to find the nodes and O(touched nodes) to update them; a failed call changes nothing.

        Parameters
        ----------
        X : (n_rows, n_features) array_like of codes
            Whole numbers of any type; `uint8` and `uint16` in C order are read in place and fastest.
        y : (n_rows,) array_like
            Targets in the support of the family.
        sample_weight : (n_rows,) array_like, optional
            Multiplies a row's statistics; a row of weight 0 counts as absent.
        n_jobs : int, optional
            Threads that look for the nodes, -1 for all cores. The result does not depend on it.
        **row_data
            Row data of the family: `exposure`, `censored`, `inputs`.

        Returns
        -------
        Posterior
            Itself.
        """
        extra = self.family.pack_rows(row_data, X) if row_data or self._has_row_data else None
        jobs = 1 if n_jobs is None else resolve_n_jobs(n_jobs)
        if not self._kernel.update(X, y, sample_weight, extra, jobs):
            read = self._kernel.update(*readable(X, y, sample_weight), extra, jobs)
            assert read, "as_codes and as_column promise arrays that the kernels read"
        return self

    def merge(self, other: Posterior) -> Self:
        """Add the rows of another posterior over the same meta-tree with the same priors. Returns itself.

        To itself, a posterior adds nothing: `merge(posterior.copy())` counts all rows twice.
        """
        self.check_mergeable(other)
        check_is_other(self, other)
        with other._kernel:
            statistics, n_rows = other._arrays["statistics"].copy(), other.n_rows
        with self._kernel.writing:
            self._kernel.merge(statistics)
            self._arrays["n_rows"] += n_rows
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
        """Take back rows that were counted; the posterior is then as if it had never seen them. Returns itself.

        Rows of which a leaf has fewer than they would take away are refused, and nothing changes. Other rows than those
        that were counted cannot be told from them by sums alone, if enough such rows are in their leaves.

        Parameters
        ----------
        X, y
            As they were given to `update`, in any order and any batches.
        sample_weight, **row_data
            Of these rows, likewise.
        n_jobs : int, optional
        """
        rows = Posterior(self.tree, self.family, self.split_prior_argument)
        return self.take_away(rows.update(X, y, sample_weight, n_jobs=n_jobs, **row_data))

    def take_away(self, other: Posterior) -> Self:
        """Subtract the rows of another posterior over the same meta-tree, all of which are in this one."""
        with self._kernel.writing:
            self.check_counted(other)
            self._kernel.take_away(other._arrays["statistics"])
            self._arrays["n_rows"] -= other.n_rows
        return self

    def check_counted(self, other: Posterior) -> None:
        """Raise unless all rows of another posterior over the same meta-tree can be in this one."""
        if not isinstance(self.family, NativeFamily):
            raise TypeError(f"rows are taken back from built-in families, not from {type(self.family).__name__}")
        node = self._kernel.lacking(other._arrays["statistics"])
        if node >= 0 or other.n_rows > self.n_rows:
            where = f"node {node} has less than they would take away" if node >= 0 else f"it has {self.n_rows} rows"
            raise ArgumentError("X", f"and y have rows that were never counted: {where}; nothing was changed")

    def check_mergeable(self, other: Posterior) -> None:
        """Raise unless the other is over the same meta-tree with the same priors."""
        if not isinstance(other, Posterior):
            raise TypeError(f"other must be a Posterior, not {type(other).__name__}")
        if self.tree != other.tree:
            raise ValueError(f"other is over another meta-tree: {other.tree}, this one over {self.tree}")
        if self.family != other.family:
            raise ValueError(f"other has leaves {other.family}, this one {self.family}")
        apart = self.split_prior != other.split_prior
        if apart.any():
            s = int(np.argmax(apart))
            mine, theirs = self.split_prior[s], other.split_prior[s]
            raise ValueError(f"other has split_prior[{s}] = {theirs}, this one {mine}")

    def copy(self) -> Posterior:
        """An independent posterior with the same rows."""
        other = object.__new__(type(self))
        other.__setstate__(self.__getstate__())
        return other

    # ---- reading --------------------------------------------------------------------------------------------------

    @property
    def n_rows(self) -> int:
        """Number of rows seen, those of weight 0 not counted."""
        with self._kernel:
            return int(self._arrays["n_rows"][0])

    @property
    def log_evidence(self) -> float:
        """log p(y | X), summed over every pruned tree and integrated over every leaf's parameters."""
        with self._kernel:
            return float(self._arrays["subtree"][0])

    @property
    def split_prior(self) -> FloatArray:
        """(n_nodes,) g_s: prior probability that a node is split given that it is in the tree."""
        return np.where(self.tree.is_terminal, 0.0, self._split_prior)

    @property
    def split_prior_argument(self) -> float | FloatArray:
        """The prior in the form the constructor takes: one number where it is the same for all inner nodes."""
        return _scalar_or_array(self._split_prior)

    @property
    def split_prob(self) -> FloatArray:
        """(n_nodes,) g_{s|data}: the same, a posteriori."""
        return self._read("split_prob")

    @property
    def leaf_log_evidence(self) -> FloatArray:
        """(n_nodes,) log evidence of the rows in each node if it were a leaf."""
        return self._read("leaf")

    @property
    def subtree_log_evidence(self) -> FloatArray:
        """(n_nodes,) log q: log evidence of the rows in each node averaged over every subtree below it."""
        return self._read("subtree")

    @property
    def statistics(self) -> FloatArray:
        """(n_nodes, n_statistics) sufficient statistics of the rows in each node, as defined by the family."""
        return self._read("statistics")

    def _read(self, name: str) -> FloatArray:
        with self._kernel:
            return self._arrays[name].copy()

    def predictive(self, X: ArrayLike, *, n_jobs: int | None = None, **row_data: Any) -> Predictive:
        """One predictive distribution for each row, averaged over every pruned tree.

        Parameters
        ----------
        X : (n_rows, n_features) array_like of codes
        **row_data
            As in `update`, for the rows to predict.
        """
        ends = self.tree.route(X, n_jobs=n_jobs)
        columns = self.family.row_columns(row_data, len(ends))
        with self._kernel:
            arrays = self._arrays
            log_split, log_stop = log_split_stop(self._split_prior)
            of_row, start, nodes, log_weights = self.tree.kernel.paths(
                ends, log_split=log_split, log_stop=log_stop, leaf=arrays["leaf"], subtree=arrays["subtree"]
            )
            on_paths, entries = np.unique(nodes, return_inverse=True)  # a node on many paths is summarised once
            statistics = arrays["statistics"][on_paths]
        family = self.family.at(on_paths)
        return PathPredictive(family, family.summarise(statistics), Paths(start, entries, log_weights, of_row), columns)

    # ---- questions about the trees (others are in TreeQuestions) ---------------------------------------------------

    def tree_distribution(self) -> TreeDistribution:
        """p(T | data), as log probabilities that a node is split, and that it is not, given that it is in the tree."""
        log_split, log_stop = self._prior_logs()
        with self._kernel:
            leaf, subtree = self._arrays["leaf"].copy(), self._arrays["subtree"].copy()
        inner = np.flatnonzero(~self.tree.is_terminal)
        children = np.zeros(self.tree.n_nodes)
        if len(inner):
            children[inner] = np.add.reduceat(subtree, self.tree.first_child[inner])
        odds = (log_split + children) - (log_stop + leaf)  # log odds of a split: both probabilities sum to 1
        return TreeDistribution(self.tree, -np.logaddexp(0.0, -odds), -np.logaddexp(0.0, odds))

    def prior_tree_distribution(self) -> TreeDistribution:
        """p(T) before any data."""
        return TreeDistribution(self.tree, *self._prior_logs())

    def _prior_logs(self) -> tuple[FloatArray, FloatArray]:
        return log_split_stop(self.split_prior)

    def kl_from_prior(self) -> float:
        """Information gain about T: Kullback-Leibler divergence of posterior from prior, in nats."""
        return self.tree_distribution().kl_divergence(self.prior_tree_distribution())

    def feature_importances(self, *, normalize: bool = True) -> FloatArray:
        """(n_features,) expected gain in log evidence by the splits on each feature.

        A split's gain is the log evidence of its children as leaves less its own; weighted by the probability that the
        split is in the tree, all gains together are the posterior mean of log p(y | T) less that of the root alone.

        Parameters
        ----------
        normalize : bool
            Scale the positive gains to sum to 1, as scikit-learn's importances do; else the gains in nats.
        """
        over, tree, leaf = self.tree_distribution(), self.tree, self.leaf_log_evidence
        inner = np.flatnonzero(~tree.is_terminal)
        gains = np.zeros(tree.n_features)
        if len(inner):
            gain = np.add.reduceat(leaf, tree.first_child[inner]) - leaf[inner]
            np.add.at(gains, tree.feature[inner], self.node_prob[inner] * over.split_prob[inner] * gain)
        if not normalize:
            return gains
        positive = np.maximum(gains, 0.0)
        return positive / positive.sum() if positive.sum() > 0.0 else positive

    def loo_log_prob(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        n_jobs: int | None = None,
        **row_data: Any,
    ) -> FloatArray:
        """(n_rows,) log p(y_i | all other rows), for rows that are in this posterior.

        Closed form: the row's statistics are taken away along its path, O(depth) per row, as if it had been left out of
        the fit. Give the rows as they were given to `update`.
        """
        if not isinstance(self.family, NativeFamily):
            raise TypeError(f"loo_log_prob() is for built-in families, not for {type(self.family).__name__}")
        extra = self.family.pack_rows(row_data, X) if row_data or self._has_row_data else None
        jobs = resolve_n_jobs(n_jobs)
        values: FloatArray | None = self._kernel.leave_one_out(X, y, sample_weight, extra, jobs)
        if values is None:
            values = self._kernel.leave_one_out(*readable(X, y, sample_weight), extra, jobs)
        assert values is not None
        return values

    # ---- pictures ---------------------------------------------------------------------------------------------------

    def to_text(self, **options: Any) -> str:
        """The top of the meta-tree drawn with characters; options as in `everytree.view.text.tree_text`."""
        from everytree.view.text import tree_text

        return tree_text(self, **options)

    def _repr_html_(self) -> str:
        from everytree.view.html import tree_html

        return tree_html(self)

    # ---- copies and files -----------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        with self._kernel:
            return {
                "tree": self.tree,
                "family": self.family,
                "split_prior": self._split_prior,
                "arrays": {name: array.copy() for name, array in self._arrays.items()},
            }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copies with the shapes the kernels rely on: pickled arrays may be shared or read-only."""
        self.__init__(state["tree"], state["family"])  # type: ignore[misc]
        self._split_prior = resolve_split_prior(_scalar_or_array(state["split_prior"]), self.tree)
        for name, array in self._arrays.items():
            given = np.asarray(state["arrays"][name])
            if given.shape != array.shape:
                raise ValueError(f"{name} has shape {given.shape}, but {array.shape} belongs to this tree and family")
            array[...] = given
        self._borrow()

    def _restore(self, state: dict[str, Any]) -> None:
        """Restore an earlier state in place: the kernel keeps the same arrays."""
        self._kernel.version += 1
        for name, array in state["arrays"].items():
            self._arrays[name][...] = array

    def __repr__(self) -> str:
        return f"Posterior({self.tree}, {self.family}, n_rows={self.n_rows}, log_evidence={self.log_evidence:.6g})"


def _scalar_or_array(split_prior: FloatArray) -> FloatArray:
    """Return a resolved split prior as a number or an array, as it can be given."""
    return split_prior[0] if split_prior.shape == (1,) else split_prior
