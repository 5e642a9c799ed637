"""The only way for user tables into the library: the type of each column, and how its values become codes.

The rule, stated once
---------------------
A column of numbers has ascending `cuts`; the code of x is the number of cuts strictly below x, so `code <= t` exactly
when `x <= cuts[t]`, and a number beyond those of fit has the first or the last code. Booleans are the numbers 0 and 1,
dates are microseconds since 1970 (UTC where they have a time zone, which all of a column or none must have), and all
numbers are compared as float64. A column of categories has them in `categories`, in the order of their codes. The
largest code of the type, 255 or 65535, is a missing value; the one below it is, in columns of categories, a category
that was not there at fit.

A column with a `formula` reads no input: its numbers follow from those of two other columns of the schema.

A column may have a `source`, the input column that it reads, so that several read the same one, and `groups`, which
give several categories, or several intervals between cuts, the same code. With groups, a category that is not listed is
missing; in columns that are `pooled` it is one that was not there at fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from threading import Lock
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from everytree import _kernels
from everytree.base.arrays import LARGEST_CODE, FloatArray
from everytree.base.checks import resolve_n_jobs, whole_number
from everytree.base.errors import ArgumentError
from everytree.base.lazy import cached_property
from everytree.base.words import nearest
from everytree.tables.categories import fit_categories
from everytree.tables.code_names import CodeWords
from everytree.tables.column import (
    Column,
    FitRows,
    fit_numbers,
    fit_text,
    free_name,
    missing_code,
    read_labels,
    read_numbers,
    unseen_code,
)
from everytree.tables.formulas import Formula
from everytree.tables.reading import Kind, Label, Table, Values, infinity, read_table
from everytree.tables.texts import as_numbers, recognised

MANY_ROWS = 40
"""Mean number of rows of a category from which on its codes hardly depend on any of them."""


class Schema:
    """The type of each column of a table, and how its values become codes.

    Frozen. Build one with `fit` from a table, or with `from_columns`.

    Attributes
    ----------
    columns : tuple of Column
    dtype : numpy.uint8 or numpy.uint16
        Type of the codes.
    names : list of str or None
        None if the table of fit had no names.
    n_features : int
    input_names : list of str or None
        Names of the input columns, in the order in which a table without names must have them; None if columns are
        found by position.
    n_inputs : int
        Number of input columns; `n_features`, unless some are read several times.
    n_codes : (n_features,) int32
        Number of codes of each column, without those for missing and unseen values.
    is_categorical : (n_features,) bool
    """

    columns: tuple[Column, ...]
    dtype: type[np.uint8] | type[np.uint16]

    def __init__(self, *_: object, **__: object) -> None:
        raise TypeError("use Schema.fit(...), Schema.from_columns(...) or Schema.from_dict(...)")

    # ---- constructors -------------------------------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        X: Any,
        y: ArrayLike | None = None,
        *,
        sample_weight: ArrayLike | None = None,
        max_bins: int = 255,
        categorical_features: Literal["from_dtype"] | Sequence[Any] | NDArray[Any] | None = "from_dtype",
        at_once: bool = False,
        n_jobs: int | None = None,
        owner: str = "Schema",
    ) -> Schema:
        """Fit a schema to a table.

        Parameters
        ----------
        X : (n_rows, n_features) array_like, or a data frame of any library narwhals knows, in memory
        y : (n_rows,) or (n_rows, n_targets) array_like of float, optional
            Adds codes of categories by their mean targets; with several target columns, by the principal components of
            these. Without it a column of categories has one code for each, in their natural order (numbers within texts
            count as numbers), which is also that of the first codes with it. See `tables/categories.py`.
        sample_weight : (n_rows,) array_like, optional
            A row of weight zero is ignored.
        max_bins : int
            Maximum number of codes of a column of numbers, from 2 to 65534. A column with no more distinct values than
            this is cut halfway between all of them, any other at its quantiles, where a value that holds much of the
            mass has a bin to itself. Quantiles of more than 200,000 rows are those of 200,000 drawn at random, with a
            fixed seed.
        categorical_features : "from_dtype", None, or sequence of names, of positions or of one bool per column
            Which columns are categories: those of text or of a categorical type, none, or these. Text of which every
            value is a number or a date is read as such, with a warning, unless the column is named here.
        at_once : bool
            Whether splits go to all categories of a column at once, so that their order does not matter.
        n_jobs : int, optional
            Number of threads; the schema does not depend on it.
        owner : str
            Name used in errors.

        Examples
        --------
        >>> import everytree as et
        >>> schema = et.Schema.fit([[1.0, "red"], [2.0, "blue"], [4.0, "red"]])
        >>> schema
        Schema(2 columns: 1 numeric, 1 categorical; uint8)
        >>> schema.encode([[3.5, "blue"], [None, "green"]])
        array([[  2,   0],
               [255, 254]], dtype=uint8)
        """
        max_bins = whole_number("max_bins", max_bins, 2, LARGEST_CODE)
        jobs = resolve_n_jobs(n_jobs)
        table = read_table(X, owner)
        listed = listed_columns(categorical_features, table)
        rows = FitRows.of(table.n_rows, y, sample_weight)
        reading = Lock()  # data frames may not allow several readers at once

        def fit_one(index: int) -> list[Column]:
            with reading:
                values = table.column(index)
            name = None if table.names is None else table.names[index]
            if values.is_text and (listed is None or index not in listed):
                text = recognised(table.label(index), values)
                if text is not None:
                    return [fit_text(name, table.label(index), values, text, rows, max_bins)]
            if values.kind == "categorical" if listed is None else index in listed:
                return fit_categories(name, table.label(index), values, rows, max_bins, at_once=at_once)
            if values.kind == "categorical":
                raise ArgumentError(
                    "X", f"holds categories, {str(values.labels[:3])[1:-1]}, but categorical_features does not name "
                    "it; name it there, or pass 'from_dtype'", table.label(index),
                )  # fmt: skip
            return [fit_numbers(name, table.label(index), values, rows, max_bins)]

        if jobs == 1 or table.n_columns == 1:
            return cls.from_inputs(map(fit_one, range(table.n_columns)))
        with ThreadPoolExecutor(jobs) as pool:
            return cls.from_inputs(pool.map(fit_one, range(table.n_columns)))

    @classmethod
    def from_columns(cls, columns: Iterable[Column], dtype: DTypeLike | None = None) -> Schema:
        """Make a schema from known columns; `dtype` is the smallest one that holds their codes unless given."""
        kept = tuple(columns)
        if not kept:
            raise ValueError("columns is empty: a schema has at least one column")
        named = [column.name for column in kept if column.name is not None]
        if named and (len(set(named)) < len(named) or len(named) < len(kept)):
            raise ValueError(f"columns must have different names, or none at all, but are named {named}")
        _check_formulas(kept)
        _check_sources(kept)
        fitting = [np.uint8, np.uint16] if all(_fits(column, np.uint8) for column in kept) else [np.uint16]
        wanted = [kind for kind in fitting if dtype is None or np.dtype(dtype) == kind]
        if not wanted:
            names = " or ".join(np.dtype(kind).name for kind in fitting)
            raise ValueError(f"dtype must be {names} for these columns, but is {dtype!r}")
        self = object.__new__(cls)
        self.__dict__.update(columns=kept, dtype=wanted[0])
        return self

    @classmethod
    def from_inputs(cls, readers: Iterable[Sequence[Column]]) -> Schema:
        """Make a schema from the columns that read each input; the first of each stand before all others."""
        each = list(readers)
        columns = [first for first, *_ in each]
        taken = {column.name for column in columns}
        for place, (_, *others) in enumerate(each):
            for column in others:
                source = place if column.name is None else column.name
                name = None if column.name is None else free_name(column.name, taken)
                columns.append(replace(column, name=name, source=source))
        return cls.from_columns(columns)

    def with_formulas(
        self, X: Any, formulas: Sequence[Formula], *, sample_weight: ArrayLike | None = None, max_bins: int = 255
    ) -> Schema:
        """Return the schema with a column more for each formula; X is the table of fit, and so are the weights."""
        table = read_table(X, "Schema")
        rows = FitRows.of(table.n_rows, None, sample_weight)
        numbers = dict(self.numbers_of(table, sorted({k for formula in formulas for k in formula[1:3]})))
        words = [formula.words(self.feature_words) for formula in formulas]
        taken = {column.name for column in self.columns} | set(self.input_names or ())
        generated = []
        for formula, label in zip(formulas, words, strict=True):
            values = Values("numeric", formula.numbers(numbers[formula.first], numbers[formula.second]))
            name = None if self.names is None else free_name(label, taken)
            generated.append(replace(fit_numbers(name, label, values, rows, max_bins), formula=formula))
        return self.from_columns([*self.columns, *generated])

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Schema:
        """Return the schema that `to_dict` wrote, checked again."""
        return cls.from_columns([Column(**column) for column in plain["columns"]], plain["dtype"])

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON; floats keep every bit."""
        return {"dtype": np.dtype(self.dtype).name, "columns": [column.to_dict() for column in self.columns]}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Schema is frozen: {name} cannot be set")

    # ---- derived from the columns ---------------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> list[str] | None:
        names = [column.name for column in self.columns if column.name is not None]
        return names or None

    @cached_property
    def _inputs(self) -> dict[str | int, int]:
        """The input columns by name or by position, and their position in a table without names."""
        sources = dict.fromkeys(_source(column, k) for k, column in enumerate(self.columns) if column.formula is None)
        return {source: source if isinstance(source, int) else k for k, source in enumerate(sources)}

    @property
    def n_inputs(self) -> int:
        return len(self._inputs)

    @property
    def input_names(self) -> list[str] | None:
        names = [source for source in self._inputs if isinstance(source, str)]
        return names or None

    @cached_property
    def input_of(self) -> NDArray[np.int64]:
        """(n_features,) the input column that each code column reads, as an index into the inputs.

        Columns with formulas have the numbers after those, each its own.
        """
        after = count(self.n_inputs)
        return np.array(
            [
                next(after) if column.formula is not None else self._inputs[_source(column, k)]
                for k, column in enumerate(self.columns)
            ]
        )

    @cached_property
    def n_formulas(self) -> int:
        """Number of columns with formulas."""
        return sum(column.formula is not None for column in self.columns)

    def of_inputs(self, values: FloatArray) -> FloatArray:
        """(n_inputs, ...) sums of what has been attributed to inputs and, after these, to columns with formulas.

        What belongs to a formula belongs to its two columns, one half to each.
        """
        found = values[: self.n_inputs].copy()
        formulas = [column.formula for column in self.columns if column.formula is not None]
        for formula, own in zip(formulas, values[self.n_inputs :], strict=True):
            found[self.input_of[formula.first]] += 0.5 * own
            found[self.input_of[formula.second]] += 0.5 * own
        return found

    def by_input(self, of_feature: FloatArray) -> FloatArray:
        """(n_inputs,) sums over the columns that read each input."""
        total = np.zeros(self.n_inputs + self.n_formulas)
        np.add.at(total, self.input_of, of_feature)
        return self.of_inputs(total)

    @property
    def feature_words(self) -> list[str]:
        """For each column the name of the input that it reads, or its formula in words."""
        inputs = self.input_names or [f"x{k}" for k in range(self.n_inputs)]
        words = [inputs[k] if k < self.n_inputs else "" for k in self.input_of]
        return [
            word if column.formula is None else column.formula.words(words)
            for word, column in zip(words, self.columns, strict=True)
        ]

    def either(self, n_rows: int) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Columns that read the same rare categories: those with a code for each, and those with codes by mean targets.

        A tree that splits on both finds the targets of a row in the difference between the two: in one category, codes
        of rows whose own fold has low targets are high. Each tree therefore splits on one of the two. Where categories
        have many of the `n_rows`, one fold more or less makes no difference.
        """
        pooled = np.array([column.pooled for column in self.columns])
        found = []
        for place in np.unique(self.input_of[pooled]):
            readers = self.input_of == place
            own, by_means = np.flatnonzero(readers & ~pooled), np.flatnonzero(readers & pooled)
            if len(own) and n_rows < MANY_ROWS * self.n_codes[own].min():
                found.append((own, by_means))
        return found

    @cached_property
    def n_codes(self) -> NDArray[np.int32]:
        n_codes = np.array([column.n_codes for column in self.columns], dtype=np.int32)
        n_codes.flags.writeable = False
        return n_codes

    @cached_property
    def has_missing(self) -> NDArray[np.bool_]:
        """(n_columns,) columns with missing values at fit."""
        has_missing = np.array([column.has_missing for column in self.columns], dtype=bool)
        has_missing.flags.writeable = False
        return has_missing

    @cached_property
    def is_categorical(self) -> NDArray[np.bool_]:
        is_categorical = np.array([column.kind == "categorical" for column in self.columns])
        is_categorical.flags.writeable = False
        return is_categorical

    @cached_property
    def _encoder(self) -> _kernels.Encoder:
        start = np.cumsum([0, *(len(column.cuts) for column in self.columns)], dtype=np.int64)
        single = np.array([column.single for column in self.columns], dtype=np.uint8)
        groups = [
            np.array(() if column.kind == "categorical" else column.groups, dtype=np.int32) for column in self.columns
        ]
        return _kernels.Encoder(np.concatenate([column.cuts for column in self.columns]), start, single, groups)

    @cached_property
    def _codes_of(self) -> list[dict[Label, int]]:
        missing = missing_code(self.dtype)
        return [
            {
                value: code if code >= 0 else missing
                for value, code in zip(column.categories, column.groups or range(len(column.categories)), strict=True)
            }
            if column.kind == "categorical"
            else {}
            for column in self.columns
        ]

    # ---- codes ------------------------------------------------------------------------------------------------------

    def encode(
        self, X: Any, *, only: NDArray[np.bool_] | None = None, n_jobs: int | None = None, owner: str = "Schema"
    ) -> NDArray[np.uint8] | NDArray[np.uint16]:
        """Return the codes of a table.

        Columns are found by name if the table and the schema both have names, in any order and among others; else by
        position.

        Parameters
        ----------
        X : (n_rows, n_features) array_like, or a data frame
        only : (n_features,) bool, optional
            Columns to encode; codes of the others are 0, and a table with names need not have them.
        n_jobs : int, optional
            Number of threads; the codes do not depend on it.
        owner : str
            Name used in errors.

        Returns
        -------
        (n_rows, n_features) uint8 or uint16
        """
        jobs = resolve_n_jobs(n_jobs)
        table = read_table(X, owner)
        make = np.empty if only is None else np.zeros
        codes: NDArray[Any] = make((table.n_rows, self.n_features), dtype=self.dtype)
        numbers: list[NDArray[Any] | None] = [None] * self.n_features
        wanted = range(self.n_features) if only is None else np.flatnonzero(only).tolist()
        places = self.places(table, owner, wanted)
        for place, readers in _readers(places).items():
            values, label = table.column(place), table.label(place)
            labels: tuple[tuple[Label, ...], NDArray[Any]] | None = None
            for k in readers:
                column = self.columns[k]
                if column.kind == "categorical":
                    labels = labels or read_labels(column, label, values, table.n_rows)
                    codes[:, k] = self._category_codes(k, *labels)
                else:
                    numbers[k] = read_numbers(column, label, values, table.n_rows)
        for k, own in self.numbers_of(table, [k for k in wanted if self.columns[k].formula is not None], owner):
            numbers[k] = own
        found = self._encoder.encode(numbers, codes, jobs)
        if found is not None:
            row, k = found
            raise infinity(table.label(places[k]), row, float(numbers[k][row]))  # type: ignore[index]
        return codes

    def as_read(self, table: Table, owner: str = "Schema") -> Table:
        """Return the table with text as the numbers or dates that it holds, in the columns where it did so at fit."""
        rules = {
            place: rule
            for k, place in self.places(table, owner, range(self.n_features)).items()
            if (rule := self.columns[k].text) is not None
        }
        if not rules:
            return table

        def read(label: str, index: int) -> Values:
            values = table.read(label, index)
            return as_numbers(values, rules[index], label) if index in rules else values

        return replace(table, read=read)

    def places_among(self, known: Sequence[Label], k: int, X: Any, *, owner: str = "Schema") -> NDArray[np.int64]:
        """(n_rows,) the place of each row's category of column k among the known ones; -1 where it has none."""
        table = read_table(X, owner)
        place = self.places(table, owner, [k])[k]
        labels, index = read_labels(self.columns[k], table.label(place), table.column(place), table.n_rows)
        number = {value: n for n, value in enumerate(known)}
        found: NDArray[np.int64] = np.array([*(number.get(value, -1) for value in labels), -1], dtype=np.int64)[index]
        return found

    def numbers(self, X: Any, *, owner: str = "Schema") -> NDArray[np.float64]:
        """(n_rows, n columns of numbers) the values themselves, NaN where missing; for linear leaves."""
        table = read_table(X, owner)
        wanted = [k for k, column in enumerate(self.columns) if column.kind != "categorical"]
        out = np.empty((table.n_rows, len(wanted)))
        for j, (_, own) in enumerate(self.numbers_of(table, wanted, owner)):
            out[:, j] = own
        return out

    def numbers_of(
        self, table: Table, wanted: Sequence[int], owner: str = "Schema"
    ) -> Iterator[tuple[int, NDArray[Any]]]:
        """Each wanted column of numbers, and (n_rows,) its numbers."""
        formulas = [column.formula for k in wanted if (column := self.columns[k]).formula is not None]
        operands = {k for formula in formulas for k in formula[1:3]} if formulas else set()
        places = self.places(table, owner, sorted({*wanted, *operands}))

        def read(k: int) -> NDArray[Any]:
            return read_numbers(self.columns[k], table.label(places[k]), table.column(places[k]), table.n_rows)

        kept = {k: read(k).astype(np.float64) for k in operands}  # several formulas read the same ones
        for k in wanted:
            formula = self.columns[k].formula
            yield k, read(k) if formula is None else formula.numbers(kept[formula.first], kept[formula.second])

    @cached_property
    def code_names(self) -> list[CodeWords]:
        """Labels of the codes of each column: the category, or the largest number with the code."""
        return [CodeWords.of(column, int(k)) for column, k in zip(self.columns, self.input_of, strict=True)]

    def places(self, table: Table, owner: str, wanted: Sequence[int]) -> dict[int, int]:
        """Position in the table of each wanted column of this schema that reads one."""
        sources = {k: _source(self.columns[k], k) for k in wanted if self.columns[k].formula is None}
        place = self._inputs
        if self.input_names is not None and table.names is not None:
            place = {name: k for k, name in enumerate(table.names)}
            absent = [name for name in dict.fromkeys(sources.values()) if name not in place]
            if absent:
                like = nearest(str(absent[0]), map(str, place)) if len(absent) == 1 else ""
                raise ValueError(
                    f"X lacks the columns {absent}, which {owner} was fitted with; it has {[*place]}"
                    + (f", of which {like}" if like else "")
                )
        elif table.n_columns != self.n_inputs:
            raise ValueError(
                f"X has {table.n_columns} features, but {owner} is expecting {self.n_inputs} features as input"
            )
        return {k: place[source] for k, source in sources.items()}

    def _category_codes(self, k: int, labels: tuple[Label, ...], index: NDArray[Any]) -> NDArray[Any]:
        codes_of, missing = self._codes_of[k], missing_code(self.dtype)
        column = self.columns[k]
        new = column.new_code if column.new_code >= 0 else unseen_code(self.dtype) if column.has_unseen else missing
        lookup = [*(codes_of.get(value, new) for value in labels), missing]
        codes: NDArray[Any] = np.array(lookup, dtype=self.dtype)[index]
        return codes

    # ---- identity -------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return self.dtype == other.dtype and self.columns == other.columns

    def __hash__(self) -> int:
        return hash((np.dtype(self.dtype).name, self.columns))

    def __reduce__(self) -> tuple[Any, ...]:
        return Schema.from_columns, (self.columns, np.dtype(self.dtype).name)

    def summary(self) -> str:
        """Number of columns of each kind, in words."""
        counts = Counter(column.kind for column in self.columns)
        kinds = ", ".join(f"{counts[kind]} {kind}" for kind in get_args(Kind) if counts[kind])
        generated = f", {self.n_formulas} of them generated" if self.n_formulas else ""
        return f"{self.n_features} column{'' if self.n_features == 1 else 's'}: {kinds}{generated}"

    def __repr__(self) -> str:
        return f"Schema({self.summary()}; {np.dtype(self.dtype).name})"


