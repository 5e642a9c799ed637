"""Rows taken back from every estimator that counts rows, and what a prediction would be without them."""

from __future__ import annotations

from functools import cache
from itertools import combinations, permutations
from math import factorial

import numpy as np
import pandas as pd
import pytest
from sklearn.base import is_classifier

import everytree as et
from cases import rng_for
from every_estimator import as_targets, estimators, small, with_families

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

KINDS = estimators()
COUNTING = with_families([kind for kind in KINDS if kind.counts_rows])
counting = pytest.mark.parametrize(("kind", "family"), COUNTING)
N, GONE = 90, 30


@cache
def rows(kind, family):
    rng = rng_for("taken back", kind.__name__, family)
    X = pd.DataFrame({"a": rng.integers(0, 6, N).astype(float), "b": rng.choice(["x", "y", "z"], N)})
    X.loc[rng.random(N) < 0.1, "a"] = np.nan
    signal = X["a"].fillna(3).to_numpy() + 2 * (X["b"] == "y")
    if is_classifier(kind()):
        return X, np.where(signal + rng.normal(size=N) > 4, "more", "less")
    return X, as_targets(family, signal + rng.normal(size=N))


def blank(kind, family):
    X, y = rows(kind, family)
    return small(kind, **({} if family is None else {"family": family})).fit(X, y).blank()


def answers(model, X):
    return model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X)[:, None]


@counting
def test_forgetting_is_never_having_counted(kind, family):
    X, y = rows(kind, family)
    empty = blank(kind, family)
    left = empty.blank().partial_fit(X[GONE:], y[GONE:])
    model = empty.blank().partial_fit(X, y)
    assert model.forget(X[:10], y[:10]) is model
    model.forget(X[10:GONE], y[10:GONE])
    np.testing.assert_allclose(answers(model, X), answers(left, X), rtol=1e-9, atol=1e-10)
    assert model.log_evidence_ == pytest.approx(left.log_evidence_, rel=1e-10, abs=1e-9)
    assert model.model_.n_rows == N - GONE
    before = answers(model, X)
    with pytest.raises(ValueError, match="already"):
        model.forget(X[10:GONE], y[10:GONE])
    with pytest.raises(ValueError, match="never counted"):
        model.forget(X, y)
    np.testing.assert_array_equal(answers(model, X), before)
    with pytest.raises(AttributeError, match="taken back"):
        model.unseen_  # noqa: B018
    model.partial_fit(X[10:GONE], y[10:GONE])  # and can be counted again
    model.forget(X[10:GONE], y[10:GONE])


@counting
def test_influence_is_the_prediction_of_the_others(kind, family):
    X, y = rows(kind, family)
    model = blank(kind, family).partial_fit(X, y)
    X_new, n = X[::17], 3
    change = model.influence(X[:n], y[:n], X_new)
    now = answers(model, X_new)
    for row in range(n):
        rest = model.blank().partial_fit(X.drop(row), np.delete(y, row))
        expected = answers(rest, X_new) - now
        np.testing.assert_allclose(change[row], expected.reshape(change[row].shape), rtol=1e-7, atol=1e-9)
    together = model.influence(X[:n], y[:n], X_new, groups=["v", "u", "v"])
    assert together.shape == (2, *change.shape[1:])
    np.testing.assert_allclose(together[0], change[1], atol=1e-9)
    rest = model.blank().partial_fit(X.drop([0, 2]), np.delete(y, [0, 2]))
    np.testing.assert_allclose(together[1], (answers(rest, X_new) - now).reshape(change[0].shape), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.counts_rows], ids=lambda kind: kind.__name__)
def test_others_refuse_by_name(kind):
    for name in ("forget", "influence", "row_values"):
        with pytest.raises(AttributeError, match=f"{kind.__name__} has no {name}"):
            getattr(kind(), name)


def many_categories():
    rng = rng_for("many categories")
    X = pd.DataFrame({"shop": rng.choice([f"s{k}" for k in range(60)], 300), "a": rng.normal(size=300)})
    return X, X["a"].to_numpy() + rng.normal(size=300)


def test_rows_that_fit_coded_by_other_rows_are_refused():
    X, y = many_categories()
    model = et.MetaForestRegressor(n_estimators=4, random_state=0).fit(X, y)
    for method, given in ((model.forget, (X[:5], y[:5])), (model.influence, (X[:5], y[:5], X[:2]))):
        with pytest.raises(ValueError, match="cannot be found again"):
            method(*given)
    counted = model.blank().partial_fit(X, y)
    counted.forget(X[:5], y[:5])
    assert counted.model_.n_rows == 295


