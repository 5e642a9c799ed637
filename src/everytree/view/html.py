"""A posterior as a fragment of HTML, for notebooks: no scripts, no style sheets, no downloads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from everytree.view.colours import LIGHT, class_colour, ink_on
from everytree.view.describe import (
    Drawing,
    DrawnNode,
    Outcome,
    describe,
    mean_words,
    more,
    number,
    outcome_text,
    walk,
    weight_text,
)

if TYPE_CHECKING:
    from everytree.posterior.posterior import Posterior

_LIST = "list-style:none;margin:0;padding-left:1.4em;border-left:1px solid #8a8f9855"
_BADGE = "display:inline-block;min-width:2.6em;padding:0 .3em;border-radius:3px;text-align:center"
_BAR = "display:inline-block;width:5em;height:.7em;border-radius:2px"
_TRACK, _BAND, _MEAN = "#8a8f9833", "#8395b2", "#1d3f7d"
_CELL = "text-align:right;padding:.1em .8em"


def tree_html(post: Posterior, *, max_depth: int = 2, max_nodes: int = 30, **options: Any) -> str:
    """Summary of a posterior and the top of its meta-tree, as a fragment of HTML.

    Parameters
    ----------
    post, max_depth, max_nodes, **options
        As in `tree_text`.

    Examples
    --------
    >>> import everytree as et
    >>> post = et.Posterior(et.MetaTree.complete([0]), et.Bernoulli())
    >>> tree_html(post, feature_names=["<a & b>"]).count("&lt;a &amp; b&gt;")
    1
    """
    tree = tree_list_html(post, max_depth=max_depth, max_nodes=max_nodes, **options)
    return "".join(["<div>", *_header(post), tree, "</div>"])


def tree_list_html(post: Posterior, *, max_depth: int = 2, max_nodes: int = 30, **options: Any) -> str:
    """The top of a posterior's meta-tree alone; options as in `tree_html`."""
    drawing = describe(post, max_depth=max_depth, max_nodes=max_nodes, **options)
    return "".join([*_tree(drawing), *_key(drawing)])


def _header(post: Posterior) -> Iterator[str]:
    """One row of numbers about the whole posterior."""
    facts = {
        "leaves": type(post.family).__name__,
        "rows": f"{post.n_rows:,}",
        "log evidence": number(post.log_evidence, 6),
        "nodes": f"{post.tree.n_nodes:,}",
        "depth": str(int(post.tree.depth[-1])),
        "expected leaves": number(post.expected_leaves()),
        "entropy of the tree": number(post.entropy()),
    }
    yield f"<table><caption><b>{escape(type(post).__name__)}</b></caption><tr>"
    yield from (f'<th style="{_CELL}">{escape(name)}</th>' for name in facts)
    yield "</tr><tr>"
    yield from (f'<td style="{_CELL}">{escape(value)}</td>' for value in facts.values())
    yield "</tr></table>"


def _tree(drawing: Drawing) -> Iterator[str]:
    """Nested lists."""
    yield f'<ul style="{_LIST};border:0;padding:0">'
    for step, node in walk(drawing):
        has_list = bool(node.children or node.n_hidden)
        if step == "open":
            yield f"<li>{_line(drawing, node)}" + (f'<ul style="{_LIST}">' if has_list else "")
        elif step == "hidden":
            yield f"<li>{more(node.n_hidden)}</li>"
        else:
            yield "</ul></li>" if has_list else "</li>"
    yield "</ul>"


def _line(drawing: Drawing, node: DrawnNode) -> str:
    parts = [escape(node.answer)] if node.answer else []
    if node.is_terminal:
        parts.append("leaf")
    else:
        fill = LIGHT.split(node.shown_prob)
        badge = f'<span style="{_BADGE};background:{fill};color:{ink_on(fill)}">{node.shown_prob:.3f}</span>'
        parts.append(f"<b>{escape(node.question)}?</b> {badge}")
    parts.append(_bar(drawing, node.outcome) + escape(outcome_text(node.outcome, drawing.classes)))
    if node.weight is not None:
        parts.append(escape(weight_text(node, drawing.unit)))
    if node.node_prob < 0.9995:
        parts.append(f"in tree {node.node_prob:.3f}")
    return f'<span style="opacity:{0.45 + 0.55 * node.node_prob:.2f}">' + " &nbsp; ".join(parts) + "</span>"


def _bar(drawing: Drawing, outcome: Outcome) -> str:
    """Class probabilities side by side, or one standard deviation to both sides of the mean."""
    if outcome.probs:
        ends = list(accumulate(outcome.probs))
        stops = [
            f"{class_colour(c)} {100 * (end - prob):.1f}% {100 * end:.1f}%"
            for c, (end, prob) in enumerate(zip(ends, outcome.probs, strict=True))
        ]
    elif math.isfinite(outcome.mean):
        left, mean, right = (
            100 * drawing.on_scale(value)
            for value in (outcome.mean - outcome.std, outcome.mean, outcome.mean + outcome.std)
        )
        dot = max(mean - 2.0, 0.0), min(mean + 2.0, 100.0)
        left, right = min(left, dot[0]), max(right, dot[1])
        stops = [
            f"{_TRACK} 0% {left:.1f}%",
            f"{_BAND} {left:.1f}% {dot[0]:.1f}%",
            f"{_MEAN} {dot[0]:.1f}% {dot[1]:.1f}%",
            f"{_BAND} {dot[1]:.1f}% {right:.1f}%",
            f"{_TRACK} {right:.1f}% 100%",
        ]
    else:
        return ""
    return f'<span style="{_BAR};background:linear-gradient(90deg,{",".join(stops)})"></span> '


def _key(drawing: Drawing) -> Iterator[str]:
    """Legend of the colours and numbers."""
    pale, dark = LIGHT.split(0.0), LIGHT.split(1.0)
    yield '<div style="font-size:85%;margin-top:.4em">'
    yield f'<span style="{_BADGE};background:{pale};color:{ink_on(pale)}">0</span> '
    yield f'<span style="{_BADGE};background:{dark};color:{ink_on(dark)}">1</span> {drawing.shown_words}'
    if drawing.scale is not None:
        low, high = drawing.scale
        yield f" &nbsp; bars: {mean_words(drawing.nodes[0].outcome)}, from {number(low, 3)} to {number(high, 3)}"
    for c, name in enumerate(drawing.classes):
        square = f'<span style="display:inline-block;width:.8em;height:.8em;background:{class_colour(c)}"></span>'
        yield f" &nbsp; {square} {escape(name)}"
    yield "</div>"
    if drawing.n_left_out:
        yield f'<div style="font-size:85%">{escape(drawing.left_out)}</div>'
