"""Models as ONNX graphs: raw columns in, predictions out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

from everytree.estimators import ExactTreeClassifier, ExactTreeRegressor
from everytree.export.averaged import check_exportable, to_tables
from everytree.export.graph import TYPES, Graph
from everytree.export.inputs import inputs_of
from everytree.export.onnx_exact import looked_up
from everytree.export.onnx_trees import averaged


def to_onnx(model: Any) -> ModelProto:
    """A fitted model as an ONNX graph that takes raw columns and predicts what the model predicts.

    Parameters
    ----------
    model : fitted estimator
        As in `to_tables`, or `ExactTreeClassifier` or `ExactTreeRegressor`.

    Returns
    -------
    onnx.ModelProto
        Inputs: one (n_rows, 1) tensor for each column, named as in the table of fit, `x0`, `x1`, ... where it had no
        names. Text is a string tensor, in which "" and other texts such as "NA" are missing. All other columns are
        float64, NaN where missing: booleans are 0 and 1, dates microseconds since 1970 (UTC where they have a time
        zone). `onnx_inputs` makes these tensors from a table.

        Outputs: of a classifier `label` (n_rows,) and `probabilities` (n_rows, n_classes); of a regressor `mean` and
        `variance` (n_rows,), float64, for one unit of exposure. Where a column has such a name, the output's ends with
        an underscore.

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
    is_exact = isinstance(model, ExactTreeClassifier | ExactTreeRegressor)
    outputs = (_of_exact if is_exact else _of_forest)(graph, model)
    types = {True: TensorProto.STRING, False: TensorProto.DOUBLE}
    declared = [helper.make_tensor_value_info(one.name, types[one.is_text], [None, 1]) for one in inputs]
    return graph.model(declared, outputs, type(model).__name__)


def _of_forest(graph: Graph, model: Any) -> list[Any]:
    trees = to_tables(model)
    average = averaged(graph, trees)
    if trees.classes is not None:
        return _classes(graph, average, trees.classes, trees.sharpness)
    first, second = (_entry(graph, average, k) for k in (0, 1))
    return _moments(graph, first, second, trees.centre, trees.sharpness)


def _of_exact(graph: Graph, model: Any) -> list[Any]:
    sums = looked_up(graph, model)
    if hasattr(model, "classes_"):
        own = graph.constant(np.arange(len(model.classes_)))  # of one class, the leaf model has two
        return _classes(graph, graph.add("Gather", sums, own, axis=1), model.classes_, 1.0)
    total, first, second = (_entry(graph, sums, k) for k in (0, 1, 2))
    first, second = (graph.add("Div", one, total) for one in (first, second))
    return _moments(graph, first, second, model.posterior_.centre, 1.0)


def _entry(graph: Graph, table: str, k: int) -> str:
    """(n_rows,) one column of a table."""
    return graph.add("Gather", table, graph.constant(np.array(k)), axis=1)


def _classes(graph: Graph, probs: str, classes: NDArray[Any], sharpness: float) -> list[Any]:
    """Probabilities, sharpened and scaled to sum to 1, and the most probable class."""
    last = graph.constant(np.array([1]))
    if sharpness != 1.0:
        of_top = graph.add("Div", probs, graph.add("ReduceMax", probs, last))
        probs = graph.add("Pow", of_top, graph.constant(np.array(sharpness)))
    label, named = graph.fresh("label"), graph.fresh("probabilities")
    graph.add("Div", probs, graph.add("ReduceSum", probs, last), name=named)
    labels = _labels(classes)
    graph.add("Gather", graph.constant(labels), graph.add("ArgMax", named, axis=1, keepdims=0), name=label)
    return [
        helper.make_tensor_value_info(label, TYPES[labels.dtype.kind], [None]),
        helper.make_tensor_value_info(named, TensorProto.DOUBLE, [None, len(labels)]),
    ]


def _labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Class labels of a type that graphs have: bool, int64, float64 or text."""
    types: dict[str, Any] = {"b": bool, "i": np.int64, "u": np.int64, "f": np.float64, "U": object, "O": object}
    if classes.dtype.kind not in types:
        raise ValueError(f"classes are of type {classes.dtype}, but only numbers, booleans and text can be exported")
    if classes.dtype.kind == "u" and classes.max() > np.iinfo(np.int64).max:
        raise ValueError(f"classes go up to {classes.max()}, but an exported one is at most {np.iinfo(np.int64).max}")
    return classes.astype(types[classes.dtype.kind])


def _moments(graph: Graph, first: str, second: str, centre: float, sharpness: float) -> list[Any]:
    """Mean and variance, from the mean and the mean square about `centre`."""
    names = graph.fresh("mean"), graph.fresh("variance")
    graph.add("Add", first, graph.constant(np.array(centre)), name=names[0])
    variance = graph.add("Sub", second, graph.add("Mul", first, first))
    variance = graph.add("Max", variance, graph.constant(np.array(0.0)))
    graph.add("Div", variance, graph.constant(np.array(sharpness**2)), name=names[1])
    return [helper.make_tensor_value_info(name, TensorProto.DOUBLE, [None]) for name in names]
