"""What a sampler refuses, and tables on which there is nothing to draw."""

from __future__ import annotations

import numpy as np
import pytest

import everytree as et

FAMILY = et.Bernoulli(0.5, 0.5)
X, Y = np.array([[0, 1], [1, 0], [1, 1]] * 4), np.array([0, 1, 1] * 4)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_codes": []}, "n_codes is empty"),
        ({"n_codes": 3}, "n_codes must have one number a column"),
        ({"family": "bernoulli"}, "family must be a built-in one"),
        ({"max_depth": 65}, "max_depth"),
        ({"split_prior": 1.5}, "split_prior must be from 0 to 1"),
        ({"candidates": "some"}, "candidates must be"),
        ({"kinds": "nominal"}, r"kinds\[0\] must be one of"),
        ({"temperature": 0.0}, "temperature must be a power above 0"),
        ({"n_chains": 0}, "n_chains"),
        ({"n_temperatures": 0}, "n_temperatures"),
        ({"start": "best"}, "start must be 'prior' or 'worst'"),
    ],
)
def test_arguments_are_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        et.StructureSampler(**({"n_codes": [2, 2], "family": FAMILY} | arguments))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_draws": 0}, "n_draws"),
        ({"burn_in": -1}, "burn_in"),
        ({"thin": 101, "n_draws": 100}, "thin"),
        ({"X": X[:, :1]}, "X has 1 columns"),
        ({"X": X + 1}, "code 2"),
        ({"y": Y[:3]}, "y has 3 entries"),
    ],
)
def test_a_refused_fit_changes_nothing(arguments, message):
    sampler = et.StructureSampler([2, 2], FAMILY, n_chains=2, n_temperatures=2, random_state=0).fit(X, Y, n_draws=10)
    before = sampler.draws.log_evidence
    with pytest.raises(ValueError, match=message):
        sampler.fit(**({"X": X, "y": Y, "n_draws": 10} | arguments))
    assert sampler.draws.log_evidence is before
    with pytest.raises(ValueError, match="n_draws"):
        sampler.run(0)


def test_answers_before_fit():
    sampler = et.StructureSampler([2, 2], FAMILY)
    for ask in (lambda: sampler.draws, lambda: sampler.posterior, lambda: sampler.run(5), sampler.map_tree):
        with pytest.raises(ValueError, match="call fit"):
            ask()


def test_one_temperature_draws_but_has_no_evidence():
    sampler = et.StructureSampler([2, 2], FAMILY, n_chains=2, n_temperatures=1, random_state=0).fit(X, Y, n_draws=50)
    assert sampler.powers.tolist() == [1.0]
    assert np.isnan(sampler.map_tree().log_prob)
    with pytest.raises(ValueError, match="n_temperatures to 2 or more"):
        _ = sampler.log_evidence


@pytest.mark.parametrize("candidates", ["all", "nontrivial"])
@pytest.mark.parametrize("max_depth", [0, 3, None])
@pytest.mark.parametrize(
    ("n_codes", "codes"),
    [([1, 1], np.zeros((5, 2), int)), ([2, 3], np.ones((5, 2), int)), ([2, 3], np.zeros((0, 2), int))],
    ids=["no column to split", "all rows equal", "no rows"],
)
def test_nothing_to_draw(n_codes, codes, max_depth, candidates):
    y = np.arange(len(codes)) % 2
    sampler = et.StructureSampler(
        n_codes, FAMILY, max_depth, candidates=candidates, n_chains=2, n_temperatures=3, random_state=0
    ).fit(codes, y, n_draws=10)
    exact = et.ExactPosterior(n_codes, FAMILY, 0).fit(codes, y)
    assert sampler.log_evidence.value == pytest.approx(exact.log_evidence, abs=1e-9)
    assert sampler.map_tree().n_leaves == 1
    np.testing.assert_allclose(sampler.probs(np.ones((2, 2), int) * 0)[:, 1].shape, (2,))
