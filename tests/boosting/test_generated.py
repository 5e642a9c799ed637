"""Columns that are computed from two others, where left-out rows gain by them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest

import everytree as et
from cases import rng_for
from everytree.boosting.audition import CodedTable, audition
from everytree.boosting.chains import BoostRule, Likelihood
from everytree.posterior.rows import Rows

QUICK: dict[str, Any] = {"max_iter": 60, "random_state": 0}
SMALL = {"n_estimators": 5, **QUICK}
KINDS = {
    "boosted classes": lambda **more: et.MetaBoostClassifier(**{**QUICK, **more}),
    "boosted numbers": lambda **more: et.MetaBoostRegressor(**{**QUICK, "n_residual_trees": 5, **more}),
    "ensemble of classes": lambda **more: et.MetaEnsembleClassifier(**{**SMALL, **more}),
    "ensemble of numbers": lambda **more: et.MetaEnsembleRegressor(**{**SMALL, "n_residual_trees": 5, **more}),
}


def table(n: int = 300, seed: int = 0) -> tuple[pd.DataFrame, dict[str, np.ndarray]]:
    """Columns of which a ratio decides, and targets of both kinds."""
    rng = rng_for("generated", n, seed)
    X = pd.DataFrame(rng.uniform(1.0, 3.0, (n, 3)).round(3), columns=["mass", "height", "age"])
    X["place"] = rng.choice(["here", "there"], n)
    X.loc[rng.random(n) < 0.05, "age"] = np.nan
    ratio = np.log(X["mass"] / X["height"]).to_numpy()
    return X, {"classes": (ratio > 0).astype(int), "numbers": np.sign(ratio) + 0.05 * rng.normal(size=n)}


def target_of(kind: str, y: dict[str, np.ndarray]) -> np.ndarray:
    return y["classes" if "classes" in kind else "numbers"]


def answers(model: Any, X: Any) -> np.ndarray:
    return np.asarray(model.predict_proba(X) if hasattr(model, "predict_proba") else model.predict(X))


@pytest.fixture(scope="module", params=KINDS)
def fitted(request):
    X, y = table()
    return request.param, KINDS[request.param]().fit(X, target_of(request.param, y))


# ---- where they help ------------------------------------------------------------------------------------------------


def test_a_ratio_that_decides_is_found_and_predicts_better(fitted):
    kind, model = fitted
    (X, y), (later, of_later) = table(), table(1000, 1)
    assert "mass / height" in model.schema_.feature_words
    assert model.n_features_in_ == 4
    assert list(model.feature_names_in_) == list(X.columns)
    without = KINDS[kind](generate=None).fit(X, target_of(kind, y))
    assert without.schema_.n_formulas == 0
    wanted = target_of(kind, of_later)
    assert model.score(later, wanted) > without.score(later, wanted)


def test_importances_and_contributions_are_those_of_the_raw_columns(fitted):
    _, model = fitted
    X, _ = table(20, 2)
    importances = model.feature_importances_
    assert importances.shape == (4,)
    np.testing.assert_allclose(importances.sum(), 1.0)
    assert importances[:2].sum() > 0.7
    found = model.explain(X)
    assert found.columns == tuple(X.columns)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base, found.prediction, rtol=0.0, atol=1e-9)


def test_files_pickles_and_effects_know_them(fitted, tmp_path):
    _, model = fitted
    X, _ = table(50, 3)
    X.loc[0, "mass"], X.loc[1, "height"] = np.nan, 0.0
    et.save(model, tmp_path / "model")
    for again in (et.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(answers(again, X), answers(model, X))
        assert again.schema_ == model.schema_
    effect = model.effect("mass", X)
    row = 7
    point = list(effect.points).index(X["mass"][row]) if X["mass"][row] in effect.points else 0
    at_point = answers(model, X.assign(mass=effect.points[point]))
    np.testing.assert_allclose(effect.mean[point], at_point.mean(axis=0), rtol=1e-9)


def test_a_page_counts_them(tmp_path):
    X, y = table()
    model = KINDS["boosted classes"]().fit(X, y["classes"])
    model.report(tmp_path / "page.html", X, target=y["classes"])
    assert f"{model.schema_.n_formulas} generated" in (tmp_path / "page.html").read_text()


# ---- where they do not ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_where_nothing_is_gained_the_model_is_the_one_without(kind):
    rng = rng_for("nothing generated", kind)
    X = rng.normal(size=(300, 4))
    y = X[:, 0] + rng.normal(size=300)
    y = (y > 0.0).astype(int) if "classes" in kind else y
    model, without = KINDS[kind]().fit(X, y), KINDS[kind](generate=None).fit(X, y)
    assert model.schema_ == without.schema_
    np.testing.assert_array_equal(answers(model, X), answers(without, X))


def test_noise_seldom_generates_columns():
    found = 0
    for seed in range(20):
        rng = rng_for("noise generates", seed)
        X = rng.normal(size=(300, 6))
        found += et.MetaBoostClassifier(max_iter=40, random_state=0).fit(X, rng.integers(0, 2, 300)).schema_.n_formulas
    assert found == 0


@pytest.mark.parametrize("X", [np.zeros((320, 3)), np.arange(320.0)[:, None], np.arange(598.0).reshape(299, 2)])
def test_constant_columns_one_column_and_few_rows_generate_nothing(X):
    model = et.MetaBoostRegressor(max_iter=20, n_residual_trees=3, random_state=0).fit(X, np.sin(np.arange(len(X))))
    assert model.schema_.n_formulas == 0


# ---- unusual tables -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), [(1e200, 1e200), (1e-200, 1e-200), (1e300, 1e-300), (-1e154, 1.0)])
def test_huge_and_tiny_columns(first, second):
    X, y = table()
    X = X.assign(mass=first * X["mass"], height=second * X["height"])
    model = KINDS["boosted classes"]().fit(X, y["classes"])
    assert np.isfinite(model.predict_proba(X)).all()
    later = X.assign(mass=1e308, height=0.0)
    assert np.isfinite(model.predict_proba(later)).all()


def test_columns_that_are_multiples_of_each_other():
    X, y = table()
    X = X.assign(twice=2.0 * X["mass"], minus=-X["mass"], same=X["height"])
    model = KINDS["boosted numbers"]().fit(X, y["numbers"])
    assert np.isfinite(model.predict(X)).all()


def test_categories_of_one_row_dates_booleans_and_numbers_in_text():
    X, y = table()
    X["one"] = [f"only {i}" for i in range(len(X))]
    X["when"] = pd.date_range("2020-01-01", periods=len(X))
    X["yes"] = X["mass"] > 2.0
    X["mass"] = X["mass"].map(str)
    with pytest.warns(UserWarning, match="one|mass"):
        model = KINDS["boosted classes"]().fit(X, y["classes"])
    words = set(model.schema_.feature_words) - set(X.columns)
    assert "mass / height" in words
    assert not any(name in word for word in words for name in ("when", "yes", "one", "place"))
    assert model.score(X, y["classes"]) > 0.95


def test_exposure_weights_and_groups():
    X, y = table(1000)
    rng = rng_for("generated with exposure")
    exposure = rng.uniform(0.5, 2.0, len(X))
    rate = np.where(y["classes"] == 1, 4.0, 0.5)
    counts = rng.poisson(exposure * rate)
    weight = np.where(np.arange(len(X)) % 4 == 0, 0.0, 1.0)
    options = {"exposure": exposure, "sample_weight": weight, "groups": np.arange(len(X)) // 2}
    model = et.MetaBoostRegressor(family="poisson", n_residual_trees=5, **QUICK).fit(X, counts, **options)
    assert "mass / height" in model.schema_.feature_words
    used = weight > 0.0
    some = {name: values[used] for name, values in options.items()}
    again = et.MetaBoostRegressor(family="poisson", n_residual_trees=5, **QUICK).fit(X[used], counts[used], **some)
    assert again.schema_ == model.schema_
    np.testing.assert_allclose(again.predict(X), model.predict(X), rtol=1e-12)


def test_a_long_table_is_auditioned_by_some_of_its_rows():
    X, y = table(3000)
    model = et.MetaBoostClassifier(max_iter=20, random_state=0).fit(X, y["classes"])
    assert "mass / height" in model.schema_.feature_words
    by_hand = (X["mass"] / X["height"]).to_numpy()
    ratio = model.schema_.columns[model.schema_.feature_words.index("mass / height")]
    np.testing.assert_array_equal(ratio.cuts, et.Schema.fit(by_hand[:, None]).columns[0].cuts)


# ---- the audition itself --------------------------------------------------------------------------------------------


def audited(more: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None) -> tuple[Any, list[np.ndarray]]:
    """What an audition says of more columns of codes, and the gains that it asked with."""
    n = len(y)
    codes = rng_for("codes").integers(0, 8, (n, 3)).astype(np.uint8)

    def coded(of: np.ndarray) -> CodedTable:
        k = of.shape[1]
        return CodedTable(of, np.full(k, 8, dtype=np.int32), np.zeros(k, dtype=bool), None)

    asked: list[np.ndarray] = []

    def widen(gains: Any) -> Any:
        asked.extend(gains)
        wide = np.concatenate([codes, more], axis=1)
        return coded(wide), [np.arange(3, wide.shape[1], dtype=np.int32) for _ in gains]

    rows = Rows(codes, y, weight)
    rule = BoostRule(max_steps=40)
    return audition(coded(codes), rows, Likelihood("logit", y.astype(float), None, 2), rule, (), widen, 1), asked


def test_columns_that_tell_the_target_pass_and_copies_and_noise_do_not():
    rng = rng_for("audition")
    y = rng.integers(0, 2, 300)
    found, asked = audited((7 * y[:, None]).astype(np.uint8), y)
    assert [gains.shape for gains in found] == [(4,)] * 5
    assert all(gains[3] > gains[:3].sum() for gains in found)
    assert len(asked) == 5
    noise = rng.integers(0, 8, (300, 2)).astype(np.uint8)
    assert audited(noise, y)[0] is None
    assert audited(np.zeros((300, 1), dtype=np.uint8), y)[0] is None


def test_rows_of_weight_have_the_say():
    rng = rng_for("audition with weights")
    y = rng.integers(0, 2, 400)
    tells = np.where(np.arange(400) % 4 == 0, y, 1 - y)  # right for a quarter of the rows, wrong for the others
    for weight, passes in ((np.where(np.arange(400) % 4 == 0, 1.0, 1e-6), True), (None, True)):
        found, _ = audited((7 * tells[:, None]).astype(np.uint8), y, weight)
        assert (found is not None) == passes
    mixed = np.where(np.arange(400) % 4 == 0, y, rng.integers(0, 2, 400)).astype(np.uint8)[:, None]
    assert audited(7 * mixed, y, np.where(np.arange(400) % 4 == 0, 1e-6, 1.0))[0] is None
