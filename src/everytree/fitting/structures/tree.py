"""One tree, grown on all rows."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.checks import resolve_n_jobs
from everytree.base.progress import Progress
from everytree.fitting.given import Settings
from everytree.fitting.structures.growing import grow_trees
from everytree.fitting.structures.grown import GrownStructure
from everytree.fitting.targets.several import MultiTarget
from everytree.fitting.targets.target import GrowthTarget
from everytree.posterior.rows import Rows
from everytree.structure.given_forest import tree_for_several
from everytree.structure.growers import Growth
from everytree.structure.grown import Grown
from everytree.tables.either import columns_of_one_tree
from everytree.tables.schema import Schema

N_FOLDS = 5

MAX_FOLD_ROWS = 10_000
"""Rows in all held-out folds, at most: enough to choose priors; of longer tables some folds are skipped."""


@dataclass(frozen=True)
class TreeStructure(GrownStructure):
    """One tree, grown on all rows; its priors are chosen by trees that are each grown without a fifth of them.

    There are five such trees, or so many that 10,000 rows are left out by one of them. One tree for several targets is
    grown by scikit-learn, whose criterion is the mean over the targets.
    """

    growth: Growth

    def kept_and_judged(
        self, rows: Rows, target: GrowthTarget, schema: Schema, settings: Settings, seeds: list[int]
    ) -> tuple[list[Grown], list[Grown]]:
        group = np.arange(len(rows)) if rows.group is None else rows.group
        n_groups = int(group.max()) + 1
        bags = [np.ones(len(rows), dtype=bool)]
        with Progress("growing", len(seeds), bool(settings.verbose)) as progress:
            if n_groups >= 2 * N_FOLDS:
                fold = np.random.default_rng(seeds[0]).permutation(n_groups)[group] % N_FOLDS
                n_folds = min(N_FOLDS, -(-MAX_FOLD_ROWS * N_FOLDS // len(rows)))
                bags += [fold != k for k in range(n_folds)]
                progress.step(N_FOLDS - n_folds)
            columns = columns_of_one_tree(schema.n_features, schema.either(len(rows)))
            one = partial(self._grow_one, rows, target, schema, settings, progress, columns)
            with ThreadPoolExecutor(resolve_n_jobs(settings.n_jobs)) as pool:
                kept, *folds = pool.map(one, bags, seeds[: len(bags)])
        return [kept], folds or [kept]

    def _grow_one(
        self, rows: Rows, target: GrowthTarget, schema: Schema, settings: Settings, progress: Progress,
        columns: NDArray[np.int32], in_bag: Any, seed: int,
    ) -> Grown:  # fmt: skip
        growth = replace(self.growth, grower="random_forest", max_features=None, subsample=1.0)
        if isinstance(target, MultiTarget):
            growth = replace(growth, grower=tree_for_several(growth, target.is_classification))
        (grown,) = grow_trees(
            rows.at(in_bag), target, schema, settings, [seed], progress, growth, columns=lambda seed: columns
        )  # fmt: skip
        return Grown(grown.tree, in_bag, grown.statistics)
