"""Trees grown on codes, split by split, beside a literal search of every node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import everytree as et
from everytree import _kernels
from naive_grower import Rule, check_tree, entropy, gini, squares

NAMES = ("feature", "first_child", "n_children", "threshold", "missing_child", "terminal")


def table(rng: np.random.Generator, n_rows: int, n_codes: list[int], dtype: Any, share_missing: float) -> np.ndarray:
    codes = np.column_stack([rng.integers(0, n, n_rows) for n in n_codes]).astype(dtype)
    codes[rng.random(codes.shape) < share_missing] = np.iinfo(dtype).max
    return codes


def grown(kernel: Any, sample: np.ndarray, seed: int, **rule: Any) -> dict[str, np.ndarray]:
    given = {"min_samples_leaf": 1, "max_depth": 0, "max_leaf_nodes": 0, "random_splits": False} | rule
    return dict(zip(NAMES, kernel.grow(sample=sample, seed=seed, **given), strict=True))


SHAPES = [
    ([5, 3, 200], np.uint8, 0.0), ([255, 2, 1, 40], np.uint8, 0.1), ([9], np.uint8, 0.5), ([3000, 7], np.uint16, 0.05),
    ([60000, 65534], np.uint16, 0.0), ([1, 1, 2], np.uint8, 0.3), ([255] * 12, np.uint8, 0.0),
    ([255] * 21, np.uint8, 0.01), ([300] * 18, np.uint16, 0.0),
]  # fmt: skip


@pytest.mark.parametrize("random_splits", [False, True])
@pytest.mark.parametrize(("n_codes", "dtype", "share_missing"), SHAPES)
@pytest.mark.parametrize("criterion", ["gini", "entropy", "squared_error", "weighted gini", "weighted squared_error"])
def test_each_split_is_the_best_of_those_looked_at(criterion, n_codes, dtype, share_missing, random_splits):
    rng = np.random.default_rng([len(n_codes), *map(ord, criterion)])
    n_compared = 0
    for seed in range(6):
        n_rows = int(rng.integers(2, 300))
        codes = table(rng, n_rows, n_codes, dtype, share_missing)
        weight = rng.integers(1, 8, n_rows) / 4.0 if criterion.startswith("weighted") else None
        weights = np.ones(n_rows) if weight is None else weight
        known = {
            "codes": codes, "n_codes": np.array(n_codes, dtype=np.int32), "weight": weight,
            "has_missing": np.full(len(n_codes), share_missing > 0.0),
        }  # fmt: skip
        if criterion.endswith("squared_error"):
            y: Any = rng.integers(-20, 20, n_rows) / 4.0
            kernel, value = _kernels.number_grower(y=y, **known), squares(y, weights)
        else:
            n_classes = int(rng.integers(2, 6))
            y = rng.integers(0, n_classes, n_rows)
            name = criterion.split()[-1]
            kernel = _kernels.class_grower(y=y, n_classes=n_classes, criterion=name, **known)
            value = {"gini": gini, "entropy": entropy}[name](y, weights, n_classes)
        rule = Rule(
            value, lambda rows, y=y: len(np.unique(y[rows])) == 1, random_splits,
            int(rng.integers(1, len(n_codes) + 1)), int(rng.integers(1, 4)), int(rng.choice([0, 3])),
        )  # fmt: skip
        sample = np.flatnonzero(rng.random(n_rows) < 0.8)
        arrays = grown(
            kernel, sample, seed, random_splits=random_splits, max_features=rule.max_features,
            min_samples_leaf=rule.min_samples_leaf, max_depth=rule.max_depth,
        )  # fmt: skip
        n_compared += check_tree(arrays, codes, n_codes, known["has_missing"], sample, rule, seed)
    assert n_compared > 10


@pytest.mark.parametrize("random_splits", [False, True])
@pytest.mark.parametrize("share_missing", [0.0, 0.02])
@pytest.mark.parametrize("kind", ["numbers", "far from 0", "an outlier", "two classes"])
def test_splits_of_many_rows_are_the_best_of_those_looked_at(kind, share_missing, random_splits):
    rng = np.random.default_rng(5)
    n_rows, n_codes = 6000, [255] * 20
    codes = table(rng, n_rows, n_codes, np.uint8, share_missing)
    known = {
        "codes": codes, "n_codes": np.array(n_codes, dtype=np.int32), "weight": None,
        "has_missing": np.full(20, share_missing > 0.0),
    }  # fmt: skip
    number = codes[:, 3] / 64.0 + np.sin(codes[:, 7] / 40.0) + rng.normal(size=n_rows)
    if kind == "two classes":
        y: Any = (number > 2.0).astype(np.int64)
        kernel, value = _kernels.class_grower(y=y, n_classes=2, criterion="gini", **known), gini(y, np.ones(n_rows), 2)
    else:
        y = number + {"far from 0": 1e4}.get(kind, 0.0)
        y[0] += 1e3 if kind == "an outlier" else 0.0
        centred = y - y.mean()  # the twin has no more than doubles
        kernel, value = _kernels.number_grower(y=y, **known), squares(centred, np.ones(n_rows))
    rule = Rule(value, lambda rows: len(np.unique(y[rows])) == 1, random_splits, 20, 1, 3)
    arrays = grown(kernel, np.arange(n_rows), 11, random_splits=random_splits, max_features=20, max_depth=3)
    assert check_tree(arrays, codes, n_codes, known["has_missing"], np.arange(n_rows), rule, 11) > 5


@pytest.mark.parametrize("family", [et.Bernoulli(), et.Poisson(), et.Exponential(2.0, 1.0), et.Normal()])
def test_each_split_has_the_most_evidence_of_those_looked_at(family):
    rng = np.random.default_rng(3)
    codes = table(rng, 150, [20, 5, 3], np.uint8, 0.1)
    y = rng.integers(0, 2, 150).astype(float) if family == et.Bernoulli() else rng.poisson(2.0, 150).astype(float)
    statistics = family.statistics(y, np.ones(150))
    n_codes, has_missing = np.array([20, 5, 3], dtype=np.int32), np.ones(3, dtype=bool)
    kernel = _kernels.evidence_grower(
        codes=codes, n_codes=n_codes, has_missing=has_missing, statistics=statistics,
        name=family.kernel, size=family.size, prior=family.hyper[0],
    )  # fmt: skip

    def value(rows: np.ndarray) -> float:
        return float(family.log_evidence(statistics[rows].sum(axis=0)[None])[0])

    rule = Rule(value, lambda rows: len(np.unique(y[rows])) == 1, False, 2, 5)
    arrays = grown(kernel, np.arange(150), 7, max_features=2, min_samples_leaf=5)
    assert check_tree(arrays, codes, n_codes, has_missing, np.arange(150), rule, 7) > 5


def test_the_best_leaf_is_split_next():
    """With `max_leaf_nodes`, each tree is the one before with the most winning split more."""
    rng = np.random.default_rng(0)
    codes = table(rng, 200, [30, 30], np.uint8, 0.0)
    y = (codes[:, 0] > 12).astype(np.int64) ^ (rng.random(200) < 0.2)
    kernel = _kernels.class_grower(
        codes=codes, n_codes=np.array([30, 30], dtype=np.int32), has_missing=np.zeros(2, dtype=bool), y=y, weight=None,
        n_classes=2, criterion="gini",
    )  # fmt: skip
    value = gini(y, np.ones(200), 2)
    whole = value(np.arange(200))
    before = whole
    gains = []
    for n_leaves in range(2, 12):
        arrays = grown(kernel, np.arange(200), 5, max_features=2, max_leaf_nodes=n_leaves)
        assert (arrays["n_children"] == 0).sum() == n_leaves
        ends = arrays["terminal"]
        now = sum(value(np.flatnonzero(ends == end)) for end in np.unique(ends))
        gains.append(now - before)
        before = now
        rule = Rule(value, lambda rows: len(np.unique(y[rows])) == 1, False, 2)
        check_tree(
            arrays, codes, [30, 30], [False, False], np.arange(200), rule, 5, stopped_early=True,
        )  # fmt: skip
    assert gains[0] == max(gains)


def test_terminals_are_those_that_rows_are_routed_to():
    rng = np.random.default_rng(1)
    codes = table(rng, 500, [255, 3, 9], np.uint8, 0.1)
    y = rng.integers(0, 3, 500)
    kernel = _kernels.class_grower(
        codes=codes, n_codes=np.array([255, 3, 9], dtype=np.int32), has_missing=np.ones(3, dtype=bool), y=y,
        weight=None, n_classes=3, criterion="gini",
    )  # fmt: skip
    sample = np.sort(rng.permutation(500)[:300])
    for random_splits in (False, True):
        arrays = grown(kernel, sample, 11, max_features=1, random_splits=random_splits)
        ends = arrays.pop("terminal")
        tree = et.MetaTree.from_arrays(**arrays, n_features=3)
        np.testing.assert_array_equal(tree.route(codes[sample]), ends)


@pytest.mark.parametrize(
    ("y", "n_columns"), [(np.zeros(20, dtype=np.int64), 2), (np.arange(20) % 2, 0), (np.array([1]), 2)]
)
def test_nothing_to_split_is_one_node(y, n_columns):
    kernel = _kernels.class_grower(
        codes=np.zeros((len(y), n_columns), dtype=np.uint8), n_codes=np.ones(n_columns, dtype=np.int32),
        has_missing=np.zeros(n_columns, dtype=bool), y=y.astype(np.int64), weight=None, n_classes=2, criterion="gini",
    )  # fmt: skip
    for random_splits in (False, True):
        arrays = grown(kernel, np.arange(len(y)), 0, max_features=1, random_splits=random_splits)
        assert arrays["feature"].tolist() == [-1]
        assert (arrays["terminal"] == 0).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.array([0, 2, 1])}, "class numbers"),
        ({"codes": np.zeros((2, 1), dtype=np.uint8)}, "as many rows"),
        ({"n_codes": np.array([256], dtype=np.int32)}, "does not fit"),
        ({"n_codes": np.array([1, 1], dtype=np.int32)}, "one entry a column"),
        ({"weight": np.ones(2)}, "one entry a row"),
        ({"criterion": "poisson"}, "criterion"),
        ({"codes": np.zeros((3, 1), dtype=np.int64)}, "uint8 or uint16"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, message):
    given = {
        "codes": np.zeros((3, 1), dtype=np.uint8), "n_codes": np.array([1], dtype=np.int32),
        "has_missing": np.zeros(1, dtype=bool), "y": np.array([0, 1, 0]), "weight": None, "n_classes": 2,
        "criterion": "gini",
    }  # fmt: skip
    with pytest.raises(ValueError, match=message):
        _kernels.class_grower(**(given | change))
    kernel = _kernels.class_grower(**given)
    with pytest.raises(ValueError, match="numbers of rows"):
        grown(kernel, np.array([0, 3]), 0, max_features=1)


@pytest.mark.parametrize("random_splits", [False, True])
@pytest.mark.parametrize("kind", ["classes", "numbers"])
@pytest.mark.parametrize(("n_rows", "n_columns"), [(400, 3), (6000, 3), (3000, 40)])
def test_rows_of_a_table_grow_the_tree_that_a_table_of_them_grows(kind, random_splits, n_rows, n_columns):
    """Whatever stands between them, and wherever small nodes keep their rows: copies of them, or the table itself."""
    rng = np.random.default_rng([n_rows, n_columns, random_splits])
    codes = table(rng, n_rows, [50] * n_columns, np.uint8, 0.02)
    y = (codes[:, 0] > 20).astype(np.int64) ^ (rng.random(n_rows) < 0.2)
    sample = np.sort(rng.choice(n_rows, n_rows // 2, replace=False))

    def grow_tree(rows: np.ndarray, some: np.ndarray) -> dict[str, np.ndarray]:
        known = {
            "codes": np.ascontiguousarray(codes[rows]), "n_codes": np.full(n_columns, 50, dtype=np.int32),
            "weight": None, "has_missing": np.full(n_columns, True),
        }  # fmt: skip
        if kind == "numbers":
            kernel = _kernels.number_grower(y=y[rows].astype(np.float64) + 0.25, **known)
        else:
            kernel = _kernels.class_grower(y=y[rows], n_classes=2, criterion="gini", **known)
        return grown(kernel, some.astype(np.int64), 7, random_splits=random_splits, max_features=n_columns)

    whole = grow_tree(np.arange(n_rows), sample)
    alone = grow_tree(sample, np.arange(len(sample)))
    assert len(whole["feature"]) > 50
    for name in NAMES:
        np.testing.assert_array_equal(whole[name], alone[name], err_msg=name)


@pytest.mark.parametrize("random_splits", [False, True])
def test_the_order_of_a_sample_does_not_matter(random_splits):
    """Sums are exact, so that neither rounding nor where rows are kept depends on it."""
    rng = np.random.default_rng(5)
    codes = table(rng, 5000, [60, 3, 200], np.uint8, 0.02)
    kernel = _kernels.number_grower(
        codes=codes, n_codes=np.array([60, 3, 200], dtype=np.int32), weight=None, has_missing=np.full(3, True),
        y=np.sin(codes[:, 0] / 9.0) + rng.normal(0.0, 0.3, 5000),
    )  # fmt: skip
    sample = rng.choice(5000, 3000, replace=False)
    one, other = (
        grown(kernel, some, 3, random_splits=random_splits, max_features=3, min_samples_leaf=2)
        for some in (np.sort(sample), sample)
    )
    assert len(one["feature"]) > 100
    other["terminal"] = other["terminal"][np.argsort(sample)]
    for name in NAMES:
        np.testing.assert_array_equal(one[name], other[name], err_msg=name)
