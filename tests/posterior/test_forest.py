"""Forests: every kernel over many trees does what one tree after another would, a node at a time."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given

import everytree as et
import everytree.predictive.pooled
import naive_forest
from cases import CASES, IN_FULL, examples, families, in_full, rng_for, seeds
from everytree import _kernels
from everytree.posterior.forest import Forest
from forests import (
    CLASSES,
    COUNTS,
    NOT_SHARPENED,
    SIZES,
    Counts,
    dtypes,
    new_rows,
    random_codes,
    random_forest,
    random_split_prior,
    random_trees,
    sharpened,
)
from random_shapes import random_shape

# ---- where rows end --------------------------------------------------------------------------------------------------


@dtypes
@given(seed=seeds)
@examples(15)
def test_ends_are_those_of_a_walk(dtype, seed):
    rng = np.random.default_rng(seed)
    trees = random_trees(rng, 5)
    forest = Forest([et.Posterior(tree, et.Bernoulli()) for tree in trees], n_codes=SIZES)
    for unknown, missing in ((0.0, 0.0), (0.1, 0.0), (0.0, 0.1), (0.05, 0.05), (1.0, 0.0), (0.0, 1.0)):
        X = random_codes(rng, 50, dtype, unknown, missing)
        expected = naive_forest.ends(trees, X, SIZES)
        np.testing.assert_array_equal(forest.ends(X), expected)
        np.testing.assert_array_equal(forest.ends(np.asfortranarray(X), n_jobs=2), expected)
        np.testing.assert_array_equal(forest.ends(np.repeat(X, 2, axis=0)[::2]), expected)
        if unknown == missing == 0.0:
            np.testing.assert_array_equal(expected, np.column_stack([tree.route(X) for tree in trees]))


@dtypes
@pytest.mark.parametrize("unusual", [0.0, 0.002])
def test_ends_of_more_rows_than_a_chunk_holds(dtype, unusual):
    rng = rng_for("chunks", dtype, unusual)
    trees = random_trees(rng, 4)
    X = random_codes(rng, 20_000, dtype, unusual, unusual)
    forest = Forest([et.Posterior(tree, et.Bernoulli()) for tree in trees], n_codes=SIZES)
    expected = naive_forest.ends(trees, X, SIZES)
    for n_jobs in (1, 2):
        np.testing.assert_array_equal(forest.ends(X, n_jobs=n_jobs), expected)


def test_ends_reads_whatever_holds_whole_numbers():
    rng = rng_for("types")
    trees = random_trees(rng, 4)
    forest = Forest([et.Posterior(tree, et.Bernoulli()) for tree in trees], n_codes=SIZES)
    X = random_codes(rng, 40, np.int64, 0.1, 0.1)
    expected = naive_forest.ends(trees, X, SIZES)
    for same in (X.tolist(), X.astype(float), X.astype(np.int8), X.astype(np.int32), X.astype(">i4")):
        np.testing.assert_array_equal(forest.ends(same), expected)
    assert forest.ends(X[:0]).shape == (0, 4)


def test_wide_codes_and_thresholds():
    """Codes up to 65534 and thresholds up to there, in one word a node and in more."""
    arrays = [0, 0, -1, -1, -1], [1, 3, -1, -1, -1], [2, 2, 0, 0, 0]
    plain = et.MetaTree.from_arrays(*arrays, [300, 255, -1, -1, -1], n_features=1)
    branch = et.MetaTree.from_arrays(*arrays, [65533, 254, -1, -1, -1], missing_child=[1, 0, -1, -1, -1], n_features=1)
    X = np.array([[0], [254], [255], [256], [300], [301], [65533], [65534], [65535]], dtype=np.uint16)
    for known in (65535, 65534, 301, 255):
        forest = Forest([et.Posterior(tree, et.Bernoulli()) for tree in (plain, branch)], n_codes=[known])
        np.testing.assert_array_equal(forest.ends(X), naive_forest.ends([plain, branch], X, [known]))


def test_by_default_every_code_is_an_answer():
    rng = rng_for("default")
    trees = random_trees(rng, 5)
    forest = Forest([et.Posterior(tree, et.Bernoulli()) for tree in trees])
    X = random_codes(rng, 200)
    np.testing.assert_array_equal(forest.ends(X), np.column_stack([tree.route(X) for tree in trees]))


@dtypes
def test_missing_values_find_their_branch_where_all_codes_are_answers(dtype):
    rng = rng_for("branches", dtype)
    trees = [random_shape(SIZES, 3, rng=rng, kind="threshold", missing=True) for _ in range(3)]
    forest = Forest([et.Posterior(tree, et.Bernoulli()) for tree in trees])
    X = random_codes(rng, 100, dtype, missing=0.2)
    np.testing.assert_array_equal(forest.ends(X), np.column_stack([tree.route(X) for tree in trees]))


def test_codes_without_a_child_are_not_answers():
    """A split into all codes has a child for every code of `n_codes`; it may have more, and then stops at those."""
    trees = [et.MetaTree.complete([], n_features=2), et.MetaTree.complete([1], 3, n_features=2)]
    posteriors = [et.Posterior(tree, et.Bernoulli()) for tree in trees]
    for known in (4, 5, 65535):
        with pytest.raises(ValueError, match=rf"n_codes\[1\] is {known}, but posteriors\[1\] splits column 1 into 3"):
            Forest(posteriors, n_codes=[9, known])
    X = np.array([[8, 0], [9, 1], [0, 2], [0, 3], [0, 4]], dtype=np.uint8)
    for known in (1, 2, 3):
        found = Forest(posteriors, n_codes=[9, known]).ends(X)
        np.testing.assert_array_equal(found, naive_forest.ends(trees, X, [9, known]))


# ---- averages --------------------------------------------------------------------------------------------------------


@families
@given(seed=seeds)
@examples(5)
def test_average_is_that_of_the_posteriors(case, seed):
    """Rows that end in terminals: the weighted mean over trees of each posterior's own predictive."""
    rng = np.random.default_rng(seed)
    forest = random_forest(case, rng)
    X = random_codes(rng, 30)
    dists = [post.predictive(X) for post in forest.posteriors] if case.name != "linear" else []
    if case.name in CLASSES:
        expected = np.tensordot(forest.weights, [dist.probs() for dist in dists], 1)
        np.testing.assert_allclose(forest.probs(X), expected, atol=1e-10)
    elif case.name != "linear":
        mean = forest.weights @ [dist.mean() for dist in dists]
        variance = forest.weights @ [dist.variance() + (dist.mean() - mean) ** 2 for dist in dists]
        np.testing.assert_allclose(forest.moments(X)[0], mean, rtol=1e-10)
        np.testing.assert_allclose(forest.moments(X)[1], variance, rtol=1e-10)


