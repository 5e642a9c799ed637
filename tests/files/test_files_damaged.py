"""Files that were damaged, forged or half written: the same model or a clear error, never a crash."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import stat
import subprocess
import sys
import threading
import time
import tracemalloc
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import everytree as et
from cases import CASES, LONG, random_codes, random_tree, rng_for
from corruptions import BLIND, KNOWING, around, deflated, inflated, is_compressed, join, split
from estimator_cases import FOUR
from estimator_cases import Case as EstimatorCase
from everytree.files import atomic, container
from everytree.tables.column import Column

DAMAGES = 10_000 if LONG else 1_500
KILLS = 100 if LONG else 10
ROOM = 300_000
"""Bytes that Python's own objects take, however small a file is."""


def posterior(case: Any) -> tuple[Any, Callable[[Any], Any]]:
    rng = rng_for("damage", case)
    tree = random_tree(rng)
    X = random_codes(rng, tree, 50)
    y, row_data = case.draw(rng, 50)
    post = et.Posterior(tree, case.family, 0.6).update(X, y, **row_data)
    return post, lambda model: model.update(X, y, **row_data).predictive(X, **row_data).mean()


def others() -> dict[str, tuple[Any, Callable[[Any], Any]]]:
    """Small models of every kind, and how to use what is read from their files."""
    rng = rng_for("damage")
    X = rng.integers(0, 3, (40, 5)).astype(np.uint8)
    y = rng.integers(0, 2, 40)
    found: dict[str, tuple[Any, Callable[[Any], Any]]] = {
        "growing": (
            et.GrowingPosterior([3] * 5, et.Bernoulli(), 0.7, seed=3).update(X, y),
            lambda model: model.update(X, y).predictive(X).mean(),
        ),
        "exact": (et.ExactPosterior([3] * 5, et.Bernoulli(), 2).fit(X, y), lambda model: model.predictive(X).mean()),
    }
    for case in (*FOUR, EstimatorCase(et.MetaTreeRegressor, "linear", {"family": "linear"})):
        model, (table, target, _) = case.fitted(60, max_depth=3)
        codes = model.schema_.encode(table)
        found[str(case)] = model, lambda model, X=table, y=target: model.partial_fit(X, y).predict(X)
        found[f"schema of {case}"] = model.schema_, lambda model, X=table: model.encode(X)
        found[f"forest of {case}"] = model.forest_, lambda model, X=codes: model.ends(X)
        found[f"tree of {case}"] = model.forest_.trees[0], lambda model, X=codes: model.route(X)
    table, target, _ = FOUR[0].draw(50)
    found["exact classifier"] = (
        et.ExactTreeClassifier(max_depth=2).fit(table, target),
        lambda model: model.partial_fit(table, target).predict_proba(table),
    )
    numbers = rng.normal(size=(40, 3))
    lines = et.MetaBoostRegressor(4, n_chains=2, n_residual_trees=2, random_state=0).fit(numbers, numbers[:, 0])
    assert lines.model_.parts.lined is not None
    found["lines"] = lines, lambda model: model.predict(numbers)
    rows = [{"a": int(a), "b": "xyz"[b]} | ({"c": float(c)} if c else {}) for a, b, c, *_ in X]
    for online in (et.OnlineForestClassifier(3, max_nodes=40, half_life=30.0), et.OnlineForestRegressor(2)):
        online.learn_many(rows, y.tolist())
        found[type(online).__name__] = online, lambda model: use_online(model, rows, y.tolist())
    many, classes = et.OnlineForestClassifier(2, max_nodes=60), [*range(40)]
    many.learn_many(rows, classes)
    found["many classes"] = many, lambda model: use_online(model, rows, classes)
    found["not fitted"] = et.MetaForestClassifier(split_prior=et.depth_prior()), lambda model: repr(model)
    return found


def use_online(model: Any, rows: list[dict[str, Any]], y: list[int]) -> Any:
    """Predict, grow, forget, decay."""
    model.learn_many([*rows, {"new": 1.0}], [*y, 1])
    model.refresh()
    return [model.predict_one(row) for row in rows]


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> dict[str, tuple[bytes, Callable[[Any], Any]]]:
    """The bytes of undamaged files in every layout."""
    path = tmp_path_factory.mktemp("whole") / "model"
    files = {}
    for name, (model, use) in {**{case.name: posterior(case) for case in CASES}, **others()}.items():
        for layout in ("packed", "compressed", "mappable"):
            et.save(model, path, layout=layout)
            files[f"{name}, {layout}"] = path.read_bytes(), use
    return files


