"""What online classifiers and regressors share: the order of events around the trees. No mathematics here."""

from __future__ import annotations

import math
import threading
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from everytree.codes import whole_number
from everytree.families.base import FloatArray, NativeFamily
from everytree.online.rows import Range, as_dicts, check_ranges
from everytree.online.trees import NO_BOUND, OnlineTrees
from everytree.predictive import Predictive

Row = dict[Any, Any]


class OnlineForest(ABC):
    """Trees, a lock around them, and rows that are checked before anything changes."""

    n_models: int
    split_prior: float
    max_nodes: int | None
    half_life: float | None
    ranges: dict[Hashable, Range] | None
    seed: int

    def _start(self, family: NativeFamily) -> None:
        """Parameters checked, no rows yet."""
        n_models = whole_number("n_models", self.n_models, 1, 100_000)
        seed = whole_number("seed", self.seed, 0, 2**63 - 1)
        if not (isinstance(self.split_prior, float | int) and 0.0 < self.split_prior < 1.0):
            raise ValueError(f"split_prior must be between 0 and 1, but is {self.split_prior!r}")
        if self.half_life is not None:
            positive("half_life", self.half_life, " of rows, or None")
        if self.max_nodes is not None:
            whole_number("max_nodes", self.max_nodes, 3 * n_models, NO_BOUND)
        self._ranges = check_ranges(self.ranges)
        self._trees = OnlineTrees(family, n_models, seed, self.split_prior, self.half_life, self.max_nodes)
        self._lock = threading.RLock()

    @abstractmethod
    def _target(self, y: Any, where: str) -> Any:
        """The target as it is learned, or an error that says where it is."""

    @abstractmethod
    def _learn_encoded(self, values: FloatArray, targets: list[Any]) -> None:
        """Learn rows and targets that are as they should be."""

    # ---- learning ---------------------------------------------------------------------------------------------------

    def learn_one(self, x: Row, y: Any) -> None:
        """Learn one row. A call that fails changes nothing.

        Parameters
        ----------
        x : dict
            Features: numbers, texts, dates; absent, None or NaN where unknown. Not kept.
        y
            The target.
        """
        self._learn(as_dicts([x]), [y])

    def learn_many(self, X: Any, y: Iterable[Any]) -> None:
        """Learn the rows of a table one after the other. A call that fails changes nothing.

        Parameters
        ----------
        X : pandas.DataFrame or iterable of dict
        y : pandas.Series or iterable
        """
        rows, targets = rows_of(X), list(y)
        if len(rows) != len(targets):
            raise ValueError(f"y has {len(targets)} entries, but X has {len(rows)} rows")
        self._learn(rows, targets)

    def _learn(self, rows: list[Row], targets: list[Any]) -> None:
        """Everything that can fail comes first."""
        one = len(targets) == 1
        targets = [self._target(y, "y" if one else f"y, row {i},") for i, y in enumerate(targets)]
        with self._lock:
            encoded = self._trees.features.learn(rows, self._ranges)
            if encoded.features is not self._trees.features:
                self._trees.use_features(encoded.features, self._ranges)
            self._learn_encoded(encoded.values, targets)

    def refresh(self) -> None:
        """Make everything exact.

        With `half_life`, the evidence of branches that no row has touched lately is up to date only now and then. After
        this call all statistics weigh a row of age a by 2 ** (-a / half_life), and all evidence is derived from them.
        """
        with self._lock:
            self._trees.refresh()

    # ---- reading ----------------------------------------------------------------------------------------------------

    def _predict(self, rows: list[Row]) -> FloatArray:
        with self._lock:
            return self._trees.predict(self._trees.features.known(rows))

    def predictive_one(self, x: Row) -> Predictive:
        """The distribution that a prediction is taken from: of the number, or of the place of the class in `classes`.

        Returns
        -------
        Predictive
            Of one row, averaged over all trees and their prunings.
        """
        with self._lock:
            return self._trees.predictive(self._trees.features.known(as_dicts([x])))

    @property
    def n_rows(self) -> int:
        """Rows learned."""
        return self._trees.n_rows

    @property
    def n_nodes(self) -> int:
        """Nodes of all trees together, at most `max_nodes`."""
        return self._trees.n_nodes

    @property
    def features(self) -> list[Hashable]:
        """Names of the features seen so far."""
        return list(self._trees.features.index)

    @property
    def log_evidence(self) -> FloatArray:
        """(n_models,) log evidence of the rows in each tree, averaged over all its prunings."""
        with self._lock:
            return self._trees.log_evidence

    # ---- copies and files -------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state = {name: value for name, value in self.__dict__.items() if name != "_lock"}
            return state | {"_trees": self._trees.__getstate__()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        trees = object.__new__(OnlineTrees)
        trees.__setstate__(state["_trees"])
        self.__dict__.update(state | {"_trees": trees, "_lock": threading.RLock()})


def rows_of(X: Any) -> list[Row]:
    """A DataFrame or several dicts."""
    return as_dicts(X.to_dict("records") if hasattr(X, "to_dict") and not isinstance(X, dict) else X)


def positive(name: str, value: Any, more: str = "") -> None:
    """Refuse what is not a positive finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number) or not 0.0 < value < math.inf:
        raise ValueError(f"{name} must be a positive number{more}, but is {value!r}")
