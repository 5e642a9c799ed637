"""One base class for all predictive distributions: who makes one, shapes, tails, medians, draws, rows and repr."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

import everytree as et
import everytree.predictive.paths
from cases import CASES, IN_FULL, Case, in_full, random_codes, random_tree, rng_for
from everytree.base.words import number_of
from random_shapes import random_shape

CONTINUOUS = ("exponential", "normal", "linear")
OF_TARGETS = ("log_prob", "cdf", "sf", "crps")
N_ROWS = 6


def distributions(case: Case) -> dict[str, Any]:
    """Of six rows, some of them alike, by every kind of posterior; "sharp" where a family can be sharpened."""
    rng = rng_for("distributions", case)
    tree = random_tree(rng, missing=False, kind="multiway")
    X, X_new = random_codes(rng, tree, 60), random_codes(rng, tree, N_ROWS)
    X_new[4:] = X_new[:2]
    y, row_data = case.draw(rng, 60)
    _, new_data = case.draw(rng, N_ROWS)
    new_data.pop("censored", None)
    post, other = (et.Posterior(tree, case.family, prior).update(X, y, **row_data) for prior in (0.6, 0.3))
    growing = et.GrowingPosterior([4] * X.shape[1], case.family).update(X, y, **row_data)
    makers: dict[str, Any] = {"posterior": post, "growing": growing, "forest": et.Forest([post, other])}
    if case.name in ("bernoulli", "categorical", "normal", "linear"):
        makers["sharp"] = et.Forest([post, other], sharpness=1.5)
    if case.name != "linear":
        makers["exact"] = et.ExactPosterior([4] * X.shape[1], case.family, max_depth=2).fit(X, y, **row_data)
    return {name: maker.predictive(X_new, **new_data) for name, maker in makers.items()}


@pytest.fixture(scope="module", params=IN_FULL, ids=str)
def made(request):
    return request.param, distributions(request.param)


# ---- who makes one ---------------------------------------------------------------------------------------------------


def test_all_posteriors_make_one(made):
    for name, dist in made[1].items():
        assert isinstance(dist, et.Predictive), name
        assert len(dist) == N_ROWS


@pytest.mark.parametrize("kind", ["MetaTree", "MetaForest", "ExactTree"])
def test_all_estimators_make_one(kind):
    rng = rng_for("estimators", kind)
    X = rng.normal(size=(60, 2))
    y = X[:, 0] + rng.normal(size=60)
    for model, target in ((f"{kind}Regressor", y), (f"{kind}Classifier", y > 0.0)):
        dist = getattr(et, model)(max_depth=2).fit(X, target).predictive(X[:5])
        assert isinstance(dist, et.Predictive), model
        assert len(dist) == len(dist.median()) == 5


def test_online_forests_make_one():
    pytest.importorskip("river")
    for model, target in ((et.OnlineForestRegressor(2), 1.5), (et.OnlineForestClassifier(2), "yes")):
        model.learn_one({"a": 1.0}, target)
        assert isinstance(model.predictive_one({"a": 2.0}), et.Predictive)


def test_the_base_class_makes_none():
    with pytest.raises(TypeError, match="abstract"):
        et.Predictive(et.Normal(), {})


# ---- targets broadcast -----------------------------------------------------------------------------------------------


def points(dist: et.Predictive) -> np.ndarray:
    """Three numbers where the distributions are, two of them alike."""
    low, high = dist[0].quantile([0.3, 0.8])[0]
    return np.array([low, high, low])


def row_by_row(dist: et.Predictive, method: str, targets: np.ndarray) -> np.ndarray:
    """Each entry by a call of its own, about one row."""
    full = np.broadcast_to(targets, np.broadcast_shapes(targets.shape, (len(dist),)))
    out = np.empty(full.shape)
    for place in np.ndindex(full.shape):
        out[place] = getattr(dist[place[-1]], method)(full[place])[0]
    return out


@pytest.mark.parametrize("method", OF_TARGETS)
def test_targets_broadcast_against_the_rows(made, method):
    dists = made[1]
    for name, dist in dists.items():
        grid = points(dist)
        by_row = np.tile(grid, N_ROWS)[:N_ROWS]
        shapes = {
            (N_ROWS,): [float(grid[0]), grid[1:2], by_row, by_row.tolist()],
            (3, N_ROWS): [grid[:, None], np.stack([by_row, by_row[::-1], by_row])],
            (2, 1, N_ROWS): [grid[:2].reshape(2, 1, 1)],
            (0, N_ROWS): [np.empty((0, 1))],
        }
        for shape, asked in shapes.items():
            for y in asked:
                got = getattr(dist, method)(y)
                assert got.shape == shape, (name, shape)
                np.testing.assert_allclose(got, row_by_row(dist, method, np.asarray(y)), rtol=1e-9, err_msg=name)


@in_full
def test_one_row_is_asked_about_a_grid_as_numpy_does(case):
    dist = distributions(case)["posterior"][2]
    grid = points(dist)
    assert dist.cdf(grid).shape == grid.shape
    assert dist.cdf(grid[:, None]).shape == (len(grid), 1)
    np.testing.assert_array_equal(dist.cdf(grid), dist.cdf(grid[:, None])[:, 0])


@in_full
def test_no_rows_are_asked_about_a_grid(case):
    for name, dist in distributions(case).items():
        none = dist[:0]
        assert none.cdf(1.0).shape == none.cdf([]).shape == none.median().shape == none.sample(rng=0).shape == (0,), (
            name
        )
        assert none.sf(np.zeros((4, 1))).shape == none.crps(np.zeros((4, 1))).shape == (4, 0)


@pytest.mark.parametrize("size", [1, 7, 40])
def test_grids_do_not_depend_on_the_block_size(made, size, monkeypatch):
    dists = made[1]
    y = points(dists["posterior"])[:, None] + np.zeros(N_ROWS)
    expected = {name: [getattr(dist, method)(y) for method in OF_TARGETS] for name, dist in dists.items()}
    monkeypatch.setattr(everytree.predictive.paths, "ENTRIES_AT_ONCE", size)
    for name, dist in dists.items():
        for method, values in zip(OF_TARGETS, expected[name], strict=True):
            np.testing.assert_allclose(getattr(dist, method)(y), values, rtol=1e-12, err_msg=f"{name} {method}")


@pytest.mark.parametrize("method", OF_TARGETS)
def test_targets_that_do_not_broadcast_are_refused(method):
    dist = distributions(CASES[0])["forest"]
    for y, message in (
        (np.zeros(4), "y has 4 entries, but there are 6 rows"),
        (np.zeros((6, 4)), "y has 4 entries along its last axis, but there are 6 rows"),
        ([[1.0], [1.0, 2.0]], "its rows have different lengths"),
    ):
        with pytest.raises(ValueError, match=message):
            getattr(dist, method)(y)
    for y in ("high", None, ["a"] * 6):
        with pytest.raises(TypeError, match="y must be numbers"):
            getattr(dist, method)(y)


@pytest.mark.parametrize("score", ["log_score", "crps", "interval_score"])
@pytest.mark.parametrize("sizes", [(5, 1), (1, 5), (5, 4)])
def test_scores_of_a_table_want_one_target_a_row(score, sizes):
    """What broadcasts would be averaged over rows that were never paired."""
    X = rng_for("scores").normal(size=(40, 2))
    model = et.MetaTreeRegressor(max_depth=1).fit(X, X[:, 0])
    scorer = et.scorers.interval_score(0.5) if score == "interval_score" else getattr(et.scorers, score)
    with pytest.raises(
        ValueError, match=f"y has {number_of(sizes[1], 'entry', 'entries')}, but X has {number_of(sizes[0], 'row')}"
    ):
        scorer(model, X[: sizes[0]], X[: sizes[1], 0])


# ---- tails -----------------------------------------------------------------------------------------------------------


def test_cdf_and_survival_sum_to_one(made):
    dists = made[1]
    for name, dist in dists.items():
        y = points(dist)[:, None]
        np.testing.assert_allclose(dist.cdf(y) + dist.sf(y), 1.0, rtol=1e-11, err_msg=name)
        np.testing.assert_allclose(dist.sf([[-np.inf], [np.inf]]), [[1.0], [0.0]] * np.ones(N_ROWS), rtol=1e-12)


def prior(family: et.Family, **row_data: float) -> et.Predictive:
    """The family's own distribution: a mixture of one."""
    columns = {name: np.array([value]) for name, value in row_data.items()}
    return et.Posterior(et.MetaTree.complete([]), family).predictive(np.zeros((1, 0), np.uint8), **columns)


