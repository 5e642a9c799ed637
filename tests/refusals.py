"""What a refusal has to be: an error in the library's own words that names what is wrong, and nothing changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

NAN, INF = float("nan"), float("inf")
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?|nan|inf")


def says(message: str, word: str) -> bool:
    """Whether the word is there; a number may be written in any way that reads as that number."""
    if NUMBER.fullmatch(word):
        value = float(word)
        return any(
            np.isclose(float(said), value, rtol=1e-5, atol=0.0, equal_nan=True) for said in NUMBER.findall(message)
        )
    return re.search(rf"(?<![\w.]){re.escape(word)}(?!\w)", message) is not None


def refused(call: Callable[[], Any], *words: str) -> str:
    """The message of a ValueError or TypeError that has all these words in it."""
    with pytest.raises((ValueError, TypeError)) as caught:
        call()
    message = str(caught.value)
    assert "incompatible function arguments" not in message, f"the binding complains, not the library: {message}"
    for word in words:
        assert says(message, word), f"{word!r} is not in: {message}"
    return message


@contextmanager
def unchanged(state: Callable[[Any], Any], *objects: Any) -> Iterator[None]:
    """Whatever happens inside leaves every bit of these as it was."""
    before = [state(one) for one in objects]
    yield
    assert [state(one) for one in objects] == before
