"""What a target is: a class, or a number."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.metrics import r2_score
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d

from everytree.base.arrays import FloatArray, as_column, as_labels, such_as
from everytree.base.errors import ArgumentError
from everytree.batches.target_column import Target
from everytree.estimators.base import MetaEstimator, read_weight
from everytree.estimators.early_rows import LearningRows
from everytree.fitting.fit import Rows
from everytree.fitting.leaf_priors import FAMILIES, class_search, number_search, numbers_to_grow_on
from everytree.fitting.search import Search
from everytree.predictive.predictive import probabilities

LOG_SCORED = ("exponential", "geometric")
"""Families whose targets vary as much as their mean: there R2 says little, and nothing of censored rows."""


class Classification(ClassifierMixin, MetaEstimator):  # type: ignore[misc]
    """Targets that are classes."""

    alpha: Any
    classes_: NDArray[Any]
    _declared: NDArray[Any] | None

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Learn from a table: columns, structures, priors and statistics.

        Parameters
        ----------
        X : (n_rows, n_features) table
            NumPy, pandas, polars, pyarrow or whatever narwhals reads; numbers, booleans, text, categories, dates,
            missing values.
        y : (n_rows,) array_like
            Class labels.
        sample_weight : (n_rows,) array_like, optional
            A row of weight 0 counts as absent.
        groups : (n_rows,) array_like, optional
            Rows of the same group (a patient, a site, copies of a row) are left out together where priors are chosen by
            rows that a tree was not grown on. By default, rows that repeat each other in every column.
        """
        return self._fit(LearningRows(X, y, sample_weight, {}, groups))

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, groups: Any = None
    ) -> Self:
        """Learn from more rows.

        After a `fit`, structures, priors and columns stay, and the model is the one that all rows at once would have
        given them. Where the first call is a `partial_fit`, it is a fit of its rows; these are kept, and structures,
        priors and columns are those of a fit of all rows so far whenever there are a tenth more of them. With more
        than 20,000 rows all that stays, and no rows are kept.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `fit`; groups matter where structures are grown.
        classes : array_like, optional
            All classes that will ever come; those of the first rows by default.
        """
        if hasattr(self, "forest_"):
            if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
                raise ValueError(f"classes is {classes!r}, but the first call knew {self.classes_.tolist()}")
            return self._learn(LearningRows(X, y, sample_weight, {}, groups))
        with self._unless_it_fails():
            self._declared = None if classes is None else np.unique(classes)
            return self._learn(LearningRows(X, y, sample_weight, {}, groups))

    def predict_proba(self, X: Any) -> FloatArray:
        """(n_rows, n_classes) probability of each class, in the order of `classes_`."""
        codes = self._encode(X)
        probs = self.forest_.probs(codes, n_jobs=self.n_jobs)
        if self.n_classes_ == 1:  # the leaf model has two; the other one never comes
            probs = np.ones((len(codes), 1))
        return np.asarray(probs)

    def log_scores(self, X: Any, y: Any) -> FloatArray:
        """(n_rows,) log probability of each row's class."""
        target = self._read_target(y, first=False)
        log_probs = self.predict_log_proba(X)
        if len(log_probs) != len(target):
            raise ValueError(f"y has {len(target)} entries, but X has {len(log_probs)} rows")
        return np.asarray(log_probs[np.arange(len(target)), target])

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Log of `predict_proba`."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        best = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    # ---- how -------------------------------------------------------------------------------------------------------

    def _read_target(self, y: Any, *, first: bool) -> NDArray[Any]:
        labels = column_or_1d(_as_labels(y), warn=True)
        _refuse_missing(labels)
        check_classification_targets(labels)
        if first:
            present = _distinct(labels)
            declared = self._declared_classes()
            self.classes_ = present if declared is None else declared
            self.n_classes_ = len(self.classes_)
        return self._target_numbers(labels)

    def _declared_classes(self) -> NDArray[Any] | None:
        """Classes that are known whatever the rows say: those a user has named, or those of an imported model."""
        declared: NDArray[Any] | None = self.__dict__.get("_declared")
        return declared if declared is not None else getattr(self.__dict__.get("structures_"), "classes", None)

    def _only_present(self, target: NDArray[Any], weight: FloatArray | None) -> NDArray[Any]:
        """A class that no row of weight has is none, unless it was declared."""
        if weight is None or self._declared_classes() is not None:
            return target
        present = np.bincount(target[weight > 0.0], minlength=self.n_classes_) > 0
        if present.all():
            return target
        self.classes_ = self.classes_[present]
        self.n_classes_ = len(self.classes_)
        return np.asarray(np.maximum(np.cumsum(present) - 1, 0)[target])  # any class will do for rows of weight 0

    def _target_numbers(self, labels: NDArray[Any]) -> NDArray[Any]:
        """The place of each label among the classes."""
        if (labels.dtype.kind in "OUS") != (self.classes_.dtype.kind in "OUS"):
            raise ArgumentError("y", f"has {such_as(labels)}, but the classes are {self.classes_.tolist()}")
        numbers = np.searchsorted(self.classes_, labels)
        known = self.classes_[np.minimum(numbers, self.n_classes_ - 1)] == labels
        if not known.all():
            row = int(np.argmin(known))
            known = f"the classes are {self.classes_.tolist()}"
            raise ArgumentError("y", known, row=row, value=repr(labels.tolist()[row]))
        return np.asarray(numbers)

    def _check_targets(self, other: Self) -> None:
        if not np.array_equal(self.classes_, other.classes_):
            raise ValueError(f"other has classes {other.classes_.tolist()}, this one {self.classes_.tolist()}")

    def _labels_in(self, target: Target) -> NDArray[Any]:
        labels = np.asarray(target.distinct())
        if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
            raise ValueError(f"Unknown label type: continuous. The target has values such as {labels[:3].tolist()}")
        return labels

    def _note(self, labels: NDArray[Any] | None) -> None:
        """All classes are known before the first row is counted, those that no row of a sample has too."""
        assert labels is not None
        known = self.__dict__.get("_declared")
        if known is None:
            self._declared = _distinct(labels)
        elif (known.dtype.kind in "OUS") != (labels.dtype.kind in "OUS"):
            raise ValueError(f"the target has {such_as(labels)}, but had {known.tolist()[0]!r} before")
        elif not np.isin(labels, known).all():
            self._declared = _distinct(np.concatenate([known, labels]))

    def _order_by(self, y: NDArray[Any]) -> FloatArray:
        return np.eye(self.n_classes_)[y] if self.n_classes_ > 2 else y.astype(np.float64)

    def _grow_on(self, rows: Rows) -> tuple[NDArray[Any], FloatArray | None, str]:
        return rows.y, rows.weight, "gini"

    def _search(self, rows: Rows) -> Search:
        return class_search(rows.y, rows.weight, max(self.n_classes_, 2), self.alpha, self.split_prior)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        return tags


