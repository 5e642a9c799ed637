"""The first lines of the report, and the settings of its panel."""

from __future__ import annotations

import json
import re
from html import escape
from itertools import pairwise
from urllib.parse import quote

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import beta
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import everytree as et
from everytree.fitting.held_out.scores import ClassScores, NumberScores
from everytree.report import report_html, write_report
from everytree.report.charts import curve_chart, scale
from everytree.report.effects import effects
from everytree.report.examples import examples
from everytree.report.importances import importances
from everytree.report.opening import better, verdict
from everytree.report.quality import _calibration
from everytree.report.rows import read_rows
from everytree.report.subject import Subject
from report_cases import classes_of, mixed_table


@pytest.fixture(scope="module")
def judged():
    """A model, and its table with a column of targets."""
    table = mixed_table(150)
    model = et.MetaForestClassifier(5, random_state=0).fit(table, classes_of(table))
    return model, table.assign(outcome=classes_of(table))


def test_the_page_opens_with_the_target_a_verdict_and_three_numbers(judged):
    model, table = judged
    page = report_html(model, table)
    assert "<h1>Predicting outcome</h1>" in page
    assert page.count('<div class="tile">') == 3
    assert f"<b>{model.unseen_.accuracy:.0%}</b>" in page
    assert "<b>150</b><span>rows</span><small>and 5 columns to learn from" in page
    opening = page[: page.index('id="quality"')]
    assert "nats" not in opening
    assert "Bernoulli" not in opening
    named = report_html(model, table.drop(columns="outcome"), target=table["outcome"].rename("result"))
    assert "<h1>Predicting result</h1>" in named
    plain = report_html(model, table.drop(columns="outcome"), target=table["outcome"].to_numpy())
    assert "<h1>MetaForestClassifier</h1>" in plain


def test_a_verdict_says_how_much_better_than_guessing_it_is():
    words = ["No better", "A little better", "Better", "Much better"]
    for limit, before, after in zip((0.02, 0.1, 0.4), words, words[1:], strict=False):
        assert better(np.nextafter(limit, 0.0)) == f"{before} than guessing"
        assert better(limit) == f"{after} than guessing"
    assert better(-np.inf) == better(0.0) == "No better than guessing"
    assert verdict(ClassScores(100, 0.69, 0.5, 0.69, 0.5), []).startswith("No better than guessing: right for 50")
    assert verdict(ClassScores(100, 0.53, 0.73, 0.61, 0.7), []).startswith("Better than guessing: right for 73")
    assert verdict(NumberScores(100, -2.50, -2.57, 0.1, 0.9), []).startswith("A little better than guessing: R2 0.10")
    assert verdict(NumberScores(100, 1.0, 0.0, 0.95, 0.9), []).startswith("Much better than guessing: R2 0.95")
    assert verdict(NumberScores(100, 0.0, 0.0, None, None), []).startswith("No better")
    assert verdict(NumberScores(100, -1e300, 1e300, None, None), []).startswith("No better")
    assert verdict(NumberScores(100, -0.4, -2.6, 0.04, 0.9), []).startswith("A little better than guessing: R2 0.04")
    assert verdict(NumberScores(100, -0.4, -2.6, 0.01, 0.9), []).startswith("No better than guessing: R2 0.01")
    assert verdict(NumberScores(100, -2.60, -2.6, 0.3, 0.9), []).startswith("No better than guessing: R2 0.30")
    assert verdict(NumberScores(100, -0.4, -2.6, None, None), []).startswith("Much better than guessing: mean log")
    assert "No rows were given" in verdict(None, [])


def test_a_spike_of_one_value_does_not_make_a_model_much_better_than_guessing():
    """Densities are high at the value that most targets have, which wins any log score, whatever else is known."""
    rng = np.random.default_rng(3)
    X, is_zero = rng.normal(size=(600, 3)), rng.random(600) < 0.8
    y = np.where(is_zero, 0.0, 1.0 + 10.0 * rng.random(600))
    y[X[:, 0] > 1.5] *= 2.0
    model = et.MetaForestRegressor(20, random_state=0).fit(X, y)
    assert model.unseen_.r2 < 0.1
    page = report_html(model)
    assert "Much better" not in page
    assert "guessing: R2" in page


