"""Targets of several columns: estimators of one output each, which share their columns and trees."""

from __future__ import annotations

import copy
import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray, check_lengths
from everytree.base.errors import ArgumentError
from everytree.estimators.base import MetaEstimator
from everytree.estimators.classifier import Classification
from everytree.estimators.regressor import Regression
from everytree.fitting.class_weight import check_class_weight, weights_by_classes
from everytree.fitting.fit import Fitted, GivenRows
from everytree.fitting.out_of_bag import OutOfBag
from everytree.fitting.outputs import fit_outputs, output_columns
from everytree.fitting.structures import GrownStructure
from everytree.fitting.targets import Target
from everytree.fitting.weights import read_weight


class OneOutputError(ValueError, AttributeError):
    """A model of several outputs was asked what only a model of one output can answer."""


def refuse_several_outputs(model: Any) -> None:
    """Raise if a model has several outputs, where a model of one is needed."""
    outputs = vars(model).get("outputs_", ())
    if outputs:
        raise OneOutputError(
            f"this {type(model).__name__} has {len(outputs)} outputs, and this is for a model of one: take "
            f"model.outputs_[0] .. model.outputs_[{len(outputs) - 1}], which are fitted estimators of one output each"
        )


class SeveralOutputs(MetaEstimator):
    """An estimator whose y may have several columns.

    Attributes
    ----------
    outputs_ : list of estimators
        Only if y had several columns: a fitted estimator for each of them.
    """

    outputs_: list[Self]
    _outputs_oob: OutOfBag | None

    def _fit(self, given: GivenRows) -> Self:
        columns = output_columns(given.y)
        if columns is None:
            return super()._fit(given)
        self._check_parameters()
        if hasattr(self, "structures_"):
            raise ArgumentError("y", f"has {len(columns)} columns, but the structures were imported for one output")
        structure = self._structure_of_fit()
        assert isinstance(structure, GrownStructure)
        fitted = fit_outputs(given, columns, self.target_before_fit(), structure, self._settings())
        outputs = [self._output(place, *each, given.X) for place, each in enumerate(zip(fitted, columns, strict=True))]
        self.keep_outputs(outputs, self._scored_outputs(outputs, columns))
        return self

    def _output(self, place: int, fitted: Fitted, column: NDArray[Any], X: Any) -> Self:
        """Return the fitted estimator of one output."""
        one = copy.copy(self)
        one._keep_early(None)
        one.set_params(**self._parameters_of_output(place))
        with warnings.catch_warnings():
            if place > 0:  # what is said of the rows is said once
                warnings.simplefilter("ignore", UserWarning)
            one._keep(one._scored(fitted, column), X)
        return one

    def _parameters_of_output(self, place: int) -> dict[str, Any]:
        """Return the parameters in which the estimator of one output differs."""
        del place
        return {"oob_score": True} if callable(getattr(self, "oob_score", None)) else {}

    def keep_outputs(self, outputs: list[Self], oob: OutOfBag | None) -> None:
        """Keep the estimators of the outputs as the fitted state."""
        for name in ("fitted_", "feature_names_in_"):
            self.__dict__.pop(name, None)
        self._keep_early(None)
        self.outputs_, self._outputs_oob = outputs, oob
        if hasattr(outputs[0], "feature_names_in_"):
            self.feature_names_in_ = outputs[0].feature_names_in_

    def _keep(self, fitted: Fitted, X: Any) -> None:
        for name in ("outputs_", "_outputs_oob"):
            self.__dict__.pop(name, None)
        super()._keep(fitted, X)

    def _fit_first(self, given: GivenRows, target: Target) -> Self:
        refuse_several_outputs(self)
        if output_columns(given.y) is not None:
            raise ArgumentError("y", "has several columns; their first rows are learnt by fit, not by partial_fit")
        return super()._fit_first(given, target)

    # ---- reading ----------------------------------------------------------------------------------------------------

    @property
    def _several(self) -> list[Self]:
        """The estimators of the outputs; empty if there is one output."""
        outputs: list[Self] = self.__dict__.get("outputs_", [])
        return outputs

    @property
    def n_outputs_(self) -> int:
        """Number of columns of y."""
        if self._several:
            return len(self._several)
        self._learnt()
        return 1

    @property
    def feature_importances_(self) -> FloatArray:
        """(n_features,) expected gain in log evidence by the splits on each column, scaled to sum to 1.

        Of several outputs, the mean.
        """
        if not self._several:
            return super().feature_importances_
        return np.asarray(np.mean([one.feature_importances_ for one in self._several], axis=0))

    def _with_trees(self) -> Self:
        return self._several[0] if self._several else self

    def _learnt(self) -> Fitted:
        refuse_several_outputs(self)
        return super()._learnt()

    def _check_fitted(self) -> None:
        refuse_several_outputs(self)
        super()._check_fitted()

    def _oob_of_fit(self) -> OutOfBag | None:
        return self._outputs_oob if self._several else super()._oob_of_fit()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


