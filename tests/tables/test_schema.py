"""The schema: what each column is, how it is cut or put in order, and the codes of its values."""

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
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import everytree as et
from cases import examples, rng_for
from everytree import _kernels
from everytree.batches import SchemaSketch
from everytree.tables.column import SAMPLE_ROWS, Column, missing_code, unseen_code
from naive import naive_codes
from online_cases import state as online_state

UTC = datetime.UTC
MOMENT = datetime.datetime(2020, 1, 1, 3, 4, 5, 678901)
NUMBERS = st.floats(allow_infinity=False, width=64) | st.sampled_from([0.0, -0.0, 5e-324, 1e-323, 1.7e308, -1.7e308])
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


def mass_of_bins(schema: et.Schema, x: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    return np.bincount(schema.encode(x[:, None])[:, 0], weights=weight)


# ---- the rule -------------------------------------------------------------------------------------------------------


@given(st.lists(NUMBERS, min_size=1, max_size=40), st.lists(NUMBERS, max_size=20), st.integers(2, 12))
@examples(200)
def test_codes_count_the_cuts_below(rows, more, max_bins):
    schema = et.Schema.fit(np.array(rows)[:, None], max_bins=max_bins)
    (column,) = schema.columns
    values = [*rows, *more, *column.cuts]
    codes = schema.encode(np.array(values)[:, None])
    assert codes.tolist() == naive_codes(schema.columns, [[value] for value in values], 255)
    for t, cut in enumerate(column.cuts):
        known = ~np.isnan(values)
        np.testing.assert_array_equal((codes[:, 0] <= t)[known], (np.array(values) <= cut)[known])


@given(st.lists(NUMBERS, min_size=1, max_size=40))
@examples(200)
def test_few_values_have_a_code_each(rows):
    x = np.array(rows)
    schema = et.Schema.fit(x[:, None], max_bins=40)
    distinct = np.unique(x[~np.isnan(x)])
    (column,) = schema.columns
    assert column.n_codes == max(1, len(distinct))
    assert ((distinct[:-1] <= column.cuts) & (column.cuts < distinct[1:])).all()
    assert column.has_missing == np.isnan(x).any()
    if len(distinct):
        np.testing.assert_array_equal(schema.encode(distinct[:, None])[:, 0], np.arange(len(distinct)))


@pytest.mark.parametrize("max_bins", [2, 3, 16, 254, 255, 256, 1000])
def test_against_searchsorted(max_bins):
    X = rng_for("searchsorted", max_bins).normal(size=(3000, 5))
    X[::17, 2] = np.nan
    schema = et.Schema.fit(X, max_bins=max_bins)
    codes = schema.encode(X)
    assert codes.dtype == schema.dtype == (np.uint8 if max_bins <= 255 else np.uint16)
    assert codes.flags.c_contiguous
    assert (schema.n_codes == max_bins).all()
    for k, column in enumerate(schema.columns):
        expected = np.searchsorted(column.cuts, X[:, k], side="left")
        expected[np.isnan(X[:, k])] = missing_code(schema.dtype)
        np.testing.assert_array_equal(codes[:, k], expected)


@pytest.mark.parametrize(
    "dtype", ["f2", "f4", "f8", ">f8", "g", "i1", "i2", "i4", "i8", ">i4", "u1", "u2", "u4", "u8", "?"]
)
@pytest.mark.parametrize("layout", ["C", "F", "reversed", "every other", "unaligned"])
def test_any_dtype_and_layout(dtype, layout):
    X = rng_for("dtypes").integers(0, 100, (1100, 4)).astype(dtype)
    schema = et.Schema.fit(X, max_bins=20)
    expected = naive_codes(schema.columns, X.astype(float).tolist(), 255)
    if layout == "F":
        X = np.asfortranarray(X)
    elif layout == "reversed":
        X = X[::-1, ::-1].copy()[::-1, ::-1]
    elif layout == "every other":
        X = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    elif layout == "unaligned":
        X = np.frombuffer(b"\0" + X.tobytes(), dtype=np.uint8)[1:].view(dtype).reshape(X.shape)
    assert schema.encode(X).tolist() == expected
    assert schema.encode(X.astype(object)).tolist() == expected


@pytest.mark.parametrize("n_rows", [1, 7, 8, 9, 511, 512, 819, 820, 16384, 40000])
def test_same_codes_for_any_number_of_threads(n_rows):
    X = rng_for("threads").normal(size=(n_rows, 20))
    schema = et.Schema.fit(X)
    assert schema == et.Schema.fit(X, n_jobs=3)
    codes = schema.encode(X)
    for n_jobs in (2, 3, -1):
        np.testing.assert_array_equal(codes, schema.encode(X, n_jobs=n_jobs))
    np.testing.assert_array_equal(codes[-1:], schema.encode(X[-1:]))


def test_wide_table():
    X = rng_for("wide").normal(size=(70, 3000))
    schema = et.Schema.fit(X)
    assert (np.argsort(schema.encode(X), axis=0) == np.argsort(X, axis=0)).all()


def test_single_rounds_before_it_compares():
    cut = 0.1
    schema = et.Schema.from_columns([Column(None, "numeric", [cut], single=single) for single in (False, True)])
    assert schema.encode([[cut, cut]]).tolist() == [[0, 1]]  # float32(0.1) is above 0.1
    assert schema.encode([[1e300, 1e300], [-1e300, -1e300]]).tolist() == [[1, 1], [0, 0]]


def test_numbers_beyond_those_of_fit():
    schema = et.Schema.fit([[1.0], [2.0], [3.0]])
    assert schema.encode([[-1e308], [1e308]]).tolist() == [[0], [2]]


def test_constant_and_missing_columns():
    X = [[1.0, np.nan, None], [1.0, np.nan, None]]
    schema = et.Schema.fit(X)
    assert schema.n_codes.tolist() == [1, 1, 1]
    assert [column.has_missing for column in schema.columns] == [False, True, True]
    assert schema.encode(X).tolist() == [[0, 255, 255]] * 2
    assert schema.encode([[5.0, 3.0, 2.0]]).tolist() == [[0, 0, 0]]


# ---- cut points -----------------------------------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(0, 4)), min_size=1, max_size=200), st.integers(2, 30))
@examples(200)
def test_weights_count_rows(pairs, max_bins):
    x, weight = (np.array(each) for each in zip(*pairs, strict=True))
    if not weight.any():
        weight[0] = 1
    weighted = et.Schema.fit(x[:, None], sample_weight=weight, max_bins=max_bins)
    assert weighted == et.Schema.fit(np.repeat(x, weight)[:, None], max_bins=max_bins)


@given(st.lists(st.integers(1, 1000), min_size=3, max_size=300), st.integers(2, 40))
@examples(200)
def test_quantiles_share_the_mass(masses, max_bins):
    x, weight = np.arange(len(masses), dtype=float), np.array(masses, dtype=float)
    schema = et.Schema.fit(x[:, None], sample_weight=weight, max_bins=max_bins)
    assert schema.n_codes[0] == min(max_bins, len(x))
    shares = mass_of_bins(schema, x, weight)
    several = mass_of_bins(schema, x) > 1
    # Only the last bin takes what is left, whatever it is.
    assert (shares[:-1][several[:-1]] <= 1.5 * weight.sum() / max_bins + weight.max()).all()


def test_even_quantiles():
    x = rng_for("even quantiles").permutation(100_000).astype(float)
    counts = mass_of_bins(et.Schema.fit(x[:, None], max_bins=255), x)
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("heavy", [-3.0, 0.0, 0.7, 3.0])
def test_a_heavy_value_has_a_bin_of_its_own(heavy):
    rng = rng_for("heavy", heavy)
    x = np.where(rng.random(20_000) < 0.4, heavy, rng.uniform(-2, 2, 20_000))
    schema = et.Schema.fit(x[:, None], max_bins=32)
    code = schema.encode([[heavy]])[0, 0]
    assert (x[schema.encode(x[:, None])[:, 0] == code] == heavy).all()
    assert schema.n_codes[0] == 32


def test_long_tables_are_sampled():
    x = rng_for("long").normal(size=SAMPLE_ROWS + 50_000)
    x[-1] = np.nan
    schema = et.Schema.fit(x[:, None], max_bins=100)
    assert schema == et.Schema.fit(x[:, None], max_bins=100, n_jobs=2)
    assert schema.columns[0].has_missing
    counts = mass_of_bins(schema, x[:-1])
    assert np.abs(counts / counts.mean() - 1).max() < 0.1


def test_numbers_that_few_rows_of_a_long_table_have_are_told_apart():
    """As long as there are few distinct ones: a sample would miss them."""
    X = np.zeros((SAMPLE_ROWS + 100_000, 2))
    X[: len(X) // 2, 0], X[12, 0], X[13, 0] = 1.0, 99.0, np.nan
    X[:, 1] = rng_for("few of many").normal(size=len(X))
    schema = et.Schema.fit(X)
    np.testing.assert_array_equal(schema.columns[0].cuts, [0.5, 50.0])
    assert schema == et.schema_from_batches([X[:150_000], X[150_000:]], sample_rows=10**6)
    weight = np.ones(len(X))
    weight[12] = 0.0
    np.testing.assert_array_equal(et.Schema.fit(X, sample_weight=weight).columns[0].cuts, [0.5])


# ---- categories -----------------------------------------------------------------------------------------------------


def categories(X, y=None, **options):
    return et.Schema.fit(X, y, **options).columns[0].categories


def test_order_without_targets():
    assert categories([["b"], ["a"], ["é"], ["B"]]) == ("B", "a", "b", "é")
    assert categories([[10], [9], [-1]], categorical_features=[0]) == (-1, 9, 10)
    assert categories([[0.5], [np.nan], [-1.0]], categorical_features=[True]) == (-1.0, 0.5)
    assert categories(np.array([[True], [False]]), categorical_features=[0]) == (False, True)
    assert categories([[True], [None], [False]], categorical_features=[0]) == (False, True)
    ordered = pd.Categorical(["m", "s"], categories=["s", "m", "l"], ordered=True)
    assert categories(pd.DataFrame({"size": ordered})) == ("s", "m", "l")
    assert categories(pd.DataFrame({"size": ordered.as_unordered()})) == ("l", "m", "s")
    assert categories(pl.DataFrame({"size": pl.Series(["m", "s"], dtype=pl.Enum(["s", "m", "l"]))})) == ("s", "m", "l")


def test_order_by_mean_target():
    text = np.repeat(["low", "high", "middle", "rare"], [20, 20, 20, 9])
    y = np.repeat([1.0, 9.0, 4.0, 1000.0], [20, 20, 20, 9])
    weight = np.where(text == "rare", 1e-9, 1.0)  # or the overall mean would be beyond all others
    assert categories(text[:, None], y, sample_weight=weight) == ("low", "middle", "rare", "high")
    assert categories(text[:, None], np.column_stack([-y, y]), sample_weight=weight) == (
        "low",
        "middle",
        "rare",
        "high",
    )
    assert categories(text[:, None], np.zeros(69)) == ("high", "low", "middle", "rare")


def test_order_by_principal_component():
    classes = np.repeat([0, 1, 2, 1], [30, 30, 30, 30])
    text = np.repeat(["a", "b", "c", "d"], 30)
    rng = rng_for("component")
    classes = np.where(rng.random(120) < 0.05, rng.integers(0, 3, 120), classes)
    shares = np.array([np.bincount(classes[text == name], minlength=3) / 30 for name in "abcd"])
    apart = shares - np.bincount(classes, minlength=3) / 120
    scores = apart @ np.linalg.eigh(apart.T @ apart)[1][:, -1]
    expected = tuple(np.array(list("abcd"))[np.argsort(scores)].tolist())
    found = categories(text[:, None], np.eye(3)[classes])
    assert found in (expected, expected[::-1])
    assert found == categories(text[::-1, None], np.eye(3)[classes[::-1]])


def test_declared_order_stays_and_declared_categories_are_known():
    y = np.repeat([3.0, 1.0], 20)
    values = np.repeat(["s", "m"], 20)
    size = pd.Categorical(values, categories=["s", "l", "m"], ordered=True)
    assert categories(pd.DataFrame({"size": size}), y) == ("s", "l", "m")
    assert categories(pd.DataFrame({"size": size.as_unordered()}), y) == ("m", "l", "s")
    enum = pl.DataFrame({"size": pl.Series(values, dtype=pl.Enum(["s", "l", "m"]))})
    assert categories(enum, y) == ("s", "l", "m")


def test_rows_of_weight_zero_are_not_there():
    X = [[1.0, "a"], [2.0, "b"], [None, None]]
    schema = et.Schema.fit(X, sample_weight=[1, 1, 0])
    assert not any(column.has_missing for column in schema.columns)
    assert et.Schema.fit(X, sample_weight=[1, 0, 0]).columns[1].categories == ("a",)


def test_unseen_and_missing_categories():
    schema = et.Schema.fit([["a"], ["b"]])
    assert schema.encode([["b"], ["c"], [None], [np.nan]]).tolist() == [[1], [254], [255], [255]]
    wide = et.Schema.from_columns(schema.columns, np.uint16)
    assert wide.encode(pd.DataFrame({"x": ["b", "c", pd.NA]})).tolist() == [[1], [65534], [65535]]
    assert (unseen_code("uint8"), missing_code(np.uint16)) == (254, 65535)


def test_categories_of_numbers_meet_again():
    schema = et.Schema.fit(pd.DataFrame({"k": [3, 1, 2]}), categorical_features=["k"])
    assert schema.columns[0].categories == (1, 2, 3)
    for later in ([3.0, np.nan, 7.5], pd.array([3, None, 7], dtype="Int64"), pd.Categorical([3, None, 7])):
        assert schema.encode(pd.DataFrame({"k": later})).tolist() == [[2], [255], [254]]


@pytest.mark.parametrize(("n", "dtype"), [(254, np.uint8), (255, np.uint16), (65534, np.uint16)])
def test_most_categories(n, dtype):
    text = np.array([f"{k:05}" for k in range(n)])
    schema = et.Schema.fit(text[:, None])
    assert schema.dtype == dtype
    np.testing.assert_array_equal(schema.encode(text[:, None])[:, 0], np.arange(n))


def test_text_codes_are_the_same_from_any_library():
    values = [*rng_for("text").choice(["x", "yy", "z"], 200).tolist(), None]
    y = rng_for("targets").normal(size=201)
    tables = [
        pd.DataFrame({"t": values}),
        pd.DataFrame({"t": pd.Categorical(values)}),
        pd.DataFrame({"t": pd.array(values, dtype="string")}),
        pl.DataFrame({"t": values}),
        pl.DataFrame({"t": pl.Series(values, dtype=pl.Categorical)}),
        pa.table({"t": pa.array(values).dictionary_encode()}),
        pa.table({"t": pa.array(values)}),
    ]
    schemas = [et.Schema.fit(table, y) for table in tables]
    assert len(set(schemas)) == 1
    assert len({schema.encode(table).tobytes() for schema in schemas for table in tables}) == 1


# ---- groups, and columns that read the same input -------------------------------------------------------------------


@given(st.lists(NUMBERS, min_size=1, max_size=40), st.sets(NUMBERS, max_size=9), st.data())
@examples(100)
def test_groups_of_numbers(rows, cuts, data):
    cuts = sorted({cut for cut in cuts if cut == cut})
    groups = data.draw(st.lists(st.integers(-1, 4), min_size=len(cuts) + 1, max_size=len(cuts) + 1))
    column = Column(None, "numeric", cuts, groups=groups, single=data.draw(st.booleans()))
    assert column.n_codes == max(1, max(groups) + 1)
    for dtype in (np.uint8, np.uint16):
        codes = et.Schema.from_columns([column], dtype).encode(np.array([*rows, *cuts])[:, None])
        assert codes.tolist() == naive_codes([column], [[x] for x in [*rows, *cuts]], missing_code(dtype))


def test_groups_of_categories():
    column = Column("c", "categorical", categories=("x", "y", "z"), groups=(1, -1, 1))
    schema = et.Schema.from_columns([column])
    values = ["x", "y", "z", "new", None]
    assert column.n_codes == 2
    assert schema.encode(pd.DataFrame({"c": values})).tolist() == [[1], [255], [1], [255], [255]]
    assert schema.encode(pd.DataFrame({"c": values})).tolist() == naive_codes([column], [[v] for v in values], 255)


def test_many_values_in_few_groups():
    n = 70_000
    number = Column("n", "numeric", np.arange(n - 1), groups=np.arange(n) % 3)
    text = Column("t", "categorical", categories=map(str, range(n)), groups=np.arange(n) % 2)
    schema = et.Schema.from_columns([number, text])
    assert schema.dtype == np.uint8
    table = pd.DataFrame({"n": np.arange(n), "t": np.arange(n).astype(str)})
    np.testing.assert_array_equal(schema.encode(table, n_jobs=2), np.arange(n)[:, None] % [3, 2])


TWICE = [
    Column("a", "numeric", [0.0]),
    Column("b", "categorical", categories=("x", "y")),
    Column("a, wide", "numeric", [1.0, 2.0], source="a"),
    Column("b is y", "categorical", categories=("x", "y"), groups=(0, 1), source="b"),
    Column("a, rounded", "numeric", [0.1], single=True, source="a"),
]


def test_columns_that_read_the_same_input():
    schema = et.Schema.from_columns(TWICE)
    assert (schema.n_features, schema.n_inputs, schema.input_names) == (5, 2, ["a", "b"])
    table = pd.DataFrame({"a": [0.1, 1.5, None], "b": ["y", "new", "x"]})
    expected = [[1, 1, 0, 1, 1], [1, 254, 1, 255, 1], [255, 0, 255, 0, 255]]
    assert schema.encode(table).tolist() == expected
    assert schema.encode(table[["b", "a"]].assign(c=1)).tolist() == expected
    assert schema.encode(table.to_numpy()).tolist() == expected
    by_place = et.Schema.from_columns(Column(**{**column.to_dict(), "source": k % 2}) for k, column in enumerate(TWICE))
    assert (by_place.n_inputs, by_place.input_names) == (2, None)
    assert by_place.encode(table.rename(columns={"a": "p", "b": "q"})).tolist() == expected
    for each in (schema, by_place):
        assert pickle.loads(pickle.dumps(each)) == each == et.Schema.from_dict(json.loads(json.dumps(each.to_dict())))
    assert schema != by_place
    with pytest.raises(ValueError, match="X has 3 features, but Schema is expecting 2 features"):
        by_place.encode(table.assign(c=1))
    with pytest.raises(ValueError, match="column 'a', row 1: inf"):
        schema.encode(pd.DataFrame({"b": ["x", "x"], "a": [0.0, np.inf]}))


def test_whole_numbers_are_rounded_once():
    cut = np.float32(2**62)
    schema = et.Schema.from_columns([Column(None, "numeric", [cut], single=True)])
    whole = 2**62 + 2**38 + 1  # in float64 exactly between two float32, of which the lower one is the cut
    assert schema.encode(np.array([[2**62], [whole]])).tolist() == [[0], [1]]


# ---- tables of any library ------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::UserWarning:modin")
@pytest.mark.parametrize("name", FRAMES)
@pytest.mark.parametrize("y", [None, range(6)])
def test_any_library_gives_the_same_schema_and_codes(name, y):
    reference, table = pl.DataFrame(COLUMNS), FRAMES[name]()
    schema = et.Schema.fit(table, y)
    assert schema == et.Schema.fit(reference, y)
    kinds = ["numeric", "numeric", "boolean", "categorical", *["datetime"] * 3, "numeric", "numeric"]
    assert [column.kind for column in schema.columns] == kinds
    assert schema.names == list(COLUMNS)
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


# ---- identity and files ---------------------------------------------------------------------------------------------


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


def test_different_schemas_differ():
    schema = et.Schema.fit([[1.0], [2.0]])
    others = [
        et.Schema.fit([[1.0], [2.5]]),
        et.Schema.fit([[1.0], [2.0], [None]]),
        et.Schema.fit(pd.DataFrame({"a": [1.0, 2.0]})),
        et.Schema.from_columns(schema.columns, np.uint16),
        et.Schema.from_columns([Column(None, "numeric", [1.5], groups=(0, 1))]),
        et.Schema.from_columns([Column(None, "numeric", [1.5], source=0)]),
    ]
    assert len({schema, *others}) == 7
    assert schema != 1
    assert schema.columns[0] != 1


def test_schemas_are_frozen():
    schema = et.Schema.fit([[1.0], [2.0]])
    with pytest.raises(AttributeError, match="frozen"):
        schema.columns = ()
    with pytest.raises(AttributeError):
        schema.columns[0].kind = "boolean"
    for array in (schema.columns[0].cuts, schema.n_codes, schema.is_categorical):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    with pytest.raises(TypeError, match=r"Schema\.fit"):
        et.Schema()


# ---- what is refused ------------------------------------------------------------------------------------------------

TABLE_ERRORS = [
    (lambda: scipy.sparse.eye(3, format="csr"), TypeError, r"sparse.*X\.toarray\(\)"),
    (lambda: pl.LazyFrame({"a": [1]}), TypeError, r"X\.collect\(\)"),
    (lambda: np.ones((2, 2), dtype=complex), ValueError, "Complex data not supported"),
    (lambda: pd.DataFrame({"a": [1j]}), ValueError, "Complex data not supported: X: column 'a'"),
    (lambda: [1.0, 2.0], ValueError, "Expected 2D array, got 1D array instead.*Reshape your data"),
    (lambda: pd.Series([1.0, 2.0]), ValueError, "Expected 2D array, got 1D array instead"),
    (lambda: 3.0, ValueError, "Expected 2D array, got scalar array instead"),
    (lambda: np.ones((2, 2, 2)), ValueError, r"shape \(2, 2, 2\)"),
    (lambda: [[1, 2], [3]], ValueError, "rows have different lengths"),
    (lambda: np.ones((0, 3)), ValueError, r"0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required"),
    (lambda: np.ones((3, 0)), ValueError, r"0 feature\(s\) \(shape=\(3, 0\)\) while a minimum of 1 is required"),
    (lambda: pd.DataFrame({"a": []}), ValueError, r"0 sample\(s\)"),
    (lambda: [[1.0, 2.0], [3.0, np.inf]], ValueError, "column 1, row 1: inf, but X must not hold infinity"),
    (lambda: pd.DataFrame({"a": [1, -np.inf]}), ValueError, "column 'a', row 1: -inf, .* infinity"),
    (lambda: [[10**400], [1]], ValueError, "column 0, row 0: inf"),
    (lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]), ValueError, "'a'"),
    (lambda: pd.DataFrame([[1, 2]], columns=["0", 0]), ValueError, "two columns named '0'"),
    (lambda: pa.table([[1], [2]], names=["a", "a"]), ValueError, "'a'"),
    (lambda: [[{"a": 1}], [2]], TypeError, "column 0, row 0: the argument must be a string, a number"),
    (lambda: [[1], [object()]], TypeError, "column 0, row 1: the argument must be"),
    (lambda: np.array([[1], ["b"]], dtype=object), TypeError, r"column 0 holds 1 \(row 0\) and 'b' \(row 1\)"),
    (lambda: pl.DataFrame({"a": [[1], [2]]}), TypeError, "column 'a' is of type List"),
    (lambda: np.array([[1], [2]], dtype="m8[s]"), TypeError, "column 0 is of type timedelta64"),
    (lambda: np.array([[f"{k}"] for k in range(65535)]), ValueError, "column 0 has 65535 categories, .* most 65534"),
]  # fmt: skip


