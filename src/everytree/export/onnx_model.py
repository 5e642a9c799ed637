"""Models as ONNX graphs: raw columns in, predictions out.

The graph has four parts, one after the other: each input column becomes the numbers that trees ask (`_encoded`); one
operator finds the leaf in which a row ends in each tree; the values of these leaves are looked up and added; and the
average is sharpened and named. The operator for trees gives float32, whatever it reads: that holds the number of a
leaf, but not the digits of its values, which is why these are looked up, in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper

from everytree.columns import Column
from everytree.export.averaged import AveragedTrees, to_tables
from everytree.export.graph import ML, TYPES, Graph, tensor
from everytree.export.inputs import Input, inputs_of, missing_text
from everytree.export.tables import UNSEEN, is_asked_by_value

MOST_LEAVES = 2**24
"""Whole numbers up to here are exact in float32."""


def to_onnx(model: Any) -> ModelProto:
    """A fitted model as an ONNX graph that takes raw columns and predicts what the model predicts.

    Parameters
    ----------
    model : fitted estimator
        As in `to_tables`.

    Returns
    -------
    onnx.ModelProto
        Inputs: one (n_rows, 1) tensor for each column, named as in the table of fit, `x0`, `x1`, ... where it had no
        names. Text is a string tensor, in which "" and the other texts that say so are missing. All other columns are
        float64, NaN where missing: booleans are 0 and 1, dates microseconds since 1970 (UTC where they have a time
        zone). `onnx_inputs` makes these tensors from a table.

        Outputs: of a classifier `label` (n_rows,) and `probabilities` (n_rows, n_classes); of a regressor `mean` and
        `variance` (n_rows,), float64, for one unit of exposure. A column of the same name gets its output an underscore.

    Notes
    -----
    Infinite numbers, which the model refuses, are not looked for.

    Examples
    --------
    >>> import everytree as et
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> graph = et.to_onnx(et.MetaTreeClassifier(max_depth=1, random_state=0).fit(X, y)).graph
    >>> [one.name for one in graph.input], [one.name for one in graph.output]
    (['x0', 'x1', 'x2', 'x3'], ['label', 'probabilities'])
    """
    trees = to_tables(model)
    inputs = inputs_of(trees.schema)
    graph = Graph([one.name for one in inputs])
    of_column = {k: _encoded(graph, trees.schema.columns[k], one) for one in inputs for k in one.readers}
    table = graph.add("Concat", *(of_column[k] for k in sorted(of_column)), axis=1)
    average = _averaged(graph, trees, _leaves(graph, trees, table))
    finish = _as_numbers if trees.classes is None else _as_classes
    return graph.model([_declared(one) for one in inputs], finish(graph, trees, average), type(model).__name__)


def _declared(one: Input) -> Any:
    kind = TensorProto.STRING if one.is_text else TensorProto.DOUBLE
    return helper.make_tensor_value_info(one.name, kind, [None, 1])


# ---- what trees ask -------------------------------------------------------------------------------------------------


def _encoded(graph: Graph, column: Column, one: Input) -> str:
    """(n_rows, 1) the numbers or codes of a column, NaN where missing; see `export.tables`."""
    if column.kind == "categorical":
        return _category_codes(graph, column, one)
    values = one.name
    if column.single:
        values = graph.add("Cast", values, to=TensorProto.FLOAT)
        values = graph.add("Cast", values, to=TensorProto.DOUBLE)
    return values if is_asked_by_value(column) else _groups(graph, column, values)


def _category_codes(graph: Graph, column: Column, one: Input) -> str:
    codes = np.array(column.groups or range(len(column.categories)), dtype=np.float64)
    codes[codes < 0] = np.nan
    keys: list[Any] = list(column.categories) if one.is_text else _distinct_numbers(one.name, column)
    missing: list[Any] = missing_text(column) if one.is_text else [np.nan]
    return graph.add(
        "LabelEncoder", one.name, domain=ML,
        keys_tensor=tensor(np.array(keys + missing, dtype=object if one.is_text else np.float64)),
        values_tensor=tensor(np.concatenate([codes, np.full(len(missing), np.nan)])),
        default_tensor=tensor(np.array([np.nan if column.groups else UNSEEN])),
    )  # fmt: skip


def _distinct_numbers(name: str, column: Column) -> list[float]:
    """Categories that are numbers, as float64."""
    numbers = [float(value) for value in column.categories]
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"input {name!r} has categories that are the same number in float64, and cannot be exported")
    return numbers


def _groups(graph: Graph, column: Column, values: str) -> str:
    """The code of the stretch between cuts in which each number lies."""
    codes = np.array(column.groups, dtype=np.float64)
    codes[codes < 0] = np.nan
    is_above = graph.add("Less", graph.constant(column.cuts[None, :]), values)
    n_below = graph.add("Cast", is_above, to=TensorProto.INT64)
    n_below = graph.add("ReduceSum", n_below, graph.constant(np.array([1])), keepdims=1)
    code = graph.add("Gather", graph.constant(codes), n_below)
    return graph.add("Where", graph.add("IsNaN", values), graph.constant(np.array(np.nan)), code)


# ---- trees ----------------------------------------------------------------------------------------------------------


def _leaves(graph: Graph, trees: AveragedTrees, table: str) -> str:
    """(n_rows, n_trees) the leaf in which each row ends, all trees' leaves numbered one after another."""
    nodes: dict[str, list[NDArray[Any]]] = {name: [] for name in ("treeids", "nodeids", "numbers")}
    for number, tree in enumerate(trees.trees):
        leaves = np.flatnonzero(tree.is_leaf)
        if len(leaves) > MOST_LEAVES:
            raise ValueError(f"tree {number} has {len(leaves)} leaves, but at most {MOST_LEAVES} can be exported")
        nodes["treeids"].append(np.full(len(leaves), number))
        nodes["nodeids"].append(leaves)
        nodes["numbers"].append(np.arange(len(leaves)))
    tree_of, leaf, number_of = (np.concatenate(parts) for parts in nodes.values())
    numbers = graph.add(
        "TreeEnsembleRegressor", table, domain=ML, n_targets=len(trees.trees), **_node_attributes(trees),
        target_treeids=tree_of.tolist(), target_ids=tree_of.tolist(), target_nodeids=leaf.tolist(),
        target_weights_as_tensor=tensor(number_of.astype(np.float64)),
    )  # fmt: skip
    first = np.cumsum([0, *(tree.is_leaf.sum() for tree in trees.trees)])[:-1]
    return graph.add("Add", graph.add("Cast", numbers, to=TensorProto.INT64), graph.constant(first.astype(np.int64)))


