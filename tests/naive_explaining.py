"""Shapley values as they are defined: a sum over all sets of columns."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from math import factorial
from typing import Any

import numpy as np


def shapley(value: Callable[[frozenset[int]], Any], n_players: int) -> np.ndarray:
    """(n_players, ...) the mean gain by each player over all orders in which they may come."""
    sets = [frozenset(some) for size in range(n_players + 1) for some in combinations(range(n_players), size)]
    known = {some: np.asarray(value(some)) for some in sets}
    out = []
    for player in range(n_players):
        total = 0.0
        for s, before in known.items():
            if player not in s:
                orders = factorial(len(s)) * factorial(n_players - 1 - len(s)) / factorial(n_players)
                total = total + orders * (known[s | {player}] - before)
        out.append(total)
    return np.array(out)


def walk_value(tree, mass, values, row, known, missing, inputs) -> Callable[[frozenset[int]], Any]:
    """The value of a set of inputs: splits on them are followed, others go on to all children by their shares."""

    def at(node: int, s: frozenset[int]) -> Any:
        if tree.is_terminal[node]:
            return values[node]
        column, first, n = int(tree.feature[node]), int(tree.first_child[node]), int(tree.n_children[node])
        if inputs[column] not in s:
            share = mass[first : first + n]
            share = share / share.sum() if share.sum() > 0 else np.full(n, 1.0 / n)
            return sum(share[c] * at(first + c, s) for c in range(n))
        code, branch = int(row[column]), int(tree.missing_child[node])
        if code == missing:
            return at(first + branch, s) if branch >= 0 else values[node]
        if code >= known[column]:
            return values[node]
        return at(first + (code if tree.threshold[node] < 0 else int(code > tree.threshold[node])), s)

    return lambda s: at(0, s)
