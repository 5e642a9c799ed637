"""Parameters of estimators: an estimator is a dataclass of its parameters, each described and checked by a rule.

`@estimator` makes the signature from them, and adds their descriptions to the docstring.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, fields
from functools import wraps
from inspect import cleandoc, signature
from textwrap import indent
from typing import Any, Literal, TypeVar, cast, dataclass_transform

from numpy.typing import NDArray

from everytree.estimators.counterparts import unknown_parameter

CategoricalFeatures = Literal["from_dtype"] | Sequence[Any] | NDArray[Any] | None
Auto = Literal["auto"]
Kind = TypeVar("Kind", bound=type)
Check = Callable[[str, Any], object]


@dataclass(frozen=True)
class Rule:
    """Type, description and check of a parameter."""

    type: str  # for the documentation
    doc: str
    check: Check  # raises for a value that is not valid; arguments are the name and the value


def parameter(rule: Rule, *, default: Any, kw_only: bool = True) -> Any:
    """A parameter of an estimator; only the first may be given without its name."""
    return field(default=default, kw_only=kw_only, metadata={"rule": rule})


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(parameter,))
def estimator(kind: Kind) -> Kind:
    """Make an estimator of a class that lists its parameters."""
    made: Any = dataclass(eq=False, repr=False)(kind)
    made.__init__ = _naming_counterparts(made.__init__)
    rules = {one.name: (one.metadata["rule"], one.default) for one in fields(made)}
    sections = "\n".join(_entry(name, rule, default) for name, (rule, default) in rules.items())
    summary, mark, rest = cleandoc(made.__doc__ or "").partition("\nAttributes\n----------\n")
    if not mark:
        summary, mark, rest = cleandoc(made.__doc__ or "").partition("\nExamples\n--------\n")
    made.__doc__ = f"{summary.rstrip()}\n\nParameters\n----------\n{sections}\n{mark}{rest}"
    return cast("Kind", made)


def _naming_counterparts(init: Callable[..., None]) -> Callable[..., None]:
    """`__init__` with an error for a parameter that is not there which names what takes its place."""
    known = [name for name in signature(init).parameters if name != "self"]

    @wraps(init)
    def checked(self: Any, *args: Any, **given: Any) -> None:
        for name in given:
            if name not in known:
                raise TypeError(unknown_parameter(type(self).__name__, name, known))
        init(self, *args, **given)

    return checked


def _entry(name: str, rule: Rule, default: Any) -> str:
    doc = indent(cleandoc(rule.doc), "    ")
    return f"{name} : {rule.type}, default {default!r}" + (f"\n{doc}" if rule.doc else "")


def check_parameters(model: Any) -> None:
    """Raise for a value of a parameter that is not valid."""
    for one in fields(model):
        one.metadata["rule"].check(one.name, getattr(model, one.name))
