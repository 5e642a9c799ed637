"""Base class of forests and single trees: parameters of growing."""

from __future__ import annotations

from typing import Any

from everytree.base.checks import is_auto
from everytree.fitting.structures.grown import GrownStructure
from everytree.fitting.structures.imported import ImportedStructure
from everytree.structure.growers import Growth


def growth_of(model: Any, **options: Any) -> Growth:
    """The settings of growing that all of these estimators have, and others."""
    deepest, most = (None if value is None else int(value) for value in (model.max_depth, model.max_leaf_nodes))
    fewest = 1 if is_auto(model.min_samples_leaf) else model.min_samples_leaf
    return Growth(
        max_depth=deepest, min_samples_leaf=int(fewest) if fewest >= 1 else fewest, criterion=model.criterion,
        max_leaf_nodes=most, **options,
    )  # fmt: skip


def structure_or_imported(model: Any, own: GrownStructure) -> GrownStructure:
    """The structure whose trees are grown here, or the trees that were imported instead."""
    if model.structures_ is None:
        return own
    return ImportedStructure(own.n_structures, own.random_state, own.weights, own.sharpen, model.structures_)
