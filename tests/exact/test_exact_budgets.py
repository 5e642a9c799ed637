"""How many regions there are, and what is known of the evidence when rows, regions, time or memory are cut short."""

from __future__ import annotations

import copy
import gc
import math
import pickle
import weakref
from _thread import interrupt_main
from contextlib import nullcontext
from dataclasses import replace
from itertools import product
from threading import Timer
from time import process_time
from typing import Any

import numpy as np
import pytest

import everytree as et
import naive_exact
from cases import CASE, CASES, families, rng_for
from everytree import _kernels
from everytree.exact.regions import WorkDone, regions_by_depth
from exact_cases import BERNOULLI, FALLING, KINDS, modes, problem, table
from refusals import refused

# ---- how many regions ------------------------------------------------------------------------------------------------

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


# ---- bounds, clocks and budgets --------------------------------------------------------------------------------------


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
    begun = process_time()
    whole = given.fit(n_jobs=n_jobs)
    taken = process_time() - begun
    for share in rng.uniform(0.0, 1.2, 3):
        part = given.fit(n_jobs=n_jobs, max_seconds=share * taken + 1e-6)
        lower, upper = part.log_evidence_bounds
        assert lower <= whole.log_evidence + 1e-9
        assert upper >= whole.log_evidence - 1e-9
        again = copy.copy(part)
        again._engine = again._search = again._summary = again._of_trees = None
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
    """Processor time of a fit of random rows, without the making of them: other processes do not make it longer."""
    rng = rng_for("seconds", n_codes[0], max_depth)
    X = rng.integers(n_codes, size=(n_rows, len(n_codes))).astype(np.uint16)
    family = options.pop("family", et.Bernoulli())
    fitted = et.ExactPosterior(n_codes, family, max_depth, **options)
    begun = process_time()
    fitted.fit(X, rng.integers(0, 2, n_rows), **limits)
    taken = process_time() - begun
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
    begun = process_time()
    Timer(0.3, interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        seconds_of_fit(n_codes, max_depth, {"max_seconds": 60.0}, n_jobs=n_jobs)
    assert process_time() - begun < 8.0


# ---- predictions of a limited fit ------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:predictions leave out")
@pytest.mark.parametrize(
    ("n_codes", "max_depth", "limits"), [([30] * 20, 6, {"max_seconds": 0.5}), ([30] * 6, 12, {"budget": 2000})]
)
def test_the_first_prediction_of_a_limited_fit_is_limited_too(n_codes, max_depth, limits):
    """Neither millions of leaves are added up, nor all trees of the prior below regions without rows."""
    rng = rng_for("first prediction", max_depth)
    X = rng.integers(30, size=(500, len(n_codes))).astype(np.uint16)
    fitted = et.ExactPosterior(n_codes, et.Bernoulli(), max_depth)
    fitted.fit(X, X[:, 0] > rng.integers(30, size=500), **limits)
    begun = process_time()
    probs = fitted.probs(X)
    assert process_time() - begun < 8.0
    np.testing.assert_array_equal(fitted.probs(X), probs)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fitted)).probs(X), probs)


@pytest.mark.filterwarnings("ignore:predictions leave out")
@pytest.mark.parametrize("limit", [5, 50, 100_000])
def test_what_a_limit_leaves_out_is_said_and_does_not_depend_on_the_clock(limit, monkeypatch):
    monkeypatch.setattr("everytree.exact.prediction.FEW_LEAVES", 1)
    monkeypatch.setattr("everytree.exact.prediction.LEAVES_PER_SECOND", limit / 1000.0)
    given = table(BERNOULLI, rng_for("limit of leaves"), 60, (3, 2, 4, 3))
    whole, part = given.fit(), given.fit(max_seconds=1000.0)
    assert part.log_evidence == whole.log_evidence
    with pytest.warns(UserWarning, match=r"leave out .* max_seconds=1000") if limit < 100 else nullcontext():
        probs = part.probs(given.X)
    assert (part.truncation > 0.0) == (limit < 100)
    assert 0.5 * np.abs(probs - whole.probs(given.X)).sum(axis=1).max() <= part.truncation + 1e-12
    kept = et.ExactPosterior.from_state(part.family, *copy.deepcopy(part.to_state()))
    for again in (part, kept, pickle.loads(pickle.dumps(part))):
        np.testing.assert_array_equal(again.probs(given.X), probs)
        np.testing.assert_array_equal(again.predictive(given.X).probs(), part.predictive(given.X).probs())


def test_an_interrupt_is_obeyed_while_tables_are_made():
    rng = rng_for("interrupted tables")
    n, n_codes = 200_000, [200] * 3
    ends = np.sort(rng.integers(200, size=(3 * n, 2)), axis=1).astype(np.uint64)
    leaves = {
        "weight": np.full(n, 1.0 / n), "start": np.arange(0, 3 * n + 1, 3),
        "column": np.tile(np.arange(3, dtype=np.int32), n), "codes": ends[:, 0] | ends[:, 1] << np.uint64(32),
    }  # fmt: skip
    begun = process_time()
    Timer(0.3, interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        _kernels.tabulate(
            **leaves, values=np.ones((n, 2)), n_codes=n_codes, kinds=[0] * 3, with_unknown=False, most=2**27,
            most_steps=math.inf, n_jobs=1,
        )  # fmt: skip
    assert process_time() - begun < 8.0


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


def test_more_regions_never_loosen_the_bounds_of_classes():
    given = table(BERNOULLI, rng_for("tighter"), 60, (2,) * 6, max_depth=4)
    n_regions = sum(given.fit().n_regions)
    bounds = np.array([given.fit(budget=int(b)).log_evidence_bounds for b in np.linspace(1, n_regions + 1, 8)])
    assert (np.diff(bounds[:, 0]) >= -1e-10).all()
    assert (np.diff(bounds[:, 1]) <= 1e-10).all()


# ---- progress and memory ---------------------------------------------------------------------------------------------


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