@pytest.mark.parametrize(("make", "kind", "message"), TABLE_ERRORS)
def test_tables_that_are_refused(make, kind, message):
    with pytest.raises(kind, match=message):
        et.Schema.fit(make())


@pytest.mark.parametrize(("options", "message"), [
    ({"max_bins": 1}, "max_bins must be a whole number from 2 to 65534, but is 1"),
    ({"max_bins": 65535}, "max_bins"),
    ({"n_jobs": 0}, "n_jobs"),
    ({"y": [1, 2]}, "y has 2 entries, but X has 3 rows"),
    ({"y": [1, 2, np.nan]}, r"y\[2\] is nan"),
    ({"sample_weight": [1, 2]}, "sample_weight has 2 entries"),
    ({"sample_weight": [1, 2, -1]}, r"sample_weight\[2\] is -1"),
    ({"sample_weight": [0, 0, 0]}, "sample_weight is zero for every row"),
    ({"categorical_features": None}, "column 'c' holds categories, 'x', 'y'.*'from_dtype'"),
    ({"categorical_features": ["a"]}, "column 'c' holds categories"),
    ({"categorical_features": "all"}, "'from_dtype'"),
    ({"categorical_features": ["q"]}, r"names 'q', but the columns of X are 0..2 or \['a', 'c', 'd'\]"),
    ({"categorical_features": [3]}, "names 3"),
    ({"categorical_features": [1.5]}, "names 1.5"),
    ({"categorical_features": [True]}, "1 entries, but X has 3 columns"),
    ({"categorical_features": ["c", "d"]}, "column 'd', which holds dates"),
])  # fmt: skip
def test_options_that_are_refused(options, message):
    table = pd.DataFrame({"a": [1, 2, 3], "c": ["x", "y", "x"], "d": pd.to_datetime(["2020-01-01"] * 3)})
    with pytest.raises(ValueError, match=message):
        et.Schema.fit(table, options.pop("y", None), **options)


