"""Which colours suit given axes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from everytree.view.colours import DARK, LIGHT, Palette, is_dark
from everytree.view.plot.axes import matplotlib_module


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
