"""Columns inside the page: what a visitor may enter, and how a value becomes a code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.report.subject import Subject
from everytree.tables.code_names import DAY, cut_texts
from everytree.tables.column import Column


def inputs_data(subject: Subject) -> list[dict[str, Any]]:
    """The values a visitor may enter for each input column; if several columns of codes read it, the finest decides."""
    readers: dict[int, list[Column]] = {}
    schema = subject.model.schema_
    for column, place in zip(schema.columns, schema.input_of, strict=True):
        readers.setdefault(int(place), []).append(column)
    inputs = []
    for place, name in enumerate(subject.words.inputs):
        columns = readers.get(place, [Column(None, "numeric")])
        kind: str = columns[0].kind if columns[0].hashed is None else "categorical"
        cuts = np.unique(np.concatenate([column.cuts for column in columns]))
        categories = list(dict.fromkeys(value for column in columns for value in column.categories))
        inputs.append(
            {
                "name": name,
                "kind": kind,
                "categories": [str(value) for value in categories],
                "range": slider_range(cuts, kind) if kind in ("numeric", "datetime") and len(cuts) else None,
                "may_miss": subject.parts.exact is None or any(column.has_missing for column in columns),
                "may_be_new": subject.parts.exact is None,
            }
        )
    return inputs


def slider_range(cuts: FloatArray, kind: str) -> list[float]:
    """Start, end, first value and step of a slider: the first three are whole steps.

    It reaches a little beyond the outer cuts and starts between the middle ones.
    """
    margin = 0.05 * float(cuts[-1] - cuts[0]) or 0.25 * abs(float(cuts[0])) or 1.0
    low, high = float(cuts[0]) - margin, float(cuts[-1]) + margin
    middle = float(cuts[max(len(cuts) // 2 - 1, 0) : len(cuts) // 2 + 1].mean())
    step = _date_step(high - low) if kind == "datetime" else _number_step(cuts, high - low)
    decimals = max(0, -math.floor(math.log10(step)))
    ends = math.floor(low / step), math.ceil(high / step), math.floor(middle / step)
    return [*(round(whole * step, decimals) for whole in ends), step]


def _number_step(cuts: FloatArray, span: float) -> float:
    """A power of ten, with a hundred to a thousand steps; cuts between whole numbers are multiples of a half."""
    if (2.0 * cuts == np.floor(2.0 * cuts)).all():
        return 1.0
    return float(f"1e{math.floor(math.log10(span)) - 2}")


def _date_step(span: float) -> float:
    """Microseconds of a day, a minute or a second, whichever is the longest that leaves a hundred steps."""
    return next((step for step in (DAY, 60e6) if span >= 100.0 * step), 1e6)


def column_data(column: Column, index: int) -> dict[str, Any]:
    """Data with which the script turns a value into a code."""
    return {
        "input": index,
        "kind": column.kind,
        "cuts": column.cuts.tolist(),
        "cut_names": [_unless_same(text, float(cut)) for text, cut in zip(cut_texts(column), column.cuts, strict=True)],
        "categories": [str(value) for value in column.categories],
        "groups": list(column.groups),
        "has_unseen": column.has_unseen,
        "new_code": column.new_code,
        "single": column.single,
        "formula": column.formula,
        "has_missing": column.has_missing,
        "n_codes": column.n_codes,
    }


def _unless_same(text: str, cut: float) -> str | None:
    """Return a date, or a text that differs from the cut as a number; otherwise None: the page writes the cut."""
    try:
        return None if float(text) == cut else text
    except ValueError:
        return text
