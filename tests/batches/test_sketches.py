"""What is learnt of rows in parts merges into what is learnt of all of them: samples, schemas and counts."""

from __future__ import annotations

import itertools
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everytree as et
from cases import CASES, KINDS, assert_same, examples, rng_for, take
from estimator_cases import FRAMES, mixed_columns
from everytree import _kernels
from everytree.batches import RowSample, SchemaSketch
from everytree.posterior.counts import ForestCounts, Tally
from random_shapes import random_shape

families = pytest.mark.parametrize("case", CASES, ids=str)


# ---- samples --------------------------------------------------------------------------------------------------------


def sampled(n_rows: int, size: int, edges: list[int], seed: int = 0) -> np.ndarray:
    sample = RowSample(size, seed)
    for start, end in zip([0, *edges], [*edges, n_rows], strict=True):
        sample.update(end - start, lambda rows, start=start: {"x": rows + start}, start)
    assert len(sample) == min(n_rows, size)
    return sample.columns()["x"]


@examples(50)
@given(st.integers(1, 400), st.integers(1, 100), st.data())
def test_the_sample_depends_on_the_rows_alone(n_rows, size, data):
    edges = sorted(data.draw(st.lists(st.integers(0, n_rows), max_size=6)))
    one, other = sampled(n_rows, size, []), sampled(n_rows, size, edges)
    np.testing.assert_array_equal(one, other)
    assert (np.diff(one) > 0).all()
    if size >= n_rows:
        np.testing.assert_array_equal(one, np.arange(n_rows))


@examples(50)
@given(st.integers(1, 400), st.integers(1, 100), st.integers(1, 6), st.booleans())
def test_samples_of_parts_merge_into_the_sample_of_all(n_rows, size, n_parts, backwards):
    parts = np.array_split(np.arange(n_rows), n_parts)
    merged = RowSample(size)
    for part in parts[::-1] if backwards else parts:
        if len(part):
            own = RowSample(size).update(len(part), lambda rows, part=part: {"x": part[rows]}, int(part[0]))
            merged.merge(pickle.loads(pickle.dumps(own)))
    np.testing.assert_array_equal(merged.columns()["x"], sampled(n_rows, size, []))


def test_every_row_is_as_probable_as_any_other():
    """Over many seeds, each of 50 rows is in about a fifth of the samples of 10, near ones no more often together."""
    n_seeds = 4000
    inside = np.zeros((n_seeds, 50), dtype=bool)
    for seed in range(n_seeds):
        inside[seed, sampled(50, 10, [], seed)] = True
    share = inside.mean(axis=0)
    assert np.abs(share - 0.2).max() < 5 * np.sqrt(0.2 * 0.8 / n_seeds)
    together = (inside[:, 1:] & inside[:, :-1]).mean(axis=0)
    assert np.abs(together - 10 * 9 / (50 * 49)).max() < 5 * np.sqrt(0.04 / n_seeds)


@pytest.mark.parametrize(("n_rows", "size"), [(1, 5), (5, 5), (1000, 7), (1000, 999), (3_000_000, 100)])
def test_parts_of_a_table_of_known_length_keep_no_row_in_vain(n_rows, size):
    part = RowSample(size).for_part_of(n_rows)
    part.update(n_rows, lambda places: {"x": places}, 0)
    assert part._n_kept == min(n_rows, size)
    whole = RowSample(size).update(n_rows, lambda places: {"x": places}, 0)
    np.testing.assert_array_equal(part.columns()["x"], whole.columns()["x"])


def test_samples_of_other_kinds_do_not_merge():
    for other in (RowSample(5, seed=1), RowSample(6)):
        with pytest.raises(ValueError, match="other keeps"):
            RowSample(5).merge(other)


# ---- numbers --------------------------------------------------------------------------------------------------------


@examples(100)
@given(st.lists(st.sampled_from([-2.5, -0.0, 0.0, 1.0, 1e300, np.nan, 7.0]), max_size=40), st.integers(1, 6))
def test_distinct_numbers_while_they_are_few(values, most):
    numbers = np.array(values, dtype=np.float64)
    distinct, has_missing, infinite = _kernels.scan_numbers(numbers, np.empty(0), most)
    expected = np.unique(numbers[~np.isnan(numbers)])
    assert has_missing == np.isnan(numbers).any()
    assert infinite == -1
    if len(expected) > most:
        assert distinct is None
    else:
        np.testing.assert_array_equal(np.sort(distinct), expected)


@pytest.mark.parametrize("kind", ["f4", "f8", "i1", "u1", "i2", "i4", "i8", "u8", "?"])
@pytest.mark.parametrize("step", [1, 3])
def test_numbers_of_any_type_and_any_stride(kind, step):
    numbers = (rng_for(kind, step).integers(0, 2 if kind == "?" else 90, 6000) % 120).astype(kind)[::step]
    distinct, has_missing, infinite = _kernels.scan_numbers(numbers, np.array([500.0]), 200)
    np.testing.assert_array_equal(np.sort(distinct), [*np.unique(numbers).astype(float), 500.0])
    assert (has_missing, infinite) == (False, -1)
    assert _kernels.scan_numbers(numbers, None, 200) == (None, False, -1)


