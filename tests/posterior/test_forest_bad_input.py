"""Forests that cannot be, tables that none reads, and arrays that kernels refuse."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import everytree as et
from everytree import _kernels
from everytree.posterior.forest import Forest
from forests import fates


def some(family: et.Family | None = None, n_features: int = 2) -> et.Posterior:
    return et.Posterior(et.MetaTree.complete([0, 1, 1], 2, n_features=n_features), family or et.Bernoulli())


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        (lambda: {"posteriors": []}, ValueError, "empty"),
        (lambda: {"posteriors": [1]}, TypeError, r"posteriors\[0\]"),
        (lambda: {"posteriors": [some().tree]}, TypeError, "MetaTree"),
        (lambda: {"posteriors": [some(), some(et.Normal())]}, ValueError, r"posteriors\[1\]"),
        (lambda: {"posteriors": [some(et.Categorical(2)), some()]}, ValueError, r"posteriors\[1\]"),
        (lambda: {"posteriors": [some(et.Categorical(n)) for n in (3, 4)]}, ValueError, r"posteriors\[1\]"),
        (lambda: {"posteriors": [some(), some(n_features=3)]}, ValueError, "width"),
        (lambda: {"weights": [1.0]}, ValueError, "weights"),
        (lambda: {"weights": [0.5, 0.6]}, ValueError, "sum to 1"),
        (lambda: {"weights": [1.5, -0.5]}, ValueError, "weights"),
        (lambda: {"weights": [np.nan, 1.0]}, ValueError, "weights"),
        (lambda: {"weights": [np.inf, -np.inf]}, ValueError, "weights"),
        (lambda: {"weights": "uniform"}, ValueError, "evidence"),
        (lambda: {"sharpness": 0.0}, ValueError, "sharpness"),
        (lambda: {"sharpness": -1.0}, ValueError, "sharpness"),
        (lambda: {"sharpness": np.nan}, ValueError, "sharpness"),
        (lambda: {"sharpness": np.inf}, ValueError, "sharpness"),
        (lambda: {"n_codes": [2]}, ValueError, "n_codes"),
        (lambda: {"n_codes": 2}, ValueError, "n_codes"),
        (lambda: {"n_codes": [[2, 2]]}, ValueError, "n_codes"),
        (lambda: {"n_codes": [2, -1]}, ValueError, "n_codes"),
        (lambda: {"n_codes": [2, 70_000]}, ValueError, "n_codes"),
        (lambda: {"n_codes": [2, 1.5]}, ValueError, "n_codes"),
        (lambda: {"n_codes": [2, np.nan]}, ValueError, "n_codes"),
    ],
)
def test_no_forest_of_these(arguments, error, match):
    with pytest.raises(error, match=match):
        Forest(**({"posteriors": [some(), some()]} | arguments()))


def test_tables_that_no_forest_reads():
    forest = Forest([some()])
    for ask in (forest.ends, forest.probs, forest.predictive, lambda X: forest.update(X, np.zeros(len(X)))):
        for X, error in (
            (np.zeros((2, 1), dtype=np.uint8), ValueError),
            (np.zeros(2, dtype=np.uint8), ValueError),
            (np.full((2, 2), 0.5), ValueError),
            (np.full((2, 2), -2), ValueError),
            (np.full((2, 2), 70_000), ValueError),
            (np.full((2, 2), "a"), TypeError),
            ([[0, 1], [0]], ValueError),
        ):
            with pytest.raises(error):
                ask(X)
    assert forest.n_rows == 0
    with pytest.raises(ValueError, match="n_jobs"):
        forest.ends(np.zeros((2, 2), dtype=np.uint8), n_jobs=0)
    with pytest.raises(TypeError, match="exposure"):
        forest.predictive(np.zeros((2, 2), dtype=np.uint8), exposure=[1.0, 1.0])
    with pytest.raises(ValueError, match="y has"):
        forest.predictive(np.zeros((2, 2), dtype=np.uint8)).log_prob([0.0, 1.0, 0.0])
    for p in (0.0, 1.0, [0.5, np.nan]):
        with pytest.raises(ValueError, match="p must be"):
            forest.predictive(np.zeros((2, 2), dtype=np.uint8)).quantile(p)


KNOWN = np.array([2, 2], dtype=np.uint16)
X = np.zeros((3, 2), dtype=np.uint8)
SEVEN = np.zeros(7)


def average(values: Any, weights: Any, n_values: int) -> Any:
    engine = _kernels.Forest([some().tree.kernel], KNOWN)
    return engine.average(X, values=values, weights=np.ones(weights), n_values=n_values, n_jobs=1)


def along_paths(tree: Any = "some", values: Any = SEVEN[:, None], **other: Any) -> Any:
    asked = dict.fromkeys(("log_split", "log_stop", "leaf", "subtree"), SEVEN) | other
    return _kernels.average_over_paths(some().tree.kernel if tree == "some" else tree, **asked, values=values)


def fates_of_nodes(**other: Any) -> Any:
    asked = dict.fromkeys(("log_split", "log_stop", "leaf", "subtree"), SEVEN) | other
    return _kernels.log_node_fates(some().tree.kernel, **asked)


def pooled(**other: Any) -> Any:
    arrays: dict[str, Any] = {
        "ends": [3, 4], "parent": [-1, 0, 0, 1, 1, 2, 2], "log_reached": SEVEN, "log_stop": SEVEN,
        "log_tree_weights": [0.0],
    } | other  # fmt: skip
    kinds = {"ends": np.int64, "parent": np.int32}
    columns = {name: np.array(values, dtype=kinds.get(name, np.float64)) for name, values in arrays.items()}
    return _kernels.pooled_paths(**columns, log_negligible=-20.0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: _kernels.Forest([1], KNOWN),
        lambda: _kernels.Forest([some().tree.kernel], None),
        lambda: _kernels.Forest([some().tree.kernel], KNOWN).ends(X[:, :1], 1),
        lambda: average([], 1, 1),
        lambda: average([np.ones((7, 1))], 2, 1),
        lambda: average([np.ones((6, 1))], 1, 1),
        lambda: average([np.ones((7, 1))], 1, 2),
        lambda: average([np.ones((7, 0))], 1, 0),
        lambda: average([np.ones((7, 1))], 1, -1),
        lambda: along_paths(leaf=SEVEN[1:]),
        lambda: along_paths(subtree=SEVEN[1:]),
        lambda: along_paths(values=SEVEN[1:, None]),
        lambda: along_paths(values=SEVEN),
        lambda: along_paths(tree=None),
        lambda: fates_of_nodes(leaf=SEVEN[1:]),
        lambda: fates_of_nodes(subtree=SEVEN[1:]),
        lambda: pooled(ends=[7]),
        lambda: pooled(ends=[-1]),
        lambda: pooled(parent=[-1, 0, 0, 1, 1, 2, 6]),
        lambda: pooled(log_reached=SEVEN[1:]),
        lambda: pooled(log_stop=SEVEN[1:]),
        lambda: pooled(log_tree_weights=[]),
        lambda: pooled(log_tree_weights=[0.0, 0.0, 0.0]),
    ],
)
def test_kernels_refuse_arrays_that_do_not_fit(call):
    along_paths(), fates_of_nodes(), pooled(), average([np.ones((7, 1))], 1, 1)  # as they should be
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        call()


ASTRAY = [
    "k.Forest([None], known)",
    "k.Forest([tree], known[:1]).ends(np.zeros((3, 1), np.uint8), 1)",
    "k.Forest([tree], known[:0]).ends(np.zeros((3, 0), np.uint8), 1)",
    "average(np.zeros(2), np.zeros(2))",
    "average(np.zeros(0), np.zeros(0))",
    "average(seven, np.zeros(1))",
    "node_fates(np.zeros(2), np.zeros(2))",
    "node_fates(seven, np.zeros(1))",
    "k.SharedPlan([None])",
    "shape(first_child=[1, 4, -1, -1, -1])",
    "shape(first_child=[-2**31, 3, -1, -1, -1])",
    "shape(n_children=[2, 2**31 - 1, 0, 0, 0])",
    "shape(n_children=[2, -1, 0, 0, 0])",
    "shape(n_children=[4, 2, 0, 0, 0])",
    "shape(feature=[0, 2, -1, -1, -1])",
    "shape(feature=[0, -1, -1, -1, -1])",
    "shape(threshold=[0])",
]


@pytest.fixture(scope="module")
def fate_of() -> dict[str, str]:
    prelude = (
        "import numpy as np, everytree as et; from everytree import _kernels as k\n"
        "tree = et.MetaTree.complete([0, 1, 1], 2).kernel; known = np.array([2, 2], np.uint16); seven = np.zeros(7)\n"
        "def node_fates(split, stop):\n"
        "    k.log_node_fates(tree, log_split=split, log_stop=stop, leaf=seven, subtree=seven)\n"
        "def average(split, stop):\n"
        "    values = np.ones((7, 1))\n"
        "    k.average_over_paths(tree, log_split=split, log_stop=stop, leaf=seven, subtree=seven, values=values)\n"
        "def shape(**other):\n"
        "    arrays = dict(feature=[0, 1, -1, -1, -1], first_child=[1, 3, -1, -1, -1], n_children=[2, 2, 0, 0, 0],\n"
        "                  threshold=[-1] * 5, missing_child=[-1] * 5) | other\n"
        "    arrays = {name: np.array(values, np.int32) for name, values in arrays.items()}\n"
        "    k.Tree(**arrays, n_features=2, exact_width=True)\n"
        "shape()\n"
    )
    return fates(prelude, ASTRAY)


@pytest.mark.parametrize("snippet", ASTRAY)
def test_kernels_refuse_what_would_lead_them_astray(snippet, fate_of):
    assert fate_of[snippet] == "refused"
