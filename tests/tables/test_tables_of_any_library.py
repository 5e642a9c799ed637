"""The same schema and codes for the same table, whichever library holds it."""

from __future__ import annotations

import datetime
import decimal
import json
import os
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import everytree as et
from cases import rng_for
from everytree.batches import SchemaSketch
from naive import naive_codes
from online_cases import state as online_state

UTC = datetime.UTC
MOMENT = datetime.datetime(2020, 1, 1, 3, 4, 5, 678901)
COLUMNS = {
    "whole": [3, 1, None, 3, -2, 7],
    "real": [0.5, None, 0.25, 1e15, -1.0, 0.5],
    "flag": [True, False, None, True, True, False],
    "text": ["b", None, "a", "é", "", "b"],
    "moment": [MOMENT, None, *[datetime.datetime(1960 + k, 1, 1) for k in range(4)]],
    "zoned": [datetime.datetime(2020, 5, k, tzinfo=UTC) if k else None for k in range(6)],
    "day": [datetime.date(1969, 1, 2), None, *[datetime.date(2000 + k, 2, 29 - k) for k in range(4)]],
    "price": [None if text is None else decimal.Decimal(text) for text in ("1.50", None, "2", "-3.25", None, "2")],
    "nothing": [None] * 6,
}  # fmt: skip


def arrow() -> pa.Table:
    return pa.table(COLUMNS)


def modin() -> object:
    os.environ.setdefault("MODIN_ENGINE", "python")
    return pytest.importorskip("modin.pandas").DataFrame(COLUMNS)


FRAMES = {
    "pandas": lambda: pd.DataFrame(COLUMNS),
    "pandas nullable": lambda: pd.DataFrame(COLUMNS).convert_dtypes(),
    "pandas on arrow": lambda: arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda: pl.DataFrame(COLUMNS),
    "pyarrow": arrow,
    "pyarrow in chunks": lambda: pa.concat_tables([arrow()[:2], arrow()[2:]]),
    "modin": modin,
}


def as_numpy() -> np.ndarray:
    return np.array(list(zip(*COLUMNS.values(), strict=True)), dtype=object)


# ---- the same table --------------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning:modin")
@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("y", [None, range(6)])
def test_any_library_gives_the_same_schema_and_codes(name, y):
    reference, table = pl.DataFrame(COLUMNS), FRAMES[name]()
    schema = et.Schema.fit(table, y)
    assert schema == et.Schema.fit(reference, y)
    kinds = ["numeric", "numeric", "boolean", "categorical", *["datetime"] * 3, "numeric", "numeric"]
    assert [column.kind for column in schema.columns][: len(kinds)] == kinds
    assert schema.input_names == list(COLUMNS)
    np.testing.assert_array_equal(schema.encode(table), schema.encode(reference))
    np.testing.assert_array_equal(schema.encode(table), schema.encode(as_numpy()))


def test_codes_of_a_frame_are_those_of_its_cells():
    schema = et.Schema.fit(pl.DataFrame(COLUMNS))
    epoch = datetime.datetime(1970, 1, 1)

    def plain(value: object) -> object:
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            value = datetime.datetime(value.year, value.month, value.day)
        if isinstance(value, datetime.datetime):
            return (value.replace(tzinfo=None) - epoch) // datetime.timedelta(microseconds=1)
        return value

    rows = [[plain(value) for value in row] for row in as_numpy().tolist()]
    assert schema.encode(pl.DataFrame(COLUMNS)).tolist() == naive_codes(schema.columns, rows, 255)


def test_lists_hold_columns_of_different_kinds():
    schema = et.Schema.fit([[1, "a", None], [2, "b", True]])
    assert [column.kind for column in schema.columns] == ["numeric", "categorical", "boolean"]
    assert schema.names is None
    assert schema.columns[2].cuts.tolist() == [0.5]


def test_whole_numbers_wider_than_numpy_knows():
    table = pl.DataFrame({"k": [2**100, None, -1]}, schema={"k": pl.Int128})
    assert et.Schema.fit(table).encode(table).tolist() == [[1], [255], [0]]


