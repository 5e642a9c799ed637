"""Contributions of columns: exact Shapley values of sums of trees, that add up to every prediction."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import everytree as et
from cases import rng_for
from everytree import _kernels
from everytree.explaining.contributions import (
    Contributions,
    exp_of,
    inverse_of,
    log_of,
    probs_of,
    product_of,
)
from everytree.explaining.tree_sums import mass_of_ends, mass_of_nodes
from naive_explaining import shapley, walk_value
from random_shapes import random_shape


def kernel_of(trees, mass, values, n_codes, inputs, weights=None, first=None, n_outputs=None):
    return _kernels.tree_sum(
        trees=[tree.kernel for tree in trees], mass=mass, values=values,
        weights=np.ones(len(trees)) if weights is None else weights,
        first_output=np.zeros(len(trees), np.int32) if first is None else first,
        player=np.asarray(inputs, np.int32), known=np.asarray(n_codes, np.uint16),
        n_players=int(max(inputs)) + 1, n_outputs=values[0].shape[1] if n_outputs is None else n_outputs,
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["threshold", "multiway", "mixed"])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_the_kernel_gives_the_shapley_values_of_the_definition(kind, missing, shared):
    """Also for codes without a branch, children without rows, and inputs that several columns read."""
    rng = rng_for("shapley", kind, missing, shared)
    n_codes = [3, 4, 2, 3, 5]
    inputs = [0, 1, 2, 2, 1] if shared else [0, 1, 2, 3, 4]
    for _ in range(4):
        tree = random_shape(n_codes, 4, rng=rng, kind=kind, missing=missing)
        mass = rng.integers(0, 3, tree.n_nodes).astype(float)
        values = rng.normal(size=(tree.n_nodes, 2))
        rows = np.where(rng.random((5, 5)) < 0.2, rng.choice([254, 255], (5, 5)), rng.integers(0, n_codes, (5, 5)))
        kernel = kernel_of([tree], [mass], [values], n_codes, inputs)
        found = kernel.explain(rows.astype(np.uint8), 1)
        for row, own in zip(rows, found, strict=True):
            value = walk_value(tree, mass, values, row, n_codes, 255, inputs)
            np.testing.assert_allclose(kernel.base(), value(frozenset()), atol=1e-13)
            np.testing.assert_allclose(own, shapley(value, max(inputs) + 1), atol=1e-13)


def test_the_kernel_gives_the_same_bits_for_any_number_of_threads_and_type_of_codes():
    rng = rng_for("threads of explanations")
    trees = [random_shape([4] * 6, 6, rng=rng, kind="threshold") for _ in range(5)]
    mass = [rng.random(tree.n_nodes) for tree in trees]
    values = [rng.normal(size=(tree.n_nodes, 1)) for tree in trees]
    kernel = kernel_of(trees, mass, values, [4] * 6, range(6), rng.random(5), np.array([0, 1, 0, 1, 1], np.int32), 2)
    rows = rng.integers(0, 4, (200, 6)).astype(np.uint8)
    one = kernel.explain(rows, 1)
    assert one.shape == (200, 6, 2)
    assert (one == kernel.explain(rows, 3)).all()
    assert (one == kernel.explain(rows.astype(np.uint16), 2)).all()
    assert (one == kernel.explain(np.asfortranarray(rows), 1)).all()


def test_long_paths_of_many_columns_add_up():
    """A chain of forty columns: more points than those for which loops are unrolled."""
    n = 40
    arrays = {name: np.full(2 * n + 1, -1, np.int32) for name in ("feature", "first_child", "threshold")}
    arrays["n_children"] = np.zeros(2 * n + 1, np.int32)
    node = 0
    for k in range(n):
        arrays["feature"][node], arrays["first_child"][node] = k, 2 * k + 1
        arrays["threshold"][node], arrays["n_children"][node] = 0, 2
        node = 2 * k + 2
    tree = et.MetaTree.from_arrays(**arrays, n_features=n)
    rng = rng_for("chain")
    mass, values = np.ones(tree.n_nodes), rng.normal(size=(tree.n_nodes, 1))
    kernel = kernel_of([tree], [mass], [values], [2] * n, range(n))
    rows = (rng.random((20, n)) < 0.9).astype(np.uint8)
    found = kernel.explain(rows, 1)
    ends = tree.route(rows)
    np.testing.assert_allclose(kernel.base() + found.sum(axis=1), values[ends], atol=1e-13)


# ---- functions of sums -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 8.0])
def test_contributions_to_a_function_add_up_to_it(scale):
    rng = rng_for("functions", scale)
    base, values = rng.uniform(1.0, 2.0, 3), scale * rng.normal(size=(6, 4, 3))
    given = Contributions(base, values)
    positive = Contributions(base + 20.0 * scale, values)
    for function, found in (
        (lambda x: np.exp(x), exp_of(given)),
        (lambda x: np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True), probs_of(given)),
    ):
        np.testing.assert_allclose(found.base, function(base), rtol=1e-14)
        np.testing.assert_allclose(found.total(), function(given.total()), rtol=1e-11, atol=1e-14)
    many = Contributions(positive.base, np.abs(values))
    np.testing.assert_allclose(log_of(many).total(), np.log(many.total()), rtol=1e-13)
    np.testing.assert_allclose(inverse_of(many).total(), 1.0 / many.total(), rtol=1e-12)
    both = product_of(given, many)
    np.testing.assert_allclose(both.total(), given.total() * many.total(), rtol=1e-11, atol=1e-12)
    two = Contributions(base[:2], values[:, :, :2])
    logits = two.total()
    expected = np.exp(logits - logits.max(axis=1, keepdims=True))
    np.testing.assert_allclose(probs_of(two).total(), expected / expected.sum(axis=1, keepdims=True), atol=1e-13)


def test_a_linear_function_leaves_shapley_values_as_they_are():
    given = Contributions(np.array([0.0, 0.0]), np.array([[[0.0, 1e-13], [0.0, -3e-13]]]))
    np.testing.assert_allclose(probs_of(given).values[0, :, 1], [0.25e-13, -0.75e-13], rtol=1e-9)


# ---- every estimator -------------------------------------------------------------------------------------------------


def mixed_table(n, name):
    rng = rng_for("explained table", name)
    X = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "dose": rng.integers(0, 5, n).astype(float),
            "site": rng.choice(["north", "south", "east"], n),
            "noise": rng.random(n),
        }
    )
    X.loc[rng.random(n) < 0.1, "age"] = np.nan
    score = 0.08 * (X["age"].fillna(60) - 50) + 0.5 * X["dose"] - 1.0 * (X["site"] == "south") + rng.normal(0, 0.5, n)
    new = X.iloc[:12].copy()
    new.loc[new.index[1], "site"] = "west"  # never seen
    new.loc[new.index[2], "dose"] = np.nan  # never missing before
    return X, score.to_numpy(), new


FAST = {"random_state": 0}
FAST_NUMBERS = {**FAST, "n_residual_trees": 8}
CLASSIFIERS = {
    "tree": et.MetaTreeClassifier(**FAST),
    "forest": et.MetaForestClassifier(8, **FAST),
    "exact": et.ExactTreeClassifier(max_depth=2),
    "boost": et.MetaBoostClassifier(12, n_chains=2, **FAST),
    "ensemble": et.MetaEnsembleClassifier(8, max_iter=12, **FAST),
}


@pytest.mark.parametrize(
    ("name", "n_classes"),
    [
        ("tree", 1),
        ("boost", 1),
        *((name, 2 + place % 2) for place, name in enumerate(CLASSIFIERS)),
        ("forest", 2),
        ("boost", 3),
        ("boost", 6),
        ("ensemble", 2),
        ("ensemble", 6),
    ],
)
def test_contributions_add_up_to_the_probabilities(name, n_classes):
    X, score, new = mixed_table(120, name)
    cuts = [0.5, 1.5][: n_classes - 1] if n_classes < 4 else np.quantile(score, np.arange(1, n_classes) / n_classes)
    y = np.array(list("abcdef"))[np.digitize(score, cuts)]
    model = CLASSIFIERS[name].fit(X, y)
    why = model.explain(new)
    assert why.values.shape == (len(new), 4, n_classes)
    assert why.columns == ("age", "dose", "site", "noise")
    np.testing.assert_allclose(why.prediction, model.predict_proba(new), atol=1e-14)
    np.testing.assert_allclose(why.base + why.values.sum(axis=1), why.prediction, atol=1e-10)
    np.testing.assert_allclose(why.values.sum(axis=2), 0.0, atol=1e-10)
    np.testing.assert_array_equal(model.set_params(n_jobs=2).explain(new).values, why.values)
    assert np.isclose(why.base.sum(), 1.0)


REGRESSORS = {
    "tree": et.MetaTreeRegressor(**FAST),
    "forest": et.MetaForestRegressor(8, **FAST),
    "forest of counts": et.MetaForestRegressor(8, family="poisson", **FAST),
    "exact": et.ExactTreeRegressor(max_depth=2),
    **{f"boost {f}": et.MetaBoostRegressor(12, n_chains=2, family=f, **FAST_NUMBERS) for f in ("lognormal", "poisson")},
    **{
        f"ensemble {f}": et.MetaEnsembleRegressor(8, max_iter=8, family=f, **FAST_NUMBERS)
        for f in ("normal", "exponential")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", REGRESSORS)
def test_contributions_add_up_to_the_mean(name):
    X, score, new = mixed_table(80, name)
    model = REGRESSORS[name]
    y = {"normal": score, "poisson": np.round(np.exp(score / 2))}.get(model.family, np.exp(score / 2) + 0.1)
    model.fit(X, y)
    why = model.explain(new)
    assert why.values.shape == (len(new), 4)
    np.testing.assert_allclose(why.prediction, model.predict(new), rtol=1e-13)
    np.testing.assert_allclose(why.base + why.values.sum(axis=1), model.predict(new), rtol=1e-10, atol=1e-10)


def test_a_tree_is_explained_by_its_exact_shapley_values():
    X, score, new = mixed_table(60, "exact values")
    weight = rng_for("weights").random(60) + 0.1
    model = et.MetaTreeRegressor(max_depth=3, random_state=0).fit(X, score, sample_weight=weight)
    post = model.posterior_
    tables, centre = model.forest_.node_values()
    codes = model.schema_.encode(new)
    inputs = model.schema_.input_of.tolist()
    why = model.explain(new)
    for row, own in zip(codes, why.values, strict=True):
        value = walk_value(post.tree, mass_of_nodes(post), tables[0][:, 0], row, model.schema_.n_codes, 255, inputs)
        np.testing.assert_allclose(own, shapley(value, 4), atol=1e-12)
        assert np.isclose(why.base, value(frozenset()) + centre)
    placed = mass_of_ends(post.tree, post.tree.route(model.schema_.encode(X)), weight)
    np.testing.assert_allclose(mass_of_nodes(post), placed, rtol=1e-12)


def test_an_exact_tree_is_explained_by_means_over_independent_columns():
    rng = rng_for("exact means")
    X = rng.integers(0, 3, (60, 3)).astype(float)
    y = (X[:, 0] + X[:, 1] * (X[:, 2] > 0) + rng.normal(0, 0.5, 60) > 2).astype(int)
    model = et.ExactTreeClassifier(max_depth=2, truncation=1e-300).fit(X, y)
    levels = [np.unique(X[:, k], return_counts=True) for k in range(3)]

    def value(row):
        def of(s):
            total = 0.0
            for place in np.ndindex(3, 3, 3):
                share = np.prod([1.0 if k in s else levels[k][1][place[k]] / 60 for k in range(3)])
                cell = [row[k] if k in s else levels[k][0][place[k]] for k in range(3)]
                repeats = 3 ** len(s)
                total += share / repeats * model.predict_proba([cell])[0, 1]
            return total

        return of

    why = model.explain(X[:2])
    for row, own in zip(X[:2], why.values, strict=True):
        np.testing.assert_allclose(own[:, 1], shapley(value(row), 3), atol=1e-10)


def test_the_scale_of_the_trees():
    X, score, new = mixed_table(120, "scales")
    y = score > 0.5
    boost = et.MetaBoostClassifier(12, n_chains=2, random_state=0).fit(X, y)
    why = boost.explain(new, scale="trees")
    probs = boost.predict_proba(new)
    np.testing.assert_allclose(why.base[1] + why.values[:, :, 1].sum(axis=1), np.log(probs[:, 1] / probs[:, 0]))
    assert why.what == "score"
    forest = et.MetaForestClassifier(8, random_state=0).fit(X, y)
    average = forest.explain(new, scale="trees")
    power = average.prediction**forest.forest_.sharpness
    np.testing.assert_allclose(power / power.sum(axis=1, keepdims=True), forest.predict_proba(new), atol=1e-12)
    ensemble = et.MetaEnsembleClassifier(8, max_iter=8, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match=r"scale.*averages logarithms of probabilities"):
        ensemble.explain(new, scale="trees")
    with pytest.raises(ValueError, match=r"scale must be one of \['prediction', 'trees'\], but is 'log'"):
        forest.explain(new, scale="log")


NOT_SUMS = {
    "forest": (et.MetaForestClassifier(8, **FAST), 3),
    "two classes": (et.MetaBoostClassifier(12, n_chains=2, **FAST), 2),
    "boost": (et.MetaBoostClassifier(12, n_chains=2, **FAST), 3),
    "many classes": (et.MetaBoostClassifier(12, n_chains=2, **FAST), 5),
    "ensemble": (et.MetaEnsembleClassifier(8, max_iter=12, **FAST), 3),
    **{
        family: (et.MetaBoostRegressor(12, n_chains=2, family=family, **FAST_NUMBERS), 0)
        for family in ("lognormal", "poisson", "exponential")
    },
    "mixed counts": (et.MetaEnsembleRegressor(8, max_iter=8, family="poisson", **FAST_NUMBERS), 0),
}  # fmt: skip


def mean_predicted(model, X, weight=None):
    said = model.predict_proba(X) if hasattr(model, "classes_") else model.predict(X)
    return np.average(said, axis=0, weights=weight)


@pytest.mark.parametrize("name", NOT_SUMS)
def test_explanations_start_from_the_mean_prediction(name, tmp_path):
    """Over the rows of fit by their weights, or of the table; also where predictions are no sums over trees."""
    X, score, new = mixed_table(150, "mean " + name)
    weight = rng_for("weights", name).integers(1, 5, 150).astype(float)
    model, n_classes = NOT_SUMS[name]
    cuts = [1.5, 4.5, 6.0, 7.5][: n_classes - 1]
    y = np.digitize(3.0 * score, cuts) if n_classes else np.round(np.exp(score / 2)) + 1.0
    model.fit(X, y, sample_weight=weight)
    why = model.explain(new)
    np.testing.assert_allclose(why.base, mean_predicted(model, X, weight), rtol=1e-9)
    np.testing.assert_allclose(why.base + why.values.sum(axis=1), why.prediction, atol=1e-10)
    others = X[X["site"] == "south"]
    why_here = model.explain(new, table=others)
    np.testing.assert_allclose(why_here.base, mean_predicted(model, others), rtol=1e-9)
    np.testing.assert_allclose(why_here.base + why_here.values.sum(axis=1), why.prediction, atol=1e-10)
    et.save(model, tmp_path / "model.everytree")
    again = et.load(tmp_path / "model.everytree").explain(new)
    np.testing.assert_array_equal(again.base, why.base)
    np.testing.assert_array_equal(again.values, why.values)


def test_a_column_that_no_tree_splits_on_adds_nothing():
    rng = rng_for("a column without splits")
    X = np.column_stack([rng.normal(size=(120, 2)), np.zeros(120)])
    y = np.digitize(X[:, 0] + X[:, 1], [-0.5, 1.5])
    values = et.MetaBoostClassifier(20, n_chains=2, random_state=0).fit(X, y).explain(X[:20]).values
    np.testing.assert_array_equal(values[:, 2], 0.0)
    assert np.abs(values[:, :2]).max() > 0.1


def test_rows_that_are_added_move_the_start_of_explanations():
    X, score, new = mixed_table(150, "added")
    y = np.digitize(score, [0.5, 1.5])
    model = et.MetaForestClassifier(8, random_state=0).fit(X, y)
    assert model.forest_.sharpness != 1.0
    for _ in range(3):
        model.partial_fit(X[y == 2], y[y == 2], allow_overlap=True)
    why = model.explain(new)
    shares = np.bincount(np.append(y, np.repeat(2, 3 * (y == 2).sum()))) / (150 + 3 * (y == 2).sum())
    np.testing.assert_allclose(why.base, shares, atol=0.05)
    np.testing.assert_allclose(why.base + why.values.sum(axis=1), model.predict_proba(new), atol=1e-10)


def test_times_count_as_rows_where_columns_are_not_known():
    """However long they are: what is predicted without any column is the mean over the rows."""
    rng = rng_for("times count as rows")
    X = rng.permutation(np.arange(400) % 2)[:, None]
    time = rng.exponential(np.where(X[:, 0] == 1, 100.0, 1.0))
    model = et.MetaTreeRegressor(family="exponential", max_depth=1, random_state=0).fit(X, time)
    assert model.explain(X[:1]).base == pytest.approx(model.predict(X).mean(), rel=1e-9)


def test_shares_of_another_table():
    """The table of fit itself gives the same contributions; that of one site makes the site add nothing there."""
    X, score, new = mixed_table(100, "tables")
    for model in (
        et.MetaForestRegressor(5, random_state=0),
        et.MetaBoostRegressor(10, n_chains=2, **FAST_NUMBERS),
    ):
        model.fit(X, score)
        own = model.explain(new, scale="trees")
        np.testing.assert_allclose(model.explain(new, scale="trees", table=X).values, own.values, atol=1e-12)
        south = X[X["site"] == "south"]
        row = new.iloc[[4]].assign(site="south")
        np.testing.assert_allclose(model.explain(row, scale="trees", table=south).values[0, 2], 0.0, atol=1e-12)


@pytest.mark.parametrize("lines", [False, True])
def test_boosted_trees_keep_their_rows_in_files_and_pickles(tmp_path, lines):
    X, score, new = mixed_table(80, "kept")
    model = et.MetaBoostRegressor(8, n_chains=2, lines=lines, **FAST_NUMBERS).fit(X, score)
    why = model.explain(new).values
    et.save(model, tmp_path / "model.everytree")
    for copy in (pickle.loads(pickle.dumps(model)), et.load(tmp_path / "model.everytree")):
        np.testing.assert_array_equal(copy.explain(new).values, why)
    trees = model.model_.parts.lined.trees if lines else model.model_.parts.additive
    ends = [tree.route(model.schema_.encode(X)) for tree, _ in trees.metatrees()]
    counted = np.concatenate([mass_of_ends(tree, own) for (tree, _), own in zip(trees.metatrees(), ends, strict=True)])
    np.testing.assert_array_equal(trees.mass, counted)
    trees.mass = None
    with pytest.raises(ValueError, match="does not know how many rows"):
        model.explain(new)
    assert model.explain(new, table=X).values.shape == why.shape


def test_lines_are_slopes_times_columns():
    """A target that is a line in one column: its contributions are proportional to the column, the others' are 0."""
    rng = rng_for("lines")
    X = rng.normal(size=(500, 3))
    X[::7, 1] = np.nan
    model = et.MetaBoostRegressor(200, random_state=0, n_residual_trees=5).fit(X, 3.0 * X[:, 0])
    new = X[:50]
    why = model.explain(new, scale="trees")
    np.testing.assert_allclose(why.base + why.values.sum(axis=1), why.prediction, rtol=1e-10)
    assert np.corrcoef(why.values[:, 0], new[:, 0])[0, 1] > 0.99
    assert np.abs(why.values[:, 1:]).mean() < 0.05 * np.abs(why.values[:, 0]).mean()
    for table in (None, X[:200]):
        why = model.explain(new, table=table)
        np.testing.assert_allclose(why.base + why.values.sum(axis=1), model.predict(new), rtol=1e-10)
    assert why.base == pytest.approx(model.predict(X[:200]).mean(), rel=1e-12)
    assert model.feature_importances_.argmax() == 0


