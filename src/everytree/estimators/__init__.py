"""Thin scikit-learn shells around forests; no mathematics."""

from everytree.estimators.forests import MetaForestClassifier, MetaForestRegressor
from everytree.estimators.trees import MetaTreeClassifier, MetaTreeRegressor

__all__ = ["MetaForestClassifier", "MetaForestRegressor", "MetaTreeClassifier", "MetaTreeRegressor"]
