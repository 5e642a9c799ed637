"""Every structure of a small table, one by one: its prior probability and its evidence, as the sampler stores it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

import numpy as np

from everytree.exact.regions import Codes, Kind, splits

Key = tuple[tuple[int, int], ...]


class AllStructures:
    """All structures of some rows; a structure is the list of its splits in preorder, (-1, -1) for a drawn leaf.

    Parameters
    ----------
    family : NativeFamily
    split_prior : float
    summed_depth : int
        Below it a pruning is part of the structure.
    """

    def __init__(
        self,
        X: np.ndarray[Any, Any],
        y: np.ndarray[Any, Any],
        n_codes: Sequence[int],
        kinds: Sequence[Kind],
        family: Any,
        max_depth: int,
        split_prior: float,
        candidates: str,
        summed_depth: int,
        power: float = 1.0,
    ) -> None:
        self.X, self.y, self.kinds, self.family = X, y, kinds, family
        self.max_depth, self.g, self.candidates, self.summed = max_depth, split_prior, candidates, summed_depth
        self.power = power
        found = self.below(np.arange(len(X)), tuple(tuple(range(n)) for n in n_codes), 0)
        total = sum(prior * evidence for _, prior, evidence in found)
        self.log_evidence = float(np.log(total))
        self.prob = {key: prior * evidence / total for key, prior, evidence in found}
        self.evidence = {key: evidence for key, _, evidence in found}
        assert abs(sum(prior for _, prior, _ in found) - 1.0) < 1e-12

    def leaf(self, rows: np.ndarray[Any, Any]) -> float:
        if not len(rows):
            return 1.0
        statistics = self.family.statistics(self.y[rows], None).sum(axis=0, keepdims=True)
        return float(np.exp(self.power * self.family.log_evidence(statistics)[0]))

    def below(self, rows: np.ndarray[Any, Any], codes: tuple[Codes, ...], depth: int) -> list[tuple[Key, float, float]]:
        """Structures of a region: splits, prior, evidence."""
        leaf = self.leaf(rows)
        if len(np.unique(self.X[rows], axis=0)) < 2 or depth >= self.max_depth:
            return [((), 1.0, leaf)]
        choices = [
            (column, code, children)
            for column, own in enumerate(codes)
            for code, children in splits(self.kinds[column], own)
            if self.candidates == "all" or self.separates(rows, column, children)
        ]
        is_summed = depth < self.summed
        found: list[tuple[Key, float, float]] = []
        if not is_summed:
            found.append((((-1, -1),), 1.0 - self.g, leaf))
        for column, code, children in choices:
            parts = [
                self.below(
                    rows[np.isin(self.X[rows, column], own)], (*codes[:column], own, *codes[column + 1 :]), depth + 1
                )
                for own in children
            ]
            for chosen in product(*parts):
                key = ((column, code), *(split for part in chosen for split in part[0]))
                prior = prod(part[1] for part in chosen) / len(choices) * (1.0 if is_summed else self.g)
                both = prod(part[2] for part in chosen)
                found.append((key, prior, (1.0 - self.g) * leaf + self.g * both if is_summed else both))
        return found

    def separates(self, rows: np.ndarray[Any, Any], column: int, children: Sequence[Codes]) -> bool:
        return sum(bool(np.isin(self.X[rows, column], own).any()) for own in children) > 1
