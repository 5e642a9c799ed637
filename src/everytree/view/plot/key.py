"""The legend below a drawn tree."""

from __future__ import annotations

from dataclasses import dataclass, replace

from everytree.view.colours import class_colour
from everytree.view.describe import Drawing, mean_words, number
from everytree.view.plot.axes import matplotlib_module
from everytree.view.plot.layout import SMALL, clipped, text_width
from everytree.view.plot.pen import Pen

_COLOUR_BAR = 76.0


@dataclass(frozen=True)
class KeyPart:
    """One entry of the legend: the type of mark or the colour of a square, its text, and its position."""

    mark: str
    words: str
    x: float = 0.0
    row: int = 0

    @property
    def mark_width(self) -> float:
        return {"split": _COLOUR_BAR + 14.0, "interval": 36.0, "": 0.0}.get(self.mark, 11.0)


def key_of(drawing: Drawing, width: float) -> tuple[list[KeyPart], float]:
    """The entries of the legend, in rows no wider than the tree if possible, and the width of the widest row."""
    words = drawing.shown_words if drawing.has_helps else "probability of a split"
    parts = [KeyPart("split", words)] if not drawing.nodes[0].is_terminal else []
    parts += [KeyPart(class_colour(c), clipped(name, 24)) for c, name in enumerate(drawing.classes)]
    if drawing.scale is not None:
        low, high = drawing.scale
        parts.append(
            KeyPart("interval", f"{mean_words(drawing.nodes[0].outcome)}, from {number(low, 3)} to {number(high, 3)}")
        )
    if min(node.node_prob for node in drawing.nodes) < 0.99:
        parts.append(KeyPart("", "pale: less likely in the tree"))
    parts += [KeyPart("", drawing.left_out)] if drawing.n_left_out else []
    placed: list[KeyPart] = []
    x, row, widest = 0.0, 0, 0.0
    for part in parts:
        needed = part.mark_width + text_width(part.words, SMALL)
        if x > 0.0 and x + needed > width:
            x, row = 0.0, row + 1
        placed.append(replace(part, x=x, row=row))
        widest = max(widest, x + needed)
        x += needed + 16.0
    return placed, widest


def key_row(row: int) -> float:
    """Distance below the first row, which has numbers below the colour bar."""
    return 12.0 * row + 7.0 if row else 0.0


def draw_key(pen: Pen, parts: list[KeyPart], top: float) -> None:
    for part in parts:
        x, y = part.x, top + key_row(part.row)
        pen.text(x + part.mark_width, y, part.words, size=SMALL)
        if part.mark == "split":
            _draw_colour_bar(pen, x + 5.0, y)
        elif part.mark == "interval":
            pen.interval(x, x + 30.0, x + 15.0, y, pen.colours.split(0.8))
        elif part.mark:
            pen.box(x, y - 4.0, 8.0, 8.0, facecolor=part.mark)


def _draw_colour_bar(pen: Pen, x: float, y: float) -> None:
    ax, colors = pen.ax, matplotlib_module("colors")
    (x0, x1), (y1, y0) = ax.get_xlim(), ax.get_ylim()
    place = ((x - x0) / (x1 - x0), (y1 - y - 4.0) / (y1 - y0), _COLOUR_BAR / (x1 - x0), 8.0 / (y1 - y0))
    bar = ax.inset_axes(place)
    scale = colors.ListedColormap([pen.colours.split(i / 255) for i in range(256)], name="split probability")
    shades = matplotlib_module("cm").ScalarMappable(colors.Normalize(0.0, 1.0), scale)
    drawn = ax.figure.colorbar(shades, cax=bar, orientation="horizontal", ticks=[0.0, 0.5, 1.0])
    drawn.outline.set_linewidth(0.0)
    bar.tick_params(length=0.0, pad=1.5 * pen.scale, labelsize=6.0 * pen.scale, labelcolor=pen.colours.ink)
    bar.set_xticklabels(["0", "0.5", "1"])
