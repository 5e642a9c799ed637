"""A forest and boosted trees together: what is mixed, and by which weight."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import everytree as et
from estimator_cases import Case, answers, ids
from everytree.fitting.structures import ensemble
from everytree.fitting.structures.ensemble import PRIOR_ROWS, best_weight
from everytree.fitting.structures.origin import GrownTrees
from everytree.posterior.rows import Rows
from everytree.structure.grown import Grown

SMALL: dict[str, Any] = {"n_estimators": 6, "max_iter": 30}
NUMBERS: dict[str, Any] = {**SMALL, "n_residual_trees": 8}
CASES = [
    *(Case(et.MetaEnsembleClassifier, target, SMALL) for target in ("two classes", "six classes")),
    *(
        Case(et.MetaEnsembleRegressor, family, {"family": family, **NUMBERS})
        for family in ("normal", "lognormal", "poisson", "exponential")
    ),
]


@pytest.mark.parametrize("case", **ids(CASES))
def test_threads_files_and_pickles_predict_the_same(case, tmp_path):
    model, (X, y, row_data) = case.fitted()
    et.save(model, tmp_path / "model")
    threads = clone(model).set_params(n_jobs=3).fit(X, y, **row_data)
    for other in (et.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), threads):
        np.testing.assert_array_equal(answers(other, X, row_data), answers(model, X, row_data))
        assert other.boost_weight_ == model.boost_weight_


@pytest.mark.parametrize("case", **ids(CASES[:2]))
def test_probabilities_are_mixed_and_sharpened(case):
    model, (X, _, _) = case.fitted()
    codes, mixed = model.schema_.encode(X), model.model_
    weight = model.boost_weight_
    probs = mixed.forest.probs(codes) ** (1.0 - weight) * mixed.boosted.probs(codes) ** weight
    literal = probs**mixed.sharpness / (probs**mixed.sharpness).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), literal, rtol=1e-12)
    np.testing.assert_allclose(model.predictive(X).probs(), literal, rtol=1e-12)


@pytest.mark.parametrize("case", **ids([CASES[2]]))
def test_centres_are_mixed(case):
    model, (X, _, _) = case.fitted()
    codes, centres, weight = model.schema_.encode(X), model.model_.centres, model.boost_weight_
    assert centres.lined is not None
    boosted = (centres.additive.scores(codes) + centres.lined.scores(codes))[:, 0]
    literal = (1.0 - weight) * centres.forest.moments(codes)[0] + weight * boosted
    np.testing.assert_allclose(centres.scores(codes)[:, 0], literal, rtol=1e-12)


def test_the_weight_has_the_smallest_loss_with_its_prior():
    rng = np.random.default_rng(0)
    first, second = rng.uniform(0.1, 0.9, 200), rng.uniform(0.2, 0.9, 200)

    def loss(weight: float) -> float:
        return -float(np.log((1.0 - weight) * first + weight * second).sum())

    grid = np.arange(1, 10_000) / 10_000
    penalised = [loss(w) - 0.5 * PRIOR_ROWS * (np.log(w) + np.log(1.0 - w)) for w in grid]
    assert abs(best_weight(loss) - grid[np.argmin(penalised)]) < 2e-3
    assert abs(best_weight(lambda weight: 0.0) - 0.5) < 1e-3


@pytest.mark.parametrize("classes", [True, False])
def test_trees_predict_rows_that_they_were_not_grown_on_without_their_folds(classes):
    """The mean over the trees of their posteriors, each updated by the rows of its sample that are not in the fold."""
    rng = np.random.default_rng(3)
    X, fold = rng.normal(size=(60, 3)), np.arange(60) % 4
    y = (X[:, 0] > 0.0).astype(int) if classes else X[:, 0] + rng.normal(size=60)
    model = (et.MetaForestClassifier if classes else et.MetaForestRegressor)(8, random_state=0).fit(X, y)
    forest, rows = model.model_.parts.averaged, Rows(model.schema_.encode(X), y)
    trees = [Grown(post.tree, rng.random(60) < 0.7) for post in forest.posteriors]
    grown = GrownTrees(rows, trees, trees, "uniform", False, rng)

    def answer(one: Any, codes: Any) -> Any:
        return one.probs(codes) if classes else one.moments(codes)[0]

    found = ensemble.by_other_trees(grown, forest, fold, answer, 2)
    for i in range(60):
        said = []
        for tree, post in zip(trees, forest.posteriors, strict=True):
            if tree.in_bag[i]:
                continue
            some = tree.in_bag & (fold != fold[i])
            own = et.Posterior(tree.tree, post.family, post.split_prior_argument).update(rows.codes[some], y[some])
            said.append(
                (
                    own.predictive(rows.codes[i : i + 1]).probs
                    if classes
                    else own.predictive(rows.codes[i : i + 1]).mean
                )()[0]
            )
        np.testing.assert_allclose(found[i], np.mean(said, axis=0) if said else np.nan, rtol=1e-10)
    assert ensemble.by_other_trees(grown, forest, np.zeros(60, int), answer, 1) is None


@pytest.mark.parametrize("case", **ids(CASES))
def test_on_large_tables_one_fold_says_how_both_are_mixed(case, tmp_path, monkeypatch):
    """Each half of its rows is mixed by a weight of the other half, and only they are scored."""
    monkeypatch.setattr(ensemble, "ONE_FOLD_ROWS", 100)
    model, (X, y, row_data) = case.fitted()
    n_rows, fold = len(y), len(y) // 5
    assert n_rows > ensemble.ONE_FOLD_ROWS
    assert model.model_.n_rows == n_rows
    assert 0.5 * fold < model.unseen_.n_rows <= fold + 5
    et.save(model, tmp_path / "model")
    np.testing.assert_array_equal(answers(et.load(tmp_path / "model"), X, row_data), answers(model, X, row_data))


@pytest.mark.parametrize("case", **ids(CASES))
def test_importances_are_shares(case):
    model, _ = case.fitted()
    assert model.feature_importances_.shape == (4,)
    np.testing.assert_allclose(model.feature_importances_.sum(), 1.0)
    assert model.feature_importances_[0] > 1.5 * model.feature_importances_[3]


@pytest.mark.parametrize("n_rows", [1, 2, 5])
@pytest.mark.filterwarnings("ignore:.* rows have no out-of-bag prediction")
def test_a_few_rows(n_rows):
    rng = np.random.default_rng(n_rows)
    X = rng.normal(size=(n_rows, 2))
    probs = et.MetaEnsembleClassifier(**SMALL, random_state=0).fit(X, np.arange(n_rows) % 2).predict_proba(X)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0)
    mean = et.MetaEnsembleRegressor(**NUMBERS, random_state=0).fit(X, rng.normal(size=n_rows)).predict(X)
    assert np.isfinite(mean).all()


def test_one_class_and_a_constant_target():
    X = np.arange(20.0)[:, None]
    np.testing.assert_array_equal(et.MetaEnsembleClassifier(**SMALL).fit(X, ["a"] * 20).predict_proba(X), 1.0)
    np.testing.assert_allclose(et.MetaEnsembleRegressor(**NUMBERS).fit(X, np.full(20, 3.0)).predict(X), 3.0)


@pytest.mark.parametrize(("options", "message"), [
    ({"n_estimators": 0}, "n_estimators"), ({"max_iter": 0}, "max_iter"), ({"learning_rate": -1.0}, "learning_rate"),
    ({"family": "linear"}, "family"),
])  # fmt: skip
def test_parameters_that_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        et.MetaEnsembleRegressor(**options).fit(np.zeros((9, 1)), np.arange(9.0))
