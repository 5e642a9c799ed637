"""Forests whose leaves are Student's t, or normal in logarithms: the kernel against mixtures written out."""

from __future__ import annotations

import pickle
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from scipy import stats

import everytree as et
import naive_forest
from cases import CASES, IN_FULL, examples, rng_for, seeds
from everytree import _kernels
from everytree.posterior.forest import Forest
from everytree.predictive.mixture import Mixture
from forests import SIZES, fates, new_rows, random_forest
from naive_forest import StudentMixture, student_tail

NORMAL, LOGNORMAL = (next(case for case in CASES if case.name == name) for name in ("normal", "lognormal"))
both_families = pytest.mark.parametrize("case", [NORMAL, LOGNORMAL], ids=str)
LEVELS = np.array([1e-12, 1e-9, 1e-6, 9e-4, 1.1e-3, 0.05, 0.3, 0.5, 0.77, 0.95, 0.9985, 0.9995, 1 - 1e-6, 1 - 1e-9])


def parts_of(post: et.Posterior) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Degrees of freedom, location and scale of every node, of the logarithms for lognormal leaves."""
    found = post.family.posterior_parameters(post.statistics)
    if isinstance(post.family, et.LogNormal):
        scale = found["sigma"] * np.sqrt(1.0 + 1.0 / found["strength"])
        return np.full(len(scale), np.inf), found["mean"], scale
    scale = np.sqrt(found["scale"] / found["shape"] * (1.0 + 1.0 / found["strength"]))
    return 2.0 * found["shape"], found["mean"], scale


def mixture_of(forest: Forest, row: np.ndarray) -> StudentMixture:
    """All nodes on the row's paths through all trees."""
    entries = []
    for post, of_tree in zip(forest.posteriors, forest.weights, strict=True):
        freedom, location, scale = parts_of(post)
        end = naive_forest.end(post.tree, row, SIZES)
        for s, share in naive_forest.path_weights(post, end).items():
            entries.append((of_tree * share, freedom[s], location[s], scale[s]))
    return StudentMixture(*np.array(entries).T)


def example(case: Any, seed: Any, n_trees: int = 12) -> tuple[Forest, np.ndarray, np.ndarray, list[StudentMixture]]:
    rng = np.random.default_rng(seed)
    forest = random_forest(case, rng, n=150, n_trees=n_trees)
    X, y, _ = new_rows(case, rng, n=9)
    return forest, X, y, [mixture_of(forest, row) for row in X]


def density(mixture: StudentMixture, y: Any) -> np.ndarray:
    z = (np.asarray(y)[..., None] - mixture.location) / mixture.scale
    return (mixture.weight * stats.t.pdf(z, mixture.freedom) / mixture.scale).sum(axis=-1)


# ---- probabilities ---------------------------------------------------------------------------------------------------


@both_families
@given(seed=seeds)
@examples(10)
def test_tails_and_densities(case, seed):
    forest, X, y, mixtures = example(case, seed)
    dist, is_log = forest.predictive(X), case is LOGNORMAL
    far = np.concatenate([[y], np.outer([1e-3, 0.3, 1.0, 3.0, 40.0, 1e4], np.ones(len(y)))])
    for at in (far, far if is_log else -far):
        numbers = np.log(at) if is_log else at
        for found, of in ((dist.cdf(at), "below"), (dist.sf(at), "above")):
            expected = np.stack([getattr(mixture, of)(numbers[:, i]) for i, mixture in enumerate(mixtures)], axis=1)
            np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-290)
        expected = np.stack([density(mixture, numbers[:, i]) for i, mixture in enumerate(mixtures)], axis=1)
        found = np.exp(dist.log_prob(at) + (numbers if is_log else 0.0))
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-290)


@both_families
def test_log_densities_below_the_smallest_number(case):
    forest, X, _, _ = example(case, 3)
    dist = forest.predictive(X)
    for y in (1e130, 1e-130, -1e130):
        in_parts = dist._per_target(Mixture.log_prob, np.array([[y]]))[0]
        np.testing.assert_allclose(dist.log_prob(y), in_parts, rtol=1e-9)
    assert (dist.log_prob(1e130) < np.log(np.finfo(float).tiny)).all()
    np.testing.assert_array_equal(dist.log_prob(np.inf), -np.inf)
    np.testing.assert_array_equal([dist.cdf(-np.inf), dist.sf(-np.inf)], [np.zeros(len(X)), np.ones(len(X))])


