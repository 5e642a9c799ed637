"""Estimators of survival curves: what they answer, shards of hospitals, files, bad input, scores and noise."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import everytree as et
from cases import rng_for

KINDS = (et.MetaForestRegressor, et.MetaTreeRegressor)
kinds = pytest.mark.parametrize("kind", KINDS)


def rows_of(n, what="", *, noise=False, late=False):
    """Weibull times that depend on two columns, about a third of them censored."""
    rng = rng_for("survival curves", what, n)
    X = rng.normal(size=(n, 4))
    risk = 0.0 if noise else X[:, 0] + (X[:, 1] > 0.0)
    time, end = rng.weibull(1.4, n) * np.exp(-risk / 1.4), rng.exponential(1.5, n)
    y, event = np.minimum(time, end), time <= end
    entry = y * rng.choice([0.0, 0.5], n) if late else None
    return X, y, {"event": event} | ({} if entry is None else {"entry": entry})


def made(kind, **options):
    small = {"n_estimators": 12} if kind is et.MetaForestRegressor else {}
    return kind(family="survival", random_state=0, n_jobs=1, **{**small, **options})


def naive_kaplan_meier(time, event, at):
    value = 1.0
    for t in np.unique(time[event & (time <= at)]):
        value *= 1.0 - (event & (time == t)).sum() / (time >= t).sum()
    return value


@kinds
def test_answers_agree_with_each_other(kind):
    X, y, data = rows_of(200)
    dist = made(kind).fit(X, y, **data).predictive(X[:20])
    times = np.linspace(0.0, 1.5 * dist.times[-1], 4001)
    curves = dist.sf(times[:, None])
    assert (np.diff(curves, axis=0) <= 0.0).all()
    assert (curves[0] == 1.0).all()
    np.testing.assert_allclose(curves + dist.cdf(times[:, None]), 1.0, atol=1e-14)
    last = dist.times[-1]
    inside = times <= last
    np.testing.assert_allclose(dist.rmst(last), np.trapezoid(curves[inside], times[inside], axis=0), rtol=2e-3)
    np.testing.assert_allclose(dist.mean(), dist.rmst(last), rtol=1e-12)
    hazard = dist.hazard(times[:, None])
    np.testing.assert_allclose(
        np.exp(-np.trapezoid(hazard[inside], times[inside], axis=0)), curves[inside][-1], rtol=0.02
    )
    density = np.exp(dist.log_prob(times[inside][:, None]))
    np.testing.assert_allclose(np.trapezoid(density, times[inside], axis=0), 1.0 - curves[inside][-1], atol=0.02)
    for level in (0.05, 0.3, 0.9, 0.999):
        found = dist.quantile(level)
        ends_above = dist.sf(last) > 1.0 - level
        assert np.isposinf(found[ends_above]).all()
        np.testing.assert_allclose(dist.cdf(found)[~ends_above], level, atol=1e-12)
    draws = dist.sample(4000, rng=0)
    np.testing.assert_allclose((draws > 0.5 * last).mean(axis=1), dist.sf(0.5 * last), atol=0.04)
    cut = np.minimum(draws, last)
    np.testing.assert_allclose(cut.std(axis=1), dist.std(), rtol=0.06)
    step = np.where(times[:, None] < 0.4 * last, dist.cdf(times[:, None]), -dist.sf(times[:, None]))[inside]
    np.testing.assert_allclose(dist.crps(0.4 * last), np.trapezoid(step**2, times[inside], axis=0), rtol=5e-3)
    part = dist[3:5]
    np.testing.assert_array_equal(part.sf(0.7), dist.sf(0.7)[3:5])


@kinds
def test_a_table_without_signal_has_the_curve_of_the_table(kind):
    _, y, data = rows_of(400, noise=True)
    found = made(kind).fit(np.zeros((400, 1)), y, **data).predictive(np.zeros((1, 1)))
    for at in np.quantile(y, [0.2, 0.5, 0.8]):
        assert abs(found.sf(at)[0] - naive_kaplan_meier(y, data["event"], at)) < 0.02


@kinds
@pytest.mark.parametrize("late", [False, True])
def test_hospitals_apart_are_all_rows_together(kind, late):
    X, y, data = rows_of(240, late=late)
    model = made(kind).fit(X, y, **data)
    parts = np.array_split(np.random.default_rng(0).permutation(240), 3)
    shards = [model.blank().partial_fit(X[i], y[i], **{k: v[i] for k, v in data.items()}) for i in parts]
    merged = shards[0].merge(shards[1]).merge(shards[2])
    batch = model.blank().partial_fit(X, y, **data)
    times = np.linspace(0.05, 2.0, 9)[:, None]
    np.testing.assert_allclose(merged.predictive(X).sf(times), batch.predictive(X).sf(times), rtol=0.0, atol=1e-10)
    np.testing.assert_allclose(merged.log_evidence_, batch.log_evidence_, rtol=1e-10)


@kinds
def test_one_tree_without_relative_hazards_is_what_its_shards_are(kind):
    """Where rows of fit are seen as later ones are, those of fit and of all shards agree too."""
    X, y, data = rows_of(150)
    model = made(et.MetaTreeRegressor).fit(X, y, **data)
    again = model.blank().partial_fit(X, y, **data)
    np.testing.assert_allclose(again.predictive(X).sf(0.5), model.predictive(X).sf(0.5), atol=1e-10)


@kinds
def test_copies_and_files_answer_alike(kind, tmp_path):
    X, y, data = rows_of(120, late=True)
    model = made(kind).fit(X, y, **data)
    expected = model.predictive(X).sf(0.6)
    et.save(model, tmp_path / "model.et")
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), et.load(tmp_path / "model.et")):
        np.testing.assert_array_equal(other.predictive(X).sf(0.6), expected)
        assert repr(other.unseen_) == repr(model.unseen_)
        assert other.partial_fit(X[:50], y[:50] + 0.01, **{k: v[:50] for k, v in data.items()}) is other


@kinds
def test_structured_targets_names_and_weights(kind):
    X, y, data = rows_of(100)
    both = np.array(list(zip(data["event"], y, strict=True)), dtype=[("dead", bool), ("time", float)])
    expected = made(kind).fit(X, y, **data).predictive(X[:5]).sf(0.5)
    np.testing.assert_array_equal(made(kind).fit(X, both).predictive(X[:5]).sf(0.5), expected)
    np.testing.assert_array_equal(made(kind).fit(X, y, censored=1 - data["event"]).predictive(X[:5]).sf(0.5), expected)
    weight = np.r_[np.ones(100), np.zeros(20)]
    X2, y2 = np.vstack([X, np.zeros((20, 4))]), np.r_[y, np.ones(20)]
    event = np.r_[data["event"], np.ones(20, dtype=bool)]
    found = made(kind).fit(X2, y2, weight, event=event).predictive(X[:5]).sf(0.5)
    np.testing.assert_allclose(found, expected, atol=0.1)


def test_entries_correct_curves():
    """Rows that are seen only if they last: without their entries, curves would be far too high."""
    rng = rng_for("entries")
    time, entry = rng.exponential(1.0, 6000), rng.uniform(0.0, 2.0, 6000)
    kept = time > entry
    X, y, entry = np.zeros((kept.sum(), 1)), time[kept], entry[kept]
    found = made(et.MetaTreeRegressor).fit(X, y, event=np.ones(len(y)), entry=entry).predictive(X[:1])
    without = made(et.MetaTreeRegressor).fit(X, y, event=np.ones(len(y))).predictive(X[:1])
    for at in (0.5, 1.0, 2.0):
        assert abs(found.sf(at)[0] - np.exp(-at)) < 0.05
    assert without.sf(1.0)[0] > np.exp(-1.0) + 0.1


def test_unseen_scores_and_scorers_agree_with_fresh_rows():
    X, y, data = rows_of(900)
    model = made(et.MetaForestRegressor, n_estimators=30).fit(X, y, **data)
    X_new, y_new, new = rows_of(1500, "fresh")
    said, found = model.unseen_, -et.scorers.integrated_brier()(model, X_new, y_new, **new)
    assert abs(said.brier - found) < 0.02
    assert said.brier < said.baseline_brier - 0.02
    assert abs(said.concordance - et.scorers.concordance()(model, X_new, y_new, **new)) < 0.03
    uno = et.scorers.concordance(1.0, weighted=True)(model, X_new, y_new, **new)
    assert 0.6 < uno < 0.9
    assert "Brier" in repr(said)


@pytest.mark.parametrize("seed", range(3))
def test_noise_is_no_worse_than_one_curve(seed):
    X, y, data = rows_of(200, seed, noise=True)
    X_new, y_new, new = rows_of(1500, ("fresh", seed), noise=True)
    model = made(et.MetaForestRegressor, n_estimators=30).fit(X, y, **data)
    alike = made(et.MetaTreeRegressor).fit(np.zeros((200, 1)), y, **data)
    brier = et.scorers.integrated_brier()
    assert brier(model, X_new, y_new, **new) > brier(alike, 0 * X_new[:, :1], y_new, **new) - 0.01
    assert model.log_scores(X_new, y_new, **new).mean() > alike.log_scores(0 * X_new[:, :1], y_new, **new).mean() - 0.02


@kinds
def test_tables_with_little_to_learn(kind):
    X, y, data = rows_of(30)
    with pytest.warns(UserWarning, match="censored"):
        none = made(kind).fit(X, y, event=np.zeros(30))
    assert np.isfinite(none.predict(X)).all()
    one = np.zeros(30)
    one[3] = 1
    assert np.isfinite(made(kind).fit(X, y, event=one).predict(X)).all()
    ties = made(kind).fit(X, np.minimum(np.ceil(3 * y), 3.0), **data).predictive(X)
    assert ((ties.sf(1.0) >= 0.0) & (ties.sf(1.0) <= 1.0)).all()
    late = made(kind).fit(X, np.where(np.arange(30) < 15, y, y.max()), event=np.ones(30)).predictive(X)
    assert (late.sf(y.max()) < 1.0).all()
    assert np.isfinite(made(kind).fit(X[:1], y[:1], event=[1]).predict(X)).all()


@kinds
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": -1.0}, r"y.*row 2.*times from 0 on|y.*times"),
        ({"entry": 9.0}, r"entry.*before the time of the row"),
        ({"event": 2.0}, r"event.*0 or 1"),
        ({"exposure": 1.0}, r"exposure.*poisson"),
    ],
)
def test_impossible_rows_are_refused_by_name(kind, change, message):
    X, y, data = rows_of(20)
    given = {"y": y.copy(), "event": data["event"].astype(float)}
    for name, value in change.items():
        given[name] = given.get(name, np.zeros(20)).copy()
        given[name][2] = value
    with pytest.raises(ValueError, match=message):
        made(kind).fit(X, **given)


def test_what_there_is_not_is_refused_by_name():
    X, y, data = rows_of(60)
    model = made(et.MetaForestRegressor).fit(X, y, **data)
    with pytest.raises(ValueError, match="tau"):
        model.predictive(X[:2]).rmst(1e9)
    with pytest.raises(ValueError, match="kind"):
        model.predictive(X[:2]).interval(0.9, "hdi")
    with pytest.raises(ValueError, match="oob_score"):
        made(et.MetaForestRegressor, oob_score=True).fit(X, y, **data)
    with pytest.raises(ValueError, match="weights"):
        made(et.MetaForestRegressor, weights="stacking").fit(X, y, **data)
    with pytest.raises(ValueError, match="survival curves"):
        et.export.to_tables(model)
    assert model.effect(0, X).mean.shape[0] > 1
