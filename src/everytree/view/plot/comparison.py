"""A picture of where two sets of rows differ: the tree, the probability of a change, and both predictions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everytree.view.comparison import Compared
from everytree.view.plot.layout import FONT, GAP, SMALL, text_width
from everytree.view.plot.pen import Pen

if TYPE_CHECKING:
    from everytree.posterior.comparison import Comparison

ROW, BAR, NUMBER, INDENT = 13.0, 70.0, 22.0, 14.0


def plot_comparison(
    found: Comparison, *, max_depth: int = 4, max_nodes: int = 60, ax: Any = None, **options: Any
) -> Any:
    """Draw the top of the tree from the top down, with a bar for the probability of a change in each node.

    Parameters
    ----------
    found : Comparison
    max_depth, max_nodes : int
        As in `plot_tree`.
    ax : matplotlib.axes.Axes, optional
        Drawn on at a scale that fits; a new figure of the right size by default.
    **options
        As in `tree_text`.

    Returns
    -------
    matplotlib.axes.Axes
    """
    drawn = Compared.of(found, {"max_depth": max_depth, "max_nodes": max_nodes, **options})
    rows = [(_words(node), node, cells) for _, node, cells in drawn.lines() if node is not None]
    left = max(INDENT * node.depth + text_width(words, FONT) for words, node, _ in rows) + GAP
    columns = list(zip(drawn.header, *(cells for _, _, cells in rows), strict=True))
    widths = [max(text_width(cell, SMALL) for cell in column) + GAP for column in columns]
    title = f"P(nothing changed) = {found.unchanged_prob:.3g} (a priori {found.prior_unchanged_prob:.3g})"
    pen = Pen.on(ax, left + BAR + NUMBER + sum(widths) + 2 * GAP, ROW * (len(rows) + 1) + 2 * GAP)
    pen.text(0.0, 0.0, title, weight="bold")
    pen.text(left, ROW, "probability of a change", size=SMALL)
    for k, (words, node, _) in enumerate(rows):
        y = ROW * (k + 2)
        prob = float(found.change_prob[node.number])
        pen.text(INDENT * node.depth, y, words, color=pen.colours.faded(pen.colours.ink, node.node_prob, 0.5))
        pen.box(left, y - 4.0, BAR, 8.0, facecolor="none", edgecolor=pen.colours.line, linewidth=0.5)
        pen.box(left, y - 4.0, BAR * prob, 8.0, facecolor=pen.colours.split(prob))
        pen.text(left + BAR + 4.0, y, f"{prob:.2f}", size=SMALL)
    right = left + BAR + NUMBER
    for (head, *cells), width in zip(columns, widths, strict=True):
        right += width
        for k, cell in enumerate([head, *cells]):
            pen.text(right, ROW * (k + 1), cell, size=SMALL, ha="right")
    return pen.ax


def _words(node: Any) -> str:
    """The condition that leads to a node and the column that it splits on."""
    return "  ".join(part for part in (node.answer, "" if node.is_terminal else f"{node.question}?") if part) or "all"
