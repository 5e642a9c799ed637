"""The template of the page, its style and its scripts."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from hashlib import sha256
from html import escape
from importlib.resources import files
from typing import Any

SCRIPTS = ("model.js", "families.js", "drawing.js", "sums.js", "reasons.js", "settings.js", "whatif.js", "main.js")


def filled(sections: dict[str, str], data: dict[str, Any]) -> str:
    """Fill every place of the template in one pass: the inserted text is never searched for places again."""
    folder = files("everytree.report")
    script = "".join((folder / name).read_text(encoding="utf-8") for name in SCRIPTS)
    script = f'"use strict";\n(() => {{\n{script}}})();\n'
    parts = sections | {
        "style": (folder / "page.css").read_text(encoding="utf-8"),
        "script": script,
        # Only this script runs, whatever a column may be called.
        "hash": b64encode(sha256(script.encode("utf-8")).digest()).decode("ascii"),
        "data": _json(data),
    }
    return with_parts("page.html", parts)


def with_parts(template: str, parts: dict[str, str]) -> str:
    """Fill the places of a part of the page."""
    text = (files("everytree.report") / template).read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda place: parts[place[1]], text)


def _json(data: dict[str, Any]) -> str:
    """Return JSON that is safe inside HTML; infinities become null."""
    text = json.dumps(_finite(data), ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_finite(one) for one in value]
    if isinstance(value, float) and value - value != 0.0:
        return None
    return value


# ---- small parts ----------------------------------------------------------------------------------------------------


def pairs_list(pairs: Iterable[tuple[str, str]]) -> str:
    """Names and values."""
    items = "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(value)}</dd></div>" for name, value in pairs)
    return f'<dl class="facts">{items}</dl>'


def table_html(heads: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "") -> str:
    """A table of texts: the first cell of a row is its name."""
    named = f"<caption>{escape(caption)}</caption>" if caption else ""
    columns = "".join(f'<th scope="col">{escape(name)}</th>' for name in heads)
    lines = "".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>'
        for name, *cells in rows
    )
    return f'<table class="scores">{named}<thead><tr>{columns}</tr></thead><tbody>{lines}</tbody></table>'


def absent(why: str) -> str:
    """A sentence in the place of a part that is not there."""
    return f'<p class="absent">{escape(why)}</p>'
