"""Exact averages over every tree and every choice of splits inside a graph: one lookup for each set of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto

from everytree.exact.posterior import LeafValues
from everytree.exact.prediction import Tables
from everytree.export.graph import Graph
from everytree.export.onnx_columns import tree_inputs

MAX_BYTES = 3 * 2**29
"""Maximum size of all tables; a graph holds at most 2 GiB."""


def looked_up(graph: Graph, model: Any, values_of: LeafValues | None = None) -> str:
    """(n_rows, width) sums over the leaves that hold a row, as in `ExactPosterior`."""
    posterior = model.posterior_
    with_known, with_unknown = (posterior.tabulated(unknown, values_of) for unknown in (False, True))
    _check(model, (with_known, with_unknown))
    codes = _engine_codes(graph, model)
    limit = graph.constant(np.array(posterior.n_codes, dtype=np.int64))
    beyond = graph.add("Cast", graph.add("GreaterOrEqual", codes, limit), to=TensorProto.INT64)
    is_unknown = graph.add("Cast", graph.add("ReduceMax", beyond, graph.constant(np.array([1]))), to=TensorProto.BOOL)
    return graph.add("Where", is_unknown, _sums(graph, with_unknown, codes), _sums(graph, with_known, codes))


def _check(model: Any, tables: tuple[Tables, Tables]) -> None:
    name = type(model).__name__
    n_bytes = sum(array.nbytes for one in tables for array in one.arrays)
    if n_bytes > MAX_BYTES:
        raise ValueError(
            f"this {name} has {n_bytes / 2**30:.2g} GiB of tables, more than a graph can hold; "
            "a larger truncation, or a smaller max_depth or max_bins, makes fewer"
        )
    if not all(np.isfinite(one.arrays[-1]).all() for one in tables):
        raise ValueError(
            f"some leaves of this {name} have no finite mean or variance, so it cannot be exported; a prior of family "
            f"{model.family_!r} that is worth more rows gives them one"
        )


def _engine_codes(graph: Graph, model: Any) -> str:
    """(n_rows, n_features) int64: missing is the code after all others, unseen the next one.

    Where nothing was missing at fit, the code after all others is unknown too.
    """
    codes = tree_inputs(graph, model.schema_, all_codes=True)
    n_codes = model.schema_.n_codes.astype(np.float64)
    after = graph.constant(n_codes + model.schema_.has_missing)
    is_unseen = graph.add("Less", codes, graph.constant(np.array(0.0)))
    known = graph.add("Where", is_unseen, after, codes)
    known = graph.add("Where", graph.add("IsNaN", codes), graph.constant(n_codes), known)
    return graph.add("Cast", known, to=TensorProto.INT64)


def _sums(graph: Graph, tables: Tables, codes: str) -> str:
    """(n_rows, width) the cells of all sets, summed; the index of a cell is the sum of the offsets of its columns."""
    set_start, column, map_start, place, first_cell, cells = tables.arrays
    max_codes = max(tables.n_codes) + 1
    nowhere = graph.constant(np.append(place, np.zeros(max_codes)).astype(np.int64))
    cell = graph.constant(first_cell[None, :-1].astype(np.int64))
    n_columns = np.diff(set_start)
    for j in range(n_columns.max(initial=0)):
        has = n_columns > j
        entry = np.where(has, set_start[:-1] + j, 0)
        # A set with fewer columns adds an offset from the end, where there are only zeros.
        own, start = _padded(column, entry, has, 0), _padded(map_start, entry, has, len(place))
        code = graph.add("Gather", codes, graph.constant(own), axis=1)
        at = graph.add("Gather", nowhere, graph.add("Add", code, graph.constant(start)))
        cell = graph.add("Add", cell, at)
    if n_columns.max(initial=0) == 0:  # one cell for all rows, but their number is needed
        zeros = graph.add("Mul", codes, graph.constant(np.zeros(1, dtype=np.int64)))
        cell = graph.add("Add", cell, graph.add("ReduceSum", zeros, graph.constant(np.array([1]))))
    of_cells = graph.add("Gather", graph.constant(cells.reshape(-1, tables.width)), cell)
    return graph.add("ReduceSum", of_cells, graph.constant(np.array([1])), keepdims=0)


def _padded(values: NDArray[Any], at: NDArray[np.int64], has: NDArray[np.bool_], otherwise: int) -> NDArray[np.int64]:
    """Return the values at the given places, and `otherwise` where there are none."""
    found = values[at] if len(values) else np.zeros(len(at))
    return np.where(has, found, otherwise).astype(np.int64)
