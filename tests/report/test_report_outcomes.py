"""Tables and charts of what came of predictions, beside scikit-learn's and NumPy's own."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import confusion_matrix, precision_score, recall_score

import everytree as et
from cases import rng_for
from everytree.report import report_html, write_report
from everytree.report.charts import curve_chart
from everytree.report.outcomes import MAX_CLASSES, MAX_POINTS, class_tables, predicted_chart, tenths_table
from everytree.report.quality import MIN_BIN, _by_tenth


def cells(table: str) -> list[list[str]]:
    """The texts of a table, line by line, without its head."""
    body = table[table.index("<tbody>") :]
    return [re.findall(r">([^<>]*)</t[hd]>", line) for line in re.findall(r"<tr>(.*?)</tr>", body)]


def three_classes(n_rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = rng_for("outcomes")
    true = rng.choice(3, n_rows, p=[0.62, 0.3, 0.08])
    probs = rng.dirichlet([2.0, 2.0, 2.0], n_rows)
    probs[np.arange(n_rows), true] += 0.6
    return true, probs / probs.sum(axis=1, keepdims=True)


def test_precision_recall_and_confusion_are_those_of_scikit_learn():
    true, probs = three_classes()
    each, confusion, thresholds = class_tables(["a", "b", "c"], true, probs, np.ones(400))
    named = probs.argmax(axis=1)
    precision, recall = (score(true, named, average=None) for score in (precision_score, recall_score))
    assert [line[3:] for line in cells(each)] == [
        [f"{p:.0%}", f"{r:.0%}"] for p, r in zip(precision, recall, strict=True)
    ]
    assert [line[1:] for line in cells(confusion)] == confusion_matrix(true, named).astype(str).tolist()
    for share, least, n_named, right in cells(thresholds):
        is_named = probs[:, 2] >= float(least) * (1.0 - 1e-2)  # the threshold is written in three digits
        assert np.mean(is_named[true == 2]) >= float(share.rstrip("%")) / 100 - 1e-9
        assert abs(is_named.sum() - int(n_named)) <= 0.05 * 400
        assert abs(np.mean(true[is_named] == 2) - float(right.rstrip("%")) / 100) < 0.1


def test_weights_count_as_rows_and_a_class_of_few_rows_has_no_thresholds():
    true, probs = three_classes(60)
    weight = np.arange(60) % 3 + 1
    tables = class_tables(["a", "b", "c"], true, probs, weight.astype(float))
    repeated = class_tables(["a", "b", "c"], np.repeat(true, weight), np.repeat(probs, weight, axis=0), np.ones(120))
    assert cells(tables[0]) == cells(repeated[0])
    assert cells(tables[1]) == cells(repeated[1])
    assert len(class_tables(["a", "b"], np.array([0] * 30 + [1] * 9), probs[:39, :2], np.ones(39))) == 2


def test_of_many_classes_the_most_frequent_ones_have_lines():
    rng = rng_for("200 classes")
    true = np.minimum(rng.geometric(0.05, 3000) - 1, 199)
    probs = rng.dirichlet(np.ones(200), 3000)
    each, confusion, *_ = class_tables([f"c{k}" for k in range(200)], true, probs, np.ones(3000))
    assert len(cells(each)) == len(cells(confusion)) == MAX_CLASSES
    assert f"{200 - MAX_CLASSES} rarer classes have no line" in each
    assert all(len(line) == MAX_CLASSES + 2 for line in cells(confusion))  # the name, and a column of others


def test_tenths_go_from_low_to_high_predictions():
    rng = rng_for("tenths")
    mean = rng.normal(size=1000)
    y, inside, weight = mean + rng.normal(size=1000), rng.random(1000) < 0.9, rng.uniform(0.5, 2.0, 1000)
    lines = cells(tenths_table(mean, y, inside, weight))
    order = np.argsort(mean, kind="stable")
    for k, line in enumerate(lines):
        rows = order[100 * k : 100 * (k + 1)]
        assert float(line[1]) == pytest.approx(np.average(mean[rows], weights=weight[rows]), rel=1e-3)
        assert float(line[2]) == pytest.approx(np.average(y[rows], weights=weight[rows]), rel=1e-3)
        assert line[3] == f"{np.average(inside[rows], weights=weight[rows]):.0%}"
    assert len(lines) == 10
    assert len(cells(tenths_table(mean[:45], y[:45], inside[:45], weight[:45]))) == 4


def test_a_chart_of_many_rows_has_some_of_them():
    y = np.linspace(-1.0, 1.0, 2000)
    assert predicted_chart(y, y).count("<circle") == MAX_POINTS
    assert predicted_chart(np.full(5, np.nan), np.zeros(5)).count("<circle") == 0


@pytest.mark.parametrize("n_rows", [3, 12, 57, 1000])
def test_points_of_calibration_are_of_ten_rows_at_least(n_rows):
    prob = rng_for(f"bins {n_rows}").beta(0.3, 0.3, n_rows)
    groups = _by_tenth(prob)
    assert sorted(np.concatenate(groups).tolist()) == list(range(n_rows))
    assert min(map(len, groups)) >= min(MIN_BIN, n_rows)
    highest, lowest = [prob[g].max() for g in groups[:-1]], [prob[g].min() for g in groups[1:]]
    assert all(a <= b for a, b in zip(highest, lowest, strict=True))


def test_columns_of_two_values_are_bars_and_numbers_have_a_histogram():
    options = {"bands": None, "ticks": np.array([0.0, 1.0]), "keys": []}
    two = curve_chart("x", "y", ["0", "1"], None, [np.array([0.2, 0.7])], shares=np.array([0.5, 0.5]), **options)
    assert two.count('class="amount"') == 2
    curve = np.linspace(0.0, 1.0, 25)
    many = curve_chart("x", "y", list(map(str, curve)), curve, [curve], shares=np.full(25, 0.04), **options)
    heights = [float(h) for h in re.findall(r'class="count".*?height="([\d.]+)"', many)]
    assert len(heights) == 12
    assert max(heights) == pytest.approx(220.0 / 6.0, abs=0.02)


def test_a_page_says_what_the_columns_are_but_no_texts_that_no_tree_asks_for():
    rng = rng_for("profile")
    table = pd.DataFrame({"x": rng.normal(size=90), "name": [f"secret {k}" for k in range(90)]})
    table.loc[:8, "x"] = np.nan
    model = et.MetaTreeRegressor(max_depth=1, random_state=0).fit(table[["x"]], np.arange(90.0))
    page = report_html(model, table[["x"]], target=np.arange(90.0))
    line = re.search(r'<th scope="row">x</th>(.*?)</tr>', page)[1]
    assert re.findall(r"<td>(.*?)</td>", line)[:2] == ["10.0%", "81"]
    assert "secret" not in page


def test_the_target_has_its_name_after_loading_and_among_other_columns(tmp_path):
    rng = rng_for("name of the target")
    table = pd.DataFrame({"x": rng.normal(size=60), "price": rng.normal(size=60), "note": 1})
    model = et.MetaTreeRegressor(max_depth=1, random_state=0).fit(table[["x"]], table["price"])
    et.save(model, tmp_path / "model.et")
    page = report_html(et.load(tmp_path / "model.et"), table)
    assert "Predicting price" in page
    assert "refitted" in page


def test_a_folder_that_does_not_exist_is_refused_before_the_work(tmp_path, monkeypatch):
    model = et.MetaTreeRegressor(max_depth=1, random_state=0).fit([[0.0], [1.0]] * 20, [0.0, 1.0] * 20)
    monkeypatch.setattr("everytree.report.page.report_html", lambda *_, **__: pytest.fail("the work has begun"))
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        write_report(model, None, tmp_path / "missing" / "page.html")
    with pytest.raises(IsADirectoryError, match="which is a folder"):
        write_report(model, None, tmp_path)


def test_long_tables_are_judged_by_one_refit():
    rng = rng_for("one refit")
    table = pd.DataFrame({"x": rng.normal(size=2000)})
    y = table["x"] + rng.normal(size=2000)
    model = et.MetaTreeRegressor(max_depth=2, random_state=0).fit(table, y)
    page = report_html(model, table, target=y.to_numpy(), n_examples=0)
    assert "fitted again once to three quarters" in page
    assert "Each of 500 rows" in page
    short = report_html(model, table[:1000], target=y[:1000].to_numpy(), n_examples=0)
    assert "fitted again 4 times to three quarters" in short
    assert "Each of 1,000 rows" in short
