"""What splits say: of numbers the cut and no other, of categories the sets that go each way."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everytree as et
from cases import rng_for
from everytree.tables.code_names import Codes, CodeWords, cut_texts, set_text
from everytree.tables.column import Column
from everytree.view.describe import Names, describe


def numeric(*cuts: float) -> Column:
    return Column("x", "numeric", cuts=np.array(cuts))


def dates(*moments: str) -> Column:
    return Column("when", "datetime", cuts=[pd.Timestamp(moment).value / 1000 for moment in moments])


@given(st.lists(st.floats(-1e18, 1e18), min_size=1, max_size=20, unique=True))
def test_the_text_of_a_cut_is_nearest_to_that_cut(cuts):
    column = numeric(*sorted(cuts))
    read = np.array([float(text) for text in cut_texts(column)])
    nearest = np.abs(read[:, None] - column.cuts).argmin(axis=1)
    assert nearest.tolist() == list(range(len(cuts)))
    assert len(set(cut_texts(column))) == len(cuts)


@given(st.integers(-(10**9), 10**9))
def test_a_cut_between_whole_numbers_stays_between_them(below):
    (text,) = cut_texts(numeric(below + 0.5))
    assert below < float(text) < below + 1


def test_cuts_are_short_where_they_can_be():
    assert cut_texts(numeric(1000006.0, 1000010.5)) == ["1000006", "1000010.5"]
    assert cut_texts(numeric(3.9450000000000003, 7.1)) == ["3.945", "7.1"]
    assert cut_texts(numeric(1.00000001, 1.00000003)) == ["1.00000001", "1.00000003"]
    assert cut_texts(numeric(1e-9, 2.0, 1e20)) == ["1e-09", "2", "1e+20"]
    assert cut_texts(dates("2020-01-01", "2020-01-02 06:30")) == ["2020-01-01", "2020-01-02 06:30"]
    close = cut_texts(dates("2020-01-02 06:30:01", "2020-01-02 06:30:05"))
    assert close == ["2020-01-02 06:30:01", "2020-01-02 06:30:05"]


def test_sets_are_told_by_their_members_or_by_the_others():
    letters = list("abcdefghij")
    assert set_text(letters[:1], letters[1:]) == "= a"
    assert set_text(letters[:4], letters[4:]) == "in a, b, c, d"
    assert set_text(letters[2:], letters[:2]) == "not in a, b"
    assert set_text(letters[:5], letters[5:]) == "in a, b, c and 2 more"


def shown_set(answer: str, everything: set[str]) -> set[str]:
    """The categories that an answer lets through."""
    answer = answer.removesuffix(" or missing")
    if answer == "no value":
        return set()
    if answer == "known":
        return everything
    if answer.startswith("not in "):
        return everything - set(answer.removeprefix("not in ").split(", "))
    return set(answer.removeprefix("= ").removeprefix("in ").split(", "))


def codes_reaching(tree, node, feature, n_codes):
    """The codes of a feature that no split above a node sends elsewhere."""
    codes = np.arange(n_codes)
    while node > 0:
        above = int(tree.parent[node])
        child, threshold = node - int(tree.first_child[above]), int(tree.threshold[above])
        if tree.feature[above] == feature:
            goes_to = np.arange(n_codes) if threshold < 0 else (np.arange(n_codes) > threshold).astype(int)
            codes = codes[goes_to[codes] == child]
        node = above
    return codes


@pytest.mark.parametrize("n_categories", [2, 3, 8])
def test_pictures_write_categories_without_an_order(n_categories):
    rng = np.random.default_rng(n_categories)
    names = [f"c{k}" for k in range(n_categories)]
    table = pd.DataFrame({"kind": rng.choice(names, 600), "flag": rng.random(600) < 0.5})
    effect = dict(zip(names, rng.normal(0.0, 3.0, n_categories), strict=True))
    y = table["kind"].map(effect) * np.where(table["flag"], 1.0, -0.5) + rng.normal(size=600)
    model = et.MetaTreeRegressor(max_depth=4, random_state=0).fit(table, y)
    for picture in (model.to_text(max_depth=20), model._repr_html_()):
        assert "≤" not in picture
        assert ">" not in re.sub("<[^>]*>", "", picture).replace("&gt;", ">")


def test_groups_of_categories_are_written_out():
    column = Column("colour", "categorical", categories=("red", "green", "blue", "grey"), groups=(1, 0, 1, -1))
    words = CodeWords.of(column)
    assert list(words) == ["green", "red, blue"]
    assert [words.answer(Codes().child(0, child, -1), Codes()) for child in (0, 1)] == ["= green", "in red, blue"]


def test_answers_about_numbers_are_the_range_that_reaches_the_node():
    """Between the nearest cuts above on both sides, whatever the order of the splits; missing values only once."""
    rng = rng_for("ranges of numbers")
    x = rng.uniform(0.0, 10.0, 500)
    y = np.sin(x) + rng.normal(0.0, 0.1, 500)
    x[:60] = np.nan
    model = et.MetaTreeRegressor(max_depth=4, random_state=0).fit(x[:, None], y)
    post, column = model.posterior_, model.schema_.columns[0]
    missing_seen, two_sided = 0, 0
    for node in describe(post, **model.drawing_options({}), max_depth=9).nodes[1:]:
        codes = codes_reaching(post.tree, node.number, 0, column.n_codes)
        said = node.answer.removesuffix(" or missing")
        missing_seen += said != node.answer
        low, high = -np.inf, np.inf
        for bound in [] if said in ("known", "missing") else said.split(", "):
            low, high = (float(bound[2:]), high) if bound[0] == ">" else (low, float(bound[2:]))
        two_sided += np.isfinite(low) and np.isfinite(high)
        inside = [code for code in range(column.n_codes) if [-np.inf, *column.cuts][code] >= low - 1e-3
                  and [*column.cuts, np.inf][code] <= high + 1e-3]  # fmt: skip
        assert said == "missing" or inside == codes.tolist()
    assert two_sided > 3
    assert missing_seen + sum(node.answer == "missing" for node in describe(post).nodes) > 0


def test_a_category_that_went_elsewhere_is_not_named_again():
    rng = rng_for("islands")
    island = rng.choice(["Torgersen", "Biscoe", "Dream"], 400)
    y = np.select([island == "Torgersen", island == "Biscoe"], [9.0, 2.0], 0.0) + rng.normal(0.0, 0.1, 400)
    text = et.MetaTreeRegressor(max_depth=3, random_state=0).fit(pd.DataFrame({"island": island}), y).to_text()
    lines = [line for line in text.splitlines() if "─ " in line]
    assert sum("Torgersen" in line for line in lines) == 1
    assert sum("= Biscoe" in line for line in lines) == 1
    assert sum("= Dream" in line for line in lines) == 1


def test_a_branch_that_no_row_can_take_says_so():
    tree = et.MetaTree.from_arrays([0, 0, -1, -1, -1], [1, 3, -1, -1, -1], [2, 2, 0, 0, 0], [2, 2, -1, -1, -1])
    answers = [node.answer for node in describe(et.Posterior(tree, et.Bernoulli())).nodes]
    assert answers == ["", "≤ 2", "≤ 2", "no value", "> 2"]


def test_exact_models_say_where_missing_values_go():
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    x[rng.random(400) < 0.3] = np.nan
    only_missing = et.ExactTreeClassifier(max_depth=1).fit(x[:, None], np.isnan(x)).to_text()
    assert "known" in only_missing
    assert "missing" in only_missing
    assert "more" not in only_missing
    above = et.ExactTreeClassifier(max_depth=1).fit(x[:, None], np.nan_to_num(x, nan=9.0) > 0.3).to_text()
    assert above.count("or missing") == 1


@pytest.mark.parametrize("n_categories", [2, 3, 5, 8])
@pytest.mark.parametrize("n_trees", [1, 20])
def test_conditions_name_the_categories_that_the_tree_sends_there(n_categories, n_trees):
    """The naive twin sends each category down, through splits on any column that codes its input."""
    rng = rng_for("categories sent down", n_categories)
    values = rng.integers(0, n_categories, 600)
    table = pd.DataFrame({"town": [f"t{value}" for value in values], "flag": rng.random(600) < 0.5})
    y = rng.normal(0.0, 3.0, n_categories)[values] * np.where(table["flag"], 1.0, -0.5) + rng.normal(size=600)
    if n_trees == 1:
        model = et.MetaTreeRegressor(max_depth=6, random_state=0).fit(table, y)
        posts = [model.posterior_]
    else:
        model = et.MetaForestRegressor(n_trees, max_features=0.5, max_depth=6, random_state=0).fit(table, y)
        posts = model.forest_.posteriors
    schema, names = model.schema_, sorted(set(table["town"]))
    codes = schema.encode(pd.DataFrame({"town": names, "flag": False})).astype(int)
    most_columns = n_seen = 0
    for tree in (post.tree for post in posts):
        words = Names(tree, model.feature_names_in_, schema.code_names)
        reaching: list[set[str]] = [set(names)]
        columns: list[set[int]] = [set()]
        for node in range(1, tree.n_nodes):  # parents before children
            above = int(tree.parent[node])
            feature, child, threshold = int(tree.feature[above]), node - tree.first_child[above], tree.threshold[above]
            reaching.append(reaching[above])
            columns.append(columns[above])
            if schema.input_of[feature] != 0:
                continue
            goes_to = codes[:, feature] if threshold < 0 else codes[:, feature] > threshold
            reaching[node] = reaching[above] & {name for name, to in zip(names, goes_to, strict=True) if to == child}
            columns[node] = columns[above] | {feature}
            assert shown_set(words.answer(above, child), reaching[above]) == reaching[node]
            most_columns, n_seen = max(most_columns, len(columns[node])), n_seen + 1
    assert n_seen >= 2
    if n_trees > 1:
        assert most_columns == (1 if n_categories == 2 else 2)
