"""One meta-tree, to be read by a person."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from everytree.estimators.base import CategoricalFeatures
from everytree.estimators.batches import BatchedEstimator
from everytree.estimators.outputs import ClassOutputs, NumberOutputs
from everytree.estimators.readable import Readable
from everytree.fitting.class_weight import ClassWeight
from everytree.fitting.structures import N_FOLDS, TreeStructure
from everytree.posterior.posterior import Posterior
from everytree.trees.decision_paths import decision_paths


class _TreeStructure(Readable, BatchedEstimator):
    """One structure, grown on all rows."""

    has_one_tree = True

    def _own_structure(self) -> TreeStructure:
        return TreeStructure(
            1 + N_FOLDS, self.random_state, self.weights, self.calibration == "auto", self._growth()
        )  # fmt: skip

    @property
    def posterior_(self) -> Posterior:
        """The posterior over all prunings of the one structure."""
        return self.posteriors_[0]

    def pictured(self) -> Posterior:
        return self.posterior_

    def apply(self, X: Any) -> NDArray[np.int32]:
        """(n_rows,) the node in which each row ends, numbered as in `posterior_.tree`; as in `MetaForestClassifier`."""
        model = self._with_trees()
        codes = model._encode(X)
        ends: NDArray[np.int32] = model.forest_.ends(codes, n_jobs=self.n_jobs)[:, 0]
        return ends

    def decision_path(self, X: Any) -> Any:
        """(n_rows, n_nodes) scipy.sparse CSR matrix, 1 where a row goes through a node."""
        ends = self.apply(X)
        return decision_paths(self._with_trees().forest_.trees, ends[:, None])[0]


class MetaTreeClassifier(ClassOutputs, _TreeStructure):
    """One decision tree, averaged over all its prunings: the probability of each split is part of the answer.

    Parameters
    ----------
    max_depth : int or None
    min_samples_leaf : int or float
        As in scikit-learn's trees. What a leaf of one row says holds less often for other rows than it claims.
    split_prior : "auto", float or callable
        Prior probability that a node is split.
    alpha : "auto" or float
        Rows that the prior of a leaf is worth, for each class; its mean is the class frequencies.
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
    criterion
        As in `MetaForestClassifier`.
    max_leaf_nodes
        As in `MetaForestClassifier`.
    class_weight
        As in `MetaForestClassifier`.
    monotonic_cst
        As in `MetaForestClassifier`.

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

    def __init__(
        self,
        max_depth: int | None = 5,
        *,
        min_samples_leaf: int | float = 3,
        split_prior: Any = "auto",
        alpha: float | Literal["auto"] = "auto",
        max_bins: int = 255,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        criterion: str = "gini",
        max_leaf_nodes: int | None = None,
        class_weight: ClassWeight = None,
        monotonic_cst: Any = None,
    ) -> None:
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.split_prior = split_prior
        self.alpha = alpha
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.relative_weights = relative_weights
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.criterion = criterion
        self.max_leaf_nodes = max_leaf_nodes
        self.class_weight = class_weight
        self.monotonic_cst = monotonic_cst


class MetaTreeRegressor(NumberOutputs, _TreeStructure):
    """One regression tree, averaged over all its prunings, with a full predictive distribution per row.

    Parameters
    ----------
    max_depth : int or None
    min_samples_leaf : int or float
        As in `MetaTreeClassifier`.
    family
        As in `MetaForestRegressor`.
    prior
        As in `MetaForestRegressor`.
    split_prior : "auto", float or callable
        Prior probability that a node is split.
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
    criterion
        As in `MetaForestRegressor`.
    max_leaf_nodes
        As in `MetaForestRegressor`.
    monotonic_cst
        As in `MetaForestRegressor`.

    Attributes
    ----------
    posterior_ : Posterior
    schema_, log_evidence_, feature_importances_, choice_, n_outputs_, outputs_
        As in `MetaForestClassifier`.
    """

    def __init__(
        self,
        max_depth: int | None = 5,
        *,
        family: str = "normal",
        prior: Any = "auto",
        min_samples_leaf: int | float = 3,
        split_prior: Any = "auto",
        max_bins: int = 255,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        criterion: str = "squared_error",
        max_leaf_nodes: int | None = None,
        monotonic_cst: Any = None,
    ) -> None:
        self.max_depth = max_depth
        self.family = family
        self.prior = prior
        self.min_samples_leaf = min_samples_leaf
        self.split_prior = split_prior
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.relative_weights = relative_weights
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.criterion = criterion
        self.max_leaf_nodes = max_leaf_nodes
        self.monotonic_cst = monotonic_cst
