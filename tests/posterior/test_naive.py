"""The oracle agrees with itself, and its families with SciPy and with numerical integrals."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

import naive
import naive_families as nf

N_CODES = (
    2,
    3,
    3,
)  # feature 0: multiway; 1: thresholds, may be missing; 2: multiway with a child for missing


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """A generator seeded by the test's name."""
    return np.random.default_rng(zlib.crc32(request.node.name.encode()))


def random_tree(rng: np.random.Generator, n_inner: int) -> naive.Tree:
    """A tree in level order that mixes every kind of split."""
    feature, first_child, arity, threshold, missing = [], [], [], [], []
    made, s = 1, 0
    while s < made:
        # Passing a node by makes the shape uneven; the last one that is left must be split.
        passed_by = s + 1 < made and rng.random() < 0.3
        k = int(rng.integers(3)) if len(set(first_child) - {-1}) < n_inner and not passed_by else -1
        feature.append(k)
        arity.append({-1: 0, 0: 2, 1: 2, 2: 4}[k])
        first_child.append(made if k >= 0 else -1)
        threshold.append(int(rng.integers(2)) if k == 1 else -1)
        missing.append({1: int(rng.integers(2)), 2: 3}.get(k, -1))
        made, s = made + arity[-1], s + 1
    return naive.Tree(feature, first_child, arity, threshold, missing)


