"""Posteriors of a forest packed into few bytes without loss: shapes and statistics; everything else is derived.

Children of a node are neighbours and nodes are in level order, so the number of children of each node is the whole
shape; the statistics of an inner node are those of its children together, so only terminals are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.posterior.posterior import Posterior
from everytree.trees.metatree import MetaTree

_SMALLER = (np.uint8, np.uint16, np.uint32, np.float32)


def smallest(values: NDArray[Any]) -> NDArray[Any]:
    """Return equal numbers in the smallest type that holds each of them exactly; -0.0 may become 0.0."""
    for kind in _SMALLER:
        with np.errstate(invalid="ignore", over="ignore"):
            narrow = values.astype(kind)
        if np.array_equal(narrow.astype(values.dtype), values):
            return narrow
    return values


def pack_posteriors(posteriors: Sequence[Posterior]) -> dict[str, Any]:
    """Return plain arrays of all trees one after another, and what they have in common."""
    trees = [post.tree for post in posteriors]
    states = [post.__getstate__() for post in posteriors]
    kept = [state["arrays"]["statistics"][tree.is_terminal] for state, tree in zip(states, trees, strict=True)]
    statistics = np.concatenate(kept)
    same = _in_common(states)
    return {
        "n_nodes": np.array([tree.n_nodes for tree in trees]),
        "widths": np.array([-1 if tree.declared_width is None else tree.declared_width for tree in trees]),
        "n_children": smallest(np.concatenate([tree.n_children for tree in trees])),
        "feature": smallest(np.concatenate([tree.feature[~tree.is_terminal] for tree in trees])),
        "threshold": smallest(np.concatenate([tree.threshold[~tree.is_terminal] + 1 for tree in trees])),
        "missing_child": smallest(np.concatenate([tree.missing_child[~tree.is_terminal] + 1 for tree in trees])),
        "statistics": [smallest(column) for column in statistics.T],
        "n_rows": np.array([state["arrays"]["n_rows"][0] for state in states]),
        "families": [states[0]["family"]] if same else [state["family"] for state in states],
        "split_priors": [states[0]["split_prior"]] if same else [state["split_prior"] for state in states],
    }


def joined_arrays(posteriors: Sequence[Posterior]) -> dict[str, NDArray[Any]]:
    """Return the arrays of all posteriors one after another, as they are at one moment."""
    with ExitStack() as held:
        for post in sorted(posteriors, key=id):  # one order for all callers prevents deadlocks
            held.enter_context(post._kernel)
        return {name: np.concatenate([post._arrays[name] for post in posteriors]) for name in posteriors[0]._arrays}


def _in_common(states: list[dict[str, Any]]) -> bool:
    first = states[0]
    return all(
        state["family"] == first["family"] and np.array_equal(state["split_prior"], first["split_prior"])
        for state in states
    )


def unpack_posteriors(packed: dict[str, Any]) -> list[Posterior]:
    """Return the posteriors, their trees checked and their evidences computed."""
    n_nodes = np.asarray(packed["n_nodes"])
    ends = np.cumsum(n_nodes)
    n_children = np.asarray(packed["n_children"]).astype(np.int32)
    inner_ends = np.cumsum(n_children > 0)[ends - 1] if len(ends) else ends
    statistics = np.stack([np.asarray(column).astype(np.float64) for column in packed["statistics"]], axis=1)
    posteriors, inner_start, terminal_start = [], 0, 0
    for i, end in enumerate(ends):
        children = n_children[end - n_nodes[i] : end]
        inner = slice(inner_start, int(inner_ends[i]))
        tree = _tree(children, packed, inner, int(packed["widths"][i]))
        n_terminals = int((children == 0).sum())
        of_tree = np.zeros((tree.n_nodes, statistics.shape[1]))
        of_tree[tree.is_terminal] = statistics[terminal_start : terminal_start + n_terminals]
        posteriors.append(_posterior(tree, packed, i, of_tree))
        inner_start, terminal_start = inner.stop, terminal_start + n_terminals
    return posteriors


def _tree(n_children: NDArray[np.int32], packed: dict[str, Any], inner: slice, width: int) -> MetaTree:
    is_inner = n_children > 0
    arrays = {name: np.full(len(n_children), -1, dtype=np.int32) for name in ("feature", "threshold", "missing_child")}
    for name, shift in (("feature", 0), ("threshold", 1), ("missing_child", 1)):
        arrays[name][is_inner] = np.asarray(packed[name])[inner].astype(np.int32) - shift
    first_child = np.where(is_inner, 1 + np.cumsum(n_children) - n_children, -1)
    return MetaTree.from_arrays(
        arrays["feature"], first_child, n_children, arrays["threshold"],
        missing_child=arrays["missing_child"], n_features=None if width < 0 else width,
    )  # fmt: skip


def _posterior(tree: MetaTree, packed: dict[str, Any], i: int, statistics: NDArray[np.float64]) -> Posterior:
    families, split_priors = packed["families"], packed["split_priors"]
    family = families[0 if len(families) == 1 else i]
    split_prior = np.asarray(split_priors[0 if len(split_priors) == 1 else i])
    prior = split_prior[0] if split_prior.shape == (1,) else split_prior
    return Posterior.from_statistics(tree, family, prior, statistics, packed["n_rows"][i])
