"""Trees that are summed over exactly near the root and go on below as they were grown.

    few cut points -> regions at the last depth -> a tree on the rows of each -> priors -> temperature -> model

Each tree is grown on some of the rows of its region. The others, and every row of the leaves near the root, are
predicted without their own target: by them priors, temperature and sharpness are chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from everytree.base.arrays import FloatArray
from everytree.base.checks import resolve_n_jobs
from everytree.base.progress import Progress
from everytree.exact.continuations import Continuations, evidence_of_regions, evidences
from everytree.exact.continued import ContinuedForest
from everytree.exact.posterior import ExactPosterior
from everytree.exact.top_columns import TopColumns
from everytree.families.base import NativeFamily
from everytree.fitting.fit import Learnt, Settings
from everytree.fitting.grown_tree import with_statistics
from everytree.fitting.held_out import SCORED_PAIRS, SCORED_ROWS, HeldOut, companions
from everytree.fitting.scores import NoScores
from everytree.fitting.search import Choice, choose
from everytree.fitting.targets import Target
from everytree.fitting.top_scores import TopScores, score_temperatures
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.structure.draws import Draw
from everytree.structure.growers import GROWERS, Growth, n_looked_at
from everytree.structure.grown import Grown
from everytree.tables.schema import Schema
from everytree.trees.metatree import MetaTree

TEMPERATURES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""Powers of the evidence that are tried."""

TREES_PER_ROW = 200
"""Number of trees that say something about a row, at least: regions have more trees where few of them hold it."""

NOT_SCORED = NoScores("exact trees that go on below keep no scores of the rows that chose their temperature")

SHARE = 0.632
"""Share of the rows of a region that its tree is grown on, as many as a bootstrap sample has."""


@dataclass(frozen=True)
class Continuation:
    """How trees go on below the regions of an exact sum.

    Attributes
    ----------
    posterior : ExactPosterior
        Without rows: columns, depth and limits of the sum.
    columns : TopColumns
    temperature : float or "auto"
    random_state : int, RandomState or None
    """

    posterior: ExactPosterior
    columns: TopColumns
    temperature: float | Literal["auto"]
    random_state: Any

    def learn(self, rows: Rows, target: Target, schema: Schema, settings: Settings) -> Learnt:
        """Return the model of coded rows."""
        search, n_jobs = target.search(rows), resolve_n_jobs(settings.n_jobs)
        few, random = self.columns.read(rows.codes), check_random_state(self.random_state)
        placed = np.flatnonzero((few < np.array(self.columns.n_few)).all(axis=1))
        rows, few = rows.at(placed), few[placed]
        regions = self._regions(search.first_family, rows, few)
        n_each = _trees_per_region(regions, len(rows))
        regions = [region for region in regions for _ in range(n_each)]
        with Progress("growing", max(len(regions), 1), bool(settings.verbose)) as progress:
            grower = _RegionGrower(rows, target, schema, random.randint(np.iinfo(np.int32).max, size=len(regions)))
            grown = _on_threads(partial(grower.grow, regions, progress), len(regions), n_jobs)
        statistics = [_counted(one) for one in grown]
        scored = _scored_rows(rows, np.random.default_rng(random.randint(np.iinfo(np.int32).max)))
        held = _held(rows, regions, grown, statistics, scored, n_jobs)
        choice = choose(search, held.thinned(), sharpen=False, show=bool(settings.verbose))

        def below(number: int) -> Posterior:
            return Posterior.from_statistics(
                grown[number].tree, choice.family, choice.split_prior, statistics[number], len(regions[number])
            )

        posteriors = _on_threads(below, len(regions), n_jobs)
        log_evidence = evidences(posteriors, n_each)
        given = evidence_of_regions(log_evidence, 1.0)
        posterior = self._sum(choice.family, choice.split_prior, rows, few, lambda _: given)
        score, temperature, sharpness = self._temper(posterior, held, choice, rows, few, scored, log_evidence)
        choice = replace(choice, score=score, sharpness=sharpness)
        posterior = posterior.tempered(temperature, evidence_of_regions(log_evidence, temperature))
        trees = Continuations(posterior.continued, [one.tree for one in grown], choice.split_prior)
        model = ContinuedForest(posterior, self.columns, trees, posteriors, sharpness, rows)
        return Learnt(model, choice, unseen=NOT_SCORED)

    def _regions(self, family: NativeFamily, rows: Rows, few: NDArray[np.uint16]) -> list[NDArray[np.int64]]:
        """Return the rows of each region at the last depth."""
        regions: list[NDArray[np.int64]] = []

        def note(found: list[NDArray[np.int64]]) -> FloatArray:
            regions.extend(found)
            return np.zeros(len(found))

        self._sum(family, 0.5, rows, few, note)
        return regions

    def _sum(
        self, family: NativeFamily, split_prior: Any, rows: Rows, few: NDArray[np.uint16], continuation: Any
    ) -> ExactPosterior:
        """Return the sum over splits near the root with the evidence of the trees below."""
        like = self.posterior
        posterior = ExactPosterior(
            like.n_codes, family, like.max_depth, split_prior, candidates=like.candidates, kinds=like.kinds,
            truncation=like.target_truncation, max_regions=like.max_regions, n_jobs=like.n_jobs,
        )  # fmt: skip
        return posterior.fit(few, rows.y, rows.weight, continuation=continuation, **dict[str, Any](rows.row_data))

    def _temper(
        self,
        posterior: ExactPosterior,
        held: _Held,
        choice: Choice,
        rows: Rows,
        few: NDArray[np.uint16],
        scored: _Scored,
        log_evidence: FloatArray,
    ) -> tuple[float, float, float]:
        """Return score, temperature and sharpness, by rows that trees were not grown on."""
        temperatures = TEMPERATURES if self.temperature == "auto" else (float(self.temperature),)
        if not held.has_honest_rows:
            return choice.score, temperatures[-1], 1.0
        scores = TopScores(
            posterior, choice.family, rows, few, scored.rows, held.predictions(choice), log_evidence, choice.split_prior
        )
        tried = score_temperatures(scores, temperatures)
        best = max(range(len(tried)), key=lambda i: tried[i].score)
        return tried[best].score, temperatures[best], tried[best].sharpness


