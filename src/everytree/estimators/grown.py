"""Estimators whose structures are grown: by scikit-learn's trees, or by another library's model."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import (
    BaggingClassifier,
    BaggingRegressor,
    ExtraTreesClassifier,
    ExtraTreesRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from everytree.base.arrays import FloatArray
from everytree.base.checks import positive_number, resolve_n_jobs, whole_number
from everytree.base.progress import Progress
from everytree.estimators.base import MetaEstimator
from everytree.estimators.early_rows import LearningRows
from everytree.families.base import NativeFamily
from everytree.fitting.fit import Rows, Weights, fit_forest
from everytree.posterior.counts import ForestCounts
from everytree.posterior.posterior import Posterior
from everytree.structure.growers import GROWERS, Grown, Growth, grow
from everytree.structure.importers import Imported
from everytree.structure.multiway import with_multiway_splits
from everytree.tables.repeats import read_groups, row_groups
from everytree.tables.schema import Schema
from everytree.trees.metatree import MetaTree


class GrownEstimator(MetaEstimator):
    """Grow, count, choose priors."""

    min_samples_leaf: int | float
    random_state: Any
    weights: Weights = "uniform"
    calibration: Literal["auto"] | None = None

    @abstractmethod
    def _n_structures(self) -> int:
        """How many trees are grown."""

    @abstractmethod
    def _structures(self, rows: Rows, seeds: list[int], progress: Progress) -> tuple[list[Grown], list[Grown]]:
        """Structures to keep, and those by which priors are chosen (the same, or stand-ins)."""

    def _first_fit(self, rows: LearningRows) -> Self:
        """Everything from the beginning."""
        self._check_parameters()
        target = self._read_target(rows.y, first=True)
        weight = self._first_weight(rows.weight, len(target))
        target = self._only_present(target, weight)
        given: Imported | None = getattr(self, "structures_", None)
        schema = self._fit_schema(rows.X, target, weight, max_bins=self.max_bins) if given is None else given.schema
        return self._fit_by(schema, rows.X, target, weight, rows.row_data, rows.groups, given)

    def _fit_by(
        self,
        schema: Schema,
        X: Any,
        target: NDArray[Any],
        weight: FloatArray | None,
        row_data: Mapping[str, Any],
        groups: Any = None,
        given: Imported | None = None,
    ) -> Self:
        """Structures, priors and statistics of rows whose schema is known."""
        named = read_groups(groups, len(target))
        rows = self._first_rows(X, schema, target, weight, row_data)
        if named is not None and weight is not None:
            named = named[weight > 0.0]
        rows = replace(rows, group=row_groups(rows.codes, named))
        random = check_random_state(self.random_state)
        seeds = random.randint(np.iinfo(np.int32).max, size=self._n_structures()).tolist()
        rng = np.random.default_rng(random.randint(np.iinfo(np.int32).max))
        search = self._search(rows)
        if given is not None:
            kept = judged = [Grown(tree, np.ones(len(rows.y), dtype=bool)) for tree in given.trees]
        else:
            with Progress("growing", self._n_structures(), bool(self.verbose)) as progress:
                kept, judged = self._structures(rows, seeds, progress)
        n_counted = len(judged) + (len(kept) if judged is not kept else 0)
        with Progress("counting", n_counted, bool(self.verbose)) as progress:
            self.forest_, self.choice_ = fit_forest(
                rows, kept, judged, search, n_codes=schema.n_codes, weights=self.weights,
                sharpen=self.calibration == "auto", rng=rng, n_jobs=resolve_n_jobs(self.n_jobs),
                progress=progress.step,
            )  # fmt: skip
        self._batches = []
        self._counted(rows)
        return self

    def _more_rows(self, rows: LearningRows) -> Self:
        """Structures, priors and columns stay, statistics add up."""
        new = self._later_rows(rows)
        self.forest_.update(new.codes, new.y, new.weight, n_jobs=self.n_jobs, **new.row_data)
        self._counted(new)
        return self

    def _check_structures(self, other: Self) -> None:
        self.forest_._check_mergeable(other.forest_)

    def _rows_of(self, other: Self) -> Self:
        self.forest_.merge(other.forest_)
        return self

    def _forget_rows(self) -> None:
        self.forest_ = ForestCounts(self.forest_).forest()

    def _grow(self, rows: Rows, seeds: list[int], progress: Progress, **options: Any) -> list[Grown]:
        """Trees of scikit-learn's on the codes, with multiway splits where they win evidence."""
        target, weight, criterion = self._grow_on(rows)
        growth = Growth(
            max_depth=self.max_depth, min_samples_leaf=self.min_samples_leaf, criterion=criterion, **options
        )
        grown = grow(
            rows.codes, target, weight, growth, len(seeds),
            has_missing=np.array([column.has_missing for column in self.schema_.columns]), seeds=seeds,
            group=rows.group, n_jobs=resolve_n_jobs(self.n_jobs), progress=progress.step,
        )  # fmt: skip
        family, schema = self._search(rows).first_family, self.schema_
        return [Grown(_widened(one, rows, family, schema, self.min_samples_leaf), one.in_bag) for one in grown]

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.max_depth is not None:
            whole_number("max_depth", self.max_depth, 1)
        positive_number("min_samples_leaf", self.min_samples_leaf)
        if isinstance(self.split_prior, str) and self.split_prior != "auto":
            raise ValueError(f"split_prior must be 'auto', a number or a function of depth, not {self.split_prior!r}")

    @property
    def posteriors_(self) -> tuple[Posterior, ...]:
        """One posterior a structure."""
        check_is_fitted(self, "forest_")
        posteriors: tuple[Posterior, ...] = self.forest_.posteriors
        return posteriors

    @property
    def weights_(self) -> FloatArray:
        """(n_trees,) weights of the structures."""
        check_is_fitted(self, "forest_")
        weights: FloatArray = self.forest_.weights
        return weights


def _widened(grown: Grown, rows: Rows, family: NativeFamily, schema: Schema, min_samples_leaf: int | float) -> MetaTree:
    some = rows.at(grown.in_bag)
    fewest = min_samples_leaf if min_samples_leaf >= 1 else min_samples_leaf * len(some.y)
    return with_multiway_splits(
        grown.tree, some.codes, some.y, some.weight, family, schema.n_codes, schema.is_categorical,
        fewest, **some.row_data,
    )  # fmt: skip


def check_grower(grower: Any) -> None:
    """A name that is known, or something that scikit-learn can clone and fit."""
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
