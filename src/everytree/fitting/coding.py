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
    """Weights of the first rows, and by what they and those of later rows are multiplied."""
    weight = read_weight(given.weight, n_rows)
    factor = weight_factor(weight, of_all, is_relative=settings.relative_weights, owner=settings.owner)
    return None if weight is None else weight * factor, factor


def code_first_rows(
    given: GivenRows,
    target: AnyTarget,
    y: NDArray[Any],
    weight: FloatArray | None,
    schema: Schema,
    settings: Settings,
) -> tuple[AnyTarget, Rows, NDArray[Any]]:
    """The target that knows the inputs of leaves, coded rows, and their codes if they came later; no rows of weight 0.

    The groups of the rows are those that were given. Codes that pool categories by their targets do not contain the
    row's own target; those of later rows do not either, but these would.
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
    """As many targets as rows, in the words that scikit-learn has for it."""
    if len(codes) != len(y):
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {len(codes)} rows, y {len(y)}"
        )