def test_what_is_known_of_rows_is_in_files(tmp_path):
    X, y = many_categories()
    model = et.MetaForestRegressor(n_estimators=4, random_state=0).fit(X, y)
    counted = model.blank().partial_fit(X[:150], y[:150]).partial_fit(X[150:], y[150:]).forget(X[150:], y[150:])
    for one in (model, counted):
        et.save(one, tmp_path / "model.et")
        again = et.load(tmp_path / "model.et")
        assert again.fitted_.is_out_of_fold == one.fitted_.is_out_of_fold
        assert list(again.fitted_.forgotten) == list(one.fitted_.forgotten)
    with pytest.raises(ValueError, match="already"):
        again.forget(X[150:], y[150:])


def test_kept_rows_are_no_longer_kept():
    rng = rng_for("kept")
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    model = et.MetaForestClassifier(n_estimators=3, random_state=0).partial_fit(X[:40], y[:40])
    model.partial_fit(X[40:41], y[40:41])
    model.forget(X[:15], y[:15])
    trees = model.forest_.trees
    model.partial_fit(X[41:], y[41:])
    assert model.forest_.trees == trees
    assert model.model_.n_rows == 45


def test_class_weights_and_weights_are_those_of_partial_fit():
    rng = rng_for("weights")
    X, y, w = rng.normal(size=(80, 2)), rng.integers(0, 2, 80), rng.uniform(0.5, 2, 80)
    empty = et.MetaForestClassifier(n_estimators=3, random_state=0, class_weight={0: 2.0, 1: 0.5}).fit(X, y).blank()
    model = empty.blank().partial_fit(X, y, sample_weight=w).forget(X[:30], y[:30], w[:30])
    rest = empty.blank().partial_fit(X[30:], y[30:], sample_weight=w[30:])
    np.testing.assert_allclose(model.predict_proba(X), rest.predict_proba(X), atol=1e-12)
    with pytest.raises(TypeError, match="exposure"):
        model.forget(X[:1], y[:1], exposure=[1.0])


def test_a_snapshot_of_an_online_forest_takes_rows_back():
    rng = rng_for("snapshot")
    rows = [({"a": float(a), "b": float(b)}, int(a > 0.5)) for a, b in rng.random((60, 2))]
    online = et.OnlineForestClassifier(n_models=3, seed=0)
    for x, label in rows:
        online.learn_one(x, label)
    model = online.snapshot()
    X, y = pd.DataFrame([x for x, _ in rows]), np.array([label for _, label in rows])
    before = model.forest_.posteriors[0].statistics.sum()
    model.forget(X[:20], y[:20])
    assert model.forest_.posteriors[0].statistics.sum() < before
    assert model.model_.n_rows == 40


# ---- values of rows -------------------------------------------------------------------------------------------------


def test_values_of_rows_are_shapley_values_of_the_log_evidence():
    """Over all orders of five rows, they are those of the definition: sums over all subsets."""
    rng = rng_for("shapley")
    X, y = rng.integers(0, 3, (40, 2)), rng.normal(size=40)
    model = et.MetaForestRegressor(n_estimators=3, random_state=0).fit(X, y)
    rows = model._counted_rows(model._given_later(X[:5], y[:5], None, {}))
    every = [np.array(order) for order in permutations(range(5))]
    found = model.model_.gains_of_rows(rows, every).mean(axis=0)

    def evidence(some):
        return model.blank().partial_fit(X[list(some)], y[list(some)]).log_evidence_ if some else 0.0

    for i in range(5):
        others, total = [k for k in range(5) if k != i], 0.0
        for size in range(5):
            for some in combinations(others, size):
                share = factorial(size) * factorial(4 - size) / factorial(5)
                total += share * (evidence(sorted([*some, i])) - evidence(some))
        assert found[i] == pytest.approx(total, rel=1e-10, abs=1e-10)


@counting
def test_values_of_rows_sum_to_the_log_evidence(kind, family):
    X, y = rows(kind, family)
    X, y = X[:12], y[:12]
    empty = blank(kind, family)
    values, errors = empty.row_values(X, y, n_passes=2, rng=0)
    assert values.sum() == pytest.approx(empty.blank().partial_fit(X, y).log_evidence_, rel=1e-9, abs=1e-9)
    assert (errors >= 0.0).all()
    np.testing.assert_array_equal(values, empty.row_values(X, y, n_passes=2, rng=0)[0])


def test_a_wrong_target_has_the_smallest_value():
    rng = rng_for("wrong")
    X = rng.normal(size=(200, 2))
    y = (X[:, 0] > 0).astype(int)
    wrong = int(np.argmax(X[:, 0]))
    y[wrong] = 0
    model = et.MetaForestClassifier(n_estimators=10, random_state=0).fit(X, y)
    values, errors = model.row_values(X, y, n_passes=4, rng=0)
    assert np.argmin(values) == wrong
    assert values[wrong] < np.sort(values)[1] - 2 * errors[wrong]
    with pytest.raises(ValueError, match="n_passes"):
        model.row_values(X, y, n_passes=1)
