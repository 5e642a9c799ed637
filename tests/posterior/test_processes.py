"""Posteriors in several processes: shards come home, and a fork in the middle of anything leaves whole models."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
import time
from typing import Any

import numpy as np
import pytest

import everytree as et
from cases import snapshot
from thread_cases import BUILDERS, Counts, builders, fixed_builders, table, tree
from threads import PATIENCE, ignore_fork_warning, in_fork, together

pytestmark = pytest.mark.usefixtures("busy_threads")


# ---- processes -------------------------------------------------------------------------------------------------------


@ignore_fork_warning
@builders
def test_posteriors_go_on_after_a_fork(kind):
    X, y = table("fork", 30_000)
    options = {} if kind == "growing" else {"n_jobs": 2}  # threads before the fork, and in the child
    post = BUILDERS[kind]().update(X, y, **options)
    other = pickle.loads(in_fork(lambda: pickle.dumps(post.update(X, y, **options))))
    assert post.n_rows == len(X)  # the child's rows are the child's
    assert other.n_rows == 2 * len(X)
    assert other.log_evidence == post.update(X, y, **options).log_evidence


@ignore_fork_warning
def test_update_all_goes_on_after_a_fork():
    X, y = table("fork all", 30_000)
    posts = [et.Posterior(tree(seed), et.Bernoulli()) for seed in range(3)]
    et.update_all(posts, X, y, n_jobs=2)

    def job() -> bytes:
        et.update_all(posts, X, y, n_jobs=2)
        return b"".join(map(snapshot, posts))

    answer = in_fork(job)
    et.update_all(posts, X, y, n_jobs=2)
    assert answer == b"".join(map(snapshot, posts))


def shard(kind: str, i: int, n: int) -> Any:
    """What a worker process does: its part of the rows, in a posterior of its own."""
    X, y = table("processes", 9_000)
    options = {} if kind == "growing" else {"n_jobs": 2}
    return BUILDERS[kind]().update(X[i::n], y[i::n], **options)


def add_to(post: Any, i: int, n: int) -> Any:
    """The same for a posterior that came from elsewhere."""
    X, y = table("processes", 9_000)
    return post.update(X[i::n], y[i::n])


@pytest.mark.long
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
@ignore_fork_warning
def test_shards_come_home_from_other_processes(method):
    X, y = table("processes", 9_000)
    with multiprocessing.get_context(method).Pool(2) as pool:
        answers = {kind: pool.starmap_async(shard, [(kind, i, 3) for i in range(3)]) for kind in BUILDERS}
        begun = {kind: shard(kind, 0, 2) for kind in BUILDERS}
        finished = {kind: pool.apply_async(add_to, (begun[kind], 1, 2)) for kind in BUILDERS}
        shards = {kind: answer.get(PATIENCE) for kind, answer in answers.items()}
        finished = {kind: answer.get(PATIENCE) for kind, answer in finished.items()}
    for kind, build in BUILDERS.items():
        expected = build().update(X, y)
        merged = build()
        for part in shards[kind]:
            merged.merge(part)
        for post in (merged, finished[kind]):
            assert post.n_rows == len(X)
            assert post.log_evidence == pytest.approx(expected.log_evidence, rel=1e-10)
            np.testing.assert_allclose(post.predictive(X[:100]).mean(), expected.predictive(X[:100]).mean(), rtol=1e-10)


# ---- forks while another thread is at work ---------------------------------------------------------------------------


def online_rows(X: np.ndarray) -> list[dict[str, int]]:
    return [dict(zip("abcde", row, strict=True)) for row in X.tolist()]


class Learner:
    """A model of some kind, one batch that it learns again and again, and how many rows it has."""

    def __init__(self, kind: str) -> None:
        X, y = table(("forked", kind), 200_000)
        self.X, self.kind = X[:40], kind
        if kind in ("classifier", "regressor"):
            some = {"classifier": et.OnlineForestClassifier, "regressor": et.OnlineForestRegressor}
            self.model: Any = some[kind](n_models=3)
            rows, classes = online_rows(X[:2_000]), y[:2_000].tolist()
            self.size, self.learn = len(rows), lambda: self.model.learn_many(rows, classes)
        elif kind == "forest":
            self.model = et.Forest([et.Posterior(tree(seed), et.Bernoulli()) for seed in range(5)])
            self.size, self.learn = len(X), lambda: self.model.update(X, y)
        elif kind == "merged forest":
            self.model = et.Forest([et.Posterior(tree(seed), et.Bernoulli()) for seed in range(5)])
            other = self.model.copy().update(X, y)
            self.size, self.learn = len(X), lambda: self.model.merge(other)
        elif kind == "estimator":
            self.model = et.MetaForestClassifier(n_estimators=3, random_state=0).fit(X[:500], y[:500])
            self.model = self.model.blank()
            self.size, self.learn = len(X), lambda: self.model.partial_fit(X, y, allow_overlap=True)
        else:
            self.model = BUILDERS[kind]()
            self.size, self.learn = len(X), lambda: self.model.update(X, y)

    def rows_of_each_tree(self) -> list[int]:
        forest = getattr(self.model, "forest_", self.model)
        return [post.n_rows for post in getattr(forest, "posteriors", [forest])]

    def use(self) -> None:
        """Reads and writes, as far as a process may that has the model."""
        if self.kind in ("classifier", "regressor"):
            self.model.predict_many(online_rows(self.X))
        elif self.kind == "estimator":
            self.model.predict_proba(self.X)
        else:
            self.model.predictive(self.X).mean()
        pickle.dumps(self.model)
        self.learn()


def look(learner: Learner) -> bytes:
    """Whether a process that was just forked has a whole model, or is told that it has none."""
    try:
        rows = learner.rows_of_each_tree()
        learner.use()
    except RuntimeError as error:
        return b"told" if "forked" in str(error) else str(error).encode()
    return b"whole" if len(set(rows)) == 1 and rows[0] % learner.size == 0 else f"rows: {rows}".encode()


KINDS = [*BUILDERS, "forest", "merged forest", "estimator", "classifier", "regressor"]


@ignore_fork_warning
@pytest.mark.parametrize("kind", KINDS)
def test_a_fork_during_updates_leaves_whole_models_or_says_so(kind):
    learner, done = Learner(kind), threading.Event()
    assert look(learner) == b"whole"  # imports what is imported late: Python itself cannot be forked in an import

    def learn() -> None:
        while not done.is_set():
            learner.learn()

    thread = threading.Thread(target=learn, daemon=True)
    thread.start()
    try:
        for delay in (0.0, 0.01, 0.03, 0.07):
            time.sleep(delay)
            assert in_fork(lambda: look(learner)) in (b"whole", b"told")
    finally:
        done.set()
        thread.join(PATIENCE)
    assert not thread.is_alive()
    assert look(learner) == b"whole"


class Gate(Counts):
    """Leaves that stop in the middle of an update, until they may go on."""

    def __init__(self) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()

    def log_evidence(self, statistics):
        self.reached.set()
        assert self.go_on.wait(PATIENCE)
        return super().log_evidence(statistics)


@ignore_fork_warning
@pytest.mark.parametrize("n_trees", [1, 2])
def test_a_model_that_was_forked_in_the_middle_of_an_update_is_never_read(n_trees):
    family = Gate()
    posts = [et.Posterior(tree(seed), family) for seed in range(n_trees)]
    bystander = et.Posterior(tree(), et.Bernoulli())
    X, y = table("gate", 100)
    writer = threading.Thread(target=lambda: et.update_all(posts, X, y), daemon=True)
    writer.start()
    assert family.reached.wait(PATIENCE)

    def job() -> bytes:
        family.go_on.set()
        for post in posts:  # all of them: the second has no rows yet, and never will have those of the first
            for use in (lambda p: p.n_rows, lambda p: p.copy(), lambda p: p.update(X, y), lambda p: p.predictive(X)):
                with pytest.raises(RuntimeError, match="another thread when the process was forked"):
                    use(post)
        return str(bystander.update(X, y).n_rows).encode()

    assert in_fork(job) == b"100"
    family.go_on.set()
    writer.join(PATIENCE)
    assert [post.n_rows for post in posts] == [100] * n_trees


@ignore_fork_warning
@fixed_builders
def test_a_reader_that_a_fork_has_lost_leaves_the_model_whole(kind):
    post, (X, y) = BUILDERS[kind](), table("lost reader", 1000)
    reached, go_on = threading.Event(), threading.Event()

    def read() -> None:
        with post._kernel:
            reached.set()
            assert go_on.wait(PATIENCE)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    assert reached.wait(PATIENCE)

    def job() -> bytes:
        together(lambda: post.update(X, y), lambda: post.update(X, y))  # new threads of the child, too
        return str(post.n_rows).encode()

    assert in_fork(job) == b"2000"
    assert in_fork(lambda: in_fork(job)) == b"2000"  # and of its child
    go_on.set()
    reader.join(PATIENCE)
    assert post.n_rows == 0


@ignore_fork_warning
@fixed_builders
def test_a_thread_that_forks_keeps_what_it_holds(kind):
    post, (X, y) = BUILDERS[kind](), table("holder", 1000)

    def job() -> bytes:
        with post._kernel.writing:
            post.update(X, y)
        together(lambda: post.update(X, y))
        return str(post.n_rows).encode()

    with post._kernel.writing:
        child = in_fork(lambda: (post.update(X, y), str(post.n_rows).encode())[1])
    assert child == b"1000"
    assert in_fork(job) == b"2000"
