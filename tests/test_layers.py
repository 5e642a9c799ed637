"""Data flows one way: a module imports only from modules above it."""

from __future__ import annotations

import ast
import itertools
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import everytree as et

PACKAGE = Path(__file__).parents[1] / "src" / "everytree"

ARCHITECTURE = runpy.run_path(str(PACKAGE.parents[1] / "docs" / "make_architecture.py"))
FLOORS = ARCHITECTURE["FLOORS"]
"""From the bottom up. A package imports only from floors below its own; packages of one floor do not see each other."""

FLOOR = {package: number for number, packages in enumerate(FLOORS) for package in packages}

DOORS = {
    ("posterior.posterior", "view"),
    ("estimators.readable", "view"),
    ("explaining.explanation", "view"),
    ("explaining.effect", "view"),
    ("estimators.notebook", "view"),
    ("predictive.predictive", "view"),
    ("estimators.base", "report"),
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


def test_a_fit_goes_straight_down():
    """From `MetaForestClassifier.fit` to the recursion: few changes of file, none of them upward."""
    files = [file for file, *_ in ARCHITECTURE["FIT_PATH"]]
    assert sum(a != b for a, b in itertools.pairwise(files)) <= 6
    floor = {package: level for level, packages in enumerate(FLOORS) for package in packages}
    levels = [floor.get(file.split("/")[0], -1) for file in files]  # kernels are below all packages
    assert levels == sorted(levels, reverse=True)


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


def defined_in(package: str) -> set[str]:
    """Names of functions, classes and attributes that the modules of a package define."""
    found: set[str] = set()
    for name in INNER:
        if name.split(".")[0] != package:
            continue
        for node in ast.walk(ast.parse(MODULES[name].read_text())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                found.add(node.attr)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
    return found


OTHER_LIBRARIES = {"_asdict", "_replace", "_exit", "_predictors", "_preprocessor"}
"""Underscore names of named tuples, of `os`, and of scikit-learn's gradient boosting, which offers no others."""


@pytest.mark.parametrize("package", FLOOR)
def test_no_package_reads_what_another_keeps_to_itself(package):
    own = defined_in(package) | OTHER_LIBRARIES
    for module in [name for name in INNER if name.split(".")[0] == package]:
        for node in ast.walk(ast.parse(MODULES[module].read_text())):
            if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.endswith("__"):
                assert node.attr in own or getattr(node.value, "id", "") == "self", f"{module} reads {node.attr}"


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
