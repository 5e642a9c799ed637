"""Rows that chains leave out: each row is left out by one chain."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def folds(
    order_by: NDArray[Any], group: NDArray[np.int64] | None, n_folds: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """(n_rows,) the fold of each row.

    Rows of one group are in one fold. Folds are alike in what is given by `order_by`, class numbers or targets: groups
    are dealt out in the order of their first row's, and those that are equal in random order.
    """
    first = number = np.arange(len(order_by))
    if group is not None:
        _, first, number = np.unique(group, return_index=True, return_inverse=True)
    shuffled = rng.permutation(len(first))
    in_order = shuffled[np.argsort(order_by[first][shuffled], kind="stable")]
    n_hands = -(-len(first) // n_folds)  # of one to each fold, in random order
    fold = np.empty(len(first), dtype=np.int64)
    fold[in_order] = rng.permuted(np.tile(np.arange(n_folds), (n_hands, 1)), axis=1).reshape(-1)[: len(first)]
    return np.asarray(fold[number.reshape(-1)])
