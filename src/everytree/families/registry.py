"""All built-in families. A new one is a file beside this, a struct in C++, and a line here."""

from __future__ import annotations

from everytree.families.base import NativeFamily
from everytree.families.categorical import Bernoulli, Categorical
from everytree.families.geometric import Geometric
from everytree.families.histogram import Histogram
from everytree.families.linear import LinearRegression
from everytree.families.lognormal import LogNormal
from everytree.families.normal import Normal
from everytree.families.rates import Exponential, Poisson
from everytree.families.survival import Survival

FAMILIES: dict[str, type[NativeFamily]] = {
    family.__name__: family
    for family in (
        Bernoulli,
        Categorical,
        Normal,
        LinearRegression,
        Poisson,
        Exponential,
        Geometric,
        LogNormal,
        Survival,
        Histogram,
    )
}
"""Families by the name of their class."""

NUMBER_FAMILIES: dict[str, type[NativeFamily]] = {
    family.kernel: family for family in FAMILIES.values() if not family.has_classes
}
"""Families of numbers by their name in regressors."""


def boosted_families() -> list[str]:
    """Names of the families of numbers that can be boosted: their centres, or relative hazards."""
    return [name for name, family in NUMBER_FAMILIES.items() if family.link is not None or family.needs_baseline]


def families_with() -> dict[str, list[str]]:
    """The families that take each thing that users may give for each row; several may take the same."""
    found: dict[str, list[str]] = {}
    for name, family in NUMBER_FAMILIES.items():
        for column in family.given_columns:
            for known in (column.name, column.opposite):
                if known:
                    found.setdefault(known, []).append(name)
    return found
