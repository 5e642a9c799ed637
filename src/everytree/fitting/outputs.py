"""Several outputs of one table: shared columns and trees, and a model of its own for each output."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import as_labels
from everytree.base.errors import ArgumentError
from everytree.fitting.coding import code_first_rows, first_weights
from everytree.fitting.fitted import Fitted
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.structures.forest import with_family
from everytree.fitting.structures.grown import GrownStructure, learn_forest
from everytree.fitting.structures.origin import Origin
from everytree.fitting.targets.several import MultiTarget
from everytree.fitting.targets.target import Target


def output_columns(y: Any) -> list[NDArray[Any]] | None:
    """Return the columns of targets that have more than one; None for one column, and for what is no target at all."""
    if hasattr(y, "tocsc"):
        must = "must be a dense array, but is a sparse matrix; pass y.toarray()"
        raise ArgumentError("y", must)
    frame = nw.from_native(y, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        columns = [as_labels(column) for column in frame.iter_columns()]
        return columns if len(columns) > 1 else None
    try:
        table = np.asarray(y)
    except ValueError:  # rows of different lengths, which the reader of one column refuses
        return None
    return list(table.T) if table.ndim == 2 and table.shape[1] > 1 else None


def fit_outputs(
    given: GivenRows, columns: Sequence[NDArray[Any]], target: Target, structure: GrownStructure, settings: Settings
) -> list[Fitted]:
    """One model for each output; all have the same schema and the same trees.

    Parameters
    ----------
    given : GivenRows
    columns : sequence of (n_rows,) arrays
        Targets of each output.
    target : Target
        Before any rows are read; the same for all outputs.
    structure : GrownStructure
    settings : Settings
    """
    weight, factor = first_weights(given, len(columns[0]), settings)
    each, numbers = [], []
    for output, column in enumerate(columns):
        with _in_column(output):
            learnt_target, own_y = target.learn(target.read(column), weight)
        each.append(learnt_target)
        numbers.append(own_y)
    several, y = MultiTarget(settings.owner, tuple(each)), np.column_stack(numbers)
    schema = structure.schema(given, several, y, weight, settings)
    several, rows, later_codes = code_first_rows(given, several, y, weight, schema, settings)
    grown = structure.grow(rows, several, schema, settings)
    origin, fitted = Origin.of(grown), []
    for own, own_rows in zip(several.each, several.rows_of(grown.rows), strict=True):
        own = with_family(own, own_rows, schema, settings)
        learnt = learn_forest(replace(grown, rows=own_rows), own, schema, settings)._replace(origin=origin)
        learnt_of = Fitted.of(learnt, own, schema, own_rows, weight, factor, settings.n_jobs)
        fitted.append(learnt_of.with_batch(replace(own_rows, codes=later_codes)))
    return fitted


@contextmanager
def _in_column(output: int) -> Iterator[None]:
    """Errors about targets name the column of y."""
    try:
        yield
    except ArgumentError as error:
        raise ArgumentError("y", error.must, f"column {output}", error.row, error.value) from None
