"""Two passes over a table that is too long to keep.

The first looks at every row, for the schema, and keeps a uniform sample, on which structures are grown. The second adds
every row, once, to the statistics of those structures; codes live as long as their batch. Memory holds a few batches,
the sample and the trees, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from everytree.base.progress import Progress
from everytree.batches.batch import Batch, Roles, batches_of, error_context
from everytree.batches.shape import Shape
from everytree.batches.sketch import SAMPLE_ROWS, SchemaSketch
from everytree.batches.source import Mark, Source
from everytree.batches.sources import open_source
from everytree.fitting.targets.target import Labels
from everytree.posterior.counts import ForestCounts
from everytree.posterior.forest import Forest
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.tables.reading import Table
from everytree.tables.schema import Schema

Model = TypeVar("Model", Posterior, Forest)


class Passes(Protocol):
    """Both passes over all rows, wherever they are."""

    owner: str

    def sketch(
        self, sketch: SchemaSketch, scan_labels: Callable[[Batch], Labels], note: Callable[[Labels], object]
    ) -> SchemaSketch:
        """Pass one: columns and a sample. What `scan_labels` finds in each batch is handed to `note`, in order."""

    def count(
        self, counts: ForestCounts, rows_of: Callable[[Batch, int], Rows], features: list[str] | None = None
    ) -> ForestCounts:
        """Pass two: the statistics of the rows that `rows_of` makes of each batch and the number of its first row.

        For them the trees ask for no more than these features.
        """


def count_rows(counts: ForestCounts, rows: Rows, n_jobs: int | None) -> None:
    """Count rows, each of which every tree must be able to place."""
    before = counts.n_rows.copy()
    counts.update(rows.codes, rows.y, rows.weight, n_jobs=n_jobs, **rows.row_data)
    if (counts.n_rows - before < len(rows.y)).any():
        raise ValueError(
            "it has a value that was not there in the first pass, missing or a new category; rows must not change "
            "between the passes"
        )


@dataclass
class BatchPasses:
    """Passes over one source, and whether it is still the same in the second.

    Parameters
    ----------
    source : Source
    roles : Roles
    owner : str
        Who asks, for the wording of errors.
    n_jobs : int, optional
        Threads of the second pass; the first one's work is little beside reading.
    show : bool
        Whether progress is shown.
    """

    source: Source
    roles: Roles
    owner: str
    n_jobs: int | None = None
    show: bool = False
    n_rows: int = 0
    _mark: Mark = ()

    def sketch(
        self,
        sketch: SchemaSketch,
        scan_labels: Callable[[Batch], Labels] = lambda batch: None,
        note: Callable[[Labels], object] = lambda labels: None,
    ) -> SchemaSketch:
        """Pass one."""
        self._mark = self.source.mark()
        with Progress("reading", self.source.n_rows, self.show, unit="rows") as progress:
            for batch in batches_of(self.source, self.roles, self.owner):
                with error_context(batch.number):
                    note(scan_labels(batch))
                    columns = batch.table, batch.target, batch.weight
                    sketch.update(*columns, row_data=batch.row_data)
                progress.step(batch.table.n_rows)
        self.n_rows = sketch.n_rows
        if not self.n_rows:
            raise ValueError(f"batches is empty: there are no rows, but {self.owner} needs at least one")
        return sketch

    def count(
        self, counts: ForestCounts, rows_of: Callable[[Batch, int], Rows], features: list[str] | None = None
    ) -> ForestCounts:
        """Pass two."""
        self._check_files()
        n_rows = 0
        with Progress("counting", self.n_rows, self.show, unit="rows") as progress:
            for batch in batches_of(self.source, self.roles, self.owner, features):
                with error_context(batch.number):
                    count_rows(counts, rows_of(batch, n_rows), self.n_jobs)
                n_rows += batch.table.n_rows
                progress.step(batch.table.n_rows)
        self._check_files()
        if n_rows != self.n_rows:
            raise ValueError(
                f"batches changed between the passes: {self.n_rows} rows in the first, {n_rows} in the second"
            )
        return counts

    def _check_files(self) -> None:
        changed = sorted({path for path, *_ in set(self._mark) ^ set(self.source.mark())})
        if changed:
            raise ValueError(f"batches changed between the passes: the file {changed[0]!r} is not what it was")


# ---- below the estimators -------------------------------------------------------------------------------------------


def schema_from_batches(
    batches: Any,
    *,
    target: str | None = None,
    sample_weight: str | None = None,
    max_bins: int = 255,
    categorical_features: Any = "from_dtype",
    sample_rows: int = SAMPLE_ROWS,
    verbose: int = 0,
) -> Schema:
    """The schema of a table that comes in batches; one pass.

    Parameters
    ----------
    batches
        As in `MetaForestClassifier.fit_batches`; without a target, batches may be tables of features alone.
    target : str, optional
        Name of a column of numbers that is no feature; of categories there are codes by its means.
    sample_weight : str, optional
        Name of the column of weights.
    max_bins
        As in `Schema.fit`.
    categorical_features
        As in `Schema.fit`.
    sample_rows : int
        Rows whose quantiles are taken, where a column has more distinct numbers than bins.
    verbose : int
        Above 0, progress is shown.

    Examples
    --------
    >>> import numpy as np, everytree as et
    >>> tables = [np.array([[1.0, 0.0], [2.0, 1.0]]), np.array([[3.0, np.nan]])]
    >>> schema = et.schema_from_batches(tables)
    >>> schema.columns[0].cuts, schema.columns[1].has_missing
    (array([1.5, 2.5]), True)
    """
    passes = BatchPasses(open_source(batches), Roles.of(target, sample_weight, {}), "Schema", show=bool(verbose))
    sketch = SchemaSketch(max_bins=max_bins, categorical_features=categorical_features, sample_rows=sample_rows)
    return passes.sketch(sketch).schema(sketch.sample.y)


def update_from_batches(
    model: Model,
    batches: Any,
    schema: Schema | None = None,
    *,
    target: str | None = None,
    sample_weight: str | None = None,
    n_jobs: int | None = None,
    verbose: int = 0,
    **row_columns: str,
) -> Model:
    """Condition a posterior or a forest on all rows of many batches; one that fails changes nothing.

    Parameters
    ----------
    model : Posterior or Forest
        With leaves of a built-in family.
    batches
        As in `MetaForestClassifier.fit_batches`.
    schema : Schema, optional
        Makes codes of the batches' features; without it, they are codes.
    target, sample_weight : str, optional
        Names of columns, where batches are not pairs `(X, y)`.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : int
        Above 0, progress is shown.
    **row_columns
        Names of the columns of what the family wants to know besides, such as `exposure="time"`.

    Returns
    -------
    Posterior or Forest
        The model.
    """
    if not isinstance(model, Posterior | Forest):
        raise TypeError(f"model must be a Posterior or a Forest, not {type(model).__name__}")
    owner = type(model).__name__
    source, roles = open_source(batches), Roles.of(target, sample_weight, row_columns)
    fresh = Forest([model.copy()]) if isinstance(model, Posterior) else model
    counts = ForestCounts(fresh)
    fresh.family.check_row_data(row_columns)
    shape: Shape | None = None
    n_rows = 0
    with Progress("counting", source.n_rows, bool(verbose), unit="rows") as progress:
        for batch in batches_of(source, roles, owner):
            with error_context(batch.number):
                if batch.target is None:
                    raise ValueError("it has no target: name its column by target=, or pass pairs (X, y)")
                shape = shape or batch.shape
                codes = _codes(batch.table, shape.places(batch.shape), schema, n_jobs, owner)
                y = batch.target.read(lambda values: values)
                n_rows += batch.table.n_rows
                counts.update(codes, y, batch.weight, n_jobs=n_jobs, **batch.row_data)
                if isinstance(model, Posterior) and counts.n_rows[0] < n_rows:
                    raise ValueError("it has a value that the tree has no branch for: a missing value, or a new code")
            progress.step(batch.table.n_rows)
    counted = counts.forest()
    return model.merge(counted.posteriors[0]) if isinstance(model, Posterior) else model.merge(counted)


def _codes(table: Table, places: Sequence[int], schema: Schema | None, n_jobs: int | None, owner: str) -> NDArray[Any]:
    if schema is not None:
        return schema.encode(table, n_jobs=n_jobs, owner=owner)
    columns = [table.column(place).numbers for place in places]
    for place, column in zip(places, columns, strict=True):
        if column is None or column.dtype.kind == "f":
            raise TypeError(f"X: {table.label(place)} holds no whole-number codes; pass the schema that makes them")
    return np.column_stack(columns)  # type: ignore[arg-type]
