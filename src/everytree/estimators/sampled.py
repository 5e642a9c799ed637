"""Estimators that average over structures of one tree, drawn from their posterior."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.base.checks import is_auto, whole_number
from everytree.base.errors import ArgumentError
from everytree.estimators.base import CategoricalFeatures
from everytree.estimators.classifier import Classification
from everytree.estimators.readable import Readable
from everytree.estimators.regressor import Regression
from everytree.fitting.sampled import SampledStructure
from everytree.fitting.search import Choice
from everytree.fitting.targets import ClassTarget, NumberTarget
from everytree.posterior.posterior import Posterior
from everytree.sampling.consensus import ConsensusNode, consensus_tree


class _SampledStructure(Readable):
    """Structures of one tree, drawn from their posterior."""

    model_kinds = ("forest",)

    n_draws: int
    n_chains: int
    n_structures: int
    temperature: float | Literal["auto"]
    candidates: Any
    random_state: Any

    def _structure(self) -> SampledStructure:
        return SampledStructure(
            self.max_depth, self.n_draws, self.n_chains, self.n_structures, self.temperature, self.split_prior,
            self.candidates, self.random_state,
        )  # fmt: skip

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("n_draws", "n_chains", "n_structures"):
            whole_number(name, getattr(self, name), 1)
        power: Any = self.temperature
        is_number = isinstance(power, int | float | np.number) and not isinstance(power, bool)
        if not is_auto(power) and not (is_number and 0.0 < power <= 1.0):
            raise ArgumentError("temperature", f"must be 'auto' or a power above 0 and at most 1, but is {power!r}")
        whole_number("max_bins", self.max_bins, 2, 255)

    # ---- answers ----------------------------------------------------------------------------------------------------

    @property
    def choice_(self) -> Choice:
        """The temperature, and the score of the rows that were left out to choose it."""
        choice = self._learnt().choice
        assert choice is not None
        return choice

    @property
    def temperature_(self) -> float:
        """Power of the evidence by which structures were drawn."""
        return float(self.choice_.parameters["temperature"])

    @property
    def consensus_tree_(self) -> ConsensusNode:
        """At each region the split that most structures have, with its probability."""
        self._check_fitted()
        return consensus_tree(self.forest_)

    @property
    def root_feature_prob_(self) -> FloatArray:
        """(n_features,) probability that the root is split on each column."""
        self._check_fitted()
        forest = self.forest_
        found = np.zeros(forest.n_features)
        for weight, post in zip(forest.weights, forest.posteriors, strict=True):
            if post.tree.n_children[0] > 0:
                found[post.tree.feature[0]] += weight * post.split_prob[0]
        return found

    def _pictured_number(self) -> int:
        return int(np.argmax([post.log_evidence for post in self.forest_.posteriors]))

    def pictured(self) -> Posterior:
        self._check_fitted()
        posterior: Posterior = self.forest_.posteriors[self._pictured_number()]
        return posterior


class SampledTreeClassifier(Classification, _SampledStructure):
    """The posterior average over the structures of one tree, drawn by `StructureSampler`, for classes.

    Parameters
    ----------
    max_depth : int or None
        Maximum depth of the structures; no limit by default.
    n_draws : int
        Draws of each chain after the burn-in, which is half as long.
    n_chains : int
    n_structures : int
        Approximate number of structures that are kept.
    temperature : float or "auto"
        Power of the evidence by which structures are drawn: 1 is the posterior; with less, more of them count. "auto"
        compares some by rows that are left out for that. A tempered posterior is no probability of structures given
        the data; it is a weighting that may predict better.
    split_prior : float or callable
        Prior probability that a region is split.
    alpha : float
        Dirichlet concentration of each class in a leaf.
    candidates : {"nontrivial", "all"}
        Every split a region's codes allow, or only those that separate its rows.
    max_bins : int
        Maximum number of codes of a column of numbers.
    random_state : int, RandomState or None
    categorical_features
        As in `MetaForestClassifier`.
    relative_weights
        As in `MetaForestClassifier`.
    n_jobs
        As in `MetaForestClassifier`.
    verbose
        As in `MetaForestClassifier`.

    Attributes
    ----------
    temperature_ : float
    consensus_tree_ : ConsensusNode
        At each region the split that most structures have, with its probability.
    root_feature_prob_ : (n_features,) array
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

    def __init__(
        self,
        max_depth: int | None = None,
        *,
        n_draws: int = 200,
        n_chains: int = 2,
        n_structures: int = 100,
        temperature: float | Literal["auto"] = "auto",
        alpha: float = 0.5,
        split_prior: Any = 0.5,
        candidates: Literal["all", "nontrivial"] = "nontrivial",
        max_bins: int = 16,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_depth = max_depth
        self.n_draws = n_draws
        self.n_chains = n_chains
        self.n_structures = n_structures
        self.temperature = temperature
        self.alpha = alpha
        self.split_prior = split_prior
        self.candidates = candidates
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.relative_weights = relative_weights
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def target_before_fit(self) -> ClassTarget:
        return ClassTarget(type(self).__name__, self.alpha, self.split_prior, None)


class SampledTreeRegressor(Regression, _SampledStructure):
    """The posterior average over the structures of one tree, drawn by `StructureSampler`, for numbers.

    Parameters
    ----------
    max_depth
        As in `SampledTreeClassifier`.
    n_draws
        As in `SampledTreeClassifier`.
    n_chains
        As in `SampledTreeClassifier`.
    n_structures
        As in `SampledTreeClassifier`.
    temperature
        As in `SampledTreeClassifier`.
    split_prior
        As in `SampledTreeClassifier`.
    candidates
        As in `SampledTreeClassifier`.
    max_bins
        As in `SampledTreeClassifier`.
    random_state
        As in `SampledTreeClassifier`.
    family
        As in `MetaForestRegressor`; parameters that `prior` does not name have defaults, centred on the data.
    prior
        As in `MetaForestRegressor`; parameters that `prior` does not name have defaults, centred on the data.
    categorical_features
        As in `MetaForestClassifier`.
    relative_weights
        As in `MetaForestClassifier`.
    n_jobs
        As in `MetaForestClassifier`.
    verbose
        As in `MetaForestClassifier`.
    """

    def __init__(
        self,
        max_depth: int | None = None,
        *,
        n_draws: int = 200,
        n_chains: int = 2,
        n_structures: int = 100,
        temperature: float | Literal["auto"] = "auto",
        family: str = "normal",
        prior: Any = "auto",
        split_prior: Any = 0.5,
        candidates: Literal["all", "nontrivial"] = "nontrivial",
        max_bins: int = 16,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_depth = max_depth
        self.n_draws = n_draws
        self.n_chains = n_chains
        self.n_structures = n_structures
        self.temperature = temperature
        self.family = family
        self.prior = prior
        self.split_prior = split_prior
        self.candidates = candidates
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.relative_weights = relative_weights
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def target_before_fit(self) -> NumberTarget:
        return NumberTarget(type(self).__name__, self.family, self.prior, self.split_prior)