def test_where_all_targets_are_the_same_there_is_nothing_to_predict(fitted):
    page = report_html(fitted["one class"])
    assert '<p class="lead">Nothing to predict: all targets are the same.</p>' in page
    X = np.random.default_rng(0).normal(size=(60, 2))
    for family in ("normal", "poisson", "exponential"):
        model = et.MetaForestRegressor(3, family=family, random_state=0).fit(X, np.full(60, 3.0))
        assert "Nothing to predict" in report_html(model), family


def test_new_rows_are_what_the_first_lines_are_of(judged):
    model, table = judged
    new = table[1:]  # a part of the rows of the fit, which are not known to be such
    probs = model.predict_proba(new.drop(columns="outcome"))
    right = round(100 * np.mean(model.classes_[probs.argmax(axis=1)] == new["outcome"]))
    page = report_html(model, new, held_out=True)
    assert f"right for {right}% of new rows of the table (always naming" in page
    assert f"<b>{right}%</b>" in page
    assert "rows that the trees had not seen" in report_html(model, table)
    exact = et.ExactTreeRegressor(max_depth=2).fit(new[["count"]], new["count"])
    page = report_html(exact, table[["count"]], target=table["count"], held_out=True)
    assert re.search(r"Much better than guessing: R2 .* on new rows of the table", page)


def test_rows_of_the_fit_are_not_taken_for_new(judged, tmp_path):
    """In any order: a model that has seen them all says little about new rows."""
    model, table = judged
    for rows in (table, table.sample(frac=1.0, random_state=0)):
        with pytest.raises(ValueError, match=r"held_out=True says .* but it has counted them all; leave it out"):
            model.report(tmp_path / "page.html", rows, held_out=True)
    assert not (tmp_path / "page.html").exists()
    counted = et.MetaForestRegressor(3, family="poisson", random_state=0)
    X, years = mixed_table(80)[["count"]], np.linspace(1.0, 2.0, 80)
    counted.fit(X, np.arange(80) % 7, exposure=years)
    with pytest.raises(ValueError, match="counted them all"):
        report_html(counted, X, target=np.arange(80) % 7, exposure=years, held_out=True)
    model.report(tmp_path / "page.html", table[1:], held_out=True)  # a part of them cannot be told


def test_new_rows_of_every_family_are_scored():
    table, rng = mixed_table(80)[["count"]], np.random.default_rng(0)
    new = slice(1, None)
    counts, years = rng.poisson(1.0 + table["count"]), rng.uniform(1.0, 2.0, 80)
    forest = et.MetaForestRegressor(3, family="poisson", random_state=0).fit(table, counts, exposure=years)
    assert "new rows of the table" in report_html(
        forest, table[new], target=counts[new], exposure=years[new], held_out=True
    )
    times, gone = rng.exponential(1.0 + table["count"]), rng.random(80) < 0.3
    forest = et.MetaForestRegressor(3, family="exponential", random_state=0).fit(table, times, censored=gone)
    assert "new rows of the table" in report_html(
        forest, table[new], target=times[new], censored=gone[new], held_out=True
    )
    lines = et.MetaTreeRegressor(max_depth=2, family="linear", random_state=0).fit(table, times)
    assert "new rows of the table" in report_html(lines, table[new], target=times[new], held_out=True)


def test_without_a_table_the_page_says_what_its_scores_are_of(judged):
    model, _ = judged
    page = report_html(model)
    assert "The scores above are of rows of the fit" in page
    assert "nothing to judge it by" not in page


