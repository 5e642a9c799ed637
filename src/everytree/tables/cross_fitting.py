"""Codes of the rows that a schema was fitted to, where categories are pooled by their targets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.tables.pooling import CategoryMeans, cross_fitted_pools, folds
from everytree.tables.repeats import repeated_rows
from everytree.tables.schema import Schema


def cross_fitted_codes(
    schema: Schema,
    X: Any,
    codes: NDArray[Any],
    targets: FloatArray,
    weight: FloatArray | None,
    group: NDArray[np.int64] | None,
    *,
    owner: str = "Schema",
) -> NDArray[Any]:
    """The codes of the rows of fit; those of pooled columns by the targets of other rows only.

    Parameters
    ----------
    schema : Schema
        Fitted to this table and these targets.
    X : (n_rows, n_features) table
    codes : (n_rows, n_features) uint8 or uint16
        Those of `schema.encode`, which other rows have.
    targets : (n_rows,) or (n_rows, n_targets) float64
    weight : (n_rows,) float64, optional
    group : (n_rows,) int64, optional
        Rows of one group do not see each other's targets either; without it, nor do rows that repeat each other.
    owner : str
        Name used in errors.
    """
    pooled = [k for k, column in enumerate(schema.columns) if column.pooled]
    if not pooled:
        return codes
    codes, targets = codes.copy(), targets.reshape(len(codes), -1)
    fold = folds(len(codes), repeated_rows(codes) if group is None else group)
    for k, place in zip(pooled, schema.category_places(X, pooled, owner=owner), strict=True):
        known = np.flatnonzero(place >= 0 if weight is None else (place >= 0) & (weight > 0.0))
        column, of_known = schema.columns[k], None if weight is None else weight[known]
        means = CategoryMeans.fit(place[known], len(column.categories), targets[known], of_known)
        codes[known, k] = cross_fitted_pools(means, np.array(column.groups, dtype=np.int64), fold[known])
    return codes
