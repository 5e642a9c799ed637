"""everytree: exact Bayesian averaging over every pruned subtree of a decision tree.

Data flow one way: a table becomes codes, codes are routed through a `MetaTree`, a family turns the rows of each node
into sufficient statistics, and a `Posterior` turns those into evidence and split probabilities; predictions and
questions about the trees are read from there.
"""

from typing import TYPE_CHECKING, Any

from everytree.families import (
    Bernoulli,
    Categorical,
    Exponential,
    Family,
    Geometric,
    LinearRegression,
    Normal,
    Poisson,
)
from everytree.forest import Forest
from everytree.generative import GenerativeModel
from everytree.growing import GrowingPosterior
from everytree.metatree import MetaTree
from everytree.plot import plot_predictive, plot_split_probs, plot_tree
from everytree.posterior import Posterior
from everytree.predictive import Predictive
from everytree.priors import depth_prior
from everytree.prunedtree import PrunedTree
from everytree.schema import Schema
from everytree.shared import update_all
from everytree.structure.exact import ExactPosterior

if TYPE_CHECKING:
    from everytree.estimators import (
        ExactTreeClassifier,
        ExactTreeRegressor,
        MetaForestClassifier,
        MetaForestRegressor,
        MetaTreeClassifier,
        MetaTreeRegressor,
        from_lightgbm,
        from_sklearn,
        from_xgboost,
    )
    from everytree.export import onnx_inputs, to_onnx, to_shap, to_tables
    from everytree.files import ModelFileError, load, save
    from everytree.online import OnlineForestClassifier, OnlineForestRegressor
    from everytree.scale import schema_from_batches, update_from_batches
    from everytree.scale.dask import (
        DaskMetaForestClassifier,
        DaskMetaForestRegressor,
        DaskMetaTreeClassifier,
        DaskMetaTreeRegressor,
    )

__version__ = "0.1.0"

__all__ = [
    "Bernoulli",
    "Categorical",
    "DaskMetaForestClassifier",
    "DaskMetaForestRegressor",
    "DaskMetaTreeClassifier",
    "DaskMetaTreeRegressor",
    "ExactPosterior",
    "ExactTreeClassifier",
    "ExactTreeRegressor",
    "Exponential",
    "Family",
    "Forest",
    "GenerativeModel",
    "Geometric",
    "GrowingPosterior",
    "LinearRegression",
    "MetaForestClassifier",
    "MetaForestRegressor",
    "MetaTree",
    "MetaTreeClassifier",
    "MetaTreeRegressor",
    "ModelFileError",
    "Normal",
    "OnlineForestClassifier",
    "OnlineForestRegressor",
    "Poisson",
    "Posterior",
    "Predictive",
    "PrunedTree",
    "Schema",
    "depth_prior",
    "from_lightgbm",
    "from_sklearn",
    "from_xgboost",
    "load",
    "onnx_inputs",
    "plot_predictive",
    "plot_split_probs",
    "plot_tree",
    "save",
    "schema_from_batches",
    "to_onnx",
    "to_shap",
    "to_tables",
    "update_all",
    "update_from_batches",
]

_ESTIMATORS = {
    "ExactTreeClassifier", "ExactTreeRegressor",
    "MetaForestClassifier", "MetaForestRegressor", "MetaTreeClassifier", "MetaTreeRegressor",
    "from_lightgbm", "from_sklearn", "from_xgboost",
}  # fmt: skip
_EXPORT = {"onnx_inputs", "to_onnx", "to_shap", "to_tables"}
_FILES = {"ModelFileError", "load", "save"}

_ONLINE = {"OnlineForestClassifier", "OnlineForestRegressor"}


_DASK = {
    "DaskMetaForestClassifier", "DaskMetaForestRegressor", "DaskMetaTreeClassifier", "DaskMetaTreeRegressor",
}  # fmt: skip

_SCALE = {"schema_from_batches", "update_from_batches"}


def __getattr__(name: str) -> Any:
    """Estimators bring scikit-learn, river or Dask along: they, and what needs them, are imported when asked for."""
    if name in _ESTIMATORS:
        from everytree import estimators

        return getattr(estimators, name)
    if name in _EXPORT:
        from everytree import export

        return getattr(export, name)
    if name in _FILES:
        from everytree import files

        return getattr(files, name)
    if name in _ONLINE:
        from everytree import online

        return getattr(online, name)
    if name in _DASK:
        from everytree.scale import dask

        return getattr(dask, name)
    if name in _SCALE:
        from everytree import scale

        return getattr(scale, name)
    raise AttributeError(f"module 'everytree' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
