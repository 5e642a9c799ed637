"""Data that trees are grown on: targets of rows, and the criterion that a split improves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily

CLASS_CRITERIA = ("gini", "entropy", "log_loss", "evidence")
NUMBER_CRITERIA = ("squared_error", "evidence")


class GrowOn(Protocol):
    """Targets for growing trees."""

    @property
    def is_classification(self) -> bool: ...

    def grower(self, **table: Any) -> _kernels.Grower:
        """The kernel for a table of codes."""
        ...


@dataclass(frozen=True)
class Classes:
    """Class numbers, by an impurity."""

    y: NDArray[Any]  # (n_rows,) int
    weight: FloatArray | None  # (n_rows,)
    criterion: str = "gini"  # {"gini", "entropy", "log_loss"}
    is_classification = True

    def grower(self, **table: Any) -> _kernels.Grower:
        labels = np.ascontiguousarray(self.y, dtype=np.int64)
        return _kernels.class_grower(
            y=labels, weight=_as_doubles(self.weight), n_classes=max(int(labels.max(initial=0)) + 1, 2),
            criterion="entropy" if self.criterion == "log_loss" else self.criterion, **table,
        )  # fmt: skip


@dataclass(frozen=True)
class Numbers:
    """Numbers, by the squared error about the mean of a leaf."""

    y: NDArray[Any]  # (n_rows,) float64
    weight: FloatArray | None  # (n_rows,)
    is_classification = False

    def grower(self, **table: Any) -> _kernels.Grower:
        numbers = np.ascontiguousarray(self.y, dtype=np.float64)
        return _kernels.number_grower(y=numbers, weight=_as_doubles(self.weight), **table)


@dataclass(frozen=True)
class Evidence:
    """Targets of any leaf model, by the log evidence of its leaves."""

    family: NativeFamily
    statistics: FloatArray  # (n_rows, n_statistics): contributions of the rows

    @property
    def is_classification(self) -> bool:
        return self.family.has_classes

    def grower(self, **table: Any) -> _kernels.Grower:
        family = self.family
        return _kernels.evidence_grower(
            statistics=self.statistics, name=family.kernel, size=family.size, prior=family.hyper[0], **table
        )


@dataclass(frozen=True)
class Hazards(Evidence):
    """Events and the hazards they are expected from, by the log evidence of one factor a leaf.

    Splits are looked for as in trees of classes, among few columns.
    """

    @property
    def is_classification(self) -> bool:
        return True

    def at(self, rows: NDArray[np.int64]) -> Hazards:
        """Some of the rows."""
        return Hazards(self.family, np.ascontiguousarray(self.statistics[rows]))


def _as_doubles(values: FloatArray | None) -> FloatArray | None:
    return None if values is None else np.ascontiguousarray(values, dtype=np.float64)
