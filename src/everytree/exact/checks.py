"""Checks of the arguments of exact sums and samplers: columns of codes, their kinds, leaves and splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from everytree.base.checks import whole_number
from everytree.exact.regions import KINDS, MAX_CATEGORIES, Kind
from everytree.families.base import NativeFamily

Candidates = Literal["all", "nontrivial"]


def checked_codes(n_codes: Sequence[int]) -> list[int]:
    """Number of codes of each column."""
    if not isinstance(n_codes, Sequence | np.ndarray):
        raise TypeError(f"n_codes must have one number a column, but is {n_codes!r}")
    found = [whole_number("n_codes", n, 1, 65534) for n in n_codes]
    if not found:
        raise ValueError("n_codes is empty: there must be at least one column")
    return found


def checked_family(family: NativeFamily) -> NativeFamily:
    """A leaf model whose prior is the same for all leaves."""
    if not isinstance(family, NativeFamily) or not family.has_one_prior:
        raise TypeError(f"family must be a built-in one with the same prior for all leaves, not {family!r}")
    return family


def checked_candidates(candidates: Candidates) -> Candidates:
    """Which splits of a region count."""
    if candidates not in ("all", "nontrivial"):
        raise ValueError(f"candidates must be 'all' or 'nontrivial', but is {candidates!r}")
    return candidates


def checked_kinds(kinds: Kind | Sequence[Kind], n_codes: Sequence[int]) -> list[Kind]:
    """Return the kind of every column."""
    each: list[Any] = [kinds] * len(n_codes) if isinstance(kinds, str) else list(kinds)
    if len(each) != len(n_codes):
        raise ValueError(f"kinds has {len(each)} entries, but there are {len(n_codes)} columns")
    for column, (kind, n) in enumerate(zip(each, n_codes, strict=True)):
        if kind not in KINDS:
            raise ValueError(f"kinds[{column}] must be one of {list(KINDS)}, but is {kind!r}")
        if kind != "ordered" and n > MAX_CATEGORIES:
            raise ValueError(
                f"kinds[{column}] is {kind!r} with {n} categories, but at most {MAX_CATEGORIES} are possible"
            )
    return each
