"""Arguments that name columns of X, events instead of censoring, and times with events in one array."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import everytree as et

N = 80
RNG = np.random.default_rng(7)
TABLE = pd.DataFrame(
    {
        "a": RNG.normal(size=N), "b": RNG.integers(0, 4, N), "time": RNG.exponential(2.0, N) + 0.1,
        "seen": RNG.random(N) < 0.7, "size": RNG.uniform(0.5, 3.0, N), "count": RNG.poisson(2.0, N),
        "weight": RNG.integers(0, 3, N).astype(float), "site": RNG.integers(0, 20, N),
    }
)  # fmt: skip
X = TABLE[["a", "b"]]
LIBRARIES = {
    "pandas": lambda table: table,
    "polars": pl.from_pandas,
    "lazy": lambda table: pl.from_pandas(table).lazy(),
    "arrow": pa.Table.from_pandas,
    "dicts": lambda table: table.to_dict("records"),
}


def times(**more: object) -> et.MetaForestRegressor:
    return et.MetaForestRegressor(3, family="exponential", random_state=0, **more)


@pytest.mark.parametrize("library", LIBRARIES)
def test_names_are_the_columns_that_they_name(library):
    make = LIBRARIES[library]
    counts = et.MetaForestRegressor(3, family="poisson", random_state=0)
    given = make(TABLE[["a", "size", "b", "count", "weight", "site"]])
    counts.fit(given, "count", "weight", exposure="size", groups="site")
    expected = et.MetaForestRegressor(3, family="poisson", random_state=0)
    expected.fit(X, TABLE["count"], TABLE["weight"], exposure=TABLE["size"], groups=TABLE["site"])
    assert counts.log_evidence_ == expected.log_evidence_
    assert list(counts.feature_names_in_) == ["a", "b"]
    mean = expected.predict(X, exposure=TABLE["size"])
    assert np.array_equal(counts.predict(given, exposure="size"), mean)
    assert np.array_equal(counts.predictive(given, exposure="size").mean(), mean)
    intervals = expected.predict_interval(X, 0.8, exposure=TABLE["size"])
    assert np.array_equal(counts.predict_interval(given, 0.8, exposure="size"), intervals)
    scores = expected.score(X, TABLE["count"], TABLE["weight"], exposure=TABLE["size"])
    assert counts.score(given, "count", "weight", exposure="size") == scores


def test_events_are_the_opposite_of_censoring():
    expected = times().fit(X, TABLE["time"], censored=~TABLE["seen"])
    structured = np.array(list(zip(TABLE["seen"], TABLE["time"], strict=True)), dtype=[("d", bool), ("t", float)])
    models = [
        times().fit(X, TABLE["time"], event=TABLE["seen"]),
        times().fit(TABLE[["a", "b", "time", "seen"]], "time", event="seen"),
        times().fit(X, structured),
        times().fit(X, structured[["t", "d"]]),
        times().fit_batches(TABLE[["a", "b", "time", "seen"]], "time", event="seen"),
    ]
    for model in models:
        assert model.log_evidence_ == expected.log_evidence_
        assert model.fitted_.row_names == ["censored"]
    score = expected.score(X, TABLE["time"], censored=~TABLE["seen"])
    assert models[0].score(X, TABLE["time"], event=TABLE["seen"]) == score
    assert models[0].score(X, structured) == score
    assert models[0].score(TABLE, "time", event="seen") == score
    more = times().fit(X, structured).partial_fit(X, structured, allow_overlap=True)
    twice = expected.partial_fit(X, TABLE["time"], censored=~TABLE["seen"], allow_overlap=True)
    assert more.log_evidence_ == twice.log_evidence_
    boosted = et.MetaBoostRegressor(family="exponential", max_iter=3, n_chains=2, random_state=0)
    both = [boosted.fit(X, structured).predict(X), boosted.fit(X, TABLE["time"], censored=~TABLE["seen"]).predict(X)]
    assert np.array_equal(*both)


BAD = {
    "no such column": ({"y": "time", "event": "saw"}, r"event is 'saw', but X has no such column"),
    "both": ({"y": "time", "event": "seen", "censored": "seen"}, r"censored and event are given"),
    "no flag": ({"y": "time", "event": "size"}, r"event.*must be 0 or 1"),
    "another family": ({"y": "time", "event": "seen", "family": "normal"}, r"event is for family='exponential'"),
}


@pytest.mark.parametrize("what", BAD)
def test_names_and_events_that_are_refused(what):
    given, message = BAD[what]
    given = dict(given)
    model = et.MetaForestRegressor(2, family=given.pop("family", "exponential"))
    with pytest.raises(ValueError, match=message):
        model.fit(TABLE, **given)
    assert not hasattr(model, "fitted_")


def test_arrays_have_no_names_and_structured_targets_have_two_fields():
    with pytest.raises(ValueError, match="y is 'time', but X has no names of columns"):
        times().fit(X.to_numpy(), "time")
    wrong = np.zeros(N, dtype=[("t", float), ("u", float)])
    with pytest.raises(ValueError, match=r"y.*two fields, booleans of events and numbers of times"):
        times().fit(X, wrong)
    right = np.ones(N, dtype=[("d", bool), ("t", float)])
    with pytest.raises(ValueError, match="censored is given twice: the field 'd' of y"):
        times().fit(X, right, censored=np.zeros(N))
    with pytest.raises(ValueError, match="event is for family='exponential'"):
        et.MetaForestRegressor(2).fit(X, right)


def test_all_rows_censored_are_said():
    with pytest.warns(UserWarning, match="all rows are censored"):
        times().fit(X, TABLE["time"], censored=np.ones(N))
    with pytest.warns(UserWarning, match="all rows are censored"):
        times().fit(X, TABLE["time"], event=np.zeros(N))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        times().fit(X, TABLE["time"], event=np.arange(N) == 3)


# ---- merging --------------------------------------------------------------------------------------------------------


def blank(table: pd.DataFrame) -> et.MetaTreeClassifier:
    return et.MetaTreeClassifier(random_state=0).fit(table, TABLE["seen"]).blank()


def test_merge_says_in_one_line_which_column_differs():
    kinds = X.assign(kind=np.where(TABLE["a"] > 0, "x", "z"))
    cases = [
        (X, X.rename(columns={"b": "c"}), "has no column 'b', which this one has"),
        (X, X.assign(c=1.0), "has a column 'c', which this one has not"),
        (X, X[["b", "a"]], "has the columns in another order: column 0 is 'b', here 'a'"),
        (X, X.assign(a=X["a"] + 1.0), "has other cut points of column 'a'"),
        (X, X.assign(a=np.where(X["a"] > 0, "x", "z")), "reads column 'a' as categorical, this one as numeric"),
        (kinds, kinds.replace("z", "w"), "knows other categories of column 'kind', such as 'w'"),
        (X.to_numpy(), X[["a"]].to_numpy(), "has 1 column, this one 2"),
        (X, X.to_numpy(), "finds columns in a different way: this one by name, other by position"),
    ]
    for mine, theirs, message in cases:
        with pytest.raises(ValueError, match=f"^other {message}; models to merge") as caught:
            blank(mine).merge(blank(theirs))
        assert len(str(caught.value)) < 130
