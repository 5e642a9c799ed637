"""Forests of meta-trees."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from inspect import signature
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.checks import whole_number
from everytree.base.errors import ArgumentError
from everytree.estimators.base import CategoricalFeatures
from everytree.estimators.grown import check_grower, check_max_features
from everytree.estimators.oob import OutOfBagEstimator
from everytree.estimators.outputs import ClassOutputs, NumberOutputs
from everytree.estimators.readable import Readable
from everytree.fitting.class_weight import ClassWeight
from everytree.fitting.fit import Weights
from everytree.fitting.structures import EarlierTrees, ForestStructure, GrownStructure
from everytree.posterior.posterior import Posterior
from everytree.structure.growers import MaxFeatures
from everytree.trees.decision_paths import decision_paths


class _ForestStructure(Readable, OutOfBagEstimator):
    """Many structures, each grown on a part of the rows; pictures show the one that explains the rows best."""

    n_estimators: int
    grower: Any
    max_features: Any
    warm_start: bool

    def _own_structure(self) -> ForestStructure:
        growth = self._growth(
            grower=self.grower, max_features=self.max_features, subsample=self.subsample, bootstrap=bool(self.bootstrap)
        )
        return ForestStructure(
            int(self.n_estimators), self.random_state, self.weights, self.calibration == "auto", growth,
            bool(self.oob_score),
        )  # fmt: skip

    def _structure_of_fit(self) -> GrownStructure:
        structure = self._structure()
        fitted = self._with_trees().__dict__.get("fitted_")
        if not self.warm_start or fitted is None or fitted.origin is None:
            return structure
        assert isinstance(structure, ForestStructure)
        n_before, n_trees = len(fitted.model.parts.averaged), structure.n_structures
        if n_trees < n_before:
            raise ArgumentError(
                "n_estimators", f"is {n_trees}, but warm_start=True keeps the {n_before} trees there are"
            )
        if n_trees == n_before:
            warnings.warn("with warm_start=True and as many n_estimators as before, no trees are grown", stacklevel=4)
        return replace(structure, earlier=EarlierTrees(fitted.schema, fitted.model.parts.averaged.trees, fitted.origin))

    def _check_for_parts(self, method: str) -> None:
        super()._check_for_parts(method)
        if self.warm_start:
            raise ArgumentError("warm_start", f"is for fit: {method} begins anew; set it to False")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whole_number("n_estimators", self.n_estimators, 1)
        check_grower(self.grower)
        check_max_features(self.max_features)
        if not isinstance(self.weights, str) or self.weights not in get_args(Weights):
            raise ValueError(f"weights must be one of {list(get_args(Weights))}, but is {self.weights!r}")
        if self.calibration is not None and not (isinstance(self.calibration, str) and self.calibration == "auto"):
            raise ValueError(f"calibration must be 'auto' or None, but is {self.calibration!r}")
        if not (isinstance(self.subsample, int | float | np.number) and 0.0 < self.subsample <= 1.0):
            raise ValueError(f"subsample must be a share of the rows in (0, 1], but is {self.subsample!r}")
        for name in ("bootstrap", "warm_start"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise ArgumentError(name, f"must be True or False, but is {getattr(self, name)!r}")
        if not isinstance(self.grower, str):
            self._check_beside_grower("grower is a forest of its own")
        if hasattr(self, "structures_"):
            self._check_beside_grower("the structures were imported", "oob_score")

    def _check_beside_grower(self, why: str, *more: str) -> None:
        """Raise for parameters of growing that would change nothing, those and `more`."""
        of_class = signature(type(self)).parameters
        for name in ("criterion", "max_leaf_nodes", "bootstrap", "warm_start", *more):
            if getattr(self, name) != of_class[name].default:
                raise ArgumentError(name, f"is {getattr(self, name)!r}, which would change nothing: {why}")

    def __len__(self) -> int:
        """Number of trees."""
        return len(self._with_trees().posteriors_)

    def pictured(self) -> Posterior:
        return self.posteriors_[self._pictured_number()]

    def _pictured_number(self) -> int:
        number: int = self.forest_.best_tree()
        return number

    def apply(self, X: Any) -> NDArray[np.int32]:
        """(n_rows, n_trees) the node in which each row ends in each tree, numbered as in `posteriors_[i].tree`.

        That is a terminal, or a node above that splits on a value which it has not seen. Which of the nodes above it
        are leaves is a question of probability: see `Posterior.split_prob`.
        """
        model = self._with_trees()
        codes = model._encode(X)
        ends: NDArray[np.int32] = model.forest_.ends(codes, n_jobs=self.n_jobs)
        return ends

    def decision_path(self, X: Any) -> tuple[Any, NDArray[np.int64]]:
        """The nodes that each row goes through.

        Returns
        -------
        indicator : (n_rows, n_nodes of all trees) scipy.sparse CSR matrix
            1 where a row goes through a node.
        n_nodes_ptr : (n_trees + 1,) array
            Tree i has the columns n_nodes_ptr[i] .. n_nodes_ptr[i + 1].
        """
        ends = self.apply(X)
        return decision_paths(self._with_trees().forest_.trees, ends)


class MetaForestClassifier(ClassOutputs, _ForestStructure):
    """A forest in which every tree is averaged over all its prunings, with calibrated class probabilities.

    Parameters
    ----------
    n_estimators : int
        Number of structures.
    grower : {"mixed", "random_forest", "extra_trees"} or scikit-learn forest
        How splits are chosen: half best splits and half random ones, one kind alone, or an unfitted forest of yours,
        which is then fitted on the codes of the columns.
    max_depth
        As in scikit-learn's trees.
    min_samples_leaf
        As in scikit-learn's trees.
    max_features
        As in scikit-learn's trees. "auto" differs from tree to tree: the square root for best splits; the square root,
        half or all of the features for random ones.
    subsample : float
        Share of the rows on which each structure is grown, without replacement. All rows count in its statistics; the
        rows it was not grown on are used to choose priors.
    split_prior : "auto", float or callable
        Prior probability that a node is split.
    alpha : "auto" or float
        Rows that the prior of a leaf is worth, for each class; its mean is the class frequencies.
    weights : {"tempered", "uniform", "stacking", "evidence"}
        Weights of the structures. Tempered ones are proportional to a power of the evidence, from 0 (uniform) to 1,
        which is chosen by rows unseen by the trees. Evidence itself puts nearly all weight on one structure, since
        structures were grown on the same targets; it is there for comparison.
    calibration : "auto" or None
        Whether the average of the trees is sharpened, by a power that is chosen on rows unseen by the trees.
    max_bins : int
        Maximum number of codes of a column of numbers; above 255 they take two bytes.
    categorical_features : "from_dtype", None or sequence
        Which columns are categories: those of text or a categorical type, none, or those with these names or positions.
        Text of which every value is a number or a date is read as such, with a warning, unless it is named here.
    relative_weights : bool
        Meaning of `sample_weight`. False: counts, so that a row of weight 2 is a row seen twice. True: relative
        importance; weights are multiplied by one factor so that those of the first `fit` sum to its number of rows.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    random_state : int, RandomState or None
    verbose : int
        Above 0, progress is shown.
    criterion : {"gini", "entropy", "log_loss", "evidence"}
        By which splits are chosen; "log_loss" is another name of "entropy", "evidence" is that of the leaves.
    max_leaf_nodes : int, optional
        Each tree is grown best split first, until it has this many leaves; at least 2.
    class_weight : dict, list of dicts, "balanced", "balanced_subsample" or None
        Weights of the classes, by which the weights of rows are multiplied; a class that is not named has weight 1. Of
        several outputs, one dict for each in a list, and the weights of a row's classes are multiplied.
        "balanced" gives all classes the same total weight, as scikit-learn's `compute_sample_weight` does. Every tree
        counts all rows, so that "balanced_subsample" is the same here. `partial_fit` takes a dict only.
    bootstrap : bool
        Whether each structure is grown on as many rows as there are, drawn with replacement, instead of `subsample` of
        them. A row that is drawn twice counts twice, also for `min_samples_leaf`.
    oob_score : bool or callable
        Whether to predict each row of `fit` by the trees that were not grown on it, and to score that: by the
        accuracy, or by a function of the true and the predicted class numbers.
    warm_start : bool
        Whether a further `fit` to the same rows with more `n_estimators` keeps the trees there are and grows the rest.
        Priors are chosen anew over all trees: the result is that of all trees at once. A model that was read from a
        file grows all trees again.
    monotonic_cst : (n_features,) array_like or None
        None, or 0 for every column. Monotone constraints are not available yet, and anything else is refused.

    Attributes
    ----------
    classes_ : (n_classes,) array
        A list of such arrays for several outputs.
    n_outputs_ : int
        Number of columns of y.
    outputs_ : list of estimators
        Only for several outputs: a fitted `MetaForestClassifier` for each. They share columns and trees, and have all
        that concerns one output: `forest_`, `posteriors_`, `weights_`, `choice_`, `log_evidence_`, `predictive`, ...
    schema_ : Schema
        Columns, cut points and categories.
    forest_ : Forest
    posteriors_ : tuple of Posterior
        One for each structure.
    weights_ : (n_trees,) array
    choice_ : Choice
        The priors and the sharpness that were chosen, and their score.
    log_evidence_ : float
    feature_importances_ : (n_features,) array
    unseen_ : ClassScores
        Scores of rows of `fit` by trees that had not seen them, beside those of predicting the same for every row.
    oob_score_ : float
        With `oob_score`. Other than in scikit-learn's forests, all rows are in the statistics of every tree, and a row
        (with the others of its group) is subtracted where it is predicted.
    oob_decision_function_ : (n_rows, n_classes) array
        With `oob_score`: probabilities for the rows of `fit`; NaN for a row of weight 0, and for one on which every
        tree was grown.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = et.MetaForestClassifier(n_estimators=20, random_state=0).fit(X, y)
    >>> model.predict(X[:3])
    array([0, 0, 0])
    >>> model.predict_proba(X[:1]).shape
    (1, 3)
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        grower: Any = "mixed",
        max_depth: int | None = None,
        min_samples_leaf: int | float = 1,
        max_features: MaxFeatures | Literal["auto"] = "auto",
        subsample: float = 0.8,
        split_prior: Any = "auto",
        alpha: float | Literal["auto"] = "auto",
        weights: Weights = "tempered",
        calibration: Literal["auto"] | None = "auto",
        max_bins: int = 255,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        criterion: str = "gini",
        max_leaf_nodes: int | None = None,
        class_weight: ClassWeight = None,
        bootstrap: bool = False,
        oob_score: bool | Callable[[Any, Any], float] = False,
        warm_start: bool = False,
        monotonic_cst: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.grower = grower
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.subsample = subsample
        self.split_prior = split_prior
        self.alpha = alpha
        self.weights = weights
        self.calibration = calibration
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.relative_weights = relative_weights
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.criterion = criterion
        self.max_leaf_nodes = max_leaf_nodes
        self.class_weight = class_weight
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.monotonic_cst = monotonic_cst

    @property
    def oob_decision_function_(self) -> FloatArray:
        """(n_rows, n_classes) probabilities of the classes, by the trees that were not grown on a row.

        With several outputs (n_rows, n_classes, n_outputs): 0 beyond the classes of an output that has fewer.
        """
        return self._out_of_bag().prediction


