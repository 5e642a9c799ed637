"""Targets of a table: classes, or numbers.

A target is made from an estimator's parameters. Learning from the first rows returns a new target: nothing is changed
in place.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray, as_column, as_labels, such_as
from everytree.base.errors import ArgumentError
from everytree.families.base import NativeFamily
from everytree.families.categorical import Bernoulli, Categorical, class_search
from everytree.families.prior_search import Search
from everytree.families.registry import NUMBER_FAMILIES, families_with
from everytree.families.traits import RowColumn
from everytree.fitting.grow_on import centred_and_scaled, standardised
from everytree.posterior.rows import Rows
from everytree.structure.grow_on import Classes, Numbers
from everytree.tables.schema import Schema

Labels = NDArray[Any] | None
"""Class labels that occur; None where targets are numbers."""


class GrowthTarget(ABC):
    """What tables are coded by and trees are grown on: one target, or several together."""

    owner: str

    @abstractmethod
    def order_by(self, y: NDArray[Any]) -> FloatArray:
        """Return the numbers by which the categories of a column are ordered."""

    @abstractmethod
    def grow_on(self, rows: Rows, criterion: str | None = None) -> Classes | Numbers:
        """Return the data that trees are grown on, by a criterion other than the evidence."""

    @abstractmethod
    def counted_by(self, rows: Rows) -> NativeFamily | None:
        """Return the leaf model by which rows are counted while trees are grown; None where they are counted later."""

    @abstractmethod
    def learn_inputs(self, schema: Schema, X: Any, used: NDArray[np.bool_] | None) -> Self:
        """Return the target with the inputs of linear leaves learnt from the table; `used` are the rows with weight."""

    @abstractmethod
    def columns(self, schema: Schema, X: Any, n_rows: int, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Return all row data of the family: those given, and inputs from the table."""


