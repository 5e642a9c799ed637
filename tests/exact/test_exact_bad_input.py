"""What an exact posterior refuses, by name, place and value; neither a failed fit nor an earlier one leaves a trace."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import everytree as et
from refusals import refused

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
        ((GOOD_X, GOOD_Y, [1.0, 1.0, -1.0]), ["sample_weight[2]", "-1"]),
        ((GOOD_X, GOOD_Y, [1.0, 1.0, np.nan]), ["sample_weight[2]", "nan"]),
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
