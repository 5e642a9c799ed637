"""Evidence, posterior and predictive of rows far away, of all sizes, and under tiny and huge hyperparameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import everytree as et
import naive
import naive_families as nf
from cases import CASE, collapse, rng_for, take
from family_cases import pooled
from naive_families import mp

# ---- far from zero ---------------------------------------------------------------------------------------------------


def far_away(name: str, n: int = 120) -> tuple[et.Family, Any, np.ndarray, dict[str, np.ndarray], np.random.Generator]:
    """Rows at a million, give or take one."""
    rng = rng_for("far away", name)
    if name == "normal":
        return et.Normal(0.0, 0.01, 1.0, 1.0), nf.Normal(0.0, 0.01, 1.0, 1.0), 1e6 + rng.normal(size=n), {}, rng
    x = 1e6 + rng.uniform(-1, 1, n)
    y = 1e6 + 2.0 * (x - 1e6) + rng.normal(size=n)
    hyper = (2, 1e-4, 1.0, 1.0)
    inputs = {"inputs": np.column_stack([np.ones(n), x])}
    return et.LinearRegression(*hyper), nf.LinearRegression(*hyper), y, inputs, rng


far = pytest.mark.parametrize("name", ["normal", "linear"])


@far
def test_rows_at_a_million_keep_their_evidence(name):
    family, twin, y, row_data, rng = far_away(name)
    tree = et.MetaTree.complete([0, 1, 1])
    X = rng.integers(0, 2, (len(y), 2)).astype(np.uint8)
    post = et.Posterior(tree, family).update(X, y, **row_data)
    split_prob, subtree, log_evidence = naive.theorem_1(tree, post.split_prior, lambda _: twin, X, y, **row_data)
    assert post.log_evidence == pytest.approx(log_evidence, rel=1e-10)
    np.testing.assert_allclose(post.subtree_log_evidence, subtree, rtol=1e-10)
    np.testing.assert_allclose(post.split_prob, split_prob, rtol=1e-10)


@far
def test_rows_at_a_million_keep_their_posterior(name):
    family, twin, y, row_data, _ = far_away(name)
    got = family.posterior_parameters(pooled(family, y, **row_data))
    exact = twin._posterior(nf.exact_all(y), [mp.mpf(1)] * len(y), **row_data)
    names = ("mean", "strength", "shape", "scale") if name == "normal" else ("mean", "precision", "shape", "scale")
    for parameter, value in zip(names, exact, strict=True):
        flat = [float(v) for v in value] if isinstance(value, mp.matrix) else [float(value)]
        np.testing.assert_allclose(got[parameter][0].ravel(), flat, rtol=1e-10, err_msg=parameter)


@far
def test_rows_at_a_million_keep_their_predictive(name):
    family, twin, y, row_data, _ = far_away(name)
    seen, new = slice(0, -10), slice(-10, None)
    earlier, later = take(row_data, seen), take(row_data, new)
    statistics = np.repeat(pooled(family, y[seen], **earlier), 10, axis=0)
    components = family.predictive(statistics, **later)
    log_prob, mean, variance = components.log_prob(y[new]), components.mean(), components.variance()
    for i in range(10):
        at: dict[str, Any] = {"row_data_new": take(later, i), **earlier}
        # The location is a double near 1e6, and these are 1e-10 apart: no more can be asked of the log density.
        assert log_prob[i] == pytest.approx(twin.log_predictive(y[new][i], y[seen], **at), abs=1e-9)
        assert mean[i] == pytest.approx(twin.predictive_mean(y[seen], **at), rel=1e-14)
        assert variance[i] == pytest.approx(twin.predictive_variance(y[seen], **at), rel=1e-10)


@far
def test_rows_at_a_million_follow_the_chain_rule(name):
    family, _, y, row_data, rng = far_away(name)
    X = rng.integers(0, 2, (len(y), 2)).astype(np.uint8)
    post, total = et.Posterior(et.MetaTree.complete([0, 1, 1]), family), 0.0
    for i in range(len(y)):
        row = slice(i, i + 1)
        total += post.predictive(X[row], **take(row_data, row)).log_prob(y[row])[0]
        post.update(X[row], y[row], **take(row_data, row))
    assert total == pytest.approx(post.log_evidence, rel=1e-10)


@far
def test_rows_at_a_million_come_in_any_order_and_in_shards(name):
    family, _, y, row_data, rng = far_away(name, 2000)
    X = rng.integers(0, 2, (len(y), 2)).astype(np.uint8)
    empty = et.Posterior(et.MetaTree.complete([0, 1, 1]), family)
    batch, order, shards = empty.copy().update(X, y, **row_data), rng.permutation(len(y)), rng.integers(0, 7, len(y))
    shuffled = empty.copy().update(X[order], y[order], **take(row_data, order))
    merged = empty.copy()
    for s in range(7):
        mine = shards == s
        merged.merge(empty.copy().update(X[mine], y[mine], **take(row_data, mine)))
    for other in (shuffled, merged):
        for array in ("split_prob", "leaf_log_evidence", "subtree_log_evidence"):
            np.testing.assert_allclose(getattr(other, array), getattr(batch, array), rtol=1e-10, err_msg=array)
        np.testing.assert_allclose(collapse(family, other.statistics), collapse(family, batch.statistics), rtol=1e-14)


@pytest.mark.parametrize("offset", [1e6, 1e8, 1e9])
@pytest.mark.parametrize("weights", ["constant", "uniform"])
def test_many_rows_of_a_fractional_weight_keep_their_spread(offset, weights):
    """The rounding of the weight is multiplied by (offset / spread)^2: the weight has 32 digits too."""
    rng = rng_for("fractional", weights, offset)
    y, weight = offset + rng.normal(size=3000), np.full(3000, 0.1) if weights == "constant" else rng.random(3000)
    family, twin = et.Normal(offset, 1.0, 1.0, 1.0), nf.Normal(offset, 1.0, 1.0, 1.0)
    statistics = pooled(family, y, weight)
    assert family.log_evidence(statistics)[0] == pytest.approx(twin.log_evidence(y, weight), rel=1e-12)
    variance = family.predictive(statistics).variance()[0]
    assert variance == pytest.approx(twin.predictive_variance(y, weight), rel=1e-12)


@pytest.mark.parametrize("digits", ["few", "all"])
@pytest.mark.parametrize("n_inputs", [2, 3, 4])
@pytest.mark.parametrize("n", [1, 2, 3, 5])
def test_lines_through_few_rows_far_from_zero_under_a_vague_prior(n, n_inputs, digits):
    """With fewer rows than inputs the determinant is as small as the prior, in a matrix of entries of 1e16."""
    rng = rng_for("few rows", n, n_inputs)
    inputs = np.column_stack([np.ones(n), 1e8 + rng.normal(size=(n, n_inputs - 1))])
    y, weight = rng.normal(size=n), rng.random(n)
    if digits == "few":
        inputs, weight = np.round(1024 * inputs) / 1024, np.ceil(64 * weight) / 64
    hyper = (n_inputs, 1e-12, 1.0, 1.0)
    family, twin = et.LinearRegression(*hyper), nf.LinearRegression(*hyper)
    statistics = pooled(family, y, weight, inputs=inputs)
    # Sums keep 32 digits and the matrix is singular to within 28: of weighted products with more digits, 4 are left.
    tolerance = 1e-12 if n >= n_inputs or digits == "few" else 1e-5
    got = family.log_evidence(statistics)[0]
    assert got == pytest.approx(twin.log_evidence(y, weight, inputs=inputs), rel=tolerance)
    new = {"row_data_new": {"inputs": inputs[0]}, "inputs": inputs}
    components = family.predictive(statistics, inputs=inputs[:1])
    assert components.log_prob(y[:1])[0] == pytest.approx(twin.log_predictive(y[0], y, weight, **new), rel=1e-5)
    if tolerance == 1e-12:
        expected = twin.log_predictive(y[0], y, weight, **new)
        assert components.log_prob(y[:1])[0] == pytest.approx(expected, rel=1e-10)
        assert components.mean()[0] == pytest.approx(twin.predictive_mean(y, weight, **new), rel=1e-8)
        assert components.variance()[0] == pytest.approx(twin.predictive_variance(y, weight, **new), rel=1e-8)


# ---- all sizes -------------------------------------------------------------------------------------------------------


def log_beta_ratio(alpha: float, beta: float, ones: float, zeros: float) -> float:
    """log B(alpha + ones, beta + zeros) / B(alpha, beta) at 60 digits."""
    a, b, n, m = nf.exact_all([alpha, beta, ones, zeros])
    return float(nf.log_rising(a, n) + nf.log_rising(b, m) - nf.log_rising(a + b, n + m))


COUNTS = [1.0, 10.0, 255.0, 256.0, 1e3, 1e6, 1e9, 1e12]


@pytest.mark.parametrize("count", COUNTS)
def test_evidence_of_many_equal_shares(count):
    got = et.Bernoulli(0.5, 0.7).log_evidence(np.array([[count, count]]))[0]
    assert got == pytest.approx(log_beta_ratio(0.5, 0.7, count, count), rel=1e-12)


@pytest.mark.parametrize("few", [0.0, 1.0, 3.5])
@pytest.mark.parametrize("count", COUNTS)
def test_evidence_of_a_nearly_pure_node(count, few):
    """Large terms cancel here: the answer grows like the logarithm of the count."""
    got = et.Bernoulli(0.5, 0.7).log_evidence(np.array([[few, count], [count, few]]))
    expected = [log_beta_ratio(0.5, 0.7, count, few), log_beta_ratio(0.5, 0.7, few, count)]
    np.testing.assert_allclose(got, expected, rtol=1e-12)


def sizes(rng: np.random.Generator, low: float, high: float, n: int) -> np.ndarray:
    """Numbers of every order of magnitude from 10^low to 10^high."""
    return 10.0 ** rng.uniform(low, high, n)


def assert_relative(got: np.ndarray, expected: list[float], tolerance: float = 1e-12) -> None:
    """Logs of probabilities: to 1e-12 of themselves, or of the probability where that is near 1."""
    np.testing.assert_allclose(got, expected, rtol=tolerance, atol=1e-14)


@pytest.mark.parametrize("largest", [6, 9, 12])
def test_evidence_of_classes_of_all_sizes(largest):
    rng = rng_for("sizes", largest)
    alpha, beta, ones, zeros = (sizes(rng, -3, largest, 300) for _ in range(4))
    ones, zeros = np.floor(ones), np.where(rng.random(300) < 0.5, zeros, np.floor(zeros))
    got = et.Bernoulli(alpha, beta).log_evidence(np.column_stack([zeros, ones]))
    assert_relative(got, [log_beta_ratio(*row) for row in zip(alpha, beta, ones, zeros, strict=True)])


def test_evidence_of_classes_under_a_lopsided_prior():
    ones, zeros = np.array([0.0, 1e3, 5e4, 46600.0]), np.array([1e9, 277.0, 0.0, 3.9e11])
    for alpha, beta in [(9.2e5, 3.9e11), (1.05e11, 5.5e4)]:
        got = et.Bernoulli(alpha, beta).log_evidence(np.column_stack([zeros, ones]))
        assert_relative(got, [log_beta_ratio(alpha, beta, *row) for row in zip(ones, zeros, strict=True)])


@pytest.mark.parametrize("largest", [6, 9, 12, 15])
def test_geometric_predictive_of_all_sizes(largest):
    rng = rng_for("geometric sizes", largest)
    alpha, beta = sizes(rng, -3, min(largest, 9), 300), sizes(rng, -3, largest, 300)
    y = np.floor(sizes(rng, -1, largest, 300))
    components = et.Geometric(alpha, beta).predictive(np.zeros((300, 2)))
    assert_relative(
        components.log_prob(y), [log_beta_ratio(a, b, 1.0, k) for a, b, k in zip(alpha, beta, y, strict=True)]
    )
    survival = np.array([log_beta_ratio(a, b, 0.0, k + 1.0) for a, b, k in zip(alpha, beta, y, strict=True)])
    some = survival > -700.0  # beyond, the probability is 0
    np.testing.assert_allclose(np.log(components.sf(y)[some]), survival[some], rtol=1e-12, atol=1e-14)


def log_gamma_ratio(x: float, t: float, n: float, s: float) -> Any:
    """log Gamma(x + n) / Gamma(x) t^x / (t + s)^(x + n) at 60 digits."""
    x, t, n, s = nf.exact_all([x, t, n, s])
    return nf.log_rising(x, n) + x * mp.log(t) - (x + n) * mp.log(t + s)


@pytest.mark.parametrize("largest", [6, 9, 12])
def test_evidence_of_waiting_times_of_all_sizes(largest):
    rng = rng_for("waiting sizes", largest)
    shape, rate, events, time = (sizes(rng, low, largest, 300) for low in (-3, -6, -1, -3))
    got = et.Exponential(shape, rate).log_evidence(np.column_stack([events, time]))
    assert_relative(got, [float(log_gamma_ratio(*row)) for row in zip(shape, rate, events, time, strict=True)])


@pytest.mark.parametrize("largest", [3, 6, 9, 12])
@pytest.mark.parametrize("near", [False, True], ids=["anywhere", "near the mean"])
def test_counts_of_all_sizes(largest, near):
    """The evidence of one row is its predictive probability under the prior."""
    rng = rng_for("count sizes", largest, near)
    shape, rate = sizes(rng, -3, largest, 200), sizes(rng, -largest, largest, 200)
    exposure = sizes(rng, -2, 2, 200)
    mean = shape * exposure / rate
    drawn = mean + rng.normal(size=200) * np.sqrt(mean + mean**2 / shape)
    y = np.clip(np.floor(drawn if near else sizes(rng, -1, largest, 200)), 0.0, 1e15)
    family = et.Poisson(shape, rate)
    expected = [float(log_gamma_ratio(a, b, k, e) + k * mp.log(e) - mp.loggamma(k + 1))
                for a, b, k, e in zip(*map(nf.exact_all, (shape, rate, y, exposure)), strict=True)]  # fmt: skip
    assert_relative(family.log_evidence(family.statistics(y, exposure=exposure)), expected)
    components = family.predictive(np.zeros((200, family.n_statistics)), exposure=exposure)
    # The odds exposure / rate are a double: their rounding is multiplied by how far y is from its mean.
    rounding = 1e-15 * np.abs(y - mean) / (1.0 + mean / shape)
    assert (np.abs(components.log_prob(y) - expected) <= 1e-12 * np.abs(expected) + 1e-14 + rounding).all()


LARGE = {  # name: (family, twin, targets near n)
    "poisson": lambda n: (et.Poisson(2.0, 2 / n), nf.Poisson(2.0, 2 / n), [n, n + 7]),
    "geometric": lambda n: (et.Geometric(3.0, 0.75), nf.Geometric(3.0, 0.75), [n, n + 7]),
}


@pytest.mark.parametrize("n", [10, 1000, 10**6, 10**9])
@pytest.mark.parametrize("name", LARGE)
def test_evidence_of_large_targets(name, n):
    family, twin, y = LARGE[name](n)
    got = family.log_evidence(pooled(family, np.array(y)))[0]
    assert got == pytest.approx(twin.log_evidence(y), rel=1e-12)


@pytest.mark.parametrize("size", [1e20, 1e40, 1e60])
def test_evidence_of_the_largest_rows_that_are_accepted(size):
    y, weight = np.array([size, -size, size / 2]), np.full(3, size)
    family, twin = et.Normal(), nf.Normal(0.0, 1.0, 1.0, 1.0)
    for weights in (None, weight):
        got = family.log_evidence(pooled(family, y, weights))[0]
        assert got == pytest.approx(twin.log_evidence(y, weights), rel=1e-10)


EXTREME = {  # name: family and twin with every hyperparameter of size h
    "bernoulli": lambda h: (et.Bernoulli(h, h), nf.Bernoulli(h, h)),
    "categorical": lambda h: (et.Categorical(3, h), nf.Categorical(3, h)),
    "poisson": lambda h: (et.Poisson(h, h), nf.Poisson(h, h)),
    "exponential": lambda h: (et.Exponential(h, h), nf.Exponential(h, h)),
    "geometric": lambda h: (et.Geometric(h, h), nf.Geometric(h, h)),
    "normal": lambda h: (et.Normal(0.5, h, h, h), nf.Normal(0.5, h, h, h)),
    "linear": lambda h: (et.LinearRegression(2, h, h, h), nf.LinearRegression(2, h, h, h)),
}


@pytest.mark.parametrize("size", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("name", EXTREME)
def test_evidence_under_tiny_and_huge_hyperparameters(name, size):
    family, twin = EXTREME[name](size)
    rng = rng_for("extreme", name)
    for n in (1, 2, 30):
        y, row_data = CASE[name].draw(rng, n)
        got = family.log_evidence(pooled(family, y, **row_data))[0]
        assert got == pytest.approx(twin.log_evidence(y, **row_data), rel=1e-10, abs=1e-12), n


@pytest.mark.parametrize("size", [1e-8, 1e-4, 1e4, 1e8])
@pytest.mark.parametrize("name", EXTREME)
def test_predictive_under_tiny_and_huge_hyperparameters(name, size):
    family, twin = EXTREME[name](size)
    rng = rng_for("extreme", name)
    y, row_data = CASE[name].draw(rng, 12)
    earlier, later = take(row_data, slice(0, 10)), take(row_data, slice(10, 12))
    components = family.predictive(np.repeat(pooled(family, y[:10], **earlier), 2, axis=0), **later)
    got = components.log_prob(y[10:].astype(float))
    for i in range(2):
        expected = twin.log_predictive(y[10 + i], y[:10], row_data_new=take(later, i), **earlier)
        assert got[i] == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_the_gamma_function_behind_the_evidence():
    """With shape 1, rate 1 and no time passed, w events have evidence Gamma(1 + w)."""
    events = np.concatenate([np.logspace(-6, 6, 400), np.arange(1.0, 300.0)])
    got = et.Exponential(1.0, 1.0).log_evidence(np.column_stack([events, np.zeros_like(events)]))
    expected = [float(mp.loggamma(1 + mp.mpf(float(w)))) for w in events]
    np.testing.assert_allclose(got, expected, rtol=1e-13, atol=2e-14)
