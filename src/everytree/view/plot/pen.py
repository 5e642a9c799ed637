"""Drawing of lines, boxes and text in points, for any axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from everytree.view.colours import Palette
from everytree.view.plot.axes import matplotlib_module
from everytree.view.plot.layout import FONT, GAP
from everytree.view.plot.style import palette_of


@dataclass(frozen=True)
class Pen:
    """Draws in points, y downwards, at the scale that fits the axes."""

    ax: Any
    scale: float
    colours: Palette

    @classmethod
    def on(cls, ax: Any, width: float, height: float) -> Pen:
        """Set up axes whose data coordinates are points times `scale`, with a margin of `GAP` around the drawing."""
        if ax is None:
            figure = matplotlib_module("pyplot").figure(figsize=(width / 72.0, height / 72.0))
            ax = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        room = ax.get_window_extent()
        points = 72.0 / ax.figure.dpi
        scale = min(room.width * points / width, room.height * points / height, 1.5)
        spare_x, spare_y = room.width * points / scale - width, room.height * points / scale - height
        ax.set_xlim(-GAP - spare_x / 2, width - GAP + spare_x / 2)
        ax.set_ylim(height - GAP + spare_y / 2, -GAP - spare_y / 2)
        ax.set_axis_off()
        return cls(ax, scale, palette_of(ax))

    def text(self, x: float, y: float, words: str, *, size: float = FONT, color: str = "", **options: Any) -> None:
        color = color or self.colours.ink
        options = {"ha": "left", "va": "center_baseline"} | options
        self.ax.text(x, y, words, size=size * self.scale, color=color, parse_math=False, zorder=3, **options)

    def box(self, x: float, y: float, width: float, height: float, **options: Any) -> None:
        options = {"linewidth": 0.0, "zorder": 2} | options
        options["linewidth"] *= self.scale
        self.ax.add_patch(matplotlib_module("patches").Rectangle((x, y), width, height, **options))

    def line(self, xs: Sequence[float], ys: Sequence[float], *, width: float = 0.8, **options: Any) -> None:
        options = {"zorder": 1, "solid_joinstyle": "round", "solid_capstyle": "butt"} | options
        self.ax.plot(xs, ys, linewidth=width * self.scale, scalex=False, scaley=False, **options)

    def interval(self, left: float, right: float, mean: float, y: float, color: str, style: str = "-") -> None:
        self.line([left, right], [y, y], color=color, width=2.0, zorder=2, linestyle=style)
        dot = 4.5 * self.scale
        self.line([mean], [y], color=color, marker="o", markersize=dot, markeredgewidth=0.0, zorder=2)
