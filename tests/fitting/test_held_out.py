"""Rows left out one at a time, in closed form: the same as refitting without them; and what is chosen by them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

import everytree as et
import everytree.fitting.held_out.predictions
import everytree.fitting.held_out.sharpness
import everytree.fitting.held_out.stacking
import naive_forest
from cases import CASE, CASES, CELLS, SHAPES, Case, examples, families, random_codes, random_tree, rng_for, seeds, take
from everytree import _kernels
from everytree.families.base import NativeFamily
from everytree.families.prior_search import Search
from everytree.fitting.held_out.held_out import LEAST_TREES, HeldOut
from everytree.fitting.held_out.pool import Pool
from everytree.fitting.held_out.predictions import Predictions
from everytree.fitting.held_out.search import Choice, _scores, choose
from everytree.fitting.held_out.sharpness import SHARPNESS, SHARPNESS_SPREAD, best_sharpness
from everytree.fitting.held_out.stacking import stacking_weights
from everytree.posterior.split_prior import log_split_stop, resolve_split_prior
from forests import CLASSES
from naive_forest import Rows
from random_shapes import random_shape

OTHER_PRIORS: dict[str, list[NativeFamily]] = {
    "bernoulli": [et.Bernoulli(2.0, 0.1), et.Bernoulli(30.0, 30.0)],
    "categorical": [et.Categorical(3, 0.01), et.Categorical(3, [5.0, 1.0, 9.0])],
    "poisson": [et.Poisson(0.1, 0.2), et.Poisson(40.0, 10.0)],
    "exponential": [et.Exponential(0.4, 0.1), et.Exponential(20.0, 30.0)],
    "geometric": [et.Geometric(0.2, 0.3), et.Geometric(9.0, 20.0)],
    "normal": [et.Normal(-3.0, 0.01, 0.3, 0.05), et.Normal(1.0, 20.0, 9.0, 50.0)],
    "linear": [et.LinearRegression(2, 0.01, 0.4, 0.1), et.LinearRegression(2, 20.0, 9.0, 50.0)],
    "histogram": [et.Histogram(*CELLS[:2], 0.1, CELLS[3]), et.Histogram(CELLS[0], [1.0] * 6, 20.0, CELLS[3])],
    "survival": [et.Survival(CASE["survival"].family.lengths, shape, 0.25) for shape in (0.5, 12.0)],
    "lognormal": [et.LogNormal(-1.0, 0.01, 0.3), et.LogNormal(1.0, 20.0, 2.0)],
    **{
        name: [kind(0.3, 0.1, SHAPES[2]), kind(9.0, 20.0, *SHAPES[2:])]
        for name, kind in (("gamma", et.Gamma), ("weibull", et.Weibull), ("negative_binomial", et.NegativeBinomial))
    },
    "hurdle_poisson": [et.Hurdle(et.Poisson(0.1, 0.2), 0.1, 0.2), et.Hurdle(et.Poisson(40.0, 10.0), 9.0, 20.0)],
    "hurdle_gamma": [et.Hurdle(et.Gamma(0.3, 0.1, SHAPES[2]), 0.1, 0.2), et.Hurdle(et.Gamma(*SHAPES), 9.0, 20.0)],
}


def chosen(search: Search, held: HeldOut, *, sharpen: bool) -> Choice:
    """The choice alone."""
    return choose(search, held, sharpen=sharpen)[0]


def random_rows(case: Case, rng: np.random.Generator, tree: et.MetaTree, n: int, weighted: bool) -> Rows:
    y, row_data = case.draw(rng, n)
    weight = rng.choice([0.0, 0.4, 1.0, 2.5], n) if weighted else None
    return Rows(random_codes(rng, tree, n), y, weight, row_data)


def random_split_priors(rng: np.random.Generator, tree: et.MetaTree, n: int, per_node: bool) -> list[Any]:
    if not per_node:
        return [0.0, 1.0, *rng.uniform(0.05, 0.95, n - 2)]
    inner = ~tree.is_terminal
    return [np.where(inner, rng.choice([0.0, 1.0, *rng.uniform(0.05, 0.95, 6)], tree.n_nodes), 0.0) for _ in range(n)]


def stacked(split_priors: list[Any], tree: et.MetaTree) -> tuple[np.ndarray, np.ndarray]:
    """(n, 1) or (n, n_nodes) logs of g and 1 - g."""
    return log_split_stop(np.array([resolve_split_prior(prior, tree) for prior in split_priors]))


def kernel_arguments(
    families: list[NativeFamily], split_priors: list[Any], post: et.Posterior, rows: Rows, counted: np.ndarray
) -> dict[str, Any]:
    family, tree = families[0], post.tree
    log_split, log_stop = stacked(split_priors, tree)
    return {
        "name": family.kernel, "size": family.size, "tree": tree.kernel, "statistics": post.statistics,
        "priors": np.concatenate([one.kernel_prior for one in families]), "log_split": log_split, "log_stop": log_stop,
        "ends": tree.route(rows.X), "counted": counted.astype(np.uint8), "y": rows.y, "weight": rows.weight,
        "extra": family.pack(rows.row_data), "constant": family.default_row_data,
        "scored": np.ones(len(rows.y), dtype=np.uint8), "group_start": np.arange(len(rows.y) + 1),
    }  # fmt: skip


def made(priors: np.ndarray, log_split: np.ndarray, log_stop: np.ndarray, **of_tree: Any) -> Any:
    """The tree with its rows, None if they cannot be read, and the priors."""
    return _kernels.make_held_out(**of_tree), {"log_split": log_split, "log_stop": log_stop}, priors


def predict_held_out(**arguments: Any) -> Any:
    """Predictions of one tree."""
    tree, splits, priors = made(**arguments)
    if tree is None:
        return None
    each = {name: [logs] for name, logs in splits.items()}
    return _kernels.predict_held_out(trees=[tree], priors=priors, n_jobs=1, **each)[0]


def held_out_components(**arguments: Any) -> Any:
    """The same arguments, for one prior."""
    tree, splits, prior = made(**arguments)
    return tree.components(prior=prior, **splits)


# ---- the kernels -----------------------------------------------------------------------------------------------------


@pytest.mark.long
@families
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("per_node", [False, True], ids=["one g", "g per node"])
@given(seed=seeds)
@examples(2)
def test_left_out_is_refitted(case, weighted, per_node, seed):
    """For several priors of the leaves and of the splits at once; some rows were never in the statistics."""
    rng, n = np.random.default_rng(seed), 9
    tree = random_tree(rng)
    rows = random_rows(case, rng, tree, n, weighted)
    counted = rng.random(n) < 0.7
    priors = [case.family, *OTHER_PRIORS[case.name]]
    split_priors = random_split_priors(rng, tree, 4, per_node)
    post = rows.at(counted).fit(tree, case.family, 0.5)
    found = predict_held_out(**kernel_arguments(priors, split_priors, post, rows, counted))
    assert found.shape[:3] == (3, 4, n)
    for f, family in enumerate(priors):
        for g, split_prior in enumerate(split_priors):
            for i in range(n):
                kept = rows.at(np.append(np.flatnonzero(counted & (np.arange(n) != i)), i))
                expected = naive_forest.without_row(tree, family, split_prior, kept, len(kept.y) - 1)
                np.testing.assert_allclose(found[f, g, i], expected, rtol=1e-9, atol=1e-9)


@families
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@given(seed=seeds)
@examples(2)
def test_groups_are_left_out_together(case, weighted, seed):
    """Each scored row as if neither it nor any other row of its group had been there, wherever in the tree they are."""
    rng, n = np.random.default_rng(seed), 12
    tree = random_tree(rng)
    rows = random_rows(case, rng, tree, n, weighted)
    group = np.sort(rng.integers(0, 5, n))
    scored = rng.random(n) < 0.6
    start = np.concatenate([[0], np.flatnonzero(np.diff(group)) + 1, [n]])
    split_priors = random_split_priors(rng, tree, 3, True)
    priors = [case.family, *OTHER_PRIORS[case.name]]
    post = rows.fit(tree, case.family, 0.5)
    arguments = kernel_arguments(priors, split_priors, post, rows, np.ones(n))
    found = predict_held_out(**arguments | {"scored": scored.astype(np.uint8), "group_start": start})
    assert found.shape[:3] == (3, 3, scored.sum())
    for f, family in enumerate(priors):
        for g, split_prior in enumerate(split_priors):
            for place, i in enumerate(np.flatnonzero(scored)):
                kept = rows.at(np.append(np.flatnonzero(group != group[i]), i))
                expected = naive_forest.without_row(tree, family, split_prior, kept, len(kept.y) - 1)
                np.testing.assert_allclose(found[f, g, place], expected, rtol=1e-9, atol=1e-9)


@families
def test_left_out_as_posterior_does_it(case):
    """The log density of each row's own target is what `loo_log_prob` says."""
    rng = rng_for("loo", case)
    tree = random_tree(rng, 4)
    rows = random_rows(case, rng, tree, 60, False)
    post = rows.fit(tree, case.family, 0.6)
    found = predict_held_out(**kernel_arguments([case.family], [0.6], post, rows, np.ones(60)))[0, 0]
    if case.name in CLASSES:
        found = np.log(found[np.arange(60), rows.y][:, None])
    np.testing.assert_allclose(found[:, 0], post.loo_log_prob(rows.X, rows.y, **rows.row_data), rtol=1e-9, atol=1e-9)


