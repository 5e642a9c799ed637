"""Tables with a column of many rare categories: what is learnt from them, and every door a model goes through."""

from __future__ import annotations

import pickle

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

import everytree as et
from cases import rng_for
from everytree.report import write_report
from everytree.tables.code_names import Codes
from everytree.tables.repeats import repeated_rows

N = 1500


def tables(what, n=N, n_categories=400, n_classes=2, n_new=2000):
    """Rows of fit and fresh rows of the same categories, with three numbers besides and some missing texts."""
    rng = rng_for("rare categories", what)
    effect = rng.normal(0.0, 1.5, (n_categories, n_classes))
    frames = []
    for size in (n, n_new):
        place, Z = rng.integers(0, n_categories, size), rng.normal(size=(size, 3))
        logit = effect[place] + 0.3 * np.outer(Z[:, 0], np.arange(n_classes))
        y = (logit + rng.gumbel(size=logit.shape)).argmax(axis=1)
        frame = pd.DataFrame(Z, columns=["a", "b", "c"])
        frame["id"] = np.array([f"id {k}" for k in place], dtype=object)
        frame.loc[rng.random(size) < 0.02, "id"] = None
        frames.append((frame.assign(number=effect[place, -1] + rng.normal(size=size)), y))
    (X, y), (X_new, y_new) = frames
    return X, y, X_new, y_new


def features(table):
    return table[["a", "b", "c", "id"]]


def forest(**options):
    return et.MetaForestClassifier(20, random_state=0, **options)


def log_loss(model, X, y):
    return -float(np.log(model.predict_proba(X)[np.arange(len(y)), y]).mean())


# ---- what is learnt --------------------------------------------------------------------------------------------------


def test_rare_categories_predict_and_held_out_rows_say_how_well():
    X, y, X_new, y_new = tables("learnt", n=3000, n_categories=800)
    model = forest().fit(features(X), y)
    assert model.schema_.columns[3].pooled
    assert roc_auc_score(y_new, model.predict_proba(features(X_new))[:, 1]) > 0.7
    assert -model.choice_.score == pytest.approx(log_loss(model, features(X_new), y_new), abs=0.04)
    without = forest().fit(X[["a", "b", "c"]], y)
    assert roc_auc_score(y_new, without.predict_proba(X_new[["a", "b", "c"]])[:, 1]) < 0.65


def test_categories_that_say_nothing_do_no_harm():
    rng = rng_for("noise categories")
    X = pd.DataFrame({"x": rng.normal(size=N), "id": [f"id {k}" for k in rng.integers(0, 500, N)]})
    y = (rng.random(N) < 1.0 / (1.0 + np.exp(-X["x"]))).astype(int)
    X_new = pd.DataFrame({"x": rng.normal(size=N), "id": [f"id {k}" for k in rng.integers(0, 500, N)]})
    y_new = (rng.random(N) < 1.0 / (1.0 + np.exp(-X_new["x"]))).astype(int).to_numpy()
    with_id, without = forest().fit(X, y), forest().fit(X[["x"]], y)
    assert log_loss(with_id, X_new, y_new) < log_loss(without, X_new[["x"]], y_new) + 0.02


def test_classes_use_every_direction():
    X, y, X_new, y_new = tables("classes", n=4000, n_classes=3)
    model = forest().fit(features(X), y)
    assert model.schema_.names == ["a", "b", "c", "id", "id #2"]
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "id"]
    assert model.feature_importances_.argmax() == 3
    assert model.score(features(X_new), y_new) > 0.5
    assert not model.schema_.columns[0].pooled


@pytest.mark.parametrize("kind", [et.MetaForestRegressor, et.MetaTreeRegressor, et.ExactTreeRegressor])
def test_numbers(kind):
    X, _, X_new, _ = tables(kind.__name__)
    model = kind(**({"max_depth": 2} if kind is et.ExactTreeRegressor else {"random_state": 0})).fit(
        features(X), X["number"]
    )
    assert model.schema_.columns[3].pooled
    assert model.score(features(X_new), X_new["number"]) > 0.2


