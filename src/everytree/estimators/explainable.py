"""Explanations and effects of estimators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.errors import ArgumentError
from everytree.base.words import short_number
from everytree.estimators.notebook import ShownInNotebooks
from everytree.explaining.contributions import Contributions
from everytree.explaining.effect import Effect, EffectRule, effect_of
from everytree.explaining.explanation import Explanation
from everytree.explaining.tree_sums import Asked
from everytree.fitting.fit import Fitted
from everytree.models.model import Scale
from everytree.tables.one_row import cells_of, rows_table
from everytree.tables.reading import Table, read_table
from everytree.tables.schema import Schema


class Explainable(ShownInNotebooks, ABC):
    """An estimator that says why, and how predictions change along a column."""

    n_jobs: int | None

    @property
    @abstractmethod
    def model_(self) -> Any:
        """What predicts rows of codes."""

    @property
    @abstractmethod
    def schema_(self) -> Schema:
        """Columns, cut points and categories."""

    def explain(self, X: Any, *, scale: Scale = "prediction", table: Any = None) -> Explanation:
        """What each column contributes to the predictions of some rows; the contributions sum to the prediction.

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
        self._check_explainable()
        if scale not in get_args(Scale):
            raise ArgumentError("scale", f"must be one of {list(get_args(Scale))}, but is {scale!r}")
        owner, schema = type(self).__name__, self.schema_
        rows = rows_table(X, owner)
        codes = self._encode(rows)
        others, mean = None, self._learnt().mean_prediction
        if table is not None:
            table = read_table(table, owner)
            others = self._encode(table)
            mean = None if self.model_.is_sum_of_trees else np.atleast_1d(self._predicted(table).mean(axis=0))
        asked = Asked(codes, schema.input_of.astype(np.int32), schema.n_inputs, others, self.n_jobs, mean)
        classes = tuple(getattr(self, "classes_", ())) or None
        if classes is not None and len(classes) == 1:
            found = Contributions(np.ones(1), np.zeros((len(codes), schema.n_inputs, 1)))
        else:
            found = self.model_.contributions(asked, scale)
        prediction = self._predicted(rows) if scale == "prediction" else found.total()
        names = schema.input_names or [f"x{k}" for k in range(schema.n_inputs)]
        return _explanation(found, prediction, tuple(names), _cells(schema, rows, owner), classes, self._what(scale))

    def effect(
        self,
        column: Any,
        table: Any,
        *,
        max_points: int = 40,
        max_rows: int | None = 1000,
        spread: float = 0.8,
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
        rule, owner = EffectRule(max_points, max_rows, spread), type(self).__name__
        found = effect_of(self._predicted, self.schema_, rows_table(table, owner), column, rule, owner)
        classes = tuple(getattr(self, "classes_", ())) or None
        return replace(found, classes=classes)

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

    # ---- implementation ---------------------------------------------------------------------------------------------

    def _predicted(self, X: Table) -> FloatArray:
        """Probabilities of classes, or means (in one unit of exposure)."""
        if hasattr(self, "classes_"):
            probs: FloatArray = self.predict_proba(X)
            return probs
        codes = self._encode(X)
        columns = self._columns(X, len(codes), {})
        if columns:
            return np.asarray(self.model_.predictive(codes, n_jobs=self.n_jobs, **columns).mean())
        return np.asarray(self.model_.moments(codes, n_jobs=self.n_jobs)[0])

    def _check_explainable(self) -> None:
        """Raise unless the model is fitted and its leaves are classes or constants."""
        self._check_fitted()
        family = self.model_.family
        if getattr(family, "mass", None) is None:
            what = (
                "leaves that are lines" if "inputs" in family.row_data else f"leaves of a family of its own, {family}"
            )
            raise ValueError(
                f"this {type(self).__name__} has {what}, which have no contributions of columns yet; only leaves that "
                "are classes or constants have them. effect() works for all"
            )

    def _what(self, scale: Scale) -> str:
        """What the contributions add up to."""
        has_classes = hasattr(self, "classes_")
        if scale == "trees" and self.model_.of_trees is not None:
            return str(self.model_.of_trees)
        last_time = self._learnt().last_time
        if last_time is not None:
            return f"mean if rates go on beyond {short_number(last_time, 6)}"
        return "probability" if has_classes else "mean"

    @abstractmethod
    def _check_fitted(self) -> None:
        """Raise unless the estimator is fitted."""

    @abstractmethod
    def _learnt(self) -> Fitted:
        """Return the fitted state."""

    @abstractmethod
    def _encode(self, X: Any) -> NDArray[Any]:
        """Return the codes of a table."""

    @abstractmethod
    def _columns(self, X: Any, n_rows: int, row_data: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Return the row data that the family needs for rows to predict."""


def _cells(schema: Schema, table: Table, owner: str) -> NDArray[Any]:
    """(n_rows, n_inputs) the values of the inputs."""
    out = np.full((table.n_rows, schema.n_inputs), None, dtype=object)
    for k, place in schema.places(table, owner, range(schema.n_features)).items():
        number = int(schema.input_of[k])
        out[:, number] = cells_of(table.column(place), table.n_rows)
    return out


def _explanation(
    found: Contributions,
    prediction: FloatArray,
    columns: tuple[str, ...],
    cells: NDArray[Any],
    classes: tuple[Any, ...] | None,
    what: str,
) -> Explanation:
    """Of one number, without the axis of outputs; a score is that of the second of two classes."""
    if classes is not None and what == "score" and len(classes) == 2:
        found = Contributions(
            np.array([-found.base[0], found.base[0]]), np.concatenate([-found.values, found.values], axis=2)
        )
        prediction = found.total()
    if classes is not None:
        return Explanation(found.values, found.base, prediction, columns, cells, classes, what)
    total = prediction if prediction.ndim == 1 else prediction[:, 0]
    return Explanation(found.values[:, :, 0], float(found.base[0]), total, columns, cells, None, what)