@families
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_components_are_the_mixture_behind_the_prediction(case, weighted):
    rng = rng_for("components", case, weighted)
    for per_node in (False, True):
        tree = random_tree(rng)
        rows, n = random_rows(case, rng, tree, 20, weighted), 20
        counted = np.arange(n) % 3 > 0
        post = rows.at(counted).fit(tree, case.family, 0.5)
        for split_prior in random_split_priors(rng, tree, 4, per_node):
            arguments = kernel_arguments([case.family], [split_prior], post, rows, counted)
            start, log_weights, parameters, values = held_out_components(**arguments)
            predicted = predict_held_out(**arguments)[0, 0]
            assert values.reshape(predicted.shape) == pytest.approx(predicted, rel=1e-12, abs=1e-12)
            row_of = np.repeat(np.arange(n), np.diff(start))
            assert (np.diff(start) == tree.depth[tree.route(rows.X)] + 1).all()
            of_entry = take(rows.row_data, row_of)
            parts = case.family.components(parameters.reshape(len(row_of), -1), **of_entry)
            for i in range(n):
                own = row_of == i
                assert logsumexp(log_weights[own]) == pytest.approx(0.0, abs=1e-10)
                if case.name in CLASSES:
                    expected = np.exp(log_weights[own]) @ parts.probs()[own]
                else:
                    log_prob = parts.log_prob(np.asarray(rows.y, dtype=float)[row_of])[own]
                    expected = [logsumexp(log_weights[own] + log_prob)]
                np.testing.assert_allclose(predicted[i], expected, rtol=1e-9, atol=1e-9)


