"""The base classes of families: a likelihood with a conjugate prior, summarised by additive statistics.

A family of your own is a subclass of `Family` with `n_statistics` and three vectorised methods: `statistics`,
`log_evidence` and `predictive`. The built-in ones are `NativeFamily`s: the same three methods, computed in C++.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray, as_column, as_table, check_lengths
from everytree.families.link import Link, RowData
from everytree.families.traits import REAL_LINE, Components, RowColumn, Seen, Support

if TYPE_CHECKING:
    from everytree.families.prior_search import Search


class Family(ABC):
    """A likelihood p(y | theta) with a prior p(theta) for which both can be integrated out.

    Attributes
    ----------
    n_statistics : int
        Number of statistics that summarise a set of rows. They must be additive: the statistics of two sets of rows
        together are the sum of theirs, and those of no rows are all zeros.
    row_data : tuple of str
        Names of the data of a row besides its target, given to `update` and `predictive` by keyword.
    has_classes : bool
        Whether targets are classes 0, 1, ..., and predictives have `probs`.
    is_sharpened_by_power : bool
        Whether averages of trees are sharpened by raising probabilities, of classes or cells, to a power; others are
        narrowed about their mean, where every number is a possible target.
    support : Support
        The possible targets.
    """

    n_statistics: int
    row_data: ClassVar[tuple[str, ...]] = ()
    has_classes: ClassVar[bool] = False
    is_sharpened_by_power: ClassVar[bool] = False
    support: ClassVar[Support] = REAL_LINE

    @abstractmethod
    def statistics(self, y: NDArray[Any], weight: FloatArray, **row_data: Any) -> FloatArray:
        """Each row's contribution, times its weight. Raise ValueError for targets outside the support.

        Returns
        -------
        (n_rows, n_statistics) float64
        """

    @abstractmethod
    def log_evidence(self, statistics: FloatArray) -> FloatArray:
        """Log of the integral of p(rows | theta) p(theta) for each row of statistics; 0 for no rows.

        Returns
        -------
        (n,) float64
        """

    @abstractmethod
    def predictive(self, statistics: FloatArray, **row_data: Any) -> Components:
        """Distribution of the next target, for each row of statistics.

        Returns an object with `mean()`, `variance()` and `log_prob(y)`, each of shape (n,); families of classes also
        have `probs()` of shape (n, n_classes).
        """

    # Methods with an implementation for every family; the built-in ones have better ones.

    def at(self, nodes: NDArray[np.integer]) -> Self:
        """Return this family for the given nodes: a different one only if the prior differs from node to node."""
        del nodes
        return self

    def check_nodes(self, n_nodes: int) -> None:
        """Raise when the prior is given per node, but not for this number of nodes."""
        del n_nodes

    def seen(self, statistics: FloatArray) -> Seen | None:
        """Amount of data behind each row of statistics; None where the statistics do not tell."""
        del statistics
        return None

    @property
    def has_one_prior(self) -> bool:
        """Whether all nodes have the same prior, as Corollary 2 requires."""
        return True

    def summarise(self, statistics: FloatArray) -> FloatArray:
        """Return what the predictive needs of the statistics, computed once for any number of rows."""
        return statistics

    def components(self, summary: FloatArray, **row_data: Any) -> Components:
        """The predictive from a summary."""
        return self.predictive(summary, **row_data)

    def check_row_data(self, row_data: Mapping[str, Any]) -> None:
        """Raise for names that are not row data of this family."""
        for name in row_data:
            if name not in self.row_data:
                known = ", ".join(self.row_data) or "none"
                raise TypeError(f"{type(self).__name__} takes no {name!r}; the row data it knows: {known}")

    def pack(self, row_data: Mapping[str, Any]) -> Any:
        """Row data as the kernel of this family takes it."""
        self.check_row_data(row_data)
        return dict(row_data)

    def pack_rows(self, row_data: Mapping[str, Any], X: ArrayLike) -> Any:
        """Like `pack`, with one entry for each row of X."""
        check_lengths(len(as_table(X)), row_data)
        return self.pack(row_data)

    def row_columns(self, row_data: Mapping[str, Any], n_rows: int) -> dict[str, NDArray[Any]]:
        """Return the row data of rows to predict: checked like those to learn from, without those not given."""
        self.check_row_data(row_data)
        check_lengths(n_rows, row_data)
        return {name: np.asarray(values) for name, values in row_data.items() if values is not None}

    def __eq__(self, other: object) -> bool:
        """Same class and same attributes: shards that were fitted elsewhere can be merged."""
        if not isinstance(other, Family):
            return NotImplemented
        mine, theirs = vars(self), vars(other)
        return (
            type(self) is type(other)
            and mine.keys() == theirs.keys()
            and all(np.array_equal(mine[name], theirs[name]) for name in mine)
        )

    def __hash__(self) -> int:
        return hash(type(self))


class NativeFamily(Family):
    """A family whose statistics and evidence are computed in C++.

    Hyperparameters are scalars, or have one value for each node along their first axis.
    """

    kernel: ClassVar[str]  # its name in C++, and for families of numbers the value of an estimator's parameter `family`
    # names of the hyperparameters of a family that has one number of each in a node, in the order of the kernel
    hyperparameters: ClassVar[tuple[str, ...]] = ()
    default_row_data: ClassVar[float] = 0.0  # the value used where the row data are not given
    # the row data that users give to estimators; `inputs` are read from the table
    given_columns: ClassVar[tuple[RowColumn, ...]] = ()
    # whether targets vary as much as their mean, so that R2 says little: `score` is then the mean log score
    is_scored_by_log: ClassVar[bool] = False
    # the parameter that sets how many statistics there are, and its smallest and largest value or number of entries
    size_parameter: ClassVar[tuple[str, int, int] | None] = None
    # indices of the statistics that are sums of nonnegative numbers; None where all of them are
    never_negative: ClassVar[tuple[int, ...] | None] = None
    # the statistics that add up to a weight of the node's rows; None where leaves are not constants
    mass: ClassVar[slice | None] = slice(0, 1)
    is_in_browser: ClassVar[bool] = False  # whether the script of the report can evaluate this family
    # whether trees are grown on numbers that are the same bits in any unit of the target
    grows_standardised: ClassVar[bool] = False
    # whether targets of all leaves spread alike, by a parameter `noise` of `prior_search` that is 1 for a table whose
    # columns do not matter
    has_one_noise: ClassVar[bool] = False
    # whether predictions are curves over time about a baseline that is fitted to a table before trees are grown
    predicts_curves: ClassVar[bool] = False
    is_tried: ClassVar[bool] = False  # whether `family="auto"` tries it, where its support holds all targets
    link: ClassVar[Link | None] = None  # how targets lie about boosted centres; None where the family cannot be boosted
    size: int = 0

    # ---- for estimators of numbers ---------------------------------------------------------------------------------

    @classmethod
    def prior_search(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData, given: Mapping[str, Any], split_prior: Any
    ) -> Search:
        """Return the search for conjugate priors centred on the data; `given` fixes some of their parameters."""
        raise TypeError(f"{cls.__name__} is not a family of numbers")

    def warn_about(self, statistics: FloatArray) -> None:
        """Warn where the statistics of leaves favour parameters that this family does not have."""
        del statistics

    @classmethod
    def is_candidate(cls, y: FloatArray, row_names: Iterable[str]) -> bool:
        """Whether `family="auto"` tries it for these targets, with these row data."""
        return cls.is_tried and set(row_names) <= set(cls.row_data) and bool(cls.support.holds(y).all())

    @classmethod
    def makes(cls, family: object) -> bool:
        """Whether a leaf model is of this family."""
        return isinstance(family, cls)

    @classmethod
    def learn(cls, y: FloatArray, weight: FloatArray | None) -> Any:
        """Return what leaves of all rows have in common and is learnt once, of the first rows; None if nothing is."""
        del y, weight
        return None

    @classmethod
    def search_with(cls, learnt: Any, given: Mapping[str, Any], split_prior: Any) -> Search:
        """Return the search for priors, given what was learnt."""
        raise TypeError(f"{cls.__name__} learns nothing beforehand")

    @classmethod
    def to_grow_on(
        cls, y: FloatArray, weight: FloatArray | None, row_data: RowData
    ) -> tuple[FloatArray, FloatArray | None]:
        """Targets and weights for trees that minimise squared error, such that they separate leaves of this family."""
        del row_data
        return y, weight

    # ---- for pictures and files ------------------------------------------------------------------------------------

    def seen(self, statistics: FloatArray) -> Seen:
        return Seen(statistics[:, 0], "rows")

    def additive(self, statistics: FloatArray) -> FloatArray:
        """Numbers that add up over disjoint rows and, with the prior, determine the leaf's parameters."""
        return np.ascontiguousarray(statistics[:, : self.hyper.shape[1]])

    def __post_init__(self) -> None:
        for name in self.hyperparameters:
            is_mean = name == "mean"
            object.__setattr__(self, name, hyperparameter(name, getattr(self, name), positive=not is_mean))
        self._freeze()

    def _hyperparameters(self) -> FloatArray:
        """(1 or n_nodes, n_hyper), in the order of the kernel."""
        return as_columns(**{name: getattr(self, name) for name in self.hyperparameters})

    def _freeze(self) -> None:
        """Derive everything from the checked hyperparameters; called once, at the end of construction."""
        hyper = np.ascontiguousarray(self._hyperparameters(), dtype=np.float64)
        n_statistics, n_hyper = _kernels.family_shape(self.kernel, self.size)
        if hyper.shape[1] != n_hyper:
            raise ValueError(f"{type(self).__name__}: {hyper.shape[1]} hyperparameters, the kernel takes {n_hyper}")
        hyper.flags.writeable = False
        object.__setattr__(self, "n_statistics", n_statistics)
        object.__setattr__(self, "hyper", hyper)
        object.__setattr__(self, "kernel_prior", _kernels.prepare_prior(self.kernel, self.size, hyper))

    hyper: FloatArray
    kernel_prior: FloatArray

    # ---- the three methods ----------------------------------------------------------------------------------------

    def statistics(self, y: ArrayLike, weight: ArrayLike | None = None, **row_data: Any) -> FloatArray:
        column = as_column("y", y)
        weights = None if weight is None else as_column("sample_weight", weight)
        rows = _kernels.row_statistics(
            self.kernel, self.size, y=column, weight=weights, extra=self.pack(row_data),
            constant=self.default_row_data, n_rows=len(column),
        )  # fmt: skip
        assert rows is not None, "as_column promises arrays that the kernels read"
        return rows

    def log_evidence(self, statistics: FloatArray) -> FloatArray:
        values: FloatArray = _kernels.log_evidence(
            self.kernel, self.size, self.checked_statistics(statistics), self.kernel_prior
        )
        return values[:, 0]

    def predictive(self, statistics: FloatArray, **row_data: Any) -> Components:
        return self.components(self.summarise(statistics), **row_data)

    def summarise(self, statistics: FloatArray) -> FloatArray:
        """Posterior hyperparameters, as the kernel packs them."""
        rows = self.checked_statistics(statistics)
        summary: FloatArray = _kernels.posterior_parameters(self.kernel, self.size, rows, self.kernel_prior)
        return summary

    def checked_statistics(self, statistics: ArrayLike) -> FloatArray:
        """Check statistics for the kernels: (n, n_statistics), n the number of nodes if they have their own priors."""
        rows = np.ascontiguousarray(statistics, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_statistics:
            raise ValueError(f"statistics must have shape (n, {self.n_statistics}), but has {rows.shape}")
        if not self.has_one_prior and len(rows) != len(self.hyper):
            raise ValueError(f"statistics has {len(rows)} rows, but there are priors for {len(self.hyper)} nodes")
        return rows

    @abstractmethod
    def components(self, summary: FloatArray, **row_data: Any) -> Components: ...

    def posterior_parameters(self, statistics: FloatArray) -> dict[str, FloatArray]:
        """Posterior hyperparameters by the names of the prior ones, for each row of statistics."""
        return dict(zip(self.hyperparameters, self.summarise(statistics).T, strict=False))

    # ---- sampling -------------------------------------------------------------------------------------------------

    @abstractmethod
    def sample_parameters(self, nodes: NDArray[np.integer], rng: np.random.Generator) -> FloatArray:
        """Draw theta of each node from its prior."""

    @abstractmethod
    def sample_targets(self, theta: FloatArray, rng: np.random.Generator, **row_data: Any) -> NDArray[Any]:
        """Draw one y for each row of theta."""

    # ---- priors per node ------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The value of the parameter `family` by which regressors have such leaves."""
        return type(self).kernel

    @property
    def has_one_prior(self) -> bool:
        return len(self.hyper) == 1

    def check_nodes(self, n_nodes: int) -> None:
        if not self.has_one_prior and len(self.hyper) != n_nodes:
            raise ValueError(
                f"{type(self).__name__}: hyperparameters for {len(self.hyper)} nodes, but the tree has {n_nodes}"
            )

    def at(self, nodes: NDArray[np.integer]) -> Self:
        if self.has_one_prior:
            return self
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        object.__setattr__(other, "hyper", self.hyper[nodes])
        object.__setattr__(other, "kernel_prior", self.kernel_prior[nodes])
        return other

    def row_columns(self, row_data: Mapping[str, Any], n_rows: int) -> dict[str, NDArray[Any]]:
        columns = super().row_columns(row_data, n_rows)
        if columns or self.row_data:
            # Of every family 1 is a possible target, and where there is an entry, so is that.
            entry = np.asarray(columns.get("entry", np.zeros(n_rows)), dtype=np.float64)
            self.statistics(np.where(entry > 0.0, entry, 1.0), **columns)
        return {name: values.astype(np.float64) for name, values in columns.items()}

    def pack(self, row_data: Mapping[str, Any]) -> FloatArray | None:
        self.check_row_data(row_data)
        given = [row_data[name] for name in self.row_data if row_data.get(name) is not None]
        if not given:
            return None
        return as_column(self.row_data[0], given[0]).astype(np.float64)[:, None]

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented if not isinstance(other, Family) else False
        assert isinstance(other, NativeFamily)
        return self.size == other.size and np.array_equal(self.hyper, other.hyper)

    def __hash__(self) -> int:
        return hash((self.kernel, self.size, (self.hyper + 0.0).tobytes()))  # -0.0 equals 0.0

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "kernel_prior"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
        object.__setattr__(self, "kernel_prior", _kernels.prepare_prior(self.kernel, self.size, self.hyper))


def hyperparameter(name: str, value: ArrayLike, *, positive: bool = True) -> float | FloatArray:
    """A checked scalar, or a read-only array with the nodes along its first axis."""
    try:
        array = np.array(value)
    except ValueError:
        array = np.array("")
    if array.dtype.kind not in "iuf":
        raise TypeError(f"{name} must be a number or an array of numbers, but is {value!r}")
    array = array.astype(np.float64)
    # Beyond these, evidences overflow; no prior of use comes near them.
    wrong = ~(np.abs(array) <= 1e60) | (array < 1e-60 if positive else False)
    if np.any(wrong) or array.size == 0:
        must = "positive and finite, from 1e-60 to 1e60" if positive else "finite, at most 1e60 in size"
        if array.ndim == 0 or array.size == 0:
            raise ValueError(f"{name} must be {must}, but is {value!r}")
        index = tuple(int(i) for i in np.argwhere(wrong)[0])
        at = ", ".join(map(str, index))
        raise ValueError(f"{name}[{at}] must be {must}, but is {array[index]}")
    if array.ndim == 0:
        return float(array)
    array.flags.writeable = False
    return array


def as_columns(**values: float | FloatArray) -> FloatArray:
    """Put scalars and (n_nodes,) arrays side by side as (1 or n_nodes, n)."""
    for name, value in values.items():
        if np.ndim(value) > 1:
            raise ValueError(f"{name} must be a number or one for each node, but has shape {np.shape(value)}")
    sizes = {name: np.size(value) for name, value in values.items() if np.ndim(value)}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"hyperparameters disagree about the number of nodes: {sizes}")
    return np.stack(np.broadcast_arrays(*(np.atleast_1d(value) for value in values.values())), axis=1)
