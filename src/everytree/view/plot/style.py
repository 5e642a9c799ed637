"""The report's colours for matplotlib, and which of them suit given axes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from everytree.view.colours import DARK, LIGHT, Palette, is_dark
from everytree.view.plot.axes import matplotlib_module


def plot_style(*, dark: bool = False) -> dict[str, Any]:
    """Settings of matplotlib with the colours of the report.

    For `matplotlib.pyplot.style.use` or `rc_context`. Pictures of this library are drawn in colours that suit the axes,
    so that they can be read in every style; with these settings, other curves on the same page match them.

    Parameters
    ----------
    dark : bool
        Light lines on a dark page.

    Returns
    -------
    dict

    Examples
    --------
    >>> from everytree.view import plot_style
    >>> plot_style(dark=True)["figure.facecolor"]
    '#1c1f26'
    """
    colours = DARK if dark else LIGHT
    return {
        "figure.facecolor": colours.paper,
        "axes.facecolor": colours.paper,
        "savefig.facecolor": "auto",
        "text.color": colours.ink,
        "axes.labelcolor": colours.ink,
        "axes.titlecolor": colours.ink,
        "axes.edgecolor": colours.line,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlelocation": "left",
        "axes.titleweight": "bold",
        "axes.titlesize": "medium",
        "axes.grid": True,
        "axes.axisbelow": True,
        "axes.prop_cycle": matplotlib_module("rcsetup").cycler(color=list(colours.series)),
        "grid.color": colours.grid,
        "grid.linewidth": 0.8,
        "xtick.color": colours.line,
        "ytick.color": colours.line,
        "xtick.labelcolor": colours.soft,
        "ytick.labelcolor": colours.soft,
        "legend.frameon": False,
        "lines.linewidth": 2.0,
    }


def palette_of(ax: Any) -> Palette:
    """The colours that suit what axes are drawn on; where that is transparent, those that go with matplotlib's text."""
    colors = matplotlib_module("colors")
    for face in (ax.get_facecolor(), ax.figure.get_facecolor()):
        *_, opacity = colors.to_rgba(face)
        if opacity > 0.5:
            paper = colors.to_hex(face)
            return replace(DARK if is_dark(paper) else LIGHT, paper=paper)
    text = colors.to_hex(matplotlib_module("pyplot").rcParams["text.color"])
    return LIGHT if is_dark(text) else DARK
