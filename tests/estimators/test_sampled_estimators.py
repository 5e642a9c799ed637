"""Structures drawn from their posterior behind scikit-learn's surface."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import everytree as et
from cases import rng_for
from everytree.fitting.structures.sampled import SampledStructure

FAST = {"n_draws": 3, "n_chains": 1, "temperature": 1.0, "max_depth": 2, "max_bins": 4}


def table(n=200):
    rng = rng_for("sampled", n)
    frame = pd.DataFrame(
        {
            "number": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "word": pd.Categorical(rng.choice(["a", "b", "c"], n)),
            "noise": rng.normal(size=n),
        }
    )
    is_one = np.where(frame["number"].isna(), 0.8, np.where(frame["word"] == "b", 0.9, 0.1))
    return frame, (rng.random(n) < is_one).astype(int)


def test_the_average_is_close_to_the_exact_one():
    """With the same columns, also where values are missing."""
    X, y = table()
    options = {"max_depth": 2, "split_prior": 0.5, "alpha": 0.5, "candidates": "nontrivial", "max_bins": 4}
    exact = et.ExactTreeClassifier(**options).fit(X, y)
    model = et.SampledTreeClassifier(**options, n_draws=300, temperature=1.0, random_state=0).fit(X, y)
    assert model.schema_.n_features == exact.schema_.n_features
    # cut points differ: those of the exact sum follow the target
    assert np.abs(model.predict_proba(X) - exact.predict_proba(X)).mean() < 0.06
    assert model.temperature_ == 1.0


def test_missing_values_take_the_branch_of_their_own():
    X, y = table()
    model = et.SampledTreeClassifier(max_depth=3, n_draws=60, temperature=1.0, random_state=0).fit(X, y)
    rows = pd.DataFrame({"number": [np.nan, 0.0, 0.0], "word": ["a", "a", "b"], "noise": [0.0, 0.0, 0.0]})
    missing, plain, marked = model.predict_proba(rows)[:, 1]
    assert missing > 0.6
    assert plain < 0.35
    assert marked > 0.6


def test_a_temperature_is_chosen_by_rows_that_were_left_out():
    X, y = table()
    model = et.SampledTreeClassifier(max_depth=3, n_draws=20, n_chains=1, random_state=0).fit(X, y)
    assert model.temperature_ in (1.0, 0.3, 0.1)
    assert -1.0 < model.choice_.score < 0.0
    few = et.SampledTreeClassifier(max_depth=1, n_draws=5, n_chains=1, random_state=0).fit(X[:20], y[:20])
    assert few.temperature_ == 1.0
    assert np.isnan(few.choice_.score)


def test_files_and_more_rows(tmp_path):
    X, y = table()
    model = et.SampledTreeRegressor(max_depth=2, n_draws=10, n_chains=1, temperature=1.0, random_state=0).fit(X, y)
    et.save(model, tmp_path / "model.safetensors")
    loaded = et.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.temperature_ == 1.0
    again = et.SampledTreeRegressor(max_depth=2, n_draws=10, n_chains=1, temperature=1.0, random_state=0, n_jobs=2)
    np.testing.assert_array_equal(again.fit(X, y).predict(X), model.predict(X))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_draws": 0}, "n_draws"),
        ({"temperature": 0.0}, "temperature must be 'auto' or a power above 0"),
        ({"temperature": "cold"}, "temperature"),
        ({"n_structures": 0}, "n_structures"),
        ({"max_bins": 1}, "max_bins"),
    ],
)
def test_parameters_are_refused(options, message):
    X, y = table(30)
    with pytest.raises(ValueError, match=message):
        et.SampledTreeClassifier(**options).fit(X, y)


def test_groups_are_left_out_together(monkeypatch):
    """The temperature is judged by whole groups."""
    X, y = table(60)
    groups = np.repeat(np.arange(12), 5)
    drawn_with, draw = [], SampledStructure._forest

    def watched(self, rows, *rest):
        drawn_with.append(np.bincount(rows.group, minlength=12))
        return draw(self, rows, *rest)

    monkeypatch.setattr(SampledStructure, "_forest", watched)
    et.SampledTreeClassifier(**FAST | {"temperature": "auto"}, random_state=0).fit(X, y, groups=groups)
    *judging, final = drawn_with
    assert len(judging) == 3  # one for each temperature
    assert all(set(each) == {0, 5} for each in judging)
    assert set(final) == {5}
