"""Families one by one: statistics, evidence, posterior and predictive against twins, textbooks and SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy import stats

import everytree as et
import naive
from cases import CASE, CASES, Case, collapse, examples, families, random_codes, random_tree, rng_for, seeds, take
from family_cases import PER_NODE, TEXTBOOK, pooled

# ---- statistics ------------------------------------------------------------------------------------------------------


def draw(case: Case, seed: int, n_most: int = 12) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    """Some rows with weights."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, n_most))
    y, row_data = case.draw(rng, n)
    return y, rng.choice([0.0, 0.25, 1.0, 3.0], n), row_data


@families
@given(seed=seeds)
@examples(20)
def test_statistics_add_up(case, seed):
    y, weight, row_data = draw(case, seed)
    rows = collapse(case.family, case.family.statistics(y, weight, **row_data))
    assert case.family.statistics(y, weight, **row_data).shape == (len(y), case.family.n_statistics)
    together = collapse(case.family, pooled(case.family, y, weight, **row_data))
    np.testing.assert_allclose(rows.sum(axis=0), together[0], rtol=1e-12, atol=1e-12)


@families
def test_a_weight_multiplies_the_statistics(case):
    rng = rng_for("weights", case)
    y, row_data = case.draw(rng, 20)
    weight = rng.uniform(0.0, 5.0, 20)
    unit = collapse(case.family, case.family.statistics(y, **row_data))
    weighted = collapse(case.family, case.family.statistics(y, weight, **row_data))
    np.testing.assert_allclose(weighted, unit * weight[:, None], rtol=1e-13)
    np.testing.assert_array_equal(unit, collapse(case.family, case.family.statistics(y, np.ones(20), **row_data)))


@families
@given(seed=seeds)
@examples(10)
def test_evidence_is_the_twins(case, seed):
    y, weight, row_data = draw(case, seed)
    for weights in (None, weight):
        got = case.family.log_evidence(pooled(case.family, y, weights, **row_data))
        assert got.shape == (1,)
        expected = case.twin.log_evidence(y, weights, **row_data)
        assert got[0] == pytest.approx(expected, rel=1e-10, abs=1e-10)


@families
def test_no_rows_have_evidence_one(case):
    assert case.family.log_evidence(np.zeros((2, case.family.n_statistics))).tolist() == [0.0, 0.0]


textbooks = pytest.mark.parametrize("case", [case for case in CASES if case.name in TEXTBOOK], ids=str)

STATISTICS = {  # name: (y, weight, row data, what the class says the statistics are)
    "bernoulli": ([0, 1, 1], [1, 2, 3], {}, [1, 5]),
    "categorical": ([0, 2, 2], [1, 2, 3], {}, [1, 0, 5]),
    "poisson": ([0, 3], [1, 2], {"exposure": [2.0, 0.5]}, [6, 3, 2 * (3 * np.log(0.5) - np.log(6))]),
    "exponential": ([2.0, 3.0], [1, 2], {"censored": [1, 0]}, [2, 8]),
    "geometric": ([0, 4], [1, 2], {}, [3, 8]),
    "normal": ([2.0, 3.0], [1, 2], {}, [3, 8, 22]),
    "linear": ([2.0, 3.0], [1, 2], {"inputs": [[1.0, 5.0], [1.0, 7.0]]}, [3, 22, 8, 52, 3, 19, 123]),
    "histogram": ([1.0, 3.5, 2.0], [1, 2, 3], {}, [0, 0, 1, 0, 3, 2, -2.0]),
    "lognormal": (np.exp([2.0, 3.0]), [1, 2], {}, [3, 8, 22]),
    "survival": (
        [1.5, 3.0], [1, 2], {"censored": [0, 1], "log_hazard": np.log([3.0, 2.0])},
        [0, 1, 0, 0, 7, 5.5, 4, 0, np.log(3.0)],
    ),
    "negative_binomial": (
        [0, 3], [1, 2], {"exposure": [2.0, 1.0]}, [4, 6, *(2 * np.log([0.3125, 1.0, 10.0]))],
    ),
    "gamma": ([2.0, 3.0], [1, 2], {}, [3, 8, np.log(18.0)]),
    "weibull": (
        [4.0, 1.5], [1, 2], {"censored": [0, 1]}, [1, 2 + 2 * np.sqrt(1.5), 7, 64 + 2 * 1.5**3, np.log(4.0)],
    ),
    "hurdle_poisson": ([0, 4], [1, 2], {}, [2, 1, 6, 2, -2 * np.log(6)]),
    "hurdle_gamma": ([0.0, 3.0], [1, 2], {}, [2, 1, 2, 6, 2 * np.log(3.0)]),
}  # fmt: skip


