"""The interface between a target, the coding of tables and the growing of trees.

A target is made from an estimator's parameters. Learning from the first rows returns a new target: nothing is changed
in place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.families.prior_search import Search
from everytree.families.traits import RowColumn
from everytree.posterior.rows import Rows
from everytree.structure.grow_on import Classes, Numbers
from everytree.tables.schema import Schema

Labels = NDArray[Any] | None
"""Class labels that occur; None where targets are numbers."""


class GrowthTarget(ABC):
    """Interface between a target, or several together, and the grower."""

    owner: str

    @abstractmethod
    def order_by(self, y: NDArray[Any]) -> FloatArray:
        """Return the numbers by which the categories of a column are ordered."""

    @abstractmethod
    def grow_on(self, rows: Rows, criterion: str | None = None) -> Classes | Numbers:
        """Return the data that trees are grown on, by a criterion other than the evidence."""

    @abstractmethod
    def counted_by(self, rows: Rows) -> NativeFamily | None:
        """Return the leaf model by which rows are counted while trees are grown; None where they are counted later."""

    @abstractmethod
    def learn_inputs(self, schema: Schema, X: Any, used: NDArray[np.bool_] | None) -> Self:
        """Return the target with the inputs of linear leaves learnt from the table; `used` are the rows with weight."""

    @abstractmethod
    def columns(self, schema: Schema, X: Any, n_rows: int, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Return all row data of the family: those given, and inputs from the table."""


class Target(GrowthTarget):
    """A type of target, with the priors that are to be tried or are given."""

    # ---- reading ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def read(self, y: Any) -> NDArray[Any]:
        """Return the target of each row, checked one by one."""

    @abstractmethod
    def learn(self, labels: NDArray[Any], weight: FloatArray | None) -> tuple[Self, NDArray[Any]]:
        """Return the target as learnt from these first rows, and their targets as the family takes them."""

    def candidates(self, rows: Rows) -> Sequence[Self]:
        """The targets of the leaf models that rows left out are to decide between; this one where it is given."""
        del rows
        return [self]

    @abstractmethod
    def numbers(self, labels: NDArray[Any]) -> NDArray[Any]:
        """Return the targets of any rows as the family takes them."""

    @property
    @abstractmethod
    def given_columns(self) -> Mapping[str, RowColumn]:
        """Row data that users may give, by name."""

    def check_names(self, names: Iterable[str]) -> None:
        """Raise for names that are not row data of any family of this estimator."""
        known = self.known_names
        for name in sorted(set(names) - set(known)):
            allowed = " or ".join(map(repr, known)) or "nothing besides features, target and weight"
            raise TypeError(f"{self.owner} takes no {name!r}; rows may have {allowed}")

    @property
    @abstractmethod
    def known_names(self) -> Mapping[str, Sequence[str]]:
        """Names of all row data, and the family that each belongs to."""

    @abstractmethod
    def row_data(self, n_rows: int, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Return the given row data, checked."""

    def learn_inputs(self, schema: Schema, X: Any, used: NDArray[np.bool_] | None) -> Self:
        del schema, X, used
        return self

    def columns(self, schema: Schema, X: Any, n_rows: int, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        del schema, X
        return self.row_data(n_rows, given)

    # ---- fitting ----------------------------------------------------------------------------------------------------

    def warn_about(self, rows: Rows) -> None:
        """Warn about rows from which little can be learnt."""

    def counted_by(self, rows: Rows) -> NativeFamily:
        family: NativeFamily = self.search(rows).first_family
        return family

    def evidence_on(self, rows: Rows) -> tuple[Rows, NativeFamily]:
        """Return the rows and the leaf model by whose evidence trees are grown."""
        return rows, self.counted_by(rows)

    @abstractmethod
    def search(self, rows: Rows) -> Search:
        """Return the priors to try."""

    @abstractmethod
    def fixed_family(self, rows: Rows) -> NativeFamily:
        """Return the leaf model where no priors are tried."""

    @abstractmethod
    def check_same(self, other: Self) -> None:
        """Raise unless targets mean the same in both."""

    @abstractmethod
    def attributes(self) -> dict[str, Any]:
        """Return the fitted attributes by the names they have in estimators."""

    # ---- batches ----------------------------------------------------------------------------------------------------

    @abstractmethod
    def scan_labels(self, column: Any) -> Labels:
        """Return the class labels of a batch, all of which must be known before the first row is counted."""

    @abstractmethod
    def with_labels(self, labels: Labels) -> Self:
        """Return the target with these classes known too."""
