"""Frequencies of drawn structures against the list of all of them."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import product

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chisquare

import everytree as et
from cases import LONG, rng_for
from command import POSIX
from everytree import _kernels
from everytree.exact.regions import KINDS
from everytree.sampling.points import DistinctRows
from naive_sampling import AllStructures

MIXED = (("ordered", "ordered", "ordered"), ("ordered", "one_against_rest", "multiway"))


PLENTY = 1 << 30
"""Bytes that are enough for the sums of any table here."""


def kernel(
    rows, family, n_codes, kinds, max_depth, g, candidates, summed_depth, block_depth, seeds, powers=(0, 0.5, 1)
):
    return _kernels.make_sampler(
        name=family.kernel, size=family.size, prior=family.kernel_prior, codes=rows.codes, n_codes=n_codes,
        kinds=[KINDS.index(kind) for kind in kinds], statistics=rows.statistics, log_split=[np.log(g)] * max_depth,
        log_stop=[np.log1p(-g)] * max_depth, summed_depth=summed_depth, only_nontrivial=candidates == "nontrivial",
        block_depth=block_depth, max_block_cost=1e9, powers=powers, seeds=seeds,
    )  # fmt: skip


def drawn(engine, n_chains, n_times, **schedule):
    """Structures of the coldest replicas, some draws apart."""
    engine.begin(False, 1)
    found: Counter[tuple[tuple[int, int], ...]] = Counter()
    for _ in range(n_times):
        engine.run(thin=0, n_jobs=1, **schedule)
        for state in engine.state():
            first = int(state["sizes"][:-1].sum())
            found[tuple(zip(state["columns"][first:].tolist(), state["codes"][first:].tolist(), strict=True))] += 1
    assert found.total() == n_chains * n_times
    return found


def check_frequencies(found, prob):
    """A chi-square test of all structures that are expected at least ten times, and of the others together."""
    assert set(found) <= set(prob)
    keys = [key for key, p in prob.items() if p * found.total() >= 10.0]
    expected = np.array([prob[key] for key in keys] + [1.0 - sum(prob[key] for key in keys)])
    counts = np.array([found[key] for key in keys] + [found.total() - sum(found[key] for key in keys)])
    used = expected > 1e-9
    result = chisquare(counts[used], expected[used] / expected[used].sum() * counts[used].sum())
    assert result.pvalue > 1e-3, (result, len(keys))


SCHEDULES = {
    "single": ({"n_draws": 4, "n_single": 40, "n_blocks": 0}, 1, 0, 2),
    "exact blocks": ({"n_draws": 2, "n_single": 0, "n_blocks": 2}, 3, 0, 2),
    "shallow blocks": ({"n_draws": 4, "n_single": 0, "n_blocks": 4}, 1, 0, 2),
    "first level looked up": ({"n_draws": 2, "n_single": 0, "n_blocks": 4}, 1, 2, 3),
}
"""Proposals of a draw, depth of blocks, depth of the sums over the first levels, and maximum depth."""


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("summed_depth", [0, 1, 9])
@pytest.mark.parametrize("candidates", ["all", "nontrivial"])
@pytest.mark.parametrize("kinds", MIXED, ids=["ordered", "mixed"])
def test_structures_are_drawn_by_their_posterior(kinds, candidates, summed_depth, schedule):
    rng = rng_for("structures", kinds, candidates, summed_depth, schedule)
    steps, block_depth, top_depth, max_depth = SCHEDULES[schedule]
    n_codes = [3, 3, 3] if LONG and max_depth == 2 else [2, 3, 2]
    X = rng.integers(0, n_codes, (9, 3))
    y = ((X[:, 0] > 0) ^ (rng.random(9) < 0.3)).astype(int)
    family = et.Bernoulli(0.5, 0.5)
    every = AllStructures(X, y, n_codes, kinds, family, max_depth, 0.6, candidates, summed_depth)
    rows = DistinctRows.read(family, n_codes, X, y, None, {})
    n_chains = 20
    seeds = list(range(n_chains))
    engine = kernel(rows, family, n_codes, kinds, max_depth, 0.6, candidates, summed_depth, block_depth, seeds)
    engine.sum_top(1e9, PLENTY, top_depth, 1)
    assert engine.top_depth() == top_depth
    n_times = 10_000 if LONG else 100
    check_frequencies(drawn(engine, n_chains, n_times, **steps), every.prob)


@pytest.mark.slow
@pytest.mark.parametrize("top_depth", [0, 1, 2])
def test_a_million_draws(top_depth):
    rng = rng_for("a million", top_depth)
    n_codes, kinds = [3, 3, 3], MIXED[1]
    X = rng.integers(0, n_codes, (12, 3))
    y = ((X[:, 0] > 0) ^ (rng.random(12) < 0.3)).astype(int)
    family = et.Bernoulli(0.5, 0.5)
    every = AllStructures(X, y, n_codes, kinds, family, 2, 0.6, "all", 1)
    rows = DistinctRows.read(family, n_codes, X, y, None, {})
    engine = kernel(rows, family, n_codes, kinds, 2, 0.6, "all", 1, 1, list(range(20)))
    engine.sum_top(1e9, PLENTY, top_depth, 1)
    check_frequencies(drawn(engine, 20, 50_000, n_draws=2, n_single=10, n_blocks=2), every.prob)


@pytest.mark.parametrize("candidates", ["all", "nontrivial"])
def test_three_levels_and_another_power(candidates):
    rng = rng_for("three levels", candidates)
    n_codes, kinds = [2, 4], ("ordered", "ordered")
    X = rng.integers(0, n_codes, (8, 2))
    y = rng.poisson(1.0 + 3.0 * X[:, 0])
    family = et.Poisson(2.0, 1.0)
    every = AllStructures(X, y, n_codes, kinds, family, 3, 0.5, candidates, 2, power=0.5)
    rows = DistinctRows.read(family, n_codes, X, y, None, {})
    engine = kernel(rows, family, n_codes, kinds, 3, 0.5, candidates, 2, 1, list(range(20)), (0, 0.25, 0.5))
    check_frequencies(drawn(engine, 20, 100, n_draws=3, n_single=30, n_blocks=2), every.prob)


FAMILIES = {
    "bernoulli": (et.Bernoulli(0.5, 0.5), lambda rng, x: (x > rng.integers(0, 3, len(x))).astype(int)),
    "categorical": (et.Categorical(3, 0.7), lambda rng, x: rng.integers(0, 1 + x)),
    "poisson": (et.Poisson(2.0, 1.0), lambda rng, x: rng.poisson(1.0 + x)),
    "normal": (et.Normal(0.0, 0.5, 2.0, 1.0), lambda rng, x: x + rng.normal(size=len(x))),
}


@pytest.mark.parametrize("weight", [None, 2.0, 0.5, 300.0])
@pytest.mark.parametrize("kinds", MIXED, ids=["ordered", "mixed"])
@pytest.mark.parametrize("candidates", ["all", "nontrivial"])
@pytest.mark.parametrize("name", FAMILIES)
def test_blocks_are_always_accepted_if_sums_reach_the_maximum_depth(name, candidates, kinds, weight):
    rng = rng_for("top", name, candidates, kinds, weight)
    family, draw = FAMILIES[name]
    X = rng.integers(0, 3, (60, 3))
    rows = DistinctRows.read(family, [3] * 3, X, draw(rng, X[:, 0]), None if weight is None else [weight] * 60, {})
    engine = kernel(rows, family, [3] * 3, kinds, 3, 0.5, candidates, 9, 1, [1])
    engine.sum_top(1e9, PLENTY, 3, 2)
    assert engine.top_depth() == 3
    engine.begin(False, 1)
    engine.run(n_draws=300, thin=0, n_single=0, n_blocks=1, n_jobs=1)
    counts = engine.counts()
    assert counts["proposed"][0, 1:, 5].tolist() == [300, 300]
    assert (counts["accepted"][0, 1:, 5] >= 299).all()  # terms of the last level are raised to powers to five digits


def accepted_share(engine, n_draws=200):
    """Share of accepted blocks of the whole tree, at each power above 0."""
    engine.begin(False, 1)
    engine.run(n_draws=n_draws, thin=0, n_single=0, n_blocks=1, n_jobs=1)
    return engine.counts()["accepted"][0, 1:, 5] / n_draws


@pytest.mark.parametrize("n_classes", [64, 65, 200])
def test_blocks_are_always_accepted_whether_classes_are_few_enough_for_bits_or_not(n_classes):
    rng = rng_for("many classes", n_classes)
    X = np.array(list(product(range(4), repeat=3)) * 2)  # 64 points with two rows each
    family = et.Categorical(n_classes, 0.1)
    rows = DistinctRows.read(family, [4] * 3, X, rng.integers(0, n_classes, len(X)), None, {})
    engine = kernel(rows, family, [4] * 3, MIXED[0], 3, 0.5, "all", 9, 1, [1])
    engine.sum_top(1e9, PLENTY, 3, 1)
    assert engine.top_depth() == 3
    assert (accepted_share(engine, 50) >= 0.98).all()


@pytest.mark.parametrize("weight", [1e3, 1e5, 1e9])
def test_sums_are_precise_where_evidence_is_large(weight):
    X = np.array([[0, 0, 0], [0, 1, 1], [1, 0, 2], [1, 1, 0]] * 5)
    sampler = et.StructureSampler([2, 2, 3], et.Bernoulli(0.5, 0.5), 3, n_chains=2, n_temperatures=3, random_state=0)
    sampler.fit(X, [0, 0, 1, 1] * 5, [weight] * 20, n_draws=20)
    assert sampler.map_tree().n_leaves == 2
    assert sampler._engine.top_depth() == 3
    assert sampler.acceptance["block"] > 0.95


def test_sums_are_precise_where_densities_cancel_in_the_whole_table_alone():
    """The log evidence of all rows as one leaf is 0, that of the halves tens of millions.

    A tree of four leaves can begin with either column, so that a draw from rounded sums would often be refused.
    """
    X = np.array(list(product(range(2), repeat=2)) * 5)
    y = X @ [2.0, 1.0] + 0.01 * rng_for("cancel").normal(size=20)
    family, weight = et.Normal(0.0, 1.0, 2.0, 1e-4), np.full(20, 1e6)

    def rows(scale):
        return DistinctRows.read(family, [2, 2], X, scale * y, weight, {})

    def one_leaf(scale):
        return family.log_evidence(rows(scale).statistics.sum(axis=0, keepdims=True))[0]

    scale = brentq(one_leaf, 1e-3, 1e3, xtol=1e-15, rtol=1e-15)
    assert abs(one_leaf(scale)) < 1e3
    engine = kernel(rows(scale), family, [2, 2], MIXED[0][:2], 2, 0.5, "all", 9, 1, [1])
    engine.sum_top(1e9, PLENTY, 2, 1)
    assert engine.top_depth() == 2
    assert (accepted_share(engine) > 0.95).all()


def small_table(powers=(0, 0.5, 1)):
    rng = rng_for("limits")
    X = rng.integers(0, 3, (60, 3))
    rows = DistinctRows.read(et.Bernoulli(0.5, 0.5), [3] * 3, X, (X[:, 0] > 1).astype(int), None, {})
    return kernel(rows, et.Bernoulli(0.5, 0.5), [3] * 3, MIXED[0], 3, 0.5, "all", 9, 1, [1], powers)


@pytest.mark.parametrize(
    ("steps", "n_bytes", "asked", "depth", "lack"),
    [
        (1e9, PLENTY, 3, 3, ""),
        (1e9, PLENTY, 0, 0, ""),
        (0.0, PLENTY, 3, 0, "time"),
        (2500.0, PLENTY, 3, 2, "time"),
        (1e9, 1, 3, 0, "memory"),
        (1e9, 6000, 3, 2, "memory"),
    ],
)
def test_limits_of_the_sums_of_the_first_levels(steps, n_bytes, asked, depth, lack):
    engine = small_table()
    engine.sum_top(steps, n_bytes, asked, 1)
    assert engine.top_depth() == depth
    assert engine.top_lack() == lack


def test_sums_at_many_powers_take_more_memory():
    n_bytes = 20_000
    few, many = small_table(), small_table(np.linspace(0, 1, 100).tolist())
    for engine in (few, many):
        engine.sum_top(1e9, n_bytes, 3, 1)
    assert (few.top_depth(), few.top_lack()) == (3, "")
    assert (many.top_depth(), many.top_lack()) == (2, "memory")


MEASURE = """
import resource
import numpy as np
from everytree import _kernels

