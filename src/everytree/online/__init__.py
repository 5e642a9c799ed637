"""Forests for rows that never stop: one row at a time, in bounded memory, with river's conventions."""

from everytree.online.estimators import OnlineForestClassifier, OnlineForestRegressor

__all__ = ["OnlineForestClassifier", "OnlineForestRegressor"]
