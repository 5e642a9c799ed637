"""The exact sum over trees and splits behind scikit-learn's surface."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris

import everytree as et
from cases import rng_for
from everytree.base.progress import Progress


def test_probabilities_are_those_of_the_posterior():
    X, y = load_iris(return_X_y=True)
    model = et.ExactTreeClassifier(max_depth=3, truncation=0.0).fit(X, y)
    codes = model.schema_.encode(X)
    np.testing.assert_allclose(model.predict_proba(X), model.posterior_.predictive(codes).probs(), atol=1e-12)
    np.testing.assert_allclose(model.predictive(X).probs(), model.predict_proba(X), atol=1e-12)
    assert model.truncation_ == 0.0
    assert model.schema_.n_codes.max() <= 8
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert again.map_tree_ == model.map_tree_


def as_a_term(tree: et.MetaTree, n_codes: np.ndarray, max_depth: int, codes: np.ndarray, y: np.ndarray) -> float:
    """log p(k) + log p(y | k) of one assignment of splits, less what its terminals do not go on below."""
    post = et.Posterior(tree, et.Bernoulli(0.5, 0.5), 0.5).update(codes, y)
    room = {0: [(0, int(n) - 1) for n in n_codes]}
    log_prior = 0.0
    for node in range(tree.n_nodes):
        own = room[node]
        if tree.is_terminal[node]:
            log_prior += np.log(0.5) if tree.depth[node] < max_depth and any(lo < hi for lo, hi in own) else 0.0
            continue
        log_prior -= np.log(sum(hi - lo for lo, hi in own))
        k, t = tree.feature[node], tree.threshold[node]
        for child, interval in enumerate([(own[k][0], t), (t + 1, own[k][1])]):
            room[tree.first_child[node] + child] = [*own[:k], interval, *own[k + 1 :]]
    return post.log_evidence + log_prior


@pytest.mark.parametrize("max_depth", [2, 3, 4])
def test_evidence_is_no_less_than_that_of_any_structure_the_growers_find(max_depth):
    X, labels = load_breast_cancer(return_X_y=True)
    y = labels == 1
    exact = et.ExactTreeClassifier(max_depth=max_depth, max_cuts=24).fit(X, y)
    codes = exact.schema_.encode(X)
    forest = et.MetaForestClassifier(25, max_depth=max_depth, random_state=0).fit(codes.astype(float), y)
    alone = et.MetaTreeClassifier(max_depth=max_depth, random_state=0).fit(codes.astype(float), y)
    n_seen = 0
    for model in (forest, alone):
        cuts = [np.asarray(column.cuts) for column in model.schema_.columns]
        for post in model.forest_.posteriors:
            tree = post.tree
            inner = ~tree.is_terminal
            splits = zip(tree.feature, tree.threshold, strict=True)
            of_code = [int(np.floor(cuts[k][t])) if k >= 0 else -1 for k, t in splits]
            same = et.MetaTree.from_arrays(
                tree.feature, tree.first_child, tree.n_children, np.where(inner, of_code, -1), n_features=codes.shape[1]
            )
            term = as_a_term(same, exact.schema_.n_codes, max_depth, codes, y)
            assert np.isfinite(term)
            assert exact.log_evidence_ >= term
            n_seen += 1
    assert n_seen == 26


def test_more_rows_are_all_rows():
    X, y = load_diabetes(return_X_y=True)
    prior = {"strength": 0.1, "shape": 2.0, "noise": 0.3}
    whole = et.ExactTreeRegressor(max_depth=2, prior=prior).fit(X, y)
    parts = et.ExactTreeRegressor(max_depth=2, prior=prior).fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    codes = parts.schema_.encode(X)
    alone = et.ExactPosterior(parts.posterior_.n_codes, parts.posterior_.family, 2, 0.5).fit(codes, y)
    assert parts.log_evidence_ == pytest.approx(alone.log_evidence, abs=1e-9)
    mean, std = whole.predict(X[:5], return_std=True)
    np.testing.assert_allclose(mean, whole.predictive(X[:5]).mean(), rtol=1e-9)
    np.testing.assert_allclose(std, whole.predictive(X[:5]).std(), rtol=1e-9)
    low, high = whole.predict_interval(X[:5]).T
    assert (low < high).all()


def test_tables_of_any_library_with_missing_and_unknown_answers():
    rng = np.random.default_rng(0)
    colour = rng.choice(["red", "green", "blue", None], 300)
    size = np.where(rng.random(300) < 0.1, np.nan, rng.normal(size=300))
    y = (colour == "red") | (np.nan_to_num(size) > 0.5)
    columns = {"colour": colour.tolist(), "size": size}
    frames = pd.DataFrame(columns), pl.DataFrame(columns, strict=False, nan_to_null=True)
    models = [et.ExactTreeClassifier(max_depth=2).fit(frame, y) for frame in frames]
    probs = [model.predict_proba(frame) for model, frame in zip(models, frames, strict=True)]
    np.testing.assert_array_equal(*probs)
    unknown = models[0].predict_proba(pd.DataFrame({"colour": ["purple"], "size": [0.0]}))
    assert np.isfinite(unknown).all()
    assert "colour" in models[0].to_text()


@pytest.mark.parametrize("make", [et.ExactTreeClassifier, et.ExactTreeRegressor])
def test_more_rows_may_have_answers_that_were_never_there_before(make):
    """The first missing value of a column, and a new category: no tree has a branch for such a row, so it is left out,
    as other models do."""
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({
        "size": rng.normal(size=200), "colour": rng.choice(["red", "blue", "green"], 200), "same": np.full(200, 3.0)
    })  # fmt: skip
    y = ((frame["size"] > 0.3) | (frame["colour"] == "red")).astype(int).to_numpy()
    more, odd = frame[:30].copy(), [2, 5, 7]
    more.loc[2, "size"], more.loc[5, "colour"], more.loc[7, "colour"] = np.nan, "purple", None
    more.loc[9, "same"] = np.nan  # never asked: the row has its place in every tree
    model = make(max_depth=2).fit(frame, y)
    before = model.log_evidence_
    model.partial_fit(more, y[:30])
    assert model.log_evidence_ != before
    known = frame[:30].drop(index=odd)
    twin = make(max_depth=2).fit(frame, y).partial_fit(known, np.delete(y[:30], odd))
    assert model.log_evidence_ == twin.log_evidence_
    for rows in (frame, more):
        np.testing.assert_array_equal(model.predict(rows), twin.predict(rows))
    assert model.to_text() == twin.to_text()
    assert model.posterior_.n_rows == 227
    model.partial_fit(more[:3], y[:3])  # and again
    assert model.posterior_.n_rows == 229
    alone = make(max_depth=2).fit(frame, y).blank().partial_fit(more[2:3], y[2:3])
    assert alone.posterior_.n_rows == 0


def test_a_missing_value_in_a_row_of_no_weight_is_no_reason_to_refuse_the_table():
    rng = np.random.default_rng(2)
    X, y, weight = rng.normal(size=(100, 3)), rng.integers(0, 2, 100), np.ones(100)
    X[4, 1], weight[4] = np.nan, 0.0
    model = et.ExactTreeClassifier(max_depth=2).fit(X, y, weight)
    without = et.ExactTreeClassifier(max_depth=2).fit(np.delete(X, 4, 0), np.delete(y, 4), np.delete(weight, 4))
    assert model.log_evidence_ == pytest.approx(without.log_evidence_, rel=1e-12)


def test_too_large_is_said_beforehand():
    X = np.random.default_rng(0).normal(size=(200, 20))
    with pytest.raises(ValueError, match=r"max_depth=6 .* regions .* fits"):
        et.ExactTreeClassifier(max_depth=6, max_cuts=140).fit(X, X[:, :9].sum(axis=1) > 0)


def test_progress_is_shown_on_standard_error_alone(capsys):
    with Progress("growing", 3, show=True) as progress:
        for _ in range(3):
            progress.step()
    out, err = capsys.readouterr()
    assert out == ""
    assert "growing" in err
    assert "3/3" in err
    with Progress("growing", 3, show=False) as progress:
        progress.step()
    assert capsys.readouterr().err == ""


def test_a_column_that_is_all_missing_is_never_split_on():
    """Unlike one of a single value and missing ones: there, missing says something."""
    rng = rng_for("all missing")
    some = np.where(rng.random(120) < 0.5, 7.0, np.nan)
    X = np.column_stack([rng.normal(size=120), np.full(120, np.nan), some])
    y = (X[:, 0] + 3.0 * np.isnan(some) + rng.normal(size=120) > 1.5).astype(int)
    model = et.ExactTreeClassifier(max_depth=2).fit(X, y)
    importance = model.feature_importances_
    assert importance[1] == 0.0
    assert importance[2] > 0.05
    known = X[:5].copy()
    known[:, 1] = 3.0
    np.testing.assert_array_equal(model.predict_proba(known), model.predict_proba(X[:5]))
