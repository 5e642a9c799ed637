"""Each move of a chain leaves the posterior of structures as it is, and goes as often there as back."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.stats import chisquare

from cases import LONG, rng_for
from everytree.sampling.sampler import MOVES
from naive_sampling import AllStructures, Key
from sampling_cases import Small, drawn_exactly, p_value_of_symmetry, put, structures

TWO = Small("two columns", (2, 2), ("ordered", "ordered"), 2)
TABLES = [
    TWO,
    Small("two columns, nontrivial", (2, 3), ("ordered", "ordered"), 2, candidates="nontrivial"),
    Small("thresholds of one column", (5,), ("ordered",), 3),
    Small("categories", (3, 3), ("multiway", "multiway"), 2),
    Small("one against the rest", (4, 2), ("one_against_rest", "ordered"), 2),
    Small("drawn prunings", (2, 3), ("ordered", "ordered"), 2, summed_depth=1),
    Small("prunings of the root", (3, 2), ("ordered", "multiway"), 2, summed_depth=0),
]
ACCEPTED = {
    "two columns": {"swap", "prior"},
    "two columns, nontrivial": {"change", "neighbour", "swap", "prior"},
    "thresholds of one column": {"change", "neighbour", "rotation", "prior"},
    "categories": {"swap", "prior"},
    "one against the rest": {"change", "neighbour", "prior"},
    "drawn prunings": {"change", "neighbour", "prior"},
    "prunings of the root": {"change", "neighbour", "prior"},
}
"""Moves that are possible in each table, at the least."""

N_CHAINS, N_STEPS = (4000, 50) if LONG else (300, 12)
SINGLE, WHOLE, BLOCKS = {"n_single": 1, "n_blocks": 0}, {"n_single": 0, "n_blocks": 1}, {"n_single": 0, "n_blocks": 2}
tables = pytest.mark.parametrize("small", TABLES, ids=str)


def check_counts(found: Counter[Key], every: AllStructures) -> None:
    """Structures by their probabilities, those that are expected less than ten times together."""
    assert set(found) <= set(every.prob)
    often = [key for key, prob in every.prob.items() if prob * found.total() >= 10.0]
    counts = [found[key] for key in often]
    expected = [every.prob[key] * found.total() for key in often]
    rest = found.total() - sum(expected)
    if rest >= 5.0:
        counts, expected = [*counts, found.total() - sum(counts)], [*expected, rest]
    scale = sum(counts) / sum(expected)
    assert chisquare(counts, np.array(expected) * scale).pvalue > 1e-4


def walk(small: Small, schedule: dict[str, int], power: float = 1.0) -> tuple[list[tuple[Key, Key]], list[Key], dict]:
    """Moves from structures that are drawn exactly: pairs of before and after, and where the last ones lead."""
    engine, every = small.engine(N_CHAINS, (power,)), small.every(power)
    rng = rng_for("walk", small.name, schedule, power)
    for chain, key in enumerate(drawn_exactly(every, N_CHAINS, rng)):
        put(engine, chain, [key], int(rng.integers(2**62)))
    pairs, before = [], [own[0] for own in structures(engine)]
    for _ in range(N_STEPS):
        engine.run(n_draws=1, thin=0, n_jobs=1, **schedule)
        after = [own[0] for own in structures(engine)]
        pairs += list(zip(before, after, strict=True))
        before = after
    return pairs, before, engine.counts()


@tables
def test_single_moves_go_as_often_there_as_back(small):
    pairs, last, counts = walk(small, SINGLE)
    accepted = dict(zip(MOVES, counts["accepted"].sum(axis=(0, 1)), strict=True))
    assert {name for name, n in accepted.items() if n >= 10} >= ACCEPTED[small.name]
    assert p_value_of_symmetry(pairs) > 1e-4
    check_counts(Counter(last), small.every())


@tables
def test_blocks_of_the_whole_tree_go_as_often_there_as_back(small):
    pairs, last, counts = walk(small, WHOLE)
    assert counts["proposed"].sum(axis=(0, 1))[-1] == N_CHAINS * N_STEPS
    assert p_value_of_symmetry(pairs) > 1e-4
    check_counts(Counter(last), small.every())


@tables
def test_blocks_anywhere_keep_the_posterior(small):
    _, last, _ = walk(small, BLOCKS)
    check_counts(Counter(last), small.every())


@pytest.mark.parametrize("power", [0.2, 0.7])
@pytest.mark.parametrize("schedule", [SINGLE, WHOLE], ids=["single", "block"])
def test_moves_keep_other_powers_of_the_evidence(schedule, power):
    pairs, last, _ = walk(TABLES[1], schedule, power)
    assert p_value_of_symmetry(pairs) > 1e-4
    check_counts(Counter(last), TABLES[1].every(power))


@tables
def test_the_prior_is_drawn_from_at_power_zero(small):
    engine, found = small.engine(N_CHAINS, (0.0,)), Counter()
    engine.begin(True, 1)
    for _ in range(5):
        engine.run(n_draws=1, thin=0, n_single=0, n_blocks=0, n_jobs=1)
        found.update(own[0] for own in structures(engine))
    check_counts(found, small.every(0.0))


@pytest.mark.parametrize("small", [TWO, TABLES[5]], ids=str)
def test_neighbouring_powers_exchange_by_their_evidence(small):
    """Exchanges alone, from pairs that are drawn exactly: the pair stays distributed as it was, and goes both ways."""
    powers = (0.3, 1.0)
    engine, every = small.engine(N_CHAINS * 5, powers), [small.every(power) for power in powers]
    rng = rng_for("exchange", small.name)
    before = list(zip(*(drawn_exactly(one, N_CHAINS * 5, rng) for one in every), strict=True))
    for chain, pair in enumerate(before):
        put(engine, chain, pair, int(rng.integers(2**62)))
    engine.run(n_draws=1, thin=0, n_single=0, n_blocks=0, n_jobs=1)
    after = [tuple(pair) for pair in structures(engine)]
    assert {tuple(sorted(pair)) for pair in after} == {tuple(sorted(pair)) for pair in before}
    n_exchanged = sum(a != b for a, b in zip(before, after, strict=True))
    assert n_exchanged > 50
    assert p_value_of_symmetry(list(zip(before, after, strict=True))) > 1e-4
    for number, one in enumerate(every):
        check_counts(Counter(pair[number] for pair in after), one)
    counts = engine.counts()
    assert (counts["tried"][:, 0] == 1.0).all()
    hot, cold = (one.evidence for one in every)
    literal = [min(1.0, hot[b] / hot[a] * cold[a] / cold[b]) for a, b in before]
    np.testing.assert_allclose(counts["exchanged"][:, 0], literal, rtol=1e-9)


def test_pairs_of_powers_take_turns():
    engine = TWO.engine(3, (0.1, 0.4, 0.7, 1.0))
    engine.begin(False, 1)
    engine.run(n_draws=6, thin=0, n_single=2, n_blocks=0, n_jobs=1)
    assert engine.counts()["tried"].tolist() == [[3.0, 3.0, 3.0, 0.0]] * 3
    engine.forget_counts()
    assert not engine.counts()["tried"].any()
    assert not engine.counts()["proposed"].any()


@tables
def test_every_draw_records_the_evidence_of_its_structure(small):
    """At its own power and at the neighbours'; where nothing is drawn within it, structure by structure as listed."""
    powers = (0.25, 0.5, 1.0)
    engine = small.engine(4, powers)
    engine.begin(False, 1)
    every = [small.every(power).evidence for power in powers]
    for _ in range(10):
        before = structures(engine)
        records = engine.run(n_draws=1, thin=0, n_single=0, n_blocks=0, n_jobs=1)
        for own, record in zip(before, records, strict=True):
            literal = np.log([every[i][key] for i, key in enumerate(own)])
            np.testing.assert_allclose(record["own"][0], literal, rtol=1e-9)
            np.testing.assert_allclose(record["log_evidence"][0], literal[-1], rtol=1e-9)
            hotter = np.log([every[i - 1][key] for i, key in enumerate(own) if i > 0])
            np.testing.assert_allclose(record["hotter"][0, 1:], hotter, rtol=1e-9)
            colder = np.log([every[i + 1][key] for i, key in enumerate(own) if i < 2])
            np.testing.assert_allclose(record["colder"][0, :-1], colder, rtol=1e-9)
        engine.run(n_draws=1, thin=0, n_single=5, n_blocks=0, n_jobs=1)


@tables
def test_chains_begin_with_a_structure_of_the_table(small):
    prob = small.every().prob
    for from_worst in (False, True):
        engine = small.engine(20)
        engine.begin(from_worst, 2)
        assert all(own[0] in prob for own in structures(engine))
    if small.summed_depth == 9:  # no pruning is drawn: the worst structure has the least evidence of its first split
        assert len({tuple(own[0]) for own in structures(engine)}) < 20
