"""Slow, obvious twins of `everytree.tables.pooling`: one category, one row, one pair of rows at a time."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence


def strength(categories: Sequence[str], targets: Sequence[float]) -> float:
    """Variance within categories over that between them, by products of all pairs of rows of a category."""
    mean = sum(targets) / len(targets)
    rows: dict[str, list[float]] = {}
    for name, target in zip(categories, targets, strict=True):
        rows.setdefault(name, []).append(target - mean)
    total = sum((target - mean) ** 2 for target in targets) / len(targets)
    found = 10.0
    for _ in range(10):
        products = pairs = 0.0
        for apart in rows.values():
            precision = 1.0 / (len(apart) + found) ** 2
            for one, other in itertools.permutations(apart, 2):
                products += precision * one * other
                pairs += precision
        between = products / pairs if pairs else 0.0
        if between <= 0.0:
            return math.inf
        found = max(total - between, 0.0) / between
    return found


def shrunken(mean: float, strength: float, targets: Sequence[float]) -> float:
    """What is expected of a category with these targets, where the overall mean counts for `strength` rows."""
    if math.isinf(strength) or not targets:
        return mean
    return (strength * mean + sum(targets)) / (strength + len(targets))


def of_all(categories: Sequence[str], targets: Sequence[float]) -> dict[str, float]:
    """The estimate for each category."""
    mean, prior = sum(targets) / len(targets), strength(categories, targets)
    return {
        name: shrunken(mean, prior, [t for c, t in zip(categories, targets, strict=True) if c == name])
        for name in categories
    }


def of_others(categories: Sequence[str], targets: Sequence[float], folds: Sequence[int]) -> list[float]:
    """The estimate for each row's category without the rows of its fold."""
    mean, prior = sum(targets) / len(targets), strength(categories, targets)
    rows = list(zip(categories, targets, folds, strict=True))
    found = []
    for name, _, fold in rows:
        others = [t for c, t, f in rows if c == name and f != fold]
        found.append(shrunken(mean, prior, others))
    return found
