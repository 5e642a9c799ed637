"""Runs every example of the gallery and writes a page for each: what it says, its code, what it prints, its picture.

An example is run twice, in light and in dark colours; a page shows the picture that suits its reader.
"""

from __future__ import annotations

import ast
import contextlib
import io
import runpy
from pathlib import Path

import matplotlib as mpl

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples" / "gallery").glob("*.py"))
FOLDER = ROOT / "docs" / "gallery"


def page_of(example: Path) -> tuple[str, str]:
    """The title of an example, and its page."""
    import matplotlib.pyplot as plt

    source = example.read_text(encoding="utf-8")
    title, _, text = (ast.get_docstring(ast.parse(source)) or "").partition("\n")
    for name, style in (("light", "default"), ("dark", "dark_background")):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), plt.style.context(["default", style]):
            runpy.run_path(str(example), run_name="__main__")
            width = round(100 * plt.gcf().get_figwidth())  # so that letters are as large on every page
            plt.gcf().savefig(FOLDER / f"{example.stem}_{name}.png", dpi=144)
            plt.close("all")
    code = source.split('"""', 2)[2].strip()
    title = title.rstrip(".")
    blocks = f"```text\n{printed.getvalue().rstrip()}\n```", f"```py\n{code}\n```"
    return title, "\n\n".join([f"# {title}", text.strip(), pictures(example, title, width), *blocks]) + "\n"


def pictures(example: Path, title: str, width: int) -> str:
    """Both pictures of an example; the theme hides one of them."""
    shown = (f"![{title}]({example.stem}_{name}.png#only-{name}){{width={width}}}" for name in ("light", "dark"))
    return " ".join(shown)


def main() -> None:
    """All pages, and one that leads to them."""
    mpl.use("Agg")
    FOLDER.mkdir(exist_ok=True)
    cards = []
    for example in EXAMPLES:
        title, page = page_of(example)
        (FOLDER / f"{example.stem}.md").write_text(page, encoding="utf-8")
        cards.append(f"-   [{pictures(example, title, 420)} **{title}**]({example.stem}.md)\n")
        print(f"{example.name}: {title}")
    index = "# Gallery\n\nEach is a script in `examples/gallery/` to run and to change.\n\n"
    index += '<div class="grid cards" markdown>\n\n' + "\n".join(cards) + "\n</div>\n"
    (FOLDER / "index.md").write_text(index, encoding="utf-8")


if __name__ == "__main__":
    main()
