"""All built-in families. A new one is a file beside this, a struct in C++, and a line here."""

from __future__ import annotations

from collections.abc import Iterable

from everytree.base.arrays import FloatArray
from everytree.families.base import NativeFamily
from everytree.families.categorical import Bernoulli, Categorical
from everytree.families.gamma import Gamma
from everytree.families.geometric import Geometric
from everytree.families.histogram import Histogram
from everytree.families.hurdle import Hurdle, can_follow, hurdle_before
from everytree.families.linear import LinearRegression
from everytree.families.lognormal import LogNormal
from everytree.families.negative_binomial import NegativeBinomial
from everytree.families.normal import Normal
from everytree.families.rates import Exponential, Poisson
from everytree.families.survival import Survival
from everytree.families.weibull import Weibull

__all__ = [
    "Bernoulli",
    "Categorical",
    "Exponential",
    "Gamma",
    "Geometric",
    "Histogram",
    "Hurdle",
    "LinearRegression",
    "LogNormal",
    "NegativeBinomial",
    "Normal",
    "Poisson",
    "Survival",
    "Weibull",
]

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
        NegativeBinomial,
        Gamma,
        Weibull,
        Hurdle,
    )
}
"""Families by the name of their class."""

NUMBER_FAMILIES: dict[str, type[NativeFamily]] = {
    family.kernel: family for family in FAMILIES.values() if not family.has_classes and family is not Hurdle
}
NUMBER_FAMILIES |= {
    f"hurdle_{name}": hurdle_before(family) for name, family in NUMBER_FAMILIES.items() if can_follow(family)
}
"""Families of numbers by their name in regressors."""


def candidates(among: Iterable[str], y: FloatArray, row_names: Iterable[str]) -> list[str]:
    """Names of the families that `family="auto"` tries, the plainest first."""
    return [name for name in among if NUMBER_FAMILIES[name].is_candidate(y, row_names)]


def boosted_families() -> list[str]:
    """Names of the families of numbers that can be boosted: their centres, or relative hazards."""
    return [name for name, family in NUMBER_FAMILIES.items() if family.link is not None or family.predicts_curves]


def families_of_targets() -> list[str]:
    """Names of the families of numbers whose leaves count targets themselves, not positions on a baseline."""
    return [name for name, family in NUMBER_FAMILIES.items() if not family.predicts_curves]


def families_with() -> dict[str, list[str]]:
    """The families that take each thing that users may give for each row; several may take the same."""
    found: dict[str, list[str]] = {}
    for name, family in NUMBER_FAMILIES.items():
        for column in family.given_columns:
            for known in (column.name, column.opposite):
                if known:
                    found.setdefault(known, []).append(name)
    return found
