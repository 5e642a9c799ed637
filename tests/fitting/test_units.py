"""The unit of the target does not matter: a model of y * 1000 says a thousand times what that of y says."""

from __future__ import annotations

import numpy as np
import pytest

import everytree as et
from everytree.fitting.targets.units import standardised

N = 150


def table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Columns with ties, and a target: rounded or not, with a long tail or not."""
    rng = np.random.default_rng(3)
    X = np.column_stack([rng.normal(size=(N, 3)), rng.integers(0, 4, (N, 2))]).round(1)
    y = X[:, 0] + 0.5 * X[:, 3] + 0.4 * rng.normal(size=N)
    return X, {"rounded": y.round(1), "long tail": np.exp(2.0 * y), "smooth": y}[name]


MODELS = {
    "forest": (lambda: et.MetaForestRegressor(6, random_state=0), ("smooth", "rounded", "long tail")),
    "tree": (lambda: et.MetaTreeRegressor(random_state=0), ("smooth",)),
    "evidence": (lambda: et.MetaForestRegressor(4, criterion="evidence", random_state=0), ("smooth",)),
    "lognormal": (lambda: et.MetaForestRegressor(4, family="lognormal", random_state=0), ("long tail",)),
    "linear": (lambda: et.MetaTreeRegressor(family="linear", max_depth=2, random_state=0), ("smooth",)),
    "exponential": (lambda: et.MetaForestRegressor(4, family="exponential", random_state=0), ("long tail",)),
    "ensemble": (lambda: et.MetaEnsembleRegressor(4, max_iter=20, random_state=0, n_residual_trees=8), ("smooth",)),
    "exact": (lambda: et.ExactTreeRegressor(max_depth=2, max_cuts=6), ("rounded",)),
    "boost": (
        lambda: et.MetaBoostRegressor(max_iter=30, n_chains=2, random_state=0, n_residual_trees=8),
        ("rounded", "long tail"),
    ),
}


@pytest.mark.parametrize(("model", "name"), [(model, name) for model, (_, names) in MODELS.items() for name in names])
def test_a_target_in_another_unit_gives_the_same_model(model, name):
    make, _ = MODELS[model]
    X, y = table(name)
    mean, std = make().fit(X, y).predict(X, return_std=True)
    for unit in (1000.0, 1e-3):
        other = make().fit(X, unit * y)
        other_mean, other_std = other.predict(X, return_std=True)
        np.testing.assert_allclose(other_mean / unit, mean, rtol=1e-9, atol=1e-9 * y.std())
        np.testing.assert_allclose(other_std / unit, std, rtol=1e-7)


BOOSTED = {
    "boost": lambda family: et.MetaBoostRegressor(
        max_iter=20, n_chains=2, family=family, random_state=0, n_residual_trees=8
    ),
    "ensemble": lambda family: et.MetaEnsembleRegressor(
        4, max_iter=20, family=family, random_state=0, n_residual_trees=8
    ),
}


@pytest.mark.parametrize("unit", [1e-18, 1e-15, 1e18])
@pytest.mark.parametrize("family", ["normal", "lognormal", "exponential"])
@pytest.mark.parametrize("model", BOOSTED)
def test_boosting_takes_targets_of_any_size(model, family, unit):
    """Rates of 1e15 and more were cut off, and rates of 1e18 divided by zero."""
    X, y = table("smooth" if family == "normal" else "long tail")
    levels = [0.05, 0.5, 0.95]
    quantiles, other = (BOOSTED[model](family).fit(X, c * y).predict_quantiles(X, levels) for c in (1.0, unit))
    np.testing.assert_allclose(other / unit, quantiles, rtol=1e-7, atol=1e-8 * y.std())


@pytest.mark.parametrize("unit", [1e-18, 1e18])
def test_boosting_takes_exposures_of_any_size(unit):
    X, y = table("rounded")
    exposure = np.random.default_rng(0).uniform(0.5, 2.0, N)
    counts = np.random.default_rng(1).poisson(exposure * np.exp(0.5 * y))
    mean, other = (
        BOOSTED["boost"]("poisson").fit(X, counts, exposure=c * exposure).predict(X, exposure=c * exposure)
        for c in (1.0, unit)
    )
    np.testing.assert_allclose(other, mean, rtol=1e-9)


def test_categories_are_ordered_alike():
    rng = np.random.default_rng(0)
    kinds = rng.choice(list("abcdefgh"), N).astype(object)[:, None]
    y = rng.integers(0, 3, N) / 10.0
    schemas = [et.MetaTreeRegressor(random_state=0).fit(kinds, unit * y).schema_ for unit in (1.0, 1000.0, 1e-3)]
    assert schemas[0] == schemas[1] == schemas[2]


def test_standardised_numbers_are_the_same_bits_in_any_unit():
    rng = np.random.default_rng(0)
    for numbers in (rng.normal(size=999), rng.lognormal(0, 4, 999), rng.integers(0, 9, 999) / 10.0, np.full(9, 0.3)):
        values = standardised(numbers, None)
        for unit in (1000.0, 1e-3, 3e7):
            assert np.array_equal(standardised(unit * numbers, None).values, values.values)
        assert values.centre + values.scale * values.values == pytest.approx(numbers, abs=2e-8 * values.scale)


def test_rounded_numbers_keep_their_ties():
    numbers = np.random.default_rng(0).integers(-3, 40, 300) / 10.0
    values, centre, scale = standardised(numbers, None)
    tenths = np.round(10 * numbers)
    assert len(np.unique((values - values[0])[tenths != tenths[0]] / (tenths - tenths[0])[tenths != tenths[0]])) == 1
    assert centre + scale * values == pytest.approx(numbers, abs=1e-12)


def test_one_number_far_away_does_not_make_the_others_equal():
    numbers = np.append(np.arange(50.0), 1e13)
    values = standardised(numbers, None).values
    assert len(np.unique(values)) == 51
    assert (np.diff(values) > 0.0).all()
