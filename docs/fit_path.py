"""The path of a fit in `architecture.md` and `CONTRIBUTING.md`, recorded from a fit.

`python docs/fit_path.py` writes both tables anew; the tests record again and compare.
"""

from __future__ import annotations

import ast
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

import everytree as et

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "everytree"
PAGE = ROOT / "docs" / "architecture.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"


class Step(NamedTuple):
    """A function of the path: its file, its qualified name, and the number of the step that calls it; 0 for none."""

    file: str
    name: str
    caller: int = 0


GOALS = [Step("structure/growers.py", "_grow_one"), Step("posterior/posterior.py", "Posterior.from_counts")]
"""The functions that call a kernel to grow a tree and to weigh its prunings."""

NATIVE = [
    Step("_native/bind/posterior.cpp", "sweep_all"),
    Step("_native/core/posterior.hpp", "sweep_all"),
    Step("_native/core/sweep.hpp", "sweep_node"),
    Step("_native/core/sweep.hpp", "weigh"),
]
"""What the last goal calls. A profiler of Python does not see it; the tests check that each calls the next by name."""

WHAT = {
    "estimators/classifier.py": "the public method: arguments become `GivenRows`",
    "estimators/base.py": "parameters become a target, a structure and settings",
    "fitting/fit.py": "table and target -> codes",
    "fitting/structures/grown.py": "the trees first, then their forest",
    "fitting/structures/forest.py": "which trees to grow, on which rows",
    "fitting/structures/growing.py": "by which criterion, on which columns",
    "structure/growers.py": "codes -> trees, each grown by a kernel",
    "learn_forest": "trees -> counts -> priors -> forest",
    "posterior/posterior.py": "Theorem 1, once a tree",
    "_native/bind/posterior.cpp": "arrays of NumPy to the kernel",
    "_native/core/posterior.hpp": "nodes with rows, children before parents",
    "sweep_node": "evidence and split probability of one node",
    "weigh": "the recursion itself, in logs",
}
"""What a step does, by its name or else by its file."""


def recorded() -> list[Step]:
    """The steps of a fit of a small table, in order: those at which the file changes, or that follow on another branch.

    A step goes on where the path to an earlier goal branched off; what both have in common is there once.
    """
    stacks: dict[Step, list[CodeType]] = {}
    with _profiled(stacks):
        X = np.random.default_rng(0).normal(size=(30, 2))
        et.MetaForestClassifier(n_estimators=2, random_state=0, n_jobs=1).fit(X, X[:, 0] > 0.0)
    steps: list[Step] = []
    before: list[CodeType] = []
    number_of: dict[CodeType, int] = {}
    for stack in [stacks[goal] for goal in GOALS]:
        n_common = next((i for i, (a, b) in enumerate(zip(stack, before, strict=False)) if a is not b), len(before))
        for i, code in enumerate(stack):
            is_branch = i == n_common > 0
            if code not in number_of and (is_branch or i == 0 or stack[i - 1].co_filename != code.co_filename):
                caller = max((number_of[above] for above in stack[:i] if above in number_of), default=0)
                steps.append(Step(_file(code), code.co_qualname, caller))
                number_of[code] = len(steps)
        before = stack
    return steps


@contextmanager
def _profiled(stacks: dict[Step, list[CodeType]]) -> Iterator[None]:
    """Keeps the functions that run when a goal is called first; those of a thread follow those of the main one."""
    main = threading.get_ident()

    def note(frame: FrameType, event: str, _: Any) -> None:
        goal = Step(_file(frame.f_code), frame.f_code.co_qualname)
        if event == "call" and goal in GOALS and goal not in stacks:
            above = [] if threading.get_ident() == main else _running(sys._current_frames()[main])
            stacks[goal] = [*above, *_running(frame)]

    old = sys.getprofile(), threading.getprofile()
    sys.setprofile(note)
    threading.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(old[0])
        threading.setprofile(old[1])


def _running(frame: FrameType | None) -> list[CodeType]:
    """Functions of the package from the outermost one on; those inside another function are left out."""
    found = []
    while frame is not None:
        if Path(frame.f_code.co_filename).is_relative_to(PACKAGE) and "<" not in frame.f_code.co_qualname:
            found.append(frame.f_code)
        frame = frame.f_back
    return found[::-1]


def _file(code: CodeType) -> str:
    path = Path(code.co_filename)
    return path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else ""


def path() -> list[Step]:
    """The recorded steps, and those in C++ that follow."""
    steps = recorded()
    for step in NATIVE:
        steps.append(step._replace(caller=len(steps)))
    return steps


def definition(file: str, name: str) -> tuple[int, str]:
    """The line where a function begins, and its text."""
    text = (PACKAGE / file).read_text()
    if file.endswith(".py"):
        node = _found(ast.parse(text), name.split("."))
        return node.lineno, ast.get_source_segment(text, node) or ""
    for found in re.finditer(rf"^[\w:<>&* ]*\b{name}\([^;{{}}]*\)[\w ]*\{{", text, flags=re.MULTILINE):
        return text.count("\n", 0, found.start()) + 1, text[found.start() : _end_of_block(text, found.end())]
    raise LookupError(f"{file} has no {name}")


def _found(tree: ast.Module, names: list[str]) -> ast.FunctionDef:
    """The definition with a qualified name, class by class."""
    here: Any = tree
    for name in names:
        here = next(node for node in here.body if getattr(node, "name", "") == name)
    assert isinstance(here, ast.FunctionDef)
    return here


def _end_of_block(text: str, at: int) -> int:
    """Where the block ends whose brace was opened before."""
    depth = 1
    while depth:
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return at


def calls(text: str, name: str) -> bool:
    """Whether the body of a function calls another one by name."""
    return re.search(rf"\b{name}\(", text.split("\n", 1)[-1]) is not None


def what(step: Step) -> str:
    """What a step does."""
    name = step.name.split(".")[-1]
    return WHAT[name if name in WHAT else step.file]


def table(steps: list[Step], *, linked: bool) -> str:
    """The steps, each with its line, which may be a link from the root."""
    rows = ["| step | called by | where | what |", "|---|---|---|---|"]
    for number, step in enumerate(steps, start=1):
        line, _ = definition(step.file, step.name)
        where = f"`{step.file}:{line}` `{step.name.split('.')[-1]}`"
        where = f"[{where}](src/everytree/{step.file}#L{line})" if linked else where
        rows.append(f"| {number} | {step.caller or ''} | {where} | {what(step)} |")
    return "\n".join(rows)


def with_table(page: str, steps: list[Step], *, linked: bool) -> str:
    """The page with the table between its two marks."""
    return re.sub(
        r"(<!-- fit path -->\n).*?(<!-- end -->)",
        lambda marks: marks[1] + "\n" + table(steps, linked=linked) + "\n\n" + marks[2],
        page,
        flags=re.DOTALL,
    )


def native_calls() -> Iterator[tuple[Step, Step]]:
    """Pairs of which the first must call the second: the last goal and the functions in C++."""
    return pairwise([GOALS[-1], *NATIVE])


if __name__ == "__main__":
    found = path()
    PAGE.write_text(with_table(PAGE.read_text(), found, linked=False))
    CONTRIBUTING.write_text(with_table(CONTRIBUTING.read_text(), found, linked=True))