# ---- what can be given, and what is shown ----------------------------------------------------------------------------


def test_one_row_in_many_forms():
    X, score, _ = mixed_table(60, "one row")
    model = et.MetaTreeRegressor(random_state=0).fit(X, score)
    expected = model.explain(X.iloc[[7]]).values
    row = X.iloc[7]
    for form in (row, row.to_dict(), [row.to_dict()][0] | {"other": 1.0}):
        np.testing.assert_array_equal(model.explain(form).values, expected)
    nameless = et.MetaTreeRegressor(random_state=0).fit(X[["dose", "noise"]].to_numpy(), score)
    array = X[["dose", "noise"]].to_numpy()
    np.testing.assert_array_equal(nameless.explain(array[7]).values, nameless.explain(array[[7]]).values)
    assert nameless.explain(list(array[7])).columns == ("x0", "x1")


def test_an_explanation_reads_as_a_table():
    X, score, new = mixed_table(80, "read")
    model = et.MetaForestClassifier(5, random_state=0).fit(X, np.where(score > 0.5, "ill", "well"))
    why = model.explain(new)
    assert len(why) == len(new)
    text = repr(why)
    assert text.splitlines()[0].startswith("without any column")
    assert "P(well)" in text
    assert "... and 11 more rows" in text
    frame = why.to_frame(2, of="ill")
    assert frame["contribution"].abs().is_monotonic_decreasing
    assert frame.set_index("column").loc["dose", "value"] == "missing"
    np.testing.assert_allclose(frame["contribution"].sum() + why.base[0], model.predict_proba(new)[2, 0])
    assert len(why[3]) == 1
    np.testing.assert_array_equal(why[2:5].values, why.values[2:5])
    ax = why.plot(1)
    assert any("site = west" in label.get_text() for label in ax.get_yticklabels())


