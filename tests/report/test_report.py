"""The report as text: complete without scripts, harmless whatever the data say, with its data packed without loss."""

from __future__ import annotations

import re
from base64 import b64decode
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import everytree as et
from everytree.report import embedding, report_html, write_report
from everytree.report.fields import slider_range
from everytree.report.packing import n_bytes, packed
from everytree.report.subject import Subject
from report_cases import (
    BOOSTED,
    EVIL,
    EVIL_CATEGORY,
    EVIL_CLASS,
    NAMES,
    WITHOUT_WHAT_IF,
    classes_of,
    data_of,
    mixed_table,
    numbers_of,
)

# ---- the page as text ------------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", [*NAMES, *WITHOUT_WHAT_IF])
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
    for words in ("Log evidence", "split_prior", "split on with probability", "Number 1: probability", "<noscript>"):
        assert words in page
    best = fitted["tree"].posterior_.top_trees(1)[0]
    assert f"{best.tree.n_leaves} leaves" in page
    assert page.count("<details") > 5  # the tree folds by itself


def test_without_a_table_it_says_why_there_is_no_comparison(fitted):
    assert "made without a table" in report_html(fitted["tree"])


def test_write_report_returns_the_path(fitted, tmp_path):
    path = write_report(fitted["tree"], None, tmp_path / "report.html")
    assert path.read_text(encoding="utf-8") == report_html(fitted["tree"])


def test_models_with_exposure_and_with_lines_in_leaves_have_a_page():
    table = mixed_table(120)
    y = numbers_of(table, "poisson")
    exposed = et.MetaTreeRegressor(max_depth=2, family="poisson", random_state=0).fit(table, y, exposure=y + 1.0)
    page = report_html(exposed, table, target=y, exposure=y + 1.0)
    assert "Counts are rates to it" in page
    assert "Counts are those of one unit of exposure." in page
    assert "90% or more is right: counts are whole" in page
    lines = et.MetaTreeRegressor(max_depth=2, family="linear", random_state=0).fit(table[["count"]], y)
    page = report_html(lines)
    assert "lines through the columns" in page
    assert data_of(page)["kernel"] is None


@pytest.mark.parametrize("family", ["normal", "lognormal", "linear"])
def test_a_page_has_a_what_if_part_or_says_why_its_script_cannot_predict(family):
    table = pd.DataFrame({"a": np.arange(60.0), "y": np.exp(np.arange(60) % 7)})
    model = et.MetaTreeRegressor(max_depth=2, family=family, random_state=0).fit(table[["a"]], table["y"])
    page = report_html(model, table, target="y")
    assert 'href="#whatif"' in page
    said = re.search('<p class="absent" id="no-whatif" hidden>(.*?)</p>', page)
    assert said is not None
    assert (said[1] == "") == (data_of(page)["kernel"] is not None) == (family == "normal")
    if family == "lognormal":
        assert "cannot predict by LogNormal leaves" in said[1]
        assert "model.predictive" in said[1]


def test_examples_have_the_categories_of_their_fields():
    """Also those with line breaks, which the panel would take for new ones if they were shortened."""
    table = pd.DataFrame({"text": ["x\ny", "x  y", "z"] * 20, "y": ["no", "no", "yes"] * 20})
    model = et.MetaTreeClassifier(max_depth=2, random_state=0).fit(table[["text"]], table["y"])
    data = data_of(report_html(model, table, target="y", n_examples=60))
    assert {one["values"][0] for one in data["examples"]} == set(data["inputs"][0]["categories"])


@pytest.mark.parametrize("name", BOOSTED)
def test_boosted_trees_are_not_drawn_and_have_the_other_sections(fitted, name):
    model, page = fitted[name], report_html(fitted[name])
    data, words = data_of(page), re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    for absent in ('id="tree"', 'href="#tree"', 'id="probable"', 'href="#probable"', "Log evidence", "split on with"):
        assert absent not in words
    for there in ('id="fitted"', 'id="quality"', 'id="columns"', "boosted trees", "split_prior"):
        assert there in words
    assert ("Weight of boosting" in words) == name.startswith("ensemble")
    largest = model.feature_importances_.max()
    assert f'<span class="value">{largest:.3f}</span>' in words
    assert (data["kernel"] is None) == (name in WITHOUT_WHAT_IF)


@pytest.mark.parametrize("name", ["boosted", "ensemble", "ensemble three"])
def test_boosted_trees_that_do_not_fit_are_left_out_as_a_whole(fitted, name, monkeypatch):
    size = n_bytes(embedding.model_data(Subject.of(fitted[name]))["boosted"]["arrays"].values())
    for room in (1000, size + 1000)[: 1 if name == "boosted" else 2]:
        monkeypatch.setattr(embedding, "MAX_BYTES", room)
        monkeypatch.setattr(embedding.json, "dumps", lambda columns: "")
        data = embedding.model_data(Subject.of(fitted[name]))
        assert data["kernel"] is None
        assert data["boosted"] is None
        assert data["trees"] is None


@pytest.mark.parametrize("name", ["boosted three", "boosted six"])
def test_boosted_nodes_are_in_the_order_that_the_script_counts_on(fitted, name):
    trees = fitted[name].model_.trees
    start = 0
    for size in trees.n_nodes:
        first = trees.nodes["first_child"][start : start + size]
        np.testing.assert_array_equal(first[first >= 0], 1 + 2 * np.arange((first >= 0).sum()))
        start += size