@families
@dtypes
@given(seed=seeds)
@examples(2)
def test_average_of_rows_that_stop_early(case, dtype, seed):
    """The node where a row stops takes all the weight that is left."""
    rng = np.random.default_rng(seed)
    forest = random_forest(case, rng)
    X = random_codes(rng, 30, dtype, 0.15, 0.15)
    if case.name == "linear":
        with pytest.raises(TypeError, match="inputs"):
            forest.moments(X)
        return
    twin = naive_forest.mixture(forest, X)
    for n_jobs in (1, 2):
        if case.name in CLASSES:
            np.testing.assert_allclose(forest.probs(X, n_jobs=n_jobs), twin.probs(), atol=1e-10)
        else:
            mean, variance = forest.moments(X, n_jobs=n_jobs)
            np.testing.assert_allclose(mean, twin.mean(), rtol=1e-10)
            np.testing.assert_allclose(variance, twin.variance(), rtol=1e-10)


@pytest.mark.parametrize("n_values", [1, 2, 5])
def test_average_kernel_over_several_chunks(n_values):
    rng = rng_for("average", n_values)
    trees = random_trees(rng, 4)
    engine = _kernels.Forest([tree.kernel for tree in trees], np.array(SIZES, dtype=np.uint16))
    tables = [rng.normal(size=(tree.n_nodes, n_values)) for tree in trees]
    weights = np.array([0.5, 0.0, 0.2, 0.3])
    X = random_codes(rng, 20_000, np.uint8, 0.01, 0.01)
    ends = naive_forest.ends(trees, X, SIZES)
    expected = sum(w * table[at] for w, table, at in zip(weights, tables, ends.T, strict=True))
    options = {"values": tables, "weights": weights, "n_values": n_values}
    one = engine.average(X, **options, n_jobs=1)
    np.testing.assert_allclose(one, expected, atol=1e-14)
    np.testing.assert_array_equal(engine.average(X, **options, n_jobs=2), one)
    assert engine.average(X.tolist(), **options, n_jobs=1) is None


