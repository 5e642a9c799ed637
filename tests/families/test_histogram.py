"""Histograms: atoms, cells laid by data, exact scores, and what a forest of them says."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

import everytree as et
import naive_families
from cases import examples, rng_for, seeds
from everytree.families.cells import MOST_ATOMS, cells_of

ATOMS = ([-1.0, 0.0, 0.0, 1.0, 1.0, 2.5], [0.5, 2.0, 3.0, 2.0, 2.0, 1.0, 0.5], 1.5, (0.5, 1.0))
"""A histogram in which 0 and 1 are cells of their own."""


def draw(rng: np.random.Generator, n: int) -> np.ndarray:
    return np.where(rng.random(n) < 0.5, rng.integers(0, 2, n), rng.normal(0.5, 1.5, n))


@given(seed=seeds)
@examples(10)
def test_evidence_and_predictions_with_atoms_are_the_twins(seed):
    rng = np.random.default_rng(seed)
    y, weight = draw(rng, 8), rng.choice([0.0, 0.5, 1.0, 3.0], 8)
    leaf, twin = et.Histogram(*ATOMS), naive_families.Histogram(*ATOMS)
    seen = leaf.statistics(y, weight).sum(axis=0, keepdims=True)
    assert leaf.log_evidence(seen)[0] == pytest.approx(twin.log_evidence(y, weight), rel=1e-12, abs=1e-12)
    dist = leaf.predictive(seen)
    for new in (0.0, 1.0, 0.5, -3.0, 4.0):
        expected = twin.log_predictive(new, y, weight)
        assert dist.log_prob(np.array([new]))[0] == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert dist.mean()[0] == pytest.approx(twin.predictive_mean(y, weight), rel=1e-12)
    assert dist.variance()[0] == pytest.approx(twin.predictive_variance(y, weight), rel=1e-12)


def test_quantiles_are_the_first_numbers_that_reach_p():
    rng = rng_for("atoms")
    post = et.Posterior(et.MetaTree.complete([0]), et.Histogram(*ATOMS)).update(
        rng.integers(0, 2, (40, 1)), draw(rng, 40)
    )
    dist = post.predictive([[0], [1]])
    levels = np.concatenate([[1e-9, 1e-4], np.linspace(0.01, 0.99, 99), [1 - 1e-4, 1 - 1e-9]])
    quantiles = dist.quantile(levels)
    assert (np.diff(quantiles, axis=1) >= 0.0).all()
    assert {0.0, 1.0} <= set(quantiles[0])
    for p, q in zip(levels, quantiles.T, strict=True):
        assert (dist.cdf(q) >= p - 1e-12).all()
        assert (dist.cdf(q - 1e-9) < p + 1e-8).all()
    np.testing.assert_allclose(dist.cdf(quantiles.T) + dist.sf(quantiles.T), 1.0, rtol=1e-12)


def test_the_score_is_its_integral():
    rng = rng_for("score of atoms")
    post = et.Posterior(et.MetaTree.complete([0]), et.Histogram(*ATOMS)).update(
        rng.integers(0, 2, (40, 1)), draw(rng, 40)
    )
    dist = post.predictive([[0]])
    edges = np.unique([*ATOMS[0], -20.0, 40.0, *np.linspace(-20.0, 40.0, 601)])
    points, weights = np.polynomial.legendre.leggauss(12)
    for y in (-4.0, -1.0, -0.3, 0.0, 0.2, 1.0, 1.7, 2.5, 6.0):
        total = 0.0
        cuts = np.unique([*edges, y])
        for low, high in pairwise(cuts):
            at = 0.5 * (low + high) + 0.5 * (high - low) * points
            total += 0.5 * (high - low) * float(weights @ (dist.cdf(at[:, None])[:, 0] - (at >= y)) ** 2)
        assert dist.crps(y)[0] == pytest.approx(total, rel=1e-8)


def test_the_shortest_interval_is_shorter_than_others_and_holds_its_share():
    rng = rng_for("shortest")
    post = et.Posterior(et.MetaTree.complete([0]), et.Histogram(*ATOMS)).update(
        rng.integers(0, 2, (40, 1)), draw(rng, 40)
    )
    dist = post.predictive([[0], [1]])
    for coverage in (0.3, 0.5, 0.9):
        low, high = dist.interval(coverage, kind="hdi").T
        assert (dist.cdf(high) - dist.cdf(low - 1e-9) >= coverage - 1e-9).all()
        for tail in np.linspace(1e-6, 1.0 - coverage - 1e-6, 50):
            others = np.diff(dist.quantile([tail, tail + coverage]), axis=1)[:, 0]
            assert (high - low <= others + 1e-9).all()


# ---- cells -----------------------------------------------------------------------------------------------------------


def test_few_values_are_cells_of_their_own():
    cells, shares = cells_of(np.repeat([3.0, 5.0, 6.0], [10, 60, 30]), None)
    assert cells.edges.tolist() == [3.0, 3.0, 5.0, 5.0, 6.0, 6.0]
    np.testing.assert_allclose(shares[1::2], np.array([10, 60, 30]) / 101.5)


@pytest.mark.parametrize("law", ["normal", "long tail", "spike", "counts", "constant", "two values", "one outlier"])
def test_cells_hold_every_target_and_are_not_too_many(law):
    rng = rng_for("cells", law)
    y = {
        "normal": rng.normal(size=500), "long tail": np.exp(2.0 * rng.normal(size=500)), "constant": np.full(50, 3.0),
        "spike": np.where(rng.random(500) < 0.4, 0.0, rng.gamma(2.0, size=500)), "two values": np.arange(60) % 2.0,
        "counts": rng.negative_binomial(1, 0.05, 500) * 1.0, "one outlier": np.append(rng.normal(size=200), 1e9),
    }[law]  # fmt: skip
    cells, shares = cells_of(y, None)
    assert (np.diff(cells.edges) >= 0.0).all()
    assert len(cells) <= 3 * MOST_ATOMS + 4
    assert shares.sum() == pytest.approx(1.0)
    assert (shares > 0.0).all()
    inside = cells.of(y)
    assert ((inside > 0) & (inside < len(cells) - 1)).all()
    counts = np.bincount(inside, minlength=len(cells))
    if law in ("normal", "long tail"):
        assert counts.max() < 0.15 * len(y)


@pytest.mark.parametrize(("unit", "offset"), [(1000.0, 0.0), (0.1, 7.0), (3.0, -1e6)])
def test_cells_do_not_depend_on_the_unit(unit, offset):
    y = np.round(rng_for("units").gamma(2.0, size=300), 3)
    (cells, shares), (others, same) = cells_of(y, None), cells_of(offset + unit * y, None)
    np.testing.assert_array_equal(cells.of(y), others.of(offset + unit * y))
    np.testing.assert_allclose(shares, same)


def test_weights_are_rows():
    y, weight = rng_for("weights").gamma(2.0, size=60), np.tile([1.0, 2.0, 0.0], 20)
    (cells, shares), (same, others) = cells_of(y, weight), cells_of(np.repeat(y, weight.astype(int)), None)
    np.testing.assert_allclose(cells.edges, same.edges)
    np.testing.assert_allclose(shares, others)


# ---- forests ---------------------------------------------------------------------------------------------------------


def grades(n: int, what: str) -> tuple[np.ndarray, np.ndarray]:
    rng = rng_for("grades", what)
    X = rng.normal(size=(n, 4))
    return X, np.clip(np.round(3.0 + X[:, 0] + 0.7 * rng.normal(size=n)), 1.0, 5.0)


def test_grades_are_predicted_better_than_by_bells():
    (X, y), (X_new, y_new) = grades(400, "fit"), grades(1000, "new")
    score = {
        family: et.MetaForestRegressor(30, family=family, random_state=0).fit(X, y).predictive(X_new).crps(y_new).mean()
        for family in ("histogram", "normal")
    }
    assert score["histogram"] < 0.95 * score["normal"]


def test_values_beyond_those_of_fit_are_possible_and_merge_is_exact():
    X, y = grades(120, "merge")
    model = et.MetaForestRegressor(5, family="histogram", random_state=0).fit(X, y)
    one, other = model.blank(), model.blank()
    one.partial_fit(X[:70], y[:70] + 0.25)  # between the values that have cells
    other.partial_fit(X[70:], y[70:] + 5.0)
    both = one.merge(other)
    again = model.blank().partial_fit(X, np.append(y[:70] + 0.25, y[70:] + 5.0))
    np.testing.assert_allclose(both.predict(X), again.predict(X), rtol=1e-12)
    assert both.log_evidence_ == pytest.approx(again.log_evidence_, rel=1e-12)
    assert np.isfinite(both.predictive(X).log_prob(y)).all()


def test_a_sharpened_forest_is_not_written_as_a_graph():
    X, y = grades(120, "graph")
    model = et.MetaForestRegressor(5, family="histogram", random_state=0).fit(X, y)
    assert model.forest_.sharpness != 1.0
    with pytest.raises(ValueError, match="MetaForestRegressor predicts by shares of cells raised to a power"):
        et.export.to_tables(model)


# ---- bad input -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (([0.0], [1, 1]), "edges must be two numbers or more in ascending order"),
        (([1.0, 0.0], [1, 1, 1]), "edges must be two numbers or more in ascending order"),
        (([0.0, np.nan], [1, 1, 1]), "edges must be two numbers or more in ascending order"),
        (([0.0, 1.0], [1, 1]), "shares must have one entry for each of 3 cells"),
        (([0.0, 1.0], [1, 0, 1]), r"shares\[1\] must be positive"),
        (([0.0, 1.0], [1, 1, 1], 0.0), "strength must be positive"),
        (([0.0, 1.0], [1, 1, 1], 1.0, [1.0, 1.0, 1.0]), "tails must be a number or two"),
    ],
)
def test_what_is_wrong_is_said(given, message):
    with pytest.raises(ValueError, match=message):
        et.Histogram(*given)
