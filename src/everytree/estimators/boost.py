"""Boosted meta-trees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NoReturn

import numpy as np

from everytree.base.checks import is_auto, positive_number, whole_number
from everytree.base.errors import ArgumentError
from everytree.boosting.chains import BoostRule
from everytree.boosting.numbers import BOOSTED_FAMILIES
from everytree.estimators.base import CategoricalFeatures, MetaEstimator
from everytree.estimators.classifier import Classification
from everytree.estimators.regressor import Regression
from everytree.fitting.boosted import BoostStructure
from everytree.fitting.fit import Fitted
from everytree.fitting.targets import NumberTarget


class _NotForBoosting:
    """A method of other estimators that boosting does not have."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Any, owner: type) -> NoReturn:
        forest = owner.__name__.replace("Boost", "Forest").replace("Ensemble", "Forest")
        raise AttributeError(
            f"{owner.__name__} has no {self.name}: a boosted tree depends on all trees before it, so that more rows "
            f"need a new fit. {forest} has it"
        )


Auto = Literal["auto"]


class BoostedEstimator(MetaEstimator):
    """Estimators with chains of boosted trees, and without what needs counts of rows alone."""

    random_state: Any

    partial_fit: Any = _NotForBoosting()
    merge: Any = _NotForBoosting()
    blank: Any = _NotForBoosting()
    log_evidence_: Any = _NotForBoosting()

    def _scored(self, fitted: Fitted, y: Any) -> Fitted:
        """Predictions of the rows of `fit` are not kept."""
        del y
        return replace(fitted, out_of_bag=None)

    @property
    def n_iter_(self) -> int:
        """Steps of the longest chain."""
        return int(max(self.forest_.n_steps))


class _Boosting(BoostedEstimator):
    """The parameters of chains."""

    max_iter: int
    learning_rate: float | Auto
    n_chains: int
    max_leaf_nodes: int | Auto
    min_samples_leaf: int
    subsample: float
    max_features: float
    n_iter_no_change: int | Auto
    calibration: Literal["auto"] | None = "auto"
    n_residual_trees = 100  # of no use for classes

    def _structure(self) -> BoostStructure:
        given: dict[str, Any] = {
            "learning_rate": self.learning_rate, "split_prior": self.split_prior, "patience": self.n_iter_no_change,
            "max_leaf_nodes": self.max_leaf_nodes, "max_depth": 0 if self.max_depth is None else self.max_depth,
        }  # fmt: skip
        rule = BoostRule(
            n_chains=int(self.n_chains), max_steps=int(self.max_iter), min_samples_leaf=int(self.min_samples_leaf),
            subsample=float(self.subsample), max_features=float(self.max_features),
            **{name: value for name, value in given.items() if not is_auto(value)},
        )  # fmt: skip
        return BoostStructure(rule, self.random_state, self.calibration == "auto", int(self.n_residual_trees))

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name, least in (("max_iter", 1), ("n_chains", 2), ("min_samples_leaf", 1), ("n_residual_trees", 1)):
            whole_number(name, getattr(self, name), least)
        for name, least in (("max_leaf_nodes", 2), ("n_iter_no_change", 1), ("max_depth", 1)):
            if not is_auto(getattr(self, name)) and not (name == "max_depth" and self.max_depth is None):
                whole_number(name, getattr(self, name), least)
        if not is_auto(self.learning_rate):
            positive_number("learning_rate", self.learning_rate)
        for name in ("subsample", "max_features", "split_prior"):
            value = getattr(self, name)
            if name == "split_prior" and is_auto(value):
                continue
            is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
            if not (is_number and 0.0 < value <= 1.0):
                raise ArgumentError(name, f"must be in (0, 1], but is {value!r}")
        if self.calibration is not None and not (isinstance(self.calibration, str) and self.calibration == "auto"):
            raise ArgumentError("calibration", f"must be 'auto' or None, but is {self.calibration!r}")


