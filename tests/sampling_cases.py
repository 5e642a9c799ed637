"""Small tables whose structures can be listed, and chains of the kernel over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import chi2

import everytree as et
from cases import rng_for
from everytree import _kernels
from everytree.exact.regions import KINDS, Kind
from everytree.sampling.points import DistinctRows
from naive_sampling import AllStructures, Key

BERNOULLI = et.Bernoulli(0.5, 0.5)


@dataclass(frozen=True)
class Small:
    """A table with all structures to a depth; the target depends on the first column."""

    name: str
    n_codes: tuple[int, ...]
    kinds: tuple[Kind, ...]
    max_depth: int
    split_prior: float = 0.6
    candidates: str = "all"
    summed_depth: int = 9
    n_rows: int = 10

    def __str__(self) -> str:
        return self.name

    @cached_property
    def table(self) -> tuple[np.ndarray, np.ndarray]:
        rng = rng_for("small table", self.name)
        X = rng.integers(0, self.n_codes, (self.n_rows, len(self.n_codes)))
        return X, ((X[:, 0] > 0) ^ (rng.random(self.n_rows) < 0.25)).astype(int)

    def every(self, power: float = 1.0) -> AllStructures:
        return AllStructures(
            *self.table, self.n_codes, self.kinds, BERNOULLI, self.max_depth, self.split_prior, self.candidates,
            self.summed_depth, power,
        )  # fmt: skip

    def engine(
        self, n_chains: int, powers: Sequence[float] = (1.0,), block_depth: int = 1, **changes: Any
    ) -> _kernels.Sampler:
        rows = DistinctRows.read(BERNOULLI, self.n_codes, *self.table, None, {})
        g = self.split_prior
        return _kernels.make_sampler(**{
            "name": BERNOULLI.kernel, "size": BERNOULLI.size, "prior": BERNOULLI.kernel_prior, "codes": rows.codes,
            "n_codes": list(self.n_codes), "kinds": [KINDS.index(kind) for kind in self.kinds],
            "statistics": rows.statistics, "log_split": [np.log(g)] * self.max_depth,
            "log_stop": [np.log1p(-g)] * self.max_depth, "summed_depth": self.summed_depth,
            "only_nontrivial": self.candidates == "nontrivial", "block_depth": block_depth, "max_block_cost": 1e9,
            "powers": list(powers), "seeds": list(range(n_chains)), **changes,
        })  # fmt: skip


def put(engine: _kernels.Sampler, chain: int, structures: Sequence[Key], seed: int, n_draws: int = 0) -> None:
    """Set the replicas of a chain, one structure for each power."""
    splits = [split for key in structures for split in key]
    engine.restore(
        chain=chain, random=seed, n_draws=n_draws, sizes=np.array([len(key) for key in structures], dtype=np.int64),
        columns=np.array([column for column, _ in splits], dtype=np.int32),
        codes=np.array([code for _, code in splits], dtype=np.int32),
    )  # fmt: skip


def structures(engine: _kernels.Sampler) -> list[list[Key]]:
    """Of every chain the structure at each power."""
    found = []
    for state in engine.state():
        splits = list(zip(state["columns"].tolist(), state["codes"].tolist(), strict=True))
        ends = np.cumsum(state["sizes"])
        found.append([tuple(splits[end - size : end]) for size, end in zip(state["sizes"], ends, strict=True)])
    return found


def drawn_exactly(every: AllStructures, n: int, rng: np.random.Generator) -> list[Key]:
    """So many structures from the list of all of them, by their probabilities."""
    keys = list(every.prob)
    return [keys[i] for i in rng.choice(len(keys), n, p=np.array(list(every.prob.values())))]


def p_value_of_symmetry(pairs: Sequence[tuple[Any, Any]]) -> float:
    """Whether as many pairs go one way as the other (Bowker); pairs of kinds that are rare count together."""
    counts: dict[tuple[Any, Any], int] = {}
    for pair in pairs:
        counts[pair] = counts.get(pair, 0) + 1
    statistic, n_pairs, rare = 0.0, 0, np.zeros(2)
    for before, after in {tuple(sorted(pair)) for pair in counts if pair[0] != pair[1]}:
        there, back = counts.get((before, after), 0), counts.get((after, before), 0)
        if there + back < 10:
            rare += there, back
            continue
        statistic += (there - back) ** 2 / (there + back)
        n_pairs += 1
    if rare.sum() >= 10:
        statistic += (rare[0] - rare[1]) ** 2 / rare.sum()
        n_pairs += 1
    assert n_pairs > 0, "nothing has moved often enough"
    return float(chi2.sf(statistic, n_pairs))
