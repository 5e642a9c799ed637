"""Contributions of columns as a fragment of HTML, for notebooks: no scripts, no style sheets, no downloads."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

from everytree.view.colours import LIGHT

if TYPE_CHECKING:
    from everytree.explaining.explanation import Explanation, RowContributions

_CELL = "text-align:right;padding:.1em .8em"
_TRACK = "display:inline-block;position:relative;width:12em;height:.8em"
MAX_ROWS = 3


def contributions_html(explanation: Explanation) -> str:
    """The first rows of an explanation, each a table with bars."""
    shown = min(len(explanation), MAX_ROWS)
    parts = [part for row in range(shown) for part in _one(explanation.of_row(row), row, len(explanation))]
    left = len(explanation) - shown
    if left:
        parts.append(f"<div>… and {left:,} more row{'s' if left > 1 else ''}</div>")
    return "".join(["<div>", *parts, "</div>"])


def _one(row: RowContributions, number: int, n_rows: int) -> Iterator[str]:
    lines = row.lines()
    largest = max((abs(value) for _, _, value in lines), default=0.0) or 1.0
    name = f"{row.what} = {row.number(row.prediction)}" + (f", row {number}" if n_rows > 1 else "")
    yield f"<table><caption><b>{escape(name)}</b></caption>"
    names = "".join(f'<th style="{_CELL}">{name}</th>' for name in ("column", "value", "adds"))
    yield f"<tr>{names}<th></th></tr>"
    yield f'<tr><td style="{_CELL}">without any column</td><td></td>'
    yield f'<td style="{_CELL}">{row.number(row.base)}</td><td></td></tr>'
    for column, cell, value in lines:
        yield f'<tr><td style="{_CELL}">{escape(column)}</td><td style="{_CELL}">{escape(cell)}</td>'
        yield f'<td style="{_CELL}">{row.number(value, sign=True)}</td><td>{_bar(value / largest)}</td></tr>'
    yield "</table>"


def _bar(share: float) -> str:
    """A bar from the middle, to the right where the column raises the prediction."""
    left, colour = (50.0, LIGHT.more) if share > 0.0 else (50.0 + 50.0 * share, LIGHT.less)
    style = f"position:absolute;left:{left:.1f}%;width:{50.0 * abs(share):.1f}%;height:100%;background:{colour}"
    return f'<span style="{_TRACK}"><span style="{style}"></span></span>'