@families
def test_rows_that_stop_at_an_inner_node(case):
    """A row that no tree counted may end anywhere; the node where it stops takes the rest of the weight."""
    rng = rng_for("inner", case)
    tree = random_shape([2, 3, 2], 3, rng=rng)
    rows = random_rows(case, rng, tree, 30, False)
    post = rows.fit(tree, case.family, 0.6)
    ends = rng.integers(0, tree.n_nodes, 30).astype(np.int32)
    arguments = kernel_arguments([case.family], [0.6], post, rows, np.zeros(30)) | {"ends": ends}
    found = predict_held_out(**arguments)[0, 0]
    for i, end in enumerate(ends):
        weights = naive_forest.path_weights(post, int(end))
        own = take(rows.row_data, np.full(len(weights), i))
        parts = case.family.predictive(post.statistics[list(weights)], **own)
        if case.name in CLASSES:
            expected = np.array(list(weights.values())) @ parts.probs()
        else:
            log_prob = parts.log_prob(np.full(len(weights), float(rows.y[i])))
            expected = [logsumexp(log_prob, b=list(weights.values()))]
        np.testing.assert_allclose(found[i], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", CLASSES)
def test_rows_alike_are_given_what_each_is_given_alone(name):
    """Many rows share terminal and class; some of them differ in weight or were never counted."""
    case = next(case for case in CASES if case.name == name)
    rng = np.random.default_rng(8)
    tree = et.MetaTree.complete([0, 1, 1], 2, n_features=2)
    rows = random_rows(case, rng, tree, 80, weighted=True)
    counted = rng.random(80) < 0.7
    post = rows.at(counted).fit(tree, case.family, 0.5)
    priors, split_priors = [case.family, *OTHER_PRIORS[name]], [0.2, 0.9]
    together = predict_held_out(**kernel_arguments(priors, split_priors, post, rows, counted))
    for i in range(80):
        one = np.arange(80) == i
        alone = predict_held_out(**kernel_arguments(priors, split_priors, post, rows.at(one), counted[one]))
        np.testing.assert_array_equal(together[:, :, i], alone[:, :, 0])


def test_many_rows_of_one_class_are_taken_away_exactly():
    """Large counts: the answer is (n - 1 + alpha) / (n - 1 + 2 alpha), to the last digits."""
    tree = et.MetaTree.complete([], n_features=1)
    rows = Rows(np.zeros((1, 1), dtype=np.uint8), np.array([1]), None, {})
    post = et.Posterior(tree, et.Bernoulli()).update(rows.X, rows.y, [1e9])
    found = predict_held_out(**kernel_arguments([et.Bernoulli()], [0.5], post, rows, np.ones(1)))
    assert found[0, 0, 0, 1] == pytest.approx((1e9 - 0.5) / 1e9, rel=1e-15)


@pytest.mark.parametrize(
    ("name", "wrong", "match"),
    [
        ("name", "cauchy", "cauchy"),
        ("size", 3, "size"),
        ("statistics", np.zeros((6, 2)), "size"),
        ("statistics", np.zeros((7, 2)), "row 0 is not in this posterior"),
        ("priors", np.ones(7), r"size|one prior"),
        ("log_split", np.zeros(7), "split priors"),
        ("log_split", np.zeros((1, 6)), "split priors"),
        ("log_stop", np.zeros((2, 7)), "split priors"),
        ("ends", np.array([3, 4, 7], dtype=np.int32), "node"),
        ("ends", np.array([3, 4, -1], dtype=np.int32), "node"),
        ("ends", np.array([3, 4], dtype=np.int32), "entries"),
        ("counted", np.ones(2, dtype=np.uint8), "size"),
        ("y", np.array([0, 1]), "entries"),
        ("y", np.array([0, 1, 2]), r"y\[2\]"),
        ("y", np.array([0, 1, np.nan]), r"y\[2\]"),
        ("weight", np.ones(2), "entries"),
        ("weight", np.array([1.0, -1.0, 1.0]), "sample_weight"),
        ("scored", np.ones(2, dtype=np.uint8), "size"),
        ("group_start", np.array([0, 1, 2]), "group_start"),
        ("group_start", np.array([1, 3]), "group_start"),
        ("group_start", np.array([0, 2, 1, 3]), "group_start"),
        ("group_start", np.zeros(0, dtype=np.int64), "group_start"),
    ],
)
def test_kernels_refuse_arrays_that_do_not_fit(name, wrong, match):
    tree = et.MetaTree.complete([0, 1, 1], 2)
    rows = Rows(np.array([[0, 0], [0, 1], [1, 1]], dtype=np.uint8), np.array([0, 1, 1]), None, {})
    post = rows.fit(tree, et.Bernoulli(), 0.5)
    arguments = kernel_arguments([et.Bernoulli()], [0.5], post, rows, np.ones(3))
    arguments |= {name: np.broadcast_to(arguments[name], (1, 7)).copy() for name in ("log_split", "log_stop")}
    assert predict_held_out(**arguments).shape == (1, 1, 3, 2)
    arguments[name] = wrong
    for kernel in (predict_held_out, held_out_components):
        with pytest.raises((ValueError, TypeError), match=match):
            kernel(**arguments)


@families
@pytest.mark.parametrize("n_jobs", [1, 3])
@given(seed=seeds)
@examples(2)
def test_pooled_predictions_are_the_average_of_trees(case, n_jobs, seed):
    """Of the trees that may be asked about a row, one by one; the same bits for any number of threads."""
    rng = np.random.default_rng(seed)
    held, _ = questions(case, rng, 20, weighted=True)
    families_, split_priors = [case.family, *OTHER_PRIORS[case.name]], [0.3, 0.9]
    trees = [tree for tree, rows in enumerate(held.rows) if len(rows)]
    alone, pool = (Pool(each, families_, split_priors) for each in (held, replace(held, n_jobs=n_jobs)))
    alone.ask(trees)
    pool.ask(trees[:7])
    pool.ask(trees[7:])
    pooled, asked = pool.average(), pool.is_predicted
    assert np.array_equal(pooled, alone.average())
    answers = [held.predict(tree, families_, split_priors) for tree in range(len(held.trees))]
    for row in range(held.n_scored):
        of_row = [answers[tree][:, :, list(rows).index(row)] for tree, rows in enumerate(held.rows) if row in rows]
        assert asked[row] == bool(of_row)
        if of_row and case.family.has_classes:
            np.testing.assert_allclose(pooled[:, :, row], np.mean(of_row, axis=0), rtol=1e-12)
        elif of_row:
            np.testing.assert_allclose(pooled[:, :, row], logsumexp(of_row, axis=0) - np.log(len(of_row)), rtol=1e-12)
    pool.keep(np.array([1]))
    assert np.array_equal(pool.average(), pooled[1:2])


def test_priors_that_are_far_behind_by_the_first_trees_are_given_up():
    """The others are scored by all trees, as they are where nothing is given up."""
    case = next(case for case in CASES if case.name == "normal")
    held, _ = questions(case, rng_for("race"), 60, False, n_trees=LEAST_TREES)
    near, far = case.family, et.Normal(1e6, 1e3, 1e3, 1e-3)
    scores, _ = _scores(held, [near, far, near], [0.3, 0.9], sharpen=False)
    expected = [_scores(held, [near], [0.3, 0.9], sharpen=False)[0][0]]
    np.testing.assert_allclose(scores[[0, 2]], expected * 2, rtol=1e-12)
    assert np.isneginf(scores[1]).all()


@families
@given(seed=seeds)
@examples(2)
def test_priors_without_splits_alone_are_asked_about_the_root(case, seed):
    """Beside others and alone, they are scored alike."""
    held, _ = questions(case, np.random.default_rng(seed), 20, weighted=bool(seed % 2))
    families_ = [case.family, *OTHER_PRIORS[case.name]]
    for tree in range(len(held.trees)):
        beside, alone = (held.predict(tree, families_, priors) for priors in ([0.3, 0.0, 0.9], [0.0]))
        np.testing.assert_allclose(alone[:, 0], beside[:, 1], rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "wrong", "match"),
    [
        ("rows", [np.array([0, 1])], "size"),
        ("rows", [np.array([0, 1, 5])], "no such row"),
        ("rows", [np.array([0, 1, -1])], "no such row"),
        ("rows", [], "size"),
        ("pooled", np.zeros((1, 1, 5, 3)), "size"),
        ("pooled", np.zeros((2, 1, 5, 2)), "size"),
        ("pooled", np.zeros((1, 2, 5, 2)), "size"),
        ("pooled", np.zeros((5, 2)), "size"),
        ("log_split", [], "for each tree"),
        ("trees", [None], "None"),
    ],
)
def test_pooling_refuses_arrays_that_do_not_fit(name, wrong, match):
    tree = et.MetaTree.complete([0, 1, 1], 2)
    rows = Rows(np.array([[0, 0], [0, 1], [1, 1]], dtype=np.uint8), np.array([0, 1, 1]), None, {})
    post = rows.fit(tree, et.Bernoulli(), 0.5)
    one, splits, priors = made(**kernel_arguments([et.Bernoulli()], [0.5], post, rows, np.ones(3)))
    arguments = {"pooled": np.zeros((1, 1, 5, 2)), "trees": [one], "rows": [np.array([4, 0, 1])], "priors": priors}
    arguments |= {each: [logs] for each, logs in splits.items()}
    _kernels.pool_held_out(**arguments, n_jobs=2)
    assert arguments["pooled"][0, 0].sum(axis=1) == pytest.approx([1.0, 1.0, 0.0, 0.0, 1.0])
    with pytest.raises((ValueError, TypeError), match=match):
        _kernels.pool_held_out(**arguments | {name: wrong}, n_jobs=2)