def assert_survival(dist: et.Predictive, y: list[float], exact: list[Any]) -> None:
    found = dist.sf(np.array(y))
    for at, got, wanted in zip(y, found, exact, strict=True):
        assert wanted > 1e-305  # a case that tells something
        assert abs(mpmath.mpf(float(got)) / wanted - 1) < 1e-11, (at, float(got), mpmath.nstr(wanted, 17))


@pytest.mark.parametrize("freedom", [0.3, 1.0, 2.5, 30.0])
def test_survival_of_numbers_keeps_its_digits(freedom):
    z = [z for z in (0.5, 10.0, 1e3, 1e8, 1e100, 3e160, 1e200) if z**-freedom > 1e-260 and z < 1e305]
    with mpmath.workdps(50):
        nu = mpmath.mpf(freedom)
        exact = [mpmath.betainc(nu / 2, 0.5, 0, nu / (nu + mpmath.mpf(at) ** 2), regularized=True) / 2 for at in z]
        scale = np.sqrt(2.0 * 1.7 / (0.5 * freedom))
        assert_survival(prior(et.Normal(0.0, 1.0, 0.5 * freedom, 1.7)), [scale * at for at in z], exact)
        lower = prior(et.Normal(0.0, 1.0, 0.5 * freedom, 1.7)).cdf([-scale * at for at in z])
        np.testing.assert_allclose(lower, [float(tail) for tail in exact], rtol=1e-11)


