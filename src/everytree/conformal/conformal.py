"""The interface of conformal prediction: what is asked of a model, and what every theorem answers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.conformal.guarantee import Guarantee

if TYPE_CHECKING:
    from everytree.models.model import Model
    from everytree.predictive.predictive import Predictive


@dataclass(frozen=True)
class Asked:
    """New rows, and the model that predicts them.

    Attributes
    ----------
    model : Model
    codes : (n_rows, n_features) array of codes
    row_data : mapping
        Row data of the family.
    stratum : (n_rows,) int64 or None
        Number of each row's category, where coverage holds within each.
    labels : sequence
        Labels of the classes.
    n_jobs : int or None
    """

    model: Model
    codes: NDArray[Any]
    row_data: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    stratum: NDArray[np.int64] | None = None
    labels: Sequence[Any] = ()
    n_jobs: int | None = None

    def predictive(self, model: Model | None = None) -> Predictive:
        """Distributions of the rows, by the model or another one."""
        return (model or self.model).predictive(self.codes, n_jobs=self.n_jobs, **self.row_data)


@dataclass(frozen=True)
class Strata:
    """Categories of a column within each of which coverage holds.

    Attributes
    ----------
    column : int
        Number of the column of the table.
    name : str
        In errors and words.
    labels : list
        Values of the column, each with its number as place; None is a missing one.
    """

    column: int
    name: str
    labels: list[Any]


class Conformal(ABC):
    """Rows that a model was not fitted to, or that parts of it were not, and what follows for new rows."""

    strata: Strata | None = None

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The theorem, and what it promises."""

    @abstractmethod
    def interval(self, asked: Asked, coverage: float) -> FloatArray:
        """(n_rows, 2) ends of intervals of numbers."""

    @abstractmethod
    def classes(self, asked: Asked, coverage: float, *, each_class: bool) -> NDArray[np.bool_]:
        """(n_rows, n_classes) classes in the set of each row; with `each_class`, coverage holds within each class."""
