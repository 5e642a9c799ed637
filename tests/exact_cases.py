"""Small tables for exact posteriors with the list of all their trees, larger ones, and what is compared."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import everytree as et
import naive_exact
from cases import CASE, Case

modes = pytest.mark.parametrize("candidates", ["all", "nontrivial"])
KINDS = ("ordered", "one_against_rest", "multiway")
kinds = pytest.mark.parametrize("kind", [*KINDS, "mixed"])
BERNOULLI = CASE["bernoulli"]
FALLING = et.depth_prior(0.95, 1.0)
PRIORS = (0.2, 0.5, 0.9, 0.99, FALLING)
CLOSE = {"rtol": 1e-10, "atol": 1e-10}
UNKNOWN = -1


@dataclass(frozen=True)
class Problem:
    """Rows and a model, small enough to list all its trees."""

    case: Case
    n_codes: tuple[int, ...]
    max_depth: int
    split_prior: Any
    candidates: str
    kinds: tuple[str, ...]
    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    row_data: dict[str, np.ndarray]

    @property
    def shape(self) -> dict[str, Any]:
        return {"candidates": self.candidates, "kinds": self.kinds}

    def fit(self, *, budget: int | None = None, max_seconds: float | None = None, **options: Any) -> et.ExactPosterior:
        options = {"truncation": 0.0, **self.shape, **options}
        model = et.ExactPosterior(self.n_codes, self.case.family, self.max_depth, self.split_prior, **options)
        limits = {"budget": budget, "max_seconds": max_seconds}
        limits = {name: value for name, value in limits.items() if value is not None}
        return model.fit(self.X, self.y, self.weights, **limits, **self.row_data)

    def _naive(self, twin: type, family: Any, **options: Any) -> Any:
        rows = (self.X, self.y, self.max_depth, self.split_prior, self.weights)
        return twin(self.n_codes, family, *rows, **self.shape, **self.row_data, **options)

    def enumeration(self, **options: Any) -> naive_exact.Enumeration:
        return self._naive(naive_exact.Enumeration, self.case.twin, **options)

    def recursion(self) -> naive_exact.Recursion:
        return self._naive(naive_exact.Recursion, self.case.family)

    def new_rows(self, rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
        y, row_data = self.case.draw(rng, n)
        return rng.integers(self.n_codes, size=(n, len(self.n_codes))).astype(np.uint8), y, row_data


def problem(
    case: Case,
    rng: np.random.Generator,
    candidates: str,
    kind: str = "mixed",
    most_trees: int = 600,
    most_rows: int = 12,
    most_codes: int = 4,
    **fixed: Any,
) -> Problem:
    """A random one, with at most so many trees."""
    while True:
        n_columns = int(rng.integers(1, 4))
        n_codes = tuple(rng.integers(1 if rng.random() < 0.2 else 2, most_codes + 1, n_columns).tolist())
        max_depth = int(rng.integers(1, 4))
        kind_of = tuple(rng.choice(KINDS, n_columns).tolist()) if kind == "mixed" else (kind,) * n_columns
        if 2 < naive_exact.n_trees(n_codes, max_depth, kind_of) <= most_trees:
            break
    n = int(rng.integers(1, most_rows + 1))
    y, row_data = case.draw(rng, n)
    weights = rng.choice([0.5, 1.0, 1.0, 2.0, 0.25], n) if rng.random() < 0.3 else None
    prior = PRIORS[rng.integers(len(PRIORS))]
    X = rng.integers(n_codes, size=(n, n_columns)).astype(np.uint8)
    return replace(Problem(case, n_codes, max_depth, prior, candidates, kind_of, X, y, weights, row_data), **fixed)


def check_sums(exact: et.ExactPosterior, oracle: naive_exact.Enumeration) -> None:
    """All numbers about the trees."""
    assert exact.log_evidence == pytest.approx(oracle.log_evidence, rel=1e-10, abs=1e-10)
    assert exact.split_prob_root == pytest.approx(oracle.split_prob_root, rel=1e-10, abs=1e-10)
    for name in ("root_feature_prob", "feature_prob", "expected_splits"):
        answer = getattr(exact, name)
        assert answer.shape == (oracle.n_columns,), name
        np.testing.assert_allclose(answer, getattr(oracle, name), err_msg=name, **CLOSE)
    first = {split[:2]: 0.0 for split in exact.root_splits}
    for tree, log_prob in oracle.log_prob.items():
        if tree:
            first[tree[:2]] += math.exp(log_prob)
    for column, code, prob in exact.root_splits:
        assert prob == pytest.approx(first[column, code], rel=1e-9, abs=1e-10)
    assert exact.expected_leaves() == pytest.approx(oracle.expected_leaves(), rel=1e-10)
    assert exact.entropy() == pytest.approx(oracle.entropy(), rel=1e-10, abs=1e-10)


def check_trees(trees: list[et.ExactTree], oracle: naive_exact.Enumeration) -> None:
    """Each is one of the list, with the probability it has there."""
    for tree in trees:
        shape = naive_exact.nested(tree)
        assert tree.log_prob == pytest.approx(oracle.log_prob[shape], rel=1e-10, abs=1e-10)
        assert tree.n_leaves == oracle.n_leaves(shape)
        check_arrays(tree)


def check_arrays(tree: et.ExactTree) -> None:
    """Flat arrays in level order: the children of the inner nodes, one after the other, are all nodes but the root."""
    n_nodes = len(tree.feature)
    assert len(tree.code) == len(tree.first_child) == len(tree.n_children) == n_nodes
    inner = np.flatnonzero(np.asarray(tree.n_children) > 0)
    first, size = np.asarray(tree.first_child)[inner], np.asarray(tree.n_children)[inner]
    children = [child for start, many in zip(first, size, strict=True) for child in range(start, start + many)]
    assert children == list(range(1, n_nodes))
    np.testing.assert_array_equal(np.asarray(tree.feature) >= 0, np.asarray(tree.n_children) > 0)
    assert (np.asarray(tree.feature)[np.asarray(tree.n_children) == 0] == -1).all()
    assert tree.n_leaves == n_nodes - len(inner)


def check_best(exact: et.ExactPosterior, oracle: naive_exact.Enumeration) -> None:
    """The best trees are the best of all; where several are equally good, any order is right."""
    ranked = sorted(oracle.log_prob.values(), reverse=True)
    everything = exact.top_trees(len(ranked) + 3)
    np.testing.assert_allclose([tree.log_prob for tree in everything], ranked, **CLOSE)
    assert {naive_exact.nested(tree) for tree in everything} == set(oracle.prob)
    check_trees(everything, oracle)
    few = exact.top_trees(3)
    np.testing.assert_allclose([tree.log_prob for tree in few], ranked[:3], **CLOSE)
    assert len(set(few)) == len(few)
    check_trees(few, oracle)
    best = exact.map_tree()
    assert best.log_prob == pytest.approx(ranked[0], rel=1e-10, abs=1e-10)
    check_trees([best], oracle)


def check_predictions(
    exact: et.ExactPosterior, oracle: naive_exact.Enumeration, rows: tuple[Any, Any, dict[str, Any]]
) -> None:
    """Distributions of new rows, seen or not."""
    X, y, row_data = rows
    of_row = [{name: column[i] for name, column in row_data.items()} for i in range(len(X))]
    predictive = exact.predictive(X, **row_data)
    log_prob = [oracle.log_predictive(x, *new) for x, *new in zip(X, y, of_row, strict=True)]
    np.testing.assert_allclose(predictive.log_prob(y), log_prob, **CLOSE)
    moments = np.array([oracle.moments(*new) for new in zip(X, of_row, strict=True)])
    np.testing.assert_allclose(predictive.mean(), moments[:, 0], **CLOSE)
    np.testing.assert_allclose(predictive.variance(), moments[:, 1], **CLOSE)
    if hasattr(oracle.family, "exact_probs"):
        np.testing.assert_allclose(predictive.probs(), [oracle.probs(x) for x in X], **CLOSE)


def check_all(given: Problem, rng: np.random.Generator) -> None:
    exact, oracle = given.fit(), given.enumeration()
    check_sums(exact, oracle)
    check_best(exact, oracle)
    check_predictions(exact, oracle, given.new_rows(rng, 5))
    assert exact.truncation == 0.0


def table(case: Case, rng: np.random.Generator, n: int, n_codes: tuple[int, ...], **fixed: Any) -> Problem:
    """Rows whose columns are not independent: the last one is often a copy of the first."""
    X = rng.integers(n_codes, size=(n, len(n_codes)))
    X[:, -1] = np.where(rng.random(n) < 0.7, np.minimum(X[:, 0], n_codes[-1] - 1), X[:, -1])
    y, row_data = case.draw(rng, n)
    signal = (X[:, 0] > 0) & (X[:, 1] > 0)
    y = np.where(signal, np.sort(y)[::-1], y) if case.name != "linear" else y
    given = Problem(case, n_codes, 3, 0.5, "all", ("ordered",) * len(n_codes), X.astype(np.uint8), y, None, row_data)
    return replace(given, **fixed)
