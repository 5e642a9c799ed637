"""Trees that were grown, and where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from everytree.posterior.rows import Rows
from everytree.structure.draws import Draw
from everytree.structure.grown import Grown

Weights = Literal["uniform", "tempered", "stacking", "evidence"]


@dataclass(frozen=True)
class GrownTrees:
    """Trees that are there before their priors are chosen."""

    rows: Rows  # with the groups of rows that are left out together
    kept: Sequence[Grown]  # the structures of the forest
    judged: Sequence[Grown]  # the structures by which priors are chosen: those that are kept, or stand-ins for them
    weights: Weights  # of the trees; see `MetaForestClassifier`
    sharpen: bool  # whether the average of the trees is sharpened
    rng: np.random.Generator  # numpy.random.Generator: draws the held-out rows
    predict_out_of_bag: bool = False  # whether every row is predicted by the trees that were not grown on it


@dataclass(frozen=True)
class Origin:
    """Where the trees of a forest come from, so that a later fit to the same rows can keep them."""

    rows: str  # digest of the rows
    draws: tuple[Draw, ...]  # how the rows of each tree were drawn

    @classmethod
    def of(cls, grown: GrownTrees) -> Origin | None:
        """None where the trees were not grown here."""
        draws = tuple(one.draw for one in grown.kept if one.draw is not None)
        return cls(digest_with_groups(grown.rows), draws) if len(draws) == len(grown.kept) else None


def digest_with_groups(rows: Rows) -> str:
    """Hash that identifies rows and their groups."""
    besides = {} if rows.group is None else {"groups": rows.group}
    return replace(rows, row_data={**rows.row_data, **besides}).digest()
