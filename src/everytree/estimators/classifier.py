"""The methods of classifiers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.metaestimators import available_if

from everytree.base.arrays import FloatArray, check_lengths
from everytree.estimators.availability import has_one_output, only_where, refuse_several_outputs
from everytree.estimators.base import AFTER_ALL_TREES, MetaEstimator
from everytree.estimators.conformal import asked_of, conformal_of
from everytree.estimators.monotone import over_grids
from everytree.estimators.outputs import columns_to_score, labels_of
from everytree.fitting.given import GivenRows
from everytree.fitting.outputs import output_columns
from everytree.fitting.targets.class_weight import ClassWeight, check_class_weight, weights_by_class, weights_by_classes
from everytree.fitting.targets.classes import ClassTarget
from everytree.fitting.targets.weights import read_weight
from everytree.predictive.paths import predictive_of_probs
from everytree.predictive.predictive import Predictive
from everytree.tables.named_columns import split_off
from everytree.tables.reading import Table


class Classifier(ClassifierMixin, MetaEstimator):  # type: ignore[misc]
    """Estimators whose targets are classes; with several outputs, answers are lists with one entry for each."""

    has_classes = True

    alpha: Any = "auto"
    split_prior: Any = "auto"
    class_weight: ClassWeight = None

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        calibration_rows: float | Literal["left_out"] | None = None,
    ) -> Self:
        """Learn from a table: columns, structures, priors and statistics.

        Parameters
        ----------
        X : (n_rows, n_features) table
            NumPy, pandas, polars, pyarrow or whatever narwhals reads; numbers, booleans, text, categories, dates,
            missing values. Sparse matrices of SciPy's are read column by column; what they do not store is 0.
        y : (n_rows,) array_like, or str
            Class labels, or the name of the column of X that has them. Forests and trees also take several columns,
            (n_rows, n_outputs).
        sample_weight : (n_rows,) array_like, or str, optional
            A row of weight 0 counts as absent. Or the name of a column of X.
        groups : (n_rows,) array_like, or str, optional
            Rows of the same group (a patient, a site, copies of a row) are left out together where priors are chosen by
            rows that a tree was not grown on. By default, rows that repeat each other in every column.
        calibration_rows : float, int or "left_out", optional
            Share or number of the rows (of the groups, where they are given) that are drawn at random and set aside:
            the model is not fitted to them, and `predict_set` has proved coverage by them; see `conformalize`, which
            takes rows that you set aside. "left_out" sets none aside: sets are made by the trees or chains that left
            rows out while the model was fitted, with a weaker promise, which `guarantee_` says.
        """
        given = self._given(X, y, sample_weight, {}, groups)
        return self._fit(given._replace(weight=self._weight(given.y, given.weight, is_all=True)), calibration_rows)

    @only_where("counts_rows", AFTER_ALL_TREES)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        allow_overlap: bool = False,
    ) -> Self:
        """Learn from more rows.

        After a `fit`, structures, priors and columns do not change, and the model is the same as if all rows had been
        counted in them at once. If the first call is a `partial_fit`, it fits its rows and keeps them; whenever the
        number of rows has grown by a tenth, structures, priors and columns are fitted again to all rows so far. With
        more than 20,000 rows they no longer change, and no rows are kept.

        Parameters
        ----------
        X, y
            As in `fit`; groups matter where structures are grown.
        sample_weight, groups
            As in `fit`; groups matter where structures are grown.
        classes : array_like, optional
            All classes that may occur; by default those of the first rows.
        allow_overlap : bool
            Whether rows may count twice: a later batch with the same rows as an earlier one, in any order, is refused
            otherwise. See `merge` for how they are recognised.
        """
        given = self._weighted(self._given(X, y, sample_weight, {}, groups))
        if not self.__sklearn_is_fitted__():
            target = self.target_before_fit()
            return self._fit_first(given, target if classes is None else replace(target, classes=np.unique(classes)))
        self._check_classes(classes)
        return self._fit_more(given, allow_overlap=allow_overlap)

    @property
    def classes_(self) -> Any:
        """(n_classes,) labels in ascending order; a list of such arrays for several outputs."""
        if self._several:
            return [one.classes_ for one in self._several]
        classes: NDArray[Any] = self._learnt().target.attributes()["classes_"]
        return classes

    @property
    def n_classes_(self) -> Any:
        """Number of classes; a list of such numbers for several outputs."""
        return [one.n_classes_ for one in self._several] if self._several else len(self.classes_)

    def predict_proba(self, X: Any) -> Any:
        """(n_rows, n_classes) probability of each class, in the order of `classes_`; a list for several outputs."""
        if self._several:
            return [one.predict_proba(X) for one in self._several]
        codes = self._encode(X)
        probs = self._probs(codes)
        if self.n_classes_ == 1:  # the leaf model has two classes, and the other one never occurs
            probs = np.ones((len(codes), 1))
        return np.asarray(probs)

    def predictive(self, X: Any, **row_data: Any) -> Predictive:
        """One distribution per row: `probs`, `entropy`, `sample`, ..., with the `labels` of the classes."""
        dist = super().predictive(X, **row_data)
        known = tuple(self.classes_.tolist())
        dist.labels = known if len(known) > 1 else (*known, "any other")  # the leaf model has two classes
        return dist

    def log_scores(self, X: Any, y: Any) -> FloatArray:
        """(n_rows,) log probability of each row's class."""
        self._check_fitted()
        X, given = split_off(X, {"y": y})
        target = self.fitted_.target.numbers(self.fitted_.target.read(given["y"]))
        log_probs = self.predict_log_proba(X)
        if len(log_probs) != len(target):
            raise ValueError(f"y has {len(target)} entries, but X has {len(log_probs)} rows")
        return np.asarray(log_probs[np.arange(len(target)), target])

    def predict_log_proba(self, X: Any) -> Any:
        """Log of `predict_proba`."""
        if self._several:
            return [one.predict_log_proba(X) for one in self._several]
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    @available_if(has_one_output)  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> FloatArray:
        """(n_rows,) log-odds of the second of two classes; of more classes (n_rows, n_classes) their log probabilities.

        Of models of one output.
        """
        logs: FloatArray = self.predict_log_proba(X)
        return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs

    def predict(self, X: Any) -> NDArray[Any]:
        """(n_rows,) or (n_rows, n_outputs) most probable classes."""
        if self._several:
            return labels_of(self._several, X)
        best = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels

    def predict_set(self, X: Any, coverage: float = 0.9, *, each_class: bool = False) -> NDArray[np.bool_]:
        """(n_rows, n_classes) which classes are in a set that holds the true one with probability `coverage`.

        What `guarantee_` says holds, whatever the model; it needs rows that were set aside, see `fit` and
        `conformalize`. Classes are in the order of `classes_`. They come in from the most probable one on, the last by
        a share of its probability that is drawn by a hash of the row; a set may be empty.

        Parameters
        ----------
        X : (n_rows, n_features) table
        coverage : float
            In (0, 1).
        each_class : bool
            Whether the promise holds within the rows of each class, rather than over all rows.
        """
        X, _ = split_off(X, {})
        return conformal_of(self).classes(asked_of(self, X, {}), coverage, each_class=each_class)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose most probable class is the true one; arguments as in `fit`.

        Of several outputs, whose classes are all predicted.
        """
        if self._several:
            predicted, columns = self.predict(X), columns_to_score(self, y)
            check_lengths(len(predicted), {"y": columns[0]})
            is_right = np.all([predicted[:, place] == column for place, column in enumerate(columns)], axis=0)
            return float(np.average(is_right, weights=read_weight(sample_weight, len(is_right))))
        X, given = split_off(X, {"y": y, "sample_weight": sample_weight})
        return float(super().score(X, given["y"], given["sample_weight"]))

    # ---- implementation ---------------------------------------------------------------------------------------------

    def _predicted(self, X: Table) -> FloatArray:
        return np.asarray(self.predict_proba(X))

    def _probs(self, codes: NDArray[Any]) -> FloatArray:
        """Probabilities of coded rows; that of the second of two classes is monotone, where the estimator is."""
        probs = partial(self.model_.probs, n_jobs=self.n_jobs)
        if not self._axes:
            return np.asarray(probs(codes))
        second = over_grids(codes, self._axes, lambda points: probs(points)[:, 1])
        return np.column_stack([1.0 - second, second])

    def _distributions(self, codes: NDArray[Any], columns: Mapping[str, NDArray[Any]]) -> Predictive:
        return predictive_of_probs(self._probs(codes)) if self._axes else super()._distributions(codes, columns)

    def _check_classes(self, classes: Any) -> None:
        """Raise if classes are named that are not those of the first call."""
        if classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes is {classes!r}, but the first call had {self.classes_.tolist()}")

    def _given_later(self, X: Any, y: Any, weight: Any, row_data: Mapping[str, Any], groups: Any = None) -> GivenRows:
        return self._weighted(super()._given_later(X, y, weight, row_data, groups))

    def _weighted(self, given: GivenRows) -> GivenRows:
        """Rows after the first, their weights multiplied by those of their classes."""
        return given._replace(weight=self._weight(given.y, given.weight, is_all=False))

    def _weight(self, y: Any, sample_weight: Any, *, is_all: bool) -> Any:
        """Return the weights of rows, multiplied by those of their classes."""
        if not is_all:
            refuse_several_outputs(self)
        if self.class_weight is None:
            return sample_weight
        check_class_weight(self.class_weight)
        columns = output_columns(y) if is_all and self.grows_trees else None
        if columns is not None:
            each = [self.target_before_fit().read(column) for column in columns]
            of_class = weights_by_classes(self.class_weight, each)
            weight = read_weight(sample_weight, len(of_class))
            return of_class if weight is None else of_class * weight
        labels = self.target_before_fit().read(y)
        weight = read_weight(sample_weight, len(labels))
        of_class = weights_by_class(self.class_weight, labels, is_all=is_all)
        return of_class if weight is None else of_class * weight

    def target_before_fit(self) -> ClassTarget:
        imported = self.structures_
        return ClassTarget(type(self).__name__, self.alpha, self.split_prior, getattr(imported, "classes", None))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = True
        tags.classifier_tags.multi_label = self.grows_trees
        return tags
