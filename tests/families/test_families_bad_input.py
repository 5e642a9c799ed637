"""Hyperparameters, statistics and rows that families refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import everytree as et
from cases import families, rng_for
from family_cases import PER_NODE, TEXTBOOK
from refusals import INF, NAN, refused

# ---- hyperparameters -------------------------------------------------------------------------------------------------

POSITIVE = [
    (et.Bernoulli, {}, ["alpha", "beta"]),
    (et.Categorical, {"n_classes": 3}, ["alpha"]),
    (et.Poisson, {}, ["shape", "rate"]),
    (et.Exponential, {}, ["shape", "rate"]),
    (et.Geometric, {}, ["alpha", "beta"]),
    (et.Normal, {}, ["strength", "shape", "scale"]),
    (et.LinearRegression, {"n_inputs": 2}, ["precision", "shape", "scale"]),
]
FINITE = [(et.Normal, {}, ["mean"]), (et.LinearRegression, {"n_inputs": 2}, ["mean"])]


def each(table: list[tuple[type, dict[str, int], list[str]]]) -> list[Any]:
    return [
        pytest.param(family, needed, name, id=f"{family.__name__}.{name}")
        for family, needed, names in table
        for name in names
    ]


@pytest.mark.parametrize("value", [0, -1.5, NAN, INF, None, "much", [], 1j, {}], ids=repr)
@pytest.mark.parametrize(("family", "needed", "name"), each(POSITIVE))
def test_hyperparameters_must_be_positive(family, needed, name, value):
    refused(lambda: family(**needed, **{name: value}), name)


@pytest.mark.parametrize("value", [NAN, INF, None, "much", [], 1j, {}], ids=repr)
@pytest.mark.parametrize(("family", "needed", "name"), each(FINITE))
def test_hyperparameters_must_be_finite(family, needed, name, value):
    refused(lambda: family(**needed, **{name: value}), name)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda: et.Bernoulli([0.5, -0.5], 1.0), ["alpha[1]", "-0.5"]),
        (lambda: et.Bernoulli([1, 2, 3], [1, 2]), ["alpha", "beta", "3", "2"]),
        (lambda: et.Bernoulli([[1.0, 2.0]], 1.0), ["alpha", "(1, 2)"]),
        (lambda: et.Poisson(np.ones((2, 2)), 1.0), ["shape", "(2, 2)"]),
        (lambda: et.Normal(0.0, np.ones((2, 2))), ["strength", "(2, 2)"]),
        (lambda: et.Categorical(3, [1, 2]), ["alpha", "3", "(2,)"]),
        (lambda: et.Categorical(3, [1, 2, 0]), ["alpha[2]", "0.0"]),
        (lambda: et.Categorical(3, np.ones((2, 2))), ["alpha", "(2, 2)"]),
        (lambda: et.LinearRegression(2, [[1, 0.5], [0, 1]]), ["precision", "symmetric"]),
        (lambda: et.LinearRegression(2, [[1, 2], [2, 1]]), ["precision", "positive definite"]),
        (lambda: et.LinearRegression(2, np.eye(3)), ["precision", "(3, 3)"]),
        (lambda: et.LinearRegression(2, mean=[1, 2, 3]), ["mean", "(3,)"]),
        (lambda: et.LinearRegression(2, shape=np.ones((2, 2))), ["shape", "(2, 2)"]),
        (lambda: et.LinearRegression(2, shape=[1, 1], scale=[1, 1, 1]), ["shape", "2", "3"]),
    ],
)
def test_hyperparameters_that_do_not_fit_are_refused(build, words):
    refused(build, *words)


@pytest.mark.parametrize("value", [0, -1, 2.5, True, None, "3", NAN, INF, [3]], ids=repr)
@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("n_classes", et.Categorical),
        ("n_inputs", et.LinearRegression),
    ],
)
def test_sizes_of_families_are_whole_numbers(name, build, value):
    refused(lambda: build(value), name)


@pytest.mark.parametrize("name", PER_NODE)
def test_priors_for_another_number_of_nodes_are_refused(name):
    family, _ = PER_NODE[name][1](rng_for("refused", name), 4)
    with pytest.raises(ValueError, match="4 nodes, but the tree has 3"):
        et.Posterior(et.MetaTree.complete([0]), family)


# ---- statistics ------------------------------------------------------------------------------------------------------


@families
def test_statistics_refuse_what_the_family_cannot_have_produced(case):
    row_data = {"inputs": np.ones((2, 2))} if case.name == "linear" else {}
    bad = TEXTBOOK[case.name].impossible[0] if case.name in TEXTBOOK else -1.0
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
