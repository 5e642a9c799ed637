"""Small charts as inline SVG. Colours come from the page's style sheet by class, so that dark mode has its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np
from numpy.typing import NDArray

from everytree.base.arrays import FloatArray
from everytree.base.words import number_of
from everytree.view.describe import CLASS_COLOURS

UNITS = ((1e12, 1.0, ""), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))
"""(smallest value, divisor, suffix) for axis labels."""

WIDTH, HEIGHT, LEFT, BOTTOM, MARGIN = 330.0, 270.0, 46.0, 40.0, 10.0

N_BINS = 12
"""Bars of a histogram below a curve."""

LETTER, MAX_LETTERS, GAP = 7.4, 14, 8.0
"""Width of a letter of a wide font, letters of a label at most, and space between two labels."""


@dataclass(frozen=True)
class Series:
    """A line of a chart."""

    label: str  # its name, and its class in the style sheet: "ours" or "plain"
    kind: str
    x: FloatArray  # (n_points,)
    y: FloatArray
    dots: bool = False  # whether points are marked
    low: FloatArray | None = None  # (n_points,): ends of a band
    high: FloatArray | None = None
    count: FloatArray | None = None  # (n_points,): number of rows behind each point, drawn as bars from below


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


def scatter_chart(
    title: str, x_label: str, y_label: str, x: FloatArray, y: FloatArray, ticks: FloatArray
) -> str:  # fmt: skip
    """A dot a row, and the line where both are equal; `ticks` go from the lower end of both scales to the upper one."""
    a, b = ((each - ticks[0]) / (ticks[-1] - ticks[0]) for each in (x, y))
    marks = [f'<path class="diagonal" d="M{_x(0)} {_y(0)}L{_x(1)} {_y(1)}"/>']
    marks += [f'<circle class="row ours" cx="{_x(p)}" cy="{_y(q)}" r="2.4"/>' for p, q in zip(a, b, strict=True)]
    key = '<span class="key diagonal">as predicted</span>'
    return _figure(title, f"{y_label} by {x_label}", [*_scales(x_label, y_label, ticks), *marks], key)


def curve_chart(
    title: str,
    y_label: str,
    labels: Sequence[str],
    places: FloatArray | None,
    curves: Sequence[FloatArray],
    *,
    bands: tuple[FloatArray, FloatArray] | None,
    ticks: FloatArray,
    keys: Sequence[str],
    shares: FloatArray,
) -> str:
    """Curves over numbers, or dots over categories; a missing value stands apart on the right.

    `places` are those of the points on a scale of numbers, NaN for a missing value, or None for categories, of which
    two are bars; `bands` the ends of a band about the only curve; `ticks` go from the lower end of the vertical scale
    to its upper one; `shares` are those of the rows near each point, drawn below.
    """
    x = _across(len(labels), places)
    is_apart = np.ones(len(labels), dtype=bool) if places is None else np.isnan(places)

    def y(value: float) -> float:
        return _y((float(value) - ticks[0]) / (ticks[-1] - ticks[0]))

    are_bars = places is None and len(labels) <= 3 and not keys
    marks = [*_vertical_scale(ticks, y), *_below(labels, x, is_apart)]
    if not are_bars:
        marks += [*_bars_below(x, shares, is_apart)]
    for number, curve in enumerate(curves):
        style = f' style="--of:{CLASS_COLOURS[number % len(CLASS_COLOURS)]}"' if keys else ""
        on_line = np.flatnonzero(~is_apart)
        if bands is not None and len(on_line):
            there = [f"{x[k]:.2f} {y(bands[0][k])}" for k in on_line]
            back = [f"{x[k]:.2f} {y(bands[1][k])}" for k in on_line[::-1]]
            marks.append(f'<path class="spread ours" d="M{"L".join([*there, *back])}Z"/>')
        if len(on_line):
            points = "L".join(f"{x[k]:.2f} {y(curve[k])}" for k in on_line)
            marks.append(f'<path class="line of"{style} d="M{points}"/>')
        for k in np.flatnonzero(is_apart).tolist():
            if are_bars:
                top, words = y(curve[k]), f"{labels[k]}, {shares[k]:.0%} of the rows"
                box = f'x="{x[k] - 22:.2f}" y="{top}" width="44" height="{_y(0.0) - top:.2f}"'
                marks.append(f'<rect class="amount" {box}><title>{escape(words)}</title></rect>')
            if bands is not None:
                marks.append(f'<path class="whisker-line" d="M{x[k]:.2f} {y(bands[0][k])}V{y(bands[1][k])}"/>')
            dot = f'<circle class="dot of"{style} cx="{x[k]:.2f}" cy="{y(curve[k])}" r="3.6">'
            marks.append(f"{dot}<title>{escape(labels[k])}</title></circle>")
    key = "".join(
        f'<span class="key of" style="--of:{CLASS_COLOURS[number % len(CLASS_COLOURS)]}">{escape(name)}</span>'
        for number, name in enumerate(keys)
    )
    return _figure(title, f"{y_label} by {title}", marks, key)


def _bars_below(x: FloatArray, shares: FloatArray, is_apart: NDArray[np.bool_]) -> Iterator[str]:
    """Bars from below for the shares of the rows, the highest a sixth of the chart: a histogram of numbers."""
    on_line, apart = np.flatnonzero(~is_apart), np.flatnonzero(is_apart)
    ends = np.linspace(_x(0.0), float(x[on_line].max()), N_BINS + 1) if len(on_line) else np.zeros(1)
    heights = np.histogram(x[on_line], ends, weights=shares[on_line])[0] if len(on_line) else np.zeros(0)
    bars = [(a, b - a - 1.0, share) for a, b, share in zip(ends[:-1], ends[1:], heights, strict=True)]
    bars += [(x[k] - 5.0, 10.0, shares[k]) for k in apart.tolist()]
    highest = max((share for *_, share in bars), default=0.0) or 1.0
    for left, width, share in bars:
        top = _y(share / highest / 6.0)
        box = f'x="{left:.2f}" y="{top}" width="{width:.2f}" height="{_y(0.0) - top:.2f}"'
        yield f'<rect class="count" {box}><title>{share:.1%} of the rows</title></rect>'


def _across(n_points: int, places: FloatArray | None) -> FloatArray:
    """Horizontal places of points."""
    if places is None or np.isnan(places).all():
        return np.array([_x((k + 0.5) / n_points) for k in range(n_points)])
    has_missing = bool(np.isnan(places).any())
    first, last = float(np.nanmin(places)), float(np.nanmax(places))
    share = (places - first) / (last - first or 1.0) * (0.88 if has_missing else 1.0)
    return np.array([_x(0.97 if np.isnan(one) else one) for one in share])


def _below(labels: Sequence[str], x: FloatArray, is_apart: NDArray[np.bool_]) -> Iterator[str]:
    """Labels of a scale's ends and middle, and of values that stand apart, as far as there is room."""
    on_line, apart = (np.flatnonzero(some).tolist() for some in (~is_apart, is_apart))
    if not on_line:
        room, end = _letters(labels), 0.0
        for k in apart:
            half = 0.5 * LETTER * min(len(labels[k]), room)
            place = min(max(x[k], half), WIDTH - half)  # no end of it is cut off
            if place - half >= end:
                yield _label(labels[k], place, "middle", room)
                end = place + half + 0.5 * GAP
        return
    first, middle, last = on_line[0], on_line[len(on_line) // 2], on_line[-1]
    yield _label(labels[first], x[first], "start")
    start = x[first] + _width(labels[first])
    taken = max((_width(labels[k]) + GAP for k in apart), default=0.0)
    end = min([x[last], *(x[k] + 8.0 - taken for k in apart)])  # not over the label of what stands apart
    if last != first and end - _width(labels[last]) > start + GAP:
        yield _label(labels[last], end, "end")
        end -= _width(labels[last])
    half = 0.5 * _width(labels[middle]) + GAP
    if start + half < x[middle] < end - half:
        yield _label(labels[middle], x[middle], "middle")
    for k in apart:
        yield _label(labels[k], x[k] + 8.0, "end")


def _letters(labels: Sequence[str]) -> int:
    """Letters of each label of categories: all that there is room for, but as many as tell them apart."""
    n_labels, longest = len(labels), min(max(map(len, labels)), MAX_LETTERS)
    needed = next((n for n in range(3, longest) if len({_cut(text, n) for text in labels}) == n_labels), longest)
    needed = longest if longest <= needed + 3 else needed
    return max(int((WIDTH - LEFT - MARGIN) / LETTER / n_labels) - 1, needed)


def _cut(text: str, room: int) -> str:
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _width(text: str) -> float:
    return LETTER * min(len(text), MAX_LETTERS)


def _label(text: str, x: float, anchor: str, room: int = MAX_LETTERS) -> str:
    return f'<text x="{x:.2f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="{anchor}">{escape(_cut(text, room))}</text>'


def scale(low: float, high: float) -> FloatArray:
    """Three to seven round numbers from below `low` to above `high`."""
    rough = (high - low if high > low else 1.0) / 4.0
    power = 10.0 ** np.floor(np.log10(rough))
    step = power * next((one for one in (1.0, 2.0, 5.0) if one * power >= rough * (1.0 - 1e-9)), 10.0)
    first, last = np.floor(low / step + 1e-9), np.ceil(high / step - 1e-9)
    return np.asarray(np.arange(first, max(last, first + 1.0) + 0.5) * step)


def _vertical_scale(ticks: FloatArray, y: Callable[[float], float]) -> Iterator[str]:
    for value, text in zip(ticks, tick_texts(ticks), strict=True):
        yield f'<path class="grid" d="M{_x(0)} {y(value)}H{_x(1)}"/>'
        yield f'<text x="{_x(0) - 6}" y="{y(value) + 4}" text-anchor="end">{text}</text>'


def tick_texts(ticks: FloatArray) -> list[str]:
    """Numbers of a scale, in thousands or millions where they would be long."""
    largest = float(np.abs(ticks).max())
    unit, sign = next(((unit, sign) for size, unit, sign in UNITS if largest >= size), (1.0, ""))
    return [f"{value / unit:.4g}{sign if value else ''}" for value in ticks.tolist()]


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
        f'{_whisker(a / top, b / top)}</span><span class="value">{escape(text)}</span></li>'
        for name, m, a, b, text in zip(names, middle, low, high, texts, strict=True)
    ]
    return f'<ol class="ranges">{"".join(items)}</ol>'