@pytest.mark.parametrize("odds", [1e-12, 1e-6, 1e-2, 0.99, 1.0, 30.0, 1e8])
@pytest.mark.parametrize("shape", [0.3, 2.0, 50.0])
def test_survival_of_counts_keeps_its_digits(shape, odds):
    with mpmath.workdps(60):
        q = mpmath.mpf(odds) / (1 + mpmath.mpf(odds))
        tails = {k: mpmath.betainc(k + 1, mpmath.mpf(shape), 0, q, regularized=True) for k in (0, 1, 5, 40, 300)}
        kept = {k: tail for k, tail in tails.items() if tail > 1e-300}
        assert_survival(prior(et.Poisson(shape, 1.0), exposure=odds), [float(k) for k in kept], list(kept.values()))


@pytest.mark.parametrize("shape", [0.3, 2.0, 50.0])
def test_survival_of_waiting_times_keeps_its_digits(shape):
    y = [t for t in (1e-9, 1.0, 100.0, 1e6, 1e200) if shape * np.log10(1.0 + t) < 290.0]
    with mpmath.workdps(50):
        assert_survival(prior(et.Exponential(shape, 1.0)), y, [(1 + mpmath.mpf(t)) ** -mpmath.mpf(shape) for t in y])


@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 1e-3), (2.0, 1.0), (50.0, 1e3)])
def test_survival_of_failures_keeps_its_digits(alpha, beta):
    def log_gamma_ratio(k: float) -> mpmath.mpf:
        a, b, n = mpmath.mpf(alpha), mpmath.mpf(beta), mpmath.mpf(k) + 1
        gamma = mpmath.loggamma
        return gamma(b + n) - gamma(a + b + n) + gamma(a + b) - gamma(b)

    with mpmath.workdps(60):
        y = [0.0, 7.0, 1e3, 1e7]
        assert_survival(prior(et.Geometric(alpha, beta)), y, [mpmath.exp(log_gamma_ratio(k)) for k in y])


def test_survival_of_classes_keeps_its_digits():
    alpha = np.array([1.0, 1e-5, 1e-20, 1e-40])
    dist = prior(et.Categorical(4, alpha))
    np.testing.assert_allclose(dist.sf([-0.5, 0.0, 1.5, 2.0, 3.0]), [1.0, 1e-5, 1e-20, 1e-40, 0.0], rtol=2e-5)


