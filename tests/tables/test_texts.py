"""Text that holds numbers or dates is read as such, by one rule, wherever it comes from; codes stay categories."""

from __future__ import annotations

import json
import warnings
from datetime import date, timedelta
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import parquet

import everytree as et
from batch_cases import schema_of
from cases import rng_for
from everytree.batches import SchemaSketch
from everytree.tables.column import Column
from everytree.tables.texts import read_date

DAYS = [date(2019, 11, 1) + timedelta(days=int(k)) for k in rng_for("days of text").permutation(400)]
FORMATS = {
    "%Y-%m-%d": "year-month-day", "%Y/%m/%d": "year-month-day", "%Y-%m-%dT%H:%M:%SZ": "year-month-day",
    "%d %b %Y": "year-month-day", "%b %d, %Y": "year-month-day", "%B %d %Y": "year-month-day",
    "%d-%b-%y": "year-month-day", "%d/%m/%Y": "day-month-year", "%d/%m/%y": "day-month-year",
    "%d.%m.%Y": "day-month-year", "%d.%m.%y": "day-month-year", "%m/%d/%Y": "month-day-year",
    "%m/%d/%y": "month-day-year", "%m/%d/%Y %I:%M %p": "month-day-year",
}  # fmt: skip


def fitted(texts: Any, **options: Any) -> tuple[Column, list[str]]:
    """The column of a table of one column of text, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        column = et.Schema.fit(pd.DataFrame({"c": texts}), **options).columns[0]
    return column, [str(one.message) for one in caught]


@pytest.mark.parametrize("how", FORMATS)
def test_dates_written_as_text_are_the_dates(how):
    """Also where there are few of them: the codes are those of real dates."""
    for days in (DAYS, [date(2020, 3, 14), date(2020, 5, 31), date(2020, 12, 20)] * 4):
        texts = pd.DataFrame({"c": [day.strftime(how) for day in days]})
        real = pd.DataFrame({"c": pd.to_datetime(days)})
        with pytest.warns(UserWarning, match=r"column 'c' holds dates written as text, such as .*categorical_features"):
            schema = et.Schema.fit(texts)
        assert schema.columns[0].text == FORMATS[how]
        plain = et.Schema.fit(real)
        np.testing.assert_array_equal(schema.columns[0].cuts, plain.columns[0].cuts)
        np.testing.assert_array_equal(schema.encode(texts), plain.encode(real))
        np.testing.assert_array_equal(schema.encode(real), plain.encode(real))


def test_times_of_day_and_zones_count():
    for text, hours in (
        ("2020-03-04T10:30", 10.5), ("4 Mar 2020 10:30:00 PM", 22.5), ("March 4, 2020 12:00 am", 0.0),
        ("2020-03-04 10:30:00+02:00", 8.5), ("2020-03-04T10:30:00.000Z", 10.5),
    ):  # fmt: skip
        found = read_date(text, "year-month-day")
        assert found == pd.Timestamp("2020-03-04").value / 1000 + hours * 3.6e9, text
    for text in ("2020-02-30", "2020-13-01", "2020-03-04 24:00", "4 Mrz 2020", "03/04/2020", "4 Mar 20 13:00 pm"):
        assert read_date(text, "year-month-day") is None, text


@pytest.mark.parametrize(
    ("texts", "warning"),
    [
        ([f"0{month}/0{day}/2020" for month in range(1, 10) for day in range(1, 10)], "dayfirst=True"),
        (["2020-01-01T10:00:00Z", "2020-01-02 10:00:00"], "utc=True"),
        ([day.strftime("%Y%m%d") for day in DAYS], 'format="%Y%m%d"'),
        ([f"{k}" for k in range(10_000, 10_300)], r"astype\(float\)"),
        ([f"{k},5" for k in range(100)], r'replace\(",", "."\)\.astype\(float\)'),
        ([f"{k % 7}.{k}" for k in range(100)], r"astype\(float\)"),
        (["13/01/2020", "01/13/2020"], None),
        ([f"0{k}" for k in range(1000, 1300)], None),
        ([f"{k}" for k in range(1, 61)] * 2, None),
        ([f"{k}e5" for k in range(1, 100)], None),
        (["1.8", "1.9", "1.10", "1.11"] * 5, None),
        (["1.2.10", "1.2.11", "1.3.10", "2.0.12"] * 5, None),
        (["3.5", "4.5", "many"] * 5, None),
        ([*(day.isoformat() for day in DAYS), "never"], None),
    ],
)
def test_what_may_be_codes_stays_categories(texts, warning):
    """Where it may also be numbers or dates, a warning has the line that converts it."""
    column, said = fitted(texts)
    assert column.kind == "categorical"
    assert set(column.categories) == set(texts)
    if warning is None:
        assert not said
    else:
        with pytest.warns(UserWarning, match=rf"taken for categories.*X\['c'\] = .*{warning}"):
            et.Schema.fit(pd.DataFrame({"c": texts}))


def test_numbers_written_as_text_are_the_numbers():
    rng = rng_for("numbers of text")
    for numbers in (rng.normal(size=300).round(3), 1e-4 * rng.normal(size=300), np.arange(-40, 200), [0.5, 1.5, 4] * 5):
        texts = [repr(number) for number in np.asarray(numbers).tolist()]
        column, said = fitted(texts)
        assert column.text == "number"
        assert len(said) == 1
        assert "column 'c' holds numbers written as text" in said[0]
        np.testing.assert_array_equal(column.cuts, et.Schema.fit(pd.DataFrame({"c": numbers})).columns[0].cuts)
    column, _ = fitted([*texts, "?", "-", "", "NA"])
    assert column.text == "number"
    assert column.has_missing


@pytest.mark.parametrize("texts", [[f"{k}.5" for k in range(200)], [day.isoformat() for day in DAYS]])
def test_a_column_that_is_named_or_of_a_categorical_type_stays_as_it_was(texts):
    for given, options in ((texts, {"categorical_features": ["c"]}), (pd.Categorical(texts), {})):
        column, said = fitted(given, **options)
        assert column.kind == "categorical"
        assert not said
    arrow = pa.table({"c": pa.array(texts).dictionary_encode()})
    assert et.Schema.fit(arrow).columns[0].kind == "categorical"
    assert et.Schema.fit(pl.DataFrame({"c": texts}).cast(pl.Categorical)).columns[0].kind == "categorical"


TEXTS = pd.DataFrame({
    "number": [*(f"{k / 8}" for k in range(396)), "?", "", "-", "NA"],
    "day": [day.strftime("%d/%m/%Y") for day in DAYS],
    "group": ["a", "b", "c", "d"] * 100,
})  # fmt: skip


@pytest.mark.filterwarnings("ignore:X. column")
def test_every_library_and_any_batches_make_the_same_schema(tmp_path):
    whole = et.Schema.fit(TEXTS)
    assert [column.kind for column in whole.columns] == ["numeric", "datetime", "categorical"]
    records = TEXTS.to_dict("records")
    others = [pl.DataFrame(TEXTS), pa.Table.from_pandas(TEXTS), TEXTS.astype("string"), records]
    assert all(et.Schema.fit(other) == whole for other in others)
    assert et.Schema.fit(TEXTS.to_numpy(dtype=str)).columns[1].text == "day-month-year"
    parts = [TEXTS[start : start + 90] for start in range(0, 400, 90)]
    assert schema_of(parts) == whole
    one, two = SchemaSketch().update(TEXTS[:200]), SchemaSketch().update(TEXTS[200:], first_row=200)
    assert one.merge(two).schema() == whole
    parquet.write_table(pa.Table.from_pandas(TEXTS, preserve_index=False), tmp_path / "t.parquet")
    TEXTS.to_csv(tmp_path / "t.csv", index=False)
    for name in ("t.parquet", "t.csv"):
        assert schema_of(tmp_path / name) == whole, name
    codes = whole.encode(TEXTS)
    for other in others:
        np.testing.assert_array_equal(whole.encode(other), codes)


@pytest.mark.filterwarnings("ignore:X. column")
def test_a_long_table_is_read_as_a_short_one(tmp_path):
    """Distinct numbers are all known where they are few, though the sample lacks some of their rows."""
    long = pd.DataFrame({"c": [f"{k % 150}.5" for k in range(3000)]})
    whole = et.Schema.fit(long)
    assert schema_of([long[:1000], long[1000:]], sample_rows=40) == whole


@pytest.mark.filterwarnings("ignore:X. column")
def test_text_that_is_no_such_value_is_refused_by_row_and_value():
    schema = et.Schema.fit(TEXTS)
    bad = TEXTS[:5].copy()
    bad.loc[3, "number"] = "1O"
    with pytest.raises(ValueError, match=r"column 'number', row 3: '1O', but must be a number"):
        schema.encode(bad)
    bad = TEXTS[:5].copy()
    bad.loc[2, "day"] = "12/31/2020"
    with pytest.raises(ValueError, match=r"column 'day', row 2: '12/31/2020', but must be .*day before the month"):
        schema.encode(bad)
    missing = schema.encode(pd.DataFrame({"number": ["?"], "day": ["-"], "group": ["a"]}))[0, :2]
    assert (missing == np.iinfo(schema.dtype).max).all()


@pytest.mark.filterwarnings("ignore:X. column")
def test_the_rule_is_kept_in_files():
    schema = et.Schema.fit(TEXTS)
    again = et.Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again == schema
    np.testing.assert_array_equal(again.encode(TEXTS), schema.encode(TEXTS))
    earlier = schema.to_dict()
    for column in earlier["columns"]:
        del column["text"]
    assert all(column.text is None for column in et.Schema.from_dict(earlier).columns)


@pytest.mark.parametrize("given", [{"text": "dates"}, {"text": "number", "kind": "datetime"}, {"text": "number",
                                   "kind": "categorical"}])  # fmt: skip
def test_a_rule_of_another_kind_is_refused(given):
    with pytest.raises(ValueError, match="text"):
        Column("c", **{"kind": "numeric", **given})


@pytest.mark.filterwarnings("ignore:X. column")
def test_a_model_of_text_is_the_model_of_its_values(tmp_path):
    """Predictions, effects, pages, files and ONNX inputs are those of real numbers and dates."""
    real = TEXTS.assign(
        number=pd.to_numeric(TEXTS["number"], errors="coerce"), day=pd.to_datetime(TEXTS["day"], dayfirst=True)
    )
    y = np.nan_to_num(real["number"].to_numpy()) + real["day"].dt.month.to_numpy()
    models = [et.MetaForestRegressor(5, random_state=0, n_jobs=1).fit(X, y) for X in (TEXTS, real)]
    of_text, of_real = models
    np.testing.assert_array_equal(of_text.predict(TEXTS), of_real.predict(real))
    for column in ("number", "day"):
        effects = [model.effect(column, X) for model, X in zip(models, (TEXTS, real), strict=True)]
        assert effects[0].points == effects[1].points
        np.testing.assert_array_equal(effects[0].mean, effects[1].mean)
    inputs = [et.export.onnx_inputs(model, X) for model, X in zip(models, (TEXTS, real), strict=True)]
    for name in ("number", "day"):
        np.testing.assert_array_equal(inputs[0][name], inputs[1][name])
    et.save(of_text, tmp_path / "m")
    np.testing.assert_array_equal(et.load(tmp_path / "m").predict(TEXTS), of_real.predict(real))
    of_text.report(tmp_path / "page.html", TEXTS.assign(y=y), target="y")
