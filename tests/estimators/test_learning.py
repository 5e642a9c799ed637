"""Weights that are relative, models that share rows, models that begin with few rows, and structures that are kept."""

from __future__ import annotations

import copy

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_score

import everytree as et
import everytree.estimators.early_rows as early_rows
from cases import rng_for

ALL = [
    et.MetaForestClassifier, et.MetaTreeClassifier, et.ExactTreeClassifier, et.MetaForestRegressor,
    et.MetaTreeRegressor, et.ExactTreeRegressor,
]  # fmt: skip


def made(kind, **options):
    if "Forest" in kind.__name__:
        options = {"n_estimators": 8, **options}
    if "Exact" in kind.__name__:
        return kind(max_depth=2, **options)
    return kind(random_state=0, **options)


def table(rng, kind, n):
    X = rng.normal(size=(n, 4))
    y = X[:, 0] + 0.5 * rng.normal(size=n)
    return X, (y > 0).astype(int) if "Classifier" in kind.__name__ else y


def answers(model, X):
    return model.predict_proba(X) if hasattr(model, "classes_") else np.stack(model.predict(X, return_std=True), axis=1)


# ---- weights -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
def test_relative_weights_are_counts_that_sum_to_the_number_of_rows(kind):
    rng = rng_for("relative", kind.__name__)
    X, y = table(rng, kind, 90)
    counts = rng.permutation(np.repeat([0.0, 0.5, 1.0, 1.5], [10, 30, 20, 30]))  # 80 rows that sum to 80: no rounding
    plain = made(kind).fit(X, y, counts)
    relative = made(kind, relative_weights=True).fit(X, y, counts / 1024)
    np.testing.assert_allclose(answers(relative, X), answers(plain, X), rtol=1e-9, atol=1e-12)
    assert relative.log_evidence_ == pytest.approx(plain.log_evidence_, rel=1e-9)
    more, more_weight = table(rng, kind, 20), rng.random(20) / 1000
    relative.partial_fit(*more, sample_weight=more_weight)
    plain.partial_fit(*more, sample_weight=more_weight * 1024)
    np.testing.assert_allclose(answers(relative, X), answers(plain, X), rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="sample_weight must be given: the first rows had relative weights"):
        relative.partial_fit(*more)


@pytest.mark.parametrize("kind", ALL)
def test_weights_that_are_hardly_counts_are_said(kind):
    rng = rng_for("hardly", kind.__name__)
    X, y = table(rng, kind, 40)
    with pytest.warns(
        UserWarning, match=rf"the weights of 40 rows sum to 1: .*{kind.__name__}\(relative_weights=True\)"
    ):
        made(kind).fit(X, y, np.full(40, 1 / 40))
    made(kind).fit(X, y, np.full(40, 0.25))  # may be meant


@pytest.mark.parametrize("sample_rows", [60, 1000], ids=["sample", "all rows"])
def test_relative_weights_in_batches(sample_rows):
    rng = rng_for("relative batches", sample_rows)
    X, y = table(rng, et.MetaTreeClassifier, 200)
    weight = rng.random(200) / 1000
    batches = [(X[i : i + 50], y[i : i + 50], weight[i : i + 50]) for i in range(0, 200, 50)]
    counts = [(X, y, w * (200 / weight.sum())) for X, y, w in batches]
    relative, plain = (
        made(et.MetaTreeClassifier, relative_weights=is_relative).fit_batches(these, sample_rows=sample_rows)
        for is_relative, these in ((True, batches), (False, counts))
    )
    np.testing.assert_allclose(answers(relative, X), answers(plain, X), rtol=1e-9)


def test_relative_weights_stay_with_a_file(tmp_path):
    rng = rng_for("file")
    X, y = table(rng, et.MetaTreeClassifier, 60)
    model = made(et.MetaTreeClassifier, relative_weights=True).fit(X, y, np.full(60, 1e-3))
    et.save(model, tmp_path / "model.et")
    again = et.load(tmp_path / "model.et")
    for one in (model, again):
        one.partial_fit(X[:40], y[:40], sample_weight=np.full(40, 1e-3))
    np.testing.assert_array_equal(answers(again, X), answers(model, X))


# ---- rows that two models share -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
def test_models_that_share_a_batch_are_not_merged(kind, tmp_path):
    rng = rng_for("share", kind.__name__)
    X, y = table(rng, kind, 60)
    model = made(kind).fit(X, y)
    other = copy.deepcopy(model).partial_fit(*table(rng, kind, 30))
    et.save(other, tmp_path / "other.et")
    for twin in (other, et.load(tmp_path / "other.et")):
        before = answers(model, X)
        with pytest.raises(ValueError, match=r"counted too, and they would count twice.*blank\(\).*allow_overlap=True"):
            model.merge(twin)
        np.testing.assert_array_equal(answers(model, X), before)
    here, there = model.blank().partial_fit(X, y), model.blank().partial_fit(*table(rng, kind, 30))
    here.merge(there)  # no row twice
    with pytest.raises(ValueError, match="count twice"):
        here.merge(there)  # now it would be
    evidence = here.log_evidence_
    assert here.merge(there, allow_overlap=True).log_evidence_ != evidence


