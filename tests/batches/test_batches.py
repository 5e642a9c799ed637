"""Fits from batches: the structures of a sample, the statistics of all rows, wherever the batches come from."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest
from sklearn.base import clone

import everytree as et
from batch_cases import schema_of
from cases import assert_same
from estimator_cases import ALL, FOUR, FRAMES, Case, answers, ids, mixed_columns, of_leaf, state
from everytree.batches.prefetch import read_ahead

SAMPLE = 60


def frame_of(case: Case, n: int = 200) -> tuple[pd.DataFrame, dict[str, str]]:
    """Rows of a case as one table, and the names of the columns that are no features."""
    X, y, row_data = case.draw(n, "batches")
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(y=y, **row_data)
    return table, {"target": "y", **{name: name for name in row_data}}


def cut(table: Any, size: int) -> list[Any]:
    return [table[start : start + size] for start in range(0, len(table), size)]


def emptied(model: Any) -> et.Forest:
    """The structures, priors and weights of a model, without rows."""
    forest = model.forest_
    posteriors = [et.Posterior(post.tree, post.family, post.split_prior) for post in forest.posteriors]
    return et.Forest(posteriors, weights=forest.weights, sharpness=forest.sharpness, n_codes=forest.n_codes)


# ---- the laws -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 37, 200])
@pytest.mark.parametrize("case", **ids(ALL))
def test_statistics_are_those_of_all_rows_in_the_same_structures(case, size):
    """Batches of one row are in `make test` too: of four estimators, below."""
    table, roles = frame_of(case)
    model = case.make().fit_batches(cut(table, size), sample_rows=SAMPLE, **roles)
    X, row_data = table[["a", "b", "c", "d"]], {name: table[name].to_numpy() for name in roles if name != "target"}
    y = model.fitted_.target.numbers(model.fitted_.target.read(table["y"]))
    expected = emptied(model).update(model.schema_.encode(X), y, **of_leaf(model, X.to_numpy(), row_data))
    assert model.forest_.n_rows == len(table)
    for post, other in zip(model.forest_.posteriors, expected.posteriors, strict=True):
        assert_same(post, other)


@pytest.mark.parametrize("case", **ids(ALL))
def test_where_all_rows_are_in_the_sample_it_is_the_fit_of_the_table(case):
    table, roles = frame_of(case)
    row_data = {name: table[name] for name in roles if name != "target"}
    whole = case.make().fit(table[["a", "b", "c", "d"]], table["y"], **row_data)
    model = case.make().fit_batches(cut(table, 37), **roles)
    assert model.schema_ == whole.schema_
    assert state(model) == state(whole)
    assert model.feature_names_in_.tolist() == whole.feature_names_in_.tolist()


@pytest.mark.parametrize("case", **ids(FOUR))
def test_the_same_model_for_any_batch_size_and_any_number_of_threads(case):
    table, roles = frame_of(case)
    models = [
        case.make(n_jobs=n_jobs).fit_batches(cut(table, size), sample_rows=SAMPLE, **roles)
        for size, n_jobs in [(200, None), (200, 3), (1, None), (37, 2)]
    ]
    assert tuple(state(models[0])) == tuple(state(models[1]))
    for model in models[1:]:
        assert model.schema_ == models[0].schema_
        for post, other in zip(model.forest_.posteriors, models[0].forest_.posteriors, strict=True):
            assert post.tree == other.tree
            assert_same(post, other)


@pytest.mark.parametrize("kind", FRAMES)
def test_tables_of_every_library_are_read_alike(kind):
    columns, signal = mixed_columns()
    y = np.where(signal > np.median(signal), "dear", "cheap").tolist()
    whole = et.MetaForestClassifier(5, random_state=0).fit(FRAMES[kind](columns), np.array(y))
    table = FRAMES[kind]({**columns, "y": y})
    for sample_rows in (1000, 100):
        model = et.MetaForestClassifier(5, random_state=0)
        model.fit_batches(cut(table, 23), target="y", sample_rows=sample_rows)
        assert model.forest_.n_rows == len(signal)
        if sample_rows == 1000:
            assert model.schema_ == whole.schema_
            assert state(model) == state(whole)
        for mine, other in zip(model.schema_.columns, whole.schema_.columns, strict=True):
            assert (mine.kind, mine.has_missing) == (other.kind, other.has_missing)
            assert set(mine.categories) == set(other.categories)


def test_rows_of_weight_0_are_absent_and_weights_count():
    table, _ = frame_of(FOUR[0])
    table["w"] = np.arange(len(table)) % 3
    model = FOUR[0].make().fit_batches(cut(table, 31), target="y", sample_weight="w", sample_rows=SAMPLE)
    kept = table[table.w > 0]
    other = FOUR[0].make().fit_batches(cut(kept, 50), target="y", sample_weight="w", sample_rows=SAMPLE)
    assert state(model) == state(other)
    assert model.forest_.posteriors[0].statistics[0].sum() == pytest.approx(table.w.sum())
    triples = [(part[["a", "b", "c", "d"]], part["y"], part["w"]) for part in cut(table, 31)]
    assert state(FOUR[0].make().fit_batches(triples, sample_rows=SAMPLE)) == state(model)


def test_classes_and_categories_that_only_few_rows_have_are_known():
    n = 3000
    table = pd.DataFrame({"a": np.arange(n) % 7, "b": ["x", "y"] * (n // 2), "y": [0, 1] * (n // 2)})
    table["b"] = table["b"].astype(object)
    table.loc[n - 1, ["b", "y"]] = ["rare", 2]
    table.loc[n - 2, "a"] = 99
    table["c"] = np.where(np.arange(n) == 1234, np.nan, 1.0)
    model = et.MetaForestClassifier(3, random_state=0).fit_batches(cut(table, 500), target="y", sample_rows=50)
    assert model.classes_.tolist() == [0, 1, 2]
    assert set(model.schema_.columns[1].categories) == {"x", "y", "rare"}
    assert model.schema_.columns[0].cuts[-1] == 52.5
    assert model.schema_.columns[2].has_missing
    assert model.forest_.n_rows == n


# ---- where batches come from ----------------------------------------------------------------------------------------


class Again:
    """Something of the user's that can be iterated again and again."""

    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[Any]:
        return iter(self.parts)


