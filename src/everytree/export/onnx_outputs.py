"""Operators from averages over trees to what a graph predicts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, helper

from everytree.export.graph import TYPES, Graph


def sharpened(graph: Graph, probs: str, sharpness: float) -> str:
    """(n_rows, n_classes) probabilities to the power of the sharpness, scaled to sum to 1."""
    last = graph.constant(np.array([1]))
    if sharpness != 1.0:
        of_top = graph.add("Div", probs, graph.add("ReduceMax", probs, last))
        probs = graph.add("Pow", of_top, graph.constant(sharpness))
    return graph.add("Div", probs, graph.add("ReduceSum", probs, last))


def moments(graph: Graph, first: str, second: str, centre: float, sharpness: float) -> tuple[str, str]:
    """Mean and variance, from the mean and the mean square about `centre`."""
    mean = graph.add("Add", first, graph.constant(centre))
    variance = graph.add("Sub", second, graph.add("Mul", first, first))
    variance = graph.add("Max", variance, graph.constant(0.0))
    return mean, graph.add("Div", variance, graph.constant(sharpness**2))


def entry(graph: Graph, table: str, k: int) -> str:
    """(n_rows,) one column of a table."""
    return graph.add("Gather", table, graph.constant(np.array(k)), axis=1)


def predicts_classes(graph: Graph, probs: str, classes: NDArray[Any]) -> list[Any]:
    """Declare the most probable class and the probabilities as outputs."""
    label, named = graph.fresh("label"), graph.fresh("probabilities")
    graph.add("Identity", probs, name=named)
    labels = _labels(classes)
    graph.add("Gather", graph.constant(labels), graph.add("ArgMax", named, axis=1, keepdims=0), name=label)
    return [
        helper.make_tensor_value_info(label, TYPES[labels.dtype.kind], [None]),
        helper.make_tensor_value_info(named, TensorProto.DOUBLE, [None, len(labels)]),
    ]


def predicts_numbers(graph: Graph, mean: str, variance: str) -> list[Any]:
    """Declare mean and variance as outputs."""
    names = graph.fresh("mean"), graph.fresh("variance")
    for name, of in zip(names, (mean, variance), strict=True):
        graph.add("Identity", of, name=name)
    return [helper.make_tensor_value_info(name, TensorProto.DOUBLE, [None]) for name in names]


def _labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Class labels of a type that graphs have: bool, int64, float64 or text."""
    types: dict[str, Any] = {"b": bool, "i": np.int64, "u": np.int64, "f": np.float64, "U": object, "O": object}
    if classes.dtype.kind not in types:
        raise ValueError(f"classes are of type {classes.dtype}, but only numbers, booleans and text can be exported")
    if classes.dtype.kind == "u" and classes.max() > np.iinfo(np.int64).max:
        raise ValueError(f"classes go up to {classes.max()}, but an exported one is at most {np.iinfo(np.int64).max}")
    return classes.astype(types[classes.dtype.kind])
