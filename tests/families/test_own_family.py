"""A family written in Python obeys the same laws as the built-in ones (examples/own_family.py)."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import own_family
import pytest
from hypothesis import given
from own_family import GammaWaiting
from scipy import stats
from scipy.special import gammaln, xlogy

import everytree as et
import naive
from cases import assert_same, examples, random_codes, random_tree, rng_for, seeds, snapshot
from naive_families import Family as Twin
from naive_families import dot, exact_all, log_rising, mp

STAGES = pytest.mark.parametrize("stages", [0.5, 1.0, 2.5])


class GammaTwin(Twin):
    """The same model at 60 digits, from the raw rows."""

    def __init__(self, stages: Any, shape: Any, rate: Any) -> None:
        self.stages, self.shape, self.rate = exact_all([stages, shape, rate])

    def _log_evidence(self, ys: list[Any], weights: list[Any]) -> Any:
        """Product of (y^(k-1) / Gamma(k))^w, times the ratio of the gamma prior's constants."""
        k, events = self.stages, self.stages * mp.fsum(weights)
        rows = dot(weights, [(k - 1) * mp.log(y) - mp.loggamma(k) for y in ys])
        powers = self.shape * mp.log(self.rate) - (self.shape + events) * mp.log(self.rate + dot(weights, ys))
        return rows + powers + log_rising(self.shape, events)

    def _moments(self, ys: list[Any], weights: list[Any], new: dict[str, Any]) -> tuple[Any, Any]:
        """By E[1 / rate] and E[1 / rate^2] under the gamma posterior."""
        k, a, b = self.stages, self.shape + self.stages * mp.fsum(weights), self.rate + dot(weights, ys)
        if a <= 2:
            return (k * b / (a - 1) if a > 1 else mp.inf), mp.inf
        square = b**2 / ((a - 1) * (a - 2))
        mean = k * b / (a - 1)
        return mean, (k + k**2) * square - mean**2


