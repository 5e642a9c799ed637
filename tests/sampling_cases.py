"""Small tables whose structures can be listed, and chains of the kernel over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import chi2, rankdata

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


# ---- agreement of chains --------------------------------------------------------------------------------------------


def rhat(draws: np.ndarray) -> float:
    """Vehtari et al. (2021): of ranks, and of ranks of distances from the median; the larger one."""
    n = draws.shape[1] // 2
    halves = np.array([half for chain in draws for half in (chain[:n], chain[-n:])])

    def plain(values: np.ndarray) -> float:
        z = ndtri((rankdata(values).reshape(values.shape) - 3 / 8) / (values.size + 1 / 4))
        within = np.mean([np.var(chain, ddof=1) for chain in z])
        between = n * np.var([chain.mean() for chain in z], ddof=1)
        return float(np.sqrt(((n - 1) / n * within + between / n) / within))

    return max(plain(halves), plain(np.abs(halves - np.median(halves))))


def ess(draws: np.ndarray) -> float:
    """Geyer's initial monotone sequence of autocorrelations, lag by lag."""
    n = draws.shape[1] // 2
    halves = [half for chain in draws for half in (chain[:n], chain[-n:])]
    m = len(halves)
    cov = [np.mean([((c[: n - lag] - c.mean()) * (c[lag:] - c.mean())).sum() / n for c in halves]) for lag in range(n)]
    within = cov[0] * n / (n - 1)
    total = within * (n - 1) / n + np.var([chain.mean() for chain in halves], ddof=1)
    rho = [1.0 - (within - one * n / (n - 1)) / total for one in cov]
    pairs: list[float] = []
    for lag in range(0, 2 * (n // 2), 2):
        pair = rho[lag] + rho[lag + 1]
        if pair < 0.0 and pairs:
            break
        pairs.append(min(pair, pairs[-1]) if pairs else pair)
    tau = max(2.0 * sum(pairs) - 1.0, 1.0 / np.log10(m * n))
    return float(min(m * n / tau, draws.size * np.log10(draws.size)))


def traced(sampler: et.StructureSampler) -> list[np.ndarray]:
    """Numbers of every draw by which chains are compared: the evidence, the leaves, and the use of each column."""
    draws = sampler.draws
    used = [draws.used[:, :, column] for column in np.flatnonzero(np.ptp(draws.used, axis=(0, 1)) > 0.0)]
    return [draws.log_evidence, draws.n_leaves, *used]


def errors_of_use(sampler: et.StructureSampler) -> np.ndarray:
    """Monte Carlo standard error of the probability that each column is used."""
    each = np.moveaxis(sampler.draws.used, 2, 0)
    return np.array([used.std() / np.sqrt(ess(used)) if np.ptp(used) > 0.0 else 0.0 for used in each])


def look_ahead_one_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """Samplers whose blocks have one level, so that moves of single nodes matter."""
    monkeypatch.setattr("everytree.sampling.sampler.BLOCK_DEPTH", 1)
    monkeypatch.setattr(et.StructureSampler, "_sum_top", lambda self, engine, steps: engine.sum_top(steps, 2**28, 1, 1))