def random_codes(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    """Codes of three features, with the missing code where it has a branch."""
    X = rng.integers(N_CODES, size=(n_rows, 3)).astype(np.uint8)
    gone = rng.random((n_rows, 3)) < [0, 0.2, 0.2]
    return np.where(gone, np.uint8(255), X)


def inputs(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Regression inputs."""
    return {"inputs": rng.normal(size=(n, 2))}


Draw = Callable[[np.random.Generator, int], Any]
# name: (family with hyperparameters scaled by f, targets, row data)
FAMILIES: dict[str, tuple[Callable[[Any], Any], Draw, Draw]] = {
    "bernoulli": (
        lambda f: nf.Bernoulli(f / 2, f),
        lambda rng, n: rng.integers(2, size=n),
        lambda rng, n: {},
    ),
    "categorical": (
        lambda f: nf.Categorical(3, [f, f / 2, f * 2]),
        lambda rng, n: rng.integers(3, size=n),
        lambda rng, n: {},
    ),
    "poisson": (
        lambda f: nf.Poisson(2 * f, f),
        lambda rng, n: rng.poisson(3, size=n),
        lambda rng, n: {"exposure": rng.uniform(0.5, 2, size=n)},
    ),
    "exponential": (
        lambda f: nf.Exponential(2 * f, f),
        lambda rng, n: rng.exponential(3, size=n),
        lambda rng, n: {"censored": rng.integers(2, size=n)},
    ),
    "geometric": (
        lambda f: nf.Geometric(3 * f, f),
        lambda rng, n: rng.geometric(0.4, size=n) - 1,
        lambda rng, n: {},
    ),
    "normal": (
        lambda f: nf.Normal(0.5, f, 2 * f, f),
        lambda rng, n: rng.normal(size=n) * 2,
        lambda rng, n: {},
    ),
    "regression": (
        lambda f: nf.LinearRegression(2, [[2 * f, f / 2], [f / 2, f]], 2 * f, f, mean=[0.5, -1]),
        lambda rng, n: rng.normal(size=n) * 2,
        inputs,
    ),
}
every_family = pytest.mark.parametrize("name", FAMILIES)
discrete_family = pytest.mark.parametrize("name", ["bernoulli", "categorical", "geometric"])


def split_row(data: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Row data of all rows but the last, and of the last."""
    return {k: v[:-1] for k, v in data.items()}, {k: v[-1] for k, v in data.items()}


@pytest.mark.parametrize("n_inner", [0, 1, 3, 4])
def test_prior_sums_to_one_and_counts_are_right(rng: np.random.Generator, n_inner: int) -> None:
    tree = random_tree(rng, n_inner)
    prior = [Fraction(int(rng.integers(0, 8)), 7) for _ in tree.feature]
    trees = list(naive.all_pruned_trees(tree))
    assert sum(naive.tree_prior(tree, prior, *pruned) for pruned in trees) == 1
    assert len(set(trees)) == len(trees)

    def count(s: int) -> int:
        return 1 if naive.is_terminal(tree, s) else 1 + math.prod(map(count, naive.children(tree, s)))

    assert len(trees) == count(0)


def test_routing() -> None:
    tree = naive.Tree(
        [1, -1, 0, -1, -1, -1],
        [1, -1, 3, -1, -1, -1],
        [2, 0, 3, 0, 0, 0],
        [1] + [-1] * 5,
        [0, -1, 2] + [-1] * 3,
    )
    rows = {(0, 1): [0, 1], (0, 255): [0, 1], (1, 2): [0, 2, 4], (255, 2): [0, 2, 5]}
    for row, nodes in rows.items():
        assert naive.path(tree, np.array(row, dtype=np.uint8)) == nodes
        assert naive.path(tree, [-1 if code == 255 else code for code in row]) == nodes
        assert naive.path(tree, row, missing_code=255) == nodes
    with pytest.raises(ValueError, match="node 2, feature 0: code 7"):
        naive.path(tree, [7, 2])


@pytest.mark.parametrize("weighted", [False, True])
@every_family
def test_every_result_of_the_paper_agrees(rng: np.random.Generator, name: str, weighted: bool) -> None:
    make, draw, draw_data = FAMILIES[name]

    def family_of_node(s: int) -> Any:
        return make(1 + s / 4)

    for n_rows in (0, 1, 9):
        tree, X = random_tree(rng, 3), random_codes(rng, n_rows)
        prior = rng.choice([0.0, 0.3, 0.8, 1.0], p=[0.1, 0.4, 0.4, 0.1], size=len(tree.feature))
        weights = rng.uniform(0.2, 3, size=n_rows) if weighted else None
        y, data = draw(rng, n_rows), draw_data(rng, n_rows)
        model = (tree, prior, family_of_node, X, y, weights)
        g, log_q, log_evidence = naive.theorem_1(*model, **data)
        assert log_evidence == pytest.approx(naive.brute_log_evidence(*model, **data), abs=1e-12)
        np.testing.assert_allclose(g, naive.brute_split_prob(*model, **data), atol=1e-14)
        g_1, log_q_1, log_evidence_1 = naive.corollary_1(*model, **data)
        np.testing.assert_allclose([*g_1, *log_q_1, log_evidence_1], [*g, *log_q, log_evidence], atol=1e-12)
        g_sequential, log_evidence_sequential = naive.proposition_1(*model, **data)
        np.testing.assert_allclose([*g_sequential, log_evidence_sequential], [*g, log_evidence], atol=1e-12)
        posterior = naive.brute_tree_posterior(*model, **data)
        for inner, leaves in naive.all_pruned_trees(tree):
            assert posterior[leaves] == pytest.approx(naive.tree_prior(tree, g, inner, leaves), abs=1e-13)


@every_family
def test_corollary_2_agrees_with_theorem_1(rng: np.random.Generator, name: str) -> None:
    make, draw, draw_data = FAMILIES[name]
    tree, X = random_tree(rng, 6), np.repeat(random_codes(rng, 3), [1, 4, 2], axis=0)
    prior, y, data = rng.uniform(size=len(tree.feature)), draw(rng, 7), draw_data(rng, 7)
    g, log_q, log_evidence = naive.theorem_1(tree, prior, lambda s: make(1), X, y, **data)
    g_2, log_q_2, log_evidence_2 = naive.corollary_2(tree, prior, make(1), X, y, **data)
    assert log_evidence_2 == pytest.approx(log_evidence, abs=1e-12)
    for s in g_2:
        assert (g_2[s], log_q_2[s]) == pytest.approx((g[s], log_q[s]), abs=1e-12)
    unvisited_touched = [s for s, rows in enumerate(naive.rows_through(tree, X)) if rows and s not in g_2]
    np.testing.assert_allclose(g[unvisited_touched], [naive.prior_at(tree, prior, s) for s in unvisited_touched])


@every_family
def test_predictive_is_a_ratio_of_evidences(rng: np.random.Generator, name: str) -> None:
    make, draw, draw_data = FAMILIES[name]
    tree, X, y, data = random_tree(rng, 3), random_codes(rng, 8), draw(rng, 8), draw_data(rng, 8)
    model = (tree, rng.uniform(size=len(tree.feature)), lambda s: make(1 + s / 4))
    earlier, new = split_row(data)
    before = naive.brute_log_evidence(*model, X[:-1], y[:-1], **earlier)
    after = naive.brute_log_evidence(*model, X, y, **data)
    rows = (X[:-1], y[:-1], X[-1])
    log_prob = naive.brute_log_predictive(*model, *rows, y[-1], row_data_new=new, **earlier)
    assert log_prob == pytest.approx(after - before, abs=1e-12)


@discrete_family
def test_fractions_agree_with_floats(rng: np.random.Generator, name: str) -> None:
    make, draw, _ = FAMILIES[name]
    tree, X, y, x_new, y_new = (
        random_tree(rng, 3),
        random_codes(rng, 8),
        draw(rng, 8),
        *random_codes(rng, 1),
        1,
    )
    prior = [Fraction(int(rng.integers(1, 7)), 7) for _ in tree.feature]
    model = (tree, prior, lambda s: make(Fraction(s + 1, 3)), X, y)
    weights = rng.integers(1, 4, size=8)
    exact = naive.brute_evidence_fraction(*model, weights)
    assert float(exact) == pytest.approx(np.exp(naive.brute_log_evidence(*model, weights)), rel=1e-12)
    exact_split = naive.brute_split_prob_fraction(*model, weights)
    np.testing.assert_allclose([float(g) for g in exact_split], naive.brute_split_prob(*model, weights), rtol=1e-14)
    exact_new = naive.brute_predictive_fraction(*model, x_new, y_new, weights)
    log_new = naive.brute_log_predictive(*model, x_new, y_new, weights)
    assert float(exact_new) == pytest.approx(np.exp(log_new), rel=1e-14)
    repeated = naive.brute_evidence_fraction(*model[:3], np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert repeated == exact


@pytest.mark.parametrize("name", ["bernoulli", "categorical"])
def test_class_probabilities(rng: np.random.Generator, name: str) -> None:
    make, draw, _ = FAMILIES[name]
    tree, X, y, x_new = random_tree(rng, 3), random_codes(rng, 8), draw(rng, 8), random_codes(rng, 1)[0]
    model = (tree, rng.uniform(size=len(tree.feature)), lambda s: make(1 + s / 4), X, y, x_new)
    probs = naive.brute_probs(*model)
    classes = np.arange(len(probs))
    np.testing.assert_allclose(np.log(probs), [naive.brute_log_predictive(*model, c) for c in classes])
    mean = probs @ classes
    assert probs.sum() == pytest.approx(1)
    assert naive.brute_mean(*model) == pytest.approx(mean)
    assert naive.brute_variance(*model) == pytest.approx(probs @ (classes - mean) ** 2)


@pytest.mark.parametrize("name", ["poisson", "geometric"])
def test_moments_of_counts_are_sums(rng: np.random.Generator, name: str) -> None:
    make, draw, draw_data = FAMILIES[name]
    tree, X, y, data = random_tree(rng, 2), random_codes(rng, 8), draw(rng, 8), draw_data(rng, 8)
    earlier, new = split_row(data)
    model = (tree, [0.5] * len(tree.feature), lambda s: make(6), X[:-1], y[:-1], X[-1])
    counts = np.arange(120)
    probs = np.exp([naive.brute_log_predictive(*model, c, row_data_new=new, **earlier) for c in counts])
    mean, variance = naive.brute_moments(*model, row_data_new=new, **earlier)
    assert probs.sum() == pytest.approx(1, abs=1e-9)
    assert probs @ counts == pytest.approx(mean, rel=1e-7)
    assert probs @ (counts - mean) ** 2 == pytest.approx(variance, rel=1e-5)


# The families against SciPy


def test_one_step_predictives_are_the_named_distributions(rng: np.random.Generator) -> None:
    y, w = rng.integers(0, 4, size=5), rng.uniform(0.5, 2, size=5)
    exposure, censored, real = rng.uniform(0.5, 2, size=5), np.array([1, 0, 0, 1, 0]), rng.normal(size=5)
    n, total = w.sum(), w @ y
    poisson = {"exposure": exposure, "row_data_new": {"exposure": 1.5}}
    rate = 0.7 + w @ exposure
    average = w @ real / n
    scale = 1.5 + (w @ (real - average) ** 2 + 2 * n * (average - 0.3) ** 2 / (2 + n)) / 2
    shape, centre = 1.2 + n / 2, (2 * 0.3 + w @ real) / (2 + n)
    student = stats.t(2 * shape, centre, np.sqrt(scale / shape * (1 + 1 / (2 + n))))
    lomax = stats.lomax(2.2 + w @ (1 - censored), scale=0.7 + w @ y)
    cases = [
        (nf.Bernoulli(0.5, 2), y > 1, 1, {}, stats.betabinom(1, 0.5 + w @ (y > 1), 2 + w @ (y <= 1))),
        (nf.Poisson(1.3, 0.7), y, 3, poisson, stats.nbinom(1.3 + total, rate / (rate + 1.5))),
        (nf.Exponential(2.2, 0.7), y, 1.1, {"censored": censored}, lomax),
        (nf.Geometric(2.5, 0.7), y, 2, {}, stats.betanbinom(1, 2.5 + n, 0.7 + total)),
        (nf.Normal(0.3, 2, 1.2, 1.5), real, 0.4, {}, student),
    ]
    for family, ys, new, data, law in cases:
        density = law.logpdf if hasattr(law.dist, "pdf") else law.logpmf
        assert family.log_predictive(new, ys, w, **data) == pytest.approx(density(new), rel=1e-10)
        assert family.predictive_mean(ys, w, **data) == pytest.approx(law.mean(), rel=1e-10)
        assert family.predictive_variance(ys, w, **data) == pytest.approx(law.var(), rel=1e-10)
    survival = nf.Exponential(2.2, 0.7).log_predictive(1.1, y, w, row_data_new={"censored": 1}, censored=censored)
    assert survival == pytest.approx(lomax.logsf(1.1), rel=1e-12)


def test_joint_evidences_are_the_named_distributions(rng: np.random.Generator) -> None:
    ones = rng.integers(2, size=9)
    one_order = stats.betabinom(9, 0.5, 2).pmf(ones.sum()) / stats.binom(9, 0.5).pmf(ones.sum()) / 2**9
    assert nf.Bernoulli(0.5, 2).log_evidence(ones) == pytest.approx(np.log(one_order))
    classes = rng.integers(3, size=9)
    counts = np.bincount(classes, minlength=3)
    orders = stats.multinomial(9, [1 / 3] * 3).logpmf(counts) + 9 * np.log(3)
    joint = stats.dirichlet_multinomial([0.5, 1, 2], 9).logpmf(counts) - orders
    assert nf.Categorical(3, [0.5, 1, 2]).log_evidence(classes) == pytest.approx(joint)


def test_regression_evidence_is_a_multivariate_student(rng: np.random.Generator) -> None:
    x, y = rng.normal(size=(6, 2)), rng.normal(size=6)
    precision, mean, shape, scale = np.array([[2, 0.5], [0.5, 1]]), np.array([0.5, -1]), 1.7, 0.8
    spread = scale / shape * (np.eye(6) + x @ np.linalg.inv(precision) @ x.T)
    law = stats.multivariate_t(x @ mean, spread, df=2 * shape)
    family = nf.LinearRegression(2, precision, shape, scale, mean)
    assert family.log_evidence(y, inputs=x) == pytest.approx(law.logpdf(y), rel=1e-10)
    # The last row given the others: conditioning the joint Student t.
    rest, cross = spread[:5, :5], np.linalg.solve(spread[:5, :5], spread[:5, 5])
    off = y[:5] - x[:5] @ mean
    stretch = (2 * shape + off @ np.linalg.solve(rest, off)) / (2 * shape + 3)
    new = {"inputs": x[:5], "row_data_new": {"inputs": x[5]}}
    assert family.predictive_mean(y[:5], **new) == pytest.approx(x[5] @ mean + cross @ off)
    assert family.predictive_variance(y[:5], **new) == pytest.approx(stretch * (spread[5, 5] - cross @ spread[:5, 5]))


def test_normal_is_regression_on_a_constant_even_far_from_zero(rng: np.random.Generator) -> None:
    y, w, one = 1e6 + rng.uniform(-1, 1, size=6), rng.uniform(0.5, 2, size=6), np.ones((6, 1))
    normal, regression = nf.Normal(1e6, 2, 1.2, 1.5), nf.LinearRegression(1, 2, 1.2, 1.5, mean=1e6)
    near = nf.Normal(0, 2, 1.2, 1.5).exact_log_evidence([nf.exact(value) - 10**6 for value in y], w)
    assert normal.log_evidence(y, w) == pytest.approx(float(near), rel=1e-15)
    assert normal.log_evidence(y, w) == pytest.approx(regression.log_evidence(y, w, inputs=one), rel=1e-15)
    new = {"row_data_new": {"inputs": [1]}, "inputs": one}
    assert normal.predictive_mean(y, w) == regression.predictive_mean(y, w, **new)
    assert normal.predictive_variance(y, w) == regression.predictive_variance(y, w, **new)


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "exponential", "geometric"])
def test_weighted_evidence_is_the_integral_of_likelihood_powers(rng: np.random.Generator, name: str) -> None:
    log, mp = nf.mp.log, nf.mp
    beta = (lambda t: log(t) + 2 * log(1 - t) - log(mp.beta(2, 3)), [0, 0.5, 1])  # Beta(2, 3)
    gamma = (
        lambda t: 2 * log(t) - 1.5 * t + 3 * log(1.5) - mp.loggamma(3),
        [0, 1, 4, mp.inf],
    )  # Gamma(3, 1.5)
    family, (log_prior, span), log_likelihood = {
        "bernoulli": (nf.Bernoulli(2, 3), beta, lambda t, y: log(t if y else 1 - t)),
        "geometric": (nf.Geometric(2, 3), beta, lambda t, y: log(t) + y * log(1 - t)),
        "poisson": (nf.Poisson(3, 1.5), gamma, lambda t, y: y * log(t) - t - mp.loggamma(y + 1)),
        "exponential": (nf.Exponential(3, 1.5), gamma, lambda t, y: log(t) - t * y),
    }[name]
    y, w = FAMILIES[name][1](rng, 4), rng.uniform(0.5, 2, size=4)
    rows = list(zip(map(nf.exact, y), map(nf.exact, w), strict=True))
    integral = mp.quad(lambda t: mp.exp(log_prior(t) + sum(v * log_likelihood(t, u) for u, v in rows)), span)
    assert family.log_evidence(y, w) == pytest.approx(float(log(integral)), abs=1e-9)


def test_moments_that_do_not_exist() -> None:
    assert nf.Exponential(1, 1).predictive_mean([]) == np.inf
    assert nf.Geometric(1.5, 1).predictive_variance([]) == np.inf
    assert np.isnan(nf.Normal(0, 1, 0.5, 1).predictive_mean([]))
    assert nf.Normal(0, 1, 1, 1).predictive_variance([]) == np.inf


# The growing model


@every_family
def test_growing_tree(rng: np.random.Generator, name: str) -> None:
    make, draw, draw_data = FAMILIES[name]
    n_children = (2, 1, 3)

    def choose_feature(asked: naive.Path) -> int:
        left = [k for k in (0, 2) if k not in dict(asked)]
        return left[len(left) // 2]

    model = (n_children, choose_feature, lambda depth: 0.7 / (1 + depth))
    tree, prior = naive.growing_tree(*model)
    assert list(tree.feature) == [2, 0, 0, 0] + [-1] * 6
    assert prior == [0.7, 0.35, 0.35, 0.35] + [0] * 6
    X, y, data = rng.integers(n_children, size=(8, 3)), draw(rng, 8), draw_data(rng, 8)
    log_evidence = naive.growing_log_evidence(*model, make(2), X, y, **data)
    assert log_evidence == pytest.approx(naive.brute_log_evidence(tree, prior, lambda s: make(2), X, y, **data))
    earlier, new = split_row(data)
    rows = (X[:-1], y[:-1], X[-1], y[-1])
    log_new = naive.growing_log_predictive(*model, make(2), *rows, row_data_new=new, **earlier)
    before = naive.growing_log_evidence(*model, make(2), X[:-1], y[:-1], **earlier)
    assert log_new == pytest.approx(log_evidence - before, abs=1e-12)
    by_trees = naive.brute_log_predictive(tree, prior, lambda s: make(2), *rows, row_data_new=new, **earlier)
    assert log_new == pytest.approx(by_trees, abs=1e-12)
