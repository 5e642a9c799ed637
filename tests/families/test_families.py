"""Families one by one: statistics, evidence, posterior and predictive against twins, textbooks and SciPy."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy import stats

import everytree as et
import naive
import naive_families as nf
from cases import CASE, CASES, Case, collapse, examples, families, random_codes, random_tree, rng_for, seeds, take
from naive_families import mp

ONE_NODE = et.MetaTree.complete([])


# ---- statistics --------------------------------------------------------------------------------------------


def pooled(family: et.Family, y: Any, weight: Any = None, **row_data: Any) -> np.ndarray:
    """Statistics of all rows together, as a node that holds them has them: (1, n_statistics)."""
    post = et.Posterior(ONE_NODE, family).update(np.zeros((len(y), 0), np.uint8), y, weight, **row_data)
    return post.statistics


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


STATISTICS = {  # name: (y, weight, row data, what the class says the statistics are)
    "bernoulli": ([0, 1, 1], [1, 2, 3], {}, [1, 5]),
    "categorical": ([0, 2, 2], [1, 2, 3], {}, [1, 0, 5]),
    "poisson": ([0, 3], [1, 2], {"exposure": [2.0, 0.5]}, [6, 3, 2 * (3 * np.log(0.5) - np.log(6))]),
    "exponential": ([2.0, 3.0], [1, 2], {"censored": [1, 0]}, [2, 8]),
    "geometric": ([0, 4], [1, 2], {}, [3, 8]),
    "normal": ([2.0, 3.0], [1, 2], {}, [3, 8, 22]),
    "linear": ([2.0, 3.0], [1, 2], {"inputs": [[1.0, 5.0], [1.0, 7.0]]}, [3, 22, 8, 52, 3, 19, 123]),
    "lognormal": (np.exp([2.0, 3.0]), [1, 2], {}, [3, 8, 22]),
}


@families
def test_statistics_are_what_the_documentation_says(case):
    y, weight, row_data, expected = STATISTICS[case.name]
    rows = case.family.statistics(np.array(y), np.array(weight), **{k: np.array(v) for k, v in row_data.items()})
    np.testing.assert_allclose(collapse(case.family, rows).sum(axis=0), expected, rtol=1e-14)


# ---- priors that differ from node to node ------------------------------------------------------------------

PerNode = Callable[[np.random.Generator, int], tuple[et.Family, list[Any]]]


def positive(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.uniform(0.3, 3.0, shape)


def scalars(family: type, twin: type, *constant: float, per_node: str) -> PerNode:
    """A family with `constant` hyperparameters, those marked in `per_node` replaced by one for each node."""

    def make(rng: np.random.Generator, n: int) -> tuple[et.Family, list[Any]]:
        values = [positive(rng, n) if mark == "n" else c for mark, c in zip(per_node, constant, strict=True)]
        rows = zip(*(np.broadcast_to(v, n) for v in values), strict=True)
        return family(*values), [twin(*row) for row in rows]

    return make


def classes(width: int) -> PerNode:
    def make(rng: np.random.Generator, n: int) -> tuple[et.Family, list[Any]]:
        alpha = positive(rng, n, width)
        full = np.broadcast_to(alpha, (n, 3))
        return et.Categorical(3, alpha), [nf.Categorical(3, a) for a in full]

    return make


def regressions(*names: str, matrices: bool = False) -> PerNode:
    """Linear regressions with the named hyperparameters given for each node."""

    def make(rng: np.random.Generator, n: int) -> tuple[et.Family, list[Any]]:
        given: dict[str, Any] = {"precision": 1.5, "shape": 2.0, "scale": 0.5, "mean": 0.25}
        roots = rng.normal(size=(n, 2, 2))
        own = {
            "precision": roots @ roots.transpose(0, 2, 1) + np.eye(2) if matrices else positive(rng, n),
            "shape": positive(rng, n),
            "scale": positive(rng, n),
            "mean": rng.normal(size=(n, 2)),
        }
        given |= {name: own[name] for name in names}
        of_node = [{k: v[s] if k in names else v for k, v in given.items()} for s in range(n)]
        return et.LinearRegression(2, **given), [nf.LinearRegression(2, **values) for values in of_node]

    return make


PER_NODE: dict[str, tuple[str, PerNode]] = {
    "bernoulli alpha": ("bernoulli", scalars(et.Bernoulli, nf.Bernoulli, 0.5, 0.7, per_node="n-")),
    "bernoulli beta": ("bernoulli", scalars(et.Bernoulli, nf.Bernoulli, 0.5, 0.7, per_node="-n")),
    "bernoulli both": ("bernoulli", scalars(et.Bernoulli, nf.Bernoulli, 0.5, 0.7, per_node="nn")),
    "categorical by class": ("categorical", classes(3)),
    "categorical one number": ("categorical", classes(1)),
    "poisson shape": ("poisson", scalars(et.Poisson, nf.Poisson, 2.0, 1.5, per_node="n-")),
    "poisson both": ("poisson", scalars(et.Poisson, nf.Poisson, 2.0, 1.5, per_node="nn")),
    "exponential rate": ("exponential", scalars(et.Exponential, nf.Exponential, 3.0, 1.5, per_node="-n")),
    "exponential both": ("exponential", scalars(et.Exponential, nf.Exponential, 3.0, 1.5, per_node="nn")),
    "geometric alpha": ("geometric", scalars(et.Geometric, nf.Geometric, 3.0, 0.75, per_node="n-")),
    "geometric both": ("geometric", scalars(et.Geometric, nf.Geometric, 3.0, 0.75, per_node="nn")),
    "normal mean": ("normal", scalars(et.Normal, nf.Normal, 0.5, 0.25, 2.0, 1.5, per_node="n---")),
    "normal strength": ("normal", scalars(et.Normal, nf.Normal, 0.5, 0.25, 2.0, 1.5, per_node="-n--")),
    "normal all": ("normal", scalars(et.Normal, nf.Normal, 0.5, 0.25, 2.0, 1.5, per_node="nnnn")),
    "linear mean": ("linear", regressions("mean")),
    "linear precision": ("linear", regressions("precision")),
    "linear matrices": ("linear", regressions("precision", matrices=True)),
    "linear all": ("linear", regressions("precision", "shape", "scale", "mean", matrices=True)),
}


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


@pytest.mark.parametrize("name", PER_NODE)
def test_priors_for_another_number_of_nodes_are_refused(name):
    family, _ = PER_NODE[name][1](rng_for("refused", name), 4)
    with pytest.raises(ValueError, match="4 nodes, but the tree has 3"):
        et.Posterior(et.MetaTree.complete([0]), family)


# ---- posterior and predictive ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Textbook:
    """Posterior hyperparameters from rows, and the predictive from them, as textbooks give them."""

    posterior: Callable[..., dict[str, Any]]  # y, weight, row data
    predictive: Callable[..., Any]  # posterior, row data of the new row -> a frozen SciPy distribution
    impossible: tuple[float, ...]


def normal_posterior(y: np.ndarray, w: np.ndarray) -> dict[str, Any]:
    mean, strength, shape, scale, n = 0.5, 0.25, 2.0, 1.5, w.sum()
    average = (w @ y) / n
    spread = w @ (y - average) ** 2 + strength * n / (strength + n) * (average - mean) ** 2
    return {
        "mean": (strength * mean + w @ y) / (strength + n),
        "strength": strength + n,
        "shape": shape + n / 2,
        "scale": scale + spread / 2,
    }


def linear_posterior(y: np.ndarray, w: np.ndarray, inputs: np.ndarray) -> dict[str, Any]:
    prior, mean = np.array([[1.0, 0.25], [0.25, 0.5]]), np.array([0.5, -1.0])
    precision = prior + (inputs.T * w) @ inputs
    coef = np.linalg.solve(precision, prior @ mean + inputs.T @ (w * y))
    residual = w @ (y - inputs @ coef) ** 2 + (coef - mean) @ prior @ (coef - mean)
    return {"mean": coef, "precision": precision, "shape": 2.0 + w.sum() / 2, "scale": 1.5 + residual / 2}


def linear_predictive(p: dict[str, Any], inputs: np.ndarray) -> Any:
    spread = 1 + inputs @ np.linalg.solve(p["precision"], inputs)
    return stats.t(2 * p["shape"], inputs @ p["mean"], np.sqrt(p["scale"] / p["shape"] * spread))


NOT_COUNTS = (-1.0, 0.5, np.nan, np.inf, -np.inf)
TEXTBOOK = {
    "bernoulli": Textbook(
        lambda y, w: {"alpha": 0.5 + w @ (y == 1), "beta": 0.7 + w @ (y == 0)},
        lambda p: stats.bernoulli(p["alpha"] / (p["alpha"] + p["beta"])),
        (2.0, *NOT_COUNTS),
    ),
    "categorical": Textbook(
        lambda y, w: {"alpha": [0.5 + w @ (y == 0), 1.0 + w @ (y == 1), 0.25 + w @ (y == 2)]},
        lambda p: stats.rv_discrete(values=(range(3), p["alpha"] / np.sum(p["alpha"]))),
        (3.0, *NOT_COUNTS),
    ),
    "poisson": Textbook(
        lambda y, w, exposure: {"shape": 2.0 + w @ y, "rate": 1.5 + w @ exposure},
        lambda p, exposure: stats.nbinom(p["shape"], p["rate"] / (p["rate"] + exposure)),
        NOT_COUNTS,
    ),
    "exponential": Textbook(
        lambda y, w, censored: {"shape": 3.0 + w @ (1 - censored), "rate": 1.5 + w @ y},
        lambda p, censored: stats.lomax(p["shape"], scale=p["rate"]),
        (-1e-9, np.nan, np.inf, -np.inf),
    ),
    "geometric": Textbook(
        lambda y, w: {"alpha": 3.0 + w.sum(), "beta": 0.75 + w @ y},
        lambda p: stats.betanbinom(1, p["alpha"], p["beta"]),
        NOT_COUNTS,
    ),
    "normal": Textbook(
        normal_posterior,
        lambda p: stats.t(2 * p["shape"], p["mean"], np.sqrt(p["scale"] / p["shape"] * (1 + 1 / p["strength"]))),
        (np.nan, np.inf, -np.inf),
    ),
    "linear": Textbook(linear_posterior, linear_predictive, (np.nan, np.inf, -np.inf)),
    "lognormal": Textbook(
        lambda y, w: {
            "mean": (0.25 * 0.5 + w @ np.log(y)) / (0.25 + w.sum()),
            "strength": 0.25 + w.sum(),
            "sigma": 0.7,
        },
        lambda p: stats.lognorm(p["sigma"] * np.sqrt(1 + 1 / p["strength"]), scale=np.exp(p["mean"])),
        (0.0, -1.0, np.nan, np.inf, -np.inf),
    ),
}


@families
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


@families
def test_posterior_parameters_of_nothing_are_the_prior(case):
    got = case.family.posterior_parameters(np.zeros((1, case.family.n_statistics)))
    for name, value in got.items():
        np.testing.assert_allclose(value[0], getattr(case.family, name), rtol=1e-14, err_msg=name)


@families
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


@families
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


# ---- accuracy ----------------------------------------------------------------------------------------------


def far_away(name: str, n: int = 120) -> tuple[et.Family, Any, np.ndarray, dict[str, np.ndarray], np.random.Generator]:
    """Rows at a million, give or take one."""
    rng = rng_for("far away", name)
    if name == "normal":
        return et.Normal(0.0, 0.01, 1.0, 1.0), nf.Normal(0.0, 0.01, 1.0, 1.0), 1e6 + rng.normal(size=n), {}, rng
    x = 1e6 + rng.uniform(-1, 1, n)
    y = 1e6 + 2.0 * (x - 1e6) + rng.normal(size=n)
    hyper = (2, 1e-4, 1.0, 1.0)
    inputs = {"inputs": np.column_stack([np.ones(n), x])}
    return et.LinearRegression(*hyper), nf.LinearRegression(*hyper), y, inputs, rng


far = pytest.mark.parametrize("name", ["normal", "linear"])


@far
def test_rows_at_a_million_keep_their_evidence(name):
    family, twin, y, row_data, rng = far_away(name)
    tree = et.MetaTree.complete([0, 1, 1])
    X = rng.integers(0, 2, (len(y), 2)).astype(np.uint8)
    post = et.Posterior(tree, family).update(X, y, **row_data)
    split_prob, subtree, log_evidence = naive.theorem_1(tree, post.split_prior, lambda _: twin, X, y, **row_data)
    assert post.log_evidence == pytest.approx(log_evidence, rel=1e-10)
    np.testing.assert_allclose(post.subtree_log_evidence, subtree, rtol=1e-10)
    np.testing.assert_allclose(post.split_prob, split_prob, rtol=1e-10)


@far
def test_rows_at_a_million_keep_their_posterior(name):
    family, twin, y, row_data, _ = far_away(name)
    got = family.posterior_parameters(pooled(family, y, **row_data))
    exact = twin._posterior(nf.exact_all(y), [mp.mpf(1)] * len(y), **row_data)
    names = ("mean", "strength", "shape", "scale") if name == "normal" else ("mean", "precision", "shape", "scale")
    for parameter, value in zip(names, exact, strict=True):
        flat = [float(v) for v in value] if isinstance(value, mp.matrix) else [float(value)]
        np.testing.assert_allclose(got[parameter][0].ravel(), flat, rtol=1e-10, err_msg=parameter)


@far
def test_rows_at_a_million_keep_their_predictive(name):
    family, twin, y, row_data, _ = far_away(name)
    seen, new = slice(0, -10), slice(-10, None)
    earlier, later = take(row_data, seen), take(row_data, new)
    statistics = np.repeat(pooled(family, y[seen], **earlier), 10, axis=0)
    components = family.predictive(statistics, **later)
    log_prob, mean, variance = components.log_prob(y[new]), components.mean(), components.variance()
    for i in range(10):
        at: dict[str, Any] = {"row_data_new": take(later, i), **earlier}
        # The location is a double near 1e6, and these are 1e-10 apart: no more can be asked of the log density.
        assert log_prob[i] == pytest.approx(twin.log_predictive(y[new][i], y[seen], **at), abs=1e-9)
        assert mean[i] == pytest.approx(twin.predictive_mean(y[seen], **at), rel=1e-14)
        assert variance[i] == pytest.approx(twin.predictive_variance(y[seen], **at), rel=1e-10)


@far
def test_rows_at_a_million_follow_the_chain_rule(name):
    family, _, y, row_data, rng = far_away(name)
    X = rng.integers(0, 2, (len(y), 2)).astype(np.uint8)
    post, total = et.Posterior(et.MetaTree.complete([0, 1, 1]), family), 0.0
    for i in range(len(y)):
        row = slice(i, i + 1)
        total += post.predictive(X[row], **take(row_data, row)).log_prob(y[row])[0]
        post.update(X[row], y[row], **take(row_data, row))
    assert total == pytest.approx(post.log_evidence, rel=1e-10)


@far
def test_rows_at_a_million_come_in_any_order_and_in_shards(name):
    family, _, y, row_data, rng = far_away(name, 2000)
    X = rng.integers(0, 2, (len(y), 2)).astype(np.uint8)
    empty = et.Posterior(et.MetaTree.complete([0, 1, 1]), family)
    batch, order, shards = empty.copy().update(X, y, **row_data), rng.permutation(len(y)), rng.integers(0, 7, len(y))
    shuffled = empty.copy().update(X[order], y[order], **take(row_data, order))
    merged = empty.copy()
    for s in range(7):
        mine = shards == s
        merged.merge(empty.copy().update(X[mine], y[mine], **take(row_data, mine)))
    for other in (shuffled, merged):
        for array in ("split_prob", "leaf_log_evidence", "subtree_log_evidence"):
            np.testing.assert_allclose(getattr(other, array), getattr(batch, array), rtol=1e-10, err_msg=array)
        np.testing.assert_allclose(collapse(family, other.statistics), collapse(family, batch.statistics), rtol=1e-14)


@pytest.mark.parametrize("offset", [1e6, 1e8, 1e9])
@pytest.mark.parametrize("weights", ["constant", "uniform"])
def test_many_rows_of_a_fractional_weight_keep_their_spread(offset, weights):
    """The rounding of the weight is multiplied by (offset / spread)^2: the weight has 32 digits too."""
    rng = rng_for("fractional", weights, offset)
    y, weight = offset + rng.normal(size=3000), np.full(3000, 0.1) if weights == "constant" else rng.random(3000)
    family, twin = et.Normal(offset, 1.0, 1.0, 1.0), nf.Normal(offset, 1.0, 1.0, 1.0)
    statistics = pooled(family, y, weight)
    assert family.log_evidence(statistics)[0] == pytest.approx(twin.log_evidence(y, weight), rel=1e-12)
    variance = family.predictive(statistics).variance()[0]
    assert variance == pytest.approx(twin.predictive_variance(y, weight), rel=1e-12)


@pytest.mark.parametrize("digits", ["few", "all"])
@pytest.mark.parametrize("n_inputs", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_lines_through_few_rows_far_from_zero_under_a_vague_prior(n, n_inputs, digits):
    """With fewer rows than inputs the determinant is as small as the prior, in a matrix of entries of 1e16."""
    rng = rng_for("few rows", n, n_inputs)
    inputs = np.column_stack([np.ones(n), 1e8 + rng.normal(size=(n, n_inputs - 1))])
    y, weight = rng.normal(size=n), rng.random(n)
    if digits == "few":
        inputs, weight = np.round(1024 * inputs) / 1024, np.ceil(64 * weight) / 64
    hyper = (n_inputs, 1e-12, 1.0, 1.0)
    family, twin = et.LinearRegression(*hyper), nf.LinearRegression(*hyper)
    statistics = pooled(family, y, weight, inputs=inputs)
    # Sums keep 32 digits and the matrix is singular to within 28: of weighted products with more digits, 4 are left.
    tolerance = 1e-12 if n >= n_inputs or digits == "few" else 1e-5
    got = family.log_evidence(statistics)[0]
    assert got == pytest.approx(twin.log_evidence(y, weight, inputs=inputs), rel=tolerance)
    new = {"row_data_new": {"inputs": inputs[0]}, "inputs": inputs}
    components = family.predictive(statistics, inputs=inputs[:1])
    assert components.log_prob(y[:1])[0] == pytest.approx(twin.log_predictive(y[0], y, weight, **new), rel=1e-5)
    if tolerance == 1e-12:
        expected = twin.log_predictive(y[0], y, weight, **new)
        assert components.log_prob(y[:1])[0] == pytest.approx(expected, rel=1e-10)
        assert components.mean()[0] == pytest.approx(twin.predictive_mean(y, weight, **new), rel=1e-8)
        assert components.variance()[0] == pytest.approx(twin.predictive_variance(y, weight, **new), rel=1e-8)


def log_beta_ratio(alpha: float, beta: float, ones: float, zeros: float) -> float:
    """log B(alpha + ones, beta + zeros) / B(alpha, beta) at 60 digits."""
    a, b, n, m = nf.exact_all([alpha, beta, ones, zeros])
    return float(nf.log_rising(a, n) + nf.log_rising(b, m) - nf.log_rising(a + b, n + m))


COUNTS = [1.0, 10.0, 255.0, 256.0, 1e3, 1e6, 1e9, 1e12]


@pytest.mark.parametrize("count", COUNTS)
def test_evidence_of_many_equal_shares(count):
    got = et.Bernoulli(0.5, 0.7).log_evidence(np.array([[count, count]]))[0]
    assert got == pytest.approx(log_beta_ratio(0.5, 0.7, count, count), rel=1e-12)


@pytest.mark.parametrize("few", [0.0, 1.0, 3.5])
@pytest.mark.parametrize("count", COUNTS)
def test_evidence_of_a_nearly_pure_node(count, few):
    """Large terms cancel here: the answer grows like the logarithm of the count."""
    got = et.Bernoulli(0.5, 0.7).log_evidence(np.array([[few, count], [count, few]]))
    expected = [log_beta_ratio(0.5, 0.7, count, few), log_beta_ratio(0.5, 0.7, few, count)]
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def sizes(rng: np.random.Generator, low: float, high: float, n: int) -> np.ndarray:
    """Numbers of every order of magnitude from 10^low to 10^high."""
    return 10.0 ** rng.uniform(low, high, n)


def assert_relative(got: np.ndarray, expected: list[float], tolerance: float = 1e-12) -> None:
    """Logs of probabilities: to 1e-12 of themselves, or of the probability where that is near 1."""
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=1e-14)


@pytest.mark.parametrize("largest", [6, 9, 12])
def test_evidence_of_classes_of_all_sizes(largest):
    rng = rng_for("sizes", largest)
    alpha, beta, ones, zeros = (sizes(rng, -3, largest, 300) for _ in range(4))
    ones, zeros = np.floor(ones), np.where(rng.random(300) < 0.5, zeros, np.floor(zeros))
    got = et.Bernoulli(alpha, beta).log_evidence(np.column_stack([zeros, ones]))
    assert_relative(got, [log_beta_ratio(*row) for row in zip(alpha, beta, ones, zeros, strict=True)])


def test_evidence_of_classes_under_a_lopsided_prior():
    ones, zeros = np.array([0.0, 1e3, 5e4, 46600.0]), np.array([1e9, 277.0, 0.0, 3.9e11])
    for alpha, beta in [(9.2e5, 3.9e11), (1.05e11, 5.5e4)]:
        got = et.Bernoulli(alpha, beta).log_evidence(np.column_stack([zeros, ones]))
        assert_relative(got, [log_beta_ratio(alpha, beta, *row) for row in zip(ones, zeros, strict=True)])


@pytest.mark.parametrize("largest", [6, 9, 12, 15])
def test_geometric_predictive_of_all_sizes(largest):
    rng = rng_for("geometric sizes", largest)
    alpha, beta = sizes(rng, -3, min(largest, 9), 300), sizes(rng, -3, largest, 300)
    y = np.floor(sizes(rng, -1, largest, 300))
    components = et.Geometric(alpha, beta).predictive(np.zeros((300, 2)))
    assert_relative(
        components.log_prob(y), [log_beta_ratio(a, b, 1.0, k) for a, b, k in zip(alpha, beta, y, strict=True)]
    )
    survival = np.array([log_beta_ratio(a, b, 0.0, k + 1.0) for a, b, k in zip(alpha, beta, y, strict=True)])
    some = survival > -700.0  # beyond, the probability is 0
    np.testing.assert_allclose(np.log(components.sf(y)[some]), survival[some], rtol=1e-12, atol=1e-14)


def log_gamma_ratio(x: float, t: float, n: float, s: float) -> Any:
    """log Gamma(x + n) / Gamma(x) t^x / (t + s)^(x + n) at 60 digits."""
    x, t, n, s = nf.exact_all([x, t, n, s])
    return nf.log_rising(x, n) + x * mp.log(t) - (x + n) * mp.log(t + s)


@pytest.mark.parametrize("largest", [6, 9, 12])
def test_evidence_of_waiting_times_of_all_sizes(largest):
    rng = rng_for("waiting sizes", largest)
    shape, rate, events, time = (sizes(rng, low, largest, 300) for low in (-3, -6, -1, -3))
    got = et.Exponential(shape, rate).log_evidence(np.column_stack([events, time]))
    assert_relative(got, [float(log_gamma_ratio(*row)) for row in zip(shape, rate, events, time, strict=True)])


@pytest.mark.parametrize("largest", [3, 6, 9, 12])
@pytest.mark.parametrize("near", [False, True], ids=["anywhere", "near the mean"])
def test_counts_of_all_sizes(largest, near):
    """The evidence of one row is its predictive probability under the prior."""
    rng = rng_for("count sizes", largest, near)
    shape, rate = sizes(rng, -3, largest, 200), sizes(rng, -largest, largest, 200)
    exposure = sizes(rng, -2, 2, 200)
    mean = shape * exposure / rate
    drawn = mean + rng.normal(size=200) * np.sqrt(mean + mean**2 / shape)
    y = np.clip(np.floor(drawn if near else sizes(rng, -1, largest, 200)), 0.0, 1e15)
    family = et.Poisson(shape, rate)
    expected = [float(log_gamma_ratio(a, b, k, e) + k * mp.log(e) - mp.loggamma(k + 1))
                for a, b, k, e in zip(*map(nf.exact_all, (shape, rate, y, exposure)), strict=True)]  # fmt: skip
    assert_relative(family.log_evidence(family.statistics(y, exposure=exposure)), expected)
    components = family.predictive(np.zeros((200, family.n_statistics)), exposure=exposure)
    # The odds exposure / rate are a double: their rounding is multiplied by how far y is from its mean.
    rounding = 1e-15 * np.abs(y - mean) / (1.0 + mean / shape)
    assert (np.abs(components.log_prob(y) - expected) <= 1e-12 * np.abs(expected) + 1e-14 + rounding).all()


LARGE = {  # name: (family, twin, targets near n)
    "poisson": lambda n: (et.Poisson(2.0, 2 / n), nf.Poisson(2.0, 2 / n), [n, n + 7]),
    "geometric": lambda n: (et.Geometric(3.0, 0.75), nf.Geometric(3.0, 0.75), [n, n + 7]),
}


@pytest.mark.parametrize("n", [10, 1000, 10**6, 10**9])
@pytest.mark.parametrize("name", LARGE)
def test_evidence_of_large_targets(name, n):
    family, twin, y = LARGE[name](n)
    got = family.log_evidence(pooled(family, np.array(y)))[0]
    assert got == pytest.approx(twin.log_evidence(y), rel=1e-12)


@pytest.mark.parametrize("size", [1e20, 1e40, 1e60])
def test_evidence_of_the_largest_rows_that_are_accepted(size):
    y, weight = np.array([size, -size, size / 2]), np.full(3, size)
    family, twin = et.Normal(), nf.Normal(0.0, 1.0, 1.0, 1.0)
    for weights in (None, weight):
        got = family.log_evidence(pooled(family, y, weights))[0]
        assert got == pytest.approx(twin.log_evidence(y, weights), rel=1e-10)


EXTREME = {  # name: family and twin with every hyperparameter of size h
    "bernoulli": lambda h: (et.Bernoulli(h, h), nf.Bernoulli(h, h)),
    "categorical": lambda h: (et.Categorical(3, h), nf.Categorical(3, h)),
    "poisson": lambda h: (et.Poisson(h, h), nf.Poisson(h, h)),
    "exponential": lambda h: (et.Exponential(h, h), nf.Exponential(h, h)),
    "geometric": lambda h: (et.Geometric(h, h), nf.Geometric(h, h)),
    "normal": lambda h: (et.Normal(0.5, h, h, h), nf.Normal(0.5, h, h, h)),
    "linear": lambda h: (et.LinearRegression(2, h, h, h), nf.LinearRegression(2, h, h, h)),
}


@pytest.mark.parametrize("size", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("name", EXTREME)
def test_evidence_under_tiny_and_huge_hyperparameters(name, size):
    family, twin = EXTREME[name](size)
    rng = rng_for("extreme", name)
    for n in (1, 2, 30):
        y, row_data = CASE[name].draw(rng, n)
        got = family.log_evidence(pooled(family, y, **row_data))[0]
        assert got == pytest.approx(twin.log_evidence(y, **row_data), rel=1e-10, abs=1e-12), n


@pytest.mark.parametrize("size", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("name", EXTREME)
def test_predictive_under_tiny_and_huge_hyperparameters(name, size):
    family, twin = EXTREME[name](size)
    rng = rng_for("extreme", name)
    y, row_data = CASE[name].draw(rng, 12)
    earlier, later = take(row_data, slice(0, 10)), take(row_data, slice(10, 12))
    components = family.predictive(np.repeat(pooled(family, y[:10], **earlier), 2, axis=0), **later)
    got = components.log_prob(y[10:].astype(float))
    for i in range(2):
        expected = twin.log_predictive(y[10 + i], y[:10], row_data_new=take(later, i), **earlier)
        assert got[i] == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_the_gamma_function_behind_the_evidence():
    """With shape 1, rate 1 and no time passed, w events have evidence Gamma(1 + w)."""
    events = np.concatenate([np.logspace(-6, 6, 400), np.arange(1.0, 300.0)])
    got = et.Exponential(1.0, 1.0).log_evidence(np.column_stack([events, np.zeros_like(events)]))
    expected = [float(mp.loggamma(1 + mp.mpf(float(w)))) for w in events]
    np.testing.assert_allclose(got, expected, rtol=1e-13, atol=2e-14)


# ---- families as values ------------------------------------------------------------------------------------


def in_short(family: et.Family) -> str:
    return type(family).__name__ + ("" if family.has_one_prior else " per node")


VALUES = [case.family for case in CASES] + [
    et.Bernoulli([0.5, 1.0, 2.0], 0.5),
    et.Categorical(2, [[0.5], [1.0], [2.0]]),
    et.Normal([0.0, 1.0, 2.0]),
    et.LinearRegression(2, mean=[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]),
]


@pytest.mark.parametrize("family", VALUES, ids=in_short)
def test_a_family_is_a_value(family):
    array = np.array  # as arrays are written in a repr
    written = eval(repr(family), {"array": array} | {type(family).__name__: type(family)})
    for same in (written, pickle.loads(pickle.dumps(family))):
        assert same == family
        assert hash(same) == hash(family)
        assert repr(same) == repr(family)
        statistics = np.abs(rng_for("value", family).normal(size=(3, family.n_statistics)))
        np.testing.assert_array_equal(same.log_evidence(statistics), family.log_evidence(statistics))
        np.testing.assert_array_equal(same.summarise(statistics), family.summarise(statistics))
    assert family != "a family"
    assert [other == family for other in VALUES].count(True) == 1


def test_equal_families_have_equal_hashes():
    zero, minus_zero = et.Normal(0.0), et.Normal(-0.0)
    assert zero == minus_zero
    assert hash(zero) == hash(minus_zero)


DIFFERENT = [
    (et.Bernoulli(0.5, 0.7), et.Bernoulli(0.7, 0.5)),
    (et.Bernoulli(0.5, 0.5), et.Categorical(2, 0.5)),
    (et.Poisson(2.0, 1.0), et.Exponential(2.0, 1.0)),
    (et.Categorical(2, 0.5), et.Categorical(3, 0.5)),
    (et.LinearRegression(1), et.LinearRegression(2)),
    (et.Normal(0.0), et.Normal(1e-300)),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT, ids=repr)
def test_different_families_are_not_equal(one, other):
    assert one != other
    assert other != one


@pytest.mark.parametrize("family", VALUES, ids=in_short)
def test_a_family_is_frozen(family):
    for name in [field.name for field in dataclasses.fields(family)]:
        with pytest.raises(FrozenInstanceError):
            setattr(family, name, 1.0)
        value = getattr(family, name)
        if isinstance(value, np.ndarray):
            assert not value.flags.writeable


@pytest.mark.parametrize("family", VALUES, ids=in_short)
def test_a_family_is_as_frozen_after_pickle(family):
    loaded = pickle.loads(pickle.dumps(family))
    public = [getattr(loaded, name) for name in family.__dataclass_fields__]
    assert not any(value.flags.writeable for value in public if isinstance(value, np.ndarray))


def test_a_family_keeps_its_own_copy_of_an_array():
    alpha = np.array([0.5, 1.0, 2.0])
    family = et.Bernoulli(alpha, 1.0)
    before = family.log_evidence(np.ones((3, 2)))
    alpha[:] = 9.0
    assert family.alpha.tolist() == [0.5, 1.0, 2.0]
    np.testing.assert_array_equal(family.log_evidence(np.ones((3, 2))), before)


@families
def test_statistics_refuse_what_the_family_cannot_have_produced(case):
    row_data = {"inputs": np.ones((2, 2))} if case.name == "linear" else {}
    bad = TEXTBOOK[case.name].impossible[0]
    with pytest.raises(ValueError, match=r"y\[1\] is .*, but must be"):
        case.family.statistics(np.array([1.0, bad]), **row_data)
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is -1, but must be"):
        case.family.statistics(np.array([1.0, 1.0]), np.array([-1.0, 1.0]), **row_data)


@pytest.mark.parametrize("shape", [(1, 3), (2, 1)], ids=str)
@pytest.mark.parametrize("method", ["log_evidence", "predictive", "posterior_parameters"])
def test_statistics_of_another_shape_are_refused(method, shape):
    with pytest.raises(ValueError, match="statistics"):
        getattr(et.Bernoulli(), method)(np.ones(shape))


@pytest.mark.parametrize("n", [2, 4])
@pytest.mark.parametrize("method", ["log_evidence", "predictive", "posterior_parameters"])
def test_statistics_of_another_number_of_nodes_are_refused(method, n):
    """With priors for 3 nodes, only statistics of 3 nodes have an answer."""
    with pytest.raises(ValueError, match="3"):
        getattr(et.Bernoulli([0.5, 1.0, 2.0], 1.0), method)(np.ones((n, 2)))
