"""The sum over every tree and every choice of splits against the list of all of them."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import warnings
import weakref
from _thread import interrupt_main
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import product
from threading import Timer
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy import stats

import everytree as et
import naive_exact
import naive_families
from cases import CASE, CASES, Case, examples, families, rng_for, seeds, take
from everytree import _kernels
from everytree.exact.prediction import find_leaves
from everytree.exact.regions import WorkDone, regions_by_depth
from naive_families import mp

modes = pytest.mark.parametrize("candidates", ["all", "nontrivial"])
KINDS = ("ordered", "one_against_rest", "multiway")
kinds = pytest.mark.parametrize("kind", [*KINDS, "mixed"])

BERNOULLI = CASE["bernoulli"]
FALLING = et.depth_prior(0.95, 1.0)
PRIORS = (0.2, 0.5, 0.9, 0.99, FALLING)
CLOSE = {"rtol": 1e-10, "atol": 1e-10}


# ---- small tables, and what is known about them ------------------------------------------------------------------


@dataclass(frozen=True)
class Problem:
    """Rows and a model, small enough to list all its trees."""

    case: Case
    n_codes: tuple[int, ...]
    max_depth: int
    split_prior: Any
    candidates: str
    kinds: tuple[str, ...]
    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    row_data: dict[str, np.ndarray]

    @property
    def shape(self) -> dict[str, Any]:
        return {"candidates": self.candidates, "kinds": self.kinds}

    def fit(self, *, budget: int | None = None, max_seconds: float | None = None, **options: Any) -> et.ExactPosterior:
        options = {"truncation": 0.0, **self.shape, **options}
        model = et.ExactPosterior(self.n_codes, self.case.family, self.max_depth, self.split_prior, **options)
        limits = {"budget": budget, "max_seconds": max_seconds}
        limits = {name: value for name, value in limits.items() if value is not None}
        return model.fit(self.X, self.y, self.weights, **limits, **self.row_data)

    def _naive(self, twin: type, family: Any, **options: Any) -> Any:
        rows = (self.X, self.y, self.max_depth, self.split_prior, self.weights)
        return twin(self.n_codes, family, *rows, **self.shape, **self.row_data, **options)

    def enumeration(self, **options: Any) -> naive_exact.Enumeration:
        return self._naive(naive_exact.Enumeration, self.case.twin, **options)

    def recursion(self) -> naive_exact.Recursion:
        return self._naive(naive_exact.Recursion, self.case.family)

    def new_rows(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        y, row_data = self.case.draw(rng, n)
        return rng.integers(self.n_codes, size=(n, len(self.n_codes))).astype(np.uint8), y, row_data


def problem(
    case: Case,
    rng: np.random.Generator,
    candidates: str,
    kind: str = "mixed",
    most_trees: int = 600,
    most_rows: int = 12,
    most_codes: int = 4,
    **fixed: Any,
) -> Problem:
    """A random one, with at most so many trees."""
    while True:
        n_columns = int(rng.integers(1, 4))
        n_codes = tuple(rng.integers(1 if rng.random() < 0.2 else 2, most_codes + 1, n_columns).tolist())
        max_depth = int(rng.integers(1, 4))
        kind_of = tuple(rng.choice(KINDS, n_columns).tolist()) if kind == "mixed" else (kind,) * n_columns
        if 2 < naive_exact.n_trees(n_codes, max_depth, kind_of) <= most_trees:
            break
    n = int(rng.integers(1, most_rows + 1))
    y, row_data = case.draw(rng, n)
    weights = rng.choice([0.5, 1.0, 1.0, 2.0, 0.25], n) if rng.random() < 0.3 else None
    prior = PRIORS[rng.integers(len(PRIORS))]
    X = rng.integers(n_codes, size=(n, n_columns)).astype(np.uint8)
    return replace(Problem(case, n_codes, max_depth, prior, candidates, kind_of, X, y, weights, row_data), **fixed)


def check_sums(exact: et.ExactPosterior, oracle: naive_exact.Enumeration) -> None:
    """All numbers about the trees."""
    assert exact.log_evidence == pytest.approx(oracle.log_evidence, rel=1e-10, abs=1e-10)
    assert exact.split_prob_root == pytest.approx(oracle.split_prob_root, rel=1e-10, abs=1e-10)
    for name in ("root_feature_prob", "feature_prob", "expected_splits"):
        answer = getattr(exact, name)
        assert answer.shape == (oracle.n_columns,), name
        np.testing.assert_allclose(answer, getattr(oracle, name), err_msg=name, **CLOSE)
    first = {split[:2]: 0.0 for split in exact.root_splits}
    for tree, log_prob in oracle.log_prob.items():
        if tree:
            first[tree[:2]] += math.exp(log_prob)
    for column, code, prob in exact.root_splits:
        assert prob == pytest.approx(first[column, code], rel=1e-9, abs=1e-10)
    assert exact.expected_leaves() == pytest.approx(oracle.expected_leaves(), rel=1e-10)
    assert exact.entropy() == pytest.approx(oracle.entropy(), rel=1e-10, abs=1e-10)


def check_trees(trees: list[et.ExactTree], oracle: naive_exact.Enumeration) -> None:
    """Each is one of the list, with the probability it has there."""
    for tree in trees:
        shape = naive_exact.nested(tree)
        assert tree.log_prob == pytest.approx(oracle.log_prob[shape], rel=1e-10, abs=1e-10)
        assert tree.n_leaves == oracle.n_leaves(shape)
        check_arrays(tree)


def check_arrays(tree: et.ExactTree) -> None:
    """Flat arrays in level order: the children of the inner nodes, one after the other, are all nodes but the root."""
    n_nodes = len(tree.feature)
    assert len(tree.code) == len(tree.first_child) == len(tree.n_children) == n_nodes
    inner = np.flatnonzero(np.asarray(tree.n_children) > 0)
    first, size = np.asarray(tree.first_child)[inner], np.asarray(tree.n_children)[inner]
    children = [child for start, many in zip(first, size, strict=True) for child in range(start, start + many)]
    assert children == list(range(1, n_nodes))
    np.testing.assert_array_equal(np.asarray(tree.feature) >= 0, np.asarray(tree.n_children) > 0)
    assert (np.asarray(tree.feature)[np.asarray(tree.n_children) == 0] == -1).all()
    assert tree.n_leaves == n_nodes - len(inner)


def check_best(exact: et.ExactPosterior, oracle: naive_exact.Enumeration) -> None:
    """The best trees are the best of all; where several are equally good, any order is right."""
    ranked = sorted(oracle.log_prob.values(), reverse=True)
    everything = exact.top_trees(len(ranked) + 3)
    np.testing.assert_allclose([tree.log_prob for tree in everything], ranked, **CLOSE)
    assert {naive_exact.nested(tree) for tree in everything} == set(oracle.prob)
    check_trees(everything, oracle)
    few = exact.top_trees(3)
    np.testing.assert_allclose([tree.log_prob for tree in few], ranked[:3], **CLOSE)
    assert len(set(few)) == len(few)
    check_trees(few, oracle)
    best = exact.map_tree()
    assert best.log_prob == pytest.approx(ranked[0], rel=1e-10, abs=1e-10)
    check_trees([best], oracle)


def check_predictions(
    exact: et.ExactPosterior, oracle: naive_exact.Enumeration, rows: tuple[Any, Any, dict[str, Any]]
) -> None:
    """Distributions of new rows, seen or not."""
    X, y, row_data = rows
    of_row = [{name: column[i] for name, column in row_data.items()} for i in range(len(X))]
    predictive = exact.predictive(X, **row_data)
    log_prob = [oracle.log_predictive(x, *new) for x, *new in zip(X, y, of_row, strict=True)]
    np.testing.assert_allclose(predictive.log_prob(y), log_prob, **CLOSE)
    moments = np.array([oracle.moments(*new) for new in zip(X, of_row, strict=True)])
    np.testing.assert_allclose(predictive.mean(), moments[:, 0], **CLOSE)
    np.testing.assert_allclose(predictive.variance(), moments[:, 1], **CLOSE)
    if hasattr(oracle.family, "exact_probs"):
        np.testing.assert_allclose(predictive.probs(), [oracle.probs(x) for x in X], **CLOSE)


def check_all(given: Problem, rng: np.random.Generator) -> None:
    exact, oracle = given.fit(), given.enumeration()
    check_sums(exact, oracle)
    check_best(exact, oracle)
    check_predictions(exact, oracle, given.new_rows(rng, 5))
    assert exact.truncation == 0.0


# ---- the oracle itself -------------------------------------------------------------------------------------------


@pytest.mark.long
@modes
@kinds
def test_the_list_and_the_recursion_agree(candidates, kind):
    rng = rng_for("list and recursion", candidates, kind)
    for case in CASES:
        given = problem(case, rng, candidates, kind)
        listed, recursion = given.enumeration(), given.recursion()
        assert len(listed.prob) <= naive_exact.n_trees(given.n_codes, given.max_depth, given.kinds)
        assert float(sum(prior for _, prior, _ in listed.below(listed.root, 0))) == pytest.approx(1.0, abs=1e-14)
        top = recursion.top
        assert top.log_evidence == pytest.approx(listed.log_evidence, rel=1e-10, abs=1e-10)
        assert top.log_best - top.log_evidence == pytest.approx(max(listed.log_prob.values()), rel=1e-10, abs=1e-10)
        assert top.leaves == pytest.approx(listed.expected_leaves(), rel=1e-10)
        assert top.entropy == pytest.approx(listed.entropy(), rel=1e-10, abs=1e-10)
        np.testing.assert_allclose(top.splits, listed.expected_splits, **CLOSE)
        np.testing.assert_allclose(1.0 - top.unused, listed.feature_prob, **CLOSE)
        for x, y, *values in zip(*given.new_rows(rng, 3)[:2], *given.row_data.values(), strict=False):
            row_data = dict(zip(given.row_data, values, strict=True))
            value = listed.log_predictive(x, y, row_data)
            assert recursion.log_predictive(x, y, row_data) == pytest.approx(value, rel=1e-10, abs=1e-10)


def test_three_binary_columns_have_244_trees():
    assert naive_exact.n_trees((2, 2, 2), 3) == 244
    assert naive_exact.n_trees((2, 2, 2), 1) == 4
    assert naive_exact.n_trees((3,), 5) == 5  # no split, one of two, or both in either order
    assert naive_exact.n_trees((3,), 5, "multiway") == 2
    assert naive_exact.n_trees((3,), 5, "one_against_rest") == 7


# ---- every answer ------------------------------------------------------------------------------------------------


@pytest.mark.long
@families
@modes
@kinds
def test_every_answer_equals_its_sum_over_all_trees(case, candidates, kind):
    rng = rng_for("every answer", case, candidates, kind)
    for _ in range(2):
        check_all(problem(case, rng, candidates, kind), rng)


@pytest.mark.long
@modes
@given(seed=seeds)
@examples(25)
def test_every_answer_equals_its_sum_in_random_problems(candidates, seed):
    rng = np.random.default_rng(seed)
    case = CASES[rng.integers(len(CASES))]
    check_all(problem(case, rng, candidates), rng)


@families
@modes
@pytest.mark.parametrize("split_prior", [0.0, 0.2, 0.9, 0.99, 1.0, FALLING], ids=str)
def test_every_split_prior(case, candidates, split_prior):
    rng = rng_for("split prior", case, candidates, split_prior)
    check_all(problem(case, rng, candidates, most_trees=200, split_prior=split_prior), rng)


@modes
def test_split_priors_of_zero_and_one_by_depth(candidates):
    rng = rng_for("zero and one", candidates)
    for certain in product([0.0, 0.5, 1.0], repeat=3):
        given = problem(BERNOULLI, rng, candidates, most_trees=200, split_prior=lambda d, g=certain: g[d])
        check_all(given, rng)


@families
@modes
def test_weights_are_powers_of_likelihoods(case, candidates):
    rng = rng_for("weights", case, candidates)
    n = 9
    y, row_data = case.draw(rng, n)
    X = rng.integers(0, 3, (n, 2)).astype(np.uint8)
    fixed = {"n_codes": (3, 3), "kinds": ("ordered", "one_against_rest"), "max_depth": 2}
    rows = {"X": X, "y": y, "row_data": row_data}
    given = problem(case, rng, candidates, **fixed, **rows, weights=rng.choice([0.5, 1.0, 3.0, 1e-3], n))
    check_all(given, rng)
    whole = replace(given, weights=rng.integers(1, 4, n).astype(float))
    again = np.repeat(np.arange(n), whole.weights.astype(int))
    repeated = replace(whole, weights=None, X=X[again], y=y[again], row_data=take(row_data, again))
    one, other = whole.fit(), repeated.fit()
    assert one.log_evidence == pytest.approx(other.log_evidence, rel=1e-10)
    np.testing.assert_allclose(one.feature_prob, other.feature_prob, **CLOSE)


@pytest.mark.long
@modes
@kinds
def test_many_trees(candidates, kind):
    """A list of thousands: three levels, columns that are asked twice."""
    rng = rng_for("many trees", candidates, kind)
    n_codes, max_depth = {"ordered": ((4, 3), 3), "one_against_rest": ((4, 2), 3), "multiway": ((2, 2, 3), 3)}.get(
        kind, ((3, 2, 2), 3)
    )
    kind_of = ("ordered", "multiway", "one_against_rest") if kind == "mixed" else (kind,) * len(n_codes)
    X = rng.integers(n_codes, size=(12, len(n_codes))).astype(np.uint8)
    y, _ = BERNOULLI.draw(rng, 12)
    given = Problem(BERNOULLI, n_codes, max_depth, FALLING, candidates, kind_of, X, y, None, {})
    exact, oracle = given.fit(), given.enumeration()
    check_sums(exact, oracle)
    check_predictions(exact, oracle, given.new_rows(rng, 3))
    ranked = sorted(oracle.log_prob.values(), reverse=True)
    top = exact.top_trees(100)
    np.testing.assert_allclose([tree.log_prob for tree in top], ranked[:100], **CLOSE)
    assert len(set(top)) == len(top)
    check_trees(top, oracle)


@modes
@pytest.mark.parametrize("name", ["bernoulli", "categorical", "geometric"])
def test_the_evidence_is_a_fraction(name, candidates):
    """Rational numbers from end to end: no rounding anywhere in the oracle."""
    rng = rng_for("fractions", name, candidates)
    for split_prior in (Fraction(1, 4), Fraction(1, 2), Fraction(7, 8)):
        given = problem(CASE[name], rng, candidates, most_trees=150, weights=None, split_prior=float(split_prior))
        oracle, exact = given.enumeration(rational=True), given.fit()
        assert isinstance(oracle.evidence_of_all, Fraction)
        assert sum(oracle.prob.values()) == 1
        check_sums(exact, oracle)
        best = exact.map_tree()
        assert math.exp(best.log_prob) == pytest.approx(float(max(oracle.prob.values())), rel=1e-12)


@modes
def test_evidences_of_all_possible_targets_add_up_to_one(candidates):
    rng = rng_for("add up", candidates)
    given = problem(BERNOULLI, rng, candidates, weights=None, X=rng.integers(0, 2, (5, 2)).astype(np.uint8),
                    n_codes=(2, 2), kinds=("ordered", "multiway"), max_depth=2)  # fmt: skip
    total = sum(math.exp(replace(given, y=np.array(y)).fit().log_evidence) for y in product([0, 1], repeat=5))
    assert total == pytest.approx(1.0, abs=1e-12)


# ---- more rows than a machine word holds -------------------------------------------------------------------------


def table(case: Case, rng: np.random.Generator, n: int, n_codes: tuple[int, ...], **fixed: Any) -> Problem:
    """Rows whose columns are not independent: the last one is often a copy of the first."""
    X = rng.integers(n_codes, size=(n, len(n_codes)))
    X[:, -1] = np.where(rng.random(n) < 0.7, np.minimum(X[:, 0], n_codes[-1] - 1), X[:, -1])
    y, row_data = case.draw(rng, n)
    signal = (X[:, 0] > 0) & (X[:, 1] > 0)
    y = np.where(signal, np.sort(y)[::-1], y) if case.name != "linear" else y
    given = Problem(case, n_codes, 3, 0.5, "all", ("ordered",) * len(n_codes), X.astype(np.uint8), y, None, row_data)
    return replace(given, **fixed)


def check_against_recursion(given: Problem, rng: np.random.Generator) -> None:
    exact, oracle = given.fit(), given.recursion()
    top = oracle.top
    assert exact.log_evidence == pytest.approx(top.log_evidence, rel=1e-10)
    assert exact.map_tree().log_prob == pytest.approx(top.log_best - top.log_evidence, rel=1e-9, abs=1e-9)
    assert exact.expected_leaves() == pytest.approx(top.leaves, rel=1e-9)
    assert exact.entropy() == pytest.approx(top.entropy, rel=1e-9, abs=1e-9)
    np.testing.assert_allclose(exact.expected_splits, top.splits, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(exact.feature_prob, 1.0 - top.unused, rtol=1e-9, atol=1e-9)
    assert exact.split_prob_root == pytest.approx(1.0 - math.exp(top.log_stop), abs=1e-9)
    X, y, row_data = given.new_rows(rng, 4)
    of_row = [{name: column[i] for name, column in row_data.items()} for i in range(len(X))]
    expected = [oracle.log_predictive(*new) for new in zip(X, y, of_row, strict=True)]
    np.testing.assert_allclose(exact.predictive(X, **row_data).log_prob(y), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.long
@families
@modes
@kinds
def test_tables_of_some_hundred_rows(case, candidates, kind):
    rng = rng_for("hundreds", case, candidates, kind)
    kind_of = (*KINDS, "ordered") if kind == "mixed" else (kind,) * 4
    for max_depth in (2, 3):
        given = table(case, rng, 150, (3, 2, 4, 3), candidates=candidates, kinds=kind_of, max_depth=max_depth)
        check_against_recursion(given, rng)


@modes
@pytest.mark.parametrize("max_depth", [4, 5])
def test_deep_trees_of_binary_columns(candidates, max_depth):
    rng = rng_for("deep", candidates, max_depth)
    given = table(BERNOULLI, rng, 200, (2,) * 7, candidates=candidates, max_depth=max_depth, split_prior=FALLING)
    check_against_recursion(given, rng)


@modes
def test_deep_trees_that_ask_a_column_again_and_again(candidates):
    rng = rng_for("again", candidates)
    given = table(CASE["categorical"], rng, 130, (6, 5), candidates=candidates, max_depth=6, split_prior=0.8)
    check_against_recursion(given, rng)
    apart = replace(given, kinds=("one_against_rest", "ordered"), max_depth=5)
    check_against_recursion(apart, rng)


@pytest.mark.parametrize("n", [63, 64, 65, 128, 129])
def test_rows_at_the_edge_of_a_word(n):
    rng = rng_for("word", n)
    for case in (BERNOULLI, CASE["categorical"], CASE["normal"]):
        given = table(case, rng, n, (3, 2, 2), max_depth=3)
        check_against_recursion(given, rng)
        one_class = replace(given, y=np.ones_like(given.y))
        check_against_recursion(one_class, rng)


@pytest.mark.parametrize(
    ("n_codes", "kind_of", "max_depth"),
    [
        ((70, 3), ("ordered", "ordered"), 2), ((64, 65, 66), ("ordered", "ordered", "ordered"), 1),
        ((64, 2), ("one_against_rest", "multiway"), 2), ((64, 5), ("multiway", "ordered"), 2),
        ((2, 40), ("ordered", "ordered"), 2), ((300, 300), ("ordered", "ordered"), 1),
    ],
)  # fmt: skip
def test_columns_of_many_codes(n_codes, kind_of, max_depth):
    rng = rng_for("many codes", n_codes)
    X = rng.integers(n_codes, size=(40, len(n_codes))).astype(np.uint16)
    X[0] = np.array(n_codes) - 1
    X = np.where(rng.random((40, 1)) < 0.3, X[:1], X)  # some rows are alike
    for case in (BERNOULLI, CASE["categorical"], CASE["normal"], CASE["exponential"]):
        y, row_data = case.draw(rng, 40)
        given = Problem(case, n_codes, max_depth, 0.5, "nontrivial", kind_of, X, y, None, row_data)
        check_against_recursion(given, rng)
        check_against_recursion(replace(given, candidates="all", max_depth=min(max_depth, 70 // n_codes[0])), rng)


# ---- laws --------------------------------------------------------------------------------------------------------


@families
@modes
def test_the_number_of_threads_changes_no_bit(case, candidates):
    rng = rng_for("threads", case, candidates)
    given = table(case, rng, 90, (3, 2, 3, 2), candidates=candidates, kinds=(*KINDS, "ordered"), max_depth=3)
    one, two = given.fit(n_jobs=1), given.fit(n_jobs=2)
    assert one.log_evidence == two.log_evidence
    assert one.entropy() == two.entropy()
    assert one.expected_leaves() == two.expected_leaves()
    for name in ("root_feature_prob", "feature_prob", "expected_splits"):
        assert getattr(one, name).tobytes() == getattr(two, name).tobytes(), name
    X, y, row_data = given.new_rows(rng, 40)
    predictions = [exact.predictive(X, **row_data) for exact in (one, two)]
    assert predictions[0].mean().tobytes() == predictions[1].mean().tobytes()
    assert predictions[0].log_prob(y).tobytes() == predictions[1].log_prob(y).tobytes()
    assert one.top_trees(20) == two.top_trees(20)
    assert one.sample_trees(20, rng=3) == two.sample_trees(20, rng=3)
    assert [tree.log_prob for tree in one.top_trees(20)] == [tree.log_prob for tree in two.top_trees(20)]


@modes
@pytest.mark.parametrize("name", ["bernoulli", "normal"])
def test_the_number_of_threads_changes_no_bit_of_much_work(name, candidates):
    """Thousands of regions and rows: every thread has many shares of the work."""
    rng = rng_for("much work", name, candidates)
    kind_of = (*KINDS, *("ordered",) * 9)
    given = table(CASE[name], rng, 120, (3, 3, 3, *(2,) * 9), candidates=candidates, kinds=kind_of, max_depth=4)
    fits = [given.fit(n_jobs=n_jobs, truncation=0.02) for n_jobs in (1, 2, 3)]
    assert max(fits[0].n_regions) > 1000
    X = given.new_rows(rng, 1000)[0]
    for other in fits[1:]:
        assert other.n_regions == fits[0].n_regions
        assert other.log_evidence == fits[0].log_evidence
        assert other.expected_splits.tobytes() == fits[0].expected_splits.tobytes()
        assert other.map_tree() == fits[0].map_tree()
        for one, two in zip(other.moments(X), fits[0].moments(X), strict=True):
            assert one.tobytes() == two.tobytes()


@modes
def test_samples_have_the_posterior_frequencies(candidates):
    rng = rng_for("samples", candidates)
    given = problem(
        BERNOULLI, rng, candidates, n_codes=(3, 2, 2), kinds=("ordered", "multiway", "one_against_rest"), max_depth=2,
        split_prior=0.7, X=rng.integers((3, 2, 2), size=(8, 3)).astype(np.uint8), y=rng.integers(0, 2, 8), weights=None,
    )  # fmt: skip
    exact, oracle = given.fit(), given.enumeration()
    draws = exact.sample_trees(6000, rng=rng)
    assert len(draws) == 6000
    check_trees(draws[:200], oracle)
    drawn = [naive_exact.nested(tree) for tree in draws]
    counts = {tree: drawn.count(tree) for tree in set(drawn)}
    assert set(counts) <= set(oracle.prob)
    likely = {tree: float(p) for tree, p in oracle.prob.items() if p * len(draws) > 5}
    assert len(likely) > 20
    seen = [counts.get(tree, 0) for tree in likely]
    expected = np.array(list(likely.values())) * len(draws)
    seen, expected = [*seen, len(draws) - sum(seen)], [*expected, len(draws) - expected.sum()]
    kept = np.array(expected) > 1e-9
    assert stats.chisquare(np.array(seen)[kept], np.array(expected)[kept], sum_check=False).pvalue > 1e-3


@families
def test_samples_average_to_the_expectations(case):
    rng = rng_for("averages", case)
    given = table(case, rng, 40, (3, 2, 3), candidates="nontrivial", split_prior=0.8)
    exact, n = given.fit(), 3000
    draws = exact.sample_trees(n, rng=7)
    leaves = np.array([tree.n_leaves for tree in draws])
    assert abs(leaves.mean() - exact.expected_leaves()) < 5.0 * (leaves.std() + 1e-3) / math.sqrt(n)
    surprise = -np.array([tree.log_prob for tree in draws])
    assert abs(surprise.mean() - exact.entropy()) < 5.0 * (surprise.std() + 1e-3) / math.sqrt(n)


def test_samples_follow_from_the_generator():
    rng = rng_for("generator")
    exact = problem(BERNOULLI, rng, "all").fit()
    assert exact.sample_trees(10, rng=5) == exact.sample_trees(10, rng=np.random.default_rng(5))
    assert exact.sample_trees(0, rng=5) == []


def test_trees_compare_by_their_arrays():
    given = table(BERNOULLI, rng_for("compare"), 30, (2, 3), max_depth=2)
    one, again = given.fit().top_trees(5), given.fit().top_trees(5)
    assert one == again
    assert len({*one, *again}) == 5
    assert one[0] != one[1]
    assert one[0] != "a tree"
    for tree, twin in zip(one, again, strict=True):
        assert hash(tree) == hash(twin)
        with pytest.raises((ValueError, AttributeError, TypeError)):
            tree.feature[0] = 1


@families
@modes
def test_permuting_columns_permutes_the_answers(case, candidates):
    rng = rng_for("permute", case, candidates)
    kind_of = ("ordered", "multiway", "one_against_rest", "ordered")
    given = table(case, rng, 50, (3, 2, 4, 3), candidates=candidates, kinds=kind_of)
    order = rng.permutation(4)
    other = replace(given, n_codes=tuple(given.n_codes[k] for k in order), X=given.X[:, order],
                    kinds=tuple(kind_of[k] for k in order))  # fmt: skip
    one, two = given.fit(), other.fit()
    assert two.log_evidence == pytest.approx(one.log_evidence, rel=1e-12)
    assert two.entropy() == pytest.approx(one.entropy(), rel=1e-10)
    assert two.map_tree().log_prob == pytest.approx(one.map_tree().log_prob, rel=1e-10, abs=1e-10)
    for name in ("root_feature_prob", "feature_prob", "expected_splits"):
        np.testing.assert_allclose(getattr(two, name), getattr(one, name)[order], err_msg=name, **CLOSE)
    X, y, row_data = given.new_rows(rng, 10)
    expected = one.predictive(X, **row_data).log_prob(y)
    np.testing.assert_allclose(two.predictive(X[:, order], **row_data).log_prob(y), expected, **CLOSE)


@families
@modes
def test_the_order_of_rows_does_not_matter(case, candidates):
    rng = rng_for("rows", case, candidates)
    given = table(case, rng, 70, (3, 2, 2), candidates=candidates)
    order = rng.permutation(70)
    other = replace(given, X=given.X[order], y=given.y[order], row_data=take(given.row_data, order))
    assert other.fit().log_evidence == pytest.approx(given.fit().log_evidence, rel=1e-12)
    np.testing.assert_allclose(other.fit().feature_prob, given.fit().feature_prob, **CLOSE)


@families
@modes
def test_a_column_of_one_code_changes_nothing(case, candidates):
    rng = rng_for("one code", case, candidates)
    given = table(case, rng, 40, (3, 3), candidates=candidates)
    wider = replace(given, n_codes=(3, 1, 3), kinds=("ordered",) * 3, X=np.insert(given.X, 1, 0, axis=1))
    one, two = given.fit(), wider.fit()
    assert two.log_evidence == pytest.approx(one.log_evidence, rel=1e-13)
    assert two.root_feature_prob[1] == two.expected_splits[1] == 0.0
    assert two.feature_prob[1] == pytest.approx(0.0, abs=1e-12)
    assert two.entropy() == pytest.approx(one.entropy(), rel=1e-12)


@modes
def test_two_codes_are_one_split_whatever_the_kind(candidates):
    rng = rng_for("kinds", candidates)
    given = table(BERNOULLI, rng, 60, (2, 2, 2), candidates=candidates)
    answers = [replace(given, kinds=(kind,) * 3).fit() for kind in KINDS]
    for other in answers[1:]:
        assert other.log_evidence == pytest.approx(answers[0].log_evidence, rel=1e-13)
        assert other.entropy() == pytest.approx(answers[0].entropy(), rel=1e-12)
        np.testing.assert_allclose(other.feature_prob, answers[0].feature_prob, rtol=1e-12)


@families
def test_a_prediction_is_a_ratio_of_evidences(case):
    """p(y | x, data) = p(data and the row) / p(data), when the candidates do not depend on the rows."""
    rng = rng_for("ratio", case)
    given = table(case, rng, 80, (3, 2, 4), kinds=KINDS)
    exact = given.fit()
    X, y, row_data = given.new_rows(rng, 4)
    for i in range(4):
        longer = replace(
            given, X=np.vstack([given.X, X[i : i + 1]]), y=np.append(given.y, y[i]),
            row_data={name: np.concatenate([given.row_data[name], row_data[name][i : i + 1]]) for name in row_data},
        )  # fmt: skip
        alone = exact.predictive(X[i : i + 1], **take(row_data, slice(i, i + 1))).log_prob(y[i : i + 1])[0]
        assert longer.fit().log_evidence - exact.log_evidence == pytest.approx(alone, rel=1e-9, abs=1e-9)


@families
@modes
def test_no_rows_leave_the_prior(case, candidates):
    rng = rng_for("no rows", case, candidates)
    for kind in (*KINDS, "mixed"):
        y, row_data = case.draw(rng, 0)
        given = problem(case, rng, candidates, kind, X=np.zeros((0, 2), np.uint8), n_codes=(3, 2), max_depth=2,
                        kinds=("ordered", kind if kind in KINDS else "multiway"), y=y, row_data=row_data, weights=None,
                        )  # fmt: skip
        check_all(given, rng)
        assert given.fit().log_evidence == pytest.approx(0.0, abs=1e-14)
        assert not given.fit().feature_prob.any()


@families
@modes
def test_one_row_and_rows_all_alike(case, candidates):
    rng = rng_for("alike", case, candidates)
    for n in (1, 6):
        y, row_data = case.draw(rng, n)
        X = np.tile(np.array([[1, 0, 2]], np.uint8), (n, 1))
        given = Problem(case, (2, 3, 3), 2, 0.9, candidates, KINDS, X, y, None, row_data)
        check_all(given, rng)


@families
@modes
def test_rows_of_weight_zero_are_as_if_they_were_not_there(case, candidates):
    rng = rng_for("weight zero", case, candidates)
    given = table(case, rng, 30, (3, 2, 3), candidates=candidates, split_prior=0.7)
    kept = rng.random(30) < 0.3
    some = replace(given, weights=kept.astype(float))
    fewer = replace(given, X=given.X[kept], y=given.y[kept], row_data=take(given.row_data, kept))
    one, two = some.fit(), fewer.fit()
    assert one.log_evidence == pytest.approx(two.log_evidence, rel=1e-12)
    assert one.entropy() == pytest.approx(two.entropy(), rel=1e-12)
    assert one.n_regions == two.n_regions
    np.testing.assert_allclose(one.feature_prob, two.feature_prob, **CLOSE)


@modes
def test_rows_whose_statistics_are_zero_are_rows_all_the_same(candidates):
    """Censored at time 0: nothing is learned from such a row, but its region holds rows."""
    rng = rng_for("nothing learned", candidates)
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1], [2, 1]], np.uint8)
    y, censored = np.array([0.0, 0.5, 0.0, 2.0, 0.0]), np.array([1, 0, 1, 0, 1])
    given = Problem(CASE["exponential"], (3, 2), 2, 0.8, candidates, ("ordered", "multiway"), X, y, None,
                    {"censored": censored})  # fmt: skip
    check_all(given, rng)


@families
def test_quick_ways_to_probabilities_and_moments_are_those_of_the_predictive(case):
    rng = rng_for("quick ways", case)
    given = table(case, rng, 50, (3, 2, 3), kinds=KINDS)
    exact = given.fit()
    X = given.new_rows(rng, 30)[0]
    if case.name in ("bernoulli", "categorical"):
        np.testing.assert_allclose(exact.probs(X), exact.predictive(X).probs(), **CLOSE)
    if case.name != "linear":
        mean, variance = exact.moments(X)
        np.testing.assert_allclose(mean, exact.predictive(X).mean(), **CLOSE)
        np.testing.assert_allclose(variance, exact.predictive(X).variance(), **CLOSE)


UNKNOWN = -1


@modes
@pytest.mark.parametrize("n_codes", [(200,), (70, 3, 90), (2, 100, 3)])
def test_tables_of_columns_with_many_codes_are_those_of_the_predictive(n_codes, candidates):
    rng = rng_for("wide tables", n_codes, candidates)
    for case in (BERNOULLI, CASE["normal"]):
        given = table(case, rng, 60, (*n_codes, 2), candidates=candidates, max_depth=2)
        exact = given.fit()
        X = given.new_rows(rng, 40)[0].astype(np.int64)
        X[::2] = np.where(rng.random(X[::2].shape) < 0.4, UNKNOWN, X[::2])
        mean, variance = exact.moments(X)
        np.testing.assert_allclose(mean, exact.predictive(X).mean(), **CLOSE)
        np.testing.assert_allclose(variance, exact.predictive(X).variance(), **CLOSE)


@families
@modes
def test_rows_end_where_they_do_not_know_the_answer(case, candidates):
    rng = rng_for("unknown", case, candidates)
    for _ in range(3):
        given = problem(case, rng, candidates, kind="mixed")
        exact, oracle = given.fit(), given.enumeration()
        X, y, row_data = given.new_rows(rng, 6)
        X = np.where(rng.random(X.shape) < 0.4, UNKNOWN, X.astype(np.int64))
        of_row = [{name: column[i] for name, column in row_data.items()} for i in range(len(X))]
        expected = [oracle.log_predictive(*new) for new in zip(X, y, of_row, strict=True)]
        np.testing.assert_allclose(exact.predictive(X, **row_data).log_prob(y), expected, **CLOSE)
        if case.name in ("bernoulli", "categorical"):
            np.testing.assert_allclose(exact.probs(X), [oracle.probs(x) for x in X], **CLOSE)


@modes
def test_unknown_answers_of_larger_tables(candidates):
    rng = rng_for("unknown", candidates)
    given = table(BERNOULLI, rng, 150, (3, 2, 4, 2, 3), kinds=(*KINDS, "ordered", "ordered"), candidates=candidates)
    exact, oracle = given.fit(), given.recursion()
    X, *_ = given.new_rows(rng, 12)
    X = np.where(rng.random(X.shape) < 0.3, UNKNOWN, X.astype(np.int64))
    expected = [math.exp(oracle.log_predictive(x, 1)) for x in X]
    np.testing.assert_allclose(exact.probs(X)[:, 1], expected, rtol=1e-9)
    np.testing.assert_allclose(exact.predictive(X).probs()[:, 1], expected, rtol=1e-9)
    for dtype in (np.uint8, np.uint16, np.int8, np.int16, np.int32):  # 255, 65535, and -1
        np.testing.assert_array_equal(exact.probs(X.astype(dtype)), exact.probs(X))


def test_what_does_not_fit_in_memory_is_left_out_with_a_warning(monkeypatch):
    given = table(BERNOULLI, rng_for("memory"), 60, (3, 2, 4, 3))
    whole = given.fit().probs(given.X)
    monkeypatch.setattr("everytree.exact.prediction.MAX_NUMBERS", 200)
    few = given.fit()
    with pytest.warns(UserWarning, match=r"leave out .* of the posterior instead of truncation=0"):
        probs = few.probs(given.X)
    assert 0.0 < few.truncation < 1.0
    assert 0.5 * np.abs(probs - whole).sum(axis=1).max() <= few.truncation + 1e-12
    monkeypatch.setattr("everytree.exact.prediction.MAX_LEAVES", 50)
    fewer = given.fit()
    with pytest.warns(UserWarning, match="leave out"):
        probs = fewer.probs(given.X)
    assert 0.5 * np.abs(probs - whole).sum(axis=1).max() <= fewer.truncation + 1e-12


@modes
@pytest.mark.parametrize("most", [100, 200, 400, 600])
def test_what_does_not_fit_in_memory_is_said_for_rows_with_unknown_answers_too(monkeypatch, most, candidates):
    """Tables for unknown answers are larger, so that more is left out of them."""
    given = table(BERNOULLI, rng_for("memory unknown"), 60, (3, 2, 4, 3), candidates=candidates)
    X = np.array(list(product(*(range(UNKNOWN, n) for n in given.n_codes))))
    whole = given.fit().probs(X)
    monkeypatch.setattr("everytree.exact.prediction.MAX_NUMBERS", most)
    few = given.fit()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "predictions leave out")
        far = 0.5 * np.abs(few.probs(X) - whole).sum(axis=1).max()
        assert far <= few.truncation + 1e-12
    assert few.truncation <= 1.0


@pytest.mark.parametrize("most", [1, 3, 10, 40, 150, 600])
def test_no_more_leaves_are_kept_than_memory_should_hold(monkeypatch, most):
    """Splits into two leaves are counted once, so that there may be twice as many."""
    monkeypatch.setattr("everytree.exact.prediction.MAX_LEAVES", most)
    engine = table(BERNOULLI, rng_for("most"), 60, (3, 2, 4, 3, 3)).fit()._engine
    leaves = find_leaves(engine, 0.0, with_unknown=False)
    assert len(leaves.weight) <= 2 * most
    assert len(leaves.weight) > most // 4


def test_no_rows_to_predict():
    fitted = problem(BERNOULLI, rng_for("none"), "all", n_codes=(2, 3), kinds=("ordered",) * 2,
                     X=np.zeros((1, 2), np.uint8), y=np.array([1]), weights=None).fit()  # fmt: skip
    none = np.zeros((0, 2), np.uint8)
    assert fitted.predictive(none).probs().shape == (0, 2)
    assert fitted.predictive(none).mean().shape == (0,)
    assert fitted.probs(none).shape == (0, 2)


def test_a_tree_as_a_meta_tree_leads_rows_to_the_same_leaves():
    rng = rng_for("as meta-tree")
    given = table(BERNOULLI, rng, 60, (3, 2, 4), kinds=("ordered", "multiway", "ordered"), split_prior=0.9)
    oracle = given.recursion()
    for tree in given.fit().sample_trees(20, rng=rng):
        joint = et.Posterior(tree.as_metatree(), BERNOULLI.family, 1.0).update(given.X, given.y).log_evidence
        leaves = oracle.nodes(naive_exact.nested(tree))
        assert joint == pytest.approx(sum(oracle.leaf(region) for node, region in leaves if not node), rel=1e-10)
        assert tree.depth <= 3
        assert tree.n_nodes == len(tree.feature)


# ---- beside the meta-tree ----------------------------------------------------------------------------------------


def log_mean(values: list[float]) -> float:
    return float(np.logaddexp.reduce(values)) - math.log(len(values))


@families
@modes
def test_depth_zero_is_the_leaf(case, candidates):
    rng = rng_for("leaf", case, candidates)
    given = table(case, rng, 30, (3, 2), candidates=candidates, max_depth=0)
    exact = given.fit()
    leaf = et.Posterior(et.MetaTree.complete([], n_features=2), case.family).update(given.X, given.y, **given.row_data)
    assert exact.log_evidence == pytest.approx(leaf.log_evidence, rel=1e-13)
    assert exact.entropy() == exact.split_prob_root == 0.0
    assert exact.expected_leaves() == 1.0
    assert not exact.root_feature_prob.any()
    assert exact.map_tree().n_leaves == 1
    assert exact.map_tree().log_prob == 0.0
    assert [tree.n_leaves for tree in exact.top_trees(3)] == [1]
    assert {tree.n_leaves for tree in exact.sample_trees(3, rng=1)} == {1}
    X, y, row_data = given.new_rows(rng, 5)
    np.testing.assert_allclose(
        exact.predictive(X, **row_data).log_prob(y), leaf.predictive(X, **row_data).log_prob(y), **CLOSE
    )


@families
@pytest.mark.parametrize("kind", KINDS)
def test_one_column_of_two_codes_is_one_meta_tree(case, kind):
    rng = rng_for("one column", case, kind)
    y, row_data = case.draw(rng, 20)
    X = rng.integers(0, 2, (20, 1)).astype(np.uint8)
    for max_depth in (1, 4):  # below the first split there is nothing left to ask
        given = Problem(case, (2,), max_depth, 0.3, "all", (kind,), X, y, None, row_data)
        exact = given.fit()
        post = et.Posterior(et.MetaTree.complete([0]), case.family, 0.3).update(X, y, **row_data)
        assert exact.log_evidence == pytest.approx(post.log_evidence, rel=1e-12)
        assert exact.split_prob_root == pytest.approx(post.split_prob[0], rel=1e-10)
        assert exact.entropy() == pytest.approx(post.entropy(), rel=1e-10, abs=1e-12)
        assert exact.expected_leaves() == pytest.approx(post.expected_leaves(), rel=1e-10)
        X_new, y_new, new = given.new_rows(rng, 6)
        one, other = exact.predictive(X_new, **new), post.predictive(X_new, **new)
        np.testing.assert_allclose(one.log_prob(y_new), other.log_prob(y_new), **CLOSE)
        np.testing.assert_allclose(one.mean(), other.mean(), **CLOSE)


@families
def test_one_multiway_column_is_one_meta_tree(case):
    rng = rng_for("multiway column", case)
    y, row_data = case.draw(rng, 20)
    X = rng.integers(0, 4, (20, 1)).astype(np.uint8)
    exact = Problem(case, (4,), 3, 0.6, "all", ("multiway",), X, y, None, row_data).fit()
    post = et.Posterior(et.MetaTree.complete([0], 4), case.family, 0.6).update(X, y, **row_data)
    assert exact.log_evidence == pytest.approx(post.log_evidence, rel=1e-12)
    assert exact.split_prob_root == pytest.approx(post.split_prob[0], rel=1e-10)


def test_one_ordered_column_at_depth_one_is_the_mean_over_its_thresholds():
    rng = rng_for("thresholds")
    X, y = rng.integers(0, 5, (40, 1)).astype(np.uint8), rng.integers(0, 2, 40)
    exact = Problem(BERNOULLI, (5,), 1, 0.4, "all", ("ordered",), X, y, None, {}).fit()
    trees = [et.MetaTree.from_arrays([0, -1, -1], [1, -1, -1], [2, 0, 0], [t, -1, -1]) for t in range(4)]
    each = [et.Posterior(tree, BERNOULLI.family, 0.4).update(X, y).log_evidence for tree in trees]
    assert exact.log_evidence == pytest.approx(log_mean(each), rel=1e-12)


@families
def test_binary_columns_are_the_mean_over_every_meta_tree(case):
    """The prior of the splits is uniform and independent: a plain mean over all choices of features."""
    rng = rng_for("every meta-tree", case)
    X = rng.integers(0, 2, (30, 3)).astype(np.uint8)
    y, row_data = case.draw(rng, 30)
    below = {root: [k for k in range(3) if k != root] for root in range(3)}
    for max_depth in (2, 3):
        given = Problem(case, (2, 2, 2), max_depth, FALLING, "all", ("ordered",) * 3, X, y, None, row_data)
        exact, posts = given.fit(), []
        for root in range(3):
            for left, right in product(below[root], repeat=2):
                last = [3 - root - left] * 2 + [3 - root - right] * 2 if max_depth == 3 else []
                tree = et.MetaTree.complete([root, left, right, *last], n_features=3)
                posts.append(et.Posterior(tree, case.family, FALLING).update(X, y, **row_data))
        each = [post.log_evidence for post in posts]
        assert exact.log_evidence == pytest.approx(log_mean(each), rel=1e-12)
        share = np.exp(np.array(each) - log_mean(each)) / len(each)
        split_prob = share @ [post.split_prob[0] for post in posts]
        assert exact.split_prob_root == pytest.approx(split_prob, rel=1e-10)
        X_new, y_new, new = given.new_rows(rng, 5)
        mixed = share @ np.exp([post.predictive(X_new, **new).log_prob(y_new) for post in posts])
        np.testing.assert_allclose(np.exp(exact.predictive(X_new, **new).log_prob(y_new)), mixed, **CLOSE)


# ---- truncation --------------------------------------------------------------------------------------------------


@modes
@pytest.mark.parametrize("truncation", [1e-6, 1e-3, 0.05, 0.3])
def test_what_prediction_drops_is_bounded(candidates, truncation):
    rng = rng_for("truncation", candidates, truncation)
    for case in (BERNOULLI, CASE["categorical"]):
        given = table(case, rng, 60, (3, 2, 4, 3), candidates=candidates, kinds=(*KINDS, "ordered"))
        whole, part = given.fit(), given.fit(truncation=truncation)
        X, y, _ = given.new_rows(rng, 200)
        probs, exact = part.predictive(X).probs(), whole.predictive(X).probs()
        assert whole.truncation == 0.0
        assert 0.0 <= part.truncation <= truncation
        np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=1e-12)
        far = 0.5 * np.abs(probs - exact).sum(axis=1).max()
        assert far <= part.truncation + 1e-12
        assert part.log_evidence == whole.log_evidence
        np.testing.assert_allclose(np.exp(part.predictive(X).log_prob(y)), probs[np.arange(200), y], rtol=1e-10)


@families
@modes
def test_what_prediction_drops_is_bounded_for_rows_with_unknown_answers_too(case, candidates):
    rng = rng_for("truncation unknown", case, candidates)
    for truncation in (1e-3, 0.02, 0.2):
        given = table(case, rng, 60, (3, 2, 4, 3), candidates=candidates, kinds=(*KINDS, "ordered"), max_depth=4)
        whole, part = given.fit(), given.fit(truncation=truncation)
        X, *_ = given.new_rows(rng, 40)
        X = np.where(rng.random(X.shape) < 0.4, UNKNOWN, X.astype(np.int64))
        assert part.truncation <= truncation
        assert worst_loss(whole, part, X) <= part.truncation + 1e-12


def worst_loss(whole: et.ExactPosterior, part: et.ExactPosterior, X: np.ndarray) -> float:
    """The most that the weights of some row's leaves differ, half the sum over leaves: no prediction is further off."""
    losses = []
    for codes in whole._read_codes(X, known=False):
        here, there = (leaf_weights(each, codes) for each in (whole, part))
        losses.append(0.5 * sum(abs(here.get(leaf, 0.0) - there.get(leaf, 0.0)) for leaf in here.keys() | there.keys()))
    return max(losses)


