"""Trees for readers without scripts: a list that folds, and the most probable trees as text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from html import escape

from everytree.posterior.posterior import Posterior
from everytree.report.subject import Subject
from everytree.report.words import Words
from everytree.view.describe import Drawing, DrawnNode, describe, more, outcome_text, walk, weight_text

MAX_LISTED = 120
"""Maximum number of nodes in the folding list; the rest is counted."""

OPEN_DEPTH = 2
"""Depth to which the list is unfolded at first."""

MAX_TREES = 5

MAX_DESCRIBED = 20_000
"""Maximum number of nodes of the most probable trees."""


def folding_tree(subject: Subject) -> str:
    """The most probable part of the tree with the largest weight, as nested lists that fold without scripts.

    Splits that are known not to help other rows are left out.
    """
    post, options = subject.posts[subject.first], subject.words.options()
    drawing = describe(post, **options, max_depth=32, max_nodes=MAX_LISTED, helps=subject.helpful)
    left_out = f"<p>{escape(drawing.left_out)} in <code>model.to_text</code>.</p>" if drawing.n_left_out else ""
    return f'<div class="folding">{"".join(_items(drawing))}{left_out}</div>'


def _items(drawing: Drawing) -> Iterator[str]:
    """Yield nodes that can be folded, and leaves, which cannot."""
    for step, node in walk(drawing):
        is_folded = bool(node.children or node.n_hidden)
        if step == "hidden":
            yield f'<div class="leaf">{more(node.n_hidden)}</div>'
        elif step == "close":
            yield "</details>" if is_folded else ""
        elif is_folded:
            yield f"<details{' open' if node.depth < OPEN_DEPTH else ''}><summary>{_line(drawing, node)}</summary>"
        else:
            yield f'<div class="leaf">{_line(drawing, node)}</div>'


def _line(drawing: Drawing, node: DrawnNode) -> str:
    """The condition that leads here, the split, and its probability."""
    answer = f"<span class='answer'>{escape(node.answer)}</span> " if node.answer else ""
    helps = "" if math.isnan(node.helps) else f"helps other rows {node.helps:.3f} · "
    question = "leaf" if node.is_terminal else f"<b>{escape(node.question)}?</b> {helps}split {node.split_prob:.3f}"
    known = [question, escape(outcome_text(node.outcome, drawing.classes))]
    if node.weight is not None:
        known.append(escape(weight_text(node, drawing.unit)))
    if node.node_prob < 0.9995:
        known.append(f"in tree {node.node_prob:.3f}")
    return answer + " · ".join(known)


def probable_trees(subject: Subject) -> Iterator[tuple[float, int, str]]:
    """Probability, number of leaves and text of each of the most probable trees, best first."""
    if subject.parts.exact is not None:
        for exact in subject.model.posterior_.top_trees(MAX_TREES):
            drawing = _described(subject.model.model_.in_tree(exact.as_metatree()), subject.words)
            leaves = {node.number for node in drawing.nodes if node.is_terminal}
            yield math.exp(exact.log_prob), exact.n_leaves, tree_text(drawing, leaves)
        return
    post = subject.posts[subject.first]
    drawing = _described(post, subject.words)
    for tree, log_prob in post.top_trees(MAX_TREES):
        yield math.exp(log_prob), tree.n_leaves, tree_text(drawing, set(tree.leaves.tolist()))


def _described(post: Posterior, words: Words) -> Drawing:
    return describe(post, **words.options(), max_depth=10_000, max_nodes=MAX_DESCRIBED)


def tree_text(drawing: Drawing, leaves: set[int]) -> str:
    """One pruned tree, one line per node, with the predictions of its leaves."""
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