class Regression(RegressorMixin, MetaEstimator):  # type: ignore[misc]
    """Targets that are numbers: measurements, counts, times."""

    family: str
    prior: Mapping[str, Any] | str
    _known_row_data = MappingProxyType({"exposure": "poisson", "censored": "exponential"})

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        exposure: Any = None,
        censored: Any = None,
        groups: Any = None,
    ) -> Self:
        """Learn from a table: columns, structures, priors and statistics.

        Parameters
        ----------
        X : (n_rows, n_features) table
            NumPy, pandas, polars, pyarrow or whatever narwhals reads; numbers, booleans, text, categories, dates,
            missing values.
        y : (n_rows,) array_like
        sample_weight : (n_rows,) array_like, optional
            A row of weight 0 counts as absent.
        exposure : (n_rows,) array_like, optional
            With `family="poisson"`: the time or size over which each count was taken.
        censored : (n_rows,) array_like of bool, optional
            With `family="exponential"`: whether y is only known to be exceeded.
        groups : (n_rows,) array_like, optional
            As in `MetaForestClassifier.fit`.
        """
        return self._fit(LearningRows(X, y, sample_weight, {"exposure": exposure, "censored": censored}, groups))

    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        exposure: Any = None,
        censored: Any = None,
        groups: Any = None,
    ) -> Self:
        """Learn from more rows; see `MetaForestClassifier.partial_fit`. Arguments as in `fit`."""
        row_data = {"exposure": exposure, "censored": censored}
        return self._learn(LearningRows(X, y, sample_weight, row_data, groups))

    def predict(self, X: Any, return_std: bool = False, *, exposure: Any = None) -> Any:
        """The mean of each row's target, and with `return_std=True` its standard deviation too."""
        codes = self._encode(X)
        if exposure is None:
            self._warn_without("exposure")
        columns = self._row_data(X, len(codes), {"exposure": exposure}, first=False)
        if columns:
            dist = self.forest_.predictive(codes, n_jobs=self.n_jobs, **columns)
            return (dist.mean(), dist.std()) if return_std else dist.mean()
        mean, variance = self.forest_.moments(codes, n_jobs=self.n_jobs)
        return (mean, np.sqrt(variance)) if return_std else mean

    def predictive(self, X: Any, **row_data: Any) -> Any:
        """One predictive distribution a row; `exposure` where counts were taken over different times or sizes."""
        if row_data.get("exposure") is None:
            self._warn_without("exposure")
        return super().predictive(X, **row_data)

    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.05, 0.5, 0.95), *, exposure: Any = None) -> Any:
        """(n_rows, len(quantiles)) quantiles of each row's target, or (n_rows,) for one; they never cross."""
        levels = probabilities("quantiles", quantiles)
        return self.predictive(X, exposure=exposure).quantile(levels)

    def predict_interval(self, X: Any, coverage: float = 0.9, *, exposure: Any = None) -> FloatArray:
        """(n_rows, 2) ends of an interval that holds the target with probability `coverage`, tails of equal size."""
        ends: FloatArray = self.predictive(X, exposure=exposure).interval(coverage)
        return ends

    def log_scores(self, X: Any, y: Any, *, exposure: Any = None, censored: Any = None) -> FloatArray:
        """(n_rows,) log probability or density of each row's target; of a censored row, log of the tail beyond it."""
        target = self._read_target(y, first=False)
        is_censored = self._checked_row_data(len(target), {"censored": censored}).get("censored")
        if is_censored is None:
            self._warn_without("censored")
        dist = self.predictive(X, exposure=exposure)
        scores: FloatArray = dist.log_prob(target)
        if is_censored is None:
            return scores
        with np.errstate(divide="ignore"):
            return np.where(is_censored > 0.0, np.log(dist.sf(target)), scores)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, exposure: Any = None, censored: Any = None) -> float:
        """How well rows are predicted; larger is better.

        The coefficient of determination R2 of the mean for families normal, linear and poisson. For times and waiting
        counts, families exponential and geometric, whose noise is as large as their mean and which may be censored, the
        mean log score: the log density of the target, or of a censored one the log probability to exceed it.
        """
        if self.family in LOG_SCORED:
            scores = self.log_scores(X, y, exposure=exposure, censored=censored)
            return float(np.average(scores, weights=read_weight(sample_weight, len(scores))))
        target = self._read_target(y, first=False)
        self._checked_row_data(len(target), {"censored": censored})
        return float(r2_score(target, self.predict(X, exposure=exposure), sample_weight=sample_weight))

    # ---- how -------------------------------------------------------------------------------------------------------

    def _warn_without(self, name: str) -> None:
        """What the first rows had besides, and these have not, is said."""
        if name in getattr(self, "_row_names", ()):
            means = {"exposure": "every exposure is taken to be 1", "censored": "every target is taken for an event"}
            warnings.warn(f"{name} was given to fit, but is not given here: {means[name]}", UserWarning, stacklevel=3)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.family not in FAMILIES:
            raise ValueError(f"family must be one of {list(FAMILIES)}, but is {self.family!r}")
        if not (isinstance(self.prior, Mapping) or self.prior == "auto"):
            raise ValueError(f"prior must be 'auto' or a dict of parameters, but is {self.prior!r}")

    def _read_target(self, y: Any, *, first: bool) -> NDArray[Any]:
        target = column_or_1d(check_array(_as_labels(y), ensure_2d=False, input_name="y", dtype=None), warn=True)
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
        _refuse(numbers, np.abs(numbers) > 1e60, "at most 1e60 in size")
        if self.family in ("poisson", "geometric"):
            _refuse(numbers, (numbers < 0.0) | (numbers != np.floor(numbers)), f"counts from 0 on for {self.family}")
        elif self.family == "exponential":
            _refuse(numbers, numbers < 0.0, "times from 0 on for exponential")
            if first and not numbers.any():
                raise ArgumentError("y", "is 0 for every row: times of family 'exponential' must not all be 0")
        return np.asarray(numbers)

    def _labels_in(self, target: Target) -> None:
        """Numbers need not be known beforehand, but all of them must be possible."""
        target.read(self._target_numbers)

    def _check_targets(self, other: Self) -> None:
        for name in ("input_mean_", "input_scale_"):
            mine, theirs = getattr(self, name, ()), getattr(other, name, ())
            if not np.array_equal(mine, theirs):
                raise ValueError(f"other has {name} {theirs}, this one {mine}: the lines in its leaves are others")

    def _order_by(self, y: NDArray[Any]) -> FloatArray:
        return np.asarray(y, dtype=np.float64)

    def _grow_on(self, rows: Rows) -> tuple[NDArray[Any], FloatArray | None, str]:
        return (*numbers_to_grow_on(self.family, rows.y, rows.weight, rows.row_data), "squared_error")

    def _search(self, rows: Rows) -> Search:
        prior = {} if isinstance(self.prior, str) else self.prior
        return number_search(self.family, rows.y, rows.weight, rows.row_data, prior, self.split_prior)

    def _row_data(
        self, X: Any, n_rows: int, given: Mapping[str, Any], *, first: bool, used: NDArray[np.bool_] | None = None
    ) -> dict[str, NDArray[Any]]:
        columns = self._checked_row_data(n_rows, given)
        if self.family == "linear":
            columns["inputs"] = self._inputs(X, first, used)
        return columns

    def _checked_row_data(self, n_rows: int, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        self._check_row_names(given)
        columns: dict[str, NDArray[Any]] = {}
        for name, family in self._known_row_data.items():
            if given.get(name) is None:
                continue
            if self.family != family:
                raise ArgumentError(name, f"is for family={family!r}, but family is {self.family!r}")
            columns[name] = as_column(name, given[name]).astype(np.float64)
            if len(columns[name]) != n_rows:
                raise ArgumentError(name, f"has {len(columns[name])} entries, but X has {n_rows} rows")
        if "exposure" in columns:
            outside = ~((columns["exposure"] > 0.0) & (columns["exposure"] <= 1e60))
            _refuse(columns["exposure"], outside, "positive and at most 1e60", "exposure")
        if "censored" in columns:
            _refuse(columns["censored"], ~np.isin(columns["censored"], (0.0, 1.0)), "0 or 1", "censored")
        return columns

    def _inputs(self, X: Any, first: bool, used: NDArray[np.bool_] | None) -> FloatArray:
        """The columns of numbers, centred and scaled as at the first call, missing values at the centre, and a 1."""
        numbers = self.schema_.numbers(X, owner=type(self).__name__)
        if first:
            known = numbers if used is None else numbers[used]
            known = np.where(np.isnan(known).all(axis=0), 0.0, known)
            self.input_mean_ = np.nanmean(known, axis=0)
            spread = np.nanstd(known, axis=0)
            self.input_scale_ = np.where(spread > 0.0, spread, 1.0)
        scaled = (numbers - self.input_mean_) / self.input_scale_
        return np.column_stack([np.where(np.isnan(scaled), 0.0, scaled), np.ones(len(numbers))])


def _as_labels(y: Any) -> Any:
    """A column of any library as NumPy."""
    if y is None:
        raise ValueError("a fit requires y to be passed, but the target y is None")
    return y if isinstance(y, np.ndarray) else as_labels(y)


def _refuse_missing(labels: NDArray[Any]) -> None:
    """Class labels are all there."""
    if labels.dtype.kind == "f":
        wrong = ~np.isfinite(labels)
    elif labels.dtype.kind == "O":
        wrong = np.array([label is None or label is not label or _is_nan(label) for label in labels], dtype=bool)
    else:
        return
    if wrong.any():
        row = int(np.argmax(wrong))
        must = "which is no class: Input y contains NaN, infinity or nothing"  # scikit-learn's words
        raise ArgumentError("y", f"is {labels[row]!r}, {must}", row=row)


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


def _refuse(values: FloatArray, wrong: NDArray[np.bool_], must: str, name: str = "y") -> None:
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ArgumentError(name, f"must be {must}", row=row, value=f"{values[row]:g}")
