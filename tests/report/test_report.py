"""The report: complete without scripts, harmless whatever the data say, and in a browser equal to Python's answers."""

from __future__ import annotations

import json
import re
import shutil
from base64 import b64decode
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import log_loss

import everytree as et
from everytree.report import embedding, report_html, write_report
from everytree.report.subject import Subject
from everytree.view.describe import describe

EVIL = "<script>alert('column')</script>"
EVIL_CATEGORY = '"><img src=x onerror=alert(1)>'
EVIL_CLASS = "</script><b>yes & no"


def mixed_table(n_rows: int = 400) -> pd.DataFrame:
    """Numbers, text, flags and dates with gaps, and names that would do harm if they were not escaped."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            EVIL: rng.normal(size=n_rows).round(3),
            "count": rng.integers(0, 9, n_rows).astype(float),
            "colour": rng.choice(["red", "blue", "green", EVIL_CATEGORY], n_rows).astype(object),
            "flag": rng.random(n_rows) < 0.4,
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n_rows), unit="D"),
        }
    )
    table.loc[rng.random(n_rows) < 0.1, EVIL] = np.nan
    table.loc[rng.random(n_rows) < 0.1, "colour"] = None
    return table


def signal(table: pd.DataFrame) -> np.ndarray:
    return table[EVIL].fillna(1.0) + (table["colour"] == "red") - 0.2 * table["count"] + table["flag"]


def classes_of(table: pd.DataFrame, n_classes: int = 2) -> np.ndarray:
    noisy = signal(table) + np.random.default_rng(1).normal(size=len(table))
    names = [EVIL_CLASS, "no", "perhaps"][:n_classes]
    return np.array(names, dtype=object)[pd.qcut(noisy, n_classes, labels=False)]


def numbers_of(table: pd.DataFrame, family: str) -> np.ndarray:
    rng, rate = np.random.default_rng(2), np.exp(0.4 * signal(table))
    if family == "poisson":
        return rng.poisson(rate)
    if family == "geometric":
        return rng.geometric(1.0 / (1.0 + rate)) - 1
    return rng.exponential(rate) if family == "exponential" else 100.0 + signal(table) + rng.normal(size=len(table))


def models() -> dict[str, object]:
    """One of each kind, small."""
    table = mixed_table()
    few, options = {"n_estimators": 7, "random_state": 0}, {"random_state": 0, "max_depth": 3}
    two, three = classes_of(table), classes_of(table, 3)
    made = {
        "forest": et.MetaForestClassifier(**few).fit(table, two),
        "forest by evidence": et.MetaForestClassifier(**few, weights="evidence").fit(table, three),
        "tree": et.MetaTreeClassifier(**options).fit(table, two),
        "one class": et.MetaTreeClassifier(**options).fit(table, np.repeat("only", len(table))),
        "exact": et.ExactTreeClassifier(max_depth=2).fit(table, three),
        "exact numbers": et.ExactTreeRegressor(max_depth=2).fit(table, numbers_of(table, "normal")),
    }
    for family in ("normal", "poisson", "exponential", "geometric"):
        made[family] = et.MetaForestRegressor(**few, family=family).fit(table, numbers_of(table, family))
    plain = table[["count", EVIL]].fillna(0.0)
    grown = RandomForestClassifier(5, max_depth=4, random_state=0).fit(plain, two)
    made["imported"] = et.from_sklearn(grown, plain, two, random_state=0)
    made["imported categories"] = from_lightgbm(table, two)
    return made


def from_lightgbm(table: pd.DataFrame, y: np.ndarray):
    """Splits into groups of categories, and columns that are read more than once."""
    lightgbm = pytest.importorskip("lightgbm")
    some = table[["count", "colour"]].assign(colour=table["colour"].astype("category"))
    params = {"min_data_per_group": 1, "cat_smooth": 1.0, "max_cat_to_onehot": 1, "verbose": -1}
    booster = lightgbm.LGBMClassifier(n_estimators=6, num_leaves=8, **params).fit(some, y)
    return et.from_lightgbm(booster, some, y, random_state=0)


@pytest.fixture(scope="module")
def fitted():
    return models()


NAMES = (
    "forest", "forest by evidence", "tree", "one class", "exact", "exact numbers", "normal", "poisson", "exponential",
    "geometric", "imported", "imported categories",
)  # fmt: skip


# ---- the page as text -----------------------------------------------------------------------------------------------


class Tags(HTMLParser):
    """What a browser would make of the page: its tags, in and out."""

    VOID = ("meta", "input", "link", "br", "rect", "path", "circle")

    def __init__(self, page: str) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", NAMES)
def test_the_page_is_well_formed_and_fetches_nothing(fitted, name):
    page = report_html(fitted[name])
    tags = Tags(page)
    assert tags.open == []
    assert tags.seen.count("script") == 2  # the data and the one script: no column has become a third
    assert "img" not in tags.seen
    assert "link" not in tags.seen
    assert not re.search(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)
    assert "{{" not in page


def test_names_from_data_are_escaped(fitted):
    page = report_html(fitted["forest"])
    for text in (EVIL, EVIL_CATEGORY, EVIL_CLASS):
        assert text not in page
    assert "&lt;script&gt;alert(&#x27;column&#x27;)&lt;/script&gt;" in page


def test_without_scripts_the_page_says_everything_but_the_panel(fitted):
    page = re.sub(r"<script.*?</script>", "", report_html(fitted["tree"]), flags=re.DOTALL)
    for words in ("Log evidence", "split_prior", "asked with probability", "Number 1: probability", "<noscript>"):
        assert words in page
    best = fitted["tree"].posterior_.top_trees(1)[0]
    assert f"{best.tree.n_leaves} leaves" in page
    assert page.count("<details") > 5  # the tree folds by itself


def test_without_a_table_it_says_why_there_is_no_comparison(fitted):
    assert "made without a table" in report_html(fitted["tree"])


def test_quality_of_classes_is_that_of_rows_not_seen():
    table = mixed_table(200)
    table["y"] = np.random.default_rng(5).choice(["a", "b"], len(table))  # nothing to learn
    model = et.MetaForestClassifier(n_estimators=5, random_state=0).fit(table.drop(columns="y"), table["y"])
    page = report_html(model, table)  # the one column that the model does not read is the target
    (ours, plain) = scores_of(page, "Log-loss")
    assert 0.65 < ours < 0.85
    assert plain > ours
    for words in ("Calibration", "ROC", "three quarters", "standard error"):
        assert words in page


def scores_of(page: str, name: str) -> list[float]:
    """The numbers of the first line of scores with this name."""
    line = re.search(rf'<th scope="row">{name}.*?</tr>', page)[0]
    return [float(score) for score in re.findall(r"<td>(.*?)</td>", line)]


def heads_of(page: str) -> list[list[str]]:
    """The heads of the tables of scores."""
    heads = re.findall(r'class="scores"><thead><tr>(.*?)</tr>', page)
    return [re.findall(r">(.*?)</th>", head)[1:] for head in heads]


REFITTED = ["the same estimator, refitted", "plain forest"]


def test_the_head_of_a_table_says_whom_it_judges(fitted):
    model, table = fitted["forest"], mixed_table(80)
    labels = classes_of(table)
    assert heads_of(report_html(model, table, target=labels)) == [REFITTED]
    page = report_html(model, table, target=labels, held_out=True)
    assert heads_of(page) == [["this model"], REFITTED]
    assert page.index("This model, on rows it has not seen") < page.index("The same estimator, refitted")


@pytest.mark.parametrize("weighted", [False, True])
def test_new_rows_score_the_model_itself(weighted):
    table, new = mixed_table(300), mixed_table(420)[300:]
    labels = classes_of(mixed_table(420), 3)
    model = et.MetaForestClassifier(n_estimators=5, random_state=0).fit(table, classes_of(table, 3))
    weight = np.random.default_rng(0).integers(0, 4, len(new)).astype(float) if weighted else None
    page = report_html(model, new, target=labels[300:], held_out=True, sample_weight=weight)
    probs = model.predict_proba(new)
    assert scores_of(page, "Log-loss") == [pytest.approx(log_loss(labels[300:], probs, sample_weight=weight), rel=1e-3)]
    right = model.predict(new) == labels[300:]
    assert scores_of(page, "Accuracy") == [pytest.approx(np.average(right, weights=weight), rel=1e-3)]
    assert ("by their weights" in page) == weighted


def test_rows_of_weight_0_are_as_if_they_were_not_there(fitted):
    table = mixed_table(120)
    labels, weight = classes_of(table), np.repeat([1.0, 0.0], 60)
    options = {"held_out": True, "sample_weight": weight}
    assert report_html(fitted["tree"], table, target=labels, **options) == report_html(
        fitted["tree"], table[:60], target=labels[:60], held_out=True
    )


def test_exposure_goes_into_predictions_and_into_the_plain_forest():
    rng, table = np.random.default_rng(0), mixed_table(600)
    years = rng.uniform(0.2, 20.0, 600)
    y = rng.poisson(years * np.exp(0.4 * signal(table)))
    frame = table.assign(years=years, n=y)
    model = et.MetaForestRegressor(n_estimators=5, family="poisson", random_state=0)
    model.fit(table[:400], y[:400], exposure=years[:400])
    page = report_html(model, frame[400:], target="n", exposure="years", held_out=True)
    expected = model.predict(table[400:], exposure=years[400:])
    assert scores_of(page, "Root mean") == [pytest.approx(np.sqrt(np.mean((expected - y[400:]) ** 2)), rel=1e-3)]
    refitted = page[page.index("refitted to parts") :]
    ours, plain = scores_of(refitted, "Root mean")
    without = np.std(y[400:])  # a forest that does not know exposure is about as bad
    assert max(ours, plain) < 0.7 * without
    with pytest.raises(ValueError, match="exposure is None, but rows came with one"):
        report_html(model, frame, target="n")


def test_times_that_were_cut_short_count_by_the_probability_of_longer_ones():
    rng, table = np.random.default_rng(0), mixed_table(400)
    times, limit = rng.exponential(np.exp(0.4 * signal(table))), rng.exponential(2.0, 400)
    y, censored = np.minimum(times, limit), (limit < times).astype(float)
    model = et.MetaTreeRegressor(max_depth=3, family="exponential", random_state=0)
    model.fit(table[:250], y[:250], censored=censored[:250])
    page = report_html(model, table[250:], target=y[250:], censored=censored[250:], held_out=True)
    dist, cut = model.predictive(table[250:]), censored[250:] > 0.0
    loss = np.where(cut, -np.log1p(-dist.cdf(y[250:])), -dist.log_prob(y[250:]))
    assert scores_of(page, "Minus log likelihood") == [pytest.approx(loss.mean(), rel=1e-3)]
    assert 0.75 < scores_of(page, "90% intervals")[0] < 1.0
    assert heads_of(page) == [["this model"], REFITTED[:1]]


def test_a_table_of_other_columns_or_classes_is_refused(fitted):
    table = mixed_table(100)
    labels = classes_of(table)
    with pytest.raises(ValueError, match=r"table lacks the columns \['colour'\], which the model reads"):
        report_html(fitted["forest"], table.drop(columns="colour").assign(leak=labels), target=labels)
    with pytest.raises(ValueError, match="table has 1 columns, but the model reads 2"):
        report_html(et.MetaTreeClassifier().fit(np.eye(2), [0, 1]), np.zeros((60, 1)), target=[0, 1] * 30)
    with pytest.raises(ValueError, match=r"y\[7\] is 'never', but the classes are"):
        report_html(fitted["forest"], table, target=np.where(np.arange(100) == 7, "never", labels))
    with pytest.raises(ValueError, match="NaN"):
        report_html(fitted["normal"], table, target=np.full(100, np.nan))


@pytest.mark.parametrize("family", ["normal", "poisson"])
def test_quality_of_numbers(family):
    table = mixed_table(200)
    y = numbers_of(table, family)
    model = et.MetaForestRegressor(n_estimators=5, random_state=0, family=family).fit(table, y)
    page = report_html(model, table, target=y)
    held = float(re.search(r"90% intervals.*?<td>(.*?)</td>", page)[1])
    assert 0.8 < held <= 1.0
    assert "CRPS" in page
    assert "PIT" in page


def test_tables_without_names_and_of_polars():
    polars = pytest.importorskip("polars")
    X, y = load_diabetes(return_X_y=True)
    model = et.MetaTreeRegressor(max_depth=2, random_state=0).fit(X, y)
    assert "CRPS" in report_html(model, X[:100], target=y[:100])
    with pytest.raises(ValueError, match="target must be an array"):
        report_html(model, X[:100], target="y")
    frame = polars.DataFrame({"a": X[:100, 2], "b": X[:100, 8], "y": y[:100]})
    model = et.MetaTreeRegressor(max_depth=2, random_state=0).fit(frame.drop("y"), frame["y"])
    assert "CRPS" in report_html(model, frame, target="y")


def test_bad_arguments_are_named(fitted, tmp_path):
    table = mixed_table(100)
    with pytest.raises(TypeError, match="model must be a fitted"):
        report_html(RandomForestClassifier())
    with pytest.raises(ValueError, match="target is 'nothing'"):
        report_html(fitted["forest"], table, target="nothing")
    with pytest.raises(ValueError, match="target must say which column"):
        report_html(fitted["forest"], table)
    with pytest.raises(ValueError, match="target has 3 entries"):
        report_html(fitted["forest"], table, target=[0, 1, 0])
    old = tmp_path / "report.html"
    old.write_text("old")
    with pytest.raises(ValueError, match="target"):
        write_report(fitted["forest"], table, old, target="nothing")
    assert old.read_text() == "old"


def test_write_report_returns_the_path(fitted, tmp_path):
    path = write_report(fitted["tree"], None, tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == report_html(fitted["tree"])


def test_models_with_exposure_and_with_lines_in_leaves_have_a_page():
    table = mixed_table(120)
    y = numbers_of(table, "poisson")
    exposed = et.MetaTreeRegressor(max_depth=2, family="poisson", random_state=0).fit(table, y, exposure=y + 1.0)
    assert "Counts are rates to it" in report_html(exposed, table, target=y, exposure=y + 1.0)
    lines = et.MetaTreeRegressor(max_depth=2, family="linear", random_state=0).fit(table[["count"]], y)
    page = report_html(lines)
    assert "lines through the columns" in page
    assert data_of(page)["kernel"] is None


def test_few_rows_are_not_compared(fitted):
    table = mixed_table(20)
    assert "say little" in report_html(fitted["forest"], table, target=classes_of(table))
    assert "nothing to tell apart" in report_html(fitted["one class"], mixed_table(60), target=["only"] * 60)


def test_a_model_from_a_file_has_the_same_page(fitted, tmp_path):
    pytest.importorskip("safetensors")
    for name in ("forest", "exact"):
        et.save(fitted[name], tmp_path / "model")
        assert report_html(et.load(tmp_path / "model")) == report_html(fitted[name])


# ---- what is inside -------------------------------------------------------------------------------------------------


def data_of(page: str) -> dict:
    return json.loads(re.search(r'id="model-data">(.*?)</script>', page)[1])


@pytest.mark.long
def test_a_forest_of_100_trees_is_below_5_mb_and_complete():
    table = mixed_table(3000)
    model = et.MetaForestClassifier(random_state=0).fit(table, classes_of(table))
    page = report_html(model)
    data = data_of(page)
    assert len(data["trees"]["sizes"]) == 100
    assert data["left_out"] < 1e-11
    assert len(page.encode()) < 5e6


def test_what_does_not_fit_is_left_out_by_probability_and_the_page_says_so(fitted, monkeypatch):
    model = fitted["forest"]
    monkeypatch.setattr(embedding, "MAX_BYTES", 2000)
    data = embedding.model_data(Subject.of(model))
    assert sum(data["trees"]["sizes"]) < sum(data["trees"]["all_sizes"])
    assert 1e-11 < data["left_out"] < 1.0


@pytest.mark.parametrize(
    "values",
    [[], [0, 255], [0, 256], [0.0, 70000.0], [0.5, 1.0], [-1.0, 2.0], [2.0**40], [0.1, -0.7] * 40],
)
def test_arrays_are_packed_without_loss(values):
    kind, text, *listed = embedding.packed(np.array(values))
    numbers = np.frombuffer(b64decode(text), dtype=f"<{kind}")
    if listed:
        numbers = np.frombuffer(b64decode(listed[0]))[numbers]
    assert numbers.tolist() == list(values)


@pytest.mark.parametrize(
    "cuts", [np.arange(1000000.5, 1000099), 1e6 + np.arange(1, 99) / 1e4, [0.1], [-3e8, 7.25, 5e9], [1e-7, 2e-7]]
)
def test_sliders_begin_stand_and_end_on_whole_steps(cuts):
    low, high, middle, step = embedding.slider_range(np.asarray(cuts, dtype=float), "numeric")
    assert low < min(cuts)
    assert max(cuts) < high
    assert low <= middle <= high
    decimals = max(0, round(-np.log10(step)))
    assert [round(value, decimals) for value in (low, middle, high)] == [low, middle, high]


# ---- in a browser ---------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    """Debian's Chromium, where there is one."""
    sync_api = pytest.importorskip("playwright.sync_api")
    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if path is None:
        pytest.skip("no Chromium here")
    with sync_api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield running
        running.close()


