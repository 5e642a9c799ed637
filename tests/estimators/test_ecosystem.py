"""Tools that take scikit-learn's estimators take these: MLflow stores them, Optuna tunes them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score

import everytree as et

X, y = load_iris(return_X_y=True)


def test_mlflow_stores_and_restores_an_estimator(tmp_path):
    sklearn_models = pytest.importorskip("mlflow.sklearn")
    model = et.MetaForestClassifier(5, random_state=0).fit(X, y)
    # Its own format, skops, lists trusted types; pickles are the one that holds any estimator.
    sklearn_models.save_model(model, tmp_path / "model", serialization_format="cloudpickle")
    restored = sklearn_models.load_model(str(tmp_path / "model"))
    np.testing.assert_array_equal(restored.predict_proba(X), model.predict_proba(X))


def test_optuna_tunes_an_estimator():
    optuna = pytest.importorskip("optuna")
    optuna.logging.set_verbosity(optuna.logging.WARNING)

    def score(trial) -> float:
        model = et.MetaTreeClassifier(max_depth=trial.suggest_int("max_depth", 1, 4), random_state=0)
        return cross_val_score(model, X, y, cv=3, scoring="neg_log_loss").mean()

    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(score, n_trials=4)
    best = et.MetaTreeClassifier(**study.best_params, random_state=0)
    assert cross_val_score(best, X, y, cv=3, scoring="neg_log_loss").mean() == pytest.approx(study.best_value)
