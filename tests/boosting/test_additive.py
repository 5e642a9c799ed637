"""Sums of trees beside walks row by row."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from everytree import _kernels
from everytree.boosting.folds import folds
from everytree.boosting.trees import AdditiveTrees
from naive_boosting import add_value, trees_of


def random_trees(seed: int, n_outputs: int, loss: str | None = None) -> AdditiveTrees:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 7, (80, 4)).astype(np.uint8)
    codes[rng.random(codes.shape) < 0.1] = 255
    has_missing = np.array([True, True, False, True])
    codes[codes[:, 2] == 255, 2] = 0
    run = _kernels.booster(
        codes=codes, n_codes=np.full(4, 7, dtype=np.int32), has_missing=has_missing, exposure=None, weight=None,
        y=rng.integers(0, max(n_outputs, 2), 80).astype(float), n_classes=max(n_outputs, 2),
        loss=loss or ("logit" if n_outputs == 1 else "softmax"),
    ).run(
        role=np.zeros(80, dtype=np.uint8), columns=np.arange(4, dtype=np.int32), seed=seed,
        learning_rate=0.3, tau=1.0, split_prior=0.7, max_steps=9,
        patience=9, max_leaf_nodes=8, max_depth=4, min_samples_leaf=1, subsample=0.8, max_features=1.0, max_rows=10**6,
    )  # fmt: skip
    nodes = {name: run[name] for name in ("feature", "first_child", "threshold", "missing_child")}
    return AdditiveTrees(run["n_nodes"], nodes, run["value"], run["base"], np.full(4, 7))


def literal_scores(trees: AdditiveTrees, X: np.ndarray) -> np.ndarray:
    """A row stops at a node that splits on a value which it has not seen."""
    out = np.tile(trees.base, (len(X), 1))
    every = trees_of({"n_nodes": trees.n_nodes, "value": trees.value, **trees.nodes})
    for t, tree in enumerate(every):
        for i, row in enumerate(X):
            node = 0
            while tree["feature"][node] >= 0:
                code, missing = int(row[tree["feature"][node]]), int(tree["missing_child"][node])
                if code == np.iinfo(X.dtype).max:
                    if missing < 0:
                        break
                    node = int(tree["first_child"][node]) + missing
                elif code >= 7:
                    break
                else:
                    node = int(tree["first_child"][node]) + int(code > tree["threshold"][node])
            add_value(out[i], t, tree["value"][node])
    return out


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int64])
@pytest.mark.parametrize(("n_outputs", "loss"), [(1, "logit"), (3, "softmax"), (6, "shared softmax")])
def test_scores_are_the_sums_of_walks(n_outputs, loss, dtype):
    trees, rng = random_trees(2, n_outputs, loss), np.random.default_rng(0)
    assert trees.n_values == (6 if loss == "shared softmax" else 1)
    X = rng.integers(0, 9, (700, 4)).astype(dtype)  # 7 and 8 are unknown
    if dtype is not np.int64:
        X[rng.random(X.shape) < 0.1] = np.iinfo(dtype).max
    literal = literal_scores(trees, X)
    for n_jobs in (1, 3):
        np.testing.assert_array_equal(trees.scores(X, n_jobs=n_jobs), trees.scores(X, n_jobs=1))
    np.testing.assert_allclose(trees.scores(X), literal, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(trees.scores(np.asfortranarray(X)), literal, rtol=1e-12, atol=1e-12)
    by_tree = [tree.n_terminals for tree, _ in trees.metatrees()]
    assert len(by_tree) == len(trees)
    assert max(by_tree) > 2


@pytest.mark.parametrize("loss", ["softmax", "shared softmax"])
def test_an_average_has_the_mean_score(loss):
    each = [random_trees(seed, 3, loss) for seed in (1, 2, 3)]
    X = np.random.default_rng(1).integers(0, 7, (50, 4)).astype(np.uint8)
    base = np.mean([trees.base for trees in each], axis=0)
    departure = np.mean([trees.scores(X) for trees in each], axis=0) - base
    for factor in (1.7, 0.0):
        average = AdditiveTrees.average(each, factor, unit=3.0, shift=0.5)
        np.testing.assert_allclose(average.scores(X), 0.5 + 3.0 * (base + factor * departure), rtol=1e-12)
    assert len(AdditiveTrees.average(each, 0.0)) == 0


def test_a_pickle_has_the_same_scores():
    trees = random_trees(4, 1)
    X = np.random.default_rng(1).integers(0, 7, (50, 4)).astype(np.uint8)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(trees)).scores(X), trees.scores(X))


@pytest.mark.parametrize(("name", "value"), [
    ("first_child", 0), ("first_child", 10**6), ("feature", 4), ("threshold", 70000), ("missing_child", 2),
])  # fmt: skip
def test_trees_that_lead_nowhere_are_refused(name, value):
    trees = random_trees(4, 1)
    nodes = {key: array.copy() for key, array in trees.nodes.items()}
    nodes[name][0] = value
    with pytest.raises(ValueError, match="is not a split"):
        AdditiveTrees(trees.n_nodes, nodes, trees.value, trees.base, trees.n_codes)


def test_values_must_belong_to_outputs():
    trees = random_trees(4, 3)
    with pytest.raises(ValueError, match="one value, or one for each output"):
        AdditiveTrees(trees.n_nodes, trees.nodes, trees.value.repeat(2, axis=1), trees.base, trees.n_codes)
    shared = random_trees(4, 3, "shared softmax")
    with pytest.raises(ValueError, match="one entry a node"):
        AdditiveTrees(shared.n_nodes, shared.nodes, shared.value[:-1], shared.base, shared.n_codes)


def test_folds_keep_groups_together_and_are_alike():
    rng = np.random.default_rng(0)
    y = np.array([0] * 90 + [1] * 10)
    fold = folds(y, None, 5, rng)
    assert (np.bincount(fold) == 20).all()
    assert (np.bincount(fold[y == 1], minlength=5) == 2).all()
    group = np.repeat(np.arange(25), 4)
    of_group = folds(y, group, 5, rng).reshape(25, 4)
    assert (of_group == of_group[:, :1]).all()
    assert (np.bincount(of_group[:, 0]) == 5).all()
