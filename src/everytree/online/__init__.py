"""Streaming forests: one row at a time, in bounded memory, with river's conventions."""

from everytree.online.classifier import OnlineForestClassifier
from everytree.online.regressor import OnlineForestRegressor

__all__ = ["OnlineForestClassifier", "OnlineForestRegressor"]
