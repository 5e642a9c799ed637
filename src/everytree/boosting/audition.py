"""Whether chains of boosted trees predict the rows that they leave out clearly better with more columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.boosting.chains import (
    FEW_ROWS,
    N_PILOTS,
    SHARES_OF_COLUMNS,
    SPLIT_PRIORS,
    BoostRule,
    Likelihood,
    Role,
    clearly_gain,
    gains_of,
    roles_of,
)
from everytree.boosting.folds import folds
from everytree.boosting.lines import Points
from everytree.posterior.rows import Rows
from everytree.tables.either import Either, drawn_columns

N_STEPS = 300
"""Of each chain, at most."""


class CodedTable(NamedTuple):
    """Columns of codes as chains see them."""

    codes: NDArray[np.unsignedinteger]  # (n_rows, n_columns) uint8 or uint16
    n_codes: NDArray[np.int32]  # (n_columns,) int32
    has_missing: NDArray[np.bool_]  # (n_columns,)
    points: Points | None  # sequence of (n_codes,) float64: of the codes of each column, for lines


Widen = Callable[[Sequence[FloatArray]], tuple[CodedTable, Sequence[NDArray[np.int32]]]]
"""From the gains by columns in some chains, the table with more columns, and those of them that each chain tries."""


def audition(
    table: CodedTable, rows: Rows, likelihood: Likelihood, rule: BoostRule, either: Either, widen: Widen, n_jobs: int
) -> list[FloatArray] | None:
    """Gains by the columns of the wider table in each chain, if these predict clearly better; else None.

    Short chains, each without one fold of the rows. What a chain tries more is chosen by its own trees, which have not
    seen the rows that it leaves out. Two chains try first; the others follow if these gain at all. The mean loss must
    be smaller than with any share of the columns that may be chosen, and that of log(1 + loss / (2 mean loss)) clearly
    so: a few rows of large losses show nothing clearly.
    """
    rule = rule.for_rows(len(rows), likelihood.loss)
    rule = replace(rule, max_steps=min(N_STEPS, rule.max_steps))
    shares = [rule.max_features] if rule.max_features is not None else SHARES_OF_COLUMNS[: 1 + (len(rows) > FEW_ROWS)]
    rng = np.random.default_rng(0)
    n_groups = len(rows) if rows.group is None else len(np.unique(rows.group))
    n_chains = min(max(rule.n_chains, N_PILOTS), n_groups)
    fold = folds(likelihood.order, rows.group, n_chains, rng)
    roles = [roles_of(fold == chain, likelihood.order, rows.group, rng) for chain in range(n_chains)]
    own = {chain: drawn_columns(table.codes.shape[1], either, chain) for chain in range(n_chains)}

    def run(
        of: CodedTable, chains: range, columns: Mapping[int, NDArray[np.int32]], share: float
    ) -> list[tuple[FloatArray, FloatArray]]:
        """For each chain the losses of the rows that it leaves out, and (n_columns,) its gains."""
        booster = _kernels.booster(
            codes=np.ascontiguousarray(of.codes), n_codes=of.n_codes, has_missing=of.has_missing,
            y=np.ascontiguousarray(likelihood.y, dtype=np.float64), weight=rows.weight, exposure=likelihood.exposure,
            n_classes=likelihood.n_classes, loss=likelihood.loss,
            points=None if of.points is None else np.concatenate(of.points),
        )  # fmt: skip
        options = rule.kernel_options(rule.split_prior or SPLIT_PRIORS[0], share)

        def one(chain: int) -> tuple[FloatArray, FloatArray]:
            role = roles[chain]
            found = booster.run(role=role.astype(np.uint8), columns=columns[chain], seed=chain, **options)
            left_out = role == Role.LEFT_OUT
            own = likelihood.at(left_out)
            losses = own.losses(np.asarray(found["aside"][left_out[role != Role.TRAINS]])) - own.least_losses()
            return losses, gains_of(found, len(of.n_codes))

        try:
            return list(pool.map(one, chains))
        except BaseException:
            booster.stop()  # before the pool waits for chains that still run
            raise

    of_row = np.ones(len(rows)) if rows.weight is None else rows.weight
    weight = np.concatenate([of_row[fold == chain] for chain in range(n_chains)])
    before: list[list[tuple[FloatArray, FloatArray]]] = [[] for _ in shares]
    after: list[tuple[FloatArray, FloatArray]] = []
    with ThreadPoolExecutor(n_jobs) as pool:
        for some in (range(N_PILOTS), range(N_PILOTS, n_chains)):
            for found, share in zip(before, shares, strict=True):
                found += run(table, some, own, share)
            wide, more = widen([gains for _, gains in before[0][some.start :]])
            columns = [np.concatenate([own[k], rest]) for k, rest in zip(some, more, strict=True)]
            after += run(wide, some, dict(zip(some, columns, strict=True)), shares[0])
            *each, second = (np.concatenate([losses for losses, _ in found]) for found in (*before, after))
            of_losses = weight[: len(second)]
            first = min(each, key=lambda losses: float(of_losses @ losses))
            if not of_losses @ (first - second) > 0.0:
                return None
    usual = 2.0 * np.average(first, weights=weight)
    gain = weight * (np.log1p(first / usual) - np.log1p(second / usual))
    return [gains for _, gains in after] if clearly_gain(gain, n_groups / len(rows)) else None
