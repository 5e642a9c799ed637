"""Law 8: one batch update gives the reference library's answers, for its six leaf models."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.special import betaln, gammaln

import everytree as et

pytest.importorskip("bayesml")
import reference

Array = NDArray[Any]
N_ROWS, N_FEATURES = 200, 6


@dataclass(frozen=True)
class Case:
    """One leaf model: its prior, data for it, and the evidence and posterior that textbooks give."""

    family: str
    hyper: dict[str, Any]
    draw: Callable[[np.random.Generator, Array, Array], Array]  # rng, rate per row, inputs -> y
    log_evidence: Callable[[Array, Array], float]  # y, inputs
    posterior: Callable[[Array, Array], dict[str, Any]]  # y, inputs


PRECISION = np.array([[0.5, 0.1], [0.1, 0.4]])
CLASS_ALPHA = np.array([0.5, 1.0, 2.0])
CASES = {
    "bernoulli": Case(
        "Bernoulli",
        {"alpha": 0.7, "beta": 1.3},
        lambda rng, rate, u: rng.binomial(1, rate / 4),
        lambda y, u: betaln(0.7 + y.sum(), 1.3 + (1 - y).sum()) - betaln(0.7, 1.3),
        lambda y, u: {"alpha": 0.7 + y.sum(), "beta": 1.3 + (1 - y).sum()},
    ),
    "categorical": Case(
        "Categorical",
        {"n_classes": 3, "alpha": CLASS_ALPHA},
        lambda rng, rate, u: rng.binomial(2, rate / 4),
        lambda y, u: (
            (gammaln(CLASS_ALPHA + np.bincount(y, minlength=3)) - gammaln(CLASS_ALPHA)).sum()
            + gammaln(CLASS_ALPHA.sum())
            - gammaln(CLASS_ALPHA.sum() + len(y))
        ),
        lambda y, u: {"alpha": CLASS_ALPHA + np.bincount(y, minlength=3)},
    ),
    "poisson": Case(
        "Poisson",
        {"shape": 1.5, "rate": 0.4},
        lambda rng, rate, u: rng.poisson(rate),
        # The next count given the ones before is negative binomial.
        lambda y, u: stats.nbinom.logpmf(
            y, 1.5 + before(y), (0.4 + np.arange(len(y))) / (1.4 + np.arange(len(y)))
        ).sum(),
        lambda y, u: {"shape": 1.5 + y.sum(), "rate": 0.4 + len(y)},
    ),
    "exponential": Case(
        "Exponential",
        {"shape": 2.5, "rate": 0.7},
        lambda rng, rate, u: rng.exponential(rate),
        # The next duration given the ones before is Lomax.
        lambda y, u: stats.lomax.logpdf(y, 2.5 + np.arange(len(y)), scale=0.7 + before(y)).sum(),
        lambda y, u: {"shape": 2.5 + len(y), "rate": 0.7 + y.sum()},
    ),
    "normal": Case(
        "Normal",
        {"mean": 0.3, "strength": 0.2, "shape": 1.7, "scale": 0.6},
        lambda rng, rate, u: rng.normal(rate, 1.0),
        lambda y, u: student_log_evidence(y, np.ones((len(y), 1)), np.array([[0.2]]), 0.3),
        lambda y, u: {
            "strength": 0.2 + len(y),
            "mean": (0.06 + y.sum()) / (0.2 + len(y)),
            "shape": 1.7 + len(y) / 2,
        },
    ),
    "linearregression": Case(
        "LinearRegression",
        {"n_inputs": 2, "precision": PRECISION, "shape": 1.7, "scale": 0.6},
        lambda rng, rate, u: rng.normal(u @ [1.0, -2.0] + rate * u[:, 0], 1.0),
        lambda y, u: student_log_evidence(y, u, PRECISION, 0.0),
        lambda y, u: {
            "precision": PRECISION + u.T @ u,
            "mean": np.linalg.solve(PRECISION + u.T @ u, u.T @ y),
            "shape": 1.7 + len(y) / 2,
        },
    ),
}


def before(y: Array) -> Array:
    """Sum of the values before each one."""
    return np.cumsum(y) - y


def student_log_evidence(y: Array, inputs: Array, precision: Array, mean: float) -> float:
    """Log density of the joint Student t that the normal-gamma prior (shape 1.7, scale 0.6) gives to `y`."""
    covariance = np.eye(len(y)) + inputs @ np.linalg.solve(precision, inputs.T)
    location = inputs.sum(axis=1) * mean
    return float(stats.multivariate_t(location, 0.6 / 1.7 * covariance, df=2 * 1.7).logpdf(y))


def random_problem(name: str, depth: int) -> tuple[et.MetaTree, Array, Array, Array, Array]:
    """Draw a complete binary tree of random features, a split prior per node, codes, targets and inputs."""
    rng = np.random.default_rng(zlib.crc32(f"{name}-{depth}".encode()))
    tree = et.MetaTree.complete(rng.integers(0, N_FEATURES, 2**depth - 1), n_features=N_FEATURES)
    split_prior = np.where(tree.is_terminal, 0.0, rng.uniform(0.1, 0.9, tree.n_nodes))
    X = rng.integers(0, 2, (N_ROWS, N_FEATURES), dtype=np.uint8)
    inputs = rng.normal(size=(N_ROWS, 2))
    y = CASES[name].draw(rng, 1.0 + X[:, 0] + X[:, 1] * X[:, 2], inputs)
    return tree, split_prior, X, y, inputs


def regressors(name: str, inputs: Array) -> dict[str, Any]:
    """The keyword that only linear regression takes."""
    return {"inputs": inputs} if name == "linearregression" else {}


@pytest.mark.parametrize("depth", [3, 4, 5])
@pytest.mark.parametrize("name", CASES)
def test_batch_update_equals_reference(name: str, depth: int) -> None:
    tree, split_prior, X, y, inputs = random_problem(name, depth)
    family = getattr(et, CASES[name].family)(**CASES[name].hyper)
    post = et.Posterior(tree, family, split_prior).update(X, y, **regressors(name, inputs))
    model = reference.bayesml_metatree(tree, name, CASES[name].hyper, split_prior)
    reference.update(model, X, y, **regressors(name, inputs))

    np.testing.assert_allclose(post.split_prob, reference.split_prob(model, tree), rtol=0, atol=1e-10)
    np.testing.assert_allclose(post.leaf_log_evidence, reference.leaf_log_evidence(model, tree), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(post.log_evidence, reference.log_evidence(model), rtol=1e-10)


@pytest.mark.parametrize("split_prior", [0.3, lambda depth: 0.9 * (1 + depth) ** -0.5])
def test_split_prior_may_be_a_number_or_a_function_of_depth(split_prior: Any) -> None:
    tree, _, X, y, _ = random_problem("bernoulli", 4)
    hyper = CASES["bernoulli"].hyper
    post = et.Posterior(tree, et.Bernoulli(**hyper), split_prior).update(X, y)
    model = reference.update(reference.bayesml_metatree(tree, "bernoulli", hyper, split_prior), X, y)
    np.testing.assert_allclose(post.split_prob, reference.split_prob(model, tree), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", CASES)
def test_driver_maps_hyperparameters(name: str) -> None:
    """The reference is an oracle only if asked the same question: its root against textbook formulas."""
    tree, split_prior, X, y, inputs = random_problem(name, 3)
    model = reference.bayesml_metatree(tree, name, CASES[name].hyper, split_prior)
    reference.update(model, X, y, **regressors(name, inputs))

    expected = CASES[name].log_evidence(y, inputs)
    np.testing.assert_allclose(reference.leaf_log_evidence(model, tree)[0], expected, rtol=1e-10)
    posterior = reference.leaf_posterior(model, tree)
    for hyperparameter, value in CASES[name].posterior(y, inputs).items():
        np.testing.assert_allclose(posterior[hyperparameter][0], value, rtol=1e-10)


def test_driver_refuses_what_the_reference_cannot_express() -> None:
    three_way = et.MetaTree.from_arrays([0, -1, -1, -1], [1, -1, -1, -1], [3, 0, 0, 0], n_features=1)
    with pytest.raises(ValueError, match="node 0: 3 children"):
        reference.bayesml_metatree(three_way, "bernoulli", CASES["bernoulli"].hyper)


def test_a_meta_tree_of_lags_predicts_sequences_as_context_tree_weighting_does():
    contexttree = pytest.importorskip("bayesml.contexttree")
    depth, rng = 3, np.random.default_rng(5)
    x = rng.integers(0, 2, 120)
    x[3:] = np.where(rng.random(117) < 0.8, x[:-3], x[3:])
    learn = contexttree.LearnModel(c_k=2, c_d_max=depth, h0_g=0.4)
    levels = np.repeat(np.arange(depth), 2 ** np.arange(depth))
    post = et.Posterior(et.MetaTree.complete(levels), et.Bernoulli(0.5, 0.5), split_prior=0.4)
    lags = np.lib.stride_tricks.sliding_window_view(x[:-1], depth)[:, ::-1].astype(np.uint8)
    for i in range(depth, len(x)):
        row = lags[i - depth : i - depth + 1]
        ours = post.predictive(row).probs()[0]
        np.testing.assert_allclose(ours, learn.pred_and_update(x[: i + 1]), atol=1e-10)
        post.update(row, x[i : i + 1])
