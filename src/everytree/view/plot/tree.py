"""A picture of the meta-tree, the probability of each split written on it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from everytree.view.colours import class_colour, ink_on
from everytree.view.describe import Drawing, DrawnNode, describe

if TYPE_CHECKING:
    from everytree.posterior.posterior import Posterior
from everytree.view.plot.key import draw_key, key_of, key_row
from everytree.view.plot.layout import BAR_HEIGHT, GAP, LINE_HEIGHT, PAD, SMALL, Item, Layout, captions
from everytree.view.plot.pen import Pen


def plot_tree(post: Posterior, *, max_depth: int = 4, max_nodes: int = 60, ax: Any = None, **options: Any) -> Any:
    """Draw the top of a posterior's meta-tree, from the root on the left to the leaves on the right.

    The head of a node names the feature it splits on; its colour and number are the probability that it is split given
    that it is in the tree. Below are its prediction if it is a leaf (class probabilities side by side, or mean and
    standard deviation on a scale that all nodes share) and the weight of its rows. Nodes are paler the less likely they
    are in the tree. Nodes that are left out are counted: "… 12 nodes".

    Parameters
    ----------
    post : Posterior
    max_depth : int
        Nodes below, and those least likely to be in the tree, are left out.
    max_nodes : int
        Nodes below, and those least likely to be in the tree, are left out.
    ax : matplotlib.axes.Axes, optional
        Drawn on at a scale that fits; a new figure of the right size by default.
    **options
        As in `tree_text`. With `helps`, the head has the probability that the split helps other rows instead of the
        posterior one.

    Returns
    -------
    matplotlib.axes.Axes
    """
    drawing = describe(post, max_depth=max_depth, max_nodes=max_nodes, **options)
    layout = Layout(drawing)
    key, key_width = key_of(drawing, max(layout.width, 320.0))
    width, height = max(layout.width, key_width), layout.height
    if key:
        height += 18.0 + key_row(key[-1].row) + 13.0
    pen = Pen.on(ax, width + 2 * GAP, height + 2 * GAP)
    left = (width - layout.width) / 2
    for item in layout.items:
        if item.parent >= 0:
            _draw_edge(pen, layout, item, left)
    for item in layout.items:
        x = left + layout.column[item.depth]
        if item.node is None:
            pen.text(x, item.y, item.label, size=SMALL, color=pen.colours.faded(pen.colours.ink, item.node_prob, 0.5))
        else:
            _draw_card(pen, drawing, item, x, layout.card)
    draw_key(pen, key, layout.height + 18.0)
    return pen.ax


def _draw_edge(pen: Pen, layout: Layout, item: Item, left: float) -> None:
    parent = layout.items[item.parent]
    start, end = left + layout.column[parent.depth] + layout.card, left + layout.column[item.depth]
    trunk, color = start + 7.0, pen.colours.faded(pen.colours.line, item.node_prob, 0.35)
    if item.node is None:
        pen.line([start, trunk, trunk, end - 3.0], [parent.y, parent.y, item.y, item.y], color=color, linestyle=":")
        return
    pen.line([start, trunk, trunk, end], [parent.y, parent.y, item.y, item.y], color=color)
    ink = pen.colours.faded(pen.colours.ink, item.node_prob, 0.5)
    pen.text((trunk + end) / 2, item.y - 2.0, item.label, size=SMALL, color=ink, ha="center", va="bottom")


def _draw_card(pen: Pen, drawing: Drawing, item: Item, x: float, width: float) -> None:
    node, top, prob = item.node, item.y - item.height / 2, item.node_prob
    assert node is not None
    colours = pen.colours
    ink, edge = colours.faded(colours.ink, prob, 0.5), colours.faded(colours.line, prob, 0.35)
    y = top
    if item.title:
        fill, head = colours.faded(colours.split(node.shown_prob), prob), LINE_HEIGHT * len(item.title) + PAD
        pen.box(x, top, width, head, facecolor=fill)
        for i, line in enumerate(item.title):
            pen.text(x + PAD, top + PAD / 2 + LINE_HEIGHT * (i + 0.5), line, color=ink_on(fill))
        place = x + width - PAD, top + PAD / 2 + LINE_HEIGHT / 2
        pen.text(*place, f"{node.shown_prob:.2f}", color=ink_on(fill), ha="right", weight="bold")
        y += head
    pen.box(x, top, width, item.height, facecolor="none", edgecolor=edge, linewidth=0.8)
    pale = colours.faded(colours.line, prob, 0.6)
    pen.text(x + width, top - 1.2, f"#{node.number}", size=6.0, color=pale, ha="right", va="bottom")
    _draw_outcome(pen, drawing, node, x + PAD, y + PAD * 0.75, width - 2 * PAD)
    left, right = captions(drawing, node)
    y += PAD + BAR_HEIGHT + LINE_HEIGHT / 2
    pen.text(x + PAD, y, left, size=SMALL, color=ink)
    pen.text(x + width - PAD, y, right, size=SMALL, color=ink, ha="right")


def _draw_outcome(pen: Pen, drawing: Drawing, node: DrawnNode, x: float, y: float, width: float) -> None:
    """Class probabilities side by side, or one standard deviation to both sides of the mean."""
    outcome, prob = node.outcome, node.node_prob
    for c, share in enumerate(outcome.probs):
        pen.box(x, y, width * share, BAR_HEIGHT, facecolor=pen.colours.faded(class_colour(c), prob))
        x += width * share
    if outcome.probs or not math.isfinite(outcome.mean):
        return
    y += BAR_HEIGHT / 2
    pen.line([x, x + width], [y, y], color=pen.colours.faded(pen.colours.line, 0.3 * prob, 0.1), zorder=2)
    left, right, at = (
        x + width * drawing.on_scale(value)
        for value in (outcome.mean - outcome.std, outcome.mean + outcome.std, outcome.mean)
    )
    colour = pen.colours.faded(pen.colours.split(0.8), prob)
    pen.interval(left, right, at, y, colour, "-" if math.isfinite(outcome.std) else ":")
