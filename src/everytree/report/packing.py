"""Arrays as text inside a page."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray


def packed(values: NDArray[Any]) -> list[str]:
    """An array as the smallest type that holds every value, little endian, in base 64.

    Other numbers that repeat, such as those of leaves with one row, are listed once: indices first, then the list.
    """
    whole = values.dtype.kind in "iub" or bool((values == np.floor(values)).all() and (np.abs(values) < 2**32).all())
    if whole and (not len(values) or values.min() >= 0):
        return [kind := _smallest(values), _base64(values, kind)]
    distinct, places = np.unique(values, return_inverse=True)
    kind = _smallest(places)
    if 8 * len(distinct) + int(kind[1]) * len(places) < 8 * len(values):
        return [kind, _base64(places, kind), _base64(distinct, "f8")]
    return ["f8", _base64(values, "f8")]


def _smallest(values: NDArray[Any]) -> str:
    top = int(values.max(initial=0))
    return next((kind for kind, most in (("u1", 2**8), ("u2", 2**16), ("u4", 2**32)) if top < most), "f8")


def _base64(values: NDArray[Any], kind: str) -> str:
    return b64encode(np.ascontiguousarray(values, dtype=f"<{kind}").tobytes()).decode("ascii")


def n_bytes(arrays: Iterable[list[str]]) -> int:
    """Size of packed arrays before they became text."""
    return sum(3 * len(text) // 4 for array in arrays for text in array[1:])
