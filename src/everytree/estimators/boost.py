"""Boosted meta-trees."""

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
from everytree.families.registry import boosted_families
from everytree.fitting.structures.boost import BoostStructure
from everytree.fitting.targets.class_weight import ClassWeight
from everytree.fitting.targets.numbers import NumberTarget


@estimator
class _Boost(MetaEstimator):
    """Chains of boosted trees."""

    max_iter: int = parameter(rules.MAX_ITER, default=1000, kw_only=False)
    learning_rate: float | Auto = parameter(rules.LEARNING_RATE, default="auto")
    n_chains: int = parameter(rules.N_CHAINS, default=5)
    max_leaf_nodes: int | Auto = parameter(rules.LEAVES_OF_BOOSTED, default="auto")
    max_depth: int | Auto | None = parameter(rules.DEPTH_OF_BOOSTED, default="auto")
    min_samples_leaf: int = parameter(rules.ROWS_OF_LEAF_OF_BOOSTED, default=1)
    subsample: float = parameter(rules.ROWS_OF_BOOSTED, default=0.5)
    max_features: float | Auto = parameter(rules.COLUMNS_OF_BOOSTED, default="auto")
    split_prior: float | Auto = parameter(rules.SPLIT_PRIOR_OF_BOOSTED, default="auto")
    n_iter_no_change: int | Auto = parameter(rules.N_ITER_NO_CHANGE, default="auto")
    generate: Literal["auto"] | None = parameter(rules.GENERATE, default="auto")
    max_bins: int = parameter(rules.MAX_BINS, default=255)
    categorical_features: CategoricalFeatures = parameter(rules.CATEGORICAL_FEATURES, default="from_dtype")
    relative_weights: bool = parameter(rules.RELATIVE_WEIGHTS, default=False)
    n_jobs: int | None = parameter(rules.N_JOBS, default=None)
    random_state: Any = parameter(rules.RANDOM_STATE, default=None)
    verbose: int = parameter(rules.VERBOSE, default=0)
    monotonic_cst: Any = parameter(rules.MONOTONIC_CST, default=None)

    model_kinds = ("boosted classes", "boosted numbers", "survival")
    counts_rows = False

    def _structure(self) -> BoostStructure:
        given: dict[str, Any] = {
            "learning_rate": self.learning_rate, "split_prior": self.split_prior, "patience": self.n_iter_no_change,
            "max_leaf_nodes": self.max_leaf_nodes, "max_depth": 0 if self.max_depth is None else self.max_depth,
            "max_features": self.max_features,
        }  # fmt: skip
        rule = BoostRule(
            n_chains=int(self.n_chains), max_steps=int(self.max_iter), min_samples_leaf=int(self.min_samples_leaf),
            subsample=float(self.subsample),
            **{name: value for name, value in given.items() if not is_auto(value)},
        )  # fmt: skip
        is_calibrated = getattr(self, "calibration", "auto") == "auto"  # the forest of residuals calibrates numbers
        n_residual_trees, lines = int(getattr(self, "n_residual_trees", 0)), bool(getattr(self, "lines", False))
        return BoostStructure(
            rule,
            self.random_state,
            is_calibrated,
            n_residual_trees,
            lines,
            self.generate is not None and self.monotonic_cst is None,
        )

    @property
    def n_iter_(self) -> int:
        """Steps of the longest chain."""
        return int(max(self.model_.chains.n_steps))


@estimator
class MetaBoostClassifier(_Boost, Classifier):
    """Gradient boosting in which every tree is averaged over all its prunings, with calibrated class probabilities.

    Several chains are boosted, each without one fold of the rows; some of its other rows decide by early stopping how
    long it is. Out-of-fold predictions calibrate the average of the chains (temperature scaling) and decide whether any
    column matters; tables of up to 50,000 rows are then boosted again, all rows in every chain. Each tree is grown on
    some rows and columns; its leaf values are then those of all rows of the chain, averaged over every pruning of the
    tree by its posterior probability.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import load_breast_cancer
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = et.MetaBoostClassifier(random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.95)
    True
    """

    calibration: Literal["auto"] | None = parameter(rules.CALIBRATION_OF_BOOSTED, default="auto")
    class_weight: ClassWeight = parameter(rules.CLASS_WEIGHT, default=None)


@estimator
class MetaBoostRegressor(_Boost, Regressor):
    """Gradient boosting in which every tree is averaged over all its prunings, with full predictive distributions.

    Chains as in `MetaBoostClassifier` predict the centre of each row. A meta-forest then models the residuals of
    out-of-fold predictions, with the centre as one more column. Of survival curves, chains predict relative hazards,
    and leaves of the forest multiply the baseline hazard by what is left besides.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import make_friedman1
    >>> X, y = make_friedman1(400, random_state=0)
    >>> model = et.MetaBoostRegressor(random_state=0).fit(X[:200], y[:200])
    >>> low, high = model.predict_interval(X[200:], 0.9).T
    >>> bool(((low < y[200:]) & (y[200:] < high)).mean() > 0.8)
    True
    """

    family: str = parameter(rules.BOOSTED_FAMILY, default="normal")
    n_residual_trees: int = parameter(rules.N_RESIDUAL_TREES, default=100)
    lines: bool = parameter(rules.LINES_OF_BOOSTED, default=True)

    def _structure(self) -> Any:
        own = super()._structure()
        return boosted_survival(own, 0, own.n_residual_trees) if self._predicts_curves else own

    def target_before_fit(self) -> NumberTarget:
        # The forest of residuals chooses its priors itself.
        return NumberTarget(type(self).__name__, self.family, "auto", "auto", boosted_families())