def test_a_model_without_scores_opens_with_those_of_the_table(fitted):
    table = mixed_table(60)
    exact = et.ExactTreeClassifier(max_depth=2).fit(table[["count"]], classes_of(table))
    page = report_html(exact, table[["count"]], target=classes_of(table))
    assert '<p class="lead">The same estimator, refitted to parts of the table' in page
    assert page.count('<div class="tile">') == 3


def test_single_prunings_are_listed_where_their_probabilities_are_worth_reading(fitted):
    assert 'id="probable"' in report_html(fitted["tree"])
    assert 'id="probable"' in report_html(fitted["exact"])
    assert 'id="probable"' not in report_html(fitted["forest"])


def test_estimators_write_their_own_page(judged, tmp_path):
    model, table = judged
    path = model.report(tmp_path / "page.html", table[1:], held_out=True)
    assert path.read_text(encoding="utf-8") == report_html(model, table[1:], held_out=True)
    with pytest.raises(NotFittedError):
        et.MetaForestClassifier().report(tmp_path / "other.html")
    assert not (tmp_path / "other.html").exists()


def test_calibration_is_that_of_tenths_with_their_numbers_of_rows(judged):
    rng = np.random.default_rng(8)
    prob, weight = rng.random(500) ** 2, rng.random(500)
    truth = (rng.random(500) < prob).astype(float)
    found = _calibration("this model", "ours", truth, prob, weight)
    for k in range(10):
        own = (prob >= k / 10) & (prob < (k + 1) / 10)
        share = np.sum(weight[own] * truth[own]) / weight[own].sum()
        n = weight[own].sum() ** 2 / (weight[own] ** 2).sum()
        np.testing.assert_allclose(
            [found.x[k], found.y[k], found.count[k], found.low[k], found.high[k]],
            [np.average(prob[own], weights=weight[own]), share, own.sum(),
             *beta(0.5 + n * share, 0.5 + n * (1 - share)).ppf([0.05, 0.95])],
        )  # fmt: skip
    assert _calibration("plain forest", "plain", truth, prob, weight).low is None


# ---- rows of the table -----------------------------------------------------------------------------------------------


def fields_and_examples(model, table, n_examples):
    data = json.loads(
        report_html(model, table, n_examples=n_examples).split('id="model-data">')[1].split("</script>")[0]
    )
    return data["inputs"], data["examples"]


def test_examples_go_from_the_lowest_prediction_to_the_highest(judged):
    model, table = judged
    fields, shown = fields_and_examples(model, table, 7)
    numbers = [int(one["label"].split(":")[0].removeprefix("row ")) for one in shown]
    probs = model.predict_proba(table.drop(columns="outcome"))[:, 1]
    assert len(shown) == 7
    assert (np.diff(probs[numbers]) >= 0.0).all()
    assert probs[numbers[0]] == probs.min()
    assert probs[numbers[-1]] == probs.max()
    place = [field["name"] for field in fields].index("count")
    assert fields[place]["seen"] == [table["count"].min(), table["count"].max()]


def test_a_page_may_have_no_rows_of_the_table(judged):
    model, table = judged
    assert fields_and_examples(model, table, 0)[1] == []
    assert "but no rows of a table" in report_html(model)
    with pytest.raises(ValueError, match="n_examples is -1"):
        report_html(model, table, n_examples=-1)


def test_a_table_of_one_row_has_one_example(judged):
    model, table = judged
    page = report_html(model, table.iloc[:1])
    assert "The table has 1 row; fewer than 40" in page
    assert "and 1 row of the table to try it with" in page


def test_tables_with_numbers_as_names_have_examples_too(judged):
    table = mixed_table(60)[["count"]].rename(columns={"count": 0})
    model = et.MetaTreeClassifier(max_depth=2, random_state=0).fit(table, classes_of(mixed_table(60)))
    assert "of the table to try it with" in report_html(model, table, target=classes_of(mixed_table(60)))


