"""Columns that are computed from two columns of numbers, where boosted trees predict clearly better with them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.boosting.audition import CodedTable, audition
from everytree.boosting.chains import BoostRule, Likelihood
from everytree.boosting.lines import points_of_codes
from everytree.posterior.rows import Rows
from everytree.tables.formulas import Formula, formulas_of
from everytree.tables.reading import Table
from everytree.tables.schema import Schema

FEWEST_GROUPS = 300
"""Of rows that are independent of each other; with fewer nothing is clear."""

MOST_ROWS = 2_500
"""Rows that are enough; of a longer table so many are drawn."""

MAX_CODES = 255
"""So that they fit beside columns of any number of codes."""

N_COLUMNS = 6
"""Columns of numbers that are combined: those of the largest gains."""


MOST_FORMULAS = 24
"""Formulas that are kept: those of the largest gains in the chains that tried them."""


def drawn_rows(rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """All of some rows, or as many of them as are enough."""
    if len(rows) <= MOST_ROWS:
        return rows
    return np.sort(np.random.default_rng(0).choice(rows, MOST_ROWS, replace=False))


def chosen_formulas(
    schema: Schema,
    table: Table,
    rows: Rows,
    likelihood: Likelihood,
    rule: BoostRule,
    *,
    has_lines: bool,
    max_bins: int,
    n_jobs: int,
) -> list[Formula]:
    """Formulas of columns by which the left-out rows of boosted chains are predicted clearly better; none otherwise.

    Parameters
    ----------
    schema : Schema
    table : Table
        Of the rows.
    rows : Rows
    likelihood : Likelihood
    rule : BoostRule
    has_lines : bool
        Whether nodes of trees may be lines.
    """
    max_bins = min(max_bins, MAX_CODES)
    is_number = [
        column.kind == "numeric" and column.hashed is None and not column.groups and len(column.cuts) > 1
        for column in schema.columns
    ]
    n_groups = len(rows) if rows.group is None else len(np.unique(rows.group))
    if n_groups < FEWEST_GROUPS or sum(is_number) < 2:
        return []
    numbers: dict[int, FloatArray] = {}
    tried: list[list[Formula]] = []  # in the order of the columns of each wider table, for each chain

    def formulas(gains: FloatArray) -> list[Formula]:
        order = [int(k) for k in np.argsort(-gains, kind="stable") if is_number[k] and gains[k] > 0.0]
        chosen = order[:N_COLUMNS]
        numbers.update(schema.numbers_of(table, [k for k in chosen if k not in numbers]))
        return formulas_of({k: numbers[k] for k in chosen})

    def coded(of: Schema, codes: NDArray[np.unsignedinteger]) -> CodedTable:
        points = points_of_codes(of, codes, rows.weight) if has_lines else None
        return CodedTable(codes, of.n_codes, of.has_missing, points)

    def widen(gains: Sequence[FloatArray]) -> tuple[CodedTable, list[NDArray[np.int32]]]:
        of_chain = [formulas(each) for each in gains]
        every = list(dict.fromkeys(formula for own in of_chain for formula in own))
        tried.extend([every] * len(gains))
        wide = schema.with_formulas(table, every, sample_weight=rows.weight, max_bins=max_bins)
        codes = wide.encode(table, only=np.arange(wide.n_features) >= schema.n_features)
        codes[:, : schema.n_features] = rows.codes  # cross-fitted
        place = {formula: schema.n_features + k for k, formula in enumerate(every)}
        return coded(wide, codes), [np.array([place[each] for each in own], dtype=np.int32) for own in of_chain]

    found = audition(coded(schema, rows.codes), rows, likelihood, rule, schema.either(len(rows)), widen, n_jobs)
    total: dict[Formula, float] = defaultdict(float)
    for every, gains in zip(tried, found or (), strict=False):
        for formula, gain in zip(every, gains[schema.n_features :].tolist(), strict=True):
            total[formula] += gain
    best = sorted(total, key=lambda formula: -total[formula])[:MOST_FORMULAS]
    return [formula for formula in best if total[formula] > 0.0]
