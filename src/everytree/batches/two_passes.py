"""The two passes of a fit in batches: labels and a sample in the first, coded rows in the second."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.batches.batch import Batch
from everytree.batches.passes import Passes
from everytree.batches.row_sample import RowSample
from everytree.batches.sketch import SchemaSketch
from everytree.fitting.fitted import Fitted, code_more_rows
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.targets.target import Labels, Target
from everytree.posterior.counts import Tally
from everytree.posterior.rows import Rows


def scan_labels(batch: Batch, target: Target) -> Labels:
    """Class labels of a batch, which must all be known before the first row is counted; changes nothing."""
    if batch.target is None:
        raise ValueError("it has no target: name its column by target=, or pass pairs (X, y)")
    target.row_data(batch.table.n_rows, _without_groups(batch.row_data))
    return target.scan_labels(batch.target)


def given_rows(sketch: SchemaSketch) -> GivenRows:
    """The rows that a sketch has kept."""
    sample = sketch.sample
    row_data = dict(sample.row_data)
    groups = row_data.pop("groups", None)
    return GivenRows(sample.table, sample.y, sample.weight, row_data, groups)


def count_all(passes: Passes, fitted: Fitted, settings: Settings, rule: RowSample) -> Fitted:
    """The second pass: count every row in the structures and priors of the sample.

    Where categories are pooled by the targets of the sample, its rows are not coded again: their codes must not contain
    their own targets. They stay counted as `fit` has coded them; `rule` says which rows they are.
    """
    model: Any = fitted.model
    counted = rule if any(column.pooled for column in fitted.schema.columns) else None
    counts = passes.count(model.counts(), *rows_and_features(fitted, settings, counted))
    if counted is not None:
        posts = model.parts.averaged.posteriors
        counts.add(Tally([post.statistics for post in posts], np.array([post.n_rows for post in posts])))
    return replace(
        fitted, model=model.counted(counts), batches=[counts.digest()], mean_prediction=None, is_out_of_fold=False
    )


def rows_and_features(
    fitted: Fitted, settings: Settings, counted: RowSample | None = None
) -> tuple[Callable[[Batch, int], Rows], list[str] | None]:
    """A function that makes rows of each batch but those that are counted already, and the features they need."""
    asked = _asked(fitted)
    names, inputs = fitted.schema.input_names, np.unique(fitted.schema.input_of[asked])
    features = None if names is None else [names[k] for k in inputs]
    model: Any = fitted.model
    light = replace(fitted, model=model.without_rows(), choice=None)
    # It may be sent to other processes.
    return partial(_rows_in, fitted=light, settings=settings, asked=asked, counted=counted), features


def _asked(fitted: Fitted) -> NDArray[np.bool_]:
    """(n_features,) columns that trees split on, or leaves use: the others need not be read again."""
    schema = fitted.schema
    model: Any = fitted.model
    asked: NDArray[np.bool_] = model.columns_read(schema.n_features)
    asked[0] |= not asked.any()  # a table has at least one column
    return asked | ~schema.is_categorical if "inputs" in fitted.row_names else asked


def _rows_in(
    batch: Batch,
    first_row: int,
    fitted: Fitted,
    settings: Settings,
    asked: NDArray[np.bool_],
    counted: RowSample | None,
) -> Rows:
    """The rows of a batch that are not counted yet."""
    assert batch.target is not None
    y = batch.target.read(fitted.target.numbers)
    given = GivenRows(batch.table, y, batch.weight, _without_groups(batch.row_data))
    rows = code_more_rows(given, fitted, settings, asked)
    if counted is None:
        return rows
    is_new = np.ones(len(rows), dtype=bool)
    is_new[counted.drawn(len(rows), first_row)] = False
    return rows.at(is_new)


def _without_groups(row_data: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Row data of the family, without groups, which matter to the sample alone."""
    return {name: column for name, column in row_data.items() if name != "groups"}
