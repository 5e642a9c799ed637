"""Which models can be exported."""

from __future__ import annotations

from typing import Any

from everytree.estimators import (
    ExactTreeClassifier,
    ExactTreeRegressor,
    MetaBoostClassifier,
    MetaBoostRegressor,
    MetaEnsembleClassifier,
    MetaEnsembleRegressor,
    MetaForestClassifier,
    MetaForestRegressor,
    MetaTreeClassifier,
    MetaTreeRegressor,
)
from everytree.estimators.outputs import refuse_several_outputs

FORESTS = (MetaForestClassifier, MetaForestRegressor, MetaTreeClassifier, MetaTreeRegressor)
BOOSTED = (MetaBoostClassifier, MetaBoostRegressor, MetaEnsembleClassifier, MetaEnsembleRegressor)
EXACT = (ExactTreeClassifier, ExactTreeRegressor)


def check_exportable(model: Any) -> None:
    """Raise unless the model is a fitted estimator whose leaves are classes or constants."""
    name, known = type(model).__name__, (*FORESTS, *BOOSTED, *EXACT)
    if not isinstance(model, known):
        raise TypeError(f"model must be one of {[one.__name__ for one in known]}, fitted, not a {name}")
    refuse_several_outputs(model)
    if not hasattr(model, "forest_"):
        how = "fit" if isinstance(model, BOOSTED) else "fit, or partial_fit,"
        raise ValueError(f"this {name} is not fitted yet: call {how} and export it then")
    family = model.forest_.family
    if getattr(family, "mass", None) is None:
        what = "leaves that are lines" if "inputs" in family.row_data else f"leaves of a family of its own, {family}"
        raise ValueError(f"this {name} has {what}; only leaves that are classes or constants can be exported")


def check_has_trees(model: Any) -> None:
    """Raise unless the model can be exported as trees."""
    check_exportable(model)
    if isinstance(model, EXACT):
        raise TypeError(
            f"model is a {type(model).__name__}, whose average over every choice of splits is not a set of trees; "
            "to_onnx takes it as it is, or fit a MetaForest or MetaTree estimator to the same rows"
        )
