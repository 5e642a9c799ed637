"""The first rows of a table as codes, targets and weights."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.targets.target import GrowthTarget
from everytree.fitting.targets.weights import TotalWeight, read_weight, weight_factor
from everytree.posterior.rows import Rows
from everytree.tables.cross_fitting import cross_fitted_codes
from everytree.tables.repeats import read_groups
from everytree.tables.schema import Schema

AnyTarget = TypeVar("AnyTarget", bound=GrowthTarget)


def first_weights(
    given: GivenRows, n_rows: int, settings: Settings, of_all: TotalWeight | None = None
) -> tuple[FloatArray | None, float]:
    """Weights of the first rows, and the factor by which these and those of later rows are multiplied."""
    weight = read_weight(given.weight, n_rows)
    factor = weight_factor(weight, of_all, is_relative=settings.relative_weights, owner=settings.owner)
    return None if weight is None else weight * factor, factor


def code_first_rows(
    given: GivenRows, target: AnyTarget, y: NDArray[Any], weight: FloatArray | None, schema: Schema, settings: Settings
) -> tuple[AnyTarget, Rows, NDArray[Any]]:
    """Encode the training rows (dropping weight 0) and complete the target with the inputs of leaves.

    Returns the target, the rows, and the codes that these rows would have as later rows. The two differ where
    categories are pooled by their targets (target encoding): training rows are cross-fitted, so that their codes do not
    contain their own targets. The groups of the rows are those that were given.
    """
    named = read_groups(given.groups, len(y))
    codes = schema.encode(given.X, n_jobs=settings.n_jobs, owner=settings.owner)
    check_same_length(codes, y)
    later_codes = codes
    codes = cross_fitted_codes(schema, given.X, codes, target.order_by(y), weight, named, owner=settings.owner)
    used = None if weight is None else weight > 0.0
    target = target.learn_inputs(schema, given.X, used)
    columns = target.columns(schema, given.X, len(y), given.row_data)
    rows = Rows(codes, y, weight, columns)
    if used is not None:
        rows, named, later_codes = rows.at(used), None if named is None else named[used], later_codes[used]
    return target, replace(rows, group=named), later_codes


def check_same_length(codes: NDArray[Any], y: NDArray[Any]) -> None:
    """Check that there are as many targets as rows; the message is scikit-learn's."""
    if len(codes) != len(y):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {len(codes)} rows, y {len(y)}"
        )
