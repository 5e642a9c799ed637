"""In a browser the report answers as Python does, by mouse and by keyboard, on any screen."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import everytree as et
from cases import rng_for
from everytree.predictive.restricted import restricted_mean
from everytree.report import embedding, write_report
from everytree.report.packing import n_bytes
from everytree.report.subject import Subject
from everytree.view.describe import describe, number
from report_cases import EVIL, EVIL_CATEGORY, EVIL_CLASS, NAMES, WITHOUT_WHAT_IF, classes_of, mixed_table, numbers_of

# ---- the same answers ------------------------------------------------------------------------------------------------


def rows_for(model) -> pd.DataFrame:
    """Rows of every kind, those with gaps and with answers that nobody gave at fit where the model takes them."""
    rows = mixed_table(12)
    rows.loc[0, EVIL], rows.loc[1, "colour"] = np.nan, None
    rows.loc[2, "colour"] = EVIL_CATEGORY
    if not isinstance(model, et.ExactTreeClassifier | et.ExactTreeRegressor):
        rows.loc[3, "colour"] = "never seen"
        rows.loc[4, "count"] = np.nan
        rows.loc[5, "when"] = pd.NaT
    rows.loc[6, EVIL], rows.loc[7, EVIL] = 1e6, -1e6
    if model.n_features_in_ == 5:
        return rows
    return rows[["count", EVIL]].fillna(0.5) if EVIL in model.feature_names_in_ else rows[["count", "colour"]]


@pytest.mark.parametrize("name", NAMES)
def test_what_if_answers_as_python_does(fitted, visit, name):
    model = fitted[name]
    visitor, rows = visit(model), rows_for(model)
    for i in range(len(rows)):
        row = rows.iloc[[i]]
        visitor.enter(row.iloc[0].tolist())
        if hasattr(model, "classes_"):
            np.testing.assert_allclose(visitor.probs(), model.predict_proba(row)[0], rtol=0.0, atol=1e-9)
        else:
            shown, (mean, std) = visitor.numbers(), model.predict(row, return_std=True)
            quantiles = model.predict_quantiles(row, (0.05, 0.5, 0.95))[0]
            there = [shown[key] for key in ("mean", "std", "5%", "median", "95%")]
            np.testing.assert_allclose(there, [mean[0], std[0], *quantiles], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", WITHOUT_WHAT_IF)
def test_where_the_page_cannot_predict_it_has_rows_with_what_python_says_of_them(fitted, visit, name):
    table, model = mixed_table(60), fitted[name]
    visitor = visit(model, table, numbers_of(table, "normal"))
    page = visitor.page
    assert "no values can be changed here" in page.locator("#no-whatif").inner_text()
    assert visitor.count("#inputs input, #inputs select") == 0
    assert not page.locator("#settings-buttons").is_visible()
    for option in (0, 9):
        page.locator("#example").select_option(str(option))
        place = int(page.locator("#example option").nth(option).inner_text().split(":")[0].removeprefix("row "))
        low, high = model.predict_interval(table.iloc[[place]], coverage=0.9)[0]
        said = page.locator("#said").inner_text()
        assert f"between {number(low)} and {number(high)}" in said
        assert page.locator("#truth").is_visible()
        assert page.locator("#reasons").is_visible()
        assert "colour" in page.locator("#inputs").inner_text()


def test_the_panel_opens_with_a_row_of_the_table_and_its_true_value(fitted, visit):
    table, model = mixed_table(60), fitted["forest"]
    visitor = visit(model, table, classes_of(table))
    place = int(visitor.page.locator("#example option:checked").inner_text().split(":")[0].removeprefix("row "))
    np.testing.assert_allclose(visitor.probs(), model.predict_proba(table.iloc[[place]])[0], atol=1e-9)
    truth = " ".join(str(classes_of(table)[place]).split())
    assert visitor.page.locator("#truth").inner_text().endswith(truth)
    names = visitor.page.locator("#value-2 option").all_inner_texts()
    known = [name for name in names if not name.startswith("—")]
    assert known == sorted(known, key=str.casefold)


def test_a_boosted_page_has_a_panel_without_a_way_through_a_tree(fitted, visit):
    visitor = visit(fitted["boosted"])
    assert visitor.page.locator("#panel").is_visible()
    assert not visitor.page.locator("#way").is_visible()
    assert not visitor.complaints


def test_pooled_categories_new_ones_and_missing_ones_answer_as_in_python(visit):
    rng = rng_for("pooled in a browser")
    place = rng.integers(0, 100, 400)
    y = (rng.normal(size=(100, 3))[place] + rng.gumbel(size=(400, 3))).argmax(axis=1)
    table = pd.DataFrame({"id": [f"id {k}" for k in place], "x": rng.normal(size=400)})
    table.loc[:20, "id"] = None
    model = et.MetaForestClassifier(5, random_state=0).fit(table, y)
    assert [column.pooled for column in model.schema_.columns] == [False, False, True, True]
    visitor = visit(model)
    for name in (*model.schema_.columns[0].categories[::25], "never seen", None):
        row = pd.DataFrame({"id": pd.Series([name], dtype=object), "x": [0.25]})
        visitor.enter(row.iloc[0].tolist())
        np.testing.assert_allclose(visitor.probs(), model.predict_proba(row)[0], rtol=0.0, atol=1e-9)


@pytest.mark.parametrize("name", ["tree", "exact", "exact numbers", "imported categories", "normal"])
def test_the_picture_has_the_words_of_python(fitted, visit, name):
    subject = Subject.of(fitted[name])
    drawing = describe(subject.posts[subject.first], **subject.words.options(), max_depth=99, max_nodes=5000)
    answers = {node.number: node.answer for node in drawing.nodes}
    visitor = visit(fitted[name])
    visitor.page.locator("#reach").fill("100")
    visitor.page.locator("#unfold-all").click()
    nodes = visitor.attributes(".node", "data-node", "aria-label")
    assert len(nodes) > 2
    for place, label in nodes:
        assert place == "0" or label.startswith(f"{answers[int(place)]}, ")


def test_path_weights_are_those_of_the_posterior(fitted, visit):
    model = fitted["tree"]
    visitor, rows = visit(model), rows_for(model)
    post = model.posterior_
    leaf_prob, node_prob = post.leaf_prob, post.node_prob
    for i in range(4):
        row = rows.iloc[[i]]
        visitor.enter(row.iloc[0].tolist())
        items = visitor.attributes("#path li", "data-node", "data-value")
        shown = {int(node): float(weight) for node, weight in items}
        assert sum(shown.values()) == pytest.approx(1.0, abs=1e-12)
        end = int(model.forest_.ends(model.schema_.encode(row))[0, 0])
        assert set(shown) == {*ancestors(post.tree, end), end}
        for node, weight in shown.items():
            assert weight == pytest.approx(node_prob[node] if node == end else leaf_prob[node], abs=1e-11)
        assert visitor.count(".node.on-path") >= 1


def ancestors(tree, node: int) -> list[int]:
    above = []
    while tree.parent[node] >= 0:
        node = int(tree.parent[node])
        above.append(node)
    return above


def test_a_forest_that_does_not_fit_is_off_by_no_more_than_the_page_says(fitted, visit, monkeypatch):
    model, subject = fitted["normal"], Subject.of(fitted["normal"])
    trees = embedding.model_data(subject)["trees"]
    size = n_bytes([*trees["arrays"].values(), *trees["statistics"]])
    monkeypatch.setattr(embedding, "MAX_BYTES", size)  # a little less than it takes, since columns are there too
    left_out = embedding.model_data(subject)["left_out"]
    assert 1e-10 < left_out < 0.01
    visitor, rows = visit(model), rows_for(model)
    assert "differs from Python's" in visitor.page.locator("#exactness").inner_text()
    y = numbers_of(mixed_table(), "normal")
    for i in range(len(rows)):
        row = rows.iloc[[i]]
        visitor.enter(row.iloc[0].tolist())
        expected = pytest.approx(model.predict(row)[0], abs=left_out * np.ptp(y))
        assert visitor.numbers()["mean"] == expected


# ---- what is typed and slid ------------------------------------------------------------------------------------------


def column_of_numbers(values: np.ndarray, estimator=et.MetaTreeClassifier, **options):
    y = values > np.median(values)
    return estimator(max_depth=3, **options).fit(pd.DataFrame({"x": values}), y ^ (np.arange(len(y)) % 7 == 0))


@pytest.mark.parametrize(("start", "step"), [(1000000, 1), (1000000, 1e-4), (0, 1e-7)])
def test_sliders_move_in_steps_that_the_column_has(visit, start, step):
    model = column_of_numbers(start + step * np.random.default_rng(0).permutation(100), random_state=0)
    page = visit(model).page
    slider, typed = page.locator("input[type=range][aria-label^=x]"), page.locator("#value-0")
    low, high = float(slider.get_attribute("min")), float(slider.get_attribute("max"))
    seen = [float(typed.input_value())]
    slider.focus()
    for key in ("ArrowRight", "ArrowRight", "End", "ArrowLeft", "Home"):
        page.keyboard.press(key)
        seen.append(float(typed.input_value()))
        assert seen[-1] == pytest.approx(float(slider.input_value()), rel=1e-12)
    assert seen[0] < seen[1] < seen[2] < seen[4] < seen[3] == high
    assert seen[5] == low
    assert start - 20 * step < low < high < start + 120 * step


def test_what_is_no_number_is_missing_where_that_may_be(visit):
    values = np.random.default_rng(0).normal(size=200)
    model = column_of_numbers(values, random_state=0)
    visitor = visit(model)
    typed, box = visitor.page.locator("#value-0"), visitor.page.locator("#missing-0")
    for keys in ("", "1e999"):
        typed.fill("1.5")
        visitor.settle()
        assert not box.is_checked()
        np.testing.assert_allclose(visitor.probs(), model.predict_proba(pd.DataFrame({"x": [1.5]}))[0], atol=1e-9)
        typed.fill("")
        typed.press_sequentially(keys)
        visitor.settle()
        assert box.is_checked()
        np.testing.assert_allclose(visitor.probs(), model.predict_proba(pd.DataFrame({"x": [np.nan]}))[0], atol=1e-9)
    box.set_checked(False)
    visitor.settle()
    assert np.isfinite(float(typed.input_value()))  # the last number is there again


def test_what_is_no_number_is_marked_where_nothing_may_be_missing(visit):
    model = column_of_numbers(np.random.default_rng(0).normal(size=200), et.ExactTreeClassifier)
    visitor = visit(model)
    typed, problem = visitor.page.locator("#value-0"), visitor.page.locator(".problem")
    typed.fill("1.5")  # beyond all cuts, as what is typed on the way to 1e999 is
    visitor.settle()
    before = visitor.probs()
    for keys in ("", "1e999"):
        typed.fill("")
        typed.press_sequentially(keys)
        visitor.settle()
        assert visitor.probs() == before
        assert typed.get_attribute("aria-invalid") == "true"
        assert problem.is_visible()
    typed.fill("-2")
    visitor.settle()
    assert visitor.probs() != before
    assert typed.get_attribute("aria-invalid") == "false"
    assert not problem.is_visible()


def test_times_beyond_the_longest_that_was_seen_are_not_told(visit):
    rng = rng_for("times in a browser")
    table = pd.DataFrame({"load": rng.uniform(0.0, 1.0, 300)})
    lifetime = rng.exponential(np.where(table["load"] > 0.5, 1.0, 40.0))
    model = et.MetaTreeRegressor(family="exponential", random_state=0)
    model.fit(table, np.minimum(lifetime, 5.0), event=lifetime <= 5.0)
    visitor = visit(model)
    for load in (0.1, 0.9):
        visitor.enter([load])
        dist = model.predictive(pd.DataFrame({"load": [load]}))
        shown = dict(visitor.attributes("#prediction .numbers > div", "data-name", "data-value"))
        assert list(shown) == ["mean up to 5", "5%", "median", "95%"]
        np.testing.assert_allclose(float(shown["mean up to 5"]), restricted_mean(dist.sf, 5.0)[0], rtol=1e-6)
        np.testing.assert_allclose(float(shown["median"]), dist.quantile(0.5)[0], rtol=1e-7)
        said = visitor.page.locator("#said").inner_text()
        assert said.startswith(
            "Median beyond 5; longer than" if load < 0.5 else f"Median {dist.quantile(0.5)[0]:.3g}"[:8]
        )
    assert not visitor.complaints
    labels = [label for _, label in visitor.attributes(".node", "data-node", "aria-label")]
    assert any("median beyond 5, mean up to 5" in label for label in labels)
    assert not any("±" in label for label in labels)


# ---- the picture -----------------------------------------------------------------------------------------------------


def test_the_slider_goes_from_the_splits_that_help_to_the_whole_meta_tree(fitted, visit):
    model = fitted["tree"]
    post = model.posterior_
    n_first = len(describe(post, helps=model.helpful_splits_, max_depth=99, max_nodes=9999).nodes)
    assert 1 < n_first < post.tree.n_nodes
    visitor = visit(model)
    page = visitor.page
    assert visitor.count(".node") == n_first
    assert "the splits that help other rows" in page.locator("#reach-text").inner_text()
    page.locator("#reach").focus()
    page.keyboard.press("ArrowRight")
    few = visitor.count(".node")
    page.keyboard.press("End")
    page.locator("#unfold-all").click()
    assert n_first <= few <= visitor.count(".node") == post.tree.n_nodes
    assert "every node" in page.locator("#reach-text").inner_text()
    page.locator("#reach").focus()
    page.keyboard.press("Home")
    assert visitor.count(".node") == n_first


def test_the_slider_starts_from_the_most_probable_pruning_where_help_is_not_known(fitted, visit):
    best = fitted["exact"].pictured().map_tree()
    visitor = visit(fitted["exact"])
    assert visitor.count(".node") == best.n_leaves + len(best.inner)
    assert "most probable pruning" in visitor.page.locator("#reach-text").inner_text()


def test_a_click_folds_and_unfolds(fitted, visit):
    visitor = visit(fitted["tree"])
    root, all_nodes = visitor.page.locator(".node[data-node='0']"), visitor.count(".node")
    assert root.get_attribute("aria-expanded") == "true"
    root.click()
    assert visitor.count(".node") == 1
    assert root.get_attribute("aria-expanded") == "false"
    assert root.locator(".more").text_content().startswith("+")
    root.click()
    assert visitor.count(".node") == all_nodes


def test_dragging_and_zooming_move_the_picture_and_fold_nothing(fitted, visit):
    visitor = visit(fitted["tree"])
    page, stage = visitor.page, visitor.page.locator("#drawing > g")
    page.locator("#canvas").scroll_into_view_if_needed()
    before, n_nodes = stage.get_attribute("transform"), visitor.count(".node")
    frame = page.locator(".node[data-node='0'] .box").bounding_box()
    x, y = frame["x"] + 20, frame["y"] + 20
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y + 30, steps=4)
    page.mouse.up()
    dragged = stage.get_attribute("transform")
    assert dragged != before
    assert visitor.count(".node") == n_nodes
    page.locator("#zoom-in").click()
    assert stage.get_attribute("transform") != dragged
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    page.locator("#zoom-fit").click()
    box, canvas = page.locator("#drawing > g").bounding_box(), page.locator("#canvas").bounding_box()
    assert box["x"] >= canvas["x"]
    assert box["x"] + box["width"] <= canvas["x"] + canvas["width"] + 1


def test_everything_can_be_done_with_the_keyboard(fitted, visit):
    visitor = visit(fitted["forest"])
    page = visitor.page
    focused = "((at) => at.id || at.getAttribute('data-node') || at.tagName)(document.activeElement)"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    seen = []
    for _ in range(60):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(focused))
    order = [seen.index(name) for name in ("tree-select", "reach", "zoom-in", "0", "value-0", "value-4")]
    assert order == sorted(order)
    page.locator(".node[data-node='0']").focus()
    assert page.locator("#tip").is_visible()
    page.keyboard.press("ArrowRight")
    assert page.evaluate(focused) == "1"
    page.keyboard.press("ArrowLeft")
    if page.locator(".node[data-node='1']").get_attribute("aria-expanded") == "false":
        page.keyboard.press("ArrowLeft")
    assert page.evaluate(focused) == "0"
    n_nodes = visitor.count(".node")
    page.keyboard.press("Enter")
    assert visitor.count(".node") == 1
    page.keyboard.press(" ")
    assert visitor.count(".node") in range(2, n_nodes + 1)
    for key in ("+", "-", "0", "End", "Home"):
        page.keyboard.press(key)
    before = visitor.probs()
    page.locator(".field[data-input='0'] input[type=range]").focus()
    page.keyboard.press("End")
    visitor.settle()
    assert visitor.probs() != before


def test_the_tooltip_says_rows_split_and_prediction(fitted, visit):
    model = fitted["tree"]
    visitor = visit(model)
    visitor.page.locator(".node[data-node='0']").hover()
    tip = visitor.page.locator("#tip")
    assert tip.is_visible()
    words = tip.inner_text()
    assert f"{model.posterior_.n_rows} rows" in words
    assert "split" in words
    assert EVIL_CLASS in words


def test_another_tree_of_the_forest_can_be_drawn(fitted, visit):
    visitor = visit(fitted["forest"])
    page = visitor.page
    first = page.locator("#reach-text").inner_text()
    assert page.locator("#tree-select option").count() == 7
    page.locator("#tree-select").select_option(index=3)
    visitor.settle()
    assert page.locator("#reach-text").inner_text() != first
    number = int(page.locator("#tree-select").input_value())
    assert f"tree {number + 1}" in page.locator("#path-title").inner_text()


def test_evil_names_are_shown_and_do_nothing(fitted, visit):
    visitor = visit(fitted["forest"])
    assert EVIL in visitor.page.locator("#inputs").inner_text()
    assert EVIL_CATEGORY in visitor.page.locator("#value-2").inner_text()
    assert visitor.count("img") == 0


# ---- screens and scripts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_nothing_is_wider_than_the_screen(fitted, visit, scheme):
    options = {"viewport": {"width": 360, "height": 740}, "color_scheme": scheme, "has_touch": True}
    visitor = visit(fitted["normal"], **options)
    assert visitor.page.evaluate("document.documentElement.scrollWidth") == 360
    light, ink = visitor.page.evaluate(
        "() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color].map("
        "(text) => text.match(/\\d+/g).slice(0, 3).reduce((sum, c) => sum + Number(c), 0))"
    )
    assert (light > ink) == (scheme == "light")
    visitor.page.locator(".node[data-node='0']").tap()


def test_with_scripts_off_the_tree_is_a_list_and_the_page_says_what_is_missing(browser, fitted, tmp_path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(write_report(fitted["tree"], None, tmp_path / "report.html").as_uri())
    assert "scripts are off" in page.locator("#whatif").inner_text()
    assert not page.locator("#picture").is_visible()
    page.locator("#as-list > summary").click()
    model = fitted["tree"]
    drawn = describe(model.pictured(), **model.drawing_options({}), max_depth=32)
    assert page.locator("#as-list .listed li").count() == len(drawn.nodes) > 1
    assert "probability that the split helps rows" in page.locator("#as-list").inner_text()
    context.close()


def long_names() -> et.MetaTreeClassifier:
    table = mixed_table()
    table["colour"] = "WAYS MANY WOMEN WALK: " + table["colour"].astype(str)
    long = {name: f"WHAT_SOMEBODY_NAMED_THE_{k}TH_COLUMN_OF_THIS_TABLE" for k, name in enumerate(table)}
    return et.MetaTreeClassifier(max_depth=4, random_state=0).fit(table.rename(columns=long), classes_of(table))


def across(page, selector: str) -> list[list[float]]:
    """Where each element that is found begins from the left, and how wide it is."""
    read = "(all) => all.map((one) => one.getBoundingClientRect()).map((box) => [box.x, box.width])"
    return page.locator(selector).evaluate_all(read)


@pytest.mark.parametrize("width", [400, 770, 800, 900, 1400])
def test_names_of_any_length_stay_where_they_belong(visit, width):
    page = visit(long_names(), viewport={"width": width, "height": 900}).page
    form = page.locator("#inputs").bounding_box()
    for x, width in across(page, "#inputs :is(label, input, select)"):
        assert x >= form["x"] - 1
        assert x + width <= form["x"] + form["width"] + 1
    assert min(width for _, width in across(page, ".field > label")) > 90
    outside = page.evaluate(
        """() => [...document.querySelectorAll(".node")].flatMap((node) => {
          const box = node.querySelector(".box").getBBox(), chip = node.querySelector(".chance");
          const ends = [...node.querySelectorAll("text:not(.chance):not(.more)")].map((text) => [text, text.getBBox()]);
          return ends.filter(([text, at]) => at.x + at.width > box.width - 4 ||
            (chip && text.classList.contains("answer-text") && at.x + at.width > chip.getBBox().x - 4)
          ).map(([text]) => text.textContent);
        })"""
    )
    assert outside == []


@pytest.mark.parametrize("name", ["exponential", "normal", "poisson"])
def test_no_label_of_a_density_is_cut_off(fitted, visit, name):
    visitor = visit(fitted[name])
    chart = visitor.page.locator("#prediction svg").bounding_box()
    for label in visitor.page.locator("#prediction svg text").all():
        box = label.bounding_box()
        assert chart["x"] <= box["x"]
        assert box["x"] + box["width"] <= chart["x"] + chart["width"]


def test_names_do_not_break_on_a_phone(fitted, visit):
    visitor = visit(fitted["forest"], viewport={"width": 390, "height": 844})
    names = visitor.page.locator("#fitted > .facts dd", has_text="MetaForestClassifier")
    assert names.bounding_box()["height"] < 35.0
    select = visitor.page.locator("#tree-select").bounding_box()
    assert select["width"] > 200.0


def test_a_constant_column_is_shown_as_the_table_has_it(visit):
    table = pd.DataFrame({"const": 7.0, "x": np.arange(60.0)})
    model = et.MetaTreeRegressor(max_depth=3, random_state=0).fit(table, table["x"])
    visitor = visit(model, table, table["x"])
    page = visitor.page
    assert page.locator(".field[data-input='0'] option").first.inner_text() == "7"
    page.select_option("#example", index=3)
    visitor.settle()
    assert page.locator("#example").input_value() == "2"
    assert "const = 7" in page.locator("#reasons-list").inner_text()


def test_generated_columns_answer_as_in_python(visit):
    rng = rng_for("generated in a browser")
    table = pd.DataFrame(rng.uniform(1.0, 3.0, (400, 2)).round(2), columns=["mass", "height"])
    model = et.MetaBoostClassifier(max_iter=30, random_state=0).fit(table, table["mass"] > table["height"])
    assert "mass / height" in model.schema_.feature_words
    visitor = visit(model)
    for row in ([1.5, 1.4], [2.0, 0.0], [np.nan, 2.0], [-1e9, 1e-9], [2.31, 2.3]):
        visitor.enter(row)
        expected = model.predict_proba(pd.DataFrame([row], columns=table.columns))[0]
        np.testing.assert_allclose(visitor.probs(), expected, rtol=0.0, atol=1e-9)
