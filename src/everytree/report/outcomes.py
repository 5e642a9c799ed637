"""What came of predictions: classes that were named and those that were true, numbers beside their predictions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_curve

from everytree.base.arrays import FloatArray
from everytree.report.charts import scale, scatter_chart
from everytree.report.template import table_html
from everytree.view.describe import amount, number

MAX_CLASSES = 12
"""Classes, at most, that have a line; of more, the most frequent ones."""

RECALLS = (0.5, 0.8, 0.9, 0.95)
"""Shares of a rare class that a threshold should find."""

MIN_RARE = 10
"""Rows, at least, of a class for which thresholds are told."""

MAX_POINTS = 600

MIN_GROUP = 10
"""Rows, at least, of each group that is told apart by its predictions."""


# ---- classes --------------------------------------------------------------------------------------------------------


def class_tables(names: Sequence[str], true: NDArray[np.int64], probs: FloatArray, weight: FloatArray) -> list[str]:
    """Precision and recall of each class, which classes are taken for which, and thresholds for the rarest one."""
    n, named = len(names), probs.argmax(axis=1)
    counts = np.zeros((n, n))
    np.add.at(counts, (true, named), weight)
    total = counts.sum(axis=1)
    shown = sorted(np.argsort(-total, kind="stable")[:MAX_CLASSES].tolist())
    shown = [c for c in shown if total[c] > 0.0 or n <= MAX_CLASSES]
    return [
        _of_each_class(names, counts, probs.T @ weight, shown),
        _confusion(names, counts, shown),
        *_thresholds(names, true, probs, weight, total),
    ]


def _of_each_class(names: Sequence[str], counts: FloatArray, expected: FloatArray, shown: Sequence[int]) -> str:
    rows = [
        (names[c], amount(counts[c].sum()), amount(expected[c]), _share(counts[c, c], counts[:, c].sum()),
         _share(counts[c, c], counts[c].sum()))
        for c in shown
    ]  # fmt: skip
    heads = ["Class", "rows", "expected", "precision", "recall"]
    left = len(names) - len(shown)
    caption = "Each class: its rows, the sum of its probabilities, the share of right ones among the rows where it is "
    caption += "most probable (precision), and the share of its rows that are found so (recall)."
    return table_html(heads, rows, caption=caption + (f" {left} rarer classes have no line." if left else ""))


def _confusion(names: Sequence[str], counts: FloatArray, shown: Sequence[int]) -> str:
    others = [c for c in range(len(names)) if c not in shown]
    heads = ["True class", *(names[c] for c in shown), *(["others"] if others else [])]
    rows = [
        (names[c], *(amount(counts[c, d]) for d in shown), *([amount(counts[c, others].sum())] if others else []))
        for c in shown
    ]
    return table_html(heads, rows, caption="Confusion matrix: rows of each true class by the most probable class.")


def _thresholds(
    names: Sequence[str], true: NDArray[np.int64], probs: FloatArray, weight: FloatArray, total: FloatArray
) -> list[str]:
    """For the rarest class with enough rows: from which probability on some share of its rows is found."""
    n_rows = np.bincount(true, minlength=len(names))
    able = [c for c in range(len(names)) if n_rows[c] >= MIN_RARE]
    if len(able) < 2:
        return []
    rare = min(able, key=lambda c: total[c])
    precision, recall, threshold = precision_recall_curve(true == rare, probs[:, rare], sample_weight=weight)
    rows = []
    for wanted in RECALLS:
        k = int(np.flatnonzero(recall[:-1] >= wanted - 1e-12)[-1])
        named = weight[probs[:, rare] >= threshold[k]].sum()
        rows.append((f"{wanted:.0%}", f"{threshold[k]:.3g}", amount(named), f"{precision[k]:.0%}"))
    caption = (
        f"To find a share of the class {names[rare]}, the rarest: name the rows from a probability on. Thresholds "
    )
    caption += "are chosen on the rows that they are judged by, so that new rows may do a little worse."
    return [table_html(["Found", "from probability", "rows named", "precision"], rows, caption=caption)]


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole > 0.0 else "none"


# ---- numbers --------------------------------------------------------------------------------------------------------


def predicted_chart(mean: FloatArray, y: FloatArray) -> str:
    """True values beside predicted means, of some rows if there are many."""
    some = np.flatnonzero(np.isfinite(mean))
    if len(some) > MAX_POINTS:
        some = np.sort(np.random.default_rng(0).choice(some, MAX_POINTS, replace=False))
    ends = np.concatenate([mean[some], y[some]]) if len(some) else np.zeros(1)
    ticks = scale(float(ends.min()), float(ends.max()))
    return scatter_chart("Predicted and true", "predicted mean", "true value", mean[some], y[some], ticks)


def tenths_table(mean: FloatArray, y: FloatArray, is_inside: NDArray[np.bool_], weight: FloatArray) -> str:
    """Predictions, targets and intervals by tenths of the rows, from the lowest prediction to the highest."""
    n_groups = max(min(10, len(y) // MIN_GROUP), 1)
    groups = np.array_split(np.argsort(mean, kind="stable"), n_groups)
    rows = []
    for k, g in enumerate(groups):
        means = [number(float(np.average(values[g], weights=weight[g]))) for values in (mean, y)]
        rows.append((f"{k + 1}", *means, f"{np.average(is_inside[g], weights=weight[g]):.0%}"))
    caption = f"Rows in {n_groups} equal groups, from the lowest predictions to the highest: the means of predictions "
    caption += "and of targets, and how many 90% intervals hold their target."
    return table_html(["Group", "predicted", "true", "in the interval"], rows, caption=caption)