def leaf_weights(fitted: et.ExactPosterior, codes: np.ndarray) -> dict[tuple[Any, ...], float]:
    """Share of each leaf region that a row is predicted from, by its statistics."""
    leaves = fitted.leaf_regions(bool((codes >= np.array(fitted.n_codes)).any()))
    columns = fitted._columns
    _, found = _kernels.leaves_of_rows(
        **leaves.conditions, rows=codes[None], n_codes=columns.n_codes, kinds=columns.kind_numbers
    )
    weights: dict[tuple[Any, ...], float] = {}
    for leaf in found:
        key = tuple(np.round(leaves.statistics[leaf], 9).tolist())
        weights[key] = weights.get(key, 0.0) + leaves.weight[leaf] / leaves.weight[found].sum()
    return weights


def test_by_default_little_is_dropped():
    given = table(BERNOULLI, rng_for("default"), 60, (3, 2, 4, 3))
    model = et.ExactPosterior(given.n_codes, given.case.family).fit(given.X, given.y)
    assert model.predictive(given.X).probs().shape == (60, 2)
    assert model.truncation <= 1e-6


# ---- size, budgets -----------------------------------------------------------------------------------------------


SHAPES = [
    ((2, 2, 2), "ordered"), ((4, 3), "ordered"), ((3, 3, 2), "multiway"), ((4, 4), "one_against_rest"),
    ((3, 2, 4, 3), ("ordered", "multiway", "one_against_rest", "ordered")), ((1, 2, 1), "ordered"), ((5,), "ordered"),
    ((5,), "one_against_rest"), ((1,), "ordered"),
]  # fmt: skip


