"""Distributions of targets: one per row, mixtures over the nodes on its path."""

from everytree.predictive.paths import PathPredictive, Paths
from everytree.predictive.pooled import PooledPredictive
from everytree.predictive.predictive import Predictive, VarianceParts

__all__ = ["PathPredictive", "Paths", "PooledPredictive", "Predictive", "VarianceParts"]
