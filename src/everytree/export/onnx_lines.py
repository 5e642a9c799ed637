"""Boosted trees with lines inside a graph."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto

from everytree.boosting.lines import LinedTrees
from everytree.export.graph import Graph
from everytree.export.onnx_trees import summed
from everytree.export.summed import boosted_tables
from everytree.tables.schema import Schema


def lined_scores(graph: Graph, lined: LinedTrees, schema: Schema, table: str) -> str:
    """(n_rows, 1) the sum of the constants, and of the slopes in each column times its points.

    Terms are added one after another, as the model does.
    """
    sums = summed(graph, boosted_tables(lined.trees, schema), lined.trees.base, table)
    products = [graph.add("Slice", sums, *_range(graph, 0, 1))]
    for place, (column, own) in enumerate(zip(lined.columns.tolist(), lined.points, strict=True), start=1):
        numbers = graph.add("Slice", table, *_range(graph, column, column + 1))
        is_above = graph.add("Less", graph.constant(schema.columns[column].cuts[None, :]), numbers)
        code = graph.add("Cast", is_above, to=TensorProto.INT64)
        code = graph.add("ReduceSum", code, graph.constant(np.array([1])), keepdims=1)
        point = graph.add("Gather", graph.constant(own), code)
        point = graph.add("Where", graph.add("IsNaN", numbers), graph.constant(np.array(0.0)), point)
        products.append(graph.add("Mul", graph.add("Slice", sums, *_range(graph, place, place + 1)), point))
    so_far = graph.add("CumSum", graph.add("Concat", *products, axis=1), graph.constant(np.array(1)))
    return graph.add("Slice", so_far, *_range(graph, len(products) - 1, len(products)))


def _range(graph: Graph, start: int, end: int) -> list[str]:
    """Start, end and axis of a slice of columns."""
    return [graph.constant(np.array([number])) for number in (start, end, 1)]
