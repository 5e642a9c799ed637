"""What all estimators share: reading tables and targets, and prediction from what was fitted."""

from __future__ import annotations

import copy
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from everytree.base.arrays import FloatArray
from everytree.base.checks import refuse_no_weight, resolve_n_jobs, row_weights
from everytree.base.errors import ArgumentError
from everytree.estimators.early_rows import EarlyRows, LearningRows
from everytree.fitting.fit import Rows
from everytree.fitting.search import Search
from everytree.tables.schema import Schema

FEW_PER_ROW = 0.2
"""A total weight of less than this a row is hardly meant as a number of rows."""

MIN_DIGEST_ROWS = 10
"""Smaller batches leave no digest: from one of a few rows these could be guessed."""

CategoricalFeatures = Literal["from_dtype"] | Sequence[Any] | NDArray[Any] | None


class MetaEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """Fit, update and describe; what a target is, the subclasses know."""

    # Parameters that every estimator has; declared for the reader, set by the subclasses' signatures.
    max_depth: int | None
    split_prior: Any
    max_bins: int
    categorical_features: CategoricalFeatures
    relative_weights: bool
    n_jobs: int | None
    verbose: int

    forest_: Any  # a Forest, or what answers the same questions
    _weight_factor: float
    _batches: list[str]
    _early: EarlyRows | None

    # ---- what subclasses say ----------------------------------------------------------------------------------------

    @abstractmethod
    def _read_target(self, y: Any, *, first: bool) -> NDArray[Any]:
        """The target as the family takes it; at the first call what is learnt from it is kept."""

    def _target_numbers(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Targets as the family takes them, one by one."""
        return self._read_target(labels, first=False)

    @abstractmethod
    def _order_by(self, y: NDArray[Any]) -> FloatArray:
        """What orders the categories of a column."""

    @abstractmethod
    def _grow_on(self, rows: Rows) -> tuple[NDArray[Any], FloatArray | None, str]:
        """Targets, weights and criterion for the trees to grow by."""

    @abstractmethod
    def _search(self, rows: Rows) -> Search:
        """Priors to try."""

    def _check_parameters(self) -> None:
        """Refuse values that parameters cannot have."""
        resolve_n_jobs(self.n_jobs)
        if not isinstance(self.relative_weights, bool | np.bool_):
            raise ValueError(f"relative_weights must be True or False, but is {self.relative_weights!r}")

    @abstractmethod
    def _first_fit(self, rows: LearningRows) -> Self:
        """Everything from the beginning."""

    @abstractmethod
    def _more_rows(self, rows: LearningRows) -> Self:
        """Rows after the first."""

    @abstractmethod
    def _check_structures(self, other: Self) -> None:
        """Structures and priors are the same in both."""

    @abstractmethod
    def _rows_of(self, other: Self) -> Self:
        """The rows of another one that fits."""

    _known_row_data: ClassVar[Mapping[str, str]] = {}
    """What may be known of each row, and by which family."""

    def _row_data(
        self, X: Any, n_rows: int, given: Mapping[str, Any], *, first: bool, used: NDArray[np.bool_] | None = None
    ) -> dict[str, NDArray[Any]]:
        """What the family wants to know of each row; at the first call, `used` are the rows with weight."""
        del X, first, used
        return self._checked_row_data(n_rows, given)

    def _check_row_names(self, names: Iterable[str]) -> None:
        """Refuse what no family of this estimator wants to know."""
        unknown = sorted(set(names) - set(self._known_row_data))
        if unknown:
            known = " or ".join(map(repr, self._known_row_data)) or "nothing besides features, target and weight"
            raise TypeError(f"{type(self).__name__} takes no {unknown[0]!r}; rows may have {known}")

    def _checked_row_data(self, n_rows: int, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """What is given of it, each with one entry a row."""
        del n_rows
        self._check_row_names(name for name, values in given.items() if values is not None)
        return {}

    def _only_present(self, target: NDArray[Any], weight: FloatArray | None) -> NDArray[Any]:
        """The targets of the first rows; what rows of weight 0 alone have is forgotten again."""
        del weight
        return target

    # ---- learning ---------------------------------------------------------------------------------------------------

    @contextmanager
    def _anew(self) -> Iterator[None]:
        """A new fit starts from nothing but structures that were imported; one that fails changes nothing."""
        with self._unless_it_fails():
            for name in ("forest_", "_declared", "_early"):
                self.__dict__.pop(name, None)
            yield

    @contextmanager
    def _unless_it_fails(self) -> Iterator[None]:
        """Attributes that are set hold only if nothing fails."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def merge(self, other: Self, *, allow_overlap: bool = False) -> Self:
        """Add the rows of another fitted estimator with the same columns, structures and priors. Returns itself.

        The result is the model of all rows together. Two models that have both counted the same batch are refused,
        since its rows would count twice: shards must start from a `blank` model. Batches are recognised by a digest of
        at least ten rows together, never of single rows; the same rows cut into other batches are not recognised.

        Parameters
        ----------
        other : estimator
        allow_overlap : bool
            Whether a batch that both have counted may count twice.
        """
        if type(other) is not type(self):
            raise TypeError(f"other must be a {type(self).__name__}, not {type(other).__name__}")
        check_is_fitted(self, "forest_")
        check_is_fitted(other, "forest_")
        for k, (mine, theirs) in enumerate(zip(self.schema_.columns, other.schema_.columns, strict=False)):
            if mine != theirs:
                raise ValueError(f"other reads column {k} in another way: {theirs}, this one: {mine}")
        if self.schema_ != other.schema_:
            raise ValueError(f"other reads other tables: {other.schema_}, this one {self.schema_}")
        if self._row_names != other._row_names:
            raise ValueError(f"the rows of other came with {other._row_names} besides, these with {self._row_names}")
        if self._weight_factor != other._weight_factor:
            raise ValueError(
                f"other multiplies weights by {other._weight_factor}, this one by {self._weight_factor}: they were "
                "made relative by different fits"
            )
        self._check_targets(other)
        self._check_structures(other)
        if not allow_overlap and not set(self._batches).isdisjoint(other._batches):
            raise ValueError(
                "other has counted a batch of rows that this one has counted too, and they would count twice. Let "
                "models that are to be merged start from blank(), or pass allow_overlap=True"
            )
        self._rows_of(other)
        self._batches = [*self._batches, *other._batches]
        self._early = None
        return self

    def blank(self) -> Self:
        """A copy with the same columns, structures and priors that has seen no rows.

        Copies of it can learn from different rows anywhere, with `partial_fit`, and `merge` then adds them up without
        counting a row twice, which it would where each of them had the rows of this one too.

        Examples
        --------
        >>> import everytree as et
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = et.MetaForestClassifier(n_estimators=5, random_state=0).fit(X, y)
        >>> here, there = model.blank().partial_fit(X[::2], y[::2]), model.blank().partial_fit(X[1::2], y[1::2])
        >>> round(abs(here.merge(there).log_evidence_ - model.log_evidence_), 9)
        0.0
        """
        check_is_fitted(self, "forest_")
        empty = copy.copy(self)
        empty._forget_rows()
        empty._batches, empty._early = [], None
        return empty

    @abstractmethod
    def _forget_rows(self) -> None:
        """Statistics of nothing, in objects of its own: those there are belong to another estimator too."""

    @abstractmethod
    def _check_targets(self, other: Self) -> None:
        """Targets mean the same in both."""

    def _fit(self, rows: LearningRows) -> Self:
        """A fit of a table in memory."""
        with self._anew():
            return self._first_fit(rows)

    def _learn(self, rows: LearningRows) -> Self:
        """The next rows, or the first ones; structures that were grown on few rows are grown again on more."""
        early: EarlyRows | None = self.__dict__.get("_early")
        if not hasattr(self, "forest_"):
            with self._unless_it_fails():
                self._first_fit(rows)
                if not hasattr(self, "structures_"):
                    early = EarlyRows(type(self).__name__, self.categorical_features)
                    self._keep_early(early, rows)
                    early.n_grown = early.n_rows
            return self
        self._more_rows(rows)
        if early is not None:
            self._keep_early(early, rows)
            if self._early is not None and early.is_time_to_grow:
                self._grow_again(early)
        return self

    def _keep_early(self, early: EarlyRows, rows: LearningRows) -> None:
        """Keep rows for structures to come, as long as there are few and all of them can stand in one table."""
        self._early = None
        if not early.has_room_for(rows):
            return
        try:
            early.add(rows)
        except (TypeError, ValueError):  # this batch fits the columns that there are, but not the table to grow from
            return
        self._early = early

    def _grow_again(self, early: EarlyRows) -> None:
        """A fit on all rows so far, with the classes that were declared."""
        with self._unless_it_fails():
            self._first_fit(early.all())
            early.n_grown = early.n_rows

    def _first_weight(
        self, sample_weight: Any, n_rows: int, of_all: tuple[float, int] | None = None
    ) -> FloatArray | None:
        """Weights of the first rows; relative ones sum to the number of rows that have any.

        `of_all` is the total weight and the number of all rows where these are only a sample of them.
        """
        weight = read_weight(sample_weight, n_rows)
        self._weight_factor = 1.0
        if weight is None:
            return None
        total, n_weighted = of_all or (float(weight.sum()), int((weight > 0.0).sum()))
        if self.relative_weights:
            self._weight_factor = n_weighted / total
        elif total < FEW_PER_ROW * n_weighted:
            warnings.warn(
                f"the weights of {n_weighted} rows sum to {total:.6g}: a weight counts as that many rows, so that this "
                f"is a model of {total:.6g} rows. If the weights are relative, use "
                f"{type(self).__name__}(relative_weights=True)",
                UserWarning,
                stacklevel=2,
            )
        return weight * self._weight_factor

    def _later_weight(self, sample_weight: Any, n_rows: int) -> FloatArray | None:
        """Weights of rows after the first, by the factor of those."""
        weight = read_weight(sample_weight, n_rows)
        if self._weight_factor == 1.0:
            return weight
        if weight is None:
            must = "must be given: the first rows had relative weights, so one row is no unit"
            raise ArgumentError("sample_weight", must)
        return weight * self._weight_factor

    def _counted(self, rows: Rows) -> None:
        """Remember a batch that was counted."""
        if len(rows.y) >= MIN_DIGEST_ROWS:
            self._batches.append(rows.digest())

    def _fit_schema(self, X: Any, target: NDArray[Any], weight: FloatArray | None, **options: Any) -> Schema:
        """Columns, cut points and categories of the first rows."""
        return Schema.fit(
            X, self._order_by(target), sample_weight=weight, categorical_features=self.categorical_features,
            n_jobs=self.n_jobs, owner=type(self).__name__, **options,
        )  # fmt: skip

    def _first_rows(
        self, X: Any, schema: Schema, target: NDArray[Any], weight: FloatArray | None, row_data: Mapping[str, Any]
    ) -> Rows:
        """The first rows by a schema, which is kept; those of weight 0 are as if they were not there."""
        codes = schema.encode(X, n_jobs=self.n_jobs, owner=type(self).__name__)
        self._check_rows(codes, target)
        self.schema_ = schema
        self.n_features_in_ = schema.n_inputs
        self._keep_names(X)
        used = None if weight is None else weight > 0.0
        columns = self._row_data(X, len(target), row_data, first=True, used=used)
        self._row_names = sorted(columns)
        rows = Rows(codes, target, weight, columns)
        return rows if used is None else rows.at(used)

    def _later_rows(self, rows: LearningRows) -> Rows:
        """Rows after the first, by the schema that is there."""
        return self._coded_rows(rows.X, self._read_target(rows.y, first=False), rows.weight, rows.row_data)

    def _coded_rows(
        self,
        X: Any,
        target: NDArray[Any],
        sample_weight: Any,
        row_data: Mapping[str, Any],
        only: NDArray[np.bool_] | None = None,
    ) -> Rows:
        """The same, their targets read; `only` some columns are coded."""
        weight = self._later_weight(sample_weight, len(target))
        codes = self._encode(X, only)
        self._check_rows(codes, target)
        columns = self._row_data(X, len(target), row_data, first=False)
        if sorted(columns) != self._row_names:
            raise ValueError(
                f"the first rows came with {self._row_names or 'nothing'} besides, these with {sorted(columns)}"
            )
        return Rows(codes, target, weight, columns)

    def _check_rows(self, codes: NDArray[Any], target: NDArray[Any]) -> None:
        if len(codes) != len(target):
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {len(codes)} rows, y {len(target)}"
            )

    def _keep_names(self, X: Any) -> None:
        """scikit-learn keeps names of columns where all of them are text."""
        self.__dict__.pop("feature_names_in_", None)
        names = self.schema_.input_names
        given: Any = getattr(X, "column_names", None) or getattr(X, "columns", names)
        if names is not None and all(isinstance(name, str) for name in given):
            self.feature_names_in_ = np.array(names, dtype=object)

    # ---- reading ----------------------------------------------------------------------------------------------------

    def _encode(self, X: Any, only: NDArray[np.bool_] | None = None) -> NDArray[Any]:
        check_is_fitted(self, "forest_")
        return self.schema_.encode(X, only=only, n_jobs=self.n_jobs, owner=type(self).__name__)

    @property
    def log_evidence_(self) -> float:
        """Log of the average evidence of the structures."""
        check_is_fitted(self, "forest_")
        return float(self.forest_.log_evidence)

    @property
    def feature_importances_(self) -> FloatArray:
        """(n_features,) expected gain in log evidence by the splits on each column, scaled to sum to 1."""
        check_is_fitted(self, "forest_")
        of_input = np.zeros(self.n_features_in_)
        np.add.at(of_input, self.schema_.input_of, self.forest_.feature_importances())
        return of_input

    def predictive(self, X: Any, **row_data: Any) -> Any:
        """One predictive distribution a row: `mean`, `std`, `quantile`, `interval`, `log_prob`, `sample`, `crps`, ...

        Parameters
        ----------
        X : (n_rows, n_features) table
        **row_data
            What the family wants to know of each row, such as `exposure`.
        """
        codes = self._encode(X)
        columns = self._row_data(X, len(codes), row_data, first=False)
        return self.forest_.predictive(codes, n_jobs=self.n_jobs, **columns)

    def __sklearn_clone__(self) -> Self:
        """Structures that were imported are kept, as a parameter would be."""
        fresh: Self = super().__sklearn_clone__()
        if hasattr(self, "structures_"):
            fresh.structures_ = self.structures_
        return fresh

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.target_tags.required = True
        return tags


def read_weight(sample_weight: Any, n_rows: int) -> FloatArray | None:
    """Weights of rows, some of them above 0."""
    if sample_weight is None:
        return None
    weight = row_weights(sample_weight)
    if len(weight) != n_rows:
        raise ArgumentError("sample_weight", f"has {len(weight)} entries, but there are {n_rows} rows")
    refuse_no_weight(weight)
    return weight
