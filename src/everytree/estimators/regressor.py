"""The methods of regressors."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from everytree.base.arrays import FloatArray, check_lengths
from everytree.base.checks import probabilities
from everytree.base.errors import ArgumentError
from everytree.estimators.availability import only_where
from everytree.estimators.base import AFTER_ALL_TREES, MetaEstimator
from everytree.estimators.conformal import asked_of, conformal_of
from everytree.estimators.monotone import over_grids
from everytree.estimators.outputs import columns_to_score
from everytree.estimators.survival import NO_INTERVALS, times_and_events
from everytree.families.registry import NUMBER_FAMILIES, families_of_targets
from everytree.fitting.given import GivenRows
from everytree.fitting.structures.on_baseline import OnBaseline
from everytree.fitting.structures.structure import Structure
from everytree.fitting.targets.numbers import NumberTarget
from everytree.fitting.targets.weights import read_weight
from everytree.predictive.predictive import Predictive
from everytree.tables.named_columns import split_off
from everytree.tables.reading import Table


class Regressor(RegressorMixin, MetaEstimator):  # type: ignore[misc]
    """Estimators whose targets are numbers: measurements, counts, times."""

    has_classes = False

    family: str
    prior: Any = "auto"
    split_prior: Any = "auto"

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        exposure: Any = None,
        censored: Any = None,
        event: Any = None,
        entry: Any = None,
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
            Numbers, or the name of the column of X that has them. Forests and trees also take several columns, (n_rows,
            n_outputs). With families "exponential" and "survival" also a structured array of scikit-survival's kind: a
            field of booleans, whether the event was seen, and a field of times.
        sample_weight : (n_rows,) array_like, or str, optional
            A row of weight 0 counts as absent. This and what follows may be the name of a column of X.
        exposure : (n_rows,) array_like, or str, optional
            With families "poisson" and "negative_binomial": the time or size over which each count was taken.
        censored : (n_rows,) array_like of bool, or str, optional
            With families "exponential", "weibull" and "survival": whether the time is only known to exceed y.
        event : (n_rows,) array_like of bool, or str, optional
            The opposite of `censored`: whether the event was seen. Give one of the two.
        entry : (n_rows,) array_like, or str, optional
            With `family="survival"`: the time from which on the row was observed, before y; 0 by default.
        groups : (n_rows,) array_like, or str, optional
            As in `MetaForestClassifier.fit`.
        calibration_rows : float, int or "left_out", optional
            As in `MetaForestClassifier.fit`, for `predict_interval` with `guarantee="conformal"`.
        """
        row_data = {"exposure": exposure, "censored": censored, "event": event, "entry": entry}
        return self._fit(self._given(X, y, sample_weight, row_data, groups), calibration_rows)

    @only_where("counts_rows", AFTER_ALL_TREES)
    def partial_fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        exposure: Any = None,
        censored: Any = None,
        event: Any = None,
        entry: Any = None,
        groups: Any = None,
        allow_overlap: bool = False,
    ) -> Self:
        """Learn from more rows; see `MetaForestClassifier.partial_fit`. Arguments as in `fit`."""
        row_data = {"exposure": exposure, "censored": censored, "event": event, "entry": entry}
        given = self._given(X, y, sample_weight, row_data, groups)
        if not self.__sklearn_is_fitted__():
            return self._fit_first(given, self.target_before_fit())
        return self._fit_more(given, allow_overlap=allow_overlap)

    @property
    def input_mean_(self) -> FloatArray:
        """(n_inputs,) means that are subtracted from the inputs of linear leaves; for family "linear"."""
        return self._of_inputs("input_mean_")

    @property
    def input_scale_(self) -> FloatArray:
        """(n_inputs,) scales by which these inputs are then divided."""
        return self._of_inputs("input_scale_")

    def _of_inputs(self, name: str) -> FloatArray:
        attributes = self._learnt().target.attributes()
        if name not in attributes:
            raise AttributeError(f"{name} is for leaves that are lines, but family is {self.family_!r}")
        values: FloatArray = attributes[name]
        return values

    def predict(self, X: Any, return_std: bool = False, *, exposure: Any = None) -> Any:
        """The mean of each row's target, and with `return_std=True` its standard deviation too.

        (n_rows,) each, or (n_rows, n_outputs).
        """
        if self._several:
            each = [one.predict(X, return_std, exposure=exposure) for one in self._several]
            return tuple(map(np.column_stack, zip(*each, strict=True))) if return_std else np.column_stack(each)
        X, row_data = split_off(X, {"exposure": exposure})
        codes = self._encode(X)
        if exposure is None:
            self._warn_without("exposure")
        columns = self._columns(X, len(codes), row_data)
        if columns:
            dist = self._distributions(codes, columns)
            return (dist.mean(), dist.std()) if return_std else dist.mean()
        mean, variance = self._moments(codes)
        return (mean, np.sqrt(variance)) if return_std else mean

    def predictive(self, X: Any, **row_data: Any) -> Predictive:
        """One predictive distribution per row; `exposure` where counts were taken over different times or sizes."""
        X, row_data = split_off(X, row_data)
        if row_data.get("exposure") is None:
            self._warn_without("exposure")
        dist = super().predictive(X, **row_data)
        dist.last_time = self._learnt().last_time
        return dist

    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.05, 0.5, 0.95), *, exposure: Any = None) -> Any:
        """(n_rows, len(quantiles)) quantiles of each row's target, or (n_rows,) for one; they never cross."""
        levels = probabilities("quantiles", quantiles)
        return self.predictive(X, exposure=exposure).quantile(levels)

    def predict_interval(
        self, X: Any, coverage: float = 0.9, *, guarantee: Literal["conformal"] | None = None, exposure: Any = None
    ) -> FloatArray:
        """(n_rows, 2) ends of an interval that holds the target with probability `coverage`.

        Parameters
        ----------
        X : (n_rows, n_features) table
        coverage : float
            In (0, 1).
        guarantee : {None, "conformal"}
            None: tails of equal size, as right as the model is. "conformal": what `guarantee_` says holds, whatever the
            model; it needs rows that were set aside, see `fit` and `conformalize`.
        exposure : (n_rows,) array_like, or str, optional
            With `family="poisson"`, as in `fit`.
        """
        if guarantee is None:
            return self.predictive(X, exposure=exposure).interval(coverage)
        if guarantee != "conformal":
            raise ArgumentError("guarantee", f"must be None or 'conformal', but is {guarantee!r}")
        X, row_data = split_off(X, {"exposure": exposure})
        ends = conformal_of(self).interval(asked_of(self, X, row_data), coverage)
        return np.asarray(np.maximum(ends, self.model_.family.support.lowest))

    def log_scores(
        self, X: Any, y: Any, *, exposure: Any = None, censored: Any = None, event: Any = None, entry: Any = None
    ) -> FloatArray:
        """(n_rows,) log probability or density of each row's target; of a censored row, log of the tail beyond it.

        With `entry`, given that the event is not before it.
        """
        self._check_fitted()
        row_data = {"exposure": exposure, "censored": censored, "event": event, "entry": entry}
        given = self._given(X, y, None, row_data, None)
        target = self._read_target(given.y)
        row_data = self.fitted_.target.row_data(len(target), given.row_data)
        is_censored = row_data.get("censored")
        if is_censored is None:
            self._warn_without("censored")
        dist = self.predictive(given.X, exposure=row_data.get("exposure"))
        check_lengths(len(dist), {"y": target})
        scores = dist.log_prob(target)
        if "entry" in row_data:
            scores = scores - np.log(dist.sf(row_data["entry"]))
        if is_censored is None:
            return scores
        with np.errstate(divide="ignore"):
            beyond = np.log(dist.sf(target)) - (np.log(dist.sf(row_data["entry"])) if "entry" in row_data else 0.0)
            return np.where(is_censored > 0.0, beyond, scores)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, exposure: Any = None, censored: Any = None,
        event: Any = None, entry: Any = None,
    ) -> float:  # fmt: skip
        """Return how well rows are predicted; larger is better. Arguments as in `fit`.

        The coefficient of determination R2 of the mean for families normal, lognormal, linear and poisson. For times
        and waiting counts, families exponential and geometric, whose noise is as large as their mean and which may be
        censored, the mean log score: the log density of the target, or of a censored one the log probability to exceed
        it. Of several outputs, the mean of their scores.
        """
        row_data = {"exposure": exposure, "censored": censored, "event": event, "entry": entry}
        if self._several:
            pairs = zip(self._several, columns_to_score(self, y), strict=True)
            return float(np.mean([one.score(X, own, sample_weight, **row_data) for one, own in pairs]))
        self._check_fitted()
        given = self._given(X, y, sample_weight, row_data, None)
        if NUMBER_FAMILIES[self.family_].is_scored_by_log:
            scores = self.log_scores(given.X, given.y, **dict[str, Any](given.row_data))
            return float(np.average(scores, weights=read_weight(given.weight, len(scores))))
        target = self._read_target(given.y)
        row_data = self.fitted_.target.row_data(len(target), given.row_data)
        predicted = self.predict(given.X, exposure=row_data.get("exposure"))
        return float(r2_score(target, predicted, sample_weight=given.weight))

    @property
    def family_(self) -> str:
        """The leaf model: `family`, or the one that was chosen where that is "auto"."""
        target = self._learnt().target
        assert isinstance(target, NumberTarget)
        return target.family

    # ---- implementation ---------------------------------------------------------------------------------------------

    def _given(self, X: Any, y: Any, sample_weight: Any, row_data: Mapping[str, Any], groups: Any) -> GivenRows:
        if isinstance(y, np.ndarray) and y.dtype.names is not None:
            y, row_data = times_and_events(y, row_data)
        if self._predicts_curves and np.ndim(y) == 2 and np.shape(y)[1] > 1:
            raise ArgumentError("y", f"has {np.shape(y)[1]} columns, but must be one time for each row; {NO_INTERVALS}")
        return super()._given(X, y, sample_weight, row_data, groups)

    @property
    def _predicts_curves(self) -> bool:
        """Whether predictions are curves over time, for which trees are grown in a way of their own."""
        return self.family in NUMBER_FAMILIES and NUMBER_FAMILIES[self.family].predicts_curves

    def _on_baseline(self, structure: Structure) -> Structure:
        """The structure, of positions on a baseline hazard where there is one."""
        return OnBaseline(structure) if self._predicts_curves else structure

    def target_before_fit(self) -> NumberTarget:
        return NumberTarget(type(self).__name__, self.family, self.prior, self.split_prior, families_of_targets())

    def _predicted(self, X: Table) -> FloatArray:
        codes = self._encode(X)
        columns = self._columns(X, len(codes), {})
        return np.asarray(self._distributions(codes, columns).mean() if columns else self._moments(codes)[0])

    def _moments(self, codes: NDArray[Any]) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of coded rows; the mean is monotone, where the estimator is."""
        if self._axes and self.model_.baseline is not None:  # means of the rearranged curves
            curves = self._distributions(codes, {})
            return curves.mean(), curves.variance()
        mean, variance = self.model_.moments(codes, n_jobs=self.n_jobs)
        if self._axes:
            mean = over_grids(codes, self._axes, lambda points: self.model_.moments(points, n_jobs=self.n_jobs)[0])
        return mean, variance

    def _read_target(self, y: Any) -> FloatArray:
        """Return the targets of rows to score, checked."""
        self._check_fitted()
        return self.fitted_.target.read(y)

    def _warn_without(self, name: str) -> None:
        """Warn if row data that the first rows had is not given here."""
        self._check_fitted()
        column = self.fitted_.target.given_columns.get(name)
        if column is not None and name in self.fitted_.row_names:
            either = f"{name} (or {column.opposite})" if column.opposite else name
            warnings.warn(
                f"{either} was given to fit, but is not given here: {column.if_absent}", UserWarning, stacklevel=3
            )
