"""Boosted trees with lines in their nodes, beside every pruning with every kind of node."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import everytree as et
from everytree import _kernels
from everytree.boosting.chains import Role
from everytree.boosting.lines import LinedTrees, points_of_codes
from naive_boosting import lines_of_terminals, path, trees_of

RULE: dict[str, Any] = {
    "learning_rate": 0.3, "tau": 1.5, "split_prior": 0.7, "max_steps": 6, "patience": 10**6, "max_leaf_nodes": 3,
    "max_depth": 2, "min_samples_leaf": 2, "subsample": 0.7, "max_features": 0.7, "max_rows": 10**9,
}  # fmt: skip


def problem(kind: str, seed: int = 0, n_rows: int = 60) -> tuple[dict[str, Any], list[np.ndarray]]:
    """A table of codes with points, and its targets."""
    rng = np.random.default_rng(seed)
    n_columns = 12 if kind == "wide" else 3
    n_rows = {"few rows": 9, "counts": 150}.get(kind, n_rows)
    codes = rng.integers(0, 6, (n_rows, n_columns)).astype(np.uint8)
    points = [np.sort(rng.normal(size=6)) for _ in range(n_columns)]
    if kind == "collinear":
        codes[:, 1] = codes[:, 0]
        points[1] = 2.0 * points[0]
    if kind == "constant":
        codes[:, 0] = 3
        points[1] = np.zeros(6)
    at = np.column_stack([own[codes[:, k]] for k, own in enumerate(points)])
    y = 3.0 * at[:, 0] - 2.0 * at[:, -1] * (codes[:, 1] > 2) + 0.1 * rng.normal(size=n_rows)
    if kind == "missing":
        codes[rng.random(codes.shape) < 0.2] = 255
    exposure = None
    if kind == "counts":
        exposure = rng.uniform(0.5, 2.0, n_rows)
        y = rng.poisson(exposure * np.exp(0.3 * y)).astype(float)
    given = {
        "codes": codes, "n_codes": np.full(n_columns, 6, dtype=np.int32), "has_missing": np.ones(n_columns, dtype=bool),
        "y": y * {"huge": 1e8, "tiny": 1e-8}.get(kind, 1.0), "exposure": exposure, "n_classes": 2,
        "loss": "rate" if kind == "counts" else "squared",
        "weight": rng.uniform(0.1, 3.0, n_rows) if kind != "unit weights" else None,
    }  # fmt: skip
    return given, points


def run_of(given: dict[str, Any], points: list[np.ndarray], role: np.ndarray, **options: Any) -> dict[str, Any]:
    columns = np.arange(len(points), dtype=np.int32)
    return _kernels.booster(**given, points=np.concatenate(points)).run(
        role=role.astype(np.uint8), columns=columns, seed=3, **RULE | options
    )


KINDS = [
    "usual", "unit weights", "missing", "collinear", "constant", "few rows", "huge", "tiny", "counts",
]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_each_step_is_the_average_over_all_prunings_and_kinds_of_nodes(kind):
    given, points = problem(kind)
    y, codes, n_rows = given["y"], given["codes"], len(given["y"])
    weight = np.ones(n_rows) if given["weight"] is None else given["weight"]
    role = np.array([Role.STOPS, Role.TRAINS, Role.TRAINS, Role.TRAINS, Role.LEFT_OUT])[np.arange(n_rows) % 5]
    run = run_of(given, points, role)
    lined = run["lined"]
    offered = [k for k in range(3) if len(np.unique(points[k])) > 1]
    assert lined["columns"].tolist() == offered
    assert run["n_nodes"].size == 0
    at = np.column_stack([np.append(points[k], 0.0)[np.minimum(codes[:, k], 6)] for k in offered])
    score, train = np.full(n_rows, run["base"][0]), role == Role.TRAINS
    stops = role == Role.STOPS
    for tree in trees_of(lined):
        dispersion = np.average((score[stops] - y[stops]) ** 2, weights=weight[stops])
        expected, curvature = score, np.ones(n_rows)
        if kind == "counts":  # of Newton's method: weights are the second derivatives
            dispersion, expected = 1.0, given["exposure"] * np.exp(score)
            curvature = expected
        slopes = np.column_stack([weight * (expected - y), weight * curvature])
        paths = [path(tree, row) for row in codes]
        literal, _ = lines_of_terminals(
            tree, at[train], slopes[train], [paths[i] for i in np.flatnonzero(train)], RULE["tau"],
            RULE["split_prior"], dispersion,
        )  # fmt: skip
        ends = np.array([nodes[-1] for nodes in paths])
        value = np.asarray(tree["value"])
        size = np.abs(literal[ends]).max()
        np.testing.assert_allclose(value[ends], 0.3 * literal[ends], rtol=1e-10, atol=1e-10 * size)
        score += value[ends, 0] + (value[ends, 1:] * at).sum(axis=1)
    assert lined["n_nodes"].size == run["n_steps"] >= 1
    np.testing.assert_allclose(run["aside"][:, 0], score[~train], rtol=1e-10, atol=1e-10 * np.abs(y).max())


def test_lines_run_in_the_columns_of_the_largest_gains():
    """Of many columns; splits of the first trees say which."""
    given, points = problem("wide", n_rows=300)
    role = np.zeros(300)
    run = run_of(given, points, role, max_steps=30)
    columns = run["lined"]["columns"]
    assert len(run["n_nodes"]) >= 16
    assert len(columns) == 10
    assert {0, 11} <= set(columns.tolist())
    assert (np.diff(columns) > 0).all()


def test_lines_are_offered_no_more_once_their_evidence_is_against_them():
    rng = np.random.default_rng(0)
    given, points = problem("usual", n_rows=300)
    given["y"] = rng.normal(size=300)
    run = run_of(given, points, np.zeros(300), max_steps=200, learning_rate=0.05)
    assert len(run["lined"]["n_nodes"]) < 100
    assert len(run["lined"]["n_nodes"]) + len(run["n_nodes"]) == 200


def test_without_points_that_differ_there_are_no_lines():
    given, points = problem("usual")
    role = np.zeros(60)
    without = run_of(given, [np.zeros_like(own) for own in points], role)
    plain = _kernels.booster(**given).run(
        role=role.astype(np.uint8), columns=np.arange(3, dtype=np.int32), seed=3, **RULE
    )
    assert without["lined"]["n_nodes"].size == 0
    np.testing.assert_array_equal(without["value"], plain["value"])


def test_points_must_fit():
    given, points = problem("usual")
    with pytest.raises(ValueError, match="one entry for each code"):
        _kernels.booster(**given, points=np.zeros(5))
    with pytest.raises(ValueError, match="for the losses 'squared' and 'rate'"):
        _kernels.booster(
            **given | {"loss": "logit", "y": (given["y"] > 0.0).astype(float)}, points=np.concatenate(points)
        )


# ---- points ---------------------------------------------------------------------------------------------------------


def test_points_are_numbers_in_standard_deviations_about_the_mean():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.normal(5.0, 3.0, 400), rng.integers(0, 2, 400), np.full(400, 7.0), rng.normal(size=400)])
    X[::9, 0] = np.nan
    X[:, 3] *= 1e300
    schema = et.Schema.fit(X)
    codes = schema.encode(X)
    points = points_of_codes(schema, codes, None)
    known = ~np.isnan(X[:, 0])
    own = points[0][codes[known, 0]]
    assert np.corrcoef(own, X[known, 0])[0, 1] > 0.999
    assert abs(own.mean()) < 0.01
    assert own.std() == pytest.approx(1.0, abs=0.01)
    np.testing.assert_allclose(np.diff(points[1]), 1.0 / X[:, 1].std(), rtol=1e-12)
    assert (points[2] == 0.0).all()
    assert np.isfinite(points[3]).all()
    assert np.ptp(points[3]) > 3.0


def test_categories_have_no_points():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": ["x", "y", "z"] * 5, "b": np.arange(15.0)})
    schema = et.Schema.fit(table)
    points = points_of_codes(schema, schema.encode(table), None)
    assert (points[0] == 0.0).all()
    assert (np.diff(points[1]) > 0.0).all()


# ---- trees with lines -----------------------------------------------------------------------------------------------


def lined_trees(seed: int) -> LinedTrees:
    given, points = problem("usual", seed)
    run = run_of(given, points, np.zeros(60))
    return LinedTrees.of_chain(run["lined"], points, given["n_codes"])


def test_an_average_has_the_mean_score_times_a_factor():
    points = problem("usual", 1)[1]
    each = []
    for seed in (1, 2):
        given, _ = problem("usual", seed)
        columns = np.arange(3) if seed == 1 else np.arange(2)
        run = _kernels.booster(**given, points=np.concatenate(points)).run(
            role=np.zeros(60, dtype=np.uint8), columns=columns.astype(np.int32), seed=3, **RULE
        )
        each.append(LinedTrees.of_chain(run["lined"], points, given["n_codes"]))
    X = np.random.default_rng(5).integers(0, 7, (50, 3)).astype(np.uint8)
    X[X == 6] = 255
    average = LinedTrees.average(each, 0.7, unit=3.0)
    assert average is not None
    mean = np.mean([one.scores(X) for one in each], axis=0)
    np.testing.assert_allclose(average.scores(X), 2.1 * mean, rtol=1e-12, atol=1e-12)
    assert LinedTrees.average(each, 0.0) is None
    again = pickle.loads(pickle.dumps(average))
    np.testing.assert_array_equal(again.scores(X, n_jobs=3), average.scores(X, n_jobs=1))
