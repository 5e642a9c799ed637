"""A consensus of structures: at each region the split that most of them have, with its probability."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from everytree.posterior.forest import Forest
from everytree.posterior.posterior import Posterior

Split = tuple[int, int]
Member = tuple[float, Posterior, int]
"""Weight of a structure in a region, its posterior, and its node there."""


@dataclass(frozen=True)
class ConsensusNode:
    """A region of the consensus tree."""

    in_tree: float  # posterior probability that the tree has all splits above, in this order
    prob: float = 0.0  # given that, the probability of the split below; 0 at a leaf
    feature: int = -1  # the split; -1 at a leaf, threshold -1 for one into all categories
    threshold: int = -1
    children: tuple[ConsensusNode, ...] = ()

    def to_text(self, describe: Callable[[int, int, int], str] | None = None) -> str:
        """The tree drawn with characters; `describe(feature, threshold, child)` names the way to a child."""
        return "\n".join(_lines(self, describe or _describe))


def consensus_tree(forest: Forest, *, min_prob: float = 0.1) -> ConsensusNode:
    """Return the tree of the most probable splits, region by region.

    `forest`: structures with weights. `min_prob`: a region whose most probable split has a probability below this is a
    leaf.
    """
    members = [(float(weight), post, 0) for weight, post in zip(forest.weights, forest.posteriors, strict=True)]
    return _consensus(members, min_prob)


def _consensus(members: Sequence[Member], min_prob: float) -> ConsensusNode:
    total = sum(weight for weight, _, _ in members)
    shares: dict[Split, float] = {}
    for weight, post, node in members:
        if post.tree.n_children[node] > 0:
            split = int(post.tree.feature[node]), int(post.tree.threshold[node])
            shares[split] = shares.get(split, 0.0) + weight * float(post.split_prob[node])
    if not shares or total <= 0.0:
        return ConsensusNode(total)
    best = max(shares, key=lambda split: (shares[split], split))
    prob = shares[best] / total
    if prob < min_prob:
        return ConsensusNode(total)
    same = [
        (weight * float(post.split_prob[node]), post, int(post.tree.first_child[node]))
        for weight, post, node in members
        if post.tree.n_children[node] > 0 and (post.tree.feature[node], post.tree.threshold[node]) == best
    ]
    _, first_post, first_child = same[0]
    n_children = int(first_post.tree.n_children[first_post.tree.parent[first_child]])
    children = tuple(
        _consensus([(weight, post, first + c) for weight, post, first in same], min_prob) for c in range(n_children)
    )
    return ConsensusNode(total, prob, best[0], best[1], children)


def _describe(feature: int, threshold: int, child: int) -> str:
    if threshold < 0:
        return f"column {feature} = {child}"
    return f"column {feature} {'<=' if child == 0 else '>'} {threshold}"


def _lines(node: ConsensusNode, describe: Callable[[int, int, int], str]) -> list[str]:
    lines = []
    for number, child in enumerate(node.children):
        is_last = number == len(node.children) - 1
        lines.append(f"{'└─' if is_last else '├─'} {describe(node.feature, node.threshold, number)}  ({node.prob:.0%})")
        lines += [f"{'   ' if is_last else '│  '}{line}" for line in _lines(child, describe)]
    return lines
