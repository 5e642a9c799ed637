"""What all estimators share: reading tables and targets, growing, fitting, and prediction from the fitted forest."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from everytree.codes import as_column, resolve_n_jobs, whole_number
from everytree.families.base import FloatArray, NativeFamily
from everytree.fitting import Rows, fit_forest
from everytree.forest import Forest
from everytree.metatree import MetaTree
from everytree.posterior import Posterior
from everytree.progress import Progress
from everytree.schema import Schema
from everytree.structure.growers import GROWERS, Grown, Growth, grow
from everytree.structure.importers import Imported
from everytree.structure.multiway import with_multiway_splits
from everytree.tuning import Search, start_family

CategoricalFeatures = Literal["from_dtype"] | Sequence[Any] | NDArray[Any] | None


class MetaEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """Fit, update and describe; what a target is, the subclasses know."""

    # Parameters that every estimator has; declared for the reader, set by the subclasses' signatures.
    max_depth: int | None
    min_samples_leaf: int | float
    split_prior: Any
    max_bins: int
    categorical_features: CategoricalFeatures
    n_jobs: int | None
    random_state: Any
    verbose: int

    # ---- what subclasses say ----------------------------------------------------------------------------------------

    @abstractmethod
    def _read_target(self, y: Any, *, first: bool) -> NDArray[Any]:
        """The target as the family takes it; at the first call what is learnt from it is kept."""

    @abstractmethod
    def _order_by(self, y: NDArray[Any]) -> FloatArray:
        """What orders the categories of a column."""

    @abstractmethod
    def _grow_on(self, rows: Rows) -> tuple[NDArray[Any], FloatArray | None, str]:
        """Targets, weights and criterion for the trees to grow by."""

    @abstractmethod
    def _search(self, rows: Rows) -> Search:
        """Priors to try."""

    @abstractmethod
    def _structures(self, rows: Rows, seeds: list[int], progress: Progress) -> tuple[list[Grown], list[Grown]]:
        """Structures to keep, and those by which priors are chosen (the same, or stand-ins)."""

    def _row_data(self, X: Any, n_rows: int, given: Mapping[str, Any], *, first: bool) -> dict[str, NDArray[Any]]:
        """What the family wants to know of each row."""
        del X, n_rows, first
        for name, values in given.items():
            if values is not None:
                raise TypeError(f"{type(self).__name__} takes no {name}")
        return {}

    # ---- learning ---------------------------------------------------------------------------------------------------

    def _first_fit(self, X: Any, y: Any, sample_weight: Any, row_data: Mapping[str, Any]) -> Self:
        """Everything from the beginning."""
        self._check_parameters()
        owner, jobs = type(self).__name__, resolve_n_jobs(self.n_jobs)
        target = self._read_target(y, first=True)
        weight = _read_weight(sample_weight, len(target))
        given: Imported | None = getattr(self, "structures_", None)
        schema = given.schema if given is not None else Schema.fit(
            X, self._order_by(target), sample_weight=weight, max_bins=self.max_bins,
            categorical_features=self.categorical_features, n_jobs=self.n_jobs, owner=owner,
        )  # fmt: skip
        codes = schema.encode(X, n_jobs=self.n_jobs, owner=owner)
        self._check_rows(codes, target)
        self.schema_ = schema
        self.n_features_in_ = schema.n_inputs
        self._keep_names(X)
        rows = Rows(codes, target, weight, self._row_data(X, len(target), row_data, first=True))
        if weight is not None:
            rows = rows.at(weight > 0.0)  # as if they were not there
        random = check_random_state(self.random_state)
        seeds = random.randint(np.iinfo(np.int32).max, size=self._n_structures()).tolist()
        rng = np.random.default_rng(random.randint(np.iinfo(np.int32).max))
        search = self._search(rows)
        if given is not None:
            kept = tuned = [Grown(tree, np.ones(len(rows.y), dtype=bool)) for tree in given.trees]
        else:
            with Progress("growing", self._n_structures(), bool(self.verbose)) as progress:
                kept, tuned = self._structures(rows, seeds, progress)
        with Progress("counting", len(tuned), bool(self.verbose)) as progress:
            self.forest_, self.choice_ = fit_forest(
                rows, tuned, search, n_codes=schema.n_codes, weights=getattr(self, "weights", "uniform"),
                sharpen=getattr(self, "calibration", None) == "auto", rng=rng, n_jobs=jobs, progress=progress.step,
            )  # fmt: skip
        if kept is not tuned:
            self._keep(kept, rows, jobs)
        return self

    def _forget(self) -> None:
        """A new fit starts from nothing, structures of another library's included."""
        for name in ("forest_", "structures_"):
            if hasattr(self, name):
                delattr(self, name)

    def _keep(self, kept: list[Grown], rows: Rows, jobs: int) -> None:
        """The structures to keep, with the priors that their stand-ins chose."""
        posteriors = [
            Posterior(one.tree, self.choice_.family, self.choice_.split_prior).update(
                rows.codes, rows.y, rows.weight, n_jobs=jobs, **rows.row_data
            )
            for one in kept
        ]
        self.forest_ = Forest(posteriors, sharpness=self.choice_.sharpness, n_codes=self.schema_.n_codes)

    def _more_rows(self, X: Any, y: Any, sample_weight: Any, row_data: Mapping[str, Any]) -> Self:
        """Rows after the first: structures, priors and columns stay, statistics add up."""
        target = self._read_target(y, first=False)
        weight = _read_weight(sample_weight, len(target))
        codes = self._encode(X)
        self._check_rows(codes, target)
        columns = self._row_data(X, len(target), row_data, first=False)
        self.forest_.update(codes, target, weight, n_jobs=self.n_jobs, **columns)
        return self

    def _growth(self, criterion: str, **options: Any) -> Growth:
        return Growth(max_depth=self.max_depth, min_samples_leaf=self.min_samples_leaf, criterion=criterion, **options)

    def _grow(self, rows: Rows, seeds: list[int], progress: Progress, **options: Any) -> list[Grown]:
        """Trees of scikit-learn's on the codes, with multiway splits where they win evidence."""
        target, weight, criterion = self._grow_on(rows)
        grown = grow(
            rows.codes, target, weight, self._growth(criterion, **options), len(seeds),
            has_missing=np.array([column.has_missing for column in self.schema_.columns]), seeds=seeds,
            n_jobs=resolve_n_jobs(self.n_jobs), progress=progress.step,
        )  # fmt: skip
        family, schema = start_family(self._search(rows)), self.schema_
        return [Grown(_widened(one, rows, family, schema), one.in_bag) for one in grown]

    @abstractmethod
    def _n_structures(self) -> int:
        """How many trees are grown."""

    def _check_parameters(self) -> None:
        if self.max_depth is not None:
            whole_number("max_depth", self.max_depth, 1)
        if not (_is_positive(self.min_samples_leaf)):
            raise ValueError(f"min_samples_leaf must be positive, but is {self.min_samples_leaf!r}")
        if isinstance(self.split_prior, str) and self.split_prior != "auto":
            raise ValueError(f"split_prior must be 'auto', a number or a function of depth, not {self.split_prior!r}")

    def _check_rows(self, codes: NDArray[Any], target: NDArray[Any]) -> None:
        if len(codes) != len(target):
            raise ValueError(
                f"Found input variables with inconsistent numbers of samples: X has {len(codes)} rows, y {len(target)}"
            )

    def _keep_names(self, X: Any) -> None:
        """scikit-learn keeps names of columns where all of them are text."""
        self.__dict__.pop("feature_names_in_", None)
        names = self.schema_.input_names
        if names is not None and all(isinstance(name, str) for name in getattr(X, "columns", names)):
            self.feature_names_in_ = np.array(names, dtype=object)

    # ---- reading ----------------------------------------------------------------------------------------------------

    def _encode(self, X: Any) -> NDArray[Any]:
        check_is_fitted(self, "forest_")
        return self.schema_.encode(X, n_jobs=self.n_jobs, owner=type(self).__name__)

    @property
    def posteriors_(self) -> tuple[Posterior, ...]:
        """One posterior a structure."""
        check_is_fitted(self, "forest_")
        return self.forest_.posteriors

    @property
    def weights_(self) -> FloatArray:
        """(n_trees,) weights of the structures."""
        check_is_fitted(self, "forest_")
        return self.forest_.weights

    @property
    def log_evidence_(self) -> float:
        """Log of the average evidence of the structures."""
        check_is_fitted(self, "forest_")
        return self.forest_.log_evidence

    @property
    def feature_importances_(self) -> FloatArray:
        """(n_features,) expected gain in log evidence by the splits on each column, scaled to sum to 1."""
        check_is_fitted(self, "forest_")
        of_input = np.zeros(self.n_features_in_)
        np.add.at(of_input, self.schema_.input_of, self.forest_.feature_importances())
        return of_input

    def predictive(self, X: Any, **row_data: Any) -> Any:
        """One predictive distribution a row: `mean`, `std`, `quantile`, `interval`, `log_prob`, `sample`, `crps`, ...

        Parameters
        ----------
        X : (n_rows, n_features) table
        **row_data
            What the family wants to know of each row, such as `exposure`.
        """
        codes = self._encode(X)
        columns = self._row_data(X, len(codes), row_data, first=False)
        return self.forest_.predictive(codes, n_jobs=self.n_jobs, **columns)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.target_tags.required = True
        return tags


