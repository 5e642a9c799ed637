"""The section on quality, from scores and charts."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from everytree.base.words import number_of
from everytree.report.quality import MIN_ROWS, Quality
from everytree.report.rows import JudgedRows


def why_not_judged(rows: JudgedRows | None) -> str:
    """The reason why a model cannot be judged by some rows, as a sentence; empty where it can."""
    if rows is None:
        return "This page was made without a table of rows and targets, so there was nothing to judge it by."
    if len(rows) < MIN_ROWS:
        return f"The table has {number_of(len(rows), 'row')}; fewer than {MIN_ROWS} say little about quality."
    if len(set(rows.y.tolist())) <= 1:
        return "All targets of the table are the same, so there is nothing to tell apart."
    return ""


def quality_html(quality: Quality, more: Sequence[str] = ()) -> str:
    """Scores and charts."""
    columns = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("Rows not seen", *quality.columns))
    rows = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{escape(score)}</td>" for score in scores)}</tr>'
        for name, *scores in quality.rows
    )
    table = f'<table class="scores"><thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table>'
    notes = "".join(f"<p>{escape(note)}</p>" for note in [*quality.notes, *more])
    charts = f'<div class="charts">{"".join(quality.charts)}</div>'
    head = f"<h3>{escape(quality.title)}</h3><p>{escape(quality.how)}</p>"
    body = f'<div class="quality">{table}{charts}</div><div class="notes">{notes}</div>'
    return f'<div class="judged">{head}{body}</div>'
