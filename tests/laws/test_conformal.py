"""Conformal prediction: every estimator and family keeps the promise of its theorem, however poor the model is."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.base import is_classifier
from test_coverage import SIGNAL

import everytree as et
from cases import rng_for
from every_estimator import estimators, marked, small, with_families

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

KINDS = estimators()
CASES = with_families(KINDS, "classes")
COVERAGE, N_KNOWN, N_NEW, TIMES = 0.9, 49, 100, 40
LEAST = COVERAGE - 3.0 * np.sqrt(0.09 / (N_KNOWN + 2) / TIMES + 0.09 / (N_NEW * TIMES))


def rows(family: str, rng: np.random.Generator, n: int) -> tuple[NDArray[Any], NDArray[Any]]:
    X = rng.normal(size=(n, 3))
    if family == "classes":
        return X, np.array(["a", "b", "c"])[(X[:, 0] + rng.normal(size=n) > 0.0) + (X[:, 1] > 1.0).astype(int)]
    return X, SIGNAL[family](rng, np.sign(X[:, 0]))


def are_inside(model: Any, X: NDArray[Any], y: NDArray[Any], coverage: float = COVERAGE, **options: Any) -> Any:
    if is_classifier(model):
        return model.predict_set(X, coverage, **options)[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    low, high = model.predict_interval(X, coverage, guarantee="conformal").T
    return (low <= y) & (y <= high)


@cache
def fitted(kind: type[Any], family: str) -> Any:
    options = {} if family == "classes" else {"family": family}
    return small(kind, **options).fit(*rows(family, rng_for("conformal", kind.__name__, family), 80))


@pytest.mark.parametrize(("kind", "family"), CASES)
def test_split_conformal_covers_as_promised(kind, family):
    """Over the draw of the calibration rows too: 45 of 50 is the coverage of a score without ties."""
    model, rng = fitted(kind, family), rng_for("split", kind.__name__, family)
    shares = []
    for _ in range(TIMES):
        model.conformalize(*rows(family, rng, N_KNOWN))
        shares.append(are_inside(model, *rows(family, rng, N_NEW)).mean())
    assert model.guarantee_.is_proved
    assert model.guarantee_.promised(COVERAGE) == COVERAGE
    assert np.mean(shares) > LEAST
    if family not in ("poisson", "geometric", "survival", "histogram"):  # whose distributions have steps
        assert np.mean(shares) < 2.0 * COVERAGE - LEAST


@pytest.mark.parametrize("kind", marked(KINDS))
def test_rows_set_aside_are_those_of_a_fit_without_them(kind):
    family = "classes" if is_classifier(kind()) else "normal"
    X, y = rows(family, rng_for("aside", kind.__name__), 90)
    model, X_new = small(kind).fit(X, y, calibration_rows=30), X[::2]
    assert model.guarantee_.n_rows == 30
    answers = model.predict_set if is_classifier(model) else lambda X: model.predict_interval(X, guarantee="conformal")
    one_by_one = np.concatenate([answers(row[None]) for row in X_new[:5]])
    np.testing.assert_allclose(one_by_one, answers(X_new[:5]), rtol=1e-9)
    with pytest.raises(ValueError, match=r"30 calibration rows 0.967742 is the largest"):
        are_inside(model, X, y, 0.99)


def with_left_out(kind: type[Any], family: str, rng: np.random.Generator, n: int) -> Any:
    """Fitted with nothing set aside; None where nothing was left out that could be, which is said."""
    options = {} if family == "classes" else {"family": family}
    try:
        return small(kind, **options).fit(*rows(family, rng, n), calibration_rows="left_out")
    except ValueError as error:
        if "calibration_rows is 'left_out', but" in str(error):
            return None
        raise


@pytest.mark.parametrize(("kind", "family"), CASES)
def test_what_was_left_out_covers_as_promised(kind, family, tmp_path):
    rng, shares = rng_for("left out", kind.__name__, family), []
    for _ in range(4):
        model = with_left_out(kind, family, rng, 100)
        if model is None:
            return
        X, y = rows(family, rng, 200)
        inside = are_inside(model, X, y)
        shares.append(inside.mean())
        et.save(model, tmp_path / "model.et")
        np.testing.assert_array_equal(are_inside(et.load(tmp_path / "model.et"), X, y), inside)
    assert model.guarantee_.promised(COVERAGE) > 0.7
    assert np.mean(shares) > 0.82  # far more than is promised, and about what is asked for


def test_most_estimators_leave_rows_out():
    can = {kind.__name__ for kind in KINDS if kind.__name__.startswith(("MetaF", "MetaB", "MetaE", "MetaT"))}
    assert len(can) == 8
    for kind in KINDS:
        family = "classes" if is_classifier(kind()) else "normal"
        if not kind.__name__.startswith("Sampled"):
            model = with_left_out(kind, family, rng_for("who", kind.__name__), 60)
            assert (model is not None) == (kind.__name__ in can)


@pytest.mark.parametrize("kind", marked(KINDS))
def test_files_keep_the_guarantee(kind, tmp_path):
    family = "classes" if is_classifier(kind()) else "normal"
    X, y = rows(family, rng_for("file", kind.__name__), 120)
    X[:, 2] = X[:, 2] > 0.0
    model = small(kind).fit(X[:60], y[:60]).conformalize(X[60:], y[60:], by=2)
    et.save(model, tmp_path / "model.et")
    again = et.load(tmp_path / "model.et")
    assert again.guarantee_ == model.guarantee_
    np.testing.assert_array_equal(are_inside(again, X, y, 0.8), are_inside(model, X, y, 0.8))
