"""Pages about online forests: honest about what was seen, and the same answers as in Python."""

from __future__ import annotations

import datetime
import decimal
import fractions
import re

import numpy as np
import pandas as pd
import pytest

import everytree as et
from cases import rng_for
from command import fails, says
from everytree.report import report_html
from everytree.report.stream_quality import judged_stream
from everytree.report.streams import read_stream_rows, stream_of
from report_cases import EVIL, classes_of, data_of, mixed_table, numbers_of

TABLE = mixed_table(100)


def learned(kind: str):
    """A forest that has learned the table, and its targets."""
    if kind == "numbers":
        forest, y = et.OnlineForestRegressor(n_models=3, seed=1), numbers_of(TABLE, "normal")
    else:
        half_life = 50.0 if kind == "fading" else None
        forest, y = et.OnlineForestClassifier(n_models=3, half_life=half_life, seed=1), classes_of(TABLE, 3)
    forest.learn_many(TABLE, y)
    forest.refresh()
    return forest, y


def learned_with_table():
    forest, y = learned("classes")
    return forest, TABLE[:30], y[:30]


@pytest.mark.parametrize("kind", ["fading", "numbers"])
def test_what_if_answers_as_the_forest_does(visit, kind):
    forest, y = learned(kind)
    rows = TABLE.iloc[:4].copy()
    rows.loc[0, EVIL], rows.loc[1, "colour"], rows.loc[2, "when"] = np.nan, None, pd.NaT
    rows.loc[3, EVIL] = 1e6
    visitor, order = visit(forest, TABLE, y), [str(name) for name in forest.features]
    for i in range(len(rows)):
        visitor.enter(rows.iloc[i][order].tolist())
        dist = forest.predictive_many(rows.iloc[[i]])
        if kind == "numbers":
            shown = visitor.numbers()
            there = [shown[key] for key in ("mean", "std", "5%", "median", "95%")]
            wanted = [dist.mean()[0], dist.std()[0], *dist.quantile([0.05, 0.5, 0.95])[0]]
            np.testing.assert_allclose(there, wanted, rtol=1e-9, atol=1e-9)
        else:
            sorted_labels = np.argsort([str(label) for label in forest.classes])
            np.testing.assert_allclose(visitor.probs(), dist.probs()[0, sorted_labels], rtol=0.0, atol=1e-9)
    assert not visitor.page.locator("#way").is_visible()


def test_what_if_tells_texts_apart_that_look_alike(visit):
    """Line breaks and blanks are not shown, but they are learned."""
    texts = ["a b", "a  b", "c\nd"]
    rows = [{"text": texts[i % 3], "only": "x\ny" if i % 2 else "z"} for i in range(60)]
    forest, y = et.OnlineForestRegressor(n_models=3, seed=1), [10.0 * (i % 3) + i % 2 for i in range(60)]
    forest.learn_many(rows, y)
    data = data_of(report_html(forest, rows, target=y, n_examples=60))
    shown = {one["name"]: one["categories"] for one in data["inputs"]}
    assert shown == {"only": ["x y", "z"], "text": [r"'a \x20b'", "'a b'", r"'c\nd'"]}
    assert {tuple(one["values"]) for one in data["examples"]} == {(a, b) for a in shown["only"] for b in shown["text"]}
    visitor, labels = visit(forest, rows, y), dict(zip(sorted(texts), shown["text"], strict=True))
    for row in rows[:6]:
        visitor.enter(["x y" if row["only"] == "x\ny" else "z", labels[row["text"]]])
        assert visitor.numbers()["mean"] == pytest.approx(forest.predict_one(row), abs=1e-9)


def test_on_a_phone_reasons_follow_the_prediction(visit):
    page = visit(*learned_with_table(), viewport={"width": 390, "height": 844}).page
    page.select_option("#example", "0")
    tops = [page.locator(place).bounding_box()["y"] for place in ("#said", "#reasons", "#inputs")]
    assert tops == sorted(tops)
    assert page.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_what_the_columns_add_is_the_prediction(kind):
    forest, y = learned(kind)
    found = data_of(report_html(forest, TABLE, target=y, n_examples=4))["examples"]
    assert len(found) == 4
    for one in found:
        why, number = one["reasons"], int(re.search(r"row (\d+)", one["label"])[1])
        assert why["base"] + sum(why["parts"]) == pytest.approx(why["value"], abs=1e-10)
        said = forest.predictive_many(TABLE.iloc[[number]])
        assert why["value"] == pytest.approx(said.mean()[0] if kind == "numbers" else said.probs().max(), abs=1e-10)