def use_if_read(path: Path, use: Callable[[Any], Any], mmap: bool) -> str | None:
    """The error, which names the file; or None, after what was read has been used as one would."""
    complaint = None
    try:
        model = et.load(path, mmap=mmap)
    except et.ModelFileError as error:
        complaint = str(error)
    if complaint is not None:
        assert complaint.startswith(f"{path}: ")
        return complaint
    # A parameter may be anything that parameters can be, also an estimator that was not fitted.
    with warnings.catch_warnings(), contextlib.suppress(ValueError, TypeError, AttributeError):
        warnings.simplefilter("ignore")  # of numbers that no rows have
        use(model)
    return None


@pytest.mark.parametrize("part", range(10))
def test_damaged_files_are_errors(stored, path, part):
    """Whatever a disk or a network does: each file with other bytes is refused."""
    rng = rng_for("blind damage", part)
    names = sorted(stored)
    for i in range(DAMAGES // 10):
        whole, use = stored[names[i % len(names)]]
        damage = BLIND[rng.integers(len(BLIND))]
        damaged = damage(rng, whole)
        path.write_bytes(damaged)
        mmap = bool(i % 2) and not is_compressed(whole)
        assert (use_if_read(path, use, mmap) is None) == (damaged == whole)


@pytest.mark.parametrize("part", range(10))
def test_forged_files_are_errors_or_models(stored, path, part):
    """The checksum fits, so only what is checked beyond it keeps the kernels from reading what is not there."""
    rng = rng_for("knowing damage", part)
    names = sorted(stored)
    for i in range(DAMAGES // 10):
        whole, use = stored[names[i % len(names)]]
        damage = KNOWING[rng.integers(len(KNOWING))]
        path.write_bytes(damage(rng, whole))
        use_if_read(path, use, bool(i % 2) and not is_compressed(whole))


OLD = Path(__file__).parents[1] / "fixtures"


@pytest.mark.parametrize("version", [1, 2])
def test_forged_files_of_older_versions_are_errors_or_models(version, path):
    rng = rng_for("old damage", version)
    files = sorted((OLD / f"version{version}").glob("*.safetensors"))
    for i in range(DAMAGES // 5):
        path.write_bytes(KNOWING[rng.integers(len(KNOWING))](rng, files[i % len(files)].read_bytes()))
        use_if_read(path, repr, bool(i % 2))


def test_old_cut_points_that_are_none_are_named(path):
    whole = (OLD / "version2" / "schema.safetensors").read_bytes()
    for cuts in (["a"], [True], [None], {"a": 1}, 3, [[1.0]], [10**400], [0.5, {"float": "nan"}]):
        path.write_bytes(with_model(whole, lambda model, c=cuts: model["columns"][0].update(cuts=c)))
        with pytest.raises(et.ModelFileError, match=rf"{path}: columns: \[0\] must be an object without cuts"):
            et.load(path)
    deep: dict[str, Any] = {}
    for _ in range(800):
        deep = {"a": deep}
    path.write_bytes(with_model(whole, lambda model: model.update(a=deep)))
    assert et.load(path) == et.load(OLD / "version2" / "schema.safetensors")


def peak_of_load(path: Path, **options: Any) -> int:
    """Bytes that reading a file takes at most, whether it is read or refused."""
    tracemalloc.start()
    try:
        with contextlib.suppress(et.ModelFileError):
            et.load(path, **options)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_damaged_file_takes_no_more_memory_than_twice_its_size(stored, path):
    rng = rng_for("memory")
    for i in range(DAMAGES // 5):
        whole, _ = stored[sorted(stored)[i % len(stored)]]
        damaged = BLIND[rng.integers(len(BLIND))](rng, whole)
        path.write_bytes(damaged)
        if damaged != whole:
            assert peak_of_load(path) <= 2 * len(damaged) + ROOM


UNPACKED = 50
"""A packed file takes so many times its size at most: see `_is_mostly_inner` of files/trees.py."""


def test_a_forged_file_takes_no_more_memory_than_its_size_allows(stored, path):
    rng = rng_for("forged memory")
    for i in range(DAMAGES // 5):
        name = sorted(stored)[i % len(stored)]
        whole, _ = stored[name]
        damaged = KNOWING[rng.integers(len(KNOWING))](rng, whole)
        path.write_bytes(damaged)
        most = 2 * len(damaged) if name.endswith("mappable") else UNPACKED * len(damaged)
        if is_compressed(whole):
            most = container._most_inflated(len(damaged)) + UNPACKED * len(inflated(whole))
        assert peak_of_load(path) <= most + ROOM


def test_a_large_posterior_takes_no_more_memory_than_twice_its_mappable_file(path):
    tree = et.MetaTree.complete(np.arange(2**16 - 1) % 16)
    post = et.Posterior(tree, et.Bernoulli())
    et.save(post, path, layout="mappable")
    size = path.stat().st_size
    for layout, mmap, times in (
        ("mappable", False, 2.0), ("mappable", True, 1.0), ("packed", False, 2.0), ("packed", True, 2.0),
        ("compressed", False, 2.0),
    ):  # fmt: skip
        et.save(post, path, layout=layout)
        assert peak_of_load(path, mmap=mmap) <= times * size + ROOM


# ---- compressed files ------------------------------------------------------------------------------------------------


@pytest.fixture
def packed(path) -> bytes:
    """A packed file of some size."""
    et.save(et.MetaTree.complete(np.arange(2**10 - 1) % 16), path)
    return path.read_bytes()


def test_a_compressed_file_that_lies_about_its_size_is_refused(packed, path):
    n = len(packed)
    for size, complaint in (
        (n - 1, f"deflated: holds more than the {n - 1} bytes"),
        (8, "deflated: holds more than the 8 bytes"),
        (n + 1, f"deflated: holds {n} bytes, but inflated says {n + 1}"),
        (7, "inflated: is '7', but must be a number of bytes from 8 to"),
        (2**40, "inflated: is '1099511627776', but must be a number of bytes from 8 to"),
        (-1, "inflated: is '-1'"),
        ("1e3", "inflated: is '1e3'"),
        ("", "inflated: is ''"),
        ("9" * 5000, "inflated: is '999"),
    ):
        path.write_bytes(deflated(packed, inflated=str(size)))
        with pytest.raises(et.ModelFileError, match=f"{path}: {complaint}"):
            et.load(path)


def test_a_stream_that_is_none_is_refused(packed, path):
    n, stream = str(len(packed)), zlib.compress(packed)
    for wrong, complaint in (
        (stream[:-1], "deflated: the stream must end where the array does"),
        (stream[: len(stream) // 2], "deflated: holds [0-9]+ bytes, but inflated says"),
        (stream + b"more", "deflated: the stream must end where the array does"),
        (stream + stream, "deflated: the stream must end where the array does"),
        (b"", "deflated: holds 0 bytes"),
        (b"no stream", "deflated: Error -3"),
        (stream[:-4] + b"\0\0\0\0", "deflated: Error -3"),
    ):
        path.write_bytes(around(wrong, inflated=n))
        with pytest.raises(et.ModelFileError, match=f"{path}: {complaint}"):
            et.load(path)


def test_a_bomb_is_refused_before_it_is_inflated(path):
    """A thousand bytes of zeros take one; what a file says is compared with what it may hold before anything else."""
    bomb = zlib.compress(bytes(50_000_000))
    for size in (50_000_000, 1_000_000, 100):
        path.write_bytes(around(bomb, inflated=str(size)))
        assert peak_of_load(path) <= 3 * container._most_inflated(len(bomb)) + ROOM < 50_000_000
        with pytest.raises(et.ModelFileError, match=f"{path}: (inflated|deflated): "):
            et.load(path)


def test_the_file_within_a_compressed_file_is_checked(packed, path):
    path.write_bytes(deflated(deflated(packed)))
    with pytest.raises(et.ModelFileError, match=f"{path}: inflated: is compressed twice"):
        et.load(path)
    damaged = bytearray(packed)
    damaged[-1] ^= 1
    path.write_bytes(deflated(bytes(damaged)))
    with pytest.raises(et.ModelFileError, match=f"{path}: sha256: the file is damaged"):
        et.load(path)
    header, data = split(deflated(packed))
    header["more"] = {"dtype": "U8", "shape": [0], "data_offsets": [len(data), len(data)]}
    path.write_bytes(join(header, data))
    with pytest.raises(et.ModelFileError, match=f"{path}: deflated: a compressed file has one array of this name"):
        et.load(path)


# ---- errors name the field -------------------------------------------------------------------------------------------


def with_array(content: bytes, name: str, values: Any) -> bytes:
    """The same file with other numbers in one array, of the same size and their own type."""
    header, data = split(content)
    begin, end = header[name]["data_offsets"]
    new = np.asarray(values).tobytes()
    assert len(new) == end - begin
    header[name]["dtype"] = container.TYPE_NAMES[np.asarray(values).dtype]
    return join(header, data[:begin] + new + data[end:])


def with_model(content: bytes, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """The same file with another description of the model."""
    header, data = split(content)
    model = json.loads(header["__metadata__"]["model"])
    change(model)
    header["__metadata__"]["model"] = json.dumps(model)
    return join(header, data)


@pytest.fixture
def small(tmp_path) -> tuple[Path, bytes]:
    tree = et.MetaTree.complete([0, 1, 1])
    post = et.Posterior(tree, et.Bernoulli()).update([[0, 1], [1, 1]], [0, 1])
    path = tmp_path / "small"
    et.save(post, path, layout="mappable")
    return path, path.read_bytes()


I4, F8 = np.int32, np.float64
WRONG: list[tuple[str, Any, str]] = [
    ("trees.first_child", I4([1, 3, 0, -1, -1, -1, -1]), "trees.tree 0: node 2: its child 0 is its own ancestor"),
    ("trees.first_child", I4([1, 3, 5, 0, -1, -1, -1]), "trees.tree 0: node 3: a terminal has first_child -1"),
    ("trees.n_children", I4([2, 2, 9, 0, 0, 0, 0]), "trees.tree 0: node 2: children 5..13, but nodes are 0..6"),
    ("trees.feature", I4([0, 1, 2**24, -1, -1, -1, -1]), r"trees.feature: \[2\] is 16777216, but there are 2 columns"),
    ("trees.n_nodes", np.int64([8]), r"trees.n_nodes: \[0\] is 8, but must be from 1 to 7"),
    ("trees.n_features", np.int64([2**40]), r"trees.n_features: \[0\] is 1099511627776, but must be from -1 to 2"),
    ("trees.n_codes", I4([2, 3]), "trees.n_codes: are not those of the trees"),
    ("split_prob", F8([0.5, np.nan, 0.5, 0, 0, 0, 0]), r"split_prob: \[1\] is nan, but must be finite"),
    ("split_prob", F8([0.5, 0.5, 1.5, 0, 0, 0, 0]), r"split_prob: \[2\] is 1.5, but must be from 0 to 1"),
    ("split_prior", F8([1.5]), "posterior 0: split_prior must be from 0 to 1, but is 1.5"),
    ("split_prior", F8([np.nan]), "posterior 0: split_prior must be from 0 to 1, but is nan"),
    ("statistics", -np.ones((7, 2)), r"statistics: \[0, 0\] is -1.0, but must not be negative"),
    ("statistics", np.full((7, 2), np.inf), r"statistics: \[0, 0\] is inf, but must be finite"),
    ("n_rows", np.int64([-1]), r"n_rows: \[0\] is -1, but must be 0 or more"),
    ("family0.prior", F8([[0.5, 0.7]]), "family0.prior: is not the one of these parameters"),
]


@pytest.mark.parametrize(("name", "values", "complaint"), WRONG, ids=range(len(WRONG)))
def test_an_impossible_array_is_named(small, name, values, complaint):
    path, content = small
    path.write_bytes(with_array(content, name, values))
    with pytest.raises(et.ModelFileError, match=f"{path}: {complaint}"):
        et.load(path)


U1, I1, SIGNALLING_NAN = np.uint8, np.int8, np.uint32([0x7F800001]).view(np.float32)
WRONG_PACKED: list[tuple[str, Any, str]] = [
    ("trees.n_children", U1([2, 2, 9, 0, 0, 0, 0]), "trees.tree 0: node 2: children 5..13, but nodes are 0..6"),
    ("trees.n_children", U1([2, 2, 1, 0, 0, 0, 0]), "trees.tree 0: node 6 is nobody's child"),
    ("trees.n_children", U1([2, 2, 1, 1, 0, 0, 0]), "trees.n_children: must be 0 for half of the nodes at least"),
    ("trees.n_children", U1([2, 2, 0, 0, 0, 0, 0]), r"trees.feature: must have shape \(2\), but has \(3,\)"),
    ("trees.feature", U1([0, 1, 200]), r"trees.feature: \[2\] is 200, but there are 2 columns"),
    ("trees.n_low_codes", I1([0, 0, -1]), r"trees.n_low_codes: \[2\] is -1, but must be 0 or more"),
    ("trees.n_codes", U1([2, 3]), "trees.n_codes: are not those of the trees"),
    ("trees.missing_child", I1([-1, -1, 3]), "trees.tree 0: node 2: missing_child is 3"),
    ("trees.n_nodes", U1([8]), r"trees.n_nodes: \[0\] is 8, but must be from 1 to 7"),
    ("trees.n_features", I1([3]), r"trees.n_features: \[0\] is 3, but must be from -1 to 2"),
    ("split_prior", np.float32([1.5]), "posterior 0: split_prior must be from 0 to 1, but is 1.5"),
    ("split_prior", SIGNALLING_NAN, "posterior 0: split_prior must be from 0 to 1, but is nan"),
]


@pytest.mark.parametrize(("name", "values", "complaint"), WRONG_PACKED, ids=range(len(WRONG_PACKED)))
def test_an_impossible_packed_array_is_named(small, name, values, complaint):
    path, _ = small
    et.save(et.load(path), path)
    path.write_bytes(with_array(path.read_bytes(), name, values))
    with pytest.raises(et.ModelFileError, match=f"{path}: {complaint}"):
        et.load(path)


def test_impossible_packed_statistics_are_named(path):
    post = et.Posterior(et.MetaTree.complete([0]), et.Normal()).update([[0], [1], [1]], [0.1, 0.2, -7.5])
    et.save(post, path)
    content = path.read_bytes()
    types = json.loads(container.read(path).metadata["model"])["statistics"]["types"]
    assert len(set(types)) > 1
    for change, complaint in (
        (types[:-1], r"statistics.types: must name the types of 6 columns, but is \['U8'"),
        ([*types[:-1], "BOOL"], "statistics.types: must name the types of 6 columns"),
        ([*types[:-1], ["U8"]], "statistics.types: must name the types of 6 columns"),
        ([*types[:-1], "U16"], r"statistics.F64: must have shape \(2, 2\), but has \(3, 2\)"),
    ):
        path.write_bytes(with_model(content, lambda model, c=change: model["statistics"].update(types=c)))
        with pytest.raises(et.ModelFileError, match=f"{path}: {complaint}"):
            et.load(path)
    count = split(content)[0]["statistics.F64"]["shape"]
    for number, complaint in ((np.nan, "must be finite"), (np.inf, "must be finite")):
        path.write_bytes(with_array(content, "statistics.F64", np.full(count, number)))
        with pytest.raises(et.ModelFileError, match=rf"{path}: statistics: \[0, [0-9]\] is .*, but {complaint}"):
            et.load(path)


def test_an_array_of_another_type_is_refused(small):
    """Smaller types are widened where that keeps every number; nothing else is converted."""
    path, content = small
    for name, values, complaint in (
        ("trees.feature", np.zeros(7, dtype=np.float32), "must be int32, or a smaller type, but is float32"),
        ("trees.feature", np.zeros(7, dtype=np.uint32), "must be int32, or a smaller type, but is uint32"),
        ("n_rows", np.zeros(1, dtype=np.uint64), "must be int64, or a smaller type, but is uint64"),
    ):
        path.write_bytes(with_array(content, name, values))
        with pytest.raises(et.ModelFileError, match=f"{path}: {name}: {complaint}"):
            et.load(path)


def schema_file(path: Path) -> bytes:
    labels = Column("labels", "categorical", categories=[*range(40)], groups=[i % 3 for i in range(40)])
    et.save(et.Schema.from_columns([labels, Column("number", "numeric", cuts=[0.5, 1.5])]), path)
    return path.read_bytes()


def test_an_impossible_schema_is_named(path):
    content = schema_file(path)
    for change, complaint in (
        ({"categories": {"ints": "none"}}, "none: is missing: there is no such array"),
        ({"categories": {"ints": 7}}, "columns: must name an array of ints or floats, but one has {'ints': 7}"),
        ({"categories": {"a": 1, "b": 2}}, "columns: must name an array"),
        ({"categories": {}}, "columns: must name an array"),
        ({"groups": [9]}, "columns: groups of column 'labels' must be 40 codes"),
        ({"cuts": [1.0]}, r"columns: \[0\] must be an object without cuts"),
        ({"kind": {"ints": "groups0"}}, "columns: "),
    ):
        path.write_bytes(with_model(content, lambda model, c=change: model["columns"][0].update(c)))
        with pytest.raises(et.ModelFileError, match=f"{path}: {complaint}"):
            et.load(path)
    for name, values, complaint in (
        ("n_cuts", U1([0, 3]), r"n_cuts: \[1\] is 3, but must be from 0 to 2"),
        ("n_cuts", U1([0, 1]), "n_cuts: must sum to 2"),
        ("n_cuts", U1([1, 1]), "columns: column 'labels' is categorical"),
        ("cuts", np.float32([np.nan, 1.0]), "columns: cuts of column 'number' must be finite and ascending"),
        ("cuts", np.float32([2.0, 1.0]), "columns: cuts of column 'number' must be finite and ascending"),
    ):
        path.write_bytes(with_array(content, name, values))
        with pytest.raises(et.ModelFileError, match=f"{path}: {complaint}"):
            et.load(path)


def test_an_impossible_value_is_named(small):
    path, content = small
    for change, complaint in (
        (lambda model: model["family0"].update(name="os.system"), r"family0.name: must be one of \['Bernoulli'"),
        (lambda model: model["family0"].update(alpha=-1.0), "family0.parameters: alpha must be positive and finite"),
        (lambda model: model["family0"].update(alpha={"eval": "1"}), "family0.alpha: must be an object with one of"),
        (lambda model: model["family0"].pop("beta"), "family0.beta: is missing"),
        (lambda model: model.update(n_families=10**9), "n_families: must be 1 or 1, but is 1000000000"),
        (lambda model: model.update(n_families=1.0), "n_families: must be int, but is 1.0"),
    ):
        path.write_bytes(with_model(content, change))
        with pytest.raises(et.ModelFileError, match=f"{path}: {complaint}"):
            et.load(path)


def test_an_estimator_whose_leaves_are_not_of_its_family_is_refused(path):
    rng = rng_for("families")
    X = rng.normal(size=(60, 2))
    changes = [
        ("normal", {"family": "linear"}, "parameters.family: is 'linear', but the leaves are Normal"),
        ("linear", {"family": "normal"}, "parameters.family: is 'normal', but the leaves are LinearRegression"),
        ("normal", {"family": 3}, "parameters.family: is 3"),
    ]
    for family, change, complaint in changes:
        et.save(et.MetaTreeRegressor(family=family, max_depth=2, random_state=0).fit(X, X[:, 0]), path)
        path.write_bytes(with_model(path.read_bytes(), lambda model, change=change: model["parameters"].update(change)))
        with pytest.raises(et.ModelFileError, match=re.escape(f"{path}: {complaint}")):
            et.load(path)
    et.save(et.MetaTreeRegressor(max_depth=2, random_state=0).fit(X, X[:, 0]), path)
    whole = path.read_bytes()
    for name, value in (("score", "x"), ("sharpness", None), ("parameters", 3)):
        path.write_bytes(with_model(whole, lambda model, n=name, v=value: model["choice"].update({n: v})))
        with pytest.raises(et.ModelFileError, match=rf"{path}: choice\.{name}: must be"):
            et.load(path)
    path.write_bytes(with_model(whole, lambda model: model.update(row_data=["exposure"])))
    with pytest.raises(et.ModelFileError, match=r"row_data: is \['exposure'\], which family 'normal' does not go with"):
        et.load(path)


def test_a_kind_that_is_not_known_is_named(small):
    path, content = small
    header, data = split(content)
    header["__metadata__"]["kind"] = "Popen"
    path.write_bytes(join(header, data))
    with pytest.raises(et.ModelFileError, match=f"{path}: kind: is 'Popen', but must be one of"):
        et.load(path)


def test_wrong_sizes_are_named(small):
    path, content = small
    for damaged, complaint in (
        (b"", "0 bytes are not a model file"),
        (content[:100], "header: .* bytes long, but only 92 follow: cut off"),
        (content[:-1], "sha256: the file is damaged"),
        (content + b"more", "sha256: the file is damaged"),
        (
            (2**62).to_bytes(8, "little") + content[8:],
            "not a model of everytree: .* 4611686018427387904 bytes long",
        ),
    ):
        path.write_bytes(damaged)
        with pytest.raises(et.ModelFileError, match=f"{path}: {complaint}"):
            et.load(path)


def test_huge_shapes_and_overlapping_arrays_are_named(small):
    path, content = small
    for change, complaint in (
        ({"shape": [2**60, 2**60]}, "leaf: shape must be at most 8 whole numbers"),
        ({"shape": [2**40]}, r"leaf: shape \[1099511627776\] of float64 does not take 56 bytes"),
        ({"data_offsets": [0, 56]}, "must start at"),
        ({"dtype": "C128"}, "leaf: dtype must be one of"),
        ({"data": "x"}, "leaf: an array has dtype, shape and data_offsets"),
    ):
        header, data = split(content)
        header["leaf"] |= change
        path.write_bytes(join(header, data))
        with pytest.raises(et.ModelFileError, match=complaint):
            et.load(path)


def test_a_deep_header_is_no_crash(small):
    path, _ = small
    header = b"[" * 80_000
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(et.ModelFileError, match=f"{path}: sha256"):
        et.load(path)
    sealed = header + b'"sha256":"' + b"0" * 64 + b'"' + b" " * 5
    digest = hashlib.sha256(sealed).hexdigest().encode()
    sealed = sealed.replace(b"0" * 64, digest)
    path.write_bytes(len(sealed).to_bytes(8, "little") + sealed)
    with pytest.raises(et.ModelFileError, match=f"{path}: header: no JSON"):
        et.load(path)


def test_nothing_is_made_of_a_damaged_header(path):
    """Many small values take many times the bytes that write them; so does what is not of this library."""
    for start in (b'{"a":[', b'{"__metadata__":{"sha256":"' + b"0" * 64 + b'"},"a":['):
        header = start + b"[]," * 700_000 + b"[]]}"
        header += b" " * (-len(header) % 8)
        path.write_bytes(len(header).to_bytes(8, "little") + header)
        tracemalloc.start()
        with pytest.raises(et.ModelFileError, match="sha256"):
            et.load(path)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak <= len(header) + ROOM


def test_a_header_of_unusual_length_is_refused(path, monkeypatch):
    monkeypatch.setattr(container, "LONGEST_HEADER", 100)
    et.save(et.MetaTree.complete([0]), path)
    with pytest.raises(et.ModelFileError, match=r"not a model of everytree: .* but at most 100 are read"):
        et.load(path)


def test_every_number_is_looked_at(stored, path):
    """A NaN anywhere is an error: nothing that is stored may be one."""
    for content, _ in stored.values():
        header, data = split(content)
        for entry in header.values():
            if entry.get("dtype") != "F64" or entry["data_offsets"][0] == entry["data_offsets"][1]:
                continue
            begin, _ = entry["data_offsets"]
            path.write_bytes(join(dict(header), data[:begin] + np.float64(np.nan).tobytes() + data[begin + 8 :]))
            with pytest.raises(et.ModelFileError):
                et.load(path)


# ---- writing ---------------------------------------------------------------------------------------------------------


def test_a_failed_save_leaves_the_old_file_and_nothing_else(small, monkeypatch):
    path, content = small
    for module, name in ((atomic.os, "fsync"), (atomic.Path, "replace"), (container, "_digest")):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
            with pytest.raises(OSError, match="No space left"):
                et.save(et.MetaTree.complete([0]), path)
        assert path.read_bytes() == content
        assert list(path.parent.iterdir()) == [path]
    with pytest.raises(FileNotFoundError):
        et.save(et.MetaTree.complete([0]), path.parent / "none" / "model")


def test_errors_name_the_file_that_was_asked_for_and_long_names_are_names(tmp_path):
    tree = et.MetaTree.complete([0])
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*/no/model'"):
        et.save(tree, tmp_path / "no" / "model")
    path = tmp_path / ("ä" * 120)
    et.save(tree, path)
    assert et.load(path) == tree
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.posix
def test_a_file_that_others_may_not_read_is_never_readable_while_it_is_replaced(path, monkeypatch):
    seen = []
    et.save(et.MetaTree.complete([0]), path)
    path.chmod(0o600)
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda number: seen.append(os.fstat(number).st_mode) or fsync(number))
    et.save(et.MetaTree.complete([0, 1, 1]), path)
    assert stat.S_IMODE(seen[0]) == stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.posix
def test_a_file_keeps_its_permissions_and_a_link_its_target(small):
    path, _ = small
    tree = et.MetaTree.complete([0])
    path.chmod(0o640)
    link = path.with_name("link")
    link.symlink_to(path)
    et.save(tree, link)
    assert link.is_symlink()
    assert et.load(path) == tree
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    before = os.umask(0o022)
    try:
        et.save(tree, path.with_name("new"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.with_name("new").stat().st_mode) == 0o644


SAVE_FOREVER = """
import os, sys, everytree as et
path = sys.argv[1]
et.load(path)  # so that no child has anything to import
for _ in sys.stdin:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        print("ended", flush=True)
        continue
    model = et.load(path)
    print(os.getpid(), flush=True)
    while True:
        model.update([[0] * 12], [1])
        et.save(model, path)
"""


@pytest.mark.long
@pytest.mark.posix
def test_a_process_killed_while_it_saves_leaves_a_whole_file(tmp_path):
    """kill -9 at any moment: the old file or the new one, always readable, and never an older one than before."""
    first, path = tmp_path / "first", tmp_path / "model"
    et.save(et.Posterior(et.MetaTree.complete(np.arange(2**12 - 1) % 12), et.Bernoulli()), first)
    et.save(et.load(first), path)
    rng = rng_for("kill")
    n_rows, replaced = 0, 0
    command = [sys.executable, "-c", SAVE_FOREVER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(KILLS):
            process.stdin.write("again\n")
            process.stdin.flush()
            saving = int(process.stdout.readline())
            time.sleep(rng.uniform(0.0, 0.05))
            os.kill(saving, signal.SIGKILL)
            assert process.stdout.readline() == "ended\n"
            post = et.load(path)
            assert post.n_rows >= n_rows
            replaced += post.n_rows > n_rows
            n_rows = post.n_rows
            assert post.statistics[0].sum() == n_rows  # all of one moment
    assert replaced > 0
    left = [each for each in tmp_path.iterdir() if each not in (first, path)]
    assert len(left) <= KILLS
    assert all(each.name.startswith(".model.") and each.name.endswith(".tmp") for each in left)


def test_what_is_saved_while_others_update_is_of_one_moment(path):
    posts = [et.Posterior(et.MetaTree.complete([0, 1, 1]), et.Bernoulli()) for _ in range(3)]
    forest, stop = et.Forest(posts), threading.Event()

    def learn() -> None:
        while not stop.is_set():
            forest.update([[0, 1]], [1])

    thread = threading.Thread(target=learn)
    thread.start()
    try:
        for _ in range(50):
            et.save(forest, path)
            for post in et.load(path).posteriors:
                assert post.statistics[0].sum() == post.n_rows
    finally:
        stop.set()
        thread.join()


# ---- what is left behind, and what is no file ------------------------------------------------------------------------


SLOW_SAVE = """
import sys, time
from everytree.files.atomic import replace_file

def parts():
    yield b"some"
    print("begun", flush=True)
    time.sleep(60)

replace_file(sys.argv[1], parts())
"""


def begun_save(path: Path) -> subprocess.Popen[bytes]:
    """A process in the middle of writing a file."""
    saver = subprocess.Popen([sys.executable, "-c", SLOW_SAVE, path], stdout=subprocess.PIPE)
    assert saver.stdout is not None
    assert saver.stdout.readline() == b"begun\n"
    return saver


def kill(saver: subprocess.Popen[bytes]) -> None:
    saver.kill()
    saver.wait(30)
    assert saver.stdout is not None
    saver.stdout.close()


@pytest.mark.posix
def test_the_next_save_removes_what_killed_ones_left_and_nothing_else(tmp_path):
    path, tree = tmp_path / "model.et", et.MetaTree.complete([0, 1, 1])
    bystanders = [".model.et.tmp", ".model.et.0123456789abcdef.tmp.gz", ".other.0123456789abcdef.tmp", "notes.tmp"]
    for name in bystanders:
        (tmp_path / name).write_text("not ours")
    killed, alive = begun_save(path), begun_save(path)
    kill(killed)
    temporaries = {entry.name for entry in tmp_path.glob(".model.et.????????????????.tmp")}
    assert len(temporaries) == 2
    et.save(tree, path)
    left = {entry.name for entry in tmp_path.iterdir()} - {*bystanders, "model.et"}
    assert len(left) == 1, "that of the process that still writes"
    assert left < temporaries
    kill(alive)
    et.save(tree, path)
    assert {entry.name for entry in tmp_path.iterdir()} == {*bystanders, "model.et"}
    assert et.load(path) == tree


@pytest.mark.posix
@pytest.mark.parametrize("mmap", [False, True])
def test_a_pipe_is_refused_at_once(tmp_path, mmap):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    answers: list[str] = []

    def load() -> None:
        try:
            et.load(pipe, mmap=mmap)
        except et.ModelFileError as error:
            answers.append(str(error))

    thread = threading.Thread(target=load, daemon=True)
    thread.start()
    thread.join(10.0)
    assert answers == [f"{pipe}: is a pipe, but a model is read from a file; write it to one first"]
    with pytest.raises(et.ModelFileError, match="/dev/zero: is a device"):
        et.load("/dev/zero", mmap=mmap)
    with pytest.raises(IsADirectoryError):
        et.load(tmp_path)


def test_rows_of_an_exact_estimator_have_codes_of_its_schema(path):
    X = np.array([[0.0, np.nan], [1.0, 2.0], [0.0, 3.0], [1.0, np.nan]] * 5)
    et.save(et.ExactTreeClassifier(max_depth=2).fit(X, [0, 1, 0, 1] * 5), path)
    header, data = split(path.read_bytes())
    begin, _ = header["rows.codes"]["data_offsets"]
    for column, code in ((0, 2), (0, 254), (0, 255), (1, 254)):  # 255 is missing, which column 1 alone has
        forged = bytearray(data)
        forged[begin + 2 * 3 + column] = code
        path.write_bytes(join(header, bytes(forged)))
        with pytest.raises(et.ModelFileError, match=rf"rows\.codes: \[3, {column}\] is {code}, but must be codes"):
            et.load(path)
    forged = bytearray(data)
    forged[begin + 1] = 255
    path.write_bytes(join(header, bytes(forged)))
    assert et.load(path).model_.rows.codes[0, 1] == 255


@pytest.mark.parametrize(("name", "change", "message"), [
    ("columns", lambda own: own[::-1], "columns: must be ascending numbers of the 3 columns"),
    ("columns", lambda own: own + 1, "columns: must be ascending numbers of the 3 columns"),
    ("points", lambda own: own * np.nan, "points: .*must be finite"),
    ("base", lambda own: own[1:], "value: must have one entry a node"),
])  # fmt: skip
def test_lines_that_do_not_fit_are_named(path, name, change, message):
    numbers = rng_for("lines").normal(size=(40, 3))
    model = et.MetaBoostRegressor(4, n_chains=2, n_residual_trees=2, random_state=0).fit(numbers, numbers @ [1, 2, 3])
    et.save(model, path, layout="mappable")
    contents = container.read(path)
    key, metadata = f"boosted.lined.{name}", {k: v for k, v in contents.metadata.items() if k != "sha256"}
    container.write(path, metadata, contents.arrays | {key: np.ascontiguousarray(change(contents.arrays[key]))})
    with pytest.raises(et.ModelFileError, match=message):
        et.load(path)
