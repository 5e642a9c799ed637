"""Estimators that average over every tree and every choice of splits."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from everytree.base.checks import is_auto, whole_number
from everytree.base.errors import ArgumentError
from everytree.estimators.base import CategoricalFeatures
from everytree.estimators.classifier import Classification
from everytree.estimators.readable import Readable
from everytree.estimators.regressor import Regression
from everytree.exact.continued import ContinuedForest
from everytree.exact.posterior import ExactPosterior
from everytree.exact.trees import ExactTree
from everytree.fitting.search import Choice
from everytree.fitting.structures import ExactStructure
from everytree.fitting.targets import ClassTarget, NumberTarget
from everytree.posterior.posterior import Posterior
from everytree.tables.code_names import CodeWords


class _ExactStructure(Readable):
    """All structures up to a depth; none is grown."""

    max_cuts: int
    candidates: Any
    truncation: float
    max_regions: int
    continuation: Literal["grown"] | None
    temperature: float | Literal["auto"]
    random_state: Any

    def _structure(self) -> ExactStructure:
        return ExactStructure(
            self.max_depth, self.max_cuts, self.split_prior, self.candidates, self.truncation, self.max_regions,
            self.continuation, self.temperature, self.random_state,
        )  # fmt: skip

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_auto(self.max_depth):
            whole_number("max_depth", self.max_depth, 0, 64)
        if self.continuation is not None and not (isinstance(self.continuation, str) and self.continuation == "grown"):
            raise ArgumentError("continuation", f"must be 'grown' or None, but is {self.continuation!r}")
        power: Any = self.temperature
        is_number = isinstance(power, int | float | np.number) and not isinstance(power, bool)
        if not is_auto(power) and not (is_number and 0.0 <= power <= 1.0):
            raise ArgumentError("temperature", f"must be 'auto' or a power from 0 to 1, but is {self.temperature!r}")
        whole_number("max_bins", self.max_bins, 2, 255)
        whole_number("max_cuts", self.max_cuts, 1)

    def _prior_of(self, value: Any) -> Any:
        """Parameters of priors; they are searched for only where trees are grown."""
        return 0.5 if self.continuation is None and is_auto(value) else value

    # ---- answers ----------------------------------------------------------------------------------------------------

    @property
    def posterior_(self) -> ExactPosterior:
        """The posterior over every tree and every choice of splits."""
        self._check_fitted()
        posterior: ExactPosterior = self.forest_.posterior
        return posterior

    @property
    def truncation_(self) -> float:
        """Maximum posterior mass that the prediction of any row leaves out."""
        return self.posterior_.truncation

    @property
    def map_tree_(self) -> ExactTree:
        """The most probable tree, with the log of its posterior probability."""
        tree = self.posterior_.map_tree()
        return self.forest_.in_table(tree) if self._is_continued else tree

    @property
    def map_posterior_(self) -> Posterior:
        """The posterior over the prunings of the most probable tree, for pictures of it."""
        self._check_fitted()
        posterior: Posterior = self.forest_.in_tree(self.map_tree_.as_metatree())
        return posterior

    @property
    def temperature_(self) -> float:
        """Power of the evidence by which trees are weighted."""
        return self.posterior_.temperature

    @property
    def choice_(self) -> Choice:
        """Priors, score and sharpness that were chosen by rows that trees of a continuation were not grown on."""
        choice = self._learnt().choice
        if choice is None:
            raise AttributeError("choice_ is for a continuation: other priors are given, not chosen")
        return choice

    @property
    def _is_continued(self) -> bool:
        return isinstance(self.forest_, ContinuedForest)

    def pictured(self) -> Posterior:
        return self.map_posterior_

    def words_of_codes(self) -> list[CodeWords]:
        columns = zip(self.schema_.code_names, self.schema_.columns, strict=True)
        if self._is_continued:
            return list(self.schema_.code_names)
        return [words.with_missing_code(column.has_missing) for words, column in columns]


class ExactTreeClassifier(Classification, _ExactStructure):
    """The exact average over every tree up to a depth and every choice of its splits, for classes.

    Parameters
    ----------
    max_depth : int or "auto"
        Maximum depth of the trees that are summed over. "auto" is 4, or 2 with a continuation.
    max_bins : int
        Maximum number of codes of a column of numbers; the cut points are those that say most about the target.
    continuation : "grown" or None
        With "grown", trees go on below `max_depth`: each region there has a tree that is grown on a random part of its
        rows, with all cut points, and averaged over its prunings. The sum near the root stays exact. Such a model
        predicts much better than a shallow tree. More rows are counted in the same trees, as in a forest. With None
        nothing is grown: `map_tree_` is then the whole tree and its probability a certificate.
    temperature : float or "auto"
        Power of the evidence: trees are weighted by prior times evidence ** temperature. With less than 1 more trees
        count. "auto" is 1 without a continuation; with one it is chosen by rows that trees were not grown on, together
        with the sharpness of the average. A tempered posterior is no probability of trees given the data; it is a
        weighting that predicts well where trees were grown on the same rows.
    split_prior : float, callable or "auto"
        Prior probability that a region is split. "auto" is 0.5; with a continuation it is chosen by rows that trees
        were not grown on.
    alpha : float or "auto"
        Dirichlet concentration of each class in a leaf; "auto" as for `split_prior`.
    candidates : {"all", "nontrivial"}
        Every split a region's codes allow, or only those that separate its rows.
    max_cuts : int
        Maximum number of cut points over all columns; the number of regions grows with its power `max_depth`.
    truncation : float
        Posterior mass that predictions may leave out.
    max_regions : int
        Fits that can need more regions are refused beforehand.
    random_state : int, RandomState or None
        Of the rows and columns that trees of a continuation are grown on.
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
    posterior_ : ExactPosterior
    map_tree_ : ExactTree
        The most probable tree; its `log_prob` is a certificate.
    log_evidence_, truncation_, temperature_ : float
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
    3
    """

    def __init__(
        self,
        max_depth: int | Literal["auto"] = "auto",
        *,
        max_bins: int = 8,
        continuation: Literal["grown"] | None = None,
        temperature: float | Literal["auto"] = "auto",
        split_prior: Any = "auto",
        alpha: float | Literal["auto"] = "auto",
        candidates: Literal["all", "nontrivial"] = "all",
        max_cuts: int = 40,
        truncation: float = 1e-6,
        max_regions: int = 20_000_000,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.continuation = continuation
        self.temperature = temperature
        self.split_prior = split_prior
        self.alpha = alpha
        self.candidates = candidates
        self.max_cuts = max_cuts
        self.truncation = truncation
        self.max_regions = max_regions
        self.categorical_features = categorical_features
        self.relative_weights = relative_weights
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def target_before_fit(self) -> ClassTarget:
        return ClassTarget(type(self).__name__, self._prior_of(self.alpha), self._prior_of(self.split_prior), None)


class ExactTreeRegressor(Regression, _ExactStructure):
    """The exact average over every tree up to a depth and every choice of its splits, for numbers.

    Parameters
    ----------
    max_depth
        As in `ExactTreeClassifier`.
    max_bins
        As in `ExactTreeClassifier`.
    continuation
        As in `ExactTreeClassifier`.
    temperature
        As in `ExactTreeClassifier`.
    split_prior
        As in `ExactTreeClassifier`.
    candidates
        As in `ExactTreeClassifier`.
    max_cuts
        As in `ExactTreeClassifier`.
    truncation
        As in `ExactTreeClassifier`.
    max_regions
        As in `ExactTreeClassifier`.
    family
        As in `MetaForestRegressor`; parameters that `prior` does not name have defaults, centred on the data.
    prior
        As in `MetaForestRegressor`; parameters that `prior` does not name have defaults, centred on the data.
    random_state
        As in `ExactTreeClassifier`.
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
        max_depth: int | Literal["auto"] = "auto",
        *,
        max_bins: int = 8,
        family: str = "normal",
        prior: Any = "auto",
        continuation: Literal["grown"] | None = None,
        temperature: float | Literal["auto"] = "auto",
        split_prior: Any = "auto",
        candidates: Literal["all", "nontrivial"] = "all",
        max_cuts: int = 32,
        truncation: float = 1e-6,
        max_regions: int = 20_000_000,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.family = family
        self.prior = prior
        self.continuation = continuation
        self.temperature = temperature
        self.split_prior = split_prior
        self.candidates = candidates
        self.max_cuts = max_cuts
        self.truncation = truncation
        self.max_regions = max_regions
        self.categorical_features = categorical_features
        self.relative_weights = relative_weights
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def target_before_fit(self) -> NumberTarget:
        return NumberTarget(type(self).__name__, self.family, self.prior, self._prior_of(self.split_prior))
