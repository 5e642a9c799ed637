"""Weights of rows: counts, or relative weights scaled to sum to the number of rows."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

from everytree.base.arrays import FloatArray
from everytree.base.checks import refuse_no_weight, row_weights
from everytree.base.errors import ArgumentError

MIN_WEIGHT_PER_ROW = 0.2
"""Weights with a mean below this are probably not numbers of rows."""


class TotalWeight(NamedTuple):
    """Total weight of all rows with positive weight, and the number of these rows."""

    weight: float
    n_rows: int


def read_weight(sample_weight: Any, n_rows: int) -> FloatArray | None:
    """Return the weights of rows; some must be above 0."""
    if sample_weight is None:
        return None
    weight = row_weights(sample_weight)
    if len(weight) != n_rows:
        raise ArgumentError("sample_weight", f"has {len(weight)} entries, but there are {n_rows} rows")
    refuse_no_weight(weight)
    return weight


def weight_factor(weight: FloatArray | None, of_all: TotalWeight | None, *, is_relative: bool, owner: str) -> float:
    """Return the factor for weights: relative ones are scaled to sum to the number of rows with positive weight.

    Parameters
    ----------
    weight : (n_rows,) float64 or None
        Weights of the first rows.
    of_all : TotalWeight, optional
        If these are only a sample of all rows.
    is_relative : bool
        If not, a weight counts as that many rows, and a total that is probably not meant so gives a warning.
    owner : str
        The estimator's name, for the warning.
    """
    if weight is None:
        return 1.0
    total, n_weighted = of_all or TotalWeight(float(weight.sum()), int((weight > 0.0).sum()))
    if is_relative:
        return n_weighted / total
    if total < MIN_WEIGHT_PER_ROW * n_weighted:
        warnings.warn(
            f"the weights of {n_weighted} rows sum to {total:.6g}: a weight counts as that many rows, so that this "
            f"is a model of {total:.6g} rows. If the weights are relative, use {owner}(relative_weights=True)",
            UserWarning,
            stacklevel=2,
        )
    return 1.0


def scaled_weight(sample_weight: Any, n_rows: int, factor: float) -> FloatArray | None:
    """Return the weights of later rows, scaled by the factor of the first ones."""
    weight = read_weight(sample_weight, n_rows)
    if factor == 1.0:
        return weight
    if weight is None:
        must = "must be given: the first rows had relative weights, so a row without a weight has no meaning"
        raise ArgumentError("sample_weight", must)
    return weight * factor
