"""Layout of a drawn tree: columns by depth, rows packed as tightly as neighbours allow."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from everytree.predictive.restricted import time_text
from everytree.view.describe import Drawing, DrawnNode, more, number, weight_text
from everytree.view.plot.axes import matplotlib_module

FONT, SMALL = 7.5, 6.5
LINE_HEIGHT, BAR_HEIGHT, PAD, GAP = 9.0, 6.0, 4.0, 10.0
TITLE_LETTERS, LABEL_LETTERS = 16, 18
"""All sizes are in points, at a scale of 1."""


@dataclass
class Item:
    """A node or a stub, and its position."""

    node: DrawnNode | None
    parent: int
    depth: int
    node_prob: float
    label: str
    height: float
    title: tuple[str, ...] = ()
    y: float = 0.0


class Layout:
    """Columns by depth, rows packed as tightly as neighbours allow, parents midway between their first and last child.

    `items`: parents before children. `column`: left side of the nodes of each depth. `card`: width of a node.
    """

    def __init__(self, drawing: Drawing) -> None:
        self.items: list[Item] = []
        place: dict[int, int] = {}
        children: list[list[int]] = []
        for i, node in enumerate(drawing.nodes):
            place[i] = self._add(children, item_of(node, place.get(node.parent, -1)))
        for i, node in enumerate(drawing.nodes):
            if node.n_hidden:
                prob = node.node_prob * node.split_prob
                stub = Item(None, place[i], node.depth + 1, prob, more(node.n_hidden), LINE_HEIGHT)
                self._add(children, stub)
        self.card = max(card_width(drawing, item) for item in self.items)
        self.column = self._columns()
        widths = [self.card if i.node is not None else text_width(i.label, SMALL) for i in self.items]
        self.width = max(self.column[i.depth] + w for i, w in zip(self.items, widths, strict=True))
        self.height = self._rows(children)

    def _add(self, children: list[list[int]], item: Item) -> int:
        self.items.append(item)
        children.append([])
        if item.parent >= 0:
            children[item.parent].append(len(self.items) - 1)
        return len(self.items) - 1

    def _columns(self) -> list[float]:
        column = [0.0]
        for depth in range(1, max(item.depth for item in self.items) + 1):
            labels = [item.label for item in self.items if item.depth == depth and item.node is not None]
            column.append(column[-1] + self.card + 16.0 + max((text_width(a, SMALL) for a in labels), default=0.0))
        return column

    def _rows(self, children: list[list[int]]) -> float:
        """Set the height of each item; return the total height."""
        offset = [0.0] * len(self.items)
        outline: list[tuple[list[float], list[float]]] = [([], [])] * len(self.items)
        for i in self._deepest_first():
            half = self.items[i].height / 2
            tops, bottoms = [-half], [half]
            if children[i]:
                places = packed([outline[c] for c in children[i]], GAP)
                middle = (places[0] + places[-1]) / 2
                for c, y in zip(children[i], places, strict=True):
                    offset[c] = y - middle
                below = [shifted(outline[c], offset[c]) for c in children[i]]
                tops += merged([top for top, _ in below], min)
                bottoms += merged([bottom for _, bottom in below], max)
            outline[i] = (tops, bottoms)
        highest = min(outline[0][0])
        for i, item in enumerate(self.items):  # a stub comes after all nodes, but its parent before it
            item.y = offset[i] + (self.items[item.parent].y if item.parent >= 0 else -highest)
        return max(outline[0][1]) - highest

    def _deepest_first(self) -> list[int]:
        return sorted(range(len(self.items)), key=lambda i: -self.items[i].depth)


def packed(outlines: Sequence[tuple[Sequence[float], Sequence[float]]], gap: float) -> list[float]:
    """Positions of siblings such that they and all nodes below them keep their distance.

    Packing from the first to the last moves small subtrees to one side, packing from the last to the first to the
    other; both keep all distances, hence so does the mean of the two, which is symmetric.
    """
    forward = _packed_one_way(outlines, gap)
    mirrored = [([-b for b in bottoms], [-t for t in tops]) for tops, bottoms in reversed(outlines)]
    back = _packed_one_way(mirrored, gap)
    last = forward[-1]
    return [(one + last - other) / 2 for one, other in zip(forward, reversed(back), strict=True)]


def _packed_one_way(outlines: Sequence[tuple[Sequence[float], Sequence[float]]], gap: float) -> list[float]:
    places: list[float] = []
    edge: list[float] = []
    for tops, bottoms in outlines:
        y = max((e + gap - t for e, t in zip(edge, tops, strict=False)), default=0.0)
        places.append(y)
        edge = merged([edge, [y + b for b in bottoms]], max)
    return places


def shifted(outline: tuple[Sequence[float], Sequence[float]], by: float) -> tuple[list[float], list[float]]:
    return [t + by for t in outline[0]], [b + by for b in outline[1]]


def merged(edges: Sequence[Sequence[float]], function: Any) -> list[float]:
    """The outermost of several edges, level by level."""
    return [function(e[level] for e in edges if level < len(e)) for level in range(max(map(len, edges)))]


def item_of(node: DrawnNode, parent: int) -> Item:
    title: tuple[str, ...] = ()
    if not node.is_terminal:
        first, *rest = textwrap.wrap(node.question, TITLE_LETTERS) or [""]
        title = (first, clipped(" ".join(rest), TITLE_LETTERS)) if rest else (first,)
    height = LINE_HEIGHT * len(title) + (PAD if title else 0.0) + BAR_HEIGHT + LINE_HEIGHT + 1.5 * PAD
    return Item(node, parent, node.depth, node.node_prob, clipped(node.answer, LABEL_LETTERS), height, title)


def captions(drawing: Drawing, node: DrawnNode) -> tuple[str, str]:
    outcome, classes = node.outcome, drawing.classes
    right = weight_text(node, drawing.unit)
    if outcome.probs:
        best = 1 if len(classes) == 2 else max(range(len(classes)), key=outcome.probs.__getitem__)
        return f"{clipped(classes[best], 12)}: {outcome.probs[best]:.2f}", right
    if outcome.coefficients:
        weights = ", ".join(number(w, 2) for w in outcome.coefficients[:3])
        return f"w = {weights}{', …' if len(outcome.coefficients) > 3 else ''}", right
    if not math.isnan(outcome.last_time):
        return f"median {time_text(outcome.median, outcome.last_time)}", right
    return f"{number(outcome.mean, 3)} ± {number(outcome.std, 2)}", right


def card_width(drawing: Drawing, item: Item) -> float:
    if item.node is None:
        return 0.0
    left, right = captions(drawing, item.node)
    body = text_width(left, SMALL) + (text_width(right, SMALL) + 11.0 if right else 0.0)
    head = max((text_width(line, FONT) for line in item.title), default=0.0) + 8.0 + text_width("0.00", FONT)
    return max(body, head if item.title else 0.0, 56.0) + 2 * PAD


def text_width(text: str, size: float) -> float:
    """Width of a text in points, in the font that matplotlib would use."""
    font = matplotlib_module("font_manager").FontProperties(size=size)
    return float(matplotlib_module("textpath").text_to_path.get_text_width_height_descent(text, font, False)[0])


def clipped(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"
