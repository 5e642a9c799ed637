"""Mergeable sketch of a long table, column by column, from which a schema is made.

Exact over all rows: which columns there are and of what kind, whether values are missing, which categories there are,
and the distinct numbers of a column that has no more of them than bins. From a uniform sample of rows: quantiles of all
other numbers, and the order of categories by their targets. A quantile of a sample of m rows is off by at most
0.5 / sqrt(m) in rank, as a standard error: 0.16 % for 100,000 rows, where 255 bins hold 0.39 % each.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from everytree.base.arrays import LARGEST_CODE, FloatArray
from everytree.base.checks import whole_number
from everytree.batches.column_sketch import ColumnSketch
from everytree.batches.row_sample import Columns, RowSample
from everytree.batches.target_column import Target
from everytree.tables.categories import fit_categories
from everytree.tables.column import Column, FitRows, fit_numbers, fit_text
from everytree.tables.cutting import cut_points
from everytree.tables.reading import Table, Values, read_table
from everytree.tables.schema import Schema, listed_columns
from everytree.tables.texts import TextRule, as_numbers, recognised

SAMPLE_ROWS = 100_000
"""Rows that are kept, unless told otherwise: structures grow on them, and quantiles are theirs."""


@dataclass(frozen=True)
class Sample:
    """Rows drawn from all, every one with the same chance, in their order."""

    table: Table
    y: NDArray[Any] | None  # (n_rows,) array
    weight: FloatArray | None  # (n_rows,)
    row_data: Columns  # dict of (n_rows,) arrays


class SchemaSketch:
    """The columns of a table and a sample of its rows, from batches.

    The same for any batches of the same rows in the same order; where all rows are in the sample, `schema` is the one
    that `Schema.fit` makes of the whole table.

    Parameters
    ----------
    max_bins : int
    categorical_features : "from_dtype", None or sequence
        As in `Schema.fit`.
    sample_rows : int
    seed : int
        Of the sample.
    owner : str
        Who asks, for the wording of errors.

    Examples
    --------
    >>> from everytree.batches import SchemaSketch
    >>> one = SchemaSketch().update([[1.0, "red"], [2.0, "blue"]])
    >>> two = SchemaSketch().update([[4.0, "red"]], first_row=2)
    >>> one.merge(two).schema()
    Schema(2 columns: 1 numeric, 1 categorical; uint8)
    """

    def __init__(
        self,
        *,
        max_bins: int = 255,
        categorical_features: Literal["from_dtype"] | Sequence[Any] | NDArray[Any] | None = "from_dtype",
        sample_rows: int = SAMPLE_ROWS,
        seed: int = 0,
        owner: str = "Schema",
    ) -> None:
        self.max_bins = whole_number("max_bins", max_bins, 2, LARGEST_CODE)
        self.categorical_features = categorical_features
        self.owner = owner
        self.n_rows = 0
        self._total_weight = np.longdouble(0.0)  # so long that its rounding does not show how rows were cut
        self._next_row = 0
        self._shape: Shape | None = None
        self._columns: list[ColumnSketch] = []
        self._rows = RowSample(whole_number("sample_rows", sample_rows, 1), seed)

    def update(
        self,
        X: Any,
        y: Target | ArrayLike | None = None,
        sample_weight: FloatArray | None = None,
        *,
        row_data: Mapping[str, NDArray[Any]] | None = None,
        first_row: int | None = None,
    ) -> Self:
        """More rows. One that fails may leave a part of them behind: a sketch is then to be thrown away.

        Parameters
        ----------
        X : (n_rows, n_features) table
        y : (n_rows,) array_like, optional
        sample_weight : (n_rows,) float64, optional
            All above 0.
        row_data : mapping of str to (n_rows,) array, optional
            Other columns to be kept in the sample.
        first_row : int, optional
            Number of the first of these rows in the whole table; by default they follow those of the last update.
            Parts that are to be merged must number their rows differently.
        """
        table = read_table(X, self.owner)
        given = {"y": y, "sample_weight": sample_weight, **(row_data or {})}
        shape = Shape.of(table, (name for name, values in given.items() if values is not None))
        if self._shape is None:
            self._begin(shape, table)
        places = self._agreed(shape)
        kept = [
            sketch.update(table.column(place), table.n_rows)
            for sketch, place in zip(self._columns, places, strict=True)
        ]
        columns = {_place(k): column for k, column in enumerate(kept)}
        if sample_weight is not None:
            columns["weight"] = sample_weight
            self._total_weight += sample_weight.sum(dtype=np.longdouble)
        columns |= {f"of row: {name}": np.asarray(column) for name, column in (row_data or {}).items()}
        target = y if isinstance(y, Target) or y is None else Target(np.asarray(y))

        def take(rows: NDArray[np.int64]) -> Columns:
            some = {name: column[rows] for name, column in columns.items()}
            return some if target is None else {**some, "y": target.at(rows)}

        first = self._next_row if first_row is None else first_row
        self._rows.update(table.n_rows, take, first)
        self._next_row = first + table.n_rows
        self.n_rows += table.n_rows
        return self

    def merge(self, other: SchemaSketch) -> Self:
        """The rows of another sketch with the same parameters, numbered differently. Returns itself."""
        if other.max_bins != self.max_bins:
            raise ValueError(f"other has max_bins={other.max_bins}, this sketch {self.max_bins}")
        if other._shape is None:
            return self
        if self._shape is None:
            self._shape, self._columns = other._shape, [sketch.like() for sketch in other._columns]
        places = self._agreed(other._shape)
        lookups = [mine.merge(other._columns[place]) for mine, place in zip(self._columns, places, strict=True)]

        def translate(part: Columns) -> Columns:
            said = dict(part)
            for k, (place, lookup) in enumerate(zip(places, lookups, strict=True)):
                column = part[_place(place)]
                said[_place(k)] = column if lookup is None else lookup[_as_index(column)]
            return said

        self._rows.merge(other._rows, translate)
        self.n_rows += other.n_rows
        self._total_weight += other._total_weight
        return self

    def for_part_of(self, n_rows: int) -> SchemaSketch:
        """A sketch without rows for a part of a table of `n_rows` rows, to be merged with those of the other parts.

        It keeps only rows that are in the sample of the whole table: all parts together are little more than that.
        """
        part = SchemaSketch(
            max_bins=self.max_bins, categorical_features=self.categorical_features, sample_rows=self._rows.size,
            seed=self._rows.seed, owner=self.owner,
        )  # fmt: skip
        part._rows = self._rows.for_part_of(n_rows)
        return part

    # ---- what came out ----------------------------------------------------------------------------------------------

    @property
    def is_complete(self) -> bool:
        """Whether every row is in the sample."""
        return self.n_rows <= self._rows.size

    @property
    def rule(self) -> RowSample:
        """Which rows are in the sample, without the rows."""
        return self._rows.rule()

    @property
    def total_weight(self) -> float:
        """Of all rows, where they have weights."""
        return float(self._total_weight)

    @property
    def sample(self) -> Sample:
        """The rows that were drawn."""
        self._refuse_empty()
        columns = self._rows.columns()
        n_rows = len(self._rows)

        def read(label: str, index: int) -> Any:
            return self._columns[index].values(columns[_place(index)])

        row_data = {name.removeprefix("of row: "): c for name, c in columns.items() if name.startswith("of row: ")}
        table = Table(n_rows, len(self._columns), self._names, read)
        return Sample(table, columns.get("y"), columns.get("weight"), row_data)

    def schema(self, order_by: ArrayLike | None = None) -> Schema:
        """The schema of all rows; `order_by`, one or several numbers a row of the sample, orders categories."""
        sample = self.sample
        rows = FitRows.of(sample.table.n_rows, order_by, sample.weight)
        return Schema.from_inputs(self._readers(place, sample.table, rows) for place in range(len(self._columns)))

    def _readers(self, index: int, table: Table, rows: FitRows) -> list[Column]:
        sketch, values = self._columns[index], table.column(index)
        name = None if self._names is None else self._names[index]
        text = recognised(sketch.label, values) if values.is_text else None
        if text is not None:
            return [self._text_reader(name, sketch, values, text, rows)]
        sketch.refuse_categories(values)
        if sketch.is_categorical:
            readers = fit_categories(name, sketch.label, values, rows, self.max_bins)
        else:
            readers = [fit_numbers(name, sketch.label, values, rows, self.max_bins)]
            if sketch.cuts is not None:
                readers = [replace(readers[0], cuts=sketch.cuts)]
        return [replace(column, has_missing=sketch.has_missing) for column in readers]

    def _text_reader(
        self, name: str | None, sketch: ColumnSketch, values: Values, rule: TextRule, rows: FitRows
    ) -> Column:
        """A column of text that holds numbers or dates; all of its distinct values are known."""
        column = fit_text(name, sketch.label, values, rule, rows, self.max_bins)
        every = replace(values, index=np.arange(len(values.labels)))
        distinct = np.unique(np.asarray(as_numbers(every, rule, sketch.label).numbers))
        known = distinct[~np.isnan(distinct)]
        if len(known) <= self.max_bins:
            column = replace(column, cuts=cut_points(known, None, self.max_bins))
        return replace(column, has_missing=sketch.has_missing or len(known) < len(distinct))

    # ---- columns ----------------------------------------------------------------------------------------------------

    @property
    def _names(self) -> tuple[str, ...] | None:
        return None if self._shape is None else self._shape.names

    def _agreed(self, other: Shape) -> Sequence[int]:
        """Where others have each column; those they have must be the same."""
        assert self._shape is not None
        return self._shape.places(other)

    def _begin(self, shape: Shape, table: Table) -> None:
        """The first table says which columns there are."""
        listed = listed_columns(self.categorical_features, table)
        self._shape = shape
        self._columns = [
            ColumnSketch(table.label(place), None if listed is None else place in listed, self.max_bins)
            for place in range(table.n_columns)
        ]

    def _refuse_empty(self) -> None:
        if not self.n_rows:
            raise ValueError(f"there are no rows, but {self.owner} needs at least one")


def _place(k: int) -> str:
    return f"column {k}"


def _as_index(column: NDArray[Any]) -> NDArray[np.int64]:
    """Places of labels; rows from before there was any are NaN, which is -1: missing."""
    return np.nan_to_num(column, nan=-1.0).astype(np.int64) if column.dtype.kind == "f" else column


@dataclass(frozen=True)
class Shape:
    """The shape of one batch."""

    names: tuple[str, ...] | None  # of the columns
    n_columns: int
    besides: frozenset[str]  # what is known of each row besides its features: "y", "sample_weight", "exposure", ...

    @classmethod
    def of(cls, table: Table, besides: Iterable[str]) -> Shape:
        """The shape of a table and what comes with it."""
        return cls(table.names, table.n_columns, frozenset(besides))

    def places(self, other: Shape) -> Sequence[int]:
        """Where another batch has each column of this one; an error where it has others, or more or less besides."""
        for which, what in ((self.besides - other.besides, "has no"), (other.besides - self.besides, "has")):
            if which:
                raise ValueError(f"it {what} {' and '.join(sorted(which))}, unlike those before")
        if self.names is None or other.names is None:
            if (self.names is None) != (other.names is None) or other.n_columns != self.n_columns:
                raise ValueError(f"it has {other}, but those before had {self}")
            return range(self.n_columns)
        index_of = {name: k for k, name in enumerate(other.names)}
        absent, new = [n for n in self.names if n not in index_of], sorted(index_of.keys() - set(self.names))
        if absent or new:
            differences = [f"lacks the columns {absent}"] * bool(absent) + [f"has the columns {new}"] * bool(new)
            raise ValueError(f"it {' and '.join(differences)}, unlike those before, which had {self}")
        return [index_of[name] for name in self.names]

    def __str__(self) -> str:
        return f"{self.n_columns} columns without names" if self.names is None else str([*self.names])
