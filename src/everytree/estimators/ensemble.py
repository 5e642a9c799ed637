"""A meta-forest and boosted meta-trees together."""

from __future__ import annotations

from typing import Any

from everytree.base.checks import is_auto, positive_number, whole_number
from everytree.boosting.chains import BoostRule
from everytree.estimators.base import CategoricalFeatures
from everytree.estimators.boost import Auto, BoostedEstimator, check_boosted_family, target_of_boosting
from everytree.estimators.classifier import Classification
from everytree.estimators.regressor import Regression
from everytree.fitting.boosted import BoostStructure
from everytree.fitting.ensembled import EnsembleStructure
from everytree.fitting.structures import ForestStructure
from everytree.fitting.targets import NumberTarget
from everytree.structure.growers import Growth


class _Ensemble(BoostedEstimator):
    """A forest, and chains of boosted trees."""

    n_estimators: int
    max_iter: int
    learning_rate: float | Auto
    split_prior = "auto"
    n_residual_trees = 100  # of no use for classes

    def _structure(self) -> EnsembleStructure:
        rate = None if is_auto(self.learning_rate) else float(self.learning_rate)
        rule = BoostRule(max_steps=int(self.max_iter), learning_rate=rate)
        forest = ForestStructure(int(self.n_estimators), self.random_state, "tempered", self._sharpens(), Growth())
        return EnsembleStructure(forest, BoostStructure(rule, self.random_state, True, int(self.n_residual_trees)))

    def _sharpens(self) -> bool:
        """Whether the forest is sharpened by itself."""
        return True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whole_number("n_estimators", self.n_estimators, 1)
        whole_number("max_iter", self.max_iter, 1)
        whole_number("n_residual_trees", self.n_residual_trees, 1)
        if not is_auto(self.learning_rate):
            positive_number("learning_rate", self.learning_rate)

    @property
    def boost_weight_(self) -> float:
        """Weight of the boosted trees, chosen by rows that neither model had seen; the forest has the rest."""
        forest = self.forest_
        return float(forest.weight if hasattr(forest, "weight") else forest.trees.weight)


class MetaEnsembleClassifier(_Ensemble, Classification):
    """A meta-forest and boosted meta-trees, mixed by how well each predicts rows that it has not seen.

    Forests are better on small and noisy tables, boosting on smooth and clean ones; the mixture is as good as the
    better one, and often better than both.

    Parameters
    ----------
    n_estimators : int
        Trees of the forest; see `MetaForestClassifier`.
    max_iter
        Of boosting; see `MetaBoostClassifier`.
    learning_rate
        Of boosting; see `MetaBoostClassifier`.
    max_bins
        As in `MetaForestClassifier`.
    categorical_features
        As in `MetaForestClassifier`.
    relative_weights
        As in `MetaForestClassifier`.
    class_weight
        As in `MetaForestClassifier`.
    n_jobs
        As in `MetaForestClassifier`.
    random_state
        As in `MetaForestClassifier`.
    verbose
        As in `MetaForestClassifier`.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = et.MetaEnsembleClassifier(random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.95)
    True
    """

    alpha = "auto"

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        max_iter: int = 1000,
        learning_rate: float | Auto = "auto",
        max_bins: int = 255,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.relative_weights = relative_weights
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


class MetaEnsembleRegressor(_Ensemble, Regression):
    """A meta-forest and boosted meta-trees for numbers, with full predictive distributions.

    The centre of a row is a weighted mean of what both say. Another meta-forest learns how targets lie about the
    centres that were given to rows which the models had not seen, with the centre as one more column.

    Parameters
    ----------
    n_estimators : int
        Trees of the forest; see `MetaForestRegressor`.
    family : {"normal", "lognormal", "poisson", "exponential"}
        As in `MetaBoostRegressor`.
    max_iter
        Of boosting; see `MetaBoostClassifier`.
    learning_rate
        Of boosting; see `MetaBoostClassifier`.
    n_residual_trees : int
        Trees of the meta-forest about the centres; see `MetaBoostRegressor`.
    max_bins
        As in `MetaForestClassifier`.
    categorical_features
        As in `MetaForestClassifier`.
    relative_weights
        As in `MetaForestClassifier`.
    n_jobs
        As in `MetaForestClassifier`.
    random_state
        As in `MetaForestClassifier`.
    verbose
        As in `MetaForestClassifier`.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(400, random_state=0)
    >>> model = et.MetaEnsembleRegressor(random_state=0).fit(X[:200], y[:200])
    >>> bool(model.score(X[200:], y[200:]) > 0.8)
    True
    """

    prior = "auto"

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        family: str = "normal",
        max_iter: int = 1000,
        learning_rate: float | Auto = "auto",
        n_residual_trees: int = 100,
        max_bins: int = 255,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_estimators = n_estimators
        self.family = family
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.n_residual_trees = n_residual_trees
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.relative_weights = relative_weights
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def target_before_fit(self) -> NumberTarget:
        return target_of_boosting(self)

    def _sharpens(self) -> bool:
        return False  # only its mean is used

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_boosted_family(self.family)
