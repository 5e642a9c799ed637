"""Several targets of the same rows, for which trees are grown together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.fitting.targets.classes import ClassTarget
from everytree.fitting.targets.target import GrowthTarget, Target
from everytree.posterior.rows import Rows
from everytree.structure.grow_on import Classes, Numbers
from everytree.tables.schema import Schema


@dataclass(frozen=True, eq=False)
class MultiTarget(GrowthTarget):
    """Several targets of one kind, all classes or all numbers; y has one column for each."""

    owner: str  # the estimator's name, for errors
    each: tuple[Target, ...]

    def rows_of(self, rows: Rows) -> list[Rows]:
        """Return the rows of each target by itself."""
        return [replace(rows, y=np.ascontiguousarray(column)) for column in rows.y.T]

    def order_by(self, y: NDArray[Any]) -> FloatArray:
        """Return the numbers of all targets side by side, each target with a total variance of 1."""
        return np.column_stack(
            [_of_variance_1(target.order_by(column), None) for target, column in zip(self.each, y.T, strict=True)]
        )

    @property
    def is_classification(self) -> bool:
        return isinstance(self.each[0], ClassTarget)

    def grow_on(self, rows: Rows, criterion: str | None = None) -> Classes | Numbers:
        """Return what trees that follow all targets at once are grown on; numbers have variance 1."""
        parts = [target.grow_on(own, criterion) for target, own in zip(self.each, self.rows_of(rows), strict=True)]
        first = parts[0]  # weights are the same for all: they depend on what is known of a row besides its targets
        if isinstance(first, Classes):
            return replace(first, y=np.column_stack([part.y for part in parts]))
        return replace(first, y=np.column_stack([_of_variance_1(part.y, first.weight) for part in parts]))

    def counted_by(self, rows: Rows) -> None:
        """Rows are counted once for each target, when all trees are there."""

    def learn_inputs(self, schema: Schema, X: Any, used: NDArray[np.bool_] | None) -> Self:
        return replace(self, each=tuple(target.learn_inputs(schema, X, used) for target in self.each))

    def columns(self, schema: Schema, X: Any, n_rows: int, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        return self.each[0].columns(schema, X, n_rows, given)


def _of_variance_1(values: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Standardise numbers: centred, and scaled so that the variances of all columns sum to 1; constant ones are 0."""
    apart = values - np.average(values, axis=0, weights=weight)
    variance = np.average(apart**2, axis=0, weights=weight).sum()
    return np.asarray(apart / np.sqrt(variance) if variance > 0.0 else np.zeros_like(apart))
