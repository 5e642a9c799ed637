"""The base class of predictive distributions, for mixtures from any source.

A row's distribution is a mixture of a family's predictives over nodes of trees. Computations on one mixture are in
`mixture` and `intervals`; subclasses find the mixtures of all rows and share them among rows. This module has the
rest: arguments, shapes, and everything that follows from the few methods of a subclass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple, NoReturn, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.arrays import FloatArray
from everytree.base.checks import probabilities, whole_number
from everytree.base.errors import ArgumentError
from everytree.base.randomness import RandomSource, random_generator
from everytree.base.words import short_number
from everytree.families.base import Family
from everytree.predictive.intervals import shortest_interval
from everytree.predictive.mixture import Mixture
from everytree.predictive.restricted import time_text
from everytree.predictive.targets import read_targets

ROWS_SHOWN = 3
"""Number of rows that a repr shows."""


class VarianceParts(NamedTuple):
    """The variance of each row's target by source."""

    noise: FloatArray  # (n_rows,) array: variance that remains if the tree and the parameters of its leaves are known
    parameters: FloatArray  # (n_rows,) array: variance added by unknown parameters
    trees: FloatArray  # (n_rows,) array: variance added by the unknown tree


class Predictive(ABC):
    """One predictive distribution for each row, averaged over trees.

    Made by `predictive` of `Posterior`, `GrowingPosterior`, `Forest`, `ExactPosterior` and of every estimator, and by
    `predictive_one` of the online forests. It is a copy: later updates do not change it.

    `len(dist)` is the number of rows. `dist[rows]` are the distributions of some of them: a slice, row numbers, a mask,
    or one row number, which gives a distribution of one row.

    A family of your own supports what its components define: `mean`, `variance` and `log_prob` at least, and the rest
    where they have `cdf`, `sf`, `quantile`, `sample`, `parameter_share` and `is_discrete`; `mode` makes the shortest
    interval of large counts faster.

    Notes
    -----
    `log_prob`, `cdf`, `sf` and `crps` take targets `y` by one rule: `y` broadcasts against the shape (n_rows,), as in
    NumPy. One number is evaluated for every row, and an array of n_rows numbers row by row; both give (n_rows,). A grid
    of m numbers is evaluated for every row as `grid[:, None]`, which gives (m, n_rows).

    `quantile(p)` is different: levels are always the same for all rows, and k of them give (n_rows, k).

    Examples
    --------
    >>> import numpy as np, everytree as et
    >>> post = et.Posterior(et.MetaTree.complete([0]), et.Poisson(1.0, 1.0)).update([[0], [1], [1]], [0, 4, 6])
    >>> dist = post.predictive([[0], [1]])
    >>> dist
    PathPredictive(2 rows, Poisson; mean ± std: 0.675 ± 1.15, 3.6 ± 2.2)
    >>> dist.sf(5).round(3), dist.cdf(np.arange(4)[:, None]).shape
    (array([0.008, 0.181]), (4, 2))
    """

    _sharpness: float = 1.0
    """Factor by which each distribution is narrower around its mean than the mixture it is made from."""

    labels: tuple[Any, ...] | None = None
    """Labels of the classes, in the order of `probs`, where the distribution comes from a classifier."""

    last_time: float | None = None
    """The longest time that a model of times has seen, where some were cut short: beyond it, rates go on as before."""

    def __init__(self, family: Family, row_data: Mapping[str, NDArray[Any]]) -> None:
        self._family = family
        self._row_data = row_data

    # ---- implemented by subclasses ---------------------------------------------------------------------------------

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _at_rows(self, rows: NDArray[np.int64]) -> Self:
        """Return the distributions of these rows, with repetitions."""

    @abstractmethod
    def _per_row(self, function: Callable[[Mixture], FloatArray]) -> FloatArray:
        """(n_rows, ...) `function` applied to the mixture of each row."""

    @abstractmethod
    def _per_target(self, function: Callable[[Mixture, FloatArray], FloatArray], grid: FloatArray) -> FloatArray:
        """(n_points, n_rows) `function` of the mixture of each row and its targets, for a grid as in `Targets`."""

    @abstractmethod
    def _scores(self, grid: FloatArray) -> FloatArray:
        """(n_points, n_rows) `Mixture.crps` of the targets of a grid."""

    @abstractmethod
    def _draws(self, n_draws: int, rng: np.random.Generator) -> FloatArray:
        """(n_rows, n_draws) draws from the mixtures."""

    def _sorted_by(self, sort: Callable[[FloatArray], FloatArray]) -> Predictive | None:
        """Return distributions of the same kind whose tails are sorted, for kinds that stay the same; else None."""
        del sort
        return None

    # ---- replaced by subclasses that have a faster way -------------------------------------------------------------

    def _log_probs(self, grid: FloatArray) -> FloatArray:
        """(n_points, n_rows) log densities of the mixtures."""
        return self._per_target(Mixture.log_prob, grid)

    def _tails(self, grid: FloatArray, is_above: bool) -> FloatArray:
        """(n_points, n_rows) P(Y > y) if `is_above`, else P(Y <= y)."""
        return self._per_target(Mixture.sf if is_above else Mixture.cdf, grid)

    def _quantiles(self, levels: FloatArray) -> FloatArray:
        """(n_rows, n_levels), ordered as the levels are."""
        return self._per_row(lambda mixture: _quantiles(mixture, levels))

    def _shortest(self, coverage: float) -> FloatArray:
        """(n_rows, 2) ends of the shortest interval."""
        return self._per_row(lambda mixture: shortest_interval(mixture, coverage))

    # ---- moments --------------------------------------------------------------------------------------------------

    def mean(self) -> FloatArray:
        """(n_rows,) mean of y; of the class number for classes."""
        return self._per_row(Mixture.mean)

    def variance(self) -> FloatArray:
        """(n_rows,) variance of y: the mean of the nodes' variances plus the variance of their means."""
        return self._per_row(Mixture.variance) / self._sharpness**2

    def std(self) -> FloatArray:
        """(n_rows,) standard deviation of y."""
        return np.sqrt(self.variance())

    def variance_parts(self) -> VarianceParts:
        """Parts of the variance: noise, parameters, trees. They add up to `variance()`."""
        self._need("parameter_share")
        return VarianceParts(*self._per_row(Mixture.variance_parts).T)

    def probs(self) -> FloatArray:
        """(n_rows, n_classes) probability of each class."""
        self._need("probs", "families of classes")
        return self._per_row(lambda mixture: mixture.average(mixture.components.probs()))

    def entropy(self) -> FloatArray:
        """(n_rows,) entropy in nats, of discrete families."""
        if not getattr(self._no_components(), "is_discrete", False):
            raise TypeError(f"entropy() is for discrete families, not for {type(self._family).__name__}")
        return self._per_row(Mixture.entropy)

    # ---- of targets -----------------------------------------------------------------------------------------------

    def log_prob(self, y: ArrayLike) -> FloatArray:
        """Log probability or density of targets; minus infinity where they are impossible.

        Parameters
        ----------
        y : array_like
            One number, one per row, or a grid: broadcasts against (n_rows,). Classes are their places in `labels`, or
            the labels themselves if these are texts.

        Returns
        -------
        (n_rows,) array, or of the broadcast shape
        """
        return self._at(self._places(y), self._log_probs) + float(np.log(self._sharpness))

    def _places(self, y: ArrayLike) -> ArrayLike:
        """Texts as places among the labels; anything else as it is."""
        if self.labels is None:
            return y
        values = np.asarray(y)
        if values.dtype.kind not in "OU":
            return y
        index_of = {label: number for number, label in enumerate(self.labels)}
        unknown = [one for one in values.ravel().tolist() if one not in index_of]
        if unknown:
            raise ArgumentError("y", f"must be one of {list(self.labels)}", value=repr(unknown[0]))
        return np.array([index_of[one] for one in values.ravel().tolist()]).reshape(values.shape)

    def cdf(self, y: ArrayLike) -> FloatArray:
        """Probability that the target is at most y. Arguments and shape as in `log_prob`."""
        self._need("cdf")
        return self._at(y, lambda grid: self._tails(grid, is_above=False))

    def sf(self, y: ArrayLike) -> FloatArray:
        """Probability that the target exceeds y: survival. Arguments and shape as in `log_prob`.

        Not computed as 1 - cdf(y): small probabilities keep their digits.
        """
        self._need("sf")
        return self._at(y, lambda grid: self._tails(grid, is_above=True))

    def crps(self, y: ArrayLike) -> FloatArray:
        """Continuous ranked probability score: 0 is best, in units of y. Arguments and shape as in `log_prob`.

        The integral of (cdf(x) - 1[x >= y])^2, exact to 1e-8 of itself; for classes that of the class number. It needs
        no mean: it is infinite only where tails fall off no faster than x^-1/2. For a family of your own it is assumed
        to be infinite where the mean is infinite or does not exist.
        """
        self._need("cdf")
        if getattr(self._no_components(), "has_jumps", False):
            raise TypeError(f"crps() is for densities without jumps; of {self._family_name()} estimators have it")
        return self._at(y, self._scores) / self._sharpness

    # ---- of probabilities -----------------------------------------------------------------------------------------

    def quantile(self, p: ArrayLike) -> FloatArray:
        """The smallest y such that the target is at most y with probability p.

        Exact to 1e-10 of the smaller tail, for p as small as 1e-9 and as near to 1; quantiles of one row never cross.

        Parameters
        ----------
        p : float or sequence of float
            In (0, 1).

        Returns
        -------
        (n_rows,) array, or (n_rows, len(p)) for a sequence
        """
        self._need("cdf")
        levels = probabilities("p", p)
        if levels.size == 0:
            return np.empty((len(self), 0))
        out = self._quantiles(levels.ravel())
        return self._sharpened(out[:, 0] if levels.ndim == 0 else out)

    def median(self) -> FloatArray:
        """(n_rows,) `quantile(0.5)`."""
        return self.quantile(0.5)

    def interval(self, coverage: float = 0.9, kind: Literal["equal", "hdi"] = "equal") -> FloatArray:
        """(n_rows, 2) lower and upper end of an interval that holds the target with probability `coverage`.

        Parameters
        ----------
        coverage : float
            In (0, 1).
        kind : {"equal", "hdi"}
            Equal tails, or the shortest interval; of several equally short ones over whole numbers, the lowest.
        """
        self._need("cdf")
        share = float(probabilities("coverage", coverage))
        if kind == "equal":
            return self.quantile([0.5 - 0.5 * share, 0.5 + 0.5 * share])
        if kind != "hdi":
            raise ValueError(f"kind must be 'equal' or 'hdi', but is {kind!r}")
        return self._sharpened(self._shortest(share))

    # ---- draws ----------------------------------------------------------------------------------------------------

    def sample(self, size: int | None = None, *, rng: RandomSource = None) -> FloatArray:
        """Exact draws: a node by its weight, then a target from it.

        Parameters
        ----------
        size : int, optional
            Draws per row.
        rng : numpy.random.Generator, numpy.random.RandomState or int, optional
            Source of randomness, or its seed; by default one that differs from call to call.

        Returns
        -------
        (n_rows,) array, or (n_rows, size)
        """
        self._need("sample")
        n_draws = 1 if size is None else whole_number("size", size, 0)
        draws = self._sharpened(self._draws(n_draws, random_generator(rng)))
        return draws[:, 0] if size is None else draws

    # ---- rows -----------------------------------------------------------------------------------------------------

    def __getitem__(self, rows: Any) -> Self:
        """Return the distributions of some rows; for a row number, a distribution of one row."""
        found = self._at_rows(self._chosen(rows))
        found.labels, found.last_time = self.labels, self.last_time
        return found

    def _chosen(self, rows: Any) -> NDArray[np.int64]:
        if isinstance(rows, slice):
            return np.arange(*rows.indices(len(self)))
        if isinstance(rows, int | np.integer):
            return np.array([range(len(self))[rows]])
        chosen = np.arange(len(self))[np.asarray(rows) if len(rows) else []]
        if chosen.ndim != 1:
            raise IndexError(f"rows must be a slice, row numbers or a mask, but has shape {chosen.shape}")
        return chosen

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise: NumPy would treat a distribution of rows as a nested sequence."""
        raise TypeError(f"a {type(self).__name__} is not an array; call mean(), probs(), quantile(p), sample(), ...")

    def __repr__(self) -> str:
        more = ", ..." if len(self) > ROWS_SHOWN else ""
        about = f"; {self[:ROWS_SHOWN]._summary_line()}{more}" if len(self) else ""
        return f"{type(self).__name__}({len(self)} row{'' if len(self) == 1 else 's'}, {self._family_name()}{about})"

    def _summary_line(self) -> str:
        if hasattr(self._no_components(), "probs"):
            rows = [np.array2string(row, precision=3, threshold=6, edgeitems=2) for row in self.probs()]
            return f"probs: {', '.join(rows)}"
        if self.last_time is not None:
            medians = [time_text(float(median), self.last_time) for median in self.quantile(0.5)]
            return f"median: {', '.join(medians)}"
        rows = [
            f"{short_number(mean, 3)} ± {short_number(std, 3)}"
            for mean, std in zip(self.mean(), self.std(), strict=True)
        ]
        return f"mean ± std: {', '.join(rows)}"

    def _family_name(self) -> str:
        return type(self._family).__name__

    # ---- implementation -------------------------------------------------------------------------------------------

    def _at(self, y: ArrayLike, of_grid: Callable[[FloatArray], FloatArray]) -> FloatArray:
        targets = read_targets(y, len(self))
        return of_grid(self._unsharpened(targets.grid)).reshape(targets.shape)

    def _unsharpened(self, y: FloatArray) -> FloatArray:
        """Map targets (..., n_rows) to the scale before the distributions were narrowed around their means."""
        return y if self._sharpness == 1.0 else self.mean() + (y - self.mean()) * self._sharpness

    def _sharpened(self, y: FloatArray) -> FloatArray:
        """Map targets (n_rows, ...) to the scale after that."""
        if self._sharpness == 1.0:
            return y
        mean = self.mean().reshape(-1, *[1] * (y.ndim - 1))
        return mean + (y - mean) / self._sharpness

    def _need(self, method: str, whose: str = "families that define it") -> None:
        if not hasattr(self._no_components(), method):
            raise TypeError(f"{method}() is for {whose}; {self._family_name()} has none")

    def _no_components(self) -> Any:
        """Components of no rows: they show which methods the family's components have."""
        none = self._family.at(np.empty(0, dtype=np.int64))
        row_data = {name: values[:0] for name, values in self._row_data.items()}
        return none.predictive(np.empty((0, self._family.n_statistics)), **row_data)


def _quantiles(mixture: Mixture, levels: FloatArray) -> FloatArray:
    """(n_units, n_levels), ordered as the levels are."""
    out = np.stack([mixture.quantile(np.full(len(mixture), level)) for level in levels], axis=1)
    order = np.argsort(levels)
    out[:, order] = np.maximum.accumulate(out[:, order], axis=1)  # rounding cannot make them cross either
    return out