def test_new_categories_are_not_missing_ones():
    X, y, X_new, _ = tables("new")
    model = forest().fit(features(X), y)
    rows = features(X_new)[:3].assign(id=["never seen", None, "id 7"])
    codes = model.schema_.encode(rows)[:, 3]
    assert codes[:2].tolist() == [254, 255]
    assert codes[2] < 254
    assert len(np.unique(model.predict_proba(rows.assign(a=0.0, b=0.0, c=0.0))[:, 1])) == 3


def test_groups_share_a_fold_and_repeated_rows_too():
    X, y, _, _ = tables("repeats", n=500)
    twice = pd.concat([features(X)] * 2, ignore_index=True)
    with pytest.warns(UserWarning, match="repeats"):
        model = forest().fit(twice, np.concatenate([y, y]))
    once = forest().fit(features(X), y)
    assert model.schema_.columns[3].pooled
    assert repeated_rows(model.schema_.encode(twice)) is not None
    # A row whose copy gave its code would be predicted far better than a fresh one.
    assert model.choice_.score < once.choice_.score + 0.1


# ---- every door ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
def test_saved_and_pickled_models_answer_the_same(n_classes, tmp_path):
    X, y, X_new, _ = tables("saved", n_classes=n_classes)
    model = forest().fit(features(X), y)
    expected = model.predict_proba(features(X_new))
    et.save(model, tmp_path / "model")
    for other in (et.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert other.schema_ == model.schema_
        np.testing.assert_array_equal(other.predict_proba(features(X_new)), expected)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_batches_of_any_size_are_the_same_and_count_every_row_once(n_classes):
    X, y, _, _ = tables("batches", n_classes=n_classes)
    table = features(X).assign(y=y)
    models = [
        forest().fit_batches([table[k : k + size] for k in range(0, N, size)], target="y", sample_rows=900)
        for size in (100, 700, N)
    ]
    assert models[0].schema_.columns[3].pooled
    for model in models:
        assert model.forest_.n_rows == N
        assert all(post.n_rows == N for post in model.forest_.posteriors)
        total = sum(post.statistics[0].sum() for post in model.forest_.posteriors)
        assert total == pytest.approx(N * len(model.forest_))
    for model in models[1:]:
        np.testing.assert_array_equal(model.predict_proba(features(X)), models[0].predict_proba(features(X)))
    on_dask = forest().fit_batches(dd.from_pandas(table, npartitions=4), "y", sample_rows=900)
    found = on_dask.predict_proba(features(X))
    np.testing.assert_allclose(found, models[0].predict_proba(features(X)), atol=1e-12)


def test_rows_of_the_sample_stay_as_they_were_coded():
    """Counted by the codes of all estimates, rows would find their own targets in them: the evidence tells."""
    X, y, _, _ = tables("sample", n=2000, n_categories=600)
    table = features(X).assign(y=y)
    model = forest().fit_batches([table[:1000], table[1000:]], target="y", sample_rows=1900)
    again = model.blank().partial_fit(features(X), y)
    assert again.forest_.n_rows == model.forest_.n_rows
    assert again.log_evidence_ > model.log_evidence_ + 50.0


def test_partial_fit_goes_on_and_is_the_fit_of_the_first_rows():
    X, y, X_new, y_new = tables("partial")
    whole = forest().fit(features(X), y)
    first = forest().partial_fit(features(X), y, classes=[0, 1])
    np.testing.assert_array_equal(first.predict_proba(features(X_new)), whole.predict_proba(features(X_new)))
    first.partial_fit(features(X_new)[:100], y_new[:100])
    assert first.forest_.n_rows == N + 100


def test_the_report_and_the_text_of_a_tree_are_written(tmp_path):
    X, y, X_new, y_new = tables("report", n_classes=3)
    model = forest().fit(features(X), y)
    page = write_report(model, features(X_new).assign(y=y_new), tmp_path / "report.html", target="y")
    assert page.stat().st_size > 10_000
    words = model.schema_.code_names[3].answer(Codes().child(int(model.schema_.n_codes[3]) // 2, 1, -1), Codes())
    assert words.startswith("in id ")
    assert words.endswith("more or missing") or words.endswith("more")
