"""How numbers are cut, and in which order categories stand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everytree as et
from batch_cases import schema_of
from cases import examples, rng_for
from everytree import _kernels
from everytree.tables.column import SAMPLE_ROWS, missing_code, unseen_code

# ---- cut points ------------------------------------------------------------------------------------------------------


def mass_of_bins(schema: et.Schema, x: np.ndarray, weight: np.ndarray | None = None) -> np.ndarray:
    return np.bincount(schema.encode(x[:, None])[:, 0], weights=weight)


def naive_last_of_bins(mass: np.ndarray, n_bins: int) -> list[int]:
    """Values are handed out from below, each bin the number of values nearest to an equal share of what is left."""
    total = np.concatenate([[0.0], np.cumsum(mass)])
    last: list[int] = []
    for bins_left in range(n_bins, 1, -1):
        first = last[-1] + 1 if last else 0
        share = (total[-1] - total[first]) / bins_left
        # The value in which the share is reached, with one value kept back for each later bin.
        reached = next(i for i in range(len(mass)) if total[i + 1] >= total[first] + share or i == len(mass) - 1)
        reached = min(max(reached, first), len(mass) - bins_left)
        missed, passed = total[first] + share - total[reached], total[reached + 1] - total[first] - share
        stop_before = reached > first and (mass[reached] >= share or missed < passed)
        last.append(reached - 1 if stop_before else reached)
    return last


@given(st.lists(st.integers(1, 40) | st.floats(1e-3, 1e3), min_size=2, max_size=60), st.data())
@examples(200)
def test_bins_are_filled_from_below(masses, data):
    mass, n_bins = np.array(masses, dtype=float), data.draw(st.integers(1, len(masses)))
    assert _kernels.last_of_bins(mass, n_bins).tolist() == naive_last_of_bins(mass, n_bins)


@pytest.mark.parametrize("n_bins", [0, -1, 4])
def test_as_many_bins_as_values_at_most(n_bins):
    with pytest.raises(ValueError, match="n_bins"):
        _kernels.last_of_bins(np.ones(3), n_bins)


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
    assert schema == schema_of([X[:150_000], X[150_000:]], sample_rows=10**6)
    weight = np.ones(len(X))
    weight[12] = 0.0
    np.testing.assert_array_equal(et.Schema.fit(X, sample_weight=weight).columns[0].cuts, [0.5])


# ---- categories ------------------------------------------------------------------------------------------------------


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


def test_declared_order_stays_and_declared_categories_are_known():
    y = np.repeat([3.0, 1.0], 20)
    values = np.repeat(["s", "m"], 20)
    size = pd.Categorical(values, categories=["s", "l", "m"], ordered=True)
    assert categories(pd.DataFrame({"size": size}), y) == ("s", "l", "m")
    assert categories(pd.DataFrame({"size": size.as_unordered()}), y) == ("l", "m", "s")
    enum = pl.DataFrame({"size": pl.Series(values, dtype=pl.Enum(["s", "l", "m"]))})
    assert categories(enum, y) == ("s", "l", "m")


def test_numbers_within_texts_count_as_numbers():
    assert categories([["v10"], ["v9"], ["v1"]]) == ("v1", "v9", "v10")
    assert categories([["-2"], ["10"], ["9.5"], ["x"], ["1e3"]]) == ("-2", "9.5", "10", "1e3", "x")
    assert categories([["a2b10"], ["a2b9"], ["a"], ["nan "], ["²"]]) == ("a", "a2b9", "a2b10", "nan ", "²")
    assert categories([["01"], ["1"], ["1.0"]]) == ("01", "1", "1.0")


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
