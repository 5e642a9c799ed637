"""Trees for readers without scripts: a list, and the most probable trees as text."""

from __future__ import annotations

import math
from collections.abc import Iterator

from everytree.posterior.posterior import Posterior
from everytree.report.subject import Subject, Words
from everytree.view.describe import Drawing, describe
from everytree.view.html import tree_list_html
from everytree.view.text import MAX_DEPTH, MAX_NODES, leaves_text

MAX_LISTED = 120
"""Maximum number of nodes in the list; the rest is counted."""

MAX_TREES = 5


def listed_tree(subject: Subject) -> str:
    """The most probable part of the tree with the largest weight, without splits that do not help other rows."""
    post, options = subject.posts[subject.first], subject.words.options()
    return tree_list_html(post, **options, max_depth=32, max_nodes=MAX_LISTED, helps=subject.helpful)


def probable_trees(subject: Subject) -> Iterator[tuple[float, int, str]]:
    """Probability, number of leaves and text of each of the most probable trees, best first."""
    if subject.parts.exact is not None:
        for exact in subject.model.posterior_.top_trees(MAX_TREES):
            drawing = _described(subject.model.model_.in_tree(exact.as_metatree()), subject.words)
            leaves = {node.number for node in drawing.nodes if node.is_terminal}
            yield math.exp(exact.log_prob), exact.n_leaves, leaves_text(drawing, leaves)
        return
    post = subject.posts[subject.first]
    drawing = _described(post, subject.words)
    for tree, log_prob in post.top_trees(MAX_TREES):
        yield math.exp(log_prob), tree.n_leaves, leaves_text(drawing, set(tree.leaves.tolist()))


def _described(post: Posterior, words: Words) -> Drawing:
    return describe(post, **words.options(), max_depth=MAX_DEPTH, max_nodes=MAX_NODES)
