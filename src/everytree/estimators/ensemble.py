"""A meta-forest and boosted meta-trees together."""

from __future__ import annotations

from typing import Any, Literal

from everytree.base.checks import is_auto
from everytree.boosting.chains import BoostRule
from everytree.estimators import rules
from everytree.estimators.base import MetaEstimator
from everytree.estimators.classifier import Classifier
from everytree.estimators.parameters import Auto, CategoricalFeatures, estimator, parameter
from everytree.estimators.regressor import Regressor
from everytree.estimators.survival import boosted_survival
from everytree.fitting.structures.boost import BoostStructure
from everytree.fitting.structures.ensemble import EnsembleStructure
from everytree.fitting.structures.forest import ForestStructure
from everytree.fitting.targets.class_weight import ClassWeight
from everytree.structure.growers import Growth


@estimator
class _Ensemble(MetaEstimator):
    """A forest, and chains of boosted trees."""

    n_estimators: int = parameter(rules.N_ESTIMATORS, default=100, kw_only=False)
    max_iter: int = parameter(rules.MAX_ITER, default=1000)
    learning_rate: float | Auto = parameter(rules.LEARNING_RATE, default="auto")
    generate: Literal["auto"] | None = parameter(rules.GENERATE, default="auto")
    max_bins: int = parameter(rules.MAX_BINS, default=255)
    categorical_features: CategoricalFeatures = parameter(rules.CATEGORICAL_FEATURES, default="from_dtype")
    relative_weights: bool = parameter(rules.RELATIVE_WEIGHTS, default=False)
    n_jobs: int | None = parameter(rules.N_JOBS, default=None)
    random_state: Any = parameter(rules.RANDOM_STATE, default=None)
    verbose: int = parameter(rules.VERBOSE, default=0)
    monotonic_cst: Any = parameter(rules.MONOTONIC_CST, default=None)

    model_kinds = ("mixed classes", "boosted numbers", "survival")
    counts_rows = False

    def _structure(self) -> EnsembleStructure:
        rate = None if is_auto(self.learning_rate) else float(self.learning_rate)
        rule = BoostRule(max_steps=int(self.max_iter), learning_rate=rate)
        is_sharpened = self.has_classes  # of a forest of numbers only the means are used
        forest = ForestStructure(
            int(self.n_estimators), self.random_state, "tempered", is_sharpened, Growth(), widens_leaves=True
        )
        n_residual_trees, lines = int(getattr(self, "n_residual_trees", 0)), bool(getattr(self, "lines", False))
        boost = BoostStructure(  # trees of residuals and lines are for numbers
            rule,
            self.random_state,
            True,
            n_residual_trees,
            lines,
            self.generate is not None and self.monotonic_cst is None,
        )
        return EnsembleStructure(forest, boost)

    @property
    def n_iter_(self) -> int:
        """Steps of the longest chain."""
        return int(max(self.model_.chains.n_steps))

    @property
    def boost_weight_(self) -> float:
        """Weight of the boosted trees, chosen by rows that neither model had seen; the forest has the rest."""
        return float(self.model_.parts.weight)


@estimator
class MetaEnsembleClassifier(_Ensemble, Classifier):
    """A blend of a meta-forest and boosted meta-trees, with weights chosen by out-of-fold predictions.

    Forests are better on small and noisy tables, boosting on smooth and clean ones; the mixture is as good as the
    better one, and often better than both.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = et.MetaEnsembleClassifier(random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.95)
    True
    """

    class_weight: ClassWeight = parameter(rules.CLASS_WEIGHT, default=None)


@estimator
class MetaEnsembleRegressor(_Ensemble, Regressor):
    """A meta-forest and boosted meta-trees for numbers, with full predictive distributions.

    The centre of a row is a weighted mean of both predictions. Another meta-forest models the residuals of out-of-fold
    predictions, with the centre as one more column. Survival curves are the mean of those of the forest's groups of
    trees, and of one group more, whose relative hazards are boosted.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(400, random_state=0)
    >>> model = et.MetaEnsembleRegressor(random_state=0).fit(X[:200], y[:200])
    >>> bool(model.score(X[200:], y[200:]) > 0.8)
    True
    """

    family: str = parameter(rules.BOOSTED_FAMILY, default="normal")
    n_residual_trees: int = parameter(rules.N_RESIDUAL_TREES, default=100)
    lines: bool = parameter(rules.LINES_OF_BOOSTED, default=True)

    def _structure(self) -> Any:
        own = super()._structure()
        if not self._predicts_curves:
            return own
        return boosted_survival(own.boost, own.forest.n_structures, own.boost.n_residual_trees)