def _trees_per_region(regions: Sequence[NDArray[np.int64]], n_rows: int) -> int:
    """As many that `TREES_PER_ROW` trees hold a row on average; one where more regions than that do."""
    n_regions_a_row = sum(map(len, regions)) / max(n_rows, 1)
    return max(1, int(np.ceil(TREES_PER_ROW / max(n_regions_a_row, 1.0))))


def _on_threads(one: Any, n: int, n_jobs: int) -> list[Any]:
    if n_jobs == 1 or n < 2:
        return [one(number) for number in range(n)]
    with ThreadPoolExecutor(n_jobs) as pool:
        return list(pool.map(one, range(n)))


def _counted(one: Grown) -> FloatArray:
    assert one.statistics is not None, "trees are counted as they are grown"
    return one.statistics


class _RegionGrower:
    """Grows a tree on some of the rows of a region."""

    def __init__(self, rows: Rows, target: Target, schema: Schema, seeds: NDArray[Any]) -> None:
        grow_on = target.grow_on(rows)
        family = target.counted_by(rows)
        assert family is not None, "one target is counted as its trees are grown"
        self._rows, self._family, self._schema, self._seeds = rows, family, schema, seeds
        self._recipes = GROWERS["mixed"][grow_on.is_classification]
        has_missing = np.array([column.has_missing for column in schema.columns])
        self._kernel = grow_on.grower(
            codes=np.ascontiguousarray(rows.codes), n_codes=schema.n_codes.astype(np.int32), has_missing=has_missing
        )

    def grow(self, regions: Sequence[NDArray[np.int64]], progress: Progress, number: int) -> Grown:
        """The tree of one region; `in_bag` is of the rows of the region."""
        own = self._rows.at(regions[number])
        group = None if own.group is None else np.unique(own.group, return_inverse=True)[1]
        in_bag = Draw(int(self._seeds[number]), SHARE).times(len(own), group) > 0
        splitter, max_features = self._recipes[number % len(self._recipes)]
        width = own.codes.shape[1]
        *arrays, terminal = self._kernel.grow(
            sample=regions[number][in_bag], seed=int(self._seeds[number]), random_splits=splitter == "random",
            max_features=n_looked_at(max_features, width), min_samples_leaf=1, max_depth=0, max_leaf_nodes=0,
        )  # fmt: skip
        names = ("feature", "first_child", "n_children", "threshold", "missing_child")
        tree = MetaTree.from_trusted_arrays(dict(zip(names, arrays, strict=True)), width)
        grown = with_statistics(own, self._family, self._schema, Growth(), tree, in_bag, terminal)
        progress.step()
        return grown


