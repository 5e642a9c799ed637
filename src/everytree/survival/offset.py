"""Relative hazards of rows by proportional hazards in their columns, as sums of one number for each code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.survival.cox import cox_coefficients, partial_log_likelihood
from everytree.survival.rows import TimesOfRows

LARGEST_LOG_HAZARD = 6.0
HINGES = (0.1, 0.3, 0.5, 0.7, 0.9)
MAX_ROWS = 10_000
"""Rows that coefficients are found by; a random part of more."""

RIDGES = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""That are compared; on tables of so many rows every third, since they matter less."""


def within_limits(log_hazard: FloatArray) -> FloatArray:
    """Logarithms of relative hazards that are not too far from 0."""
    return np.asarray(np.clip(log_hazard, -LARGEST_LOG_HAZARD, LARGEST_LOG_HAZARD))


class Terms(NamedTuple):
    """Terms of proportional hazards, each a function of the code of one column."""

    # (n_columns + 1,): where the codes of each column begin in a list of those of all columns; the last one of a column
    # is for codes that are not known
    first: NDArray[np.int64]
    column: NDArray[np.int64]  # (n_terms,)
    # list of (n_codes + 1,) float64: the term for each code, scaled to mean 0 and variance 1 over the rows
    tables: Sequence[FloatArray]

    def design(self, codes: NDArray[Any]) -> FloatArray:
        """(n_rows, n_terms) the terms of some rows."""
        out = np.empty((len(codes), len(self.tables)))
        for k, (column, table) in enumerate(zip(self.column, self.tables, strict=True)):
            out[:, k] = table[np.minimum(codes[:, column].astype(np.int64), len(table) - 1)]
        return out

    def of_codes(self, coefficients: FloatArray) -> FloatArray:
        """(n_values,) what the terms add up to for each code, by their coefficients."""
        values = np.zeros(int(self.first[-1]))
        for column, table, coefficient in zip(self.column, self.tables, coefficients, strict=True):
            values[self.first[column] : self.first[column + 1]] += coefficient * table
        return values


def terms_of(
    codes: NDArray[Any],
    n_codes: NDArray[Any],
    of_code: Sequence[FloatArray | None],
    weight: FloatArray,
    *,
    hinges: bool,
) -> Terms:
    """The terms of a table: of numbers a line, and hinges at quantiles; of categories one each.

    Parameters
    ----------
    codes : (n_rows, n_columns)
    n_codes : (n_columns,) int
    of_code : sequence of (n_codes,) float64 or None
        The number that stands for each code; None for categories.
    weight : (n_rows,) float64
    hinges : bool
    """
    first = np.append(0, np.cumsum(np.asarray(n_codes, dtype=np.int64) + 1))
    columns: list[int] = []
    tables: list[FloatArray] = []
    for column in range(codes.shape[1]):
        n = int(n_codes[column])
        counts = np.bincount(np.minimum(codes[:, column].astype(np.int64), n), weight, n + 1).astype(np.float64)
        for table in _tables(counts, of_code[column], hinges=hinges):
            mean = counts @ table / counts.sum()
            spread = np.sqrt(counts @ (table - mean) ** 2 / counts.sum())
            if spread > 1e-9:
                columns.append(column)
                tables.append((table - mean) / spread)
    return Terms(first, np.array(columns, dtype=np.int64), tables)


def _tables(counts: FloatArray, numbers: FloatArray | None, *, hinges: bool) -> list[FloatArray]:
    """Functions of the codes of a column, the last entry for unknown ones; `counts` are the weights of the codes."""
    known = counts[:-1].sum()
    if not known:
        return []
    found: list[FloatArray] = []
    if numbers is None:
        found += list(np.eye(len(counts))[np.flatnonzero(counts[:-1] >= 0.01 * counts.sum())])
    else:
        mean = counts[:-1] @ numbers / known
        spread = np.sqrt(counts[:-1] @ (numbers - mean) ** 2 / known)
        if spread > 0.0:
            scaled = np.clip((numbers - mean) / spread, -5.0, 5.0)
            found.append(np.append(scaled, 0.0))
            if hinges and (counts[:-1] > 0).sum() > 2:
                share = (np.cumsum(counts[:-1])) / known
                places = np.unique(np.searchsorted(share, HINGES))
                for place in places:
                    hinge = np.maximum(scaled - scaled[place], 0.0)
                    found.append(np.append(hinge, counts[:-1] @ hinge / known))
    if counts[-1] >= 0.01 * counts.sum():
        found.append(np.append(np.zeros(len(counts) - 1), 1.0))
    return found


def fit_offset(
    terms: Terms, codes: NDArray[Any], rows: TimesOfRows, fold: NDArray[np.int64], rng: np.random.Generator
) -> tuple[FloatArray, float, FloatArray]:
    """What each code adds to the log relative hazard, what is subtracted, and what that is for each row by other folds.

    The ridge is the one with which rows of other folds are predicted best.
    """
    design = terms.design(codes)

    def coefficients(some: NDArray[np.int64], ridge: float, start: FloatArray | None) -> FloatArray:
        share = 1.0
        if len(some) > MAX_ROWS:
            share = MAX_ROWS / len(some)
            some = rng.permutation(some)[:MAX_ROWS]
        own, penalty = rows.at(some), np.full(design.shape[1], ridge * share)
        return cox_coefficients(design[some], own.time, own.is_event, own.entry, own.weight, penalty, start)

    def predicted(ridge: float, before: list[FloatArray | None]) -> FloatArray:
        out = np.zeros(len(codes))
        for place, k in enumerate(folds):
            rest = np.flatnonzero(fold != k)
            if rows.is_event[rest].any():
                before[place] = coefficients(rest, ridge, before[place])
                out[fold == k] = design[fold == k] @ before[place]
        return out

    folds = np.unique(fold)
    best, found = -np.inf, (RIDGES[-1], np.zeros(len(codes)))
    starts: list[FloatArray | None] = [None for _ in folds]
    for ridge in reversed(RIDGES if len(codes) <= MAX_ROWS else RIDGES[::3]):
        out = predicted(ridge, starts)
        value = partial_log_likelihood(out, rows.time, rows.is_event, rows.entry, rows.weight)
        if value > best:
            best, found = value, (ridge, out)
    every = coefficients(np.arange(len(codes)), found[0], None)
    lp = design @ every
    centre = float(np.log(np.average(np.exp(np.clip(lp, -30, 30)), weights=rows.weight)))
    return terms.of_codes(every), centre, within_limits(found[1] - centre)