@pytest.mark.parametrize(("n_codes", "kind"), SHAPES)
@pytest.mark.parametrize("max_depth", [0, 1, 2, 3, 4])
def test_the_number_of_regions_is_known_beforehand(n_codes, kind, max_depth):
    counts = naive_exact.regions_by_depth(n_codes, max_depth, kind)
    estimate = et.ExactPosterior.count_regions(n_codes, max_depth, kinds=kind)
    assert estimate >= sum(counts)
    X = np.array(list(product(*map(range, n_codes))), dtype=np.uint8)  # every region has rows
    model = et.ExactPosterior(n_codes, et.Bernoulli(), max_depth, kinds=kind).fit(X, np.zeros(len(X), int))
    if max_depth > 0:
        np.testing.assert_array_equal(model.n_regions, counts)
        assert estimate == sum(counts)


@modes
def test_fewer_regions_hold_rows(candidates):
    rng = rng_for("fewer", candidates)
    for kind in KINDS:
        given = table(BERNOULLI, rng, 10, (4, 3, 4), candidates=candidates, kinds=(kind,) * 3)
        assert sum(given.fit().n_regions) <= et.ExactPosterior.count_regions(given.n_codes, 3, kinds=kind)


def test_too_many_regions_are_refused_before_any_work():
    estimate = et.ExactPosterior.count_regions([2] * 40, 6)
    assert estimate == sum(math.comb(40, d) * 2**d for d in range(6))
    X = np.zeros((5, 40), np.uint8)
    with pytest.raises(ValueError, match=r"max_regions") as caught:
        et.ExactPosterior([2] * 40, et.Bernoulli(), max_depth=6, max_regions=1000).fit(X, [0, 1, 0, 1, 1])
    message = str(caught.value).replace(",", "").replace("_", "").replace(" ", "")
    assert str(estimate) in message or f"{estimate:.3g}" in message, caught.value
    assert "1000" in message


