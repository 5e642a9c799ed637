"""Trees of many classes: one tree a step, with a value for each class in every leaf."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from everytree import _kernels
from everytree.boosting.chains import Role
from naive_boosting import add_value, directions_of, path, project, trees_of
from naive_grower import Rule, check_tree

RULE: dict[str, Any] = {
    "columns": np.arange(3, dtype=np.int32), "seed": 11,
    "learning_rate": 0.3, "tau": 1.5, "split_prior": 0.7, "max_steps": 6, "patience": 6, "max_leaf_nodes": 6,
    "max_depth": 3, "min_samples_leaf": 2, "subsample": 1.0, "max_features": 1.0, "max_rows": 10**9,
}  # fmt: skip


def problem(n_classes: int, n_rows: int = 80, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 6, (n_rows, 3)).astype(np.uint8)
    codes[rng.random(codes.shape) < 0.1] = 255
    y = np.where(rng.random(n_rows) < 0.7, (codes[:, 0].astype(int) + codes[:, 1]) % n_classes, 0)
    return {
        "codes": codes, "n_codes": np.full(3, 6, dtype=np.int32), "has_missing": np.ones(3, dtype=bool),
        "y": y.astype(float), "weight": rng.uniform(0.5, 2.0, n_rows), "n_classes": n_classes,
        "loss": "shared softmax", "exposure": None,
    }  # fmt: skip


def run_of(given: dict[str, Any], role: Any = None, **options: Any) -> dict[str, Any]:
    role = np.zeros(len(given["y"])) if role is None else role
    return _kernels.booster(**given).run(role=np.asarray(role, dtype=np.uint8), **RULE | options)


def softmax(score: np.ndarray) -> np.ndarray:
    powers = np.exp(score - score.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n_classes", [5, 12])
def test_each_split_is_the_best_one_along_the_directions_of_its_step(n_classes):
    given = problem(n_classes)
    run, n_compared = run_of(given), 0
    score = np.tile(run["base"], (len(given["y"]), 1))
    for step, tree in enumerate(trees_of(run)):
        seen = project(
            softmax(score), given["y"].astype(int), given["weight"], directions_of(RULE["seed"], step + 1, n_classes)
        )

        def value(rows: np.ndarray, seen: np.ndarray = seen) -> float:
            sums = seen[rows].sum(axis=0)
            return float((sums[:6] ** 2).sum() / (sums[6] + RULE["tau"]))

        ends = np.array([path(tree, row)[-1] for row in given["codes"]])
        rule = Rule(value, lambda rows: False, False, 3, RULE["min_samples_leaf"], RULE["max_depth"])
        n_compared += check_tree(
            tree | {"terminal": ends}, given["codes"], given["n_codes"], given["has_missing"],
            np.arange(len(ends)), rule, 0, stopped_early=True, rounding=1e-5,
        )  # fmt: skip
        for i, end in enumerate(ends):
            add_value(score[i], step, tree["value"][end])
    assert n_compared >= 6


def test_directions_differ_from_step_to_step_and_estimate_the_whole_gradient():
    drawn = np.array([directions_of(3, step, 400) for step in range(20)])
    gradient = np.random.default_rng(0).normal(size=400)
    estimates = ((gradient @ drawn) ** 2).sum(axis=1)
    assert len(np.unique(estimates)) == 20
    assert estimates.mean() == pytest.approx(float(gradient @ gradient), rel=0.4)
    assert drawn.std() == pytest.approx(6.0**-0.5, rel=0.02)


def test_a_class_without_rows_in_a_chain_is_never_certain_to_be_absent():
    given = problem(6)
    role = np.where(given["y"] == 4, Role.LEFT_OUT, Role.TRAINS)
    run = run_of(given, role, max_steps=200, patience=200)
    probs = softmax(run["aside"])
    assert (given["y"] == 4).sum() > 3
    assert np.isfinite(run["value"]).all()
    assert ((probs[:, 4] > 0.0) & (probs[:, 4] < 0.1)).all()


def test_rows_of_weight_zero_have_no_say_in_values():
    given = problem(6)
    given["weight"] = np.where(np.arange(80) % 3 == 0, 0.0, given["weight"])
    other = given | {"y": np.where(np.arange(80) % 3 == 0, (given["y"] + 1) % 6, given["y"])}
    np.testing.assert_array_equal(run_of(given)["value"], run_of(other)["value"])


def test_classes_that_are_as_good_as_certain_stay_finite():
    """Of rows that one column tells apart, the scores keep growing."""
    codes = np.repeat(np.arange(6, dtype=np.uint8), 30)[:, None]
    given = {
        "codes": codes, "n_codes": np.array([6], dtype=np.int32), "has_missing": np.zeros(1, dtype=bool),
        "y": codes[:, 0].astype(float), "weight": None, "n_classes": 6, "loss": "shared softmax", "exposure": None,
    }  # fmt: skip
    options = {"columns": np.zeros(1, dtype=np.int32), "learning_rate": 1.0, "split_prior": 1.0, "max_steps": 400}
    run = run_of(given, np.arange(180) % 2, **options, patience=400)
    assert run["n_steps"] > 10
    assert np.isfinite(run["losses"]).all()
    score = np.tile(run["base"], (6, 1))
    for t, tree in enumerate(trees_of(run)):
        for code in range(6):
            add_value(score[code], t, tree["value"][path(tree, np.array([code], dtype=np.uint8))[-1]])
    loss = -np.log(np.diag(softmax(score))).mean()
    assert loss == pytest.approx(run["losses"][run["n_steps"]], rel=1e-6, abs=1e-12)
    assert loss < 1e-3


def test_a_thousand_classes():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 200, (3000, 4)).astype(np.uint8)
    y = (codes[:, 0].astype(int) * 5 + codes[:, 1] % 5) % 1000
    given = {
        "codes": codes, "n_codes": np.full(4, 200, dtype=np.int32), "has_missing": np.zeros(4, dtype=bool),
        "y": y.astype(float), "weight": None, "n_classes": 1000, "loss": "shared softmax", "exposure": None,
    }  # fmt: skip
    run = run_of(
        given, np.arange(3000) % 3, max_steps=20, patience=20, max_leaf_nodes=32, columns=np.arange(4, dtype=np.int32)
    )
    assert run["value"].shape == (run["n_nodes"].sum(), 1000)
    assert run["losses"][-1] < run["losses"][0] - 0.1