def test_single_rows_leave_no_digest():
    """A digest of a few rows could be undone by trying; models travel where their rows must not."""
    rng = rng_for("digest")
    X, y = table(rng, et.MetaTreeClassifier, 60)
    model = made(et.MetaTreeClassifier).fit(X, y)
    n = len(model.fitted_.batches)
    model.partial_fit(X[:9], y[:9])
    assert len(model.fitted_.batches) == n == 1
    model.partial_fit(np.repeat(X[:9], 2, axis=0), np.repeat(y[:9], 2))
    assert len(model.fitted_.batches) == 1
    model.partial_fit(X[:10], y[:10])
    assert len(model.fitted_.batches) == 2


@pytest.mark.parametrize("kind", ALL)
def test_a_batch_is_counted_once_in_whatever_order_unless_insisted(kind, tmp_path):
    rng = rng_for("once", kind.__name__)
    (X, y), (more_X, more_y), order = table(rng, kind, 60), table(rng, kind, 30), rng.permutation(60)
    model = made(kind).fit(X, y).partial_fit(more_X, more_y)
    et.save(model, tmp_path / "model.et")
    for same in (model, et.load(tmp_path / "model.et"), model.blank().partial_fit(X, y)):
        before = answers(same, X)
        for rows, target in ((X, y), (X[order], y[order])):
            with pytest.raises(ValueError, match=r"counted these rows already.*count twice.*allow_overlap=True"):
                same.partial_fit(rows, target)
        np.testing.assert_array_equal(answers(same, X), before)
    evidence = model.log_evidence_
    assert model.partial_fit(X[order], y[order], allow_overlap=True).log_evidence_ != evidence
    model.partial_fit(X[:30], y[:30])  # a part of a batch is another batch
    with pytest.raises(ValueError, match="count twice"):
        model.merge(model)
    n_rows = model.model_.n_rows
    assert model.merge(model, allow_overlap=True).model_.n_rows == 2 * n_rows


def test_batches_of_rare_categories_and_of_weights_are_known_again():
    """Pooled categories are coded otherwise at fit than later; rows of weight 0 are no rows."""
    rng = rng_for("rare", "once")
    X = pd.DataFrame({"town": [f"town {k}" for k in rng.integers(0, 80, 300)], "size": rng.normal(size=300)})
    y, weight = rng.integers(0, 2, 300), rng.integers(0, 3, 300).astype(float)
    model = made(et.MetaForestClassifier).fit(X, y, weight)
    assert any(column.pooled for column in model.schema_.columns)
    with pytest.raises(ValueError, match="count twice"):
        model.partial_fit(X[weight > 0.0], y[weight > 0.0], sample_weight=weight[weight > 0.0])
    model.partial_fit(X, y, sample_weight=np.ones(300))  # with other weights they are other rows
    with pytest.raises(ValueError, match="count twice"):
        model.partial_fit(X, y)


def test_first_batches_are_known_again_after_structures_are_grown_again():
    rng = rng_for("early", "once")
    X, y = table(rng, et.MetaForestClassifier, 90)
    model = made(et.MetaForestClassifier)
    for start in range(0, 90, 15):
        model.partial_fit(X[start : start + 15], y[start : start + 15], classes=np.unique(y))
    for start in range(0, 90, 15):
        with pytest.raises(ValueError, match="count twice"):
            model.partial_fit(X[start : start + 15], y[start : start + 15])


def test_passes_over_batches_leave_a_digest():
    rng = rng_for("passes")
    X, y = table(rng, et.MetaTreeClassifier, 200)
    batches = [(X[:100], y[:100]), (X[100:], y[100:])]
    model = made(et.MetaTreeClassifier).fit_batches(batches, sample_rows=50)
    with pytest.raises(ValueError, match="count twice"):
        copy.deepcopy(model).merge(model)


