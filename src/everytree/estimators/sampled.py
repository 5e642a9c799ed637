"""Estimators that average over structures of one tree, drawn from their posterior."""

from __future__ import annotations

from typing import Any, Literal

from everytree.estimators import rules
from everytree.estimators.base import MetaEstimator
from everytree.estimators.classifier import Classifier
from everytree.estimators.parameters import Auto, CategoricalFeatures, estimator, parameter
from everytree.estimators.regressor import Regressor
from everytree.fitting.structures.sampled import SampledStructure


@estimator
class _Sampled(MetaEstimator):
    """Structures of one tree, drawn from their posterior."""

    max_depth: int | None = parameter(rules.MAX_DEPTH, default=None, kw_only=False)
    n_draws: int = parameter(rules.N_DRAWS, default=200)
    n_chains: int = parameter(rules.N_CHAINS_OF_DRAWS, default=2)
    n_structures: int = parameter(rules.N_STRUCTURES, default=100)
    temperature: float | Auto = parameter(rules.TEMPERATURE, default="auto")
    split_prior: Any = parameter(rules.GIVEN_SPLIT_PRIOR, default=0.5)
    candidates: Literal["all", "nontrivial"] = parameter(rules.CANDIDATES, default="nontrivial")
    max_bins: int = parameter(rules.FEW_BINS, default=16)
    categorical_features: CategoricalFeatures = parameter(rules.CATEGORICAL_FEATURES, default="from_dtype")
    relative_weights: bool = parameter(rules.RELATIVE_WEIGHTS, default=False)
    n_jobs: int | None = parameter(rules.N_JOBS, default=None)
    random_state: Any = parameter(rules.RANDOM_STATE, default=None)
    verbose: int = parameter(rules.VERBOSE, default=0)
    monotonic_cst: Any = parameter(rules.MONOTONIC_CST, default=None)

    model_kinds = ("forest", "survival")

    def _structure(self) -> SampledStructure:
        return SampledStructure(
            self.max_depth, self.n_draws, self.n_chains, self.n_structures, self.temperature, self.split_prior,
            self.candidates, self.random_state,
        )  # fmt: skip

    @property
    def temperature_(self) -> float:
        """Power of the evidence by which structures were drawn."""
        return float(self.choice_.parameters["temperature"])


@estimator
class SampledTreeClassifier(_Sampled, Classifier):
    """The posterior average over the structures of one tree, drawn by `StructureSampler`, for classes.

    Attributes
    ----------
    temperature_ : float
    classes_, schema_, feature_importances_
        As in `MetaForestClassifier`.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = et.SampledTreeClassifier(max_depth=3, n_draws=20, temperature=1.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    alpha: float = parameter(rules.GIVEN_ALPHA, default=0.5)


@estimator
class SampledTreeRegressor(_Sampled, Regressor):
    """The posterior average over the structures of one tree, drawn by `StructureSampler`, for numbers."""

    family: str = parameter(rules.FAMILY, default="normal")
    prior: Any = parameter(rules.GIVEN_PRIOR, default="auto")

    def _structure(self) -> Any:
        return self._on_baseline(super()._structure())
