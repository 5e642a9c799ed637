"""Models that several threads use at once, with and without the GIL."""

from __future__ import annotations

import pickle
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import everytree as et
from cases import rng_for
from threads import together

N_THREADS = 6
MODELS: dict[str, Callable[[], Any]] = {
    "forest": lambda: et.MetaForestClassifier(n_estimators=8, random_state=0),
    "forest of numbers": lambda: et.MetaForestRegressor(n_estimators=8, random_state=0),
    "tree": lambda: et.MetaTreeClassifier(random_state=0),
    "exact": lambda: et.ExactTreeClassifier(max_depth=2),
    "boosted": lambda: et.MetaBoostRegressor(max_iter=10, random_state=0, n_residual_trees=8),
}
models = pytest.mark.parametrize("kind", MODELS)


def table(kind: str, n_rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    rng = rng_for("shared models", kind)
    X = rng.normal(size=(n_rows, 4)).round(2)
    signal = X[:, 0] + (X[:, 1] > 0.0) + 0.3 * rng.normal(size=n_rows)
    return X, signal if "predict_proba" not in dir(MODELS[kind]()) else signal > 0.5


def answer(model: Any, X: np.ndarray) -> np.ndarray:
    """All that a model says of rows, one row of numbers each."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    dist = model.predictive(X)
    return np.column_stack([model.predict(X), dist.quantile(0.1), dist.log_prob(0.5)])


@models
def test_a_model_answers_many_threads_from_its_first_use_on(kind):
    X, y = table(kind)
    fitted = MODELS[kind]().fit(X, y)
    expected = answer(fitted, X)
    fresh = pickle.loads(pickle.dumps(fitted))  # nothing that is computed on first use is there yet

    def ask() -> None:
        for _ in range(5):
            np.testing.assert_array_equal(answer(fresh, X), expected)

    together(*[ask] * N_THREADS)


def test_threads_that_fit_models_do_not_disturb_each_other():
    tables = {kind: table(kind) for kind in MODELS}
    expected = {kind: answer(MODELS[kind]().fit(*tables[kind]), tables[kind][0]) for kind in MODELS}

    def fit(kind: str) -> None:
        np.testing.assert_array_equal(answer(MODELS[kind]().fit(*tables[kind]), tables[kind][0]), expected[kind])

    together(*(lambda kind=kind: fit(kind) for kind in [*MODELS, "forest"]))


def test_rows_of_many_threads_arrive_while_others_predict():
    X, y = table("forest", 1_200)
    start = et.MetaForestClassifier(n_estimators=4, random_state=0).fit(X[:200], y[:200]).blank()
    parts = np.array_split(np.arange(len(X)), 40)
    expected, shared = pickle.loads(pickle.dumps(start)).partial_fit(X, y), start

    def learn(mine: list[np.ndarray]) -> None:
        for rows in mine:
            shared.partial_fit(X[rows], y[rows])

    def ask() -> None:
        for _ in range(40):
            np.testing.assert_allclose(shared.predict_proba(X[:50]).sum(axis=1), 1.0, rtol=1e-12)

    together(*(lambda i=i: learn(parts[i::4]) for i in range(4)), ask, ask)
    for mine, all_at_once in zip(shared.forest_.posteriors, expected.forest_.posteriors, strict=True):
        assert mine.n_rows == len(X)
        np.testing.assert_allclose(mine.statistics, all_at_once.statistics, rtol=1e-12)
    np.testing.assert_allclose(shared.predict_proba(X), expected.predict_proba(X), rtol=1e-9)


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="this Python always has the GIL")
def test_the_kernels_do_not_bring_the_gil_back():
    code = "import sys, everytree; sys.exit(sys._is_gil_enabled())"
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
