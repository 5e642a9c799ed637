"""Few cut points: those by which trees tell most about the target, or evenly spread ones where they tell nothing."""

from __future__ import annotations

import numpy as np
import pytest

import everytree as et
from cases import rng_for
from everytree.structure.cut_choice import _moments, _sums_of_nodes, with_few_cuts
from everytree.structure.grow_on import Classes, Numbers
from random_shapes import random_shape


def draw(n: int = 400) -> tuple[np.ndarray, et.Schema, np.ndarray]:
    X = rng_for("cuts", n).normal(size=(n, 3))
    schema = et.Schema.fit(X)
    return X, schema, schema.encode(X)


def cuts_of(schema: et.Schema) -> list[np.ndarray]:
    return [np.asarray(column.cuts) for column in schema.columns]


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_the_cut_that_divides_the_targets_is_chosen(kind):
    X, schema, codes = draw()
    above = X[:, 1] > 0.6
    target = Classes(above.astype(np.int64), None) if kind == "classes" else Numbers(np.where(above, 3.0, -1.0), None)
    few = cuts_of(with_few_cuts(schema, codes, target, max_bins=12, max_cuts=12, max_depth=2))
    assert sum(len(own) for own in few) <= 12
    assert min(abs(few[1] - 0.6)) < 0.05
    assert len(few[1]) >= max(len(few[0]), len(few[2]))


def test_cuts_of_noise_are_spread_over_all_columns():
    X, schema, codes = draw()
    noise = Numbers(rng_for("noise of cuts").normal(size=len(X)), None)
    few = cuts_of(with_few_cuts(schema, codes, noise, max_bins=8, max_cuts=9, max_depth=2))
    assert [len(own) for own in few] == [3, 3, 3]
    shares = np.array([[(X[:, k] <= cut).mean() for cut in few[k]] for k in range(3)])
    np.testing.assert_allclose(shares, np.broadcast_to([1 / 6, 1 / 2, 5 / 6], (3, 3)), atol=0.05)


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_rows_of_weight_two_count_as_rows_that_come_twice(kind):
    X, schema, codes = draw(120)
    rng = rng_for("weights of cuts")
    weight = rng.integers(1, 4, len(X))
    y = rng.integers(0, 3, len(X)) if kind == "classes" else X[:, 0] + rng.normal(size=len(X))
    make = Classes if kind == "classes" else Numbers
    limits = {"max_bins": 6, "max_cuts": 6, "max_depth": 3}
    weighted = with_few_cuts(schema, codes, make(y, weight.astype(float)), **limits)
    times = np.repeat(np.arange(len(X)), weight)
    repeated = with_few_cuts(schema, codes[times], make(y[times], None), **limits)
    for one, other in zip(cuts_of(weighted), cuts_of(repeated), strict=True):
        np.testing.assert_array_equal(one, other)


def test_sums_of_nodes_are_those_of_their_rows():
    X = rng_for("sums of nodes").normal(size=(200, 3))
    schema = et.Schema.fit(X, max_bins=3)
    codes = schema.encode(X)
    tree = random_shape(schema.n_codes.tolist(), 3, rng=rng_for("tree of cuts"))
    target = Numbers(X[:, 0], rng_for("weights of nodes").uniform(0.5, 2.0, len(X)))
    ends, moments = tree.route(codes), _moments(target)
    inside = np.zeros((tree.n_nodes, len(X)), dtype=bool)
    for row, node in enumerate(ends):
        while node >= 0:
            inside[node, row] = True
            node = tree.parent[node] if node > 0 else -1
    np.testing.assert_allclose(_sums_of_nodes(tree, codes, moments), inside @ moments, rtol=1e-12, atol=1e-12)