def _widened(grown: Grown, rows: Rows, family: NativeFamily, schema: Schema) -> MetaTree:
    some = rows.at(grown.in_bag)
    return with_multiway_splits(
        grown.tree, some.codes, some.y, some.weight, family, schema.n_codes, schema.is_categorical, **some.row_data
    )


def check_grower(grower: Any) -> None:
    """A name that is known, or something that scikit-learn can clone and fit."""
    if isinstance(grower, str):
        if grower not in GROWERS:
            raise ValueError(f"grower must be one of {sorted(GROWERS)} or a scikit-learn forest, but is {grower!r}")
    elif not hasattr(grower, "get_params") or not hasattr(grower, "fit"):
        raise TypeError(f"grower must be one of {sorted(GROWERS)} or a scikit-learn forest, not {grower!r}")


def _read_weight(sample_weight: Any, n_rows: int) -> FloatArray | None:
    if sample_weight is None:
        return None
    weight = as_column("sample_weight", sample_weight).astype(np.float64)
    if len(weight) != n_rows:
        raise ValueError(f"sample_weight has {len(weight)} entries, but there are {n_rows} rows")
    wrong = ~(np.isfinite(weight) & (weight >= 0.0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"sample_weight[{row}] is {weight[row]}, but must be finite and not negative")
    if not weight.any():
        raise ValueError("sample_weight is zero for every row: there is nothing to fit")
    return weight


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(value > 0)
