"""Many meta-trees on one table: rows with the same conditions are counted and evaluated once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from numpy.typing import ArrayLike

from everytree import _kernels
from everytree.base.arrays import readable
from everytree.base.checks import resolve_n_jobs
from everytree.families.base import NativeFamily
from everytree.posterior.posterior import Posterior
from everytree.trees.metatree import MetaTree


@dataclass(frozen=True)
class SharedUpdate:
    """The work that `update_all` did."""

    nodes_touched: int  # nodes that some row reached, over all meta-trees
    # number of these nodes that were evaluated; the others share the result of a node with the same conditions
    nodes_evaluated: int


def update_all(
    posteriors: Sequence[Posterior],
    X: ArrayLike,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    n_jobs: int | None = None,
    **row_data: Any,
) -> SharedUpdate:
    """Condition many posteriors on the same rows, like `update` on each of them.

    Nodes of different meta-trees that are reached by the same conditions, in whatever order, hold the same rows: they
    are counted and evaluated once. A call that fails changes none of them. Families written in Python are updated one
    after another.

    Parameters
    ----------
    posteriors : sequence of Posterior
        Different objects with leaves of one family; priors may differ.
    X, y
        As in `Posterior.update`.
    sample_weight, n_jobs
        As in `Posterior.update`.
    **row_data
        As in `Posterior.update`.
    """
    posteriors = list(posteriors)
    _check_distinct(posteriors)
    if not posteriors:
        return SharedUpdate(0, 0)
    first = posteriors[0]
    extra = first.family.pack_rows(row_data, X) if row_data or first.family.row_data else None
    jobs = resolve_n_jobs(n_jobs)
    with ExitStack() as held:
        for post in sorted(posteriors, key=id):  # one order for all callers prevents deadlocks
            held.enter_context(post._kernel.writing)
        if not isinstance(first.family, NativeFamily):
            return _one_by_one(posteriors, X, y, sample_weight, jobs, row_data)
        plan = _plan(tuple(post.tree for post in posteriors))
        kernels = [post._kernel for post in posteriors]
        asked = {"plan": plan, "all": kernels, "extra": extra, "n_jobs": jobs}
        report = kernels[0].update_shared(X=X, y=y, weight=sample_weight, **asked)
        if report is None:
            codes, target, weight = readable(X, y, sample_weight)
            report = kernels[0].update_shared(X=codes, y=target, weight=weight, **asked)
    return SharedUpdate(*report)


def _check_distinct(posteriors: list[Posterior]) -> None:
    seen: set[int] = set()
    for i, post in enumerate(posteriors):
        if not isinstance(post, Posterior):
            raise TypeError(f"posteriors[{i}] must be a Posterior, not {type(post).__name__}")
        if id(post) in seen:
            raise ValueError(f"posteriors[{i}] occurs twice; the rows would be counted twice")
        seen.add(id(post))
        if type(post.family) is not type(posteriors[0].family) or (
            post.family.n_statistics != posteriors[0].family.n_statistics
        ):
            raise ValueError(f"posteriors[{i}] has leaves {post.family}, but posteriors[0] has {posteriors[0].family}")


@lru_cache(maxsize=8)
def _plan(trees: tuple[MetaTree, ...]) -> Any:
    """Find the nodes that coincide, which depends on the shapes alone: done once for a set of trees."""
    return _kernels.SharedPlan([tree.kernel for tree in trees])


def _one_by_one(
    posteriors: list[Posterior],
    X: ArrayLike,
    y: ArrayLike,
    weight: ArrayLike | None,
    jobs: int,
    row_data: dict[str, Any],
) -> SharedUpdate:
    """Update one after another; if one fails, those before it are restored."""
    done: list[tuple[Posterior, dict[str, Any]]] = []
    n_touched = 0
    try:
        for post in posteriors:
            done.append((post, post.__getstate__()))
            post.update(X, y, weight, n_jobs=jobs, **row_data)
            n_touched += post._kernel.n_touched
    except BaseException:
        for post, before in done:
            post._restore(before)
        raise
    return SharedUpdate(n_touched, n_touched)
