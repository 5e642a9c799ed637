"""A meta-tree drawn with characters, the probability of each split written on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from everytree.posterior import Posterior


def tree_text(
    post: Posterior,
    *,
    feature_names: Sequence[str] | None = None,
    code_names: Sequence[Sequence[str]] | None = None,
    max_depth: int = 3,
) -> str:
    """The top of a posterior's meta-tree, a line a node.

    Each line has the answer that leads to the node, what it asks, the posterior probability that it is split, and the
    mean of y among its rows.

    Parameters
    ----------
    post : Posterior
    feature_names : sequence of str, optional
    code_names : sequence of sequence of str, optional
        For each feature what each code stands for; in a binary split at t, entry t is the largest value to the left.
    max_depth : int
        Nodes below are only counted.
    """
    return "\n".join(_lines(post, feature_names, code_names, max_depth))


def _lines(
    post: Posterior,
    feature_names: Sequence[str] | None,
    code_names: Sequence[Sequence[str]] | None,
    max_depth: int,
) -> Iterator[str]:
    tree, split_prob = post.tree, post.split_prob
    means = post.family.predictive(post.statistics).mean()

    def name(feature: int) -> str:
        return feature_names[feature] if feature_names is not None else f"x{feature}"

    def value(feature: int, code: int) -> str:
        return code_names[feature][code] if code_names is not None else str(code)

    def answer(node: int, child: int) -> str:
        feature, threshold = int(tree.feature[node]), int(tree.threshold[node])
        if child == tree.missing_child[node] and child == tree.n_children[node] - 1 and (threshold < 0 or child == 2):
            return "missing"
        if threshold < 0:
            return f"= {value(feature, child)}"
        sign = "<=" if child == 0 else ">"
        return f"{sign} {value(feature, threshold)}"

    def below(node: int) -> int:
        count, level = 0, np.array([node])
        while len(level):
            inner = level[~tree.is_terminal[level]]
            level = np.concatenate(
                [np.arange(tree.first_child[s], tree.first_child[s] + tree.n_children[s]) for s in inner]
                or [np.empty(0, dtype=np.int64)]
            )
            count += len(level)
        return count

    def draw(node: int, lead: str, tail: str, via: str) -> Iterator[str]:
        head = f"{via}  " if via else ""
        if tree.is_terminal[node]:
            yield f"{lead}{head}leaf  (mean {means[node]:.3f})"
            return
        yield f"{lead}{head}{name(int(tree.feature[node]))}?  split {split_prob[node]:.3f}  (mean {means[node]:.3f})"
        if tree.depth[node] == max_depth:
            yield f"{tail}└─ … {below(node)} nodes below"
            return
        last = int(tree.n_children[node]) - 1
        for child in range(last + 1):
            branch, space = ("└─ ", "   ") if child == last else ("├─ ", "│  ")
            yield from draw(int(tree.first_child[node]) + child, tail + branch, tail + space, answer(node, child))

    yield from draw(0, "", "", "")