class Visitor:
    """Someone with the page open, and everything it complained about."""

    def __init__(self, browser, path, **options) -> None:
        self.page = browser.new_page(**options)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())

    def enter(self, model, row) -> None:
        """The values of one row into the panel; NaN and None are missing, other text is new."""
        for k, value in enumerate(row):
            box = self.page.locator(f".field[data-input='{k}']")
            typed = box.locator("input[id^=value]")
            if typed.count() == 0:
                self._choose(box.locator("select"), value)
            elif pd.isna(value):
                box.locator("input[type=checkbox]").set_checked(True)
            else:
                if box.locator("input[type=checkbox]").count():
                    box.locator("input[type=checkbox]").set_checked(False)
                typed.fill(value.isoformat() if isinstance(value, pd.Timestamp) else repr(float(value)))
        self.settle()

    def _choose(self, select, value) -> None:
        if value is None or (isinstance(value, float) and np.isnan(value)):
            select.select_option("missing")
        elif select.locator("option").first.inner_text() == "any value":
            select.select_option("0")
        elif isinstance(value, bool | np.bool_):
            select.select_option(label="yes" if value else "no")
        else:
            known = value in select.locator("option").all_inner_texts()
            select.select_option(label=value) if known else select.select_option("new")

    def settle(self) -> None:
        self.page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def probs(self) -> list[float]:
        lines = self.page.locator("#prediction tr")
        found = {int(line.get_attribute("data-class")): float(line.get_attribute("data-value")) for line in lines.all()}
        return [found[c] for c in range(len(found))]

    def numbers(self) -> dict[str, float]:
        items = self.page.locator("#prediction [data-name]").all()
        return {item.get_attribute("data-name"): float(item.get_attribute("data-value")) for item in items}

    def count(self, selector: str) -> int:
        return self.page.locator(selector).count()