class Target(GrowthTarget):
    """A type of target, with the priors that are to be tried or are given."""

    # ---- reading ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, y: Any) -> NDArray[Any]:
        """Return the target of each row, checked one by one."""

    @abstractmethod
    def learn(self, labels: NDArray[Any], weight: FloatArray | None) -> tuple[Self, NDArray[Any]]:
        """Return the target as learnt from these first rows, and their targets as the family takes them."""

    @abstractmethod
    def numbers(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return the targets of any rows as the family takes them."""

    @property
    @abstractmethod
    def given_columns(self) -> Mapping[str, RowColumn]:
        """Row data that users may give, by name."""

    def check_names(self, names: Iterable[str]) -> None:
        """Raise for names that are not row data of any family of this estimator."""
        known = self.known_names
        for name in sorted(set(names) - set(known)):
            said = " or ".join(map(repr, known)) or "nothing besides features, target and weight"
            raise TypeError(f"{self.owner} takes no {name!r}; rows may have {said}")

    @property
    @abstractmethod
    def known_names(self) -> Mapping[str, Sequence[str]]:
        """Names of all row data, and the family that each belongs to."""

    @abstractmethod
    def row_data(self, n_rows: int, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Return the given row data, checked."""

    def learn_inputs(self, schema: Schema, X: Any, used: NDArray[np.bool_] | None) -> Self:
        del schema, X, used
        return self

    def columns(self, schema: Schema, X: Any, n_rows: int, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        del schema, X
        return self.row_data(n_rows, given)

    # ---- fitting ----------------------------------------------------------------------------------------------------

    def warn_about(self, rows: Rows) -> None:
        """Warn about rows from which little can be learnt."""

    def counted_by(self, rows: Rows) -> NativeFamily:
        family: NativeFamily = self.search(rows).first_family
        return family

    def evidence_on(self, rows: Rows) -> tuple[Rows, NativeFamily]:
        """Return the rows and the leaf model by whose evidence trees are grown."""
        return rows, self.counted_by(rows)

    @abstractmethod
    def search(self, rows: Rows) -> Search:
        """Return the priors to try."""

    @abstractmethod
    def fixed_family(self, rows: Rows) -> NativeFamily:
        """Return the leaf model where no priors are tried."""

    @abstractmethod
    def check_same(self, other: Self) -> None:
        """Raise unless targets mean the same in both."""

    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes by the names they have in estimators."""

    # ---- batches ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def look(self, column: Any) -> Labels:
        """Return what must be known of the targets of all rows before the first one is counted."""

    @abstractmethod
    def declare(self, labels: Labels) -> Self:
        """Return the target with these classes known too."""


@dataclass(frozen=True, eq=False)
class ClassTarget(Target):
    """Class labels.

    Attributes
    ----------
    owner : str
        The estimator's name, for errors.
    alpha, split_prior
        As in the estimators.
    classes : (n_classes,) array or None
        All classes in ascending order, if they are known.
    """

    owner: str
    alpha: Any
    split_prior: Any
    classes: NDArray[Any] | None = None

    @property
    def known_classes(self) -> NDArray[Any]:
        assert self.classes is not None
        return self.classes

    @property
    def n_leaf_classes(self) -> int:
        """Number of classes of the leaf model: at least two."""
        return max(len(self.known_classes), 2)

    def read(self, y: Any) -> NDArray[Any]:
        from sklearn.utils.multiclass import check_classification_targets  # imported late: it imports pandas
        from sklearn.utils.validation import column_or_1d

        labels = column_or_1d(_as_array(y), warn=True)
        _refuse_missing(labels)
        check_classification_targets(labels)
        return np.asarray(labels)

    def learn(self, labels: NDArray[Any], weight: FloatArray | None) -> tuple[Self, NDArray[Any]]:
        """Learn the classes: those of rows with weight, and those that were declared."""
        if self.classes is not None:
            return self, self.numbers(labels)
        every, y = replace(self, classes=_distinct(labels)), None
        y = every.numbers(labels)
        if weight is None:
            return every, y
        present = np.bincount(y[weight > 0.0], minlength=len(every.known_classes)) > 0
        if present.all():
            return every, y
        place = np.maximum(np.cumsum(present) - 1, 0)  # any class does for rows of weight 0
        return replace(self, classes=every.known_classes[present]), place[y]

    def numbers(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return the index of each label among the classes."""
        classes = self.known_classes
        if (labels.dtype.kind in "OUS") != (classes.dtype.kind in "OUS"):
            raise ArgumentError("y", f"has {such_as(labels)}, but the classes are {classes.tolist()}")
        numbers = np.searchsorted(classes, labels)
        known = classes[np.minimum(numbers, len(classes) - 1)] == labels
        if not known.all():
            row = int(np.argmin(known))
            of_them = f"the classes are {classes.tolist()}"
            raise ArgumentError("y", of_them, row=row, value=repr(labels.tolist()[row]))
        return np.asarray(numbers)

    @property
    def given_columns(self) -> Mapping[str, RowColumn]:
        return {}

    @property
    def known_names(self) -> Mapping[str, Sequence[str]]:
        return {}

    def row_data(self, n_rows: int, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        self.check_names(name for name, values in given.items() if values is not None)
        return {}

    def order_by(self, y: NDArray[Any]) -> FloatArray:
        n_classes = len(self.known_classes)
        return np.eye(n_classes)[y] if n_classes > 2 else y.astype(np.float64)

    def grow_on(self, rows: Rows, criterion: str | None = None) -> Classes:
        return Classes(rows.y, rows.weight, criterion or "gini")

    def search(self, rows: Rows) -> Search:
        return class_search(rows.y, rows.weight, self.n_leaf_classes, self.alpha, self.split_prior)

    def fixed_family(self, rows: Rows) -> NativeFamily:
        n = self.n_leaf_classes
        return Bernoulli(self.alpha, self.alpha) if n == 2 else Categorical(n, self.alpha)

    def check_same(self, other: Self) -> None:
        if not np.array_equal(self.known_classes, other.known_classes):
            raise ValueError(
                f"other has classes {other.known_classes.tolist()}, this one {self.known_classes.tolist()}"
            )

    def attributes(self) -> dict[str, Any]:
        return {"classes_": self.known_classes, "n_classes_": len(self.known_classes)}

    def look(self, column: Any) -> Labels:
        labels = np.asarray(column.distinct())
        if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
            raise ValueError(f"Unknown label type: continuous. The target has values such as {labels[:3].tolist()}")
        return labels

    def declare(self, labels: Labels) -> Self:
        """Learn all classes before the first row is counted, including those that no row of a sample has."""
        assert labels is not None
        known = self.classes
        if known is None:
            return replace(self, classes=_distinct(labels))
        if (known.dtype.kind in "OUS") != (labels.dtype.kind in "OUS"):
            raise ValueError(f"the target has {such_as(labels)}, but had {known.tolist()[0]!r} before")
        if np.isin(labels, known).all():
            return self
        return replace(self, classes=_distinct(np.concatenate([known, labels])))


LARGEST_SQUARED = 1e28
"""Largest size of a target whose square is a variance: those of priors are at most 1e60."""

SMALLEST_SPREAD = 1e-26
"""Range of targets below which their variance is too small for priors, which are at least 1e-60."""


@dataclass(frozen=True, eq=False)
class NumberTarget(Target):
    """Measurements, counts, times.

    Attributes
    ----------
    owner : str
        The estimator's name, for errors.
    family, prior, split_prior
        As in the estimators.
    input_mean, input_scale : (n_inputs,) float64 or None
        By which the inputs of linear leaves are centred and scaled, once they are known.
    """

    owner: str
    family: str
    prior: Mapping[str, Any] | str
    split_prior: Any
    input_mean: FloatArray | None = None
    input_scale: FloatArray | None = None

    @property
    def leaves(self) -> type[NativeFamily]:
        """The leaf model that `family` names."""
        return NUMBER_FAMILIES[self.family]

    @property
    def has_inputs(self) -> bool:
        return "inputs" in self.leaves.row_data

    def read(self, y: Any) -> NDArray[Any]:
        from sklearn.utils.validation import check_array, column_or_1d

        target = _as_array(y)
        _refuse_missing(np.asarray(target), "a number")
        target = column_or_1d(check_array(target, ensure_2d=False, input_name="y", dtype=None), warn=True)
        if target.dtype.kind in "mM":
            found = f"dates or durations ({target.dtype})"
            raise ArgumentError("y", f"must be numbers, but holds {found}; subtract, then scale them")
        if target.dtype.kind not in "biuf":
            try:
                target = target.astype(np.float64)
            except (TypeError, ValueError):
                found = such_as(target)
                raise ArgumentError("y", f"must be numbers, but has {found}; for classes use a classifier") from None
        numbers = check_array(target.astype(np.float64), ensure_2d=False, input_name="y")
        support = self.leaves.support
        largest = LARGEST_SQUARED if support.is_real_line else 1e60
        refuse(numbers, np.abs(numbers) > largest, f"at most {largest:g} in size")
        refuse(numbers, ~support.holds(numbers), f"{support.must} for {self.family}")
        return np.asarray(numbers)

    def learn(self, labels: NDArray[Any], weight: FloatArray | None) -> tuple[Self, NDArray[Any]]:
        support = self.leaves.support
        if support.needs_some_above and (labels == support.lowest).all():
            what = support.must.split()[0]
            lowest = f"{support.lowest:g}"
            must = f"is {lowest} for every row: {what} of family {self.family!r} must not all be {lowest}"
            raise ArgumentError("y", must)
        spread = float(np.ptp(labels))
        if support.is_real_line and 0.0 < spread < SMALLEST_SPREAD:
            warnings.warn(
                f"y varies by {spread:.3g} only, too little for variances to be computed well; multiply it by a "
                "constant",
                UserWarning,
                stacklevel=2,
            )
        return self, labels

    def numbers(self, labels: NDArray[Any]) -> NDArray[Any]:
        return self.read(labels)

    @property
    def given_columns(self) -> Mapping[str, RowColumn]:
        return {column.name: column for column in self.leaves.given_columns}

    @property
    def known_names(self) -> Mapping[str, Sequence[str]]:
        return families_with()

    def row_data(self, n_rows: int, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        self.check_names(given)
        columns: dict[str, NDArray[Any]] = {}
        for name, families in self.known_names.items():
            if given.get(name) is None:
                continue
            if self.family not in families:
                known = " or ".join(map(repr, families))
                raise ArgumentError(name, f"is for family={known}, but family is {self.family!r}")
            columns[name] = _numbers_of(name, given[name])
            if len(columns[name]) != n_rows:
                raise ArgumentError(name, f"has {len(columns[name])} entries, but X has {n_rows} rows")
        for name, column in self.given_columns.items():
            for known in (name, column.opposite):
                if known in columns:
                    refuse(columns[known], ~column.holds(columns[known]), column.must, known)
            if column.opposite in columns:
                if name in columns:
                    raise ArgumentError(name, f"and {column.opposite} are given, but one is the opposite of the other")
                columns[name] = 1.0 - columns.pop(column.opposite)
        return columns

    def warn_about(self, rows: Rows) -> None:
        if len(rows) and rows.row_data.get("censored", np.zeros(1)).all():
            warnings.warn(
                "all rows are censored: no event was seen, so that times are bounded by the prior alone",
                UserWarning,
                stacklevel=2,
            )

    def learn_inputs(self, schema: Schema, X: Any, used: NDArray[np.bool_] | None) -> Self:
        if not self.has_inputs:
            return self
        numbers = schema.numbers(X, owner=self.owner)
        known = numbers if used is None else numbers[used]
        known = np.where(np.isnan(known).all(axis=0), 0.0, known)
        spread = np.nanstd(known, axis=0)
        return replace(self, input_mean=np.nanmean(known, axis=0), input_scale=np.where(spread > 0.0, spread, 1.0))

    def columns(self, schema: Schema, X: Any, n_rows: int, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Add inputs: the columns of numbers, centred and scaled, missing values at the centre, and a 1."""
        columns = self.row_data(n_rows, given)
        if self.has_inputs:
            assert self.input_mean is not None
            assert self.input_scale is not None
            numbers = schema.numbers(X, owner=self.owner)
            scaled = (numbers - self.input_mean) / self.input_scale
            columns["inputs"] = np.column_stack([np.where(np.isnan(scaled), 0.0, scaled), np.ones(len(numbers))])
        return columns

    def order_by(self, y: NDArray[Any]) -> FloatArray:
        numbers = np.asarray(y, dtype=np.float64)
        return standardised(numbers, None).values if self.leaves.grows_standardised else numbers

    def grow_on(self, rows: Rows, criterion: str | None = None) -> Numbers:
        del criterion  # the squared error is the only one
        follow, weight = self.leaves.to_grow_on(rows.y, rows.weight, rows.row_data)
        if self.leaves.grows_standardised:
            return Numbers(standardised(follow, weight).values, weight)
        return Numbers(centred_and_scaled(follow, weight), weight)

    def evidence_on(self, rows: Rows) -> tuple[Rows, NativeFamily]:
        if self.leaves.grows_standardised and self.leaves.support.is_real_line:
            rows = replace(rows, y=standardised(rows.y, rows.weight).values)
        return super().evidence_on(rows)

    def search(self, rows: Rows) -> Search:
        prior = {} if isinstance(self.prior, str) else dict(self.prior)
        return self.leaves.prior_search(rows.y, rows.weight, rows.row_data, prior, self.split_prior)

    def fixed_family(self, rows: Rows) -> NativeFamily:
        return self.counted_by(rows)

    def check_same(self, other: Self) -> None:
        for name, mine in self.attributes().items():
            theirs = other.attributes().get(name, ())
            if not np.array_equal(mine, theirs):
                raise ValueError(f"other has {name} {theirs}, this one {mine}: its linear leaves differ")

    def attributes(self) -> dict[str, Any]:
        return {"input_mean_": self.input_mean, "input_scale_": self.input_scale} if self.has_inputs else {}

    def look(self, column: Any) -> Labels:
        """Check that all targets are possible; numbers need not be known beforehand."""
        column.read(self.numbers)
        return None

    def declare(self, labels: Labels) -> Self:
        return self


def _as_array(y: Any) -> Any:
    """Return a column of any library as a NumPy array."""
    if y is None:
        raise ValueError("a fit requires y to be passed, but the target y is None")
    return y if isinstance(y, np.ndarray) else as_labels(y)


def _numbers_of(name: str, values: Any) -> FloatArray:
    """Return a column of row data as numbers; missing ones become NaN, which no such column may hold."""
    column = np.asarray(as_labels(values)) if isinstance(values, Sequence) else values
    if isinstance(column, np.ndarray) and column.dtype.kind == "O":
        column = np.array([np.nan if one is None else one for one in column.tolist()])
    return np.asarray(as_column(name, column), dtype=np.float64)


def _refuse_missing(labels: NDArray[Any], what: str = "a class") -> None:
    """Raise for missing class labels or numbers of one column."""
    if labels.ndim != 1:
        return
    if labels.dtype.kind == "f":
        wrong = ~np.isfinite(labels)
    elif labels.dtype.kind == "O":
        wrong = np.array([label is None or label is not label or _is_nan(label) for label in labels], dtype=bool)
    else:
        return
    if wrong.any():
        row = int(np.argmax(wrong))
        must = f"which is not {what}: Input y contains NaN, infinity or nothing"  # scikit-learn's words
        raise ArgumentError("y", f"is {labels[row : row + 1].tolist()[0]!r}, {must}", row=row)


def _is_nan(label: Any) -> bool:
    """NaN of any library, pandas' NA among them, is not equal to itself."""
    try:
        return not bool(label == label)
    except TypeError:
        return True


def _distinct(labels: NDArray[Any]) -> NDArray[Any]:
    try:
        return np.unique(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ArgumentError("y", f"mixes {kinds}: class labels must be of one kind") from None


def refuse(values: FloatArray, wrong: NDArray[np.bool_], must: str, name: str = "y") -> None:
    """Raise an error about the first wrong value."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ArgumentError(name, f"must be {must}", row=row, value=f"{values[row]:g}")
