"""Law 7: what the generative model draws, the posterior is calibrated for; and each draw follows its prior."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

import everytree as et
import naive
from cases import CASE, CELLS, Case, in_full, random_codes, random_tree, rng_for, take
from everytree.base.words import number_of
from family_cases import HistogramOf

TREE = et.MetaTree.complete([0, 1, 1])
SPLIT_PRIOR = np.array([0.6, 0.5, 0.3, 0.0, 0.0, 0.0, 0.0])
N_DRAWS, N_ROWS = 500, 25


def rows(rng: np.random.Generator, case: Case, n: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Codes and row data; nobody is censored unless a test says when."""
    row_data = case.draw(rng, n)[1]
    row_data.pop("censored", None)
    return rng.integers(0, 2, (n, 2)).astype(np.uint8), row_data


# ---- calibration -------------------------------------------------------------------------------------------


def assert_calibrated(split: list[bool], prob: list[float]) -> None:
    """What happened against the probabilities it was given, once plainly and once by how sure they were."""
    happened, p = np.array(split, dtype=float), np.array(prob)
    assert p.min() >= 0.0
    assert p.max() <= 1.0
    assert p.std() > 0.05  # the data say something
    for weight in (np.ones(len(p)), p - 0.5):
        z = (weight * (happened - p)).sum() / np.sqrt((weight**2 * p * (1 - p)).sum())
        assert abs(z) < 3.5


@pytest.mark.long
@in_full
def test_split_probabilities_are_calibrated(case):
    """P(s is split | s in T, data) over many draws of T and data, for the root and for the nodes below it."""
    rng, model = rng_for("calibration", case), et.GenerativeModel(TREE, case.family, SPLIT_PRIOR)
    root, below = ([], []), ([], [])
    for _ in range(N_DRAWS):
        X, row_data = rows(rng, case, N_ROWS)
        drawn, _, y = model.sample(X, rng=rng, **row_data)
        prob = et.Posterior(TREE, case.family, SPLIT_PRIOR).update(X, y, **row_data).split_prob
        for s in {0, 1, 2} & {*drawn.leaves.tolist(), *drawn.inner.tolist()}:
            happened, given = root if s == 0 else below
            happened.append(s in drawn.inner)
            given.append(prob[s])
    assert len(root[0]) == N_DRAWS
    assert_calibrated(*root)
    assert_calibrated(*below)


def test_split_probabilities_are_calibrated_for_censored_times():
    """Nobody is watched for longer than one unit of time."""
    case = CASE["exponential"]
    rng, model = rng_for("censored calibration"), et.GenerativeModel(TREE, case.family, SPLIT_PRIOR)
    split, prob = [], []
    for _ in range(N_DRAWS):
        X, _ = rows(rng, case, 2 * N_ROWS)
        drawn, _, time = model.sample(X, rng=rng)
        post = et.Posterior(TREE, case.family, SPLIT_PRIOR)
        post.update(X, np.minimum(time, 1.0), censored=time > 1.0)
        split.append(0 in drawn.inner)
        prob.append(post.split_prob[0])
    assert_calibrated(split, prob)


def cdf_of_counts(rng: np.random.Generator, log_prob: Callable[[np.ndarray], np.ndarray], y: float) -> float:
    """P(Y < y) and a random share of P(Y = y): uniform where y was drawn from that distribution."""
    prob = np.exp(log_prob(np.arange(y + 1)))
    return prob[:-1].sum() + rng.random() * prob[-1]


def cdf_of_amounts(rng: np.random.Generator, log_prob: Callable[[np.ndarray], np.ndarray], y: float) -> float:
    """The probability of 0, and the integral of a density that may be infinite there: target = y * share^8."""
    zero = float(np.exp(log_prob(np.zeros(1)))[0])
    if y == 0.0:
        return zero * rng.random()
    share = (NODES + 1) / 2
    return zero + float((4.0 * WEIGHTS * y * share**7 * np.exp(log_prob(y * share**8))).sum())


NODES, WEIGHTS = np.polynomial.legendre.leggauss(200)


def cdf_of_times(rng: np.random.Generator, log_prob: Callable[[np.ndarray], np.ndarray], y: float) -> float:
    """The integral of the density from 0 to y."""
    del rng
    at = y * (NODES + 1) / 2
    return float(y / 2 * (WEIGHTS * np.exp(log_prob(at))).sum())


