"""Leaves of forests of noisy numbers in long tables have two rows at least."""

from __future__ import annotations

import numpy as np
import pytest

import everytree as et
from everytree.fitting.structures.forest import LONG_TABLE, N_FIRST_TREES

N = LONG_TABLE + 500


def table(noise: float, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 2))
    return X, X.sum(axis=1) + noise * rng.normal(size=n)


def forest(X, y, **options):
    return et.MetaForestRegressor(**({"n_estimators": 5, "random_state": 0} | options)).fit(X, y)


def sizes(model: et.MetaForestRegressor) -> list[int]:
    return [post.tree.n_nodes for post in model.posteriors_]


def test_trees_of_noise_are_smaller_after_the_first_ones():
    X, y = table(1.0)
    auto, one, two = (sizes(forest(X, y, min_samples_leaf=fewest)) for fewest in ("auto", 1, 2))
    assert auto == one[:N_FIRST_TREES] + two[N_FIRST_TREES:]
    assert max(auto[N_FIRST_TREES:]) < 0.6 * min(one)


@pytest.mark.parametrize(("noise", "n"), [(0.01, N), (1.0, LONG_TABLE)], ids=["hardly noise", "short table"])
def test_leaves_of_one_row_stay(noise, n):
    X, y = table(noise, n)
    assert sizes(forest(X, y)) == sizes(forest(X, y, min_samples_leaf=1))


def test_classes_keep_leaves_of_one_row():
    X, y = table(1.0)
    models = (
        et.MetaForestClassifier(n_estimators=3, random_state=0, min_samples_leaf=fewest).fit(X, y > 1.0)
        for fewest in ("auto", 1)
    )
    first, second = ([post.tree.n_nodes for post in model.posteriors_] for model in models)
    assert first == second


def test_leaves_do_not_depend_on_threads_nor_on_growing_in_two_steps():
    X, y = table(1.0)
    once = forest(X, y)
    assert sizes(forest(X, y, n_jobs=3)) == sizes(once)
    for n_before in (1, 3):
        model = forest(X, y, n_estimators=n_before, warm_start=True).set_params(n_estimators=5).fit(X, y)
        assert sizes(model) == sizes(once)
