"""Errors that name what would be right: other libraries' parameters, names that are nearly right, what is missing."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

import everytree as et
from cases import rng_for
from every_estimator import estimators
from everytree.estimators.counterparts import NOT_NEEDED, SAME, unknown_parameter

PEERS = [RandomForestClassifier, HistGradientBoostingClassifier, DecisionTreeClassifier]
SHARED_NAMES = {"interaction_cst", "max_features", "scoring", "splitter", "tol", "warm_start"}
"""Parameters of these whose own name says enough, or that mean something of that library alone."""


def parameters_of(kind: type) -> set[str]:
    return set(inspect.signature(kind).parameters)


def test_parameters_of_peers_have_a_counterpart():
    ours = set().union(*map(parameters_of, estimators()))
    theirs = set().union(*map(parameters_of, PEERS)) - SHARED_NAMES
    assert theirs <= ours | set(SAME) | set(NOT_NEEDED)


def test_counterparts_exist():
    ours = set().union(*map(parameters_of, estimators()))
    assert set(SAME.values()) <= ours


@pytest.mark.parametrize(
    ("kind", "name", "advice"),
    [
        (et.MetaForestClassifier, "max_samples", "it is called subsample here"),
        (et.MetaBoostRegressor, "n_estimators", "it is called max_iter here"),
        (et.MetaTreeClassifier, "n_estimators", "it is for forests"),
        (et.MetaForestRegressor, "min_samples_split", "every pruning"),
        (et.MetaForestRegressor, "n_estimatros", "'n_estimators'"),
    ],
)
def test_a_parameter_that_is_not_there_is_refused_with_advice(kind, name, advice):
    with pytest.raises(TypeError, match=f"{kind.__name__} has no parameter '{name}': .*{advice}"):
        kind(**{name: 1})


def test_names_like_no_other_are_answered_with_all():
    assert unknown_parameter("Model", "qqqq", ["alpha", "beta"]).endswith("there are alpha, beta")


def test_the_signature_is_that_of_the_parameters():
    assert [*parameters_of(et.MetaTreeClassifier)]
    assert "args" not in parameters_of(et.MetaTreeClassifier)


def table() -> tuple[pd.DataFrame, np.ndarray]:
    rng = rng_for("advice")
    X = pd.DataFrame({"age": rng.normal(size=60), "income": rng.normal(size=60)})
    return X, X["age"].to_numpy() + rng.normal(size=60)


@pytest.mark.parametrize("kind", estimators())
def test_every_estimator_says_that_it_needs_targets(kind):
    with pytest.raises(ValueError, match=f"{kind.__name__} requires y to be passed"):
        kind().fit(table()[0])


def test_missing_targets_are_counted():
    X, y = table()
    y[[3, 7]] = np.nan
    with pytest.raises(ValueError, match=r"y\[3\] is nan.*2 of 60 targets are so; leave their rows out"):
        et.MetaForestRegressor(2).fit(X, y)


def test_a_renamed_column_and_family_have_a_nearest_name():
    X, y = table()
    model = et.MetaForestRegressor(2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"lacks the columns .'income'.*the nearest is 'incomes'"):
        model.predict(X.rename(columns={"income": "incomes"}))
    with pytest.raises(ValueError, match="is 'poison'; the nearest are 'poisson'"):
        et.MetaForestRegressor(2, family="poison").fit(X, y)


def test_models_with_other_trees_are_refused_with_the_way_to_share_them():
    X, y = table()
    one, other = (et.MetaForestRegressor(2, random_state=seed).fit(X, y) for seed in (0, 1))
    with pytest.raises(ValueError, match=r"take a blank\(\) for each"):
        one.merge(other)


def test_the_page_names_the_parameters_that_differ():
    page = (Path(__file__).parents[2] / "docs" / "coming_from.md").read_text()
    for name in ("max_samples", "min_samples_split", "ccp_alpha"):
        assert name in page


@pytest.mark.parametrize("name", ["event", "censored"])
def test_events_of_other_codes_are_refused_with_the_way_to_write_them(name):
    X, y = table()
    times, codes = np.exp(y), np.where(y > 0.0, 2, 1)
    model = et.MetaForestRegressor(2, family="exponential")
    with pytest.raises(ValueError, match=rf"{name}\[\d+\] is 2, but must be 0 or 1 .*comparison, such as column == 2"):
        model.fit(X, times, **{name: codes})
    with pytest.raises(TypeError, match=rf"{name} must be 0 or 1 .*, but has text such as '(dead|alive)'"):
        model.fit(X, times, **{name: np.where(y > 0.0, "dead", "alive")})


def test_excel_files_are_refused_by_name(tmp_path):
    path = tmp_path / "rows.xlsx"
    path.touch()
    with pytest.raises(ValueError, match="is an Excel file, which is not read; save the sheet as CSV"):
        et.MetaForestRegressor(2).fit_batches(str(path), target="y")
