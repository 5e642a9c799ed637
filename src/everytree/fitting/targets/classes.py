"""Targets that are classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray, such_as
from everytree.base.errors import ArgumentError
from everytree.families.base import NativeFamily
from everytree.families.categorical import Bernoulli, Categorical, class_search
from everytree.families.prior_search import Search
from everytree.families.traits import RowColumn
from everytree.fitting.targets.columns import as_array, refuse_missing
from everytree.fitting.targets.target import Labels, Target
from everytree.posterior.rows import Rows
from everytree.structure.grow_on import Classes


@dataclass(frozen=True, eq=False)
class ClassTarget(Target):
    """Class labels."""

    owner: str  # the estimator's name, for errors
    alpha: Any  # as in the estimators
    split_prior: Any
    classes: NDArray[Any] | None = None  # (n_classes,) array: all classes in ascending order, if they are known

    @property
    def known_classes(self) -> NDArray[Any]:
        assert self.classes is not None
        return self.classes

    @property
    def n_leaf_classes(self) -> int:
        """Number of classes of the leaf model: at least two."""
        return max(len(self.known_classes), 2)

    def read(self, y: Any) -> NDArray[Any]:
        from sklearn.utils.multiclass import check_classification_targets  # imported late: it imports pandas
        from sklearn.utils.validation import column_or_1d

        labels = column_or_1d(as_array(y), warn=True)
        refuse_missing(labels)
        check_classification_targets(labels)
        return np.asarray(labels)

    def learn(self, labels: NDArray[Any], weight: FloatArray | None) -> tuple[Self, NDArray[Any]]:
        """Learn the classes: those of rows with weight, and those that were declared."""
        if self.classes is not None:
            return self, self.numbers(labels)
        every, y = replace(self, classes=_distinct(labels)), None
        y = every.numbers(labels)
        if weight is None:
            return every, y
        present = np.bincount(y[weight > 0.0], minlength=len(every.known_classes)) > 0
        if present.all():
            return every, y
        place = np.maximum(np.cumsum(present) - 1, 0)  # any class does for rows of weight 0
        return replace(self, classes=every.known_classes[present]), place[y]

    def numbers(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return the index of each label among the classes."""
        classes = self.known_classes
        if (labels.dtype.kind in "OUS") != (classes.dtype.kind in "OUS"):
            raise ArgumentError("y", f"has {such_as(labels)}, but the classes are {classes.tolist()}")
        numbers = np.searchsorted(classes, labels)
        known = classes[np.minimum(numbers, len(classes) - 1)] == labels
        if not known.all():
            row = int(np.argmin(known))
            of_them = f"the classes are {classes.tolist()}"
            raise ArgumentError("y", of_them, row=row, value=repr(labels.tolist()[row]))
        return np.asarray(numbers)

    @property
    def given_columns(self) -> Mapping[str, RowColumn]:
        return {}

    @property
    def known_names(self) -> Mapping[str, Sequence[str]]:
        return {}

    def row_data(self, n_rows: int, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        self.check_names(name for name, values in given.items() if values is not None)
        return {}

    def order_by(self, y: NDArray[Any]) -> FloatArray:
        n_classes = len(self.known_classes)
        return np.eye(n_classes)[y] if n_classes > 2 else y.astype(np.float64)

    def grow_on(self, rows: Rows, criterion: str | None = None) -> Classes:
        return Classes(rows.y, rows.weight, criterion or "gini")

    def search(self, rows: Rows) -> Search:
        return class_search(rows.y, rows.weight, self.n_leaf_classes, self.alpha, self.split_prior)

    def fixed_family(self, rows: Rows) -> NativeFamily:
        n = self.n_leaf_classes
        return Bernoulli(self.alpha, self.alpha) if n == 2 else Categorical(n, self.alpha)

    def check_same(self, other: Self) -> None:
        if not np.array_equal(self.known_classes, other.known_classes):
            raise ValueError(
                f"other has classes {other.known_classes.tolist()}, this one {self.known_classes.tolist()}"
            )

    def attributes(self) -> dict[str, Any]:
        return {"classes_": self.known_classes, "n_classes_": len(self.known_classes)}

    def scan_labels(self, column: Any) -> Labels:
        labels = np.asarray(column.distinct())
        if labels.dtype.kind == "f" and (labels != np.floor(labels)).any():
            raise ValueError(f"Unknown label type: continuous. The target has values such as {labels[:3].tolist()}")
        return labels

    def with_labels(self, labels: Labels) -> Self:
        """Learn all classes before the first row is counted, including those that no row of a sample has."""
        assert labels is not None
        known = self.classes
        if known is None:
            return replace(self, classes=_distinct(labels))
        if (known.dtype.kind in "OUS") != (labels.dtype.kind in "OUS"):
            raise ValueError(f"the target has {such_as(labels)}, but had {known.tolist()[0]!r} before")
        if np.isin(labels, known).all():
            return self
        return replace(self, classes=_distinct(np.concatenate([known, labels])))


def _distinct(labels: NDArray[Any]) -> NDArray[Any]:
    try:
        return np.unique(labels)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in labels})
        raise ArgumentError("y", f"mixes {kinds}: class labels must be of one kind") from None