def _fits(column: Column, dtype: type[np.uint8]) -> bool:
    """Whether all codes of a column lie below the reserved ones."""
    return column.n_codes <= (unseen_code(dtype) if column.kind == "categorical" else missing_code(dtype))


def _source(column: Column, index: int) -> str | int:
    """Name or position of the input column that a column reads."""
    if column.source is not None:
        return column.source
    return index if column.name is None else column.name


def _check_formulas(columns: Sequence[Column]) -> None:
    """Check that formulas are about columns of numbers that read an input."""
    for k, column in enumerate(columns):
        for place in () if column.formula is None else column.formula[1:3]:
            if place >= len(columns) or columns[place].kind != "numeric" or columns[place].formula is not None:
                raise ValueError(f"formula of column {k} must be of two columns of numbers, but is {column.formula!r}")


def _check_sources(columns: Sequence[Column]) -> None:
    """Check that input columns are found all by name, or all by position without gaps."""
    sources = [_source(column, k) for k, column in enumerate(columns) if column.formula is None]
    by_place = [source for source in sources if isinstance(source, int)]
    if by_place and len(by_place) < len(sources):
        raise ValueError(f"sources of columns must be all names or all places, but are {sources}")
    if by_place and (max(by_place) >= len(by_place) or set(by_place) != set(range(max(by_place) + 1))):
        raise ValueError(f"sources of columns must be all of the places 0..{max(by_place)}, but are {sources}")