def test_rows_are_scored_before_they_are_learned():
    """Whatever the model has learned; and targets without a cause are not predicted, though it has seen them."""
    coins = rng_for("coins of an online report").integers(0, 2, len(TABLE))
    scores = []
    for n_rows in (len(TABLE), 60):
        forest = et.OnlineForestClassifier(n_models=3, seed=1)
        forest.learn_many(TABLE[:n_rows], coins[:n_rows].tolist())
        rows = read_stream_rows(forest, TABLE.assign(coin=coins), "coin")
        scores.append(judged_stream(stream_of(forest, rows), rows, is_new=False)[0])
    assert scores[0] == scores[1]
    assert scores[0].log_loss > 0.9 * scores[0].baseline_log_loss
    assert scores[0].n_rows == len(TABLE) - 2


def test_the_scores_are_those_of_learning_piece_by_piece():
    forest, y = learned("numbers")
    rows = read_stream_rows(forest, TABLE, y)
    scores, (quality,) = judged_stream(stream_of(forest, rows), rows, is_new=False)
    again, means = et.OnlineForestRegressor(n_models=3, seed=1), []
    for piece in np.array_split(np.arange(len(TABLE)), 50):
        means += again.predict_many(TABLE.iloc[piece]).tolist()
        again.learn_many(TABLE.iloc[piece], y[piece])
    error = np.mean((np.array(means) - y)[2:] ** 2)
    assert scores.r2 == pytest.approx(1.0 - error / np.var(y[2:]))
    assert dict(quality.rows)["Root mean squared error"] == f"{error**0.5:.4g}"


def quality_of(page: str) -> str:
    """The section on quality, as text."""
    section = re.search(r'<section[^>]*id="quality".*?</section>', page, flags=re.DOTALL)
    return re.sub(r"<[^>]*>", " ", section[0])


def test_new_rows_are_scored_by_the_model_itself():
    forest, y = learned("numbers")
    new, learnt = (quality_of(report_html(forest, TABLE, target=y, held_out=is_new)) for is_new in (True, False))
    for said in (new, learnt):
        assert "started empty" in said
    assert "This model, on rows it has not seen" in new
    assert "it was not fitted to any of them" in new
    assert "was not asked" not in new
    assert "This model, on rows it has not seen" not in learnt
    assert "was not asked, since it may have learned these rows" in learnt


@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_new_rows_are_predicted_once(kind, monkeypatch):
    forest, y = learned(kind)
    rows = read_stream_rows(forest, TABLE, y)
    asked = "probabilities_many" if kind == "classes" else "predictive_many"
    calls, predict = [], getattr(type(forest), asked)
    monkeypatch.setattr(type(forest), asked, lambda self, X: (calls.append(self is forest), predict(self, X))[1])
    scores, (own, _) = judged_stream(stream_of(forest, rows), rows, is_new=True)
    assert sum(calls) == 1
    assert own.columns == ["this model"]
    assert scores.n_rows == len(TABLE)


@pytest.mark.parametrize(
    ("forest", "y"),
    [
        (et.OnlineForestRegressor(n_models=2, seed=1), [5.0, 4.0] + [0.0] * 58),
        (et.OnlineForestClassifier(n_models=2, seed=1), ["b", "b"] + ["a"] * 58),
    ],
)
def test_only_targets_that_differ_are_scored(forest, y):
    """The first piece is learned and not predicted: what differs must be among the others."""
    rows = TABLE[:60]
    forest.learn_many(rows, y)
    said = quality_of(report_html(forest, rows, target=y))
    why = "All targets after the first 2 rows, from which a forest that starts empty learns, are the same"
    assert why in said
    assert "started empty" not in said
    new = quality_of(report_html(forest, rows, target=y, held_out=True))
    assert "This model, on rows it has not seen" in new
    assert why in new
    same = report_html(forest, rows, target=[y[-1]] * 60, held_out=True)
    assert "All targets of the table are the same" in quality_of(same)


def test_the_page_names_the_target_and_takes_dicts():
    forest = et.OnlineForestClassifier(n_models=2, seed=1)
    days = [datetime.date(2024, 1, 1 + i % 28) for i in range(60)]
    rows = [{"size": i % 7, "day": day, "late": "yes" if i % 7 > 3 else "no"} for i, day in enumerate(days)]
    forest.learn_many([{name: row[name] for name in ("size", "day")} for row in rows], [row["late"] for row in rows])
    page = report_html(forest, rows)
    assert "<h1>Predicting late</h1>" in page
    assert [one["kind"] for one in data_of(page)["inputs"]] == ["datetime", "numeric"]
    assert "2024-01-01</text>" in page  # a day has no hours


HOUR, DAY = datetime.timedelta(hours=1), datetime.timedelta(days=1)

