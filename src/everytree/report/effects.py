"""Effect curves of the columns that matter most: the average prediction at each value, and its spread over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.base.words import short_number
from everytree.explaining.effect import Effect
from everytree.online.rows import simplify
from everytree.report.charts import curve_chart, scale
from everytree.report.importances import Importances
from everytree.report.rows import JudgedRows
from everytree.report.subject import Subject

MAX_COLUMNS = 6
MAX_POINTS = 25
MAX_ROWS = 200
MAX_CLASSES = 6
"""Number of classes, at most, whose curves are drawn; of more, the most frequent ones."""


def effects(subject: Subject, rows: JudgedRows | None, matter: Importances) -> str:
    """Charts on one scale of the columns that matter most; nothing without a table, or where leaves are lines."""
    if rows is None or not len(rows) or not subject.can_be_explained:
        return ""
    found = [
        subject.model.effect(k, rows.inputs, max_points=MAX_POINTS, max_rows=MAX_ROWS)
        for k in _most_important(matter.middle)
    ]
    found = [one for one in found if len(one.points) > 1]
    if not found:
        return ""
    names, outputs = subject.words.classes, _shown_classes(subject, rows)
    ticks, label = scale(*_ends(found, outputs)), _label(names, outputs)
    charts = [
        curve_chart(
            one.column, label, one.labels(), _numbers(one), [_of(one.mean, c) for c in outputs],
            bands=(_of(one.low, outputs[0]), _of(one.high, outputs[0])) if len(outputs) == 1 else None,
            ticks=ticks, keys=[names[c] for c in outputs if c is not None] if len(outputs) > 1 else [],
            shares=one.share,
        )
        for one in found
    ]  # fmt: skip
    text = (
        f"Effects of the columns: the average {label} of {found[0].n_rows:,} rows of the table if "
        "all of them had the value below, and nothing else changed. The bars below say how many rows have such values."
    )
    if len(outputs) == 1:
        text += f" The band holds {found[0].spread:.0%} of the rows: a wide one says that other columns matter more."
    text += _units(subject, rows)
    head = f'<h3 class="below">What they do</h3><p>{escape(text)}</p>'
    return f'{head}<div class="charts effects">{"".join(charts)}</div>'


def _units(subject: Subject, rows: JudgedRows) -> str:
    """Units of counts and times, in a sentence."""
    text = " Counts are those of one unit of exposure." if "exposure" in rows.row_data else ""
    if subject.words.baseline is not None:
        text += (
            f" Predictions are means of times that are cut off at {short_number(subject.words.baseline.times[-1], 6)}."
        )
    elif subject.words.last_time is not None:
        last = short_number(subject.words.last_time, 6)
        text += f" Predictions are means of times as if rates went on beyond {last}, the longest seen."
    return text


def _most_important(middle: FloatArray) -> list[int]:
    order = (-middle).argsort(kind="stable")[:MAX_COLUMNS]
    return [int(k) for k in order if middle[k] > 0.0]


def _shown_classes(subject: Subject, rows: JudgedRows) -> list[int | None]:
    """Places of the classes whose curves are drawn; None for a number."""
    labels = subject.model.classes_.tolist() if subject.words.classes else []
    if len(labels) <= 2:
        return [len(labels) - 1 if labels else None]
    counts = dict.fromkeys(labels, 0.0)
    for label, weight in zip(rows.y.tolist(), rows.weight.tolist(), strict=True):
        counts[label] += weight
    return sorted(np.argsort(-np.array(list(counts.values())), kind="stable")[:MAX_CLASSES].tolist())


def _label(names: Sequence[str], outputs: Sequence[int | None]) -> str:
    if outputs[0] is None:
        return "prediction"
    return "probability" if len(outputs) > 1 else f"probability of {names[outputs[0]]}"


def _of(values: FloatArray, index: int | None) -> FloatArray:
    return values if index is None else np.asarray(values[:, index])


def _ends(found: Sequence[Effect], outputs: Sequence[int | None]) -> tuple[float, float]:
    """Lowest and highest value of all charts."""
    ends = [(one.low, one.high) if len(outputs) == 1 else (one.mean, one.mean) for one in found]
    low = min(float(_of(low, c).min()) for low, _ in ends for c in outputs)
    return low, max(float(_of(high, c).max()) for _, high in ends for c in outputs)


def _numbers(one: Effect) -> FloatArray | None:
    """Places of the points on a scale of numbers or dates, NaN where one is missing; None for categories and 0 or 1."""
    if one.kind == "category" or len([point for point in one.points if point is not None]) <= 2:
        return None
    return np.array([_number(point) for point in one.points])


def _number(point: Any) -> float:
    """A number, date or duration of any library; dates and durations in days."""
    return np.nan if point is None else float(simplify(point))
