"""Categories of few rows: shrunken means, pools, and codes of the rows of fit that do not contain their own targets."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import everytree as et
import naive_pooling as naive
from cases import examples, rng_for
from everytree.base.arrays import LARGEST_CODE
from everytree.tables.column import Column
from everytree.tables.cross_fitting import cross_fitted_codes
from everytree.tables.pooling import N_FOLDS, CategoryMeans, cross_fitted_pools, directions, folds, pools


def rare_table(what, n=1200, n_categories=300, n_targets=1):
    """Texts of four rows each, on average, whose targets differ by category."""
    rng = rng_for("rare", what)
    place = rng.integers(0, n_categories, n)
    targets = rng.normal(size=(n_categories, n_targets))[place] + rng.normal(size=(n, n_targets))
    return np.array([f"c{k:04}" for k in place], dtype=object)[:, None], targets


def means_of(index, targets, weight=None):
    return CategoryMeans.fit(np.asarray(index), int(max(index)) + 1, np.asarray(targets, dtype=float), weight)


def on_scale_of_targets(means, targets, estimates):
    apart = np.asarray(targets) - np.mean(targets)
    return np.mean(targets) + estimates * np.abs(apart).max()


rows_of_categories = st.lists(
    st.tuples(st.integers(0, 6), st.integers(-5, 5), st.integers(0, N_FOLDS - 1)), min_size=2, max_size=60
)

# ---- estimates -------------------------------------------------------------------------------------------------------


@given(rows_of_categories)
@examples(200)
def test_estimates_are_those_of_a_loop_over_pairs(rows):
    index, targets, fold = (np.array(each) for each in zip(*rows, strict=True))
    means = means_of(index, targets)
    slow = naive.strength(index.tolist(), targets.tolist())
    # Where B is zero but for rounding, either answer is right.
    if slow > 1e6:
        assert means.strength > 1e5
        return
    assert means.strength == pytest.approx(slow, rel=1e-6, abs=1e-9)
    of_all = on_scale_of_targets(means, targets, means.of_all)
    for name, estimate in naive.of_all(index.tolist(), targets.tolist()).items():
        assert of_all[name] == pytest.approx(estimate, abs=1e-6)
    others = naive.of_others(index.tolist(), targets.tolist(), fold.tolist())
    np.testing.assert_allclose(on_scale_of_targets(means, targets, means.of_others(fold)), others, atol=1e-6)


@given(rows_of_categories, st.lists(st.integers(1, 3), min_size=60, max_size=60))
@examples(100)
def test_a_row_of_weight_two_is_two_rows(rows, weights):
    index, targets, fold = (np.array(each) for each in zip(*rows, strict=True))
    weight = np.array(weights[: len(index)])
    weighted = means_of(index, targets, weight.astype(float))
    repeated = means_of(np.repeat(index, weight), np.repeat(targets, weight))
    if repeated.strength > 1e6:
        assert weighted.strength > 1e5
        return
    assert weighted.strength == pytest.approx(repeated.strength, rel=1e-6, abs=1e-9)
    np.testing.assert_allclose(weighted.of_all, repeated.of_all, atol=1e-6)
    others = np.repeat(weighted.of_others(fold), weight)
    np.testing.assert_allclose(others, repeated.of_others(np.repeat(fold, weight)), atol=1e-6)


def test_the_strength_is_the_ratio_of_the_variances():
    rng = rng_for("strength")
    index = rng.integers(0, 3000, 15_000)
    for within, between in ((1.0, 1.0), (2.0, 0.5)):
        targets = np.sqrt(between) * rng.normal(size=3000)[index] + np.sqrt(within) * rng.normal(size=15_000)
        assert means_of(index, targets).strength == pytest.approx(within / between, rel=0.15)
    noise = means_of(index, rng.normal(size=15_000))
    assert noise.strength > 20.0


def test_one_row_does_not_place_a_category_at_the_end():
    rng = rng_for("one row")
    index = np.concatenate([np.repeat(np.arange(40), 10), [40]])
    targets = np.append(rng.normal(size=40)[index[:-1]] + rng.normal(size=400), 0.0)
    targets[-1] = 1.1 * max(targets[index == k].mean() for k in range(40))
    estimates = means_of(index, targets).of_all
    assert estimates[40] < np.sort(estimates)[-4]


def test_categories_of_one_row_each_say_nothing():
    means = means_of(np.arange(50), rng_for("single").normal(size=50))
    assert means.strength == np.inf
    assert (means.of_all == 0.0).all()
    pool, of_mean = pools(means, 255)
    assert (pool == 0).all()
    assert of_mean == 0


def test_the_mean_of_all_is_in_the_pool_with_the_nearest_estimate():
    rng = rng_for("pool of the mean")
    index = rng.integers(0, 40, 400)
    means = means_of(index, rng.normal(size=40)[index] + rng.normal(size=400))
    pool, of_mean = pools(means, 15)
    assert of_mean == pool[np.abs(means.of_all).argmin()]
    assert 0 < of_mean < 14
    nothing = CategoryMeans.fit(np.empty(0, dtype=np.int64), 0, np.empty(0), None)
    assert pools(nothing, 15)[1] == -1


def test_directions_are_those_of_the_categories_and_not_of_the_noise():
    rng = rng_for("directions")
    index = rng.integers(0, 1000, 5000)
    apart = rng.normal(size=(1000, 3)) * [1.0, 2.0, 0.0]
    targets = apart[index] + rng.normal(size=(5000, 3)) * [1.0, 1.0, 4.0]
    first, second, *more = directions(index, 1000, targets, None)
    assert abs(first[1]) > 0.95
    assert abs(second[0]) > 0.9
    assert len(more) <= 1
    assert directions(index, 1000, targets[:, :1], None)[0].tolist() == [1.0]


# ---- columns ---------------------------------------------------------------------------------------------------------


def test_the_column_lists_categories_by_their_estimates_in_pools():
    text, targets = rare_table("column")
    (column,) = et.Schema.fit(text, targets[:, 0], max_bins=16).columns
    assert column.pooled
    assert column.n_codes == 15
    assert set(column.categories) == set(text[:, 0])
    expected = naive.of_all(text[:, 0].tolist(), targets[:, 0].tolist())
    estimates = [expected[name] for name in column.categories]
    assert (np.diff(estimates) > -1e-9).all()
    assert sorted(set(column.groups)) == list(range(15))
    assert list(column.groups) == sorted(column.groups)


def test_unseen_and_missing_categories_are_told_apart():
    text, targets = rare_table("unseen")
    text[:5, 0] = None
    schema = et.Schema.fit(text, targets[:, 0])
    assert schema.columns[0].has_missing
    assert schema.columns[0].new_code == -1
    assert schema.encode([["c0001"], ["new"], [None]])[1:].tolist() == [[254], [255]]
    assert schema.dtype == np.uint8


def test_new_texts_of_a_column_of_mostly_new_texts_have_the_code_of_rows_of_fit_without_evidence():
    text, targets = rare_table("mostly new", n=600, n_categories=400)
    schema = et.Schema.fit(text, targets[:, 0])
    (column,) = schema.columns
    names, counts = np.unique(text[:, 0], return_counts=True)
    alone = np.isin(text[:, 0], names[counts == 1])
    codes = cross_fitted_codes(schema, text, schema.encode(text), targets[:, 0], None, None)
    assert column.n_codes > 20
    assert set(codes[alone, 0]) == {column.new_code}
    assert schema.encode([["new"], [None]]).tolist() == [[column.new_code], [255]]
    assert et.Schema.from_dict(schema.to_dict()) == schema
    before = {key: value for key, value in column.to_dict().items() if key != "new_code"}
    assert Column(**before).new_code == -1


def test_more_texts_than_codes():
    n = LARGEST_CODE + 5000
    text = np.array([f"t{k % n}" for k in range(2 * n)], dtype=object)[:, None]
    rng = rng_for("many texts")
    y = np.tile(rng.normal(size=n), 2) + 0.1 * rng.normal(size=2 * n)
    schema = et.Schema.fit(text, y)
    assert len(schema.columns[0].categories) == n
    assert schema.n_codes[0] == 254
    codes = schema.encode(text)[:, 0]
    assert np.corrcoef(codes, y)[0, 1] > 0.9
    assert schema.columns[0].new_code == -1
    assert schema.encode([["none of them"]]).tolist() == [[254]]


def test_several_targets_have_a_column_for_each_direction():
    text, targets = rare_table("several", n_targets=2)
    frame = pd.DataFrame({"id": text[:, 0], "id #2": np.arange(len(text)), "z": 1.0})
    schema = et.Schema.fit(frame, targets)
    assert schema.names == ["id", "id #2", "z", "id #3"]
    assert schema.input_names == ["id", "id #2", "z"]
    assert [column.source for column in schema.columns] == [None, None, None, "id"]
    assert schema.columns[0].categories != schema.columns[3].categories
    plain = et.Schema.fit(np.column_stack([text[:, 0], np.arange(len(text)).astype(object)]), targets)
    assert plain.n_inputs == 2
    assert plain.input_of.tolist() == [0, 1, 0]
    assert et.Schema.from_dict(schema.to_dict()) == schema


def test_a_pooled_column_is_checked():
    Column("a", "categorical", categories=("x", "y"), groups=(0, 0), pooled=True)
    for wrong in ({"groups": (0, -1)}, {"groups": ()}, {"kind": "numeric", "categories": ()}):
        given = {"name": "a", "kind": "categorical", "categories": ("x", "y"), "groups": (0,), "pooled": True}
        with pytest.raises(ValueError, match="column 'a'"):
            Column(**(given | wrong))
    for wrong in ({"new_code": 2}, {"new_code": -2}, {"new_code": 0, "groups": (), "pooled": False}):
        with pytest.raises(ValueError, match=r"new_code of column 'a' must be the code of one of its pools or -1"):
            Column("a", "categorical", **({"categories": ("x", "y"), "groups": (0, 1), "pooled": True} | wrong))


# ---- rows of fit -----------------------------------------------------------------------------------------------------


def test_codes_of_fit_are_the_pools_of_cross_fitted_estimates():
    text, targets = rare_table("codes")
    numbers = rng_for("besides").normal(size=len(text)).astype(object)
    table, y = np.column_stack([text[:, 0], numbers]), targets[:, 0]
    schema = et.Schema.fit(table, y)
    plain = schema.encode(table)
    codes = cross_fitted_codes(schema, table, plain, y, None, np.arange(len(text)))
    np.testing.assert_array_equal(codes[:, 1], plain[:, 1])
    assert (codes[:, 0] != plain[:, 0]).mean() > 0.5
    # The pool of a row is that of the category with the nearest estimate.
    fold = folds(len(text), None)
    others = np.array(naive.of_others(text[:, 0].tolist(), y.tolist(), fold.tolist()))
    of_all = naive.of_all(text[:, 0].tolist(), y.tolist())
    estimates = np.array([of_all[name] for name in schema.columns[0].categories])
    groups = np.array(schema.columns[0].groups)
    nearest = groups[np.abs(estimates[None, :] - others[:, None]).argmin(axis=1)]
    np.testing.assert_array_equal(codes[:, 0], nearest)


@pytest.mark.parametrize("n_targets", [1, 2])
def test_a_row_does_not_see_its_own_target(n_targets):
    """Another target for one row moves estimates, but those of its own fold stay if the strength does."""
    text, targets = rare_table("own", n=300, n_categories=60, n_targets=n_targets)
    index = np.unique(text[:, 0], return_inverse=True)[1]
    fold = folds(len(text), None)
    for row in range(0, 300, 37):
        means = means_of(index, targets[:, 0])
        changed = means.apart.copy()
        changed[row] += 5.0
        other = CategoryMeans(index, changed, means.weight, means.n_labels, means.strength)
        same = fold == fold[row]
        np.testing.assert_allclose(means.of_others(fold)[same], other.of_others(fold)[same], atol=1e-9)
        assert means.of_all[index[row]] != other.of_all[index[row]]


def test_groups_do_not_see_each_other():
    text, targets = rare_table("groups", n=600, n_categories=100)
    y, group = targets[:, 0], np.arange(600) // 3
    schema = et.Schema.fit(text, y)
    index = np.unique(text[:, 0], return_inverse=True)[1]
    assert (folds(600, group).reshape(-1, 3).std(axis=1) == 0).all()
    codes = cross_fitted_codes(schema, text, schema.encode(text), y, None, group)
    means = means_of(index, y)
    pool = dict(zip(schema.columns[1].categories, schema.columns[1].groups, strict=True))
    expected = cross_fitted_pools(means, np.array([pool[name] for name in np.unique(text)]), folds(600, group))
    np.testing.assert_array_equal(codes[:, 1], expected)


def test_rows_of_weight_zero_change_no_code():
    text, targets = rare_table("weight zero")
    y, weight = targets[:, 0], (rng_for("zeros").random(len(text)) < 0.7).astype(float)
    used = weight > 0.0
    schema = et.Schema.fit(text, y, sample_weight=weight)
    assert schema == et.Schema.fit(text[used], y[used])
    group = np.arange(len(text))
    far = np.where(used, y, 1e6)
    codes = [cross_fitted_codes(schema, text, schema.encode(text), one, weight, group) for one in (y, far)]
    np.testing.assert_array_equal(codes[0][used], codes[1][used])


def test_columns_that_are_not_pooled_are_not_coded_again():
    table = np.array([["a", "b"], ["b", "a"], ["a", "a"]], dtype=object)
    schema = et.Schema.fit(table, [1.0, 2.0, 3.0])
    codes = schema.encode(table)
    assert cross_fitted_codes(schema, table, codes, np.ones(3), None, None) is codes
