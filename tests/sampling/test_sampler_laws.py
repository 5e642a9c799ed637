"""Laws of the sampler: what may change nothing, exact sums of every family, state, answers and refusals."""

from __future__ import annotations

import copy
import pickle
from functools import cache
from typing import Any

import numpy as np
import pytest

import everytree as et
from cases import rng_for
from everytree.sampling.draws import Draws, Structures
from everytree.sampling.points import DistinctRows
from naive_sampling import AllStructures
from sampling_cases import BERNOULLI, Small, errors_of_use, look_ahead_one_level, put, structures

N_CODES = [3, 2, 4]
FAMILIES = {
    "bernoulli": BERNOULLI, "categorical": et.Categorical(3, 0.5), "poisson": et.Poisson(1.0, 1.0),
    "exponential": et.Exponential(1.0, 1.0), "geometric": et.Geometric(1.0, 1.0),
    "normal": et.Normal(0.0, 0.5, 1.0, 1.0),
}  # fmt: skip
SMALL: dict[str, Any] = {"max_depth": 2, "n_chains": 2, "n_temperatures": 3, "random_state": 3}


@cache
def rows(name: str = "bernoulli", n: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = rng_for("sampler laws", name, n)
    X = rng.integers(0, N_CODES, (n, 3))
    rate = 1.0 + 2.0 * (X[:, 0] > 0)
    y = {
        "bernoulli": lambda: rng.random(n) < rate / 4.0, "categorical": lambda: rng.integers(0, 2, n) + (rate > 1.0),
        "poisson": lambda: rng.poisson(rate), "exponential": lambda: rng.exponential(rate),
        "geometric": lambda: rng.geometric(rate / 4.0) - 1, "normal": lambda: rate + rng.normal(size=n),
    }[name]()  # fmt: skip
    return X, np.asarray(y, dtype=float if name in ("exponential", "normal") else int)


def sampler(name: str = "bernoulli", **options: Any) -> et.StructureSampler:
    return et.StructureSampler(N_CODES, FAMILIES[name], **SMALL | options)


@cache
def fitted() -> et.StructureSampler:
    """One for tests that only read."""
    return sampler().fit(*rows(), n_draws=60)


def same_draws(one: et.StructureSampler, other: et.StructureSampler) -> bool:
    return all(np.array_equal(getattr(one.draws, name), getattr(other.draws, name)) for name in Draws.names())


# ---- what changes nothing -------------------------------------------------------------------------------------------


def test_a_row_of_weight_two_is_two_rows():
    X, y = rows()
    times = rng_for("times").integers(1, 4, len(y))
    weighted = sampler().fit(X, y, times, n_draws=20)
    repeated = sampler().fit(np.repeat(X, times, axis=0), np.repeat(y, times), n_draws=20)
    assert same_draws(weighted, repeated)
    np.testing.assert_array_equal(weighted.probs(X), repeated.probs(X))


def test_rows_of_weight_zero_are_no_rows():
    X, y = rows()
    weight = np.where(np.arange(len(y)) % 3 == 0, 0.0, 1.0)
    some = weight > 0.0
    assert same_draws(sampler().fit(X, y, weight, n_draws=20), sampler().fit(X[some], y[some], n_draws=20))


def test_the_order_of_rows_does_not_matter():
    X, y = rows()
    order = rng_for("order").permutation(len(y))
    assert same_draws(sampler().fit(X, y, n_draws=20), sampler().fit(X[order], y[order], n_draws=20))


def test_a_function_of_depth_is_its_numbers():
    X, y = rows()
    assert same_draws(
        sampler(split_prior=0.4).fit(X, y, n_draws=20), sampler(split_prior=lambda depth: 0.4).fit(X, y, n_draws=20)
    )


@pytest.mark.parametrize("options", [{}, {"start": "worst"}, {"n_temperatures": 1}, {"max_depth": None}], ids=str)
@pytest.mark.parametrize("blocks", ["deep", "shallow"])
def test_more_draws_are_those_of_one_long_run(options, blocks, monkeypatch):
    """Whatever lies between: a pickle, a copy, other threads."""
    if blocks == "shallow":
        look_ahead_one_level(monkeypatch)
    X, y = rows()
    plan = {"burn_in": 10, "thin": 1}
    whole = sampler(**options).fit(X, y, n_draws=30, **plan)
    part = sampler(**options).fit(X, y, n_draws=12, **plan)
    for resumed in (pickle.loads(pickle.dumps(part)), copy.deepcopy(part), part):
        resumed.n_jobs = 2
        assert same_draws(resumed.run(8).run(10), whole)
        for name in Structures.names():
            kept, literal = (np.sort(getattr(one.structures, name)) for one in (resumed, whole))
            np.testing.assert_array_equal(kept, literal)
        assert resumed.acceptance == pytest.approx(whole.acceptance)
        assert resumed.map_tree().log_prob == pytest.approx(whole.map_tree().log_prob, nan_ok=True)


# ---- exact sums -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("candidates", ["all", "nontrivial"])
@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_is_drawn_by_its_exact_posterior(name, candidates):
    X, y = rows(name)
    exact = et.ExactPosterior(N_CODES, FAMILIES[name], 2, candidates=candidates).fit(X, y)
    found = sampler(name, candidates=candidates, n_temperatures=5).fit(X, y, n_draws=150)
    evidence = found.log_evidence
    assert abs(evidence.value - exact.log_evidence) < max(5.0 * evidence.error, 1e-6)
    assert (np.abs(found.feature_prob - exact.feature_prob) < 5.0 * errors_of_use(found) + 0.02).all()
    assert found.map_tree() == exact.map_tree()


@pytest.mark.parametrize("small", [
    Small("sums", (2, 3), ("ordered", "multiway"), 2), Small("sums of drawn", (3, 3), ("ordered", "ordered"), 2),
], ids=str)  # fmt: skip
def test_exact_sums_are_those_over_the_list_of_structures(small):
    X, y = small.table
    exact = et.ExactPosterior(
        list(small.n_codes), BERNOULLI, small.max_depth, small.split_prior, kinds=small.kinds
    ).fit(X, y)  # fmt: skip
    assert small.every().log_evidence == pytest.approx(exact.log_evidence, rel=1e-9)


def test_families_of_numbers_list_structures_too():
    X, y = rows("poisson", 8)
    every = AllStructures(X, y, N_CODES, ("ordered",) * 3, FAMILIES["poisson"], 1, 0.5, "all", 9)
    exact = et.ExactPosterior(N_CODES, FAMILIES["poisson"], 1).fit(X, y)
    assert every.log_evidence == pytest.approx(exact.log_evidence, rel=1e-9)


# ---- distinct rows --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_equal_rows_are_one_point_with_the_sum_of_their_statistics(name):
    (X, y), family = rows(name), FAMILIES[name]
    found = DistinctRows.read(family, N_CODES, X, y, None, {})
    assert len(np.unique(found.codes, axis=0)) == len(found.codes)
    assert found.n_rows == len(y)
    each = family.statistics(y, None)
    for point, statistics in zip(found.codes, found.statistics, strict=True):
        np.testing.assert_allclose(statistics, each[(point == X).all(axis=1)].sum(axis=0), rtol=1e-9, atol=1e-12)


def test_the_posterior_of_distinct_rows_is_that_of_all_rows():
    X, y = rows()
    tree = fitted().structures.tree(0, 3)
    prior = fitted().structures.one(0)["split_prior"]
    found = DistinctRows.read(BERNOULLI, N_CODES, X, y, None, {}).posterior(tree, BERNOULLI, prior)
    literal = et.Posterior(tree, BERNOULLI, prior).update(X.astype(np.uint8), y)
    np.testing.assert_allclose(found.split_prob, literal.split_prob, rtol=1e-9)
    assert found.log_evidence == pytest.approx(literal.log_evidence)
    assert found.n_rows == len(y)


# ---- answers --------------------------------------------------------------------------------------------------------


def test_numbers_of_a_draw_are_those_of_its_structure():
    """Expected leaves and use of columns, by the posterior over its prunings; thin is 1, so that all are kept."""
    one = sampler(n_chains=1).fit(*rows(), n_draws=25, thin=1)
    for number, post in enumerate(one.posterior.posteriors):
        draws = one.draws
        assert draws.n_leaves[0, number] == pytest.approx(post.expected_leaves(), rel=1e-6)
        assert draws.log_evidence[0, number] == pytest.approx(post.log_evidence, rel=1e-9)
        assert draws.root_column[0, number] == post.tree.feature[0]
        trees = post.top_trees(200)
        used = np.zeros(3)
        for ranked in trees:
            used[np.unique(post.tree.feature[ranked.tree.inner])] += np.exp(post.tree_log_prob(ranked.tree))
        np.testing.assert_allclose(draws.used[0, number], used, atol=1e-4)


def test_summaries_are_means_over_draws():
    one = fitted()
    np.testing.assert_allclose(one.feature_prob, one.draws.used.mean(axis=(0, 1)))


def test_predictions_are_means_over_the_kept_structures():
    one, X = fitted(), rows()[0][:6].astype(np.uint8)
    each = [post.predictive(X).probs() for post in one.posterior.posteriors]
    np.testing.assert_allclose(one.probs(X), np.mean(each, axis=0), rtol=1e-9)
    np.testing.assert_allclose(one.predictive(X).probs(), one.probs(X), rtol=1e-9)


def test_no_visited_tree_is_more_probable_than_the_best():
    one = fitted()
    best = one.map_tree()
    assert best.log_prob <= 1e-6
    assert best.n_leaves >= 1
    exact = et.ExactPosterior(N_CODES, BERNOULLI, 2).fit(*rows())
    assert best.log_prob <= exact.map_tree().log_prob + 0.2


# ---- what is refused ------------------------------------------------------------------------------------------------


CHAIN = Small("refused", (2, 3), ("ordered", "ordered"), 2)


@pytest.mark.parametrize(("change", "message"), [
    ({"kinds": [0]}, "wrong size"), ({"powers": []}, "wrong size"), ({"seeds": []}, "wrong size"),
    ({"log_stop": [-0.1]}, "wrong size"), ({"block_depth": 0}, "wrong size"), ({"kinds": [0, 7]}, "kind"),
    ({"statistics": np.zeros((2, 2))}, "statistics of the wrong size"), ({"prior": np.zeros(1)}, "wrong size"),
    ({"name": "cauchy"}, "no kernel for a family named cauchy"),
    ({"codes": np.full((10, 2), 5, dtype=np.uint16)}, "code"),
])  # fmt: skip
def test_a_kernel_refuses_arrays_that_do_not_fit(change, message):
    with pytest.raises(ValueError, match=message):
        CHAIN.engine(2, **change)


def test_a_chain_is_restored_with_structures_of_its_table_alone():
    engine, keys = CHAIN.engine(1), list(CHAIN.every().prob)
    for key in keys:
        put(engine, 0, [key], 5)
        assert structures(engine) == [[key]]
    for wrong in (keys[0][:-1], (*keys[0], (0, 0)), ((1, 2), *keys[0][1:]), ((-1, -1),)):
        with pytest.raises(ValueError, match=r".+"):
            put(engine, 0, [wrong], 5)
    with pytest.raises(ValueError, match="wrong size"):
        put(engine, 1, [keys[0]], 5)


def test_powers_stay_as_many():
    engine = CHAIN.engine(1, (0.0, 1.0))
    with pytest.raises(ValueError, match="as many powers"):
        engine.set_powers([1.0])


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_sums_that_are_allowed_less_are_less_deep(depth):
    small = Small("horizons", (4, 4, 4), ("ordered",) * 3, 3, n_rows=40)
    engines = [small.engine(1, block_depth=depth, max_block_cost=cost) for cost in (1.0, 1e3, 1e12)]
    depths = [engine.horizon() for engine in engines]
    assert depths == sorted(depths)
    assert depths[-1] == depth
    assert depths[0] == 1


# ---- options and files ----------------------------------------------------------------------------------------------


def test_the_source_of_random_numbers_decides_the_draws():
    X, y = rows()

    def draws(seed: Any) -> et.StructureSampler:
        return sampler(random_state=seed).fit(X, y, n_draws=10)

    assert same_draws(draws(5), draws(5))
    assert not same_draws(draws(5), draws(6))
    assert same_draws(draws(np.random.default_rng(5)), draws(np.random.default_rng(5)))
    source = np.random.default_rng(5)
    assert not same_draws(draws(source), draws(source))  # a generator goes on


def test_chains_are_as_many_as_asked_and_differ():
    one = sampler(n_chains=5, n_temperatures=4).fit(*rows(), n_draws=15)
    assert one.draws.log_evidence.shape == (5, 15)
    assert one.draws.own.shape == (5, 15, 4)
    assert len(np.unique(one.draws.n_leaves, axis=0)) == 5
    assert (np.diff(one.powers) > 0.0).all()


@pytest.mark.parametrize(("thin", "n_kept"), [(1, 40), (4, 10), (20, 2), ("auto", 40)])
def test_structures_are_kept_every_so_many_draws(thin, n_kept):
    one = sampler(n_chains=2).fit(*rows(), n_draws=20, thin=thin)
    assert len(one.structures) == n_kept
    assert one.posterior.weights == pytest.approx(np.full(n_kept, 1.0 / n_kept))
    assert one.posterior is one.posterior


def test_draws_of_the_first_rounds_may_be_used():
    one = sampler().fit(*rows(), n_draws=10, burn_in=0)
    np.testing.assert_allclose(one.powers, [0.0, 0.01, 1.0])
    assert one.draws.n_draws == 10
    longer = sampler().fit(*rows(), n_draws=10, burn_in=60)
    assert longer.powers[[0, -1]].tolist() == [0.0, 1.0]
    assert longer.powers[1] != one.powers[1]


def test_a_second_fit_forgets_the_first():
    X, y = rows()
    one = sampler().fit(X, y, n_draws=10)
    again = one.fit(X[:20], y[:20], n_draws=15)
    assert again is one
    assert (one.n_rows, one.draws.n_draws) == (20, 15)
    assert same_draws(one, sampler().fit(X[:20], y[:20], n_draws=15))
    one.run(5)
    assert one.draws.n_draws == 20


@pytest.mark.parametrize("temperature", [0.25, 0.6])
def test_a_lower_temperature_spreads_the_draws(temperature):
    """Trees are smaller, and the exact sum at the same power has the same columns."""
    X, y = rows()
    one = sampler(temperature=temperature, n_temperatures=4).fit(X, y, n_draws=150)
    exact = et.ExactPosterior(N_CODES, BERNOULLI, 2, temperature=temperature).fit(X, y)
    np.testing.assert_allclose(one.feature_prob, exact.feature_prob, atol=0.06)
    assert abs(one.log_evidence.value - exact.log_evidence) < max(5.0 * one.log_evidence.error, 1e-6)
    assert one.powers[-1] == temperature
    assert one.draws.n_leaves.mean() < fitted().draws.n_leaves.mean()


def test_chains_that_begin_with_the_worst_splits_end_where_others_do():
    X, y = rows()
    ends = [sampler(start=start, n_temperatures=4).fit(X, y, n_draws=150) for start in ("prior", "worst")]
    np.testing.assert_allclose(ends[0].feature_prob, ends[1].feature_prob, atol=0.08)
    assert ends[0].map_tree() == ends[1].map_tree()
