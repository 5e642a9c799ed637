"""Data flows one way: a module imports only from modules above it."""

from __future__ import annotations

import ast
import itertools
import runpy
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

import everytree as et

PACKAGE = Path(__file__).parents[1] / "src" / "everytree"

ARCHITECTURE = runpy.run_path(str(PACKAGE.parents[1] / "docs" / "make_architecture.py"))
FLOORS = ARCHITECTURE["FLOORS"]
"""From the bottom up. A package imports only from floors below its own; packages of one floor do not see each other."""

FLOOR = {package: number for number, packages in enumerate(FLOORS) for package in packages}

DOORS = {
    ("trees.pruned", "view"),
    ("posterior.posterior", "view"),
    ("posterior.comparison", "view"),
    ("estimators.base", "view"),
    ("explaining.explanation", "view"),
    ("explaining.effect", "view"),
    ("estimators.showing", "view"),
    ("estimators.base", "report"),
    ("estimators.base", "files"),
}
"""Imports to a higher floor, made when a picture or a report is asked for: what a user holds in hand shows itself."""

MODULES = {
    ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def imports(text: str, *, top: bool = False) -> set[str]:
    """Modules of this package that a file imports, those for type checking left out; `top`: when it is imported.

    A call of `import_module` counts where it names the module.
    """
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = []
        if top and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name.removeprefix("everytree.") in MODULES else str(node.module) for name in inside}
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("import_module", "importlib.import_module"):
            given = [*node.args, *(keyword.value for keyword in node.keywords)][:1]
            found |= {one.value for one in given if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    return {name.removeprefix("everytree.") for name in found if name.startswith("everytree.")} - {"_kernels"}


def imports_of(module: str, *, top: bool = False) -> set[str]:
    """What `imports` finds in a module of this package."""
    return imports(MODULES[module].read_text(), top=top)


INNER = [name for name in MODULES if name not in ("__init__", "__main__")]


def test_nothing_lies_loose_in_the_root():
    sources = {path.name for path in PACKAGE.iterdir() if path.is_file() and path.suffix not in (".so", ".pyd")}
    assert sources == {"__init__.py", "__main__.py", "_kernels.pyi", "py.typed"}
    assert {name.split(".")[0] for name in INNER} == set(FLOOR)


@pytest.mark.parametrize("module", INNER)
def test_imports_go_down(module):
    own = module.split(".")[0]
    for other in {name.split(".")[0] for name in imports_of(module)} - {own}:
        is_below = FLOOR[other] < FLOOR[own]
        assert is_below or (module, other) in DOORS, f"{module} imports {other}, which is not below {own}"


@pytest.mark.parametrize(
    "line",
    [
        "import everytree.report",
        "from everytree.report import write_report",
        "from everytree import report",
        'import_module("everytree.report")',
        'importlib.import_module("everytree.report").write_report(1)',
        'import_module(name="everytree.report")',
    ],
)
def test_all_ways_to_import_are_seen(line):
    assert imports(f"def late():\n    {line}\n") == {"report"}
    assert imports(f"def late():\n    {line}\n", top=True) == set()
    assert imports(f"{line}\n", top=True) == {"report"}


FIT_PATH = runpy.run_path(str(PACKAGE.parents[1] / "docs" / "fit_path.py"))


def test_a_recorded_fit_goes_straight_down():
    """From `MetaForestClassifier.fit` to the recursion: few changes of file, and no call of a higher floor."""
    steps = FIT_PATH["path"]()
    floors = [FLOOR.get(step.file.split("/")[0], -1) for step in steps]  # kernels are below all packages
    assert [
        step for step, floor in zip(steps, floors, strict=True) if step.caller and floor > floors[step.caller - 1]
    ] == []
    chain = [steps[-1]]
    while chain[-1].caller:
        chain.append(steps[chain[-1].caller - 1])
    assert (chain[-1].file, chain[-1].name) == ("estimators/classifier.py", "Classifier.fit")
    assert sum(a.file != b.file for a, b in itertools.pairwise(chain)) <= 7


def test_pages_have_the_path_of_a_recorded_fit():
    steps = FIT_PATH["path"]()
    for page, linked in ((FIT_PATH["PAGE"], False), (FIT_PATH["CONTRIBUTING"], True)):
        assert page.read_text() == FIT_PATH["with_table"](page.read_text(), steps, linked=linked), (
            "run docs/fit_path.py"
        )
    assert set(FIT_PATH["WHAT"]) <= {name for step in steps for name in (step.file, step.name)}


def test_each_kernel_on_the_path_of_a_fit_calls_the_next():
    pairs = list(FIT_PATH["native_calls"]())
    assert len(pairs) >= 4
    for step, following in pairs:
        _, text = FIT_PATH["definition"](step.file, step.name)
        assert FIT_PATH["calls"](text, following.name), f"{step.file} {step.name} does not call {following.name}"
    _, text = FIT_PATH["definition"](pairs[-1][1].file, pairs[-1][1].name)
    assert not any(FIT_PATH["calls"](text, step.name) for step, _ in pairs)


@pytest.mark.parametrize("door", sorted(DOORS))
def test_doors_are_used_and_open_late(door):
    module, package = door
    assert package in {name.split(".")[0] for name in imports_of(module)}
    assert package not in {name.split(".")[0] for name in imports_of(module, top=True)}


@pytest.mark.parametrize("package", FLOOR)
def test_no_two_modules_of_a_package_import_each_other(package):
    """Nor three in a circle. What a package's `__init__` offers is for others: its own modules do not ask for it."""
    inside = [name for name in INNER if name.startswith(f"{package}.")]
    left = {name: {other for other in imports_of(name) if other in inside} for name in inside}
    for name in inside:
        assert package not in imports_of(name), f"{name} imports its own package"
    while left:
        free = [name for name, needs in left.items() if not needs & left.keys()]
        assert free, f"these import each other in a circle: {sorted(left)}"
        for name in free:
            del left[name]


LONGEST_CHAIN = 20
"""Modules that import each other one after another, at most: so many a reader may have to open to understand one."""


def test_chains_of_imports_are_short():
    needed = {name: imports_of(name, top=True) & MODULES.keys() for name in INNER}

    @cache
    def chain(module: str) -> tuple[str, ...]:
        return (module, *max((chain(other) for other in needed[module]), key=len, default=()))

    longest = max((chain(module) for module in INNER), key=len)
    assert len(longest) <= LONGEST_CHAIN, " -> ".join(longest)


def members_of(text: str) -> set[str]:
    """Members of the classes that a module defines: what stands in them, and what they set on `self` or `cls`.

    What is set on any other object makes nothing its own.
    """
    found: set[str] = set()
    for one in [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]:
        for node in one.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                found |= {name.id for name in ast.walk(node) if is_stored(name) and isinstance(name, ast.Name)}
        for node in ast.walk(one):
            if isinstance(node, ast.Attribute) and is_stored(node) and getattr(node.value, "id", "") in OWN_OBJECTS:
                found.add(node.attr)
    return found


def is_stored(node: ast.AST) -> bool:
    return isinstance(getattr(node, "ctx", None), ast.Store)


def foreign_reads(text: str, own: set[str]) -> list[str]:
    """Underscore names that a module reads or sets on objects other than its own."""
    return [
        node.attr
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and not node.attr.endswith("__")
        and node.attr not in own
        and getattr(node.value, "id", "") not in OWN_OBJECTS
    ]


OWN_OBJECTS = ("self", "cls")

OTHER_LIBRARIES = {"_asdict", "_replace", "_exit", "_predictors", "_preprocessor"}
"""Underscore names of named tuples, of `os`, and of scikit-learn's gradient boosting, which offers no others."""


@pytest.mark.parametrize("package", FLOOR)
def test_no_package_reads_what_another_keeps_to_itself(package):
    texts = {name: MODULES[name].read_text() for name in INNER if name.split(".")[0] == package}
    own = OTHER_LIBRARIES.union(*map(members_of, texts.values()))
    assert {name: found for name, text in texts.items() if (found := foreign_reads(text, own))} == {}


@pytest.mark.parametrize(
    ("line", "is_foreign"),
    [
        ("def read(model): return model._classes", True),
        ("def write(model): model._classes = 1", True),
        ("def write(model): model._classes = 1; return model._classes", True),
        ("def _classes(model): return model._classes", True),
        ("_classes = 1\ndef read(model): return model._classes", True),
        ("class A:\n    _classes: int\ndef read(model): return model._classes", False),
        ("class A:\n    def _classes(self): pass\ndef read(model): return model._classes", False),
        ("class A:\n    def start(self): self._classes = 1\ndef read(model): return model._classes", False),
        ("class A:\n    def start(self, other): other._classes = 1\n    def read(self): return self._classes", True),
    ],
)
def test_reads_of_what_another_keeps_to_itself_are_seen(line, is_foreign):
    assert bool(foreign_reads(line, members_of(line))) == is_foreign


def test_all_names_can_be_had_without_the_optional_libraries():
    """What needs one of them is left out of `*` and of `dir`, and says what to install."""
    code = (
        "import inspect, sys\n"
        "for name in ('dask', 'onnx', 'river', 'matplotlib', 'pandas', 'polars', 'pyarrow', 'typer'):\n"
        "    sys.modules[name] = None\n"
        "from everytree import *\n"
        "import everytree as et\n"
        "assert len(inspect.getmembers(et)) >= len(et.__all__) == len(dir(et)), dir(et)\n"
        "frame = type('DataFrame', (), {'__module__': 'dask.dataframe'})()\n"
        "for use in (lambda: et.to_onnx, lambda: et.MetaForestClassifier().fit_batches(frame, 'y')):\n"
        "    try: use()\n"
        "    except ImportError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install everytree[dask]" in run.stdout
    assert "pip install everytree[onnx]" in run.stdout
    assert "to_onnx" in dir(et)
