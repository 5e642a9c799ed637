"""Data flows one way: a module imports only from modules above it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "src" / "everytree"

# From the top of the flow to its end. A module may import from its own line's folder and from lines above.
ORDER = [
    "_kernels",
    "codes",
    "tables",
    "cuts",
    "columns",
    "code_words",
    "schema",
    "invariants",
    "random_shape",
    "metatree",
    "prunedtree",
    "priors",
    "queries",
    "questions",
    "families",
    "mixture",
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