def _write(path: Path, table: pa.Table) -> str:
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=40)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.feather.write_feather(table, path, chunksize=40)
    return str(path)


def _folder(where: Path, table: pa.Table, suffix: str) -> Path:
    folder = where / "parts"
    folder.mkdir()
    for i in range(3):
        _write(folder / f"part-{i}{suffix}", table.slice(67 * i, 67))
    (folder / "_SUCCESS").touch()
    return folder


def _relation(where: Path, table: pa.Table) -> Any:
    path = _write(where / "t.parquet", table)
    return duckdb.sql(f"SELECT * FROM '{path}' WHERE a IS NOT NULL OR a IS NULL")


SOURCES: dict[str, Callable[[Path, pa.Table], Any]] = {
    "record batches": lambda where, t: t.to_batches(max_chunksize=33),
    "arrow table": lambda where, t: t,
    "data frame": lambda where, t: t.to_pandas(),
    "iterable": lambda where, t: Again(t.to_batches(max_chunksize=50)),
    "function": lambda where, t: lambda: (t.slice(i, 50) for i in range(0, 201, 50)),
    "pairs": lambda where, t: [(p.drop(columns="y"), p["y"]) for p in cut(t.to_pandas(), 50)],
    "relation": _relation,
    "parquet": lambda where, t: _write(where / "t.parquet", t),
    "path": lambda where, t: Path(_write(where / "t.parquet", t)),
    "csv": lambda where, t: _write(where / "t.csv", t),
    "feather": lambda where, t: _write(where / "t.feather", t),
    "folder": lambda where, t: _folder(where, t, ".parquet"),
    "folder of csv": lambda where, t: _folder(where, t, ".csv"),
    "pattern": lambda where, t: f"{_folder(where, t, '.parquet')}/part-*.parquet",
}


@pytest.mark.parametrize("sample_rows", [SAMPLE, 1000])
@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_model(source, sample_rows, tmp_path):
    columns, signal = mixed_columns(200)
    columns = {"a": columns["city"], **{name: columns[name] for name in ("area", "rooms", "garden")}}
    table = pa.table({**columns, "y": np.where(signal > np.median(signal), "dear", "cheap")})
    expected = et.MetaForestClassifier(4, random_state=0).fit_batches([table], target="y", sample_rows=sample_rows)
    model = et.MetaForestClassifier(4, random_state=0)
    target = None if source == "pairs" else "y"
    model.fit_batches(SOURCES[source](tmp_path, table), target, sample_rows=sample_rows)
    assert model.schema_ == expected.schema_
    assert state(model) == state(expected)
    np.testing.assert_array_equal(answers(model, table.drop(["y"])), answers(expected, table.drop(["y"])))


def test_arrays_without_names():
    X, y, _ = FOUR[1].draw(200)
    model = FOUR[1].make().fit_batches([(X[:90], y[:90]), (X[90:], y[90:])], sample_rows=SAMPLE)
    assert model.forest_.n_rows == 200
    assert not hasattr(model, "feature_names_in_")
    assert model.predict(X).shape == (200,)