def cdf_of_reals(rng: np.random.Generator, log_prob: Callable[[np.ndarray], np.ndarray], y: float) -> float:
    """The integral of the density up to y, over an angle: target = tan(angle)."""
    del rng
    low, high = -np.pi / 2, np.arctan(y)
    angle = low + (high - low) * (NODES + 1) / 2
    density = np.exp(log_prob(np.tan(angle))) / np.cos(angle) ** 2
    return float((high - low) / 2 * (WEIGHTS * density).sum())


def cdf_of_cells(rng: np.random.Generator, log_prob: Callable[[np.ndarray], np.ndarray], y: float) -> float:
    """The integral of a density that jumps at the edges of cells, from one edge to the next."""
    del rng
    angles = np.arctan([-np.inf, *(edge for edge in CELLS[0] if edge < y), y])
    low, high = angles[:-1, None], angles[1:, None]
    angle = low + (high - low) * (NODES + 1) / 2
    density = np.exp(log_prob(np.tan(angle.ravel()))).reshape(angle.shape) / np.cos(angle) ** 2
    return float(((high - low) / 2 * WEIGHTS * density).sum())


def log_prob_of(
    post: et.Posterior, x: np.ndarray, row_data: dict[str, np.ndarray]
) -> Callable[[np.ndarray], np.ndarray]:
    """The predictive of one row as a function of the target."""

    def log_prob(at: np.ndarray) -> np.ndarray:
        repeated = {name: np.repeat(value, len(at), axis=0) for name, value in row_data.items()}
        return post.predictive(np.repeat(x, len(at), axis=0), **repeated).log_prob(at)

    return log_prob


CDF = {
    "exponential": cdf_of_times, "normal": cdf_of_reals, "linear": cdf_of_reals, "lognormal": cdf_of_times,
    "histogram": cdf_of_cells, "gamma": cdf_of_amounts, "weibull": cdf_of_amounts, "hurdle_gamma": cdf_of_amounts,
}  # fmt: skip


@pytest.mark.long
@in_full
def test_a_held_out_target_is_anywhere_in_its_predictive(case):
    """The probability integral transform of one more row is uniform."""
    rng, model = rng_for("transform", case), et.GenerativeModel(TREE, case.family, SPLIT_PRIOR)
    cdf, ranks = CDF.get(case.name, cdf_of_counts), []
    for _ in range(N_DRAWS):
        X, row_data = rows(rng, case, 11)
        y = model.sample(X, rng=rng, **row_data).y
        seen, new = slice(0, 10), slice(10, 11)
        post = et.Posterior(TREE, case.family, SPLIT_PRIOR).update(X[seen], y[seen], **take(row_data, seen))
        ranks.append(cdf(rng, log_prob_of(post, X[new], take(row_data, new)), y[10]))
    assert max(ranks) <= 1.0 + 1e-6
    assert stats.kstest(np.minimum(ranks, 1.0), "uniform").pvalue > 1e-3


# ---- the parts of a draw -----------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("seed", range(3))
def test_trees_follow_their_prior(seed):
    rng = rng_for("tree prior", seed)
    tree = et.MetaTree.complete([0, 1, 2, 2], n_children=[3, 2, 2]) if seed == 0 else random_tree(rng, max_depth=2)
    split_prior = np.where(tree.is_terminal, 0.0, rng.uniform(0.3, 0.7, tree.n_nodes))
    model = et.GenerativeModel(tree, CASE["bernoulli"].family, split_prior)
    drawn = Counter(frozenset(model.sample_tree(rng).leaves.tolist()) for _ in range(3000))
    prior = {
        leaves: naive.tree_prior(tree, split_prior, inner, leaves) for inner, leaves in naive.all_pruned_trees(tree)
    }
    assert sum(prior.values()) == pytest.approx(1.0)
    assert drawn.keys() <= prior.keys()
    common = [leaves for leaves, p in prior.items() if 3000 * p >= 5]
    observed, expected = [drawn[leaves] for leaves in common], [3000 * prior[leaves] for leaves in common]
    if len(common) < len(prior):
        observed, expected = [*observed, 3000 - sum(observed)], [*expected, 3000 - sum(expected)]
    assert len(expected) > 1
    assert stats.chisquare(observed, expected).pvalue > 1e-3


@pytest.mark.parametrize(("split_prior", "leaves"), [(0.0, [0]), (1.0, [3, 4, 5, 6])])
def test_certain_priors_leave_no_choice(split_prior, leaves):
    model = et.GenerativeModel(TREE, et.Bernoulli(), split_prior)
    assert all(model.sample_tree(seed).leaves.tolist() == leaves for seed in range(20))