GOOD = {"a": [1.0], "c": ["x"], "d": [pd.Timestamp("2020-01-01")]}


@pytest.mark.parametrize(("change", "message"), [
    ({"a": ["old"]}, "column 'a' was numeric when the schema was fitted, but is categorical now: row 0 holds 'old'"),
    ({"a": GOOD["d"]}, "column 'a' was numeric .* but is datetime now"),
    ({"c": [1.5]}, r"column 'c' was categorical \(such as 'x'\) .* but is numeric now: row 0 holds 1.5"),
    ({"c": GOOD["d"]}, "column 'c' was categorical .* but is datetime now"),
    ({"d": [1]}, "column 'd' was datetime .* but is numeric now: row 0 holds 1"),
    ({"d": ["2020-01-01"]}, "column 'd' was datetime .* but is categorical now"),
    ({"a": [-np.inf]}, "column 'a', row 0: -inf, but X must not hold infinity"),
    ({"a": ["inf"]}, "column 'a', row 0: inf"),
])  # fmt: skip
def test_later_columns_that_are_refused(change, message):
    schema = et.Schema.fit(pd.DataFrame({name: values * 2 for name, values in GOOD.items()}))
    with pytest.raises(ValueError, match=message):
        schema.encode(pd.DataFrame({**GOOD, **change}))


