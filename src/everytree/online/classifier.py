"""Online forests for classes."""

from __future__ import annotations

from collections.abc import Hashable
from itertools import islice
from typing import Any

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.base.checks import positive_number
from everytree.online.base import OnlineForest
from everytree.online.leaves import Leaves, leaves_of_classes
from everytree.online.river_base import MiniBatchClassifier
from everytree.online.rows import Range, Row, as_dicts, is_missing
from everytree.online.tables import column_like, rows_of, table_like


class OnlineForestClassifier(OnlineForest, MiniBatchClassifier):
    """Streaming classification by random trees averaged over all their prunings.

    Where river is installed this is a river classifier. Classes may appear at any time.

    Parameters
    ----------
    n_models : int
        Number of trees.
    split_prior : float
        Prior probability that splitting goes on as the fineness of the cells doubles.
    concentration : float
        Prior weight of a leaf in rows, shared equally by the classes; from 1e-50 to 1e50.
    max_nodes : int or None
        Maximum number of nodes of all trees together, at least three per tree. When it is reached, the pair of sibling
        leaves that adds least to the evidence of its parent cell is removed. A node takes 80 bytes, 17 per feature and
        8 per class; from 32 classes on, 16 to 32 for each class that its rows have.
    half_life : float or None
        Number of rows after which a row counts half; None counts all rows alike.
    ranges : dict or None
        (low, high) of numeric features whose range is known; that of others is what was seen so far.
    seed : int
        Chooses the splits: the same stream gives the same model.

    Examples
    --------
    >>> import everytree as et
    >>> model = et.OnlineForestClassifier(seed=1)
    >>> for i in range(200):
    ...     x = {"size": i % 10, "colour": "red" if i % 3 else "blue"}
    ...     model.learn_one(x, "big" if x["size"] > 4 else "small")
    >>> model.predict_one({"size": 8, "colour": "red"})
    'big'
    """

    def __init__(
        self,
        n_models: int = 10,
        split_prior: float = 0.5,
        concentration: float = 0.1,
        max_nodes: int | None = 20_000,
        half_life: float | None = None,
        ranges: dict[Hashable, Range] | None = None,
        seed: int = 0,
    ) -> None:
        self.n_models = n_models
        self.split_prior = split_prior
        self.concentration = concentration
        self.max_nodes = max_nodes
        self.half_life = half_life
        self.ranges = ranges
        self.seed = seed
        if positive_number("concentration", concentration, high=1e50) < 1e-50:
            raise ValueError(f"concentration must be at least 1e-50, but is {concentration!r}")
        self._classes: dict[Any, int] = {}
        self._start(self._leaves(2))

    def _leaves(self, n_classes: int) -> Leaves:
        return leaves_of_classes(n_classes, self.concentration)

    @property
    def _multiclass(self) -> bool:
        return True

    @property
    def classes(self) -> list[Any]:
        """Classes seen so far, in order of appearance."""
        with self.lock:
            return list(self._classes)

    def leaves_for(self, classes: dict[Any, int]) -> Leaves:
        """Take numbered classes as those seen so far, of a forest without rows, and return the leaf model for them."""
        self._classes = dict(classes)
        return self._leaves(max(len(classes), 2))

    def checked_target(self, y: Any, where: str) -> Any:
        """Return the class, which may be anything that can be hashed, or raise an error that says where it is."""
        if is_missing(y):
            raise ValueError(f"{where} must be a class, but is {y!r}")
        try:
            hash(y)
        except TypeError:
            raise TypeError(f"{where} must be a class, but {y!r} of type {type(y).__name__} is not hashable") from None
        return y

    def _learn_encoded(self, values: FloatArray, targets: list[Any]) -> None:
        """Learn rows up to a new class before it is added, since it changes the prior of all classes."""
        begin, codes = 0, np.empty(len(targets))
        for i, y in enumerate(targets):
            if y not in self._classes:
                self.trees.learn(values[begin:i], codes[begin:i])
                begin, n_classes = i, len(self._classes) + 1
                if n_classes > 2:
                    self.trees.use_leaves(self._leaves(n_classes))
                self._classes[y] = n_classes - 1
            codes[i] = self._classes[y]
        self.trees.learn(values[begin:], codes[begin:])

    def _probabilities(self, rows: list[Row]) -> FloatArray:
        """(n_rows, n_classes); a single class has probability 1. The caller holds the lock."""
        n_classes = len(self._classes)
        if n_classes < 2:
            return np.ones((len(rows), n_classes))
        return self.trees.predict(self.trees.features.known(rows))

    def _classes_so_far(self) -> tuple[Any, ...]:
        return tuple(self._classes)

    def predict_proba_one(self, x: Row, **kwargs: Any) -> dict[Any, float]:
        """Probability of each class seen so far."""
        del kwargs
        with self.lock:
            return dict(zip(self._classes, self._probabilities(as_dicts([x]))[0].tolist(), strict=True))

    def predict_one(self, x: Row, **kwargs: Any) -> Any:
        """The most probable class, in a tie the one that was seen first; None before any row."""
        del kwargs
        rows = as_dicts([x])
        with self.lock:
            if not self._classes:
                return None
            return next(islice(self._classes, int(self._probabilities(rows).argmax()), None))

    def predict_proba_many(self, X: Any) -> Any:
        """Table of the probability of each class, one row for each row of X."""
        rows = rows_of(X)
        with self.lock:
            classes, probabilities = self.classes, self._probabilities(rows)
        return table_like(X, classes, probabilities)

    def predict_many(self, X: Any) -> Any:
        """Column of the most probable classes."""
        rows = rows_of(X)
        with self.lock:
            classes, probabilities = self.classes, self._probabilities(rows)
        best = [classes[i] for i in probabilities.argmax(axis=1)] if classes else [None] * len(probabilities)
        return column_like(X, "class", best)

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:
            return super().__getstate__() | {"_classes": dict(self._classes)}  # a copy: classes are added in place