class MetaForestRegressor(NumberOutputs, _ForestStructure):
    """A forest in which every tree is averaged over all its prunings, with a full predictive distribution per row.

    Parameters
    ----------
    n_estimators : int
        Number of structures.
    family : {"normal", "poisson", "exponential", "geometric", "linear"}
        Leaf model of the target: a measurement, a count (with `exposure`), a time (with `censored`), a number
        of failures before a success, or a measurement that is linear in the columns of numbers.
    prior : "auto" or dict
        Parameters of the leaf prior to fix; those not named are chosen. normal: `strength` and `shape` (rows that the
        prior mean and variance are worth) and `noise` (variance in a leaf as a share of that of y); linear:
        `precision`, `shape`, `noise`; the others: `shape` (events or rows the prior is worth).
    grower
        As in `MetaForestClassifier`.
    max_depth
        As in `MetaForestClassifier`.
    min_samples_leaf
        As in `MetaForestClassifier`.
    max_features
        As in `MetaForestClassifier`.
    subsample
        As in `MetaForestClassifier`.
    split_prior
        As in `MetaForestClassifier`.
    weights
        As in `MetaForestClassifier`.
    max_bins
        As in `MetaForestClassifier`.
    calibration : "auto" or None
        Whether the average of the trees is narrowed around its mean, by a factor that is chosen on rows unseen by the
        trees; for families normal and linear.
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
    criterion : {"squared_error", "evidence"}
        By which splits are chosen: the squared error of means (of rates for counts, of logarithms for lognormal), or
        the evidence of the leaves of the family. Linear leaves gain most by "evidence", at the cost of a slower fit.
    max_leaf_nodes
        As in `MetaForestClassifier`.
    bootstrap, warm_start
        As in `MetaForestClassifier`.
    monotonic_cst
        As in `MetaForestClassifier`.
    oob_score : bool or callable
        Whether to predict each row of `fit` by the trees that were not grown on it, and to score that: by R2 (for
        families exponential and geometric by the mean log score, as in `score`), or by a function of the targets and
        the predicted means.

    Attributes
    ----------
    schema_, forest_, posteriors_, weights_, choice_, log_evidence_, feature_importances_, oob_score_
        As in `MetaForestClassifier`.
    n_outputs_, outputs_
        As in `MetaForestClassifier`.
    unseen_ : NumberScores
        As in `MetaForestClassifier`.
    oob_prediction_ : (n_rows,) array
        With `oob_score`: means for the rows of `fit`; NaN for a row of weight 0, and for one on which every tree was
        grown.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import load_diabetes
    >>> X, y = load_diabetes(return_X_y=True)
    >>> model = et.MetaForestRegressor(n_estimators=20, random_state=0).fit(X[:400], y[:400])
    >>> model.predict_interval(X[400:], coverage=0.9).shape
    (42, 2)
    """

    def __init__(
        self,
        n_estimators: int = 100,
        *,
        family: str = "normal",
        prior: Any = "auto",
        grower: Any = "mixed",
        max_depth: int | None = None,
        min_samples_leaf: int | float = 1,
        max_features: MaxFeatures | Literal["auto"] = "auto",
        subsample: float = 0.8,
        split_prior: Any = "auto",
        weights: Weights = "tempered",
        calibration: Literal["auto"] | None = "auto",
        max_bins: int = 255,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        criterion: str = "squared_error",
        max_leaf_nodes: int | None = None,
        bootstrap: bool = False,
        oob_score: bool | Callable[[Any, Any], float] = False,
        warm_start: bool = False,
        monotonic_cst: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.family = family
        self.prior = prior
        self.grower = grower
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.max_features = max_features
        self.subsample = subsample
        self.split_prior = split_prior
        self.weights = weights
        self.calibration = calibration
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.relative_weights = relative_weights
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.criterion = criterion
        self.max_leaf_nodes = max_leaf_nodes
        self.bootstrap = bootstrap
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.monotonic_cst = monotonic_cst

    @property
    def oob_prediction_(self) -> FloatArray:
        """(n_rows,) or (n_rows, n_outputs) means, by the trees that were not grown on a row."""
        return self._out_of_bag().prediction