ROOT = np.linalg.cholesky(np.array([[1.0, 0.25], [0.25, 0.5]]))


def drawn_shapes(shapes: np.ndarray) -> list[tuple[np.ndarray, Any]]:
    """Shapes blurred by a uniform number, and the distribution that they then have."""
    blurred = np.searchsorted([0.5, 1.0, 3.0], shapes) + rng_for("blur").random(len(shapes))
    return [(blurred, stats.rv_histogram((np.array([0.5, 0.25, 0.25]), np.arange(4.0)), density=False))]


PARAMETERS: dict[str, Callable[[np.ndarray], list[tuple[np.ndarray, Any]]]] = {  # theta -> (sample, distribution)
    "bernoulli": lambda t: [(t, stats.beta(0.5, 0.7))],
    "categorical": lambda t: [(t[:, c], stats.beta(a, 1.75 - a)) for c, a in enumerate([0.5, 1.0, 0.25])],
    "poisson": lambda t: [(t, stats.gamma(2.0, scale=1 / 1.5))],
    "exponential": lambda t: [(t, stats.gamma(3.0, scale=1 / 1.5))],
    "geometric": lambda t: [(t, stats.beta(3.0, 0.75))],
    "normal": lambda t: [
        (t[:, 1], stats.gamma(2.0, scale=1 / 1.5)),
        ((t[:, 0] - 0.5) * np.sqrt(0.25 * t[:, 1]), stats.norm()),
    ],
    "linear": lambda t: [
        (t[:, 2], stats.gamma(2.0, scale=1 / 1.5)),
        *((z, stats.norm()) for z in ((t[:, :2] - [0.5, -1.0]) @ ROOT * np.sqrt(t[:, 2:])).T),
    ],
    "histogram": lambda t: [
        (t[:, :3].sum(axis=1), stats.beta(0.825, 0.675)),
        (t[:, 4] / t[:, 4:].sum(axis=1), stats.beta(4.8, 1.2)),
    ],
    "lognormal": lambda t: [(t[:, 0], stats.norm(0.5, 0.7 / np.sqrt(0.25)))],
    "gamma": lambda t: [(t[t[:, 0] == 0.5, 1], stats.gamma(2.375, scale=1.0 / 4.125)), *drawn_shapes(t[:, 0])],
    "weibull": lambda t: [(t[t[:, 0] == 1.0, 1], stats.gamma(2.75, scale=1.0 / 2.625)), *drawn_shapes(t[:, 0])],
    "negative_binomial": lambda t: [(t[t[:, 0] == 1.0, 1], stats.beta(2.75, 2.625)), *drawn_shapes(t[:, 0])],
    "hurdle_poisson": lambda t: [(t[:, 0], stats.beta(3.0, 2.0)), (t[:, 1], stats.gamma(2.0, scale=1 / 1.5))],
    "hurdle_gamma": lambda t: [(t[:, 0], stats.beta(3.0, 2.0)), *drawn_shapes(t[:, 1])],
}


@in_full
def test_parameters_follow_their_prior(case):
    theta = case.family.sample_parameters(np.zeros(20_000, dtype=np.int64), rng_for("theta", case))
    for sample, prior in PARAMETERS[case.name](theta):
        assert stats.kstest(sample, prior.cdf).pvalue > 1e-3
        for power in (1, 2):
            z = (np.mean(sample**power) - prior.moment(power)) / np.std(sample**power) * np.sqrt(len(sample))
            assert abs(z) < 4.0
    if case.name == "categorical":
        np.testing.assert_allclose(theta.sum(axis=1), 1.0, rtol=1e-12)
    if case.name == "linear":
        whitened = (theta[:, :2] - [0.5, -1.0]) @ ROOT * np.sqrt(theta[:, 2:])
        assert abs(np.corrcoef(whitened.T)[0, 1]) < 0.03


