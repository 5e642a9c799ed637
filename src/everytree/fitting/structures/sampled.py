"""Structures that are drawn from their posterior, each with the same weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.randomness import random_generator
from everytree.exact.regions import Kind
from everytree.families.base import NativeFamily
from everytree.fitting.given import GivenRows, Settings
from everytree.fitting.held_out.scores import NoScores
from everytree.fitting.held_out.search import Choice
from everytree.fitting.structures.given_leaves import given_family, kinds_of_splits
from everytree.fitting.structures.structure import Learnt, fit_schema
from everytree.fitting.targets.target import Target
from everytree.models.average import AverageModel
from everytree.posterior.forest import Forest
from everytree.posterior.posterior import Posterior
from everytree.posterior.rows import Rows
from everytree.sampling.sampler import StructureSampler
from everytree.tables.column import missing_code
from everytree.tables.repeats import row_groups
from everytree.tables.schema import Schema
from everytree.trees.metatree import MetaTree

TEMPERATURES = (1.0, 0.3, 0.1)
"""Powers of the evidence that "auto" compares."""

MIN_ROWS = 40
"""Rows below which "auto" is 1: too few to leave any out."""

N_TEMPERATURES = 5
"""Powers at which chains run: fewer than for the evidence, which is not estimated here."""

SHARE_JUDGED = 0.25
"""Share of the groups of rows that "auto" leaves out to compare temperatures; rows that repeat others are a group."""


@dataclass(frozen=True)
class SampledStructure:
    """Structures drawn by `StructureSampler`."""

    max_depth: int | None  # as in `SampledTreeClassifier`
    n_draws: int
    n_chains: int
    n_structures: int
    temperature: float | Literal["auto"]
    split_prior: Any
    candidates: Any
    random_state: Any

    def schema(
        self, given: GivenRows, target: Target, y: NDArray[Any], weight: FloatArray | None, settings: Settings
    ) -> Schema:
        return fit_schema(given, target, y, weight, settings, max_bins=settings.max_bins, at_once=True)

    def fit(self, rows: Rows, target: Target, schema: Schema, settings: Settings) -> Learnt:
        """Draw structures given all rows that have a code in every column."""
        columns = SampledColumns.of(schema)
        placed = rows.at(np.flatnonzero(columns.is_placed(rows.codes)))
        family = given_family(rows, target, schema, settings, self.max_depth)
        seed = int(random_generator(self.random_state, "random_state").integers(2**31))
        temperature, score = self._choose(placed, family, columns, settings, seed)
        forest = self._forest(placed, family, columns, temperature, self.n_draws, settings, seed)
        chosen: dict[str, Any] = {"temperature": temperature}
        choice = Choice(family, self.split_prior, chosen, score)
        return Learnt(AverageModel(forest), choice, unseen=NoScores("its structures were drawn given all rows"))

    def _choose(
        self, rows: Rows, family: NativeFamily, columns: SampledColumns, settings: Settings, seed: int
    ) -> tuple[float, float]:
        """The temperature, and the mean log score of rows that were left out to choose it."""
        if not isinstance(self.temperature, str):
            return float(self.temperature), float("nan")
        group = row_groups(rows.codes, rows.group)
        group = np.arange(len(rows)) if group is None else group
        is_judge = np.random.default_rng(seed).random(int(group.max(initial=-1)) + 1) < SHARE_JUDGED
        judges = is_judge[group]
        if len(rows) < MIN_ROWS or not judges.any() or judges.all():
            return 1.0, float("nan")
        others, judged = rows.at(np.flatnonzero(~judges)), rows.at(np.flatnonzero(judges))
        n_draws = max(self.n_draws // 4, 10)
        scores = []
        for temperature in TEMPERATURES:
            forest = self._forest(others, family, columns, temperature, n_draws, settings, seed)
            row_data = dict[str, Any](judged.row_data)
            log_prob = forest.predictive(judged.codes, **row_data).log_prob(judged.y)
            scores.append(float(np.average(log_prob, weights=judged.weight)))
        best = int(np.argmax(scores))
        return TEMPERATURES[best], scores[best]

    def _forest(
        self,
        rows: Rows,
        family: NativeFamily,
        columns: SampledColumns,
        temperature: float,
        n_draws: int,
        settings: Settings,
        seed: int,
    ) -> Forest:
        thin = min(max(n_draws * self.n_chains // self.n_structures, 1), n_draws)
        sampler = StructureSampler(
            columns.n_codes, family, self.max_depth, self.split_prior, candidates=self.candidates,
            kinds=columns.kinds, temperature=temperature, n_chains=self.n_chains, n_temperatures=N_TEMPERATURES,
            random_state=seed, n_jobs=settings.n_jobs,
        ).fit(
            columns.read(rows.codes), rows.y, rows.weight, n_draws=n_draws, thin=thin,
            progress=bool(settings.verbose), **dict[str, Any](rows.row_data),
        )  # fmt: skip
        drawn = sampler.posterior
        return Forest([columns.in_schema(post) for post in drawn.posteriors], n_codes=columns.schema_codes)


@dataclass(frozen=True)
class SampledColumns:
    """Columns of a schema as the sampler reads them: missing is one more code where it occurred at fit."""

    schema_codes: NDArray[np.int64]  # (n_features,): codes of each column without the missing one
    has_missing: NDArray[np.bool_]  # (n_features,)
    kinds: Sequence[Kind]

    @classmethod
    def of(cls, schema: Schema) -> SampledColumns:
        return cls(schema.n_codes.astype(np.int64), schema.has_missing, kinds_of_splits(schema))

    @property
    def n_codes(self) -> list[int]:
        return [max(int(n), 1) for n in self.schema_codes + self.has_missing]

    def is_placed(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """(n_rows,) whether every structure has a branch for each code of a row."""
        missing = codes == missing_code(codes.dtype)
        unknown = (~missing & (codes >= self.schema_codes)) | (missing & ~self.has_missing)
        unknown[:, np.array(self.n_codes) == 1] = False  # never split on
        return np.asarray(~unknown.any(axis=1))

    def read(self, codes: NDArray[Any]) -> NDArray[np.uint16]:
        """Codes of the schema as the sampler reads them."""
        wide = codes.astype(np.uint16)
        missing = (codes == missing_code(codes.dtype)) & self.has_missing
        wide[missing] = np.broadcast_to(self.schema_codes, codes.shape)[missing]
        wide[:, np.array(self.n_codes) == 1] = 0
        return wide

    def in_schema(self, post: Posterior) -> Posterior:
        """Convert a posterior to codes of the schema: the missing code has a branch of its own."""
        tree = post.tree
        inner = tree.n_children > 0
        asks_missing = np.zeros(tree.n_nodes, dtype=bool)
        asks_missing[inner] = self.has_missing[tree.feature[inner]]
        # It is the highest code, so the last child has it, whether a split is at a threshold or into all categories.
        missing_child = np.where(asks_missing, tree.n_children - 1, -1)
        named = MetaTree.from_arrays(
            tree.feature, tree.first_child, tree.n_children, tree.threshold, missing_child=missing_child,
            n_features=len(self.schema_codes),
        )  # fmt: skip
        return Posterior.from_statistics(named, post.family, post.split_prior, post.statistics, post.n_rows)
