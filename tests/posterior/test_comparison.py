"""Two posteriors on one meta-tree: whether something has changed, and where."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest

import everytree as et
import naive
from cases import CASES, random_codes, random_tree, rng_for
from naive_families import exact_all, mp

C = mp.mpf("0.3")


def ways(tree, split_prior, both, apart, s=0):
    """(changed leaves, evidence times prior) of each pruning below a node and each set of its leaves that changes."""
    for _, _, weight in naive.joint(tree, split_prior, both, s):
        yield frozenset(), (1 - C) * weight
    split = naive.prior_at(tree, split_prior, s)
    yield frozenset([s]), C * (1 - split) * apart[s]
    below = [list(ways(tree, split_prior, both, apart, child)) for child in naive.children(tree, s)]
    for parts in product(*below) if below else ():
        changed, weights = zip(*parts, strict=True)
        yield frozenset().union(*changed), C * split * prod(weights)


def is_above(tree, s, t):
    """Whether s is t or above it."""
    while t > s:
        t = int(tree.parent[t])
    return s == t


def evidence(case, tree, X, y, data):
    return naive.leaf_evidence(tree, lambda _: case.twin, X, y, None, data)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_a_comparison_is_the_sum_over_all_prunings_and_all_changed_leaves(case, seed):
    rng = rng_for(case, seed)
    tree = random_tree(rng, max_depth=2)
    split_prior = np.where(tree.is_terminal, 0.0, rng.uniform(0.2, 0.9, tree.n_nodes))
    rows = []
    for n in (14, 9):
        X, (y, data) = random_codes(rng, tree, n), case.draw(rng, n)
        rows.append((X, y, data))
    a, b = (et.Posterior(tree, case.family, split_prior).update(X, y, **data) for X, y, data in rows)
    found = et.compare(a, b, change_prior=float(C))

    (Xa, ya, da), (Xb, yb, db) = rows
    joined = {name: np.concatenate([da[name], db[name]]) for name in da}
    both = evidence(case, tree, np.vstack([Xa, Xb]), np.concatenate([ya, yb]), joined)
    apart = [p * q for p, q in zip(*(evidence(case, tree, X, y, data) for X, y, data in rows), strict=True)]
    every = list(ways(tree, exact_all(split_prior), both, apart))
    total = sum(weight for _, weight in every)
    unchanged = sum(weight for changed, weight in every if not changed) / total
    assert found.log_unchanged_prob == pytest.approx(float(mp.log(unchanged)), rel=1e-10, abs=1e-10)
    for s in range(tree.n_nodes):
        hit = sum(w for changed, w in every if any(is_above(tree, s, t) or is_above(tree, t, s) for t in changed))
        assert found.change_prob[s] == pytest.approx(float(hit / total), rel=1e-10, abs=1e-10)
    factor = [float(mp.log(p / q)) for p, q in zip(apart, both, strict=True)]
    np.testing.assert_allclose(found.node_log_bayes_factor, factor, rtol=1e-10, atol=1e-10)
    ends = tree.route(Xa)
    np.testing.assert_array_equal(found.at_rows(Xa), found.change_prob[ends])

    nothing = [mp.mpf(1)] * tree.n_nodes
    prior = sum(weight for changed, weight in ways(tree, exact_all(split_prior), nothing, nothing) if not changed)
    assert found.prior_unchanged_prob == pytest.approx(float(prior), rel=1e-10)
    swapped = et.compare(b, a, change_prior=float(C))
    assert swapped.log_unchanged_prob == pytest.approx(found.log_unchanged_prob, abs=1e-9)
    np.testing.assert_allclose(swapped.change_prob, found.change_prob, atol=1e-9)


TREE = et.MetaTree.complete([0, 1, 2, 0, 2, 1, 2], n_children=2)


def drawn(rng, change_prior, split_prior, n):
    """Two posteriors of rows drawn from the prior of a comparison, and which nodes hold a change."""
    probs = np.full((2, TREE.n_nodes), np.nan)
    is_changed = np.zeros(TREE.n_nodes, dtype=bool)

    def fill(s, state, theta):
        """`state`: "open", "same", or "set" below a leaf of the tree, whose parameters are theta."""
        if state == "open" and rng.random() > change_prior:
            state = "same"
        if state in ("open", "same") and not (not TREE.is_terminal[s] and rng.random() < split_prior):
            theta = np.repeat(rng.random(), 2) if state == "same" else rng.random(2)
            is_changed[s], state = state == "open", "set"
        if state == "set":
            probs[:, s] = theta
        for child in range(TREE.first_child[s], TREE.first_child[s] + TREE.n_children[s]):
            is_changed[child] = is_changed[s]  # of a changed leaf above
            fill(child, state, theta)

    fill(0, "open", None)
    for s in range(TREE.n_nodes - 1, 0, -1):
        is_changed[TREE.parent[s]] |= is_changed[s]
    posts = []
    for which in range(2):
        X = rng.integers(0, 2, size=(n, 3)).astype(np.uint8)
        y = rng.random(n) < probs[which, TREE.route(X)]
        posts.append(et.Posterior(TREE, et.Bernoulli(1, 1), split_prior).update(X, y))
    return posts, is_changed


def test_probabilities_of_a_change_are_calibrated():
    """Over draws from the prior: how often there was a change, where its probability is said to be small, or large."""
    rng = rng_for("calibrated")
    said, was = [], []
    for _ in range(400):
        (a, b), is_changed = drawn(rng, 0.5, 0.6, 60)
        said.append(et.compare(a, b).change_prob)
        was.append(is_changed)
    said, was = np.array(said), np.array(was)
    for node in range(TREE.n_nodes):
        for low, high in ((0.0, 0.2), (0.2, 0.6), (0.6, 1.0)):
            inside = (said[:, node] >= low) & (said[:, node] <= high)
            error = (was - said)[inside, node]
            spread = np.sqrt((said * (1 - said))[inside, node].sum())
            assert abs(error.sum()) <= 4 * spread + 1.0


def test_rows_of_one_law_hardly_ever_look_changed():
    rng = rng_for("one law")
    probs = []
    for _ in range(60):
        X = rng.integers(0, 2, size=(800, 3)).astype(np.uint8)
        y = rng.random(800) < 0.2 + 0.5 * X[:, 0]
        a, b = (
            et.Posterior(TREE, et.Bernoulli(), 0.5).update(X[part], y[part]) for part in (slice(400), slice(400, 800))
        )
        probs.append(et.compare(a, b).unchanged_prob)
    assert np.mean(probs) > 0.8
    assert np.min(probs) > 0.02


def test_a_planted_change_is_found_at_its_node():
    rng = rng_for("planted")
    X = rng.integers(0, 2, size=(3000, 3)).astype(np.uint8)
    p = 0.2 + 0.5 * X[:, 0]
    p[1500:] += 0.25 * ((X[1500:, 0] == 0) & (X[1500:, 1] == 1))
    y = rng.random(3000) < p
    a, b = (
        et.Posterior(TREE, et.Bernoulli(), 0.5).update(X[part], y[part]) for part in (slice(1500), slice(1500, 3000))
    )
    found = et.compare(a, b)
    assert found.unchanged_prob < 1e-6
    assert found.log_bayes_factor > 10.0
    where = found.at_rows(X)
    planted = (X[:, 0] == 0) & (X[:, 1] == 1)
    assert where[planted].min() > 0.99
    assert where[~planted].max() < 0.2


def test_of_a_forest_it_is_the_weighted_mean_over_its_trees():
    rng = rng_for("forest")
    X = rng.integers(0, 2, size=(400, 3)).astype(np.uint8)
    y = rng.random(400) < 0.3 + 0.4 * X[:, 1]
    trees = [TREE, et.MetaTree.complete([1, 0, 2], n_children=2)]

    def forests(weights):
        return [
            et.Forest([et.Posterior(tree, et.Bernoulli()).update(X[part], y[part]) for tree in trees], weights=weights)
            for part in (slice(250), slice(250, 400))
        ]

    a, b = forests([0.25, 0.75])
    each = [et.compare(p, q) for p, q in zip(a.posteriors, b.posteriors, strict=True)]
    found = et.compare(a, b)
    assert found.unchanged_prob == pytest.approx(0.25 * each[0].unchanged_prob + 0.75 * each[1].unchanged_prob)
    np.testing.assert_allclose(found.at_rows(X), 0.25 * each[0].at_rows(X) + 0.75 * each[1].at_rows(X))
    a, b = forests("evidence")
    assert (
        min(one.unchanged_prob for one in each)
        < et.compare(a, b).unchanged_prob
        < max(one.unchanged_prob for one in each)
    )


def test_what_cannot_be_compared_is_refused():
    post = et.Posterior(TREE, et.Bernoulli())
    with pytest.raises(ValueError, match="another meta-tree"):
        et.compare(post, et.Posterior(et.MetaTree.complete([0, 1, 1]), et.Bernoulli()))
    with pytest.raises(ValueError, match="other has leaves"):
        et.compare(post, et.Posterior(TREE, et.Poisson(1, 1)))
    with pytest.raises(ValueError, match="split_prior"):
        et.compare(post, et.Posterior(TREE, et.Bernoulli(), 0.7))
    with pytest.raises(ValueError, match="itself"):
        et.compare(post, post)
    with pytest.raises(TypeError, match="must be a Posterior"):
        et.compare(post, 3)
    with pytest.raises(TypeError, match="a must be a Posterior, a Forest or a fitted estimator"):
        et.compare(3, post)
    for wrong in (0.0, 1.0, "auto", True):
        with pytest.raises(ValueError, match="change_prior"):
            et.compare(post, post.copy(), change_prior=wrong)


def test_without_rows_it_is_the_prior():
    found = et.compare(et.Posterior(TREE, et.Normal(), 0.6), et.Posterior(TREE, et.Normal(), 0.6))
    assert found.unchanged_prob == pytest.approx(found.prior_unchanged_prob)
    assert found.log_bayes_factor == pytest.approx(0.0, abs=1e-12)
    assert 0.5 < found.prior_unchanged_prob < 0.7