NARROW = {  # priors for each node, so narrow that the node can be told from what was drawn
    "bernoulli": (et.Bernoulli([1e8, 2e8, 3e8], [3e8, 2e8, 1e8]), lambda t: t, [0.25, 0.5, 0.75]),
    "categorical": (et.Categorical(2, [[1e8, 3e8], [1e8, 1e8], [3e8, 1e8]]), lambda t: t[:, 0], [0.25, 0.5, 0.75]),
    "poisson": (et.Poisson([1e8, 2e8, 3e8], 1e8), lambda t: t, [1.0, 2.0, 3.0]),
    "exponential": (et.Exponential(1e8, [1e8, 2e8, 4e8]), lambda t: t, [1.0, 0.5, 0.25]),
    "geometric": (et.Geometric([1e8, 2e8, 3e8], [3e8, 2e8, 1e8]), lambda t: t, [0.25, 0.5, 0.75]),
    "normal": (et.Normal([1.0, 2.0, 3.0], 1e8, 1e8, 1e8), lambda t: t[:, 0], [1.0, 2.0, 3.0]),
    "linear": (et.LinearRegression(1, 1e8, 1e8, 1e8, [[1.0], [2.0], [3.0]]), lambda t: t[:, 0], [1.0, 2.0, 3.0]),
    "histogram": (
        et.Histogram([0.0, 1.0], [0.2, 0.3, 0.5], [1e8, 2e8, 3e8]),
        lambda t: t[:, 2],
        [0.5, 0.5, 0.5],
    ),
    "lognormal": (et.LogNormal([1.0, 2.0, 3.0], 1e8, 0.5), lambda t: t[:, 0], [1.0, 2.0, 3.0]),
    "gamma": (et.Gamma([1.0, 2.0, 3.0], 1e8, 2.0), lambda t: t[:, 0] / t[:, 1], [1.0, 2.0, 3.0]),
    "weibull": (et.Weibull([1.0, 2.0, 3.0], 1e8, 1.0), lambda t: 1.0 / t[:, 1], [1.0, 2.0, 3.0]),
    "negative_binomial": (
        et.NegativeBinomial([1.0, 2.0, 3.0], 1e8, 2.0),
        lambda t: 2.0 / t[:, 1] - 2.0,
        [1.0, 2.0, 3.0],
    ),
    "hurdle": (et.Hurdle(et.Poisson([1e8, 2e8, 3e8], 1e8), 1e8, 1e8), lambda t: t[:, 1], [1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("name", NARROW)
def test_each_leaf_has_the_prior_of_its_node(name):
    family, read, expected = NARROW[name]
    nodes = np.array([2, 0, 1, 1])
    np.testing.assert_allclose(
        read(family.sample_parameters(nodes, rng_for(name))), np.take(expected, nodes), rtol=1e-2
    )
    model, X = et.GenerativeModel(et.MetaTree.complete([0]), family, 1.0), np.zeros((1, 1), np.uint8)
    row_data = {"inputs": np.ones((1, 1))} if name == "linear" else {}
    np.testing.assert_allclose(read(model.sample(X, rng=1, **row_data).theta), expected[1:], rtol=1e-2)


GIVEN: dict[str, Callable[..., tuple[Any, Any]]] = {  # mean and variance of y given theta and the row data
    "bernoulli": lambda t: (t, t * (1 - t)),
    "categorical": lambda t: (t @ range(3), t @ np.square(range(3)) - (t @ range(3)) ** 2),
    "poisson": lambda t, exposure: (t * exposure, t * exposure),
    "exponential": lambda t: (1 / t, 1 / t**2),
    "geometric": lambda t: ((1 - t) / t, (1 - t) / t**2),
    "normal": lambda t: (t[0], 1 / t[1]),
    "linear": lambda t, inputs: (inputs @ t[:2], 1 / t[2]),
    "histogram": lambda t: (HistogramOf({"shares": t}).mean(), HistogramOf({"shares": t}).var()),
    "lognormal": lambda t: stats.lognorm(t[1], scale=np.exp(t[0])).stats("mv"),
    "gamma": lambda t: (t[0] / t[1], t[0] / t[1] ** 2),
    "weibull": lambda t: stats.weibull_min(t[0], scale=t[1] ** (-1.0 / t[0])).stats("mv"),
    "negative_binomial": lambda t, exposure: stats.nbinom(t[0] * exposure, t[1]).stats("mv"),
    "hurdle_poisson": lambda t: (t[0] * (1.0 + t[1]), t[0] * (t[1] + (1.0 - t[0]) * (1.0 + t[1]) ** 2)),
    "hurdle_gamma": lambda t: (t[0] * t[1] / t[2], t[0] * (t[1] / t[2] ** 2 + (1.0 - t[0]) * (t[1] / t[2]) ** 2)),
}


@in_full
def test_targets_follow_the_parameters_of_their_leaf(case):
    rng = rng_for("targets", case)
    X, row_data = rows(rng, case, 8000)
    model = et.GenerativeModel(TREE, case.family, SPLIT_PRIOR)
    n_leaves = set()
    for _ in range(6):
        drawn, theta, y = model.sample(X, rng=rng, **row_data)
        n_leaves.add(drawn.n_leaves)
        for leaf, parameters in enumerate(theta):
            mine = drawn.apply(X) == leaf
            mean, variance = GIVEN[case.name](parameters, **take(row_data, mine))
            z = (y[mine] - mean) / np.sqrt(variance)
            assert abs(z.mean()) * np.sqrt(mine.sum()) < 4.0
            if case.name in ("bernoulli", "categorical"):
                continue  # the mean says it all
            assert np.mean(z**2) == pytest.approx(1.0, abs=6.0 * np.std(z**2) / np.sqrt(mine.sum()) + 1e-9)
    assert len(n_leaves) > 1


# ---- shapes and seeds --------------------------------------------------------------------------------------

WIDTH = {"categorical": (3,), "normal": (2,), "linear": (3,), "lognormal": (2,), "histogram": (6,)} | {
    "gamma": (2,), "weibull": (2,), "negative_binomial": (2,), "hurdle_poisson": (2,), "hurdle_gamma": (3,),
}  # fmt: skip


@in_full
def test_shapes(case):
    rng = rng_for("shapes", case)
    tree = random_tree(rng)
    for n in (0, 1, 30):
        X, row_data = random_codes(rng, tree, n), rows(rng, case, n)[1]
        drawn, theta, y = et.GenerativeModel(tree, case.family).sample(X, rng=rng, **row_data)
        assert drawn.tree == tree
        assert theta.shape == (drawn.n_leaves, *WIDTH.get(case.name, ()))
        assert y.shape == (n,)
        et.Posterior(tree, case.family).update(X, y, **row_data)  # whatever was drawn is possible


@in_full
def test_a_seed_makes_a_draw(case):
    X, row_data = rows(rng_for("seeds", case), case, 20)
    model = et.GenerativeModel(TREE, case.family, SPLIT_PRIOR)
    one, same = model.sample(X, rng=3, **row_data), model.sample(X, rng=np.random.default_rng(3), **row_data)
    assert one.tree == same.tree
    np.testing.assert_array_equal(one.theta, same.theta)
    np.testing.assert_array_equal(one.y, same.y)
    source = np.random.default_rng(3)
    draws = [model.sample(X, rng=source, **row_data).y for _ in range(5)]
    assert len({tuple(y) for y in draws}) > 1


# ---- what is refused ---------------------------------------------------------------------------------------


def test_a_family_that_cannot_be_drawn_from_is_refused():
    class Mute(et.Family):
        n_statistics = 1

        def statistics(self, y: Any, weight: Any, **row_data: Any) -> Any: ...

        def log_evidence(self, statistics: Any) -> Any: ...

        def predictive(self, statistics: Any, **row_data: Any) -> Any: ...

    with pytest.raises(TypeError, match="Mute cannot be drawn from: it has no method sample_parameters"):
        et.GenerativeModel(TREE, Mute())


@pytest.mark.parametrize("name", ["bernoulli", "categorical", "geometric", "normal", "exponential"])
def test_row_data_the_family_does_not_know_are_refused(name):
    model = et.GenerativeModel(TREE, CASE[name].family)
    with pytest.raises(TypeError, match="exposure"):
        model.sample(np.zeros((2, 2), np.uint8), rng=0, exposure=np.ones(2))


@pytest.mark.parametrize("n", [1, 3])
def test_row_data_of_another_length_are_refused(n):
    X = np.zeros((2, 2), np.uint8)
    with pytest.raises(ValueError, match=f"exposure has {number_of(n, 'entry', 'entries')}, but X has 2 rows"):
        et.GenerativeModel(TREE, et.Poisson()).sample(X, rng=0, exposure=np.ones(n))
    with pytest.raises(ValueError, match=f"inputs has {number_of(n, 'entry', 'entries')}, but X has 2 rows"):
        et.GenerativeModel(TREE, et.LinearRegression(2)).sample(X, rng=0, inputs=np.ones((n, 2)))


def test_a_regression_needs_its_inputs():
    with pytest.raises(TypeError, match="LinearRegression needs inputs="):
        et.GenerativeModel(TREE, et.LinearRegression(2)).sample(np.zeros((2, 2), np.uint8), rng=0)
