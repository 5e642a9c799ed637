"""Two passes over a table that is too long to keep.

The first looks at every row, for the schema, and keeps a uniform sample, on which structures are grown. The second adds
every row, once, to the statistics of those structures; codes live as long as their batch. Memory holds a few batches,
the sample and the trees, however many rows there are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from everytree.base.progress import Progress
from everytree.batches.batch import Batch, Roles, batches_of, error_context
from everytree.batches.sketch import SchemaSketch
from everytree.batches.source import Mark, Source
from everytree.fitting.targets.target import Labels
from everytree.posterior.counts import Counts
from everytree.posterior.rows import Rows


class Passes(Protocol):
    """Both passes over all rows, wherever they are."""

    owner: str

    def sketch(
        self, sketch: SchemaSketch, scan_labels: Callable[[Batch], Labels], note: Callable[[Labels], object]
    ) -> SchemaSketch:
        """Pass one: columns and a sample. What `scan_labels` finds in each batch is handed to `note`, in order."""

    def count(self, counts: Counts, rows_of: Callable[[Batch, int], Rows], features: list[str] | None = None) -> Counts:
        """Pass two: the statistics of the rows that `rows_of` makes of each batch and the number of its first row.

        For them the trees ask for no more than these features.
        """


def count_rows(counts: Counts, rows: Rows, n_jobs: int | None) -> None:
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
    """Passes over one source, and whether it is still the same in the second."""

    source: Source
    roles: Roles
    owner: str  # who asks, for the wording of errors
    n_jobs: int | None = None  # threads of the second pass; the first one's work is little beside reading
    show: bool = False  # whether progress is shown
    n_rows: int = 0
    _mark: Mark = ()

    def sketch(
        self, sketch: SchemaSketch, scan_labels: Callable[[Batch], Labels], note: Callable[[Labels], object]
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

    def count(self, counts: Counts, rows_of: Callable[[Batch, int], Rows], features: list[str] | None = None) -> Counts:
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
