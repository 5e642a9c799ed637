"""Every tree and every choice of splits, as estimators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from everytree.base.arrays import FloatArray
from everytree.base.checks import whole_number
from everytree.base.progress import Progress
from everytree.estimators.base import CategoricalFeatures
from everytree.estimators.early_rows import LearningRows
from everytree.estimators.readable import Readable
from everytree.estimators.targets import Classification, Regression
from everytree.exact.posterior import ExactPosterior
from everytree.exact.regions import MOST_CATEGORIES, Kind, WorkDone, regions_by_depth
from everytree.exact.trees import ExactTree
from everytree.families import Bernoulli, Categorical
from everytree.families.base import NativeFamily
from everytree.fitting.fit import Rows
from everytree.fitting.search import start_family
from everytree.posterior.posterior import Posterior
from everytree.predictive.predictive import Predictive
from everytree.structure.cut_choice import with_few_cuts
from everytree.tables.code_names import CodeWords
from everytree.tables.column import missing_code


@dataclass
class _Exact:
    """An exact posterior behind the questions that estimators ask of a forest."""

    posterior: ExactPosterior
    has_missing: NDArray[np.bool_]
    n_codes: NDArray[np.int64]

    def read(self, codes: NDArray[Any]) -> NDArray[np.uint16]:
        """Codes of the schema as the engine has them: missing is one more code where it was there at fit."""
        wide = codes.astype(np.uint16)
        missing = codes == missing_code(codes.dtype)
        wide[codes >= self.n_codes] = 65535  # not known
        known = missing & self.has_missing
        wide[known] = np.broadcast_to(self.n_codes, codes.shape)[known]
        wide[:, np.array(self.posterior.n_codes) == 1] = 0  # never asked
        return wide

    def placed(self, rows: Rows) -> Rows:
        """The rows that every tree has branches for, so that all trees are compared on the same rows."""
        is_placed = (self.read(rows.codes) < np.array(self.posterior.n_codes)).all(axis=1)
        return rows if is_placed.all() else rows.at(np.flatnonzero(is_placed))

    def probs(self, codes: NDArray[Any], *, n_jobs: int | None = None) -> FloatArray:
        return self.posterior.probs(self.read(codes))

    def moments(self, codes: NDArray[Any], *, n_jobs: int | None = None) -> tuple[FloatArray, FloatArray]:
        return self.posterior.moments(self.read(codes))

    def predictive(self, codes: NDArray[Any], *, n_jobs: int | None = None, **row_data: Any) -> Predictive:
        return self.posterior.predictive(self.read(codes), **row_data)

    @property
    def log_evidence(self) -> float:
        return self.posterior.log_evidence

    def feature_importances(self) -> FloatArray:
        splits = self.posterior.expected_splits
        return splits / splits.sum() if splits.sum() > 0.0 else splits


class _ExactStructure(Readable):
    """All structures to a depth, none of them grown."""

    max_cuts: int
    candidates: Any
    truncation: float
    max_regions: int

    def _first_fit(self, rows: LearningRows) -> Self:
        self._check_parameters()
        if rows.groups is not None:
            raise ValueError(f"{type(self).__name__} takes no groups: its priors are given, and it leaves no rows out")
        target = self._read_target(rows.y, first=True)
        weight = self._first_weight(rows.weight, len(target))
        target = self._only_present(target, weight)
        fine = self._fit_schema(rows.X, target, weight)
        first = self._first_rows(rows.X, fine, target, weight, rows.row_data)
        follow, follow_weight, criterion = self._grow_on(first)
        coarse = with_few_cuts(
            fine, first.codes, follow, follow_weight,
            max_bins=self.max_bins, max_cuts=self.max_cuts, max_depth=self.max_depth or 0, criterion=criterion,
        )  # fmt: skip
        first = self._first_rows(rows.X, coarse, target, weight, rows.row_data)
        self._run(first, self._leaf_model(first))
        self._batches = []
        self._counted(first)
        return self

    def _leaf_model(self, rows: Rows) -> NativeFamily:
        return start_family(self._search(rows))

    def _run(self, rows: Rows, family: NativeFamily) -> Self:
        has_missing = np.array([column.has_missing for column in self.schema_.columns])
        n_codes = self.schema_.n_codes.astype(np.int64)
        posterior = ExactPosterior(
            (n_codes + has_missing).tolist(), family, self.max_depth or 0, self.split_prior, kinds=self._kinds(),
            candidates=self.candidates, truncation=self.truncation, max_regions=self.max_regions, n_jobs=self.n_jobs,
        )  # fmt: skip
        model = _Exact(posterior, has_missing, n_codes)
        rows = model.placed(rows)
        work_done = WorkDone(regions_by_depth(posterior.n_codes, posterior.kinds, posterior.max_depth).tolist())
        with Progress("regions", 1, bool(self.verbose)) as progress:
            row_data: dict[str, Any] = dict(rows.row_data)
            posterior.fit(
                model.read(rows.codes), rows.y, rows.weight,
                progress=lambda *where: progress.at(*work_done(*where)), **row_data,
            )  # fmt: skip
            progress.at(*work_done(0, 1, 1))
        self.forest_, self._rows = model, rows
        return self

    def _kinds(self) -> list[Kind]:
        """Numbers are asked by thresholds, categories all at once; too many of these by thresholds on their codes."""
        most = MOST_CATEGORIES - 1  # missing is one more
        return [
            "multiway" if column.kind == "categorical" and column.n_codes <= most else "ordered"
            for column in self.schema_.columns
        ]

    def _more_rows(self, rows: LearningRows) -> Self:
        """All rows again: the sum over all splits has no shortcut for a few more."""
        new = self._later_rows(rows)
        self._joined(new)
        self._counted(new)
        return self

    def _check_structures(self, other: Self) -> None:
        mine, theirs = self.posterior_, other.posterior_
        for name in ("family", "max_depth", "candidates", "kinds"):
            if getattr(mine, name) != getattr(theirs, name):
                raise ValueError(f"other has {name} {getattr(theirs, name)}, this one {getattr(mine, name)}")
        if not np.array_equal(mine._log_split, theirs._log_split):
            raise ValueError("other has another split_prior")

    def _rows_of(self, other: Self) -> Self:
        return self._joined(other._rows)

    def _forget_rows(self) -> None:
        self._run(self._rows.at(np.zeros(0, dtype=np.int64)), self.posterior_.family)

    def _joined(self, new: Rows) -> Self:
        """The model of the rows there are and new ones."""
        old, weights = self._rows, None
        if new.weight is not None or old.weight is not None:
            weights = np.concatenate([np.ones(len(r.y)) if r.weight is None else r.weight for r in (old, new)])
        joined = {name: np.concatenate([old.row_data[name], new.row_data[name]]) for name in old.row_data}
        codes, y = (np.concatenate([getattr(old, name), getattr(new, name)]) for name in ("codes", "y"))
        rows = Rows(codes, y, weights, joined)
        return self._run(rows, self.posterior_.family)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        whole_number("max_depth", self.max_depth, 0, 64)
        whole_number("max_bins", self.max_bins, 2, 255)
        whole_number("max_cuts", self.max_cuts, 1)

    # ---- answers ----------------------------------------------------------------------------------------------------

    @property
    def posterior_(self) -> ExactPosterior:
        """The posterior over every tree and every choice of splits."""
        check_is_fitted(self, "forest_")
        posterior: ExactPosterior = self.forest_.posterior
        return posterior

    @property
    def truncation_(self) -> float:
        """Posterior mass that the prediction of any row leaves out, at most."""
        return self.posterior_.truncation

    @property
    def map_tree_(self) -> ExactTree:
        """The most probable tree, with the log of its posterior probability."""
        return self.posterior_.map_tree()

    @property
    def map_posterior_(self) -> Posterior:
        """The posterior over the prunings of the most probable tree, for pictures of it."""
        rows = self._rows
        tree = self.map_tree_.as_metatree()
        codes = self.forest_.read(rows.codes)
        post = Posterior(tree, self.posterior_.family, self.split_prior)
        row_data: dict[str, Any] = dict(rows.row_data)
        return post.update(codes, rows.y, rows.weight, **row_data)

    def _pictured(self) -> Posterior:
        return self.map_posterior_

    def _code_names(self) -> list[CodeWords]:
        columns = zip(self.schema_.code_names, self.schema_.columns, strict=True)
        return [words.with_missing_code(column.has_missing) for words, column in columns]


class ExactTreeClassifier(Classification, _ExactStructure):
    """The exact average over every tree to a depth and every choice of its splits, for classes.

    Parameters
    ----------
    max_depth : int
    max_bins : int
        Most codes of a column of numbers; the cut points are those that say most about the target.
    split_prior : float or callable
        Prior probability that a region is split.
    alpha : float
        Dirichlet concentration of each class in a leaf.
    candidates : {"all", "nontrivial"}
        Every split a region's codes allow, or only those that separate its rows.
    max_cuts : int
        Most cut points over all columns; regions grow with its power `max_depth`.
    truncation : float
        Posterior mass that predictions may leave out.
    max_regions : int
        More are refused beforehand.
    categorical_features, relative_weights, n_jobs, verbose
        As in `MetaForestClassifier`.

    Attributes
    ----------
    posterior_ : ExactPosterior
    map_tree_ : ExactTree
        The most probable tree; its `log_prob` is a certificate.
    log_evidence_, truncation_ : float
    feature_importances_ : (n_features,) array
        Expected number of splits on each column, scaled to sum to 1.
    classes_, schema_
        As in `MetaForestClassifier`.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = et.ExactTreeClassifier(max_depth=2).fit(X, y)
    >>> model.map_tree_.n_leaves
    3
    """

    def __init__(
        self,
        max_depth: int = 4,
        *,
        max_bins: int = 8,
        split_prior: Any = 0.5,
        alpha: float = 0.5,
        candidates: Literal["all", "nontrivial"] = "all",
        max_cuts: int = 40,
        truncation: float = 1e-6,
        max_regions: int = 20_000_000,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.split_prior = split_prior
        self.alpha = alpha
        self.candidates = candidates
        self.max_cuts = max_cuts
        self.truncation = truncation
        self.max_regions = max_regions
        self.categorical_features = categorical_features
        self.relative_weights = relative_weights
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _leaf_model(self, rows: Rows) -> NativeFamily:
        n = max(self.n_classes_, 2)
        return Bernoulli(self.alpha, self.alpha) if n == 2 else Categorical(n, self.alpha)


class ExactTreeRegressor(Regression, _ExactStructure):
    """The exact average over every tree to a depth and every choice of its splits, for numbers.

    Parameters
    ----------
    max_depth, max_bins, split_prior, candidates, max_cuts, truncation, max_regions
        As in `ExactTreeClassifier`.
    family, prior
        As in `MetaForestRegressor`; what `prior` does not name is a default, centred on the data.
    categorical_features, relative_weights, n_jobs, verbose
        As in `MetaForestClassifier`.
    """

    def __init__(
        self,
        max_depth: int = 4,
        *,
        max_bins: int = 8,
        family: str = "normal",
        prior: Any = "auto",
        split_prior: Any = 0.5,
        candidates: Literal["all", "nontrivial"] = "all",
        max_cuts: int = 32,
        truncation: float = 1e-6,
        max_regions: int = 20_000_000,
        categorical_features: CategoricalFeatures = "from_dtype",
        relative_weights: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_depth = max_depth
        self.max_bins = max_bins
        self.family = family
        self.prior = prior
        self.split_prior = split_prior
        self.candidates = candidates
        self.max_cuts = max_cuts
        self.truncation = truncation
        self.max_regions = max_regions
        self.categorical_features = categorical_features
        self.relative_weights = relative_weights
        self.n_jobs = n_jobs
        self.verbose = verbose
