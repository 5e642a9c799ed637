"""Which models can be exported."""

from __future__ import annotations

from typing import Any

from everytree.estimators.availability import refuse_several_outputs
from everytree.estimators.registry import estimator_names


def check_exportable(model: Any) -> None:
    """Raise unless the model is a fitted estimator whose leaves are classes or constants."""
    name = type(model).__name__
    if name not in estimator_names():
        raise TypeError(f"model must be one of {estimator_names()}, fitted, not a {name}")
    refuse_several_outputs(model)
    if not model.__sklearn_is_fitted__():
        how = "fit, or partial_fit," if model.counts_rows else "fit"
        raise ValueError(f"this {name} is not fitted yet: call {how} and export it then")
    if model.monotonic_cst is not None:
        raise ValueError(f"this {name} has monotonic_cst, which exports do not know; et.save keeps the model")
    family = model.model_.family
    if getattr(family, "mass", None) is None:
        what = "leaves that are lines" if "inputs" in family.row_data else f"leaves of a family of its own, {family}"
        raise ValueError(f"this {name} has {what}; only leaves that are classes or constants can be exported")


def check_has_trees(model: Any) -> None:
    """Raise unless the model can be exported as trees."""
    check_exportable(model)
    if model.model_.baseline is not None:
        raise ValueError(
            f"this {type(model).__name__} predicts survival curves, which no table of trees has; to_onnx has them at "
            "given times"
        )
    if model.model_.parts.exact is not None:
        raise TypeError(
            f"model is a {type(model).__name__}, whose average over every choice of splits is not a set of trees; "
            "to_onnx takes it as it is, or fit a MetaForest or MetaTree estimator to the same rows"
        )