def test_explanations_for_the_pictures_of_shap():
    shap = pytest.importorskip("shap")
    X, score, new = mixed_table(60, "shap")
    for y in (score, np.digitize(score, [0.0, 1.0])):
        model = (et.MetaTreeRegressor if y.dtype.kind == "f" else et.MetaTreeClassifier)(random_state=0).fit(X, y)
        why = model.explain(new)
        found = why.to_shap()
        assert isinstance(found, shap.Explanation)
        np.testing.assert_allclose(found.base_values + found.values.sum(axis=1), why.prediction, atol=1e-12)
        assert list(found.feature_names) == list(why.columns)


def test_questions_about_explanations_that_have_no_answer():
    X, score, new = mixed_table(60, "refused")
    model = et.MetaTreeRegressor(random_state=0)
    with pytest.raises(ValueError, match="not fitted"):
        model.explain(new)
    why = model.fit(X, score).explain(new)
    with pytest.raises(ValueError, match="of is for classes"):
        why.of_row(0, of="ill")
    with pytest.raises(ValueError, match="row must be"):
        why.of_row(12)
    with pytest.raises(IndexError, match="row 99: there are 12 rows"):
        why[99]
    with pytest.raises(ValueError, match="lacks the columns"):
        model.explain({"age": 50.0})
    lines = et.MetaTreeRegressor(family="linear", max_depth=1, random_state=0).fit(X[["dose", "noise"]], score)
    with pytest.raises(ValueError, match="leaves that are lines"):
        lines.explain(X[["dose", "noise"]])
