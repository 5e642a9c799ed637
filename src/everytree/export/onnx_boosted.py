"""Boosted models and ensembles inside a graph; `export.summed` defines what they predict."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto

from everytree.base.errors import ArgumentError
from everytree.boosting.lines import LinedTrees
from everytree.explaining.contributions import LEAST
from everytree.export.averaged import AveragedTrees
from everytree.export.graph import Graph
from everytree.export.onnx_columns import tree_inputs
from everytree.export.onnx_outputs import entry, moments, predicts_classes, predicts_numbers, sharpened
from everytree.export.onnx_trees import averaged, summed
from everytree.export.summed import SummedTrees, boosted_tables
from everytree.tables.schema import Schema


def boosted_outputs(graph: Graph, trees: SummedTrees, lined: LinedTrees | None) -> list[Any]:
    """Classes and their probabilities, or mean and variance."""
    table = tree_inputs(graph, trees.schema)
    scores = summed(graph, trees.trees, trees.base, table)
    if trees.classes is not None:
        return predicts_classes(graph, _probs(graph, trees, scores, table), trees.classes)
    if lined is not None:
        scores = graph.add("Add", scores, lined_scores(graph, lined, trees.schema, table))
    centre = _centre(graph, trees, scores, table)
    return predicts_numbers(graph, *_about_centre(graph, trees, centre, table))


# ---- classes --------------------------------------------------------------------------------------------------------


def _probs(graph: Graph, trees: SummedTrees, scores: str, table: str) -> str:
    """(n_rows, n_classes) probabilities by boosting, mixed with those of a forest."""
    assert trees.classes is not None
    if len(trees.base) < len(trees.classes):  # one score is the logit of the second of two classes
        scores = graph.add("Mul", scores, graph.constant(np.array([[0.0, 1.0]])))
    probs = graph.add("Softmax", scores, axis=1)
    if trees.forest is None:
        return probs
    by_forest = sharpened(graph, averaged(graph, trees.forest, table), trees.forest.sharpness)
    logs = _mixed(graph, _log(graph, by_forest), _log(graph, probs), trees.weight)
    return graph.add("Softmax", graph.add("Mul", logs, graph.constant(trees.sharpness)), axis=1)


def _log(graph: Graph, probs: str) -> str:
    return graph.add("Log", graph.add("Max", probs, graph.constant(LEAST)))


def _mixed(graph: Graph, by_forest: str, by_boosting: str, weight: float) -> str:
    """The weighted mean of the forest and boosting."""
    parts = ((by_forest, 1.0 - weight), (by_boosting, weight))
    return graph.add("Add", *(graph.add("Mul", part, graph.constant(share)) for part, share in parts))


# ---- numbers --------------------------------------------------------------------------------------------------------


def _centre(graph: Graph, trees: SummedTrees, scores: str, table: str) -> str:
    """(n_rows,) centres by boosting, mixed with those of a forest."""
    by_boosting = entry(graph, scores, 0)
    if trees.forest is None:
        return by_boosting
    by_forest, _ = _moments(graph, trees.forest, table)
    link = trees.link
    assert link is not None
    if link.sign and not link.averages_logs:
        by_forest = graph.add("Log", by_forest)
        if link.sign < 0:
            by_forest = graph.add("Neg", by_forest)
        # A mean of zero has no logarithm.
        by_forest = graph.add("Where", graph.add("IsInf", by_forest), by_boosting, by_forest)
    return _mixed(graph, by_forest, by_boosting, trees.weight)


def _about_centre(graph: Graph, trees: SummedTrees, centre: str, table: str) -> tuple[str, str]:
    """(n_rows,) mean and variance of targets, from those of the residuals."""
    link = trees.link
    assert trees.residuals is not None
    assert link is not None
    as_column = graph.add("Unsqueeze", centre, graph.constant(np.array([1])))
    mean, variance = _moments(graph, trees.residuals, graph.add("Concat", table, as_column, axis=1))
    if not link.sign:
        return graph.add("Add", centre, mean) if link.is_moved else mean, variance
    if link.in_exposure and not link.noise_is_mean:
        raise ArgumentError(
            "family", f"is {trees.family!r}: no table has how the variance of such counts grows with their mean, so "
            "that boosted ones cannot be exported; a forest of them can"
        )  # fmt: skip
    scale = graph.add("Exp", graph.add("Neg", centre) if link.sign < 0 else centre)
    of_noise = None
    if link.in_exposure:  # the noise of counts grows as their mean does, the rest as its square
        of_noise = graph.add("Mul", scale, mean)
        variance = graph.add("Max", graph.add("Sub", variance, mean), graph.constant(0.0))
    spread = graph.add("Mul", graph.add("Mul", scale, scale), variance)
    return graph.add("Mul", scale, mean), spread if of_noise is None else graph.add("Add", of_noise, spread)


def _moments(graph: Graph, trees: AveragedTrees, table: str) -> tuple[str, str]:
    average = averaged(graph, trees, table)
    return moments(graph, entry(graph, average, 0), entry(graph, average, 1), trees.centre, trees.sharpness)


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
