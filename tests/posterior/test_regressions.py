"""Holes that were found once and must stay closed."""

from __future__ import annotations

import contextlib
import pickle

import numpy as np
import pytest

import everytree as et
from cases import CASES, assert_same, rng_for, snapshot
from random_shapes import random_shape


class Squares(et.Family):
    """A family whose statistics overflow in small integer types."""

    n_statistics = 2

    def statistics(self, y, weight):
        return weight[:, None] * np.stack([np.ones(len(y)), y**2], axis=1)

    def log_evidence(self, statistics):
        return -0.5 * statistics[:, 1] * 1e-3

    def predictive(self, statistics):
        raise AssertionError("not asked here")


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float32, np.float64])
def test_own_families_get_targets_that_do_not_wrap_around(dtype):
    y = np.array([100, 120, 90], dtype=dtype)
    X = np.zeros((3, 0), dtype=np.uint8)
    post = et.Posterior(et.MetaTree.complete([]), Squares()).update(X, y)
    assert post.statistics[0, 1] == 100.0**2 + 120.0**2 + 90.0**2


@pytest.mark.parametrize("threshold", [1, 254, 255, 300])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_trees_with_and_without_a_missing_branch_share_nothing_they_should_not(threshold, order, dtype):
    plain = et.MetaTree.from_arrays([0, -1, -1], [1, -1, -1], [2, 0, 0], [threshold, -1, -1])
    aware = [
        et.MetaTree.from_arrays([0, -1, -1], [1, -1, -1], [2, 0, 0], [threshold, -1, -1], missing_child=[m, -1, -1])
        for m in (0, 1)
    ]
    X = np.array([[0], [5], [np.iinfo(dtype).max], [np.iinfo(dtype).max - 1]], dtype=dtype)
    y = np.array([0, 1, 1, 0])
    for other in aware:
        trees = [(plain, other)[i] for i in order]
        together = [et.Posterior(tree, et.Bernoulli()) for tree in trees]
        et.update_all(together, X, y)
        for post in together:
            assert_same(post, et.Posterior(post.tree, et.Bernoulli()).update(X, y))


def growing_and_fixed():
    rng = rng_for("pickles")
    X = rng.integers(0, 2, (60, 3)).astype(np.uint8)
    fixed = et.Posterior(et.MetaTree.complete([0, 1, 2]), et.Normal()).update(X, X[:, 0] + 0.5)
    return [fixed, et.GrowingPosterior([2, 2, 2], et.Normal()).update(X, X[:, 0] + 0.5)], X


def test_pickles_with_shared_or_read_only_buffers_become_independent_posteriors():
    posteriors, X = growing_and_fixed()
    for post in posteriors:
        buffers: list[pickle.PickleBuffer] = []
        data = pickle.dumps(post, protocol=5, buffer_callback=buffers.append)
        frozen = [bytes(buffer.raw()) for buffer in buffers]
        one, two = (pickle.loads(data, buffers=frozen) for _ in range(2))
        before = two.log_evidence
        one.update(X[:5], np.ones(5))
        assert two.log_evidence == before == post.log_evidence
        assert one.log_evidence != before


def test_a_pickled_state_of_the_wrong_shape_is_refused():
    posteriors, _ = growing_and_fixed()
    for post, key in zip(posteriors, ("arrays", "_arrays"), strict=True):
        state = post.__getstate__()
        state[key]["leaf"] = state[key]["leaf"][:-1]
        with pytest.raises(ValueError, match="leaf has shape"):
            object.__new__(type(post)).__setstate__(state)


def test_a_growing_update_that_is_interrupted_changes_nothing(monkeypatch):
    monkeypatch.setattr("everytree.posterior.growing.ROWS_AT_ONCE", 16)
    rng = rng_for("interrupted")
    X = rng.integers(0, 2, (100, 8)).astype(np.uint8)
    post = et.GrowingPosterior([2] * 8, et.Bernoulli()).update(X[:10], X[:10, 0])
    before = (post.log_evidence, post.n_rows, post.n_points, post.n_nodes)
    calls = []

    def interrupted(self, n_new):
        calls.append(n_new)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(self, n_new)

    original = et.GrowingPosterior._make_room
    monkeypatch.setattr(et.GrowingPosterior, "_make_room", interrupted)
    with pytest.raises(KeyboardInterrupt):
        post.update(X, X[:, 0])
    assert (post.log_evidence, post.n_rows, post.n_points, post.n_nodes) == before
    monkeypatch.setattr(et.GrowingPosterior, "_make_room", original)
    again = et.GrowingPosterior([2] * 8, et.Bernoulli()).update(X[:10], X[:10, 0]).update(X, X[:, 0])
    assert post.update(X, X[:, 0]).log_evidence == pytest.approx(again.log_evidence, rel=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda: et.Bernoulli(1e308, 1e308),
        lambda: et.Normal(mean=1e200),
        lambda: et.Normal(scale=1e-310),
        lambda: et.Poisson(1e308, 1e-308),
        lambda: et.LinearRegression(1, precision=1e300),
    ],
)
def test_priors_that_would_overflow_are_refused(make):
    with pytest.raises(ValueError, match="1e60"):
        make()


def test_what_is_frozen_stays_frozen():
    tree = et.MetaTree.complete([0])
    post = et.Posterior(tree, et.Bernoulli())
    grow = et.GrowingPosterior([2, 3], et.Bernoulli())
    with pytest.raises(AttributeError):
        tree.feature = np.zeros(3)
    with pytest.raises(AttributeError):
        post.tree = tree
    with pytest.raises(AttributeError):
        post.family = et.Bernoulli(1.0, 1.0)
    with pytest.raises(ValueError, match="read-only"):
        grow.n_children[0] = 9


def test_codes_written_by_another_thread_never_leave_the_tree():
    """Routing is kept inside the tree by the walk itself, not only by the check before it."""
    import threading

    tree = random_shape([5] * 4, 4, rng=0)
    X = np.zeros((200_000, 4), dtype=np.uint8)
    y = np.zeros(len(X), dtype=np.int64)
    post, done = et.Posterior(tree, et.Bernoulli()), threading.Event()

    def scribble() -> None:
        while not done.is_set():
            X[::97] = 250
            X[::97] = 1

    thread = threading.Thread(target=scribble)
    thread.start()
    try:
        for _ in range(20):
            with contextlib.suppress(ValueError):  # the check may see the scribbled codes, and refuses them then
                post.update(X, y)
    finally:
        done.set()
        thread.join()
    total = post.statistics[tree.is_terminal].sum()
    assert total == post.n_rows


def test_every_family_survives_a_round_trip():
    for case in CASES:
        post = et.Posterior(et.MetaTree.complete([0, 1, 1]), case.family)
        assert snapshot(pickle.loads(pickle.dumps(post))) == snapshot(post)
