"""Cross-fitted target encoding: codes of training rows where categories are pooled by their targets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.tables.categories import natural_key
from everytree.tables.pooling import CategoryMeans, cross_fitted_pools, directions, folds
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
    for readers in _same_input(schema, pooled):
        index, pool_of = _sorted_categories(schema, X, readers, owner)
        known = np.flatnonzero(index >= 0 if weight is None else (index >= 0) & (weight > 0.0))
        rows = index[known], len(pool_of[0])
        some, of_known = targets[known], None if weight is None else weight[known]
        for k, pool, way in zip(readers, pool_of, directions(*rows, some, of_known), strict=False):
            means = CategoryMeans.fit(*rows, some @ way, of_known)
            codes[known, k] = cross_fitted_pools(means, pool, fold[known])
    return codes


def _sorted_categories(
    schema: Schema, X: Any, readers: list[int], owner: str
) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """The category of each row, numbered as in fitting, and the pool of each category in each of the columns."""
    columns = [schema.columns[k] for k in readers]
    labels = sorted(columns[0].categories, key=natural_key)
    pool_of = [dict(zip(column.categories, column.groups, strict=True)) for column in columns]
    index = schema.places_among(labels, readers[0], X, owner=owner)
    return index, [np.array([pool[label] for label in labels], dtype=np.int64) for pool in pool_of]


def _same_input(schema: Schema, pooled: list[int]) -> list[list[int]]:
    """The pooled columns of each input, in the order of their directions."""
    readers: dict[int, list[int]] = {}
    for k in pooled:
        readers.setdefault(int(schema.input_of[k]), []).append(k)
    return list(readers.values())
