"""Small trees with a shape to choose."""

from __future__ import annotations

import numpy as np

import everytree as et


def small_tree() -> et.MetaTree:
    """Root and left child ask, five nodes."""
    return et.MetaTree.from_arrays([0, 1, -1, -1, -1], [1, 3, -1, -1, -1], [2, 2, 0, 0, 0])


def split_of(n_children: int, **first_entry: int) -> et.MetaTree:
    """A root with terminals below it; `threshold` and `missing_child` are the root's."""
    rest = [-1] * n_children
    arrays = {name: [value, *rest] for name, value in first_entry.items()}
    return et.MetaTree.from_arrays([0, *rest], [1, *rest], [n_children, *[0] * n_children], **arrays)


def chain_tree(turns: list[int], feature: list[int], threshold: list[int] | None = None) -> et.MetaTree:
    """Two children a level, of which child `turns[d]` goes on."""
    depth, n_nodes = len(turns), 2 * len(turns) + 1
    inner = [0] + [2 * d - 1 + turns[d - 1] for d in range(1, depth)]
    arrays = {name: np.full(n_nodes, -1) for name in ("feature", "first_child", "threshold")}
    arrays["feature"][inner] = feature
    arrays["first_child"][inner] = 2 * np.arange(depth) + 1
    arrays["threshold"][inner] = -1 if threshold is None else threshold
    arrays["n_children"] = np.where(arrays["feature"] >= 0, 2, 0)
    return et.MetaTree.from_arrays(**arrays, n_features=max(feature) + 1)
