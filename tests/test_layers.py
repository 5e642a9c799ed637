"""Data flows one way: a module imports only from modules above it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import everytree as et

PACKAGE = Path(__file__).parents[1] / "src" / "everytree"

# From the top of the flow to its end. A module may import from its own line's folder and from lines above.
ORDER = [
    "_kernels",
    "lazy",
    "codes",
    "tables",
    "cuts",
    "columns",
    "code_words",
    "schema",
    "invariants",
    "repeats",
    "random_shape",
    "metatree",
    "prunedtree",
    "priors",
    "queries",
    "questions",
    "families",
    "quadrature",
    "mixture",
    "intervals",
    "predictive",
    "drawing",
    "text",
    "dot",
    "html",
    "python_kernel",
    "posterior",
    "shared",
    "growing",
    "generative",
    "pool",
    "packing",
    "forest",
    "structure",
    "tuning",
    "stacking",
    "leaf_priors",
    "fitting",
    "progress",
    "scale",
    "plot",
    "estimators",
    "scale.dask",
    "scorers",
    "online",
    "files",
    "export",
    "report",
    "demo",
    "cli",
    "__main__",
]


def layer(module: str) -> str:
    """`everytree.families.base` is in layer `families`; a module that stands in ORDER itself is a layer."""
    inside = module.removeprefix("everytree.")
    return inside if inside in ORDER else inside.split(".")[0]


def imports(path: Path) -> set[str]:
    """Modules of this package that a file imports, imports for type checking left out."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING":
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "everytree":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("everytree."):
            found.add(layer(node.module or ""))
    return found


MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p != PACKAGE / "__init__.py")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_upward(path):
    own = layer(".".join(path.relative_to(PACKAGE).with_suffix("").parts))
    assert own in ORDER, f"{own} has no place in the flow yet: add it to ORDER"
    for module in imports(path) - {own}:
        assert ORDER.index(module) < ORDER.index(own), f"{own} imports {module}, which comes after it"


def test_all_names_can_be_had_without_the_optional_libraries():
    """What needs one of them is left out of `*` and of `dir`, and says what to install."""
    code = (
        "import inspect, sys\n"
        "for name in ('dask', 'onnx', 'river', 'matplotlib', 'pandas', 'polars', 'pyarrow', 'typer'):\n"
        "    sys.modules[name] = None\n"
        "from everytree import *\n"
        "import everytree as et\n"
        "assert len(inspect.getmembers(et)) >= len(et.__all__) == len(dir(et)), dir(et)\n"
        "for name in ('DaskMetaTreeClassifier', 'to_onnx'):\n"
        "    try: getattr(et, name)\n"
        "    except ImportError as error: print(error)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "pip install everytree[dask]" in run.stdout
    assert "pip install everytree[onnx]" in run.stdout
    assert {"DaskMetaTreeClassifier", "to_onnx"} <= set(dir(et))
