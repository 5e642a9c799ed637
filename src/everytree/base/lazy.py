"""Attributes that are computed on first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

Value = TypeVar("Value")


class cached_property(Generic[Value]):  # noqa: N801 (a decorator, with the name and the use of functools' own)
    """`functools.cached_property` without a lock, which that of Python 3.11 holds for all objects of a class at once.

    A process that is forked while another thread computes the attribute would wait for ever for that lock. Two threads
    that ask at the same time may both compute it here, and both get the first result.
    """

    def __init__(self, compute: Callable[[Any], Value]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Value: ...

    def __get__(self, instance: object | None, owner: type) -> Self | Value:
        if instance is None:
            return self
        value: Value = instance.__dict__.setdefault(self._name, self._compute(instance))
        return value
