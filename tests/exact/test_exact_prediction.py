"""Predictions of an exact posterior: quick ways, answers nobody knows, and what is left out."""

from __future__ import annotations

import math
import warnings
from itertools import product
from typing import Any

import numpy as np
import pytest

import everytree as et
from cases import CASE, families, rng_for
from everytree import _kernels
from everytree.exact.prediction import Limits, find_leaves
from exact_cases import BERNOULLI, CLOSE, KINDS, UNKNOWN, modes, problem, table


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
    leaves = find_leaves(engine, 2, 0.0, False, Limits.within(None))
    assert len(leaves.weight) <= 2 * most
    assert len(leaves.weight) > most // 4


def test_no_rows_to_predict():
    fitted = problem(BERNOULLI, rng_for("none"), "all", n_codes=(2, 3), kinds=("ordered",) * 2,
                     X=np.zeros((1, 2), np.uint8), y=np.array([1]), weights=None).fit()  # fmt: skip
    none = np.zeros((0, 2), np.uint8)
    assert fitted.predictive(none).probs().shape == (0, 2)
    assert fitted.predictive(none).mean().shape == (0,)
    assert fitted.probs(none).shape == (0, 2)


# ---- what is left out ------------------------------------------------------------------------------------------------


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
