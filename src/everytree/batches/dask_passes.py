"""Both passes over the partitions of a Dask dataframe: the work goes to where the rows are, and little comes back.

Of the first pass, each partition sends back its columns' kinds and categories, and those of its rows that are in the
sample of all: which ones follows from their numbers, so that lengths of partitions are counted before. They are merged
in the order of partitions, so that an error names the first one that differs. Of the second pass, statistics are added
up in a tree of tasks whose shape depends on the number of partitions alone: the result is the same bits whichever
worker did what, and however often.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import dask

from everytree.batches.batch import Batch, Roles, error_context, read_batch
from everytree.batches.dask_parts import Partitions, compute, once
from everytree.batches.passes import count_rows
from everytree.batches.sketch import SchemaSketch
from everytree.fitting.targets.target import Labels
from everytree.posterior.counts import Counts, Tally
from everytree.posterior.rows import Rows

MERGED_TOGETHER = 8
"""Tallies that one task adds up: few enough for a worker's memory, many enough that merging is not a long chain."""


@dataclass
class DaskPasses:
    """Passes over partitions."""

    parts: Partitions
    owner: str  # who asks, for the wording of errors
    n_jobs: int | None = None  # threads of each task
    n_rows: tuple[int, ...] = ()

    def sketch(
        self, sketch: SchemaSketch, scan_labels: Callable[[Batch], Labels], note: Callable[[Labels], object]
    ) -> SchemaSketch:
        """Pass one."""
        self.n_rows = self.parts.n_rows()
        if not sum(self.n_rows):
            raise ValueError(f"batches is empty: there are no rows, but {self.owner} needs at least one")
        job = once(_LabelScan(self.parts.roles, self.owner, sketch.for_part_of(sum(self.n_rows)), scan_labels))
        tasks = {one[0]: dask.delayed(_scan)(job, *one) for one in self._pieces() if one[1]}
        for number, (part, labels) in zip(tasks, compute([*tasks.values()]), strict=True):
            with error_context(number, "partition"):
                note(labels)
                sketch.merge(part)
        return sketch

    def count(self, counts: Counts, rows_of: Callable[[Batch, int], Rows], features: list[str] | None = None) -> Counts:
        """Pass two."""
        job = once(_Counting(self.parts.roles, self.owner, counts, rows_of, self.n_jobs))
        tallies = [dask.delayed(_count)(job, *one) for one in self._pieces(features) if one[1]]
        while len(tallies) > 1:
            groups = [tallies[k : k + MERGED_TOGETHER] for k in range(0, len(tallies), MERGED_TOGETHER)]
            tallies = [dask.delayed(_add)(job, group) for group in groups]
        (tally,) = compute(tallies)
        return counts.add(tally)

    def _pieces(self, features: list[str] | None = None) -> Iterator[tuple[int, int, Any, int]]:
        """Number, number of rows, rows and number of the first row of each partition."""
        first_rows = [0, *accumulate(self.n_rows)][:-1]
        parts = zip(self.n_rows, self.parts.pieces(features), first_rows, strict=True)
        for number, (n_rows, piece, first_row) in enumerate(parts):
            yield number, n_rows, piece, first_row


# ---- on the workers -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Reading:
    """State that all tasks of a pass share; reads a partition, whose rows have been counted before."""

    roles: Roles
    owner: str

    def batch(self, number: int, n_rows: int, piece: Any) -> Batch:
        batch = read_batch(number, piece, self.roles, self.owner)
        found = 0 if batch is None else batch.table.n_rows
        if batch is None or found != n_rows:
            raise ValueError(f"it had {n_rows} rows when they were counted, but has {found} now; it must not change")
        return batch


@dataclass(frozen=True)
class _LabelScan(_Reading):
    sketch: SchemaSketch
    scan_labels: Callable[[Batch], Labels]


@dataclass(frozen=True)
class _Counting(_Reading):
    counts: Counts
    rows_of: Callable[[Batch, int], Rows]
    n_jobs: int | None


def _scan(job: _LabelScan, number: int, n_rows: int, piece: Any, first_row: int) -> tuple[SchemaSketch, Labels]:
    """Pass one of a partition."""
    with error_context(number, "partition"):
        batch = job.batch(number, n_rows, piece)
        labels, sketch = job.scan_labels(batch), copy.deepcopy(job.sketch)
        sketch.update(batch.table, batch.target, batch.weight, row_data=batch.row_data, first_row=first_row)
        return sketch, labels


def _count(job: _Counting, number: int, n_rows: int, piece: Any, first_row: int) -> Tally:
    """Pass two of a partition."""
    with error_context(number, "partition"):
        counts, rows = job.counts.empty(), job.rows_of(job.batch(number, n_rows, piece), first_row)
        count_rows(counts, rows, job.n_jobs)
        return counts.tally()


def _add(job: _Counting, tallies: list[Tally]) -> Tally:
    """The rows of several partitions."""
    counts = job.counts.empty()
    for tally in tallies:
        counts.add(tally)
    return counts.tally()
