"""Several threads: no row lost, no state seen half made, nobody waits for ever."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import everytree as et
from cases import assert_same, families, rng_for, snapshot, take
from thread_cases import BUILDERS, Counts, builders, fixed_builders, table, tree
from threads import together

pytestmark = pytest.mark.usefixtures("busy_threads")


def evidence_after(kind: str, X: np.ndarray, y: np.ndarray, n_times: int) -> np.ndarray:
    """Log evidence after the same batch 0, 1, ... times."""
    post = BUILDERS[kind]()
    return np.array([post.log_evidence] + [post.update(X, y).log_evidence for _ in range(n_times)])


def assert_whole(post: et.Posterior, statistics: np.ndarray) -> None:
    """What the root holds is what the terminals hold."""
    np.testing.assert_array_equal(statistics[0], statistics[post.tree.is_terminal].sum(axis=0))


# ---- many writers ----------------------------------------------------------------------------------------------------


@families
def test_rows_from_many_threads_all_arrive(case):
    """Batches small enough to keep the interpreter and large enough to let go of it, mixed."""
    rng = rng_for("many", case)
    X, _ = table(case, 40_000)
    y, row_data = case.draw(rng, len(X))
    expected = et.Posterior(tree(), case.family).update(X, y, **row_data)
    post = et.Posterior(tree(), case.family)
    edges = np.sort(rng.choice(np.arange(1, len(X)), 299, replace=False))
    batches = np.split(np.arange(len(X)), edges)

    def writer(mine: list[np.ndarray], n_jobs: int) -> None:
        for rows in mine:
            post.update(X[rows], y[rows], n_jobs=n_jobs, **take(row_data, rows))

    together(*(lambda i=i: writer(batches[i::6], 1 + i % 2) for i in range(6)))
    assert post.n_rows == len(X)
    assert_same(post, expected)


@builders
def test_every_kind_of_posterior_takes_many_writers(kind):
    X, y = table(kind, 20_000)
    expected = BUILDERS[kind]().update(X, y)
    post = BUILDERS[kind]()

    def writer(first: int) -> None:
        for rows in np.array_split(np.arange(len(X))[first::6], 50):
            post.update(X[rows], y[rows])

    together(*(lambda first=first: writer(first) for first in range(6)))
    assert post.n_rows == len(X)
    assert post.log_evidence == pytest.approx(expected.log_evidence, rel=1e-10)
    np.testing.assert_allclose(
        post.predictive(X[:200]).mean(), expected.predictive(X[:200]).mean(), rtol=1e-10, atol=1e-12
    )


def test_failed_updates_beside_good_ones_leave_no_trace():
    X, y = table("failed", 20_000)
    bad = y.copy()
    bad[-1] = 9
    expected = BUILDERS["native"]().update(X, y).update(X, y)
    post = BUILDERS["native"]()

    def fail() -> None:
        for _ in range(10):
            with pytest.raises(ValueError, match=r"y\[19999\]"):
                post.update(X, bad, n_jobs=2)

    together(fail, fail, lambda: post.update(X, y), lambda: post.update(X, y))
    assert_same(post, expected)


# ---- readers ---------------------------------------------------------------------------------------------------------


def while_writing(writers: list[Callable[[], Any]], read: Callable[[], Any], at_least: int = 20) -> None:
    """Reads over and over for as long as somebody writes."""
    done = threading.Event()

    def write() -> None:
        try:
            together(*writers)
        finally:
            done.set()

    def reader() -> None:
        n = 0
        while n < at_least or not done.is_set():
            read()
            n += 1

    together(write, reader, reader)


@fixed_builders
def test_readers_see_whole_states(kind):
    X, y = table("whole", 3_000)
    post = BUILDERS[kind]()

    n_times = 400 if kind == "native" else 25

    def write() -> None:
        for _ in range(n_times):
            post.update(X, y)
            post.update(X[:7], y[:7])

    def read() -> None:
        assert_whole(post, post.statistics)
        assert ((post.split_prob >= 0.0) & (post.split_prob <= 1.0)).all()
        subtree = post.subtree_log_evidence
        assert subtree.shape == (post.tree.n_nodes,)
        np.testing.assert_allclose(post.predictive(X[:20]).probs().sum(axis=1), 1.0, rtol=1e-12)

    while_writing([write, write], read)
    assert post.n_rows == 2 * n_times * (len(X) + 7)


def test_readers_do_not_see_updates_that_fail():
    X, y = table("unseen", 30_000)
    post = BUILDERS["native"]().update(X[:50], y[:50])
    before = snapshot(post)
    bad = y.copy()
    bad[-1] = 9

    def fail() -> None:
        for _ in range(30):
            with pytest.raises(ValueError, match=r"y\[29999\]"):
                post.update(X, bad)

    def read() -> None:
        assert snapshot(post) == before

    while_writing([fail, fail], read)


@builders
def test_a_reader_sees_one_of_the_states_between_batches(kind):
    X, y = table("between", 40_000)
    n_points = len(np.unique(X, axis=0))
    possible = evidence_after(kind, X, y, 20)
    post = BUILDERS[kind]()

    def write() -> None:
        for _ in range(10):
            post.update(X, y)

    def read() -> None:
        assert np.isclose(possible, post.log_evidence, rtol=1e-10, atol=1e-10).any()
        assert post.n_rows % len(X) == 0
        if kind == "growing":
            assert post.n_points in (0, n_points)

    while_writing([write, write], read)
    assert post.log_evidence == pytest.approx(possible[20], rel=1e-10)


# ---- copies ----------------------------------------------------------------------------------------------------------

COPIES: dict[str, Callable[[Any], Any]] = {
    "copy method": lambda post: post.copy(),
    "copy.copy": copy.copy,
    "copy.deepcopy": copy.deepcopy,
    "pickle": lambda post: pickle.loads(pickle.dumps(post)),
}


@pytest.mark.parametrize("how", COPIES)
@builders
def test_a_copy_made_during_updates_is_a_state_between_batches(kind, how):
    X, y = table("copies", 2_000)
    n_times = 100 if kind == "native" else 10
    possible = evidence_after(kind, X, y, 2 * n_times)
    post = BUILDERS[kind]()

    def write() -> None:
        for _ in range(n_times):
            post.update(X, y)

    def read() -> None:
        other = COPIES[how](post)
        n_batches, rest = divmod(other.n_rows, len(X))
        assert rest == 0
        assert other.log_evidence == pytest.approx(possible[n_batches], rel=1e-10, abs=1e-10)
        if n_batches < 2 * n_times:
            other.update(X, y)  # goes on by itself
            assert other.log_evidence == pytest.approx(possible[n_batches + 1], rel=1e-10)

    while_writing([write, write], read, at_least=3)
    assert post.log_evidence == pytest.approx(possible[-1], rel=1e-10)


@builders
def test_a_merge_during_updates_takes_whole_batches(kind):
    X, y = table("merge", 2_000)
    n_times = 100 if kind == "native" else 10
    possible = evidence_after(kind, X, y, 2 * n_times)
    post = BUILDERS[kind]()

    def write() -> None:
        for _ in range(n_times):
            post.update(X, y)

    def read() -> None:
        total = BUILDERS[kind]().merge(post)
        n_batches, rest = divmod(total.n_rows, len(X))
        assert rest == 0
        assert total.log_evidence == pytest.approx(possible[n_batches], rel=1e-10, abs=1e-10)

    while_writing([write, write], read, at_least=3)


@builders
def test_merging_crosswise_does_not_lock_up(kind):
    X, y = table("cross", 50)
    left, right = BUILDERS[kind]().update(X, y), BUILDERS[kind]().update(X, y)

    def merge(into: Any, other: Any) -> None:
        for _ in range(8):
            into.merge(other.copy() if into is other else other)
            assert into.n_rows % len(X) == 0

    together(
        lambda: merge(left, right), lambda: merge(right, left), lambda: merge(left, left), lambda: merge(right, right)
    )


# ---- many posteriors at once -----------------------------------------------------------------------------------------


@fixed_builders
def test_update_all_on_overlapping_lists(kind):
    family = et.Bernoulli() if kind == "native" else Counts()
    posts = [et.Posterior(tree(seed), family, 0.3 + 0.1 * seed) for seed in range(5)]
    X, y = table("overlap", 700)
    lists = [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 4], [1, 3], [3, 1, 2]]
    n_times = 60 if kind == "native" else 6

    def writer(mine: list[int]) -> None:
        for i in range(n_times):
            et.update_all([posts[j] for j in mine], X, y, n_jobs=1 + i % 2)

    def single(j: int) -> None:
        for _ in range(n_times):
            posts[j].update(X[:300], y[:300])

    def read() -> None:
        for post in posts:
            assert_whole(post, post.statistics)

    while_writing([*(lambda mine=mine: writer(mine) for mine in lists), lambda: single(2)], read, at_least=5)
    for j, post in enumerate(posts):
        weight = n_times * sum(j in mine for mine in lists) + n_times * (j == 2) * (np.arange(len(X)) < 300)
        expected = et.Posterior(post.tree, family, 0.3 + 0.1 * j).update(X, y, weight)
        assert post.n_rows == weight.sum() if np.ndim(weight) else weight * len(X)
        assert post.log_evidence == pytest.approx(expected.log_evidence, rel=1e-10)
        np.testing.assert_allclose(post.statistics, expected.statistics, rtol=1e-10)


def test_failed_update_all_lets_go_of_every_posterior():
    posts = [et.Posterior(tree(seed), et.Bernoulli()) for seed in range(3)]
    X, y = table("let go", 600)
    bad = y.copy()
    bad[-1] = 9

    def fail(order: int) -> None:
        for _ in range(20):
            with pytest.raises(ValueError, match=r"y\[599\]"):
                et.update_all(posts[::order], X, bad)

    together(lambda: fail(1), lambda: fail(-1))
    together(*(lambda post=post: post.update(X, y) for post in posts))  # other threads, so nothing is still held
    for post in posts:
        assert_same(post, et.Posterior(post.tree, et.Bernoulli()).update(X, y))


def test_one_tree_serves_many_threads_from_its_first_use_on():
    shape = tree()
    X, y = table("first use", 5_000)
    ends = tree().route(X)
    posts: list[et.Posterior] = []

    def use() -> None:
        np.testing.assert_array_equal(shape.route(X, n_jobs=2), ends)
        posts.append(et.Posterior(shape, et.Bernoulli()).update(X, y))

    together(*[use] * 8)
    assert len({snapshot(post) for post in posts}) == 1