def test_a_partition_of_no_rows_is_passed_over():
    table, roles = frame_of(FOUR[0])
    parts = [table[:0], *cut(table, 50), table[:0]]
    model = FOUR[0].make().fit_batches(parts, sample_rows=SAMPLE, **roles)
    assert state(model) == state(FOUR[0].make().fit_batches(cut(table, 50), sample_rows=SAMPLE, **roles))


def test_columns_may_come_in_another_order():
    table, roles = frame_of(FOUR[0])
    parts = cut(table, 50)
    turned = [parts[0], *(part[part.columns[::-1]] for part in parts[1:])]
    expected = FOUR[0].make().fit_batches(parts, sample_rows=SAMPLE, **roles)
    assert state(FOUR[0].make().fit_batches(turned, sample_rows=SAMPLE, **roles)) == state(expected)


def test_more_rows_may_follow():
    table, roles = frame_of(FOUR[0])
    model = FOUR[0].make().fit_batches(cut(table[:150], 50), sample_rows=SAMPLE, **roles)
    model.partial_fit(table[150:].drop(columns="y"), table[150:]["y"])
    assert model.forest_.n_rows == 200


# ---- below the estimators -------------------------------------------------------------------------------------------


def test_the_schema_of_batches_is_that_of_the_table():
    columns, signal = mixed_columns()
    table = FRAMES["pandas"](columns).assign(y=signal)
    features = table.drop(columns="y")
    assert schema_of(cut(features, 31)) == et.Schema.fit(features)
    assert schema_of(cut(table, 31), target="y") == et.Schema.fit(features, signal)


def test_files_of_a_folder_may_have_numbers_of_several_types(tmp_path):
    """Each file's are as they are, not rounded to the type of the first."""
    large = 1.7e9 + np.arange(100)
    columns = [
        {"a": pa.array([0.0, 1.0, 2.0], pa.float32()), "i": pa.array([1, 2, 3], pa.int32()), "t": pa.nulls(3)},
        {"a": pa.array(large), "i": pa.array(2.0**40 + 0.5 * np.arange(100)), "t": pa.array(["x", "y"] * 50)},
    ]
    for k, one in enumerate(columns):
        pa.parquet.write_table(pa.table(one), tmp_path / f"{k}.parquet")
    found = schema_of(tmp_path)
    assert found == schema_of([pa.table(one) for one in columns])
    assert [len(column.cuts) for column in found.columns] == [102, 102, 0]
    assert found.columns[2].categories == ("x", "y")


def test_columns_that_folders_name_are_columns_of_patterns_too(tmp_path):
    rng = np.random.default_rng(4)
    g = rng.choice(["u", "v"], 300)
    table = pa.table({"a": rng.normal(size=300), "g": g, "y": (g == "u").astype(int)})
    pa.parquet.write_to_dataset(table, tmp_path / "run=7" / "data", partition_cols=["g"])
    (tmp_path / "run=7" / "data" / "_log").mkdir()
    (tmp_path / "run=7" / "data" / "_log" / "0.json").write_text("{}")
    folder = tmp_path / "run=7" / "data"
    models = [
        et.MetaTreeClassifier(random_state=0).fit_batches(str(where), "y")
        for where in (folder, folder / "*" / "*.parquet", folder / "**" / "*.parquet", folder / "g=*")
    ]
    for model in models:
        assert model.feature_names_in_.tolist() == ["a", "g"]
        assert state(model) == state(models[0])
    filtered = pa.dataset.dataset(folder, partitioning="hive").filter(pa.dataset.field("a") > 0.0)
    model = et.MetaTreeClassifier(random_state=0).fit_batches(lambda: filtered.to_batches(), "y")
    assert model.forest_.n_rows == int((table["a"].to_numpy() > 0.0).sum())


@pytest.mark.parametrize("start", [2**53, 2**60, -(2**60)])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_whole_numbers_beyond_doubles_are_classes(start, dtype):
    if start < 0 and dtype is np.uint64:
        start = 2**63
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 2))
    y = np.where(X[:, 0] > 0.0, dtype(start), dtype(start + 1))
    model = et.MetaTreeClassifier(random_state=0).fit_batches([(X[:200], y[:200]), (X[200:], y[200:])])
    assert model.classes_.tolist() == [start, start + 1]
    assert (model.predict(X) == y).mean() > 0.9