def test_survival_of_a_mixture_is_the_sum_of_its_parts():
    """A half each, both far out, against SciPy."""
    family = et.Normal([0.0, 5.0, 9.0], 1.0, [20.0, 30.0, 1.0], 1.0)
    dist = et.Posterior(et.MetaTree.complete([0]), family).predictive([[0]])
    y = np.array([10.0, 100.0, 1e4])
    parts = [stats.t.sf(y, 2 * a, m, np.sqrt(2.0 / a)) for m, a in ((0.0, 20.0), (5.0, 30.0))]
    np.testing.assert_allclose(dist.sf(y), 0.5 * sum(parts), rtol=1e-12)


# ---- medians and draws -----------------------------------------------------------------------------------------------


def test_the_median_is_a_quantile(made):
    for name, dist in made[1].items():
        np.testing.assert_array_equal(dist.median(), dist.quantile(0.5), err_msg=name)
        np.testing.assert_array_equal(dist.median(), dist.quantile([0.1, 0.5])[:, 1], err_msg=name)


def test_a_seed_is_a_seed_by_either_name(made):
    for dist in made[1].values():
        draws = dist.sample(4, rng=7)
        for same in (
            dist.sample(4, rng=7),
            dist.sample(4, rng=np.random.default_rng(7)),
            dist.sample(4, rng=np.random.default_rng(7)),
        ):
            np.testing.assert_array_equal(same, draws)
        np.testing.assert_array_equal(dist.sample(rng=7), dist.sample(1, rng=7)[:, 0])


def test_draws_without_a_seed_are_of_the_distribution(made, monkeypatch):
    """The generator that comes without a seed is given one here, so that the test always says the same."""
    make, seeds = np.random.default_rng, []
    monkeypatch.setattr(np.random, "default_rng", lambda seed=None: seeds.append(seed) or make(11))
    for name, dist in made[1].items():
        draws = dist.sample(400)
        assert seeds.pop() is None
        below = (draws <= dist.median()[:, None]).mean(axis=1)
        assert (np.abs(below - dist.cdf(dist.median())) < 0.13).all(), name  # five standard errors
        std = np.minimum(dist.std(), 50.0)
        assert (np.abs(draws.mean(axis=1) - dist.mean()) < 6.0 * std / 20.0).all(), name


def test_draws_without_a_seed_differ():
    dist = distributions(CASES[5])["posterior"]
    assert not np.array_equal(dist.sample(3), dist.sample(3))


TREE = et.MetaTree.complete([0, 1, 1])
LARGE_TREE = random_shape([2] * 6, 6, rng=0)
DRAWERS = {
    "predictive": lambda **s: et.Posterior(TREE, et.Normal()).predictive([[0, 1]] * 3).sample(2, **s),
    "forest": lambda **s: et.Forest([et.Posterior(TREE, et.Normal())]).predictive([[0, 1]] * 3).sample(2, **s),
    "trees": lambda **s: [t.leaves.tolist() for t in et.Posterior(TREE, et.Bernoulli()).sample_trees(30, **s)],
    "exact trees": lambda **s: str(
        et.ExactPosterior([2, 2], et.Bernoulli(), max_depth=2).fit([[0, 1], [1, 0]], [0, 1]).sample_trees(30, **s)
    ),
    "generative model": lambda **s: et.GenerativeModel(TREE, et.Normal()).sample([[0, 1]] * 3, **s).y.tolist(),
    "tree of the prior": lambda **s: et.GenerativeModel(LARGE_TREE, et.Normal(), 0.9).sample_tree(**s).leaves.tolist(),
}


@pytest.mark.parametrize("what", DRAWERS)
def test_everything_that_draws_takes_the_same_sources(what):
    draw = DRAWERS[what]
    assert str(draw(rng=3)) == str(draw(rng=np.random.default_rng(3)))
    assert str(draw(rng=np.random.RandomState(3))) == str(draw(rng=np.random.RandomState(3)))
    assert str(draw(rng=3)) != str(draw(rng=4))
    assert len({str(draw()) for _ in range(4)}) > 1
    state = np.random.RandomState(3)
    assert len({str(draw(rng=state)) for _ in range(4)}) > 1  # it is moved on
    with pytest.raises(TypeError, match=r"rng must be a numpy.random.Generator.*but is 'x'"):
        draw(rng="x")
    with pytest.raises(ValueError, match=r"rng must be a numpy.random.Generator.*but is -1"):
        draw(rng=-1)


