"""Axes to draw on; matplotlib is imported when the first picture is drawn, not before."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass


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