STEPS = {
    "timedelta": [k * HOUR for k in range(7)],
    "np.timedelta64": [np.timedelta64(k, "h") for k in range(7)],
    "Decimal": [k * decimal.Decimal("1.1") for k in range(7)],
    "Fraction": [fractions.Fraction(k, 3) for k in range(7)],
    "np.float32": [np.float32(k) for k in range(7)],
    "np.int8": [np.int8(k) for k in range(7)],
    "date": [datetime.date(2024, 1, 1) + k * DAY for k in range(7)],
    "np.datetime64": [np.datetime64("2024-01-01") + np.timedelta64(k, "D") for k in range(7)],
    "moment with a zone": [datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + k * HOUR for k in range(7)],
}
"""Values that a forest learns as numbers, seven of each kind at equal steps."""


def points_across(values: list[object]) -> list[str]:
    """Where the points of an effect curve are, from left to right."""
    forest, y = et.OnlineForestRegressor(n_models=2, seed=1), [float(i % 7) for i in range(60)]
    rows = [{"x": values[i % 7]} for i in range(60)]
    forest.learn_many(rows, y)
    (curve,) = re.findall(r'<path class="line of" d="M([^"]*)"', report_html(forest, rows, target=y))
    return [point.split()[0] for point in curve.split("L")]


@pytest.mark.parametrize("kind", STEPS)
def test_all_values_that_a_forest_learns_have_effect_curves(kind):
    assert points_across(STEPS[kind]) == points_across(list(range(7)))


def test_classes_may_be_anything_that_can_be_hashed():
    forest, labels = et.OnlineForestClassifier(n_models=2, seed=1), [("a", 1), ("b", 2), ("c", 3)]
    rows, y = [{"x": i % 6} for i in range(60)], [labels[i % 6 // 2] for i in range(60)]
    forest.learn_many(rows, y)
    page = report_html(forest, rows, target=y, held_out=True)
    assert "probability by x" in page
    assert "(&#x27;b&#x27;, 2)" in page


def test_what_a_page_lacks_is_said(monkeypatch):
    forest, y = learned("classes")
    assert "made without a table" in report_html(forest)
    assert "The table has 1 row; fewer than 40" in report_html(forest, TABLE[:1], target=y[:1])
    monkeypatch.setattr("everytree.report.stream_data.MAX_CATEGORIES", 3)  # there are four colours
    page = report_html(forest, TABLE[:30], target=y[:30])
    assert data_of(page)["kernel"] is None
    assert "too many to choose from" in page


def test_bad_input_is_refused():
    forest, y = learned("classes")
    with pytest.raises(ValueError, match="has learned no rows yet"):
        report_html(et.OnlineForestClassifier(), TABLE, target=y)
    with pytest.raises(ValueError, match="table has none of the features"):
        report_html(forest, pd.DataFrame({"other": [1, 2]}), target=["no", "no"])
    without = et.OnlineForestClassifier()
    without.learn_many([{}, {}], ["no", "yes"])
    with pytest.raises(ValueError, match="table must be None: the model has learned rows without features"):
        report_html(without, TABLE, target=y)
    with pytest.raises(ValueError, match="target is 'nothing', but the columns"):
        report_html(forest, TABLE, target="nothing")
    with pytest.raises(ValueError, match="target must say which column"):
        report_html(forest, TABLE)
    with pytest.raises(ValueError, match="target has 2 entries, but the table has 100 rows"):
        report_html(forest, TABLE, target=["no", "no"])
    with pytest.raises(ValueError, match="target, row 1, must be a class"):
        report_html(forest, TABLE[:2], target=["no", None])
    with pytest.raises(ValueError, match="exposure must be None"):
        report_html(forest, TABLE, target=y, exposure="count")


def test_the_command_line_shows_and_reports_them(tmp_path, capfd):
    y = classes_of(TABLE, 3)
    names = {EVIL: "size"}
    plain = et.OnlineForestClassifier(n_models=3, half_life=50, seed=1)
    plain.learn_many(TABLE.rename(columns=names), np.where(y == "no", "no", "yes"))
    model, table = tmp_path / "model.et", tmp_path / "table.csv"
    et.save(plain, model)
    TABLE.rename(columns=names).assign(bought=np.where(y == "no", "no", "yes")).to_csv(table, index=False)
    shown = says(capfd, "show", model)
    assert "OnlineForestClassifier of 3 trees" in shown
    assert "colour (text)" in shown
    assert "half-life 50 rows" in shown
    said = fails(capfd, "predict", model, table)
    assert "holds an OnlineForestClassifier" in said
    assert "work with `show` and `report`; to predict, load the file in Python with everytree.load" in said
    page = tmp_path / "page.html"
    assert "name it by --target" in fails(capfd, "report", model, table, "--out", page)
    says(capfd, "report", model, table, "--target", "bought", "--out", page)
    assert "<h1>Predicting bought</h1>" in page.read_text()
    assert "there is no column 'nope'" in fails(capfd, "report", model, table, "--target", "nope", "--out", page)
