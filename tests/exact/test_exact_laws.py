"""Laws of exact posteriors: threads, samples, order of rows and columns, and rows that say nothing."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import naive_exact
from cases import CASE, families, rng_for, take
from exact_cases import BERNOULLI, CLOSE, KINDS, Problem, check_all, check_trees, modes, problem, table

# ---- threads and samples ---------------------------------------------------------------------------------------------


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


# ---- order -----------------------------------------------------------------------------------------------------------


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


# ---- rows that say little --------------------------------------------------------------------------------------------


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
