"""Distributions of targets: one a row, mixtures over the nodes on its path."""

from everytree.predictive.predictive import Predictive

__all__ = ["Predictive"]
