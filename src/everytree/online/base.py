"""The base class of online classifiers and regressors: checks, locks and the order of calls. No mathematics here."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.checks import positive_number, whole_number
from everytree.base.errors import ArgumentError
from everytree.explaining.contributions import Contributions
from everytree.explaining.effect import Effect, EffectRule
from everytree.explaining.explanation import Explanation
from everytree.online.effect import online_effect
from everytree.online.explaining import online_contributions
from everytree.online.leaves import Leaves
from everytree.online.rows import NOMINAL, Range, Row, as_dicts, check_ranges, is_missing
from everytree.online.tables import rows_of, targets_of
from everytree.online.trees import NO_BOUND, OnlineTrees
from everytree.predictive.predictive import Predictive


class OnlineForest(ABC):
    """Trees, a lock around them, and rows that are checked before any change."""

    n_models: int
    split_prior: float
    max_nodes: int | None
    half_life: float | None
    ranges: dict[Hashable, Range] | None
    seed: int

    def _start(self, leaves: Leaves) -> None:
        """Check the parameters and start without rows."""
        n_models = whole_number("n_models", self.n_models, 1, 100_000)
        seed = whole_number("seed", self.seed, 0, 2**63 - 1)
        split_prior = positive_number("split_prior", self.split_prior, " less than 1", high=1.0)
        if split_prior == 1.0:
            raise ValueError("split_prior must be less than 1, but is 1: no tree would ever stop splitting")
        half_life = None
        if self.half_life is not None:
            half_life = positive_number("half_life", self.half_life, " of rows, or None")
        if self.max_nodes is not None:
            whole_number("max_nodes", self.max_nodes, 3 * n_models, NO_BOUND)
        self._ranges = check_ranges(self.ranges)
        self.trees = OnlineTrees(leaves, n_models, seed, split_prior, half_life, self.max_nodes)
        self.lock = _kernels.Guard()

    @abstractmethod
    def checked_target(self, y: Any, where: str) -> Any:
        """Return the target as it is learned, or raise an error that says where it is."""

    @abstractmethod
    def _learn_encoded(self, values: FloatArray, targets: list[Any]) -> None:
        """Learn rows and targets that have been checked."""

    # ---- learning ---------------------------------------------------------------------------------------------------

    def learn_one(self, x: Row, y: Any) -> None:
        """Learn one row. A row or target that is refused changes nothing.

        Parameters
        ----------
        x : dict
            Features: numbers, texts, dates; absent, None or NaN where unknown. Not kept.
        y
            The target.
        """
        self._learn(as_dicts([x]), [y])

    def learn_many(self, X: Any, y: Iterable[Any]) -> None:
        """Learn the rows of a table one after the other.

        A row or target that is refused changes nothing. After an interrupt, the first rows are learned: `n_rows` gives
        their number.

        Parameters
        ----------
        X : table of any library, or iterable of dict
        y : its column of targets, or iterable
        """
        rows, targets = rows_of(X), targets_of(y)
        if len(rows) != len(targets):
            raise ValueError(f"y has {len(targets)} entries, but X has {len(rows)} rows")
        self._learn(rows, targets)

    def _learn(self, rows: list[Row], targets: list[Any]) -> None:
        """Check and encode everything first, then learn."""
        one = len(targets) == 1
        targets = [self.checked_target(y, "y" if one else f"y, row {i},") for i, y in enumerate(targets)]
        with self.lock.writing:
            encoded = self.trees.features.learn(rows, self._ranges)
            if encoded.features is not self.trees.features:
                self.trees.use_features(encoded.features, self._ranges)
            self._learn_encoded(encoded.values, targets)

    def refresh(self) -> None:
        """Bring all statistics and evidence up to date.

        With `half_life`, the evidence of branches that no row has touched lately is only updated from time to time.
        After this call all statistics weigh a row of age a by 2 ** (-a / half_life), and all evidence is derived from
        them.
        """
        with self.lock.writing:
            self.trees.refresh()

    # ---- reading ----------------------------------------------------------------------------------------------------

    def _predict(self, rows: list[Row]) -> FloatArray:
        with self.lock:
            return self.trees.predict(self.trees.features.known(rows))

    def explain(self, X: Any) -> Explanation:
        """What each feature contributes to the predictions of some rows; the contributions sum to the prediction.

        Contributions are exact Shapley values of the average over the trees, as in `MetaForestClassifier.explain`.

        Parameters
        ----------
        X : dict, table of any library, or iterable of dict
        """
        rows = as_dicts([X]) if isinstance(X, Mapping) else rows_of(X)
        with self.lock:
            if self.trees.n_rows == 0:
                raise ValueError(f"this {type(self).__name__} has learned no rows yet: there is nothing to explain")
            features = self.trees.features
            values = features.known(rows)
            classes = self._explained_classes()
            if classes is not None and len(classes) == 1:
                found = Contributions(np.ones(1), np.zeros((len(rows), len(features.index), 1)))
            else:
                found = online_contributions(self.trees, values)
        names = list(features.index)
        cells = np.full((len(rows), len(names)), None, dtype=object)
        for i, row in enumerate(rows):
            cells[i] = [None if is_missing(row.get(name)) else row.get(name) for name in names]
        columns, total = tuple(map(str, names)), found.total()
        if classes is not None:
            return Explanation(found.values, found.base, total, columns, cells, classes, "probability")
        return Explanation(found.values[:, :, 0], float(found.base[0]), total[:, 0], columns, cells, None, "mean")

    def effect(
        self, column: Hashable, X: Any, *, max_points: int = 40, max_rows: int | None = 1000, spread: float = 0.8
    ) -> Effect:
        """The effect of a feature over some rows; see `MetaForestClassifier.effect`."""
        rule, rows = EffectRule(max_points, max_rows, spread).checked(), rows_of(X)
        with self.lock:
            known, classes = list(self.trees.features.index), self._explained_classes()
        if column not in known:
            raise ArgumentError("column", f"is {column!r}, but the features are {known}")
        if not rows:
            raise ArgumentError("X", "has no rows to average over")
        return online_effect(lambda some: self._predicted(some), column, rows, rule, classes)

    def plot_effect(self, column: Hashable, X: Any, *, of: Any = None, ax: Any = None, **options: Any) -> Any:
        """Draw the effect of a feature with its spread over the rows; returns matplotlib's axes."""
        return self.effect(column, X, **options).plot(of=of, ax=ax)

    def range_of(self, feature: Hashable) -> tuple[float, float]:
        """The lowest and the highest value of a feature of numbers so far."""
        with self.lock:
            features = self.trees.features
            column = features.column_of(feature)
            if features.kinds[column] == NOMINAL:
                raise ArgumentError("feature", f"{feature!r} is a text, which has no range; see effect()")
            low, high = self.trees.ranges[column].tolist()
        return low, high

    def _explained_classes(self) -> tuple[Any, ...] | None:
        """The classes seen so far; None where the target is a number."""
        return None

    def _predicted(self, rows: list[Row]) -> FloatArray:
        """(n_rows,) means, or (n_rows, n_classes) probabilities."""
        return self._predict(rows)[:, 0]

    def predictive_one(self, x: Row) -> Predictive:
        """The distribution behind a prediction: of the number, or of the index of the class in `classes`.

        Returns
        -------
        Predictive
            Of one row, averaged over all trees and their prunings. There are at least two classes: before a second one
            is seen, 1 stands for a class that may still occur.
        """
        return self.predictive_many([x])

    def predictive_many(self, X: Any) -> Predictive:
        """The distributions behind the predictions of some rows; see `predictive_one`.

        Parameters
        ----------
        X : table of any library, or iterable of dict
        """
        rows = rows_of(X)
        with self.lock:
            dist, known = self.trees.predictive(self.trees.features.known(rows)), self._explained_classes()
        if known:
            dist.labels = known if len(known) > 1 else (*known, "any other")
        return dist

    def is_category(self, feature: Hashable) -> bool:
        """Whether the values of a feature are texts."""
        features = self.trees.features
        return bool(features.kinds[features.column_of(feature)] == NOMINAL)

    def report(self, path: str | os.PathLike[str], table: Any = None, **options: Any) -> Path:
        """Write a self-contained HTML page about the model, judged by a table of rows and targets if one is given.

        Parameters
        ----------
        path : path-like
            The file to write.
        table : data frame, or iterable of dict, optional
        **options
            As in `everytree.report.write_report`: `target`, `held_out`, `target_name` and `n_examples`.

        Returns
        -------
        pathlib.Path
        """
        # Pages stand above models: they are looked up when one is asked for.
        written: Path = import_module("everytree.report").write_report(self, table, path, **options)
        return written

    @property
    def n_rows(self) -> int:
        """Rows learned."""
        with self.lock:
            return self.trees.n_rows

    @property
    def n_nodes(self) -> int:
        """Nodes of all trees together, at most `max_nodes`."""
        with self.lock:
            return self.trees.n_nodes

    @property
    def features(self) -> list[Hashable]:
        """Names of the features seen so far."""
        return list(self.trees.features.index)

    @property
    def log_evidence(self) -> FloatArray:
        """(n_models,) log evidence of the rows in each tree, averaged over all its prunings."""
        with self.lock:
            return self.trees.log_evidence

    # ---- copies and files -------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:
            state = {name: value for name, value in self.__dict__.items() if name != "lock"}
            return state | {"trees": self.trees.__getstate__()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        trees = object.__new__(OnlineTrees)
        trees.__setstate__(state["trees"])
        self.__dict__.update(state | {"trees": trees, "lock": _kernels.Guard()})
