"""Trees grown on codes, with multiway splits where they win evidence, and with the statistics of all rows."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.checks import resolve_n_jobs
from everytree.base.progress import Progress
from everytree.families.base import NativeFamily
from everytree.fitting.given import Settings
from everytree.fitting.targets.several import MultiTarget
from everytree.fitting.targets.target import GrowthTarget, Target
from everytree.posterior.counts import count_placed
from everytree.posterior.rows import Rows
from everytree.structure.given_forest import grow_as_given
from everytree.structure.grow_on import Evidence
from everytree.structure.growers import ColumnsOf, Growth, grow
from everytree.structure.grown import Grown
from everytree.structure.multiway import with_multiway_splits
from everytree.tables.either import columns_of_one_tree, drawn_columns
from everytree.tables.schema import Schema
from everytree.trees.metatree import MetaTree


def grow_trees(
    rows: Rows,
    target: GrowthTarget,
    schema: Schema,
    settings: Settings,
    seeds: list[int],
    progress: Progress,
    growth: Growth,
    *,
    columns: ColumnsOf | None = None,
    first: int = 0,
    step: int = 1,
) -> list[Grown]:
    """Trees grown on the codes, with multiway splits where they win evidence, and with the statistics of all rows.

    Those before the `first` are not grown, and of those after it only every `step`-th. `columns` are those that each
    may split on; where it is not given, codes of the same categories are drawn from.
    """
    if isinstance(target, MultiTarget) and isinstance(growth.grower, str):
        return _grow_in_turn(rows, target, schema, settings, seeds, progress, growth, first)
    has_missing, n_jobs = schema.has_missing, resolve_n_jobs(settings.n_jobs)
    if not isinstance(growth.grower, str):
        used = columns_of_one_tree(schema.n_features, schema.either(len(rows)))
        return grow_as_given(
            rows.codes, target.grow_on(rows), growth.grower, has_missing, seeds[0], n_jobs, progress.step, used
        )
    family = target.counted_by(rows)
    assert family is not None, "several targets are grown on one by one"
    if growth.criterion == "evidence":
        assert isinstance(target, Target)
        grow_on: Any = evidence_of(*target.evidence_on(rows))
    else:
        grow_on = target.grow_on(rows, growth.criterion)
    return grow(
        rows.codes, grow_on, growth, len(seeds), n_codes=schema.n_codes, has_missing=has_missing, seeds=seeds,
        columns=columns or partial(drawn_columns, schema.n_features, schema.either(len(rows))),
        first=first, step=step, group=rows.group, n_jobs=n_jobs,
        finish=partial(_with_statistics, rows, family, schema, growth), progress=progress.step,
    )  # fmt: skip


def _grow_in_turn(
    rows: Rows,
    target: MultiTarget,
    schema: Schema,
    settings: Settings,
    seeds: list[int],
    progress: Progress,
    growth: Growth,
    first: int,
) -> list[Grown]:
    """Trees for several targets: the first follows the first target, the next one the next, and so on in turn."""
    n_targets = len(target.each)
    grown: dict[int, Grown] = {}
    for place, (own, own_rows) in enumerate(zip(target.each, target.rows_of(rows), strict=True)):
        numbers = range(first + (place - first) % n_targets, len(seeds), n_targets)
        trees = grow_trees(
            own_rows, own, schema, settings, seeds, progress, growth, first=numbers.start, step=n_targets
        )  # fmt: skip
        grown |= zip(numbers, (replace(tree, statistics=None) for tree in trees), strict=True)
    return [grown[number] for number in sorted(grown)]


def evidence_of(rows: Rows, family: NativeFamily) -> Evidence:
    """The rows as the leaf model sees them."""
    return Evidence(family, family.statistics(rows.y, rows.weight, **rows.row_data))


def _with_statistics(
    rows: Rows,
    family: NativeFamily,
    schema: Schema,
    growth: Growth,
    tree: MetaTree,
    in_bag: NDArray[np.bool_],
    terminal: NDArray[np.int32],
) -> Grown:
    """A grown tree with its multiway splits and its statistics; `terminal` is where the rows of its sample are."""
    others = ~in_bag
    is_nominal = np.array([column.kind == "categorical" and not column.pooled for column in schema.columns])
    if is_nominal.any():
        some, fewest = rows.at(in_bag), growth.min_samples_leaf
        wider = with_multiway_splits(
            tree, some.codes, some.y, some.weight, family, schema.n_codes, is_nominal,
            fewest if fewest >= 1 else fewest * len(some), **some.row_data,
        )  # fmt: skip
        if wider is not tree and wider.n_terminals <= (growth.max_leaf_nodes or np.inf):
            tree, others = wider, np.ones(len(rows), dtype=bool)
    ends = np.empty(len(rows), dtype=np.int32)
    ends[in_bag] = terminal
    if others.any():
        ends[others] = tree.route(rows.codes[others], n_jobs=1)
    return Grown(tree, in_bag, count_placed(tree, family, ends, rows))
