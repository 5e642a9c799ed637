"""A snapshot of an online forest predicts what the forest does, for any rows, and is an estimator like any other."""

from __future__ import annotations

import datetime
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everytree as et
from cases import examples, rng_for, seeds
from command import fails, says
from everytree.tables.column import Column
from online_cases import KINDS, learn, make, random_rows, random_targets, state

NAMES = ["size", "count", "7", "colour", "late"]


def as_table(rows: list[dict[Any, Any]], names: list[str] = NAMES) -> list[dict[str, Any]]:
    """The rows with every column, and names that are texts."""
    named = [{str(name): value for name, value in row.items()} for row in rows]
    return [{name: row.get(name) for name in names} for row in named]


def learned(kind: str, n: int = 120, seed: str = "snapshot", **parameters: Any) -> Any:
    rng = rng_for(seed, kind)
    return learn(make(kind, **parameters), random_rows(rng, n), random_targets(kind, rng, n))


def assert_predicts_as(snapshot: Any, forest: Any, rows: list[dict[Any, Any]], table: Any = None) -> None:
    """Predictions of an estimator are those of an online forest, whose classes are in order of appearance."""
    table = as_table(rows) if table is None else table
    if hasattr(snapshot, "classes_"):
        expected = [[forest.predict_proba_one(row)[label] for label in snapshot.classes_.tolist()] for row in rows]
        np.testing.assert_allclose(snapshot.predict_proba(table), expected, rtol=0, atol=1e-10)
    else:
        expected, of = forest.predictive_many(rows), snapshot.predictive(table)
        np.testing.assert_allclose(snapshot.predict(table), [forest.predict_one(row) for row in rows], rtol=1e-10)
        np.testing.assert_allclose(of.std(), expected.std(), rtol=1e-9)
        np.testing.assert_allclose(of.cdf(0.3), expected.cdf(0.3), rtol=0, atol=1e-10)


# ---- the law --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("max_nodes", [None, 40])
@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds, n=st.integers(1, 80))
@examples(15)
def test_it_predicts_what_the_forest_predicts_on_any_rows(kind, max_nodes, seed, n):
    rng = np.random.default_rng(seed)
    forest = make(kind, max_nodes=max_nodes, seed=seed % 1000)
    learn(forest, [{"size": 0.5, "count": 1, 7: True, "colour": "red", "late": 1.0}], random_targets(kind, rng, 1))
    learn(forest, random_rows(rng, n), random_targets(kind, rng, n))
    rows = random_rows(rng, 20)
    rows += [{**row, "colour": f"new {i}"} for i, row in enumerate(rows[:5])]
    rows += [{}, {"size": 1e12, "late": -1e12}]
    assert_predicts_as(forest.snapshot(), forest, rows)


@pytest.mark.parametrize("kind", KINDS)
@given(seed=seeds)
@examples(10)
def test_with_a_half_life_it_is_the_forest_brought_up_to_date(kind, seed):
    rng = np.random.default_rng(seed)
    forest = make(kind, half_life=20.0, seed=seed % 1000)
    learn(forest, random_rows(rng, 90), random_targets(kind, rng, 90))
    before = state(forest)
    snapshot = forest.snapshot()
    assert state(forest) == before
    forest.refresh()
    assert_predicts_as(snapshot, forest, random_rows(rng, 20))


@pytest.mark.parametrize("n_classes", [1, 2, 5, 40])
def test_classes_that_come_late_are_in_ascending_order(n_classes):
    rng = rng_for("classes", n_classes)
    forest = et.OnlineForestClassifier(3, seed=1)
    rows, labels = random_rows(rng, 200), rng.permutation(200) % n_classes
    learn(forest, rows, [f"class {label:02d}" for label in np.maximum(labels - 3, 0)])
    snapshot = forest.snapshot()
    assert snapshot.classes_.tolist() == sorted(forest.classes)
    assert_predicts_as(snapshot, forest, random_rows(rng, 30))
    for row, label in zip(rows, snapshot.predict(as_table(rows)).tolist(), strict=True):
        probs = forest.predict_proba_one(row)  # of equal ones, the first in another order is predicted
        assert probs[label] == pytest.approx(max(probs.values()), abs=1e-10)


