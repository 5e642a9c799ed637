"""Evidence and ladders of powers, beside slow definitions and exact sums."""

from __future__ import annotations

import sys
import warnings
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit

from cases import rng_for
from everytree.sampling.draws import Draws, inference_data
from everytree.sampling.evidence import adapted_powers, bennett_ratio, estimate_evidence, first_powers
from sampling_cases import ess, rhat

# ---- the evidence ---------------------------------------------------------------------------------------------------

LEVELS = np.linspace(-3.0, 2.0, 12)
"""Log evidence of each of some structures that are equally probable a priori."""


def exact_draws(powers: np.ndarray, n_chains: int, n_draws: int, what: object) -> tuple[np.ndarray, ...]:
    """Log evidence at its own power and at the neighbours' of structures drawn independently at each power."""
    rng, n = rng_for("evidence", what), len(powers)
    own, hotter, colder = (np.zeros((n_chains, n_draws, n)) for _ in range(3))
    for i, power in enumerate(powers):
        prob = np.exp(power * LEVELS)
        level = rng.choice(LEVELS, (n_chains, n_draws), p=prob / prob.sum())
        own[:, :, i] = power * level
        hotter[:, :, i] = powers[max(i - 1, 0)] * level
        colder[:, :, i] = powers[min(i + 1, n - 1)] * level
    return own, hotter, colder


EXACT = float(np.log(np.mean(np.exp(LEVELS))))


def test_the_evidence_is_estimated_with_its_error():
    """Of many estimates, differences from the exact sum are as large as their errors say."""
    powers = np.linspace(0.0, 1.0, 4)
    estimates = [estimate_evidence(*exact_draws(powers, 2, 100, number)) for number in range(80)]
    off = np.array([one.value - EXACT for one in estimates])
    errors = np.array([one.error for one in estimates])
    assert abs(off.mean()) < 4.0 * off.std() / np.sqrt(80)
    assert 0.7 < off.std() / errors.mean() < 1.4
    assert np.mean(np.abs(off) < 2.0 * errors) > 0.85


def test_more_draws_and_more_powers_have_smaller_errors():
    few, many = (estimate_evidence(*exact_draws(np.array([0.0, 1.0]), 2, n, "size")).error for n in (50, 5000))
    assert many < 0.2 * few
    steps = estimate_evidence(*exact_draws(np.linspace(0.0, 1.0, 6), 2, 5000, "steps"))
    assert steps.error < 2.0 * many
    assert steps.value == pytest.approx(EXACT, abs=5.0 * steps.error)


def test_one_draw_has_no_error():
    estimate = estimate_evidence(*exact_draws(np.array([0.0, 1.0]), 1, 1, "one"))
    assert np.isnan(estimate.error)
    assert np.isfinite(estimate.value)


def test_bennetts_ratio_makes_both_sums_equal():
    rng = rng_for("sums")
    up, down = rng.normal(0.3, 1.0, 200), rng.normal(-0.1, 1.0, 200)
    ratio = bennett_ratio(up, down)
    assert expit(up - ratio).sum() == pytest.approx(expit(down + ratio).sum(), rel=1e-9)
    assert bennett_ratio(down, up) == pytest.approx(-ratio, abs=1e-9)
    assert bennett_ratio(up + 5.0, down - 5.0) == pytest.approx(ratio + 5.0, abs=1e-9)
    assert bennett_ratio(np.full(9, 2.5), np.full(9, -2.5)) == pytest.approx(2.5, abs=1e-9)


def test_bennetts_ratio_of_evidence_that_is_far_apart_is_finite():
    assert bennett_ratio(np.full(5, -1e5), np.full(5, 1e5)) == pytest.approx(-1e5)
    assert np.isfinite(bennett_ratio(np.array([-1e4, 3e3]), np.array([5e3, -2e3])))


# ---- ladders --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0.3, 1.0])
@pytest.mark.parametrize("n", [1, 2, 3, 10])
def test_the_first_ladder_leads_from_the_prior_to_the_target(n, temperature):
    powers = first_powers(n, temperature)
    assert len(powers) == n
    assert powers[-1] == temperature
    assert n == 1 or powers[0] == 0.0
    assert (np.diff(powers) > 0.0).all()