@pytest.mark.parametrize("freedom", [1.0, 1.3, 2.0, 3.0, 9.0, 40.0, 1e3, 1e5, np.inf])
def test_tables_to_many_digits(freedom):
    """At edges and inside of cells, against forty digits; beyond a tail of 1e-3 no table is used."""
    kernel = students(freedom=[freedom], location=[0.0], scale=[1.0])
    z = np.concatenate([np.arange(0.0, 3.0, 1.0 / 16.0), np.linspace(0.01, 8.0, 40), [20.0, 100.0, 254.9, 255.1]])
    z = z[: -3 if freedom >= 1e3 else None]  # beyond, the tail is no double
    with mpmath.workdps(40):
        exact = [mpmath.erfc(at / mpmath.sqrt(2)) / 2 if freedom == np.inf else student_tail(freedom, at) for at in z]
    exact = np.array([float(tail) for tail in exact])
    for y, is_above in ((z, True), (-z, False)):
        found = kernel.tails(ends=END, y=y[:, None], is_above=is_above, n_jobs=1)[:, 0]
        np.testing.assert_allclose(found, exact, rtol=1e-10, atol=0.0)
        if freedom < 1e4:  # the continued fraction itself loses digits beyond
            np.testing.assert_allclose(found, exact, rtol=0.0, atol=1e-13)


# ---- quantiles and intervals -----------------------------------------------------------------------------------------


@both_families
@given(seed=seeds)
@examples(10)
def test_quantiles(case, seed):
    forest, X, _, mixtures = example(case, seed)
    found = forest.predictive(X).quantile(LEVELS)
    assert (np.diff(found, axis=1) >= 0.0).all()
    for row, mixture in zip(np.log(found) if case is LOGNORMAL else found, mixtures, strict=True):
        for p, at in zip(LEVELS, row, strict=True):
            assert_quantile(mixture, p, at)


def assert_quantile(mixture: StudentMixture, p: float, at: float) -> None:
    tail, target = (mixture.below, p) if p <= 0.5 else (mixture.above, 1.0 - p)
    resolution = 4.0 * abs(tail(np.nextafter(at, np.inf)) - tail(np.nextafter(at, -np.inf)))
    assert abs(tail(at) - target) <= 3e-10 * target + resolution