def test_dates_booleans_and_ranges():
    rng, start = rng_for("dates"), datetime.datetime(2020, 1, 1, 7, 30)
    rows = [
        {
            "at": start + datetime.timedelta(seconds=float(s)),
            "day": datetime.date(2020, 1, 1 + int(s) % 28),
            "on": s > 5e5,
        }
        for s in rng.uniform(0.0, 1e6, 200)
    ]
    forest = et.OnlineForestRegressor(4, seed=2, ranges={"day": (0.0, 30_000.0)})
    learn(forest, rows, [row["at"].day + 3.0 * row["on"] for row in rows])
    assert [column.kind for column in forest.snapshot().schema_.columns] == ["datetime", "datetime", "numeric"]
    some = [{**row, "day": None} if i % 5 == 0 else row for i, row in enumerate(rows[:50])]
    for table in (some, pd.DataFrame(some)):
        assert_predicts_as(forest.snapshot(), forest, some, table)


def test_a_date_that_equals_a_threshold_goes_where_it_went():
    """Thresholds are days in the forest and microseconds in the table."""
    forest = et.OnlineForestRegressor(6, seed=0)
    days = [datetime.datetime(2020, 1, 1) + datetime.timedelta(days=k, microseconds=k) for k in range(60)]
    learn(forest, [{"day": day} for day in days], [float(k % 7) for k in range(60)])
    nodes, _ = forest.trees.current_nodes()
    thresholds = nodes["threshold"][nodes["left"] >= 0]
    near = (thresholds[:, None] * 86_400e6 + np.arange(-2.0, 3.0)).round().ravel()
    rows = [{"day": datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=us)} for us in near]
    assert_predicts_as(forest.snapshot(), forest, rows, rows)


# ---- an estimator like any other ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_it_does_not_change_when_the_forest_goes_on(kind):
    rng, forest = rng_for("goes on", kind), learned(kind)
    table, snapshot = as_table(random_rows(rng, 30)), forest.snapshot()
    before = snapshot.predict(table)
    learn(forest, random_rows(rng, 50), random_targets(kind, rng, 50))
    np.testing.assert_array_equal(snapshot.predict(table), before)
    of_forest = state(forest)
    snapshot.partial_fit(table, random_targets(kind, rng, 30))
    assert state(forest) == of_forest


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_saved_pickled_explained_and_reported(kind, tmp_path: Path):
    rng, snapshot = rng_for("saved", kind), learned(kind).snapshot()
    table = as_table(random_rows(rng, 25))
    ask = snapshot.predict_proba if kind == "classes" else snapshot.predict
    expected = ask(table)
    et.save(snapshot, tmp_path / "model")
    for again in (et.load(tmp_path / "model"), pickle.loads(pickle.dumps(snapshot))):
        np.testing.assert_allclose(getattr(again, ask.__name__)(table), expected, rtol=1e-12)
    why = snapshot.explain(table)
    np.testing.assert_allclose(why.base + why.values.sum(axis=1), expected, atol=1e-10)
    effect = snapshot.effect("colour", table)
    assert effect.kind == "category"
    assert {"red", "green", "blue", "ö"} >= {point for point in effect.points if point is not None}
    some = [{**row, "colour": effect.points[0]} for row in table]
    np.testing.assert_allclose(effect.mean[0], getattr(snapshot, ask.__name__)(some).mean(axis=0), atol=1e-10)
    judged = [{**row, "y": y} for row, y in zip(table, random_targets(kind, rng, 25), strict=True)]
    page = snapshot.report(tmp_path / "page.html", judged, target="y", held_out=True).read_text(encoding="utf-8")
    assert "≤ position 0." in page
    assert "texts that the model has no list of" in page
    assert "NaN" not in page.split("<script")[0]
    assert "every row is learned after it was predicted" in str(snapshot.fitted_.unseen)


def test_it_is_exported_to_onnx_unless_it_has_texts():
    onnxruntime = pytest.importorskip("onnxruntime")
    rng = rng_for("onnx")
    rows = [{"a": float(rng.normal()), "b": float(rng.integers(4))} for _ in range(150)]
    forest = learn(et.OnlineForestClassifier(3, seed=0), rows, [row["a"] > row["b"] - 1.0 for row in rows])
    snapshot = forest.snapshot()
    session = onnxruntime.InferenceSession(et.to_onnx(snapshot).SerializeToString())
    found = session.run(None, et.export.onnx_inputs(snapshot, rows))
    np.testing.assert_allclose(found[1], snapshot.predict_proba(rows), atol=1e-6)
    with pytest.raises(ValueError, match="column 'colour' is text that each tree reads by a hash"):
        et.to_onnx(learned("classes").snapshot())


