"""Effects of columns: the average of the model over rows that all have the same value in one column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import everytree as et
from cases import rng_for


def table(n=90):
    rng = rng_for("effects", n)
    X = pd.DataFrame(
        {
            "age": rng.normal(50, 10, n),
            "site": rng.choice(["north", "south", "east"], n),
            "day": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 300, n), unit="D"),
            "smokes": rng.random(n) < 0.4,
            "same": np.ones(n),
            "nothing": np.full(n, np.nan),
        }
    )
    X.loc[rng.random(n) < 0.15, "age"] = np.nan
    score = 0.1 * (X["age"].fillna(60) - 50) - (X["site"] == "south") + X["smokes"] + rng.normal(0, 0.4, n)
    return X, score.to_numpy()


def slow_effect(model, X, column, value, predict):
    """Every row with this value, predicted and averaged."""
    changed = X.copy()
    changed[column] = pd.Series([value] * len(X), dtype=X[column].dtype, index=X.index)
    return predict(changed)


@pytest.mark.parametrize("column", ["age", "site", "day", "smokes"])
def test_an_effect_is_the_average_over_the_rows(column):
    X, score = table()
    model = et.MetaForestRegressor(6, random_state=0).fit(X, score)
    effect = model.effect(column, X, spread=0.5, max_points=12)
    assert effect.n_rows == len(X)
    assert np.isclose(effect.share.sum(), 1.0)
    for place, point in enumerate(effect.points):
        value = {None: np.nan if column == "age" else None}.get(point, point)
        said = slow_effect(model, X, column, value, model.predict)
        assert np.isclose(effect.mean[place], said.mean())
        np.testing.assert_allclose([effect.low[place], effect.high[place]], np.quantile(said, [0.25, 0.75]))
    known = [point for point in effect.points if point is not None]
    if column == "age":
        assert known == sorted(known)
        assert effect.points[-1] is None
        assert len(known) <= 12
        assert {known[0], known[-1]} <= set(X["age"])


def test_classes_and_every_estimator_have_effects():
    X, score = table(60)
    y = np.where(score > 0, "ill", "well")
    for model in (
        et.MetaTreeClassifier(random_state=0),
        et.MetaBoostClassifier(5, n_chains=2, random_state=0),
        et.ExactTreeClassifier(max_depth=1),
    ):
        effect = model.fit(X, y).effect("site", X)
        assert effect.classes == ("ill", "well")
        south = effect.points.index("south")
        said = slow_effect(model, X, "site", "south", model.predict_proba)
        np.testing.assert_allclose(effect.mean[south], said.mean(axis=0))
    lines = et.MetaTreeRegressor(family="linear", max_depth=1, random_state=0).fit(X[["age", "same"]], score)
    effect = lines.effect(0, X[["age", "same"]], max_points=3)
    said = slow_effect(lines, X[["age", "same"]], "age", effect.points[1], lines.predict)
    assert np.isclose(effect.mean[1], said.mean())


def test_columns_that_cannot_have_an_effect():
    """A constant column has one point; one of missing values only, the missing one."""
    X, score = table()
    model = et.MetaForestRegressor(4, random_state=0).fit(X, score)
    constant, missing = model.effect("same", X), model.effect("nothing", X)
    assert constant.points == (1.0,)
    assert missing.points == (None,)
    np.testing.assert_allclose(constant.mean, model.predict(X).mean())
    np.testing.assert_allclose(missing.mean, model.predict(X).mean())
    for effect in (constant, missing):
        effect.plot()
    one = model.effect("age", X.iloc[[3]])
    assert one.n_rows == 1
    one.plot()


def test_effects_that_are_refused():
    X, score = table()
    model = et.MetaTreeRegressor(random_state=0)
    with pytest.raises(ValueError, match="not fitted"):
        model.effect("age", X)
    model.fit(X, score)
    with pytest.raises(ValueError, match=r"column is 'agee', but the columns are \['age', 'site'"):
        model.effect("agee", X)
    with pytest.raises(ValueError, match="column must be a name or a number from 0 to 5, but is 6"):
        model.plot_effect(6, X)
    with pytest.raises(ValueError, match="spread must be between 0 and 1"):
        model.effect("age", X, spread=1.0)
    with pytest.raises(ValueError, match="of is for classes"):
        model.plot_effect("age", X, of="ill")
    with pytest.raises(ValueError, match="lacks the columns"):
        model.effect("age", X[["age"]])


def test_a_long_table_is_sampled_and_many_numbers_are_joined():
    X, score = table(200)
    model = et.MetaTreeRegressor(random_state=0).fit(X, score)
    some = model.effect("age", X, max_rows=50, max_points=6)
    assert some.n_rows == 50
    assert len([point for point in some.points if point is not None]) <= 6
    again = model.effect("age", X, max_rows=50, max_points=6)
    np.testing.assert_array_equal(some.mean, again.mean)
    assert model.effect("age", X, max_rows=None).n_rows == 200


@pytest.mark.parametrize("column", ["age", "site", "day", "smokes"])
def test_pictures_of_effects(column):
    X, score = table()
    model = et.MetaTreeClassifier(max_depth=2, random_state=0).fit(X, np.digitize(score, [-0.5, 0.5]))
    ax = model.plot_effect(column, X)
    assert ax.get_xlabel() == column
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["P(0)", "P(1)", "P(2)"]
    ax = model.plot_effect(column, X, of=1)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["P(1)", "80 % of the 90 rows"]


@pytest.mark.parametrize("column", ["age", "site", "day", "smokes", "same", "nothing"])
def test_predictions_of_a_model_along_a_column(column):
    X, score = table()
    numbers = et.MetaForestRegressor(4, random_state=0).fit(X, score)
    row = X.iloc[5]
    ax = et.plot_predictive(numbers, column, at=row, coverage=0.5)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["mean", "50 % interval"]
    if column == "age":
        drawn = ax.get_lines()[0]
        places, means = drawn.get_data()
        np.testing.assert_allclose(means[7], numbers.predict(pd.DataFrame([row.to_dict() | {"age": places[7]}]))[0])
    classes = et.MetaBoostClassifier(4, n_chains=2, random_state=0).fit(X, score > 0)
    ax = et.plot_predictive(classes, column)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["P(False)", "P(True)"]


def test_predictions_along_a_column_that_are_refused():
    X, score = table(40)
    model = et.MetaTreeRegressor(random_state=0).fit(X, score)
    with pytest.raises(ValueError, match="at must be one row, but has 2"):
        et.plot_predictive(model, "age", at=X.iloc[:2])
    with pytest.raises(TypeError, match=r"is for estimators; pass model.snapshot\(\)"):
        et.plot_predictive(et.OnlineForestRegressor(), "age")
    with pytest.raises(ValueError, match=r"column is 'bmi', but the columns are \['age'"):
        et.plot_predictive(model, "bmi")
