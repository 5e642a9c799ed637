"""The schema: codes of values, groups of codes, and schemas as values."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everytree as et
from cases import examples, rng_for
from everytree.tables.column import Column, missing_code
from naive import naive_codes

NUMBERS = st.floats(allow_infinity=False, width=64) | st.sampled_from([0.0, -0.0, 5e-324, 1e-323, 1.7e308, -1.7e308])


# ---- the rule --------------------------------------------------------------------------------------------------------


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


# ---- groups, and columns that read the same input --------------------------------------------------------------------


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


# ---- identity --------------------------------------------------------------------------------------------------------


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
