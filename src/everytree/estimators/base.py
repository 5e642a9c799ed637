"""The base class of all estimators: parameters become a target and a structure; the fitted state is one object."""

from __future__ import annotations

import copy
import os
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from everytree.base.arrays import FloatArray
from everytree.base.checks import resolve_n_jobs
from everytree.base.errors import OverlapError
from everytree.estimators.early_rows import EarlyRows
from everytree.estimators.explainable import Explainable
from everytree.fitting.fit import Fitted, GivenRows, Settings, Structure, code_more_rows, fit, last_time_of
from everytree.fitting.out_of_bag import OutOfBag
from everytree.fitting.scores import NoScores, Scores
from everytree.fitting.targets import Target
from everytree.posterior.forest import Forest
from everytree.posterior.rows import Rows
from everytree.predictive.predictive import Predictive
from everytree.structure.importers.model import Imported
from everytree.tables.named_columns import series_name, split_off
from everytree.tables.schema import Schema
from everytree.tables.schema_difference import schema_difference

NO_ROWS = NoScores("it has seen no rows")
ADDED_LATER = NoScores("rows were added after they were left out; only fit leaves rows out")

CategoricalFeatures = Literal["from_dtype"] | Sequence[Any] | NDArray[Any] | None


class MetaEstimator(Explainable):
    """An estimator around one `Fitted`.

    Attributes
    ----------
    fitted_ : Fitted
        Everything that was learnt.
    structures_ : Imported
        Structures imported from another library, which `fit` keeps.
    """

    # Parameters that every estimator has; declared for the reader, set by the subclasses' signatures.
    max_depth: Any
    split_prior: Any
    max_bins: int
    categorical_features: CategoricalFeatures
    relative_weights: bool
    n_jobs: int | None
    verbose: int

    fitted_: Fitted
    structures_: Imported
    model_kinds: ClassVar[tuple[str, ...]]
    """Kinds of the models that are fitted."""
    has_one_tree: ClassVar[bool] = False
    _early: EarlyRows | None = None
    """The rows so far, kept as long as structures may be grown again on more of them."""

    # ---- from parameters --------------------------------------------------------------------------------------------

    @abstractmethod
    def target_before_fit(self) -> Target:
        """Return the target of this estimator, before any rows are read."""

    @abstractmethod
    def _structure(self) -> Structure:
        """Return the object that chooses the splits."""

    def _check_parameters(self) -> None:
        """Raise for invalid values of parameters."""
        resolve_n_jobs(self.n_jobs)
        if not isinstance(self.relative_weights, bool | np.bool_):
            raise ValueError(f"relative_weights must be True or False, but is {self.relative_weights!r}")

    def _check_for_parts(self, method: str) -> None:
        """Raise for parameters that need all rows at once, where a method is given some of them after others."""

    def _structure_of_fit(self) -> Structure:
        """Return the same for `fit` itself, which may go on with what an earlier one has grown."""
        return self._structure()

    def _settings(self) -> Settings:
        return Settings(
            type(self).__name__, self.categorical_features, self.max_bins, bool(self.relative_weights), self.n_jobs,
            self.verbose,
        )  # fmt: skip

    # ---- learning ---------------------------------------------------------------------------------------------------

    def _given(self, X: Any, y: Any, sample_weight: Any, row_data: Mapping[str, Any], groups: Any) -> GivenRows:
        """Return rows as they are given, with the columns of X that arguments name."""
        name = groups if isinstance(groups, str) else series_name(groups) or ""
        X, given = split_off(X, {"y": y, "sample_weight": sample_weight, "groups": groups, **row_data})
        y, weight, labels = (given.pop(argument) for argument in ("y", "sample_weight", "groups"))
        return GivenRows(X, y, weight, groups=labels, groups_name=name, row_data=given)

    def _fit(self, given: GivenRows) -> Self:
        """Fit a table in memory; a fit that fails changes nothing."""
        self._check_parameters()
        fitted = fit(given, self.target_before_fit(), self._structure_of_fit(), self._settings())
        self._keep(self._scored(fitted, given.y), given.X)
        self._keep_early(None)
        return self

    def _oob_of_fit(self) -> OutOfBag | None:
        """Return what trees say of rows of `fit` that they were not grown on, where it was asked for."""
        return self._learnt().out_of_bag

    def _scored(self, fitted: Fitted, y: Any) -> Fitted:
        """Return the fitted state with the score of its own rows, where there is one."""
        del y
        return fitted

    def _scored_outputs(self, outputs: Sequence[Self], columns: Sequence[NDArray[Any]]) -> OutOfBag | None:
        """Return the score of the rows of a fit to several outputs, where there is one."""
        del outputs, columns
        return None

    def _fit_first(self, given: GivenRows, target: Target) -> Self:
        """Fit the first rows of several calls, and keep them until there are enough to grow structures on."""
        self._check_parameters()
        self._check_for_parts("partial_fit")
        fitted = replace(fit(given, target, self._structure(), self._settings()), unseen=ADDED_LATER)
        early = None
        if not hasattr(self, "structures_"):
            early = EarlyRows(type(self).__name__, self.categorical_features, target).with_rows_if_due(given)
        self._keep(fitted, given.X)
        self._keep_early(early)
        return self

    def _fit_more(self, given: GivenRows, *, allow_overlap: bool = False) -> Self:
        """Add the next rows; structures that were grown on few rows are grown again on more."""
        fitted, settings = self.fitted_, self._settings()
        rows = self._more_rows(given, fitted)
        if not allow_overlap and fitted.has_counted(rows):
            raise OverlapError(
                f"this {type(self).__name__} has counted these rows already, in this order or another, and they would "
                "count twice. If they are other observations that happen to be equal, pass allow_overlap=True"
            )
        early = self._early
        more = early.with_rows_if_due(given) if early is not None else None
        if more is not None:
            every = more.all()
            again = fit(every, more.target, self._structure(), settings)
            again = replace(again, batches=[], unseen=ADDED_LATER)
            for batch in more.batches():
                again = again.with_batch(self._more_rows(batch, again))
            self._keep(again, every.X)
            self._keep_early(more)
            return self
        self.model_.update(rows.codes, rows.y, rows.weight, n_jobs=self.n_jobs, **dict[str, Any](rows.row_data))
        last_time = last_time_of(rows, fitted.last_time)
        self.fitted_ = replace(fitted.with_batch(rows), unseen=ADDED_LATER, mean_prediction=None, last_time=last_time)
        self._keep_early(early if early is not None and early.add(given) else None)
        return self

    def _more_rows(self, given: GivenRows, fitted: Fitted) -> Rows:
        """Rows as a model codes those after the first."""
        y = fitted.target.numbers(fitted.target.read(given.y))
        return code_more_rows(given._replace(y=y), fitted, self._settings())

    def _keep_early(self, early: EarlyRows | None) -> None:
        self.__dict__.pop("_early", None)
        if early is not None:
            self._early = early

    def _keep(self, fitted: Fitted, X: Any) -> None:
        """Keep the fitted state, and the names of the columns where all of them are text, as scikit-learn does."""
        names = fitted.schema.input_names
        given: Any = getattr(X, "column_names", None) or getattr(X, "columns", names)
        self.__dict__.pop("feature_names_in_", None)
        if names is not None and all(isinstance(name, str) for name in given):
            self.feature_names_in_ = np.array(names, dtype=object)
        self.fitted_ = fitted

    def merge(self, other: Self, *, allow_overlap: bool = False) -> Self:
        """Add the rows of another fitted estimator with the same columns, structures and priors. Returns itself.

        The result is the model of all rows together. Two models that have both counted the same batch are refused,
        since its rows would count twice: shards must start from a `blank` model. Batches are recognised in any order of
        their rows, by a digest of at least ten different rows together, never of single rows; the same rows divided
        into other batches are not recognised.

        Parameters
        ----------
        other : estimator
        allow_overlap : bool
            Whether a batch that both have counted may count twice.
        """
        if type(other) is not type(self):
            raise TypeError(f"other must be a {type(self).__name__}, not {type(other).__name__}")
        self._check_fitted()
        other._check_fitted()
        mine, theirs = self.fitted_, other.fitted_
        _check_same_tables(mine, theirs)
        mine.target.check_same(theirs.target)
        self.model_.check_mergeable(other.model_)
        if not allow_overlap and not set(mine.batches).isdisjoint(theirs.batches):
            raise OverlapError(
                "other has counted a batch of rows that this one has counted too, and they would count twice. Let "
                "models that are to be merged start from blank(), or pass allow_overlap=True"
            )
        self.model_.merge(copy.deepcopy(other.model_) if other.model_ is self.model_ else other.model_)
        batches = [*mine.batches, *theirs.batches]
        last_time = max((time for time in (mine.last_time, theirs.last_time) if time is not None), default=None)
        self.fitted_ = replace(mine, batches=batches, unseen=ADDED_LATER, mean_prediction=None, last_time=last_time)
        self._keep_early(None)
        return self

    def blank(self) -> Self:
        """A copy with the same columns, structures and priors that has seen no rows.

        Copies of it can learn from different rows anywhere, with `partial_fit`, and `merge` then adds them up. No row
        is counted twice, as would happen if every copy also held the rows of this model.

        Examples
        --------
        >>> import everytree as et
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = et.MetaForestClassifier(n_estimators=5, random_state=0).fit(X, y)
        >>> here, there = model.blank().partial_fit(X[::2], y[::2]), model.blank().partial_fit(X[1::2], y[1::2])
        >>> round(abs(here.merge(there).log_evidence_ - model.log_evidence_), 9)
        0.0
        """
        self._check_fitted()
        empty = copy.copy(self)
        empty.fitted_ = replace(
            self.fitted_, model=self.model_.without_rows(), batches=[], out_of_bag=None, unseen=NO_ROWS,
            mean_prediction=None, last_time=None,
        )  # fmt: skip
        empty._keep_early(None)
        return empty

    # ---- fitted attributes ------------------------------------------------------------------------------------------

    @property
    def model_(self) -> Any:
        """What predicts rows of codes: see `everytree.models`."""
        return self._learnt().model

    @property
    def forest_(self) -> Forest:
        """The average over trees, of estimators that are one."""
        parts = self.model_.parts
        if parts.forest is None or parts.additive is not None:
            raise AttributeError(f"{type(self).__name__} is no average over trees and has no forest_; it has model_")
        forest: Forest = parts.forest
        return forest

    @property
    def schema_(self) -> Schema:
        """Columns, cut points and categories."""
        return self._with_trees()._learnt().schema

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the table."""
        return self.schema_.n_inputs

    @property
    def log_evidence_(self) -> float:
        """Log of the average evidence of the structures."""
        self._check_fitted()
        return float(self.model_.log_evidence)

    @property
    def feature_importances_(self) -> FloatArray:
        """(n_features,) expected gain in log evidence by the splits on each column, scaled to sum to 1."""
        self._check_fitted()
        of_input = np.zeros(self.n_features_in_)
        np.add.at(of_input, self.schema_.input_of, self.model_.feature_importances())
        return of_input

    @property
    def unseen_(self) -> Scores:
        """Scores of rows of `fit` that the trees which predict them had not seen: a `ClassScores` or a `NumberScores`.

        Forests: rows that a tree was not grown on are predicted by such trees, without the row (and the others of its
        group) in their statistics. Single trees: every fifth row is predicted by a tree that was grown without it.
        Boosting: every row by the chain that left it out. Ensembles: by that chain and a forest grown without the rows
        that this chain left out. A long table is scored by a random sample.

        The scores of forests and single trees are slightly too good, since the strengths of the priors and the
        sharpness were chosen on these same rows. In boosting and ensembles nothing that decides for a row has seen it.
        All scores are slightly too bad, since a row is predicted by a part of the trees, or by chains of fewer rows.

        Fits in batches score rows of their sample: in the forest of all rows, or, where rows come in groups or repeat
        each other, whose others may be beyond the sample, and in single trees, by the statistics of the sample alone.

        Not there after `partial_fit`, `merge` and `blank`, and where no rows are left out: in exact trees, imported
        structures and trees that are grown on all rows.
        """
        scores = self._learnt().unseen
        if isinstance(scores, NoScores):
            name = type(self).__name__
            raise AttributeError(f"this {name} has no unseen_: {scores.why}. Its score(X, y) judges it by other rows")
        return scores

    def report(self, path: str | os.PathLike[str], table: Any = None, **options: Any) -> Path:
        """Write a self-contained HTML page about the model, judged by a table of rows and targets if one is given.

        Parameters
        ----------
        path : path-like
            The file to write.
        table : data frame or (n_rows, n_features) array_like, optional
        **options
            As in `everytree.report.write_report`: `target`, `held_out`, `n_examples` and others.

        Returns
        -------
        pathlib.Path
        """
        # Pages stand above estimators: they are looked up when one is asked for.
        written: Path = import_module("everytree.report").write_report(self, table, path, **options)
        return written

    def _with_trees(self) -> Self:
        """Return the estimator that has the columns and trees: this one, or one of several outputs."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return not {"fitted_", "outputs_"}.isdisjoint(self.__dict__)

    def _check_fitted(self) -> None:
        """Raise unless the estimator is fitted."""
        check_is_fitted(self, "fitted_")

    def _learnt(self) -> Fitted:
        """Return the fitted state, or raise AttributeError: scikit-learn tests by `hasattr` for attributes."""
        fitted: Fitted | None = self.__dict__.get("fitted_")
        if fitted is None:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return fitted

    # ---- predicting -------------------------------------------------------------------------------------------------

    def _encode(self, X: Any) -> NDArray[Any]:
        self._check_fitted()
        return self.schema_.encode(X, n_jobs=self.n_jobs, owner=type(self).__name__)

    def predictive(self, X: Any, **row_data: Any) -> Predictive:
        """One predictive distribution per row: `mean`, `std`, `quantile`, `interval`, `log_prob`, `sample`, `crps`, ...

        Parameters
        ----------
        X : (n_rows, n_features) table
        **row_data
            Row data of the family, such as `exposure`.
        """
        codes = self._encode(X)
        columns = self._columns(X, len(codes), row_data)
        dist: Predictive = self.model_.predictive(codes, n_jobs=self.n_jobs, **columns)
        return dist

    def _columns(self, X: Any, n_rows: int, row_data: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Return the row data that the family needs for rows to predict."""
        return self.fitted_.target.columns(self.schema_, X, n_rows, row_data)

    # ---- scikit-learn -----------------------------------------------------------------------------------------------

    def __sklearn_clone__(self) -> Self:
        """Keep imported structures, as if they were a parameter."""
        fresh: Self = super().__sklearn_clone__()
        if hasattr(self, "structures_"):
            fresh.structures_ = self.structures_
        return fresh

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        tags.target_tags.required = True
        return tags


def _check_same_tables(mine: Fitted, theirs: Fitted) -> None:
    """Check that both estimators read tables in the same way."""
    difference = schema_difference(mine.schema, theirs.schema)
    if difference:
        raise ValueError(f"other {difference}; models to merge come from one blank()")
    if mine.row_names != theirs.row_names:
        raise ValueError(f"the rows of other came with {theirs.row_names} besides, these with {mine.row_names}")
    if mine.weight_factor != theirs.weight_factor:
        raise ValueError(
            f"other multiplies weights by {theirs.weight_factor}, this one by {mine.weight_factor}: they were "
            "made relative by different fits"
        )
