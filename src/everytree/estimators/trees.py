"""One meta-tree, to be read by a person."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Literal

import numpy as np

from everytree.base.checks import resolve_n_jobs
from everytree.base.progress import Progress
from everytree.estimators.base import CategoricalFeatures
from everytree.estimators.batched import BatchedEstimator
from everytree.estimators.readable import Readable
from everytree.estimators.targets import Classification, Regression
from everytree.fitting.fit import Rows
from everytree.posterior.posterior import Posterior
from everytree.structure.growers import Grown

FOLDS = 5

ENOUGH_ROWS = 10_000
"""Rows that say enough about priors: of long tables, not every fifth is left out in turn."""


class _TreeStructure(Readable, BatchedEstimator):
    """One structure, grown on all rows; its priors are chosen by trees that are each grown without a fifth of them.

    There are five such trees, or so many that 10,000 rows are left out by one of them.
    """

    def _n_structures(self) -> int:
        return 1 + FOLDS

    def _structures(self, rows: Rows, seeds: list[int], progress: Progress) -> tuple[list[Grown], list[Grown]]:
        group = np.arange(len(rows.y)) if rows.group is None else rows.group
        n_groups = int(group.max()) + 1
        bags = [np.ones(len(rows.y), dtype=bool)]
        if n_groups >= 2 * FOLDS:
            fold = np.random.default_rng(seeds[0]).permutation(n_groups)[group] % FOLDS
            n_folds = min(FOLDS, -(-ENOUGH_ROWS * FOLDS // len(rows.y)))
            bags += [fold != k for k in range(n_folds)]
            progress.step(FOLDS - n_folds)
        with ThreadPoolExecutor(resolve_n_jobs(self.n_jobs)) as pool:
            one = partial(self._grow_one, rows, progress=progress)
            kept, *folds = pool.map(one, bags, seeds[: len(bags)])
        return [kept], folds or [kept]

    def _grow_one(self, rows: Rows, in_bag: Any, seed: int, progress: Progress) -> Grown:
        options = {"grower": "random_forest", "max_features": None, "subsample": 1.0}
        (grown,) = self._grow(rows.at(in_bag), [seed], progress, **options)
        return Grown(grown.tree, in_bag)

    @property
    def posterior_(self) -> Posterior:
        """The posterior over all prunings of the one structure."""
        return self.posteriors_[0]

    def _pictured(self) -> Posterior:
        return self.posterior_


class MetaTreeClassifier(Classification, _TreeStructure):
    """One decision tree, averaged over all its prunings: the probability of each split is part of the answer.

    Parameters
    ----------
    max_depth : int or None
    min_samples_leaf
        As in scikit-learn's trees.
    split_prior : "auto", float or callable
        Prior probability that a node is split.
    alpha : "auto" or float
        Rows that the prior of a leaf is worth, for each class; its mean is the class frequencies.
    max_bins, categorical_features, relative_weights, n_jobs, random_state, verbose
        As in `MetaForestClassifier`.

    Attributes
    ----------
    posterior_ : Posterior
        Ask it for `map_tree()`, `top_trees(k)`, `split_prob`, `node_prob` and the like.
    classes_, schema_, log_evidence_, feature_importances_, choice_
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
        min_samples_leaf: int | float = 1,
        split_prior: Any = "auto",
        alpha: float | Literal["auto"] = "auto",
        max_bins: int = 255,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
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


class MetaTreeRegressor(Regression, _TreeStructure):
    """One regression tree, averaged over all its prunings, with a full predictive distribution a row.

    Parameters
    ----------
    max_depth : int or None
    min_samples_leaf
        As in scikit-learn's trees.
    family, prior
        As in `MetaForestRegressor`.
    split_prior : "auto", float or callable
        Prior probability that a node is split.
    max_bins, categorical_features, relative_weights, n_jobs, random_state, verbose
        As in `MetaForestClassifier`.

    Attributes
    ----------
    posterior_ : Posterior
    schema_, log_evidence_, feature_importances_, choice_
        As in `MetaForestClassifier`.
    """

    def __init__(
        self,
        max_depth: int | None = 5,
        *,
        family: str = "normal",
        prior: Any = "auto",
        min_samples_leaf: int | float = 1,
        split_prior: Any = "auto",
        max_bins: int = 255,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
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