def test_counting_is_quick_where_fitting_would_not_be():
    assert et.ExactPosterior.count_regions([2] * 1000, 10) > 1e20
    assert et.ExactPosterior.count_regions([256] * 500, 8) > 1e20
    assert et.ExactPosterior.count_regions([64] * 30, 7, kinds="one_against_rest") > 1e12


@families
@modes
def test_bounds_hold_the_evidence(case, candidates):
    rng = rng_for("bounds", case, candidates)
    for split_prior in (0.5, 0.95, FALLING):
        given = table(case, rng, 40, (3, 2, 4, 3), candidates=candidates, kinds=(*KINDS, "ordered"),
                      split_prior=split_prior)  # fmt: skip
        whole = given.fit()
        assert whole.log_evidence_bounds == (whole.log_evidence, whole.log_evidence)
        for budget in (1, 2, 5, 20, 60):
            lower, upper = given.fit(budget=budget).log_evidence_bounds
            assert lower <= whole.log_evidence + 1e-10
            assert upper >= whole.log_evidence - 1e-10
        enough = given.fit(budget=sum(whole.n_regions) + 1)
        assert enough.log_evidence_bounds == whole.log_evidence_bounds
        lower, upper = given.fit(max_seconds=1e-9).log_evidence_bounds
        assert lower <= whole.log_evidence + 1e-10 <= upper + 2e-10
        assert given.fit(max_seconds=1e6).log_evidence_bounds == whole.log_evidence_bounds