# ---- models that begin with few rows ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ALL)
def test_small_batches_end_as_one_table(kind):
    """When structures are grown again on the last batch, the model is that of a fit of all rows."""
    rng = rng_for("small", kind.__name__)
    X, y = table(rng, kind, 120)
    model = made(kind)
    for start in range(0, 120, 12):
        model.partial_fit(X[start : start + 12], y[start : start + 12])
        # ten per cent more rows each time, so that each batch grows structures again
    whole = made(kind).fit(X, y)
    np.testing.assert_allclose(answers(model, X), answers(whole, X), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
def test_statistics_are_those_of_all_rows_in_the_last_structures(weighted):
    rng = rng_for("last", weighted)
    X, y = table(rng, et.MetaForestRegressor, 300)
    weight = rng.choice([0.0, 0.5, 2.0], 300) if weighted else None
    model, sizes = made(et.MetaForestRegressor), rng.permutation([1, 2, 40, 3, 100, 5, 60, 89])
    ends = np.cumsum(sizes)
    for start, end in zip(ends - sizes, ends, strict=True):
        some = None if weight is None else np.maximum(weight[start:end], 0.5 * (np.arange(end - start) == 0))
        if weight is not None:
            weight[start:end] = some
        model.partial_fit(X[start:end], y[start:end], some)
    whole = model.blank().partial_fit(X, y, weight)
    np.testing.assert_allclose(answers(model, X), answers(whole, X), rtol=1e-9, atol=1e-9)
    assert model.log_evidence_ == pytest.approx(whole.log_evidence_, rel=1e-10)


def test_with_many_rows_structures_stay(monkeypatch):
    monkeypatch.setattr(early_rows, "MAX_EARLY_ROWS", 100)
    rng = rng_for("stay")
    X, y = table(rng, et.MetaForestClassifier, 400)
    model = made(et.MetaForestClassifier)
    for start in range(0, 120, 20):
        model.partial_fit(X[start : start + 20], y[start : start + 20], classes=[0, 1])
    trees, exact = model.forest_.trees, copy.deepcopy(model).partial_fit(X[120:], y[120:])
    for start in range(120, 400, 40):
        model.partial_fit(X[start : start + 40], y[start : start + 40])
    assert model.forest_.trees == trees
    assert model._early is None
    np.testing.assert_allclose(answers(model, X), answers(exact, X), rtol=1e-9)


def test_a_long_first_batch_is_a_fit(monkeypatch):
    monkeypatch.setattr(early_rows, "MAX_EARLY_ROWS", 100)
    X, y = table(rng_for("long first"), et.MetaForestClassifier, 150)
    model = made(et.MetaForestClassifier).partial_fit(X, y)
    np.testing.assert_array_equal(answers(model, X), answers(made(et.MetaForestClassifier).fit(X, y), X))
    trees = model.forest_.trees
    assert model.partial_fit(X[:120], y[:120]).forest_.trees == trees


def test_after_a_fit_structures_stay():
    rng = rng_for("after fit")
    X, y = table(rng, et.MetaForestClassifier, 200)
    model = made(et.MetaForestClassifier).fit(X[:20], y[:20])
    trees = model.forest_.trees
    assert model.partial_fit(X[20:], y[20:]).forest_.trees == trees


def test_first_rows_of_any_library_and_their_categories():
    rng = rng_for("frames")
    frame = pd.DataFrame({"size": rng.normal(size=90), "colour": rng.choice(["red", "green", "blue"], 90)})
    frame.loc[50:, "colour"] = "violet"  # a category that the first rows do not have
    y = np.where(frame["colour"] == "violet", "yes", "no")
    y[:2] = "yes"
    model = made(et.MetaTreeClassifier)
    for start in range(0, 90, 9):
        model.partial_fit(frame[start : start + 9], y[start : start + 9])
    whole = made(et.MetaTreeClassifier).fit(frame, y)
    np.testing.assert_allclose(answers(model, frame), answers(whole, frame), rtol=1e-9)
    assert list(model.feature_names_in_) == ["size", "colour"]


def test_a_first_batch_that_fails_changes_nothing():
    model = made(et.MetaTreeClassifier)
    before = dict(vars(model))
    with pytest.raises(ValueError, match="y has 2 entries, but X has 3 rows"):
        model.partial_fit(np.zeros((3, 2)), [0, 1], classes=[0, 1])
    assert vars(model) == before


# ---- structures that were imported -----------------------------------------------------------------------------------


def test_fit_keeps_imported_structures():
    X, y = load_breast_cancer(return_X_y=True)
    forest = RandomForestClassifier(5, max_depth=4, random_state=0).fit(X[:300], y[:300])
    model = et.from_sklearn(forest, random_state=0)
    filled = et.from_sklearn(forest, X[300:], y[300:], random_state=0)
    np.testing.assert_array_equal(model.fit(X[300:], y[300:]).predict_proba(X), filled.predict_proba(X))
    assert clone(model).fit(X[300:], y[300:]).forest_.trees == filled.forest_.trees
    assert cross_val_score(model, X, y, scoring="neg_log_loss", cv=3).mean() > -0.2
    with pytest.raises(ValueError, match=r"the structures were imported.*use partial_fit"):
        model.fit_batches([(X, y)])
