"""Rearrangement on a grid: sorted along each column, and what distributions are then."""

from __future__ import annotations

import numpy as np
import pytest

import everytree as et
from cases import rng_for
from everytree.predictive.rearranged import MAX_CELLS, Axis, Grid, rearranged


def naive_sorted(values, signs):
    """Values at all points of a grid, sorted along one axis after the other, entry by entry."""
    values = values.copy()
    for axis, sign in enumerate(signs):
        moved = np.moveaxis(values, axis, -1)
        for place in np.ndindex(moved.shape[:-1]):
            moved[place] = sorted(moved[place].tolist(), reverse=sign < 0)
    return values


def test_sorting_one_column_after_another_keeps_the_order_along_the_first():
    rng = rng_for("order")
    for signs in ((1, 1, 1), (1, -1, 1), (-1, -1, -1)):
        values = naive_sorted(rng.normal(size=(7, 5, 6)), signs)
        for axis, sign in enumerate(signs):
            assert (sign * np.diff(values, axis=axis) >= 0.0).all()


def test_it_is_nowhere_farther_from_a_monotone_truth_over_the_grid():
    rng = rng_for("truth")
    truth = np.add.outer(np.sort(rng.normal(size=9)), np.sort(rng.normal(size=8)))
    for _ in range(20):
        found = truth + rng.normal(size=truth.shape)
        for power in (1.0, 2.0, 3.0):
            after = np.abs(naive_sorted(found, (1, 1)) - truth) ** power
            assert after.sum() <= (np.abs(found - truth) ** power).sum() + 1e-12


def test_rows_have_the_sorted_value_of_their_own_point():
    rng = rng_for("own point")
    codes = np.column_stack([rng.integers(0, 5, 60), rng.integers(0, 3, 60), rng.integers(0, 4, 60)]).astype(np.uint8)
    codes[rng.random((60, 3)) < 0.1] = 255
    table = rng.normal(size=(6, 4, 5))  # the last place along each axis stands for a missing value

    def predict(points):
        place = np.where(points == 255, [5, 3, 4], points).astype(int)
        return table[place[:, 0], place[:, 1], place[:, 2]]

    grid = Grid.of(codes, [Axis(0, 1, 5), Axis(2, -1, 4)], {})
    found = grid.sorted(predict(grid.codes))
    for row, code in enumerate(codes):
        a, b, c = (int(v) if v < 255 else last for v, last in zip(code, (5, 3, 4), strict=True))
        plane = table[:, b, :].copy()
        plane[:5] = np.sort(plane[:5], axis=0)
        plane[:, :4] = -np.sort(-plane[:, :4], axis=1)
        assert found[row] == plane[a, c]


def test_neighbours_share_points_where_there_are_too_many():
    axes = [Axis(k, 1, 255) for k in range(3)]
    codes = np.array([[0, 100, 254], [255, 0, 0]], dtype=np.uint8)
    grid = Grid.of(codes, axes, {})
    assert np.prod([n - 1 for n in grid.shape]) <= MAX_CELLS
    assert (Grid.of(codes, axes[:1], {}).shape) == (256,)
    points = grid.codes.reshape(len(grid.row_of), *grid.shape, 3)
    assert (np.diff(points[0, :-1, 0, 0, 0].astype(int)) > 0).all()


# ---- distributions --------------------------------------------------------------------------------------------------


def fitted(family):
    """Distributions at the points of a grid of two columns, whose spread differs so that they cross."""
    rng = rng_for("distributions", family)
    X = rng.integers(0, 4, (400, 2)).astype(np.uint8)
    mean = 0.4 * X[:, 0] - 0.2 * X[:, 1]
    y = mean + rng.normal(size=400) * (0.3 + 0.3 * (X[:, 0] == 1))
    y = rng.poisson(np.exp(mean + 1)) if isinstance(family, et.Poisson) else y
    tree = et.MetaTree.complete([0] + [1] * 4, n_children=4)
    post = et.Posterior(tree, family, 0.9).update(X, y)
    rows = np.unique(X, axis=0)
    grid = Grid.of(rows, [Axis(0, 1, 4), Axis(1, -1, 4)], {})
    points = np.minimum(grid.codes, 3)  # the tree has no branch for a missing value
    return rearranged(post.predictive(points), grid), rows


def check_monotone(values, rows):
    table = values.reshape(4, 4)  # rows are in the order of both columns
    assert (np.diff(table, axis=0) >= -1e-12).all()
    assert (np.diff(table, axis=1) <= 1e-12).all()


FAMILIES = [et.Normal(0.0, 0.1, 2.0, 0.5), et.Poisson(1.0, 0.5)]


@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_all_that_is_said_of_targets_is_monotone(family):
    dist, rows = fitted(family)
    check_monotone(dist.mean(), rows)
    for p in (0.01, 0.3, 0.5, 0.9, 0.99):
        check_monotone(dist.quantile(p), rows)
    for y in (0.0, 1.0, 2.0, 3.0):
        check_monotone(dist.sf(y), rows)
        check_monotone(-dist.cdf(y), rows)
        np.testing.assert_allclose(dist.cdf(y) + dist.sf(y), 1.0, atol=1e-12)
    check_monotone(dist[np.arange(len(rows))].median(), rows)


def test_quantiles_and_densities_belong_to_the_cdf():
    dist, _ = fitted(FAMILIES[0])
    for p in (0.05, 0.5, 0.8):
        np.testing.assert_allclose(dist.cdf(dist.quantile(p)), p, atol=1e-9)
    y = np.linspace(-1.0, 2.0, 7)[:, None]
    step = 1e-6
    slope = (dist.cdf(y + step) - dist.cdf(y - step)) / (2 * step)
    np.testing.assert_allclose(np.exp(dist.log_prob(y)), slope, rtol=1e-4, atol=1e-8)
    low, high = dist.interval(0.8, kind="hdi").T
    np.testing.assert_allclose(dist.cdf(high) - dist.cdf(low), 0.8, atol=0.01)


def test_probabilities_of_counts_sum_to_one():
    dist, _ = fitted(FAMILIES[1])
    np.testing.assert_allclose(np.exp(dist.log_prob(np.arange(200)[:, None])).sum(axis=0), 1.0, atol=1e-9)


def test_scores_and_draws_are_near_those_of_the_cdf():
    dist, _ = fitted(FAMILIES[0])
    x = np.linspace(-20.0, 20.0, 20001)
    squares = (dist.cdf(x[:, None]) - (x >= 0.7)[:, None]) ** 2
    np.testing.assert_allclose(dist.crps(0.7), np.trapezoid(squares, x, axis=0), rtol=2e-2)
    draws = dist.sample(4000, rng=0)
    for p in (0.1, 0.5, 0.9):
        np.testing.assert_allclose((draws <= dist.quantile(p)[:, None]).mean(axis=1), p, atol=0.03)
