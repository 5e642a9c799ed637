"""Fitted models of other libraries as meta-trees over codes, in which every row takes the same path as in the model."""

from everytree.structure.importers.lightgbm import read_lightgbm
from everytree.structure.importers.model import Imported
from everytree.structure.importers.sklearn_models import read_sklearn
from everytree.structure.importers.xgboost import read_xgboost

__all__ = ["Imported", "read_lightgbm", "read_sklearn", "read_xgboost"]
