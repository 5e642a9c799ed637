"""Chains of boosted trees beside boosting written literally."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from everytree import _kernels
from everytree.boosting.chains import Role
from naive_boosting import derivatives, loss_of, path, trees_of, values
from naive_grower import Rule, check_tree

RULE: dict[str, Any] = {
    "columns": np.arange(3, dtype=np.int32),
    "learning_rate": 0.3, "tau": 1.5, "split_prior": 0.7, "max_steps": 6, "patience": 6, "max_leaf_nodes": 6,
    "max_depth": 3, "min_samples_leaf": 2, "subsample": 0.6, "max_features": 0.7, "max_rows": 10**9,
}  # fmt: skip
LOSSES = ["logit", "softmax", "shared softmax", "squared", "rate"]
N_CLASSES = {"softmax": 3, "shared softmax": 5}


def problem(loss: str, seed: int = 0, n_rows: int = 60) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 6, (n_rows, 3)).astype(np.uint8)
    codes[rng.random(codes.shape) < 0.1] = 255
    signal = 0.8 * (codes[:, 0] > 2) - 0.5 * (codes[:, 1] == 255)
    others = np.random.default_rng(seed + 1)  # so that the losses before have the same problems without it
    y = {
        "logit": rng.random(n_rows) < 0.1 + 0.8 * (signal > 0),
        "softmax": np.where(rng.random(n_rows) < 0.7, codes[:, 0] % 3, rng.integers(0, 3, n_rows)),
        "squared": 5.0 * signal + rng.normal(size=n_rows), "rate": rng.poisson(np.exp(signal)),
        "shared softmax": np.where(others.random(n_rows) < 0.8, codes[:, 0] % 5, others.integers(0, 5, n_rows)),
    }[loss].astype(float)  # fmt: skip
    return {
        "codes": codes, "n_codes": np.full(3, 6, dtype=np.int32), "has_missing": np.ones(3, dtype=bool), "y": y,
        "weight": rng.integers(1, 3, n_rows).astype(float), "n_classes": N_CLASSES.get(loss, 2), "loss": loss,
        "exposure": rng.uniform(0.5, 2.0, n_rows) if loss == "rate" else None,
    }  # fmt: skip


@pytest.mark.parametrize("loss", LOSSES)
def test_each_step_is_the_average_over_all_prunings(loss):
    given = problem(loss)
    y, weight, codes = given["y"], given["weight"], given["codes"]
    exposure = np.ones(len(y)) if given["exposure"] is None else given["exposure"]
    role = np.array([Role.STOPS, Role.TRAINS, Role.LEFT_OUT, Role.TRAINS])[np.arange(len(y)) % 4]
    run = _kernels.booster(**given).run(role=role.astype(np.uint8), seed=3, **RULE | {"patience": 10**6})
    n_outputs = len(run["base"])
    score = np.tile(run["base"], (len(y), 1))

    def mean_loss(of_role: np.ndarray) -> float:
        rows = np.flatnonzero(of_role)
        return float(np.average([loss_of(loss, score[i], y[i], exposure[i]) for i in rows], weights=weight[rows]))

    losses, trees, n_compared = [mean_loss(role == Role.STOPS)], trees_of(run), 0
    of_aside = [mean_loss(role != Role.TRAINS)]
    for step in range(run["n_steps"]):
        dispersion = 2.0 * losses[-1] if loss == "squared" else 1.0
        slopes = (
            np.array([derivatives(loss, score[i], y[i], exposure[i]) for i in range(len(y))]) * weight[:, None, None]
        )
        trees_of_step = n_outputs // run["value"].shape[1]
        for k in range(n_outputs):
            tree = trees[step * trees_of_step + k % trees_of_step]
            value = tree["value"][:, k] if tree["value"].ndim == 2 else tree["value"]
            paths = [path(tree, row) for row in codes]
            sums = np.zeros((len(tree["feature"]), 2))
            for i in np.flatnonzero(role == Role.TRAINS):
                sums[paths[i]] += slopes[i, k]
            literal = RULE["learning_rate"] * values(tree, sums, RULE["tau"], RULE["split_prior"], dispersion)
            ends = [nodes[-1] for nodes in paths]
            np.testing.assert_allclose(value[ends], literal[ends], rtol=1e-10, atol=1e-12)
            score[:, k] += value[ends]
            n_compared += len(tree["feature"]) > 1
        losses.append(mean_loss(role == Role.STOPS))
        of_aside.append(mean_loss(role != Role.TRAINS))
    assert n_compared >= 3
    np.testing.assert_allclose(run["losses"][: len(losses)], losses, rtol=1e-10)
    aside = score[role != Role.TRAINS]
    if loss == "shared softmax":
        aside = aside - logsumexp(aside, axis=1, keepdims=True)
    np.testing.assert_allclose(run["aside"], aside, rtol=1e-10, atol=1e-12)
    assert run["n_steps"] == np.argmin(run["losses"])
    if run["n_steps"] == RULE["max_steps"]:  # else the losses of later steps are not known here
        assert run["n_steps_of_aside"] == np.argmin(of_aside)


@pytest.mark.parametrize("loss", [loss for loss in LOSSES if loss != "shared softmax"])
def test_each_split_lowers_the_loss_most(loss):
    """Of all rows and columns, so that nothing is drawn."""
    given = problem(loss, 1)
    whole = RULE | {"subsample": 1.0, "max_features": 1.0, "max_steps": 1}
    run = _kernels.booster(**given).run(role=np.zeros(60, dtype=np.uint8), seed=5, **whole)
    exposure = np.ones(60) if given["exposure"] is None else given["exposure"]
    slopes = np.array([derivatives(loss, run["base"], y, e) for y, e in zip(given["y"], exposure, strict=True)])
    slopes *= given["weight"][:, None, None]
    for k, tree in enumerate(trees_of(run)):

        def value(rows: np.ndarray, k: int = k) -> float:
            first, second = slopes[rows, k].sum(axis=0)
            return float(first**2 / (second + RULE["tau"]))

        tree["terminal"] = np.array([path(tree, row)[-1] for row in given["codes"]])
        rule = Rule(value, lambda rows: False, False, 3, RULE["min_samples_leaf"], RULE["max_depth"])
        n = check_tree(
            tree, given["codes"], given["n_codes"], given["has_missing"], np.arange(60), rule, 0, stopped_early=True
        )
        assert n >= 1


def test_without_rows_left_out_all_steps_are_taken():
    run = _kernels.booster(**problem("logit")).run(role=np.zeros(60, dtype=np.uint8), seed=1, **RULE)
    assert run["n_steps"] == RULE["max_steps"]
    assert run["aside"].shape == (0, 1)
    assert np.isnan(run["losses"]).all()


def test_with_split_prior_one_nothing_is_averaged():
    given = problem("squared")
    run = _kernels.booster(**given).run(
        role=np.zeros(60, dtype=np.uint8), seed=1, **RULE | {"split_prior": 1.0, "max_steps": 1}
    )
    (tree,) = trees_of(run)
    ends = np.array([path(tree, row)[-1] for row in given["codes"]])
    slopes = given["weight"] * (run["base"][0] - given["y"])
    for end in np.unique(ends):
        mean = -slopes[ends == end].sum() / (given["weight"][ends == end].sum() + RULE["tau"])
        np.testing.assert_allclose(tree["value"][end], RULE["learning_rate"] * mean, rtol=1e-12)


@pytest.mark.parametrize(("change", "message"), [
    ({"codes": np.zeros((60, 3))}, "uint8 or uint16"), ({"codes": np.zeros((5, 3), dtype=np.uint8)}, "as many rows"),
    ({"n_codes": np.array([6], dtype=np.int32)}, "one entry a column"), ({"y": np.full(60, 2.0)}, "below n_classes"),
    ({"weight": np.ones(3)}, "one entry a row"), ({"loss": "hinge"}, "loss must be"),
    ({"n_codes": np.full(3, 300, dtype=np.int32)}, "does not fit"),
])  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        _kernels.booster(**problem("logit") | change)


def test_roles_must_be_as_many_as_rows():
    with pytest.raises(ValueError, match="one entry a row"):
        _kernels.booster(**problem("logit")).run(role=np.zeros(3, dtype=np.uint8), seed=1, **RULE)


@pytest.mark.parametrize("loss", LOSSES)
def test_targets_of_rows_that_are_left_out_change_nothing(loss):
    """Neither the trees nor the step after which they end depend on them: only rows that stop have a say in that."""
    given, role = problem(loss, 2), (np.arange(60) % 3).astype(np.uint8)
    other = given["y"].copy()
    other[role == Role.LEFT_OUT] = np.roll(other[role == Role.LEFT_OUT], 1)
    runs = [_kernels.booster(**given | {"y": y}).run(role=role, seed=4, **RULE) for y in (given["y"], other)]
    assert not np.array_equal(given["y"], other)
    first, second = runs
    n = min(len(first["losses"]), len(second["losses"]))
    np.testing.assert_array_equal(first["losses"][:n], second["losses"][:n])
    for name in ("n_steps", "value", "feature", "threshold", "aside"):
        np.testing.assert_array_equal(first[name], second[name])