def _readers(places: Mapping[int, int]) -> dict[int, list[int]]:
    """The columns that read each position of a table."""
    readers: dict[int, list[int]] = {}
    for k, place in places.items():
        readers.setdefault(place, []).append(k)
    return readers


def listed_columns(categorical_features: Any, table: Table) -> set[int] | None:
    """Positions of the columns that are to be categories; None leaves it to their types."""
    if categorical_features is None:
        return set()
    if isinstance(categorical_features, str):
        if categorical_features == "from_dtype":
            return None
        raise ValueError(f"categorical_features must be 'from_dtype', None or a list, but is {categorical_features!r}")
    listed = [item.item() if isinstance(item, np.generic) else item for item in categorical_features]
    if listed and all(isinstance(item, bool) for item in listed):
        if len(listed) != table.n_columns:
            raise ValueError(f"categorical_features has {len(listed)} entries, but X has {table.n_columns} columns")
        return {place for place, item in enumerate(listed) if item}
    place = {name: k for k, name in enumerate(table.names or ())}
    for item in listed:
        known = item in place if isinstance(item, str) else type(item) is int and 0 <= item < table.n_columns
        if not known:
            columns = f"0..{table.n_columns - 1}" + (f" or {[*place]}" if place else "; X has no names")
            raise ValueError(f"categorical_features names {item!r}, but the columns of X are {columns}")
    return {place[item] if isinstance(item, str) else item for item in listed}
