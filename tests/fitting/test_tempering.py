"""Weights by a power of the evidence, beside trees that are fitted anew without each row."""

from __future__ import annotations

import numpy as np
import pytest

import everytree as et
from cases import rng_for
from everytree.fitting.held_out.held_out import HeldOut
from everytree.fitting.held_out.predictions import Predictions
from everytree.fitting.held_out.search import Choice
from everytree.fitting.held_out.sharpness import best_sharpness
from everytree.fitting.held_out.tempering import LEAST_RATIO, MIN_TREES, POWERS, tempered_weights, weights_of
from naive_forest import Rows
from random_shapes import random_shape

SPLIT_PRIOR = 0.6


def asked(family: et.Family, n_rows: int, n_trees: int, *, noise: float) -> tuple[HeldOut, Rows, list[et.Posterior]]:
    """Random trees of three columns, of which the first tells the class, and the rows that each was not grown on."""
    rng = rng_for("tempering", n_rows, n_trees, noise)
    X = rng.integers(0, 3, (n_rows, 3)).astype(np.uint8)
    if family.has_classes:
        y = np.where(rng.random(n_rows) < noise, rng.integers(0, 2, n_rows), X[:, 0] == 1).astype(int)
    else:
        y = X[:, 0] + noise * rng.normal(size=n_rows)
    rows = Rows(X, y, None, {})
    trees = [random_shape([3, 3, 3], 2, rng=rng) for _ in range(n_trees)]
    posts = [rows.fit(tree, family, SPLIT_PRIOR) for tree in trees]
    of_tree = [np.flatnonzero(rng.random(n_rows) < 0.6) for _ in trees]
    ends = [tree.route(X[some]) for tree, some in zip(trees, of_tree, strict=True)]
    return HeldOut(trees, [post.statistics for post in posts], of_tree, ends, y), rows, posts


def naive_score(held: HeldOut, rows: Rows, posts: list[et.Posterior], power: float) -> float:
    """Mean log score: each row by the trees that may be asked, fitted and weighed without it."""
    scores, targets = [], []
    for i in range(len(rows.y)):
        trees = [t for t, some in enumerate(held.rows) if i in some]
        if not trees:
            continue
        others = rows.at(np.delete(np.arange(len(rows.y)), i))
        without = [others.fit(posts[t].tree, posts[t].family, SPLIT_PRIOR) for t in trees]
        weights = weights_of(np.array([post.log_evidence for post in without]), power)
        if posts[0].family.has_classes:
            scores.append(
                sum(w * post.predictive(rows.X[i : i + 1]).probs()[0] for w, post in zip(weights, without, strict=True))
            )
        else:
            density = [np.exp(post.predictive(rows.X[i : i + 1]).log_prob(rows.y[i : i + 1])[0]) for post in without]
            scores.append(np.log(weights @ np.array(density)))
        targets.append(rows.y[i])
    if not posts[0].family.has_classes:
        return float(np.mean(scores))
    return best_sharpness(np.array(scores), np.array(targets), np.ones(len(targets)))[0]


@pytest.mark.parametrize("family", [et.Bernoulli(), et.Normal()], ids=["classes", "numbers"])
@pytest.mark.parametrize("noise", [0.02, 0.5])
def test_the_power_is_the_best_for_rows_taken_out(family, noise):
    held, rows, posts = asked(family, 60, 6, noise=noise)
    log_evidence = np.array([post.log_evidence for post in posts])
    scores = {power: naive_score(held, rows, posts, power) for power in POWERS}
    least = min(MIN_TREES, len(posts) / 2)
    differ = [power for power in POWERS if power * np.ptp(log_evidence) >= LEAST_RATIO]
    enough = [power for power in differ if 1.0 / (weights_of(log_evidence, power) ** 2).sum() >= least]
    best = max([0.0, *enough], key=lambda power: scores[power])
    equal = Choice(family, SPLIT_PRIOR, {}, scores[0.0])
    found = tempered_weights(
        Predictions(held, equal.family, equal.split_prior), equal, log_evidence, sharpen=family.has_classes
    )
    n_asked = len(np.unique(np.concatenate(held.rows)))
    if (scores[best] - scores[0.0]) * n_asked > 3.0:
        assert found.power == best
        assert found.score == pytest.approx(scores[best], abs=1e-9)
    else:
        assert found.power in (0.0, best)
    np.testing.assert_allclose(found.weights, weights_of(log_evidence, found.power), rtol=1e-12)


def test_a_tree_that_knows_gets_more_weight_than_others_and_less_than_all():
    held, _, posts = asked(et.Bernoulli(), 200, 8, noise=0.1)
    log_evidence = np.array([post.log_evidence for post in posts])
    found = tempered_weights(
        Predictions(held, et.Bernoulli(), SPLIT_PRIOR),
        Choice(et.Bernoulli(), SPLIT_PRIOR, {}, np.nan),
        log_evidence,
        sharpen=True,
    )
    assert found.power > 0.0
    assert found.weights.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_array_equal(np.argsort(found.weights, kind="stable"), np.argsort(log_evidence, kind="stable"))


@pytest.mark.parametrize("family", [et.Bernoulli(), et.Normal()], ids=["classes", "numbers"])
def test_an_average_keeps_half_of_few_trees(family):
    """Where one tree knows and the others do not, the best score would leave that one alone."""
    held, _, posts = asked(family, 400, 8, noise=0.02)
    log_evidence = np.array([post.log_evidence for post in posts])
    chosen = Choice(family, SPLIT_PRIOR, {}, np.nan)
    found = tempered_weights(Predictions(held, family, SPLIT_PRIOR), chosen, log_evidence, sharpen=False)
    assert found.power > 0.0
    assert 1.0 / (found.weights**2).sum() >= 4.0


def test_noise_leaves_weights_equal():
    rng = rng_for("noise")
    X = rng.normal(size=(150, 4))
    model = et.MetaForestClassifier(20, weights="tempered", random_state=0).fit(X, rng.integers(0, 2, 150))
    np.testing.assert_allclose(model.weights_, 1.0 / 20.0)


def test_evidence_of_any_size_gives_weights():
    weights = weights_of(np.array([-1e6, -1e6 - 3.0, -2e6]), 1.0)
    np.testing.assert_allclose(
        weights, [1.0 / (1.0 + np.exp(-3.0)), np.exp(-3.0) / (1.0 + np.exp(-3.0)), 0.0], rtol=1e-9
    )


@pytest.mark.parametrize("kind", [et.MetaForestClassifier, et.MetaForestRegressor])
def test_the_best_known_trees_count_more_in_a_fit(kind):
    """On a table without noise, where one column decides and most trees look at others first."""
    rng = rng_for("clean")
    X = rng.integers(0, 40, (400, 12)).astype(float)
    y = (X[:, 0] > 20) ^ (X[:, 1] > 10)
    models = {
        weights: kind(40, weights=weights, random_state=0).fit(X[:300], y[:300].astype(int))
        for weights in ("uniform", "tempered")
    }
    assert models["tempered"].weights_.max() > 2.0 / 40.0
    if kind is et.MetaForestClassifier:
        uniform, tempered = (
            -np.log(models[name].predict_proba(X[300:])[np.arange(100), y[300:].astype(int)]).mean()
            for name in ("uniform", "tempered")
        )
    else:
        uniform, tempered = (models[name].predictive(X[300:]).crps(y[300:].astype(float)).mean() for name in models)
    assert tempered < uniform
