"""Boosted estimators: what they learn, what they refuse, and that nothing but the rows decides."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, make_friedman1
from sklearn.metrics import log_loss

import everytree as et
from estimator_cases import Case, answers, ids, of_prediction
from everytree.fitting.structures import boost

SMALL: dict[str, Any] = {"max_iter": 40}
NUMBERS: dict[str, Any] = {**SMALL, "n_residual_trees": 8}
CASES = [
    *(Case(et.MetaBoostClassifier, target, SMALL) for target in ("two classes", "three classes", "six classes")),
    *(
        Case(et.MetaBoostRegressor, family, {"family": family, **NUMBERS})
        for family in ("normal", "lognormal", "poisson", "exponential")
    ),
]


@pytest.mark.parametrize("case", **ids(CASES))
def test_the_number_of_threads_changes_nothing(case):
    model, (X, y, row_data) = case.fitted()
    again = clone(model).set_params(n_jobs=3).fit(X, y, **row_data)
    np.testing.assert_array_equal(answers(again, X, row_data), answers(model, X, row_data))


@pytest.mark.parametrize("case", **ids(CASES))
def test_files_and_pickles_predict_the_same(case, tmp_path):
    model, (X, _, row_data) = case.fitted()
    et.save(model, tmp_path / "model")
    for copy in (et.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(answers(copy, X, row_data), answers(model, X, row_data))
        np.testing.assert_array_equal(copy.feature_importances_, model.feature_importances_)
        assert copy.n_iter_ == model.n_iter_


@pytest.mark.parametrize("case", **ids(CASES))
def test_data_frames_are_read_as_arrays_are(case):
    model, (X, y, row_data) = case.fitted()
    frame = pd.DataFrame(X, columns=list("abcd"))
    named = clone(model).fit(frame, y, **row_data)
    np.testing.assert_array_equal(answers(named, frame, row_data), answers(model, X, row_data))
    assert named.feature_names_in_.tolist() == list("abcd")


@pytest.mark.parametrize("case", **ids(CASES))
def test_new_rows_are_predicted_better_than_by_the_prior(case):
    model, _ = case.fitted(400)
    X, y, row_data = case.draw(400, "new")
    if hasattr(model, "classes_"):
        share = np.unique(y, return_counts=True)[1] / len(y)
        assert log_loss(y, model.predict_proba(X)) < 0.97 * log_loss(y, np.tile(share, (len(y), 1)))
        return
    constant = clone(model).fit(np.zeros((400, 1)), y, **row_data)
    score = model.log_scores(X, y, **row_data).mean()
    assert score > constant.log_scores(np.zeros((400, 1)), y, **row_data).mean() + 0.01


@pytest.mark.parametrize("case", **ids(CASES[3:]))
def test_distributions_are_whole(case):
    model, (X, _, row_data) = case.fitted()
    dist = model.predictive(X[:20], **{name: values[:20] for name, values in of_prediction(row_data).items()})
    middle = dist.quantile([0.1, 0.5, 0.9])
    assert (np.diff(middle, axis=1) >= 0.0).all()
    if case.target == "poisson":
        return
    np.testing.assert_allclose(dist.cdf(middle.T), np.tile([[0.1], [0.5], [0.9]], 20), rtol=1e-8)
    np.testing.assert_allclose(dist.sf(middle.T), 1.0 - dist.cdf(middle.T), rtol=1e-8)
    step = 1e-5 * dist.quantile(0.5)
    slope = (dist.cdf(middle[:, 1] + step) - dist.cdf(middle[:, 1] - step)) / (2.0 * step)
    np.testing.assert_allclose(np.exp(dist.log_prob(middle[:, 1])), slope, rtol=1e-4)
    grid = (np.arange(400) + 0.5) / 400
    by_quantiles = dist[:3].quantile(grid)
    y = middle[:3, 2]
    literal = (np.abs(by_quantiles - y[:, None])).mean(axis=1) - 2.0 * (by_quantiles * (grid - 0.5)).mean(axis=1)
    np.testing.assert_allclose(dist[:3].crps(y), literal, rtol=0.02)
    draws = dist[:3].sample(4000, rng=0)
    np.testing.assert_allclose(np.median(draws, axis=1), middle[:3, 1], rtol=0.2, atol=0.1)


def test_means_are_those_of_the_distributions():
    for case in CASES[3:]:
        model, (X, _, row_data) = case.fitted()
        given = of_prediction(row_data)
        mean, std = model.predict(X, return_std=True, **given)
        dist = model.predictive(X, **given)
        np.testing.assert_allclose(mean, dist.mean(), rtol=1e-9)
        np.testing.assert_allclose(std, dist.std(), rtol=1e-7)


def test_smooth_targets_are_where_boosting_wins():
    X, y = make_friedman1(600, noise=1.0, random_state=0)
    scores = [
        kind(random_state=0).fit(X[:400], y[:400]).predictive(X[400:]).crps(y[400:]).mean()
        for kind in (et.MetaBoostRegressor, et.MetaForestRegressor)
    ]
    assert scores[0] < 0.75 * scores[1]


def test_more_bins_than_a_byte_holds_beside_columns_of_few_values():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, (600, 2)).astype(float)
    y = X[:, 0] + 0.1 * X[:, 1] + rng.normal(size=600)
    coarse, fine = (
        et.MetaBoostRegressor(20, max_bins=bins, random_state=0, n_residual_trees=8, generate=None).fit(X, y)
        for bins in (255, 2000)
    )
    np.testing.assert_array_equal(fine.predict(X), coarse.predict(X))


def test_exposure_scales_the_mean():
    model, (X, _, row_data) = CASES[5].fitted()
    once, twice = (model.predict(X, exposure=times * row_data["exposure"]) for times in (1.0, 2.0))
    np.testing.assert_allclose(twice, 2.0 * once, rtol=1e-9)


def test_weights_of_zero_are_absent_rows():
    X, y = load_iris(return_X_y=True)
    weight = (np.arange(150) % 3 > 0).astype(float)
    model = et.MetaBoostClassifier(30, random_state=0)
    few = clone(model).fit(X[weight > 0.0], y[weight > 0.0]).predict_proba(X)
    np.testing.assert_allclose(clone(model).fit(X, y, sample_weight=weight).predict_proba(X), few, atol=0.2)


def test_methods_that_boosting_does_not_have_say_why():
    model = et.MetaBoostClassifier()
    for name in ("partial_fit", "merge", "blank", "log_evidence_"):
        assert not hasattr(model, name)
        with pytest.raises(AttributeError, match=f"has no {name}: .* MetaForestClassifier has it"):
            getattr(model, name)


# ---- few rows, odd rows ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_rows", [1, 2, 3, 7])
def test_a_few_rows(n_rows):
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 2))
    probs = et.MetaBoostClassifier(5, random_state=0).fit(X, np.arange(n_rows) % 2).predict_proba(X)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    mean = et.MetaBoostRegressor(5, random_state=0, n_residual_trees=8).fit(X, rng.normal(size=n_rows)).predict(X)
    assert np.isfinite(mean).all()


def test_one_class_is_certain():
    probs = et.MetaBoostClassifier(5).fit(np.arange(9.0)[:, None], ["a"] * 9).predict_proba([[3.0]])
    np.testing.assert_array_equal(probs, [[1.0]])


def test_a_class_with_one_row():
    X, y = load_iris(return_X_y=True)
    y = np.where(np.arange(150) == 77, 3, y)
    probs = et.MetaBoostClassifier(30, random_state=0).fit(X, y).predict_proba(X)
    assert probs.shape == (150, 4)
    assert (probs > 0.0).all()


@pytest.mark.parametrize("kind", [et.MetaBoostClassifier, et.MetaBoostRegressor])
def test_a_constant_target_and_columns_that_say_nothing(kind):
    X = np.column_stack([np.zeros(30), np.full(30, np.nan)])
    model = kind(20, random_state=0).fit(X, np.ones(30))
    np.testing.assert_allclose(model.predict(X), 1.0)


def test_separable_rows_keep_finite_scores():
    X = np.arange(60.0)[:, None]
    model = et.MetaBoostClassifier(2000, random_state=0).fit(X, X[:, 0] > 29.5)
    probs = model.predict_proba(X)
    assert np.isfinite(np.log(probs)).all()
    assert model.score(X, X[:, 0] > 29.5) == 1.0


def test_unknown_categories_are_predicted_by_the_node_above():
    frame = pd.DataFrame({"c": pd.Categorical(list("abcd") * 20), "x": np.arange(80.0)})
    model = et.MetaBoostClassifier(30, random_state=0).fit(frame, frame["c"].isin(["a", "b"]))
    new = pd.DataFrame({"c": pd.Categorical(["a", "d", "new"]), "x": [1.0, 1.0, np.nan]})
    probs = model.predict_proba(new)[:, 1]
    assert probs[1] < probs[2] < probs[0]


def test_chains_leave_out_whole_groups():
    """Every row of a patient has the same random target, which only another row of the patient can tell."""
    rng = np.random.default_rng(0)
    patient = np.repeat(np.arange(60), 5)
    X, y = np.column_stack([patient, rng.normal(size=300)]), rng.integers(0, 2, 60)[patient]
    model = et.MetaBoostClassifier(200, random_state=0)
    alone = clone(model).fit(X, y).predict_proba(X)
    together = clone(model).fit(X, y, groups=patient).predict_proba(X)
    assert log_loss(y, together) > log_loss(y, alone) + 0.2


@pytest.mark.parametrize(("options", "message"), [
    ({"max_iter": 0}, "max_iter"), ({"n_chains": 1}, "n_chains"), ({"learning_rate": 0.0}, "learning_rate"),
    ({"max_leaf_nodes": 1}, "max_leaf_nodes"), ({"max_depth": 0}, "max_depth"), ({"split_prior": 0.0}, "split_prior"),
    ({"split_prior": "best"}, "split_prior"), ({"subsample": 1.5}, "subsample"), ({"max_features": "sqrt"}, "max_feat"),
    ({"min_samples_leaf": 0.5}, "min_samples_leaf"), ({"n_iter_no_change": 0}, "n_iter_no_change"),
    ({"calibration": "no"}, "calibration"), ({"class_weight": "even"}, "class_weight"), ({"max_bins": 1}, "max_bins"),
])  # fmt: skip
def test_parameters_that_are_refused(options, message):
    X, y = load_iris(return_X_y=True)
    with pytest.raises((ValueError, TypeError), match=message):
        et.MetaBoostClassifier(**options).fit(X, y)


@pytest.mark.parametrize("family", ["linear", "geometric", "hurdle_gamma", 3])
def test_families_that_are_not_boosted(family):
    with pytest.raises(ValueError, match="family must be one of"):
        et.MetaBoostRegressor(family=family).fit(np.zeros((9, 1)), np.arange(9.0))


def test_class_weights_move_probabilities():
    X, y = load_breast_cancer(return_X_y=True)
    plain, heavy = (
        et.MetaBoostClassifier(40, random_state=0, class_weight=weight).fit(X[:, :3], y).predict_proba(X[:, :3])[:, 0]
        for weight in (None, {0: 5.0, 1: 1.0})
    )
    assert heavy.mean() > plain.mean() + 0.05


@pytest.mark.parametrize("kind", [et.MetaBoostClassifier, et.MetaBoostRegressor])
def test_a_model_without_trees_does_what_others_do(kind, tmp_path):
    """Where no column matters no tree is kept."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc"))
    table["y"] = rng.permutation(60) % 2
    X = table[list("abc")]
    model = kind(random_state=0).fit(X, table["y"])
    assert model.n_iter_ == 0
    assert model.feature_importances_.tolist() == [0.0, 0.0, 0.0]
    et.save(model, tmp_path / "model")
    np.testing.assert_array_equal(et.load(tmp_path / "model").predict(X), model.predict(X))
    np.testing.assert_allclose(model.explain(X[:2], scale="trees").values, 0.0)
    model.report(tmp_path / "page.html", table, target="y")