def test_nothing_to_predict():
    tree = et.MetaTree.complete([0, 1, 1], 2)
    rows = Rows(np.zeros((0, 2), dtype=np.uint8), np.zeros(0), None, {})
    arguments = kernel_arguments([et.Bernoulli()], [0.5], et.Posterior(tree, et.Bernoulli()), rows, np.ones(0))
    assert predict_held_out(**arguments).shape == (1, 1, 0, 2)
    assert [len(part) for part in held_out_components(**arguments)] == [1, 0, 0, 0]
    arguments["y"] = []  # a list is not read as it is
    assert predict_held_out(**arguments) is None


# ---- the choice of priors --------------------------------------------------------------------------------------------

GRIDS: dict[str, tuple[Any, dict[str, list[Any]]]] = {
    "bernoulli": (lambda alpha: et.Bernoulli(alpha, alpha), {"alpha": [0.1, 1.0, 5.0], "split_prior": [0.2, 0.8]}),
    "categorical": (
        lambda alpha: et.Categorical(3, alpha),
        {"alpha": [0.2, 2.0], "split_prior": [0.1, 0.5, et.depth_prior(0.9, 1.0)]},
    ),
    "poisson": (et.Poisson, {"shape": [0.5, 4.0], "rate": [0.3, 2.0], "split_prior": [0.3, 0.7]}),
    "exponential": (et.Exponential, {"shape": [1.0, 6.0], "rate": [0.5, 5.0], "split_prior": [0.3, 0.7]}),
    "geometric": (et.Geometric, {"alpha": [0.5, 4.0], "beta": [1.0, 5.0], "split_prior": [0.3, 0.7]}),
    "normal": (et.Normal, {"strength": [0.1, 2.0], "scale": [0.5, 3.0], "split_prior": [0.3, 0.7]}),
    "linear": (
        lambda precision, scale: et.LinearRegression(2, precision, 2.0, scale),
        {"precision": [0.1, 3.0], "scale": [0.5, 3.0], "split_prior": [0.3, 0.7]},
    ),
    **{
        name: (
            lambda strength, kind=kind: kind(1.5, strength, *SHAPES[2:]),
            {"strength": [0.1, 2.0], "split_prior": [0.3, 0.7]},
        )
        for name, kind in (("gamma", et.Gamma), ("weibull", et.Weibull), ("negative_binomial", et.NegativeBinomial))
    },
    "hurdle_poisson": (
        lambda shape, alpha: et.Hurdle(et.Poisson(shape, 1.0), alpha),
        {"shape": [0.5, 4.0], "alpha": [0.3, 3.0], "split_prior": [0.3, 0.7]},
    ),
    "hurdle_gamma": (
        lambda strength: et.Hurdle(et.Gamma(1.5, strength, *SHAPES[2:])),
        {"strength": [0.1, 2.0], "split_prior": [0.3, 0.7]},
    ),
    "survival": (
        lambda shape: et.Survival(CASE["survival"].family.lengths, shape, 0.25),
        {"shape": [0.5, 4.0], "split_prior": [0.3, 0.7]},
    ),
    "histogram": (
        lambda strength: et.Histogram(*CELLS[:2], strength, CELLS[3]),
        {"strength": [0.1, 2.0], "split_prior": [0.3, 0.7]},
    ),
    "lognormal": (et.LogNormal, {"strength": [0.1, 2.0], "sigma": [0.5, 1.5], "split_prior": [0.3, 0.7]}),
}