def test_tables_without_names_have_examples_too():
    X = np.column_stack([np.arange(60.0), np.tile([0.0, np.nan], 30)])
    model = et.MetaTreeRegressor(max_depth=2, random_state=0).fit(X, np.arange(60.0))
    rows = read_rows(model, X, np.arange(60.0), None, {})
    fields = [{"kind": "numeric", "range": [0, 1, 0, 1]} for _ in range(2)]
    first, *_, last = examples(model, rows, 3, fields)
    assert first["values"][1] in (0.0, None)
    assert first["values"][0] < last["values"][0]


def test_a_table_of_dicts_is_a_table(judged):
    model, table = judged
    assert fields_and_examples(model, table[:30].to_dict("records"), 3) == fields_and_examples(model, table[:30], 3)


# ---- effects and reasons ---------------------------------------------------------------------------------------------


def test_reasons_add_up_to_the_prediction(judged):
    model, table = judged
    _, shown = fields_and_examples(model, table, 5)
    for one in shown:
        number = int(one["label"].split(":")[0].removeprefix("row "))
        row, why = table.drop(columns="outcome").iloc[[number]], one["reasons"]
        np.testing.assert_allclose(why["value"], model.predict_proba(row)[0, 1], atol=1e-12)
        np.testing.assert_allclose(why["base"] + sum(why["parts"]), why["value"], atol=1e-10)
        assert why["of"].startswith("Probability of ")


def test_effect_curves_are_those_of_the_most_important_columns(judged):
    model, table = judged
    rows = read_rows(model, table, "outcome", None, {})
    subject = Subject.of(model)
    page = effects(subject, rows, importances(subject))
    order = np.argsort(-model.feature_importances_, kind="stable")
    assert page.count('<figure class="chart">') == min(6, (model.feature_importances_ > 0.0).sum())
    best = model.feature_names_in_[order[0]]
    assert page.index("<figcaption>") == page.index(f"<figcaption>{escape(best)}</figcaption>")
    assert "had the value below" in page
    assert effects(subject, None, importances(subject)) == ""


def test_pictures_show_which_splits_help_other_rows_and_say_so(judged, browser, tmp_path):
    model, _ = judged
    page = browser.new_page()
    page.goto(write_report(model, None, tmp_path / "page.html").as_uri())
    assert "helps rows which it was not grown on" in page.locator("#tree-key").inner_text()
    shown = page.locator("#drawing .node[data-node='0'] .chance").text_content()
    assert shown == f"{model.helpful_splits_[0]:.3f}"
    other = next(t for t in range(5) if t != model.forest_.best_tree())
    page.select_option("#tree-select", value=str(other))
    assert "posterior probability" in page.locator("#tree-key").inner_text()


MODELS = {
    "three classes": et.MetaForestClassifier(3, random_state=0),
    "numbers": et.MetaForestRegressor(3, random_state=0),
    "boosted": et.MetaBoostClassifier(max_iter=5, random_state=0),
    "ensemble numbers": et.MetaEnsembleRegressor(3, max_iter=5, random_state=0, n_residual_trees=8),
    "exact": et.ExactTreeClassifier(max_depth=2),
    "lines": et.MetaTreeRegressor(max_depth=2, family="linear", random_state=0),
}


@pytest.mark.parametrize("kind", MODELS)
def test_every_model_has_a_page_with_a_table(kind):
    table, model = mixed_table(90)[["count", "colour"]], clone(MODELS[kind])
    table = table[["count"]].fillna(0) if kind == "lines" else table
    count = mixed_table(90)["count"].fillna(0).to_numpy(float)  # it decides, so that boosting takes steps
    if hasattr(model, "predict_proba"):
        y = np.digitize(count, np.quantile(count, [1 / 3, 2 / 3] if kind == "three classes" else [0.5]))
    else:
        y = 3.0 * count
    page = report_html(model.fit(table, y), table[:30], target=y[:30])
    assert ("What they do" in page) == (kind != "lines")
    assert "of the table to try it with" in page
    assert ("no values can be changed" in page) == (kind == "lines")