@pytest.fixture
def visit(browser, tmp_path):
    visitors: list[Visitor] = []

    def open_page(model, **options) -> Visitor:
        visitors.append(Visitor(browser, write_report(model, None, tmp_path / "report.html"), **options))
        return visitors[-1]

    yield open_page
    for visitor in visitors:
        assert visitor.complaints == []
        assert all(url.startswith("file:") for url in visitor.requests)
        visitor.page.close()


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
        visitor.enter(model, row.iloc[0].tolist())
        if hasattr(model, "classes_"):
            np.testing.assert_allclose(visitor.probs(), model.predict_proba(row)[0], rtol=0.0, atol=1e-9)
        else:
            shown, (mean, std) = visitor.numbers(), model.predict(row, return_std=True)
            quantiles = model.predict_quantiles(row, (0.05, 0.5, 0.95))[0]
            there = [shown[key] for key in ("mean", "std", "5%", "median", "95%")]
            np.testing.assert_allclose(there, [mean[0], std[0], *quantiles], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ["tree", "exact", "exact numbers", "imported categories", "normal"])
def test_the_picture_has_the_words_of_python(fitted, visit, name):
    subject = Subject.of(fitted[name])
    drawing = describe(subject.posts[subject.first], **subject.words.options(), max_depth=99, max_nodes=5000)
    answers = {node.number: node.answer for node in drawing.nodes}
    visitor = visit(fitted[name])
    visitor.page.locator("#reach").fill("100")
    visitor.page.locator("#unfold-all").click()
    nodes = visitor.page.locator(".node").all()
    assert len(nodes) > 2
    for node in nodes:
        number, label = int(node.get_attribute("data-node")), node.get_attribute("aria-label")
        assert number == 0 or label.startswith(f"{answers[number]}, ")


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
    typed.fill("0.75")
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


