"""Encoding, counting and prediction on several threads: the same bits for any number, from any thread or process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pytest

import everytree as et
from cases import rng_for
from estimator_cases import FOUR, Case, answers, ids, state
from everytree.posterior.counts import ForestCounts
from threads import ignore_fork_warning, in_fork, together

estimators = pytest.mark.parametrize("case", **ids(FOUR))


def large(what: str, n: int = 60_000) -> np.ndarray:
    """Numbers of several shapes, with missing values and ties."""
    rng = rng_for("threads", what)
    X = rng.normal(size=(n, 4))
    X[:, 1] = np.round(X[:, 1], 1)
    X[:, 2] = rng.standard_cauchy(n)
    X[rng.random(n) < 0.1, 3] = np.nan
    return X


def fitted(case: Case, **options: Any) -> Any:
    return case.fitted(300, "threads", **options)[0]


ANSWERS: dict[str, Callable[[Any, np.ndarray], np.ndarray]] = {
    "encode": lambda model, X: model.schema_.encode(X, n_jobs=model.n_jobs),
    "predict": lambda model, X: model.predict(X),
    "all answers": answers,
    "ends": lambda model, X: model.forest_.ends(model.schema_.encode(X), n_jobs=model.n_jobs),
    "quantiles": lambda model, X: model.predictive(X[:2000]).cdf(np.zeros(2000)),
}


@pytest.mark.parametrize("what", ANSWERS)
@estimators
def test_the_same_bits_for_any_number_of_threads(case, what):
    X, model = large("bits"), fitted(case)
    expected = ANSWERS[what](model, X).tobytes()
    for n_jobs in (1, 2, 7, -1):
        assert ANSWERS[what](model.set_params(n_jobs=n_jobs), X).tobytes() == expected


@estimators
def test_many_python_threads_ask_one_model(case):
    X, model = large("many"), fitted(case, n_jobs=2)
    expected = answers(model, X)

    def ask() -> None:
        for _ in range(3):
            np.testing.assert_array_equal(answers(model, X), expected)

    together(*[ask] * 4)


def test_rows_counted_by_many_python_threads_all_arrive():
    model = fitted(FOUR[0])
    codes = model.schema_.encode(large("count"))
    y = rng_for("count").integers(0, 2, len(codes))
    expected = ForestCounts(model.forest_).update(codes, y)
    counts = ForestCounts(model.forest_)

    def count(part: int) -> None:
        for rows in np.array_split(np.arange(len(y))[part::4], 10):
            counts.update(codes[rows], y[rows], n_jobs=1 + part % 2)

    together(*(lambda part=part: count(part) for part in range(4)))
    np.testing.assert_array_equal(counts.n_rows, expected.n_rows)
    for mine, other in zip(counts.statistics, expected.statistics, strict=True):
        np.testing.assert_array_equal(mine, other)


def batches(case: Case) -> list[tuple[np.ndarray, np.ndarray]]:
    X, y, _ = case.draw(400, "threads")
    return [(X[i : i + 70], y[i : i + 70]) for i in range(0, 400, 70)]


@estimators
def test_fits_from_batches_run_side_by_side(case):
    expected = state(case.make().fit_batches(batches(case), sample_rows=100))

    def fit() -> None:
        assert state(case.make(n_jobs=2).fit_batches(batches(case), sample_rows=100)) == expected

    together(fit, fit, fit)


@ignore_fork_warning
@estimators
def test_tables_are_read_and_predicted_after_a_fork(case):
    X, model = large("fork"), fitted(case, n_jobs=2)
    expected = answers(model, X).tobytes()
    assert in_fork(lambda: answers(model, X).tobytes()) == expected


@ignore_fork_warning
def test_a_fit_from_batches_after_a_fork():
    def fit() -> bytes:
        return b"".join(state(FOUR[0].make(n_jobs=2).fit_batches(batches(FOUR[0]), sample_rows=100)))

    expected = fit()
    assert in_fork(fit) == expected


def _asked(model: Any, X: np.ndarray) -> np.ndarray:
    return answers(model, X)


@pytest.mark.long
@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_joblib_may_be_around_it(backend):
    X, model = large("joblib", 20_000), fitted(FOUR[0], n_jobs=2)
    expected = answers(model, X)
    parts = joblib.Parallel(n_jobs=2, backend=backend)(joblib.delayed(_asked)(model, part) for part in np.split(X, 4))
    np.testing.assert_array_equal(np.concatenate(parts), expected)


@pytest.mark.parametrize("kind", ["f4", "f8", "i4"])
@pytest.mark.parametrize("max_bins", [2, 3, 20, 255, 4096])
@pytest.mark.parametrize("shape", ["normal", "lognormal", "cauchy", "ties", "huge", "constant"])
def test_codes_are_the_numbers_of_cuts_below(shape, max_bins, kind):
    """Whatever shape the numbers have; where they equal a cut, too."""
    rng = rng_for(shape, max_bins, kind)
    draw = {
        "normal": rng.normal(size=5000), "lognormal": rng.lognormal(size=5000), "cauchy": rng.standard_cauchy(5000),
        "ties": rng.integers(0, 30, 5000), "huge": rng.normal(size=5000) * 1e307, "constant": np.ones(5000),
    }[shape]  # fmt: skip
    limit = {"f4": 3e38, "f8": 1.7e308, "i4": 2e9}[kind]
    x = np.clip(draw * (1000 if kind == "i4" and shape != "huge" else 1), -limit, limit).astype(kind)
    schema = et.Schema.fit(x[:, None], max_bins=max_bins)
    cuts = schema.columns[0].cuts
    near = np.concatenate([cuts, np.nextafter(cuts, np.inf), np.nextafter(cuts, -np.inf), [-limit, limit]])
    for values in (x.astype(np.float64), near):
        expected = np.searchsorted(cuts, values, side="left")
        np.testing.assert_array_equal(schema.encode(values[:, None])[:, 0], expected)