def test_forests_of_residuals_of_large_tables_are_grown_on_some_rows_and_count_all(monkeypatch):
    X, y = make_friedman1(400, noise=0.5, random_state=0)
    weight = np.random.default_rng(0).uniform(0.5, 1.5, 400)
    options: dict[str, Any] = {
        "random_state": 0,
        "max_iter": 40,
        "n_residual_trees": 8,
        "lines": False,
        "generate": None,
    }
    whole = et.MetaBoostRegressor(**options).fit(X, y, sample_weight=weight)
    monkeypatch.setattr(boost, "MAX_RESIDUAL_ROWS", 150)
    some = et.MetaBoostRegressor(**options).fit(X, y, sample_weight=weight)
    assert 75 < some.unseen_.n_rows <= 150 < whole.unseen_.n_rows
    assert some.model_.n_rows == 400
    total = [post.statistics[0] for post in some.model_.residuals.posteriors]
    np.testing.assert_allclose(total, np.tile(whole.model_.residuals.posteriors[0].statistics[0], (8, 1)), rtol=1e-9)
    spread = [float(model.predictive(X).variance().mean()) for model in (whole, some)]
    assert spread[1] == pytest.approx(spread[0], rel=0.3)


@pytest.mark.parametrize("kind", [et.MetaBoostRegressor, et.MetaEnsembleRegressor])
def test_the_forest_about_the_centres_has_the_number_of_trees_that_was_asked_for(kind):
    """As many as users have by default, and as few as are given."""
    X, y = make_friedman1(60, random_state=0)
    for given, n_trees in ({}, 100), ({"n_residual_trees": 3}, 3):
        model = kind(max_iter=5, random_state=0, **given).fit(X, y)
        assert len(model.model_.parts.residuals.posteriors) == n_trees
        assert np.isfinite(model.predictive(X).log_prob(y)).all()
    with pytest.raises(ValueError, match="n_residual_trees must be"):
        kind(n_residual_trees=0).fit(X, y)
