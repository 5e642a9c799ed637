"""The sampler against exact sums, and what its draws say."""

from __future__ import annotations

import pickle
import signal
import threading
import warnings
from functools import cache

import numpy as np
import pytest

import everytree as et
from cases import LONG, rng_for
from everytree.files.container import write
from everytree.sampling.evidence import bennett_ratio
from sampling_cases import errors_of_use, ess, look_ahead_one_level, rhat, traced

FAMILY = et.Bernoulli(0.5, 0.5)
N_CODES = [2, 3, 4, 2]


@cache
def rows(n=40):
    rng = rng_for("sampler", n)
    X = rng.integers(0, N_CODES, (n, 4))
    y = ((X[:, 0] > 0) ^ (X[:, 2] > 1) ^ (rng.random(n) < 0.25)).astype(int)
    return X, y


def sampled(n_draws=300, **options):
    options = {"max_depth": 3, "random_state": 1, "n_temperatures": 6} | options
    return et.StructureSampler(N_CODES, FAMILY, **options).fit(*rows(), n_draws=n_draws)


def same_draws(one, other):
    return all(np.array_equal(getattr(one.draws, name), getattr(other.draws, name)) for name in one.draws.names())


# ---- against the exact sum -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", ["deep", "shallow"])
@pytest.mark.parametrize("start", ["prior", "worst"])
@pytest.mark.parametrize("candidates", ["all", "nontrivial"])
def test_the_sampler_draws_from_the_exact_posterior(candidates, start, blocks, monkeypatch):
    if blocks == "shallow":
        look_ahead_one_level(monkeypatch)
    exact = et.ExactPosterior(N_CODES, FAMILY, 4, candidates=candidates).fit(*rows())
    sampler = sampled(4000 if LONG else 250, max_depth=4, candidates=candidates, start=start)
    assert max(map(rhat, traced(sampler))) < (1.01 if LONG else 1.1)
    off = sampler.feature_prob - exact.feature_prob
    assert (np.abs(off) < 5.0 * errors_of_use(sampler) + 1e-3).all()
    assert np.abs(off).max() < (0.01 if LONG else 0.05)
    evidence = sampler.log_evidence
    assert abs(evidence.value - exact.log_evidence) < max(4.0 * evidence.error, 1e-3)
    assert evidence.error < 0.1
    best = exact.map_tree()
    assert sampler.map_tree() == best
    assert sampler.map_tree().log_prob == pytest.approx(best.log_prob + exact.log_evidence - evidence.value, abs=1e-9)
    np.testing.assert_allclose(sampler.probs(rows()[0]), exact.probs(rows()[0]), atol=0.05)


def test_a_power_of_the_evidence_is_that_of_the_exact_posterior():
    exact = et.ExactPosterior(N_CODES, FAMILY, 3, temperature=0.3).fit(*rows())
    sampler = sampled(300, temperature=0.3)
    np.testing.assert_allclose(sampler.feature_prob, exact.feature_prob, atol=0.05)
    assert abs(sampler.log_evidence.value - exact.log_evidence) < 0.1
    assert sampler.powers[-1] == 0.3


@pytest.mark.parametrize("kinds", ["one_against_rest", "multiway"])
def test_categories(kinds):
    exact = et.ExactPosterior(N_CODES, FAMILY, 2, kinds=kinds).fit(*rows())
    sampler = sampled(200, max_depth=2, kinds=kinds)
    np.testing.assert_allclose(sampler.feature_prob, exact.feature_prob, atol=0.05)
    if kinds == "one_against_rest":
        with pytest.raises(ValueError, match="a forest cannot hold them"):
            _ = sampler.posterior
    else:
        np.testing.assert_allclose(sampler.probs(rows()[0]), exact.probs(rows()[0]), atol=0.05)


def test_numbers_with_weights():
    X, _ = rows()
    rng = rng_for("numbers")
    y, weight = X[:, 0] * 2.0 + rng.normal(size=len(X)), rng.uniform(0.0, 2.0, len(X)) * rng.integers(0, 2, len(X))
    family = et.Normal(0.0, 1.0, 2.0, 1.0)
    exact = et.ExactPosterior(N_CODES, family, 2).fit(X, y, weight)
    sampler = et.StructureSampler(N_CODES, family, 2, n_temperatures=4, random_state=0).fit(X, y, weight, n_draws=200)
    np.testing.assert_allclose(sampler.feature_prob, exact.feature_prob, atol=0.05)
    np.testing.assert_allclose(sampler.predictive(X).mean(), exact.predictive(X).mean(), atol=0.2)


# ---- chains ----------------------------------------------------------------------------------------------------------


def test_draws_do_not_depend_on_threads_or_on_how_they_are_divided():
    one = sampled(60, n_jobs=1, max_depth=None)
    assert same_draws(one, sampled(60, n_jobs=3, max_depth=None))
    assert not same_draws(one, sampled(60, random_state=2, max_depth=None))
    parts = et.StructureSampler(N_CODES, FAMILY, None, n_temperatures=6, random_state=1)
    parts.fit(*rows(), n_draws=20, burn_in=30, thin=1)
    copy = pickle.loads(pickle.dumps(parts))
    for each in (parts, copy):
        each.run(15).run(25)
        assert same_draws(one, each)
        assert len(each.structures) == 4 * 60


def test_a_copy_sums_when_it_draws_more():
    sampler = sampled(30, max_depth=None)
    copy = pickle.loads(pickle.dumps(sampler))
    assert copy._engine is None
    assert copy.acceptance == sampler.acceptance
    assert copy.map_tree() == sampler.map_tree()
    np.testing.assert_array_equal(copy.probs(rows()[0]), sampler.probs(rows()[0]))
    assert same_draws(sampler.run(10), copy.run(10))
    assert copy._engine.top_depth() == sampler._engine.top_depth() > 3


