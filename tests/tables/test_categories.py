"""Which columns of codes are made of a column of categories, and that none contains a row's own target."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import RandomForestClassifier

import everytree as et
from cases import rng_for
from everytree.exact.regions import MAX_CATEGORIES
from everytree.tables.categories import MAX_AT_ONCE
from everytree.tables.cross_fitting import cross_fitted_codes


def texts(rng, n, n_categories):
    return np.array([f"c{k}" for k in rng.integers(0, n_categories, n)], dtype=object)[:, None]


def columns_of(text, y, **options):
    return et.Schema.fit(text, y, **options).columns


def test_splits_into_all_categories_have_a_branch_for_missing_values():
    assert MAX_AT_ONCE + 1 == MAX_CATEGORIES


def test_two_categories_have_one_column():
    text = np.array([["b"], ["a"]] * 20, dtype=object)
    (column,) = columns_of(text, np.arange(40.0))
    assert column.categories == ("a", "b")


def test_three_categories_are_split_in_every_way():
    text = np.array([["b"], ["a"], ["c"]] * 20, dtype=object)
    columns = columns_of(text, np.arange(60.0))
    assert not any(column.pooled for column in columns)
    found = set()
    for column in columns:
        for cut in (1, 2):
            low = frozenset(column.categories[:cut])
            found |= {low, frozenset("abc") - low}
    assert found == {frozenset(one) for n in (1, 2) for one in itertools.combinations("abc", n)}


@pytest.mark.parametrize("n_categories", [4, 29, 200])
def test_more_categories_have_their_own_codes_and_codes_by_means(n_categories):
    rng = rng_for("more", n_categories)
    text = texts(rng, 20 * n_categories, n_categories)
    own, by_means = columns_of(text, rng.normal(size=len(text)))
    assert own.categories == tuple(f"c{k}" for k in range(n_categories))
    assert not own.pooled
    assert by_means.pooled


@pytest.mark.parametrize(("n", "n_categories"), [(1200, 400), (200, 150)])
def test_too_many_categories_and_those_of_mostly_new_rows_have_no_codes_of_their_own(n, n_categories):
    rng = rng_for("too many", n)
    text = texts(rng, n, n_categories)
    (column,) = columns_of(text, rng.normal(size=n))
    assert column.pooled


@pytest.mark.parametrize(("n_categories", "pooled"), [(3, False), (20, False), (63, False), (64, True)])
def test_splits_into_all_categories_need_one_column(n_categories, pooled):
    rng = rng_for("at once", n_categories)
    text = texts(rng, 40 * n_categories, n_categories)
    (column,) = columns_of(text, rng.normal(size=len(text)), at_once=True)
    assert column.pooled == pooled
    rare = texts(rng, 300, 40)
    (column,) = columns_of(rare, rng.normal(size=300), at_once=True)
    assert column.pooled


def test_a_declared_order_has_one_column():
    values = pd.Categorical(["s", "m", "l", "xl"] * 10, categories=["s", "m", "l", "xl"], ordered=True)
    (column,) = columns_of(pd.DataFrame({"size": values}), np.arange(40.0))
    assert column.categories == ("s", "m", "l", "xl")


@pytest.mark.parametrize("n_categories", [2, 3, 5, 29, 300])
@pytest.mark.parametrize("n_targets", [1, 3])
def test_codes_of_rows_of_fit_do_not_follow_noise(n_categories, n_targets):
    rng = rng_for("own target", n_categories, n_targets)
    n = 600
    text = texts(rng, n, n_categories)
    y = rng.normal(size=(n, n_targets))
    schema = et.Schema.fit(text, y)
    codes = cross_fitted_codes(schema, text, schema.encode(text), y, None, np.arange(n))
    # These targets are noise: codes that follow them can only have them from the rows themselves.
    for k in range(schema.n_features):
        apart = (y - y.mean(axis=0)) / y.std(axis=0)
        code = (codes[:, k] - codes[:, k].mean()) / max(codes[:, k].std(), 1e-9)
        correlation = np.abs(apart.T @ code / n).max()
        assert correlation < 4.5 / np.sqrt(n)


def test_texts_that_differ_in_nearly_every_row_are_said():
    names = [f"name {k}" for k in range(95)]
    said = r"column 'who' has 96 different texts in 100 rows, such as 'name 0'.*Leave it out"
    with pytest.warns(UserWarning, match=said):
        et.Schema.fit(pd.DataFrame({"who": [*names, *["same"] * 5]}), np.arange(100.0))


def test_a_row_of_weight_two_is_two_rows():
    rng = rng_for("weights of categories")
    text, y, weight = texts(rng, 200, 150), rng.normal(size=200), rng.integers(1, 4, 200)
    weighted = et.Schema.fit(text, y, sample_weight=weight)
    repeated = et.Schema.fit(np.repeat(text, weight, axis=0), np.repeat(y, weight))
    assert [column.pooled for column in weighted.columns] == [column.pooled for column in repeated.columns]
    assert weighted.columns[0].categories == repeated.columns[0].categories


# ---- one or the other ------------------------------------------------------------------------------------------------


def noise(rng, n, n_categories=30):
    table = pd.DataFrame({f"c{k}": texts(rng, n, n_categories)[:, 0] for k in range(6)})
    return table, rng.integers(0, 2, n)


def sides_of(model, trees):
    """Which codes of each input each tree splits on."""
    columns, input_of = model.schema_.columns, model.schema_.input_of
    for features in trees:
        yield {(int(input_of[k]), columns[k].pooled) for k in set(features.tolist()) if k >= 0}


@pytest.mark.parametrize("kind", [et.MetaForestClassifier, et.MetaTreeClassifier, et.MetaBoostClassifier])
def test_no_tree_splits_on_both_codes_of_rare_categories(kind):
    table, y = noise(rng_for("either", kind.__name__), 300)
    y = (table["c0"].isin([f"c{k}" for k in range(15)]) ^ (y * (np.arange(300) % 5 == 0))).astype(int)
    model = kind(random_state=0).fit(table, y)
    assert len(model.schema_.either(300)) == 6
    if kind is et.MetaBoostClassifier:  # a chain adds its trees up: each of the five has a side
        nodes, n_nodes = model.model_.trees.nodes["feature"], model.model_.trees.n_nodes
        ends = np.cumsum([0, *n_nodes])
        per_chain = np.cumsum([0, *model.model_.chains.n_steps])
        trees = [nodes[ends[a] : ends[b]] for a, b in itertools.pairwise(per_chain)]
    else:
        trees = [post.tree.feature for post in model.posteriors_]
    found = list(sides_of(model, trees))
    assert any(found)
    for used in found:
        assert len({place for place, _ in used}) == len(used)
    if kind is et.MetaTreeClassifier:
        assert all(pooled for used in found for _, pooled in used)
    else:
        assert {pooled for used in found for _, pooled in used} == {False, True}


def test_a_given_forest_splits_on_mean_targets_of_rare_categories():
    table, y = noise(rng_for("given forest"), 300)
    model = et.MetaForestClassifier(grower=RandomForestClassifier(5), random_state=0).fit(table, y)
    assert len(model.schema_.either(300)) == 6
    found = list(sides_of(model, [post.tree.feature for post in model.posteriors_]))
    assert any(found)
    assert all(pooled for used in found for _, pooled in used)


def test_categories_of_many_rows_may_be_split_on_by_both():
    table, y = noise(rng_for("both"), 40 * 30)
    assert et.MetaForestClassifier(3, random_state=0).fit(table, y).schema_.either(40 * 30) == []