@given(seed=seeds)
@examples(20)
def test_quantiles_of_parts_of_very_different_scales(seed):
    """Modes far apart, narrow beside wide, and heavy tails: wherever the start is, the solution is found."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 30))
    mixture = StudentMixture(
        rng.dirichlet(np.full(n, 0.5)),
        np.exp(rng.uniform(np.log(0.3), np.log(1e5), n)),
        rng.normal(size=n) * 10 ** rng.uniform(-3, 6),
        10 ** rng.uniform(-6, 6, n),
    )
    kernel = students(freedom=mixture.freedom, location=mixture.location, scale=mixture.scale, weights=mixture.weight)
    found = kernel.quantiles(ends=np.zeros((1, n), dtype=np.int32), levels=LEVELS, n_jobs=1)[0]
    for p, at in zip(LEVELS, found, strict=True):
        assert_quantile(mixture, p, at)


@both_families
@pytest.mark.parametrize("coverage", [0.2, 0.5, 0.9, 0.999])
def test_shortest_intervals(case, coverage):
    """They hold what they should, have one density at both ends, and none of a fine grid is shorter."""
    forest, X, _, mixtures = example(case, 5)
    found = forest.predictive(X).interval(coverage, kind="hdi")
    below = np.linspace(0.0, 1.0 - coverage, 66)[1:-1]
    both = forest.predictive(X).quantile(np.concatenate([below, below + coverage]))
    widths = both[:, len(below) :] - both[:, : len(below)]
    assert (np.diff(found)[:, 0] <= widths.min(axis=1) * (1.0 + 1e-9)).all()
    for ends, mixture in zip(found, mixtures, strict=True):
        numbers = np.log(ends) if case is LOGNORMAL else ends
        assert np.diff(mixture.below(numbers))[0] == pytest.approx(coverage, abs=1e-10)
        densities = density(mixture, numbers) / (ends if case is LOGNORMAL else 1.0)
        assert densities[0] == pytest.approx(densities[1], rel=1e-6)


def test_the_shortest_interval_is_around_one_of_two_modes():
    kernel = students(freedom=[30.0] * 2, location=[0.0, 100.0], scale=[1.0, 0.5], weights=[0.4, 0.6])
    low, high = kernel.shortest(ends=np.zeros((1, 2), dtype=np.int32), coverage=0.3, is_log=False, n_jobs=1)[0]
    share = 0.5 * (1.0 + 0.3 / 0.6)
    np.testing.assert_allclose([low, high], 100.0 + 0.5 * stats.t.ppf([1.0 - share, share], 30.0), rtol=1e-7)


# ---- scores and means ------------------------------------------------------------------------------------------------


@given(seed=seeds)
@examples(3)
def test_scores(seed):
    forest, X, y, mixtures = example(NORMAL, seed, n_trees=5)
    X, y, mixtures = X[:3], y[:3], mixtures[:3]
    grid = np.stack([y, y + 30.0, [mixture.location[0] for mixture in mixtures]])
    found = forest.predictive(X).crps(grid)
    expected = [[mixture.crps(at) for mixture, at in zip(mixtures, row, strict=True)] for row in grid]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@pytest.mark.parametrize("shape", [0.2, 0.7, 0.9])
def test_scores_of_heavy_tails_are_computed_in_another_way(shape):
    """Where there is no variance, the kernel gives no score, and that of the nodes is taken."""
    tree = et.MetaTree.complete([0, 1, 1])
    posts = [et.Posterior(tree, et.Normal(0.0, 1.0, shape, 1.0), prior) for prior in (0.3, 0.6)]
    X = np.array([[0, 0], [1, 1]], dtype=np.uint8)
    dist = Forest(posts).predictive(X)
    np.testing.assert_allclose(dist.crps([0.3, 7.0]), posts[0].predictive(X).crps([0.3, 7.0]), rtol=1e-8)
    np.testing.assert_allclose(dist.quantile(LEVELS), posts[0].predictive(X).quantile(LEVELS), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("case", [case for case in CASES if case.name not in ("linear", "poisson")], ids=str)
def test_means_are_those_of_the_nodes(case):
    """For every family that predicts the rows of a leaf alike."""
    forest = random_forest(case, rng_for("means", case), n=80, n_trees=6)
    X = new_rows(case, rng_for("rows", case))[0]
    dist = forest.predictive(X)
    np.testing.assert_allclose(dist.mean(), dist._per_row(Mixture.mean), rtol=1e-11, atol=1e-13)


def test_digits_far_from_zero():
    """Targets of spread 1 around 1e9 are predicted as those around 0."""
    rng = rng_for("far")
    X, y = rng.integers(0, 2, (60, 3)).astype(np.uint8), rng.integers(0, 64, 60) / 16.0

    def around(place: float) -> et.Predictive:
        trees = [et.MetaTree.complete(order, n_features=3) for order in ([0, 1, 1], [2, 0, 0])]
        posts = [et.Posterior(tree, et.Normal(place, 0.5, 1.5, 1.0)) for tree in trees]
        return Forest(posts).update(X, y + place).predictive(X)

    near, far = around(0.0), around(1e9)
    np.testing.assert_allclose(far.quantile([0.01, 0.5, 0.9]) - 1e9, near.quantile([0.01, 0.5, 0.9]), atol=3e-7)
    np.testing.assert_allclose(far.log_prob(y + 1e9), near.log_prob(y), rtol=1e-11)
    np.testing.assert_allclose(far.cdf(y + 1e9), near.cdf(y), rtol=1e-11)
    np.testing.assert_allclose(far.crps(y + 1e9), near.crps(y), rtol=1e-9)


# ---- rows and threads ------------------------------------------------------------------------------------------------


def answers(dist: et.Predictive, y: np.ndarray) -> list[np.ndarray]:
    found = [dist.mean(), dist.quantile([0.01, 0.5, 0.9, 1e-5]), dist.log_prob(y), dist.cdf(y), dist.sf(y)]
    return [*found, dist.crps(y), dist.interval(0.8), dist.interval(0.8, kind="hdi"), dist.variance()]


@pytest.mark.parametrize("case", [case for case in IN_FULL if not case.family.has_classes], ids=str)
def test_any_number_of_threads_and_any_rows_together(case):
    """The same bits, for families with and without a kernel."""
    rng = rng_for("threads", case)
    forest = random_forest(case, rng, n_trees=6)
    X, y, row_data = new_rows(case, rng, n=40)
    row_data.pop("censored", None)
    one, two, five = (forest.predictive(X, n_jobs=n_jobs, **row_data) for n_jobs in (1, 2, 5))
    some = np.array([3, 39, 0, 3])
    expected = answers(one, y)
    for dist in (two, five):
        object.__setattr__(dist._pool, "rows_at_once", 16)
        for found, same in zip(answers(dist, y), expected, strict=True):
            np.testing.assert_allclose(found, same, rtol=1e-12)
    if case in (NORMAL, LOGNORMAL):
        for dist in (two, five):
            for found, same in zip(answers(dist, y)[:8], answers(one, y)[:8], strict=True):
                np.testing.assert_array_equal(found, same)
        for found, same in zip(answers(one[some], y[some])[:5], expected[:5], strict=True):
            np.testing.assert_array_equal(found, same[some])


def test_a_distribution_is_a_copy_and_can_be_copied():
    """What was asked before does not travel; later rows change only distributions that are made later."""
    forest, X, y, _ = example(NORMAL, 8)
    dist = forest.predictive(X)
    before = answers(dist, y)
    for found, same in zip(answers(pickle.loads(pickle.dumps(dist)), y), before, strict=True):
        np.testing.assert_array_equal(found, same)
    forest.update(X, y)
    for found, same in zip(answers(dist, y), before, strict=True):
        np.testing.assert_array_equal(found, same)
    fresh = forest.copy().predictive(X)
    for found, same in zip(answers(forest.predictive(X), y), answers(fresh, y), strict=True):
        np.testing.assert_array_equal(found, same)
    assert (forest.predictive(X).mean() != before[0]).any()


# ---- the kernel ------------------------------------------------------------------------------------------------------

END = np.zeros((1, 1), dtype=np.int32)


def pool(n_trees: int = 1, **other: Any) -> _kernels.NodePool:
    """Trees of one node each."""
    nothing = np.zeros(n_trees)
    arrays = {
        "first": np.arange(n_trees), "parent": np.full(n_trees, -1, dtype=np.int32), "log_reached": nothing,
        "log_stop": nothing, "log_tree_weights": nothing - np.log(n_trees),
    } | other  # fmt: skip
    return _kernels.NodePool(**arrays, log_negligible=-30.0, n_jobs=1)


def students(weights: Any = None, **nodes: Any) -> _kernels.StudentForest:
    """A mixture over trees of one node each."""
    columns = {name: np.array(values, dtype=float) for name, values in nodes.items()}
    n = len(columns["scale"])
    other = {} if weights is None else {"log_tree_weights": np.log(weights)}
    return _kernels.StudentForest(pool(n, **other), location_rest=np.zeros(n), **columns, n_jobs=1)


def test_more_degrees_of_freedom_than_tables():
    """Fractional weights make as many as there are nodes: those without a table are computed exactly."""
    rng, n = rng_for("freedoms"), 2500
    mixture = StudentMixture(
        np.full(n, 1.0 / n), rng.uniform(2.0, 50.0, n), rng.normal(size=n), rng.uniform(0.5, 2.0, n)
    )
    kernel = students(freedom=mixture.freedom, location=mixture.location, scale=mixture.scale)
    found = kernel.quantiles(ends=np.zeros((1, n), dtype=np.int32), levels=LEVELS, n_jobs=2)[0]
    for p, at in zip(LEVELS, found, strict=True):
        assert_quantile(mixture, p, at)


def test_averages_of_a_pool():
    """A root with two leaves, and a tree of no weight."""
    with np.errstate(divide="ignore"):
        nodes = pool(
            first=np.array([0, 3]), parent=np.array([-1, 0, 0, -1], dtype=np.int32),
            log_reached=np.log([1.0, 0.25, 0.25, 1.0]), log_stop=np.log([0.75, 1.0, 1.0, 1.0]),
            log_tree_weights=np.log([1.0, 0.0]),
        )  # fmt: skip
    sums = nodes.sums_along(values=np.array([4.0, 8.0, -8.0, 1e9]), n_jobs=1)
    ends = np.array([[1, 0], [2, 0], [0, 0]], dtype=np.int32)
    np.testing.assert_allclose(nodes.averages(ends=ends, sums=sums, n_jobs=1), [5.0, 1.0, 4.0])


def kernel_of_two() -> _kernels.StudentForest:
    return students(freedom=[3.0, 4.0], location=[0.0, 1.0], scale=[1.0, 1.0])


TWO_ENDS = np.zeros((1, 2), dtype=np.int32)


@pytest.mark.parametrize(
    "call",
    [
        lambda: pool(2, first=np.array([0])[:0]),
        lambda: pool(2, first=np.array([0, 5])),
        lambda: pool(2, first=np.array([0, 0])),
        lambda: pool(2, first=np.array([1, 2])),
        lambda: pool(2, first=np.array([0, -1])),
        lambda: pool(2, parent=np.array([-1, 0], dtype=np.int32)),
        lambda: pool(2, parent=np.array([0, -1], dtype=np.int32)),
        lambda: pool(2, log_stop=np.zeros(1)),
        lambda: pool(2, log_reached=np.zeros(3)),
        lambda: pool(2, log_tree_weights=np.zeros(1)),
        lambda: pool(2).sums_along(values=np.zeros(3), n_jobs=1),
        lambda: pool(2).averages(ends=TWO_ENDS, sums=np.zeros((1, 2)), n_jobs=1),
        lambda: pool(2).averages(ends=TWO_ENDS[:, :1], sums=np.zeros((2, 2)), n_jobs=1),
        lambda: pool(2).averages(ends=TWO_ENDS + 1, sums=np.zeros((2, 2)), n_jobs=1),
        lambda: pool(2).averages(ends=TWO_ENDS - 1, sums=np.zeros((2, 2)), n_jobs=1),
        lambda: students(freedom=[0.0], location=[0.0], scale=[1.0]),
        lambda: students(freedom=[np.nan], location=[0.0], scale=[1.0]),
        lambda: students(freedom=[1.0], location=[np.inf], scale=[1.0]),
        lambda: students(freedom=[1.0], location=[0.0], scale=[0.0]),
        lambda: students(freedom=[1.0], location=[0.0], scale=[np.inf]),
        lambda: students(freedom=[1.0, 2.0], location=[0.0], scale=[1.0]),
        lambda: kernel_of_two().quantiles(ends=TWO_ENDS, levels=np.array([0.0]), n_jobs=1),
        lambda: kernel_of_two().quantiles(ends=TWO_ENDS, levels=np.array([np.nan]), n_jobs=1),
        lambda: kernel_of_two().quantiles(ends=TWO_ENDS + 1, levels=np.array([0.5]), n_jobs=1),
        lambda: kernel_of_two().shortest(ends=TWO_ENDS, coverage=1.0, is_log=False, n_jobs=1),
        lambda: kernel_of_two().log_densities(ends=TWO_ENDS, y=np.zeros(1), n_jobs=1),
        lambda: kernel_of_two().tails(ends=TWO_ENDS, y=np.zeros((1, 2)), is_above=True, n_jobs=1),
        lambda: kernel_of_two().scores(ends=TWO_ENDS[:, :1], y=np.zeros((1, 1)), is_log=False, n_jobs=1),
    ],
)
def test_kernels_refuse_what_does_not_fit(call):
    with pytest.raises(ValueError, match=r"size|one|node|tree|between|parents|column|n_points"):
        call()


STRANGE = [
    "forest(freedom=1e-300).quantiles(ends=ends, levels=levels, n_jobs=1)",
    "forest(scale=1e-308).quantiles(ends=ends, levels=levels, n_jobs=1)",
    "forest(scale=1e308).shortest(ends=ends, coverage=0.9, is_log=True, n_jobs=1)",
    "forest(location=1e308).scores(ends=ends, y=y, is_log=False, n_jobs=1)",
    "forest(weight=-np.inf).tails(ends=ends, y=y, is_above=True, n_jobs=1)",
    "forest(weight=np.nan).log_densities(ends=ends, y=y, n_jobs=1)",
    "forest(weight=1e308).quantiles(ends=ends, levels=levels, n_jobs=1)",
    "forest().tails(ends=ends, y=np.full((1, 1), np.nan), is_above=False, n_jobs=2)",
    "forest().quantiles(ends=ends[:0], levels=levels, n_jobs=1)",
    "forest().quantiles(ends=ends, levels=levels, n_jobs=-3)",
]


@pytest.fixture(scope="module")
def fate_of() -> dict[str, str]:
    prelude = """
import numpy as np; from everytree import _kernels as k
ends, levels, y = np.zeros((2, 2), dtype=np.int32), np.array([1e-9, 0.3, 0.999]), np.array([[0.1], [-np.inf]])
def forest(freedom=3.0, location=0.0, scale=1.0, weight=0.0):
    nothing = np.zeros(2)
    nodes = k.NodePool(first=np.arange(2), parent=np.full(2, -1, dtype=np.int32), log_reached=nothing,
        log_stop=nothing, log_tree_weights=np.full(2, weight), log_negligible=-30.0, n_jobs=1)
    of = dict(freedom=freedom, location=location, scale=scale, location_rest=0.0)
    return k.StudentForest(nodes, **{name: np.array([value, 1.0]) for name, value in of.items()}, n_jobs=1)
"""
    return fates(prelude, STRANGE)


@pytest.mark.parametrize("snippet", STRANGE)
def test_kernels_survive_strange_numbers(snippet, fate_of):
    assert fate_of[snippet] in ("refused", "accepted")