def test_a_batch_in_which_a_column_has_no_value_is_of_any_kind():
    """As a chunk of a CSV file is in which all of a column's texts are missing."""
    rng = np.random.default_rng(6)
    table = pd.DataFrame({"s": rng.choice(["u", "v"], 300), "n": rng.normal(size=300), "y": rng.integers(0, 2, 300)})
    table.loc[100:199, ["s", "n"]] = None
    whole = et.MetaTreeClassifier(random_state=0).fit(table[["s", "n"]], table["y"])
    for first in (0, 100):
        numbers = table.assign(s=np.nan)
        parts = [table[:100], numbers[100:200], table[200:]] if first == 0 else [numbers[100:200], table[:100]]
        model = et.MetaTreeClassifier(random_state=0).fit_batches(parts, "y")
        assert model.schema_.columns[0].categories == ("u", "v") or model.schema_.columns[0].categories == ("v", "u")
        assert model.schema_.columns[0].has_missing
        if first == 0:
            assert state(model) == state(whole)
    nothing = [pd.DataFrame({"s": [np.nan] * 3, "n": [1.0, 2.0, 3.0]})] * 2
    assert schema_of(nothing) == et.Schema.fit(pd.concat(nothing))


def test_a_class_that_rows_of_weight_0_alone_have_is_none():
    table = pd.DataFrame({"x": np.arange(40.0), "y": ["p", "q"] * 20, "w": 1.0})
    table.loc[0, ["y", "w"]] = ["a", 0.0]
    for model in (et.MetaTreeClassifier(random_state=0), et.MetaForestClassifier(3, random_state=0)):
        whole = clone(model).fit(table[["x"]], table["y"], table["w"])
        assert whole.classes_.tolist() == ["p", "q"]
        assert state(model.fit_batches([table[:7], table[7:]], "y", sample_weight="w")) == state(whole)
    exact = et.ExactTreeClassifier(max_depth=1).fit(table[["x"]], table["y"], table["w"])
    assert exact.predict_proba(table[["x"]]).shape == (40, 2)
    model = et.MetaTreeClassifier(random_state=0)
    model.partial_fit(table[["x"]], table["y"], classes=["a", "p", "q"], sample_weight=table["w"])
    assert model.classes_.tolist() == ["a", "p", "q"]


def test_row_data_may_be_left_out():
    table, _ = frame_of(next(case for case in ALL if "poisson" in str(case)))
    X = table[["a", "b", "c", "d", "y"]]
    model = et.MetaTreeRegressor(family="poisson", random_state=0).fit_batches([X], "y", exposure=None)
    assert model.fitted_.row_names == []


def test_decimal_weights_are_weights():
    weights = np.arange(1, 41) / 4
    table = pa.table({"x": np.arange(40.0), "y": [0, 1] * 20, "w": weights})
    decimal = table.set_column(2, "w", table["w"].cast(pa.decimal128(10, 2)))
    models = [et.MetaTreeClassifier(random_state=0).fit_batches([t], "y", sample_weight="w") for t in (table, decimal)]
    assert state(models[0]) == state(models[1])


# ---- reading ahead, and saying so -----------------------------------------------------------------------------------


def test_memory_holds_a_few_batches_whatever_their_number():
    alive: weakref.WeakSet[Any] = weakref.WeakSet()

    class Part:
        """A batch that can be watched."""

    most = 0

    def parts() -> Iterator[Part]:
        for _ in range(200):
            part = Part()
            alive.add(part)
            yield part

    for part in read_ahead(parts):
        most = max(most, len(alive))
        del part
    gc.collect()
    assert most <= 5
    assert len(alive) == 0


def test_the_reading_thread_ends_with_the_work():
    def endless() -> Iterator[int]:
        while True:
            yield 1

    before = threading.active_count()
    for _ in read_ahead(endless):
        break
    with pytest.raises(KeyError, match="spoilt"):
        list(read_ahead(spoilt))
    gc.collect()
    for _ in range(100):
        if threading.active_count() == before:
            break
        time.sleep(0.05)
    assert threading.active_count() == before


def spoilt() -> Iterator[int]:
    yield 1
    raise KeyError("spoilt")


def test_progress_says_how_many_rows_a_second(capsys):
    table, roles = frame_of(FOUR[0])
    FOUR[0].make(verbose=1).fit_batches(cut(table, 50), sample_rows=SAMPLE, **roles)
    said = capsys.readouterr().err
    assert "reading 200 rows" in said
    assert "200/200" in said
    assert "rows a second" in said


def test_batches_need_no_library_that_is_not_there():
    code = "import sys, everytree.batches; print([m for m in ('pyarrow', 'duckdb', 'pandas') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
