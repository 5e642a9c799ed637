"""Estimators that average over every tree and every choice of splits."""

from __future__ import annotations

from typing import Any, Literal

from everytree.base.checks import whole_number
from everytree.estimators.base import CategoricalFeatures
from everytree.estimators.classifier import Classification
from everytree.estimators.readable import Readable
from everytree.estimators.regressor import Regression
from everytree.exact.posterior import ExactPosterior
from everytree.exact.trees import ExactTree
from everytree.fitting.structures import ExactStructure
from everytree.fitting.targets import ClassTarget, NumberTarget
from everytree.posterior.posterior import Posterior
from everytree.tables.code_names import CodeWords


class _ExactStructure(Readable):
    """All structures up to a depth; none is grown."""

    model_kinds = ("exact",)

    max_cuts: int
    candidates: Any
    truncation: float
    max_regions: int

    def _structure(self) -> ExactStructure:
        return ExactStructure(
            self.max_depth, self.max_cuts, self.split_prior, self.candidates, self.truncation, self.max_regions
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whole_number("max_depth", self.max_depth, 0, 64)
        whole_number("max_bins", self.max_bins, 2, 255)
        whole_number("max_cuts", self.max_cuts, 1)

    # ---- answers ----------------------------------------------------------------------------------------------------

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

    @property
    def map_posterior_(self) -> Posterior:
        """The posterior over the prunings of the most probable tree, for pictures of it."""
        self._check_fitted()
        posterior: Posterior = self.model_.pictured()
        return posterior

    def pictured(self) -> Posterior:
        return self.map_posterior_

    def words_of_codes(self) -> list[CodeWords]:
        columns = zip(self.schema_.code_names, self.schema_.columns, strict=True)
        return [words.with_missing_code(column.has_missing) for words, column in columns]


class ExactTreeClassifier(Classification, _ExactStructure):
    """The exact average over every tree up to a depth and every choice of its splits, for classes.

    Parameters
    ----------
    max_depth : int
        Maximum depth of the trees that are summed over.
    max_bins : int
        Maximum number of codes of a column of numbers; the cut points are those that say most about the target.
    split_prior : float or callable
        Prior probability that a region is split.
    alpha : float
        Dirichlet concentration of each class in a leaf.
    candidates : {"all", "nontrivial"}
        Every split a region's codes allow, or only those that separate its rows.
    max_cuts : int
        Maximum number of cut points over all columns; the number of regions grows with its power `max_depth`.
    truncation : float
        Posterior mass that predictions may leave out.
    max_regions : int
        Fits that can need more regions are refused beforehand.
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
    3
    """

    def __init__(
        self,
        max_depth: int = 4,
        *,
        max_bins: int = 8,
        split_prior: Any = 0.5,
        alpha: float = 0.5,
        candidates: Literal["all", "nontrivial"] = "all",
        max_cuts: int = 40,
        truncation: float = 1e-6,
        max_regions: int = 20_000_000,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.split_prior = split_prior
        self.alpha = alpha
        self.candidates = candidates
        self.max_cuts = max_cuts
        self.truncation = truncation
        self.max_regions = max_regions
        self.categorical_features = categorical_features
        self.relative_weights = relative_weights
        self.n_jobs = n_jobs
        self.verbose = verbose

    def target_before_fit(self) -> ClassTarget:
        return ClassTarget(type(self).__name__, self.alpha, self.split_prior, None)


class ExactTreeRegressor(Regression, _ExactStructure):
    """The exact average over every tree up to a depth and every choice of its splits, for numbers.

    Parameters
    ----------
    max_depth
        As in `ExactTreeClassifier`.
    max_bins
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
        max_depth: int = 4,
        *,
        max_bins: int = 8,
        family: str = "normal",
        prior: Any = "auto",
        split_prior: Any = 0.5,
        candidates: Literal["all", "nontrivial"] = "all",
        max_cuts: int = 32,
        truncation: float = 1e-6,
        max_regions: int = 20_000_000,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.family = family
        self.prior = prior
        self.split_prior = split_prior
        self.candidates = candidates
        self.max_cuts = max_cuts
        self.truncation = truncation
        self.max_regions = max_regions
        self.categorical_features = categorical_features
        self.relative_weights = relative_weights
        self.n_jobs = n_jobs
        self.verbose = verbose

    def target_before_fit(self) -> NumberTarget:
        return NumberTarget(type(self).__name__, self.family, self.prior, self.split_prior)
