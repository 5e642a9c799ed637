"""Pictures with matplotlib: the meta-tree, predictions along a feature, split probabilities.

Each function takes an `ax` to draw on, or makes a figure of a fitting size, and returns the axes; none shows anything.
matplotlib is imported when the first picture is drawn, not before.
"""

from __future__ import annotations

import importlib
import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from everytree.codes import as_codes, whole_number
from everytree.drawing import (
    INK,
    LINE,
    CodeNames,
    Drawing,
    DrawnNode,
    Names,
    class_colour,
    describe,
    faded,
    grouped,
    ink_on,
    more,
    number,
    repeated,
    split_colour,
    weight_text,
)
from everytree.families.base import FloatArray

if TYPE_CHECKING:
    from everytree.posterior import Posterior

FONT, SMALL = 7.5, 6.5
LINE_HEIGHT, BAR_HEIGHT, PAD, GAP = 9.0, 6.0, 4.0, 10.0
TITLE_LETTERS, LABEL_LETTERS = 16, 18
"""All sizes are in points, at a scale of 1."""


def matplotlib_module(name: str) -> Any:
    """A module of matplotlib."""
    try:
        return importlib.import_module(f"matplotlib.{name}")
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install everytree[plot]") from error


# ---- the tree -------------------------------------------------------------------------------------------------------


def plot_tree(
    post: Posterior,
    *,
    feature_names: Sequence[Any] | None = None,
    code_names: CodeNames | None = None,
    class_names: Sequence[Any] | None = None,
    max_depth: int = 4,
    max_nodes: int = 60,
    ax: Any = None,
    **row_data: Any,
) -> Any:
    """Draw the top of a posterior's meta-tree, from the root on the left to the leaves on the right.

    A node's head says what it asks, its colour and number how probable it is that it is split given that it is in the
    tree. Below are what it predicts if it is a leaf (class probabilities side by side, or mean and standard deviation
    on a scale that all nodes share) and the weight of its rows. Nodes are the paler the less likely they are in the
    tree at all. What is left out is counted: "… 12 nodes".

    Parameters
    ----------
    post : Posterior
    feature_names : sequence of str, optional
    code_names : sequence or mapping of sequences of str, optional
        For each feature what each code stands for; in a binary split at t, entry t is the largest value to the left.
    class_names : sequence of str, optional
    max_depth, max_nodes : int
        Nodes below, and those least likely to be in the tree, are left out.
    ax : matplotlib.axes.Axes, optional
        Drawn on at the scale that fits; a new figure of the right size by default.
    **row_data
        What the family wants to know of a row, such as `inputs`: one value, for all nodes.

    Returns
    -------
    matplotlib.axes.Axes
    """
    drawing = describe(
        post, feature_names=feature_names, code_names=code_names, class_names=class_names, max_depth=max_depth,
        max_nodes=max_nodes, row_data=row_data,
    )  # fmt: skip
    layout = _Layout(drawing)
    key, key_width = _key(drawing, max(layout.width, 320.0))
    width, height = max(layout.width, key_width), layout.height
    if key:
        height += 18.0 + _key_row(key[-1].row) + 13.0
    pen = _Pen.on(ax, width + 2 * GAP, height + 2 * GAP)
    left = (width - layout.width) / 2
    for item in layout.items:
        if item.parent >= 0:
            _draw_edge(pen, layout, item, left)
    for item in layout.items:
        x = left + layout.column[item.depth]
        if item.node is None:
            pen.text(x, item.y, item.label, size=SMALL, color=faded(INK, item.node_prob, 0.5))
        else:
            _draw_card(pen, drawing, item, x, layout.card)
    _draw_key(pen, key, layout.height + 18.0)
    return pen.ax


@dataclass
class _Item:
    """A node or a stub, and where it goes."""

    node: DrawnNode | None
    parent: int
    depth: int
    node_prob: float
    label: str
    height: float
    title: tuple[str, ...] = ()
    y: float = 0.0


