"""The API reference shows each parameter with the default that it has.

The reference is made from docstrings: the default it shows for all names of one entry is that of the first, or the
first of the choices in braces, or what the type says after "default".
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from typing import Any

import pytest

import everytree as et

ENTRY = re.compile(r"(?P<names>\*{0,2}\w+(?:, \*{0,2}\w+)*)(?: : (?P<type>.+))?")
CHOICES = re.compile(r"\{(?P<choices>.+)\}")
STATED = re.compile(r", default(?: |: |=)(?P<value>.+)")


def documented() -> Iterator[tuple[str, Any]]:
    """Public functions and classes, and the public methods of these, by name."""
    for name in et.__all__:
        thing = getattr(et, name)
        if not callable(thing):
            continue
        yield name, thing
        for method, function in inspect.getmembers(thing, inspect.isfunction) if inspect.isclass(thing) else ():
            if not method.startswith("_") and function.__module__.startswith("everytree"):
                yield f"{name}.{method}", function


def entries(doc: str) -> Iterator[tuple[list[str], str | None]]:
    """Names and type of each entry of the section on parameters."""
    section = re.search(r"^Parameters\n-+\n(?P<text>.*?)(?=^\S[^\n]*\n-+$|\Z)", doc, re.DOTALL | re.MULTILINE)
    for line in section["text"].split("\n") if section else ():
        found = ENTRY.fullmatch(line) if line and not line.startswith(" ") else None
        if found is not None:
            yield found["names"].split(", "), found["type"]


def shown(names: list[str], of_type: str | None, defaults: dict[str, Any]) -> Any:
    """The default that the reference shows for an entry."""
    for pattern, group in ((CHOICES, "choices"), (STATED, "value")):
        found = pattern.search(of_type or "")
        if found is not None:
            first = found[group].split(", ")[0] if pattern is CHOICES else found[group]
            return ast.literal_eval(first)
    return defaults[names[0]]


FUNCTIONS = dict(documented())


def test_there_are_entries_to_check():
    assert sum(1 for thing in FUNCTIONS.values() for _ in entries(inspect.getdoc(thing) or "")) > 500
    assert list(entries("A.\n\nParameters\n----------\na, b : int\n    Of c, d.\nc\n\nReturns\n-------\nint\n")) == [
        (["a", "b"], "int"), (["c"], None),
    ]  # fmt: skip
    assert shown(["a", "b"], None, {"a": 1, "b": 2}) == 1
    assert shown(["a"], '{"x", "y"} or None', {"a": "y"}) == "x"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_default_that_is_shown_is_that_of_the_signature(name):
    thing = FUNCTIONS[name]
    try:
        parameters = inspect.signature(thing).parameters
    except ValueError:
        pytest.skip("made by a kernel")
    defaults = {name: one.default for name, one in parameters.items()}
    for names, of_type in entries(inspect.getdoc(thing) or ""):
        own = [one for one in names if one in defaults]  # the others are in **row_data and the like
        for one in own:
            is_given = defaults[one] is not inspect.Parameter.empty
            expected = defaults[one] if is_given or not CHOICES.search(of_type or "") else shown(own, of_type, defaults)
            value = shown(own, of_type, defaults)
            assert value is expected or value == expected, f"{one} is shown with the default {value!r}"