@pytest.mark.parametrize("name", ["forest", "tree", "normal", "boosted", "ensemble numbers"])
def test_the_first_lines_say_how_well_it_predicts_rows_that_the_trees_had_not_seen(fitted, name):
    said = fitted[name].unseen_.sentence()
    assert f"than guessing: {said}.</p>" in report_html(fitted[name])
    assert "had not seen" not in report_html(fitted["exact"])


def test_a_model_from_a_file_has_the_same_page(fitted, tmp_path):
    pytest.importorskip("safetensors")
    for name in ("forest", "exact", "boosted", "ensemble", "boosted numbers"):
        et.save(fitted[name], tmp_path / "model")
        assert report_html(et.load(tmp_path / "model")) == report_html(fitted[name])


# ---- what is inside --------------------------------------------------------------------------------------------------


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
    kind, text, *listed = packed(np.array(values))
    numbers = np.frombuffer(b64decode(text), dtype=f"<{kind}")
    if listed:
        numbers = np.frombuffer(b64decode(listed[0]))[numbers]
    assert numbers.tolist() == list(values)


@pytest.mark.parametrize(
    "cuts", [np.arange(1000000.5, 1000099), 1e6 + np.arange(1, 99) / 1e4, [0.1], [-3e8, 7.25, 5e9], [1e-7, 2e-7]]
)
def test_sliders_begin_stand_and_end_on_whole_steps(cuts):
    low, high, middle, step = slider_range(np.asarray(cuts, dtype=float), "numeric")
    assert low < min(cuts)
    assert max(cuts) < high
    assert low <= middle <= high
    decimals = max(0, round(-np.log10(step)))
    assert [round(value, decimals) for value in (low, middle, high)] == [low, middle, high]


# ---- what a page contains of the table -------------------------------------------------------------------------------


def customers(n_rows: int = 120) -> pd.DataFrame:
    """Names and places, of which the target needs the places; one number in every row, nothing, and durations."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"name": [f"Name {i}" for i in range(n_rows)], "place": [f"Place {i % 30}" for i in range(n_rows)]}
    )
    table["const"], table["empty"] = 7, np.nan
    table["waited"] = pd.to_timedelta(rng.integers(0, 50, n_rows), unit="h")
    return table.assign(y=np.where(np.arange(n_rows) % 30 < 15, "no", "yes"))


@pytest.mark.parametrize("kind", [et.MetaTreeClassifier, et.ExactTreeClassifier, et.MetaBoostClassifier])
@pytest.mark.filterwarnings("ignore:X. column 'name' has")
def test_texts_of_columns_that_no_tree_asks_for_are_not_in_the_page(kind):
    table = customers()
    model = kind(max_depth=1).fit(
        table[["name", "place"]] if kind is not et.ExactTreeClassifier else table[["place"]], table["y"]
    )
    page = report_html(model, table, target="y")
    assert "Name 1" not in page
    assert "Place 1" in page
    assert "It contains all texts of the column place." in page


def test_a_page_of_few_or_hidden_texts_says_nothing_of_them(fitted):
    assert "all texts of" not in report_html(fitted["forest"])
    constant = et.MetaTreeRegressor(random_state=0).fit(customers()[["place"]], np.ones(120))
    page = report_html(constant, customers()[["place"]], target=np.ones(120), n_examples=10)
    assert "all texts of" not in page  # no tree asks for them
    assert '"Place 1"' not in page


@pytest.mark.parametrize(
    "library", [lambda table: table, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_examples_have_the_numbers_of_the_table(library):
    """Also of columns of one number, and durations, which are numbers of seconds."""
    table = customers()[["const", "empty", "waited", "y"]]
    seconds = table["waited"].dt.total_seconds()
    model = et.MetaTreeRegressor(max_depth=3, random_state=0).fit(library(table.drop(columns="y")), seconds)
    data = data_of(report_html(model, library(table.drop(columns="y")), target=seconds))
    rows = [int(one["label"].split(":")[0].removeprefix("row ")) for one in data["examples"]]
    assert [one["values"] for one in data["examples"]] == [[7.0, None, seconds[row]] for row in rows]
    assert data["inputs"][0]["seen"] == [7.0, 7.0]


def test_rows_keep_their_numbers_where_others_are_left_out(fitted):
    table = mixed_table(60)
    weight = np.where(np.arange(60) < 20, 0.0, 1.0)
    data = data_of(report_html(fitted["tree"], table, target=classes_of(table), sample_weight=weight))
    rows = [int(one["label"].split(":")[0].removeprefix("row ")) for one in data["examples"]]
    assert min(rows) >= 20
    place = [field["name"] for field in data["inputs"]].index("count")
    assert [one["values"][place] for one in data["examples"]] == table["count"].iloc[rows].tolist()


def test_splits_that_do_not_help_other_rows_are_counted_without_scripts_too(fitted):
    page = report_html(fitted["tree"])
    assert re.search(r"\d+ splits? that do(es)? not help other rows (is|are) left out", page)
    assert "on which the splits were chosen too" in page
    assert "the slider goes from the splits that help other rows to every node" in page
    exact = report_html(fitted["exact"])
    assert "not help other rows" not in exact
    assert "the slider goes from the most probable pruning to every node" in exact
