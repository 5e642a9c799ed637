"""Families are asked for what they do: nobody outside asks for the name of one, or for its class."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import everytree as et
from everytree.families.registry import NUMBER_FAMILIES

SOURCE = Path(et.__file__).parent
OUTSIDE = sorted(path for path in SOURCE.rglob("*.py") if path.parent.name not in ("families", "predictive"))

OF_SURVIVAL = {"files/models.py", "fitting/held_out/curves.py", "fitting/structures/survival.py", "models/survival.py"}
"""Modules that are about survival curves alone: their leaves have more than a family's methods."""


def questions(tree: ast.AST) -> set[str]:
    """Comparisons with the name of a family, and tests for the class of one."""
    names, found = {*NUMBER_FAMILIES}, set()
    classes = {family.__name__ for family in NUMBER_FAMILIES.values()}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            constants = [one for side in (node.left, *node.comparators) for one in ast.walk(side)]
            found |= {one.value for one in constants if isinstance(one, ast.Constant) and one.value in names}
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass"):
            found |= {one.id for one in ast.walk(node.args[1]) if isinstance(one, ast.Name)} & classes
    return found


@pytest.mark.parametrize("path", OUTSIDE, ids=lambda path: str(path.relative_to(SOURCE)))
def test_nobody_asks_which_family_it_is(path):
    if str(path.relative_to(SOURCE)) not in OF_SURVIVAL:
        assert not questions(ast.parse(path.read_text()))


def test_such_questions_are_seen():
    code = "if family == 'poisson' or model.family in ('normal', 'x') or isinstance(leaf, Histogram): pass"
    assert questions(ast.parse(code)) == {"poisson", "normal", "Histogram"}
