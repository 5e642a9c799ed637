"""From codes and targets to a forest: grow structures, count all rows in each, choose the priors, set the weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from everytree.families.base import FloatArray
from everytree.forest import Forest
from everytree.metatree import MetaTree
from everytree.posterior import Posterior
from everytree.stacking import stacking_weights
from everytree.structure.growers import Grown
from everytree.tuning import SCORED_PAIRS, SCORED_ROWS, Choice, HeldOut, Search, choose, start_family

Weights = Literal["uniform", "evidence", "stacking"]


@dataclass(frozen=True)
class Rows:
    """The rows of a fit.

    Attributes
    ----------
    codes : (n_rows, n_features) uint8 or uint16
    y : (n_rows,)
    weight : (n_rows,) float64 or None
    row_data : mapping
        What the family wants to know besides, one entry a row.
    """

    codes: NDArray[Any]
    y: NDArray[Any]
    weight: FloatArray | None = None
    row_data: Mapping[str, NDArray[Any]] = field(default_factory=dict)

    def at(self, rows: NDArray[Any]) -> Rows:
        """Some of the rows."""
        weight = None if self.weight is None else self.weight[rows]
        return Rows(self.codes[rows], self.y[rows], weight, {name: v[rows] for name, v in self.row_data.items()})


def fit_forest(
    rows: Rows,
    grown: Sequence[Grown],
    search: Search,
    *,
    n_codes: NDArray[Any],
    weights: Weights = "uniform",
    sharpen: bool = True,
    rng: np.random.Generator,
    n_jobs: int = 1,
    progress: Callable[[], object] = lambda: None,
) -> tuple[Forest, Choice]:
    """A forest of these structures with statistics of all rows, its priors chosen by the rows a tree did not see."""
    statistics = count(rows, [one.tree for one in grown], search, n_jobs, progress)
    held = held_out(rows, grown, statistics, rng, n_jobs)
    choice = choose(search, held, sharpen=sharpen)
    posteriors = [
        Posterior._counted(one.tree, choice.family, choice.split_prior, *counted)
        for one, counted in zip(grown, statistics, strict=True)
    ]
    of_tree: Any = {"uniform": None, "evidence": "evidence", "stacking": None}[weights]
    if weights == "stacking":
        of_tree = stacking_weights(held, choice)
    return Forest(posteriors, weights=of_tree, sharpness=choice.sharpness, n_codes=n_codes), choice


def count(
    rows: Rows, trees: Sequence[MetaTree], search: Search, n_jobs: int, progress: Callable[[], object]
) -> list[tuple[FloatArray, int]]:
    """Statistics of all rows in each tree, and their number; they do not depend on any prior."""
    family = start_family(search)
    counted = []
    for tree in trees:
        post = Posterior(tree, family).update(rows.codes, rows.y, rows.weight, n_jobs=n_jobs, **rows.row_data)
        counted.append((post._arrays["statistics"], post.n_rows))
        progress()
    return counted


def held_out(
    rows: Rows,
    grown: Sequence[Grown],
    statistics: Sequence[tuple[FloatArray, int]],
    rng: np.random.Generator,
    n_jobs: int = 1,
) -> HeldOut:
    """The rows that each tree was not grown on; where every tree saw every row, all of them."""
    unseen = np.stack([~one.in_bag for one in grown])
    is_honest = bool(unseen.any())
    if not is_honest:
        unseen = np.ones_like(unseen)
    candidates = np.flatnonzero(unseen.any(axis=0))
    fewest, most = SCORED_ROWS
    by_pairs = int(SCORED_PAIRS / unseen[:, candidates].sum(axis=0).mean())
    n_scored = min(max(by_pairs, fewest), most) if rows.y.dtype.kind in "iu" else fewest
    scored = np.sort(rng.permutation(candidates)[:n_scored])
    some = rows.at(scored)
    asked = [np.flatnonzero(unseen[tree, scored]) for tree in range(len(grown))]
    ends = [
        one.tree.route(some.codes[which], n_jobs=n_jobs) if len(which) else np.empty(0, dtype=np.int32)
        for one, which in zip(grown, asked, strict=True)
    ]
    shuffled = rng.permutation(len(scored))  # any prefix of the scored rows is then a random part of them
    place = np.empty(len(scored), dtype=np.int64)
    place[shuffled] = np.arange(len(scored))
    some = some.at(shuffled)
    return HeldOut(
        [one.tree for one in grown],
        [of_tree for of_tree, _ in statistics],
        [place[which] for which in asked],
        ends,
        some.y,
        some.weight,
        some.row_data,
        n_jobs,
        is_honest,
    )
