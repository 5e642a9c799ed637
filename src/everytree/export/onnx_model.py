"""Models as ONNX graphs: raw columns in, predictions out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from onnx import ModelProto, TensorProto, helper

from everytree.export.averaged import AveragedTrees, averaged_trees
from everytree.export.checks import check_exportable, check_has_trees
from everytree.export.graph import Graph
from everytree.export.inputs import inputs_of
from everytree.export.onnx_boosted import boosted_outputs
from everytree.export.onnx_columns import tree_inputs
from everytree.export.onnx_exact import looked_up
from everytree.export.onnx_outputs import entry, moments, predicts_classes, predicts_numbers, sharpened
from everytree.export.onnx_survival import checked_times, survival_outputs
from everytree.export.onnx_trees import averaged
from everytree.export.summed import summed_trees


def to_onnx(model: Any, times: ArrayLike | None = None) -> ModelProto:
    """A fitted model as an ONNX graph that takes raw columns and predicts what the model predicts.

    Parameters
    ----------
    model : fitted estimator
        As in `to_tables`, or with lines in the nodes of boosted trees, or `ExactTreeClassifier` or
        `ExactTreeRegressor`.
    times : (n_times,) array_like, optional
        For survival curves, which need it: times up to the end of the curves.

    Returns
    -------
    onnx.ModelProto
        Inputs: one (n_rows, 1) tensor for each column, named as in the table of fit, `x0`, `x1`, ... where it had no
        names. Text is a string tensor, in which "" and other texts such as "NA" are missing. All other columns are
        float64, NaN where missing: booleans are 0 and 1, dates microseconds since 1970 (UTC where they have a time
        zone). `onnx_inputs` makes these tensors from a table.

        Outputs: of a classifier `label` (n_rows,) and `probabilities` (n_rows, n_classes); of a regressor `mean` and
        `variance` (n_rows,), float64, for one unit of exposure; of survival curves `survival` (n_rows, n_times), the
        probability to be without event at each time. Where a column has such a name, the output's ends with an
        underscore.

    Notes
    -----
    Infinite numbers, which the model refuses, are not checked for.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> graph = et.to_onnx(et.MetaTreeClassifier(max_depth=1, random_state=0).fit(X, y)).graph
    >>> [one.name for one in graph.input], [one.name for one in graph.output]
    (['x0', 'x1', 'x2', 'x3'], ['label', 'probabilities'])
    """
    check_exportable(model)
    inputs = inputs_of(model.schema_)
    graph = Graph([one.name for one in inputs])
    at = checked_times(model, times)
    outputs = _outputs(graph, model) if at is None else survival_outputs(graph, model, at)
    types = {True: TensorProto.STRING, False: TensorProto.DOUBLE}
    declared = [helper.make_tensor_value_info(one.name, types[one.is_text], [None, 1]) for one in inputs]
    return graph.model(declared, outputs, type(model).__name__)


def _outputs(graph: Graph, model: Any) -> list[Any]:
    if model.model_.parts.exact is not None:
        return _of_exact(graph, model)
    check_has_trees(model)
    if model.model_.parts.additive is not None:
        return boosted_outputs(graph, summed_trees(model), model.model_.parts.lined)
    return _of_forest(graph, averaged_trees(model, model.forest_, model.schema_))


def _of_forest(graph: Graph, trees: AveragedTrees) -> list[Any]:
    average = averaged(graph, trees, tree_inputs(graph, trees.schema))
    if trees.classes is not None:
        return predicts_classes(graph, sharpened(graph, average, trees.sharpness), trees.classes)
    first, second = (entry(graph, average, k) for k in (0, 1))
    return predicts_numbers(graph, *moments(graph, first, second, trees.centre, trees.sharpness))


def _of_exact(graph: Graph, model: Any) -> list[Any]:
    sums = looked_up(graph, model)
    if model.has_classes:
        own = graph.constant(np.arange(len(model.classes_)))  # of one class, the leaf model has two
        probs = sharpened(graph, graph.add("Gather", sums, own, axis=1), 1.0)
        return predicts_classes(graph, probs, model.classes_)
    total, first, second = (entry(graph, sums, k) for k in (0, 1, 2))
    first, second = (graph.add("Div", one, total) for one in (first, second))
    return predicts_numbers(graph, *moments(graph, first, second, model.posterior_.centre, 1.0))
