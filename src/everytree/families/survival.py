"""Times with a known baseline, whose hazard is multiplied by unknown factors: survival curves of any shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray, as_column
from everytree.base.errors import ArgumentError
from everytree.families.base import NativeFamily, hyperparameter
from everytree.families.link import RowData
from everytree.families.prior_search import SPLIT_PRIORS, Search, search_for
from everytree.families.traits import CENSORED, TIMES, RowColumn, Seen, Support

ENTRY = RowColumn(
    "entry",
    "a time from 0 on",
    lambda values: (values >= 0.0) & np.isfinite(values),
    "every row is taken to be observed from time 0 on",
)

N_POINTS = 24
"""Points of a cell at which curves are taken for their means."""


@dataclass(frozen=True, eq=False)
class Survival(NativeFamily):
    """Positions in cells of a baseline hazard, which unknown factors multiply; each factor ~ Gamma(shape, rate=shape).

    A position in [k, k + 1) is in cell k, over which the baseline accumulates to `lengths[k]`, evenly; positions
    beyond the last cell go on as that cell does. All cells have one factor, or each half of them has its own, or each
    half of these halves, ...: `time_prior` is the probability that two halves differ, given that they are there. It is
    a meta-tree over time: 0 is proportional hazards, 1 has a factor for each cell, and the evidence is the sum over all
    of them. An estimator maps times to positions; see `everytree.survival.baseline`.

    Statistics: the weight of the events in each cell; the share of each cell that rows were observed in, times weight
    and relative hazard; and the sum over events of weight times log relative hazard.

    Parameters
    ----------
    lengths : (n_cells,) array_like
        1, 2, 4, ... 64 of them; positive.
    shape : float or (n_nodes,) array_like
        How many events the prior of a factor, whose mean is 1, is worth.
    time_prior : float
        From 0 to 1.

    Notes
    -----
    Row data: `censored`, 1 where the event is only known to come after y; `entry`, the position from which on the row
    was observed; `log_hazard`, the logarithm of a known factor of the row's hazard. All are 0 by default.
    """

    kernel: ClassVar[str] = "survival"
    row_data: ClassVar[tuple[str, ...]] = ("censored", "entry", "log_hazard")
    given_columns: ClassVar[tuple[RowColumn, ...]] = (CENSORED, ENTRY)
    size_parameter: ClassVar[tuple[str, int, int] | None] = ("lengths", 1, 64)
    support: ClassVar[Support] = TIMES
    is_scored_by_log: ClassVar[bool] = True
    predicts_curves: ClassVar[bool] = True
    lengths: ArrayLike = (1.0,)
    shape: ArrayLike = 1.0
    time_prior: float = 0.5

    def __post_init__(self) -> None:
        lengths = np.atleast_1d(np.asarray(hyperparameter("lengths", self.lengths)))
        size = len(lengths)
        if lengths.ndim != 1 or size > 64 or size & (size - 1):
            raise ArgumentError("lengths", f"must have 1, 2, 4, ... or 64 entries, but has shape {lengths.shape}")
        if not 0.0 <= self.time_prior <= 1.0:
            raise ArgumentError("time_prior", f"must be from 0 to 1, but is {self.time_prior!r}")
        lengths.flags.writeable = False
        object.__setattr__(self, "lengths", lengths)
        object.__setattr__(self, "shape", hyperparameter("shape", self.shape))
        object.__setattr__(self, "time_prior", float(self.time_prior))
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "never_negative", tuple(range(2 * size)))
        object.__setattr__(self, "mass", slice(0, size))
        self._freeze()

    def _hyperparameters(self) -> FloatArray:
        shape = np.atleast_1d(np.asarray(self.shape))
        alike = np.broadcast_to([self.time_prior, *np.asarray(self.lengths)], (len(shape), 1 + self.size))
        return np.column_stack([shape, alike])

    @property
    def n_intervals(self) -> int:
        """Number of sets of cells that may have one factor."""
        return 2 * self.size - 1

    def pack(self, row_data: Mapping[str, Any]) -> FloatArray | None:
        self.check_row_data(row_data)
        given = {name: values for name, values in row_data.items() if values is not None}
        if not given:
            return None
        columns = {name: as_column(name, values).astype(np.float64) for name, values in given.items()}
        nothing = np.zeros(len(next(iter(columns.values()))))
        return np.column_stack([columns.get(name, nothing) for name in self.row_data])

    @classmethod
    def prior_search(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData, given: Mapping[str, Any], split_prior: Any
    ) -> Search:
        """Search `shape`, the number of events that the prior of a factor is worth."""
        del y, weight, row_data
        return cls.search_with((1.0,), given, split_prior)

    @classmethod
    def search_with(cls, learnt: ArrayLike, given: Mapping[str, Any], split_prior: Any) -> Search:
        """The same, with the lengths of the cells."""
        grids = {"shape": (2.0, 4.0, 8.0, 16.0), "split_prior": SPLIT_PRIORS}
        ladders = {"shape": (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)}
        return search_for(lambda shape: cls(learnt, shape), {"shape": 4.0}, given, split_prior, [grids], ladders)

    @classmethod
    def to_grow_on(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData
    ) -> tuple[FloatArray, FloatArray | None]:
        """Events less those that the hazard of all rows makes one expect until then (martingale residuals)."""
        nothing, of_row = np.zeros(len(y)), np.ones(len(y)) if weight is None else weight
        is_event, entry = 1.0 - row_data.get("censored", nothing), row_data.get("entry", nothing)
        times, place = np.unique(y, return_inverse=True)
        ended = np.append(0.0, np.cumsum(np.bincount(place, of_row))[:-1])
        late = np.bincount(np.searchsorted(times, entry), of_row, len(times) + 1)[: len(times)].cumsum()
        at_risk = np.where((entry > 0.0).any(), late, of_row.sum()) - ended
        steps = np.bincount(place, of_row * is_event) / np.maximum(at_risk, 1e-300)
        hazard = np.append(0.0, np.cumsum(steps))
        before = hazard[np.searchsorted(times, entry, "right") * (entry > 0.0)]
        return is_event - (hazard[place + 1] - before), weight

    def seen(self, statistics: FloatArray) -> Seen:
        return Seen(statistics[:, : self.size].sum(axis=1), "events")

    def additive(self, statistics: FloatArray) -> FloatArray:
        return np.ascontiguousarray(statistics[:, : 2 * self.size])

    def components(self, summary: FloatArray, **row_data: Any) -> SurvivalComponents:
        columns = (np.asarray(row_data.get(name, 0.0), dtype=np.float64) for name in self.row_data)
        return SurvivalComponents(summary, self.size, *columns)

    def posterior_parameters(self, statistics: FloatArray) -> dict[str, FloatArray]:
        """Of each interval of cells, in the order of a heap: shape and rate of its factor, and whether it is whole."""
        intervals = self.summarise(statistics)[:, : 3 * self.n_intervals].reshape(len(statistics), -1, 3)
        return {name: intervals[:, :, k] for k, name in enumerate(("shape", "rate", "whole"))}

    def curves(self, statistics: FloatArray, per_cell: int) -> FloatArray:
        """(n_nodes, n_cells * per_cell) probability to survive evenly spaced points of the cells."""
        n = len(statistics)
        return _kernels.survival_curves(
            size=self.size, per_cell=per_cell, parameters=self.summarise(statistics), start=np.arange(n + 1),
            nodes=np.arange(n), log_weights=np.zeros(n), log_hazard=np.zeros(n), n_jobs=1,
        )  # fmt: skip

    def log_factors(self, statistics: FloatArray) -> FloatArray:
        """(n_nodes, 1) logarithm of the mean of one factor for all cells."""
        parameters = self.posterior_parameters(statistics)
        return np.asarray(np.log(parameters["shape"][:, :1] / parameters["rate"][:, :1]))

    def sample_parameters(self, nodes: NDArray[np.integer], rng: np.random.Generator) -> FloatArray:
        """(n, n_cells) factor of each cell, and then their lengths."""
        n, shape = len(nodes), np.broadcast_to(self.at(nodes).hyper[:, 0], len(nodes))
        factor = np.empty((n, self.n_intervals))
        decided = np.zeros((n, self.n_intervals), dtype=bool)
        for i in range(self.n_intervals):
            inherits = decided[:, (i - 1) // 2] if i else np.zeros(n, dtype=bool)
            own = rng.gamma(shape, 1.0 / shape)
            factor[:, i] = np.where(inherits, factor[:, (i - 1) // 2], own)
            decided[:, i] = inherits | (rng.random(n) >= self.time_prior)
        lengths = np.broadcast_to(np.asarray(self.lengths), (n, self.size))
        return np.concatenate([factor[:, self.size - 1 :], lengths], axis=1)

    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> FloatArray:
        """Draw positions of events; `censored` is accepted and changes nothing."""
        self.check_row_data(row_data)
        n = len(theta)
        entry, log_hazard = (np.broadcast_to(np.asarray(row_data.get(name, 0.0)), n) for name in self.row_data[1:])
        hazard = theta[:, : self.size] * theta[:, self.size :] * np.exp(log_hazard)[:, None]
        return positions_of_hazard(hazard, rng.exponential(1.0, n), entry)


class SurvivalComponents:
    """Positions of events by the posterior of a leaf: mixtures over all ways to divide the cells."""

    is_discrete = False
    has_jumps = True
    lowest = 0.0

    def __init__(
        self, summary: FloatArray, size: int, censored: FloatArray, entry: FloatArray, log_hazard: FloatArray
    ) -> None:
        self._size, n_intervals = size, 2 * size - 1
        intervals = summary[:, : 3 * n_intervals].reshape(len(summary), n_intervals, 3)
        self._shape, self._rate, self._whole = (intervals[:, :, k] for k in range(3))
        self._length = summary[:, 3 * n_intervals :]
        self._censored, self._entry, self._hazard = censored, entry, np.exp(log_hazard)

    def _survives(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Probability to be without event at y, and the density there; given that there was none before the entry."""
        n, size = len(self._length), self._size
        cells = np.arange(size)
        time = np.broadcast_to(y, n)
        until = np.maximum(np.broadcast_to(self._entry, n), np.maximum(time, 0.0))[:, None]
        since = np.broadcast_to(self._entry, n)[:, None]
        ends = np.append(cells[1:].astype(np.float64), np.inf)
        seen = np.maximum(np.minimum(until, ends) - np.maximum(since, cells), 0.0)
        hazard = np.broadcast_to(self._hazard, n)
        accumulated = np.zeros((n, 2 * size - 1))
        accumulated[:, size - 1 :] = seen * self._length * hazard[:, None]
        for i in range(size - 2, -1, -1):
            accumulated[:, i] = accumulated[:, 2 * i + 1] + accumulated[:, 2 * i + 2]
        alone = np.exp(-self._shape * np.log1p(accumulated / self._rate))
        here = np.clip(np.ceil(until[:, 0]) - 1.0, 0.0, size - 1.0).astype(np.int64)
        slope = (hazard * self._length[np.arange(n), here])[:, None]
        is_here = np.zeros((n, 2 * size - 1), dtype=bool)
        is_here[:, size - 1 :] = here[:, None] == cells
        survival = alone.copy()
        densities = np.where(is_here, slope * self._shape / (self._rate + accumulated) * alone, 0.0)
        for i in range(size - 2, -1, -1):
            first, second, whole = 2 * i + 1, 2 * i + 2, self._whole[:, i]
            is_here[:, i] = is_here[:, first] | is_here[:, second]
            one = np.where(is_here[:, i], slope[:, 0] * self._shape[:, i] / (self._rate[:, i] + accumulated[:, i]), 0.0)
            halves = densities[:, first] * survival[:, second] + survival[:, first] * densities[:, second]
            densities[:, i] = whole * one * alone[:, i] + (1.0 - whole) * halves
            survival[:, i] = whole * alone[:, i] + (1.0 - whole) * survival[:, first] * survival[:, second]
        return survival[:, 0], densities[:, 0]

    def sf(self, y: FloatArray) -> FloatArray:
        return np.where(np.isposinf(y), 0.0, self._survives(np.where(np.isposinf(y), 0.0, y))[0])

    def cdf(self, y: FloatArray) -> FloatArray:
        return 1.0 - self.sf(y)

    def log_prob(self, y: FloatArray) -> FloatArray:
        """Log density, and the log probability of a later event where the row is censored."""
        possible = (y >= self._entry) & np.isfinite(y)
        survival, density = self._survives(np.where(possible, y, self._entry))
        censored = np.asarray(self._censored) != 0
        with np.errstate(divide="ignore"):
            logs = np.log(np.where(censored, survival, density))
        return np.where(possible, logs, np.where(censored & (y < self._entry), 0.0, -np.inf))

    def quantile(self, p: FloatArray) -> FloatArray:
        """By bisection, on the scale of log(1 + y)."""
        high = np.full(len(self._length), 1.0)
        while (short := self.sf(np.expm1(high)) > 1.0 - p).any() and high.max() < 600.0:
            high = np.where(short, 2.0 * high, high)
        low = np.zeros(len(high))
        for _ in range(70):
            middle = 0.5 * (low + high)
            beyond = self.sf(np.expm1(middle)) > 1.0 - p
            low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
        return np.asarray(np.expm1(high))

    def mean(self) -> FloatArray:
        """Infinite up to one event in the last cell, the prior included."""
        return self._moments()[0]

    def variance(self) -> FloatArray:
        """Infinite up to two events in the last cell, the prior included."""
        mean, square = self._moments()
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(square), np.maximum(square - mean**2, 0.0), np.inf)

    def _moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean and mean square: integrals of S and of 2 y S, within cells by quadrature and beyond by its formula."""
        n, points, weights = len(self._length), *np.polynomial.legendre.leggauss(N_POINTS)
        entry = np.broadcast_to(self._entry, n)
        mean, square = entry.copy(), entry**2
        for cell in range(self._size - 1):
            start = np.maximum(entry, cell)
            half = 0.5 * np.maximum(cell + 1.0 - start, 0.0)
            for point, weight in zip(points, weights, strict=True):
                place = start + half * (1.0 + point)
                part = weight * half * self._survives(place)[0]
                mean, square = mean + part, square + 2.0 * place * part
        start = np.maximum(entry, self._size - 1.0)
        for share, shape, rate in self._tail(start):
            slope = self._length[:, -1] * self._hazard / rate
            with np.errstate(divide="ignore", invalid="ignore"):
                first = np.where(shape > 1.0, share / (slope * (shape - 1.0)), np.where(share > 0.0, np.inf, 0.0))
                second = np.where(
                    shape > 2.0, share / (slope**2 * (shape - 1.0) * (shape - 2.0)), np.where(share > 0.0, np.inf, 0.0)
                )
            mean, square = mean + first, square + 2.0 * (start * first + second)
        return mean, square

    def _tail(self, start: FloatArray) -> list[tuple[FloatArray, FloatArray, FloatArray]]:
        """The curve beyond a point of the last cell as a sum of share * (1 + hazard beyond / rate)^-shape."""
        n, size, found = len(self._length), self._size, []
        entry, hazard = np.broadcast_to(self._entry, n), np.broadcast_to(self._hazard, n)
        cells = np.arange(size)
        ends = np.append(cells[1:].astype(np.float64), np.inf)
        seen = np.maximum(np.minimum(start[:, None], ends) - np.maximum(entry[:, None], cells), 0.0)
        accumulated = np.zeros((n, 2 * size - 1))
        accumulated[:, size - 1 :] = seen * self._length * hazard[:, None]
        alone = np.ones((n, 2 * size - 1))
        survival = np.ones((n, 2 * size - 1))
        for i in range(2 * size - 2, -1, -1):
            if i < size - 1:
                accumulated[:, i] = accumulated[:, 2 * i + 1] + accumulated[:, 2 * i + 2]
            alone[:, i] = np.exp(-self._shape[:, i] * np.log1p(accumulated[:, i] / self._rate[:, i]))
            survival[:, i] = alone[:, i]
            if i < size - 1:
                halves = survival[:, 2 * i + 1] * survival[:, 2 * i + 2]
                survival[:, i] = self._whole[:, i] * alone[:, i] + (1.0 - self._whole[:, i]) * halves
        before, i = np.ones(n), 0
        while True:
            whole = self._whole[:, i] if i < size - 1 else np.ones(n)
            found.append((before * whole * alone[:, i], self._shape[:, i], self._rate[:, i] + accumulated[:, i]))
            if i >= size - 1:
                return found
            before = before * (1.0 - whole) * survival[:, 2 * i + 1]
            i = 2 * i + 2

    def power_tail(self) -> tuple[FloatArray, FloatArray]:
        """The index of the tail and a size: P(Y > y) falls off as y^-index where y is far larger than that size."""
        parts = self._tail(np.maximum(np.broadcast_to(self._entry, len(self._length)), self._size - 1.0))
        index = np.min([np.where(share > 0.0, shape, np.inf) for share, shape, _ in parts], axis=0)
        slope = self._length[:, -1] * self._hazard
        return index, self._size + np.max([rate for _, _, rate in parts], axis=0) / slope

    def sample(self, rng: np.random.Generator) -> FloatArray:
        n, size = len(self._length), self._size
        factor, settled = np.empty((n, 2 * size - 1)), np.zeros((n, 2 * size - 1), dtype=bool)
        for i in range(2 * size - 1):
            inherits = settled[:, (i - 1) // 2] if i else np.zeros(n, dtype=bool)
            own = rng.gamma(self._shape[:, i], 1.0 / self._rate[:, i])
            factor[:, i] = np.where(inherits, factor[:, (i - 1) // 2], own)
            settled[:, i] = inherits | (rng.random(n) < self._whole[:, i])
        hazard = factor[:, size - 1 :] * self._length * np.broadcast_to(self._hazard, n)[:, None]
        return positions_of_hazard(hazard, rng.exponential(1.0, n), np.broadcast_to(self._entry, n))


def positions_of_hazard(hazard: FloatArray, wanted: FloatArray, entry: FloatArray) -> FloatArray:
    """(n,) where the hazard from the entry on has accumulated to the wanted amount, given that of each cell."""
    size = hazard.shape[1]
    cells = np.arange(size)
    until = np.maximum(cells + 1.0 - np.maximum(entry[:, None], cells), 0.0)
    upto = np.cumsum(hazard * until, axis=1)
    cell = np.minimum((upto < wanted[:, None]).sum(axis=1), size - 1)
    rows = np.arange(len(hazard))
    before = np.where(cell > 0, upto[rows, np.maximum(cell - 1, 0)], 0.0)
    start = np.maximum(entry, cell)
    return np.asarray(start + (wanted - before) / np.maximum(hazard[rows, cell], 1e-300))
