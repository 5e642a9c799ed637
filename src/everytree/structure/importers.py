"""Fitted models of other libraries as meta-trees over codes, in which every row goes the way it goes in the model."""

from everytree.structure.imported import Imported
from everytree.structure.lightgbm_trees import read_lightgbm
from everytree.structure.sklearn_models import read_sklearn
from everytree.structure.xgboost_trees import read_xgboost

__all__ = ["Imported", "read_lightgbm", "read_sklearn", "read_xgboost"]