def growth(steps, n_bytes, n_codes, n_points, n_classes, count):
    rng = np.random.default_rng(0)
    statistics = np.zeros((n_points, n_classes))
    statistics[np.arange(n_points), rng.integers(0, n_classes, n_points)] = count
    engine = _kernels.make_sampler(
        name="categorical", size=n_classes, prior=np.append(np.ones(n_classes), 0.0), n_codes=n_codes,
        codes=rng.integers(0, n_codes, (n_points, len(n_codes)), dtype=np.uint16), kinds=[0] * len(n_codes),
        statistics=statistics, log_split=[-0.7] * 2, log_stop=[-0.7] * 2, summed_depth=2, only_nontrivial=False,
        block_depth=1, max_block_cost=1.0, powers=[0.0, 1.0], seeds=[0],
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    engine.sum_top(steps, n_bytes, 2, 1)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(engine.top_lack() or "nothing", (after - before) // 1024)

growth(1e6, 2**30, [64] * 20, 100_000, 2, 1.0)
growth(1e12, 2**24, [64] * 20, 100_000, 2, 1.0)
growth(1e12, 2**30, [2] * 5, 100, 100, 500.0)
"""


@POSIX
def test_sums_take_no_memory_for_nothing():
    """Neither a table for which there is no time or memory, nor a second one of what the family tabulates."""
    found = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, check=True, text=True)
    lacks, megabytes = zip(*(line.split() for line in found.stdout.splitlines()), strict=True)
    assert lacks == ("time", "memory", "nothing")
    assert all(int(each) < 20 for each in megabytes), megabytes  # a table of rows has 32, one of the family 40


def test_exact_blocks_are_always_accepted():
    """A block whose sum reaches the last depth is a Gibbs step."""
    rng = rng_for("gibbs")
    X = rng.integers(0, 3, (30, 3))
    rows = DistinctRows.read(et.Bernoulli(0.5, 0.5), [3, 3, 3], X, (X[:, 0] > 1).astype(int), None, {})
    engine = kernel(rows, et.Bernoulli(0.5, 0.5), [3] * 3, MIXED[1], 3, 0.5, "all", 9, 3, [1])
    engine.begin(False, 1)
    engine.run(n_draws=200, thin=0, n_single=0, n_blocks=1, n_jobs=1)
    counts = engine.counts()
    np.testing.assert_array_equal(counts["accepted"][0, 1:, 5], counts["proposed"][0, 1:, 5])
    assert counts["proposed"][0, 1:, 5].tolist() == [200, 200]
