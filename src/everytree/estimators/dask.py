"""Forests and trees of rows that are spread over the machines of a Dask cluster."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from everytree.base.checks import probabilities
from everytree.base.errors import OverlapError
from everytree.batches.batch import Place
from everytree.batches.dask_parts import Partitions, is_dask
from everytree.batches.dask_passes import DaskPasses, map_parts, results_of_parts
from everytree.batches.sketch import SAMPLE_ROWS
from everytree.batches.two_passes import rows_and_features
from everytree.estimators.base import ADDED_LATER
from everytree.estimators.batches import BatchedEstimator
from everytree.estimators.classifier import Classification
from everytree.estimators.forest import MetaForestClassifier, MetaForestRegressor
from everytree.estimators.part_scores import mean_score, r2_of_parts, squares, weighted_mean
from everytree.estimators.regressor import Regression
from everytree.estimators.tree import MetaTreeClassifier, MetaTreeRegressor
from everytree.families.registry import NUMBER_FAMILIES
from everytree.fitting.targets import Target
from everytree.models.average import AverageModel
from everytree.posterior.counts import ForestCounts

__all__ = ["DaskMetaForestClassifier", "DaskMetaForestRegressor", "DaskMetaTreeClassifier", "DaskMetaTreeRegressor"]


def _with_client(plain: type[Any]) -> Callable[..., None]:
    """Return an `__init__` with the parameters of the plain estimator, and `client`."""

    def init(self: Any, *args: Any, client: Any = None, **parameters: Any) -> None:
        plain.__init__(self, *args, **parameters)
        self.client = client

    # scikit-learn reads the parameters from the signature, and so does help().
    signature = inspect.signature(plain.__init__)
    more = inspect.Parameter("client", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Any)
    init.__signature__ = signature.replace(parameters=[*signature.parameters.values(), more])  # type: ignore[attr-defined]
    return init


class _OnDask(BatchedEstimator):
    """Fits by passes over partitions, and predicts partition by partition."""

    client: Any
    _plain: ClassVar[type[BatchedEstimator]]

    def to_local(self) -> Any:
        """Return the fitted estimator without Dask: it can be saved and sent, and has all methods."""
        parameters = self._plain_parameters()
        local = self._plain(**parameters)
        learnt = {name: value for name, value in vars(self).items() if name not in (*parameters, "client")}
        if "fitted_" in learnt:
            learnt["fitted_"] = replace(
                self.fitted_, model=AverageModel(self.forest_.copy())
            )  # each counts its own rows
        local.__dict__.update(learnt)
        return local

    def blank(self) -> Self:
        """Like `blank` of the plain estimator; the client is kept."""
        empty = super().blank()
        empty.client = self.client
        return empty

    def _plain_parameters(self) -> dict[str, Any]:
        return {name: value for name, value in self.get_params(deep=False).items() if name != "client"}

    def _fit_partitions(
        self, X: Any, row_data: Mapping[str, Any], sample_rows: int = SAMPLE_ROWS, target: Target | None = None
    ) -> Self:
        self._check_parameters()
        return self._two_passes(self._passes(X, row_data), sample_rows, target)

    def _passes(self, X: Any, row_data: Mapping[str, Any]) -> DaskPasses:
        return DaskPasses(Partitions.of(X, **row_data), type(self).__name__, self.n_jobs, self.client)

    def _mapped(
        self, X: Any, method: str, shape: tuple[int, ...] = (), dtype: Any = np.float64, exposure: Any = None,
        **options: Any,
    ) -> Any:  # fmt: skip
        """(n_rows, *shape) results of a method of the plain estimator for each partition, computed lazily."""
        self._check_fitted()
        if isinstance(exposure, str):
            X, exposure = Partitions.of(X, exposure=exposure).split("exposure")
        job = _PartitionCall(self.to_local(), method, options, shape, np.dtype(dtype))
        return map_parts(_call_method, job, Partitions.of(X, exposure=exposure), shape, job.dtype)

    def _add_partitions(self, X: Any, row_data: Mapping[str, Any], *, allow_overlap: bool) -> Self:
        """Count all partitions in the structures there are; a call that fails changes nothing."""
        fitted, passes = self.fitted_, self._passes(X, row_data)
        settings = replace(self._settings(), owner=passes.owner)
        counts = passes.count_more(ForestCounts(self.forest_), *rows_and_features(fitted, settings))
        digest = counts.digest()
        if not allow_overlap and digest in fitted.batches:
            raise OverlapError(
                f"this {type(self).__name__} has counted these rows already, and they would count twice. If they are "
                "other observations that happen to be equal, pass allow_overlap=True"
            )
        self.forest_.merge(counts.forest())
        batches = [*fitted.batches, digest]
        self.fitted_ = replace(fitted, batches=batches, unseen=ADDED_LATER, mean_prediction=None)
        self._keep_early(None)
        return self

    def _results(self, X: Any, row_data: Mapping[str, Any], work: Callable[..., Any]) -> list[Any]:
        """Results of a function of the plain estimator and each partition."""
        self._check_fitted()
        parts = Partitions.of(X, **row_data)
        return results_of_parts(partial(work, self.to_local()), parts, type(self).__name__, self.client)

    # ---- clones share the client, pickles have none -----------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "client": None}

    def __sklearn_clone__(self) -> Self:
        fresh = clone(self._plain(**self._plain_parameters()))
        return type(self)(**fresh.get_params(deep=False), client=self.client)


@dataclass(frozen=True)
class _PartitionCall:
    """A method call that is made for each partition."""

    model: Any
    method: str
    options: Mapping[str, Any]
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def _call_method(job: _PartitionCall, number: int, X: Any, exposure: Any = None) -> Any:
    if len(X) == 0:
        return np.empty((0, *job.shape), job.dtype)
    given = {} if exposure is None else {"exposure": exposure}
    with Place(number, "partition"):
        said = getattr(job.model, job.method)(X, **given, **job.options)
    return np.column_stack(said) if isinstance(said, tuple) else said


class _DaskClassifier(Classification, _OnDask):
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, groups: Any = None, sample_rows: int = SAMPLE_ROWS
    ) -> Self:
        """Learn from all partitions: columns and a sample in a first pass, statistics of every row in a second.

        Parameters
        ----------
        X : Dask DataFrame or (n_rows, n_features) Array
        y : Dask Series, (n_rows,) Array, or str
            Class labels, divided into partitions as X is; or the name of the column of X that has them.
        sample_weight : likewise, optional
            A row of weight 0 counts as absent.
        groups : likewise, optional
            Which rows belong together; see `MetaForestClassifier.fit`.
        sample_rows : int
            Rows on which structures are grown and priors are chosen.

        Returns
        -------
        The estimator itself, equal to that of `fit_batches` with the same rows; a fit that fails leaves it unchanged.
        """
        return self._fit_partitions(X, {"y": y, "sample_weight": sample_weight, "groups": groups}, sample_rows)

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None, *, groups: Any = None,
        allow_overlap: bool = False,
    ) -> Self:  # fmt: skip
        """Learn from more partitions: their statistics are added, structures, priors and columns do not change.

        The first call is a `fit`, with the classes that are named; rows in memory are learnt as by the plain estimator.
        """
        if not is_dask(X):
            return super().partial_fit(X, y, classes, sample_weight, groups=groups, allow_overlap=allow_overlap)
        row_data = {"y": y, "sample_weight": sample_weight, "groups": groups}
        if not hasattr(self, "fitted_"):
            target = self.target_before_fit()
            target = target if classes is None else replace(target, classes=np.unique(classes))
            return self._fit_partitions(X, row_data, target=target)
        self._check_classes(classes)
        return self._add_partitions(X, row_data, allow_overlap=allow_overlap)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose most probable class is the true one, computed partition by partition."""
        if not is_dask(X):
            return super().score(X, y, sample_weight)
        return weighted_mean(self._results(X, {"y": y, "sample_weight": sample_weight}, mean_score))

    def predict_proba(self, X: Any) -> Any:
        """(n_rows, n_classes) probability of each class, in the order of `classes_`; a Dask array where X is Dask's."""
        if not is_dask(X):
            return super().predict_proba(X)
        self._check_fitted()
        return self._mapped(X, "predict_proba", (self.n_classes_,))

    def predict_log_proba(self, X: Any) -> Any:
        """Log of `predict_proba`."""
        if not is_dask(X):
            return super().predict_log_proba(X)
        self._check_fitted()
        return self._mapped(X, "predict_log_proba", (self.n_classes_,))

    def predict(self, X: Any) -> Any:
        """(n_rows,) the most probable class of each row; a Dask array where X is Dask's."""
        if not is_dask(X):
            return super().predict(X)
        self._check_fitted()
        return self._mapped(X, "predict", dtype=self.classes_.dtype)


