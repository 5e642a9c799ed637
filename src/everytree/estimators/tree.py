"""One meta-tree, to be read by a person."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from everytree.estimators import rules
from everytree.estimators.base import MetaEstimator
from everytree.estimators.classifier import Classifier
from everytree.estimators.growing import growth_of, structure_or_imported
from everytree.estimators.parameters import CategoricalFeatures, estimator, parameter
from everytree.estimators.regressor import Regressor
from everytree.estimators.survival import check_for_survival, survival_structure
from everytree.fitting.structures.grown import GrownStructure
from everytree.fitting.structures.tree import N_FOLDS, TreeStructure
from everytree.fitting.targets.class_weight import ClassWeight
from everytree.posterior.posterior import Posterior


@estimator
class _Tree(MetaEstimator):
    """One tree, grown on all rows."""

    max_depth: int | None = parameter(rules.MAX_DEPTH, default=5, kw_only=False)
    min_samples_leaf: int | float = parameter(rules.MIN_SAMPLES_LEAF, default=3)
    max_leaf_nodes: int | None = parameter(rules.MAX_LEAF_NODES, default=None)
    split_prior: Any = parameter(rules.SPLIT_PRIOR, default="auto")
    max_bins: int = parameter(rules.MAX_BINS, default=255)
    categorical_features: CategoricalFeatures = parameter(rules.CATEGORICAL_FEATURES, default="from_dtype")
    relative_weights: bool = parameter(rules.RELATIVE_WEIGHTS, default=False)
    n_jobs: int | None = parameter(rules.N_JOBS, default=None)
    random_state: Any = parameter(rules.RANDOM_STATE, default=None)
    verbose: int = parameter(rules.VERBOSE, default=0)
    monotonic_cst: Any = parameter(rules.MONOTONIC_CST, default=None)

    model_kinds = ("forest", "survival")
    has_one_tree = True
    grows_trees = True

    def _structure(self) -> GrownStructure:
        own = TreeStructure(1 + N_FOLDS, self.random_state, "uniform", False, growth_of(self))
        return structure_or_imported(self, own)

    @property
    def posterior_(self) -> Posterior:
        """The posterior over all prunings of the one structure."""
        return self.posteriors_[0]

    def apply(self, X: Any) -> NDArray[np.int32]:
        """(n_rows,) the node in which each row ends, numbered as in `posterior_.tree`; as in `MetaForestClassifier`."""
        model = self._with_trees()
        codes = model._encode(X)
        ends: NDArray[np.int32] = model.forest_.ends(codes, n_jobs=self.n_jobs)[:, 0]
        return ends


@estimator
class MetaTreeClassifier(_Tree, Classifier):
    """One decision tree, averaged over all its prunings: the probability of each split is part of the answer.

    Attributes
    ----------
    posterior_ : Posterior
        Ask it for `map_tree()`, `top_trees(k)`, `split_prob`, `node_prob` and the like.
    classes_, schema_, log_evidence_, feature_importances_, choice_, n_outputs_, outputs_
        As in `MetaForestClassifier`.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> model = et.MetaTreeClassifier(max_depth=2, random_state=0).fit(X, y)
    >>> model.posterior_.map_tree().n_leaves
    3
    """

    criterion: str = parameter(rules.CLASS_CRITERION, default="gini")
    alpha: float | Literal["auto"] = parameter(rules.ALPHA, default="auto")
    class_weight: ClassWeight = parameter(rules.CLASS_WEIGHT, default=None)


@estimator
class MetaTreeRegressor(_Tree, Regressor):
    """One regression tree, averaged over all its prunings, with a full predictive distribution per row.

    Attributes
    ----------
    posterior_ : Posterior
    schema_, log_evidence_, feature_importances_, choice_, n_outputs_, outputs_
        As in `MetaForestClassifier`.
    """

    criterion: str = parameter(rules.NUMBER_CRITERION, default="squared_error")
    family: str = parameter(rules.FAMILY, default="normal")
    prior: Any = parameter(rules.PRIOR, default="auto")

    def _structure(self) -> Any:
        if not self._predicts_curves:
            return super()._structure()
        return survival_structure(self, 1, growth_of(self), sharpen=False, is_one_tree=True)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._predicts_curves:
            check_for_survival(self, {})