class ClassOutputs(SeveralOutputs, Classification):
    """Classifiers of one or several outputs; with several, answers are lists with one entry for each."""

    @property
    def classes_(self) -> Any:
        """(n_classes,) labels in ascending order; a list of such arrays for several outputs."""
        return [one.classes_ for one in self._several] if self._several else super().classes_

    @property
    def n_classes_(self) -> Any:
        """Number of classes; a list of such numbers for several outputs."""
        return [one.n_classes_ for one in self._several] if self._several else super().n_classes_

    def predict_proba(self, X: Any) -> Any:
        """(n_rows, n_classes) probability of each class, in the order of `classes_`; a list for several outputs."""
        return [one.predict_proba(X) for one in self._several] if self._several else super().predict_proba(X)

    def predict_log_proba(self, X: Any) -> Any:
        """Log of `predict_proba`."""
        return [one.predict_log_proba(X) for one in self._several] if self._several else super().predict_log_proba(X)

    def predict(self, X: Any) -> NDArray[Any]:
        """(n_rows,) or (n_rows, n_outputs) most probable classes."""
        if not self._several:
            return super().predict(X)
        labels = [one.predict(X) for one in self._several]
        has_text = {column.dtype.kind in "OUS" for column in labels}
        return np.column_stack([column.astype(object) for column in labels] if len(has_text) > 1 else labels)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose class is predicted; of several outputs, whose classes are all predicted."""
        if not self._several:
            return float(super().score(X, y, sample_weight))
        predicted = self.predict(X)
        columns = _columns_for(self, y)
        check_lengths(len(predicted), {"y": columns[0]})
        is_right = np.all([predicted[:, place] == column for place, column in enumerate(columns)], axis=0)
        return float(np.average(is_right, weights=read_weight(sample_weight, len(is_right))))

    def _weight(self, y: Any, sample_weight: Any, *, is_all: bool) -> Any:
        if not is_all:
            refuse_several_outputs(self)
        columns = None if self.class_weight is None or not is_all else output_columns(y)
        if columns is None:
            return super()._weight(y, sample_weight, is_all=is_all)
        check_class_weight(self.class_weight)
        of_class = weights_by_classes(self.class_weight, [self.target_before_fit().read(column) for column in columns])
        weight = read_weight(sample_weight, len(of_class))
        return of_class if weight is None else of_class * weight

    def _parameters_of_output(self, place: int) -> dict[str, Any]:
        own = self.class_weight
        weight = {"class_weight": own[place]} if isinstance(own, list | tuple) else {}
        return {**super()._parameters_of_output(place), **weight}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags


class NumberOutputs(SeveralOutputs, Regression):
    """Regressors of one or several outputs."""

    def predict(self, X: Any, return_std: bool = False, *, exposure: Any = None) -> Any:
        """The mean of each row's target, and with `return_std=True` its standard deviation too.

        (n_rows,) each, or (n_rows, n_outputs).
        """
        if not self._several:
            return super().predict(X, return_std, exposure=exposure)
        each = [one.predict(X, return_std, exposure=exposure) for one in self._several]
        return tuple(map(np.column_stack, zip(*each, strict=True))) if return_std else np.column_stack(each)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, exposure: Any = None, censored: Any = None,
        event: Any = None,
    ) -> float:  # fmt: skip
        """Return how well rows are predicted; larger is better.

        R2 of the mean for families normal, lognormal, linear and poisson; the mean log score for exponential and
        geometric, whose noise is as large as their mean. Of several outputs, the mean of their scores.
        """
        if not self._several:
            return super().score(X, y, sample_weight, exposure=exposure, censored=censored, event=event)
        pairs = zip(self._several, _columns_for(self, y), strict=True)
        return float(
            np.mean(
                [
                    one.score(X, own, sample_weight, exposure=exposure, censored=censored, event=event)
                    for one, own in pairs
                ]
            )
        )


def _columns_for(model: SeveralOutputs, y: Any) -> list[NDArray[Any]]:
    """The columns of targets to score, as many as the model has outputs."""
    columns = output_columns(y)
    if columns is None or len(columns) != model.n_outputs_:
        found = 1 if columns is None else len(columns)
        raise ArgumentError("y", f"has {found} columns, but the model has {model.n_outputs_} outputs")
    return columns