class _DaskRegressor(Regression, _OnDask):
    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = False
        return tags

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        exposure: Any = None,
        censored: Any = None,
        event: Any = None,
        groups: Any = None,
        sample_rows: int = SAMPLE_ROWS,
    ) -> Self:
        """Learn from all partitions: columns and a sample in a first pass, statistics of every row in a second.

        Parameters
        ----------
        X : Dask DataFrame or (n_rows, n_features) Array
        y : Dask Series, (n_rows,) Array, or str
            Targets, divided into partitions as X is; or the name of the column of X that has them.
        sample_weight : likewise, optional
            A row of weight 0 counts as absent.
        exposure, censored, event, groups : likewise, optional
            As in `MetaForestRegressor.fit`.
        sample_rows : int
            Rows on which structures are grown and priors are chosen.

        Returns
        -------
        The estimator itself, equal to that of `fit_batches` with the same rows; a fit that fails leaves it unchanged.
        """
        row_data = {
            "y": y, "sample_weight": sample_weight, "exposure": exposure, "censored": censored, "event": event,
            "groups": groups,
        }  # fmt: skip
        return self._fit_partitions(X, row_data, sample_rows)

    def partial_fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, exposure: Any = None, censored: Any = None,
        event: Any = None, groups: Any = None, allow_overlap: bool = False,
    ) -> Self:  # fmt: skip
        """Learn from more partitions; see `DaskMetaForestClassifier.partial_fit`. Arguments as in `fit`."""
        if not is_dask(X):
            return super().partial_fit(
                X, y, sample_weight, exposure=exposure, censored=censored, event=event, groups=groups,
                allow_overlap=allow_overlap,
            )  # fmt: skip
        row_data = {
            "y": y, "sample_weight": sample_weight, "exposure": exposure, "censored": censored, "event": event,
            "groups": groups,
        }  # fmt: skip
        if not hasattr(self, "fitted_"):
            return self._fit_partitions(X, row_data)
        return self._add_partitions(X, row_data, allow_overlap=allow_overlap)

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, exposure: Any = None, censored: Any = None,
        event: Any = None,
    ) -> float:  # fmt: skip
        """Return how well rows are predicted, as `score` of the plain estimator; computed partition by partition."""
        if not is_dask(X):
            return super().score(X, y, sample_weight, exposure=exposure, censored=censored, event=event)
        row_data = {
            "y": y, "sample_weight": sample_weight, "exposure": exposure, "censored": censored, "event": event,
        }  # fmt: skip
        if NUMBER_FAMILIES[self.family].is_scored_by_log:
            return weighted_mean(self._results(X, row_data, mean_score))
        return r2_of_parts(self._results(X, row_data, squares))

    def predict(self, X: Any, return_std: bool = False, *, exposure: Any = None) -> Any:
        """(n_rows,) means, and with `return_std=True` standard deviations; Dask arrays where X is Dask's."""
        if not is_dask(X):
            return super().predict(X, return_std, exposure=exposure)
        if not return_std:
            return self._mapped(X, "predict", exposure=exposure)
        both = self._mapped(X, "predict", (2,), exposure=exposure, return_std=True)
        return both[:, 0], both[:, 1]

    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.05, 0.5, 0.95), *, exposure: Any = None) -> Any:
        """(n_rows, len(quantiles)) quantiles, or (n_rows,) for one; a Dask array where X is Dask's."""
        if not is_dask(X):
            return super().predict_quantiles(X, quantiles, exposure=exposure)
        shape = probabilities("quantiles", quantiles).shape
        return self._mapped(X, "predict_quantiles", shape, exposure=exposure, quantiles=quantiles)

    def predict_interval(self, X: Any, coverage: float = 0.9, *, exposure: Any = None) -> Any:
        """(n_rows, 2) ends of an interval with probability `coverage`; a Dask array where X is Dask's."""
        if not is_dask(X):
            return super().predict_interval(X, coverage, exposure=exposure)
        return self._mapped(X, "predict_interval", (2,), exposure=exposure, coverage=coverage)