def questions(
    case: Case, rng: np.random.Generator, n: int, weighted: bool, n_trees: int = 3, complete: bool = False
) -> tuple[HeldOut, Rows]:
    """Trees, each of which may be asked about some rows; row 0 about which none may."""
    X = rng.integers(0, 2, (n, 3)).astype(np.uint8)
    y, row_data = case.draw(rng, n)
    weight = rng.choice([0.4, 1.0, 2.5], n) if weighted else None
    rows = Rows(X, y, weight, row_data)
    trees = [et.MetaTree.complete(rng.integers(0, 3, 3), 2, n_features=3) for _ in range(n_trees - 1)]
    trees.append(et.MetaTree.complete([], n_features=3))
    which = [np.arange(n) if complete else np.flatnonzero((rng.random(n) < 0.5) & (np.arange(n) > 0)) for _ in trees]
    posts = [rows.fit(tree, case.family, 0.5) for tree in trees]
    held = HeldOut(
        trees, [post.statistics for post in posts], which,
        [tree.route(X[asked]) for tree, asked in zip(trees, which, strict=True)], y, weight, row_data,
    )  # fmt: skip
    return held, rows


@families
@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_chosen_is_the_best_of_the_grid(case, weighted):
    rng = rng_for("choose", case, weighted)
    held, rows = questions(case, rng, 20, weighted)
    make, grid = GRIDS[case.name]
    start = {name: values[0] for name, values in grid.items()}
    choice = chosen(Search(make, start, [grid]), held, sharpen=False)
    scores = naive_forest.scores_on_grid(held.trees, held.rows, make, grid, rows)
    best = max(scores, key=lambda values: scores[values])
    assert tuple(choice.parameters[name] for name in grid) == best
    assert choice.score == pytest.approx(scores[best][0], abs=1e-9)
    assert choice.split_prior == choice.parameters["split_prior"]
    assert choice.sharpness == 1.0
    assert choice.family == make(**{name: value for name, value in choice.parameters.items() if name != "split_prior"})
    on_threads = replace(held, n_jobs=2)
    assert chosen(Search(make, start, [grid]), on_threads, sharpen=False) == choice


