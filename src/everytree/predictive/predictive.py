"""What predictions return: for each row, a mixture over the nodes on its path.

A row that ends in terminal t is, a posteriori, in the leaf s on its path with probability prod(split_prob of the nodes
above s) * (1 - split_prob[s]). Rows with the same path share all of that, so whatever does not depend on the row itself
is computed once a path and looked up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.arrays import FloatArray, as_column
from everytree.base.checks import whole_number
from everytree.families.base import Family
from everytree.predictive.intervals import shortest_interval
from everytree.predictive.mixture import Mixture

ENTRIES_AT_ONCE = 1 << 18
"""How many (row, node) pairs are worked on at a time: bounds memory, whatever the number of rows."""


@dataclass(frozen=True)
class Paths:
    """Nodes and weights, path by path, and the path of each row.

    Attributes
    ----------
    start : (n_paths + 1,) int64
        Path p owns entries start[p] .. start[p + 1] of the two arrays below.
    nodes : (n_entries,) int64
        Rows of the summary of nodes that goes with the paths.
    log_weights : (n_entries,) float64
        The weights sum to 1 over each path.
    of_row : (n_rows,) int32
    """

    start: NDArray[np.int64]
    nodes: NDArray[np.int64]
    log_weights: FloatArray
    of_row: NDArray[np.int32]


class VarianceParts(NamedTuple):
    """The variance of each row's target, by where it comes from.

    Attributes
    ----------
    noise : (n_rows,) array
        What would be left if the tree and the parameters of its leaves were known.
    parameters : (n_rows,) array
        What not knowing the parameters adds.
    trees : (n_rows,) array
        What not knowing the tree adds.
    """

    noise: FloatArray
    parameters: FloatArray
    trees: FloatArray


class Predictive:
    """One predictive distribution for each row, averaged over every pruned tree.

    Made by `Posterior.predictive` and `GrowingPosterior.predictive`. It holds what it needs: later updates of the
    posterior do not change it. A family of your own supports what its components do: `mean`, `variance` and `log_prob`
    at least, and the rest where they have `cdf`, `sf`, `quantile`, `sample`, `parameter_share` and `is_discrete`;
    `mode` makes the shortest interval of large counts faster.
    """

    def __init__(self, family: Family, summary: FloatArray, paths: Paths, row_data: Mapping[str, NDArray[Any]]) -> None:
        self._family = family  # for each row of the summary
        self._summary = summary
        self._paths = paths
        self._row_data = row_data

    def __len__(self) -> int:
        return len(self._paths.of_row)

    # ---- moments --------------------------------------------------------------------------------------------------

    def mean(self) -> FloatArray:
        """(n_rows,) mean of y; of the class number for classes."""
        return self._each(Mixture.mean)

    def variance(self) -> FloatArray:
        """(n_rows,) variance of y: the mean of the nodes' variances plus the variance of their means."""
        return self._each(Mixture.variance)

    def std(self) -> FloatArray:
        """(n_rows,) standard deviation of y."""
        return np.sqrt(self.variance())

    def variance_parts(self) -> VarianceParts:
        """Where the variance comes from: noise, parameters, trees. The parts add up to `variance()`."""
        self._need("parameter_share")
        return VarianceParts(*self._each(Mixture.variance_parts).T)

    def probs(self) -> FloatArray:
        """(n_rows, n_classes) probability of each class."""
        self._need("probs", "families of classes")
        return self._each(lambda mixture: mixture.average(mixture.components.probs()))

    # ---- probabilities --------------------------------------------------------------------------------------------

    def log_prob(self, y: ArrayLike) -> FloatArray:
        """(n_rows,) log probability or density of one target a row; minus infinity where it is impossible."""
        return self._each(Mixture.log_prob, self._targets(y))

    def cdf(self, y: ArrayLike) -> FloatArray:
        """(n_rows,) probability that the target is at most y, one y a row."""
        self._need("cdf")
        return self._each(Mixture.cdf, self._targets(y))

    def sf(self, y: ArrayLike) -> FloatArray:
        """(n_rows,) probability that the target exceeds y, one y a row; keeps its digits where it is small."""
        self._need("sf")
        return self._each(Mixture.sf, self._targets(y))

    def quantile(self, p: ArrayLike) -> FloatArray:
        """The smallest y that the target stays at or below with probability p.

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
        columns = [self._each(lambda mixture, q=q: mixture.quantile(np.full(len(mixture), q))) for q in levels.ravel()]
        if levels.ndim == 0:
            return columns[0]
        out = np.stack(columns, axis=1) if columns else np.empty((len(self), 0))
        order = np.argsort(levels)
        out[:, order] = np.maximum.accumulate(out[:, order], axis=1)  # rounding of the last digit never crosses either
        return out

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
        return self._each(lambda mixture: shortest_interval(mixture, share))

    def entropy(self) -> FloatArray:
        """(n_rows,) entropy in nats, of discrete families."""
        if not getattr(self._some_components(), "is_discrete", False):
            raise TypeError(f"entropy() is for discrete families, not for {type(self._family).__name__}")
        return self._each(Mixture.entropy)

    def crps(self, y: ArrayLike) -> FloatArray:
        """(n_rows,) continuous ranked probability score of one target a row: 0 is best, in units of y.

        The integral of (cdf(x) - 1[x >= y])^2, exact to 1e-8 of itself; for classes that of the class number. It needs
        no mean: it is infinite only where tails fall off no faster than x^-1/2. Of a family of your own it is taken for
        infinite where the mean is infinite or does not exist.
        """
        self._need("cdf")
        targets = self._targets(y)
        if self._row_data or len(self) < len(self._paths.start):  # nothing to share
            return self._each(Mixture.crps, targets)
        if hasattr(self._some_components(), "extra_distance"):
            return self._each(Mixture.crps_from, targets, *self._each(Mixture.centre_score).T)
        rows, of_row = _distinct(self._paths.of_row, targets)
        paths = replace(self._paths, of_row=self._paths.of_row[rows])
        return Predictive(self._family, self._summary, paths, {})._each(Mixture.crps, targets[rows])[of_row]

    def sample(self, size: int | None = None, *, rng: np.random.Generator | int) -> FloatArray:
        """Exact draws: a node by its weight, then a target from it.

        Parameters
        ----------
        size : int, optional
            Draws a row.
        rng : numpy.random.Generator or int
            Source of randomness, or its seed.

        Returns
        -------
        (n_rows,) array, or (n_rows, size)
        """
        self._need("sample")
        rng = np.random.default_rng(rng)
        n_draws = 1 if size is None else whole_number("size", size, 0)
        columns = [self._one_draw(rng) for _ in range(n_draws)]
        if size is None:
            return columns[0]
        return np.stack(columns, axis=1) if columns else np.empty((len(self), 0))

    def _one_draw(self, rng: np.random.Generator) -> FloatArray:
        paths = self._paths
        if len(self) == 0:
            return np.empty(0)
        weights = np.exp(paths.log_weights)
        upto = np.cumsum(weights)
        before = (upto - weights)[paths.start[:-1]][paths.of_row]
        total = np.add.reduceat(weights, paths.start[:-1])[paths.of_row]
        entries = np.searchsorted(upto, before + rng.random(len(self)) * total, side="right")
        entries = np.clip(entries, paths.start[paths.of_row], paths.start[paths.of_row + 1] - 1)
        out = np.empty(len(self))
        for first in range(0, len(self), ENTRIES_AT_ONCE):
            rows = np.arange(first, min(first + ENTRIES_AT_ONCE, len(self)))
            out[rows] = self._components(entries[rows], rows).sample(rng)
        return out

    # ---- how it is computed ---------------------------------------------------------------------------------------

    def _targets(self, y: ArrayLike) -> FloatArray:
        return as_targets(y, len(self))

    def _some_components(self) -> Any:
        nothing = np.empty(0, dtype=np.int64)
        return self._components(nothing, nothing)

    def _need(self, method: str, whose: str = "families that define it") -> None:
        if not hasattr(self._some_components(), method):
            raise TypeError(f"{method}() is for {whose}; {type(self._family).__name__} has none")

    def _components(self, entries: NDArray[np.int64], rows: NDArray[np.int64]) -> Any:
        row_data = {name: values[rows] for name, values in self._row_data.items()}
        nodes = self._paths.nodes[entries]
        return self._family.at(nodes).components(self._summary[nodes], **row_data)

    def _each(self, of: Callable[..., FloatArray], *columns: FloatArray) -> FloatArray:
        """`of` the mixture of each row and its entries of the columns: once a path where the row itself has no say."""
        of_path = not columns and not self._row_data
        n_units = len(self._paths.start) - 1 if of_path else len(self)
        path_of_unit = np.arange(n_units) if of_path else self._paths.of_row
        blocks = [
            of(self._mixture(units, path_of_unit), *(c[units] for c in columns)) for units in self._blocks(path_of_unit)
        ]
        values = np.concatenate(blocks)
        return values[self._paths.of_row] if of_path else values

    def _blocks(self, path_of_unit: NDArray[Any]) -> Iterator[NDArray[np.int64]]:
        """Runs of units with a bounded number of entries; one empty run where there are no units."""
        block = np.cumsum(np.diff(self._paths.start)[path_of_unit]) // ENTRIES_AT_ONCE
        edges = np.flatnonzero(np.diff(block)) + 1
        return (np.arange(first, last) for first, last in pairwise([0, *edges.tolist(), len(path_of_unit)]))

    def _mixture(self, units: NDArray[np.int64], path_of_unit: NDArray[Any]) -> Mixture:
        first = self._paths.start[path_of_unit[units]]
        lengths = self._paths.start[path_of_unit[units] + 1] - first
        starts = np.cumsum(lengths) - lengths
        entries = np.repeat(first - starts, lengths) + np.arange(lengths.sum())
        components = self._components(entries, np.repeat(units, lengths))
        return Mixture(
            components,
            self._paths.log_weights[entries],
            starts,
            getattr(components, "is_discrete", False),
            lambda some: self._mixture(units[some], path_of_unit),
        )


def _distinct(*columns: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """One place of each combination of values, and which combination is in each place."""
    order = np.lexsort(columns)
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = np.logical_or.reduce([np.diff(column[order]) != 0 for column in columns])
    which = np.empty(len(order), dtype=np.int64)
    which[order] = np.cumsum(is_new) - 1
    return order[is_new], which


def as_targets(y: ArrayLike, n_rows: int) -> FloatArray:
    """One number a row."""
    targets = as_column("y", y).astype(np.float64)
    if len(targets) != n_rows:
        raise ValueError(f"y has {len(targets)} entries, but there are {n_rows} rows")
    return targets


def probabilities(name: str, values: ArrayLike) -> FloatArray:
    """One or several numbers strictly between 0 and 1."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be a number in (0, 1) or several, but is {values!r}") from None
    if array.ndim > 1 or not ((array > 0.0) & (array < 1.0)).all():
        raise ValueError(f"{name} must be in (0, 1), but is {values!r}")
    return array
