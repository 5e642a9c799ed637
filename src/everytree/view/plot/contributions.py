"""Contributions of columns as horizontal bars."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from everytree.base.checks import whole_number
from everytree.view.plot.axes import new_axes, plain_numbers
from everytree.view.plot.layout import clipped
from everytree.view.plot.style import palette_of

if TYPE_CHECKING:
    from everytree.explaining.explanation import RowContributions


def plot_contributions(row: RowContributions, *, max_columns: int, ax: Any = None) -> Any:
    """Draw how a prediction comes about: from the value without any column, step by step to that of the row."""
    lines = row.lines(whole_number("max_columns", max_columns, 1))
    values = np.array([value for _, _, value in lines])
    ends = row.base + np.cumsum(values)
    starts = ends - values
    ax = new_axes(ax, (6.2, 1.3 + 0.28 * len(lines)))
    colours, places = palette_of(ax), np.arange(len(lines))
    ax.barh(
        places, values, 0.66, left=starts, color=[colours.more if value > 0.0 else colours.less for value in values]
    )
    for place, (start, end) in enumerate(zip(starts, ends, strict=True)):
        if place + 1 < len(lines):
            ax.plot([end, end], [place - 0.33, place + 1.33], color=colours.line, linewidth=0.8)
        right = max(start, end)
        ax.annotate(row.number(values[place], sign=True), (right, place), xytext=(4.0, 0.0),
                    textcoords="offset points", va="center", fontsize="small", color=colours.ink)  # fmt: skip
    ax.axvline(row.base, color=colours.line, linewidth=0.8, linestyle=":")
    labels = [f"{clipped(name, 28)} = {cell}" if cell else name for name, cell, _ in lines]
    ax.set_yticks(places, labels, parse_math=False)
    ax.grid(visible=False, axis="y")
    ax.set_ylim(len(lines) - 0.4, -0.6)
    ax.margins(x=0.14)
    plain_numbers(ax.xaxis, float(np.abs([row.base, *ends]).max()))
    ax.set_xlabel(f"{row.what}, from {row.number(row.base)} to {row.number(row.prediction)}", parse_math=False)
    return ax
