"""Tables that are not yet there, lists of dicts, and durations."""

from __future__ import annotations

import datetime

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import everytree as et
from everytree.tables.code_names import cut_texts
from everytree.tables.column import Column

N = 60


def columns() -> dict[str, list]:
    rng = np.random.default_rng(0)
    return {
        "a": rng.normal(size=N).round(2).tolist(),
        "kind": rng.choice(["red", "blue"], N).tolist(),
        "y": (np.arange(N) % 3 == 0).tolist(),
    }


def as_made_by(library: str) -> object:
    """The same rows, which most libraries compute when they are asked for them."""
    table = columns()
    if library == "polars":
        return pl.DataFrame(table).lazy().filter(pl.col("a") > -100.0)
    if library == "duckdb":
        return duckdb.from_arrow(pa.table(table)).filter("a > -100.0").order("a, kind, y")
    if library == "dicts":
        return [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    return pd.DataFrame(table)


@pytest.mark.parametrize("library", ["polars", "duckdb", "dicts"])
def test_a_model_of_a_query_is_that_of_its_rows(library):
    given = as_made_by(library)
    plain = pd.DataFrame(columns())
    plain = plain.sort_values(["a", "kind", "y"]) if library == "duckdb" else plain
    expected = et.MetaForestClassifier(4, random_state=0).fit(plain[["a", "kind"]], plain["y"])
    model = et.MetaForestClassifier(4, random_state=0).fit(given, "y")
    assert model.log_evidence_ == expected.log_evidence_
    assert list(model.feature_names_in_) == ["a", "kind"]
    assert np.array_equal(model.predict_proba(given), expected.predict_proba(plain))
    assert model.score(given, "y") == expected.score(plain, plain["y"])
    assert np.array_equal(model.log_scores(given, "y"), expected.log_scores(plain, plain["y"]))


def test_a_query_is_computed_once():
    computed = []

    def note(frame: pl.DataFrame) -> pl.DataFrame:
        computed.append(len(frame))
        return frame

    lazy = pl.DataFrame(columns()).drop("kind").lazy().map_batches(note)
    et.MetaTreeRegressor(family="linear", random_state=0).fit(lazy.drop("y"), np.arange(N) / 7.0)
    assert computed == [N]


@pytest.mark.parametrize("sample_rows", [20, 1000])
def test_a_lazy_frame_is_read_batch_by_batch(sample_rows):
    lazy = as_made_by("polars")
    model = et.MetaForestClassifier(3, random_state=0).fit_batches(lazy, "y", sample_rows=sample_rows)
    expected = et.MetaForestClassifier(3, random_state=0).fit_batches(pa.table(columns()), "y", sample_rows=sample_rows)
    assert model.log_evidence_ == expected.log_evidence_
    assert model.forest_.n_rows == N


def test_keys_that_some_dicts_lack_are_missing():
    schema = et.Schema.fit([{"a": 1.0, "b": "x"}, {"b": "y", "a": 3}, {"a": None}])
    assert schema.names == ["a", "b"]
    assert schema.encode([{"b": "y", "a": 0}, {}, {"c": 1, "a": 9}]).tolist() == [[0, 1], [255, 255], [1, 255]]


def test_lists_that_are_no_dicts_any_more():
    with pytest.raises(TypeError, match=r"X\[1\] must be a dict, as the rows before it, but is a list"):
        et.Schema.fit([{"a": 1.0}, [2.0]])
    with pytest.raises(ValueError, match="two columns named '1'"):
        et.Schema.fit([{1: 1.0, "1": 2.0}])


# ---- durations ------------------------------------------------------------------------------------------------------

SECONDS = [1.5, 86400.0, None, -3.25]


def durations(library: str) -> object:
    spans = [None if seconds is None else datetime.timedelta(seconds=seconds) for seconds in SECONDS]
    match library:
        case "pandas":
            return pd.DataFrame({"t": pd.to_timedelta(spans)})
        case "polars":
            return pl.DataFrame({"t": spans})
        case "arrow":
            return pa.table({"t": pa.array(spans, pa.duration("ms"))})
        case "numpy":
            return np.array(spans, dtype="m8[ms]")[:, None]
        case "dicts":
            return [{"t": span} for span in spans]
    return [[span] for span in spans]


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow", "numpy", "dicts", "lists"])
def test_a_duration_is_its_seconds(library):
    schema = et.Schema.fit(durations(library))
    plain = et.Schema.fit(np.array(SECONDS, dtype=float)[:, None])
    assert schema.columns[0].kind == "numeric"
    assert np.array_equal(schema.columns[0].cuts, plain.columns[0].cuts)
    assert np.array_equal(schema.encode(durations(library)), plain.encode(np.array(SECONDS, dtype=float)[:, None]))


# ---- dates ----------------------------------------------------------------------------------------------------------


def cuts_of(*dates: str) -> list[str]:
    """How the cut points between dates are written."""
    schema = et.Schema.fit(np.array(dates, dtype="M8[us]")[:, None])
    return cut_texts(schema.columns[0])


def test_days_are_cut_without_hours_and_hours_are_not():
    assert cuts_of("2019-01-01", "2020-01-01") == ["2019-07-02"]  # noon, halfway between two years
    assert cuts_of("2018-01-01", "2019-01-01", "2020-01-01") == ["2018-07-02", "2019-07-02"]
    assert cuts_of("2020-01-01", "2020-01-02", "2020-01-05") == ["2020-01-01", "2020-01-03"]
    assert cuts_of("2020-01-01T10:00", "2020-01-01T13:00") == ["2020-01-01 11:30"]
    assert cuts_of("2020-01-01T10:00", "2020-01-01T12:00", "2020-01-01T18:00") == [
        "2020-01-01 11:00",
        "2020-01-01 15:00",
    ]
    halves = Column(None, "datetime", np.array([0.0, 43_200e6]))
    assert cut_texts(halves) == ["1970-01-01", "1970-01-01 12:00"]
    years = Column(None, "datetime", np.arange(3) * 365.25 * 86_400e6 + 3600e6)
    assert cut_texts(years) == ["1970-01-01", "1971-01-01", "1972-01-01"]
