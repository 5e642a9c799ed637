"""The sum over every tree and every choice of splits against the list of all of them."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given

import everytree as et
import naive_exact
import naive_families
from cases import CASE, CASES, LONG, examples, families, rng_for, seeds, take
from exact_cases import (
    BERNOULLI,
    CLOSE,
    FALLING,
    KINDS,
    Problem,
    check_all,
    check_predictions,
    check_sums,
    check_trees,
    kinds,
    modes,
    problem,
    table,
)
from naive_families import mp

# ---- the oracle itself -----------------------------------------------------------------------------------------------


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


# ---- every answer ----------------------------------------------------------------------------------------------------


@modes
@pytest.mark.parametrize("n_classes", [65, 100])
def test_more_classes_than_a_word_has_bits(candidates, n_classes):
    rng = rng_for("many classes", candidates, n_classes)
    case = replace(
        BERNOULLI, family=et.Categorical(n_classes, 0.3), twin=naive_families.Categorical(n_classes, [0.3] * n_classes),
        draw=lambda rng, n: (rng.integers(0, n_classes, n), {}),
    )  # fmt: skip
    given = problem(case, rng, candidates, "ordered", most_trees=60, weights=None)
    check_sums(given.fit(), given.enumeration())


@pytest.mark.long
@families
@modes
@kinds
def test_every_answer_equals_its_sum_over_all_trees(case, candidates, kind):
    rng = rng_for("every answer", case, candidates, kind)
    for _ in range(10 if LONG else 1):
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


# ---- more rows than a machine word holds -----------------------------------------------------------------------------


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
    for case in (BERNOULLI, CASE["normal"], CASE["categorical"], CASE["exponential"])[: None if LONG else 2]:
        y, row_data = case.draw(rng, 40)
        given = Problem(case, n_codes, max_depth, 0.5, "nontrivial", kind_of, X, y, None, row_data)
        check_against_recursion(given, rng)
        check_against_recursion(replace(given, candidates="all", max_depth=min(max_depth, 70 // n_codes[0])), rng)


# ---- beside the meta-tree --------------------------------------------------------------------------------------------


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