def test_path_weights_are_those_of_the_posterior(fitted, visit):
    model = fitted["tree"]
    visitor, rows = visit(model), rows_for(model)
    post = model.posterior_
    leaf_prob, node_prob = post.leaf_prob, post.node_prob
    for i in range(4):
        row = rows.iloc[[i]]
        visitor.enter(model, row.iloc[0].tolist())
        items = visitor.page.locator("#path li").all()
        shown = {int(item.get_attribute("data-node")): float(item.get_attribute("data-value")) for item in items}
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


def test_the_slider_goes_from_the_map_tree_to_the_whole_meta_tree(fitted, visit):
    post = fitted["tree"].posterior_
    best = post.map_tree()
    visitor = visit(fitted["tree"])
    page = visitor.page
    assert visitor.count(".node") == best.n_leaves + len(best.inner)
    assert "most probable pruning" in page.locator("#reach-text").inner_text()
    page.locator("#reach").focus()
    page.keyboard.press("ArrowRight")
    few = visitor.count(".node")
    page.keyboard.press("End")
    page.locator("#unfold-all").click()
    assert best.n_leaves + len(best.inner) <= few <= visitor.count(".node") == post.tree.n_nodes
    assert "every node" in page.locator("#reach-text").inner_text()
    page.locator("#reach").focus()
    page.keyboard.press("Home")
    assert visitor.count(".node") == best.n_leaves + len(best.inner)


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


