"""everytree: exact Bayesian averaging over every pruned subtree of a decision tree.

Data flow one way: a table becomes codes, codes are routed through a `MetaTree`, a family turns the rows of each node
into sufficient statistics, and a `Posterior` turns those into evidence and split probabilities; predictions and
questions about the trees are read from there.
"""

from __future__ import annotations

TYPE_CHECKING = False  # type checkers take it for true; importing it would take longer than all of this
if TYPE_CHECKING:
    from typing import Any

    from everytree.conformal.full import full_conformal
    from everytree.estimators import scorers as scorers
    from everytree.estimators.boost import MetaBoostClassifier, MetaBoostRegressor
    from everytree.estimators.comparing import compare
    from everytree.estimators.ensemble import MetaEnsembleClassifier, MetaEnsembleRegressor
    from everytree.estimators.exact import ExactTreeClassifier, ExactTreeRegressor
    from everytree.estimators.forest import MetaForestClassifier, MetaForestRegressor
    from everytree.estimators.importing import from_lightgbm, from_sklearn, from_xgboost
    from everytree.estimators.sampled import SampledTreeClassifier, SampledTreeRegressor
    from everytree.estimators.tree import MetaTreeClassifier, MetaTreeRegressor
    from everytree.exact import ExactPosterior
    from everytree.export import to_onnx as to_onnx
    from everytree.families import (
        Bernoulli,
        Categorical,
        Exponential,
        Family,
        Gamma,
        Geometric,
        Histogram,
        Hurdle,
        LinearRegression,
        LogNormal,
        NegativeBinomial,
        Normal,
        Poisson,
        Survival,
        Weibull,
    )
    from everytree.files import ModelFileError, load, save
    from everytree.online import OnlineForestClassifier, OnlineForestRegressor
    from everytree.posterior import Forest, GenerativeModel, GrowingPosterior, Posterior, depth_prior, update_all
    from everytree.predictive import Predictive
    from everytree.sampling import StructureSampler
    from everytree.tables import Schema
    from everytree.trees import MetaTree, PrunedTree
    from everytree.view import plot_predictive, plot_tree

__version__ = "0.1.0"

__all__ = [
    "Bernoulli",
    "Categorical",
    "ExactPosterior",
    "ExactTreeClassifier",
    "ExactTreeRegressor",
    "Exponential",
    "Family",
    "Forest",
    "Gamma",
    "GenerativeModel",
    "Geometric",
    "GrowingPosterior",
    "Histogram",
    "Hurdle",
    "LinearRegression",
    "LogNormal",
    "MetaBoostClassifier",
    "MetaBoostRegressor",
    "MetaEnsembleClassifier",
    "MetaEnsembleRegressor",
    "MetaForestClassifier",
    "MetaForestRegressor",
    "MetaTree",
    "MetaTreeClassifier",
    "MetaTreeRegressor",
    "ModelFileError",
    "NegativeBinomial",
    "Normal",
    "OnlineForestClassifier",
    "OnlineForestRegressor",
    "Poisson",
    "Posterior",
    "Predictive",
    "PrunedTree",
    "SampledTreeClassifier",
    "SampledTreeRegressor",
    "Schema",
    "StructureSampler",
    "Survival",
    "Weibull",
    "compare",
    "depth_prior",
    "from_lightgbm",
    "from_sklearn",
    "from_xgboost",
    "full_conformal",
    "load",
    "plot_predictive",
    "plot_tree",
    "save",
    "update_all",
]

_HOMES = {
    "conformal.full": ("full_conformal",),
    "estimators.boost": ("MetaBoostClassifier", "MetaBoostRegressor"),
    "estimators.comparing": ("compare",),
    "estimators.ensemble": ("MetaEnsembleClassifier", "MetaEnsembleRegressor"),
    "estimators.exact": ("ExactTreeClassifier", "ExactTreeRegressor"),
    "estimators.forest": ("MetaForestClassifier", "MetaForestRegressor"),
    "estimators.importing": ("from_lightgbm", "from_sklearn", "from_xgboost"),
    "estimators.sampled": ("SampledTreeClassifier", "SampledTreeRegressor"),
    "estimators.tree": ("MetaTreeClassifier", "MetaTreeRegressor"),
    "exact": ("ExactPosterior",),
    "export": ("to_onnx",),
    "families": (
        "Bernoulli", "Categorical", "Exponential", "Family", "Gamma", "Geometric", "Histogram", "Hurdle",
        "LinearRegression", "LogNormal", "NegativeBinomial", "Normal", "Poisson", "Survival", "Weibull",
    ),
    "files": ("ModelFileError", "load", "save"),
    "online": ("OnlineForestClassifier", "OnlineForestRegressor"),
    "posterior": ("Forest", "GenerativeModel", "GrowingPosterior", "Posterior", "depth_prior", "update_all"),
    "predictive": ("Predictive",),
    "sampling": ("StructureSampler",),
    "tables": ("Schema",),
    "trees": ("MetaTree", "PrunedTree"),
    "view": ("plot_predictive", "plot_tree"),
}  # fmt: skip
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
_MODULES = {"scorers": "estimators.scorers"}

_OF_EXTRAS = {"to_onnx": "onnx"}
"""Names that need an optional library: `import *` leaves them out, and using one says what to install."""

_REMOVED = {
    f"Dask{name}": f"pass the collection to fit_batches of {name}, and predict by rows.map_partitions(model.predict)"
    for name in ("MetaForestClassifier", "MetaForestRegressor", "MetaTreeClassifier", "MetaTreeRegressor")
} | {
    "onnx_inputs": "everytree.export.onnx_inputs(model, X) makes the inputs of a graph",
    "plot_split_probs": "plot_tree has the probability of each split, post.split_prob all of them",
    "plot_style": "pictures suit the axes that they are drawn on, light or dark, in any style of matplotlib",
    "plot_survival": "everytree.view.plot_survival(curves) draws them",
    "to_tables": "everytree.export.to_tables(model) has the plain trees",
    "to_shap": "model.explain(X).to_shap() has the values, for all pictures of shap",
    "shap_inputs": "model.explain(X).to_shap() has the values, for all pictures of shap",
    "schema_from_batches": "SchemaSketch().update(table) of everytree.batches takes one batch after the other",
    "update_from_batches": "update(schema.encode(X), y) of each batch gives the same",
}
"""Former names, and what to do instead."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used.

    Some of them import scikit-learn or river, and the command must be able to answer before NumPy is imported.
    """
    from importlib import import_module

    if name in _HOME_OF:
        value = getattr(import_module(f"everytree.{_HOME_OF[name]}"), name)
        globals()[name] = value  # later uses find it without this function
        return value
    if not name.startswith("_"):
        try:
            return import_module(f"everytree.{_MODULES.get(name, name)}")
        except ModuleNotFoundError as error:
            if error.name != f"everytree.{name}":
                raise
    instead = f": {_REMOVED[name]}" if name in _REMOVED else ""
    raise AttributeError(f"module 'everytree' has no attribute {name!r}{instead}")


def __dir__() -> list[str]:
    from importlib.util import find_spec

    return sorted([*__all__, *(name for name, library in _OF_EXTRAS.items() if find_spec(library) is not None)])
