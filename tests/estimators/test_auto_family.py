"""`family="auto"`: the leaf model is chosen by rows that trees were not grown on."""

from __future__ import annotations

import numpy as np
import pytest

import everytree as et
from cases import rng_for
from everytree.families.registry import NUMBER_FAMILIES, candidates, families_of_targets

TARGETS = {
    "normal": lambda rng, s: s + rng.normal(size=len(s)),
    "histogram": lambda rng, s: np.clip(np.round(4.0 + s + 0.7 * rng.normal(size=len(s))), 2.0, 6.0) - 3.0,
    "hurdle_gamma": lambda rng, s: np.where(rng.random(len(s)) < 0.5, 0.0, rng.gamma(2.0, 50.0 * np.exp(s))),
}


def draw(family: str, n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = rng_for("auto", family)
    X = rng.normal(size=(n, 3))
    return X, TARGETS[family](rng, np.sign(X[:, 0]))


@pytest.mark.parametrize("family", TARGETS)
def test_the_family_of_the_targets_is_found(family, tmp_path):
    X, y = draw(family)
    model = et.MetaForestRegressor(6, family="auto", random_state=0).fit(X, y)
    assert model.family_ == family or (family == "hurdle_gamma" and model.family_.startswith("hurdle_"))
    same = et.MetaForestRegressor(6, family=model.family_, random_state=0).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    et.save(model, tmp_path / "model.et")
    loaded = et.load(tmp_path / "model.et")
    assert loaded.family == "auto"
    assert loaded.family_ == model.family_
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_boosting_chooses_among_what_it_can_boost():
    X, y = draw("histogram")
    model = et.MetaBoostRegressor(family="auto", max_iter=5, n_residual_trees=5, random_state=0).fit(X, y)
    assert model.family_ == "histogram"
    assert NUMBER_FAMILIES[model.family_].link is not None


@pytest.mark.parametrize(
    ("y", "row_names", "expected"),
    [
        ([-1.5, 2.0], (), {"normal", "histogram"}),
        ([0.5, 2.0], (), {"normal", "histogram", "lognormal", "gamma", "weibull"}),
        ([0.0, 2.5], (), {"normal", "histogram", "hurdle_lognormal", "hurdle_gamma", "hurdle_weibull"}),
        ([1.0, 2.0], ("exposure",), {"poisson", "negative_binomial"}),
        ([1.0, 2.5], ("censored",), {"weibull"}),
    ],
)
def test_the_families_that_are_tried(y, row_names, expected):
    assert set(candidates(families_of_targets(), np.array(y), row_names)) == expected


def test_a_prior_is_that_of_one_family():
    X, y = draw("normal", 40)
    with pytest.raises(ValueError, match="prior is that of one family, but family is 'auto'"):
        et.MetaForestRegressor(4, family="auto", prior={"strength": 1.0}).fit(X, y)
