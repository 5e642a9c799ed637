"""Axes to draw on; matplotlib is imported when the first picture is drawn, not before."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from everytree.base.words import MAX_GROUPED, MIN_GROUPED, short_number


def matplotlib_module(name: str) -> Any:
    """Import a module of matplotlib."""
    try:
        return importlib.import_module(f"matplotlib.{name}")
    except ImportError as error:
        raise ImportError("pictures need matplotlib: pip install everytree[plot]") from error


def new_axes(ax: Any, size: tuple[float, float]) -> Any:
    if ax is None:
        ax = matplotlib_module("pyplot").subplots(figsize=size, layout="constrained")[1]
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def legend(ax: Any, marks: Sequence[Any], names: Sequence[str]) -> None:
    """Put the legend above the axes, where it hides no line."""
    words = [f" {name}" if name.startswith("_") else name for name in names]  # matplotlib would hide it
    legend = ax.legend(
        marks, words, frameon=False, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, borderaxespad=0.2
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def plain_numbers(axis: Any, largest: float) -> None:
    """Write large numbers of an axis with commas, where matplotlib would put a power of ten over a corner."""
    if MIN_GROUPED <= largest < MAX_GROUPED:
        ticker = matplotlib_module("ticker")
        axis.set_major_locator(ticker.MaxNLocator(5))
        axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: short_number(value, 9)))
