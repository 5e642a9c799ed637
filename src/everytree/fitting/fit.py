"""From codes and targets to a forest: grow structures, count all rows in each, choose the priors, set the weights."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.families.prior_search import Search
from everytree.fitting.search import SCORED_PAIRS, SCORED_ROWS, Choice, HeldOut, choose
from everytree.fitting.stacking import stacking_weights
from everytree.posterior.forest import Forest
from everytree.posterior.posterior import Posterior
from everytree.structure.growers import Grown
from everytree.trees.metatree import MetaTree

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
    group : (n_rows,) int64 or None
        Numbers from 0 on, equal for rows that belong together; None where each row stands alone.
    """

    codes: NDArray[Any]
    y: NDArray[Any]
    weight: FloatArray | None = None
    row_data: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    group: NDArray[np.int64] | None = None

    def at(self, rows: NDArray[Any]) -> Rows:
        """Some of the rows."""
        weight, group = (None if column is None else column[rows] for column in (self.weight, self.group))
        row_data = {name: column[rows] for name, column in self.row_data.items()}
        return Rows(self.codes[rows], self.y[rows], weight, row_data, group)

    def digest(self) -> str:
        """By which these rows in this order are recognised, and from which none of them can be read."""
        found = hashlib.blake2b(digest_size=16)
        columns = {"codes": self.codes, "y": self.y, "weight": self.weight, **self.row_data}
        for name in sorted(columns):
            if (column := columns[name]) is not None:
                found.update(f"{name} {column.shape} {column.dtype.str} ".encode())
                found.update(np.ascontiguousarray(column).tobytes())
        return found.hexdigest()


def fit_forest(
    rows: Rows,
    kept: Sequence[Grown],
    judged: Sequence[Grown],
    search: Search,
    *,
    n_codes: NDArray[Any],
    weights: Weights = "uniform",
    sharpen: bool = True,
    rng: np.random.Generator,
    n_jobs: int = 1,
    progress: Callable[[], object] = lambda: None,
) -> tuple[Forest, Choice]:
    """A forest of the structures to keep, with statistics of all rows.

    Its priors are chosen by rows that the structures `judged` were not grown on. Where these are the ones to keep, all
    rows count in them, as in the forest. Where they are stand-ins, each grown without some of the rows for one that is
    grown on all of them, only the rows that grew them count, as in what they stand for.
    """
    stand_in = judged is not kept
    statistics = [
        count(rows.at(one.in_bag) if stand_in else rows, one.tree, search, n_jobs, progress) for one in judged
    ]
    held = held_out(rows, judged, statistics, rng, n_jobs, is_counted=not stand_in)
    choice = choose(search, held, sharpen=sharpen)
    if stand_in:
        statistics = [count(rows, one.tree, search, n_jobs, progress) for one in kept]
    posteriors = [
        Posterior._counted(one.tree, choice.family, choice.split_prior, *counted)
        for one, counted in zip(kept, statistics, strict=True)
    ]
    of_tree: Any = {"uniform": None, "evidence": "evidence", "stacking": None}[weights]
    if weights == "stacking":
        of_tree = stacking_weights(held, choice)
    return Forest(posteriors, weights=of_tree, sharpness=choice.sharpness, n_codes=n_codes), choice


def count(
    rows: Rows, tree: MetaTree, search: Search, n_jobs: int, progress: Callable[[], object]
) -> tuple[FloatArray, int]:
    """Statistics of the rows in a tree, and their number; they do not depend on any prior."""
    post = Posterior(tree, search.first_family)
    post.update(rows.codes, rows.y, rows.weight, n_jobs=n_jobs, **rows.row_data)
    progress()
    return post._arrays["statistics"], post.n_rows


def held_out(
    rows: Rows,
    grown: Sequence[Grown],
    statistics: Sequence[tuple[FloatArray, int]],
    rng: np.random.Generator,
    n_jobs: int = 1,
    *,
    is_counted: bool = True,
) -> HeldOut:
    """The rows that each tree was not grown on, nor on others of their groups; else, if it saw every row, all of them.

    `is_counted` says whether these rows are in the statistics.
    """
    unseen = np.stack([~_with_companions(one.in_bag, rows.group) for one in grown])
    is_honest = bool(unseen.any())
    if not is_honest:
        unseen = np.ones_like(unseen)
    candidates = np.flatnonzero(unseen.any(axis=0))
    fewest, most = SCORED_ROWS
    by_pairs = int(SCORED_PAIRS / unseen[:, candidates].sum(axis=0).mean())
    n_scored = min(max(by_pairs, fewest), most) if rows.y.dtype.kind in "iu" else fewest
    scored = rng.permutation(candidates)[:n_scored]  # any prefix of the scored rows is a random part of them
    involved = np.concatenate([scored, _companions(scored, rows.group)])
    some = rows.at(involved)
    by_group = np.arange(len(involved)) if some.group is None else np.argsort(some.group, kind="stable")
    taken = [by_group[unseen[tree, involved[by_group]]] for tree in range(len(grown))]
    ends = [
        one.tree.route(some.codes[which], n_jobs=n_jobs) if len(which) else np.empty(0, dtype=np.int32)
        for one, which in zip(grown, taken, strict=True)
    ]
    return HeldOut(
        [one.tree for one in grown], [of_tree for of_tree, _ in statistics], taken, ends, some.y, some.weight,
        some.row_data, some.group, len(scored), is_counted or not is_honest, n_jobs, is_honest,
    )  # fmt: skip


def _with_companions(in_bag: NDArray[np.bool_], group: NDArray[np.int64] | None) -> NDArray[np.bool_]:
    """Rows of a sample, and all others of their groups."""
    if group is None:
        return in_bag
    is_seen = np.zeros(int(group.max()) + 1, dtype=bool)
    is_seen[group[in_bag]] = True
    return is_seen[group]


def _companions(rows: NDArray[np.int64], group: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """The other rows of the groups of these."""
    if group is None:
        return np.empty(0, dtype=np.int64)
    others = np.zeros(len(group), dtype=bool)
    others[rows] = True
    companions = _with_companions(others, group) & ~others
    return np.flatnonzero(companions)
