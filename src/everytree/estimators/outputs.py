"""Targets of several columns: estimators of one output each, which share their columns and trees."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from everytree.base.errors import ArgumentError
from everytree.fitting.fitted import Fitted
from everytree.fitting.given import GivenRows
from everytree.fitting.outputs import fit_outputs, output_columns


def fit_several(model: Any, given: GivenRows, columns: Sequence[NDArray[Any]]) -> None:
    """Fit an estimator for each column of targets, with the same trees."""
    model._check_parameters()
    if model.structures_ is not None:
        raise ArgumentError("y", f"has {len(columns)} columns, but the structures were imported for one output")
    fitted = fit_outputs(given, columns, model.target_before_fit(), model._structure_of_fit(), model._settings())
    outputs = [_output(model, output, *each, given.X) for output, each in enumerate(zip(fitted, columns, strict=True))]
    keep_outputs(model, outputs)


def _output(model: Any, output: int, fitted: Fitted, column: NDArray[Any], X: Any) -> Any:
    """Return the fitted estimator of one output."""
    one = copy.copy(model)
    one._keep_early(None)
    one.set_params(**_parameters_of_output(model, output))
    with warnings.catch_warnings():
        if output > 0:  # what is said of the rows is said once
            warnings.simplefilter("ignore", UserWarning)
        one._keep(one._scored(fitted, column), X)
    return one


def _parameters_of_output(model: Any, output: int) -> dict[str, Any]:
    """Return the parameters in which the estimator of one output differs."""
    weight = getattr(model, "class_weight", None)
    return {"class_weight": weight[output]} if isinstance(weight, list | tuple) else {}


def keep_outputs(model: Any, outputs: list[Any]) -> None:
    """Keep the estimators of the outputs as the fitted state."""
    for name in ("fitted_", "feature_names_in_"):
        model.__dict__.pop(name, None)
    model._keep_early(None)
    model.outputs_ = outputs
    names = outputs[0].__dict__.get("feature_names_in_")
    if names is not None:
        model.feature_names_in_ = names


def columns_to_score(model: Any, y: Any) -> list[NDArray[Any]]:
    """The columns of targets to score, as many as the model has outputs."""
    columns = output_columns(y)
    if columns is None or len(columns) != model.n_outputs_:
        found = 1 if columns is None else len(columns)
        raise ArgumentError("y", f"has {found} columns, but the model has {model.n_outputs_} outputs")
    return columns


def labels_of(outputs: Sequence[Any], X: Any) -> NDArray[Any]:
    """(n_rows, n_outputs) most probable classes."""
    labels = [one.predict(X) for one in outputs]
    has_text = {column.dtype.kind in "OUS" for column in labels}
    return np.column_stack([column.astype(object) for column in labels] if len(has_text) > 1 else labels)
