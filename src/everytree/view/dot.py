"""A meta-tree as Graphviz source: `dot -Tsvg` draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everytree.view.colours import LIGHT, ink_on
from everytree.view.describe import (
    Drawing,
    DrawnNode,
    describe,
    more,
    outcome_text,
    weight_text,
)

if TYPE_CHECKING:
    from everytree.posterior.posterior import Posterior


def tree_dot(post: Posterior, *, max_depth: int = 4, max_nodes: int = 60, **options: Any) -> str:
    """The top of a posterior's meta-tree as Graphviz source.

    Nodes have the colours of `plot_tree`: the darker the likelier to be split, the paler the less likely to be in the
    tree at all.

    Parameters
    ----------
    post, max_depth, max_nodes, **options
        As in `tree_text`.

    Examples
    --------
    >>> import everytree as et
    >>> post = et.Posterior(et.MetaTree.complete([0]), et.Bernoulli())
    >>> print(tree_dot(post).splitlines()[0])
    digraph everytree {
    """
    drawing = describe(post, max_depth=max_depth, max_nodes=max_nodes, **options)
    lines = [
        "digraph everytree {",
        "  graph [rankdir=LR, nodesep=0.15, ranksep=0.5];",
        f'  node [shape=box, style="filled,rounded", fontname="Helvetica", fontsize=10, color="{LIGHT.line}"];',
        f'  edge [fontname="Helvetica", fontsize=9, color="{LIGHT.line}", arrowhead=none];',
    ]
    if drawing.n_left_out:
        lines.append(f'  label="{_escaped(drawing.left_out)}"; labelloc=b; fontname="Helvetica"; fontsize=10;')
    for node in drawing.nodes:
        lines.append(f"  {_name(node)} [{_attributes(**_look(drawing, node))}];")
        if node.parent >= 0:
            edge = _attributes(label=_escaped(node.answer), fontcolor=LIGHT.faded(LIGHT.ink, node.node_prob, 0.5))
            lines.append(f"  {_name(drawing.nodes[node.parent])} -> {_name(node)} [{edge}];")
    for node in drawing.nodes:
        if node.n_hidden:
            rest = _attributes(
                label=_escaped(more(node.n_hidden)), shape="plaintext", style="solid", fontcolor=LIGHT.ink
            )
            lines += [f"  more{node.number} [{rest}];", f"  {_name(node)} -> more{node.number} [style=dashed];"]
    return "\n".join([*lines, "}"])


def _name(node: DrawnNode) -> str:
    return f"node{node.number}"


def _look(drawing: Drawing, node: DrawnNode) -> dict[str, str]:
    fill = "#ffffff" if node.is_terminal else LIGHT.faded(LIGHT.split(node.shown_prob), node.node_prob)
    words = [outcome_text(node.outcome, drawing.classes), weight_text(node, drawing.unit)]
    if not node.is_terminal:
        helps = [f"helps {node.helps:.3f}"] if drawing.has_helps else []
        words = [f"{node.question}?", *helps, f"split {node.split_prob:.3f}", *words]
    if node.node_prob < 0.9995:
        words.append(f"in tree {node.node_prob:.3f}")
    ink = LIGHT.faded(LIGHT.ink, node.node_prob, 0.5) if node.is_terminal else ink_on(fill)
    return {"label": "\\n".join(_escaped(word) for word in words if word), "fillcolor": fill, "fontcolor": ink}


def _attributes(**values: str) -> str:
    """Join attributes as Graphviz source; values are escaped already."""
    return ", ".join(f'{name}="{value}"' for name, value in values.items())


def _escaped(words: str) -> str:
    """Escape backslashes and ampersands, which Graphviz would interpret in quoted text too."""
    return words.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
