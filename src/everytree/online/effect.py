"""The effect of a feature of an online forest over some rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.explaining.effect import Effect, EffectRule, Kind
from everytree.online.rows import Row, ValueKind, is_missing, kind_of, simplify

KINDS: dict[ValueKind, Kind] = {"number": "number", "date": "date", "boolean": "category", "text": "category"}
"""What values are in an effect."""


def online_effect(
    predict: Callable[[list[Row]], FloatArray],
    column: Hashable,
    rows: list[Row],
    rule: EffectRule,
    classes: tuple[Any, ...] | None,
) -> Effect:
    """The average prediction of rows that all have the same value of a feature."""
    if rule.max_rows is not None and len(rows) > rule.max_rows:
        chosen = np.sort(np.random.default_rng(0).permutation(len(rows))[: rule.max_rows])
        rows = [rows[i] for i in chosen]
    given = [None if is_missing(row.get(column)) else row.get(column) for row in rows]
    known = [value for value in given if value is not None]
    kind = KINDS[kind_of(known)]
    points = _points(known, kind, rule.max_points)
    numbers = {id(value): simplify(value) for value in points}
    share = np.zeros(len(points) + (len(known) < len(given)))
    for value in given:
        share[_nearest(value, points, numbers, kind)] += 1.0 / len(given)
    every = [*points, None] if len(known) < len(given) else points
    found = np.stack([predict([{**row, column: value} for row in rows]) for value in every])
    tail = 0.5 * (1.0 - rule.spread)
    low, high = np.quantile(found, [tail, 1.0 - tail], axis=1)
    return Effect(
        str(column), kind, tuple(every), found.mean(axis=1), low, high, rule.spread, share, len(rows), classes
    )


def _points(known: list[Any], kind: str, max_points: int) -> list[Any]:
    """Distinct values, of many numbers some at equal steps among the rows."""
    if kind == "category":
        return sorted(dict.fromkeys(known), key=str)
    ascending = sorted(known, key=simplify)
    distinct = list(dict.fromkeys(ascending))
    if len(distinct) <= max_points:
        return distinct
    steps = np.linspace(0, len(ascending) - 1, max_points).round().astype(int)
    return list(dict.fromkeys(ascending[step] for step in steps))


def _nearest(value: Any, points: list[Any], numbers: dict[int, Any], kind: str) -> int:
    """The place of the point that stands for a value; a missing one is the last."""
    if value is None:
        return len(points)
    if kind == "category":
        return points.index(value)
    own = simplify(value)
    return min(range(len(points)), key=lambda i: abs(numbers[id(points[i])] - own))
