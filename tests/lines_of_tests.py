"""Lines of tests per line of source, package by package: `python tests/lines_of_tests.py` prints the table.

Only lines with code count: no comments, docstrings or blank lines. The source of a package is its Python and the
kernels that it calls. Its tests are those in the folder of its name and those that have it in theirs, such as
`test_report_online`, and parts of other files: one that imports from several packages counts for each of them with an
equal part, and a module that tests share counts for their packages alike.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "everytree"
PACKAGES = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))

KERNELS = [
    ("bind/(boost)", "boosting"), ("bind/(columns)", "tables"), ("bind/(exact)", "exact"),
    ("bind/(explain)", "explaining"),
    ("bind/(families)", "families"), ("bind/(growers)", "structure"), ("bind/(held_out)", "fitting"),
    ("bind/(online|row_dicts)", "online"), ("bind/(sampling)", "sampling"), ("bind/(student|survival)", "predictive"),
    ("bind/(tree)", "trees"), ("boost/", "boosting"), ("columns/", "tables"), ("core/(student)", "predictive"),
    ("core/(held_out)", "fitting"), ("core/(double|famil|lanes|linear|precise|quad|scaled|special)", "families"),
    ("core/(route|tree|top_trees|paths)", "trees"), ("distributions/", "predictive"), ("exact/", "exact"),
    ("explain/", "explaining"), ("grow/", "structure"), ("held_out/", "fitting"), ("numerics/", "families"),
    ("online/", "online"), ("sampling/", "sampling"), ("(bind|core)/", "posterior"),
]  # fmt: skip
"""Which package calls a kernel: the first pattern that fits the beginning of its path."""


def python_lines(text: str) -> int:
    """Number of lines with code."""
    skipped = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING}
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped | {tokenize.ENDMARKER}:
            lines |= set(range(token.start[0], token.end[0] + 1))
    return len(lines - docstring_lines(text))


def docstring_lines(text: str) -> set[int]:
    """Lines of strings that stand alone as statements."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return found


def native_lines(text: str) -> int:
    """Number of lines with more than a comment."""
    return sum(bool(line.strip()) and not line.strip().startswith("//") for line in text.splitlines())


def source_lines() -> Counter[str]:
    """Lines of source of each package."""
    lines: Counter[str] = Counter()
    for package in PACKAGES:
        lines[package] = sum(python_lines(path.read_text()) for path in (SOURCE / package).rglob("*.py"))
    for path in sorted((SOURCE / "_native").rglob("*.[hc]pp")):
        lines[package_of_kernel(path.relative_to(SOURCE / "_native").as_posix())] += native_lines(path.read_text())
    return lines


def package_of_kernel(path: str) -> str:
    """The package that calls a kernel."""
    for pattern, package in KERNELS:
        if re.match(pattern, path):
            return package
    raise LookupError(f"tests/lines_of_tests.py does not know which package calls {path}")


def imported(text: str) -> set[str]:
    """Full names of the modules that a file imports, and of what it imports from them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def packages_in(names: Iterable[str]) -> set[str]:
    """Packages of everytree among the beginnings of names."""
    parts = [name.split(".") for name in names if name.startswith("everytree.")]
    return {part[1] for part in parts} & set(PACKAGES)


def test_lines() -> Counter[str]:
    """Lines of tests of each package, as shares."""
    texts = {path: path.read_text() for path in TESTS.rglob("*.py") if path != Path(__file__)}
    names = {path: imported(text) for path, text in texts.items()}
    lines: Counter[str] = Counter()
    for path, text in texts.items():
        own, known = {path.parent.name, *path.stem.split("_")} & set(PACKAGES), packages_in(names[path])
        users = {other.parent.name for other in texts if path.parent == TESTS and path.stem in names[other]}
        others = (users & set(PACKAGES) or known) - own
        for package in own | others:
            lines[package] += python_lines(text) / (1 if package in own else len(own | others))
    return lines


def ratios() -> dict[str, float]:
    """Lines of tests per line of source, the least first."""
    source, tests = source_lines(), test_lines()
    return dict(sorted(((name, tests[name] / source[name]) for name in PACKAGES), key=lambda pair: pair[1]))


def table() -> str:
    """The table as Markdown."""
    source, tests = source_lines(), test_lines()
    rows = [f"| {name} | {source[name]} | {tests[name]:.0f} | {ratio:.2f} |" for name, ratio in ratios().items()]
    return "\n".join(["| package | source | tests | tests per line |", "|---|---|---|---|", *rows])


if __name__ == "__main__":
    print(table())
