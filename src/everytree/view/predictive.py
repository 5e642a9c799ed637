"""Predictive distributions of the first rows as a fragment of HTML, for notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.predictive.restricted import time_text
from everytree.view.colours import class_colour
from everytree.view.describe import grouped, number

if TYPE_CHECKING:
    from everytree.predictive.predictive import Predictive

MAX_ROWS = 8
WIDE, NARROW = 0.9, 0.5
_CELL = "text-align:right;padding:.1em .8em"
_TRACK = "display:inline-block;position:relative;width:16em;height:1em;background:#8a8f9822;border-radius:2px"
_COLOURS = {"wide": "#b9c1ca", "narrow": "#687fa5", "mean": "#1d3f7d"}


def predictive_html(dist: Predictive, *, has_classes: bool, has_intervals: bool) -> str:
    """Class probabilities side by side, or intervals and means on a scale that all rows share."""
    shown = dist[:MAX_ROWS]
    n_rows = len(dist)
    title = f"{n_rows:,} row{'' if n_rows == 1 else 's'}" + (f", the first {MAX_ROWS}" if n_rows > MAX_ROWS else "")
    if n_rows == 0:
        return f"<div>{escape(type(dist).__name__)}: no rows</div>"
    lines = _classes(shown.probs(), shown.labels) if has_classes else _numbers(shown, has_intervals)
    return "".join([f"<table><caption><b>Predictions</b> of {title}</caption>", *lines, "</table>"])


def _classes(probs: FloatArray, labels: tuple[Any, ...] | None) -> Iterator[str]:
    probs, names = grouped(probs, labels)
    for row, own in enumerate(probs):
        left, boxes = 0.0, ""
        for c, share in enumerate(own):
            boxes += _box(100.0 * left, 100.0 * share, class_colour(c))
            left += float(share)
        best = int(np.argmax(own))
        yield f'<tr><td style="{_CELL}">{row}</td><td><span style="{_TRACK}">{boxes}</span></td>'
        yield f'<td style="{_CELL}">P({escape(names[best])}) = {own[best]:.3f}</td></tr>'
    squares = "".join(
        f'<span style="display:inline-block;width:.8em;height:.8em;background:{class_colour(c)}"></span> '
        f"{escape(name)} &nbsp; "
        for c, name in enumerate(names)
    )
    meaning = "by the number of the class" if labels is None else ""
    yield f'<tr><td></td><td colspan="2">{squares}{meaning}</td></tr>'


def _numbers(shown: Predictive, has_intervals: bool) -> Iterator[str]:
    last_time = shown.last_time
    mean, called = (shown.mean(), "mean") if last_time is None else (shown.quantile(0.5), "median")

    def texts(value: float) -> str:
        return number(value) if last_time is None else time_text(value, last_time)

    if has_intervals:
        wide, narrow = shown.interval(WIDE), shown.interval(NARROW)
        words = f"{100 * NARROW:.0f} % and {100 * WIDE:.0f} % intervals"
    else:
        std = shown.std()
        wide = np.column_stack([mean - 2.0 * std, mean + 2.0 * std])
        narrow, words = np.column_stack([mean - std, mean + std]), "one and two standard deviations"
    ends = np.concatenate([wide.ravel(), mean])
    ends = ends[np.isfinite(ends)] if last_time is None else np.array([0.0, last_time])
    low, high = (float(ends.min()), float(ends.max())) if len(ends) else (0.0, 1.0)
    span = high - low or 1.0

    def place(value: float) -> float:
        return 100.0 * min(max((value - low) / span, 0.0), 1.0) if math.isfinite(value) else 0.0

    for row in range(len(shown)):
        boxes = ""
        for name, ((left, right),) in (("wide", wide[row : row + 1]), ("narrow", narrow[row : row + 1])):
            boxes += _box(place(float(left)), place(float(right)) - place(float(left)), _COLOURS[name])
        boxes += _box(max(place(float(mean[row])) - 0.6, 0.0), 1.2, _COLOURS["mean"])
        yield f'<tr><td style="{_CELL}">{row}</td><td><span style="{_TRACK}">{boxes}</span></td>'
        yield f'<td style="{_CELL}">{texts(float(mean[row]))}</td>'
        yield f'<td style="{_CELL}">{texts(float(wide[row, 0]))} … {texts(float(wide[row, 1]))}</td></tr>'
    yield f'<tr><td></td><td colspan="3">{called}, {words}, from {number(low, 3)} to {number(high, 3)}</td></tr>'


def _box(left: float, width: float, colour: str) -> str:
    style = f"position:absolute;left:{left:.2f}%;width:{max(width, 0.0):.2f}%;height:100%;background:{colour}"
    return f'<span style="{style}"></span>'
