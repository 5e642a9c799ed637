"""Dask: the model of all partitions is that of the same rows in batches, on any workers, also if one of them dies."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from distributed import Client, LocalCluster
from sklearn.base import is_classifier

import everytree as et
from dask_cases import (
    COLUMNS,
    SAMPLE,
    arrays,
    assert_same_model,
    cut,
    frame_of,
    in_batches,
    notes,
    of_parts,
    watched,
)
from estimator_cases import ALL, FOUR, as_pandas, ids, mixed_columns, state
from everytree.batches.batch import Roles
from everytree.batches.dask_parts import Partitions

PARTITIONS = [1, 2, 7, 20]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """Two worker processes, which only those find who are told of them."""
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": "127.0.0.1:0"}
    folder = str(tmp_path_factory.mktemp("workers"))
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "20s", "distributed.comm.timeouts.tcp": "20s"}),
        LocalCluster(**options, host="127.0.0.1", local_directory=folder) as cluster,
        Client(cluster, set_as_default=False, timeout=20) as found,
    ):
        yield found


# ---- the laws -------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("case", **ids(FOUR))
def test_on_two_workers_the_model_is_that_of_batches_for_any_partitions(case, client):
    table, names = frame_of(case)
    expected = in_batches(case, table, names)
    for n_partitions in PARTITIONS if case is FOUR[0] else (7,):
        model = case.make()
        with client.as_current():
            assert model.fit_batches(cut(table, n_partitions), "y", sample_rows=SAMPLE, **names) is model
        assert vars(model).keys() == vars(expected).keys()
        assert_same_model(model, expected)
        assert model.forest_.n_rows == len(table)
        if is_classifier(model):
            assert state(model) == state(expected)


@pytest.mark.parametrize("n_partitions", [1, 7])
@pytest.mark.parametrize("case", **ids(ALL))
def test_frames_of_every_kind_of_target(case, n_partitions):
    table, names = frame_of(case)
    model = case.make().fit_batches(cut(table, n_partitions), "y", sample_rows=SAMPLE, **names)
    assert_same_model(model, in_batches(case, table, names))


@pytest.mark.parametrize(("n_partitions", "sample_rows"), [*((n, 100) for n in PARTITIONS), (7, 1000)])
def test_text_categories_dates_and_missing_values(n_partitions, sample_rows, client):
    columns, signal_ = mixed_columns(300)
    table = as_pandas(columns).convert_dtypes().assign(y=np.where(signal_ > np.median(signal_), "dear", "cheap"))
    expected = et.MetaForestClassifier(4, random_state=0).fit_batches([table], target="y", sample_rows=sample_rows)
    features = table.drop(columns="y")
    for parts in (cut(table, n_partitions), dd.from_pandas(table, npartitions=n_partitions)):
        model = et.MetaForestClassifier(4, random_state=0)
        with client.as_current() if n_partitions == 7 else nullcontext():
            model.fit_batches(parts, "y", sample_rows=sample_rows)
            probs = parts.drop(columns="y").map_partitions(model.predict_proba)
            assert isinstance(probs, da.Array)
            np.testing.assert_array_equal(probs.compute(), expected.predict_proba(features))
        assert model.schema_ == expected.schema_
        assert state(model) == state(expected)
        assert model.feature_names_in_.tolist() == list(features.columns)


def test_where_all_rows_are_in_the_sample_it_is_the_fit_of_the_table():
    table, _ = frame_of(FOUR[0])
    whole = FOUR[0].make().fit(table[COLUMNS], table["y"])
    assert state(FOUR[0].make().fit_batches(cut(table, 7), "y")) == state(whole)


@pytest.mark.parametrize("case", **ids(FOUR))
def test_weights_count_and_rows_of_weight_0_are_absent(case):
    table, _ = frame_of(case)
    table["w"] = np.arange(len(table)) % 4 / 2
    expected = in_batches(case, table, {}, sample_weight="w")
    for n_partitions in (2, 7):
        parts = cut(table, n_partitions)
        assert_same_model(case.make().fit_batches(parts, "y", sample_weight="w", sample_rows=SAMPLE), expected)


def test_partitions_of_no_rows_are_passed_over():
    table, _ = frame_of(FOUR[0])
    parts = of_parts([table[:0], table[:90], table[90:90], table[90:], table[:0]])
    model = FOUR[0].make().fit_batches(parts, "y", sample_rows=SAMPLE)
    assert state(model) == state(in_batches(FOUR[0], table, {}))
    parts = cut(table, 7)
    filtered = FOUR[0].make().fit_batches(parts[parts["a"] > 0.5], "y", sample_rows=SAMPLE)
    assert_same_model(filtered, in_batches(FOUR[0], table[table["a"] > 0.5], {}))


def test_arrays_and_series_become_columns_of_a_frame():
    """As the error says that refuses them."""
    table, _ = frame_of(FOUR[1])
    X, y = arrays(table, 4)
    assert_same_model(
        FOUR[1].make().fit_batches(dd.from_dask_array(X).assign(y=y), "y", sample_rows=SAMPLE),
        FOUR[1]
        .make()
        .fit_batches([table[COLUMNS].set_axis(range(4), axis=1).assign(y=table["y"])], "y", sample_rows=SAMPLE),
    )
    frame = dd.from_dask_array(X, columns=COLUMNS).assign(y=y)
    expected = in_batches(FOUR[1], table, {})
    assert_same_model(FOUR[1].make().fit_batches(frame, "y", sample_rows=SAMPLE), expected)
    parts = cut(table, 4)
    frame = parts[COLUMNS].assign(y=parts["y"])
    assert_same_model(FOUR[1].make().fit_batches(frame, "y", sample_rows=SAMPLE), expected)


def test_groups_of_a_column_keep_their_rows_together():
    table, _ = frame_of(FOUR[0])
    table["source"] = np.arange(len(table)) // 5
    model = FOUR[0].make().fit_batches(cut(table, 3), "y", groups="source", sample_rows=SAMPLE)
    assert_same_model(model, in_batches(FOUR[0], table, {}, groups="source"))
    assert model.fitted_.groups == "source"


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # Dask's own reader, of pandas
@pytest.mark.parametrize("filesystem", ["fsspec", "arrow"])
def test_files_are_read_partition_by_partition_and_only_columns_that_trees_ask_for(filesystem, tmp_path: Path):
    """Dask would put files together of which few columns are read: features and targets would not match."""
    table, _ = frame_of(FOUR[2])
    for k in range(5):
        part = pa.Table.from_pandas(table[40 * k : 40 * (k + 1)], preserve_index=False)
        pyarrow.parquet.write_table(part, tmp_path / f"{k}.parquet")
    parts = dd.read_parquet(tmp_path, filesystem=filesystem)  # in the order in which Dask finds the files
    expected = et.MetaTreeClassifier(max_depth=1, random_state=0)
    expected.fit_batches([parts.compute()], "y", sample_rows=SAMPLE)
    model = et.MetaTreeClassifier(max_depth=1, random_state=0).fit_batches(parts, "y", sample_rows=SAMPLE)
    assert state(model) == state(expected)
    asked = [model.schema_.names[k] for k in sorted({k for k in model.posterior_.tree.feature.tolist() if k >= 0})]
    assert len(asked) == 1
    pieces = Partitions.of(parts, Roles("y")).pieces(asked)
    assert [piece.compute().columns.tolist() for piece in pieces] == [[*asked, "y"]] * 5


# ---- workers --------------------------------------------------------------------------------------------------------


def test_the_work_is_done_by_the_workers_of_the_active_client(client, tmp_path: Path):
    table, _ = frame_of(FOUR[0])
    parts = cut(table, 6).map_partitions(watched, str(tmp_path), 0.0, meta=table[:0])
    with client.as_current():
        FOUR[0].make().fit_batches(parts, "y", sample_rows=SAMPLE)
    assert len(notes(tmp_path)) == 3 * 6
    assert set(notes(tmp_path)) <= set(client.run(os.getpid).values())


@pytest.mark.long
@pytest.mark.parametrize(("case", "pass_"), [(FOUR[0], 2), (FOUR[1], 3)], ids=str)
def test_a_worker_that_is_killed_half_way_changes_nothing(case, pass_, client, tmp_path: Path):
    """Partitions are read three times: for their lengths, for the sample, and for the statistics."""
    table, names = frame_of(case)
    n_partitions = 8
    with client.as_current():
        calm = case.make().fit_batches(cut(table, n_partitions), "y", sample_rows=SAMPLE)
    client.wait_for_workers(2, timeout=30)
    victim = next(iter(client.run(os.getpid).values()))

    def kill_half_way() -> None:
        end = time.monotonic() + 30
        while len(notes(tmp_path)) < (pass_ - 0.5) * n_partitions and time.monotonic() < end:
            time.sleep(0.005)
        os.kill(victim, signal.SIGKILL)

    killer = threading.Thread(target=kill_half_way)
    killer.start()
    parts = cut(table, n_partitions).map_partitions(watched, str(tmp_path), 0.05, meta=table[:0])
    with client.as_current():
        model = case.make().fit_batches(parts, "y", sample_rows=SAMPLE)
    killer.join()
    read = notes(tmp_path)
    assert victim in read
    assert len(read) > 3 * n_partitions, "nothing was read again: the worker was killed too late"
    assert state(model) == state(calm)
    assert_same_model(model, in_batches(case, table, names))
    client.wait_for_workers(2, timeout=30)


# ---- prediction -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", **ids(FOUR))
def test_a_method_that_is_mapped_over_partitions_gives_a_lazy_array(case, client):
    """As the documentation has it: the plain model goes to the workers."""
    table, _ = frame_of(case)
    frame, (X, y) = cut(table, 6), arrays(table, 6)
    model = case.make().fit_batches(frame, "y", sample_rows=SAMPLE)
    nameless = case.make().fit_batches([(X.compute(), y.compute())], sample_rows=SAMPLE)
    for method in ("predict", "predict_proba" if is_classifier(model) else "predict_interval"):
        expected = getattr(model, method)(table[COLUMNS])
        shape = {"drop_axis": 1} if expected.ndim == 1 else {"chunks": (X.chunks[0], expected.shape[1:])}
        of_frame = frame[COLUMNS].map_partitions(getattr(model, method))
        of_array = X.map_blocks(getattr(nameless, method), dtype=expected.dtype, **shape)
        with client.as_current():
            for lazy in (of_frame, of_array):
                assert isinstance(lazy, da.Array)
                assert lazy.dtype == expected.dtype
                np.testing.assert_array_equal(lazy.compute(), expected)


def test_later_partitions_are_counted_in_blank_models_that_merge():
    table, _ = frame_of(FOUR[0])
    model = FOUR[0].make().fit_batches(cut(table[:120], 2), "y", sample_rows=SAMPLE)
    expected = copy.deepcopy(model).partial_fit(table[120:][COLUMNS], table[120:]["y"])
    shards = [
        dask.delayed(model.blank().partial_fit)(part[COLUMNS], part["y"]) for part in cut(table[120:], 3).to_delayed()
    ]
    for shard in dask.compute(*shards):
        model.merge(shard)
    assert model.forest_.n_rows == len(table)
    assert_same_model(model, expected)


# ---- names ----------------------------------------------------------------------------------------------------------


def test_dask_is_imported_when_asked_for():
    code = "import sys, everytree, everytree.batches, everytree.estimators; print('dask' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_former_names_say_what_to_use_instead():
    for name in ("MetaForestClassifier", "MetaForestRegressor", "MetaTreeClassifier", "MetaTreeRegressor"):
        with pytest.raises(AttributeError, match=f"fit_batches of {name}, and predict by rows.map_partitions"):
            getattr(et, f"Dask{name}")


def test_frames_of_columns_that_are_numbers():
    table, _ = frame_of(FOUR[0])
    numbered = pd.DataFrame(table[COLUMNS].to_numpy()).assign(y=table["y"])
    parts = cut(numbered, 3)
    model = FOUR[0].make().fit_batches(parts, "y", sample_rows=SAMPLE)
    assert model.forest_.n_rows == len(table)
