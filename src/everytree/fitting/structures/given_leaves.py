"""Leaf priors and kinds of splits, shared by exact sums and samples of structures."""

from __future__ import annotations

import warnings
from dataclasses import replace

from everytree.exact.regions import MAX_CATEGORIES, Kind
from everytree.families.base import NativeFamily
from everytree.fitting.given import Settings
from everytree.fitting.structures.tree import N_FOLDS, TreeStructure
from everytree.fitting.targets.numbers import NumberTarget
from everytree.fitting.targets.target import Target
from everytree.posterior.rows import Rows
from everytree.structure.growers import Growth
from everytree.tables.schema import Schema


def given_family(rows: Rows, target: Target, schema: Schema, settings: Settings, max_depth: int | None) -> NativeFamily:
    """The leaf model where no priors are tried.

    If all leaves have one noise, it is the one by which a tree that is grown to this depth best predicts rows that it
    has not seen: with one that is too small every interval would be too narrow.
    """
    family, search = target.fixed_family(rows), target.search(rows)
    if not family.has_one_noise or not search.is_searched("noise"):
        return family
    structure = TreeStructure(1 + N_FOLDS, 0, "uniform", False, Growth(max_depth=max_depth))
    auto = replace(target, split_prior="auto") if isinstance(target, NumberTarget) else target
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the tree, which nobody sees
        quiet = replace(settings, verbose=0)
        learnt = structure.fit(rows, auto, schema, quiet)
    assert learnt.choice is not None, "the priors of a grown tree are chosen"
    found: NativeFamily = search.family({**search.start, "noise": learnt.choice.parameters["noise"]})
    return found


def kinds_of_splits(schema: Schema) -> list[Kind]:
    """Numbers are asked by thresholds, categories all at once; pools and too many of these by thresholds on codes."""
    most = MAX_CATEGORIES - 1  # missing is one more
    return [
        "multiway" if column.kind == "categorical" and not column.pooled and column.n_codes <= most else "ordered"
        for column in schema.columns
    ]
