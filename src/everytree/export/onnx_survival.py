"""Survival curves inside a graph, at given times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper

from everytree import _kernels
from everytree.base.arrays import FloatArray
from everytree.base.errors import ArgumentError
from everytree.export.graph import Graph
from everytree.export.onnx_columns import tree_inputs
from everytree.export.onnx_exact import looked_up
from everytree.export.onnx_trees import leaf_numbers, summed
from everytree.export.summed import boosted_tables
from everytree.export.tables import TreeTable, leaf_alone, table_of
from everytree.models.survival import NEGLIGIBLE, Member
from everytree.posterior.forest import pool_nodes
from everytree.predictive.curves import SMALLEST
from everytree.survival.baseline import Baseline
from everytree.survival.curves import LEAST, PER_CELL
from everytree.survival.offset import LARGEST_LOG_HAZARD
from everytree.tables.schema import Schema

NODES_AT_ONCE = 128
"""Nodes of a row whose curves are held at a time: a batch needs memory for them, times its rows, times intervals."""


def checked_times(model: Any, times: ArrayLike | None) -> FloatArray | None:
    """The times of an exported graph of survival curves; none of other models."""
    if model.model_.baseline is None:
        if times is not None:
            raise ArgumentError("times", "is for survival curves, of which this model predicts none")
        return None
    if times is None:
        raise ArgumentError("times", "is needed: a graph has the survival curves at given times")
    found, last = np.atleast_1d(np.asarray(times, dtype=np.float64)), float(model.model_.times[-1])
    if found.ndim != 1 or not len(found) or not ((found >= 0.0) & (found <= last)).all():
        raise ArgumentError("times", f"must be numbers from 0 to {last:g}, where the curves end, but is {times!r}")
    return found


def survival_outputs(graph: Graph, model: Any, times: FloatArray) -> list[Any]:
    """The probability to be without event at each time."""
    own, schema = model.model_, model.schema_
    knots = own.times[: np.searchsorted(own.times, times.max()) + 1]
    if own.parts.exact is not None:
        sums, points = looked_up(graph, model, own.at_points), _points(own.family, own.baseline, knots)
        places = np.arange(1, len(points) + 1), np.zeros(1, dtype=np.int64)
        of_leaves, total = (graph.add("Gather", sums, graph.constant(place), axis=1) for place in places)
        curves = _at_knots(graph, graph.add("Div", of_leaves, total), own.baseline, points, knots)
    else:
        table = tree_inputs(graph, schema)
        each = [_curves(graph, member, schema, table, knots) for member in own.members]
        curves = each[0] if len(each) == 1 else graph.add("Sum", *each)
        curves = graph.add("Div", curves, graph.constant(float(len(each))))
        curves = _sharpened(graph, curves, own.sharpening.power, own.sharpening.centre[: len(knots)])
    for step in 2 ** np.arange(int(np.ceil(np.log2(len(knots))))):  # the least so far
        before = graph.constant(np.maximum(np.arange(len(knots)) - step, 0))
        curves = graph.add("Min", curves, graph.add("Gather", curves, before, axis=1))
    logs = graph.add("Log", graph.add("Clip", curves, graph.constant(SMALLEST), graph.constant(1.0)))
    between = _lines_between(np.append(0.0, knots), times)[1:]  # the logarithm is 0 at time 0
    name = graph.fresh("survival")
    graph.add("Exp", graph.add("MatMul", logs, graph.constant(between)), name=name)
    return [helper.make_tensor_value_info(name, TensorProto.DOUBLE, [None, len(times)])]


def _lines_between(points: FloatArray, at: FloatArray) -> FloatArray:
    """(n_points, n_at) weights by which values at points become those of lines between them."""
    return np.stack([np.interp(at, points, unit) for unit in np.eye(len(points))])


def _sharpened(graph: Graph, curves: str, power: float, centre: FloatArray) -> str:
    """As `Sharpening.of`."""
    if power == 1.0:
        return curves
    inside = graph.add("Clip", curves, graph.constant(LEAST), graph.constant(1.0 - LEAST))
    away = graph.add("Sub", graph.add("Log", graph.add("Neg", graph.add("Log", inside))), graph.constant(centre))
    sharp = graph.add("Add", graph.add("Mul", away, graph.constant(power)), graph.constant(centre))
    sharp = graph.add("Exp", graph.add("Neg", graph.add("Exp", sharp)))
    one = graph.constant(1.0)
    return graph.add("Where", graph.add("GreaterOrEqual", curves, one), one, sharp)


# ---- groups of trees ------------------------------------------------------------------------------------------------


def _curves(graph: Graph, member: Member, schema: Schema, table: str, knots: FloatArray) -> str:
    """(n_rows, n_knots) mean survival of a group of trees."""
    points = _points(member.forest.family, member.baseline, knots)
    tables = [_ends(post, schema) for post in member.forest.posteriors]
    paths = [
        _Paths.of(post, ends.node[ends.is_leaf], weight)
        for post, ends, weight in zip(member.forest.posteriors, tables, member.forest.weights, strict=True)
    ]
    ends = leaf_numbers(graph, tables, table)
    hazard = _hazard(graph, member.offset, schema, table)
    of_trees, first, first_leaf = [], 0, 0
    while first < len(paths):
        width, last = paths[first].width, first + 1
        while last < len(paths) and (last + 1 - first) * max(width, paths[last].width) <= NODES_AT_ONCE:
            width, last = max(width, paths[last].width), last + 1
        some = graph.add("Gather", ends, graph.constant(np.arange(first, last)), axis=1)
        some = graph.add("Sub", some, graph.constant(np.array(first_leaf)))
        of_trees.append(_Leaves(graph, member, paths[first:last], width, some, hazard).survival(points))
        first_leaf += sum(len(path.nodes) for path in paths[first:last])
        first = last
    mean = of_trees[0] if len(of_trees) == 1 else graph.add("Sum", *of_trees)
    return _at_knots(graph, mean, member.baseline, points, knots)


def _points(family: Any, baseline: Baseline, knots: FloatArray) -> FloatArray:
    """Points of the cells at which curves are known, up to the last knot."""
    every = np.arange(1, family.size * PER_CELL + 1) / PER_CELL
    return every[: int(np.searchsorted(every, baseline.position(knots[-1:])[0])) + 1]


def _at_knots(graph: Graph, at_points: str, baseline: Baseline, points: FloatArray, knots: FloatArray) -> str:
    """(n_rows, n_knots) as `curves_at`."""
    logs = graph.add("Log", graph.add("Max", at_points, graph.constant(SMALLEST)))
    between = _lines_between(np.append(0.0, points), baseline.position(knots))[1:]
    return graph.add("Exp", graph.add("MatMul", logs, graph.constant(between)))


def _ends(post: Any, schema: Schema) -> TreeTable:
    nothing = np.zeros((post.tree.n_nodes, 1))
    return table_of(post.tree, schema.columns, nothing, nothing[:, 0])


def _hazard(graph: Graph, offset: Any, schema: Schema, table: str) -> str:
    """(n_rows, 1, 1) relative hazard; (1,) where all are alike."""
    if offset is None:
        return graph.constant(np.ones(1))
    if offset.trees is not None:
        trees = boosted_tables(offset.trees, schema) or (leaf_alone(0.0),)
        found = summed(graph, trees, offset.trees.base, table)
    else:
        n_codes = schema.n_codes.astype(np.float64)
        codes = tree_inputs(graph, schema, all_codes=True)
        is_unknown = graph.add("Or", graph.add("IsNaN", codes), graph.add("Less", codes, graph.constant(0.0)))
        known = graph.add("Where", is_unknown, graph.constant(n_codes), codes)
        place = graph.add("Add", graph.add("Cast", known, to=TensorProto.INT64), graph.constant(offset.first[:-1]))
        parts = graph.add("Gather", graph.constant(offset.values), place)
        found = graph.add("ReduceSum", parts, graph.constant(np.array([1])), keepdims=1)
        found = graph.add("Sub", found, graph.constant(offset.centre))
    limit = graph.constant(LARGEST_LOG_HAZARD)
    found = graph.add("Clip", found, graph.add("Neg", limit), limit)
    return graph.add("Unsqueeze", graph.add("Exp", found), graph.constant(np.array([2])))


@dataclass(frozen=True)
class _Paths:
    """Of each leaf of a plain tree, the nodes of the meta-tree on its path."""

    nodes: NDArray[np.int64]  # (n_leaves, width)
    # (n_leaves, width): their shares of the mixture, times the weight of the tree; 0 where a path has fewer nodes
    weights: FloatArray
    parameters: FloatArray  # (n_nodes, n_parameters)

    @property
    def width(self) -> int:
        return int(self.nodes.shape[1])

    @classmethod
    def of(cls, post: Any, ends: NDArray[np.int64], weight: float) -> _Paths:
        pool = pool_nodes([post], np.ones(1))
        start, nodes, log_weights = _kernels.pooled_paths(
            ends=np.ascontiguousarray(ends[:, None]), parent=pool.parent, log_reached=pool.log_reached,
            log_stop=pool.log_stop, log_tree_weights=pool.log_weights, log_negligible=float(np.log(NEGLIGIBLE)),
        )  # fmt: skip
        lengths = np.diff(start)
        row, place = np.repeat(np.arange(len(ends)), lengths), np.arange(len(nodes)) - np.repeat(start[:-1], lengths)
        found = np.zeros((2, len(ends), int(lengths.max())))
        found[:, row, place] = nodes, weight * np.exp(log_weights)
        return cls(found[0].astype(np.int64), found[1], pool.summary)

    def widened(self, width: int, first_node: int) -> tuple[NDArray[np.int64], FloatArray]:
        more = ((0, 0), (0, width - self.width))
        return np.pad(self.nodes, more) + first_node, np.pad(self.weights, more)


class _Leaves:
    """The leaves on the paths of rows in some trees, as `distributions/survival_curves.hpp` reads their parameters."""

    def __init__(self, graph: Graph, member: Member, paths: list[_Paths], width: int, ends: str, hazard: str) -> None:
        first_node = np.cumsum([0] + [len(path.parameters) for path in paths])
        wide = [path.widened(width, int(first)) for path, first in zip(paths, first_node, strict=False)]
        self.graph, self.hazard = graph, hazard
        flat = graph.constant(np.array([0, -1]))
        nodes = graph.add("Gather", graph.constant(np.concatenate([nodes for nodes, _ in wide])), ends)
        nodes = graph.add("Reshape", nodes, flat)
        weights = graph.add("Gather", graph.constant(np.concatenate([weights for _, weights in wide])), ends)
        weights = graph.add("Reshape", weights, flat)
        self.weights = graph.add("Unsqueeze", weights, graph.constant(np.array([2])))
        family = member.forest.family
        every = np.concatenate([path.parameters for path in paths])[:, : 3 * family.n_intervals]
        of_intervals = every.reshape(len(every), family.n_intervals, 3)
        self.shape, self.rate, self.whole = (
            graph.add("Gather", graph.constant(of_intervals[:, :, k]), nodes) for k in range(3)
        )
        self.size = family.size
        self.length = np.zeros(family.n_intervals)
        self.length[self.size - 1 :] = np.asarray(family.lengths)
        for i in range(self.size - 2, -1, -1):
            self.length[i] = self.length[2 * i + 1 : 2 * i + 3].sum()

    def survival(self, points: FloatArray) -> str:
        """(n_rows, n_points) the sum over leaves of weight times survival, at points among the cells."""
        graph = self.graph
        full = self._full()
        place = np.ceil(points).astype(np.int64) - 1 + self.size - 1
        into = self.length[place] * (points - (np.ceil(points) - 1.0))
        value = self._survives(place, into)
        while place[0] > 0:
            is_second = place % 2 == 0
            before = np.where(is_second, place - 1, self.size * 2 - 1)  # after all intervals: 1
            value = graph.add("Mul", value, graph.add("Gather", full, graph.constant(before), axis=2))
            into = into + np.where(is_second, self.length[place - 1], 0.0)
            place = (place - 1) // 2
            value = self._either(place, self._survives(place, into), value)
        return graph.add("ReduceSum", graph.add("Mul", value, self.weights), graph.constant(np.array([1])), keepdims=0)

    def _full(self) -> str:
        """(n_rows, n_nodes, n_intervals + 1) probability to survive each interval; 1 at the end."""
        graph = self.graph
        cells = np.arange(self.size - 1, 2 * self.size - 1)
        below = self._survives(cells, self.length[cells])
        found = [graph.add("Mul", self._of(self.weights, np.zeros(1, dtype=np.int64)), graph.constant(0.0))]
        found = [graph.add("Add", found[0], graph.constant(1.0)), below]
        n = self.size // 2
        while n:
            place = np.arange(n - 1, 2 * n - 1)
            first, second = (self._of(below, np.arange(k, 2 * n, 2)) for k in (0, 1))
            both = graph.add("Mul", first, second)
            below = self._either(place, self._survives(place, self.length[place]), both)
            found.append(below)
            n //= 2
        return graph.add("Concat", *reversed(found), axis=2)

    def _either(self, place: NDArray[np.int64], alone: str, halves: str) -> str:
        """One factor for an interval, or one for each half, by their probabilities."""
        graph, whole = self.graph, self._of(self.whole, place)
        return graph.add("Add", halves, graph.add("Mul", whole, graph.add("Sub", alone, halves)))

    def _survives(self, place: NDArray[np.int64], into: FloatArray) -> str:
        """(1 + hazard / rate)^-shape, with the hazard up to a length of each interval."""
        graph = self.graph
        hazard = graph.add("Div", graph.add("Mul", self.hazard, graph.constant(into)), self._of(self.rate, place))
        logs = graph.add("Log", graph.add("Add", hazard, graph.constant(1.0)))
        return graph.add("Exp", graph.add("Neg", graph.add("Mul", logs, self._of(self.shape, place))))

    def _of(self, values: str, place: NDArray[np.int64]) -> str:
        return self.graph.add("Gather", values, self.graph.constant(place), axis=2)