def test_the_first_infinite_number_is_found():
    numbers = np.zeros(5000)
    numbers[[17, 3000, 4000]] = [np.nan, -np.inf, np.inf]
    assert _kernels.scan_numbers(numbers, None, 5)[2] == 3000


# ---- schemas --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FRAMES)
@pytest.mark.parametrize("n_parts", [1, 2, 7])
def test_sketches_of_parts_merge_into_the_schema_of_the_table(kind, n_parts):
    columns, signal = mixed_columns()
    table = FRAMES[kind](columns)
    expected = et.Schema.fit(table, signal)
    edges = np.linspace(0, len(signal), n_parts + 1).astype(int)
    merged = SchemaSketch()
    for start, end in itertools.pairwise(edges):
        own = SchemaSketch().update(table[start:end], signal[start:end], first_row=int(start))
        merged.merge(pickle.loads(pickle.dumps(own)))
    assert merged.n_rows == len(signal)
    assert merged.schema(merged.sample.y) == expected


def test_rows_follow_those_of_the_last_update():
    x = rng_for("follow").normal(size=(300, 2))
    one = SchemaSketch(sample_rows=40).update(x, np.arange(300))
    part = SchemaSketch(sample_rows=40).update(x[100:150], np.arange(100, 150), first_row=100)
    part.update(x[150:], np.arange(150, 300))
    merged = SchemaSketch(sample_rows=40).update(x[:100], np.arange(100)).merge(part)
    np.testing.assert_array_equal(merged.sample.y, one.sample.y)


def test_a_column_of_nothing_so_far_may_become_any_kind():
    parts = [
        pd.DataFrame({"a": [None, None], "b": pd.Series([None, None], dtype=object), "c": [1.0, 2.0]}),
        pd.DataFrame({"a": ["x", "y"], "b": [1.5, 2.5], "c": [np.nan, np.nan]}),
    ]
    expected = et.Schema.fit(pd.concat([p.astype(object) for p in parts], ignore_index=True).infer_objects())
    for order in (parts, parts[::-1]):
        one = SchemaSketch()
        for part in order:
            one.update(part)
        assert one.schema() == expected
        merged = SchemaSketch().update(order[0]).merge(SchemaSketch().update(order[1], first_row=2))
        assert merged.schema() == expected


def test_numbers_named_as_categories_are_of_one_type():
    parts = [np.array([[1.0], [2.0]]), np.array([[2.5], [1.0]])]
    sketch = SchemaSketch(categorical_features=[0])
    for part in parts:
        sketch.update(part)
    expected = et.Schema.fit(np.concatenate(parts), categorical_features=[0])
    assert sketch.schema() == expected
    assert [type(value) for value in sketch.schema().columns[0].categories] == [float] * 3


def test_quantiles_of_a_sample_are_near_those_of_all_rows():
    """Within five standard errors of a rank, 0.5 / sqrt(rows of the sample)."""
    x = rng_for("quantiles").lognormal(size=200_000)
    sketch = SchemaSketch(sample_rows=20_000, max_bins=64)
    for part in np.array_split(x, 13):
        sketch.update(part[:, None])
    cuts = sketch.schema().columns[0].cuts
    assert len(cuts) == 63
    ranks = np.searchsorted(np.sort(x), cuts) / len(x)
    assert np.abs(ranks - np.arange(1, 64) / 64).max() < 5 * 0.5 / np.sqrt(20_000)


def test_few_distinct_numbers_are_all_cut_apart_however_rare():
    x = np.zeros(50_000)
    x[[7, 49_999]] = [3.0, -1.0]
    sketch = SchemaSketch(sample_rows=100)
    for part in np.array_split(x, 9):
        sketch.update(part[:, None])
    np.testing.assert_array_equal(sketch.schema().columns[0].cuts, [-0.5, 1.5])


# ---- counts ---------------------------------------------------------------------------------------------------------


SIZES = [2, 3, 3, 2]


def forest_of(case: Any, what: str, n_trees: int = 4) -> tuple[et.Forest, np.ndarray, np.ndarray, dict[str, Any]]:
    """Trees with and without branches for missing values, and rows with answers that no tree knows."""
    rng = rng_for("counts", case, what)
    trees = [random_shape(SIZES, 4, rng=rng, kind=KINDS[i % 3], missing=bool(i % 2), stop=0.2) for i in range(n_trees)]
    codes = np.column_stack([rng.integers(0, size, 700) for size in SIZES]).astype(np.uint8)
    codes[rng.random(codes.shape) < 0.05] = 255
    codes[rng.random(codes.shape) < 0.02] = 3
    forest = et.Forest([et.Posterior(one, case.family, 0.3) for one in trees], n_codes=SIZES)
    y, row_data = case.draw(rng, len(codes))
    return forest, codes, y, row_data


