"""All built-in families. A new one is a file beside this, a struct in C++, and a line here."""

from __future__ import annotations

from everytree.families.base import NativeFamily
from everytree.families.categorical import Bernoulli, Categorical
from everytree.families.geometric import Geometric
from everytree.families.linear import LinearRegression
from everytree.families.lognormal import LogNormal
from everytree.families.normal import Normal
from everytree.families.rates import Exponential, Poisson

FAMILIES: dict[str, type[NativeFamily]] = {
    family.__name__: family
    for family in (Bernoulli, Categorical, Normal, LinearRegression, Poisson, Exponential, Geometric, LogNormal)
}
"""Families by the name of their class."""

NUMBER_FAMILIES: dict[str, type[NativeFamily]] = {
    family.kernel: family for family in FAMILIES.values() if not family.has_classes
}
"""Families of numbers by their name in regressors."""

BOOSTED_FAMILIES = tuple(name for name, family in NUMBER_FAMILIES.items() if family.link is not None)
"""Names of the families of numbers that can be boosted."""