def test_a_feature_of_more_thresholds_than_a_column_has_codes(monkeypatch):
    monkeypatch.setattr("everytree.online.snapshot.LARGEST_CODE", 3)
    rng, forest = rng_for("many"), learned("numbers", n_models=3)
    snapshot = forest.snapshot()
    assert snapshot.schema_.n_features > 5
    assert_predicts_as(snapshot, forest, random_rows(rng, 40))


def test_texts_of_a_categorical_type_are_texts():
    forest = learned("numbers")
    rows = as_table(random_rows(rng_for("categorical"), 20))
    table = pd.DataFrame(rows).astype({"colour": "category"})
    np.testing.assert_array_equal(forest.snapshot().predict(table), forest.snapshot().predict(rows))
    with pytest.raises(ValueError, match="column 'colour' was text when"):
        forest.snapshot().predict([{**row, "colour": 1.0} for row in rows])


@pytest.mark.parametrize("hashed", [(1,), (1, -1), (1, 2.0), (2**63, 0)])
def test_columns_of_positions_are_checked(hashed):
    with pytest.raises(ValueError, match="hashed of column 'a' must be seed and tree, of a numeric column"):
        Column("a", "numeric", hashed=hashed)
    with pytest.raises(ValueError, match="hashed of column 'a'"):
        Column("a", "categorical", hashed=(1, 2))


# ---- what there is none of ------------------------------------------------------------------------------------------


def test_forests_without_a_snapshot_say_why():
    with pytest.raises(ValueError, match="OnlineForestRegressor has learned no rows yet"):
        et.OnlineForestRegressor().snapshot()
    with pytest.raises(ValueError, match="have no features, so there is no table"):
        learn(et.OnlineForestRegressor(), [{}], [1.0]).snapshot()
    with pytest.raises(ValueError, match="features have the same name as text, '7'"):
        learn(et.OnlineForestRegressor(), [{7: 1.0, "7": 2.0}], [1.0]).snapshot()
    mixed = learn(et.OnlineForestClassifier(), [{"a": 1.0}] * 2, ["yes", 2])
    with pytest.raises(TypeError, match="the classes are of type int, str, but an estimator needs labels that are all"):
        mixed.snapshot()


def test_what_only_estimators_do_is_asked_of_the_snapshot():
    forest = et.OnlineForestClassifier()
    for name in ("explain", "effect", "plot_effect", "report"):
        with pytest.raises(AttributeError, match=rf"has no attribute '{name}': use model.snapshot\(\).{name}\(...\)"):
            getattr(forest, name)
    with pytest.raises(AttributeError, match=r"no attribute 'nothing'$"):
        _ = forest.nothing
    with pytest.raises(TypeError, match=r"or the snapshot\(\) of an online forest, not OnlineForestClassifier"):
        et.report.report_html(forest)


def test_commands_take_a_snapshot(tmp_path: Path, capfd: Any):
    rng = rng_for("commands")
    rows = [{"size": float(rng.normal()), "code": str(rng.choice(["07", "7", "1e3"]))} for _ in range(150)]
    forest = learn(et.OnlineForestRegressor(3), rows, [row["size"] + 3.0 * (row["code"] == "07") for row in rows])
    et.save(forest, tmp_path / "forest.et")
    shown = says(capfd, "show", tmp_path / "forest.et")
    assert "OnlineForestRegressor of 3 trees" in shown
    assert "150 rows" in shown
    for command in ("report", "predict"):
        table = [tmp_path / "table.csv"] if command == "predict" else []
        said = fails(capfd, command, tmp_path / "forest.et", *table)
        assert "every command takes a snapshot of it" in said
    et.save(forest.snapshot(), tmp_path / "model.et")
    pd.DataFrame(rows).to_csv(tmp_path / "table.csv", index=False)
    says(capfd, "predict", tmp_path / "model.et", tmp_path / "table.csv", "--out", tmp_path / "predicted.csv")
    predicted = pd.read_csv(tmp_path / "predicted.csv").iloc[:, 0]
    np.testing.assert_allclose(predicted, forest.predict_many(rows), rtol=1e-10)
    says(capfd, "report", tmp_path / "model.et", "--out", tmp_path / "page.html")
    assert "MetaForestRegressor" in (tmp_path / "page.html").read_text(encoding="utf-8")
