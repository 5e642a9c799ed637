"""Trees of numbers are grown on whole numbers: sums are exact, so that neither order nor unit of the rows matters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from everytree import _kernels

NAMES = ("feature", "first_child", "n_children", "threshold", "missing_child", "terminal")
N_CODES = [40, 7, 200, 3]
RULE = {"max_features": 4, "min_samples_leaf": 2, "max_depth": 4, "max_leaf_nodes": 0, "random_splits": False}


def table(n_rows: int, seed: int, share_missing: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Codes, and targets that depend on two of the columns."""
    rng = np.random.default_rng(seed)
    codes = np.column_stack([rng.integers(0, n, n_rows) for n in N_CODES]).astype(np.uint8)
    y = codes[:, 0] / 8.0 - (codes[:, 1] > 3) + rng.normal(size=n_rows)
    codes[rng.random(codes.shape) < share_missing] = 255
    return codes, y


def known(codes: np.ndarray, weight: np.ndarray | None = None) -> dict[str, Any]:
    return {
        "codes": codes, "n_codes": np.array(N_CODES, dtype=np.int32), "weight": weight,
        "has_missing": np.full(len(N_CODES), True),
    }  # fmt: skip


def grown(kernel: Any, n_rows: int, **options: Any) -> dict[str, np.ndarray]:
    return dict(zip(NAMES, kernel.grow(sample=np.arange(n_rows), seed=3, **RULE | options), strict=True))


def of_numbers(codes: np.ndarray, y: np.ndarray, weight: np.ndarray | None = None, **options: Any) -> Any:
    return grown(_kernels.number_grower(y=y, **known(codes, weight)), len(y), **options)


def assert_same_tree(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> None:
    for name in NAMES[:5]:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)


@pytest.mark.parametrize("random_splits", [False, True])
@pytest.mark.parametrize("n_rows", [60, 3000])
def test_the_order_of_rows_does_not_matter(n_rows, random_splits):
    codes, y = table(n_rows, 1)
    order = np.random.default_rng(2).permutation(n_rows)
    tree = of_numbers(codes, y, random_splits=random_splits)
    other = of_numbers(codes[order], y[order], random_splits=random_splits)
    assert len(tree["feature"]) > 3
    assert_same_tree(tree, other)
    np.testing.assert_array_equal(tree["terminal"][order], other["terminal"])


@pytest.mark.parametrize("unit", [2.0**-40, 2.0**-3, 2.0**50])
def test_the_unit_of_targets_does_not_matter(unit):
    codes, y = table(2000, 4)
    assert_same_tree(of_numbers(codes, y), of_numbers(codes, unit * y))


def test_an_offset_of_targets_does_not_matter():
    codes, y = table(2000, 5)
    whole = np.round(16.0 * y)
    assert_same_tree(of_numbers(codes, whole, max_depth=3), of_numbers(codes, whole + 2.0**40, max_depth=3))


def test_weights_of_one_are_no_weights():
    codes, y = table(1500, 6)
    assert_same_tree(of_numbers(codes, y, max_depth=3), of_numbers(codes, y, np.ones(len(y)), max_depth=3))


def test_two_classes_are_the_numbers_zero_and_one():
    codes, y = table(2500, 7)
    label = (y > 2.0).astype(np.int64)
    of_classes = _kernels.class_grower(y=label, n_classes=2, criterion="gini", **known(codes))
    tree = grown(of_classes, len(label), max_depth=3)
    assert len(tree["feature"]) > 5
    assert_same_tree(tree, of_numbers(codes, label.astype(np.float64), max_depth=3))


@pytest.mark.parametrize("y", [0.0, 7.5, 1e12, -1e-300])
def test_equal_targets_are_not_split(y):
    codes, _ = table(100, 8)
    assert len(of_numbers(codes, np.full(100, y))["feature"]) == 1


@pytest.mark.parametrize("size", [1e6, 1e15, 1e28])
def test_an_outlier_is_found_and_nothing_overflows(size):
    codes, y = table(800, 9, share_missing=0.0)
    codes[:, 2] = np.minimum(codes[:, 2], 150)
    codes[17, 2], y[17] = 199, size
    tree = of_numbers(codes, y, min_samples_leaf=1)
    assert tree["feature"][0] == 2
    assert np.sum(tree["terminal"] == tree["terminal"][17]) == 1
