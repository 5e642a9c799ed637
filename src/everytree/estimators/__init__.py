"""scikit-learn estimators around forests; no mathematics."""

from everytree.estimators import scorers
from everytree.estimators.boost import MetaBoostClassifier, MetaBoostRegressor
from everytree.estimators.ensemble import MetaEnsembleClassifier, MetaEnsembleRegressor
from everytree.estimators.exact import ExactTreeClassifier, ExactTreeRegressor
from everytree.estimators.forest import MetaForestClassifier, MetaForestRegressor
from everytree.estimators.importing import from_lightgbm, from_sklearn, from_xgboost
from everytree.estimators.sampled import SampledTreeClassifier, SampledTreeRegressor
from everytree.estimators.tree import MetaTreeClassifier, MetaTreeRegressor

__all__ = [
    "ExactTreeClassifier",
    "ExactTreeRegressor",
    "MetaBoostClassifier",
    "MetaBoostRegressor",
    "MetaEnsembleClassifier",
    "MetaEnsembleRegressor",
    "MetaForestClassifier",
    "MetaForestRegressor",
    "MetaTreeClassifier",
    "MetaTreeRegressor",
    "SampledTreeClassifier",
    "SampledTreeRegressor",
    "from_lightgbm",
    "from_sklearn",
    "from_xgboost",
    "scorers",
]
