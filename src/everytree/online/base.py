"""The base class of online classifiers and regressors: checks, locks and the order of calls. No mathematics here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable
from typing import Any

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.checks import positive_number, whole_number
from everytree.online.leaves import Leaves
from everytree.online.rows import NOMINAL, Range, Row, as_dicts, check_ranges
from everytree.online.tables import rows_of, targets_of
from everytree.online.trees import NO_BOUND, OnlineTrees
from everytree.predictive.predictive import Predictive

OF_ESTIMATORS = frozenset({"explain", "effect", "plot_effect", "report"})
"""Methods that an online forest has by way of its snapshot."""


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

    def snapshot(self) -> Any:
        """The present model as an ordinary estimator: fitted, and unchanged by rows that are learned later.

        It predicts what this forest predicts, for any rows, and takes tables: `explain`, `effect`, `report`, files and
        exports are those of `MetaForestClassifier` and `MetaForestRegressor`. A table must have all columns; what a row
        lacks is None or NaN there, and texts that tables take for missing, such as "", are missing. With `half_life`,
        all evidence is up to date, as after `refresh`. `unseen_` is not known: judge the forest as it learns.

        Returns
        -------
        MetaForestClassifier or MetaForestRegressor

        Examples
        --------
        >>> import everytree as et
        >>> model = et.OnlineForestRegressor(seed=1)
        >>> for i in range(300):
        ...     model.learn_one({"hour": i % 24}, 10.0 * (i % 24 > 12))
        >>> model.snapshot().predict([{"hour": 20}]).round()
        array([10.])
        """
        from everytree.online.snapshot import class_snapshot, number_snapshot  # late: it imports scikit-learn

        with self.lock:
            if self.trees.n_rows == 0:
                raise ValueError(
                    f"this {type(self).__name__} has learned no rows yet: there is nothing to take a snapshot of"
                )
            trees = self.trees.copy()
            classes = self._classes_so_far()
        if trees.half_life is not None:
            trees.refresh()
        return number_snapshot(trees) if classes is None else class_snapshot(trees, classes)

    def __getattr__(self, name: str) -> Any:
        """Say how to do what only ordinary estimators do."""
        instead = f": use model.snapshot().{name}(...)" if name in OF_ESTIMATORS else ""
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{instead}")

    def _classes_so_far(self) -> tuple[Any, ...] | None:
        """The classes seen so far; None where the target is a number."""
        return None

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
            dist, known = self.trees.predictive(self.trees.features.known(rows)), self._classes_so_far()
        if known:
            dist.labels = known if len(known) > 1 else (*known, "any other")
        return dist

    def is_category(self, feature: Hashable) -> bool:
        """Whether the values of a feature are texts."""
        features = self.trees.features
        return bool(features.kinds[features.column_of(feature)] == NOMINAL)

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