def test_with_scripts_off_the_tree_folds_and_the_page_says_what_is_missing(browser, fitted, tmp_path):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(write_report(fitted["tree"], None, tmp_path / "report.html").as_uri())
    assert "scripts are off" in page.locator("#whatif").inner_text()
    assert not page.locator("#picture").is_visible()
    page.locator("#as-list > summary").click()
    inner = page.locator("#as-list .folding > details")
    assert inner.get_attribute("open") is not None
    inner.locator("> summary").click()
    assert inner.get_attribute("open") is None
    context.close()


def test_a_large_forest_answers_as_python_does(visit):
    table = mixed_table(3000)
    model = et.MetaForestRegressor(random_state=0).fit(table, numbers_of(table, "normal"))
    visitor = visit(model)
    row = table.iloc[[7]]
    visitor.enter(model, row.iloc[0].tolist())
    assert visitor.numbers()["mean"] == pytest.approx(model.predict(row)[0], rel=1e-9)


def long_names() -> et.MetaTreeClassifier:
    table = mixed_table()
    table["colour"] = "WAYS MANY WOMEN WALK: " + table["colour"].astype(str)
    long = {name: f"WHAT_SOMEBODY_NAMED_THE_{k}TH_COLUMN_OF_THIS_TABLE" for k, name in enumerate(table)}
    return et.MetaTreeClassifier(max_depth=4, random_state=0).fit(table.rename(columns=long), classes_of(table))


@pytest.mark.parametrize("width", [400, 770, 800, 900, 1400])
def test_names_of_any_length_stay_where_they_belong(visit, width):
    page = visit(long_names(), viewport={"width": width, "height": 900}).page
    form = page.locator("#inputs").bounding_box()
    for part in page.locator("#inputs :is(label, input, select)").all():
        box = part.bounding_box()
        assert box["x"] >= form["x"] - 1
        assert box["x"] + box["width"] <= form["x"] + form["width"] + 1
    assert min(label.bounding_box()["width"] for label in page.locator(".field > label").all()) > 90
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
