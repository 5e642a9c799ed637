"""Tables and targets that are odd but no errors: what the four estimators make of them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import is_classifier
from sklearn.metrics import log_loss

import everytree as et
from estimator_cases import ALL, FOUR, NUMBERS, answers, ids, of_prediction
from everytree.families.registry import NUMBER_FAMILIES

CLASSIFIERS, REGRESSORS = FOUR[::2], FOUR[1::2]
TIMES = [case for case in NUMBERS if case.target == "exponential"]
N = 60


@pytest.mark.parametrize("case", **ids(ALL))
def test_columns_that_say_nothing(case):
    X, y, row_data = case.draw(N)
    dull = X.copy()
    dull[:, 1], dull[:, 3] = 7.0, np.nan
    model = case.make().fit(dull, y, **row_data)
    assert model.schema_.n_codes[[1, 3]].tolist() == [1, 1]
    assert model.feature_importances_[[1, 3]].tolist() == [0.0, 0.0]
    other = np.column_stack([dull[:, 0], X[:, 0], dull[:, 2], X[:, 0]])  # what was constant may now be anything
    assert np.isfinite(answers(model, other)).all()
    if case.target != "linear":
        np.testing.assert_array_equal(answers(model, other), answers(model, dull))
    nothing = case.make().fit(np.full((N, 2), np.nan), y, **row_data)
    assert {post.tree.n_nodes for post in nothing.posteriors_} == {1}
    assert np.isfinite(answers(nothing, np.zeros((3, 2)))).all()


@pytest.mark.filterwarnings("ignore:all rows are censored")
@pytest.mark.parametrize("n", [1, 2, 3])
@pytest.mark.parametrize("case", **ids(ALL))
def test_hardly_any_rows(case, n):
    X, y, row_data = case.draw(n)
    model = case.make().fit(X, y, **row_data)
    X_new, _, row_data_new = case.draw(N)
    assert np.isfinite(answers(model, X_new, of_prediction(row_data_new))).all()
    if n == 1 and is_classifier(model):
        assert model.predict(X_new).tolist() == [y[0]] * N


@pytest.mark.parametrize("case", **ids(FOUR[::2]))
def test_a_single_class(case):
    X, _, _ = case.draw(N)
    model = case.make().fit(X, np.full(N, "only"))
    assert model.predict(X).tolist() == ["only"] * N
    assert model.classes_.tolist() == ["only"]
    np.testing.assert_array_equal(model.predict_proba(X), np.ones((N, 1)))


@pytest.mark.parametrize("case", **ids(CLASSIFIERS))
def test_a_single_class_of_several_declared(case):
    X, _, _ = case.draw(N)
    model = case.make().partial_fit(X, np.full(N, "b"), classes=["a", "b", "c"])
    probs = model.predict_proba(X)
    assert probs.shape == (N, 3)
    assert (probs[:, 1] > 0.9).all()
    assert np.isfinite(log_loss(np.full(N, "b"), probs, labels=["a", "b", "c"]))


def may_be_zero(support):
    """Whether all targets may be 0."""
    return bool(support.holds(np.zeros(1)).all()) and not support.needs_some_above


CONSTANTS = [
    pytest.param(case, value, id=f"{case} {value}")
    for case in NUMBERS
    for value in (0.0, 5.0)
    if value > 0.0 or may_be_zero(NUMBER_FAMILIES[case.target].support)
]


@pytest.mark.parametrize("case", **ids(TIMES))
def test_times_that_are_all_zero_are_refused(case):
    X, _, _ = case.draw(N)
    with pytest.raises(ValueError, match="y is 0 for every row"):
        case.make().fit(X, np.zeros(N))


@pytest.mark.filterwarnings("ignore:the leaves favour the shape")
@pytest.mark.parametrize(("case", "value"), CONSTANTS)
def test_constant_targets(case, value):
    X, _, row_data = case.draw(N)
    model = case.make().fit(X, np.full(N, value))
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, value, rtol=0.2, atol=0.1)
    assert np.isfinite(std).all()
    assert row_data.keys() <= {"exposure", "censored"}


@pytest.mark.parametrize("case", **ids(TIMES))
def test_no_event_at_all(case):
    X, y, _ = case.draw(N)
    with pytest.warns(UserWarning, match="all rows are censored"):
        model = case.make().fit(X, y, censored=np.ones(N))
    assert (model.predict(X) > y.sum()).all(), "half an event in all the time"


@pytest.mark.parametrize(
    ("prior", "split_prior"), [({"shape": 0.5}, 0.8), ({"shape": 0.5}, 1.0), ({"shape": 1.5}, 1.0)]
)
@pytest.mark.parametrize("case", **ids(TIMES))
def test_moments_may_be_infinite(case, prior, split_prior):
    X, y, _ = case.draw(200)
    censored = np.arange(200) % 5 > 0
    model = case.make(prior=prior, split_prior=split_prior).fit(X, y, censored=censored)
    mean, std = model.predict(X, return_std=True)
    dist = model.predictive(X)
    np.testing.assert_allclose(mean, dist.mean(), rtol=1e-6)
    np.testing.assert_allclose(std, dist.std(), rtol=1e-6)


@pytest.mark.parametrize("case", **ids(CLASSIFIERS))
@pytest.mark.parametrize(
    "labels",
    [
        lambda y: y.tolist(),
        lambda y: pd.Series(y, dtype="category"),
        lambda y: pl.Series(y.tolist()),
        lambda y: pl.Series(y.astype(str).tolist(), dtype=pl.Categorical),
        lambda y: pa.chunked_array([y.tolist()]),
        lambda y: y.astype(str).astype(object),
        lambda y: pa.array(y.astype(str).tolist()),
    ],
    ids=["list", "category", "polars", "polars categorical", "arrow in chunks", "objects", "arrow"],
)
def test_labels_of_every_library(case, labels):
    X, y, _ = case.draw(N)
    model = case.make().fit(X, labels(y))
    np.testing.assert_array_equal(model.predict_proba(X), case.make().fit(X, y).predict_proba(X))
    assert set(model.predict(X).astype(str)) <= set(y.astype(str))


@pytest.mark.parametrize("case", **ids(CLASSIFIERS))
def test_labels_of_every_type(case):
    X, _, _ = case.draw(N)
    expected = case.make().fit(X, np.arange(N) % 2).predict_proba(X)
    for pair in ([False, True], [-3, 7], [0.0, 2.0], ["no", "yes"]):
        model = case.make().fit(X, np.array(pair)[np.arange(N) % 2])
        assert model.classes_.tolist() == pair
        np.testing.assert_array_equal(model.predict_proba(X), expected)
        assert model.predict(X).dtype == model.classes_.dtype


@pytest.mark.parametrize("case", **ids(REGRESSORS))
def test_text_that_says_numbers_will_do_as_a_target(case):
    X, y, _ = case.draw(N)
    np.testing.assert_array_equal(case.make().fit(X, y.astype(str)).predict(X), case.make().fit(X, y).predict(X))


def test_more_ordered_categories_than_codes():
    names = [str(k) for k in range(65535)]
    table = pd.DataFrame({"name": pd.Categorical(names, names, ordered=True)})
    with pytest.raises(ValueError, match="column 'name' has 65535 categories, but at most 65534 are possible"):
        et.MetaTreeClassifier().fit(table, np.arange(len(table)) % 2)


def test_more_texts_than_codes():
    n = 70_000
    table = pd.DataFrame({"name": [f"n{k % n}" for k in range(2 * n)], "x": np.arange(2 * n) % 7})
    y = (np.arange(2 * n) % n) % 2
    model = et.MetaTreeClassifier(random_state=0, max_depth=3).fit(table, y)
    assert len(model.schema_.columns[0].categories) == n
    assert model.score(table, y) > 0.95
    new = model.predict_proba(pd.DataFrame({"name": ["none of them"], "x": [3]}))
    np.testing.assert_allclose(new.sum(axis=1), 1.0)


@pytest.mark.parametrize("case", **ids(FOUR))
def test_more_categories_than_one_byte_holds(case):
    n = 6000
    table = pd.DataFrame({"name": [f"name {k % 300}" for k in range(n)]})
    y = (np.arange(n) % 300 > 100).astype(int)
    model = case.make(max_depth=None).fit(table, y)
    assert model.schema_.columns[0].pooled
    assert model.schema_.dtype == np.uint8
    assert model.score(table, y) > 0.5
    assert np.isfinite(answers(model, pd.DataFrame({"name": ["unheard of", None]}))).all()


@pytest.mark.parametrize(
    ("frame", "names"),
    [
        (lambda table: table, list("abcd")),
        (pl.from_pandas, list("abcd")),
        (pa.Table.from_pandas, list("abcd")),
        (lambda table: table.set_axis(range(4), axis=1), None),
        (lambda table: table.to_numpy(), None),
    ],
    ids=["pandas", "polars", "pyarrow", "pandas with numbers for names", "numpy"],
)
@pytest.mark.parametrize("case", **ids(FOUR))
def test_names_of_columns(case, frame, names):
    X, y, _ = case.draw(N)
    model = case.make().fit(frame(pd.DataFrame(X, columns=list("abcd"))), y)
    assert model.n_features_in_ == 4
    found = getattr(model, "feature_names_in_", None)
    assert (None if found is None else found.tolist()) == names


# ---- the units of targets -------------------------------------------------------------------------------------------

LARGE, TINY = 2.0**20, 2.0**-40  # scaling by powers of two rounds nothing


@pytest.mark.parametrize("scale", [LARGE, TINY])
@pytest.mark.parametrize("case", **ids([case for case in NUMBERS if case.target in ("normal", "linear")]))
def test_measurements_in_other_units(case, scale):
    model, (X, y, _) = case.fitted()
    scaled = case.make().fit(X, scale * y)
    np.testing.assert_allclose(answers(scaled, X) / scale, answers(model, X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scale", [LARGE, TINY])
@pytest.mark.parametrize("case", **ids(TIMES))
def test_times_in_other_units(case, scale):
    model, (X, y, row_data) = case.fitted()
    scaled = case.make().fit(X, scale * y, **row_data)
    np.testing.assert_allclose(answers(scaled, X) / scale, answers(model, X), rtol=1e-6)


@pytest.mark.parametrize("scale", [TINY, LARGE**2])
@pytest.mark.parametrize("case", **ids([case for case in NUMBERS if case.target == "poisson"]))
def test_exposures_in_other_units(case, scale):
    model, (X, y, row_data) = case.fitted()
    exposure = scale * row_data["exposure"]
    scaled = case.make().fit(X, y, exposure=exposure)
    np.testing.assert_allclose(answers(scaled, X, {"exposure": exposure}), answers(model, X, row_data), rtol=1e-6)


@pytest.mark.parametrize(("family", "shift"), [("normal", 1e3), ("normal", -1e5), ("normal", 1e8), ("linear", 1e3)])
def test_measurements_far_from_zero(family, shift):
    X, y, _ = NUMBERS[0].draw(150)
    near = et.MetaTreeRegressor(family=family, random_state=0).fit(X, y)
    far = et.MetaTreeRegressor(family=family, random_state=0).fit(X, y + shift)
    np.testing.assert_allclose(answers(far, X) - [shift, 0.0], answers(near, X), rtol=1e-4, atol=1e-4)


def test_targets_whose_squares_are_beyond_the_range_of_variances():
    X = np.arange(40.0)[:, None]
    with pytest.raises(ValueError, match=r"y\[2\] is 2e\+28, but must be at most 1e\+28 in size"):
        et.MetaForestRegressor(3).fit(X, 1e28 * X[:, 0])
    with pytest.warns(UserWarning, match="multiply it by a constant"):
        et.MetaForestRegressor(3).fit(X, 1e-28 * X[:, 0])
    usual, large = (et.MetaForestRegressor(5, random_state=0).fit(X, unit * X[:, 0]) for unit in (1.0, 1e26))
    np.testing.assert_allclose(1e26 * usual.predict(X), large.predict(X), rtol=1e-9)
