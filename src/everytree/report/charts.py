"""Small charts as inline SVG. Colours come from the page's style sheet by class, so that dark mode has its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.base.words import number_of

WIDTH, HEIGHT, LEFT, BOTTOM, MARGIN = 330.0, 270.0, 46.0, 40.0, 10.0


@dataclass(frozen=True)
class Series:
    """A line of a chart.

    Attributes
    ----------
    label, kind : str
        Its name, and its class in the style sheet: "ours" or "plain".
    x, y : (n_points,) float64
    dots : bool
        Whether points are marked.
    low, high : (n_points,) float64 or None
        Ends of a band.
    count : (n_points,) float64 or None
        Number of rows behind each point, drawn as bars from below.
    """

    label: str
    kind: str
    x: FloatArray
    y: FloatArray
    dots: bool = False
    low: FloatArray | None = None
    high: FloatArray | None = None
    count: FloatArray | None = None


def unit_chart(series: Sequence[Series], title: str, x_label: str, y_label: str, diagonal: str = "") -> str:
    """Lines in the unit square; `diagonal` is the label of the line from corner to corner."""
    marks = [f'<path class="diagonal" d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}"/>']
    for one in series:
        marks += [*_counts(one), *_band(one)]
        points = [f"{_x(a)} {_y(b)}" for a, b in zip(one.x, one.y, strict=True)]
        marks.append(f'<path class="line {one.kind}" d="M{"L".join(points)}"/>')
        if one.dots:
            places = (point.split(" ") for point in points)
            marks += [f'<circle class="dot {one.kind}" cx="{x}" cy="{y}" r="3.2"/>' for x, y in places]
    label = f"{title}. " + "; ".join(one.label for one in series) + (f"; diagonal: {diagonal}" if diagonal else "")
    return _figure(title, label, [*_axes(x_label, y_label, 1.0), *marks], _key(series, diagonal))


def _band(one: Series) -> Iterator[str]:
    """The area between both ends."""
    if one.low is not None and one.high is not None:
        there = [f"{_x(a)} {_y(b)}" for a, b in zip(one.x, one.low, strict=True)]
        back = [f"{_x(a)} {_y(b)}" for a, b in zip(one.x[::-1], one.high[::-1], strict=True)]
        yield f'<path class="spread {one.kind}" d="M{"L".join([*there, *back])}Z"/>'


def _counts(one: Series) -> Iterator[str]:
    """A bar from below for the rows of each point, the highest a fifth of the chart, with its number as a tooltip."""
    if one.count is None:
        return
    for x, count in zip(one.x, one.count, strict=True):
        top, bottom = _y(0.2 * count / one.count.max()), _y(0.0)
        words = f"{number_of(round(count), 'row')}, predicted {x:.2f} on average"
        yield (
            f'<rect class="count" x="{_x(x) - 5:.2f}" y="{top}" width="10" height="{bottom - top:.2f}">'
            f"<title>{escape(words)}</title></rect>"
        )


def histogram(series: Sequence[Series], title: str, x_label: str, y_label: str, top: float) -> str:
    """Bars over tenths of the unit interval, side by side; ideally all are at 1."""
    marks = []
    n = len(series)
    for i, one in enumerate(series):
        for x, y in zip(one.x, one.y, strict=True):
            left = x + 0.1 * (0.1 + 0.8 * i / n)
            height = _y(0.0, top) - _y(min(y, top), top)
            marks.append(
                f'<rect class="bar {one.kind}" x="{_x(left)}" y="{_y(min(y, top), top)}" '
                f'width="{_x(0.08 / n) - _x(0.0):.2f}" height="{height:.2f}"/>'
            )
    marks.append(f'<path class="diagonal" d="M{_x(0)} {_y(1, top)}L{_x(1)} {_y(1, top)}"/>')
    label = f"{title}. " + "; ".join(one.label for one in series) + "; flat at 1 is best"
    return _figure(title, label, [*_axes(x_label, y_label, top), *marks], _key(series, "as it should be"))


def ranges(names: Sequence[str], middle: FloatArray, low: FloatArray, high: FloatArray, texts: Sequence[str]) -> str:
    """A list of bars with whiskers, in HTML: its text wraps and needs no images."""
    top = max(float(np.max(high, initial=0.0)), float(np.max(middle, initial=0.0)), 1e-12)
    items = [
        f'<li><span class="name">{escape(name)}</span><span class="track" aria-hidden="true">'
        f'<span class="fill" style="width:{100 * m / top:.2f}%"></span>'
        f'<span class="whisker" style="left:{100 * a / top:.2f}%;width:{100 * (b - a) / top:.2f}%"></span></span>'
        f'<span class="value">{escape(text)}</span></li>'
        for name, m, a, b, text in zip(names, middle, low, high, texts, strict=True)
    ]
    return f'<ol class="ranges">{"".join(items)}</ol>'


def _x(share: float) -> float:
    return round(LEFT + float(share) * (WIDTH - LEFT - MARGIN), 2)


def _y(value: float, top: float = 1.0) -> float:
    return round(HEIGHT - BOTTOM - float(value) / top * (HEIGHT - BOTTOM - MARGIN), 2)


def _axes(x_label: str, y_label: str, top: float) -> Iterator[str]:
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        yield f'<path class="grid" d="M{_x(share)} {_y(0)}V{_y(1)}M{_x(0)} {_y(share)}H{_x(1)}"/>'
        yield f'<text x="{_x(share)}" y="{_y(0) + 15}" text-anchor="middle">{share:g}</text>'
        yield f'<text x="{_x(0) - 6}" y="{_y(share) + 4}" text-anchor="end">{share * top:g}</text>'
    yield f'<text x="{_x(0.5)}" y="{HEIGHT - 6}" text-anchor="middle">{escape(x_label)}</text>'
    middle = _y(0.5)
    yield f'<text transform="translate(11 {middle}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>'


def _key(series: Sequence[Series], diagonal: str) -> str:
    entries = [f'<span class="key {one.kind}">{escape(one.label)}</span>' for one in series]
    if diagonal:
        entries.append(f'<span class="key diagonal">{escape(diagonal)}</span>')
    return "".join(entries)


def _figure(title: str, label: str, marks: Sequence[str], key: str) -> str:
    return (
        f'<figure class="chart"><figcaption>{escape(title)}</figcaption>'
        f'<svg viewBox="0 0 {WIDTH:g} {HEIGHT:g}" role="img" aria-label="{escape(label)}">{"".join(marks)}</svg>'
        f'<div class="keys">{key}</div></figure>'
    )
