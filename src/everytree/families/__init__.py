"""Leaf models: a likelihood and its conjugate prior, one file each; `base` defines a family."""

from everytree.families.base import Family, NativeFamily
from everytree.families.categorical import Bernoulli, Categorical
from everytree.families.geometric import Geometric
from everytree.families.histogram import Histogram
from everytree.families.linear import LinearRegression
from everytree.families.lognormal import LogNormal
from everytree.families.normal import Normal
from everytree.families.rates import Exponential, Poisson
from everytree.families.survival import Survival
from everytree.families.traits import Components

__all__ = [
    "Bernoulli",
    "Categorical",
    "Components",
    "Exponential",
    "Family",
    "Geometric",
    "Histogram",
    "LinearRegression",
    "LogNormal",
    "NativeFamily",
    "Normal",
    "Poisson",
    "Survival",
]
