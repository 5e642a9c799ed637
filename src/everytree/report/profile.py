"""The columns of the table in short: what is missing, how many values differ, and between which ends they lie."""

from __future__ import annotations

import numpy as np

from everytree.base.words import short_number
from everytree.report.rows import JudgedRows
from everytree.report.subject import Subject
from everytree.report.template import table_html

MAX_COLUMNS = 60


def profile(subject: Subject, rows: JudgedRows | None) -> str:
    """A table in a fold, a line a column; nothing without rows. Texts stay out: a page has those of its trees."""
    if rows is None or not len(rows):
        return ""
    names = subject.words.inputs
    lines = [_line(name, rows.column(k)) for k, name in enumerate(names[:MAX_COLUMNS])]
    left = len(names) - len(lines)
    caption = f"Of {len(rows):,} rows of the table." + (f" {left} more columns are left out." if left else "")
    table = table_html(["Column", "missing", "different values", "from", "to"], lines, caption=caption)
    return f"<details><summary>The columns in short</summary>{table}</details>"


def _line(name: str, values: np.ndarray) -> tuple[str, ...]:
    is_missing = np.array([value is None or value != value for value in values])
    known = values[~is_missing]
    different = len(set(known.tolist()))
    if values.dtype.kind in "biuf" and len(known):
        ends = [short_number(float(end), 6) for end in (known.min(), known.max())]
    elif values.dtype.kind == "M" and len(known):
        ends = [str(np.datetime_as_string(end, unit="D")) for end in (known.min(), known.max())]
    else:
        ends = ["", ""]
    return name, f"{is_missing.mean():.1%}", f"{different:,}", *ends
