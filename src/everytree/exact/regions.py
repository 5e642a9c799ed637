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

MAX_CATEGORIES = 64
"""Maximum number of codes of a column that is not ordered: they are the bits of a word."""

BYTES_PER_REGION = 200
"""Approximate size of a region with its conditions, evidences and links to its children."""

Codes = tuple[int, ...]
"""The codes that a column may still have, ascending."""


def splits(kind: Kind, codes: Codes) -> Iterator[tuple[int, tuple[Codes, ...]]]:
    """Yield each candidate split of a column: its threshold, single category or -1, and the codes of its children."""
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
    """Number of sets of conditions at depths 0 .. max_depth - 1, each counted once for every depth it can be at."""
    return int(min(regions_by_depth(n_codes, kinds, max_depth).sum(), 1e300))


def regions_by_depth(n_codes: Sequence[int], kinds: Sequence[Kind], max_depth: int) -> NDArray[np.float64]:
    """Number of sets of conditions at each depth 0 .. max_depth - 1.

    A set of a column's codes can be reached by any number of splits between a minimum and a maximum, so a region can be
    at any depth between the sums of these. Regions at depth d are those whose minimum sum is at most d, less those
    whose maximum sum is below d; both are counted by products of polynomials, one per column.
    """
    if max_depth < 1:
        return np.ones(1)
    least, greatest = np.zeros(max_depth), np.zeros(max_depth)
    least[0] = greatest[0] = 1.0
    for n, kind in zip(n_codes, kinds, strict=True):
        own_least, own_greatest = _sets_by_splits(n, kind, max_depth)
        least = np.convolve(least, own_least)[:max_depth]
        greatest = np.convolve(greatest, own_greatest)[:max_depth]
    return np.asarray(np.cumsum(least) - np.concatenate([[0.0], np.cumsum(greatest)[:-1]]))


@lru_cache(maxsize=4096)
def _sets_by_splits(n: int, kind: Kind, max_depth: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count the sets of a column's codes by the minimum number of splits that produce them, and by the maximum."""
    least, greatest = np.zeros(max_depth), np.zeros(max_depth)

    def add(count: float, min_splits: int, max_splits: int) -> None:
        if count > 0 and min_splits < max_depth:
            least[min_splits] += count
        if count > 0 and max_splits < max_depth:
            greatest[max_splits] += count

    add(1, 0, 0)
    if kind == "multiway":
        add(n if n > 1 else 0, 1, 1)
    elif kind == "ordered":
        for length in range(1, n):
            add(2, 1, n - length)
            add(n - length - 1, 2, n - length)
    elif n > 1:
        add(n, 1, n - 1)
        for lost in range(1, n - 1):
            add(comb(n, lost), lost, lost)
    return least, greatest


class WorkDone:
    """Progress over all regions: listed level by level on the way down, summed on the way up.

    Levels not listed yet are assumed to be filled like the last one listed: regions without rows are not listed.
    """

    def __init__(self, max_sizes: Sequence[float]) -> None:
        self._max_sizes = [max(float(n), 1.0) for n in max_sizes]
        self._listed: list[float] = []

    def __call__(self, depth: int, n_done: int, n_regions: int) -> tuple[int, int]:
        """Return (regions visited so far, regions to visit in total), those above the last level twice each."""
        last = len(self._max_sizes) - 1
        if depth >= len(self._listed):  # not every level reports on the way down
            self._listed = [*self._sizes()[:depth], float(n_regions)]
        size = self._sizes()
        is_rising = len(self._listed) > last
        before = sum(size[:last]) + sum(size[depth + 1 :]) if is_rising else sum(size[:depth])
        return int(before + n_done), int(2.0 * sum(size[:last]) + size[last])

    def _sizes(self) -> list[float]:
        filled = self._listed[-1] / self._max_sizes[len(self._listed) - 1] if self._listed else 1.0
        return [*self._listed, *(filled * n for n in self._max_sizes[len(self._listed) :])]