def test_a_refused_draw_leaves_the_generator_alone():
    dist, state = distributions(CASES[0])["posterior"], np.random.RandomState(0)
    before = state.get_state()[2]
    with pytest.raises(ValueError, match="size must be a whole number"):
        dist.sample(-1, rng=state)
    assert state.get_state()[2] == before


# ---- rows ------------------------------------------------------------------------------------------------------------

CHOICES = {
    "slice": slice(1, 6, 2), "reversed": slice(None, None, -1), "numbers": [3, 3, 0, -1], "array": np.array([5, 2]),
    "mask": np.arange(N_ROWS) % 3 == 0, "one": 4, "last": np.int64(-1), "none": [], "all": slice(None),
}  # fmt: skip


@pytest.mark.parametrize("what", CHOICES)
def test_rows_can_be_chosen(made, what):
    dists = made[1]
    rows = CHOICES[what]
    chosen = np.atleast_1d(np.arange(N_ROWS)[np.array(rows, dtype=int) if what == "none" else rows])
    for name, dist in dists.items():
        some = dist[rows]
        assert type(some) is type(dist)
        assert len(some) == len(chosen)
        y = dist.quantile(0.7)
        for whole, part in (
            (dist.mean(), some.mean()),
            (dist.interval(0.8), some.interval(0.8)),
            (dist.crps(y), some.crps(y[chosen])),
            (dist.cdf(y), some.cdf(y[chosen])),
            (np.stack(dist.variance_parts(), axis=1), np.stack(some.variance_parts(), axis=1)),
        ):
            np.testing.assert_allclose(part, whole[chosen], rtol=1e-9, atol=1e-300, err_msg=name)


def test_rows_that_are_not_there_are_refused():
    for name, dist in distributions(CASES[2]).items():
        for rows in (N_ROWS, -N_ROWS - 1, [0, N_ROWS], np.ones(3, bool), [[0, 1]]):
            with pytest.raises(IndexError):
                dist[rows]
        assert [len(one) for one in dist] == [1] * N_ROWS, name
        with pytest.raises(TypeError, match="is not an array; call mean"):
            np.asarray(dist)


# ---- repr ------------------------------------------------------------------------------------------------------------


def test_repr_tells_rows_family_and_the_first_three(made):
    case, dists = made
    for name, dist in dists.items():
        text = repr(dist)
        kind = "PathPredictive" if name in ("posterior", "growing") else "PooledPredictive"
        assert text.startswith(f"{kind}({N_ROWS} rows, {type(case.family).__name__}; "), text
        assert text.endswith(", ...)")
        assert len(text) < 160
        assert text.count("[" if case.name in ("bernoulli", "categorical") else "±") == (3 if "probs" in text else 4), (
            text
        )
        if "±" in text:
            assert f"{dist.mean()[0]:.3g} ± {dist.std()[0]:.3g}" in text
        assert repr(dist[:1]).startswith(f"{kind}(1 row, ")
        assert repr(dist[:0]) == f"{kind}(0 rows, {type(case.family).__name__})"


def test_repr_of_many_classes_is_short():
    assert len(repr(prior(et.Categorical(500)))) < 100


def test_repr_asks_for_three_rows_only(monkeypatch):
    """However many rows and paths there are."""
    asked = []
    mixture = everytree.predictive.paths.PathPredictive._mixture
    monkeypatch.setattr(
        everytree.predictive.paths.PathPredictive,
        "_mixture",
        lambda self, paths, rows: asked.append(len(paths)) or mixture(self, paths, rows),
    )
    for dist in distributions(CASES[5]).values():
        repr(dist)
    assert max(asked) <= 3


def test_labels_that_are_texts_can_be_asked_about():
    X = np.arange(60.0)[:, None]
    model = et.MetaForestClassifier(3, random_state=0).fit(X, np.where(X[:, 0] < 30, "low", "high"))
    dist = model.predictive(X[:4])
    np.testing.assert_array_equal(dist.log_prob("low"), dist.log_prob(1))
    np.testing.assert_array_equal(dist.log_prob([["high"], ["low"]]), dist.log_prob([[0], [1]]))
    with pytest.raises(ValueError, match=r"y is 'other', but must be one of \['high', 'low'\]"):
        dist.log_prob(["low", "other", "low", "low"])