@given(low=st.floats(-1e6, 1e6), span=st.floats(1e-3, 1e6))
@example(low=0.0286, span=0.8)
@example(low=0.5, span=0.0)
def test_scales_have_a_few_round_numbers_around_the_values(low, span):
    ticks = scale(low, low + span)
    assert 2 <= len(ticks) <= 8
    step = ticks[1] - ticks[0]
    assert ticks[0] <= low + 1e-6 * step
    assert ticks[-1] >= low + span - 1e-6 * step


def places_of(chart: str) -> list[tuple[float, float, str]]:
    """Left and right ends of the labels below a chart, in a wide font, and their texts."""
    found = re.findall(r'<text x="([\d.]+)" y="246.0" text-anchor="(\w+)">(.*?)</text>', chart)
    shift = {"start": 0.0, "middle": 0.5, "end": 1.0}
    widths = [7.4 * len(text) for _, _, text in found]
    lefts = [float(x) - shift[anchor] * width for (x, anchor, _), width in zip(found, widths, strict=True)]
    return sorted((left, left + width, text) for left, width, (_, _, text) in zip(lefts, widths, found, strict=True))


@given(
    n_points=st.integers(1, 25), length=st.integers(1, 20), has_missing=st.booleans(), is_category=st.booleans(),
)  # fmt: skip
@example(n_points=25, length=10, has_missing=True, is_category=False)
def test_labels_below_a_chart_do_not_overlap_and_are_told_apart(n_points, length, has_missing, is_category):
    labels = [f"{k:0{length}d}" for k in range(n_points)] + ["missing"] * has_missing
    places = None if is_category else np.append(np.arange(float(n_points)), [np.nan] * has_missing)
    curve = np.linspace(0.0, 1.0, len(labels))
    chart = curve_chart(
        "day", "prediction", labels, places, [curve], bands=None, ticks=np.array([0.0, 1.0]), keys=[], shares=curve
    )
    found = places_of(chart)
    assert found
    assert all(right <= left + 0.02 for (_, right, _), (left, _, _) in pairwise(found))
    assert found[0][0] >= -0.02
    assert found[-1][1] <= 330.02
    if length <= 13:
        assert len({text for _, _, text in found}) == len(found)


def test_bars_without_a_range_have_no_whiskers(fitted):
    assert 'class="whisker"' not in report_html(fitted["ensemble"])
    assert 'class="whisker"' in report_html(fitted["forest"])


# ---- the panel -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def written(judged, tmp_path_factory):
    """The page of the judged model as a file, which tests only read."""
    model, table = judged
    return write_report(model, table, tmp_path_factory.mktemp("report") / "page.html", n_examples=4)


@pytest.fixture
def page_of(usual_page, written):
    """The page of the judged model in a browser, with a part after its address."""
    errors = []

    def open_page(link: str = ""):
        usual_page.goto("about:blank")  # else an address that differs in its last part alone loads nothing
        usual_page.goto(written.as_uri() + link)
        return usual_page

    def hear(error) -> None:
        errors.append(str(error))

    usual_page.on("pageerror", hear)
    yield open_page
    usual_page.remove_listener("pageerror", hear)
    assert errors == []


def settled(page):
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    read = "(all) => all.map((one) => [Number(one.dataset.class), Number(one.dataset.value)])"
    return dict(page.locator("#prediction tr").evaluate_all(read))


def test_a_row_of_the_table_is_loaded_and_predicted_as_in_python(page_of, judged):
    model, table = judged
    page = page_of()
    for i in range(1, page.locator("#example option").count()):
        label = page.locator("#example option").nth(i).inner_text()
        page.select_option("#example", label=label)
        number = int(label.split(":")[0].removeprefix("row "))
        expected = model.predict_proba(table.drop(columns="outcome").iloc[[number]])[0]
        found = settled(page)
        np.testing.assert_allclose([found[c] for c in range(2)], expected, rtol=0.0, atol=1e-9)
        assert page.locator("#example").input_value() == str(i - 1)  # still that row, until a value changes