def test_files_hold_the_posterior_and_not_the_chains(tmp_path):
    sampler = sampled(30, max_depth=None)
    with pytest.raises(TypeError, match="save its posterior, a Forest; pickle keeps the chains"):
        et.save(sampler, tmp_path / "sampler.et")
    et.save(sampler.posterior, tmp_path / "forest.et")
    loaded = et.load(tmp_path / "forest.et")
    np.testing.assert_array_equal(loaded.probs(rows()[0]), sampler.probs(rows()[0]))


def test_an_earlier_file_of_a_sampler_says_what_to_do(tmp_path):
    write(tmp_path / "sampler.et", {"kind": "StructureSampler", "model": "{}"}, {})
    with pytest.raises(et.ModelFileError, match="save its posterior, a Forest; pickle keeps the chains"):
        et.load(tmp_path / "sampler.et")


def test_an_interrupt_keeps_the_draws():
    sampler = sampled(20)
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.warns(UserWarning, match="interrupted after .* of 1000000 draws"):
        sampler.run(1_000_000)
    assert 20 < sampler.draws.n_draws < 1_000_000
    n_draws = sampler.draws.n_draws
    assert sampler.run(5).draws.n_draws == n_draws + 5


def interrupt_run(monkeypatch, number):
    """The run of the kernel with this number, from the next one on, is interrupted before it begins."""
    unhindered, n_before = et.StructureSampler._run, iter(range(number))

    def run_into(*arguments):
        if next(n_before, None) is None:
            raise KeyboardInterrupt
        unhindered(*arguments)

    monkeypatch.setattr(et.StructureSampler, "_run", run_into)


@pytest.mark.parametrize("number", [0, 3, 4], ids=["burn-in", "end of burn-in", "first draw"])
def test_a_fit_that_is_interrupted_before_its_draws_changes_nothing(number, monkeypatch):
    sampler, fresh, other = sampled(20), et.StructureSampler(N_CODES, FAMILY, 3), rows(30)
    before = vars(sampler).copy()
    with monkeypatch.context() as patch:
        for each in (sampler, fresh):
            interrupt_run(patch, number)
            with pytest.raises(KeyboardInterrupt):
                each.fit(*other, n_draws=10)
            patch.undo()
    assert vars(sampler) == before
    assert "n_rows=40, n_draws=20" in repr(sampler)
    assert same_draws(sampler.run(10), sampled(20).run(10))
    assert "n_rows" not in repr(fresh)
    for ask in (lambda: fresh.draws, lambda: fresh.acceptance, fresh.map_tree):
        with pytest.raises(ValueError, match="call fit"):
            ask()


@pytest.mark.parametrize(("n_temperatures", "burn_in", "n_sums"), [(1, 10, 1), (2, 10, 1), (6, 1, 1), (6, 60, 4)])
def test_sums_are_computed_again_only_for_other_powers(n_temperatures, burn_in, n_sums, monkeypatch):
    sums = []
    whole = et.StructureSampler._sum_top
    monkeypatch.setattr(et.StructureSampler, "_sum_top", lambda *given: (sums.append(given), whole(*given)))
    sampler = et.StructureSampler(N_CODES, FAMILY, 3, n_temperatures=n_temperatures, random_state=0)
    sampler.fit(*rows(), n_draws=50, burn_in=burn_in)
    assert len(sums) == n_sums
    assert sampler._engine.top_depth() == 3


# ---- answers ---------------------------------------------------------------------------------------------------------


def test_the_posterior_is_an_average_with_equal_weights():
    sampler = sampled(50)
    forest = sampler.posterior
    np.testing.assert_allclose(forest.weights, 1.0 / len(sampler.structures))
    for i in (0, 17, 101):
        own = sampler.structures.one(i)
        np.testing.assert_allclose(forest.posteriors[i].split_prob, own["split_prob"], atol=1e-9)
    assert forest.n_rows == sampler.n_rows == 40


def test_moves_are_counted(monkeypatch):
    sampler = sampled(50)
    assert "n_draws=50" in repr(sampler)
    assert set(sampler.acceptance) == {"block", "exchange"}
    moves = {"change", "neighbour", "swap", "rotation", "prior", "block", "exchange"}
    look_ahead_one_level(monkeypatch)
    assert set(sampled(20).acceptance) == moves


def test_arviz_reads_the_draws():
    arviz = pytest.importorskip("arviz")
    sampler = sampled(100)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = sampler.to_arviz()
        assert data.posterior["used"].shape == (4, 100, 4)
        n_leaves = sampler.draws.n_leaves
        assert float(arviz.rhat(data.posterior)["n_leaves"]) == pytest.approx(rhat(n_leaves), abs=1e-6)
        assert float(arviz.ess(data.posterior, method="mean")["n_leaves"]) == pytest.approx(ess(n_leaves), rel=0.15)


# ---- numbers about draws ---------------------------------------------------------------------------------------------


def test_bennett_ratio_of_two_known_densities():
    """exp(-x^2 / 2) and exp(-x^2 / 8): the ratio of their integrals is 2."""
    rng = rng_for("bennett")
    narrow, wide = rng.normal(size=20_000), rng.normal(scale=2.0, size=20_000)
    assert bennett_ratio(narrow**2 * 3 / 8, -(wide**2) * 3 / 8) == pytest.approx(np.log(2.0), abs=0.03)
