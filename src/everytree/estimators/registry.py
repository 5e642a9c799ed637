"""All estimators of tables: whoever lists them reads this."""

from __future__ import annotations

from everytree.estimators.base import MetaEstimator
from everytree.estimators.boost import MetaBoostClassifier, MetaBoostRegressor
from everytree.estimators.ensemble import MetaEnsembleClassifier, MetaEnsembleRegressor
from everytree.estimators.exact import ExactTreeClassifier, ExactTreeRegressor
from everytree.estimators.forest import MetaForestClassifier, MetaForestRegressor
from everytree.estimators.sampled import SampledTreeClassifier, SampledTreeRegressor
from everytree.estimators.tree import MetaTreeClassifier, MetaTreeRegressor

STRUCTURES: dict[str, tuple[type[MetaEstimator], type[MetaEstimator]]] = {
    "forest": (MetaForestClassifier, MetaForestRegressor),
    "boost": (MetaBoostClassifier, MetaBoostRegressor),
    "ensemble": (MetaEnsembleClassifier, MetaEnsembleRegressor),
    "tree": (MetaTreeClassifier, MetaTreeRegressor),
    "exact": (ExactTreeClassifier, ExactTreeRegressor),
    "sampled": (SampledTreeClassifier, SampledTreeRegressor),
}
"""The estimators of classes and of numbers, by the name of their structure on the command line."""

ESTIMATORS: dict[str, type[MetaEstimator]] = {kind.__name__: kind for both in STRUCTURES.values() for kind in both}
"""By the name of the class."""


def structure_of(model: MetaEstimator) -> str:
    """The name of the structure of an estimator."""
    return next(name for name, both in STRUCTURES.items() if isinstance(model, both))
