"""Regions of codes: how they can be split, and how many there are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import comb
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Kind = Literal["ordered", "one_against_rest", "multiway"]
KINDS: tuple[Kind, ...] = ("ordered", "one_against_rest", "multiway")

Codes = tuple[int, ...]
"""The codes that a column may still have, ascending."""


def splits(kind: Kind, codes: Codes) -> Iterator[tuple[int, tuple[Codes, ...]]]:
    """Each candidate split of a column: its threshold, the category set apart or -1, and the codes of its children."""
    if len(codes) < 2:
        return
    if kind == "ordered":
        for i in range(1, len(codes)):
            yield codes[i - 1], (codes[:i], codes[i:])
    elif kind == "multiway":
        yield -1, tuple((code,) for code in codes)
    else:
        for code in codes[: 1 if len(codes) == 2 else len(codes)]:
            yield code, ((code,), tuple(other for other in codes if other != code))


def count_regions(n_codes: Sequence[int], kinds: Sequence[Kind], max_depth: int) -> int:
    """Sets of conditions at depths 0 .. max_depth - 1, each counted for every depth it can be at.

    A region's depth is the sum over columns of how often each was split, so the counts are those of a product of
    polynomials, one a column.
    """
    if max_depth < 1:
        return 1
    total = np.zeros(max_depth)
    total[0] = 1.0
    for n, kind in zip(n_codes, kinds, strict=True):
        total = np.convolve(total, _sets_by_splits(n, kind, max_depth))[:max_depth]
    return int(min(total.sum(), 1e300))


@lru_cache(maxsize=4096)
def _sets_by_splits(n: int, kind: Kind, max_depth: int) -> NDArray[np.float64]:
    """How many sets of a column's codes can be reached by 0, 1, 2, ... splits of it."""
    counts = np.zeros(max_depth)
    counts[0] = 1.0
    for j in range(1, max_depth):
        if kind == "ordered":  # intervals that lost at least j codes: at one end, or at both by two splits or more
            at_one_end = 2 * max(n - j, 0)
            at_both = sum((n - length - 1) for length in range(1, n - j + 1)) if j >= 2 else 0
            counts[j] = at_one_end + max(at_both, 0)
        elif kind == "multiway":
            counts[j] = n if j == 1 and n > 1 else 0
        else:
            counts[j] = _categories(n, j)
    return counts


def _categories(n: int, j: int) -> float:
    """Sets of categories after j splits of one against the rest: one alone, or all but j."""
    if j > n - 1:
        return 0.0
    rest = comb(n, j) if n - j > 1 else 0
    return float(rest + n)