def test_a_setting_is_kept_beside_the_present_one_and_reset(page_of):
    page = page_of()
    opened = settled(page)
    said = page.locator("#said").inner_text()
    page.click("#keep")
    assert "no value differs" in page.locator("#kept").inner_text()
    page.select_option("#example", index=1)
    other = settled(page)
    assert page.locator("#kept-said").inner_text() == said
    assert page.locator("#kept-differences li").count() >= 1
    page.click("#swap")
    assert settled(page) == opened
    page.click("#swap")
    assert settled(page) == other
    page.click("#keep")
    assert not page.locator("#kept").is_visible()
    page.click("#reset")
    assert settled(page) == opened


def test_a_link_leads_to_the_same_setting(page_of):
    page = page_of()
    page.select_option("#example", index=2)
    wanted = settled(page)
    page.click("#copy-link")
    link = page.locator("#link").input_value()
    assert "#row=" in link
    again = page_of(link[link.index("#row=") :])
    assert settled(again) == wanted


def test_a_link_that_does_not_fit_is_ignored(page_of):
    expected = settled(page_of())
    for values in ("[1,2]", "nonsense", '["a","b","c","d","e"]', "[null,{},[],1,2]"):
        assert settled(page_of(f"#row={quote(values)}")) == expected, values


def test_a_value_beyond_the_table_is_marked(page_of, judged):
    _, table = judged
    page = page_of()
    field = page.locator(".field", has=page.locator("label", has_text="count")).first
    field.locator("input[id^=value]").fill(str(float(table["count"].max()) + 10.0))
    settled(page)
    assert "Beyond" in field.locator(".problem").inner_text()
    field.locator("input[id^=value]").fill(str(float(table["count"].max())))
    settled(page)
    assert field.locator(".problem").inner_text() == ""


def test_it_prints_without_the_form_and_with_its_colours(page_of):
    page = page_of()
    page.emulate_media(media="print")
    assert not page.locator("#whatif").is_visible()
    assert not page.locator("#drawing").is_visible()  # as a list, which is never wider than a sheet
    assert page.locator("#as-list .listed").is_visible()
    assert "slider" not in page.locator("#tree > p").inner_text()
    broken = "(all) => all.map((one) => getComputedStyle(one).breakInside)"
    assert set(page.locator("figure.chart").evaluate_all(broken)) == {"avoid"}
    assert page.evaluate("getComputedStyle(document.body).printColorAdjust") == "exact"
    page.emulate_media(media="null")


def test_the_tree_opens_whole_and_readable_on_a_phone_too(browser, tmp_path, judged):
    model, _ = judged
    path = write_report(model, None, tmp_path / "page.html")
    for width in (390, 1200):
        page = browser.new_page(viewport={"width": width, "height": 844})
        page.goto(path.as_uri())
        box = page.locator("#canvas").bounding_box()
        nodes = [node.bounding_box() for node in page.locator("#drawing .node .box").all()]
        assert len(nodes) >= 3
        for node in nodes:
            assert box["x"] <= node["x"]
            assert node["x"] + node["width"] <= box["x"] + box["width"]
            assert box["y"] <= node["y"]
            assert node["y"] + node["height"] <= box["y"] + box["height"]
        assert nodes[0]["height"] >= 0.7 * 52
        page.close()


def test_dates_are_loaded_to_the_second(browser, tmp_path):
    when = pd.date_range("2020-01-01 00:00:00.5", periods=80, freq="36h")
    table = pd.DataFrame({"when": when})
    y = np.arange(80.0)
    model = et.MetaTreeRegressor(max_depth=3, random_state=0).fit(table, y)
    page = browser.new_page()
    page.goto(write_report(model, table, tmp_path / "page.html", target=y).as_uri())
    page.select_option("#example", index=3)
    page.wait_for_timeout(50)
    assert page.locator("#example").input_value() == "2"
