"""What is wrong with batches is said with the batch or the field; a failed fit changes nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import everytree as et
from batch_cases import schema_of
from estimator_cases import state
from everytree.batches import column_sketch
from everytree.fitting.structures.forest import ForestStructure


def table(n: int = 90) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {"a": rng.normal(size=n), "b": ["x", "y", "z"] * (n // 3), "t": rng.uniform(1, 2, n), "y": [0, 1] * (n // 2)}
    )


def parts(**changed: Any) -> list[Any]:
    """Three batches; the last one with some columns changed."""
    whole = table()
    return [whole[:30], whole[30:60], whole[60:].assign(**changed)]


def forest(**options: Any) -> et.MetaForestClassifier:
    return et.MetaForestClassifier(2, random_state=0, **options)


WRONG: dict[str, tuple[Callable[[], Any], dict[str, Any], str]] = {
    "another column": (lambda: parts(c=1), {}, r"batch 2: it has the columns \['c'\], unlike those before"),
    "a column less": (lambda: [*parts()[:2], table()[["a", "t", "y"]]], {}, r"batch 2: it lacks the columns \['b'\]"),
    "another kind": (lambda: parts(a="text"), {}, "batch 2: column 'a' is categorical, but was numeric before"),
    "a date for a number": (
        lambda: parts(a=pd.Timestamp("2024-01-01")), {}, "batch 2: column 'a' is datetime, but was numeric",
    ),
    "infinity": (lambda: parts(a=np.inf), {}, "batch 2: X: column 'a', row 0: inf"),
    "no target in one batch": (
        lambda: [*parts()[:2], table()[["a", "b", "t"]]], {}, "batch 2: it has no column 'y'; its columns are",
    ),
    "target of some rows": (lambda: parts(y=[0.0] * 7 + [np.nan] * 23), {}, "batch 2: target 'y' is missing in row 7"),
    "targets of two kinds": (lambda: parts(y="yes"), {}, "batch 2: the target has"),
    "measured target": (lambda: parts(y=0.5), {}, "batch 2: Unknown label type: continuous"),
    "no target named": (lambda: parts(), {"target": None}, "batch 0: it has no target: name its column by target="),
    "no such column": (lambda: parts(), {"sample_weight": "w"}, "batch 0: it has no column 'w'"),
    "a negative weight": (
        lambda: parts(t=-1.0), {"sample_weight": "t"}, r"batch 2: sample_weight\[0\] is -1.0, but must be finite",
    ),
    "weights that are all 0": (
        lambda: [part.assign(t=0.0) for part in parts()], {"sample_weight": "t"}, "batches is empty: there are no rows",
    ),
    "an array as a weight": (
        lambda: parts(), {"sample_weight": np.ones(90)}, "sample_weight must be the name of a column, but is ndarray",
    ),
    "exposure for classes": (lambda: parts(), {"exposure": "t"}, "MetaForestClassifier takes no 'exposure'"),
    "a name misspelt": (lambda: parts(), {"sampel_rows": 10}, "MetaForestClassifier takes no 'sampel_rows'"),
    "a weight of all rows": (lambda: [(np.ones((2, 1)), [0, 1], 2.0)], {"target": None}, "batch 0: sample_weight must"),
    "numbers for tables": (lambda: [(3, 4)], {"target": None}, "batch 0: X must have one entry a row, but is a int"),
    "a weight that is missing": (
        lambda: [pa.table({"a": [1.0, 2.0], "w": pa.array([True, None]), "y": [0, 1]})], {"sample_weight": "w"},
        "batch 0: sample_weight 'w' is missing in row 1",
    ),
    "weights in some batches only": (
        lambda: [(np.ones((2, 1)), [0, 1], [1.0, 1.0]), (np.ones((2, 1)), [0, 1])], {"target": None},
        "batch 1: it has no sample_weight, unlike those before",
    ),
    "weights from some batch on": (
        lambda: [(np.ones((200, 1)), [0, 1] * 100)] * 5 + [(np.ones((1, 1)), [0], [1.0])],
        {"target": None, "sample_rows": 10}, "batch 5: it has sample_weight, unlike those before",
    ),
    "no batches": (lambda: [], {}, "batches is empty: there are no rows"),
    "batches of no rows": (lambda: [table()[:0]] * 3, {}, "batches is empty: there are no rows"),
    "no list at all": (lambda: 7, {}, "batches is a int, but must be a path"),
    "one array": (lambda: np.ones((3, 3)), {}, "batches must be many tables, or pairs"),
    "one generator": (lambda: (part for part in parts()), {}, "batches is a generator, which can be read once"),
    "one reader": (
        lambda: pa.Table.from_pandas(table()).to_reader(), {}, "batches is a RecordBatchReader, which can be read once",
    ),
    "a function that returns none": (lambda: lambda: 3, {}, "batch 0: batches\\(\\) returned a int"),
    "arrays and names": (lambda: [(np.ones((3, 2)), np.ones(3))], {}, "batch 0: it is a pair .X, y., in which"),
    "four arrays": (lambda: [(1, 2, 3, 4)], {"target": None}, "batch 0: it is a tuple of 4, but must be"),
    "X longer than y": (
        lambda: [(np.ones((3, 2)), np.ones(4))], {"target": None}, "batch 0: X has 3 rows, but y 4",
    ),
    "a list of lists": (lambda: [[1, 2]], {}, "batch 0: it is a list, but must be a table with names"),
    "a file that is not there": (lambda: "nowhere.parquet", {}, "there is no file or folder 'nowhere.parquet'"),
    "a pattern of no file": (lambda: "nowhere-*.parquet", {}, "no file is named like"),
    "a sample of nothing": (lambda: parts(), {"sample_rows": 0}, "sample_rows must be a whole number from 1 on"),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_bad_batches_are_refused_and_change_nothing(what):
    make, options, words = WRONG[what]
    model = forest().fit_batches(parts(), target="y", sample_rows=30)
    before, schema = state(model), model.schema_
    with pytest.raises((ValueError, TypeError, FileNotFoundError), match=words):
        model.fit_batches(make(), **{"target": "y", "sample_rows": 30, **options})
    assert state(model) == before
    assert model.schema_ is schema


def test_more_categories_than_are_kept_are_refused_with_the_column(monkeypatch):
    monkeypatch.setattr(column_sketch, "MAX_LABELS", 70_000)

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, 80_000, 20_000):
            names = pa.array([f"id {i}" for i in range(start, start + 20_000)])
            yield pa.record_batch({"who": names, "y": pa.array([0, 1] * 10_000)})

    with pytest.raises(ValueError, match="batch 3: column 'who' has more than 70000 categories"):
        forest().fit_batches(batches, target="y")


def test_categories_whose_order_changes_are_refused():
    ordered = [pd.Categorical(["low", "high"], levels, ordered=True) for levels in (["low", "high"], ["high", "low"])]
    frames = [pd.DataFrame({"a": column, "y": [0, 1]}) for column in ordered]
    with pytest.raises(ValueError, match="batch 1: column 'a' has ordered categories"):
        forest().fit_batches(frames, target="y")


def test_text_that_is_not_named_is_refused():
    with pytest.raises(ValueError, match="batch 0: column 'b' holds categories"):
        forest(categorical_features=["a"]).fit_batches(parts(), target="y")


# ---- batches that change between the passes -------------------------------------------------------------------------


class Changing:
    """Other batches in the second pass than in the first."""

    def __init__(self, first: list[Any], second: list[Any]) -> None:
        self.passes = [first, second]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.passes.pop(0))


CHANGES: dict[str, tuple[Callable[[], list[Any]], str]] = {
    "fewer rows": (lambda: parts()[:2], "batches changed between the passes: 90 rows in the first, 60 in the second"),
    "more rows": (lambda: parts() * 2, "changed between the passes: 90 rows in the first, 180 in the second"),
    "nothing": (lambda: [], "changed between the passes: 90 rows in the first, 0 in the second"),
    "a new category": (lambda: parts(b="new"), "batch 2: it has a value that was not there in the first pass"),
    "a missing value": (lambda: parts(a=np.nan), "batch 2: it has a value that was not there in the first pass"),
    "another kind": (lambda: parts(a="text"), "batch 2: X: column 'a' was numeric"),
    "a column less": (lambda: [part.drop(columns="a") for part in parts()], r"batch 0: X lacks the columns \['a'\]"),
    "another class": (lambda: parts(y=2), r"batch 2: y\[0\] is .*2.*, but the classes are \[0, 1\]"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_batches_that_change_between_the_passes_are_refused(what):
    make, words = CHANGES[what]
    model = forest(min_samples_leaf=1, max_features=None)
    with pytest.raises(ValueError, match=words):
        model.fit_batches(Changing(parts(), make()), target="y", sample_rows=60)
    assert not hasattr(model, "forest_")


def test_a_file_that_changes_between_the_passes_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = tmp_path / "t.parquet"
    pyarrow.parquet.write_table(pa.Table.from_pandas(table()), path)
    model = forest()
    grow = ForestStructure.grow

    def grow_and_touch(*args: Any, **options: Any) -> Any:
        os.utime(path, ns=(1, 1))
        return grow(*args, **options)

    monkeypatch.setattr(ForestStructure, "grow", grow_and_touch)
    with pytest.raises(ValueError, match=r"changed between the passes: the file .*t.parquet' is not what it was"):
        model.fit_batches(path, target="y", sample_rows=30)


def test_files_with_other_columns_are_refused_with_their_names(tmp_path: Path):
    pyarrow.parquet.write_table(pa.Table.from_pandas(table()), tmp_path / "one.parquet")
    pyarrow.parquet.write_table(pa.Table.from_pandas(table().drop(columns="a")), tmp_path / "two.parquet")
    with pytest.raises(ValueError, match=r"two.parquet' has the columns \['b', 't', 'y'\], but .*one.parquet' has"):
        forest().fit_batches(tmp_path, target="y")


def test_folders_of_nothing_or_of_anything_are_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="holds no files"):
        forest().fit_batches(tmp_path, target="y")
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(ValueError, match=r"files must be all of one of .* has \['.txt'\]"):
        forest().fit_batches(tmp_path, target="y")


def test_a_spoilt_file_is_refused_with_its_batch(tmp_path: Path):
    path = tmp_path / "t.csv"
    path.write_text("a,y\n1,0\n2,1,3\n")
    with pytest.raises(ValueError, match=r"t.csv|batch 0"):
        forest().fit_batches(path, target="y")


def test_a_relation_whose_rows_are_drawn_anew_is_refused():
    rows = table(3000)
    connection = duckdb.connect(config={"threads": 1})
    connection.register("rows", rows)
    # With other draws, one pair of passes in a hundred has as many rows in both.
    connection.execute("SELECT setseed(0.25)").fetchall()
    relation = connection.sql("SELECT * FROM rows WHERE random() < 0.5")
    with pytest.raises(ValueError, match="changed between the passes"):
        forest().fit_batches(relation, target="y", sample_rows=50)


def test_bad_targets_and_row_data_are_named_by_their_batch():
    """Wherever the row is: in the sample, or not."""
    whole = pd.DataFrame({"a": np.arange(400.0), "t": 1.0, "y": np.arange(400) % 3})
    for change, message in (({"t": np.nan}, "batch 3: exposure 't' is missing in row 50"),
                            ({"t": -1.0}, r"batch 3: exposure\[50\] is -1"),
                            ({"y": -3}, r"batch 3: y\[50\] is -3")):  # fmt: skip
        for sample_rows in (10, 390, 1000):
            wrong = whole.copy()
            wrong.loc[350, list(change)] = list(change.values())
            batches = [wrong[k : k + 100] for k in range(0, 400, 100)]
            model = et.MetaTreeRegressor(family="poisson", random_state=0)
            with pytest.raises(ValueError, match=message):
                model.fit_batches(batches, "y", exposure="t", sample_rows=sample_rows)


def test_files_whose_columns_are_of_another_kind_are_refused_with_their_names(tmp_path: Path):
    numbers, dates = pa.array([1, 2]), pa.array([1, 2], pa.timestamp("us"))
    for first, second in (
        (numbers, dates),
        (dates, numbers),
        (numbers, pa.array(["x", "y"])),
        (pa.array(["x"]), dates),
    ):
        for name, values in (("1", first), ("2", second)):
            pa.parquet.write_table(pa.table({"a": values, "y": [0.0] * len(values)}), tmp_path / f"{name}.parquet")
        with pytest.raises(
            ValueError, match=r"2.parquet' has a column of another kind than the files before: .*Field a"
        ):
            schema_of(tmp_path)


def test_an_error_does_not_wait_for_a_slow_source():
    def slow() -> Iterator[Any]:
        yield pd.DataFrame({"a": [1.0, np.inf], "y": [0, 1]})
        time.sleep(60)

    start = time.monotonic()
    with pytest.raises(ValueError, match="batch 0: X: column 'a', row 1: inf"):
        forest().fit_batches(slow, "y")
    assert time.monotonic() - start < 30
