"""The effect of a column as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from everytree.base.arrays import FloatArray
from everytree.view.colours import Palette, class_colour
from everytree.view.plot.axes import legend, matplotlib_module, new_axes, plain_numbers
from everytree.view.plot.layout import clipped
from everytree.view.plot.style import palette_of

if TYPE_CHECKING:
    from everytree.explaining.effect import Effect


def draw_effect(effect: Effect, outputs: list[int], *, line: str, band: str | None, ax: Any = None) -> Any:
    """Draw the mean, a band where it has a name and there is one line, and below how many rows are at each point."""
    ax = new_axes(ax, (5.2, 3.4))
    colours = palette_of(ax)
    lines: list[tuple[str, str, FloatArray]] = [(line, colours.split(0.9), effect.mean)]
    if effect.classes is not None:
        lines = [(f"P({effect.classes[c]})", class_colour(c), effect.mean[:, c]) for c in outputs]
    has_band = len(lines) == 1 and band is not None
    low, high = effect.low, effect.high
    if has_band and effect.classes is not None:
        low, high, lines = low[:, outputs[0]], high[:, outputs[0]], [(lines[0][0], colours.split(0.9), lines[0][2])]
    x, is_curve = _places(effect)
    marks = [_draw_line(ax, x, is_curve, mean, colour) for _, colour, mean in lines]
    names = [name for name, _, _ in lines]
    if has_band:
        _draw_band(ax, x, is_curve, low, high, colours)
        marks.append(matplotlib_module("patches").Rectangle((0.0, 0.0), 1.0, 1.0, facecolor=colours.split(0.22)))
        names.append(str(band))
    _draw_shares(ax, x, effect.share, colours)
    _label(ax, effect, x, is_curve)
    ax.set_ylabel("prediction" if effect.classes is None else "probability")
    plain_numbers(ax.yaxis, max(abs(end) for end in ax.get_ylim()))
    ax.set_xlabel(effect.column, parse_math=False)
    legend(ax, marks, names)
    return ax


def _places(effect: Effect) -> tuple[FloatArray, np.ndarray[Any, np.dtype[np.bool_]]]:
    """Where the points are, and which of them are on a curve: numbers and dates are, a missing value stands apart."""
    n = len(effect.points)
    known = np.array([point is not None for point in effect.points], dtype=bool)
    if effect.kind == "category" or known.sum() == 0:
        return np.arange(n, dtype=np.float64), np.zeros(n, dtype=bool)
    as_days = effect.kind == "date"
    numbers = [float(np.datetime64(point, "us").astype(np.int64)) / 864e8 if as_days else float(point)
               for point in effect.points if point is not None]  # fmt: skip
    x = np.empty(n)
    x[known] = numbers
    x[~known] = max(numbers) + 0.1 * ((max(numbers) - min(numbers)) or 1.0)
    return x, known


def _draw_line(ax: Any, x: FloatArray, is_curve: Any, mean: FloatArray, colour: str) -> Any:
    (mark,) = ax.plot(x[is_curve], mean[is_curve], color=colour, linewidth=2.0, drawstyle="steps-mid")
    few = is_curve.sum() == 1
    ax.plot(x[~is_curve | few], mean[~is_curve | few], "o", color=colour, markersize=6.0)
    return mark


def _draw_band(ax: Any, x: FloatArray, is_curve: Any, low: FloatArray, high: FloatArray, colours: Palette) -> None:
    pale = colours.split(0.22)
    if is_curve.sum() > 1:
        ax.fill_between(x[is_curve], low[is_curve], high[is_curve], step="mid", color=pale, linewidth=0.0)
    alone = ~is_curve | (is_curve.sum() == 1)
    ax.vlines(x[alone], low[alone], high[alone], color=pale, linewidth=7.0, zorder=1)


def _draw_shares(ax: Any, x: FloatArray, share: FloatArray, colours: Palette) -> None:
    """Ticks along the lower edge, the taller the more rows."""
    if not share.any():
        return
    height = 0.06 * share / float(share.max())
    ax.vlines(x, 0.0, height, transform=ax.get_xaxis_transform(), color=colours.line, linewidth=2.0)


def _label(ax: Any, effect: Effect, x: FloatArray, is_curve: Any) -> None:
    labels = [clipped(label, 18) for label in effect.labels()]
    if effect.kind == "number" and is_curve.any():
        if not is_curve.all():
            ticks = [tick for tick in ax.get_xticks() if x[is_curve].min() <= tick <= x[is_curve].max()]
            ax.set_xticks([*ticks, x[~is_curve][0]], [*(f"{tick:g}" for tick in ticks), "missing"])
        return
    step = -(-len(labels) // 10)
    shown = [i for i in range(len(labels)) if i % step == 0 or effect.points[i] is None]
    if effect.kind == "date":
        labels = [label[:10] if effect.points[i] is not None else label for i, label in enumerate(labels)]
    long = max(len(labels[i]) for i in shown) * len(shown) > 64
    ax.set_xticks(x[shown], [labels[i] for i in shown], rotation=35 if long else 0,
                  ha="right" if long else "center", parse_math=False)  # fmt: skip