def test_stages_start_from_the_best_so_far():
    """Two stages of one name each: the second is searched at the best of the first."""
    case = next(case for case in CASES if case.name == "normal")
    held, rows = questions(case, rng_for("stages"), 20, False)
    make, first, second = et.Normal, {"strength": [0.01, 0.3, 4.0]}, {"split_prior": [0.1, 0.9], "scale": [0.2, 6.0]}
    choice = chosen(Search(make, {"strength": 1.0, "split_prior": 0.4}, [first, second]), held, sharpen=False)
    one = naive_forest.scores_on_grid(held.trees, held.rows, make, first | {"split_prior": [0.4]}, rows)
    strength = max(one, key=lambda values: one[values])[0]
    two = naive_forest.scores_on_grid(held.trees, held.rows, make, {"strength": [strength]} | second, rows)
    best = max(two, key=lambda values: two[values])
    assert choice.parameters == dict(zip(["strength", *second], best, strict=True))
    assert choice.score == pytest.approx(two[best][0], abs=1e-9)


def test_what_is_thought_beforehand_counts_as_one_more_row():
    case = next(case for case in CASES if case.name == "poisson")
    held, rows = questions(case, rng_for("beforehand"), 20, True)
    make, grid = GRIDS["poisson"]
    start = {name: values[0] for name, values in grid.items()}
    scores = naive_forest.scores_on_grid(held.trees, held.rows, make, grid, rows)
    for strength in (-100.0, 0.3, 100.0):
        search = Search(make, start, [grid], lambda one, by=strength: by * np.log(one["rate"]))
        sums = {values: scores[values][0] + strength * np.log(values[1]) / rows.weight.sum() for values in scores}
        best = max(sums, key=lambda values: sums[values])
        choice = chosen(search, held, sharpen=False)
        assert tuple(choice.parameters[name] for name in grid) == best
        assert choice.score == pytest.approx(sums[best], abs=1e-9)


@pytest.mark.parametrize("case", [case for case in CASES if case.name in CLASSES], ids=str)
def test_classes_are_sharpened_for_each_prior(case):
    rng = rng_for("sharpened", case)
    held, rows = questions(case, rng, 40, True)
    make, grid = GRIDS[case.name]
    start = {name: values[0] for name, values in grid.items()}
    fine = np.exp(np.linspace(*np.log(SHARPNESS), 400))
    scores = naive_forest.scores_on_grid(held.trees, held.rows, make, grid, rows, fine, SHARPNESS_SPREAD)
    best = max(scores, key=lambda values: scores[values])
    choice = chosen(Search(make, start, [grid]), held, sharpen=True)
    assert tuple(choice.parameters[name] for name in grid) == best
    assert choice.score == pytest.approx(scores[best][0], abs=1e-4)
    assert np.log(choice.sharpness) == pytest.approx(np.log(scores[best][1]), abs=0.02)
    alone = chosen(Search(make, dict(zip(grid, best, strict=True))), held, sharpen=True)  # nothing to search but this
    assert alone.sharpness == pytest.approx(choice.sharpness, rel=1e-6)
    unfair = replace(held, is_honest=False)
    assert chosen(Search(make, start, [grid]), unfair, sharpen=True).sharpness == 1.0


