"""Methods that only some estimators have, or only models of one output."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeVar, cast

Method = TypeVar("Method", bound=Callable[..., Any])


class _OnlyWhere:
    """A method that is not there, for `hasattr` either, where an attribute of the class is false."""

    def __init__(self, method: Callable[..., Any], attribute: str, why: str) -> None:
        self._method, self._attribute, self._why = method, attribute, why
        update_wrapper(cast("Callable[..., Any]", self), method)

    def __get__(self, instance: Any, owner: type) -> Any:
        if not getattr(owner, self._attribute):
            raise lacking(owner, self._method.__name__, self._why)
        return self._method.__get__(instance, owner)


def only_where(attribute: str, why: str) -> Callable[[Method], Method]:
    """A method of estimators whose class has a true attribute; `why` the others have none."""

    def decorate(method: Method) -> Method:
        return cast("Method", _OnlyWhere(method, attribute, why))

    return decorate


def lacking(owner: type, name: str, why: str) -> AttributeError:
    """The error for an attribute that an estimator does not have."""
    return AttributeError(f"{owner.__name__} has no {name}: {why}{_instead(owner)}")


def _instead(owner: type) -> str:
    """The forest for the same targets, which has all methods."""
    kind = owner.__name__.removeprefix("Meta").removesuffix("Classifier").removesuffix("Regressor")
    return f". {owner.__name__.replace(kind, 'Forest')} has it" if kind in ("Boost", "Ensemble") else ""


class OneOutputError(ValueError, AttributeError):
    """A method that needs a model of one output was called on a model of several."""


def refuse_several_outputs(model: Any) -> None:
    """Raise if a model has several outputs, where a model of one is needed."""
    outputs = vars(model).get("outputs_", ())
    if outputs:
        raise OneOutputError(
            f"this {type(model).__name__} has {len(outputs)} outputs, but this is for models with one: use "
            f"model.outputs_[0] .. model.outputs_[{len(outputs) - 1}], which are fitted estimators of one output each"
        )


def has_one_output(model: Any) -> bool:
    """Whether a model has one output, for methods that `hasattr` must not find otherwise."""
    refuse_several_outputs(model)
    return True