def _whisker(low: float, high: float) -> str:
    """A line over a range of the bar; none where there is no range."""
    return (
        f'<span class="whisker" style="left:{100 * low:.2f}%;width:{100 * (high - low):.2f}%"></span>'
        if high > low
        else ""
    )


def _x(share: float) -> float:
    return round(LEFT + float(share) * (WIDTH - LEFT - MARGIN), 2)


def _y(value: float, top: float = 1.0) -> float:
    return round(HEIGHT - BOTTOM - float(value) / top * (HEIGHT - BOTTOM - MARGIN), 2)


def _axes(x_label: str, y_label: str, top: float) -> Iterator[str]:
    shares = np.linspace(0.0, 1.0, 5)
    yield from _grid(shares, [f"{share:g}" for share in shares], [f"{share * top:g}" for share in shares])
    yield from _labels(x_label, y_label)


def _scales(x_label: str, y_label: str, ticks: FloatArray) -> Iterator[str]:
    """The same scale on both axes; below, only what there is room for."""
    texts = tick_texts(ticks)
    room = max(1, -(-len(ticks) * int(LETTER * max(map(len, texts)) + GAP) // int(WIDTH - LEFT - MARGIN)))
    below = [text if k % room == 0 else "" for k, text in enumerate(texts)]
    yield from _grid((ticks - ticks[0]) / (ticks[-1] - ticks[0]), below, texts)
    yield from _labels(x_label, y_label)


def _grid(shares: FloatArray, below: Sequence[str], beside: Sequence[str]) -> Iterator[str]:
    for share, x_text, y_text in zip(shares.tolist(), below, beside, strict=True):
        yield f'<path class="grid" d="M{_x(share)} {_y(0)}V{_y(1)}M{_x(0)} {_y(share)}H{_x(1)}"/>'
        yield f'<text x="{_x(share)}" y="{_y(0) + 15}" text-anchor="middle">{x_text}</text>'
        yield f'<text x="{_x(0) - 6}" y="{_y(share) + 4}" text-anchor="end">{y_text}</text>'


def _labels(x_label: str, y_label: str) -> Iterator[str]:
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