def test_powers_are_placed_where_neighbours_are_rejected():
    powers = np.array([0.0, 0.1, 0.5, 1.0])
    adapted = adapted_powers(powers, np.array([0.9, 0.9, 0.1]))
    assert adapted[[0, -1]].tolist() == [0.0, 1.0]
    assert (np.diff(adapted) > 0.0).all()
    assert (adapted[1:-1] > 0.5).all()
    np.testing.assert_allclose(adapted_powers(powers, np.full(3, 0.4)), powers, atol=1e-12)
    np.testing.assert_array_equal(adapted_powers(powers[:2], np.array([0.5])), powers[:2])


def test_each_step_of_an_adapted_ladder_has_the_same_part_of_the_rejections():
    """Where rejections are spread evenly between two powers."""
    rng = rng_for("ladder")
    powers, rejected = np.sort(np.append(rng.uniform(size=5), [0.0, 1.0])), rng.uniform(0.05, 0.9, 6)
    length = np.append(0.0, np.cumsum(rejected))
    adapted = adapted_powers(powers, 1.0 - rejected)
    parts = [np.interp(b, powers, length) - np.interp(a, powers, length) for a, b in pairwise(adapted)]
    np.testing.assert_allclose(parts, length[-1] / 6, rtol=1e-9)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_exchanges_that_all_fail_or_all_succeed_keep_the_ladder(rate):
    powers = np.array([0.0, 0.2, 0.6, 1.0])
    np.testing.assert_allclose(adapted_powers(powers, np.full(3, rate)), powers, atol=1e-12)


# ---- draws for ArviZ ------------------------------------------------------------------------------------------------


def few_draws() -> Draws:
    rng = rng_for("arviz")
    whole = rng.integers(0, 3, (2, 5)).astype(np.int32)
    powers = rng.normal(size=(2, 5, 4))
    numbers = rng.normal(size=(2, 5)), rng.uniform(1.0, 4.0, (2, 5)), rng.uniform(size=(2, 5, 3))
    return Draws(*numbers, whole, whole, powers, powers, powers)


def test_draws_have_the_names_of_arviz(monkeypatch):
    """Its older versions take groups by keyword, newer ones as a mapping."""

    def older(posterior=None, sample_stats=None, dims=None):
        return {"posterior": posterior, "sample_stats": sample_stats}, dims

    def newer(groups, dims=None):
        return groups, dims

    draws = few_draws()
    for from_dict in (older, newer):
        monkeypatch.setitem(sys.modules, "arviz", SimpleNamespace(from_dict=from_dict))
        groups, dims = inference_data(draws, {"swap": 0.25})
        assert dims == {"used": ["column"]}
        assert groups["posterior"]["n_leaves"] is draws.n_leaves
        assert groups["posterior"]["used"] is draws.used
        assert groups["sample_stats"]["lp"] is draws.log_evidence
        np.testing.assert_array_equal(groups["sample_stats"]["acceptance_swap"], np.full((2, 5), 0.25))


def test_without_arviz_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(ImportError, match=r"pip install everytree\[arviz\]"):
        inference_data(few_draws(), {})


@pytest.mark.parametrize("apart", [0.0, 3.0])
def test_arviz_tells_whether_chains_agree(apart):
    """By the numbers that it is handed, as their slow definitions do."""
    arviz = pytest.importorskip("arviz")
    noise = rng_for("agreement", apart).normal(size=(4, 200)) + apart * np.arange(4)[:, None]
    used, whole = np.stack([noise, -noise], axis=2), np.zeros((4, 200), dtype=np.int32)
    powers = np.zeros((4, 200, 2))
    draws = Draws(noise, noise, used, whole, whole, powers, powers, powers)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = inference_data(draws, {})
        found = arviz.rhat(data.posterior)
        sizes = arviz.ess(data.posterior, method="mean")
    assert float(found["n_leaves"]) == pytest.approx(rhat(noise), abs=1e-6)
    np.testing.assert_allclose(found["used"], [rhat(noise), rhat(-noise)], atol=1e-6)
    assert (rhat(noise) > 1.3) == (apart > 0.0)
    assert float(sizes["n_leaves"]) == pytest.approx(ess(noise), rel=0.15)
