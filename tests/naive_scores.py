"""Scores of predictions without the row itself, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np


def slow_accuracy(probs: Any, own: Any, n_rows: float, weight: Any) -> float:
    """Row by row: a class is named the less, the farther below the top it is, and from two standard errors on never."""
    shares = []
    spread = np.sqrt(2.0 * sum(np.var(column) for column in np.transpose(probs)))
    for of_row, c in zip(probs, own, strict=True):
        named = []
        for prob in of_row:
            error = np.sqrt((max(of_row) + prob) / n_rows)
            error *= error / max(error, spread)
            named.append(min(max(2.0 - (max(of_row) - prob) / error, 0.0), 1.0))
        shares.append(named[c] / sum(named))
    return float(np.average(shares, weights=weight))


def slow_r2(y: Any, predicted: Any, places: Any, group: Any, weight: Any) -> float:
    """Of the rows at some places; the mean of the rows of other groups has 0."""
    others = np.array([np.average(y[group != group[i]], weights=weight[group != group[i]]) for i in places])
    w, own = weight[places], y[places]
    return float(1.0 - w @ (own - np.asarray(predicted)) ** 2 / (w @ (own - others) ** 2))
