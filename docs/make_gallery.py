"""Runs every example of the gallery and writes a page for each: what it says, its code, what it prints, its picture."""

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
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        runpy.run_path(str(example), run_name="__main__")
    plt.gcf().savefig(FOLDER / f"{example.stem}.png", dpi=90)
    plt.close("all")
    code = source.split('"""', 2)[2].strip()
    title = title.rstrip(".")
    picture = f"![{title}]({example.stem}.png)"
    blocks = f"```text\n{printed.getvalue().rstrip()}\n```", f"```py\n{code}\n```"
    return title, "\n\n".join([f"# {title}", text.strip(), picture, *blocks]) + "\n"


def main() -> None:
    """All pages, and one that leads to them."""
    mpl.use("Agg")
    FOLDER.mkdir(exist_ok=True)
    cards = []
    for example in EXAMPLES:
        title, page = page_of(example)
        (FOLDER / f"{example.stem}.md").write_text(page, encoding="utf-8")
        picture = f"![{title}]({example.stem}.png){{width=420}}"
        cards.append(f"## [{title}]({example.stem}.md)\n\n[{picture}]({example.stem}.md)\n")
        print(f"{example.name}: {title}")
    index = "# Gallery\n\nEach is a script in `examples/gallery/` to run and to change.\n\n" + "\n".join(cards)
    (FOLDER / "index.md").write_text(index, encoding="utf-8")


if __name__ == "__main__":
    main()
