"""Coverage: intervals of 90% hold 85% to 95% of fresh rows, for every regressor and family it takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import is_classifier

import noise_cases as noise
from cases import rng_for
from every_estimator import estimators, make, with_families

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.long]

REGRESSORS = [kind for kind in estimators() if not is_classifier(kind())]

CASES = with_families(REGRESSORS)

SIGNAL = {
    "normal": lambda rng, s: 3.0 * s + rng.normal(size=len(s)),
    "linear": lambda rng, s: 3.0 * s + rng.normal(size=len(s)),
    "lognormal": lambda rng, s: np.exp(s + 0.5 * rng.normal(size=len(s))),
    "poisson": lambda rng, s: rng.poisson(np.exp(1.0 + s)).astype(float),
    "exponential": lambda rng, s: rng.exponential(np.exp(s)),
    "survival": lambda rng, s: rng.weibull(1.5, len(s)) * np.exp(s),
    "histogram": lambda rng, s: 2.0 * s + rng.gamma(2.0, size=len(s)),
    "negative_binomial": lambda rng, s: rng.poisson(rng.gamma(1.0, np.exp(1.0 + s))).astype(float),
    "gamma": lambda rng, s: rng.gamma(3.0, np.exp(s)),
    "weibull": lambda rng, s: rng.weibull(2.0, len(s)) * np.exp(s),
    "hurdle_negative_binomial": lambda rng, s: np.where(
        rng.random(len(s)) < 0.5 + 0.2 * s, 0.0, 1.0 + rng.poisson(rng.gamma(1.0, np.exp(1.0 + s)))
    ),
    "hurdle_lognormal": lambda rng, s: np.where(
        rng.random(len(s)) < 0.5 + 0.2 * s, 0.0, np.exp(s + 0.5 * rng.normal(size=len(s)))
    ),
    "geometric": lambda rng, s: (rng.geometric(1.0 / (1.0 + np.exp(1.0 + s))) - 1).astype(float),
}

OTHERS = {
    "t4": lambda rng, s: 2.0 * s + rng.standard_t(4, len(s)),
    "laplace": lambda rng, s: 2.0 * s + rng.laplace(size=len(s)),
    "uniform": lambda rng, s: 2.0 * s + rng.uniform(-2.0, 2.0, len(s)),
    "skewed": lambda rng, s: 2.0 * s + rng.gamma(2.0, size=len(s)),
    "two bells": lambda rng, s: 2.0 * s + rng.normal(size=len(s)) + 4.0 * rng.integers(0, 2, len(s)),
    "spread by a column": lambda rng, s: 2.0 * s + np.exp(0.5 * s) * rng.normal(size=len(s)),
    "a spike": lambda rng, s: np.where(rng.random(len(s)) < 0.3, 0.0, 2.0 * s + rng.normal(size=len(s))),
    "steps": lambda rng, s: np.round(2.0 * s + rng.normal(size=len(s))),
    "far away": lambda rng, s: 1e6 + 2.0 * s + rng.normal(size=len(s)),
}


def held(model: Any, X: Any, y: NDArray[Any], rng: np.random.Generator) -> float:
    """Share of the targets in the middle 90% of their distributions; steps of discrete ones are shared by chance."""
    dist = model.predictive(X)
    up_to = np.where(y > getattr(dist, "times", [np.inf])[-1], 1.0, dist.cdf(y))  # survival curves end early

    below = dist.cdf(y - 1e-9 * np.maximum(np.abs(y), 1.0))
    level = below + rng.random(len(y)) * (up_to - below)
    return float(((level > 0.05) & (level < 0.95)).mean())


def coverage(kind: type[Any], family: str, law: Any, seed: int, n: int = 200) -> float:
    rng = rng_for("coverage", kind.__name__, family, seed)
    X, X_new = rng.normal(size=(n, 4)), rng.normal(size=(1000, 4))
    model = make(kind, family=family).fit(X, law(rng, np.sign(X[:, 0])))
    return held(model, X_new, law(rng, np.sign(X_new[:, 0])), rng)


@pytest.mark.parametrize(("kind", "family"), CASES)
def test_intervals_hold_what_they_say_of_their_own_law(kind, family):
    n_tables = 10 if family == "survival" else 2  # a curve without a shape varies more from table to table
    for law in (lambda rng, s: noise.TARGETS[family](rng, len(s)), SIGNAL[family]):
        assert 0.85 < np.mean([coverage(kind, family, law, seed) for seed in range(n_tables)]) < 0.95


@pytest.mark.slow
@pytest.mark.parametrize("law", OTHERS)
@pytest.mark.parametrize("kind", REGRESSORS)
def test_normal_intervals_hold_what_they_say_of_other_laws(kind, law):
    assert 0.85 < np.mean([coverage(kind, "normal", OTHERS[law], seed) for seed in range(4)]) < 0.955