class DaskMetaForestClassifier(_DaskClassifier, MetaForestClassifier):
    """`MetaForestClassifier` for Dask dataframes and arrays.

    The sample on which structures are grown comes to the process that calls `fit`; all other rows stay on the workers.
    The model depends on the rows and their order, not on how they are divided into partitions.

    Parameters
    ----------
    n_estimators, grower, max_depth, min_samples_leaf, max_features, subsample, split_prior, alpha, weights, calibration
        As in `MetaForestClassifier`.
    max_bins, categorical_features, relative_weights, random_state, verbose, criterion, max_leaf_nodes, bootstrap
        As in `MetaForestClassifier`.
    class_weight, oob_score, warm_start
        Only at their defaults: they are for a fit of rows in memory.
    n_jobs : int, optional
        Threads of each task, and of growing.
    client : distributed.Client, optional
        The cluster that fits; without it the active client, or Dask's scheduler if there is none. It is not pickled.

    Attributes
    ----------
    classes_, schema_, forest_, posteriors_, weights_, choice_, log_evidence_, feature_importances_
        As in `MetaForestClassifier`.

    Examples
    --------
    >>> import dask.array as da, numpy as np, everytree as et
    >>> X = da.from_array(np.arange(40.0).reshape(20, 2), chunks=(5, 2))
    >>> model = et.DaskMetaForestClassifier(n_estimators=5, random_state=0).fit(X, X[:, 0] > 19)
    >>> model.predict(X).compute()[:3]
    array([False, False, False])
    >>> model.to_local()
    MetaForestClassifier(n_estimators=5, random_state=0)
    """

    _plain = MetaForestClassifier
    __init__ = _with_client(MetaForestClassifier)


