"""A bad row at the end of a long table: refused in the same words by any number of threads, and nothing is changed."""

from __future__ import annotations

import numpy as np
import pytest

from cases import CASE, Case, families, rng_for
from doors import Door, doors, state
from refusals import NAN, refused, unchanged

N_ROWS, LATE = 50_000, 49_990


def late_rows(case: Case, depth: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    rng = rng_for("late", case, depth)
    X = rng.integers(0, 2, (N_ROWS, depth)).astype(np.uint8)
    y, row_data = case.draw(rng, N_ROWS)
    return X, y.astype(float), rng.uniform(0.0, 2.0, N_ROWS), row_data


def assert_late_rows_are_refused(door: Door, case: Case, depth: int, words: list[str], spoil) -> None:
    rows = late_rows(case, depth)
    X, y, weight, row_data = spoil(*rows) or rows
    posts = door.seasoned(case, depth)
    with unchanged(state, *posts):
        options = [{"n_jobs": n} for n in (1, 2, 5)] if door.has_n_jobs else [{}, {}]
        messages = [
            refused(lambda more=more: door.update(posts, X, y, weight, **row_data, **more), *words) for more in options
        ]
        assert len(set(messages)) == 1, messages


depths = pytest.mark.parametrize("depth", [2, 13], ids=lambda d: f"{2 ** (d + 1) - 1} nodes")


@doors
@depths
@families
def test_a_late_bad_target_changes_nothing(case, depth, door):
    def spoil(X, y, weight, row_data):
        y[LATE] = NAN

    assert_late_rows_are_refused(door, case, depth, [f"y[{LATE}]", "nan"], spoil)


@doors
@depths
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64])
def test_a_late_bad_code_changes_nothing(dtype, depth, door):
    def spoil(X, y, weight, row_data):
        X[LATE, 1] = 7
        return X.astype(dtype), y, weight, row_data

    words = ["X", "column 1", f"row {LATE}", "7", "0..1"]
    assert_late_rows_are_refused(door, CASE["bernoulli"], depth, words, spoil)


@doors
@depths
def test_a_late_bad_weight_changes_nothing(depth, door):
    def spoil(X, y, weight, row_data):
        weight[LATE] = -1.0

    assert_late_rows_are_refused(door, CASE["normal"], depth, [f"sample_weight[{LATE}]", "-1"], spoil)


@doors
@depths
@pytest.mark.parametrize(
    ("name", "argument"), [("poisson", "exposure"), ("exponential", "censored"), ("linear", "inputs")]
)
def test_late_bad_row_data_change_nothing(name, argument, depth, door):
    def spoil(X, y, weight, row_data):
        row_data[argument] = row_data[argument].astype(float)
        row_data[argument][LATE] = -3.0 if argument != "inputs" else NAN

    words = [f"{argument}[{LATE}", "nan" if argument == "inputs" else "-3"]
    assert_late_rows_are_refused(door, CASE[name], depth, words, spoil)


@doors
def test_of_several_bad_rows_the_first_is_named(door):
    def spoil(X, y, weight, row_data):
        y[[20_000, 30_000, LATE]] = 5

    assert_late_rows_are_refused(door, CASE["bernoulli"], 2, ["y[20000]", "5"], spoil)