@families
def test_statistics_are_what_the_documentation_says(case):
    y, weight, row_data, expected = STATISTICS[case.name]
    rows = case.family.statistics(np.array(y), np.array(weight), **{k: np.array(v) for k, v in row_data.items()})
    np.testing.assert_allclose(collapse(case.family, rows).sum(axis=0), expected, rtol=1e-14, atol=1e-14)


# ---- priors that differ from node to node ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", PER_NODE)
def test_a_prior_for_each_node(name):
    case, make = CASE[PER_NODE[name][0]], PER_NODE[name][1]
    rng = rng_for("per node", name)
    tree = random_tree(rng, max_depth=2, kind="mixed", missing=True)
    family, twins = make(rng, tree.n_nodes)
    X = random_codes(rng, tree, 15)
    y, row_data = case.draw(rng, 15)
    weight = rng.choice([0.5, 1.0, 2.0], 15)
    post = et.Posterior(tree, family, np.where(tree.is_terminal, 0.0, 0.6)).update(X, y, weight, **row_data)
    model = (tree, post.split_prior, twins.__getitem__, X, y)
    split_prob, subtree, log_evidence = naive.theorem_1(*model, weight, **row_data)
    np.testing.assert_allclose(post.split_prob, split_prob, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(post.subtree_log_evidence, subtree, rtol=1e-10, atol=1e-10)
    assert post.log_evidence == pytest.approx(log_evidence, rel=1e-10)

    x_new = random_codes(rng, tree, 2)
    y_new, new_data = case.draw(rng, 2)
    dist = post.predictive(x_new, **new_data)
    for i in range(2):
        at: dict[str, Any] = {"weights": weight, "row_data_new": take(new_data, i), **row_data}
        expected = naive.brute_log_predictive(*model, x_new[i], y_new[i], **at)
        assert dist.log_prob(y_new)[i] == pytest.approx(expected, rel=1e-10, abs=1e-10)
        mean, variance = naive.brute_moments(*model, x_new[i], **at)
        np.testing.assert_allclose(dist.mean()[i], mean, rtol=1e-10)
        np.testing.assert_allclose(dist.variance()[i], variance, rtol=1e-10)


# ---- posterior and predictive ----------------------------------------------------------------------------------------


@textbooks
@pytest.mark.parametrize("weighted", [False, True], ids=["unit", "weighted"])
def test_posterior_parameters_are_the_textbooks(case, weighted):
    rng = rng_for("posterior", case, weighted)
    y, row_data = case.draw(rng, 25)
    weight = rng.uniform(0.1, 3.0, 25) if weighted else np.ones(25)
    got = case.family.posterior_parameters(pooled(case.family, y, weight, **row_data))
    expected = TEXTBOOK[case.name].posterior(y, weight, **row_data)
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(got[name][0], value, rtol=1e-11, err_msg=name)


@textbooks
def test_posterior_parameters_of_nothing_are_the_prior(case):
    got = case.family.posterior_parameters(np.zeros((1, case.family.n_statistics)))
    for name, value in got.items():
        np.testing.assert_allclose(value[0], getattr(case.family, name), rtol=1e-14, err_msg=name)


@textbooks
def test_predictives_are_scipys(case):
    rng = rng_for("components", case)
    nothing = np.zeros((1, case.family.n_statistics))
    for n in (0, 1, 5, 60):
        y, row_data = case.draw(rng, n)
        statistics = pooled(case.family, y, **row_data) if n else nothing
        parameters = {k: v[0] for k, v in case.family.posterior_parameters(statistics).items()}
        y_new, new_data = case.draw(rng, 8)
        new_data.pop("censored", None)
        components = case.family.predictive(np.repeat(statistics, 8, axis=0), **new_data)
        mean, variance, log_prob = components.mean(), components.variance(), components.log_prob(y_new.astype(float))
        assert mean.shape == variance.shape == log_prob.shape == (8,)
        for i in range(8):
            row = take(new_data, i) or ({"censored": 0} if case.name == "exponential" else {})
            frozen = TEXTBOOK[case.name].predictive(parameters, **row)
            log_density = getattr(frozen, "logpmf", None) or frozen.logpdf
            assert mean[i] == pytest.approx(frozen.mean(), rel=1e-10)
            assert variance[i] == pytest.approx(frozen.var(), rel=1e-10)
            assert log_prob[i] == pytest.approx(log_density(y_new[i]), rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("name", ["bernoulli", "categorical"])
def test_class_probabilities_are_the_mean_of_the_dirichlet(name):
    case = CASE[name]
    y, _ = case.draw(rng_for("probs", name), 30)
    probs = case.family.predictive(pooled(case.family, y)).probs()
    np.testing.assert_allclose(probs[0], case.twin.predictive_probs(y), rtol=1e-13)


@textbooks
def test_impossible_targets_have_log_prob_minus_infinity(case):
    impossible = np.array(TEXTBOOK[case.name].impossible)
    n = len(impossible)
    row_data = {"inputs": np.ones((n, 2))} if case.name == "linear" else {}
    components = case.family.predictive(np.zeros((n, case.family.n_statistics)), **row_data)
    assert components.log_prob(impossible).tolist() == [-np.inf] * n
    dist = et.Posterior(et.MetaTree.complete([0]), case.family).predictive(np.zeros((n, 1), np.uint8), **row_data)
    assert dist.log_prob(impossible).tolist() == [-np.inf] * n


def test_a_censored_row_has_the_log_survival():
    family, waited = et.Exponential(3.0, 1.5), np.array([0.0, 0.5, 2.0, 1e6])
    components = family.predictive(np.zeros((4, 2)), censored=np.ones(4))
    np.testing.assert_allclose(components.log_prob(waited), stats.lomax(3.0, scale=1.5).logsf(waited), rtol=1e-12)
    assert components.log_prob(np.array([-1.0, np.inf, np.nan, 0.0])).tolist() == [0.0, -np.inf, -np.inf, 0.0]
    both = family.predictive(np.zeros((2, 2)), censored=np.array([0.0, 1.0])).log_prob(np.array([2.0, 2.0]))
    frozen = stats.lomax(3.0, scale=1.5)
    np.testing.assert_allclose(both, [frozen.logpdf(2.0), frozen.logsf(2.0)], rtol=1e-12)


MOMENTS = [  # family, mean and variance of its prior predictive
    (et.Exponential(0.5, 1.0), np.inf, np.inf),
    (et.Exponential(1.0, 1.0), np.inf, np.inf),
    (et.Exponential(1.5, 1.0), 2.0, np.inf),
    (et.Exponential(2.0, 1.0), 1.0, np.inf),
    (et.Exponential(3.0, 1.0), 0.5, 0.75),
    (et.Geometric(0.5, 1.0), np.inf, np.inf),
    (et.Geometric(1.0, 2.0), np.inf, np.inf),
    (et.Geometric(2.0, 3.0), 3.0, np.inf),
    (et.Geometric(3.0, 2.0), 1.0, 6.0),
    (et.Normal(7.0, 1.0, 0.75, 1.0), 7.0, np.inf),
    (et.Normal(7.0, 1.0, 1.0, 1.0), 7.0, np.inf),
    (et.Normal(7.0, 1.0, 2.0, 1.0), 7.0, 2.0),
]


@pytest.mark.parametrize(("family", "mean", "variance"), MOMENTS, ids=lambda v: repr(v))
def test_infinite_moments_of_one_node(family, mean, variance):
    components = family.predictive(np.zeros((1, family.n_statistics)))
    assert components.mean()[0] == pytest.approx(mean, rel=1e-14)
    assert components.variance()[0] == pytest.approx(variance, rel=1e-14)


@pytest.mark.parametrize(("family", "mean", "variance"), MOMENTS, ids=lambda v: repr(v))
def test_infinite_moments_of_the_average(family, mean, variance):
    """All nodes of an empty posterior have the prior predictive, so their mixture has its moments."""
    dist = et.Posterior(et.MetaTree.complete([0]), family).predictive(np.zeros((1, 1), np.uint8))
    assert dist.mean()[0] == pytest.approx(mean, rel=1e-14)
    assert dist.variance()[0] == pytest.approx(variance, rel=1e-14)
    assert dist.std()[0] == pytest.approx(np.sqrt(variance), rel=1e-14)


def test_one_infinite_mean_makes_the_average_infinite():
    family = et.Exponential([3.0, 0.5, 3.0], 1.0)
    dist = et.Posterior(et.MetaTree.complete([0]), family).predictive(np.array([[0], [1]], np.uint8))
    assert dist.mean().tolist() == [np.inf, 0.5]
    assert dist.variance().tolist() == [np.inf, 0.75]


def test_up_to_one_degree_of_freedom_there_is_no_mean():
    """Student's t: no mean at all (NaN), which is not the same as an infinite one."""
    family = et.Normal(0.0, 1.0, [0.5, 2.0, 2.0], 1.0)
    tree, X = et.MetaTree.complete([0]), np.zeros((1, 1), np.uint8)
    assert np.isnan(et.Posterior(tree, family).predictive(X).mean()[0])
    assert np.isnan(family.predictive(np.zeros((3, family.n_statistics))).mean()[0])
    never_the_root = et.Posterior(tree, family, split_prior=1.0).predictive(X)  # a node of weight 0 says nothing
    assert (never_the_root.mean()[0], never_the_root.variance()[0]) == (0.0, pytest.approx(2.0, rel=1e-14))
