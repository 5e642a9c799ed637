"""Scores that know of exposure and censoring, alone and within scikit-learn's tools."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from scipy.stats import lomax
from sklearn.model_selection import cross_val_score, cross_validate

import everytree as et
from cases import rng_for


def counts(rng, n=300):
    X = rng.normal(size=(n, 3))
    exposure = np.exp(rng.normal(size=n))
    return X, rng.poisson(5.0 * exposure * np.exp(0.5 * X[:, 0])), exposure


def times(rng, n=300):
    X = rng.normal(size=(n, 3))
    y, limit = rng.exponential(np.exp(X[:, 0])), rng.exponential(2.0, n)
    return X, np.minimum(y, limit), (y > limit).astype(float)


def counter(**options):
    return et.MetaTreeRegressor(max_depth=3, family="poisson", random_state=0, **options)


def timer(**options):
    return et.MetaTreeRegressor(max_depth=3, family="exponential", random_state=0, **options)


def test_score_knows_of_exposure():
    X, y, exposure = counts(rng_for("exposure"))
    model = counter().fit(X, y, exposure=exposure)
    mean = model.predict(X, exposure=exposure)
    assert model.score(X, y, exposure=exposure) == pytest.approx(
        1 - ((y - mean) ** 2).sum() / ((y - y.mean()) ** 2).sum()
    )
    assert model.score(X, y, exposure=exposure) > 0.7


@pytest.mark.parametrize("method", ["predict", "predictive", "predict_interval", "predict_quantiles"])
def test_exposure_that_is_missing_is_said(method):
    X, y, exposure = counts(rng_for("missing"), 60)
    model = counter().fit(X, y, exposure=exposure)
    with pytest.warns(
        UserWarning, match="exposure was given to fit, but is not given here: every exposure is taken to"
    ):
        getattr(model, method)(X)
    with pytest.warns(UserWarning, match="exposure was given to fit"):
        model.score(X, y)
    getattr(model, method)(X, exposure=exposure)
    counter().fit(X, y).predict(X)  # never given, never missed


def test_score_of_times_is_the_log_score():
    X, y, censored = times(rng_for("times"))
    model = timer().fit(X, y, censored=censored)
    dist = model.predictive(X)
    expected = np.where(censored > 0, np.log(1.0 - dist.cdf(y)), dist.log_prob(y))
    np.testing.assert_allclose(model.log_scores(X, y, censored=censored), expected, rtol=1e-9)
    weight = np.arange(1.0, 301.0)
    assert model.score(X, y, weight, censored=censored) == pytest.approx(np.average(expected, weights=weight))
    with pytest.warns(UserWarning, match=r"but is not given here: every target is taken for"):
        model.score(X, y)


def test_tails_keep_their_digits():
    """One leaf with a Lomax predictive: far beyond its mean, 1 - cdf has no digits left."""
    X, y = np.zeros((2000, 1)), np.full(2000, 1.0)
    model = et.MetaTreeRegressor(family="exponential", prior={"shape": 4.0}, split_prior=0.5, random_state=0).fit(X, y)
    (shape,), (scale,) = (
        model.posterior_.family.posterior_parameters(model.posterior_.statistics)[k][:1] for k in ("shape", "rate")
    )
    far = np.full(1, 200.0)
    found = model.log_scores(X[:1], far, censored=np.ones(1))
    assert found[0] == pytest.approx(lomax(shape, scale=scale).logsf(200.0), rel=1e-10)
    assert found[0] < -100


def test_scorers_are_the_scores_of_distributions():
    rng = rng_for("scorers")
    X = rng.normal(size=(200, 2))
    y = X[:, 0] + rng.normal(size=200)
    model = et.MetaTreeRegressor(random_state=0).fit(X, y)
    dist, weight = model.predictive(X), rng.random(200)
    assert et.scorers.log_score(model, X, y) == pytest.approx(dist.log_prob(y).mean())
    assert et.scorers.crps(model, X, y, weight) == pytest.approx(-np.average(dist.crps(y), weights=weight))
    low, high = dist.interval(0.8).T
    missed = np.maximum(low - y, 0) + np.maximum(y - high, 0)
    assert et.scorers.interval_score(0.8)(model, X, y) == pytest.approx(-(high - low + 10.0 * missed).mean())
    scores = cross_validate(model, X, y, scoring={"crps": et.scorers.crps, "log": et.scorers.log_score}, cv=3)
    assert (scores["test_crps"] < 0).all()
    labels = (y > 0).astype(int)
    classifier = et.MetaTreeClassifier(random_state=0).fit(X, labels)
    expected = np.log(classifier.predict_proba(X)[np.arange(200), labels]).mean()
    assert et.scorers.log_score(classifier, X, labels) == pytest.approx(expected)


def test_metadata_are_routed_to_fit_and_score():
    rng = rng_for("routed")
    X, y, exposure = counts(rng)
    with sklearn.config_context(enable_metadata_routing=True):
        model = counter().set_fit_request(exposure=True, groups=True).set_score_request(exposure=True)
        params = {"exposure": exposure, "groups": np.arange(300) // 2}
        own = cross_val_score(model, X, y, cv=3, params=params)
        scorer = et.scorers.log_score.set_score_request(exposure=True)
        logs = cross_val_score(
            counter().set_fit_request(exposure=True), X, y, cv=3, scoring=scorer, params={"exposure": exposure}
        )
    assert own.min() > 0.5
    with sklearn.config_context(enable_metadata_routing=True):
        blind = counter().set_fit_request(exposure=False).set_score_request(exposure=False)
        assert logs.mean() > cross_val_score(blind, X, y, cv=3, scoring=et.scorers.log_score).mean()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda m, X, y, c: et.scorers.crps(m, X, y, censored=c), "crps needs the target itself"),
        (lambda m, X, y, c: et.scorers.interval_score()(m, X, y, censored=c), "interval_score needs the target itself"),
        (lambda m, X, y, c: et.scorers.log_score(m, X, y, colour=c), "log_score takes no 'colour'"),
        (lambda m, X, y, c: et.scorers.log_score.set_score_request(colour=True), "log_score takes no 'colour'"),
        (lambda m, X, y, c: et.scorers.interval_score(1.0), r"coverage must be in \(0, 1\), but is 1.0"),
        (lambda m, X, y, c: m.score(X, y[:-1], censored=c), "censored has 40 entries, but X has 39 rows"),
        (lambda m, X, y, c: m.score(X, y, exposure=c, censored=c), "exposure is for family='poisson'"),
    ],
)
def test_scores_that_there_are_not(call, match):
    X, y, censored = times(rng_for("none"), 40)
    model = timer().fit(X, y, censored=censored)
    with pytest.raises((TypeError, ValueError), match=match):
        call(model, X, y, censored)


def test_classes_have_no_crps():
    model = et.MetaTreeClassifier(random_state=0).fit(np.arange(10.0)[:, None], np.arange(10) % 2)
    with pytest.raises(TypeError, match="predicts classes; for those use log_score"):
        et.scorers.crps(model, np.arange(10.0)[:, None], np.arange(10) % 2)