@families
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64])
def test_counts_are_the_forest_after_an_update(case, dtype):
    """Rows that a tree cannot place, for a missing value or a category that is new, are left out there alone."""
    forest, codes, y, row_data = forest_of(case, "update")
    wide = codes.astype(dtype)
    wide[codes == 255] = -1 if dtype is np.int64 else np.iinfo(dtype).max
    weight = rng_for("weights", case).integers(0, 3, len(y))
    counts = ForestCounts(forest)
    for rows in np.array_split(np.arange(len(y)), 5):
        counts.update(wide[rows], y[rows], weight[rows], **take(row_data, rows))
    expected = forest.copy().update(wide, y, weight, **row_data)
    for mine, other in zip(counts.forest().posteriors, expected.posteriors, strict=True):
        assert_same(mine, other)


def test_sketches_merge_by_the_names_of_columns():
    table = pd.DataFrame({"a": np.arange(60) % 7, "b": ["x", "y", "z"] * 20, "c": np.arange(60) / 3})
    later = SchemaSketch().update(table[30:][["c", "b", "a"]], first_row=30)
    merged = SchemaSketch().update(table[:30]).merge(later)
    assert merged.schema() == et.Schema.fit(table)
    with pytest.raises(ValueError, match=r"it lacks the columns \['b'\], unlike those before"):
        merged.merge(SchemaSketch().update(table[["a", "c"]], first_row=60))


@families
def test_counts_of_parts_merge(case):
    forest, codes, y, row_data = forest_of(case, "merge")
    whole = ForestCounts(forest).update(codes, y, **row_data)
    merged = ForestCounts(forest)
    for rows in np.array_split(np.arange(len(y)), 7):
        part = ForestCounts(forest).update(codes[rows], y[rows], **take(row_data, rows))
        merged.merge(pickle.loads(pickle.dumps(part)))
    for mine, other in zip(merged.forest().posteriors, whole.forest().posteriors, strict=True):
        assert_same(mine, other)


@families
def test_counts_are_the_same_bits_for_any_n_jobs(case):
    forest, codes, y, row_data = forest_of(case, "jobs")
    rows = np.tile(np.arange(len(y)), 40)
    all_counts = [
        ForestCounts(forest).update(codes[rows], y[rows], n_jobs=n_jobs, **take(row_data, rows))
        for n_jobs in (None, 2, 5)
    ]
    for counts in all_counts[1:]:
        for mine, other in zip(counts.statistics, all_counts[0].statistics, strict=True):
            assert mine.tobytes() == other.tobytes()


def test_a_failed_count_changes_nothing():
    forest, codes, y, _ = forest_of(CASES[0], "failed")
    counts = ForestCounts(forest).update(codes, y)
    before = [stat.copy() for stat in counts.statistics], counts.n_rows.copy()
    bad = np.tile(y, 60)
    bad[-1] = 9
    for n_jobs in (1, 2):
        with pytest.raises(ValueError, match=rf"y\[{len(bad) - 1}\] is 9"):
            counts.update(np.tile(codes, (60, 1)), bad, n_jobs=n_jobs)
    np.testing.assert_array_equal(counts.n_rows, before[1])
    for mine, other in zip(counts.statistics, before[0], strict=True):
        np.testing.assert_array_equal(mine, other)


@families
def test_what_was_counted_may_be_added_without_the_trees(case):
    forest, codes, y, row_data = forest_of(case, "tally")
    whole, parts = ForestCounts(forest).update(codes, y, **row_data), ForestCounts(forest)
    for rows in np.array_split(np.arange(len(y)), 3):
        parts.add(parts.empty().update(codes[rows], y[rows], **take(row_data, rows)).tally())
    np.testing.assert_array_equal(parts.n_rows, whole.n_rows)
    for mine, other in zip(parts.forest().posteriors, whole.forest().posteriors, strict=True):
        assert_same(mine, other)


def test_what_was_counted_over_other_trees_is_not_added():
    one, *_ = forest_of(CASES[0], "one")
    other, *_ = forest_of(CASES[0], "other", n_trees=3)
    counts = ForestCounts(one)
    with pytest.raises(ValueError, match="an entry for each tree"):
        counts.add(ForestCounts(other).tally())
    tally = counts.tally()
    with pytest.raises(ValueError, match="tree 1 do not fit"):
        counts.add(Tally([tally.statistics[0], tally.statistics[1][:-1], *tally.statistics[2:]], tally.n_rows))


def test_counts_over_other_trees_do_not_merge():
    one, *_ = forest_of(CASES[0], "one")
    other, *_ = forest_of(CASES[0], "other", n_trees=3)
    with pytest.raises(ValueError, match="other has 3 trees"):
        ForestCounts(one).merge(ForestCounts(other))