@modes
@pytest.mark.parametrize("name", ["bernoulli", "categorical"])
def test_bounds_hold_the_enumerated_evidence(name, candidates):
    rng = rng_for("small bounds", name, candidates)
    for _ in range(15):
        given = problem(CASE[name], rng, candidates)
        expected = given.enumeration().log_evidence
        for budget in (1, 3, 10):
            lower, upper = given.fit(budget=budget).log_evidence_bounds
            assert lower <= expected + 1e-10
            assert expected - 1e-10 <= upper < 1e-10


@pytest.mark.parametrize("part", range(6))
def test_bounds_hold_wherever_work_was_cut(part):
    """Fifty random problems a part, each under a budget, under a clock, and under both."""
    rng = rng_for("cut", part)
    for _ in range(50):
        case = CASES[rng.integers(len(CASES))]
        given = problem(case, rng, str(rng.choice(["all", "nontrivial"])), most_trees=3000, most_codes=5)
        truth = given.recursion().top.log_evidence
        budget, seconds = int(rng.integers(1, 40)), float(10.0 ** rng.uniform(-6.0, -2.5))
        for limits in ({"budget": budget}, {"max_seconds": seconds}, {"budget": budget, "max_seconds": seconds}):
            part_of_it = given.fit(n_jobs=int(rng.integers(1, 3)), **limits)
            lower, upper = part_of_it.log_evidence_bounds
            assert lower <= truth + 1e-9 * (1.0 + abs(truth)), (given, limits)
            assert upper >= truth - 1e-9 * (1.0 + abs(truth)), (given, limits)
            assert sum(part_of_it.n_regions) <= limits.get("budget", math.inf)