@pytest.mark.parametrize("name", ["normal", "linear"])
def test_numbers_are_sharpened_about_the_mean(name):
    """The density of mean + (y - mean) k under the average of the trees, times k and its prior, at its largest."""
    case = next(case for case in CASES if case.name == name)
    rng = rng_for("sharp numbers", name)
    held, rows = questions(case, rng, 30, True)
    choice = chosen(Search(lambda: case.family, {"split_prior": 0.6}), held, sharpen=True)
    asked = [[tree for tree, which in enumerate(held.rows) if i in which] for i in range(30)]
    kept = np.array([i for i in range(30) if asked[i]])
    dists = []
    for i in kept:
        others = rows.at(np.arange(30) != i)
        posts = [others.fit(held.trees[tree], case.family, 0.6) for tree in asked[i]]
        own = rows.at(np.array([i]))
        dists.append((own, [post.predictive(own.X, **own.row_data) for post in posts]))
    means = np.array([np.mean([dist.mean()[0] for dist in each]) for _, each in dists])

    def score(k: float) -> float:
        values = []
        for mean, (own, each) in zip(means, dists, strict=True):
            y = mean + (own.y - mean) * k
            values.append(logsumexp([dist.log_prob(y)[0] for dist in each]) - np.log(len(each)) + np.log(k))
        of_row = rows.weight[kept]
        return float((of_row @ values - 0.5 * (np.log(k) / SHARPNESS_SPREAD) ** 2) / of_row.sum())

    fine = np.exp(np.linspace(*np.log(SHARPNESS), 60))
    best = fine[np.argmax([score(k) for k in fine])]
    assert choice.score == pytest.approx(score(choice.sharpness), abs=1e-4)
    assert np.log(choice.sharpness) == pytest.approx(np.log(best), abs=0.05)


@pytest.mark.parametrize("name", ["poisson", "exponential", "geometric"])
def test_what_is_not_sharpened_keeps_its_score(name):
    case = next(case for case in CASES if case.name == name)
    held, _ = questions(case, rng_for("score", name), 20, False)
    make, grid = GRIDS[name]
    search = Search(make, {name: values[0] for name, values in grid.items()}, [grid])
    plain, choice = (chosen(search, held, sharpen=sharpen) for sharpen in (False, True))
    assert choice.sharpness == 1.0
    assert choice.score == plain.score


def test_nothing_is_chosen_without_rows():
    nobody = [np.zeros(0, dtype=np.int64)]
    tree = et.MetaTree.complete([0], 2)
    held = HeldOut([tree], [np.zeros((3, 2))], nobody, [np.zeros(0, dtype=np.int32)], np.zeros(4, dtype=int))
    make, grid = GRIDS["bernoulli"]
    choice = chosen(Search(make, {"alpha": 1.0, "split_prior": 0.3}, [grid]), held, sharpen=True)
    assert choice.parameters == {"alpha": 1.0, "split_prior": 0.3}
    assert np.isnan(choice.score)
    np.testing.assert_array_equal(stacking_weights(Predictions(held, choice.family, choice.split_prior)), [1.0])


@given(seed=seeds)
@examples(40)
def test_best_sharpness_is_that_of_a_fine_grid(seed):
    rng = np.random.default_rng(seed)
    n, n_classes = 30, int(rng.integers(2, 5))
    probs = softmax(rng.normal(size=(n, n_classes)) * rng.choice([0.3, 1.0, 5.0]), axis=1)
    if rng.random() < 0.3:
        probs[:, 0] = 0.0
        probs /= probs.sum(axis=1, keepdims=True)
    y = np.array([rng.choice(n_classes, p=softmax(np.log(p + 1e-9) * rng.uniform(0.2, 3.0))) for p in probs])
    y = np.where(probs[np.arange(n), y] > 0.0, y, 1)
    weight = rng.uniform(0.1, 2.0, n)
    score, sharpness = best_sharpness(probs, y, weight)
    fine = np.exp(np.linspace(*np.log(SHARPNESS), 300))
    scores = [naive_forest.sharpened_score(probs, y, weight, k, SHARPNESS_SPREAD) for k in fine]
    assert score >= max(scores) - 1e-4
    own = naive_forest.sharpened_score(probs, y, weight, sharpness, SHARPNESS_SPREAD)
    assert score == pytest.approx(own, abs=1e-9)
    assert best_sharpness(probs, y, weight, False) == pytest.approx(
        (naive_forest.sharpened_score(probs, y, weight, 1.0), 1.0)
    )


