"""Split probabilities as bars."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from everytree.base.checks import whole_number
from everytree.view.colours import class_colour
from everytree.view.describe import Names

if TYPE_CHECKING:
    from everytree.posterior.posterior import Posterior
from everytree.view.plot.axes import legend, new_axes
from everytree.view.plot.layout import clipped
from everytree.view.plot.style import palette_of


def plot_split_probs(
    post: Posterior, *, ax: Any = None, top: int = 20, feature_names: Sequence[Any] | None = None
) -> Any:
    """Draw the posterior split probabilities of the nodes that are most likely in the tree, with the prior marked.

    Parameters
    ----------
    post : Posterior
    ax : matplotlib.axes.Axes, optional
    top : int
        Number of nodes.
    feature_names : sequence of str, optional

    Returns
    -------
    matplotlib.axes.Axes
    """
    top = whole_number("top", top, 1)
    names, tree, node_prob, split_prob = Names(post.tree, feature_names), post.tree, post.node_prob, post.split_prob
    inner = np.flatnonzero(~tree.is_terminal)
    nodes = inner[np.argsort(-node_prob[inner], kind="stable")][:top]
    ax = new_axes(ax, (5.6, 1.1 + 0.21 * max(len(nodes), 3)))
    rows, colours = np.arange(len(nodes)), palette_of(ax)
    colors = [colours.faded(colours.split(0.85), float(p)) for p in node_prob[nodes]]
    bars = ax.barh(rows, split_prob[nodes], 0.68, color=colors)
    ticks = ax.vlines(post.split_prior[nodes], rows - 0.42, rows + 0.42, color=class_colour(0), linewidth=2.2)
    labels = [f"{clipped(names.feature(int(tree.feature[s])), 32)}  #{s}" for s in nodes]
    ax.set_yticks(rows, labels, parse_math=False)
    ax.tick_params(axis="y", length=0.0)
    ax.grid(visible=False, axis="y")
    beside = {
        "xycoords": ax.get_yaxis_transform(), "textcoords": "offset points", "xytext": (34.0, 0.0), "ha": "right",
        "va": "center", "fontsize": "small", "color": colours.ink,
    }  # fmt: skip
    for row, s in enumerate(nodes):
        ax.annotate(f"{node_prob[s]:.2f}", (1.0, row), **beside)
    if len(nodes):
        ax.annotate("in tree", (1.0, -0.95), **beside)
        legend(ax, [bars, ticks], ["posterior", "prior"])
    else:
        ax.text(0.5, 0.5, "one node, nothing to split", transform=ax.transAxes, ha="center", va="center")
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(max(len(nodes), 1) - 0.4, -0.6)
    ax.set_xlabel("probability of a split")
    return ax
