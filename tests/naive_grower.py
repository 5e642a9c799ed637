"""The grower written literally: at each node of a grown tree, every split that it may have chosen."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

WORD = 2**64 - 1


def scramble(x: int) -> int:
    x = (x + 0x9E3779B97F4A7C15) & WORD
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & WORD
    return x ^ (x >> 31)


class NodeRandom:
    """The random choices of a node, by its way from the root."""

    def __init__(self, seed: int) -> None:
        self.key = scramble(seed & WORD)
        self.n_drawn = 0

    def child(self, side: int) -> NodeRandom:
        return NodeRandom(self.key + side + 1)

    def below(self, n: int) -> int:
        self.n_drawn += 1
        word = scramble(self.key ^ (self.n_drawn * 0xD1342543DE82EF95 & WORD))
        return ((word >> 32) * n) >> 32


@dataclass(frozen=True)
class Rule:
    """How a tree is grown; `value` gives rows a number, which splits make larger."""

    value: Callable[[np.ndarray], float]
    is_same: Callable[[np.ndarray], bool]
    random_splits: bool
    max_features: int
    min_samples_leaf: int = 1
    max_depth: int = 0


@dataclass(frozen=True)
class Candidate:
    feature: int
    threshold: int
    missing_left: bool
    score: float


def goes_left(codes: np.ndarray, threshold: int, missing_left: bool) -> np.ndarray:
    missing = np.iinfo(codes.dtype).max
    return np.where(codes == missing, missing_left, codes <= threshold)


def candidates(table: np.ndarray, n_codes: Any, rows: np.ndarray, rule: Rule, random: NodeRandom) -> list[Candidate]:
    """All splits that the node looks at."""
    found: list[Candidate] = []
    order = list(range(table.shape[1]))
    any_varies = False
    for place in range(len(order)):
        if place >= rule.max_features and any_varies:
            break
        other = place + random.below(len(order) - place)
        order[place], order[other] = order[other], order[place]
        feature = order[place]
        codes = table[rows, feature]
        missing = codes == np.iinfo(codes.dtype).max
        any_varies |= len(np.unique(codes)) > 1
        for threshold, missing_left in cuts(codes[~missing], bool(missing.any()), int(n_codes[feature]), rule, random):
            left = goes_left(codes, threshold, bool(missing_left))
            n_left = int(left.sum())
            if min(n_left, len(rows) - n_left) < rule.min_samples_leaf:
                continue
            side = n_left > len(rows) - n_left if missing_left is None else missing_left
            score = rule.value(rows[left]) + rule.value(rows[~left])
            found.append(Candidate(feature, threshold, side, score))
    return found


def cuts(
    known: np.ndarray, some_missing: bool, n_codes: int, rule: Rule, random: NodeRandom
) -> Iterator[tuple[int, bool | None]]:
    """Thresholds of one column, each with the side of missing values; None where there are none."""
    codes = np.unique(known).astype(int).tolist()
    if not codes or (len(codes) == 1 and not some_missing):
        return
    if rule.random_splits:
        if len(codes) == 1:
            yield n_codes - 1, False
            return
        threshold = codes[0] + random.below(codes[-1] - codes[0])
        yield threshold, random.below(2) == 0 if some_missing else None
        return
    for low, high in itertools.pairwise(codes):
        if not some_missing:
            yield (low + high) // 2, None
        else:
            yield (low + high) // 2, False
            yield (low + high) // 2, True
    if some_missing:
        yield n_codes - 1, False


def gini(y: np.ndarray, weight: np.ndarray, n_classes: int) -> Callable[[np.ndarray], float]:
    def value(rows: np.ndarray) -> float:
        of_class = np.bincount(y[rows], weight[rows], n_classes)
        return float((of_class**2).sum() / of_class.sum()) if of_class.sum() > 0.0 else 0.0

    return value


def entropy(y: np.ndarray, weight: np.ndarray, n_classes: int) -> Callable[[np.ndarray], float]:
    def x_log_x(x: float) -> float:
        return x * math.log(x) if x > 0.0 else 0.0

    def value(rows: np.ndarray) -> float:
        of_class = np.bincount(y[rows], weight[rows], n_classes)
        return sum(map(x_log_x, of_class)) - x_log_x(float(of_class.sum()))

    return value


def squares(y: np.ndarray, weight: np.ndarray) -> Callable[[np.ndarray], float]:
    def value(rows: np.ndarray) -> float:
        total = weight[rows].sum()
        return float((weight[rows] * y[rows]).sum() ** 2 / total) if total > 0.0 else 0.0

    return value


def check_tree(
    arrays: dict[str, np.ndarray], table: np.ndarray, n_codes: Any, has_missing: Any, sample: np.ndarray, rule: Rule,
    seed: int, *, stopped_early: bool = False, rounding: float = 1e-9,
) -> int:  # fmt: skip
    """Walk down a grown tree and compare each node with its candidates; returns how many splits were compared."""
    nodes = [(0, np.asarray(sample), NodeRandom(seed), 0)]
    n_compared = 0
    while nodes:
        node, rows, random, depth = nodes.pop()
        may_stop = len(rows) < max(2, 2 * rule.min_samples_leaf) or rule.is_same(rows)
        may_stop |= bool(rule.max_depth) and depth >= rule.max_depth
        drawn = NodeRandom(0)
        drawn.key = random.key
        found = [] if may_stop else candidates(table, n_codes, rows, rule, drawn)
        if arrays["feature"][node] < 0:
            assert not found or stopped_early, f"node {node} of {len(rows)} rows could be split"
            assert (arrays["terminal"][np.isin(sample, rows)] == node).all()
            continue
        assert found, f"node {node} is split, but should not be"
        split = int(arrays["feature"][node]), int(arrays["threshold"][node])
        best = max(each.score for each in found)
        close = rounding * (1.0 + abs(best))
        same = [each for each in found if (each.feature, each.threshold) == split and each.score >= best - close]
        assert same, f"node {node}: {split} is not the best split"
        n_compared += 1
        side = int(arrays["missing_child"][node])
        assert (side >= 0) == bool(has_missing[split[0]])
        if side >= 0:
            assert any(each.missing_left == (side == 0) for each in same)
        left = goes_left(table[rows, split[0]], split[1], side == 0)
        first = int(arrays["first_child"][node])
        nodes += [(first, rows[left], random.child(0), depth + 1), (first + 1, rows[~left], random.child(1), depth + 1)]
    return n_compared
