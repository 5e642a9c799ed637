"""Rows of the table that a reader can load into the panel, and the ranges of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.report.embedding import ANY_VALUE
from everytree.report.rows import JudgedRows
from everytree.tables.code_names import DAY, one_line
from everytree.view.describe import amount, number

MAX_CANDIDATES = 2000
"""Number of rows, at most, among which examples are looked for."""


def examples(
    model: Any,
    rows: JudgedRows | None,
    n_examples: int,
    inputs: list[dict[str, Any]],
    *,
    explained: bool = True,
    told: bool = False,
) -> list[Any]:
    """Rows from the lowest prediction to the highest, as values of the panel's fields.

    To `inputs`, the fields of the panel, the range of values in the table is added where they are numbers, as `seen`.
    `explained` is whether predictions are sums of what columns add, `told` whether the page needs them in words.
    """
    if rows is None or not len(rows):
        return []
    _add_ranges(rows, inputs)
    some = np.arange(min(len(rows), MAX_CANDIDATES))
    judged = rows.at(some)
    order = np.argsort(_predicted(model, judged), kind="stable")
    chosen = order[np.unique(np.linspace(0, len(order) - 1, min(n_examples, len(order))).round().astype(int))]
    columns = [_shown(_values(judged.column(k), field), field) for k, field in enumerate(inputs)]
    chosen_rows = judged.at(chosen)
    reasons = _reasons(model, chosen_rows) if explained and len(chosen) else [None] * len(chosen)
    said = _said(model, chosen_rows) if told and len(chosen) else [""] * len(chosen)
    return [
        {"label": f"row {place}: {truth}", "truth": truth, "values": [column[i] for column in columns],
         "reasons": why, "said": words}
        for i, place, truth, why, words in zip(
            chosen.tolist(), judged.places[chosen].tolist(), map(_target, chosen_rows.y), reasons, said, strict=True
        )
    ]  # fmt: skip


def _said(model: Any, rows: JudgedRows) -> list[str]:
    """Predictions in words, as the panel has them."""
    if model.has_classes:
        probs = model.predict_proba(rows.inputs)
        named = zip(probs.argmax(axis=1), probs.max(axis=1), strict=True)
        return [f"{one_line(model.classes_[c])} with probability {prob:.1%}" for c, prob in named]
    dist = model.predictive(rows.inputs, **rows.row_data)
    low, high = dist.interval(0.9).T
    middle, name = (dist.mean(), "") if model.fitted_.last_time is None else (dist.quantile(0.5), "Median ")
    ends = zip(middle, low, high, strict=True)
    return [
        f"{name}{number(m)}; "
        + (f"between {number(a)} and {number(b)}" if np.isfinite(b) else f"longer than {number(a)}")
        + f" with probability {0.9 if np.isfinite(b) else 0.95:.0%}"
        for m, a, b in ends
    ]


def _target(value: Any) -> str:
    """A label, or a number."""
    return amount(float(value)) if isinstance(value, float) and abs(value) < 1e12 else one_line(value)


def _reasons(model: Any, rows: JudgedRows) -> Sequence[dict[str, Any] | None]:
    """Contributions of the columns to the predictions of the rows."""
    explained, names = model.explain(rows.inputs), [one_line(label) for label in getattr(model, "classes_", ())]
    found: list[dict[str, Any] | None] = []
    for i in range(len(rows)):
        base, value, parts = explained.base, explained.prediction[i], explained.values[i]
        what = explained.what[:1].upper() + explained.what[1:]
        if names:  # the second of two classes, or the most probable one
            place = int(np.argmax(value)) if len(names) > 2 else len(names) - 1
            base, value, parts, what = base[place], value[place], parts[:, place], f"Probability of {names[place]}"
        found.append({"of": what, "base": float(base), "value": float(value), "parts": parts.tolist()})
    return found


def _predicted(model: Any, rows: JudgedRows) -> FloatArray:
    """Sort key of the rows: predicted means, or classes and within them the probabilities."""
    if not model.has_classes:
        return np.asarray(model.predictive(rows.inputs, **rows.row_data).mean())
    probs = model.predict_proba(rows.inputs)
    return np.asarray(probs[:, -1] if probs.shape[1] <= 2 else probs.argmax(axis=1) + probs.max(axis=1))


def _add_ranges(rows: JudgedRows, inputs: list[dict[str, Any]]) -> None:
    for k, field in enumerate(inputs):
        if field["kind"] not in ("numeric", "datetime"):
            continue
        known = [value for value in _values(rows.column(k), field) if value is not None]
        if known:
            field["seen"] = [min(known), max(known)]
            field["days"] = field["kind"] == "datetime" and all(value % DAY == 0.0 for value in known)


def _values(column: NDArray[Any], field: dict[str, Any]) -> list[Any]:
    """Values as a field of the panel holds them: None is missing."""
    kind = field["kind"]
    if kind == "datetime":
        seconds = column.astype("datetime64[s]")
        return [None if np.isnat(one) else float(one.astype(np.int64)) * 1e6 for one in seconds]
    is_missing = np.array([value is None or value != value for value in column])
    if kind == "categorical":
        return [None if gone else str(value) for value, gone in zip(column, is_missing, strict=True)]
    if kind == "boolean":
        return [None if gone else int(bool(value)) for value, gone in zip(column, is_missing, strict=True)]
    return [None if gone else float(value) for value, gone in zip(column, is_missing, strict=True)]


def _shown(values: list[Any], field: dict[str, Any]) -> list[Any]:
    """Cells of a column as the page shows them; texts that it must not contain are masked."""
    return [None if value is None else ANY_VALUE for value in values] if field.get("is_hidden") else values
