"""Building an ONNX graph, one operator at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET, ML_OPSET, IR_VERSION = 18, 4, 8
"""Old enough for common runtimes, new enough for encoders of text to float64."""

ML = "ai.onnx.ml"

TYPES: dict[str, int] = {
    "f": TensorProto.DOUBLE,
    "i": TensorProto.INT64,
    "b": TensorProto.BOOL,
    "O": TensorProto.STRING,
}
"""The tensor type for each kind of NumPy array."""


class Graph:
    """The operators and constants of a graph under construction; every result has its own name."""

    def __init__(self, taken: Sequence[str]) -> None:
        self._taken = set(taken)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def fresh(self, name: str) -> str:
        """Return the name, with underscores appended if it is taken."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def constant(self, values: Any) -> str:
        """Add a constant array and return its name."""
        name = self.fresh(f"constant{len(self._constants)}")
        self._constants.append(tensor(values, name))
        return name

    def add(self, operator: str, *inputs: str, domain: str = "", name: str | None = None, **attributes: Any) -> str:
        """Add an operator and return the name of its result."""
        name = name or self.fresh(f"{operator}{len(self._nodes)}")
        self._nodes.append(helper.make_node(operator, inputs, [name], domain=domain, **attributes))
        return name

    def model(self, inputs: Sequence[Any], outputs: Sequence[Any], doc: str) -> onnx.ModelProto:
        """Return the finished graph, checked."""
        graph = helper.make_graph(self._nodes, "everytree", inputs, outputs, self._constants, doc_string=doc)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="everytree")
        onnx.checker.check_model(model, full_check=True)
        return model


def tensor(values: Any, name: str = "") -> onnx.TensorProto:
    """Return an array as an ONNX tensor; text is stored as objects."""
    array: NDArray[Any] = np.asarray(values)
    if array.dtype.kind in "OU":
        return helper.make_tensor(name, TensorProto.STRING, array.shape, [str(text).encode() for text in array.flat])
    return numpy_helper.from_array(array, name)
