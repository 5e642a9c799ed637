"""Split conformal prediction against its definition, its groups and categories, and what it refuses."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import everytree as et
from cases import rng_for
from everytree.conformal.guarantee import Guarantee, threshold
from everytree.conformal.scores import random_shares, ranked_scores, tail_interval, tail_scores

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

FAMILIES = {
    "normal": lambda rng, n: rng.normal(size=n),
    "lognormal": lambda rng, n: np.exp(rng.normal(size=n)),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "poisson": lambda rng, n: rng.poisson(2.0, n).astype(float),
    "geometric": lambda rng, n: rng.geometric(0.4, n) - 1.0,
    "histogram": lambda rng, n: np.where(rng.random(n) < 0.3, 0.0, rng.normal(size=n)),
}


@pytest.mark.parametrize("n", [1, 9, 19, 20, 57])
def test_the_threshold_is_the_order_statistic_of_the_theorem(n):
    scores = rng_for("threshold", n).permutation(n) + 0.5
    for percent in range(1, 100):
        place = -(-(n + 1) * Fraction(percent, 100) // 1)  # the smallest rank with so large a share
        if place <= n:
            assert threshold(scores, percent / 100) == place - 0.5
        else:
            with pytest.raises(ValueError, match="largest coverage possible"):
                threshold(scores, percent / 100)


@pytest.mark.parametrize("family", FAMILIES)
def test_intervals_are_the_targets_of_a_score_or_less(family):
    rng = rng_for("tails", family)
    X, y = rng.normal(size=(150, 2)), FAMILIES[family](rng, 150)
    model = et.MetaForestRegressor(family=family, n_estimators=10, random_state=0).fit(X, y)
    dist = model.predictive(X[:40])
    for score in (0.1, 0.3, 0.45, *tail_scores(dist, y[:40])[:5]):
        low, high = tail_interval(dist, score).T
        step = np.maximum(1e-6 * np.abs(high - low), 1e-9) if family not in ("poisson", "geometric") else 1.0
        for end, out in ((low, -step), (high, step)):
            assert (tail_scores(dist, end) <= score + 1e-8).all()
            assert (tail_scores(dist, end + out) > score - 1e-8).all()
    own = tail_scores(dist, y[:40])
    for row in range(40):
        low, high = tail_interval(dist[[row]], own[row])[0]
        assert low <= y[row] <= high


def test_scores_of_classes_by_their_definition():
    rng = rng_for("ranked")
    probs, share = rng.dirichlet(np.ones(4), 30), rng.random(30)
    literal = [
        [sum(p for p in row if p > own) + u * own for own in row] for row, u in zip(probs, share, strict=True)
    ]  # fmt: skip
    np.testing.assert_allclose(ranked_scores(probs, share), literal, rtol=1e-14)


def test_random_shares_are_uniform_and_of_the_row_alone():
    codes = rng_for("shares").integers(0, 200, (20_000, 3)).astype(np.uint8)
    share = random_shares(codes, 7)
    assert (share >= 0.0).all()
    assert (share < 1.0).all()
    np.testing.assert_allclose(np.histogram(share, 10)[0], 2000, atol=200)
    np.testing.assert_array_equal(random_shares(codes[5:9], 7), share[5:9])
    assert abs(np.corrcoef(share, random_shares(codes, 8))[0, 1]) < 0.03


def table(rng, n):
    X = pd.DataFrame({"a": rng.normal(size=n), "site": rng.choice(["north", "south"], n, p=[0.8, 0.2])})
    return X, X["a"] + np.where(X["site"] == "south", 10.0, 1.0) * rng.normal(size=n)


def test_coverage_within_categories():
    """The model does not know the site; over all rows it is covered, but hardly where there is most noise."""
    rng = rng_for("within")
    X, y = table(rng, 400)
    model = et.MetaTreeRegressor(random_state=0).fit(X[["a"]].assign(site="north"), y)
    (X_known, y_known), (X_new, y_new) = table(rng, 4000), table(rng, 8000)
    south = (X_new["site"] == "south").to_numpy()

    def inside(**options):
        low, high = model.conformalize(X_known, y_known, **options).predict_interval(X_new, guarantee="conformal").T
        return (low <= y_new) & (y_new <= high)

    assert inside()[south].mean() < 0.7
    assert inside(by="site")[south].mean() == pytest.approx(0.9, abs=0.03)
    assert inside(by="site")[~south].mean() == pytest.approx(0.9, abs=0.03)
    assert "within each site" in str(model.guarantee_)


def test_coverage_within_classes():
    rng = rng_for("classes")
    y = (rng.random(6000) < 0.1).astype(int)
    X = (y + 0.8 * rng.normal(size=6000))[:, None]
    model = et.MetaTreeClassifier(random_state=0).fit(X[:1000], y[:1000]).conformalize(X[1000:3000], y[1000:3000])
    own = np.arange(3000), y[3000:]
    rare = y[3000:] == 1
    assert model.predict_set(X[3000:])[own][rare].mean() < 0.8
    assert model.predict_set(X[3000:], each_class=True)[own][rare].mean() == pytest.approx(0.9, abs=0.06)


def test_one_row_of_each_group_counts():
    rng = rng_for("groups")
    patient = np.repeat(np.arange(60), 5)
    X = rng.normal(size=(60, 2))[patient]
    y = rng.normal(size=60)[patient] + 0.01 * rng.normal(size=300)
    model = et.MetaForestRegressor(n_estimators=5, random_state=0).fit(X, y, groups=patient, calibration_rows=1 / 3)
    assert model.guarantee_.n_rows == 20
    names = pd.Series(patient, name="patient")
    of_halves = model.conformalize(X, y + 1.0, groups=names)
    assert of_halves.guarantee_.n_rows == 60


def test_classes_that_the_model_has_not_seen_are_never_inside():
    rng = rng_for("unseen class")
    X, y = rng.normal(size=(60, 2)), np.array(["a", "b"])[rng.integers(0, 2, 60)]
    model = et.MetaTreeClassifier(random_state=0).fit(X, y)
    new = np.where(np.arange(60) < 20, "c", y)
    assert model.conformalize(X + 0.1, new).predict_set(X, 0.7).all()  # a third of the rows is lost already


def test_what_is_refused():
    rng = rng_for("refused")
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    model = et.MetaForestRegressor(n_estimators=5, random_state=0).fit(X[:40], y[:40])
    with pytest.raises(AttributeError, match="no rows behind a guarantee: set rows aside"):
        model.predict_interval(X, guarantee="conformal")
    with pytest.raises(AttributeError, match="no rows behind a guarantee"):
        _ = model.guarantee_
    with pytest.raises(ValueError, match="was fitted to these rows"):
        model.conformalize(X[39::-1], y[39::-1])
    with pytest.raises(ValueError, match="by is 'site', but must be a column of X"):
        model.conformalize(X[40:], y[40:], by="site")
    for wrong in (0, 1.0, -3, 60, "half", True):
        with pytest.raises(ValueError, match="must be a share between 0 and 1, or a number from 1 to 59"):
            model.fit(X, y, calibration_rows=wrong)
    with pytest.raises(ValueError, match="one column of targets"):
        model.fit(X, np.column_stack([y, y]), calibration_rows=0.5)
    model.conformalize(X[40:], y[40:])
    with pytest.raises(ValueError, match="guarantee must be None or 'conformal'"):
        model.predict_interval(X, guarantee="exact")
    with pytest.raises(ValueError, match=r"coverage is 0.96, but with 20 calibration rows 0.952381 is the largest"):
        model.predict_interval(X, 0.96, guarantee="conformal")
    assert not hasattr(model.partial_fit(X[:5] + 1.0, y[:5]), "guarantee_")
    assert not hasattr(model.blank(), "guarantee_")


def test_categories_without_calibration_rows_are_refused():
    rng = rng_for("no rows")
    X, y = table(rng, 60)
    model = et.MetaTreeRegressor(random_state=0).fit(X, y)
    X_known = table(rng, 30)[0].assign(site=["north"] * 25 + ["south"] * 5)
    model.conformalize(X_known, X_known["a"], by="site")
    with pytest.raises(ValueError, match=r"5 calibration rows where site is 'south' 0.833333 is"):
        model.predict_interval(X, guarantee="conformal")
    with pytest.raises(ValueError, match="row 1: 'east', but no calibration row has this value"):
        model.predict_interval(X[:2].assign(site=["north", "east"]), guarantee="conformal")


def test_times_cut_short_are_refused():
    rng = rng_for("cut short")
    X, y = rng.normal(size=(60, 2)), rng.exponential(size=60)
    for family in ("exponential", "survival"):
        model = et.MetaForestRegressor(family=family, n_estimators=5, random_state=0)
        with pytest.raises(ValueError, match="censored leaves targets unknown"):
            model.fit(X, y, event=rng.random(60) < 0.5, calibration_rows=0.5)


def test_exposures_count():
    rng = rng_for("exposures")
    X, exposure = rng.normal(size=(900, 2)), rng.uniform(1.0, 20.0, 900)
    y = rng.poisson(exposure).astype(float)
    model = et.MetaForestRegressor(family="poisson", n_estimators=10, random_state=0)
    model.fit(X[:600], y[:600], exposure=exposure[:600], calibration_rows=0.5)
    low, high = model.predict_interval(X[600:], exposure=exposure[600:], guarantee="conformal").T
    assert np.corrcoef(high - low, exposure[600:])[0, 1] > 0.8
    assert ((low <= y[600:]) & (y[600:] <= high)).mean() > 0.85


def test_a_guarantee_says_what_is_promised():
    proved = Guarantee("A theorem", "a row is covered", 20)
    about = Guarantee("Another", "a row is covered", 20, errors=2, slack=0.01, unproved="a bin has seen all rows")
    assert (proved.is_proved, about.is_proved) == (True, False)
    assert proved.promised(0.9) == pytest.approx(0.9)
    assert about.promised(0.9) == pytest.approx(0.79)
    assert str(about) == "Another by 20 rows: a row is covered. Approximate: a bin has seen all rows."
