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
"""Of a column that is not ordered: its codes are the bits of a word."""

BYTES_A_REGION = 200
"""Roughly, with its conditions, evidences, and links to its children."""

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
    """Sets of conditions at depths 0 .. max_depth - 1, each counted once for every depth it can be at."""
    return int(min(regions_by_depth(n_codes, kinds, max_depth).sum(), 1e300))


def regions_by_depth(n_codes: Sequence[int], kinds: Sequence[Kind], max_depth: int) -> NDArray[np.float64]:
    """Sets of conditions at each depth 0 .. max_depth - 1.

    A set of a column's codes can be reached by any number of splits between a least and a greatest one, so a region can
    be at any depth between the sums of these. Those at depth d are the ones whose least sum is at most d, less the ones
    whose greatest sum is below d; both are counted by products of polynomials, one a column.
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
    """How many sets of a column's codes need 0, 1, 2, ... splits at least, and how many bear as many at most."""
    least, greatest = np.zeros(max_depth), np.zeros(max_depth)

    def add(count: float, fewest: int, most: int) -> None:
        if count > 0 and fewest < max_depth:
            least[fewest] += count
        if count > 0 and most < max_depth:
            greatest[most] += count

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
    """How much of the work on all regions is done: listed level by level on the way down, summed on the way up.

    Levels that are not listed yet are taken to be filled as the last one that is: regions without rows are not listed.
    """

    def __init__(self, most: Sequence[float]) -> None:
        self._most = [max(float(n), 1.0) for n in most]
        self._listed: list[float] = []

    def __call__(self, depth: int, n_done: int, n_regions: int) -> tuple[int, int]:
        """(regions looked at so far, regions to look at in all), those above the last level twice each."""
        last = len(self._most) - 1
        if depth >= len(self._listed):  # not every level tells of itself on the way down
            self._listed = [*self._sizes()[:depth], float(n_regions)]
        size = self._sizes()
        is_rising = len(self._listed) > last
        before = sum(size[:last]) + sum(size[depth + 1 :]) if is_rising else sum(size[:depth])
        return int(before + n_done), int(2.0 * sum(size[:last]) + size[last])

    def _sizes(self) -> list[float]:
        filled = self._listed[-1] / self._most[len(self._listed) - 1] if self._listed else 1.0
        return [*self._listed, *(filled * n for n in self._most[len(self._listed) :])]