@given(seed=seeds)
@examples(30)
def test_values_along_paths(seed):
    """`average_over_paths` and `log_node_fates` at every node, inner ones too; g = 0 and g = 1 among the priors."""
    rng = np.random.default_rng(seed)
    tree = random_trees(rng, 2)[0]
    prior = np.where(tree.is_terminal, 0.0, rng.choice([0.0, 0.3, 0.9, 1.0], tree.n_nodes))
    post = et.Posterior(tree, et.Bernoulli(), prior if rng.random() < 0.5 else 0.7)
    post.update(random_codes(rng, 30), rng.integers(0, 2, 30))
    with np.errstate(divide="ignore"):
        logs = [np.log(post.split_prior), np.log1p(-post.split_prior)]
    arrays = {
        "log_split": logs[0], "log_stop": logs[1],
        "leaf": post.leaf_log_evidence, "subtree": post.subtree_log_evidence,
    }  # fmt: skip
    values = rng.normal(size=(tree.n_nodes, 3))
    table = _kernels.average_over_paths(tree.kernel, **arrays, values=values)
    log_reached, log_stop = _kernels.log_node_fates(tree.kernel, **arrays)
    for s in range(tree.n_nodes):
        weights = naive_forest.path_weights(post, s)
        np.testing.assert_allclose(table[s], sum(w * values[t] for t, w in weights.items()), atol=1e-12)
        np.testing.assert_allclose(np.exp(log_reached[s]), weights[s], atol=1e-12)
        if not tree.is_terminal[s]:
            np.testing.assert_allclose(np.exp(log_stop[s]), 1.0 - post.split_prob[s], atol=1e-10)


@families
def test_pooled_paths_are_all_paths(case):
    """All nodes that have a share, each once, with weights that sum to 1; those of a negligible share left out."""
    rng = rng_for("pool", case)
    forest = random_forest(case, rng, n=200)
    X = random_codes(rng, 20, np.uint8, 0.1, 0.1)
    first = np.cumsum([0] + [tree.n_nodes for tree in forest.trees])[:-1]
    pool = everytree.posterior.forest.pool_nodes(forest.posteriors, forest.weights)
    start, nodes, log_weights = _kernels.pooled_paths(
        ends=(forest.ends(X) + first).astype(np.int64), parent=pool.parent, log_reached=pool.log_reached,
        log_stop=pool.log_stop, log_tree_weights=pool.log_weights,
        log_negligible=np.log(everytree.predictive.pooled.NEGLIGIBLE),
    )  # fmt: skip
    for i, row in enumerate(X):
        expected = {
            int(offset + s): weight * share
            for offset, post, weight in zip(first, forest.posteriors, forest.weights, strict=True)
            for s, share in naive_forest.path_weights(post, naive_forest.end(post.tree, row, SIZES)).items()
            if weight > 0.0
        }
        found = dict(zip(nodes[start[i] : start[i + 1]].tolist(), log_weights[start[i] : start[i + 1]], strict=True))
        assert len(found) == start[i + 1] - start[i]
        assert found.keys() <= expected.keys()
        assert sum(np.exp(list(found.values()))) == pytest.approx(1.0, abs=1e-12)
        for s, share in expected.items():
            assert np.exp(found.get(s, -np.inf)) == pytest.approx(share, abs=2e-8 if s not in found else 1e-7)


