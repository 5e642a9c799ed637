"""How far scores go from what is the same for all rows: not at all on noise, and without a say of the rows judged."""

from __future__ import annotations

import numpy as np
import pytest

from cases import rng_for
from everytree.boosting.scales import FLATTENED, KEPT, MIN_GAIN, SHARPENED, SPREAD, scales_of_folds


def gains(y: np.ndarray, departure: np.ndarray):
    """Normal targets of variance one."""
    return lambda factor: -0.5 * (y - factor * departure) ** 2


@pytest.mark.parametrize("true", [0.4, 1.0, 1.7])
def test_the_factor_is_the_most_probable_one(true):
    rng = rng_for("factor", true)
    departure, fold = rng.normal(size=500), np.arange(500) % 5
    y = true * departure + rng.normal(size=500)
    literal = (y @ departure + 1.0 / SPREAD**2) / (departure @ departure + 1.0 / SPREAD**2)
    factor, of_fold = scales_of_folds(gains(y, departure), fold, 1.0, SHARPENED)
    assert factor == pytest.approx(literal, abs=1e-6)  # a parabola is found exactly
    np.testing.assert_allclose(of_fold, literal, atol=0.2)
    assert scales_of_folds(gains(y, departure), fold, 1.0, KEPT)[0] == float(true > 0.5)
    assert scales_of_folds(gains(y, departure), fold, 1.0, FLATTENED)[0] == pytest.approx(min(literal, 1.0), abs=1e-6)


def test_a_fold_has_no_say_in_its_own_factor():
    rng = rng_for("own fold")
    departure, fold = rng.normal(size=200), np.arange(200) % 4
    y = departure + rng.normal(size=200)
    _, before = scales_of_folds(gains(y, departure), fold, 1.0, SHARPENED)
    _, after = scales_of_folds(gains(np.where(fold == 2, -5.0 * y, y), departure), fold, 1.0, SHARPENED)
    assert after[2] == before[2]
    assert (after[[0, 1, 3]] != before[[0, 1, 3]]).all()


def test_noise_mostly_gets_none():
    rng = rng_for("noise")
    factors = []
    for _ in range(200):
        departure, y = rng.normal(size=(2, 100))
        factors.append(scales_of_folds(gains(y, departure), np.arange(100) % 5, 1.0, SHARPENED)[0])
    assert np.mean(np.array(factors) > 0.0) < 0.1


def test_rows_that_repeat_each_other_gain_as_one():
    """A gain of 1.5 times the least is clear with independent rows, and not with rows that come in pairs."""
    departure, fold = np.ones(10), np.arange(10) % 5
    y = np.full(10, np.sqrt(2.0 * 1.5 * MIN_GAIN / 10))
    found = [
        scales_of_folds(lambda factor: -0.5 * (y - factor * y * departure) ** 2, fold, share, KEPT)[0]
        for share in (1.0, 0.5)
    ]
    assert found == [1.0, 0.0]


def test_one_fold_says_nothing():
    factor, of_fold = scales_of_folds(gains(np.ones(9), np.ones(9)), np.zeros(9, dtype=np.int64), 1.0, SHARPENED)
    assert factor > 0.0
    assert of_fold.tolist() == [0.0]