def test_later_tables_that_are_refused():
    schema = et.Schema.fit(pd.DataFrame(GOOD))
    with pytest.raises(
        ValueError, match=r"X lacks the columns \['a', 'd'\], which Forest was fitted with; it has \['c'\]"
    ):
        schema.encode(pd.DataFrame({"c": ["x"]}), owner="Forest")
    with pytest.raises(ValueError, match="X has 2 features, but Schema is expecting 3 features as input"):
        schema.encode(np.ones((1, 2)))
    with pytest.raises(ValueError, match="X has 2 features, but Forest is expecting 1 features as input"):
        et.Schema.fit([[1]]).encode(pd.DataFrame({"a": [1], "b": [2]}), owner="Forest")
    with pytest.raises(ValueError, match=r"0 sample\(s\) .* required by Forest"):
        schema.encode(np.ones((0, 3)), owner="Forest")
    numbers = et.Schema.fit([[1], [2]], categorical_features=[0])
    with pytest.raises(ValueError, match=r"column 0 was categorical \(such as 1\).* row 0 holds 'a'"):
        numbers.encode([["a"]])


def test_infinity_is_found_in_any_block():
    X = np.zeros((50_000, 20), dtype=np.float32)
    schema = et.Schema.fit(X)
    X[49_999, 3] = np.inf
    for n_jobs in (1, 2):
        with pytest.raises(ValueError, match="column 3, row 49999: inf"):
            schema.encode(X, n_jobs=n_jobs)
    X[20_000, 19] = -np.inf
    with pytest.raises(ValueError, match="column 19, row 20000: -inf"):
        schema.encode(X, n_jobs=2)