class _Layout:
    """Columns by depth, rows packed as tightly as neighbours allow, parents midway between their first and last child.

    Attributes
    ----------
    items : list of _Item
        Parents before children.
    column : list of float
        Left side of the nodes of each depth.
    card : float
        Width of a node.
    width, height : float
    """

    def __init__(self, drawing: Drawing) -> None:
        self.items: list[_Item] = []
        place: dict[int, int] = {}
        children: list[list[int]] = []
        for i, node in enumerate(drawing.nodes):
            place[i] = self._add(children, _item(node, place.get(node.parent, -1)))
        for i, node in enumerate(drawing.nodes):
            if node.n_hidden:
                prob = node.node_prob * node.split_prob
                stub = _Item(None, place[i], node.depth + 1, prob, more(node.n_hidden), LINE_HEIGHT)
                self._add(children, stub)
        self.card = max(_card_width(drawing, item) for item in self.items)
        self.column = self._columns()
        widths = [self.card if i.node is not None else text_width(i.label, SMALL) for i in self.items]
        self.width = max(self.column[i.depth] + w for i, w in zip(self.items, widths, strict=True))
        self.height = self._rows(children)

    def _add(self, children: list[list[int]], item: _Item) -> int:
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
        """Set the height at which each item stands; returns the height of all."""
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
    """Where siblings stand so that they and all below them keep their distance.

    Packing from the first on leaves small subtrees hanging on their elder siblings, packing from the last back on
    their younger ones; both keep all distances, hence so does the mean of the two, and that is symmetric.
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


def merged(edges: Sequence[Sequence[float]], of: Any) -> list[float]:
    """The outermost of several edges, level by level."""
    return [of(e[level] for e in edges if level < len(e)) for level in range(max(map(len, edges)))]


def _item(node: DrawnNode, parent: int) -> _Item:
    title: tuple[str, ...] = ()
    if not node.is_terminal:
        first, *rest = textwrap.wrap(node.question, TITLE_LETTERS) or [""]
        title = (first, clipped(" ".join(rest), TITLE_LETTERS)) if rest else (first,)
    height = LINE_HEIGHT * len(title) + (PAD if title else 0.0) + BAR_HEIGHT + LINE_HEIGHT + 1.5 * PAD
    return _Item(node, parent, node.depth, node.node_prob, clipped(node.answer, LABEL_LETTERS), height, title)


def _captions(drawing: Drawing, node: DrawnNode) -> tuple[str, str]:
    outcome, classes = node.outcome, drawing.classes
    right = weight_text(node, drawing.unit)
    if outcome.probs:
        best = 1 if len(classes) == 2 else max(range(len(classes)), key=outcome.probs.__getitem__)
        return f"{clipped(classes[best], 12)}: {outcome.probs[best]:.2f}", right
    if outcome.coefficients:
        weights = ", ".join(number(w, 2) for w in outcome.coefficients[:3])
        return f"w = {weights}{', …' if len(outcome.coefficients) > 3 else ''}", right
    return f"{number(outcome.mean, 3)} ± {number(outcome.std, 2)}", right


def _card_width(drawing: Drawing, item: _Item) -> float:
    if item.node is None:
        return 0.0
    left, right = _captions(drawing, item.node)
    body = text_width(left, SMALL) + (text_width(right, SMALL) + 11.0 if right else 0.0)
    head = max((text_width(line, FONT) for line in item.title), default=0.0) + 8.0 + text_width("0.00", FONT)
    return max(body, head if item.title else 0.0, 56.0) + 2 * PAD


def text_width(text: str, size: float) -> float:
    """In points, in the font that matplotlib would use."""
    font = matplotlib_module("font_manager").FontProperties(size=size)
    return float(matplotlib_module("textpath").text_to_path.get_text_width_height_descent(text, font, False)[0])


def clipped(text: str, letters: int) -> str:
    return text if len(text) <= letters else text[: letters - 1].rstrip() + "…"


@dataclass(frozen=True)
class _Pen:
    """Draws in points, y downwards, at the scale that fits the axes."""

    ax: Any
    scale: float

    @classmethod
    def on(cls, ax: Any, width: float, height: float) -> _Pen:
        """Axes whose data coordinates are points times `scale`, with a margin of `GAP` around what is drawn."""
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
        return cls(ax, scale)

    def text(self, x: float, y: float, words: str, *, size: float = FONT, color: str = INK, **options: Any) -> None:
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


def _draw_edge(pen: _Pen, layout: _Layout, item: _Item, left: float) -> None:
    parent = layout.items[item.parent]
    start, end = left + layout.column[parent.depth] + layout.card, left + layout.column[item.depth]
    trunk, color = start + 7.0, faded(LINE, item.node_prob, 0.35)
    if item.node is None:
        pen.line([start, trunk, trunk, end - 3.0], [parent.y, parent.y, item.y, item.y], color=color, linestyle=":")
        return
    pen.line([start, trunk, trunk, end], [parent.y, parent.y, item.y, item.y], color=color)
    ink = faded(INK, item.node_prob, 0.5)
    pen.text((trunk + end) / 2, item.y - 2.0, item.label, size=SMALL, color=ink, ha="center", va="bottom")


def _draw_card(pen: _Pen, drawing: Drawing, item: _Item, x: float, width: float) -> None:
    node, top, prob = item.node, item.y - item.height / 2, item.node_prob
    assert node is not None
    ink = faded(INK, prob, 0.5)
    y = top
    if item.title:
        fill, head = faded(split_colour(node.split_prob), prob), LINE_HEIGHT * len(item.title) + PAD
        pen.box(x, top, width, head, facecolor=fill)
        for i, line in enumerate(item.title):
            pen.text(x + PAD, top + PAD / 2 + LINE_HEIGHT * (i + 0.5), line, color=ink_on(fill))
        place = x + width - PAD, top + PAD / 2 + LINE_HEIGHT / 2
        pen.text(*place, f"{node.split_prob:.2f}", color=ink_on(fill), ha="right", weight="bold")
        y += head
    pen.box(x, top, width, item.height, facecolor="none", edgecolor=faded(LINE, prob, 0.35), linewidth=0.8)
    pen.text(x + width, top - 1.2, f"#{node.number}", size=6.0, color=faded(LINE, prob, 0.6), ha="right", va="bottom")
    _draw_outcome(pen, drawing, node, x + PAD, y + PAD * 0.75, width - 2 * PAD)
    left, right = _captions(drawing, node)
    y += PAD + BAR_HEIGHT + LINE_HEIGHT / 2
    pen.text(x + PAD, y, left, size=SMALL, color=ink)
    pen.text(x + width - PAD, y, right, size=SMALL, color=ink, ha="right")


def _draw_outcome(pen: _Pen, drawing: Drawing, node: DrawnNode, x: float, y: float, width: float) -> None:
    """Class probabilities side by side, or one standard deviation to both sides of the mean."""
    outcome, prob = node.outcome, node.node_prob
    for c, share in enumerate(outcome.probs):
        pen.box(x, y, width * share, BAR_HEIGHT, facecolor=faded(class_colour(c), prob))
        x += width * share
    if outcome.probs or not math.isfinite(outcome.mean):
        return
    y += BAR_HEIGHT / 2
    pen.line([x, x + width], [y, y], color=faded(LINE, 0.3 * prob, 0.1), zorder=2)
    left, right, at = (
        x + width * drawing.on_scale(value)
        for value in (outcome.mean - outcome.std, outcome.mean + outcome.std, outcome.mean)
    )
    pen.interval(left, right, at, y, faded(split_colour(0.8), prob), "-" if math.isfinite(outcome.std) else ":")


# ---- the key below the tree -----------------------------------------------------------------------------------------

_COLOUR_BAR = 76.0


@dataclass(frozen=True)
class _KeyPart:
    """Something to explain: the kind of mark or the colour of a square, the words after it, and where they go."""

    mark: str
    words: str
    x: float = 0.0
    row: int = 0

    @property
    def mark_width(self) -> float:
        return {"split": _COLOUR_BAR + 14.0, "interval": 36.0, "": 0.0}.get(self.mark, 11.0)


def _key(drawing: Drawing, width: float) -> tuple[list[_KeyPart], float]:
    """The parts of the key, in rows no wider than the tree where that can be, and the width of the widest row."""
    parts = [_KeyPart("split", "probability of a split")] if not drawing.nodes[0].is_terminal else []
    parts += [_KeyPart(class_colour(c), clipped(name, 24)) for c, name in enumerate(drawing.classes)]
    if drawing.scale is not None:
        low, high = drawing.scale
        parts.append(_KeyPart("interval", f"mean ± sd, from {number(low, 3)} to {number(high, 3)}"))
    if min(node.node_prob for node in drawing.nodes) < 0.99:
        parts.append(_KeyPart("", "pale: less likely in the tree"))
    placed: list[_KeyPart] = []
    x, row, widest = 0.0, 0, 0.0
    for part in parts:
        needed = part.mark_width + text_width(part.words, SMALL)
        if x > 0.0 and x + needed > width:
            x, row = 0.0, row + 1
        placed.append(replace(part, x=x, row=row))
        widest = max(widest, x + needed)
        x += needed + 16.0
    return placed, widest


def _key_row(row: int) -> float:
    """How far below the first row; that one has numbers below the colour bar."""
    return 12.0 * row + 7.0 if row else 0.0


def _draw_key(pen: _Pen, parts: list[_KeyPart], top: float) -> None:
    for part in parts:
        x, y = part.x, top + _key_row(part.row)
        pen.text(x + part.mark_width, y, part.words, size=SMALL)
        if part.mark == "split":
            _draw_colour_bar(pen, x + 5.0, y)
        elif part.mark == "interval":
            pen.interval(x, x + 30.0, x + 15.0, y, split_colour(0.8))
        elif part.mark:
            pen.box(x, y - 4.0, 8.0, 8.0, facecolor=part.mark)


def _draw_colour_bar(pen: _Pen, x: float, y: float) -> None:
    ax, colors = pen.ax, matplotlib_module("colors")
    (x0, x1), (y1, y0) = ax.get_xlim(), ax.get_ylim()
    place = ((x - x0) / (x1 - x0), (y1 - y - 4.0) / (y1 - y0), _COLOUR_BAR / (x1 - x0), 8.0 / (y1 - y0))
    bar = ax.inset_axes(place)
    scale = colors.ListedColormap([split_colour(i / 255) for i in range(256)], name="split probability")
    shades = matplotlib_module("cm").ScalarMappable(colors.Normalize(0.0, 1.0), scale)
    drawn = ax.figure.colorbar(shades, cax=bar, orientation="horizontal", ticks=[0.0, 0.5, 1.0])
    drawn.outline.set_linewidth(0.0)
    bar.tick_params(length=0.0, pad=1.5 * pen.scale, labelsize=6.0 * pen.scale, labelcolor=INK)
    bar.set_xticklabels(["0", "0.5", "1"])


# ---- predictions along a feature ------------------------------------------------------------------------------------


def plot_predictive(
    post: Posterior,
    feature: int | str,
    *,
    at: ArrayLike | None = None,
    codes: ArrayLike | None = None,
    coverage: float = 0.9,
    ax: Any = None,
    feature_names: Sequence[Any] | None = None,
    code_names: CodeNames | None = None,
    class_names: Sequence[Any] | None = None,
    **row_data: Any,
) -> Any:
    """Draw what is predicted along one feature, averaged over every pruned tree, all other columns held still.

    Families of classes have a line for each class, or stacked bars where the feature is only asked by multiway splits
    and has no order; all others have the mean and an interval.

    Parameters
    ----------
    post : Posterior
    feature : int or str
        Number of a column, or its name in `feature_names`.
    at : (n_features,) array_like of codes, optional
        The row to vary; zeros by default. It may be longer where the tree was not told how wide tables are.
    codes : sequence of int, optional
        Codes of the feature to draw, -1 for missing; by default all that the tree tells apart.
    coverage : float
        Probability of the interval.
    ax : matplotlib.axes.Axes, optional
    feature_names, code_names, class_names
        As in `plot_tree`. Names that are numbers are taken for the cuts between codes.
    **row_data
        What the family wants to know of a row, such as `inputs` or `exposure`: one value, for all codes.

    Returns
    -------
    matplotlib.axes.Axes
    """
    names, tree = Names(post.tree, feature_names, code_names), post.tree
    row = _row(at, tree.n_features)
    column = _column(len(row), feature, feature_names)
    asked = tree.feature == column
    is_ordered = bool((tree.threshold[asked] >= 0).any())
    along = _Along.of(post, column, names, codes, is_ordered)
    table = np.repeat(row[None], len(along.codes), axis=0)
    table[:, column] = along.codes
    extra: dict[str, Any] = repeated(row_data, len(table))
    dist = post.predictive(table, **extra)
    some = post.family.at(np.zeros(1, dtype=np.int64)).predictive(post.statistics[:1], **repeated(row_data, 1))
    ax = _new_axes(ax, (5.2, 3.2))
    if hasattr(some, "probs"):
        _draw_classes(ax, along, *grouped(dist.probs(), class_names))
    else:
        if hasattr(some, "cdf") and hasattr(dist, "interval"):
            low, high = dist.interval(coverage).T
        else:
            half = float(ndtri(0.5 + 0.5 * coverage)) * dist.std()
            low, high = dist.mean() - half, dist.mean() + half
        _draw_band(ax, along, dist.mean(), low, high, f"{100 * coverage:.3g} % interval")
    along.label(ax)
    ax.set_xlabel(names.feature(column), parse_math=False)
    return ax


@dataclass(frozen=True)
class _Along:
    """Codes of one feature and where they stand; each has a place of width 1, the missing one a little apart."""

    codes: NDArray[np.int64]
    places: NDArray[np.float64]
    is_ordered: bool
    labels: list[str]
    cuts: bool

    @classmethod
    def of(cls, post: Posterior, column: int, names: Names, codes: ArrayLike | None, is_ordered: bool) -> _Along:
        tree, known = post.tree, names.of_codes(column)
        cuts = is_ordered and known is not None and all(_is_number(name) for name in known)
        if codes is None:
            asked = tree.threshold[tree.feature == column]
            n_known = 0 if known is None else len(known) + cuts
            n_codes = tree.n_codes[column] if len(asked) else 0  # 0 where any code may come
            n_codes = n_codes or max(int(asked.max(initial=0)) + 2, n_known)
            has_missing = len(asked) and tree.has_missing[column]
            chosen = np.append(np.arange(n_codes), [-1] if has_missing else []).astype(np.int64)
        else:
            chosen = np.atleast_1d(np.asarray(codes)).astype(np.int64)
        places = np.arange(len(chosen)) + 0.5 * (chosen < 0)
        labels = ["missing" if c < 0 else _code_label(names, column, int(c), cuts) for c in chosen]
        return cls(chosen, places, is_ordered, labels, cuts)

    @property
    def runs(self) -> list[NDArray[np.int64]]:
        """Positions of neighbours that are joined by a line."""
        joined = np.flatnonzero(self.codes >= 0) if self.is_ordered else np.empty(0, dtype=np.int64)
        breaks = np.flatnonzero(np.diff(joined) != 1) + 1
        return [run for run in np.split(joined, breaks) if len(run)]

    @property
    def singles(self) -> NDArray[np.int64]:
        """Positions that stand alone."""
        return np.flatnonzero(self.codes < 0) if self.is_ordered else np.arange(len(self.codes))

    def edges(self, run: NDArray[np.int64]) -> NDArray[np.float64]:
        return np.append(self.places[run] - 0.5, self.places[run[-1]] + 0.5)

    def label(self, ax: Any) -> None:
        """Names of codes below their places; cuts between them."""
        step = -(-len(self.codes) // 12) if self.is_ordered else 1
        shown = [i for i in range(len(self.codes)) if i % step == 0 or self.codes[i] < 0]
        if self.cuts:
            shown = [i for i in shown if self.labels[i]]
        places = [self.places[i] + (0.5 if self.cuts and self.codes[i] >= 0 else 0.0) for i in shown]
        labels = [clipped(self.labels[i], 18) for i in shown]
        long = max(map(len, labels), default=0) * len(labels) > 64
        ax.set_xticks(places, labels, rotation=35 if long else 0, ha="right" if long else "center", parse_math=False)
        ax.set_xlim(self.places.min() - 0.5, self.places.max() + 0.5)


def _code_label(names: Names, column: int, code: int, cuts: bool) -> str:
    known = names.of_codes(column)
    if known is not None and code >= len(known):
        return "" if cuts else str(code)
    return names.code(column, code)


def _is_number(name: Any) -> bool:
    try:
        float(name)
    except (TypeError, ValueError):
        return False
    return True


def _column(n_features: int, feature: int | str, feature_names: Sequence[Any] | None) -> int:
    if not isinstance(feature, str):
        return whole_number("feature", feature, 0, n_features - 1)
    known = [str(name) for name in feature_names] if feature_names is not None else []
    if feature not in known:
        raise ValueError(f"feature is {feature!r}, but feature_names are {known}")
    return known.index(feature)


def _row(at: ArrayLike | None, n_features: int) -> NDArray[np.int64]:
    """One row of codes, with -1 for missing whatever type it came in."""
    row = as_codes(np.zeros((1, n_features), dtype=np.int64) if at is None else np.asarray(at)[None])[0]
    if len(row) < n_features:
        raise ValueError(f"at must have one code for each of {n_features} features, but has {len(row)}")
    missing = row == np.iinfo(row.dtype).max if row.dtype in (np.uint8, np.uint16) else row < 0
    return np.where(missing, -1, row.astype(np.int64))


def _draw_classes(ax: Any, along: _Along, probs: NDArray[np.float64], classes: Sequence[str]) -> None:
    """A line for each class, or stacked bars where there is no order."""
    marks = []
    for c in range(len(classes)):
        look = {"color": class_colour(c), "linewidth": 2.0}
        if not along.is_ordered:
            marks.append(ax.bar(along.places, probs[:, c], 0.7, bottom=probs[:, :c].sum(axis=1), color=look["color"]))
            continue
        alone, x = along.singles, along.places[along.singles]
        marks.append(ax.hlines(probs[alone, c], x - 0.3, x + 0.3, **look))
        for run in along.runs:
            ax.stairs(probs[run, c], along.edges(run), baseline=None, **look)
    ax.set_ylim((-0.02, 1.02) if along.is_ordered else (0.0, 1.0))
    ax.set_ylabel("probability")
    _legend(ax, marks, classes)


def _draw_band(ax: Any, along: _Along, mean: FloatArray, low: FloatArray, high: FloatArray, name: str) -> None:
    """The mean and an interval, in steps where there is order; what is infinite is left out."""
    mean, low, high = (np.where(np.isfinite(values), values, np.nan) for values in (mean, low, high))
    line, pale = {"color": split_colour(0.9), "linewidth": 2.0}, split_colour(0.22)
    for run in along.runs:
        ends = np.append(run, run[-1])
        ax.fill_between(along.edges(run), low[ends], high[ends], step="post", color=pale, linewidth=0.0)
        ax.stairs(mean[run], along.edges(run), baseline=None, **line)
    alone, x = along.singles, along.places[along.singles]
    ax.bar(x, (high - low)[alone], 0.6, bottom=low[alone], color=pale)
    lines = ax.hlines(mean[alone], x - 0.3, x + 0.3, **line)
    square = matplotlib_module("patches").Rectangle((0.0, 0.0), 1.0, 1.0, facecolor=pale)
    ax.set_ylabel("y")
    _legend(ax, [lines, square], ["mean", name])


def _legend(ax: Any, marks: Sequence[Any], names: Sequence[str]) -> None:
    """Above the axes, where no line can be in the way."""
    words = [f" {name}" if name.startswith("_") else name for name in names]  # matplotlib would hide it
    legend = ax.legend(
        marks, words, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, borderaxespad=0.2
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _new_axes(ax: Any, size: tuple[float, float]) -> Any:
    if ax is None:
        ax = matplotlib_module("pyplot").subplots(figsize=size, layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    return ax


# ---- split probabilities --------------------------------------------------------------------------------------------


def plot_split_probs(
    post: Posterior, *, ax: Any = None, top: int = 20, feature_names: Sequence[Any] | None = None
) -> Any:
    """Draw the posterior split probabilities of the nodes that are most likely in the tree, with the prior marked.

    Parameters
    ----------
    post : Posterior
    ax : matplotlib.axes.Axes, optional
    top : int
        How many nodes.
    feature_names : sequence of str, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    top = whole_number("top", top, 1)
    names, tree, node_prob, split_prob = Names(post.tree, feature_names), post.tree, post.node_prob, post.split_prob
    inner = np.flatnonzero(~tree.is_terminal)
    nodes = inner[np.argsort(-node_prob[inner], kind="stable")][:top]
    ax = _new_axes(ax, (5.6, 1.1 + 0.21 * max(len(nodes), 3)))
    rows = np.arange(len(nodes))
    colors = [faded(split_colour(0.85), float(p)) for p in node_prob[nodes]]
    bars = ax.barh(rows, split_prob[nodes], 0.68, color=colors)
    ticks = ax.vlines(post.split_prior[nodes], rows - 0.42, rows + 0.42, color=class_colour(0), linewidth=2.2)
    labels = [f"{clipped(names.feature(int(tree.feature[s])), 32)}  #{s}" for s in nodes]
    ax.set_yticks(rows, labels, parse_math=False)
    ax.tick_params(axis="y", length=0.0)
    beside = {
        "xycoords": ax.get_yaxis_transform(), "textcoords": "offset points", "xytext": (34.0, 0.0), "ha": "right",
        "va": "center", "fontsize": "small", "color": INK,
    }  # fmt: skip
    for row, s in enumerate(nodes):
        ax.annotate(f"{node_prob[s]:.2f}", (1.0, row), **beside)
    if len(nodes):
        ax.annotate("in tree", (1.0, -0.95), **beside)
        _legend(ax, [bars, ticks], ["posterior", "prior"])
    else:
        ax.text(0.5, 0.5, "one node, nothing to split", transform=ax.transAxes, ha="center", va="center")
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(max(len(nodes), 1) - 0.4, -0.6)
    ax.set_xlabel("probability of a split")
    return ax
