"""Tables, options and columns that a schema refuses, and sizes that its kernel checks."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import everytree as et
from everytree import _kernels
from everytree.tables.column import Column

TABLE_ERRORS = [
    (lambda: scipy.sparse.coo_array(np.ones(3)), ValueError, r"X must be a table .* sparse with shape \(3,\)"),
    (lambda: scipy.sparse.eye(3, format="csr", dtype=complex), ValueError, "Complex data not supported: X"),
    (lambda: scipy.sparse.csr_matrix([[1.0], [np.inf]]), ValueError, "column 0, row 1: inf"),
    (lambda: scipy.sparse.csr_matrix((0, 3)), ValueError, r"0 sample\(s\)"),
    (lambda: dd.from_pandas(pd.DataFrame({"a": [1]}), 1), TypeError, r"X\.compute\(\)"),
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
    (lambda: np.zeros((2, 1), dtype="V8"), TypeError, r"column 0 is of type \|V8"),
    (lambda: np.array([[f"n{k}"] for k in range(65535)]), ValueError, "column 0 has 65535 categories, .* most 65534"),
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
