"""Invariants of the flat arrays of a meta-tree: each check says which node is wrong and what would be right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import LARGEST_CODE, MAX_FEATURES, NodeArray


def check_level_order(first_child: NodeArray, n_children: NodeArray) -> None:
    """Check that every node but the root is the child of exactly one earlier node, numbered level by level."""
    n_nodes = len(n_children)
    _first(n_children < 0, lambda s: f"node {s}: n_children is {n_children[s]}, but must be 0 or more")
    inner = np.flatnonzero(n_children > 0).astype(np.int64, copy=False)
    _first(
        (n_children == 0) & (first_child != -1),
        lambda s: f"node {s}: a terminal has first_child -1, but this is {first_child[s]}",
    )
    begin = first_child[inner].astype(np.int64)
    end = begin + n_children[inner]
    _first(
        (begin < 0) | (end > n_nodes),
        lambda i: f"node {inner[i]}: children {begin[i]}..{end[i] - 1}, but nodes are 0..{n_nodes - 1}",
    )
    _check_ancestors(inner, begin, end)
    expected = np.cumsum(n_children[inner], dtype=np.int64)
    expected += 1 - n_children[inner]
    _first(
        begin != expected,
        lambda i: f"node {inner[i]}: first_child is {begin[i]}, but in level order it must be {expected[i]}",
    )
    reached = 1 + int(n_children.sum(dtype=np.int64))
    if reached != n_nodes:
        raise ValueError(f"node {reached} is nobody's child: the tree has {reached} nodes, the arrays {n_nodes}")


def _check_ancestors(inner: NDArray[np.int64], begin: NDArray[np.int64], end: NDArray[np.int64]) -> None:
    """Check that children come after their parents; where one does not, say whether it is an ancestor."""
    early = np.flatnonzero(begin <= inner)
    if len(early) == 0:
        return
    i = int(early[0])
    node, child = int(inner[i]), int(begin[i])
    parent_of = {int(c): int(inner[j]) for j in range(i) for c in range(begin[j], end[j])}
    ancestors, up = {node}, node
    while up in parent_of and parent_of[up] not in ancestors:
        up = parent_of[up]
        ancestors.add(up)
    for c in range(child, int(end[i])):
        if c in ancestors:
            raise ValueError(f"node {node}: its child {c} is its own ancestor")
    raise ValueError(f"node {node}: its child {child} comes before it, but in level order children come after")


def check_features(feature: NodeArray, n_children: NodeArray, n_features: int | None) -> None:
    """Check that inner nodes split on a feature that exists, and terminals on none."""
    inner = n_children > 0
    last = (MAX_FEATURES if n_features is None else n_features) - 1
    _first(
        inner & ((feature < 0) | (feature > last)),
        lambda s: f"node {s}: feature is {feature[s]}, but features are 0..{last}",
    )
    _first(~inner & (feature != -1), lambda s: f"node {s}: a terminal has feature -1, but this is {feature[s]}")


def check_splits(feature: NodeArray, n_children: NodeArray, threshold: NodeArray, missing_child: NodeArray) -> None:
    """Check that the number of children fits the type of split, and that nodes agree about the codes of a feature."""
    inner = n_children > 0
    binary, multiway, with_missing = inner & (threshold >= 0), inner & (threshold < 0), missing_child >= 0
    at = {"threshold": threshold, "missing_child": missing_child, "n_children": n_children, "last": n_children - 1}
    rules = [
        (threshold > LARGEST_CODE, "threshold is {threshold}, but codes are 0..65534"),
        (threshold < -1, "threshold is {threshold}; -1 means a multiway split"),
        (~inner & (threshold != -1), "a terminal has threshold -1, not {threshold}"),
        (~inner & (missing_child != -1), "a terminal has missing_child -1, not {missing_child}"),
        (missing_child < -1, "missing_child is {missing_child}; -1 means no such branch"),
        (n_children > LARGEST_CODE, "{n_children} children, but at most 65534 are possible"),
        (
            binary & (n_children != 2 + (missing_child == 2)),
            "a binary split has 2 children, or 3 with missing_child 2, but this has {n_children}",
        ),
        (binary & (missing_child > 2), "missing_child is {missing_child}, but a binary split allows 0, 1 and 2"),
        (
            multiway & with_missing & (missing_child != n_children - 1),
            "missing_child is {missing_child}, but a multiway split has it last, {last}",
        ),
    ]
    for wrong, complaint in rules:
        _first(
            wrong,
            lambda s, complaint=complaint: f"node {s}: " + complaint.format(**{name: at[name][s] for name in at}),  # type: ignore[misc]
        )
    n_codes = n_children - with_missing
    _first(
        multiway & (n_codes < 1),
        lambda s: f"node {s}: missing_child is {missing_child[s]}, but a multiway split needs a child for a code too",
    )
    _check_agreement(feature, multiway, n_codes, "{1} codes for feature {0}, but node {2} has {3}")
    _check_agreement(
        feature,
        inner,
        with_missing.view(np.int8),
        "feature {0} has a missing branch here or at node {2}, but not at both",
    )


def _check_agreement(
    feature: NodeArray, where: NDArray[np.bool_], value: NDArray[np.signedinteger], complaint: str
) -> None:
    nodes = np.flatnonzero(where)
    if len(nodes) == 0:
        return
    asked = feature[nodes]
    first_node = np.full(int(asked.max()) + 1, -1, dtype=np.int32)
    first_node[asked[::-1]] = nodes[::-1]
    expected = value[first_node[asked]]
    _first(
        value[nodes] != expected,
        lambda i: f"node {nodes[i]}: " + complaint.format(asked[i], value[nodes[i]], first_node[asked[i]], expected[i]),
    )


def _first(wrong: NDArray[np.bool_], complaint: Callable[[int], str]) -> None:
    """Raise for the first node that is wrong."""
    if wrong.any():
        raise ValueError(complaint(int(np.argmax(wrong))))