# ---- weights ---------------------------------------------------------------------------------------------------------


def best_score_of_stacking(held: HeldOut, rows: Rows, family: NativeFamily) -> Any:
    """The score of weights as a function, and the best that a general optimiser finds."""
    n_trees, n = len(held.trees), len(rows.y)
    log_probs, asked = np.zeros((n_trees, n)), np.zeros((n_trees, n), dtype=bool)
    for tree, which in enumerate(held.rows):
        for i in which:
            found = naive_forest.without_row(held.trees[tree], family, 0.6, rows, int(i))
            log_probs[tree, i] = np.log(found[rows.y[i]]) if family.kernel == "categorical" else found[0]
            asked[tree, i] = True
    there = asked.any(axis=0)
    of_row = None if rows.weight is None else rows.weight[there]

    def score(weights: np.ndarray) -> float:
        return naive_forest.stacking_score(weights, log_probs[:, there], asked[:, there], of_row)

    bounds = [(-15.0, 15.0)] * n_trees
    found = [minimize(lambda free: -score(softmax(free)), start, bounds=bounds, tol=1e-12) for start in np.eye(n_trees)]
    return score, max(-one.fun for one in found)


@pytest.mark.long
@families
@pytest.mark.parametrize(
    ("complete", "weighted"),
    [
        pytest.param(True, False, id="all asked, plain"),
        pytest.param(False, True, id="some asked, weighted"),
        pytest.param(True, True, id="all asked, weighted", marks=pytest.mark.slow),
        pytest.param(False, False, id="some asked, plain", marks=pytest.mark.slow),
    ],
)
def test_stacking_weights_are_near_the_best(case, complete, weighted):
    """Better than equal weights, and within 5e-3 nats a row of the best there are."""
    rng = rng_for("stacking", case, weighted)
    held, rows = questions(case, rng, 40, weighted, n_trees=4, complete=complete)
    weights = stacking_weights(Predictions(held, case.family, 0.6))
    assert weights.shape == (4,)
    assert (weights >= 0.0).all()
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    score, best = best_score_of_stacking(held, rows, case.family)
    assert score(weights) >= score(np.full(4, 0.25)) - 1e-12
    assert best - 5e-3 <= score(weights) <= best + 1e-6


@pytest.mark.parametrize(("n_steps", "within"), [(everytree.fitting.held_out.stacking.STEPS, 5e-3), (20_000, 1e-4)])
@pytest.mark.parametrize("complete", [True, False], ids=["all asked", "some asked"])
def test_stacking_weights_are_the_best(complete, n_steps, within, monkeypatch):
    """No other weights give the mixture a better mean log score; nearly so by default, where the steps are bounded."""
    monkeypatch.setattr(everytree.fitting.held_out.stacking, "STEPS", n_steps)
    case = next(case for case in CASES if case.name == "bernoulli")
    rng = rng_for("best", case)
    held, rows = questions(case, rng, 40, False, n_trees=4, complete=complete)
    weights = stacking_weights(Predictions(held, case.family, 0.6))
    score, best = best_score_of_stacking(held, rows, case.family)
    assert score(weights) == pytest.approx(best, abs=within)


def test_stacking_puts_all_weight_on_the_tree_that_knows():
    rng = rng_for("knows")
    X = rng.integers(0, 2, (200, 2)).astype(np.uint8)
    rows = Rows(X, X[:, 0].astype(int), None, {})
    trees = [et.MetaTree.complete([k], 2, n_features=2) for k in (0, 1)]
    posts = [rows.fit(tree, et.Bernoulli(), 0.9) for tree in trees]
    everyone = [np.arange(200)] * 2
    held = HeldOut(
        trees, [post.statistics for post in posts], everyone, [tree.route(X) for tree in trees], rows.y
    )  # fmt: skip
    weights = stacking_weights(Predictions(held, et.Bernoulli(), 0.9))
    assert weights[0] > 0.999


def test_scored_rows_are_bounded(monkeypatch):
    """The sharpness of numbers is decided by the first rows alone; any prefix of the scored rows is a random part."""
    case = next(case for case in CASES if case.name == "normal")
    held, _ = questions(case, rng_for("bounded"), 40, False)
    search = Search(lambda: case.family, {"split_prior": 0.5})
    monkeypatch.setattr(everytree.fitting.held_out.predictions, "MAX_MIXTURES", 15)
    some = chosen(search, held, sharpen=True)
    first = HeldOut(
        held.trees, held.statistics, [which[which < 15] for which in held.rows],
        [at[which < 15] for at, which in zip(held.ends, held.rows, strict=True)], held.y,
    )  # fmt: skip
    assert chosen(search, first, sharpen=True).sharpness == pytest.approx(some.sharpness, rel=1e-9)