@pytest.mark.parametrize("split_prior", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("shape", [0.5, 0.9])
def test_infinite_moments_are_infinite(shape, split_prior):
    """A node of weight zero says nothing, even where it would say infinity."""
    post = et.Posterior(et.MetaTree.complete([0], 3), et.Exponential(shape, 1.0), split_prior)
    forest = Forest([post]).update(np.zeros((5, 1), dtype=np.uint8), np.arange(1.0, 6.0))
    X = np.array([[0], [1], [2]], dtype=np.uint8)
    mean, variance = forest.moments(X)
    np.testing.assert_allclose(mean, post.predictive(X).mean())
    np.testing.assert_allclose(variance, post.predictive(X).variance())


@pytest.mark.parametrize(("place", "strength"), [(1e6, 1e-9), (1e9, 1e-15)])
def test_variance_far_from_the_prior_mean(place, strength):
    rng = rng_for("far")
    X = rng.integers(0, 2, (1000, 1)).astype(np.uint8)
    post = et.Posterior(et.MetaTree.complete([0], 2), et.Normal(0.0, strength, 2.0, 1.0))
    forest = Forest([post]).update(X, place + rng.normal(size=1000))
    np.testing.assert_allclose(forest.moments(X[:5])[1], post.predictive(X[:5]).variance(), rtol=1e-6)


@pytest.mark.parametrize("name", ["bernoulli", "categorical", "normal", "poisson"])
def test_averages_that_make_no_sense_are_refused(name):
    case = next(case for case in CASES if case.name == name)
    forest = random_forest(case, rng_for("senseless", name))
    ask = forest.moments if name in CLASSES else forest.probs
    with pytest.raises(TypeError):
        ask(random_codes(rng_for("senseless rows"), 5))


@families
def test_tables_follow_the_rows(case):
    """What `probs` and `moments` remember is forgotten when a tree learns, in whatever way."""
    if case.name == "linear":
        return
    rng = rng_for("tables", case)
    forest = random_forest(case, rng)
    X = random_codes(rng, 20)
    read = forest.probs if case.name in CLASSES else forest.moments
    read(X)
    y, row_data = case.draw(rng, 30)
    forest.posteriors[0].update(random_codes(rng, 30), y, **row_data)
    expected = naive_forest.mixture(forest, X)
    if case.name in CLASSES:
        np.testing.assert_allclose(read(X), expected.probs(), atol=1e-10)
    else:
        np.testing.assert_allclose(read(X), [expected.mean(), expected.variance()], rtol=1e-10)


# ---- distributions ---------------------------------------------------------------------------------------------------

NUMBERS = [case for case in IN_FULL if case.name not in CLASSES and not case.family.is_sharpened_by_power]
"""Histograms are sharpened by a power of their shares, not about the mean; they have tests of their own."""


@pytest.mark.long
@sharpened(NUMBERS, [1.0, 1.7, 0.6])
def test_distribution_over_numbers(case, sharpness):
    """The mixture of all nodes of all trees, drawn to its mean: y = mean + (y' - mean) / sharpness."""
    rng = rng_for("numbers", case)
    forest = random_forest(case, rng, sharpness=sharpness)
    X, y, row_data = new_rows(case, rng)
    y = np.asarray(y, dtype=float)
    dist, twin = forest.predictive(X, **row_data), naive_forest.mixture(forest, X, **row_data)
    mean = twin.mean()
    np.testing.assert_allclose(dist.mean(), mean, rtol=1e-7)
    np.testing.assert_allclose(dist.variance(), twin.variance() / sharpness**2, rtol=1e-7)
    np.testing.assert_allclose(dist.std() ** 2, dist.variance(), rtol=1e-12)
    np.testing.assert_allclose(sum(dist.variance_parts()), dist.variance(), rtol=1e-9)
    before = mean + (y - mean) * sharpness
    np.testing.assert_allclose(dist.cdf(y), twin.cdf(before), atol=1e-7)
    np.testing.assert_allclose(dist.log_prob(y), twin.log_prob(before) + np.log(sharpness), atol=1e-6)
    within = 1e-5 if case.family.support.lowest == 0.0 else 1e-8  # where the density may have no end
    np.testing.assert_allclose(dist.crps(y), twin.crps(before) / sharpness, rtol=within)
    levels = [1e-6, 0.05, 0.3, 0.5, 0.9, 0.999]
    quantiles = dist.quantile(levels)
    assert (np.diff(quantiles, axis=1) >= 0.0).all()
    for p, column in zip(levels, quantiles.T, strict=True):
        at = mean + (column - mean) * sharpness
        if case.name in COUNTS:
            assert (twin.cdf(at) >= p - 1e-7).all()
            assert (twin.cdf(at - 1.0) < p + 1e-7).all()
        else:
            is_atom = twin.cdf(at) > twin.cdf(np.nextafter(at, -np.inf)) + 1e-6
            assert (twin.cdf(at)[is_atom] >= p).all()
            np.testing.assert_allclose(twin.cdf(at)[~is_atom], p, atol=2e-9 + 1e-7 * min(p, 1.0 - p))
            np.testing.assert_allclose(at, twin.quantile(p), rtol=1e-5, atol=1e-7)
        np.testing.assert_array_equal(dist.quantile(p), column)
    np.testing.assert_array_equal(dist.interval(0.9), dist.quantile([0.5 - 0.45, 0.5 + 0.45]))


def test_crps_of_a_target_below_the_support():
    """No waiting time is negative; a target there has a score all the same."""
    forest = Forest([et.Posterior(et.MetaTree.complete([], n_features=1), et.Exponential(3.0, 1.5))])
    dist, y = forest.predictive(np.zeros((3, 1), dtype=np.uint8)), np.array([-2.0, -0.5, 0.0])
    half_spread = 0.45  # mean 0.75 less the integral 1.5 / 5 of the squared survival function
    np.testing.assert_allclose(dist.crps(y), 0.75 - y - half_spread, rtol=1e-10)


@pytest.mark.parametrize("case", [case for case in CASES if case.name in CLASSES], ids=str)
@pytest.mark.parametrize("sharpness", [1.0, 1.7, 0.6])
def test_distribution_over_classes(case, sharpness):
    """Probabilities to the power of the sharpness, scaled to sum to 1."""
    rng = rng_for("classes", case)
    forest = random_forest(case, rng, sharpness=sharpness)
    X, y, _ = new_rows(case, rng)
    dist = forest.predictive(X)
    powers = naive_forest.mixture(forest, X).probs() ** sharpness
    probs = powers / powers.sum(axis=1, keepdims=True)
    number = np.arange(probs.shape[1])
    mean = probs @ number
    np.testing.assert_allclose(dist.probs(), probs, atol=1e-7)
    np.testing.assert_allclose(forest.probs(X), probs, atol=1e-10)
    np.testing.assert_allclose(dist.mean(), mean, atol=1e-7)
    np.testing.assert_allclose(dist.variance(), probs @ number**2 - mean**2, atol=1e-7)
    np.testing.assert_allclose(sum(dist.variance_parts()), dist.variance(), rtol=1e-9)
    np.testing.assert_allclose(dist.log_prob(y), np.log(probs[np.arange(len(y)), y]), atol=1e-6)
    np.testing.assert_allclose(dist.entropy(), -(probs * np.log(probs)).sum(axis=1), atol=1e-6)
    cdf = np.cumsum(probs, axis=1)
    np.testing.assert_allclose(dist.cdf(y), cdf[np.arange(len(y)), y], atol=1e-7)
    steps = np.where(number >= y[:, None], cdf - 1.0, cdf)
    np.testing.assert_allclose(dist.crps(y), (steps**2).sum(axis=1), atol=1e-7)
    for p in (0.1, 0.5, 0.95):
        np.testing.assert_array_equal(dist.quantile(p), (cdf < p).sum(axis=1))


@pytest.mark.long
@sharpened(IN_FULL, [1.0, 1.7])
def test_samples_have_the_distribution(case, sharpness):
    rng = rng_for("samples", case, sharpness)
    forest = random_forest(case, rng, sharpness=sharpness)
    X, y, row_data = new_rows(case, rng, 8)
    dist, size = forest.predictive(X, **row_data), 4000
    draws = dist.sample(size, rng=rng)
    assert draws.shape == (8, size)
    assert dist.sample(rng=1).shape == (8,)
    np.testing.assert_array_equal(dist.sample(3, rng=7), dist.sample(3, rng=7))
    share = (draws <= np.asarray(y, dtype=float)[:, None]).mean(axis=1)
    np.testing.assert_allclose(share, dist.cdf(y), atol=5.0 * 0.5 / np.sqrt(size))
    np.testing.assert_array_less(np.abs(draws.mean(axis=1) - dist.mean()), 5.0 * dist.std() / np.sqrt(size))


@pytest.mark.parametrize("case", NUMBERS, ids=str)
def test_shortest_interval(case):
    rng = rng_for("shortest", case)
    forest = random_forest(case, rng, sharpness=1.0)
    X, _, row_data = new_rows(case, rng, 6)
    dist = forest.predictive(X, **row_data)
    equal, shortest = dist.interval(0.8), dist.interval(0.8, "hdi")
    assert (np.diff(shortest) <= np.diff(equal) + 1e-9).all()
    below = dist.cdf(np.nextafter(shortest[:, 0], -np.inf))
    assert (dist.cdf(shortest[:, 1]) - below >= 0.8 - 1e-6).all()


@pytest.mark.parametrize("sharpness", [0.6, 1.7, 2.0])
@pytest.mark.parametrize("name", [*NOT_SHARPENED, "own"])
def test_what_cannot_be_sharpened(name, sharpness):
    """Drawn to their mean, counts would not be whole numbers and waiting times would stop short of zero."""
    family = Counts() if name == "own" else next(case.family for case in CASES if case.name == name)
    posteriors = [et.Posterior(et.MetaTree.complete([0], 2), family)]
    with pytest.raises(ValueError, match="sharpness"):
        Forest(posteriors, sharpness=sharpness)
    assert Forest(posteriors, sharpness=1.0).sharpness == 1.0


@pytest.mark.long
@in_full
def test_rows_are_worked_on_in_blocks(case, monkeypatch):
    rng = rng_for("blocks", case)
    forest = random_forest(case, rng)
    X, y, row_data = new_rows(case, rng)
    dist = forest.predictive(X, **row_data)
    read = [dist.mean(), dist.variance(), dist.log_prob(y), dist.cdf(y), dist.quantile([0.1, 0.9]), dist.crps(y)]
    forest.update(random_codes(rng, 25), *case.draw(rng, 25)[:1], **case.draw(rng, 25)[1])  # the past stays as it was
    monkeypatch.setattr(dist, "_pool", dataclasses.replace(dist._pool, rows_at_once=3))
    again = [dist.mean(), dist.variance(), dist.log_prob(y), dist.cdf(y), dist.quantile([0.1, 0.9]), dist.crps(y)]
    for one, other in zip(read, again, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)


@sharpened(IN_FULL, [1.0, 2.0])
def test_no_rows_to_predict(case, sharpness):
    forest = random_forest(case, rng_for("none", case), sharpness=sharpness)
    y, row_data = case.draw(rng_for("none"), 0)
    dist = forest.predictive(np.zeros((0, 4), dtype=np.uint8), **row_data)
    assert len(dist) == 0
    for values in (dist.mean(), dist.variance(), dist.std(), dist.log_prob(y), dist.cdf(y), dist.crps(y)):
        assert values.shape == (0,)
    assert dist.quantile([0.1, 0.5]).shape == dist.interval().shape == (0, 2)
    assert dist.sample(3, rng=0).shape == (0, 3)


def test_priors_of_each_node():
    """Hyperparameters per node, other ones in each tree."""
    rng = rng_for("per node")
    trees = random_trees(rng, 3)
    posteriors = [
        et.Posterior(tree, et.Normal(*rng.uniform(1.0, 3.0, (4, tree.n_nodes))), random_split_prior(rng, tree))
        for tree in trees
    ]
    forest = Forest(posteriors, n_codes=SIZES).update(random_codes(rng, 50), rng.normal(size=50))
    X = random_codes(rng, 20, np.uint8, 0.1, 0.1)
    twin = naive_forest.mixture(forest, X)
    np.testing.assert_allclose(forest.moments(X)[0], twin.mean(), rtol=1e-10)
    np.testing.assert_allclose(forest.moments(X)[1], twin.variance(), rtol=1e-10)
    y = rng.normal(size=20)
    for dist in (forest.predictive(X), forest.copy().predictive(X)):
        np.testing.assert_allclose(dist.mean(), twin.mean(), rtol=1e-7, atol=1e-9)
        np.testing.assert_allclose(dist.cdf(y), twin.cdf(y), atol=1e-7)


def test_a_family_of_your_own():
    rng = rng_for("own")
    tree = et.MetaTree.complete([0, 1, 1], [2, 2])
    X, y = rng.integers(0, 2, (40, 2)).astype(np.uint8), rng.integers(0, 2, 40)
    forest = Forest([et.Posterior(tree, Counts()) for _ in range(2)], n_codes=[2, 2])
    native = Forest([et.Posterior(tree, et.Bernoulli(0.5, 0.5)) for _ in range(2)], n_codes=[2, 2])
    forest.update(X, y).update([[1, 5], [0, 0]], [1, 1])
    native.update(X, y).update([[1, 5], [0, 0]], [1, 1])
    X_new = np.array([[0, 1], [1, 7], [9, 9]], dtype=np.uint8)
    for one in (forest, forest.copy(), pickle.loads(pickle.dumps(forest))):
        np.testing.assert_allclose(one.probs(X_new), native.probs(X_new), rtol=1e-12)
        np.testing.assert_allclose(one.predictive(X_new).mean(), native.predictive(X_new).mean(), rtol=1e-7)


def test_a_family_of_your_own_is_one_for_all_trees():
    tree = et.MetaTree.complete([0], 2)
    with pytest.raises(ValueError, match=r"posteriors\[2\].*one for all"):
        Forest([et.Posterior(tree, Counts(alpha)) for alpha in (0.5, 0.5, 20.0)])