def test_masked_arrays_are_missing_where_masked():
    X = np.ma.MaskedArray([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
    assert et.Schema.fit(X).encode(X).tolist() == [[0, 255], [1, 0]]


def test_dates_of_numpy_and_time_zones():
    X = np.array([["2020-01-01", "NaT"], ["2021-01-01T01:02:03.000004", "1960-01-01"]], dtype="M8[us]")
    schema = et.Schema.fit(X)
    assert schema.encode(X).tolist() == [[0, 255], [1, 0]]
    noon = pd.Timestamp("2020-06-01 12:00")
    schema = et.Schema.fit(pd.DataFrame({"t": [noon.tz_localize("UTC"), noon.tz_localize("UTC") + pd.Timedelta("2h")]}))
    tokyo = pd.DataFrame({"t": [noon.tz_localize("UTC").tz_convert("Asia/Tokyo")]})
    assert schema.encode(tokyo).tolist() == schema.encode(pd.DataFrame({"t": [noon]})).tolist() == [[0]]


def test_columns_are_found_by_name():
    table = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    schema = et.Schema.fit(table)
    codes = schema.encode(table)
    np.testing.assert_array_equal(codes, schema.encode(table.assign(c=[object()] * 3)[["c", "b", "a"]]))
    np.testing.assert_array_equal(codes, schema.encode(pl.from_pandas(table[["b", "a"]])))
    np.testing.assert_array_equal(codes, schema.encode(table.to_numpy()))
    unnamed = et.Schema.fit(table.to_numpy())
    np.testing.assert_array_equal(codes, unnamed.encode(table))


def test_names_that_are_numbers():
    X = rng_for("names").normal(size=(50, 12))
    schema = et.Schema.fit(pd.DataFrame(X))
    assert schema.names == [str(k) for k in range(12)]
    np.testing.assert_array_equal(schema.encode(X), schema.encode(pd.DataFrame(X).iloc[:, ::-1]))


def test_nothing_but_missing_values_is_of_every_kind():
    table = pd.DataFrame({"n": [1.0, 2.0], "c": ["a", "b"], "d": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    schema = et.Schema.fit(table)
    for empty in (None, np.nan, pd.NaT):
        later = pd.DataFrame({name: [empty] for name in table})
        assert schema.encode(later).tolist() == [[255, 255, 255]]


def test_text_that_says_numbers():
    schema = et.Schema.fit([[1.0], [2.0], [3.0]])
    assert schema.encode(np.array([["2.2"], ["nan"]])).tolist() == [[1], [255]]
    assert schema.encode(pd.DataFrame({"x": pd.Categorical([3, 1])})).tolist() == [[2], [0]]


@pytest.mark.parametrize("copy", [
    lambda schema: pickle.loads(pickle.dumps(schema)),
    lambda schema: et.Schema.from_dict(json.loads(json.dumps(schema.to_dict(), allow_nan=False))),
    lambda schema: et.Schema.from_columns(schema.columns),
])  # fmt: skip
def test_round_trips(copy):
    table = pl.DataFrame(COLUMNS)
    schema = et.Schema.fit(table)
    schema.encode(table)
    again = copy(schema)
    assert again == schema
    assert hash(again) == hash(schema)
    assert again.dtype == schema.dtype
    assert not again.columns[0].cuts.flags.writeable
    np.testing.assert_array_equal(again.encode(table), schema.encode(table))


# ---- categorical types of numbers, and time zones --------------------------------------------------------------------


def categorical_numbers(values: list[Any]) -> dict[str, Any]:
    """One column of a categorical type, as each library has it."""
    encoded = pa.array(values).dictionary_encode()
    halves = pa.chunked_array([pa.array(values[:3]).dictionary_encode(), pa.array(values[3:]).dictionary_encode()])
    return {
        "pandas": pd.DataFrame({"a": pd.Categorical(values)}),
        "pandas on arrow": pd.DataFrame({"a": pd.Series(values, dtype=pd.ArrowDtype(encoded.type))}),
        "pyarrow": pa.table({"a": encoded}),
        "pyarrow in chunks": pa.table({"a": halves}),
        "pyarrow record batch": pa.record_batch({"a": encoded}),
    }


@pytest.mark.parametrize(
    "values", [[30, 10, 20, 10, None, 30], [1.5, 2.0, None, 1.5, 2.5, 2.0], [True, False, None, True, True, False]]
)
def test_a_categorical_type_of_numbers_makes_categories_in_every_library(values):
    tables = categorical_numbers(values)
    labels = sorted({value for value in values if value is not None})
    schemas = {name: et.Schema.fit(table) for name, table in tables.items()}
    codes = [255 if value is None else labels.index(value) for value in values]
    for name, schema in schemas.items():
        assert schema.columns[0].kind == "categorical", name
        assert list(schema.columns[0].categories) == labels, name
        assert schema == SchemaSketch().update(tables[name]).schema(), name
        for other in tables.values():
            assert schema.encode(other)[:, 0].tolist() == codes, name
        model = et.OnlineForestClassifier(n_models=2)
        model.learn_many(tables[name], [0, 1, 0, 1, 0, 1])
        same = et.OnlineForestClassifier(n_models=2)
        same.learn_many([{"a": None if value is None else str(value)} for value in values], [0, 1, 0, 1, 0, 1])
        assert online_state(model) == online_state(same), name


ZONES = [datetime.timezone(datetime.timedelta(hours=hours)) for hours in (-5, 0, 9)]
OBJECTS: dict[str, Callable[[list[Any]], Any]] = {
    "list": lambda dates: [[date] for date in dates],
    "array": lambda dates: np.array(dates, dtype=object)[:, None],
    "pandas": lambda dates: pd.DataFrame({"a": pd.Series(dates, dtype=object)}),
    "polars": lambda dates: pl.DataFrame({"a": pl.Series(dates, dtype=pl.Object)}),
}


@pytest.mark.parametrize("how", OBJECTS)
def test_dates_of_several_zones_are_instants(how):
    instants = [datetime.datetime(2024, 3, 1, tzinfo=datetime.UTC) + datetime.timedelta(hours=k) for k in range(6)]
    dates = [instant.astimezone(ZONES[k % 3]) for k, instant in enumerate(instants)]
    schema = et.Schema.fit(OBJECTS[how](dates))
    assert schema.encode(OBJECTS[how](dates))[:, 0].tolist() == list(range(6))
    for zone in ("UTC", "Europe/Paris", "Asia/Tokyo"):
        column = pd.Series(pd.to_datetime(instants, utc=True)).dt.tz_convert(zone).dt.as_unit("us")
        frame = pd.DataFrame({"a": column})
        for typed in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
            assert [*et.Schema.fit(typed).columns[0].cuts] == [*schema.columns[0].cuts]


@pytest.mark.parametrize("how", OBJECTS)
def test_dates_with_and_without_a_zone_are_not_of_one_column(how):
    with_zone, without = datetime.datetime(2024, 3, 1, tzinfo=datetime.UTC), datetime.datetime(2024, 3, 1)
    for dates in ([with_zone, None, without], [without, None, with_zone], [datetime.date(2024, 3, 1), None, with_zone]):
        with pytest.raises(ValueError, match=r"\(row 0\) and .* \(row 2\), but the dates of a column must all have a"):
            et.Schema.fit(OBJECTS[how](dates))
    typed = [pd.DataFrame({"a": pd.to_datetime([date] * 3)}) for date in (with_zone, without)]
    for convert in (lambda frame: frame, pl.from_pandas, pa.Table.from_pandas):
        for first, second in (typed, typed[::-1]):
            sketch = SchemaSketch().update(convert(first))
            with pytest.raises(ValueError, match="the dates of a column must all have a time zone or none"):
                sketch.update(second, first_row=3)
            with pytest.raises(ValueError, match="the dates of a column must all have a time zone or none"):
                SchemaSketch().update(first).merge(SchemaSketch().update(convert(second), first_row=3))
