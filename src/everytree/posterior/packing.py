"""Posteriors of a forest packed into few bytes without loss: shapes and statistics; everything else is derived.

Children of a node are neighbours and nodes are in level order, so the number of children of each node is the whole
shape; the statistics of an inner node are those of its children together, so only terminals are kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray, NodeArray
from everytree.trees.metatree import MetaTree

if TYPE_CHECKING:
    from everytree.posterior.posterior import Posterior


def slices(sizes: NDArray[np.integer]) -> list[slice]:
    """Return the position of each of several parts that follow one another."""
    ends = np.cumsum(sizes, dtype=np.int64).tolist()
    return [slice(end - size, end) for end, size in zip(ends, sizes.tolist(), strict=True)]


# ---- shapes ---------------------------------------------------------------------------------------------------------


def pack_shapes(trees: Sequence[MetaTree]) -> dict[str, NodeArray]:
    """Return the shapes of all trees one after another: `n_children` of every node, the rest of inner nodes only.

    `n_low_codes` is the number of codes that go to child 0 of a binary split, and 0 for a multiway split.
    """
    inner = [~tree.is_terminal for tree in trees]
    return {
        "n_children": np.concatenate([tree.n_children for tree in trees]),
        "feature": _joined([tree.feature for tree in trees], inner),
        "n_low_codes": _joined([tree.threshold for tree in trees], inner) + np.int32(1),
        "missing_child": _joined([tree.missing_child for tree in trees], inner),
    }


def unpack_shapes(n_nodes: NDArray[np.integer], packed: Mapping[str, NodeArray]) -> dict[str, NodeArray]:
    """Return the arrays of all trees as a `MetaTree` has them, not checked."""
    n_children = packed["n_children"]
    is_inner = n_children > 0
    n_before = np.cumsum(n_children, dtype=np.int64) - n_children
    of_tree = np.repeat(n_before[np.cumsum(n_nodes) - n_nodes], n_nodes)  # children in the trees before
    shapes = {"n_children": n_children, "first_child": np.where(is_inner, 1 + n_before - of_tree, -1).astype(np.int32)}
    of_inner = {
        "feature": packed["feature"],
        "threshold": packed["n_low_codes"] - np.int32(1),
        "missing_child": packed["missing_child"],
    }
    for name, values in of_inner.items():
        shapes[name] = np.full(len(n_children), -1, dtype=np.int32)
        shapes[name][is_inner] = values
    return shapes


def _joined(arrays: Sequence[NDArray[Any]], where: Sequence[NDArray[np.bool_]]) -> NDArray[Any]:
    return np.concatenate([array[some] for array, some in zip(arrays, where, strict=True)])


# ---- statistics -----------------------------------------------------------------------------------------------------


def terminal_statistics(posteriors: Sequence[Posterior]) -> tuple[FloatArray, NDArray[np.int64]]:
    """Return the statistics of all terminals one after another, and `n_rows` of each tree, all at one moment."""
    with _all_held(posteriors):
        statistics = _joined(
            [post._arrays["statistics"] for post in posteriors], [post.tree.is_terminal for post in posteriors]
        )
        return statistics, np.array([post._arrays["n_rows"][0] for post in posteriors])


def joined_arrays(posteriors: Sequence[Posterior]) -> dict[str, NDArray[Any]]:
    """Return the arrays of all posteriors one after another, as they are at one moment."""
    with _all_held(posteriors):
        return {name: np.concatenate([post._arrays[name] for post in posteriors]) for name in posteriors[0]._arrays}


@contextmanager
def _all_held(posteriors: Sequence[Posterior]) -> Iterator[None]:
    """Keep other threads from changing any of the posteriors."""
    with ExitStack() as held:
        for post in sorted(posteriors, key=id):  # one order for all callers prevents deadlocks
            held.enter_context(post._kernel)
        yield