class MetaBoostClassifier(_Boosting, Classification):
    """Gradient boosting in which every tree is averaged over all its prunings, with calibrated class probabilities.

    Several chains are boosted, each without some of the rows; some of its other rows say when it has to stop. The rows
    left out say how sharp the average of the chains should be, and whether any column matters; tables of up to 50,000
    rows are then boosted again, all rows in every chain. Each tree is grown on some rows and columns; its leaf values
    are then those of all rows of the chain, averaged over every pruning of the tree by its posterior probability.

    Parameters
    ----------
    max_iter : int
        Maximum number of steps of a chain. A step adds one tree, or one for each of more than two classes.
    learning_rate : float or "auto"
        Share of a tree's values that a step adds. "auto" is 0.08 up to 5,000 rows and grows to 0.32 with 110,000.
    n_chains : int
        Number of chains; each row is left out by one of them. At least 2.
    max_leaf_nodes, max_depth : int or "auto"
        Of each tree; `max_depth` may be None. "auto" is 16 and 6 up to 5,000 rows and grows to 64 and 8.
    min_samples_leaf : int
    subsample, max_features : float
        Share of the rows, and of the columns, by which the splits of a tree are chosen.
    split_prior : float or "auto"
        Prior probability that a node is split; with 1, nothing is averaged over prunings. "auto" is 0.8, or 0.99 where
        that predicts the rows that stop a chain clearly better: targets that hardly have any noise.
    n_iter_no_change : int or "auto"
        A chain ends when so many steps have not improved the rows that it stops by. "auto" is 50 up to 5,000 rows and
        falls to 12.
    calibration : "auto" or None
        Whether the average of the chains is sharpened or flattened, by the rows that they left out.
    max_bins : int
        Maximum number of codes of a column of numbers.
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
    >>> model = et.MetaBoostClassifier(random_state=0).fit(X[::2], y[::2])
    >>> bool(model.score(X[1::2], y[1::2]) > 0.95)
    True
    """

    alpha = "auto"  # leaves are not counts of classes

    def __init__(
        self,
        max_iter: int = 1000,
        *,
        learning_rate: float | Auto = "auto",
        n_chains: int = 5,
        max_leaf_nodes: int | Auto = "auto",
        max_depth: int | Auto | None = "auto",
        min_samples_leaf: int = 1,
        subsample: float = 0.5,
        max_features: float = 0.5,
        split_prior: float | Auto = "auto",
        n_iter_no_change: int | Auto = "auto",
        calibration: Literal["auto"] | None = "auto",
        max_bins: int = 255,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        class_weight: Any = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.n_chains = n_chains
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.subsample = subsample
        self.max_features = max_features
        self.split_prior = split_prior
        self.n_iter_no_change = n_iter_no_change
        self.calibration = calibration
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.relative_weights = relative_weights
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose


class MetaBoostRegressor(_Boosting, Regression):
    """Gradient boosting in which every tree is averaged over all its prunings, with full predictive distributions.

    Chains as in `MetaBoostClassifier` predict the centre of each row. A meta-forest then learns how targets lie about
    the centres of rows that a chain had left out, with the centre as one more column.

    Parameters
    ----------
    max_iter : int
        Maximum number of steps of a chain; a step adds one tree.
    family : {"normal", "lognormal", "poisson", "exponential"}
        Of the targets about their centres: what boosting predicts is the mean of a normal, the mean of the logarithm of
        a lognormal, or the logarithm of the rate of a Poisson count or of an exponential time.
    learning_rate
        As in `MetaBoostClassifier`.
    n_chains
        As in `MetaBoostClassifier`.
    max_leaf_nodes
        As in `MetaBoostClassifier`.
    max_depth
        As in `MetaBoostClassifier`.
    min_samples_leaf
        As in `MetaBoostClassifier`.
    subsample, max_features
        As in `MetaBoostClassifier`.
    split_prior
        As in `MetaBoostClassifier`.
    n_iter_no_change
        As in `MetaBoostClassifier`.
    n_residual_trees : int
        Trees of the meta-forest. They take most of the time of a fit; intervals hardly change from some 30 on.
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
    >>> model = et.MetaBoostRegressor(random_state=0).fit(X[:200], y[:200])
    >>> low, high = model.predict_interval(X[200:], 0.9).T
    >>> bool(((low < y[200:]) & (y[200:] < high)).mean() > 0.8)
    True
    """

    prior = "auto"  # the forest of what is left chooses it

    def __init__(
        self,
        max_iter: int = 1000,
        *,
        family: str = "normal",
        learning_rate: float | Auto = "auto",
        n_chains: int = 5,
        max_leaf_nodes: int | Auto = "auto",
        max_depth: int | Auto | None = "auto",
        min_samples_leaf: int = 1,
        subsample: float = 0.5,
        max_features: float = 0.5,
        split_prior: float | Auto = "auto",
        n_iter_no_change: int | Auto = "auto",
        n_residual_trees: int = 100,
        max_bins: int = 255,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.max_iter = max_iter
        self.family = family
        self.learning_rate = learning_rate
        self.n_chains = n_chains
        self.max_leaf_nodes = max_leaf_nodes
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.subsample = subsample
        self.max_features = max_features
        self.split_prior = split_prior
        self.n_iter_no_change = n_iter_no_change
        self.n_residual_trees = n_residual_trees
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.relative_weights = relative_weights
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def target_before_fit(self) -> NumberTarget:
        return target_of_boosting(self)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_boosted_family(self.family)


def target_of_boosting(model: Any) -> NumberTarget:
    """The forest of what is left chooses its priors itself."""
    return NumberTarget(type(model).__name__, model.family, "auto", "auto")


def check_boosted_family(family: Any) -> None:
    """Check that the family has a link by which it is boosted."""
    if family not in BOOSTED_FAMILIES:
        raise ArgumentError("family", f"must be one of {list(BOOSTED_FAMILIES)}, but is {family!r}")