@modes
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("name", ["bernoulli", "normal"])
def test_a_clock_may_stop_anywhere(name, n_jobs, candidates):
    """Bounds hold, and all answers are those of one posterior: a copy that lists its regions again gives the same."""
    rng = rng_for("clock", name, n_jobs, candidates)
    given = table(CASE[name], rng, 80, (5, 3, 70, 4), candidates=candidates, max_depth=3)
    begun = perf_counter()
    whole = given.fit(n_jobs=n_jobs)
    taken = perf_counter() - begun
    for share in rng.uniform(0.0, 1.2, 5):
        part = given.fit(n_jobs=n_jobs, max_seconds=share * taken + 1e-6)
        lower, upper = part.log_evidence_bounds
        assert lower <= whole.log_evidence + 1e-9
        assert upper >= whole.log_evidence - 1e-9
        again = copy.copy(part)
        again._engine = again._search = again._summary = None
        assert again.engine().log_evidence() == lower
        assert list(again.engine().n_regions()) == part.n_regions
        assert again.entropy() == part.entropy()
        best = part.map_tree()
        assert best.log_prob <= 1e-12
        assert best.log_prob + lower <= whole.map_tree().log_prob + whole.log_evidence + 1e-9
        assert part.root_feature_prob.sum() <= 1.0 + 1e-9
        mean, _ = part.moments(given.X)
        assert np.isfinite(mean).all()


def seconds_of_fit(
    n_codes: list[int], max_depth: int, limits: dict[str, Any], n_rows: int = 300, **options: Any
) -> float:
    """How long a fit of random rows takes, with no time for the making of them."""
    rng = rng_for("seconds", n_codes[0], max_depth)
    X = rng.integers(n_codes, size=(n_rows, len(n_codes))).astype(np.uint16)
    family = options.pop("family", et.Bernoulli())
    fitted = et.ExactPosterior(n_codes, family, max_depth, **options)
    begun = perf_counter()
    fitted.fit(X, rng.integers(0, 2, n_rows), **limits)
    taken = perf_counter() - begun
    lower, upper = fitted.log_evidence_bounds
    assert lower <= upper
    assert sum(fitted.n_regions) <= limits.get("budget", math.inf)
    return taken