class DaskMetaForestRegressor(_DaskRegressor, MetaForestRegressor):
    """`MetaForestRegressor` for Dask dataframes and arrays; see `DaskMetaForestClassifier`.

    Parameters
    ----------
    n_estimators, family, prior, grower, max_depth, min_samples_leaf, max_features, subsample, split_prior, weights
        As in `MetaForestRegressor`.
    calibration, max_bins, categorical_features, relative_weights, n_jobs, random_state, verbose, criterion
        As in `MetaForestRegressor`.
    max_leaf_nodes, bootstrap
        As in `MetaForestRegressor`.
    oob_score, warm_start
        Only at their defaults: they are for a fit of rows in memory.
    client : distributed.Client, optional
        As in `DaskMetaForestClassifier`.
    """

    _plain = MetaForestRegressor
    __init__ = _with_client(MetaForestRegressor)


class DaskMetaTreeClassifier(_DaskClassifier, MetaTreeClassifier):
    """`MetaTreeClassifier` for Dask dataframes and arrays; see `DaskMetaForestClassifier`.

    Parameters
    ----------
    max_depth, min_samples_leaf, split_prior, alpha, max_bins, categorical_features, relative_weights, n_jobs
        As in `MetaTreeClassifier`.
    random_state, verbose, criterion, max_leaf_nodes
        As in `MetaTreeClassifier`.
    class_weight
        Only None: name a column of weights instead.
    client : distributed.Client, optional
        As in `DaskMetaForestClassifier`.
    """

    _plain = MetaTreeClassifier
    __init__ = _with_client(MetaTreeClassifier)


class DaskMetaTreeRegressor(_DaskRegressor, MetaTreeRegressor):
    """`MetaTreeRegressor` for Dask dataframes and arrays; see `DaskMetaForestClassifier`.

    Parameters
    ----------
    max_depth, family, prior, min_samples_leaf, split_prior, max_bins, categorical_features, relative_weights, n_jobs
        As in `MetaTreeRegressor`.
    random_state, verbose, criterion, max_leaf_nodes
        As in `MetaTreeRegressor`.
    client : distributed.Client, optional
        As in `DaskMetaForestClassifier`.
    """

    _plain = MetaTreeRegressor
    __init__ = _with_client(MetaTreeRegressor)
