"""Where two sets of rows differ, drawn with characters, one line per node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everytree.view.describe import Drawing, DrawnNode, amount, describe, with_rows_of
from everytree.view.text import aligned, branches, node_label, outcome_cells, outcome_header

if TYPE_CHECKING:
    from everytree.posterior.comparison import Comparison

OF_THE_TREE = ("feature_names", "code_names", "max_depth", "max_nodes", "helps", "min_helps")
"""Options that say which nodes are drawn and what they are called; the others are about predictions."""


@dataclass(frozen=True)
class Compared:
    """A tree to draw: its nodes by both sets of rows together, and by each alone."""

    both: Drawing  # with the same nodes
    a: Drawing
    b: Drawing

    @classmethod
    def of(cls, found: Comparison, options: dict[str, Any]) -> Compared:
        both = describe(found.a.copy().merge(found.b), **options)
        predictions = {name: value for name, value in options.items() if name not in OF_THE_TREE}
        a, b = (with_rows_of(both, post, **predictions) for post in (found.a, found.b))
        return cls(both, a, b)

    def lines(self) -> Iterator[tuple[str, DrawnNode | None, list[str]]]:
        """For each line its label, its node, and the rows and predictions of a, then those of b, in columns."""
        rows = {node.number: [*_cells(self.a, node), *_cells(self.b, other)] for node, other in self._nodes()}
        for lead, node in branches(self.both):
            yield node_label(lead, node), node, [] if node is None else rows[node.number]

    def _nodes(self) -> Iterator[tuple[DrawnNode, DrawnNode]]:
        return zip(self.a.nodes, self.b.nodes, strict=True)

    @property
    def header(self) -> list[str]:
        """Heads of the columns of rows and predictions."""
        of_each = [*([self.both.unit] if self.both.unit else []), *outcome_header(self.a)]
        return [f"{name}: {head}" for name in "ab" for head in of_each]


def _cells(drawing: Drawing, node: DrawnNode) -> list[str]:
    return [*([] if node.weight is None else [amount(node.weight)]), *outcome_cells(drawing, node.outcome)]


def comparison_text(found: Comparison, *, max_depth: int = 3, max_nodes: int = 200, **options: Any) -> str:
    """The top of the tree, and on each line the probability of a change in the node; options as in `tree_text`."""
    drawn = Compared.of(found, {"max_depth": max_depth, "max_nodes": max_nodes, **options})
    lines = list(drawn.lines())
    cells = [[f"{found.change_prob[node.number]:.3f}", *rest] if node is not None else [] for _, node, rest in lines]
    table = aligned(["", *(label for label, _, _ in lines)], [["changed", *drawn.header], *cells])
    prior = found.prior_unchanged_prob
    return "\n".join([f"P(nothing changed) = {found.unchanged_prob:.3g}, a priori {prior:.3g}", *table])
