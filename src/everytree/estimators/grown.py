"""Estimators whose structures exist before their priors are chosen: grown trees, or those of another library."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, Literal

import numpy as np
from sklearn.base import is_classifier
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from everytree.base.arrays import FloatArray
from everytree.base.checks import positive_number, whole_number
from everytree.base.errors import ArgumentError
from everytree.estimators.base import MetaEstimator
from everytree.fitting.fit import Weights
from everytree.fitting.search import Choice
from everytree.fitting.structures import GrownStructure, ImportedStructure
from everytree.posterior.posterior import Posterior
from everytree.structure.grow_on import CLASS_CRITERIA, NUMBER_CRITERIA
from everytree.structure.growers import GROWERS, Growth


class GrownEstimator(MetaEstimator):
    """Estimators that grow trees, count rows in them and choose priors."""

    model_kinds = ("forest",)

    min_samples_leaf: int | float
    criterion: str
    max_leaf_nodes: int | None
    monotonic_cst: Any
    random_state: Any
    weights: Weights = "uniform"
    calibration: Literal["auto"] | None = None

    @abstractmethod
    def _own_structure(self) -> GrownStructure:
        """Return the structure whose trees are grown here."""

    def _structure(self) -> GrownStructure:
        own = self._own_structure()
        if not hasattr(self, "structures_"):
            return own
        return ImportedStructure(own.n_structures, own.random_state, own.weights, own.sharpen, self.structures_)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.max_depth is not None:
            whole_number("max_depth", self.max_depth, 1)
        check_min_samples_leaf(self.min_samples_leaf)
        known = CLASS_CRITERIA if is_classifier(self) else NUMBER_CRITERIA
        if not isinstance(self.criterion, str) or self.criterion not in known:
            raise ArgumentError("criterion", f"must be one of {list(known)}, but is {self.criterion!r}")
        if self.max_leaf_nodes is not None:
            whole_number("max_leaf_nodes", self.max_leaf_nodes, 2)
        check_monotonic_cst(self.monotonic_cst)
        if isinstance(self.split_prior, str) and self.split_prior != "auto":
            raise ValueError(f"split_prior must be 'auto', a number or a function of depth, not {self.split_prior!r}")

    def _growth(self, **options: Any) -> Growth:
        """Return the settings of growing that all of these estimators have, and others."""
        deepest, most = (None if value is None else int(value) for value in (self.max_depth, self.max_leaf_nodes))
        fewest = self.min_samples_leaf
        return Growth(
            max_depth=deepest, min_samples_leaf=int(fewest) if fewest >= 1 else fewest, criterion=self.criterion,
            max_leaf_nodes=most, **options,
        )  # fmt: skip

    @property
    def choice_(self) -> Choice:
        """The priors and the sharpness that were chosen, and their score."""
        choice = self._learnt().choice
        assert choice is not None
        return choice

    @property
    def posteriors_(self) -> tuple[Posterior, ...]:
        """One posterior per structure."""
        self._check_fitted()
        posteriors: tuple[Posterior, ...] = self.forest_.posteriors
        return posteriors

    @property
    def weights_(self) -> FloatArray:
        """(n_trees,) weights of the structures."""
        self._check_fitted()
        weights: FloatArray = self.forest_.weights
        return weights


def check_monotonic_cst(value: Any) -> None:
    """Check that no column is asked to have an effect in one direction only."""
    if value is None:
        return
    try:
        signs = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        signs = np.ones(1)
    if signs.ndim != 1 or signs.any():
        must = "must be None, or 0 for every column: monotone constraints are not available yet"
        raise ArgumentError("monotonic_cst", f"{must}, but is {value!r:.200}")


def check_min_samples_leaf(value: Any) -> None:
    """Check that the smallest leaf is a number of rows, or a share of them."""
    positive_number("min_samples_leaf", value)
    if isinstance(value, float | np.floating) and not value < 1.0:
        raise ValueError(f"min_samples_leaf must be a whole number of rows or a share below 1, but is {value!r}")


def check_max_features(value: Any) -> None:
    """Check that the columns a node looks at are a number, a share of all, or one of the known names."""
    if value is None or (isinstance(value, str) and value in ("auto", "sqrt", "log2")):
        return
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1
    is_share = isinstance(value, float | np.floating) and 0.0 < value <= 1.0
    if not (is_number or is_share):
        raise ValueError(
            f"max_features must be 'auto', 'sqrt', 'log2', None, a number of columns or a share of them in (0, 1], "
            f"but is {value!r}"
        )


def check_grower(grower: Any) -> None:
    """Check that the grower is a known name, or something that scikit-learn can clone and fit."""
    if isinstance(grower, str):
        if grower not in GROWERS:
            raise ValueError(f"grower must be one of {sorted(GROWERS)} or a scikit-learn forest, but is {grower!r}")
        return
    known = (
        DecisionTreeClassifier, DecisionTreeRegressor, RandomForestClassifier, RandomForestRegressor,
        ExtraTreesClassifier, ExtraTreesRegressor, BaggingClassifier, BaggingRegressor,
    )  # fmt: skip
    if isinstance(grower, type) and issubclass(grower, known):
        raise TypeError(f"grower must be an instance of scikit-learn estimator instead of a class: {grower.__name__}()")
    if not isinstance(grower, known):
        raise TypeError(
            f"grower must be one of {sorted(GROWERS)}, or a tree, a forest or a bagging of trees of scikit-learn's, "
            f"not {grower!r}"
        )
