"""A meta-tree drawn with characters, one line per node."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from typing import Any

from everytree.base.errors import ArgumentError
from everytree.families.categorical import Bernoulli
from everytree.posterior.posterior import Posterior
from everytree.predictive.restricted import time_text
from everytree.trees.pruned import PrunedTree
from everytree.view.describe import (
    Drawing,
    DrawnNode,
    Outcome,
    amount,
    describe,
    mean_words,
    more,
    number,
    outcome_text,
    weight_text,
)

MAX_DEPTH, MAX_NODES = 10_000, 20_000
"""Limits of a pruned tree that is written out whole."""

MAX_COLUMNS = 4
"""Maximum number of classes with a column each; if there are more, the most probable class is named."""


def tree_text(post: Posterior, *, max_depth: int = 3, max_nodes: int = 200, **options: Any) -> str:
    """The top of a posterior's meta-tree, one line per node.

    Each line has the condition that leads to the node and the feature it splits on, then `split`, the posterior
    probability that it is split given that it is in the tree, `in tree`, the probability that it is in the tree, the
    weight of its rows, and its prediction if it is a leaf.

    Parameters
    ----------
    post : Posterior
    feature_names : sequence of str, optional
    code_names : sequence or mapping of sequences of str, optional
        For each feature the name of each code; in a binary split at t, entry t is the largest value to the left.
    class_names : sequence of str, optional
    max_depth, max_nodes : int
        Nodes below, and those least likely to be in the tree, are only counted.
    helps : (n_nodes,) array, optional
        Probability that each split helps rows on which it was not chosen, a column of its own: `helps`.
    min_helps : float
        Nodes whose splits help with a smaller probability are drawn as leaves; a last line counts the splits that are
        left out.
    last_time : float, optional
        Of times, the longest that was seen: medians beyond it and means without a limit are not shown.
    baseline : Baseline, optional
        Of survival curves: the hazard of all rows, by which leaves are shown as times.
    **row_data
        Row data of the family, such as `inputs`: one value, for all nodes.

    Examples
    --------
    >>> import everytree as et
    >>> post = et.Posterior(et.MetaTree.complete([0, 1, 1]), et.Bernoulli(1, 1))
    >>> print(tree_text(post.update([[0, 0], [0, 1], [1, 0], [1, 1]] * 3, [0, 0, 1, 1] * 3), max_depth=1))
                     split  in tree  rows  P(y = 1)
    x0?              0.992    1.000    12     0.500
    ├─ = 0  x1?      0.304    0.992     6     0.125
    │  └─ … 2 nodes
    └─ = 1  x1?      0.304    0.992     6     0.875
       └─ … 2 nodes
    """
    drawing = describe(post, max_depth=max_depth, max_nodes=max_nodes, **options)
    labels = [(node_label(lead, node), node) for lead, node in branches(drawing)]
    header = [
        *(["helps"] if drawing.has_helps else []),
        "split",
        "in tree",
        *([drawing.unit] if drawing.unit else []),
        *outcome_header(drawing),
    ]
    table = [header, *(_cells(drawing, node) if node is not None else [] for _, node in labels)]
    lines = aligned(["", *(label for label, _ in labels)], table)
    return "\n".join([*lines, drawing.left_out] if drawing.n_left_out else lines)


def aligned(labels: Sequence[str], table: Sequence[Sequence[str]]) -> list[str]:
    """Lines with a label at the left and the cells of a table in columns; a row without cells has the label alone."""
    widths = [max(len(row[i]) for row in table if row) for i in range(len(table[0]))]
    margin = max(map(len, labels))
    return [
        (f"{label:<{margin}}  " + "  ".join(f"{cell:>{n}}" for cell, n in zip(row, widths, strict=False))).rstrip()
        for label, row in zip(labels, table, strict=True)
    ]


def pruned_text(tree: PrunedTree, post: Posterior | None = None, **options: Any) -> str:
    """One pruned tree, one line per node; with a posterior of its meta-tree also what the leaves predict."""
    if post is not None and post.tree != tree.tree:
        raise ArgumentError("post", "is of another meta-tree than this pruned tree")
    shown = Posterior(tree.tree, Bernoulli()) if post is None else post
    drawing = describe(shown, **{"max_depth": MAX_DEPTH, "max_nodes": MAX_NODES, **options})
    return leaves_text(drawing, set(tree.leaves.tolist()), has_outcomes=post is not None)


def leaves_text(drawing: Drawing, leaves: Container[int], *, has_outcomes: bool = True) -> str:
    """The part of a drawing that is cut off at some nodes, with the predictions of these leaves."""
    lines: list[str] = []
    for lead, node in branches(drawing, leaves):
        if node is None or (node.children and node.number not in leaves):
            lines.append(lead if node is None else f"{lead}{node.question}?")
            continue
        rows, text = weight_text(node, drawing.unit), outcome_text(node.outcome, drawing.classes)
        said = f": {text}" + (f"  ({rows})" if rows else "") if has_outcomes else ""
        lines.append(f"{lead}leaf{said}")
    return "\n".join(lines)


def branches(drawing: Drawing, leaves: Container[int] = ()) -> Iterator[tuple[str, DrawnNode | None]]:
    """What stands before the words of each node, and the node; none where others are only counted.

    Nothing is below `leaves`, which are numbers of nodes.
    """
    tails = [""] * len(drawing.nodes)
    waiting: list[tuple[int, bool]] = [(0, True)]
    while waiting:
        place, is_node = waiting.pop()
        node = drawing.nodes[place]
        if not is_node:
            yield f"{tails[place]}└─ {more(node.n_hidden)}", None
            continue
        lead = ""
        if node.parent >= 0:
            above = drawing.nodes[node.parent]
            is_last = place == above.children[-1] and not above.n_hidden
            lead = tails[node.parent] + ("└─ " if is_last else "├─ ") + node.answer + "  "
            tails[place] = tails[node.parent] + ("   " if is_last else "│  ")
        yield lead, node
        if node.number not in leaves:
            waiting += [(place, False)] if node.n_hidden else []
            waiting += [(child, True) for child in reversed(node.children)]


def node_label(lead: str, node: DrawnNode | None) -> str:
    """The left side of a line."""
    return lead if node is None else lead + ("leaf" if node.is_terminal else f"{node.question}?")


def outcome_header(drawing: Drawing) -> list[str]:
    """Heads of the columns of `outcome_cells`."""
    classes = drawing.classes
    if drawing.nodes[0].outcome.coefficients:
        return ["coefficients"]
    if not classes:
        outcome = drawing.nodes[0].outcome
        return ["mean", "std"] if math.isnan(outcome.last_time) else ["median", mean_words(outcome)]
    if len(classes) > MAX_COLUMNS:
        return ["likeliest", "P"]
    return [f"P({name})" for name in (classes[1:] if len(classes) == 2 else classes)]


def _cells(drawing: Drawing, node: DrawnNode) -> list[str]:
    cells = ["" if node.is_terminal else f"{node.split_prob:.3f}", f"{node.node_prob:.3f}"]
    if drawing.has_helps:
        cells = ["" if node.is_terminal else f"{node.helps:.3f}", *cells]
    return [*cells, *([] if node.weight is None else [amount(node.weight)]), *outcome_cells(drawing, node.outcome)]


def outcome_cells(drawing: Drawing, outcome: Outcome) -> list[str]:
    """The prediction of a leaf, in columns."""
    classes = drawing.classes
    if outcome.coefficients:
        return [", ".join(number(w, 3) for w in outcome.coefficients)]
    if not classes and not math.isnan(outcome.last_time):
        return [time_text(outcome.median, outcome.last_time), number(outcome.mean)]
    if not classes:
        return [number(outcome.mean), number(outcome.std, 3)]
    if len(classes) > MAX_COLUMNS:
        best = max(range(len(classes)), key=outcome.probs.__getitem__)
        return [classes[best], f"{outcome.probs[best]:.3f}"]
    return [f"{p:.3f}" for p in (outcome.probs[1:] if len(classes) == 2 else outcome.probs)]