@pytest.mark.parametrize(("fields", "message"), [
    ({"kind": "colour"}, "kind of column 'a' must be one of"),
    ({"cuts": [1.0, 1.0]}, "cuts of column 'a' must be finite and ascending"),
    ({"cuts": [np.inf]}, "finite"),
    ({"cuts": [[1.0]]}, "ascending"),
    ({"categories": ("x",)}, "column 'a' is numeric"),
    ({"kind": "categorical", "cuts": [1.0]}, "column 'a' is categorical"),
    ({"kind": "categorical", "categories": ("x", "x")}, "'x' twice"),
    ({"kind": "categorical", "categories": (None,)}, "one is None"),
    ({"kind": "categorical", "categories": (np.nan,)}, "one is nan"),
    ({"cuts": np.arange(65535)}, "65535 cuts"),
    ({"kind": "categorical", "categories": range(65535)}, "65535 categories"),
    ({"name": 1}, "name must be a str"),
    ({"groups": (0, 1)}, "groups of column 'a' must be 1 codes from -1 on"),
    ({"groups": (-2,)}, "groups of column 'a' must be 1 codes from -1 on"),
    ({"groups": (65535,)}, "65536 groups"),
    ({"source": 1.5}, "source of column 'a' must be a name, a place or None, but is 1.5"),
    ({"source": True}, "source of column 'a' must be"),
    ({"source": -1}, "source of column 'a' must be a name or a place from 0 on, but is -1"),
])  # fmt: skip
def test_columns_that_are_refused(fields, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Column(**{"name": "a", "kind": "numeric", **fields})


def test_sets_of_columns_that_are_refused():
    number = Column(None, "numeric", np.arange(255))
    for columns, dtype, message in [
        ([], None, "empty"),
        ([Column("a", "numeric"), Column("a", "numeric")], None, "different names"),
        ([Column("a", "numeric"), Column(None, "numeric")], None, "different names"),
        ([number], np.uint8, "dtype must be uint16"),
        ([number], np.int64, "dtype must be uint16"),
        ([Column("a", "numeric"), Column("b", "numeric", source=0)], None, r"all names or all places, .* \['a', 0\]"),
        ([Column(None, "numeric", source=1)], None, r"all of the places 0..1, but are \[1\]"),
    ]:
        with pytest.raises(ValueError, match=message):
            et.Schema.from_columns(columns, dtype)


def test_the_kernel_checks_all_sizes_first():
    encoder = _kernels.Encoder(np.arange(255.0), np.array([0, 255]), np.zeros(1, dtype=np.uint8))
    column, wide, narrow = np.zeros(3), np.zeros((3, 1), dtype=np.uint16), np.zeros((3, 1), dtype=np.uint8)
    for columns, out in [
        ([column], narrow),  # too many codes
        ([column[:2]], wide),
        ([column, column], wide),
        ([column], np.zeros((3, 2), dtype=np.uint16)),
        ([column.astype(object)], wide),
        ([np.zeros((3, 1))], wide),
        ([[0.0, 0.0, 0.0]], wide),
    ]:
        with pytest.raises(ValueError, match=r"column"):
            encoder.encode(columns, out, 1)
    with pytest.raises(TypeError):
        encoder.encode([column], np.zeros((3, 1)), 1)
    for start in ([0, 1], [1, 255], [0, 256], [0], [0, 255, 255]):
        with pytest.raises(ValueError, match="start"):
            _kernels.Encoder(np.arange(255.0), np.array(start), np.zeros(1, dtype=np.uint8))
    assert encoder.encode([None], narrow, 1) is None
    one = np.zeros(1, dtype=np.uint8)
    for groups in ([0], [0, 1, 2], [0, -2], [0, 65535]):
        with pytest.raises(ValueError, match="groups"):
            _kernels.Encoder(np.zeros(1), np.array([0, 1]), one, [np.array(groups, dtype=np.int32)])
    with pytest.raises(ValueError, match="groups"):
        _kernels.Encoder(np.zeros(1), np.array([0, 1]), one, [np.zeros(2, dtype=np.int32)] * 2)
    wide_groups = _kernels.Encoder(np.zeros(1), np.array([0, 1]), one, [np.array([0, 255], dtype=np.int32)])
    with pytest.raises(ValueError, match="more codes"):
        wide_groups.encode([column], narrow, 1)


# ---- categorical types of numbers, and time zones -------------------------------------------------------------------


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
