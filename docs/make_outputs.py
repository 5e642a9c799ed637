"""Run the code blocks of the pages and write what they print below them.

`python docs/make_outputs.py` renews every page, `python docs/make_outputs.py quickstart.md` one of them. The tests run
the same blocks, and compare what they print with the pages: words exactly, numbers up to a little, since the last
digits differ between machines and between versions of other libraries.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

BLOCK = re.compile(r"^```python\n(.*?)^```\n(\n<!-- output -->\n```text\n(.*?)^```\n)?", flags=re.DOTALL | re.MULTILINE)
"""A block of code, and what it printed if that is on the page."""

NUMBER = re.compile(r"(?<![A-Za-z_])-?\d[\d,]*\.?\d*(?:e[-+]?\d+)?")


def pages() -> list[Path]:
    return [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted((ROOT / "docs" / "tasks").glob("*.md"))]


def printed(page: str, name: str) -> Iterator[tuple[str, str, str]]:
    """Yield each block of a page, what is said below it, and what it prints; blocks run in order, in one namespace."""
    namespace: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for code, _, said in BLOCK.findall(page):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, name, "exec"), namespace)
            yield code, said, _tidy(out.getvalue())


def _tidy(text: str) -> str:
    """Lines without blanks at their ends; Markdown would close the block at a fence."""
    lines = [line.rstrip() for line in text.splitlines()]
    return "".join(f"{line}\n" for line in lines).replace("```", "'''")


def with_outputs(page: str, name: str) -> str:
    """The page, with what its blocks print below them."""
    outputs = [text for *_, text in printed(page, name)]
    places = iter(outputs)

    def one(found: re.Match[str]) -> str:
        text = next(places)
        below = f"\n<!-- output -->\n```text\n{text}```\n" if text else ""
        return f"```python\n{found[1]}```\n{below}"

    return BLOCK.sub(one, page)


def differs(said: str, found: str) -> str:
    """Why two outputs are not the same: words that differ, or numbers that are more than a little apart; "" if none."""
    words, other = (NUMBER.sub("#", " ".join(text.split())) for text in (said, found))
    if words != other:
        return f"the page says\n{said}\nbut the block prints\n{found}"
    for a, b in zip(NUMBER.findall(said), NUMBER.findall(found), strict=True):
        first, second = (float(text.replace(",", "")) for text in (a, b))
        if abs(first - second) > 0.02 + 0.05 * max(abs(first), abs(second)):
            return f"the page says {a} where the block prints {b}:\n{found}"
    return ""


def main() -> None:
    os.environ.setdefault("MPLBACKEND", "agg")
    wanted = sys.argv[1:]
    for path in pages():
        if not wanted or path.name in wanted:
            text = path.read_text(encoding="utf-8")
            renewed = with_outputs(text, path.name)
            if renewed != text:
                path.write_text(renewed, encoding="utf-8")
                print(f"{path.relative_to(ROOT)}: renewed")


if __name__ == "__main__":
    main()
