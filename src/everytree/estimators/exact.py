"""Estimators that average over every tree and every choice of splits."""

from __future__ import annotations

from typing import Any, Literal

from everytree.estimators import rules
from everytree.estimators.base import MetaEstimator
from everytree.estimators.classifier import Classifier
from everytree.estimators.parameters import CategoricalFeatures, estimator, parameter
from everytree.estimators.regressor import Regressor
from everytree.exact.posterior import ExactPosterior
from everytree.exact.trees import ExactTree
from everytree.fitting.structures.exact import ExactStructure


@estimator
class _Exact(MetaEstimator):
    """All structures up to a depth; none is grown."""

    max_depth: int = parameter(rules.DEPTH_OF_SUM, default=4, kw_only=False)
    max_cuts: int = parameter(rules.MAX_CUTS, default=40)
    split_prior: Any = parameter(rules.GIVEN_SPLIT_PRIOR, default=0.5)
    candidates: Literal["all", "nontrivial"] = parameter(rules.CANDIDATES, default="all")
    truncation: float = parameter(rules.TRUNCATION, default=1e-6)
    max_regions: int = parameter(rules.MAX_REGIONS, default=20_000_000)
    max_bins: int = parameter(rules.FEW_BINS, default=8)
    categorical_features: CategoricalFeatures = parameter(rules.CATEGORICAL_FEATURES, default="from_dtype")
    relative_weights: bool = parameter(rules.RELATIVE_WEIGHTS, default=False)
    n_jobs: int | None = parameter(rules.N_JOBS, default=None)
    verbose: int = parameter(rules.VERBOSE, default=0)
    monotonic_cst: Any = parameter(rules.MONOTONIC_CST, default=None)

    model_kinds = ("exact", "exact curves")

    def _structure(self) -> ExactStructure:
        return ExactStructure(
            self.max_depth, self.max_cuts, self.split_prior, self.candidates, self.truncation, self.max_regions
        )

    @property
    def posterior_(self) -> ExactPosterior:
        """The posterior over every tree and every choice of splits."""
        self._check_fitted()
        posterior: ExactPosterior = self.model_.parts.exact
        return posterior

    @property
    def truncation_(self) -> float:
        """Maximum posterior mass that the prediction of any row leaves out."""
        return self.posterior_.truncation

    @property
    def map_tree_(self) -> ExactTree:
        """The most probable tree, with the log of its posterior probability."""
        return self.posterior_.map_tree()


@estimator
class ExactTreeClassifier(_Exact, Classifier):
    """The exact average over every tree up to a depth and every choice of its splits, for classes.

    Attributes
    ----------
    posterior_ : ExactPosterior
    map_tree_ : ExactTree
        The most probable tree; its `log_prob` is a certificate.
    log_evidence_, truncation_ : float
    feature_importances_ : (n_features,) array
        Expected number of splits on each column, scaled to sum to 1.
    classes_, schema_
        As in `MetaForestClassifier`.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = et.ExactTreeClassifier(max_depth=2).fit(X, y)
    >>> model.map_tree_.n_leaves
    4
    """

    alpha: float = parameter(rules.GIVEN_ALPHA, default=0.5)


@estimator
class ExactTreeRegressor(_Exact, Regressor):
    """The exact average over every tree up to a depth and every choice of its splits, for numbers."""

    max_cuts: int = parameter(rules.MAX_CUTS, default=32)
    family: str = parameter(rules.FAMILY, default="normal")
    prior: Any = parameter(rules.GIVEN_PRIOR, default="auto")

    def _structure(self) -> Any:
        return self._on_baseline(super()._structure())