def _node_attributes(trees: AveragedTrees) -> dict[str, Any]:
    """All nodes of all trees; a leaf asks nothing, and what its fields hold is never read."""

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([np.asarray(getattr(tree, name)) for tree in trees.trees])

    n_nodes = [tree.node_count for tree in trees.trees]
    is_leaf = joined("is_leaf")
    whole = {
        "nodes_treeids": np.repeat(np.arange(len(n_nodes)), n_nodes),
        "nodes_nodeids": np.concatenate([np.arange(n) for n in n_nodes]),
        "nodes_featureids": joined("feature"),
        "nodes_truenodeids": joined("children_left"),
        "nodes_falsenodeids": joined("children_right"),
        "nodes_missing_value_tracks_true": joined("missing_go_to_left"),
    }
    return {name: np.maximum(values.astype(np.int64), 0).tolist() for name, values in whole.items()} | {
        "nodes_modes": np.where(is_leaf, "LEAF", "BRANCH_LEQ").tolist(),
        "nodes_values_as_tensor": tensor(joined("threshold")),
    }


def _averaged(graph: Graph, trees: AveragedTrees, leaves: str) -> str:
    """(n_rows, n_outputs) the sum over trees of weight times value."""
    values = [w * tree.value[tree.is_leaf] for w, tree in zip(trees.weights, trees.trees, strict=True)]
    of_leaves = graph.add("Gather", graph.constant(np.concatenate(values)), leaves)
    return graph.add("ReduceSum", of_leaves, graph.constant(np.array([1])), keepdims=0)


# ---- answers --------------------------------------------------------------------------------------------------------


def _as_classes(graph: Graph, trees: AveragedTrees, average: str) -> list[Any]:
    """Probabilities, sharpened, and the most probable class."""
    assert trees.classes is not None
    last = graph.constant(np.array([1]))
    probs = average
    if trees.sharpness != 1.0:
        of_top = graph.add("Div", probs, graph.add("ReduceMax", probs, last))
        probs = graph.add("Pow", of_top, graph.constant(np.array(trees.sharpness)))
    names = graph.fresh("label"), graph.fresh("probabilities")
    total = graph.add("ReduceSum", probs, last)
    probs = graph.add("Div", probs, total, name=names[1])
    best = graph.add("ArgMax", probs, axis=1, keepdims=0)
    labels = _labels(trees.classes)
    graph.add("Gather", graph.constant(labels), best, name=names[0])
    return [
        helper.make_tensor_value_info(names[0], TYPES[labels.dtype.kind], [None]),
        helper.make_tensor_value_info(names[1], TensorProto.DOUBLE, [None, len(labels)]),
    ]


def _labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Class labels of a type that graphs have: bool, int64, float64 or text."""
    kinds = {"b": np.bool_, "i": np.int64, "u": np.int64, "f": np.float64, "U": object, "O": object}
    if classes.dtype.kind not in kinds or not (classes.dtype.kind != "O" or all(isinstance(c, str) for c in classes)):
        raise ValueError(f"classes are {classes.tolist()}, but only numbers, booleans and text can be exported")
    return classes.astype(kinds[classes.dtype.kind])


def _as_numbers(graph: Graph, trees: AveragedTrees, average: str) -> list[Any]:
    """Mean and variance."""
    names = graph.fresh("mean"), graph.fresh("variance")
    first, second = (graph.add("Gather", average, graph.constant(np.array(k)), axis=1) for k in (0, 1))
    graph.add("Add", first, graph.constant(np.array(trees.centre)), name=names[0])
    variance = graph.add("Sub", second, graph.add("Mul", first, first))
    variance = graph.add("Max", variance, graph.constant(np.array(0.0)))
    graph.add("Div", variance, graph.constant(np.array(trees.sharpness**2)), name=names[1])
    return [helper.make_tensor_value_info(name, TensorProto.DOUBLE, [None]) for name in names]
