"""Forests of meta-trees."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.checks import is_auto
from everytree.base.errors import ArgumentError
from everytree.estimators import rules
from everytree.estimators.base import MetaEstimator
from everytree.estimators.classifier import Classifier
from everytree.estimators.growing import growth_of, structure_or_imported
from everytree.estimators.oob import with_out_of_bag_score
from everytree.estimators.parameters import Auto, CategoricalFeatures, estimator, parameter
from everytree.estimators.regressor import Regressor
from everytree.estimators.survival import check_for_survival, survival_structure
from everytree.fitting.fitted import Fitted
from everytree.fitting.held_out.out_of_bag import OutOfBag
from everytree.fitting.structures.forest import EarlierTrees, ForestStructure
from everytree.fitting.structures.grown import GrownStructure
from everytree.fitting.structures.origin import Weights
from everytree.fitting.targets.class_weight import ClassWeight
from everytree.structure.growers import MaxFeatures


@estimator
class _Forest(MetaEstimator):
    """Many trees, each grown on a part of the rows; pictures show the one that explains the rows best."""

    n_estimators: int = parameter(rules.N_ESTIMATORS, default=100, kw_only=False)
    grower: Any = parameter(rules.GROWER, default="mixed")
    max_depth: int | None = parameter(rules.MAX_DEPTH, default=None)
    min_samples_leaf: int | float | Auto = parameter(rules.MIN_SAMPLES_LEAF_OF_FORESTS, default="auto")
    max_features: MaxFeatures | Literal["auto"] = parameter(rules.MAX_FEATURES, default="auto")
    max_leaf_nodes: int | None = parameter(rules.MAX_LEAF_NODES, default=None)
    subsample: float = parameter(rules.SUBSAMPLE, default=0.8)
    bootstrap: bool = parameter(rules.BOOTSTRAP, default=False)
    split_prior: Any = parameter(rules.SPLIT_PRIOR, default="auto")
    weights: Weights = parameter(rules.WEIGHTS, default="tempered")
    calibration: Literal["auto"] | None = parameter(rules.CALIBRATION, default="auto")
    max_bins: int = parameter(rules.MAX_BINS, default=255)
    categorical_features: CategoricalFeatures = parameter(rules.CATEGORICAL_FEATURES, default="from_dtype")
    relative_weights: bool = parameter(rules.RELATIVE_WEIGHTS, default=False)
    n_jobs: int | None = parameter(rules.N_JOBS, default=None)
    random_state: Any = parameter(rules.RANDOM_STATE, default=None)
    verbose: int = parameter(rules.VERBOSE, default=0)
    oob_score: bool | Callable[[Any, Any], float] = parameter(rules.OOB_SCORE, default=False)
    warm_start: bool = parameter(rules.WARM_START, default=False)
    monotonic_cst: Any = parameter(rules.MONOTONIC_CST, default=None)

    model_kinds = ("forest", "survival")
    grows_trees = True

    def _structure(self) -> GrownStructure:
        growth = growth_of(
            self, grower=self.grower, max_features=self.max_features, subsample=self.subsample,
            bootstrap=bool(self.bootstrap),
        )  # fmt: skip
        own = ForestStructure(
            int(self.n_estimators), self.random_state, self.weights, self.calibration == "auto", growth,
            bool(self.oob_score), widens_leaves=is_auto(self.min_samples_leaf),
        )  # fmt: skip
        return structure_or_imported(self, own)

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

    def _check_incremental(self, method: str) -> None:
        if self.oob_score:
            raise ArgumentError("oob_score", f"is for fit: {method} does not keep all rows; set it to False")
        if self.warm_start:
            raise ArgumentError("warm_start", f"is True, which has no effect on {method}; set it to False")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.oob_score and self.subsample == 1.0 and not self.bootstrap and isinstance(self.grower, str):
            must = "needs rows that trees are not grown on, but subsample is 1; lower it, or set bootstrap=True"
            raise ArgumentError("oob_score", must)
        if not isinstance(self.grower, str):
            self._check_beside_grower("grower is a forest of its own")
        if self.structures_ is not None:
            self._check_beside_grower("the structures were imported", "oob_score")

    def _check_beside_grower(self, why: str, *more: str) -> None:
        """Raise for parameters of growing that would change nothing, those and `more`."""
        defaults = {one.name: one.default for one in fields(self)}
        for name in ("criterion", "max_leaf_nodes", "bootstrap", "warm_start", *more):
            if getattr(self, name) != defaults[name]:
                raise ArgumentError(name, f"is {getattr(self, name)!r}, which would change nothing: {why}")

    def __len__(self) -> int:
        """Number of trees."""
        return len(self._with_trees().posteriors_)

    def apply(self, X: Any) -> NDArray[np.int32]:
        """(n_rows, n_trees) the node in which each row ends in each tree, numbered as in `posteriors_[i].tree`.

        That is a terminal, or a node above that splits on a value which it has not seen. Which of the nodes above it
        are leaves is a question of probability: see `Posterior.split_prob`.
        """
        model = self._with_trees()
        codes = model._encode(X)
        ends: NDArray[np.int32] = model.forest_.ends(codes, n_jobs=self.n_jobs)
        return ends

    # ---- rows of fit ------------------------------------------------------------------------------------------------

    @property
    def oob_score_(self) -> float:
        """Score of the rows of `fit`, each predicted by the trees that were not grown on it."""
        return self._out_of_bag().score

    def _out_of_bag(self) -> OutOfBag:
        oob = self._learnt().out_of_bag
        if oob is None:
            raise AttributeError("there is no out-of-bag score: it needs a fit with oob_score=True")
        return oob

    def _scored(self, fitted: Fitted, y: Any) -> Fitted:
        return with_out_of_bag_score(self, fitted, y)


@estimator
class MetaForestClassifier(_Forest, Classifier):
    """A forest in which every tree is averaged over all its prunings, with calibrated class probabilities.

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

    criterion: str = parameter(rules.CLASS_CRITERION, default="gini")
    alpha: float | Literal["auto"] = parameter(rules.ALPHA, default="auto")
    class_weight: ClassWeight = parameter(rules.CLASS_WEIGHT, default=None)

    @property
    def oob_decision_function_(self) -> FloatArray:
        """(n_rows, n_classes) probabilities of the classes, by the trees that were not grown on a row."""
        return self._out_of_bag().prediction


@estimator
class MetaForestRegressor(_Forest, Regressor):
    """A forest in which every tree is averaged over all its prunings, with a full predictive distribution per row.

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

    criterion: str = parameter(rules.NUMBER_CRITERION, default="squared_error")
    family: str = parameter(rules.FAMILY, default="normal")
    prior: Any = parameter(rules.PRIOR, default="auto")

    def _structure(self) -> Any:
        if not self._predicts_curves:
            return super()._structure()
        growth = growth_of(
            self, grower=self.grower, max_features=self.max_features, subsample=self.subsample,
            bootstrap=bool(self.bootstrap),
        )  # fmt: skip
        return survival_structure(self, int(self.n_estimators), growth, sharpen=self.calibration == "auto")

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._predicts_curves:
            check_for_survival(self, {"weights": "tempered", "oob_score": False, "warm_start": False})

    @property
    def oob_prediction_(self) -> FloatArray:
        """(n_rows,) means, by the trees that were not grown on a row."""
        return self._out_of_bag().prediction
