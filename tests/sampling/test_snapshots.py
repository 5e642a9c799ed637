"""What a kernel records of its structures: their shape, the probabilities of their prunings, and the best tree seen."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import everytree as et
from cases import rng_for
from everytree.sampling.draws import Draws, Structures
from naive_sampling import Key
from sampling_cases import BERNOULLI, Small, drawn_exactly, put, structures

TABLES = [
    Small("snapshots", (2, 3), ("ordered", "ordered"), 2, candidates="nontrivial"),
    Small("snapshots of categories", (3, 2), ("multiway", "ordered"), 2, candidates="nontrivial"),
    Small("snapshots of thresholds", (6,), ("ordered",), 3, candidates="nontrivial", n_rows=14),
    Small("snapshots of three", (2, 2, 2), ("ordered", "multiway", "ordered"), 3, candidates="nontrivial", n_rows=16),
]
tables = pytest.mark.parametrize("small", TABLES, ids=str)


def recorded(small: Small, n: int = 30) -> list[tuple[Key, dict[str, Any]]]:
    """Structures that are drawn exactly, and what the kernel records of each."""
    engine = small.engine(n)
    for chain, key in enumerate(drawn_exactly(small.every(), n, rng_for("recorded", small.name))):
        put(engine, chain, [key], chain)
    before = [own[0] for own in structures(engine)]
    return list(zip(before, engine.run(n_draws=1, thin=1, n_single=0, n_blocks=0, n_jobs=2), strict=True))


def preorder(record: dict[str, Any], node: int = 0) -> list[tuple[int, int]]:
    """Splits of the recorded structure, parents before children and the first child first."""
    if record["n_children"][node] == 0:
        return []
    first, n = record["first_child"][node], record["n_children"][node]
    below = [split for c in range(n) for split in preorder(record, first + c)]
    return [(int(record["feature"][node]), int(record["code"][node])), *below]


def posterior_of(small: Small, record: dict[str, Any]) -> et.Posterior:
    """The structure as a posterior of all rows, counted without the sampler."""
    X, y = small.table
    tree = et.MetaTree.from_arrays(
        record["feature"], record["first_child"], record["n_children"], record["code"], n_features=len(small.n_codes)
    )
    return et.Posterior(tree, BERNOULLI, record["split_prior"]).update(X.astype(np.uint8), y)


def prunings(record: dict[str, Any], node: int = 0) -> list[tuple[float, set[int], int]]:
    """Probability, columns and number of leaves of every pruning below a node."""
    if record["n_children"][node] == 0:
        return [(1.0, set(), 1)]
    first, n, split = record["first_child"][node], record["n_children"][node], record["split_prob"][node]
    found: list[tuple[float, set[int], int]] = [(1.0 - split, set(), 1)]
    for chosen in product(*(prunings(record, first + c) for c in range(n))):
        columns = {int(record["feature"][node])}.union(*(one[1] for one in chosen))
        found.append((split * float(np.prod([one[0] for one in chosen])), columns, sum(one[2] for one in chosen)))
    return found


@tables
def test_a_snapshot_has_the_splits_of_its_structure(small):
    for key, record in recorded(small):
        assert tuple(preorder(record)) == key
        assert record["sizes"].tolist() == [len(record["feature"])]
        is_split = record["n_children"] > 0
        np.testing.assert_allclose(record["split_prior"], np.where(is_split, small.split_prior, 0.0))
        assert (record["feature"][~is_split] == -1).all()


@tables
def test_a_snapshot_has_the_posterior_of_its_prunings(small):
    every = small.every()
    for key, record in recorded(small):
        literal = posterior_of(small, record)
        np.testing.assert_allclose(record["split_prob"], literal.split_prob, rtol=1e-9, atol=1e-12)
        assert record["log_evidence"][0] == pytest.approx(literal.log_evidence, rel=1e-9)
        assert record["log_evidence"][0] == pytest.approx(np.log(every.evidence[key]), rel=1e-9)


@tables
def test_leaves_and_columns_are_averaged_over_prunings(small):
    for _, record in recorded(small):
        found = prunings(record)
        assert sum(prob for prob, *_ in found) == pytest.approx(1.0)
        n_leaves = sum(prob * n for prob, _, n in found)
        assert record["n_leaves"][0] == pytest.approx(n_leaves, rel=1e-9)
        for column in range(len(small.n_codes)):
            used = sum(prob for prob, columns, _ in found if column in columns)
            assert record["used"][0, column] == pytest.approx(used, rel=1e-9, abs=1e-12)
        first = preorder(record)[0]
        assert (int(record["root_column"][0]), int(record["root_code"][0])) == first


def best_of(small: Small) -> float:
    """The largest log probability of a tree with its splits and of the rows, over all trees of binary columns."""
    every, X = small.every(), small.table[0]

    def below(rows: np.ndarray, depth: int) -> float:
        leaf = np.log(every.leaf(rows))
        columns = [column for column in range(X.shape[1]) if len(np.unique(X[rows, column])) > 1]
        if not columns or depth >= small.max_depth:
            return float(leaf)
        parts = [[rows[X[rows, column] == code] for code in (0, 1)] for column in columns]
        split = max(sum(below(part, depth + 1) for part in pair) for pair in parts)
        return float(max(leaf + np.log1p(-small.split_prior), np.log(small.split_prior / len(columns)) + split))

    return below(np.arange(len(X)), 0)


@pytest.mark.parametrize("max_depth", [1, 2, 3])
def test_the_best_tree_is_the_most_probable_of_all(max_depth):
    """After so many draws that every structure was visited; a list of all trees finds no better one."""
    small = Small("best", (2, 2, 2), ("ordered",) * 3, max_depth, candidates="nontrivial", n_rows=16)
    engine = small.engine(4)
    engine.begin(False, 1)
    engine.run(n_draws=100, thin=0, n_single=5, n_blocks=1, n_jobs=1)
    for found in engine.best():
        assert found["log_joint"] == pytest.approx(best_of(small), rel=1e-9)


@pytest.mark.parametrize(("thin", "n_kept"), [(0, 0), (1, 12), (3, 4), (5, 3), (12, 1)])
def test_every_so_many_draws_are_kept(thin, n_kept):
    small = TABLES[0]
    engine = small.engine(2, (0.0, 1.0))
    engine.begin(False, 1)
    for record in engine.run(n_draws=12, thin=thin, n_single=1, n_blocks=0, n_jobs=1):
        assert len(record["sizes"]) == n_kept
        assert record["own"].shape == record["hotter"].shape == record["colder"].shape == (12, 2)
        assert (record["own"][:, 0] == 0.0).all()  # the prior's evidence is 1


@pytest.mark.parametrize("small", TABLES, ids=str)
def test_chains_are_drawn_alike_by_any_number_of_threads_and_in_any_parts(small):
    plan: dict[str, int] = {"thin": 1, "n_single": 4, "n_blocks": 2}
    whole, parts = (small.engine(3, (0.0, 0.5, 1.0)) for _ in range(2))
    for engine in (whole, parts):
        engine.begin(False, 1)
    literal = whole.run(n_draws=12, n_jobs=1, **plan)
    found = [parts.run(n_draws=n, n_jobs=jobs, **plan) for n, jobs in ((5, 3), (1, 1), (6, 2))]
    for chain in range(3):
        for name in literal[chain]:
            np.testing.assert_array_equal(np.concatenate([part[chain][name] for part in found]), literal[chain][name])
    assert structures(parts) == structures(whole)


@tables
def test_a_restored_chain_goes_on_as_the_first(small):
    first, second = (small.engine(2, (0.2, 1.0)) for _ in range(2))
    first.begin(False, 1)
    plan: dict[str, int] = {"thin": 0, "n_single": 3, "n_blocks": 1, "n_jobs": 1}
    first.run(n_draws=7, **plan)
    for chain, state in enumerate(first.state()):
        second.restore(chain=chain, **state)
    literal, found = (engine.run(n_draws=9, **plan) for engine in (first, second))
    for one, other in zip(literal, found, strict=True):
        for name in ("log_evidence", "n_leaves", "used", "own", "root_column"):
            np.testing.assert_allclose(other[name], one[name], rtol=1e-9, atol=1e-12)


@tables
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_sums_over_the_first_levels_change_no_posterior(small, depth):
    """Only how often a block is accepted: always, where they reach the last level."""
    engine = small.engine(20)
    engine.sum_top(1e9, 1 << 28, depth, 1)
    assert engine.top_depth() == min(depth, small.max_depth)
    engine.begin(False, 1)
    records = engine.run(n_draws=60, thin=0, n_single=0, n_blocks=1, n_jobs=2)
    found = np.concatenate([record["root_column"][5:] for record in records])
    literal = np.zeros(len(small.n_codes))
    for key, prob in small.every().prob.items():
        literal[key[0][0]] += prob
    shares = np.bincount(found, minlength=len(literal)) / len(found)
    np.testing.assert_allclose(shares, literal, atol=0.08)
    counts = engine.counts()
    if depth >= small.max_depth:
        np.testing.assert_array_equal(counts["accepted"][:, 0, 5], counts["proposed"][:, 0, 5])


def test_draws_are_joined_in_order():
    engine = TABLES[0].engine(2, (0.0, 1.0))
    engine.begin(False, 1)
    plan: dict[str, int] = {"thin": 2, "n_single": 3, "n_blocks": 1, "n_jobs": 1}
    first, second = (engine.run(n_draws=n, **plan) for n in (4, 6))
    draws = Draws.of(first).then(Draws.of(second))
    assert (draws.n_chains, draws.n_draws) == (2, 10)
    np.testing.assert_array_equal(draws.log_evidence[:, :4], [one["log_evidence"] for one in first])
    np.testing.assert_array_equal(draws.used[1, 4:], second[1]["used"])
    kept = Structures.of(first).then(Structures.of(second))
    assert len(kept) == 10
    last = kept.one(len(kept) - 1)
    n = int(second[1]["sizes"][-1])
    np.testing.assert_array_equal(last["feature"], second[1]["feature"][-n:])
    assert kept.tree(0, 2).n_nodes == kept.sizes[0]
