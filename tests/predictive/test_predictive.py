"""Predictions: one distribution a row, whatever the block size, the company of the row and later updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import everytree as et
import everytree.predictive.paths
from cases import CASES, Case, examples, families, random_codes, random_tree, seeds, take

CLASSES = ("bernoulli", "categorical")
NO_CLASSES = [case for case in CASES if case.name not in CLASSES]


def fitted(case: Case, seed: int, growing: bool = False, n: int = 40) -> Any:
    """A posterior with rows in it, and 30 rows to predict."""
    rng = np.random.default_rng(seed)
    y, row_data = case.draw(rng, n)
    if growing:
        post: Any = et.GrowingPosterior([2, 3, 2, 4], case.family, et.depth_prior(0.95, 0.5))
        X, X_new = (rng.integers(0, [2, 3, 2, 4], (size, 4)).astype(np.uint8) for size in (n, 30))
    else:
        tree = random_tree(rng)
        post = et.Posterior(tree, case.family, np.where(tree.is_terminal, 0.0, rng.uniform(0, 1, tree.n_nodes)))
        X, X_new = random_codes(rng, tree, n), random_codes(rng, tree, 30)
    y_new, new_data = case.draw(rng, 30)
    return post.update(X, y, **row_data), X_new, y_new, new_data


def everything(case: Case, dist: et.Predictive, y: np.ndarray) -> dict[str, np.ndarray]:
    values = {"mean": dist.mean(), "variance": dist.variance(), "std": dist.std(), "log_prob": dist.log_prob(y)}
    return values | ({"probs": dist.probs()} if case.name in CLASSES else {})


def assert_close(one: dict[str, np.ndarray], other: dict[str, np.ndarray], rtol: float = 1e-13) -> None:
    for name in one:
        np.testing.assert_allclose(one[name], other[name], rtol=rtol, err_msg=name)


growing_too = pytest.mark.parametrize("growing", [False, True], ids=["meta-tree", "growing"])


# ---- one distribution a row --------------------------------------------------------------------------------


@families
@growing_too
@pytest.mark.parametrize("size", [1, 2, 7, 50])
def test_results_do_not_depend_on_the_block_size(case, growing, size, monkeypatch):
    post, X, y, row_data = fitted(case, 1, growing)
    expected = everything(case, post.predictive(X, **row_data), y)
    monkeypatch.setattr(everytree.predictive.paths, "ENTRIES_AT_ONCE", size)
    assert_close(everything(case, post.predictive(X, **row_data), y), expected)


@families
@growing_too
@given(seed=seeds)
@examples(5)
def test_a_row_is_predicted_alike_in_any_company(case, growing, seed):
    post, X, y, row_data = fitted(case, seed, growing)
    together = everything(case, post.predictive(X, **row_data), y)
    order = np.random.default_rng(seed).integers(0, 30, 50)  # some rows twice, some not at all
    others = everything(case, post.predictive(X[order], **take(row_data, order)), y[order])
    assert_close(others, take(together, order))
    alone = everything(case, post.predictive(X[3:4], **take(row_data, slice(3, 4))), y[3:4])
    assert_close(alone, take(together, slice(3, 4)))


@families
@given(seed=seeds)
@examples(8)
def test_it_is_the_mixture_over_the_nodes_of_the_path(case, seed):
    """Weight prod(split_prob above) (1 - split_prob) for each node from the root to the terminal."""
    post, X, y, row_data = fitted(case, seed)
    values = everything(case, post.predictive(X, **row_data), y)
    tree, split_prob = post.tree, post.split_prob
    for i, end in enumerate(tree.route(X)[:10]):
        path = [int(end)]
        while path[0] > 0:
            path.insert(0, int(tree.parent[path[0]]))
        above = np.cumprod([1.0, *split_prob[path[:-1]]])
        weight = above * (1 - np.where(tree.is_terminal[path], 0.0, split_prob[path]))
        repeated = {name: np.repeat(column[i : i + 1], len(path), axis=0) for name, column in row_data.items()}
        nodes = case.family.predictive(post.statistics[path], **repeated)
        mean = weight @ nodes.mean()
        assert values["mean"][i] == pytest.approx(mean, rel=1e-12)
        assert values["variance"][i] == pytest.approx(
            weight @ (nodes.variance() + (nodes.mean() - mean) ** 2), rel=1e-12
        )
        density = weight @ np.exp(nodes.log_prob(np.full(len(path), float(y[i]))))
        assert values["log_prob"][i] == pytest.approx(np.log(density), rel=1e-12, abs=1e-12)
        assert values["std"][i] ** 2 == pytest.approx(values["variance"][i], rel=1e-12)
        if "probs" in values:
            np.testing.assert_allclose(values["probs"][i], weight @ nodes.probs(), rtol=1e-12)


@pytest.mark.parametrize("case", [case for case in CASES if case.name in CLASSES], ids=str)
@growing_too
def test_class_probabilities_agree_with_the_rest(case, growing):
    post, X, _, _ = fitted(case, 2, growing)
    dist = post.predictive(X)
    probs, classes = dist.probs(), np.arange(dist.probs().shape[1])
    assert probs.shape == (30, case.family.size)
    np.testing.assert_allclose(probs.sum(axis=1), 1.0, rtol=1e-13)
    np.testing.assert_allclose(dist.mean(), probs @ classes, rtol=1e-13)
    np.testing.assert_allclose(dist.variance(), probs @ classes**2 - (probs @ classes) ** 2, rtol=1e-12)
    for c in classes:
        np.testing.assert_allclose(np.exp(dist.log_prob(np.full(30, c))), probs[:, c], rtol=1e-12)


@families
@growing_too
def test_before_any_data_it_is_the_prior_predictive(case, growing):
    _, X, y, row_data = fitted(case, 3, growing)
    n_features = X.shape[1]
    tree = et.MetaTree.complete([0, 1, 1], n_features=n_features)
    post = et.GrowingPosterior([4] * 4, case.family) if growing else et.Posterior(tree, case.family, 0.3)
    X = X % 2
    nodes = case.family.predictive(np.zeros((30, case.family.n_statistics)), **row_data)
    expected = {"mean": nodes.mean(), "variance": nodes.variance(), "log_prob": nodes.log_prob(y.astype(float))}
    got = everything(case, post.predictive(X, **row_data), y)
    assert_close({name: got[name] for name in expected}, expected)


@families
@growing_too
def test_later_updates_do_not_change_an_earlier_prediction(case, growing):
    post, X, y, row_data = fitted(case, 4, growing)
    dist = post.predictive(X, **row_data)
    before = everything(case, dist, y)
    post.update(X, y, **row_data).merge(post.copy())
    after = everything(case, dist, y)
    for name in before:
        np.testing.assert_array_equal(after[name], before[name], err_msg=name)
    assert not np.array_equal(post.predictive(X, **row_data).log_prob(y), before["log_prob"])


# ---- no rows -----------------------------------------------------------------------------------------------


@families
@growing_too
@pytest.mark.parametrize("has_rows", [False, True], ids=["prior", "posterior"])
def test_no_rows_have_no_predictions(case, growing, has_rows):
    post, X, y, row_data = fitted(case, 5, growing, n=40 if has_rows else 0)
    nothing = take(row_data, slice(0, 0))
    choices = [nothing] if case.name == "linear" else [nothing, {}]  # with and without row data
    for given_data in choices:
        dist = post.predictive(X[:0], **given_data)
        assert len(dist) == 0
        for name, value in everything(case, dist, y[:0]).items():
            assert value.shape == ((0, case.family.size) if name == "probs" else (0,)), name
            assert value.dtype == np.float64


# ---- what is refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", NO_CLASSES, ids=str)
@growing_too
@pytest.mark.parametrize("n", [30, 0])
def test_probs_are_for_classes(case, growing, n):
    post, X, _, row_data = fitted(case, 6, growing)
    with pytest.raises(TypeError, match=r"probs\(\) is for families of classes"):
        post.predictive(X[:n], **take(row_data, slice(0, n))).probs()


@families
@growing_too
def test_log_prob_wants_targets_that_fit_the_rows(case, growing):
    post, X, y, row_data = fitted(case, 7, growing)
    dist = post.predictive(X, **row_data)
    for wrong in (y[:-1], y[:0], np.append(y, y)):
        with pytest.raises(ValueError, match=f"y has {len(wrong)} entries, but there are 30 rows"):
            dist.log_prob(wrong)
    with pytest.raises(ValueError, match="y has 29 entries along its last axis, but there are 30 rows"):
        dist.log_prob(np.zeros((2, 29)))
    with pytest.raises(TypeError, match="y must be numbers"):
        dist.log_prob(["a"] * 30)
    np.testing.assert_array_equal(dist.log_prob(y.tolist()), dist.log_prob(y))


IMPOSSIBLE = {  # what `update` refuses, predictions refuse too: (family, row data, message)
    "no exposure": ("poisson", {"exposure": [1.0, 0.0]}, r"exposure\[1\] is 0"),
    "negative exposure": ("poisson", {"exposure": [1.0, -1.0]}, r"exposure\[1\] is -1"),
    "unknown exposure": ("poisson", {"exposure": [np.nan, 1.0]}, r"exposure\[0\] is nan"),
    "too few exposures": ("poisson", {"exposure": [1.0]}, "exposure has 1 entry, but X has 2 rows"),
    "too many exposures": ("poisson", {"exposure": [1.0] * 3}, "exposure has 3 entries, but X has 2 rows"),
    "a number": ("poisson", {"exposure": 1.0}, "exposure must have one entry a row"),
    "half censored": ("exponential", {"censored": [0.0, 0.5]}, r"censored\[1\] is 0.5"),
    "infinite input": ("linear", {"inputs": [[1.0, 2.0], [1.0, np.inf]]}, r"inputs\[1, 1\] is inf"),
    "too few inputs": ("linear", {"inputs": [[1.0], [2.0]]}, r"inputs must have shape \(n_rows, 2\)"),
    "too few rows of inputs": ("linear", {"inputs": [[1.0, 2.0]]}, "inputs has 1 entry, but X has 2 rows"),
}


@growing_too
@pytest.mark.parametrize("call", ["update", "predictive"])
@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_impossible_row_data_are_refused(what, call, growing):
    name, row_data, message = IMPOSSIBLE[what]
    family = next(case.family for case in CASES if case.name == name)
    post = et.GrowingPosterior([2], family) if growing else et.Posterior(et.MetaTree.complete([0]), family)
    rows = (np.zeros((2, 1), np.uint8), np.ones(2)) if call == "update" else (np.zeros((2, 1), np.uint8),)
    with pytest.raises(ValueError, match=message):
        getattr(post, call)(*rows, **row_data)


@growing_too
def test_row_data_of_another_family_are_refused(growing):
    post = fitted(CASES[0], 8, growing)[0]
    with pytest.raises(TypeError, match="Bernoulli takes no 'exposure'"):
        post.predictive(np.zeros((2, 4), np.uint8)[:, : 4 if growing else 3], exposure=np.ones(2))
    with pytest.raises(TypeError, match="LinearRegression needs inputs="):
        fitted(CASES[6], 8, growing)[0].predictive(np.zeros((2, 4), np.uint8)[:, : 4 if growing else 3])


@families
def test_row_data_left_out_are_none(case):
    """None stands for the default, where there is one."""
    post, X, y, row_data = fitted(case, 9)
    for name in row_data.keys() - {"inputs"}:
        without, none = post.predictive(X), post.predictive(X, **{name: None})
        assert_close(everything(case, none, y), everything(case, without, y))