@pytest.mark.parametrize(
    ("n_codes", "max_depth", "options"),
    [
        ([30] * 20, 3, {}), ([30] * 20, 6, {}), ([30] * 20, 6, {"n_jobs": 2}), ([100] * 20, 2, {}),
        ([30] * 20, 4, {"candidates": "nontrivial"}), ([30] * 20, 4, {"family": et.Normal(0.5, 1.0, 1.0, 1.0)}),
        ([65534] * 50, 1, {}), ([65534] * 50, 4, {}), ([65534] * 5, 4, {"split_prior": 1.0 - 1e-9}),
        ([64] * 20, 3, {"kinds": "one_against_rest"}), ([2] * 400, 5, {"n_rows": 20_000}),
    ],
)  # fmt: skip
def test_a_fit_ends_when_its_time_is_over(n_codes, max_depth, options):
    """Without a clock inside the work on a region these take from seconds to hours."""
    assert seconds_of_fit(n_codes, max_depth, {"max_seconds": 0.2}, **options) < 4.0


@pytest.mark.parametrize(("n_codes", "max_depth"), [([100] * 20, 2), ([65534] * 20, 3), ([30] * 20, 5)])
def test_no_more_regions_are_listed_than_the_budget_has(n_codes, max_depth):
    for budget in (1, 10, 1500):
        assert seconds_of_fit(n_codes, max_depth, {"budget": budget}) < 20.0


def test_a_budget_is_no_way_around_the_most_regions():
    given = table(BERNOULLI, rng_for("most regions"), 60, (3, 2, 4, 3), max_depth=3)
    fitted = given.fit(max_regions=40, budget=10_000)
    assert 1 < sum(fitted.n_regions) <= 40


@pytest.mark.parametrize(("n_codes", "max_depth", "n_jobs"), [([65534] * 50, 3, 1), ([30] * 20, 6, 2)])
def test_an_interrupt_is_obeyed_inside_the_work_on_a_region(n_codes, max_depth, n_jobs):
    begun = perf_counter()
    Timer(0.3, interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        seconds_of_fit(n_codes, max_depth, {"max_seconds": 60.0}, n_jobs=n_jobs)
    assert perf_counter() - begun < 8.0


@modes
@pytest.mark.parametrize("split_prior", [0.0, 1.0])
def test_bounds_hold_where_splits_are_certain(candidates, split_prior):
    rng = rng_for("certain bounds", candidates, split_prior)
    for case in (BERNOULLI, CASE["poisson"], CASE["normal"]):
        given = table(case, rng, 30, (3, 2, 2), candidates=candidates, split_prior=split_prior)
        whole = given.fit()
        for budget in (1, 2, 5, 15):
            lower, upper = given.fit(budget=budget).log_evidence_bounds
            assert lower <= whole.log_evidence + 1e-10
            assert upper >= whole.log_evidence - 1e-10


def test_where_no_tree_that_was_looked_at_is_possible_only_the_bounds_are_known():
    given = table(BERNOULLI, rng_for("impossible"), 30, (3, 2, 2), split_prior=1.0)
    part = given.fit(budget=1)
    lower, upper = part.log_evidence_bounds
    assert lower == -math.inf
    assert upper >= given.fit().log_evidence
    for ask in (lambda: part.probs(given.X), part.map_tree, part.entropy, lambda: part.feature_prob):
        refused(ask, "split_prior is 1", "budget")
    assert pickle.loads(pickle.dumps(part)).log_evidence_bounds == (lower, upper)


@modes
def test_trees_of_a_spent_budget_are_trees_with_their_own_probability(candidates):
    """log p(T, k, y) is the same whatever was left out beside it, and the best one found is a certificate."""
    rng = rng_for("spent", candidates)
    for _ in range(10):
        given = problem(BERNOULLI, rng, candidates)
        oracle = given.enumeration()
        for budget in (1, 2, 4):
            part = given.fit(budget=budget)
            trees = [part.map_tree(), *part.top_trees(4), *part.sample_trees(4, rng=1)]
            for tree in trees:
                joint = oracle.log_prob[naive_exact.nested(tree)] + oracle.log_evidence
                assert tree.log_prob + part.log_evidence == pytest.approx(joint, rel=1e-9, abs=1e-9)


def test_a_spent_budget_still_predicts():
    rng = rng_for("spent prediction")
    given = table(BERNOULLI, rng, 50, (3, 2, 4, 3))
    part = given.fit(budget=3)
    probs = part.predictive(given.X).probs()
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=1e-10)
    assert part.root_feature_prob.sum() <= 1.0 + 1e-12
    assert part.expected_leaves() >= 1.0 - 1e-12


def test_progress_is_told_and_may_stop_the_work():
    given = table(BERNOULLI, rng_for("progress"), 50, (3, 2, 4, 3))
    fitted = et.ExactPosterior(given.n_codes, BERNOULLI.family, 3)
    calls = []
    fitted.fit(given.X, given.y, progress=lambda *where: calls.append(where))
    assert calls
    assert all(0 <= done <= total for _, done, total in calls)
    before = fitted.log_evidence

    def stop(*where):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted.fit(given.X[:20], given.y[:20], progress=stop)
    assert fitted.log_evidence == before
    assert (
        fitted.fit(given.X[:20], given.y[:20]).log_evidence
        == replace(given, X=given.X[:20], y=given.y[:20]).fit().log_evidence
    )


@pytest.mark.parametrize(("max_depth", "n_jobs"), [(1, 1), (2, 1), (4, 1), (4, 2)])
def test_the_share_of_work_done_rises_to_all_of_it(max_depth, n_jobs):
    given = table(BERNOULLI, rng_for("share", max_depth), 80, (3, 2, 4, 3, 2, 5))
    fitted = et.ExactPosterior(given.n_codes, BERNOULLI.family, max_depth, n_jobs=n_jobs)
    work_done = WorkDone(regions_by_depth(given.n_codes, fitted.kinds, max_depth).tolist())
    told = []
    fitted.fit(given.X, given.y, progress=lambda *where: told.append(work_done(*where)))
    shares = [done / total for done, total in told]
    assert all(0.0 <= share <= 1.0 for share in shares)
    done = [done for done, _ in told]
    assert done == sorted(done)
    n_regions = fitted.n_regions
    assert work_done(0, 1, 1) == (told[-1][1], 2 * sum(n_regions[:-1]) + n_regions[-1])
    assert work_done(0, 1, 1)[0] == work_done(0, 1, 1)[1]


def test_more_regions_never_loosen_the_bounds_of_classes():
    given = table(BERNOULLI, rng_for("tighter"), 60, (2,) * 6, max_depth=4)
    n_regions = sum(given.fit().n_regions)
    bounds = np.array([given.fit(budget=int(b)).log_evidence_bounds for b in np.linspace(1, n_regions + 1, 8)])
    assert (np.diff(bounds[:, 0]) >= -1e-10).all()
    assert (np.diff(bounds[:, 1]) <= 1e-10).all()


# ---- memory -------------------------------------------------------------------------------------------------------


def test_nothing_is_kept_when_the_posterior_goes():
    """No object of a fit refers to itself in a circle, so that its memory is free at once."""
    given = table(BERNOULLI, rng_for("memory"), 60, (3, 2, 4, 3))
    gc.disable()
    try:
        fitted = given.fit()
        fitted.top_trees(5), fitted.sample_trees(5, rng=1), fitted.probs(given.X), fitted.predictive(given.X).mean()
        fitted.entropy(), fitted.feature_prob, fitted.truncation
        kept = [weakref.ref(fitted), weakref.ref(fitted._trees()), weakref.ref(fitted._trees()._root)]
        del fitted
        assert [one() for one in kept] == [None, None, None]
    finally:
        gc.enable()


# ---- bad input ---------------------------------------------------------------------------------------------------


