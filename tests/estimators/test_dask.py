"""Dask: the model of all partitions is that of the same rows in batches, wherever they are, whoever dies."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from distributed import Client, LocalCluster
from sklearn.base import clone, is_classifier

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
    on_dask,
    watched,
)
from estimator_cases import ALL, FOUR, answers, as_pandas, ids, mixed_columns, of_prediction, state
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
        model = on_dask(case.make(), client=client)
        assert model.fit(cut(table, n_partitions), "y", sample_rows=SAMPLE, **names) is model
        assert_same_model(model, expected)
        assert model.forest_.n_rows == len(table)
        if is_classifier(model):
            assert state(model) == state(expected)


@pytest.mark.parametrize("n_chunks", [1, 7])
@pytest.mark.parametrize("case", **ids(ALL))
def test_arrays_of_every_kind_of_target(case, n_chunks):
    table, names = frame_of(case)
    nameless = [tuple(table[[*COLUMNS]].to_numpy() if name == "X" else table[name].to_numpy() for name in ("X", "y"))]
    given = arrays(table, n_chunks)
    model = on_dask(case.make()).fit(**given, sample_rows=SAMPLE)
    if not names:
        assert_same_model(model, case.make().fit_batches(nameless, sample_rows=SAMPLE))
    by_name = in_batches(case, table, names)
    for mine, theirs in zip(model.posteriors_, by_name.posteriors_, strict=True):
        np.testing.assert_allclose(mine.split_prob, theirs.split_prob, atol=1e-10)
    X, row_data = given["X"], {name: given[name] for name in names}
    expected = answers(by_name, table[COLUMNS], {name: table[name].to_numpy() for name in names})
    if is_classifier(model):
        np.testing.assert_allclose(model.predict_proba(X).compute(), expected, atol=1e-10)
    else:
        mean, std = model.predict(X, return_std=True, **of_prediction(row_data))
        np.testing.assert_allclose(mean.compute(), expected[:, 0], rtol=1e-9)
        np.testing.assert_allclose(std.compute(), expected[:, 1], rtol=1e-9)


@pytest.mark.parametrize(("n_partitions", "sample_rows"), [*((n, 100) for n in PARTITIONS), (7, 1000)])
def test_text_categories_dates_and_missing_values(n_partitions, sample_rows, client):
    columns, signal_ = mixed_columns(300)
    table = as_pandas(columns).convert_dtypes().assign(y=np.where(signal_ > np.median(signal_), "dear", "cheap"))
    expected = et.MetaForestClassifier(4, random_state=0).fit_batches([table], target="y", sample_rows=sample_rows)
    features, on = table.drop(columns="y"), {"client": client if n_partitions == 7 else None}
    for parts in (cut(table, n_partitions), dd.from_pandas(table, npartitions=n_partitions)):
        model = et.DaskMetaForestClassifier(4, random_state=0, **on)
        model.fit(parts[list(features.columns)], parts["y"], sample_rows=sample_rows)
        assert model.schema_ == expected.schema_
        assert state(model) == state(expected)
        assert model.feature_names_in_.tolist() == list(features.columns)
        probs = model.predict_proba(parts.drop(columns="y"))
        np.testing.assert_array_equal(dask.compute(probs, scheduler=on["client"])[0], expected.predict_proba(features))


def test_where_all_rows_are_in_the_sample_it_is_the_fit_of_the_table():
    table, _ = frame_of(FOUR[0])
    whole = FOUR[0].make().fit(table[COLUMNS], table["y"])
    assert state(on_dask(FOUR[0].make()).fit(cut(table, 7), "y")) == state(whole)


@pytest.mark.parametrize("case", **ids(FOUR))
def test_weights_count_and_rows_of_weight_0_are_absent(case):
    table, _ = frame_of(case)
    table["w"] = np.arange(len(table)) % 4 / 2
    expected = in_batches(case, table, {}, sample_weight="w")
    for n_partitions in (2, 7):
        parts = cut(table, n_partitions)
        by_name = on_dask(case.make()).fit(parts, "y", "w", sample_rows=SAMPLE)
        apart = on_dask(case.make()).fit(parts[COLUMNS], parts["y"], parts["w"], sample_rows=SAMPLE)
        assert state(by_name) == state(apart)
        assert_same_model(by_name, expected)
        given = arrays(table, n_partitions)
        given["sample_weight"] = given.pop("w")
        assert on_dask(case.make()).fit(**given, sample_rows=SAMPLE).forest_.n_rows == expected.forest_.n_rows


def test_partitions_of_no_rows_are_passed_over():
    table, _ = frame_of(FOUR[0])
    parts = of_parts([table[:0], table[:90], table[90:90], table[90:], table[:0]])
    model = on_dask(FOUR[0].make()).fit(parts, "y", sample_rows=SAMPLE)
    assert state(model) == state(in_batches(FOUR[0], table, {}))
    assert model.predict(parts[COLUMNS]).compute().tolist() == model.predict(table[COLUMNS]).tolist()
    parts = cut(table, 7)
    filtered = on_dask(FOUR[0].make()).fit(parts[parts["a"] > 0.5], "y", sample_rows=SAMPLE)
    assert_same_model(filtered, in_batches(FOUR[0], table[table["a"] > 0.5], {}))


def test_chunks_of_unknown_size_are_counted():
    table, _ = frame_of(FOUR[1])
    parts = dd.from_pandas(table, npartitions=5)
    X, y = parts[COLUMNS].to_dask_array(), parts["y"].to_dask_array()
    assert np.isnan(X.chunks[0]).all()
    expected = FOUR[1].make().fit_batches([(table[COLUMNS].to_numpy(), table["y"].to_numpy())], sample_rows=SAMPLE)
    assert_same_model(on_dask(FOUR[1].make()).fit(X, y, sample_rows=SAMPLE), expected)
    mixed = on_dask(FOUR[1].make()).fit(parts[COLUMNS], y, sample_rows=SAMPLE)
    assert_same_model(mixed, in_batches(FOUR[1], table, {}))


def test_columns_may_be_in_chunks_and_targets_in_a_column():
    table, _ = frame_of(FOUR[1])
    given = arrays(table, 4)
    expected = on_dask(FOUR[1].make()).fit(**given, sample_rows=SAMPLE)
    narrow = given["X"].rechunk((50, 1))
    model = on_dask(FOUR[1].make()).fit(narrow, given["y"][:, None], sample_rows=SAMPLE)
    assert state(model) == state(expected)
    np.testing.assert_array_equal(model.predict(narrow).compute(), expected.predict(given["X"]).compute())


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
    for given in ({"X": parts, "y": "y"}, {"X": parts[COLUMNS], "y": parts["y"]}):
        model = et.DaskMetaTreeClassifier(max_depth=1, random_state=0).fit(**given, sample_rows=SAMPLE)
        assert state(model) == state(expected)
        assert model.predict(parts[COLUMNS]).numblocks == (5,)
    asked = [model.schema_.names[k] for k in sorted({k for k in model.posterior_.tree.feature.tolist() if k >= 0})]
    assert len(asked) == 1
    pieces = Partitions.of(parts, y="y").pieces(asked)
    assert [piece[0].compute().columns.tolist() for piece in pieces] == [[*asked, "y"]] * 5


# ---- workers --------------------------------------------------------------------------------------------------------


def test_the_work_is_done_by_the_workers_of_the_client(client, tmp_path: Path):
    table, _ = frame_of(FOUR[0])
    parts = cut(table, 6).map_partitions(watched, str(tmp_path), 0.0, meta=table[:0])
    on_dask(FOUR[0].make(), client=client).fit(parts, "y", sample_rows=SAMPLE)
    assert len(notes(tmp_path)) == 3 * 6
    assert set(notes(tmp_path)) <= set(client.run(os.getpid).values())


def test_an_active_client_is_used_without_being_named(client, tmp_path: Path):
    table, _ = frame_of(FOUR[0])
    parts = cut(table, 4).map_partitions(watched, str(tmp_path), 0.0, meta=table[:0])
    with client.as_current():
        on_dask(FOUR[0].make()).fit(parts, "y", sample_rows=SAMPLE)
    assert set(notes(tmp_path)) <= set(client.run(os.getpid).values())


@pytest.mark.long
@pytest.mark.parametrize(("case", "pass_"), [(FOUR[0], 2), (FOUR[1], 3)], ids=str)
def test_a_worker_that_is_killed_half_way_changes_nothing(case, pass_, client, tmp_path: Path):
    """Partitions are read three times: for their lengths, for the sample, and for the statistics."""
    table, names = frame_of(case)
    n_partitions = 8
    calm = on_dask(case.make(), client=client).fit(cut(table, n_partitions), "y", sample_rows=SAMPLE)
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
    model = on_dask(case.make(), client=client).fit(parts, "y", sample_rows=SAMPLE)
    killer.join()
    read = notes(tmp_path)
    assert victim in read
    assert len(read) > 3 * n_partitions, "nothing was read again: the worker was killed too late"
    assert state(model) == state(calm)
    assert_same_model(model, in_batches(case, table, names))
    client.wait_for_workers(2, timeout=30)


# ---- prediction -----------------------------------------------------------------------------------------------------


def methods(model: Any) -> dict[str, dict[str, Any]]:
    """What can be asked, and how."""
    if is_classifier(model):
        return {"predict": {}, "predict_proba": {}, "predict_log_proba": {}}
    return {"predict": {}, "predict_quantiles": {"quantiles": [0.1, 0.5]}, "predict_interval": {"coverage": 0.8}}


@pytest.mark.parametrize("case", **ids(FOUR))
def test_answers_are_lazy_and_those_of_the_local_model(case, client):
    table, _ = frame_of(case)
    parts, X = cut(table, 6), arrays(table, 6)["X"]
    model = on_dask(case.make()).fit(parts, "y", sample_rows=SAMPLE)
    nameless = on_dask(case.make()).fit(**arrays(table, 6), sample_rows=SAMPLE)
    for method, options in methods(model).items():
        expected = getattr(model.to_local(), method)(table[COLUMNS], **options)
        of_frame = getattr(model, method)(parts[COLUMNS], **options)
        of_array = getattr(nameless, method)(X, **options)
        for lazy in (of_frame, of_array):
            assert isinstance(lazy, da.Array)
            assert lazy.dtype == expected.dtype
            assert lazy.ndim == expected.ndim
            assert lazy.shape[1:] == expected.shape[1:]
            np.testing.assert_array_equal(dask.compute(lazy, scheduler=client)[0], expected)
        assert of_array.chunks[0] == X.chunks[0]
        assert np.isnan(of_frame.chunks[0]).all()
        local = getattr(model, method)(table[COLUMNS], **options)
        assert isinstance(local, np.ndarray)
        np.testing.assert_array_equal(local, expected)


def test_answers_of_regressors_in_all_their_forms():
    table, _ = frame_of(FOUR[1])
    parts = cut(table, 3)
    model = on_dask(FOUR[1].make()).fit(parts, "y", sample_rows=SAMPLE)
    mean, std = model.predict(parts[COLUMNS], return_std=True)
    expected = model.predict(table[COLUMNS], return_std=True)
    np.testing.assert_array_equal(np.stack(dask.compute(mean, std)), np.stack(expected))
    one = model.predict_quantiles(parts[COLUMNS], 0.5)
    assert one.ndim == 1
    np.testing.assert_array_equal(one.compute(), model.to_local().predict_quantiles(table[COLUMNS], 0.5))


def test_exposure_is_a_collection_or_a_column():
    (case,) = [case for case in ALL if str(case) == "MetaForestRegressor poisson"]
    table, names = frame_of(case)
    parts = cut(table, 3)
    model = on_dask(case.make()).fit(parts, "y", sample_rows=SAMPLE, **names)
    expected = model.to_local().predict(table[COLUMNS], exposure=table["exposure"])
    for features, exposure in [(parts[COLUMNS], parts["exposure"]), (parts[[*COLUMNS, "exposure"]], "exposure")]:
        np.testing.assert_array_equal(model.predict(features, exposure=exposure).compute(), expected)


# ---- as an estimator ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", **ids(FOUR))
def test_to_local_is_the_plain_estimator_with_all_that_was_fitted(case, tmp_path: Path):
    table, _ = frame_of(case)
    model = on_dask(case.make()).fit(cut(table, 3), "y", sample_rows=SAMPLE)
    local = model.to_local()
    assert type(local) is case.kind
    assert local.get_params() == case.make().get_params()
    assert state(local) == state(model)
    assert vars(local).keys() == vars(in_batches(case, table, {})).keys()
    et.save(local, tmp_path / "model")
    assert state(et.load(tmp_path / "model")) == state(model)
    local.partial_fit(table[COLUMNS], table["y"])
    assert model.forest_.n_rows == len(table)


@pytest.mark.parametrize("case", **ids(FOUR))
def test_parameters_clones_and_pickles(case, client):
    table, _ = frame_of(case)
    model = on_dask(case.make(max_depth=3), client=client)
    assert model.get_params() == {**case.make(max_depth=3).get_params(), "client": client}
    assert model.set_params(max_depth=4).max_depth == 4
    fresh = clone(model)
    assert type(fresh) is type(model)
    assert fresh.get_params() == model.get_params()
    assert fresh.client is client
    model.fit(cut(table, 3), "y", sample_rows=SAMPLE)
    for again in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        assert again.client is None
        assert state(again) == state(model)
        np.testing.assert_array_equal(answers(again, table[COLUMNS]), answers(model, table[COLUMNS]))
    assert model.client is client
    assert model.blank().client is client


def test_dask_is_imported_when_asked_for():
    code = "import sys, everytree, everytree.batches, everytree.estimators; print('dask' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
    assert et.DaskMetaForestClassifier.__module__ == "everytree.estimators.dask"


def test_frames_of_columns_that_are_numbers():
    table, _ = frame_of(FOUR[0])
    numbered = pd.DataFrame(table[COLUMNS].to_numpy()).assign(y=table["y"])
    parts = cut(numbered, 3)
    model = on_dask(FOUR[0].make()).fit(parts[[0, 1, 2, 3]], parts["y"], sample_rows=SAMPLE)
    assert model.forest_.n_rows == len(table)