@dataclass(frozen=True)
class _Scored:
    """Rows that are predicted, and the other rows of their groups, which are left out with them."""

    rows: NDArray[np.int64]
    involved: NDArray[np.int64]


def _scored_rows(rows: Rows, rng: np.random.Generator) -> _Scored:
    chosen = rng.permutation(len(rows))[: SCORED_ROWS[0]]
    return _Scored(chosen, np.concatenate([chosen, companions(chosen, rows.group)]))


@dataclass(frozen=True)
class _Held:
    """The scored rows in the trees of their regions.

    Attributes
    ----------
    all : HeldOut
        Every tree with the scored rows of its region.
    honest : list of bool arrays
        For each tree, which of these rows it was not grown on.
    """

    all: HeldOut
    honest: list[NDArray[np.bool_]]

    @property
    def has_honest_rows(self) -> bool:
        return any(own.any() for own in self.honest)

    def thinned(self) -> HeldOut:
        """Some of the trees with the rows that they were not grown on: enough to compare priors."""
        n_pairs = sum(int(own.sum()) for own in self.honest)
        step = max(1, n_pairs // SCORED_PAIRS)
        some = range(0, len(self.honest), step)
        taken = [self.all.taken[tree][self.honest[tree]] for tree in some]
        ends = [self.all.ends[tree][self.honest[tree]] for tree in some]
        trees, statistics = [self.all.trees[tree] for tree in some], [self.all.statistics[tree] for tree in some]
        return replace(
            self.all, trees=trees, statistics=statistics, taken=taken, ends=ends, is_honest=self.has_honest_rows
        )

    def predictions(self, choice: Choice) -> list[tuple[NDArray[np.int64], FloatArray, NDArray[np.bool_]]]:
        """For each tree: scored rows of its region, class probabilities or log densities without them, and honesty."""
        found: list[Any] = [None] * len(self.honest)
        n_scored = self.all.n_scored
        for tree, rows, values in self.all.predict_each(choice.family, choice.split_prior):
            is_scored = self.all.taken[tree] < n_scored
            found[tree] = rows, values, self.honest[tree][is_scored]
        nothing = np.empty(0, dtype=np.int64), np.empty((0, 1)), np.empty(0, dtype=bool)
        return [nothing if one is None else one for one in found]


def _held(
    rows: Rows,
    regions: Sequence[NDArray[np.int64]],
    grown: Sequence[Grown],
    statistics: Sequence[FloatArray],
    scored: _Scored,
    n_jobs: int,
) -> _Held:
    """Find the scored rows and their companions in every region."""
    some = rows.at(scored.involved)
    place = np.full(len(rows), -1, dtype=np.int64)
    place[scored.involved] = np.arange(len(scored.involved))
    taken, ends, honest = [], [], []
    for region, one in zip(regions, grown, strict=True):
        here = np.flatnonzero(place[region] >= 0)
        if some.group is not None:
            here = here[np.argsort(rows.group[region[here]], kind="stable")]  # type: ignore[index]
        taken.append(place[region[here]])
        honest.append(~one.in_bag[here])
        ends.append(one.tree.route(rows.codes[region[here]], n_jobs=1) if len(here) else np.empty(0, dtype=np.int32))
    held = HeldOut(
        [one.tree for one in grown], list(statistics), taken, ends, some.y, some.weight, some.row_data, some.group,
        n_scored=len(scored.rows), n_jobs=n_jobs,
    )  # fmt: skip
    return _Held(held, honest)