def setup(stages: float, seed: int, n: int = 30, **options: Any) -> Any:
    """A random tree, rows for it, and an empty posterior with random split priors."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, **options)
    X, y = random_codes(rng, tree, n), rng.gamma(2.0, 1.0, n) + 1e-3
    split_prior = np.where(tree.is_terminal, 0.0, rng.uniform(0.05, 0.95, tree.n_nodes))
    return rng, tree, X, y, et.Posterior(tree, GammaWaiting(stages, 3.0, 1.5), split_prior)


# ---- the laws ----------------------------------------------------------------------------------------------


@STAGES
@given(seed=seeds)
@examples(10)
def test_one_batch_is_row_by_row_is_any_order_is_shards_merged(stages, seed):
    rng, _, X, y, empty = setup(stages, seed)
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], len(y))
    batch = empty.copy().update(X, y, weight)
    one_by_one, merged, order = empty.copy(), empty.copy(), rng.permutation(len(y))
    for i in range(len(y)):
        one_by_one.update(X[i : i + 1], y[i : i + 1], weight[i : i + 1])
    shards = rng.integers(0, 7, len(y))
    for s in range(7):
        merged.merge(empty.copy().update(X[shards == s], y[shards == s], weight[shards == s]))
    assert_same(batch, one_by_one)
    assert_same(batch, empty.copy().update(X[order], y[order], weight[order]))
    assert_same(batch, merged)


@STAGES
@given(seed=seeds)
@examples(5)
def test_one_step_ahead_log_probs_add_up_to_the_log_evidence(stages, seed):
    _, _, X, y, post = setup(stages, seed)
    total = 0.0
    for i in range(len(y)):
        total += post.predictive(X[i : i + 1]).log_prob(y[i : i + 1])[0]
        post.update(X[i : i + 1], y[i : i + 1])
    assert total == pytest.approx(post.log_evidence, rel=1e-10, abs=1e-10)


@STAGES
@given(seed=seeds)
@examples(5)
def test_no_data_is_the_prior_and_untouched_nodes_keep_it(stages, seed):
    _, tree, X, y, post = setup(stages, seed)
    assert post.log_evidence == 0.0
    np.testing.assert_array_equal(post.split_prob, post.split_prior)
    before = snapshot(post)
    post.update(X[:0], y[:0]).update(X, y, np.zeros(len(y)))
    assert snapshot(post) == before
    post.update(X[:3], y[:3])
    untouched = np.ones(tree.n_nodes, dtype=bool)
    for row in X[:3]:
        untouched[naive.path(tree, row)] = False
    np.testing.assert_array_equal(post.split_prob[untouched], post.split_prior[untouched])
    assert not post.statistics[untouched].any()


@STAGES
@given(seed=seeds)
@examples(5)
def test_enumeration_of_all_pruned_trees_agrees(stages, seed):
    rng, tree, X, y, post = setup(stages, seed, n=10, max_depth=2)
    weight = rng.choice([0.5, 1.0, 2.0], len(y))
    post.update(X, y, weight)
    twin = GammaTwin(stages, 3.0, 1.5)
    model = (tree, post.split_prior, lambda _: twin, X, y)
    assert post.log_evidence == pytest.approx(naive.brute_log_evidence(*model, weight), rel=1e-10, abs=1e-10)
    np.testing.assert_allclose(post.split_prob, naive.brute_split_prob(*model, weight), rtol=1e-10, atol=1e-10)
    x_new, y_new = random_codes(rng, tree, 2), rng.gamma(2.0, 1.0, 2)
    dist = post.predictive(x_new)
    for i in range(2):
        expected = naive.brute_log_predictive(*model, x_new[i], y_new[i], weights=weight)
        assert dist.log_prob(y_new)[i] == pytest.approx(expected, rel=1e-10, abs=1e-10)
        mean, variance = naive.brute_moments(*model, x_new[i], weights=weight)
        np.testing.assert_allclose([dist.mean()[i], dist.variance()[i]], [mean, variance], rtol=1e-10)


@given(seed=seeds)
@examples(10)
def test_one_stage_is_the_exponential_family(seed):
    rng, tree, X, y, own = setup(1.0, seed)
    native = et.Posterior(tree, et.Exponential(3.0, 1.5), own.split_prior)
    weight = rng.choice([0.0, 0.5, 1.0], len(y))
    for post in (own, native):
        post.update(X, y, weight)
    for name in ("split_prob", "leaf_log_evidence", "subtree_log_evidence"):
        np.testing.assert_allclose(getattr(own, name), getattr(native, name), rtol=1e-10, atol=1e-10, err_msg=name)
    np.testing.assert_allclose(own.statistics[:, :2], native.statistics, rtol=1e-12)
    assert own.n_rows == native.n_rows
    one, other = own.predictive(X), native.predictive(X)
    np.testing.assert_allclose(one.mean(), other.mean(), rtol=1e-10)
    np.testing.assert_allclose(one.variance(), other.variance(), rtol=1e-10)
    np.testing.assert_allclose(one.log_prob(y), other.log_prob(y), rtol=1e-10, atol=1e-10)


@STAGES
def test_its_predictive_is_scipys_beta_prime(stages):
    frozen, y = stats.betaprime(stages, 3.0, scale=1.5), np.array([0.1, 1.0, 7.0])
    components = GammaWaiting(stages, 3.0, 1.5).predictive(np.zeros((3, 3)))
    np.testing.assert_allclose(components.log_prob(y), frozen.logpdf(y), rtol=1e-12)
    np.testing.assert_allclose(components.mean(), frozen.mean(), rtol=1e-12)
    np.testing.assert_allclose(components.variance(), frozen.var(), rtol=1e-12)
    assert components.log_prob(np.array([0.0, -1.0, np.nan])).tolist() == [-np.inf] * 3


# ---- row data ----------------------------------------------------------------------------------------------


class Staged(GammaWaiting):
    """The number of stages comes with each row; the statistics count stages instead of rows."""

    row_data = ("stages_of_row",)

    def statistics(self, y: Any, weight: Any, stages_of_row: Any = None, **row_data: Any) -> Any:
        k = np.ones(len(y)) if stages_of_row is None else np.asarray(stages_of_row)
        return weight[:, None] * np.stack([k, y, xlogy(k - 1.0, y) - gammaln(k)], axis=1)

    def log_evidence(self, statistics: Any) -> Any:
        return GammaWaiting(1.0, self.shape, self.prior_rate).log_evidence(statistics)

    def predictive(self, statistics: Any, stages_of_row: Any = 1.0, **row_data: Any) -> Any:
        n, total, _ = statistics.T
        return own_family.WaitingPredictive(stages_of_row, self.shape + n, self.prior_rate + total)


@given(seed=seeds)
@examples(8)
def test_row_data_reach_the_family(seed):
    rng, tree, X, y, own = setup(2.5, seed)
    staged = et.Posterior(tree, Staged(1.0, 3.0, 1.5), own.split_prior)
    for post, row_data in ((own, {}), (staged, {"stages_of_row": np.full(30, 2.5)})):
        post.update(X, y, **row_data)
    np.testing.assert_allclose(staged.subtree_log_evidence, own.subtree_log_evidence, rtol=1e-10, atol=1e-10)
    one, other = staged.predictive(X, stages_of_row=np.full(30, 2.5)), own.predictive(X)
    np.testing.assert_allclose(one.mean(), other.mean(), rtol=1e-10)
    np.testing.assert_allclose(one.log_prob(y), other.log_prob(y), rtol=1e-10, atol=1e-10)

    mixed, total, stages = et.Posterior(tree, Staged(1.0), own.split_prior), 0.0, rng.uniform(0.5, 3.0, 30)
    for i in range(30):
        row = slice(i, i + 1)
        total += mixed.predictive(X[row], stages_of_row=stages[row]).log_prob(y[row])[0]
        mixed.update(X[row], y[row], stages_of_row=stages[row])
    assert total == pytest.approx(mixed.log_evidence, rel=1e-10, abs=1e-10)
    together = [mixed.copy(), staged.copy()]
    et.update_all(together, X, y, stages_of_row=stages)
    assert_same(together[0], mixed.update(X, y, stages_of_row=stages))


@pytest.mark.parametrize("wrong", [2.0, np.ones(3), np.ones(31)], ids=["a number", "too few", "too many"])
def test_row_data_have_one_entry_a_row(wrong):
    _, tree, X, y, _ = setup(2.5, 1)
    post = et.Posterior(tree, Staged(1.0))
    for call in (lambda: post.update(X, y, stages_of_row=wrong), lambda: post.predictive(X, stages_of_row=wrong)):
        with pytest.raises(ValueError, match="stages_of_row"):
            call()
    assert post.n_rows == 0


# ---- what may go wrong -------------------------------------------------------------------------------------


class Broken(GammaWaiting):
    """Does what it should until `fault` is set; then it fails in one of many ways."""

    fault: str | None = None
    calls_left = 0

    def _fails(self, fault: str) -> bool:
        if Broken.fault != fault:
            return False
        Broken.calls_left -= 1
        return Broken.calls_left < 0

    def statistics(self, y: Any, weight: Any, **row_data: Any) -> Any:
        rows = super().statistics(y, weight, **row_data)
        if self._fails("statistics raises"):
            raise RuntimeError("no statistics today")
        if self._fails("statistics too wide"):
            return np.hstack([rows, rows])
        if self._fails("statistics too short"):
            return rows[:-1]
        return np.full_like(rows, np.nan) if self._fails("statistics not numbers") else rows

    def log_evidence(self, statistics: Any) -> Any:
        values = super().log_evidence(statistics)
        if self._fails("evidence raises"):
            raise RuntimeError("no evidence today")
        if self._fails("evidence two-dimensional"):
            return values[:, None]
        if self._fails("evidence too short"):
            return values[:-1]
        return np.full_like(values, np.nan) if self._fails("evidence not a number") else values


FAULTS = [
    "statistics raises", "statistics too wide", "statistics too short", "statistics not numbers",
    "evidence raises", "evidence two-dimensional", "evidence too short", "evidence not a number",
]  # fmt: skip


@pytest.fixture
def broken_rows() -> Any:
    """A posterior with some rows, and more rows."""
    rng = rng_for("broken")
    tree = et.MetaTree.complete([0, 1, 1])
    X, y = rng.integers(0, 2, (20, 2)).astype(np.uint8), rng.gamma(2.0, 1.0, 20)
    Broken.fault, Broken.calls_left = None, 0
    yield et.Posterior(tree, Broken(2.0)).update(X[:5], y[:5]), X[5:], y[5:]
    Broken.fault = None


@pytest.mark.parametrize("fault", FAULTS)
def test_a_family_that_fails_changes_nothing(broken_rows, fault):
    post, X, y = broken_rows
    before, other = snapshot(post), post.copy()
    Broken.fault = fault
    with pytest.raises((RuntimeError, ValueError), match=r"today|Broken\.(statistics|log_evidence)"):
        post.update(X, y)
    assert snapshot(post) == before
    if fault.startswith("evidence"):
        with pytest.raises((RuntimeError, ValueError), match=r"today|Broken\.log_evidence"):
            post.merge(other)
        assert snapshot(post) == before
    Broken.fault = None
    assert_same(post.update(X, y), other.update(X, y))


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("calls", [0, 1, 2])
def test_an_update_of_many_that_fails_changes_none(broken_rows, fault, calls):
    post, X, y = broken_rows
    posteriors = [post, post.copy(), post.copy()]
    before = [snapshot(p) for p in posteriors]
    Broken.fault, Broken.calls_left = fault, calls  # the first ones succeed
    with pytest.raises((RuntimeError, ValueError)):
        et.update_all(posteriors, X, y)
    assert [snapshot(p) for p in posteriors] == before


def test_targets_outside_the_support_are_refused_and_change_nothing(broken_rows):
    post, X, y = broken_rows
    before = snapshot(post)
    y[3] = -1.0
    with pytest.raises(ValueError, match=r"y\[3\] is -1"):
        post.update(X, y)
    for weight, message in ((np.full(15, -1.0), r"sample_weight\[0\] is -1"), (np.ones(3), "sample_weight has 3")):
        with pytest.raises(ValueError, match=message):
            post.update(X, np.abs(y), weight)
    with pytest.raises(TypeError, match="Broken takes no 'exposure'"):
        post.update(X, np.abs(y), exposure=np.ones(15))
    assert snapshot(post) == before


# ---- with the rest of the library --------------------------------------------------------------------------


def test_update_all_is_separate_updates():
    rng = rng_for("own family together")
    trees = [random_tree(rng, kind="multiway", missing=False) for _ in range(4)]
    X, y = rng.integers(0, 2, (40, 3)).astype(np.uint8), rng.gamma(2.0, 1.0, 40)
    weight = rng.choice([0.0, 1.0, 2.0], 40)
    together = [et.Posterior(tree, GammaWaiting(2.0, 1.0 + i), 0.4) for i, tree in enumerate(trees)]
    separate = [post.copy().update(X, y, weight) for post in together]
    report = et.update_all(together, X, y, weight)
    for one, other in zip(together, separate, strict=True):
        assert_same(one, other)
    assert report.nodes_touched == sum(int((post.statistics[:, 0] > 0).sum()) for post in together)


def test_copy_and_pickle():
    _, _, X, y, post = setup(2.5, 3)
    post.update(X, y)
    for other in (post.copy(), pickle.loads(pickle.dumps(post))):
        assert snapshot(other) == snapshot(post)
        assert_same(other.update(X, y), post.copy().merge(post))


def test_a_growing_posterior_needs_a_built_in_family():
    with pytest.raises(TypeError, match="built-in"):
        et.GrowingPosterior([2, 2], GammaWaiting(2.0))


def test_the_generative_model_draws_from_it():
    rng = rng_for("own generative")
    tree, X = et.MetaTree.complete([0, 1, 1]), rng.integers(0, 2, (4000, 2)).astype(np.uint8)
    drawn, theta, y = et.GenerativeModel(tree, GammaWaiting(2.5, 3.0, 1.5)).sample(X, rng=rng)
    assert theta.shape == (drawn.n_leaves,)
    assert y.shape == (4000,)
    for leaf in range(drawn.n_leaves):
        mine = y[drawn.apply(X) == leaf]
        assert stats.kstest(mine, stats.gamma(2.5, scale=1 / theta[leaf]).cdf).pvalue > 1e-3


def test_the_example_runs(capsys):
    own_family.main()
    out = capsys.readouterr().out
    assert "posterior split" in out
    assert out.count("\n") == 12
