"""Trees for readers without scripts: a list that folds, and the most probable trees as text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape
from typing import Any

from everytree.drawing import Drawing, DrawnNode, describe, more, outcome_text, weight_text
from everytree.estimators.base import MetaEstimator
from everytree.families import LinearRegression
from everytree.posterior import Posterior
from everytree.report.words import Words, heaviest, is_exact, posteriors

MOST_LISTED = 120
"""Nodes of the list that folds; the rest is counted."""

OPEN_DEPTH = 2
"""How far down the list is unfolded at first."""

MOST_TREES = 5

MOST_DESCRIBED = 20_000
"""Nodes that the most probable trees may have."""


def folding_tree(model: MetaEstimator, words: Words) -> str:
    """The most probable part of the tree with the largest weight, as nested lists that fold without scripts."""
    posts, _ = posteriors(model)
    drawing = describe(posts[heaviest(model)], **words.options(), max_depth=32, max_nodes=MOST_LISTED)
    return f'<div class="folding">{"".join(_items(drawing))}</div>'


def _items(drawing: Drawing) -> Iterator[str]:
    """Whatever is opened waits on a stack to be closed."""
    waiting: list[int | str] = [0]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
            continue
        node = drawing.nodes[item]
        line = _line(drawing, node)
        if not node.children and not node.n_hidden:
            yield f'<div class="leaf">{line}</div>'
            continue
        yield f"<details{' open' if node.depth < OPEN_DEPTH else ''}><summary>{line}</summary>"
        waiting.append("</details>")
        if node.n_hidden:
            waiting.append(f'<div class="leaf">{more(node.n_hidden)}</div>')
        waiting += reversed(node.children)


def _line(drawing: Drawing, node: DrawnNode) -> str:
    """The answer that leads here, the question, and what is known about it."""
    answer = f"<span class='answer'>{escape(node.answer)}</span> " if node.answer else ""
    question = "leaf" if node.is_terminal else f"<b>{escape(node.question)}?</b> split {node.split_prob:.3f}"
    known = [question, escape(outcome_text(node.outcome, drawing.classes))]
    if node.weight is not None:
        known.append(escape(weight_text(node, drawing.unit)))
    if node.node_prob < 0.9995:
        known.append(f"in tree {node.node_prob:.3f}")
    return answer + " · ".join(known)


def probable_trees(model: MetaEstimator, words: Words) -> Iterator[tuple[float, int, str]]:
    """Probability, number of leaves and text of each of the most probable trees, best first."""
    if is_exact(model):
        for exact in model.forest_.posterior.top_trees(MOST_TREES):
            post = _counted(model, exact.as_metatree())
            drawing = _described(post, words)
            yield (
                math.exp(exact.log_prob),
                exact.n_leaves,
                tree_text(drawing, {n.number for n in drawing.nodes if n.is_terminal}),
            )
        return
    post = posteriors(model)[0][heaviest(model)]
    drawing = _described(post, words)
    for tree, log_prob in post.top_trees(MOST_TREES):
        yield math.exp(log_prob), tree.n_leaves, tree_text(drawing, set(tree.leaves.tolist()))


def _counted(model: Any, tree: Any) -> Posterior:
    """The rows of an exact model in one tree."""
    rows = model._rows
    post = Posterior(tree, model.forest_.posterior.family, model.split_prior)
    return post.update(model.forest_.read(rows.codes), rows.y, rows.weight, **rows.row_data)


def _described(post: Posterior, words: Words) -> Drawing:
    return describe(post, **words.options(), max_depth=10_000, max_nodes=MOST_DESCRIBED)


def tree_text(drawing: Drawing, leaves: set[int]) -> str:
    """One pruned tree, a line a node, what its leaves predict beside them."""
    lines: list[str] = []
    waiting: list[tuple[int, str, str]] = [(0, "", "")]
    while waiting:
        place, lead, tail = waiting.pop()
        node = drawing.nodes[place]
        answer = f"{node.answer}  " if node.answer else ""
        if node.number in leaves or not node.children:
            rows = weight_text(node, drawing.unit)
            text = outcome_text(node.outcome, drawing.classes)
            lines.append(f"{lead}{answer}→ {text}" + (f"  ({rows})" if rows else ""))
            continue
        lines.append(f"{lead}{answer}{node.question}?")
        last = node.children[-1]
        waiting += [
            (child, tail + ("└─ " if child == last else "├─ "), tail + ("   " if child == last else "│  "))
            for child in reversed(node.children)
        ]
    return "\n".join(lines)


def has_lines(model: MetaEstimator) -> bool:
    """Whether leaves are lines through the columns, of which one row cannot be shown without its inputs."""
    family = model.forest_.posterior.family if is_exact(model) else model.forest_.family
    return isinstance(family, LinearRegression)