def refused(call: Any, *words: str) -> str:
    """The message of a ValueError or TypeError that has all these words in it."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    message = str(caught.value)
    assert "incompatible function arguments" not in message, f"the binding complains, not the library: {message}"
    for word in words:
        assert word in message, f"{word!r} is not in: {message}"
    return message


GOOD_X, GOOD_Y = np.array([[0, 1], [1, 2], [1, 0]], dtype=np.uint8), np.array([0, 1, 1])


def model(*args: Any, **options: Any) -> et.ExactPosterior:
    return et.ExactPosterior(*(args or ((2, 3), et.Bernoulli())), **options)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: model((2, 0), et.Bernoulli()), ["n_codes", "0"]),
        (lambda: model((2, -3), et.Bernoulli()), ["n_codes", "-3"]),
        (lambda: model((2, 1.5), et.Bernoulli()), ["n_codes", "1.5"]),
        (lambda: model("22", et.Bernoulli()), ["n_codes"]),
        (lambda: model(7, et.Bernoulli()), ["n_codes"]),
        (lambda: model((2, 3), "bernoulli"), ["family"]),
        (lambda: model((2, 3), et.Bernoulli([0.5, 0.5, 0.5], 0.5)), ["prior"]),
        (lambda: model(max_depth=-1), ["max_depth", "-1"]),
        (lambda: model(max_depth=1.5), ["max_depth", "1.5"]),
        (lambda: model(max_depth="2"), ["max_depth"]),
        (lambda: model(max_depth=True), ["max_depth"]),
        (lambda: model(split_prior=-0.1), ["split_prior", "-0.1"]),
        (lambda: model(split_prior=1.1), ["split_prior", "1.1"]),
        (lambda: model(split_prior=float("nan")), ["split_prior", "nan"]),
        (lambda: model(split_prior=lambda depth: depth - 1.0), ["split_prior", "-1"]),
        (lambda: model(split_prior="half"), ["split_prior"]),
        (lambda: model(candidates="some"), ["candidates", "some", "nontrivial"]),
        (lambda: model(kinds="sideways"), ["kinds", "sideways", "ordered"]),
        (lambda: model(kinds=["ordered", "sideways"]), ["kinds", "sideways", "ordered"]),
        (lambda: model(kinds=["ordered"]), ["kinds", "1", "2"]),
        (lambda: model(kinds=["ordered", 3]), ["kinds", "3"]),
        (lambda: model((2, 65), et.Bernoulli(), kinds="one_against_rest"), ["65", "64"]),
        (lambda: model((2, 65), et.Bernoulli(), kinds=["ordered", "one_against_rest"]), ["65", "64"]),
        (lambda: model(max_regions=0), ["max_regions", "0"]),
        (lambda: model(max_regions=-1), ["max_regions", "-1"]),
        (lambda: model(truncation=-1e-3), ["truncation", "-0.001"]),
        (lambda: model(truncation=1.5), ["truncation", "1.5"]),
        (lambda: model(truncation=float("nan")), ["truncation", "nan"]),
        (lambda: model(n_jobs=1.5), ["n_jobs", "1.5"]),
        (lambda: et.ExactPosterior.count_regions((2, 0), 2), ["n_codes", "0"]),
        (lambda: et.ExactPosterior.count_regions((2, 3), -1), ["max_depth", "-1"]),
        (lambda: et.ExactPosterior.count_regions((2, 3), 2, kinds="sideways"), ["kinds", "sideways"]),
    ],
)  # fmt: skip
def test_a_bad_model_is_refused(make, words):
    refused(make, *words)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (([[0, 1], [1, 3], [1, 0]], GOOD_Y), ["column 1", "row 1", "3"]),
        (([[0, 1], [1, 2], [-1, 0]], GOOD_Y), ["column 0", "row 2", "-1"]),
        ((np.array([[0, 1], [1, 70000], [1, 0]]), GOOD_Y), ["column 1", "row 1", "70000"]),
        ((np.array([[0, 1], [1, 2**40], [1, 0]]), GOOD_Y), ["column 1", "row 1"]),
        ((np.array([[0, 1], [1, 0.5], [1, 0]]), GOOD_Y), ["0.5"]),
        ((np.array([[0, 1], [1, np.nan], [1, 0]]), GOOD_Y), ["nan"]),
        ((GOOD_X[:, :1], GOOD_Y), ["1", "2"]),
        ((np.zeros((3, 3), np.uint8), GOOD_Y), ["3", "2"]),
        ((GOOD_X[:, 0], GOOD_Y), []),
        ((GOOD_X, GOOD_Y[:2]), ["2", "3"]),
        ((GOOD_X, [0, 1, 2]), ["2"]),
        ((GOOD_X, [0, 1, np.nan]), ["nan"]),
        ((GOOD_X, GOOD_Y, [1.0, 1.0]), ["sample_weight", "2", "3"]),
        ((GOOD_X, GOOD_Y, [1.0, 1.0, -1.0]), ["weight", "-1"]),
        ((GOOD_X, GOOD_Y, [1.0, 1.0, np.nan]), ["weight", "nan"]),
    ],
)  # fmt: skip
def test_bad_rows_are_refused(rows, words):
    refused(lambda: model().fit(*rows), *words)


def test_row_data_the_family_does_not_know_is_refused():
    refused(lambda: model().fit(GOOD_X, GOOD_Y, exposure=[1.0, 1.0, 1.0]), "exposure")
    poisson = et.ExactPosterior((2, 3), et.Poisson(1.0, 1.0))
    refused(lambda: poisson.fit(GOOD_X, GOOD_Y, exposure=[1.0, 1.0]), "exposure", "2", "3")
    refused(lambda: poisson.fit(GOOD_X, GOOD_Y, exposure=[1.0, 1.0, -1.0]), "exposure", "-1")
    refused(lambda: et.ExactPosterior((2, 3), et.LinearRegression(2)).fit(GOOD_X, GOOD_Y), "inputs")


def test_bad_questions_are_refused():
    fitted = model().fit(GOOD_X, GOOD_Y)
    refused(lambda: fitted.predictive([[0, 3]]), "column 1", "row 0", "3")
    refused(lambda: fitted.predictive([[0]]), "1", "2")
    refused(lambda: fitted.predictive([[0, 1]], exposure=[1.0]), "exposure")
    for k in (0, -1, 1.5, True):
        refused(lambda k=k: fitted.top_trees(k), "k")
    for n in (-1, 1.5, True):
        refused(lambda n=n: fitted.sample_trees(n, rng=1), "n")
    refused(lambda: fitted.probs([[2, 0]]), "column 0", "row 0", "2")
    refused(lambda: fitted.moments([[0, 9]]), "column 1", "row 0", "9")
    for budget in (0, -1, 1.5):
        refused(lambda b=budget: model().fit(GOOD_X, GOOD_Y, budget=b), "budget")
    for seconds in (-1.0, float("nan"), "soon"):
        refused(lambda s=seconds: model().fit(GOOD_X, GOOD_Y, max_seconds=s), "max_seconds")


@pytest.mark.parametrize(
    "ask",
    [
        lambda m: m.log_evidence, lambda m: m.predictive(GOOD_X), lambda m: m.map_tree(), lambda m: m.top_trees(2),
        lambda m: m.sample_trees(2, rng=1), lambda m: m.entropy(), lambda m: m.feature_prob,
        lambda m: m.expected_leaves(), lambda m: m.log_evidence_bounds, lambda m: m.n_regions, lambda m: m.truncation,
    ],
)  # fmt: skip
def test_nothing_is_known_before_fit(ask):
    with pytest.raises((ValueError, AttributeError, RuntimeError), match="fit"):
        ask(model())


def test_a_failed_fit_changes_nothing():
    fitted = model().fit(GOOD_X, GOOD_Y)
    before, probs = fitted.log_evidence, fitted.predictive(GOOD_X).probs()
    refused(lambda: fitted.fit([[0, 9]], [1]))
    assert fitted.log_evidence == before
    np.testing.assert_array_equal(fitted.predictive(GOOD_X).probs(), probs)


def test_fitting_again_forgets_what_was_before():
    fitted = model().fit(GOOD_X[:2], GOOD_Y[:2]).fit(GOOD_X, GOOD_Y)
    assert fitted.log_evidence == model().fit(GOOD_X, GOOD_Y).log_evidence


def test_fit_leaves_its_arguments_alone_and_takes_any_container():
    X, y, weight = GOOD_X.copy(), GOOD_Y.copy(), np.array([1.0, 2.0, 0.5])
    fitted = model().fit(X, y, weight)
    np.testing.assert_array_equal(X, GOOD_X)
    np.testing.assert_array_equal(y, GOOD_Y)
    others = [
        (X.tolist(), y.tolist(), weight.tolist()), (X.astype(np.int64), y.astype(float), weight.astype(np.float32)),
        (np.asfortranarray(X.astype(np.uint16)), y.astype(bool), weight), (np.repeat(X, 2, axis=0)[::2], y, weight),
    ]  # fmt: skip
    for rows in others:
        assert model().fit(*rows).log_evidence == fitted.log_evidence
    before = fitted.predictive(GOOD_X).probs()
    X[:], y[:], weight[:] = 0, 0, 9.0
    np.testing.assert_array_equal(fitted.predictive(GOOD_X).probs(), before)


@pytest.mark.parametrize("offset", [1e6, 1e9])
@pytest.mark.parametrize("prior_mean", ["there", "at zero"])
def test_normal_leaves_of_any_weights_far_from_zero(offset, prior_mean):
    """Law 10: evidence and moments by one tree for each split, in 60 digits."""
    rng = rng_for("exact far", offset)
    X, weight = rng.integers(0, 2, (14, 2)).astype(np.uint8), rng.random(14)
    y = offset + X[:, 0] + rng.normal(size=14)
    hyper = (offset, 1e-3, 2.0, 1.0) if prior_mean == "there" else (0.0, 1e-18, 2.0, 1.0)
    twin = naive_families.Normal(*hyper)
    post = et.ExactPosterior([2, 2], et.Normal(*hyper), 1, truncation=0.0).fit(X, y, weight)
    groups = {"root": np.ones(14, bool)} | {(k, c): X[:, k] == c for k in (0, 1) for c in (0, 1)}
    evidence = {name: mp.exp(twin.exact_log_evidence(y[rows], weight[rows])) for name, rows in groups.items()}
    splits = [evidence[k, 0] * evidence[k, 1] for k in (0, 1)]
    total = (evidence["root"] + (splits[0] + splits[1]) / 2) / 2
    assert post.log_evidence == pytest.approx(float(mp.log(total)), rel=1e-10)

    row = X[:1]
    leaves = [(evidence["root"] / 2, groups["root"])]
    leaves += [(splits[k] / 4, groups[k, int(row[0, k])]) for k in (0, 1)]
    moments = [(p / total, *twin.exact_moments(y[rows], weight[rows])) for p, rows in leaves]
    mean = sum(p * m for p, m, _ in moments)
    variance = float(sum(p * (v + (m - mean) ** 2) for p, m, v in moments))
    for got in ((post.predictive(row).mean(), post.predictive(row).variance()), post.moments(row)):
        assert got[0][0] == pytest.approx(float(mean), rel=1e-14)
        assert got[1][0] == pytest.approx(variance, rel=1e-9)
