"""Targets that are numbers: measurements, counts, times."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray, as_labels, such_as
from everytree.base.checks import is_auto
from everytree.base.errors import ArgumentError, ArgumentTypeError
from everytree.families.base import NativeFamily
from everytree.families.normal import Normal
from everytree.families.prior_search import Search
from everytree.families.registry import NUMBER_FAMILIES, candidates, families_with
from everytree.families.traits import RowColumn
from everytree.fitting.targets.columns import as_array, numbers_of, refuse, refuse_missing
from everytree.fitting.targets.target import Labels, Target
from everytree.fitting.targets.units import centred_and_scaled, standardised
from everytree.posterior.rows import Rows
from everytree.structure.grow_on import Numbers
from everytree.tables.schema import Schema

LARGEST_SQUARED = 1e28
"""Largest size of a target whose square is a variance: those of priors are at most 1e60."""

SMALLEST_SPREAD = 1e-26
"""Range of targets below which their variance is too small for priors, which are at least 1e-60."""


@dataclass(frozen=True, eq=False)
class NumberTarget(Target):
    """Measurements, counts, times."""

    owner: str  # the estimator's name, for errors
    family: str  # as in the estimators
    prior: Mapping[str, Any] | str
    split_prior: Any
    among: Sequence[str] = ()  # the families that "auto" chooses from
    learnt: Any = None  # what leaves of all rows have in common; None until it is known, and for most families
    # (n_inputs,): by which the inputs of linear leaves are centred and scaled, once they are known
    input_mean: FloatArray | None = None
    input_scale: FloatArray | None = None
    # sequence of (n_codes,) float64: the number that stands for each code of a column, None for categories: while
    # survival curves are fitted
    code_numbers: Sequence[FloatArray | None] = ()

    @property
    def leaves(self) -> type[NativeFamily]:
        """The leaf model that `family` names; numbers of any kind until one is chosen."""
        return Normal if is_auto(self.family) else NUMBER_FAMILIES[self.family]

    def candidates(self, rows: Rows) -> Sequence[Self]:
        if not is_auto(self.family):
            return [self]
        if not is_auto(self.prior):
            raise ArgumentError("prior", "is that of one family, but family is 'auto'; name the family")
        found = candidates(self.among, rows.y, rows.row_data)
        if not found:
            raise ArgumentError("family", f"is 'auto', but no family takes {', '.join(rows.row_data)} and such targets")
        return [replace(self, family=name).learn(rows.y, rows.weight)[0] for name in found]

    @property
    def has_inputs(self) -> bool:
        return "inputs" in self.leaves.row_data

    def read(self, y: Any) -> NDArray[Any]:
        from sklearn.utils.validation import check_array, column_or_1d

        target = as_array(y)
        refuse_missing(np.asarray(target), "a number")
        target = column_or_1d(check_array(target, ensure_2d=False, input_name="y", dtype=None), warn=True)
        if target.dtype.kind in "mM":
            found = f"dates or durations ({target.dtype})"
            raise ArgumentError("y", f"must be numbers, but holds {found}; subtract, then scale them")
        if target.dtype.kind not in "biuf":
            try:
                target = target.astype(np.float64)
            except (TypeError, ValueError):
                found = such_as(target)
                raise ArgumentError("y", f"must be numbers, but has {found}; for classes use a classifier") from None
        numbers = check_array(target.astype(np.float64), ensure_2d=False, input_name="y")
        support = self.leaves.support
        largest = LARGEST_SQUARED if support.is_real_line else 1e60
        refuse(numbers, np.abs(numbers) > largest, f"at most {largest:g} in size")
        refuse(numbers, ~support.holds(numbers), f"{support.must} for {self.family}")
        return np.asarray(numbers)

    def learn(self, labels: NDArray[Any], weight: FloatArray | None) -> tuple[Self, NDArray[Any]]:
        support = self.leaves.support
        if support.needs_some_above and (labels == support.lowest).all():
            what = support.must.split()[0]
            lowest = f"{support.lowest:g}"
            must = f"is {lowest} for every row: {what} of family {self.family!r} must not all be {lowest}"
            raise ArgumentError("y", must)
        spread = float(np.ptp(labels))
        if support.is_real_line and 0.0 < spread < SMALLEST_SPREAD:
            warnings.warn(
                f"y varies by {spread:.3g} only, too little for variances to be computed well; multiply it by a "
                "constant",
                UserWarning,
                stacklevel=2,
            )
        return replace(self, learnt=self.leaves.learn(labels, weight)), labels

    def numbers(self, labels: NDArray[Any]) -> NDArray[Any]:
        return self.read(labels)

    @property
    def given_columns(self) -> Mapping[str, RowColumn]:
        every = [NUMBER_FAMILIES[name] for name in self.among] if is_auto(self.family) else [self.leaves]
        return {column.name: column for leaves in every for column in leaves.given_columns}

    @property
    def known_names(self) -> Mapping[str, Sequence[str]]:
        return families_with()

    def row_data(self, n_rows: int, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        self.check_names(given)
        columns: dict[str, NDArray[Any]] = {}
        for name, families in self.known_names.items():
            if given.get(name) is None:
                continue
            if self.family not in families and not is_auto(self.family):
                known = " or ".join(map(repr, families))
                raise ArgumentError(name, f"is for family={known}, but family is {self.family!r}")
            self._refuse_text(name, given[name])
            columns[name] = numbers_of(name, given[name])
            if len(columns[name]) != n_rows:
                raise ArgumentError(name, f"has {len(columns[name])} entries, but X has {n_rows} rows")
        for name, column in self.given_columns.items():
            for known in (name, column.opposite):
                if known in columns:
                    refuse(columns[known], ~column.holds(columns[known]), column.must, known)
            if column.opposite in columns:
                if name in columns:
                    raise ArgumentError(name, f"and {column.opposite} are given, but one is the opposite of the other")
                columns[name] = 1.0 - columns.pop(column.opposite)
        return columns

    def _refuse_text(self, name: str, values: Any) -> None:
        """Say of texts in the place of 0 and 1 how to make numbers of them."""
        labels = as_labels(values)
        known = [column for column in self.given_columns.values() if name in (column.name, column.opposite)]
        text = next((value for value in labels if isinstance(value, str)), None) if labels.dtype.kind in "OUT" else None
        if known and text is not None:
            raise ArgumentTypeError(name, f"must be {known[0].must}, but has text such as {str(text)!r}")

    def warn_about(self, rows: Rows) -> None:
        if len(rows) and rows.row_data.get("censored", np.zeros(1)).all():
            warnings.warn(
                "all rows are censored: no event was seen, so that times are bounded by the prior alone",
                UserWarning,
                stacklevel=2,
            )

    def learn_inputs(self, schema: Schema, X: Any, used: NDArray[np.bool_] | None) -> Self:
        if self.leaves.predicts_curves:
            return replace(self, code_numbers=numbers_of_codes(schema, X, used, self.owner))
        if not self.has_inputs:
            return self
        numbers = schema.numbers(X, owner=self.owner)
        known = numbers if used is None else numbers[used]
        known = np.where(np.isnan(known).all(axis=0), 0.0, known)
        spread = np.nanstd(known, axis=0)
        return replace(self, input_mean=np.nanmean(known, axis=0), input_scale=np.where(spread > 0.0, spread, 1.0))

    def columns(self, schema: Schema, X: Any, n_rows: int, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Add inputs: the columns of numbers, centred and scaled, missing values at the centre, and a 1."""
        columns = self.row_data(n_rows, given)
        if self.has_inputs:
            assert self.input_mean is not None
            assert self.input_scale is not None
            numbers = schema.numbers(X, owner=self.owner)
            scaled = (numbers - self.input_mean) / self.input_scale
            columns["inputs"] = np.column_stack([np.where(np.isnan(scaled), 0.0, scaled), np.ones(len(numbers))])
        return columns

    def order_by(self, y: NDArray[Any]) -> FloatArray:
        numbers = np.asarray(y, dtype=np.float64)
        return standardised(numbers, None).values if self.leaves.grows_standardised else numbers

    def grow_on(self, rows: Rows, criterion: str | None = None) -> Numbers:
        del criterion  # the squared error is the only one
        follow, weight = self.leaves.to_grow_on(rows.y, rows.weight, rows.row_data)
        if self.leaves.grows_standardised:
            return Numbers(standardised(follow, weight).values, weight)
        return Numbers(centred_and_scaled(follow, weight), weight)

    def evidence_on(self, rows: Rows) -> tuple[Rows, NativeFamily]:
        if self.leaves.grows_standardised and self.leaves.support.is_real_line and self.learnt is None:
            rows = replace(rows, y=standardised(rows.y, rows.weight).values)
        return super().evidence_on(rows)

    def search(self, rows: Rows) -> Search:
        prior = {} if isinstance(self.prior, str) else dict(self.prior)
        if self.learnt is not None:
            return self.leaves.search_with(self.learnt, prior, self.split_prior)
        return self.leaves.prior_search(rows.y, rows.weight, rows.row_data, prior, self.split_prior)

    def fixed_family(self, rows: Rows) -> NativeFamily:
        return self.counted_by(rows)

    def check_same(self, other: Self) -> None:
        for name, mine in self.attributes().items():
            theirs = other.attributes().get(name, ())
            if not np.array_equal(mine, theirs):
                raise ValueError(f"other has {name} {theirs}, this one {mine}: its linear leaves differ")

    def attributes(self) -> dict[str, Any]:
        return {"input_mean_": self.input_mean, "input_scale_": self.input_scale} if self.has_inputs else {}

    def scan_labels(self, column: Any) -> Labels:
        """Check that all targets are possible; numbers need not be known beforehand."""
        column.read(self.numbers)
        return None

    def with_labels(self, labels: Labels) -> Self:
        return self


def numbers_of_codes(schema: Schema, X: Any, used: NDArray[np.bool_] | None, owner: str) -> list[FloatArray | None]:
    """The mean of the numbers with each code, of columns of numbers; None for categories. `used` rows have weight."""
    codes, numbers = schema.encode(X, owner=owner), schema.numbers(X, owner=owner)
    if used is not None:
        codes, numbers = codes[used], numbers[used]
    found: list[FloatArray | None] = []
    n_seen = 0
    for place, column in enumerate(schema.columns):
        if column.kind == "categorical":
            found.append(np.arange(column.n_codes, dtype=np.float64) if column.pooled else None)
            continue
        values, own, n = numbers[:, n_seen], codes[:, place].astype(np.int64), int(schema.n_codes[place])
        n_seen += 1
        known = (own < n) & np.isfinite(values)
        count = np.bincount(own[known], minlength=n)[:n]
        seen = np.flatnonzero(count)
        mean = np.bincount(own[known], values[known], n)[:n][seen] / count[seen]
        found.append(np.interp(np.arange(n), seen, mean) if len(seen) else np.zeros(n))
    return found
