"""Full conformal prediction in closed form against refits of everything, and its promise by simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import everytree as et
from cases import CASE, random_tree, rng_for

FAMILIES = ("bernoulli", "categorical", "normal", "poisson", "exponential", "geometric", "lognormal", "histogram")


def posteriors(family: et.Family, rng: np.random.Generator) -> dict[str, Any]:
    """One of each kind, without rows."""
    tree = et.MetaTree.complete([0, *[1 + k % 3 for k in range(12)]], n_children=3)
    return {
        "meta-tree": et.Posterior(tree, family, 0.6),
        "growing": et.GrowingPosterior([3] * 4, family, 0.7, seed=int(rng.integers(9))),
        "exact": et.ExactPosterior([3] * 4, family, 2, truncation=0.0),
    }


def counted(blank: Any, X: NDArray[Any], y: NDArray[Any]) -> Any:
    return blank.without_rows().fit(X, y) if isinstance(blank, et.ExactPosterior) else blank.copy().update(X, y)


def left_out(blank: Any, X: NDArray[Any], y: NDArray[Any], row: int) -> float:
    """Log probability of a row by a posterior of all others."""
    others = np.arange(len(y)) != row
    return float(counted(blank, X[others], y[others]).predictive(X[row : row + 1]).log_prob(y[row : row + 1])[0])


KINDS = ("meta-tree", "growing", "exact")


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_row_left_out_is_a_refit_without_it(kind, name):
    rng = rng_for("left out", kind, name)
    X, (y, _) = rng.integers(0, 3, (25, 4)).astype(np.uint8), CASE[name].draw(rng, 25)
    blank = posteriors(CASE[name].family, rng)[kind]
    literal = [left_out(blank, X, y, row) for row in range(25)]
    np.testing.assert_allclose(counted(blank, X, y).loo_log_prob(X, y), literal, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["bernoulli", "categorical", "normal", "poisson"])
@pytest.mark.parametrize("kind", KINDS)
def test_p_values_are_those_of_refits(kind, name):
    rng = rng_for("refits", kind, name)
    X, (y, _) = rng.integers(0, 3, (13, 4)).astype(np.uint8), CASE[name].draw(rng, 13)
    X_new, blank = rng.integers(0, 3, (3, 4)).astype(np.uint8), posteriors(CASE[name].family, rng)[kind]
    has_classes = CASE[name].family.has_classes
    candidates = None if has_classes else np.unique(y)[::3]
    found = et.full_conformal(counted(blank, X, y), X, y, X_new, candidates)
    for row, own in zip(X_new, found, strict=True):
        for p, one in zip(own, np.arange(len(own)) if has_classes else candidates, strict=True):
            every, target = np.vstack([X, row]), np.append(y, one)
            scores = np.array([left_out(blank, every, target, i) for i in range(14)])
            assert p == pytest.approx((scores <= scores[-1] + 1e-10).mean(), abs=1e-12)


def test_sets_hold_the_truth_as_often_as_promised():
    """A wrong meta-tree, a strong and wrong prior, nineteen rows: the promise is of any."""
    rng, inside = rng_for("promise"), []
    for _ in range(400):
        X = rng.integers(0, 2, (20, 2)).astype(np.uint8)
        y = np.where(rng.random(20) < 0.85, X[:, 0], rng.integers(0, 3, 20))
        post = et.Posterior(et.MetaTree.complete([1], 2), et.Categorical(3, [5.0, 1.0, 0.1])).update(X[:-1], y[:-1])
        inside.append(et.full_conformal(post, X[:-1], y[:-1], X[-1:])[0, y[-1]] > 0.2)
    assert np.mean(inside) > 0.8 - 3.0 * np.sqrt(0.16 / 400)


def test_the_p_value_of_the_truth_is_uniform_where_nothing_ties():
    rng, p = rng_for("uniform"), []
    for _ in range(400):
        X, y = rng.integers(0, 2, (20, 1)).astype(np.uint8), rng.standard_t(3, 20)
        post = et.Posterior(et.MetaTree.complete([0], 2), et.Normal(0.0, 1.0, 1.0, 1.0)).update(X[:-1], y[:-1])
        p.append(et.full_conformal(post, X[:-1], y[:-1], X[-1:], y[-1:])[0, 0])
    assert np.mean(np.array(p) > 0.1) == pytest.approx(0.9, abs=3.0 * np.sqrt(0.09 / 400))
    assert np.mean(np.array(p) > 0.5) == pytest.approx(0.5, abs=3.0 * np.sqrt(0.25 / 400))


def test_rows_of_one_leaf_have_the_same_p_values():
    rng = rng_for("one leaf")
    tree = random_tree(rng, max_depth=2)
    X = rng.integers(0, 2, (60, tree.n_features)).astype(np.uint8)
    y = rng.integers(0, 2, 60)
    post = et.Posterior(tree, et.Bernoulli()).update(X, y)
    p, ends = et.full_conformal(post, X, y, X), tree.route(X)
    for end in np.unique(ends):
        assert len(np.unique(p[ends == end], axis=0)) == 1
    assert post.n_rows == 60


def test_what_is_refused():
    X, y = np.zeros((4, 1), dtype=np.uint8), np.array([0.0, 1.0, 1.0, 0.0])
    post = et.Posterior(et.MetaTree.complete([0], 2), et.Normal(0.0, 1.0, 1.0, 1.0)).update(X, y)
    with pytest.raises(ValueError, match="candidates must be given: Normal is a family of numbers"):
        et.full_conformal(post, X, y, X)
    with pytest.raises(ValueError, match="X must be the 4 rows of the posterior, but has 3 rows"):
        et.full_conformal(post, X[:3], y[:3], X, [0.0])
    with pytest.raises(ValueError, match="y"):
        et.full_conformal(post, X, y[:3], X, [0.0])
    counts = et.Posterior(et.MetaTree.complete([0], 2), et.Bernoulli()).update(X, y * 0.0)
    with pytest.raises(ValueError, match="not in this posterior"):
        et.full_conformal(counts, X, y, X)
