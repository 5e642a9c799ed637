"""Base class of all estimators: parameters become a target and a structure, and the fitted state is one object.

An estimator is this class, with the methods for classes or for numbers, and the parameters of a structure. What takes
more than a few lines stands in functions beside it: of explanations, pictures, batches and several outputs.
"""

from __future__ import annotations

import copy
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from everytree.base.arrays import FloatArray
from everytree.base.checks import whole_number
from everytree.base.errors import ArgumentError, OverlapError
from everytree.base.randomness import RandomSource, random_generator
from everytree.batches.batch import Roles
from everytree.batches.sketch import SAMPLE_ROWS
from everytree.conformal.guarantee import Guarantee
from everytree.estimators.availability import lacking, only_where, refuse_several_outputs
from everytree.estimators.batches import fit_batches
from everytree.estimators.conformal import LEFT_OUT, check_left_out, conformal_of, set_aside, split_conformal
from everytree.estimators.early_rows import EarlyRows
from everytree.estimators.explaining import explanation
from everytree.estimators.monotone import axes_of
from everytree.estimators.outputs import fit_several
from everytree.estimators.parameters import CategoricalFeatures, check_parameters
from everytree.estimators.showing import drawing_options, fitted_html
from everytree.explaining.effect import Effect, effect_of
from everytree.explaining.explanation import Explanation
from everytree.fitting.fit import fit
from everytree.fitting.fitted import Fitted, code_more_rows, last_time_of
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.held_out.scores import NoScores, Scores
from everytree.fitting.held_out.search import Choice
from everytree.fitting.outputs import output_columns
from everytree.fitting.structures.structure import Structure
from everytree.fitting.targets.target import Target
from everytree.models.model import Scale
from everytree.posterior.forest import Forest
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.predictive.predictive import Predictive
from everytree.predictive.rearranged import Axis, Grid, rearranged
from everytree.structure.importers.model import Imported
from everytree.tables.named_columns import series_name, split_off
from everytree.tables.one_row import rows_table
from everytree.tables.reading import Table
from everytree.tables.repeats import read_groups
from everytree.tables.schema import Schema
from everytree.tables.schema_difference import schema_difference

NO_ROWS = NoScores("it has seen no rows")
ADDED_LATER = NoScores("rows were added after they were left out; only fit leaves rows out")

TAKEN_BACK = NoScores("rows were taken back after they were left out")

AFTER_ALL_TREES = "a boosted tree depends on all trees before it, so that more rows need a new fit"
TOO_MANY_TREES = "boosted trees are too many and too small to be drawn"


class MetaEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """An estimator around one `Fitted`."""

    # Parameters that every estimator has; declared for the reader, listed by each.
    max_bins: int
    categorical_features: CategoricalFeatures
    relative_weights: bool
    monotonic_cst: Any
    n_jobs: int | None
    verbose: int

    # What a kind of estimator is and can do.
    model_kinds: ClassVar[tuple[str, ...]]
    """Kinds of the models that are fitted."""
    has_classes: ClassVar[bool]
    has_one_tree: ClassVar[bool] = False
    counts_rows: ClassVar[bool] = True
    """Whether rows can be added, and a tree can be drawn."""
    grows_trees: ClassVar[bool] = False
    """Whether trees are grown that do not depend on each other, so that batches and several outputs are possible."""

    fitted_: Fitted  # everything that was learnt
    structures_: Imported | None = None  # structures imported from another library, which `fit` keeps
    outputs_: list[Self]  # only if y had several columns: a fitted estimator for each of them
    _early: EarlyRows | None = None
    """The rows so far, kept as long as structures may be grown again on more of them."""

    # ---- from parameters --------------------------------------------------------------------------------------------

    @abstractmethod
    def target_before_fit(self) -> Target:
        """Return the target of this estimator, before any rows are read."""

    @abstractmethod
    def _structure(self) -> Structure:
        """Return the object that chooses the splits."""

    def _structure_of_fit(self) -> Structure:
        """Return the structure for `fit`, which with `warm_start` keeps the trees of the last fit."""
        return self._structure()

    def _check_parameters(self) -> None:
        """Raise for invalid values of parameters, alone or together."""
        check_parameters(self)

    def _check_incremental(self, method: str) -> None:
        """Raise for parameters that need all rows at once, where a method is given some of them after others."""

    def _settings(self) -> Settings:
        return Settings(
            type(self).__name__, self.categorical_features, self.max_bins, bool(self.relative_weights), self.n_jobs,
            self.verbose,
        )  # fmt: skip

    # ---- learning ---------------------------------------------------------------------------------------------------

    def _given(self, X: Any, y: Any, sample_weight: Any, row_data: Mapping[str, Any], groups: Any) -> GivenRows:
        """Return rows as they are given, with the columns of X that arguments name."""
        if y is None:
            owner = type(self).__name__  # the rest in scikit-learn's words
            raise ValueError(f"{owner} requires y to be passed, but the target y is None; or name its column in X")
        name = groups if isinstance(groups, str) else series_name(groups) or ""
        target_name = y if isinstance(y, str) else series_name(y)
        X, given = split_off(X, {"y": y, "sample_weight": sample_weight, "groups": groups, **row_data})
        y, weight, labels = (given.pop(argument) for argument in ("y", "sample_weight", "groups"))
        return GivenRows(X, y, weight, groups=labels, groups_name=name, target_name=target_name, row_data=given)

    def _fit(self, given: GivenRows, calibration_rows: Any = None) -> Self:
        """Fit a table in memory; a fit that fails changes nothing."""
        columns = output_columns(given.y) if self.grows_trees and calibration_rows is None else None
        if columns is not None:
            if self.monotonic_cst is not None:
                raise ArgumentError("monotonic_cst", "is for one output, but y has several columns")
            fit_several(self, given, columns)
            return self
        self._keep(self._calibrated(given, calibration_rows), given.X)
        self._keep_early(None)
        return self

    def _calibrated(self, given: GivenRows, calibration_rows: Any) -> Fitted:
        """Return what is learnt from a table without the rows that are set aside to calibrate it, and these."""
        if calibration_rows is None:
            return self._fitted(given)
        if calibration_rows == LEFT_OUT:
            check_left_out(given)
            return self._fitted(given, keeps_left_out=True)
        rest, aside = set_aside(given, calibration_rows, getattr(self, "random_state", None), type(self).__name__)
        fitted = self._fitted(rest)
        return replace(fitted, conformal=split_conformal(self, fitted, aside))

    def _fitted(self, given: GivenRows, *, keeps_left_out: bool = False) -> Fitted:
        """Return what is learnt from a table."""
        self._check_parameters()
        settings = replace(self._settings(), keeps_left_out=keeps_left_out)
        fitted = fit(given, self.target_before_fit(), self._structure_of_fit(), settings)
        return self._scored(fitted, given.y)

    def conformalize(self, X: Any, y: Any = None, *, by: Any = None, groups: Any = None, **row_data: Any) -> Self:
        """Make intervals and sets of proved coverage from rows that the model was not fitted to.

        Split conformal prediction: see `guarantee_`. `predict_interval(X, coverage, guarantee="conformal")` of
        regressors and `predict_set(X, coverage)` of classifiers then hold the target of a new row with this probability
        at least, whatever the model, if new rows come from where these rows come from. What was there of an earlier
        call is replaced; `fit`, `partial_fit` and `merge` remove it.

        Parameters
        ----------
        X : (n_rows, n_features) table
            Calibration rows. All rows of the fit are refused; a part of them is not recognised, and would break the
            promise.
        y : (n_rows,) array_like, or str
            Their targets.
        by : str or int, optional
            A column of X: coverage then holds within each of its categories.
        groups : (n_rows,) array_like, or str, optional
            Rows of one group (a patient, a site) are no independent rows: one of each group, drawn at random, counts.
        **row_data
            Row data of the family, such as `exposure`.

        Returns
        -------
        The estimator itself.

        Examples
        --------
        >>> import everytree as et
        >>> from sklearn.datasets import load_diabetes
        >>> X, y = load_diabetes(return_X_y=True)
        >>> model = et.MetaForestRegressor(n_estimators=20, random_state=0).fit(X[:250], y[:250])
        >>> low, high = model.conformalize(X[250:350], y[250:350]).predict_interval(X[350:], guarantee="conformal").T
        >>> print(model.guarantee_)
        Split conformal prediction by 100 rows: a new row is covered at least as often as asked for.
        """
        self._check_fitted()
        given = self._given(X, y, None, row_data, groups)
        self.fitted_ = replace(self.fitted_, conformal=split_conformal(self, self.fitted_, given, by))
        return self

    @property
    def guarantee_(self) -> Guarantee:
        """The theorem behind conformal intervals and sets, and what it promises; `promised(coverage)` is a number."""
        return conformal_of(self).guarantee

    def _scored(self, fitted: Fitted, y: Any) -> Fitted:
        """Return the fitted state with its out-of-bag score, where `oob_score` is set."""
        del y
        return replace(fitted, out_of_bag=None)

    @only_where("grows_trees", "its structures are chosen by all rows at once")
    def fit_batches(
        self,
        batches: Any,
        target: str | None = None,
        *,
        sample_weight: str | None = None,
        groups: str | None = None,
        sample_rows: int = SAMPLE_ROWS,
        **row_columns: str,
    ) -> Self:
        """Learn from a table that does not fit in memory, in two passes over its batches.

        The first pass reads every row for the columns (kinds, categories, missing values, classes) and keeps a uniform
        sample of the rows. On the sample, structures are grown and priors are chosen as in `fit`. The second pass
        counts every row of every batch once, so statistics, evidence, split probabilities and predictions are those of
        all rows: up to rounding, the same as from `partial_fit` with all rows at once in these structures. If the
        sample holds all rows, the result is that of `fit` and there is no second pass. `unseen_` has the scores of rows
        of the sample, as after `fit`.

        Parameters
        ----------
        batches : path, relation, data frame, iterable or callable
            The path of a Parquet, CSV or Feather file, a folder or a pattern such as "2024-*.parquet"; a DuckDB
            relation or a polars LazyFrame, computed in each pass; a list or another object that can be iterated more
            than once, or a function that returns an iterator. Batches are Arrow record batches, data frames of any
            library, or tuples `(X, y)` or `(X, y, sample_weight)`. All have the same columns, of the same kinds. Of a
            Dask dataframe, both passes are computed where its partitions are, on the cluster of the active client.
        target : str, optional
            Name of the column of targets; not with tuples.
        sample_weight : str, optional
            Name of the column of weights; a row of weight 0 counts as absent.
        groups : str, optional
            Name of the column of groups, whose rows belong together; see `fit`.
        sample_rows : int
            Size of the sample.
        **row_columns
            Names of the columns with the row data of the family, such as `exposure="time"`.

        Returns
        -------
        The estimator itself; a fit that fails leaves it unchanged.

        Examples
        --------
        >>> import numpy as np, everytree as et
        >>> rng = np.random.default_rng(0)
        >>> tables = [rng.normal(size=(500, 3)) for _ in range(4)]
        >>> batches = [(X, X[:, 0] > 0) for X in tables]
        >>> model = et.MetaForestClassifier(n_estimators=5, random_state=0).fit_batches(batches, sample_rows=1000)
        >>> model.forest_.n_rows
        2000
        """
        self.target_before_fit().check_names(row_columns)
        roles = Roles.of(target, sample_weight, {**row_columns, "groups": groups})
        fit_batches(self, batches, roles, sample_rows)
        return self

    def _fit_first(self, given: GivenRows, target: Target) -> Self:
        """Fit the first rows of several calls, and keep them until there are enough to grow structures on."""
        refuse_several_outputs(self)
        if output_columns(given.y) is not None:
            raise ArgumentError("y", "has several columns; their first rows are learnt by fit, not by partial_fit")
        self._check_parameters()
        self._check_incremental("partial_fit")
        fitted = replace(fit(given, target, self._structure(), self._settings()), unseen=ADDED_LATER)
        early = None
        if self.structures_ is None:
            early = EarlyRows(type(self).__name__, self.categorical_features, target).with_rows_if_due(given)
        self._keep(fitted, given.X)
        self._keep_early(early)
        return self

    def _fit_more(self, given: GivenRows, *, allow_overlap: bool = False) -> Self:
        """Add the next rows; structures that were grown on few rows are grown again on more."""
        fitted, settings = self._learnt(), self._settings()
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
        self.fitted_ = replace(
            fitted.with_batch(rows), unseen=ADDED_LATER, mean_prediction=None, last_time=last_time, conformal=None
        )
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
        axes_of(self.monotonic_cst, fitted)  # raises for constraints that this table cannot have
        self.__dict__.pop("outputs_", None)
        names = fitted.schema.input_names
        given: Any = getattr(X, "column_names", None) or getattr(X, "columns", names)
        self.__dict__.pop("feature_names_in_", None)
        if names is not None and all(isinstance(name, str) for name in given):
            self.feature_names_in_ = np.array(names, dtype=object)
        self.fitted_ = fitted

    @only_where("counts_rows", AFTER_ALL_TREES)
    def forget(self, X: Any, y: Any, sample_weight: Any = None, **row_data: Any) -> Self:
        """Take back rows that were counted: statistics are then as if they had never been. Returns itself.

        Evidence, split probabilities and predictions are those of the other rows in the same structures, with the same
        priors, columns and weights of trees. What these were chosen by is not undone: cut points, the order of
        categories, splits, priors and sharpness may have been learnt from the rows too; only a new fit without them
        removes that. Rows that are kept to grow structures again are no longer kept.

        Rows of which a leaf has fewer than they would take away are refused, and nothing changes; so is a batch of at
        least ten different rows that was taken back already. Sums cannot tell other rows from those that were counted
        where enough rows like them are in every leaf that they reach. Exact trees keep their rows, and refuse every row
        that is not among them.

        Parameters
        ----------
        X, y
            The rows as they were given to `fit` or `partial_fit`, in any order and any batches.
        sample_weight, **row_data
            Of these rows, likewise.

        Examples
        --------
        >>> import everytree as et
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = et.MetaForestClassifier(n_estimators=5, random_state=0).fit(X, y)
        >>> others = model.blank().partial_fit(X[10:], y[10:])
        >>> round(abs(model.forget(X[:10], y[:10]).log_evidence_ - others.log_evidence_), 9)
        0.0
        """
        rows = self._counted_rows(self._given_later(X, y, sample_weight, row_data))
        if self.fitted_.has_forgotten(rows):
            raise OverlapError(f"this {type(self).__name__} has taken back these rows already; nothing was changed")
        self.model_.forget(rows.codes, rows.y, rows.weight, n_jobs=self.n_jobs, **dict[str, Any](rows.row_data))
        without = self.fitted_.without_batch(rows)
        self.fitted_ = replace(without, unseen=TAKEN_BACK, out_of_bag=None, mean_prediction=None, conformal=None)
        self._keep_early(None)
        return self

    @only_where("counts_rows", AFTER_ALL_TREES)
    def influence(
        self, X: Any, y: Any, X_new: Any, sample_weight: Any = None, *, groups: Any = None, **row_data: Any
    ) -> FloatArray:
        """Change of each prediction when a row, or a group of rows, is left out.

        Structures, priors, weights of trees and sharpness stay as they are, and with them the result is exact: the
        prediction after `forget`, less that before. Of forests and trees in closed form, from the nodes on a row's
        paths; of exact trees, survival curves and leaves that are lines or cells by taking each row back from a copy.

        Parameters
        ----------
        X, y
            Rows that were counted, as for `forget`.
        sample_weight, **row_data
            Of these rows, likewise.
        X_new : (n_new, n_features) table
            Rows to predict.
        groups : (n_rows,) array_like, or str, optional
            Rows of a group are left out together.

        Returns
        -------
        (n_rows, n_new) float64, for classes (n_rows, n_new, n_classes)
            Probabilities or means without the row, less those with it; for groups, in ascending order of their names.
        """
        given = self._given_later(X, y, sample_weight, row_data, groups)
        rows = self._counted_rows(given)
        self._check_unconstrained("influence")
        named = read_groups(given.groups, len(rows))
        codes = self._encode(X_new)
        columns, group = self._columns(X_new, len(codes), {}), np.arange(len(rows)) if named is None else named
        before = self.model_.means_of(codes, columns, n_jobs=self.n_jobs)
        changes: FloatArray = self.model_.means_without(rows, group, codes, columns, n_jobs=self.n_jobs)
        changes -= before.reshape(len(codes), -1)
        return changes[:, :, : len(self.classes_)] if self.has_classes else changes[:, :, 0]

    @only_where("counts_rows", AFTER_ALL_TREES)
    def row_values(
        self, X: Any, y: Any, sample_weight: Any = None, *, n_passes: int = 20, rng: RandomSource = None,
        **row_data: Any,
    ) -> tuple[FloatArray, FloatArray]:  # fmt: skip
        """Value of each row for the model: what it adds to the log evidence, averaged over all orders of the rows.

        These are Shapley values of the rows: they sum to the log evidence of the rows in the structures and priors of
        this model. Rows with a large negative value are the ones that the others do not expect: mistakes, or another
        law. They are estimated from random orders, in each of which rows are counted one after another and a row's
        gain is the log probability of its target given those before it; without bias, and with their standard errors.
        Where structures and priors were chosen by the same rows, these are not part of the values.

        Exact trees are summed again for each row of each order, which takes long.

        Parameters
        ----------
        X, y
            Rows as for `partial_fit`, whether or not they were counted.
        sample_weight, **row_data
            Of these rows, likewise.
        n_passes : int
            Orders, at least 2. A pass costs as much as counting the rows one by one.
        rng : numpy.random.Generator, numpy.random.RandomState or int, optional
            Source of randomness, or its seed.

        Returns
        -------
        (n_rows,) float64, (n_rows,) float64
            Values, and their standard errors.
        """
        rows = self._counted_rows(self._given_later(X, y, sample_weight, row_data))
        n, generator = whole_number("n_passes", n_passes, 2), random_generator(rng)
        gains = self.model_.gains_of_rows(rows, (generator.permutation(len(rows)) for _ in range(n)))
        return gains.mean(axis=0), gains.std(axis=0, ddof=1) / np.sqrt(n)

    def _given_later(self, X: Any, y: Any, weight: Any, row_data: Mapping[str, Any], groups: Any = None) -> GivenRows:
        """Return rows after the first as they are given, with the columns of X that arguments name."""
        self._check_fitted()
        self.target_before_fit().check_names(row_data)
        return self._given(X, y, weight, row_data, groups)

    def _counted_rows(self, given: GivenRows) -> Rows:
        """Rows that were counted, coded as they were then."""
        if self.fitted_.is_out_of_fold:
            raise ValueError(
                f"the rows of fit were counted in this {type(self).__name__} by codes of categories, or by hazards, "
                "from the targets of other rows only, so that they cannot be found again; count rows by partial_fit "
                "in a blank() of it"
            )
        return self._more_rows(given, self.fitted_)

    @only_where("counts_rows", AFTER_ALL_TREES)
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
        self._check_mergeable(other)
        mine, theirs = self.fitted_, other.fitted_
        if not allow_overlap and not set(mine.batches).isdisjoint(theirs.batches):
            raise OverlapError(
                "other has counted a batch of rows that this one has counted too, and they would count twice. Let "
                "models that are to be merged start from blank(), or pass allow_overlap=True"
            )
        self.model_.merge(copy.deepcopy(other.model_) if other.model_ is self.model_ else other.model_)
        batches = [*mine.batches, *theirs.batches]
        last_time = max((time for time in (mine.last_time, theirs.last_time) if time is not None), default=None)
        self.fitted_ = replace(
            mine, batches=batches, unseen=ADDED_LATER, mean_prediction=None, last_time=last_time, conformal=None,
            is_out_of_fold=mine.is_out_of_fold or theirs.is_out_of_fold, forgotten=[*mine.forgotten, *theirs.forgotten],
        )  # fmt: skip
        self._keep_early(None)
        return self

    def _check_mergeable(self, other: Any) -> None:
        """Raise unless the other has the same columns, structures and priors."""
        if type(other) is not type(self):
            raise TypeError(f"other must be a {type(self).__name__}, not {type(other).__name__}")
        self._check_fitted()
        other._check_fitted()
        _check_same_tables(self.fitted_, other.fitted_)
        self.fitted_.target.check_same(other.fitted_.target)
        try:
            self.model_.check_mergeable(other.model_)
        except ValueError as error:
            advice = (
                "models that are to be merged or compared have the same trees: fit one, and take a blank() for each"
            )
            raise ValueError(f"{error}; {advice}") from None

    @only_where("counts_rows", AFTER_ALL_TREES)
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
            mean_prediction=None, last_time=None, conformal=None, is_out_of_fold=False, forgotten=(),
        )  # fmt: skip
        empty._keep_early(None)
        return empty

    # ---- fitted attributes ------------------------------------------------------------------------------------------

    @property
    def model_(self) -> Any:
        """The fitted model, which predicts rows of codes: see `everytree.models`."""
        return self._learnt().model

    @property
    def forest_(self) -> Forest:
        """The forest: for estimators that average trees."""
        parts = self.model_.parts
        if parts.forest is None or parts.additive is not None:
            raise AttributeError(
                f"{type(self).__name__} has no forest_, since it is not an average over trees; use model_"
            )
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
        if not self.counts_rows:
            raise lacking(type(self), "log_evidence_", AFTER_ALL_TREES)
        return float(self.model_.log_evidence)

    @property
    def choice_(self) -> Choice:
        """The priors and the sharpness that were chosen, and their score."""
        choice = self._learnt().choice
        if choice is None:
            raise AttributeError(f"{type(self).__name__} has no choice_: its priors are given, not chosen")
        return choice

    @property
    def posteriors_(self) -> tuple[Posterior, ...]:
        """One posterior for each tree of the average."""
        return self.forest_.posteriors

    @property
    def weights_(self) -> FloatArray:
        """(n_trees,) weights of the trees of the average."""
        return self.forest_.weights

    @property
    def n_outputs_(self) -> int:
        """Number of columns of y."""
        if self._several:
            return len(self._several)
        self._learnt()
        return 1

    @property
    def feature_importances_(self) -> FloatArray:
        """(n_features,) expected gain in log evidence by the splits on each column, scaled to sum to 1.

        Exact trees: the expected number of splits on it. Of several outputs, the mean.
        """
        if self._several:
            return np.asarray(np.mean([one.feature_importances_ for one in self._several], axis=0))
        self._check_fitted()
        return self.schema_.by_input(self.model_.feature_importances())

    @property
    def unseen_(self) -> Scores:
        """Held-out scores of the fit, a `ClassScores` or a `NumberScores`: no row is predicted by a tree that saw it.

        Forests: out-of-bag rows are predicted by the trees that were not grown on them, without the row (and the others
        of its group) in their statistics. Single trees: out-of-fold, each fifth of the rows by a tree that was grown
        without it. Boosting: out-of-fold, every row by the chain that left it out. Ensembles: by that chain and a
        forest grown without the rows that this chain left out. A long table is scored by a random sample.

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
            raise AttributeError(f"this {name} has no unseen_: {scores.why}. Use score(X, y) with other rows")
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
        self._check_fitted()
        self._check_unconstrained("report")
        # Pages stand above estimators: they are looked up when one is asked for.
        written: Path = import_module("everytree.report").write_report(self, table, path, **options)
        return written

    def save(self, path: str | os.PathLike[str], **options: Any) -> None:
        """Write the model to a file without pickle; as `everytree.save(model, path)`, which `everytree.load` reads."""
        import_module("everytree.files").save(self, path, **options)

    @property
    def _several(self) -> list[Self]:
        """The estimators of the outputs; empty if there is one output."""
        outputs: list[Self] = self.__dict__.get("outputs_", [])
        return outputs

    def _with_trees(self) -> Self:
        """Return the estimator that has the columns and trees: this one, or one of several outputs."""
        return self._several[0] if self._several else self

    def __sklearn_is_fitted__(self) -> bool:
        return not {"fitted_", "outputs_"}.isdisjoint(self.__dict__)

    def _check_fitted(self) -> None:
        """Raise unless the estimator is fitted."""
        refuse_several_outputs(self)
        check_is_fitted(self, "fitted_")

    def _learnt(self) -> Fitted:
        """Return the fitted state; what is raised without one is an AttributeError, by which `hasattr` is False."""
        self._check_fitted()
        return self.fitted_

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
        return self._distributions(codes, columns)

    @property
    def _axes(self) -> tuple[Axis, ...]:
        """Columns with which predictions rise or fall."""
        return axes_of(self.monotonic_cst, self.fitted_)

    def _distributions(self, codes: NDArray[Any], columns: Mapping[str, NDArray[Any]]) -> Predictive:
        """One predictive distribution for each coded row; rearranged where the estimator is monotone."""
        axes, found = self._axes, self.model_.predictive
        if not axes:
            dist: Predictive = found(codes, n_jobs=self.n_jobs, **columns)
            return dist
        grid = Grid.of(codes, axes, columns)
        repeated = {name: np.repeat(values[grid.row_of], grid.n_points, axis=0) for name, values in columns.items()}
        return rearranged(found(grid.codes, n_jobs=self.n_jobs, **repeated), grid)

    def _check_unconstrained(self, method: str) -> None:
        """Raise where a method is about the sum over trees, which is not what a monotone estimator predicts."""
        if self._axes:
            raise ArgumentError("monotonic_cst", f"is set, and {method} is about predictions without constraints")

    def _columns(self, X: Any, n_rows: int, row_data: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Return the row data that the family needs for rows to predict."""
        return self.fitted_.target.columns(self.schema_, X, n_rows, row_data)

    # ---- explanations -----------------------------------------------------------------------------------------------

    def explain(self, X: Any, *, scale: Scale = "prediction", table: Any = None) -> Explanation:
        """Contributions of the columns to the predictions of some rows, which sum to the prediction.

        With `scale="prediction"`, contributions sum to `predict_proba` for each class, or to the mean that `predict`
        gives (for a count, in one unit of exposure). With `scale="trees"` they are exact Shapley values of the sum or
        average of the trees: probabilities before sharpening, scores (log-odds) of boosted classes, or centres of
        boosted numbers. Both are the same where the prediction is a plain average over trees: for single trees, forests
        of numbers, exact trees, and forests of classes without sharpening. Otherwise the prediction is a curved
        function of the trees: each contribution is multiplied by the mean slope of that function between the mean
        prediction, which is the `base`, and the prediction of the row. On the scale of the trees, that start is not
        quite their mean; the difference is shared among the columns in proportion to their importance.

        The value of a set of columns is that of a walk through the trees that follows splits on these columns, and goes
        on to all children at other splits, by the shares of the rows there. Exact trees average over columns that are
        not in the set as if they were independent.

        Parameters
        ----------
        X : (n_rows, n_features) table, or one row
            One row may be a dict of its values, a pandas Series or a list.
        scale : {"prediction", "trees"}
        table : (n_table_rows, n_features) table, optional
            Rows whose shares count instead of those of fit: contributions are then relative to these rows, and `base`
            is their mean prediction.

        Returns
        -------
        Explanation

        Examples
        --------
        >>> import everytree as et
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = et.MetaTreeClassifier(max_depth=2, random_state=0).fit(X, y)
        >>> why = model.explain(X.iloc[[70]])
        >>> bool(abs(why.base + why.values[0].sum(axis=0) - model.predict_proba(X.iloc[[70]])[0]).max() < 1e-12)
        True
        """
        self._check_fitted()
        if scale == "prediction":
            self._check_unconstrained("explain with scale='prediction'")
        return explanation(self, X, scale, table)

    def effect(
        self, column: Any, table: Any, *, max_points: int = 40, max_rows: int | None = 1000, spread: float = 0.8
    ) -> Effect:
        """The effect of a column: the average prediction of rows that all have the same value in it.

        This is the partial dependence, the exact average of the model over the rows. Values of the column are those of
        the rows; numbers that the model cannot tell apart are one point.

        Parameters
        ----------
        column : str or int
            Name or number of a column.
        table : (n_rows, n_features) table
            Rows to average over.
        max_points : int
            Of a column with more distinct numbers, so many points, about as many rows at each.
        max_rows : int or None
            Of a longer table, a random sample of so many rows, the same in every call; None for all rows.
        spread : float
            Share of the rows' predictions that lies between `low` and `high`.

        Returns
        -------
        Effect
        """
        self._check_fitted()
        owner = type(self).__name__
        found = effect_of(
            self._predicted, self.schema_, rows_table(table, owner), column, owner, max_points=max_points,
            max_rows=max_rows, spread=spread,
        )  # fmt: skip
        return replace(found, classes=tuple(getattr(self, "classes_", ())) or None)

    def plot_effect(self, column: Any, table: Any, *, of: Any = None, ax: Any = None, **options: Any) -> Any:
        """Draw the effect of a column with its spread over the rows; returns matplotlib's axes.

        Parameters
        ----------
        column, table, **options
            As in `effect`.
        of : class label, optional
            By default the second of two classes, or all of more.
        ax : matplotlib.axes.Axes, optional
        """
        return self.effect(column, table, **options).plot(of=of, ax=ax)

    @abstractmethod
    def _predicted(self, X: Table) -> FloatArray:
        """Probabilities of classes, or means (in one unit of exposure)."""

    # ---- pictures ---------------------------------------------------------------------------------------------------

    @only_where("counts_rows", TOO_MANY_TREES)
    def pictured(self) -> Posterior:
        """The posterior over the prunings of the tree that pictures show.

        Of a forest the one that explains the rows best; of exact trees the most probable one.
        """
        self._check_fitted()
        posterior: Posterior = self.model_.pictured()
        return posterior

    @property
    def helpful_splits_(self) -> FloatArray:
        """(n_nodes,) for the splits of `pictured()`: the probability that each helps rows on which it was not chosen.

        Posterior split probabilities of grown trees are nearly all 1, because splits were chosen on the rows that count
        in them. Here a split is judged by other rows, which are predicted better by it or by a leaf, with even odds
        before any of them is seen. Forests: rows that the tree was not grown on. Single trees: every fifth row, by the
        split of the node's region that is chosen without it; 0.5 where fewer than six rows are in a node, or six splits
        above it. NaN at leaves.

        Not there where no rows were left out: in exact trees, imported structures and trees that are grown on all rows;
        nor where another tree has become the best one since.
        """
        helpful = self._learnt().helpful
        if helpful is None or helpful.tree != self.forest_.best_tree():
            raise AttributeError(
                f"this {type(self).__name__} has no helpful_splits_: no rows were left out for its tree"
            )
        return helpful.prob

    @only_where("counts_rows", TOO_MANY_TREES)
    def to_text(self, **options: Any) -> str:
        """The tree drawn with characters, the probability of each split on it; options as in `Posterior.to_text`.

        Splits that probably do not help rows on which they were not chosen (`helpful_splits_` below one half) are left
        out of this and all other pictures, and counted; `min_helps=0` shows them. Predictions are averages over all
        prunings, whatever a picture shows.
        """
        return self.pictured().to_text(**self.drawing_options(options))

    @only_where("counts_rows", TOO_MANY_TREES)
    def plot(self, **options: Any) -> Any:
        """The tree as a matplotlib picture; options as in `everytree.plot_tree`."""
        from everytree.view.plot import plot_tree

        return plot_tree(self.pictured(), **self.drawing_options(options))

    @only_where("counts_rows", TOO_MANY_TREES)
    def drawing_options(self, options: dict[str, Any]) -> dict[str, Any]:
        """Add names of columns, values and classes, and which splits help, to options of pictures that lack them."""
        return drawing_options(self, options)

    # ---- scikit-learn -----------------------------------------------------------------------------------------------

    def __sklearn_clone__(self) -> Self:
        """Keep imported structures, as if they were a parameter."""
        fresh: Self = super().__sklearn_clone__()
        if self.structures_ is not None:
            fresh.structures_ = self.structures_
        return fresh

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        tags.target_tags.required = True
        tags.target_tags.multi_output = self.grows_trees
        return tags

    def _repr_html_inner(self) -> str:
        return fitted_html(self) or super()._repr_html_inner()

    def _repr_mimebundle_(self, **options: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**options)
        own = fitted_html(self) if "text/html" in bundle else None  # not if scikit-learn is set to show text
        return bundle if own is None else bundle | {"text/html": own}


def _check_same_tables(mine: Fitted, theirs: Fitted) -> None:
    """Check that both estimators read tables in the same way."""
    difference = schema_difference(mine.schema, theirs.schema)
    if difference:
        raise ValueError(f"other {difference}; models to merge come from one blank()")
    if mine.row_names != theirs.row_names:
        raise ValueError(f"other was fitted with row data {theirs.row_names}, this model with {mine.row_names}")
    if mine.weight_factor != theirs.weight_factor:
        raise ValueError(
            f"other multiplies weights by {theirs.weight_factor}, this one by {mine.weight_factor}: they were "
            "made relative by different fits"
        )
